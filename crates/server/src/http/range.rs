//! Ranges of a file, as a request asks for them.

use axum::http::{HeaderMap, header};

/// What of a file is to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// All of it.
    Whole,
    /// From here to before there, which is behind.
    Part(u64, u64),
    /// Nothing that it has.
    Outside,
}

/// What a request wants of a file of this size. What is no range, or several, is passed over, as the
/// standard allows.
pub(crate) fn wanted(headers: &HeaderMap, size: u64) -> Wanted {
    let mut all = headers.get_all(header::RANGE).iter();
    let (Some(value), None) = (all.next(), all.next()) else { return Wanted::Whole };
    let range = value.to_str().ok().and_then(|text| text.strip_prefix("bytes="));
    let Some((first, last)) = range.and_then(|range| range.split_once('-')) else {
        return Wanted::Whole;
    };
    match (number(first), number(last)) {
        (Number::Is(first), Number::Is(last)) if first <= last => {
            part(first, last.saturating_add(1).min(size), size)
        }
        (Number::Is(first), Number::Missing) => part(first, size, size),
        (Number::Missing, Number::Is(0)) => Wanted::Outside,
        (Number::Missing, Number::Is(last)) => part(size.saturating_sub(last), size, size),
        (_, _) => Wanted::Whole,
    }
}

fn part(from: u64, to: u64, size: u64) -> Wanted {
    if from < to && from < size { Wanted::Part(from, to) } else { Wanted::Outside }
}

enum Number {
    Is(u64),
    Missing,
    Wrong,
}

fn number(text: &str) -> Number {
    let text = text.trim();
    if text.is_empty() {
        return Number::Missing;
    }
    // A number that is too large for any file is beyond its end.
    match text.bytes().all(|byte| byte.is_ascii_digit()) {
        true => Number::Is(text.parse().unwrap_or(u64::MAX)),
        false => Number::Wrong,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(range: &str, size: u64, expected: Wanted) {
        let headers = [(header::RANGE, range.parse().unwrap())].into_iter().collect();
        assert_eq!(wanted(&headers, size), expected, "{range} of {size}");
    }

    #[test]
    fn a_range_has_its_last_byte_in_it() {
        check("bytes=0-0", 10, Wanted::Part(0, 1));
        check("bytes=2-5", 10, Wanted::Part(2, 6));
        check("bytes=2-", 10, Wanted::Part(2, 10));
        check("bytes=-3", 10, Wanted::Part(7, 10));
        check("bytes=-30", 10, Wanted::Part(0, 10));
        check("bytes=5-99999999999999999999999", 10, Wanted::Part(5, 10));
    }

    #[test]
    fn what_lies_outside_is_refused_and_what_is_no_range_is_passed_over() {
        for (range, size) in [
            ("bytes=10-", 10),
            ("bytes=10-12", 10),
            ("bytes=-0", 10),
            ("bytes=0-", 0),
            ("bytes=-1", 0),
        ] {
            check(range, size, Wanted::Outside);
        }
        for range in
            ["bytes=5-2", "bytes=a-b", "bytes=1-2,4-5", "items=0-1", "bytes=-", "bytes=+1-2"]
        {
            check(range, 10, Wanted::Whole);
        }
        assert_eq!(wanted(&HeaderMap::new(), 3), Wanted::Whole);
    }
}

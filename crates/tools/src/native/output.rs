//! Streams of commands as Cofferdam's own tools show them: beginning and end, what is between them by
//! number, and how to get it.

use crate::plain::{clean, mark};
use crate::run::Ends;
use schemars::JsonSchema;
use serde::Serialize;

/// A stream of a command, as far as it is shown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Shown {
    /// What is shown: without escape sequences of terminals, and of each line what was last written
    /// over it. A mark with a number stands for what is left out.
    pub(crate) text: String,
    /// How many bytes were written.
    pub(crate) bytes: u64,
    /// How many of these are left out.
    pub(crate) omitted_bytes: u64,
    /// Where these begin, as far as they are still there: the offset for `shell_poll`; null where none is.
    pub(crate) next_offset: Option<u64>,
    /// How many of the first bytes were dropped for want of room, and can be read no more.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(default)]
    pub(crate) dropped_bytes: u64,
    /// Whether bytes that are no UTF-8 are shown as U+FFFD; `shell_poll` has them in base64.
    pub(crate) replaced: bool,
}

impl Shown {
    /// So much of the ends, a third of it at the beginning.
    pub(crate) fn new(ends: &Ends, most: usize) -> Self {
        let all = ends.head.len() + ends.tail.len();
        let (head, tail) = if ends.omitted() == ends.dropped && all <= most {
            (ends.head.as_slice(), ends.tail.as_slice())
        } else {
            let whole: &[u8] = if ends.tail.is_empty() { &ends.head } else { &ends.tail };
            (beginning(&ends.head, most / 3), end(whole, most - most / 3))
        };
        let omitted = ends.written.saturating_sub((head.len() + tail.len()) as u64);
        let (first, last) = (String::from_utf8_lossy(head), String::from_utf8_lossy(tail));
        let replaced = std::str::from_utf8(head).is_err() || std::str::from_utf8(tail).is_err();
        let mut text = clean(&first);
        if omitted > 0 {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(&mark(omitted));
            text.push('\n');
        }
        text.push_str(&clean(&last));
        let dropped = ends.dropped;
        let next_offset = (omitted > dropped).then_some(dropped.max(head.len() as u64));
        Self {
            text,
            bytes: ends.written,
            omitted_bytes: omitted,
            next_offset,
            dropped_bytes: dropped,
            replaced,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
pub(super) fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Its first bytes, whole lines where there are any, and whole characters.
fn beginning(bytes: &[u8], most: usize) -> &[u8] {
    let part = bytes.get(..most.min(bytes.len())).unwrap_or_default();
    if let Some(line) = part.iter().rposition(|byte| *byte == b'\n').filter(|at| *at > most / 2) {
        return part.get(..=line).unwrap_or_default();
    }
    let cut = match std::str::from_utf8(part) {
        // The last character lacks bytes.
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => part.len(),
    };
    part.get(..cut).unwrap_or_default()
}

/// Its last bytes, in the same way.
fn end(bytes: &[u8], most: usize) -> &[u8] {
    let part = bytes.get(bytes.len() - most.min(bytes.len())..).unwrap_or_default();
    if part.len() == bytes.len() {
        return part;
    }
    let half = part.len() / 2;
    if let Some(line) = part.iter().take(half).position(|byte| *byte == b'\n') {
        return part.get(line + 1..).unwrap_or_default();
    }
    let middle = part.iter().take(3).take_while(|byte| (0x80..0xc0).contains(*byte)).count();
    part.get(middle..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(text: &[u8]) -> Ends {
        Ends { head: text.to_vec(), tail: Vec::new(), written: text.len() as u64, dropped: 0 }
    }

    #[test]
    fn what_fits_is_shown_whole() {
        let shown = Shown::new(&ends(b"a\nb\n"), 4);
        assert_eq!((shown.text.as_str(), shown.bytes, shown.omitted_bytes), ("a\nb\n", 4, 0));
        assert_eq!((shown.next_offset, shown.replaced), (None, false));
    }

    #[test]
    fn what_is_left_out_is_counted_and_can_be_asked_for() {
        let text: String = (0..1000).map(|n| format!("{n:04}\n")).collect();
        let bytes = text.as_bytes();
        let apart = Ends {
            head: bytes[..1000].to_vec(),
            tail: bytes[4000..].to_vec(),
            written: bytes.len() as u64,
            dropped: 0,
        };
        for ends in [ends(bytes), apart] {
            let shown = Shown::new(&ends, 300);
            let offset = usize::try_from(shown.next_offset.unwrap()).unwrap();
            let omitted = usize::try_from(shown.omitted_bytes).unwrap();
            let expected = format!(
                "{}{}\n{}",
                &text[..offset],
                mark(shown.omitted_bytes),
                &text[offset + omitted..]
            );
            assert_eq!(shown.text, expected);
            assert!(offset > 50 && text.len() - offset - omitted > 100);
        }
    }

    #[test]
    fn what_was_dropped_is_told_and_the_rest_is_asked_for_where_it_begins() {
        let text = b"kept\n".repeat(1000);
        let ends = Ends { head: Vec::new(), tail: text.clone(), written: 15_000, dropped: 10_000 };
        let shown = Shown::new(&ends, 300);
        assert_eq!((shown.next_offset, shown.dropped_bytes), (Some(10_000), 10_000));
        assert!(shown.text.starts_with(&mark(shown.omitted_bytes)), "{}", shown.text);
        // All that is still there is shown.
        let shown = Shown::new(&ends, text.len());
        assert_eq!((shown.next_offset, shown.omitted_bytes), (None, 10_000));
        assert!(shown.text.ends_with(std::str::from_utf8(&text).unwrap()));
    }

    #[test]
    fn a_character_is_whole_or_left_out_and_bytes_that_are_none_are_told() {
        let text = "€".repeat(1000);
        for most in 1..40 {
            assert!(!Shown::new(&ends(text.as_bytes()), most).replaced, "{most}");
        }
        let shown = Shown::new(&ends(b"a\xffb"), 10);
        assert_eq!((shown.text.as_str(), shown.replaced), ("a\u{fffd}b", true));
    }
}

//! What a registry wants to see before it answers.

use crate::limits::MAX_CHALLENGE_BYTES;
use std::collections::BTreeMap;

/// What a registry wants to see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Challenge {
    /// A token from somewhere.
    Bearer {
        /// Where.
        realm: String,
        /// Who the token is for, where that is said.
        service: Option<String>,
    },
    /// A name and a password.
    Basic,
}

/// The one of several challenges that is met: a token rather than a password.
pub(crate) fn choose<'a>(headers: impl Iterator<Item = &'a str>) -> Option<Challenge> {
    let mut basic = None;
    for header in headers.filter(|header| header.len() <= MAX_CHALLENGE_BYTES) {
        for (scheme, mut parameters) in schemes(header) {
            if scheme.eq_ignore_ascii_case("bearer")
                && let Some(realm) = parameters.remove("realm")
            {
                return Some(Challenge::Bearer { realm, service: parameters.remove("service") });
            }
            if scheme.eq_ignore_ascii_case("basic") {
                basic = Some(Challenge::Basic);
            }
        }
    }
    basic
}

/// A header's schemes, each with its parameters.
fn schemes(header: &str) -> Vec<(String, BTreeMap<String, String>)> {
    let mut found: Vec<(String, BTreeMap<String, String>)> = Vec::new();
    let mut rest = header;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        let end = rest.find([' ', '\t', ',', '=']).unwrap_or(rest.len());
        let Some((word, after)) = rest.split_at_checked(end) else { return found };
        if word.is_empty() && after.is_empty() {
            return found;
        }
        let after = after.trim_start_matches([' ', '\t']);
        match after.strip_prefix('=') {
            Some(after) => {
                let (value, after) = value(after.trim_start_matches([' ', '\t']));
                if let Some((_, parameters)) = found.last_mut() {
                    parameters.insert(word.to_ascii_lowercase(), value);
                }
                rest = after;
            }
            None => {
                found.push((word.to_owned(), BTreeMap::new()));
                rest = after;
            }
        }
    }
}

/// A value, quoted or not, and what follows it.
fn value(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([',', ' ', '\t']).unwrap_or(text.len());
        let (value, rest) = text.split_at_checked(end).unwrap_or((text, ""));
        return (value.to_owned(), rest);
    };
    let mut value = String::new();
    let mut letters = quoted.char_indices();
    while let Some((place, letter)) = letters.next() {
        match letter {
            '"' => return (value, quoted.get(place + 1..).unwrap_or_default()),
            '\\' => value.extend(letters.next().map(|(_, letter)| letter)),
            _ => value.push(letter),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bearer(realm: &str, service: Option<&str>) -> Option<Challenge> {
        let service = service.map(str::to_owned);
        Some(Challenge::Bearer { realm: realm.to_owned(), service })
    }

    #[test]
    fn a_challenge_is_read_however_it_is_written() {
        for (header, expected) in [
            (
                r#"Bearer realm="https://a/t",service="s",scope="x:y:pull""#,
                bearer("https://a/t", Some("s")),
            ),
            (r#"bearer  REALM = "https://a/t?x=\"y\"" "#, bearer("https://a/t?x=\"y\"", None)),
            (r#"Basic realm="a, Bearer b", Bearer realm=https://c"#, bearer("https://c", None)),
            (r#"Basic realm="here""#, Some(Challenge::Basic)),
            ("Basic", Some(Challenge::Basic)),
            (r#"Bearer service="s""#, None),
            ("Negotiate", None),
            (r#"Bearer realm="open"#, bearer("open", None)),
            ("", None),
            ("=,=,\"", None),
        ] {
            assert_eq!(choose([header].into_iter()), expected, "{header}");
        }
        let long = format!("Basic realm=\"{}\"", "x".repeat(MAX_CHALLENGE_BYTES));
        assert_eq!(choose([long.as_str()].into_iter()), None);
        let two = [r#"Basic realm="x""#, r#"Bearer realm="y""#];
        assert_eq!(choose(two.into_iter()), bearer("y", None));
    }

    proptest::proptest! {
        #[test]
        fn any_header_is_read_to_its_end(header in ".{0,200}") {
            let _ = choose([header.as_str()].into_iter());
        }
    }
}

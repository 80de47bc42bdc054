//! Hashes in headers: entity tags, and the digest fields of RFC 9530.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cofferdam_core::files::Only;
use cofferdam_core::{Error, ErrorKind, Result, hexadecimal};

/// The digest of all of a file.
pub(crate) const REPR_DIGEST: HeaderName = HeaderName::from_static("repr-digest");
/// The digest of what is sent.
pub(crate) const CONTENT_DIGEST: HeaderName = HeaderName::from_static("content-digest");

/// How many bytes a SHA-256 has.
const HASH_BYTES: usize = 32;

/// The headers that tell a file's SHA-256, which is in hexadecimal.
pub(crate) fn tell(headers: &mut HeaderMap, sha256: &str) {
    if let Ok(tag) = HeaderValue::try_from(format!("\"{sha256}\"")) {
        headers.insert(header::ETAG, tag);
    }
    if let Some(bytes) = bytes(sha256)
        && let Ok(value) = HeaderValue::try_from(format!("sha-256=:{}:", STANDARD.encode(bytes)))
    {
        headers.insert(REPR_DIGEST, value);
    }
}

/// The SHA-256 that a request says of its body, in hexadecimal.
pub(crate) fn said(headers: &HeaderMap) -> Result<Option<String>> {
    let mut found: Option<String> = None;
    for name in [&CONTENT_DIGEST, &REPR_DIGEST] {
        for value in headers.get_all(name) {
            let Some(one) = sha256(name, value)? else { continue };
            if found.as_ref().is_some_and(|other| *other != one) {
                return Err(Error::new(ErrorKind::Usage, "two different SHA-256 are said")
                    .hint("Say that of the body, once."));
            }
            found = Some(one);
        }
    }
    Ok(found)
}

/// The SHA-256 in one field. Other algorithms are passed over.
fn sha256(name: &HeaderName, value: &HeaderValue) -> Result<Option<String>> {
    let wrong = || {
        Error::new(ErrorKind::Usage, format!("{name} holds no SHA-256"))
            .hint(format!("Write {name}: sha-256=:BASE64:"))
    };
    let text = value.to_str().map_err(|_| wrong())?;
    let Some(member) = text.split(',').find_map(|member| member.trim().strip_prefix("sha-256="))
    else {
        return Ok(None);
    };
    let inner = member.strip_prefix(':').and_then(|rest| rest.strip_suffix(':'));
    let bytes = inner.and_then(|base64| STANDARD.decode(base64).ok());
    let bytes = bytes.filter(|bytes| bytes.len() == HASH_BYTES).ok_or_else(wrong)?;
    Ok(Some(hexadecimal(bytes)))
}

/// What has to be so for a file to be written. `None` where no file can be so: none has an ETag like that.
pub(crate) fn only(headers: &HeaderMap) -> Result<Option<Only>> {
    let single = |name: HeaderName| {
        let mut all = headers.get_all(&name).iter();
        let text =
            |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).trim().to_owned();
        let first = all.next().map(text);
        match all.next() {
            None => Ok(first),
            Some(_) => Err(Error::new(ErrorKind::Usage, format!("{name} is there twice"))
                .hint("Send it once.")),
        }
    };
    let wrong = |name: &str, hint: &str| {
        Err(Error::new(ErrorKind::Usage, format!("{name} is not what it can be")).hint(hint))
    };
    match (single(header::IF_MATCH)?.as_deref(), single(header::IF_NONE_MATCH)?.as_deref()) {
        (None, None) => Ok(Some(Only::Always)),
        (Some("*"), None) => Ok(Some(Only::IfExists)),
        (None, Some("*")) => Ok(Some(Only::IfMissing)),
        (Some(list), None) => match tags(list).as_deref() {
            Some([]) | None => wrong("If-Match", "Write one ETag as it was told, or *."),
            Some(tags) => match tags.iter().filter_map(|tag| hash_of(tag)).collect::<Vec<_>>() {
                hashes if hashes.len() > 1 => wrong("If-Match", "Name one ETag of a file at most."),
                hashes => Ok(hashes.into_iter().next().map(Only::IfMatch)),
            },
        },
        (None, Some(_)) => wrong("If-None-Match", "Write *, for a file that is not there yet."),
        (Some(_), Some(_)) => wrong("If-Match with If-None-Match", "Give one of them."),
    }
}

/// The entity tags of a list (RFC 9110, 8.8.3 and 5.6.1), as they are written; `None` where it is none.
fn tags(list: &str) -> Option<Vec<&str>> {
    let (mut found, mut rest) = (Vec::new(), list);
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        if rest.is_empty() {
            return Some(found);
        }
        let opaque = rest.strip_prefix("W/").unwrap_or(rest).strip_prefix('"')?;
        let (inner, after) = opaque.split_once('"')?;
        let is_tag = inner.chars().all(|c| c == '!' || (c > '"' && c != '\u{7f}'));
        let is_apart = after.trim_start().is_empty() || after.trim_start().starts_with(',');
        found.push(rest.strip_suffix(after).filter(|_| is_tag && is_apart)?);
        rest = after;
    }
}

/// The hash in an entity tag that is not weak.
fn hash_of(tag: &str) -> Option<String> {
    let hash = tag.strip_prefix('"')?.strip_suffix('"')?;
    bytes(hash).map(|_| hash.to_ascii_lowercase())
}

/// What a header says that lists entity tags.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Listed {
    /// Any file that is there.
    Any,
    /// These, as they are written.
    Tags(Vec<String>),
}

/// The entity tags of If-Match or If-None-Match, where a request has it; an error where they are none.
pub(crate) fn listed(headers: &HeaderMap, name: &HeaderName) -> Result<Option<Listed>> {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let lines: Vec<String> = headers.get_all(name).iter().map(text).collect();
    if lines.is_empty() {
        return Ok(None);
    }
    // Lines of one name are one list (RFC 9110, 5.3).
    let list = lines.join(",");
    if list.trim() == "*" {
        return Ok(Some(Listed::Any));
    }
    match tags(&list) {
        Some(tags) if !tags.is_empty() => {
            Ok(Some(Listed::Tags(tags.into_iter().map(str::to_owned).collect())))
        }
        Some(_) | None => Err(Error::new(ErrorKind::Usage, format!("{name} lists no ETags"))
            .hint("Write each ETag as it was told, with its quotes, or * alone.")),
    }
}

impl Listed {
    /// Whether this hash is named by a tag that is not weak.
    pub(crate) fn names(&self, sha256: &str) -> bool {
        self.any(|tag| hash_of(tag).as_deref() == Some(sha256))
    }

    /// The same of any tag: a weak one is as good for who wants nothing else.
    pub(crate) fn names_weakly(&self, sha256: &str) -> bool {
        let strong = |tag: &str| hash_of(tag.strip_prefix("W/").unwrap_or(tag));
        self.any(|tag| strong(tag).as_deref() == Some(sha256))
    }

    fn any(&self, fits: impl Fn(&str) -> bool) -> bool {
        match self {
            Self::Any => true,
            Self::Tags(tags) => tags.iter().any(|tag| fits(tag)),
        }
    }
}

/// Whether a part is to be sent as If-Range says; what is no tag, as a date, is that of another file.
pub(crate) fn is_in_range_of(headers: &HeaderMap, sha256: &str) -> bool {
    match listed(headers, &header::IF_RANGE) {
        Ok(None) => true,
        Ok(Some(tags)) => tags.names(sha256),
        Err(_) => false,
    }
}

/// The bytes of a SHA-256 in hexadecimal.
fn bytes(hash: &str) -> Option<Vec<u8>> {
    if hash.len() != 2 * HASH_BYTES || !hash.is_ascii() {
        return None;
    }
    let pair = |at: usize| u8::from_str_radix(hash.get(2 * at..2 * at + 2)?, 16).ok();
    (0..HASH_BYTES).map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    fn with(fields: &[(HeaderName, &str)]) -> HeaderMap {
        fields.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect()
    }

    #[test]
    fn what_is_told_is_what_is_understood() {
        let mut told = HeaderMap::new();
        tell(&mut told, HASH);
        assert_eq!(told[header::ETAG], format!("\"{HASH}\""));
        assert_eq!(said(&told).unwrap().as_deref(), Some(HASH));
        assert!(listed(&told, &header::ETAG).unwrap().unwrap().names(HASH));
        let tag = format!("\"{HASH}\"");
        let only_this = only(&with(&[(header::IF_MATCH, &tag)])).unwrap();
        assert_eq!(only_this, Some(Only::IfMatch(HASH.to_owned())));
        let weak = with(&[(header::IF_MATCH, &format!("W/{tag}"))]);
        let weak = listed(&weak, &header::IF_MATCH).unwrap().unwrap();
        assert!(weak.names_weakly(HASH) && !weak.names(HASH));
    }

    #[test]
    fn a_list_names_what_is_in_it_and_what_is_no_list_is_refused() {
        let name = header::IF_MATCH;
        let of = |lines: &[&str]| {
            let lines: Vec<_> = lines.iter().map(|line| (name.clone(), *line)).collect();
            listed(&with(&lines), &name)
        };
        let tag = format!("\"{HASH}\"");
        for good in [&[tag.as_str()][..], &["*"], &["\"a,b\"", &tag], &[&format!("\"a\" , {tag}")]]
        {
            assert!(of(good).unwrap().unwrap().names(HASH), "{good:?}");
        }
        for other in [&["\"a\""][..], &["\"*\""], &[&format!("\"a,{HASH}\"")]] {
            assert!(!of(other).unwrap().unwrap().names_weakly(HASH), "{other:?}");
        }
        for bad in [&[""][..], &["a"], &[HASH], &["*, \"a\""], &["*", "*"], &["\"a"], &[","]] {
            let error = of(bad).unwrap_err();
            assert!(error.kind == ErrorKind::Usage && error.hint.is_some(), "{bad:?}");
        }
        assert_eq!(of(&[]).unwrap(), None);
        let date = with(&[(header::IF_RANGE, "Wed, 21 Oct 2015 07:28:00 GMT")]);
        assert!(!is_in_range_of(&date, HASH) && is_in_range_of(&HeaderMap::new(), HASH));
    }

    #[test]
    fn a_tag_that_no_file_has_is_told_from_what_is_none() {
        let one = |value: &str| {
            let value = HeaderValue::from_bytes(value.as_bytes()).unwrap();
            only(&[(header::IF_MATCH, value)].into_iter().collect())
        };
        let hash = format!("\"{HASH}\"");
        for odd in [
            "\"a\"",
            "\"\"",
            "W/\"a\"",
            "\"a,b\"",
            "\"a\" , \"b\"",
            "\"\u{e9}\"",
            &format!("W/{hash}"),
        ] {
            assert_eq!(one(odd).unwrap(), None, "{odd}");
        }
        for with_hash in [hash.clone(), format!("\"a\", {hash},"), format!("{hash},W/\"b\"")] {
            assert_eq!(
                one(&with_hash).unwrap(),
                Some(Only::IfMatch(HASH.to_owned())),
                "{with_hash}"
            );
        }
        for bad in [
            "",
            ",",
            "a",
            HASH,
            "\"a",
            "\"a\"b",
            "\"a\" \"b\"",
            "\"a b\"",
            "w/\"a\"",
            "*, \"a\"",
            &format!("{hash},{hash}"),
        ] {
            assert!(one(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_no_digest_is_refused_and_another_algorithm_is_not() {
        assert_eq!(said(&with(&[(CONTENT_DIGEST, "md5=:AAAA:")])).unwrap(), None);
        for bad in ["sha-256=:AAAA:", "sha-256=abc", "sha-256=:***:"] {
            assert!(said(&with(&[(CONTENT_DIGEST, bad)])).is_err(), "{bad}");
        }
        let mut two = HeaderMap::new();
        tell(&mut two, HASH);
        let other = format!("sha-256=:{}:", STANDARD.encode([0; 32]));
        two.insert(CONTENT_DIGEST, other.parse().unwrap());
        assert!(said(&two).is_err());
    }

    #[test]
    fn what_has_to_be_so_is_one_thing() {
        let one = |name, value| only(&with(&[(name, value)]));
        assert_eq!(one(header::IF_NONE_MATCH, "*").unwrap(), Some(Only::IfMissing));
        assert_eq!(one(header::IF_MATCH, "*").unwrap(), Some(Only::IfExists));
        for bad in ["", "\"a\"", "W/\"a\"", HASH] {
            assert!(one(header::IF_NONE_MATCH, bad).is_err(), "{bad}");
        }
        let both = with(&[(header::IF_MATCH, "*"), (header::IF_NONE_MATCH, "*")]);
        assert!(only(&both).is_err());
    }
}

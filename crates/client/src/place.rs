//! Paths, as requests name them and objects tell them: as text, or in base64.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use cofferdam_core::{Error, ErrorKind, Result};

/// A path as a request names it: one of both.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) text: Option<String>,
    pub(crate) base64: Option<String>,
}

/// The name of these bytes.
pub(crate) fn named(path: &[u8]) -> Named {
    match std::str::from_utf8(path) {
        Ok(text) => Named { text: Some(text.to_owned()), base64: None },
        Err(_) => Named { text: None, base64: Some(URL_SAFE_NO_PAD.encode(path)) },
    }
}

/// Several paths, those that are text apart from the others.
pub(crate) fn several<'a>(paths: impl Iterator<Item = &'a [u8]>) -> (Vec<String>, Vec<String>) {
    let (mut texts, mut base64) = (Vec::new(), Vec::new());
    for path in paths {
        let named = named(path);
        texts.extend(named.text);
        base64.extend(named.base64);
    }
    (texts, base64)
}

/// The bytes that an object tells as text or in base64.
pub(crate) fn bytes(text: Option<String>, base64: Option<String>) -> Result<Vec<u8>> {
    match (text, base64) {
        (Some(text), None) => Ok(text.into_bytes()),
        (None, Some(base64)) => STANDARD.decode(base64).map_err(|cause| {
            Error::new(ErrorKind::Protocol, "the answer holds bad base64").source(cause)
        }),
        (None, None) => Ok(Vec::new()),
        (Some(_), Some(_)) => {
            Err(Error::new(ErrorKind::Protocol, "the answer holds bytes in two forms"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_can_be_named() {
        assert_eq!(named(b"a/b").text.as_deref(), Some("a/b"));
        assert_eq!(named(b"\xff\xfe\xfd").base64.as_deref(), Some("__79"));
        let (texts, base64) = several([b"a".as_slice(), b"\xff"].into_iter());
        assert_eq!((texts.len(), base64.len()), (1, 1));
    }

    #[test]
    fn bytes_come_back_in_either_form() {
        let told = |bytes: &[u8]| cofferdam_session::text_or_base64(bytes.to_vec());
        for all in [b"abc".as_slice(), b"", b"\xff\x00"] {
            let (text, base64) = told(all);
            assert_eq!(bytes(text, base64).unwrap(), all);
        }
        assert!(bytes(Some(String::new()), Some(String::new())).is_err());
        assert!(bytes(None, Some("?".to_owned())).is_err());
    }
}

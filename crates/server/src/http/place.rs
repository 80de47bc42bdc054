//! Places in a workspace, as requests name them: as text, or in base64 where they are not UTF-8.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use cofferdam_core::files::ByteString;
use cofferdam_core::{Error, ErrorKind, Result};
use std::ffi::OsString;

/// What stands for the workspace itself.
const TOP: &str = ".";

/// The path that a request names, if it names one. `field` is what the text is called; the other form has
/// `_base64` behind it.
pub(crate) fn named(
    field: &str,
    text: Option<&str>,
    base64: Option<&str>,
) -> Result<Option<ByteString>> {
    match (text, base64) {
        (None, None) => Ok(None),
        (Some(text), None) => Ok(Some(text.into())),
        (None, Some(base64)) => decoded(field, base64).map(Some),
        (Some(_), Some(_)) => {
            let what = format!("both {field} and {field}_base64 are given");
            Err(Error::new(ErrorKind::Usage, what).hint("Give one of them."))
        }
    }
}

/// The same where there has to be one, which is not empty.
pub(crate) fn required(
    field: &str,
    text: Option<&str>,
    base64: Option<&str>,
) -> Result<ByteString> {
    let path = named(field, text, base64)?.unwrap_or_default();
    if path.as_bytes().is_empty() {
        return Err(Error::new(ErrorKind::Usage, format!("{field} is missing"))
            .hint(format!("Give {field}, or {field}_base64 where it is not UTF-8.")));
    }
    Ok(path)
}

/// The same where the workspace itself is meant unless a request says otherwise.
pub(crate) fn or_top(field: &str, text: Option<&str>, base64: Option<&str>) -> Result<ByteString> {
    let path = named(field, text, base64)?.unwrap_or_default();
    Ok(if path.as_bytes().is_empty() { TOP.into() } else { path })
}

/// Several paths, those in text first.
pub(crate) fn several(field: &str, texts: &[String], base64: &[String]) -> Result<Vec<ByteString>> {
    let texts = texts.iter().map(|text| Ok(ByteString::from(text.as_str())));
    texts.chain(base64.iter().map(|base64| decoded(field, base64))).collect()
}

/// The same as the operating system's strings.
pub(crate) fn several_os(
    field: &str,
    texts: &[String],
    base64: &[String],
) -> Result<Vec<OsString>> {
    let all = several(field, texts, base64)?;
    Ok(all.iter().map(|path| path.as_os_str().to_owned()).collect())
}

/// Permissions as a request writes them.
pub(crate) fn mode(text: &str) -> Result<u32> {
    let digits = (1..=4).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    let mode = u32::from_str_radix(text, 8).ok().filter(|mode| digits && *mode <= 0o777);
    mode.ok_or_else(|| {
        Error::new(ErrorKind::Usage, format!("mode {text:?} is none"))
            .hint("Write up to three octal digits, as in 644 or 755.")
    })
}

/// What stands in base64 in a field with `_base64` behind its name.
pub(crate) fn decoded(field: &str, base64: &str) -> Result<ByteString> {
    bytes(base64).ok_or_else(|| {
        Error::new(ErrorKind::Usage, format!("{field}_base64 is no base64"))
            .hint(format!("Encode the bytes, or give {field} where they are UTF-8."))
    })
}

/// Bytes in base64, of either alphabet, padded or not; a `+` that a form made a space of as well.
pub(crate) fn bytes(base64: &str) -> Option<ByteString> {
    let plain: String = base64
        .trim_end_matches('=')
        .chars()
        .map(|c| match c {
            '-' | ' ' => '+',
            '_' => '/',
            other => other,
        })
        .collect();
    STANDARD_NO_PAD.decode(plain).ok().map(ByteString::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_text_or_base64_and_never_both() {
        assert_eq!(required("path", Some("a\nb"), None).unwrap(), "a\nb".into());
        for form in ["//79", "__79", "//79=", "__79="] {
            let path = required("path", None, Some(form)).unwrap();
            assert_eq!(path.as_bytes(), [0xff, 0xfe, 0xfd], "{form}");
        }
        assert_eq!(or_top("path", None, None).unwrap(), ".".into());
        for (text, base64) in [(None, None), (Some(""), None), (Some("a"), Some("YQ"))] {
            let error = required("path", text, base64).unwrap_err();
            assert!(error.kind == ErrorKind::Usage && error.message.contains("path"), "{error}");
        }
        assert!(decoded("from", "a*b").unwrap_err().message.contains("from_base64"));
    }

    #[test]
    fn permissions_are_octal_and_grant_no_other_identity() {
        assert_eq!(mode("644").unwrap(), 0o644);
        assert_eq!(mode("0755").unwrap(), 0o755);
        for bad in ["", "8", "4755", "rwx", "-1", "+1", "00644"] {
            assert!(mode(bad).is_err(), "{bad:?}");
        }
    }
}

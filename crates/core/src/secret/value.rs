//! A secret's value, in memory.

use crate::{Error, ErrorKind, Result};
use std::fmt;
use zeroize::Zeroizing;

/// The longest value, in bytes.
pub const MAX_SECRET_BYTES: usize = 64 * 1024;
/// The shortest value, in bytes: what is shorter would be found everywhere in what commands write.
pub const MIN_SECRET_BYTES: usize = 4;

/// A secret's value. It is overwritten when it is dropped, and prints as nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretValue(Zeroizing<Vec<u8>>);

impl SecretValue {
    /// The value, if it is neither too short nor too long.
    pub fn new(bytes: impl Into<Zeroizing<Vec<u8>>>) -> Result<Self> {
        let bytes = bytes.into();
        if bytes.len() > MAX_SECRET_BYTES {
            let what = format!("the value is longer than {MAX_SECRET_BYTES} bytes");
            return Err(Error::new(ErrorKind::TooLarge, what)
                .hint("Keep large files encrypted, and only their key as a secret."));
        }
        if without_line_end(&bytes).len() < MIN_SECRET_BYTES {
            let what = format!("the value is shorter than {MIN_SECRET_BYTES} bytes");
            return Err(Error::new(ErrorKind::Usage, what).hint(
                "Use a longer one: what is so short cannot be told from other output, to mask it.",
            ));
        }
        Ok(Self(bytes))
    }

    /// The bytes. Whoever takes them answers for where they go.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }

    /// The bytes without line ends behind them, as a header takes them.
    pub fn expose_line(&self) -> &[u8] {
        without_line_end(&self.0)
    }
}

impl fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretValue(…)")
    }
}

/// The bytes up to the line ends behind them.
fn without_line_end(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r'));
    end.and_then(|end| bytes.get(..=end)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_has_a_least_and_a_greatest_length() {
        let kind = |bytes: Vec<u8>| SecretValue::new(bytes).err().map(|error| error.kind);
        assert_eq!(kind(vec![b'x'; MIN_SECRET_BYTES]), None);
        assert_eq!(kind(vec![b'x'; MIN_SECRET_BYTES - 1]), Some(ErrorKind::Usage));
        assert_eq!(kind(b"x\n\n\n\n".to_vec()), Some(ErrorKind::Usage));
        assert_eq!(kind(vec![b'x'; MAX_SECRET_BYTES]), None);
        assert_eq!(kind(vec![b'x'; MAX_SECRET_BYTES + 1]), Some(ErrorKind::TooLarge));
    }

    #[test]
    fn a_value_prints_as_nothing() {
        let value = SecretValue::new(b"hunter2\r\n".to_vec()).unwrap();
        assert!(!format!("{value:?} {:?}", Some(&value)).contains("hunter2"));
        assert_eq!((value.expose(), value.expose_line()), (&b"hunter2\r\n"[..], &b"hunter2"[..]));
    }
}

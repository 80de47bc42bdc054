//! What a secret is called.

use crate::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The longest name, in bytes.
const MAX_NAME_BYTES: usize = 64;

/// Names a secret: 1 to 64 letters, digits, `-`, `_` or `.`, with a letter, a digit or `_` first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SecretName(String);

impl SecretName {
    /// The name, if the text can be one.
    pub fn new(text: impl Into<String>) -> Result<Self> {
        let text = text.into();
        let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if text.is_empty()
            || text.len() > MAX_NAME_BYTES
            || text.starts_with(['.', '-'])
            || !text.chars().all(good)
        {
            // Whoever took the value for the name must not find it in a log.
            return Err(Error::new(ErrorKind::Usage, "that cannot be the name of a secret").hint(
                "Use 1 to 64 letters, digits, '-', '_' or '.', and begin with none of '-' and '.'.",
            ));
        }
        Ok(Self(text))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SecretName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for SecretName {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::new(text)
    }
}

impl TryFrom<String> for SecretName {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        Self::new(text)
    }
}

impl From<SecretName> for String {
    fn from(name: SecretName) -> Self {
        name.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_short_and_plain() {
        for good in ["A", "GITHUB_TOKEN", "a.b-c", "_x", &"n".repeat(MAX_NAME_BYTES)] {
            assert_eq!(SecretName::new(good).unwrap().as_str(), good);
        }
        let long = "n".repeat(MAX_NAME_BYTES + 1);
        for bad in ["", ".", "-a", ".a", "a/b", "a b", "ä", "a\n", "a=b", "a@b", &long] {
            let error = SecretName::new(bad).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Usage, "{bad:?}");
        }
    }

    #[test]
    fn a_refusal_does_not_repeat_what_may_be_the_value() {
        let error = SecretName::new("ghp/hunter2").unwrap_err();
        assert!(!error.to_string().contains("hunter2"));
    }
}

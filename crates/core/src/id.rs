//! Names of things, as types.

use crate::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The longest id, in bytes.
const MAX_ID_BYTES: usize = 64;

/// Names a sandbox. Chosen by the caller before the sandbox is made, so that it can be found again
/// after a crash.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SandboxId(String);

/// Names one run of a command. Chosen by the caller; repeating it does not run the command twice.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ProcessId(String);

impl SandboxId {
    /// The id, if the text can be one: 1 to 64 letters, digits, `-`, `_` or `.`, not first `.` or `-`.
    pub fn new(text: impl Into<String>) -> Result<Self> {
        checked(text.into(), "sandbox id").map(Self)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl ProcessId {
    /// The id, if the text can be one; the same rules as for a [`SandboxId`].
    pub fn new(text: impl Into<String>) -> Result<Self> {
        checked(text.into(), "process id").map(Self)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn checked(text: String, what: &str) -> Result<String> {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if text.is_empty()
        || text.len() > MAX_ID_BYTES
        || text.starts_with(['.', '-'])
        || !text.chars().all(good)
    {
        return Err(Error::new(ErrorKind::Usage, format!("{text:?} cannot be a {what}")).hint(
            "Use 1 to 64 letters, digits, '-', '_' or '.', and begin with none of '-' and '.'.",
        ));
    }
    Ok(text)
}

impl TryFrom<String> for SandboxId {
    type Error = Error;
    fn try_from(text: String) -> Result<Self> {
        Self::new(text)
    }
}

impl TryFrom<String> for ProcessId {
    type Error = Error;
    fn try_from(text: String) -> Result<Self> {
        Self::new(text)
    }
}

impl From<SandboxId> for String {
    fn from(id: SandboxId) -> Self {
        id.0
    }
}

impl From<ProcessId> for String {
    fn from(id: ProcessId) -> Self {
        id.0
    }
}

impl fmt::Display for SandboxId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for ProcessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_cannot_be_a_path_or_an_option() {
        for bad in ["", ".", "..", "../a", "a/b", "-x", "a b", "a\n", &"x".repeat(65)] {
            assert!(SandboxId::new(bad).is_err(), "{bad:?}");
        }
        assert!(SandboxId::new("run-1a.2_b").is_ok());
    }
}

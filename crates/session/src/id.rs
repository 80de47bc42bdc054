//! Names of sessions and of their incarnations.

use cofferdam_core::{Error, ErrorKind, Result, SandboxId, hexadecimal};
use serde::{Deserialize, Serialize};
use std::fmt;

/// How many random bytes are in an id: two of a million sessions meet once in 37 million years.
const RANDOM_BYTES: usize = 10;

/// Names a session for ever: 20 lowercase hexadecimal digits, never used again.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SessionId(String);

impl SessionId {
    /// A new one.
    pub fn fresh() -> Result<Self> {
        Ok(Self(random_text()?))
    }

    /// The id, if the text is one.
    pub fn new(text: impl Into<String>) -> Result<Self> {
        let text = text.into();
        let digits = text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        if text.len() == 2 * RANDOM_BYTES && digits {
            return Ok(Self(text));
        }
        Err(Error::new(ErrorKind::Usage, format!("{text:?} is not the id of a session"))
            .hint("List the sessions to see their ids."))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The sandbox of one incarnation.
    pub(crate) fn sandbox(&self, incarnation: u32) -> Result<SandboxId> {
        SandboxId::new(format!("{}.{incarnation}", self.0))
    }

    /// The session and the incarnation that a sandbox belongs to, if it is one of a session.
    pub(crate) fn of(sandbox: &SandboxId) -> Option<(Self, u32)> {
        let (id, incarnation) = sandbox.as_str().split_once('.')?;
        Some((Self::new(id).ok()?, incarnation.parse().ok()?))
    }
}

/// Random hexadecimal digits, as many as an id has.
pub(crate) fn random_text() -> Result<String> {
    let mut bytes = [0; RANDOM_BYTES];
    let filled = rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty());
    match filled {
        Ok(RANDOM_BYTES) => {}
        Ok(_) => return Err(Error::new(ErrorKind::Io, "get random bytes")),
        Err(e) => return Err(Error::new(ErrorKind::Io, "get random bytes").source(e)),
    }
    Ok(hexadecimal(bytes))
}

impl TryFrom<String> for SessionId {
    type Error = Error;
    fn try_from(text: String) -> Result<Self> {
        Self::new(text)
    }
}

impl From<SessionId> for String {
    fn from(id: SessionId) -> Self {
        id.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sandbox_names_its_session_and_incarnation() {
        let id = SessionId::fresh().unwrap();
        assert_ne!(id, SessionId::fresh().unwrap());
        let sandbox = id.sandbox(u32::MAX).unwrap();
        assert_eq!(SessionId::of(&sandbox), Some((id, u32::MAX)));
        for foreign in ["run-1", "x.1", "0123456789abcdef0123.", "0123456789abcdef0123.x"] {
            assert_eq!(SessionId::of(&SandboxId::new(foreign).unwrap()), None, "{foreign}");
        }
    }
}

//! Names of what waits to be allowed.

use crate::SessionId;
use cofferdam_core::{Error, ErrorKind, Result};
use serde::{Serialize, Serializer};
use std::fmt;

/// Names something that waits, or waited, in a session: `SESSION.INCARNATION.NUMBER` for a connection and
/// `SESSION.rNUMBER` for a request. Never used again: what somebody saw is what they answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermissionId {
    session: SessionId,
    target: PermissionTarget,
}

/// What it is in its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PermissionTarget {
    /// A connection.
    Connection {
        /// Of which of its sandboxes.
        incarnation: u32,
        /// The number that its gate gave.
        number: u64,
    },
    /// A request that was made before there is a connection.
    Request {
        /// Its number.
        number: u64,
    },
}

impl PermissionId {
    /// The id of this, in this session.
    pub fn new(session: SessionId, target: PermissionTarget) -> Self {
        Self { session, target }
    }

    pub(crate) fn of_connection(session: &SessionId, incarnation: u32, number: u64) -> Self {
        Self::new(session.clone(), PermissionTarget::Connection { incarnation, number })
    }

    pub(crate) fn of_request(session: &SessionId, number: u64) -> Self {
        Self::new(session.clone(), PermissionTarget::Request { number })
    }

    /// What it is in its session.
    pub fn target(&self) -> PermissionTarget {
        self.target
    }

    /// The text that names the session, and what it is there.
    pub fn split(text: &str) -> Result<(&str, PermissionTarget)> {
        let unread = || {
            Error::new(ErrorKind::Usage, format!("{text:?} is not the id of anything that waits"))
                .hint("Write it as it was told, as in SESSION.1.4: `cofferdam approve --list` has it.")
        };
        let (rest, last) = text.rsplit_once('.').ok_or_else(unread)?;
        let (session, target) = match last.strip_prefix('r') {
            Some(number) => {
                let number = digits(number).ok_or_else(unread)?;
                (rest, PermissionTarget::Request { number })
            }
            None => {
                let number = digits(last).ok_or_else(unread)?;
                let (session, incarnation) = rest.rsplit_once('.').ok_or_else(unread)?;
                let incarnation = digits(incarnation).and_then(|one| u32::try_from(one).ok());
                let incarnation = incarnation.ok_or_else(unread)?;
                (session, PermissionTarget::Connection { incarnation, number })
            }
        };
        if session.is_empty() { Err(unread()) } else { Ok((session, target)) }
    }
}

/// A number as it is told: no sign, no zero before it.
fn digits(text: &str) -> Option<u64> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    text.parse().ok().filter(|_| is_plain)
}

impl fmt::Display for PermissionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.target {
            PermissionTarget::Connection { incarnation, number } => {
                write!(f, "{}.{incarnation}.{number}", self.session)
            }
            PermissionTarget::Request { number } => write!(f, "{}.r{number}", self.session),
        }
    }
}

impl Serialize for PermissionId {
    fn serialize<S: Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_as_it_was_told() {
        let session = SessionId::fresh().unwrap();
        for id in
            [PermissionId::of_connection(&session, 2, 17), PermissionId::of_request(&session, 3)]
        {
            let text = id.to_string();
            assert_eq!(PermissionId::split(&text).unwrap(), (session.as_str(), id.target()));
        }
        let named = PermissionId::split("my.agent.1.4").unwrap();
        let target = PermissionTarget::Connection { incarnation: 1, number: 4 };
        assert_eq!(named, ("my.agent", target));
    }

    #[test]
    fn what_is_no_id_is_refused_with_the_remedy() {
        let wrong =
            ["", "a", "a.1", "a.b.1", "a.1.b", ".1.4", ".r1", "a.r", "a.r+1", "a.01.4", "a.1.04"];
        for text in wrong {
            let error = PermissionId::split(text).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Usage, "{text}");
            assert!(error.hint.unwrap().contains("--list"), "{text}");
        }
    }
}

//! How long is waited for a registry, and how much of it is read.

use std::time::Duration;

/// The largest answer to a wish for a token.
pub(crate) const MAX_TOKEN_BYTES: u64 = 64 << 10;

/// The longest challenge that is looked at.
pub(crate) const MAX_CHALLENGE_BYTES: usize = 4 << 10;

/// The largest file of credentials.
pub(crate) const MAX_CREDENTIALS_BYTES: u64 = 1 << 20;

/// The most that a credential helper may write.
pub(crate) const MAX_HELPER_BYTES: u64 = 64 << 10;

/// How many redirects one request follows.
pub(crate) const MAX_REDIRECTS: usize = 5;

/// How many headers an answer may have. The client refuses all of them beyond 400 KiB.
pub(crate) const MAX_HEADERS: usize = 100;

/// Bytes that a download must have gained for its count of attempts to begin anew.
pub(crate) const MIN_GAIN_BYTES: u64 = 64 << 10;

/// How long is waited for a registry.
#[derive(Debug, Clone)]
pub struct Limits {
    /// For a connection.
    pub connect: Duration,
    /// For the next bytes of an answer.
    pub idle: Duration,
    /// For a document as a whole.
    pub document: Duration,
    /// For a credential helper.
    pub helper: Duration,
    /// How often a download that gains nothing is tried.
    pub attempts: u32,
    /// Between the first two attempts; each further time it is twice as long.
    pub pause: Duration,
    /// Below this speed as a whole, a download ends.
    pub bytes_per_second: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(30),
            idle: Duration::from_secs(60),
            document: Duration::from_secs(120),
            helper: Duration::from_secs(30),
            attempts: 5,
            pause: Duration::from_millis(500),
            bytes_per_second: 4 << 10,
        }
    }
}

//! How much a gate takes from inside, and how long it waits.

use std::time::Duration;

/// The limits of a gate. Whoever is inside can use them up, and harms itself alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections at a time. Further ones wait to be accepted.
    pub connections: usize,
    /// Connections at a time that wait to be allowed. Further ones are denied at once.
    pub waiting: usize,
    /// The head of a request, its first line and the empty one included.
    pub head_bytes: usize,
    /// The headers of a request.
    pub headers: usize,
    /// What is looked at to find the name in the first bytes of a connection.
    pub first_bytes: usize,
    /// The pieces in which either of them may come.
    pub pieces: usize,
    /// How long the head of a request may take, or the first message once it has begun.
    pub head_time: Duration,
    /// How long a name may take to be resolved.
    pub resolve_time: Duration,
    /// How long one address may take to answer.
    pub dial_time: Duration,
    /// Addresses of one name that are looked at.
    pub addresses: usize,
    /// Aliases that are followed to an address.
    pub aliases: usize,
    /// How long a connection may be silent both ways.
    pub idle_time: Duration,
    /// How long a connection may last.
    pub total_time: Duration,
    /// How long one that is refused may take to read why.
    pub farewell_time: Duration,
    /// Names that have an address inside. The oldest loses its own to the next.
    pub names: u32,
    /// Questions for names over one connection.
    pub questions: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 256,
            waiting: 64,
            head_bytes: 32 * 1024,
            headers: 128,
            first_bytes: 32 * 1024,
            pieces: 256,
            head_time: Duration::from_secs(10),
            resolve_time: Duration::from_secs(10),
            dial_time: Duration::from_secs(10),
            addresses: 16,
            aliases: 8,
            idle_time: Duration::from_secs(3600),
            total_time: Duration::from_secs(24 * 3600),
            farewell_time: Duration::from_secs(1),
            names: 16 * 1024,
            questions: 64,
        }
    }
}

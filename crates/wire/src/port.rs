//! What is said over a connection to a port of the sandbox, before the bytes of the connection.
//!
//! The host asks process 1 for it by [`HostOpens::Port`](crate::message::HostOpens::Port) and sends one
//! end of a stream socket with it. Over that socket comes one [`frame`](crate::frame) of a message, the
//! [`PortAnswer`], and after [`PortAnswer::Connected`] the bytes of the connection alone, both ways,
//! until both directions have ended. The host may send before it is answered.

use serde::{Deserialize, Serialize};

/// How many connections to ports of one sandbox there are at a time.
pub const MAX_PORT_CONNECTIONS: usize = 64;

/// The most bytes of an answer.
pub const MAX_PORT_ANSWER_BYTES: usize = 4096;

/// What became of a connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum PortAnswer {
    /// Bytes may flow.
    Connected,
    /// Nobody listens there, on neither loopback address.
    NobodyListens,
    /// [`MAX_PORT_CONNECTIONS`] are open.
    TooMany,
    /// The call that failed, and the kernel's answer.
    Failed {
        /// What was tried.
        call: String,
        /// The number of the error.
        errno: i32,
    },
}

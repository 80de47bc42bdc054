//! The HTTP door: parses requests, calls the sessions, renders what they say.
//!
//! Everything goes through [`Sessions`](cofferdam_session::Sessions), as every other door does: a
//! server keeps nothing of its own, so that sandboxes and commands outlive it. A caller sees the
//! sessions of one owner and no others. A request is checked in this order: the host that it names,
//! how many there are at once, who asks and how often, what that caller may do.

mod ground;
mod holding;
mod http;
mod images;
mod listen;
mod peer;
mod room;
mod serve;
mod server;
mod short;
mod stalling;
mod traces;

pub use ground::Ground;
pub use http::{document, router};
pub use images::{HeldImage, Images, Pull};
pub use listen::{Bound, Listen, MAX_SOCKET_PATH_BYTES};
pub use serve::{GRACE, HEAD_TIME, MAX_CONNECTIONS, MAX_HEAD_BYTES, max_connections};
pub use server::{Options, Server};
pub use traces::Traces;

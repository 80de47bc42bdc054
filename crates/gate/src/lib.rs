//! The way out of a sandbox.
//!
//! A gate accepts on sockets that were made inside a sandbox's network and handed to it, decides by the
//! policy that it is given (`cofferdam_core::policy`), resolves names itself, checks every address, and
//! dials the very one that was checked. It has no policy of its own. Everything that comes by those
//! sockets is hostile: each parser here is strict, and each limit has a name in [`Limits`].
//!
//! [`serve`] runs a gate as a task; [`process()`] is the whole of a process that is one.

mod admit;
mod answer;
mod attempt;
mod carry;
mod denied;
mod dial;
mod dns;
mod first;
mod gate;
mod hello;
mod host_file;
#[cfg(any(test, feature = "hostile"))]
pub mod hostile;
mod http;
mod limits;
mod log;
mod names;
mod order;
mod proxy;
mod request;
mod resolve;
mod resolver;
mod secrets;
mod serve;
mod socks;
mod sys;
mod teller;
mod through;
mod transparent;
mod unread;
mod waiting;

#[cfg(test)]
mod laboratory;

pub use limits::Limits;
pub use order::send_order;
pub use serve::{process, serve};

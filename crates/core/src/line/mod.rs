//! The host's half of the line: one stream of bytes, many channels, and a guest that is not trusted.
//!
//! [`Line`] carries the frames of [`cofferdam_wire::frame`] over a [`Carrier`]; [`WireGuest`] speaks
//! the messages of [`cofferdam_wire::message`] over it and is the one implementation of
//! [`Guest`](crate::Guest) for every backend that can reach a guest program by a stream.
//!
//! What holds, whatever the guest sends:
//!
//! - No frame is read beyond [`MAX_FRAME_BYTES`](cofferdam_wire::frame::MAX_FRAME_BYTES), and no
//!   channel holds more unread bytes than its credit.
//! - The host opens odd channels and chooses their numbers; the guest opens even ones, in rising
//!   order, and only to ask for a way out. Never are more than
//!   [`MAX_CHANNELS`](cofferdam_wire::frame::MAX_CHANNELS) open.
//! - Whatever else comes closes the line. From then on every call fails with
//!   [`ErrorKind::Protocol`](crate::ErrorKind::Protocol), and every command's events stop without an
//!   ending.
//! - Reading never waits for a consumer, so a command whose output nobody reads stops only itself.
//!
//! A channel's number is never used again. `Credit` and `End` may cross with the other side's last
//! frame, so both are ignored on channels that were open once; bytes and messages are not.
//!
//! The guest sends `End` on a command's output channels when no process holds them any more. The
//! ending is passed on after both, or when the line ends.

mod carrier;
mod channel;
mod egress;
mod files;
mod guest;
mod port;
mod process;
mod reader;
mod slot;
mod stdio;
mod table;
#[cfg(test)]
mod tests;
mod whole;
mod writer;

pub use carrier::{Carrier, Descriptors, Incoming, Outgoing};
pub use channel::{Channel, Line, Received};
pub use files::file_request;
pub use guest::{Surroundings, WireGuest};
pub use process::Standards;
pub use slot::Accepts;

//! What the host and the program inside a sandbox say to each other.
//!
//! Three things cross the dam: a [`plan::Plan`] once, then [`frame`]s in both directions for as long
//! as the sandbox lives, each carrying a piece of a [`message`] or raw bytes.
//!
//! A conversation on a fresh sandbox reads, in short:
//!
//! ```text
//! guest → host   channel 0  Message  {"Hello":{"generation":3,"version":"0.1.0"}}
//! host  → guest  channel 1  Message  {"Spawn":{"id":"a1","argv":["true"],…,"stdout":{"Line":3}}}
//! guest → host   channel 1  Message  {"Started":{"pid":2}}
//! guest → host   channel 3  Data     bytes of standard output, as far as credit reaches
//! host  → guest  channel 3  Credit   262144
//! guest → host   channel 3  End
//! guest → host   channel 1  Message  {"Ended":{"how":{"Exited":0},…}}
//! ```
//!
//! The guest is not trusted. The host bounds every frame before it allocates, and grants the guest
//! one request of its own: [`message::GuestOpens::Egress`].

pub mod bytes;
pub mod files;
pub mod frame;
pub mod message;
pub mod plan;
pub mod port;
pub mod template;

pub use bytes::{ByteString, hexadecimal};

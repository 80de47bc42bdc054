//! A typed client of `cofferdam serve`.
//!
//! A [`Client`] knows one server, by `http://`, `https://` or `unix://`, and perhaps a [`Key`]. What it
//! sends and what it is told are the objects of [`cofferdam_session::objects`], those that the command
//! line prints with `--json`; errors are [`cofferdam_core::Error`]s of the same kind, message and hint as
//! at the server.
//!
//! What only looks, and knows how far it has come, outlives the server: [`Sandbox::news`], [`Sandbox::output`]
//! and the streams of [`Follow`] and [`EventStream`] go on where they were when the server is back, for as
//! long as [`PATIENCE`]. Nothing that changes something is sent twice, but for commands with an id, which
//! run once however often they are asked for.

mod address;
mod answer;
mod ask;
mod attach;
mod client;
mod events;
mod examine;
mod execs;
mod files;
mod follow;
mod key;
mod layers;
mod many;
mod mcp;
mod network;
mod persist;
mod place;
mod sandbox;
mod secrets;
mod server;
mod service;
mod shells;
mod snapshots;
mod sse;
mod tunnel;
mod upload;
mod watch;

pub use address::Address;
pub use answer::MAX_OBJECT_BYTES;
pub use attach::{Attached, Heard};
pub use client::Client;
pub use events::EventStream;
pub use follow::{Follow, Followed};
pub use key::{Key, MAX_KEY_FILE_BYTES};
pub use layers::{Applied, View};
pub use mcp::Messages;
pub use persist::PATIENCE;
pub use sandbox::Sandbox;
pub use sse::MAX_EVENT_BYTES;
pub use tunnel::Tunnel;

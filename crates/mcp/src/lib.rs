//! The tools of Cofferdam by the Model Context Protocol.
//!
//! An adapter and nothing more: what the tools are and do is `cofferdam_tools`, how messages look is
//! the protocol's own SDK. [`stdio::serve`] is one connection over standard input and output, with a
//! sandbox of its own. `http::service`, with the feature `http`, is what a server mounts. Both serve
//! the protocol of 2026-07-28, which keeps no session, and those before it, which begin with a
//! handshake. `bridge` passes the messages of one connection on to such a server. [`install`] edits the configuration of programs that start such servers.
//!
//! # What holds
//!
//! - What fails in a tool is a result that a model can read (`isError`), with the same error for a
//!   program in `_meta`. An error of the protocol means that the request itself made no sense.
//! - A request that is canceled ends the command that it waits for, over HTTP where its own client says so.
//! - A message is at most [`MAX_MESSAGE_BYTES`], a resource [`MAX_RESOURCE_BYTES`], a page of resources
//!   [`MAX_RESOURCES_OF_PAGE`], and [`MAX_CALLS_AT_ONCE`] calls are at work at the same time.

mod bounded;
#[cfg(feature = "http")]
pub mod bridge;
#[cfg(feature = "http")]
pub mod http;
pub mod install;
mod lines;
mod message;
#[cfg(feature = "http")]
mod open;
mod resources;
mod server;
pub mod stdio;
mod tools;
mod uri;
mod wire;

pub use bounded::MAX_MESSAGE_BYTES;
pub use resources::{MAX_RESOURCE_BYTES, MAX_RESOURCES_OF_PAGE};
pub use server::{MAX_CALLS_AT_ONCE, Server};

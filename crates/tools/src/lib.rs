//! Tools for models, as a library: tables of them and their calls, over the door to sessions alone.
//!
//! A [`Toolbox`] is a pack of tools bound to sandboxes. [`Toolbox::tools`] is what a model is told,
//! [`Toolbox::call`] does what it asks, and [`Toolbox::preamble`] is what it should know of the place.
//! How a call came here (MCP, HTTP, a program's own loop) is nobody's business below.
//!
//! [`PackName::Cofferdam`] has everything that a session can do. The others have the names, parameters
//! and results of tools that exist elsewhere, so that a prompt written for those goes on working.
//!
//! # What holds for every tool
//!
//! - Arguments are checked before anything is done. One that is unknown is an error that names it, and
//!   the known one that is most like it.
//! - Errors are data: a kind, a message, what to do, whether to try again.
//! - A result has at most [`MAX_RESULT_BYTES`]. What is left out is counted, and the result says how to
//!   get it; so do lists.
//! - Nothing that a model says widens what a sandbox may do: that is the [`SessionOrder`] of whoever
//!   made the toolbox.
//!
//! [`SessionOrder`]: cofferdam_session::SessionOrder

mod adk;
mod advice;
mod context;
mod everruns;
mod fluers;
mod found;
mod native;
mod openmanus;
mod outcome;
mod pack;
mod param;
mod plain;
mod ports;
mod preamble;
mod run;
mod scope;
mod text;
mod tool;
mod toolbox;

pub use context::{CallContext, Progress};
pub use outcome::{MAX_RESULT_BYTES, Outcome, ToolError};
pub use pack::PackName;
pub use ports::Expose;
pub use scope::Scope;
pub use tool::{Hints, Tool};
pub use toolbox::{Notice, Toolbox};

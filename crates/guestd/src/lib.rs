//! The program inside every sandbox, as a library.
//!
//! [`live`] is the whole life of process 1: it carries out a plan, greets the host, then starts and
//! ends commands until its line closes. It knows no policy; it does what the plan says and stops at
//! the first step that fails.

pub mod apply;
mod descriptors;
mod files;
pub mod give_up;
pub mod line;
mod live;
mod monitor;
mod network;
mod port;
mod process;
mod proof;
pub mod prove;
mod reap;
mod relay;
mod serve;
mod shared_limits;
mod sys;
pub mod template;
mod terminal;
mod told;

pub use live::{Birth, Blank, Errand, live, live_as_told};
pub use network::Redirection;
pub use shared_limits::share_with_host;
pub use sys::landlock_abi;
pub use told::tell;

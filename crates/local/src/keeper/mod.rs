//! Sandboxes that outlive whoever asked for them, each kept by a small process of its own.
//!
//! A keeper is the static program in another role: one thread, no runtime, no database. It makes its
//! sandbox exactly as every other is made, tells its creator what came of that, and then belongs to
//! nobody: a session of its own, no terminal, no environment. From then on it
//!
//! - starts commands and keeps what they write in files, with true offsets and a bound;
//! - writes down what happens, a line an entry, before anybody is told;
//! - pauses the sandbox when nobody uses it, and ends it when its time is over, without any other
//!   process of Cofferdam running;
//! - answers clients of its own user over a socket in its directory.
//!
//! # What holds
//!
//! The sandbox lives exactly as long as its keeper: the kernel kills it with the keeper, and the next
//! start on the state directory removes what that left. A keeper lives if its journal is locked; no
//! process id is believed. A command is finished once its end stands in the journal.
//!
//! # Time
//!
//! The time of a command is the keeper's own clock, which stands still while the sandbox is paused.
//! Idleness goes on while the machine sleeps. Lease and run limit are moments of the calendar, and
//! hold while paused.
//!
//! LIMIT: a keeper stays in the control group of whoever started it. A service manager that ends all
//! processes of a service or a login session ends it too.

mod asked;
mod backend;
mod client;
mod clock;
mod commands;
mod end;
mod exec;
mod execs;
mod files;
mod found;
mod idle;
mod input;
mod journal;
mod keep;
mod layers;
mod mapped;
mod marks;
mod order;
mod output;
mod past;
mod place;
mod program;
mod renew;
mod serve;
mod silence;
mod spool;
mod start;
mod stop;
mod talk;
mod tree;

pub(crate) use tree::{children, descendants};

pub use backend::KeptBackend;
pub(crate) use journal::now_ms;
pub(crate) use place::{half_made, remove_half_made, sweep_half_made};
pub use program::{ARGUMENT, CarriedProgram};
pub use start::serve;

//! Attacks on the sandbox from inside, each beside the same action where it must succeed.
//!
//! [`run`] is called inside a sandbox, by a process that has exactly a command's privileges. Every
//! attack and every control runs in a child of its own with a deadline, so that one that hangs or
//! is killed is one row and not the end of the battery. The result says what was met; whether that
//! is enough is decided on the host.
//!
//! The battery can show that a promise is broken. That no attack got through is evidence, and only
//! where the control beside it worked; it is never a proof of absence.

mod attack;
mod battery;
mod calls;
mod environment;
mod files;
mod kernel;
mod limits;
mod namespaces;
mod network;
mod outcome;
mod processes;
mod protected;
mod surface;
mod sys;
mod terminal;
mod usability;

pub use battery::{expected, run, run_unconfined};
pub use outcome::USABILITY;

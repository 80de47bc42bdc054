//! A backend in memory, with faults to order, for tests of programs that use Cofferdam.
//!
//! Nothing is isolated and no program runs: each word of a command is a step that is played.
//! [`FakeBackend::program`] gives a name to a list of steps, so that a test may run `cargo test` and
//! decide what comes of it. A [`Fault`] makes the backend wrong in one way.
//!
//! | word | does |
//! |---|---|
//! | `out=TEXT`, `err=TEXT` | writes to standard output or standard error |
//! | `every-byte` | writes each of the 256 bytes once |
//! | `bytes=N` | writes N bytes |
//! | `cat` | writes what it reads, until its input ends |
//! | `sleep=MS` | waits |
//! | `child=NAME` | leaves a child behind that holds the output open and does not end by itself |
//! | `children=NAME` | writes how many such children there are |
//! | `env=NAME` | writes the value of a variable |
//! | `read=PATH`, `write=PATH` | reads or writes a file of the workspace |
//! | `link=PATH:TARGET` | makes a symbolic link in the workspace |
//! | `memory=BYTES`, `processes=N` | uses that much, or dies of the limit |
//! | `sees=PID` | exits 1 unless it sees a process |
//! | `terminal` | exits 1 unless its streams are a terminal |
//! | `resized` | waits for a new size of its terminal and writes it, as `rows columns` |
//! | `signal=N` | dies of a signal |
//! | `exit=N` | exits; a command whose steps are over exits 0 |
//!
//! A word that is no step, and no program either, is a program that is not there. `/workspace` is
//! the one directory that there is.
//!
//! ```
//! use cofferdam_core::fake::{FakeBackend, Fault};
//! use cofferdam_core::{Backend, Caller, Command, Ending, NoGate, ProcessId, SandboxId};
//! use cofferdam_core::{Spec, Workspace, collect};
//! use std::sync::Arc;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> cofferdam_core::Result<()> {
//! let backend = FakeBackend::new()
//!     .program("cargo", &["err=warning: unused\n", "out=ok\n"])
//!     .fault(Fault::DestroyFailsOnce);
//! let spec = Spec::new(Workspace::Private, Caller::default());
//! let sandbox = backend.create(&SandboxId::new("s1")?, &spec).await?;
//!
//! let guest = backend.open(&sandbox, Arc::new(NoGate)).await?;
//! let command = Command::new(ProcessId::new("p1")?, ["cargo", "test"]);
//! let output = collect(guest.spawn(&command).await?, 1 << 20).await?;
//! assert_eq!(output.stdout, b"ok\n");
//! assert_eq!(output.ending, Ending::Exited(0));
//!
//! assert!(backend.destroy(&sandbox).await.is_err());
//! backend.destroy(&sandbox).await?;
//! # Ok(())
//! # }
//! ```

mod backend;
mod durable;
mod fault;
mod files;
mod guest;
mod inside;
mod play;
#[cfg(test)]
mod tests;

pub use backend::FakeBackend;
pub use durable::{Call, FakeDurable, Mishap, NetworkFault};
pub use fault::Fault;

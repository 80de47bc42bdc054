//! The hatch to what runs inside.

use crate::{Command, Ending, Files, Output, PortStream, ProcessId, Result, Terminal};
use async_trait::async_trait;
use cofferdam_wire::message::{Proof, Prove};
use serde::{Deserialize, Serialize};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use tokio::sync::{Notify, mpsc};

/// What can be done inside a running sandbox. No method has a default.
#[async_trait]
pub trait Guest: Send + Sync {
    /// Starts a command. Returns when it runs, or could not be started.
    ///
    /// A command that does not start is not an error: its one event is [`ProcessEvent::Ended`]. An
    /// id that is in use by a running command is a conflict, and nothing is started. A call that is
    /// given up before it returns kills what it started.
    async fn spawn(&self, command: &Command) -> Result<Process>;

    /// Starts a command on descriptors of the caller's. Its one event is the ending, and what it
    /// reads and writes costs no detour.
    ///
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) where the way inside carries no
    /// descriptors; a usage error where the command wants a terminal.
    async fn spawn_on(&self, command: &Command, given: Given) -> Result<Process>;

    /// Runs a command that reads nothing to its end, and keeps the first `kept` bytes of each stream.
    ///
    /// However it ends, that is no error. A call that is given up kills the command. The events are
    /// those of [`Guest::spawn`], told together, which takes less time.
    async fn run(&self, command: &Command, kept: usize) -> Result<Output>;

    /// The files of its workspace. Nothing is asked of the sandbox yet.
    ///
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) where the way inside carries no
    /// descriptors, or what is inside serves no files.
    async fn files(&self) -> Result<Files>;

    /// Connects to a port of its own loopback.
    ///
    /// [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable) where nobody listens there;
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) where the way inside carries no
    /// descriptors, or what is inside connects to no ports.
    async fn connect(&self, port: u16) -> Result<PortStream>;

    /// The commands that run now.
    async fn processes(&self) -> Result<Vec<ProcessId>>;

    /// Attacks the sandbox from inside and says what was met.
    async fn prove(&self, prove: &Prove) -> Result<Proof>;
}

/// Standard streams that a caller gives to a command. The command holds them from then on; the
/// caller's copies are closed.
#[derive(Debug)]
pub struct Given {
    /// What it reads; nothing without it.
    pub stdin: Option<OwnedFd>,
    /// Where its output goes.
    pub stdout: OwnedFd,
    /// Where its messages go.
    pub stderr: OwnedFd,
}

/// A command that was started.
///
/// Dropping it does not end the command; send [`ProcessInput::Kill`] for that.
#[derive(Debug)]
pub struct Process {
    /// Its name.
    pub id: ProcessId,
    /// What it does, in order; the last event is [`ProcessEvent::Ended`]. A reader that does not
    /// read stops this command's output, and nobody else's.
    ///
    /// Events that stop without [`ProcessEvent::Ended`] mean that the sandbox went away, and that
    /// nobody knows how the command would have ended. What the guest is asked next fails with the
    /// reason.
    pub events: mpsc::Receiver<ProcessEvent>,
    /// What is done to it. Dropping every sender closes its standard input.
    pub input: mpsc::Sender<ProcessInput>,
    /// Kills it, even while `input` is full of bytes that it does not read.
    pub killer: Killer,
}

/// Kills one command with all its descendants, and never waits.
#[derive(Debug, Clone, Default)]
pub struct Killer(Arc<Notify>);

impl Killer {
    /// Kills the command. Repeating it, and killing what has ended, does nothing.
    pub fn kill(&self) {
        self.0.notify_one();
    }

    /// Returns when somebody asked for the kill. For those who implement [`Guest`].
    pub async fn killed(&self) {
        self.0.notified().await;
    }
}

/// A standard stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Standard {
    /// Standard output; for a terminal, all output.
    Output,
    /// Standard error.
    Error,
}

/// What a command does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcessEvent {
    /// It wrote.
    Output {
        /// Where.
        stream: Standard,
        /// How many bytes it wrote there before.
        offset: u64,
        /// What.
        bytes: Vec<u8>,
    },
    /// It ended. Nothing follows.
    Ended {
        /// How.
        ending: Ending,
        /// Processor time, if known, in microseconds.
        cpu_us: Option<u64>,
        /// The most memory that one of its processes held, if known, in bytes.
        peak_memory_bytes: Option<u64>,
    },
}

/// What is done to a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcessInput {
    /// These bytes are its next standard input.
    Bytes(Vec<u8>),
    /// Its standard input ends.
    Close,
    /// This signal goes to its process group.
    Signal(i32),
    /// Its terminal has a new size.
    Resize(Terminal),
    /// It is killed with all its descendants.
    Kill,
}

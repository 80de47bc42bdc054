//! The hatch to what runs inside.

use crate::{Command, Ending, ProcessId, Result, Terminal};
use async_trait::async_trait;
use cofferdam_wire::message::{Proof, Prove};
use tokio::sync::mpsc;

/// What can be done inside a running sandbox. No method has a default.
#[async_trait]
pub trait Guest: Send + Sync {
    /// Starts a command. Returns when it runs, or could not be started.
    ///
    /// A command that does not start is not an error: its one event is [`ProcessEvent::Ended`].
    async fn spawn(&self, command: &Command) -> Result<Process>;

    /// The commands that run now.
    async fn processes(&self) -> Result<Vec<ProcessId>>;

    /// Attacks the sandbox from inside and says what was met.
    async fn prove(&self, prove: &Prove) -> Result<Proof>;
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
    pub events: mpsc::Receiver<ProcessEvent>,
    /// What is done to it.
    pub input: mpsc::Sender<ProcessInput>,
}

/// A standard stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

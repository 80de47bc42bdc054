//! What a keeper writes down of its sandbox.

use crate::{
    Deadlines, Denial, DestroyReason, ErrorBody, ExecStatus, ProcessId, SandboxRecord, SecretAlarm,
    Settlement, WaitingConnection,
};
use serde::{Deserialize, Serialize};

/// One entry of a journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JournalEntry {
    /// Its number, from 1, without a gap.
    pub seq: u64,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// What.
    pub happened: Happened,
}

/// What a keeper writes down.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Happened {
    /// The sandbox stands.
    Provisioned(Box<SandboxRecord>),
    /// The sandbox could not be made.
    NotProvisioned(ErrorBody),
    /// A command is started. This is written before it runs: what is not written never ran.
    ExecStarted(Box<ExecStatus>),
    /// A command ended. It is finished once this is written.
    ExecEnded(Box<ExecStatus>),
    /// The last process that an ended command left is gone.
    ExecEmptied(Box<ExecStatus>),
    /// It was paused.
    Paused {
        /// Whether nobody used it, or somebody asked.
        idle: bool,
        /// How.
        how: PausedBy,
    },
    /// Somebody used a secret toward a host that it is not for. It was paused at once, and goes on only
    /// when somebody who knows of it says so.
    SecretAlarm(SecretAlarm),
    /// It goes on.
    Resumed,
    /// It has new deadlines.
    Deadlines(Deadlines),
    /// It ended, and all that ran in it.
    Destroyed(DestroyReason),
    /// Something that it used could not be removed; the next start tries again.
    Leftover(String),
    /// Control files that were not in the workspace when it began were there when it ended: their
    /// paths below the workspace, as many as are written down.
    ControlFiles(Vec<String>),
    /// A connection waits to be allowed, the first of those that wait for the same.
    PermissionRequested(Box<WaitingConnection>),
    /// Its gate told something of what waits that cannot be, and it was not believed: why.
    PermissionDropped(String),
    /// One that was written down so waits no more.
    PermissionSettled {
        /// Its number.
        number: u64,
        /// What came of it.
        settled: Settlement,
    },
    /// A destination was denied, for the first time by the rules as they were then. How often is in the
    /// audit.
    ConnectionDenied {
        /// What, and why.
        denial: Box<Denial>,
        /// The commands that ran then, as many as are written down: one of them asked for it, or what
        /// an earlier one left.
        execs: Vec<ProcessId>,
    },
}

/// What stops the processes of a paused sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PausedBy {
    /// The kernel's freezer: they cannot tell.
    Freezer,
    /// A signal to each: they can tell, and their parents too.
    Signals,
}

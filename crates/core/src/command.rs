//! A command to run inside.

use crate::secret::GivenSecret;
use crate::{Error, ErrorKind, ProcessId, Result};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::Duration;

pub use cofferdam_wire::message::TerminalSize as Terminal;

/// A command to run inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// The caller's name for this run.
    pub id: ProcessId,
    /// Program and arguments, never read by a shell.
    pub argv: Vec<OsString>,
    /// Where it starts, absolute inside. `None`: in the workspace.
    pub cwd: Option<OsString>,
    /// Variables over those of the sandbox.
    pub env: BTreeMap<OsString, OsString>,
    /// What it reads.
    pub stdin: Stdin,
    /// A pseudo-terminal of this size for all three streams, instead of three pipes.
    pub terminal: Option<Terminal>,
    /// What it is given that nobody else may see. Kept out of all that it writes.
    pub secrets: Vec<GivenSecret>,
    /// It is killed with all its descendants after this long.
    pub timeout: Option<Duration>,
}

/// What a command reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stdin {
    /// Nothing.
    #[default]
    Null,
    /// What the caller sends.
    Piped,
}

impl Command {
    /// A command with empty standard input, in the workspace, without a time limit.
    pub fn new<S: Into<OsString>>(id: ProcessId, argv: impl IntoIterator<Item = S>) -> Self {
        Self {
            id,
            argv: argv.into_iter().map(Into::into).collect(),
            cwd: None,
            env: BTreeMap::new(),
            stdin: Stdin::Null,
            terminal: None,
            secrets: Vec::new(),
            timeout: None,
        }
    }

    /// Fails where it is given secrets: for ways to run it that would not mask what it writes.
    pub fn refuse_secrets(&self) -> Result<()> {
        match self.secrets.is_empty() {
            true => Ok(()),
            false => Err(Error::new(ErrorKind::Unsupported, "this backend gives no secrets")
                .hint("Use a session of the local backend, or `cofferdam run`.")),
        }
    }
}

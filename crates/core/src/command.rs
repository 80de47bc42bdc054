//! A command to run inside.

use crate::secret::GivenSecret;
use crate::{Error, ErrorKind, ProcessId, Result};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
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

    /// Fails where no sandbox could start it: it has no program, a terminal without room, or a variable
    /// that cannot be set.
    pub fn check(&self) -> Result<()> {
        if self.argv.is_empty() {
            return Err(Error::new(ErrorKind::Usage, "the command is empty")
                .hint("Name a program, with its arguments."));
        }
        self.terminal.map_or(Ok(()), check_terminal)?;
        self.env.iter().try_for_each(|(name, value)| check_variable(name, value))
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

/// Fails where a terminal of this size has no room: programs take that for a size that nobody knows.
pub fn check_terminal(size: Terminal) -> Result<()> {
    let Terminal { rows, columns } = size;
    match rows > 0 && columns > 0 {
        true => Ok(()),
        false => {
            let what = format!("a terminal of {rows} rows and {columns} columns has no room");
            Err(Error::new(ErrorKind::Usage, what).hint("Give it at least one row and one column."))
        }
    }
}

/// Fails where no environment can hold this variable.
pub fn check_variable(name: &OsStr, value: &OsStr) -> Result<()> {
    let bad = |why: &str| {
        Err(Error::new(ErrorKind::Usage, format!("variable {name:?} cannot be set: {why}"))
            .hint("Write NAME=VALUE with a name that has no equals sign."))
    };
    let (name, value) = (name.as_bytes(), value.as_bytes());
    if name.is_empty() {
        return bad("its name is empty");
    }
    if name.contains(&b'=') {
        return bad("its name has an equals sign");
    }
    if name.contains(&0) || value.contains(&0) {
        return bad("it has a NUL byte");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_without_room_is_refused_before_it_is_sent() {
        let with = |rows, columns| {
            let mut command = Command::new(ProcessId::new("p").unwrap(), ["true"]);
            command.terminal = Some(Terminal { rows, columns });
            command.check()
        };
        with(1, 1).unwrap();
        for (rows, columns) in [(0, 0), (0, 80), (24, 0)] {
            let error = with(rows, columns).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Usage, "{rows} {columns}");
            assert!(error.hint.is_some(), "{rows} {columns}");
        }
    }

    #[test]
    fn a_variable_that_no_environment_holds_is_refused_before_it_is_sent() {
        let command = |name: &str, value: &str| {
            let mut command = Command::new(ProcessId::new("p").unwrap(), ["true"]);
            command.env.insert(name.into(), value.into());
            command
        };
        command("A", "b=c").check().unwrap();
        for (name, value) in [("", "c"), ("A=B", "c"), ("A\0", "c"), ("A", "\0")] {
            let error = command(name, value).check().unwrap_err();
            assert_eq!(error.kind, ErrorKind::Usage, "{name:?} {value:?}");
        }
    }
}

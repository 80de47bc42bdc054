//! What the suite asks of a backend's sandboxes.

use cofferdam_core::{Caller, Limit, Spec, Workspace};
use std::ffi::OsString;
use std::path::PathBuf;

/// Something that a command does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Exits with this code.
    Exit(i32),
    /// Kills itself with this signal.
    DieOf(i32),
    /// Writes to both streams.
    Print {
        /// To standard output.
        stdout: String,
        /// To standard error.
        stderr: String,
    },
    /// Writes each of the 256 bytes once, in order, to standard output.
    PrintEveryByte,
    /// Writes this many bytes to standard output.
    PrintBytes(u64),
    /// Writes this and then waits for more than a minute.
    PrintThenWait(String),
    /// Writes its standard input to its standard output until the end.
    CopyInput,
    /// Starts a child, in a session of its own, that holds the output open for more than a minute.
    /// Its command line contains the name. Then it writes `left` and exits 0.
    LeaveChild(String),
    /// Does the same, writes `left`, and then waits for more than a minute.
    LeaveChildAndWait(String),
    /// Writes the number of processes that were left under this name, and a new line.
    CountChildren(String),
    /// Exits 0 if its standard output is a terminal, and otherwise not.
    IsTerminal,
    /// Writes `ready`, waits until its terminal has another size, and writes that as rows, a space
    /// and columns.
    PrintNextSize,
    /// Writes a file at this path, and exits 0 if it could.
    WriteFile(String),
    /// Writes what is in the file at this path, and exits 0 if it could.
    ReadFile(String),
    /// Makes a symbolic link in its workspace, and exits 0 if it could.
    MakeLink {
        /// Its name there.
        name: String,
        /// What it says.
        target: String,
    },
    /// Exits 0 if it sees a process with this id, and otherwise not.
    SeesProcess(u32),
    /// Fills this many bytes of memory, or dies.
    UseMemory(u64),
    /// Has this many processes at a time, and exits 0 only if it got them.
    HaveProcesses(u32),
    /// Listens on this port of its loopback, writes `ready`, and sends back what it gets on each
    /// connection, one after the other, for more than a minute.
    EchoAt(u16),
    /// Writes the value of a variable, or nothing, and a new line.
    PrintVariable(String),
}

/// Something that not every host has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// A limit of the memory of all processes together, whose use is counted.
    MemoryLimit,
    /// A limit of processes.
    ProcessLimit,
}

/// A file on the host that no sandbox may read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostFile {
    /// Its path.
    pub path: PathBuf,
    /// A word in it.
    pub secret: String,
}

/// Says how the suite's actions are done in the sandboxes of one backend.
pub trait Fixture: Send + Sync {
    /// The command that does it.
    fn argv(&self, action: &Action) -> Vec<OsString>;

    /// A sandbox with a writable workspace of its own that this host can enforce in full.
    fn spec(&self) -> Spec;

    /// A directory of the host that can be a workspace, or why there is none.
    fn workspace(&self) -> Result<PathBuf, String> {
        match self.spec().workspace.directory() {
            Some(path) => Ok(path.to_owned()),
            None => Err("its sandboxes have workspaces of their own".to_owned()),
        }
    }

    /// A spec that cannot be enforced in full here, or why there is none.
    fn unenforceable(&self) -> Result<Spec, String>;

    /// Why this need cannot be met here, if so.
    fn missing(&self, need: Need) -> Option<String>;

    /// A file that is on the host.
    fn host_file(&self) -> HostFile;
}

/// The fixture of the fake backend.
#[derive(Debug, Clone, Copy, Default)]
pub struct FakeFixture;

impl Fixture for FakeFixture {
    fn argv(&self, action: &Action) -> Vec<OsString> {
        let words = match action {
            Action::Exit(code) => vec![format!("exit={code}")],
            Action::DieOf(signal) => vec![format!("signal={signal}")],
            Action::Print { stdout, stderr } => {
                vec![format!("out={stdout}"), format!("err={stderr}")]
            }
            Action::PrintEveryByte => vec!["every-byte".to_owned()],
            Action::PrintBytes(count) => vec![format!("bytes={count}")],
            Action::PrintThenWait(text) => vec![format!("out={text}"), "sleep=90000".to_owned()],
            Action::CopyInput => vec!["cat".to_owned()],
            Action::LeaveChild(name) => vec![format!("child={name}"), "out=left".to_owned()],
            Action::LeaveChildAndWait(name) => {
                vec![format!("child={name}"), "out=left".to_owned(), "sleep=90000".to_owned()]
            }
            Action::CountChildren(name) => vec![format!("children={name}")],
            Action::IsTerminal => vec!["terminal".to_owned()],
            Action::PrintNextSize => vec!["out=ready".to_owned(), "resized".to_owned()],
            Action::WriteFile(path) => vec![format!("write={path}")],
            Action::ReadFile(path) => vec![format!("read={path}")],
            Action::MakeLink { name, target } => vec![format!("link={name}:{target}")],
            Action::SeesProcess(pid) => vec![format!("sees={pid}")],
            Action::UseMemory(bytes) => vec![format!("memory={bytes}")],
            Action::HaveProcesses(count) => vec![format!("processes={count}")],
            Action::EchoAt(port) => {
                vec![format!("listen={port}"), "out=ready".to_owned(), "sleep=90000".to_owned()]
            }
            Action::PrintVariable(name) => vec![format!("env={name}")],
        };
        words.into_iter().map(OsString::from).collect()
    }

    fn spec(&self) -> Spec {
        Spec::new(Workspace::Private, Caller::default())
    }

    fn workspace(&self) -> Result<PathBuf, String> {
        Ok("/a/directory/that/never/was".into())
    }

    fn unenforceable(&self) -> Result<Spec, String> {
        let mut spec = self.spec();
        spec.limits.cpu_millis = Limit::Asked(1000);
        Ok(spec)
    }

    fn missing(&self, _need: Need) -> Option<String> {
        None
    }

    fn host_file(&self) -> HostFile {
        // A file that is there wherever these tests are built.
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml").into();
        HostFile { path, secret: "cofferdam-conformance".to_owned() }
    }
}

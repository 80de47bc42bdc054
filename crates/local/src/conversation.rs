//! Questions to a small process of ours, and its answers, one at a time.

use crate::launch::io_error;
use cofferdam_core::{Error, ErrorKind, Result};
use cofferdam_guestd::line::{Line, understand};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::process::{PidfdFlags, getpid, pidfd_open};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::process::{Child, Command, Stdio};

/// A line to a process that answers. Dropping it ends a process that was started for it.
pub(crate) struct Conversation {
    line: Line,
    process: Option<Child>,
}

impl std::fmt::Debug for Conversation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let id = self.process.as_ref().map(Child::id);
        f.debug_struct("Conversation").field("process", &id).finish_non_exhaustive()
    }
}

impl Conversation {
    /// Over a line to a process that ends with it.
    pub(crate) fn over(socket: OwnedFd) -> Self {
        Self { line: Line::new(socket), process: None }
    }

    /// Starts the static program, as what `word` says if there is one. Its standard input is the line,
    /// its standard output a descriptor of this process, to see its end by: a child that this process
    /// forked has a copy of our end of the line, and may outlive us.
    pub(crate) fn start(program: &[u8], word: Option<&str>) -> Result<Self> {
        let (ours, theirs) = pair()?;
        let file = sealed("cofferdam-box", program)
            .map_err(|errno| io_error("make the launcher's program", errno))?;
        let owner = pidfd_open(getpid(), PidfdFlags::empty())
            .map_err(|errno| io_error("open a descriptor of this process", errno))?;
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let process = Command::new(path)
            .args(word)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::from(owner))
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| {
                Error::new(ErrorKind::SetupFailed, "start the launcher").source(error)
            })?;
        Ok(Self { line: Line::new(ours), process: Some(process) })
    }

    /// Says something without waiting for the answer.
    pub(crate) fn say<Q: Serialize>(&mut self, question: &Q, given: Vec<OwnedFd>) {
        self.line.message(0, question, given);
        self.line.drain();
    }

    /// Waits for the answer, and the descriptors that come with it.
    pub(crate) fn hear<A: DeserializeOwned>(&mut self) -> Result<(A, Vec<OwnedFd>)> {
        loop {
            if let Some((_, body)) = self.line.next_frame().map_err(|_| lost())? {
                let came = std::iter::from_fn(|| self.line.take_descriptor()).collect();
                return understand::<A>(&body).map(|answer| (answer, came)).ok_or_else(lost);
            }
            wait_readable(&self.line)?;
            self.line.fill().map_err(|_| lost())?;
        }
    }

    /// Asks and waits.
    pub(crate) fn ask<Q: Serialize, A: DeserializeOwned>(
        &mut self,
        question: &Q,
        given: Vec<OwnedFd>,
    ) -> Result<(A, Vec<OwnedFd>)> {
        self.say(question, given);
        self.hear()
    }

    /// Whether the process is there. One that is not comes back no more.
    pub(crate) fn is_there(&self) -> bool {
        let mut line = [PollFd::from_borrowed_fd(self.line.socket(), PollFlags::RDHUP)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        matches!(poll(&mut line, Some(&now)), Ok(0) | Err(rustix::io::Errno::INTR))
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        // It ends at the end of its line; this is for one that hangs.
        if let Some(process) = &mut self.process {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// Both ends of a line.
pub(crate) fn pair() -> Result<(OwnedFd, OwnedFd)> {
    let (family, kind) = (AddressFamily::UNIX, SocketType::STREAM);
    rustix::net::socketpair(family, kind, SocketFlags::CLOEXEC, None)
        .map_err(|errno| io_error("make a line", errno))
}

pub(crate) fn lost() -> Error {
    Error::new(ErrorKind::Unavailable, "the launcher is gone, and its sandboxes with it")
        .hint("Make a new backend.")
}

fn wait_readable(line: &Line) -> Result<()> {
    let mut wait = [PollFd::from_borrowed_fd(line.socket(), PollFlags::IN)];
    match poll(&mut wait, None) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(errno) => Err(io_error("wait for the launcher", errno)),
    }
}

/// Bytes as a file in memory, where nobody can change it any more.
pub(crate) fn sealed(name: &str, program: &[u8]) -> rustix::io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = rustix::fs::memfd_create(name, flags)?;
    let mut rest = program;
    while !rest.is_empty() {
        let count = rustix::io::write(&file, rest)?;
        rest = rest.get(count..).unwrap_or_default();
    }
    rustix::fs::fcntl_add_seals(
        &file,
        SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE,
    )?;
    Ok(file)
}

//! A small single-threaded process from which a library's sandboxes are cloned.
//!
//! A library lives in a process with many threads and much memory, which must not fork. So it keeps
//! one launcher: started once from an embedded static program, with an empty environment, ended with
//! the library's process and ending all its sandboxes with itself.

use crate::launch::{Born, Groups, io_error, launch};
use crate::sys;
use cofferdam_core::{Error, ErrorKind, Result};
use cofferdam_guestd::line::{Line, understand};
use cofferdam_wire::frame::Kind;
use cofferdam_wire::plan::{Access, Plan};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Mutex;

/// What the launcher is asked for.
#[derive(Serialize, Deserialize)]
enum Request<'a> {
    /// A sandbox. The descriptors of its groups come with the message.
    Make { plan: Cow<'a, Plan>, join: usize, born_in: bool },
    /// New pins for names inside a sandbox that lives.
    Pin { pid: i32, pins: Cow<'a, [(String, Access)]> },
}

/// What came of it. With `Born` come two descriptors: of the process, and our end of its line.
#[derive(Serialize, Deserialize)]
enum Reply {
    Born { pid: i32 },
    Pinned,
    Failed { kind: String, message: String, hint: Option<String> },
}

/// A sandbox that the launcher made for us.
#[derive(Debug)]
pub struct Launched {
    /// Its first process, as our namespace counts.
    pub pid: i32,
    /// A descriptor for that process; readable when it is gone, and with it all that it started.
    pub pidfd: OwnedFd,
    /// Our end of its line.
    pub line: OwnedFd,
}

/// The library's side: one launcher process.
#[derive(Debug)]
pub struct Launcher {
    inner: Mutex<Inner>,
}

struct Inner {
    line: Line,
    process: Child,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inner").field("process", &self.process.id()).finish_non_exhaustive()
    }
}

impl Launcher {
    /// Starts a launcher from the bytes of the static program.
    pub fn start(program: &[u8]) -> Result<Self> {
        let failed = |what: &'static str| move |errno| io_error(what, errno);
        let (ours, theirs) = rustix::net::socketpair(
            AddressFamily::UNIX,
            SocketType::STREAM,
            SocketFlags::CLOEXEC,
            None,
        )
        .map_err(failed("make the launcher's line"))?;
        let file =
            sealed("cofferdam-box", program).map_err(failed("make the launcher's program"))?;
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let process = Command::new(path)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| {
                Error::new(ErrorKind::SetupFailed, "start the launcher").source(error)
            })?;
        Ok(Self { inner: Mutex::new(Inner { line: Line::new(ours), process }) })
    }

    /// Clones a sandbox. Blocks for about as long as clone(2) takes; the sandbox's greeting on its
    /// line says when it stands.
    pub fn launch(&self, plan: &Plan, groups: Groups) -> Result<Launched> {
        let request = Request::Make {
            plan: Cow::Borrowed(plan),
            join: groups.join.len(),
            born_in: groups.born_in.is_some(),
        };
        let descriptors = groups.join.into_iter().chain(groups.born_in).collect();
        let mut inner = self.inner.lock().map_err(|_| lost())?;
        match inner.ask(&request, descriptors)? {
            Reply::Born { pid } => {
                let (pidfd, line) = (inner.line.take_descriptor(), inner.line.take_descriptor());
                let (pidfd, line) = pidfd.zip(line).ok_or_else(lost)?;
                Ok(Launched { pid, pidfd, line })
            }
            Reply::Failed { kind, message, hint } => Err(failed(&kind, message, hint)),
            Reply::Pinned => Err(lost()),
        }
    }

    /// Pins names inside a sandbox of this launcher that lost their pin because the host put another
    /// file there.
    pub fn pin_again(&self, pid: i32, pins: &[(String, Access)]) -> Result<()> {
        let request = Request::Pin { pid, pins: Cow::Borrowed(pins) };
        match self.inner.lock().map_err(|_| lost())?.ask(&request, Vec::new())? {
            Reply::Pinned => Ok(()),
            Reply::Failed { kind, message, hint } => Err(failed(&kind, message, hint)),
            Reply::Born { .. } => Err(lost()),
        }
    }
}

impl Inner {
    fn ask(&mut self, request: &Request<'_>, descriptors: Vec<OwnedFd>) -> Result<Reply> {
        self.line.message(0, request, descriptors);
        self.line.drain();
        loop {
            let frame = self.line.next_frame().map_err(|_| lost())?;
            if let Some((_, body)) = frame {
                return understand::<Reply>(&body).ok_or_else(lost);
            }
            wait_readable(&self.line)?;
            self.line.fill().map_err(|_| lost())?;
        }
    }
}

fn failed(kind: &str, message: String, hint: Option<String>) -> Error {
    let kind = ErrorKind::ALL.into_iter().find(|known| known.name() == kind);
    let mut error = Error::new(kind.unwrap_or(ErrorKind::SetupFailed), message);
    error.hint = hint;
    error
}

impl Launcher {
    /// Whether its process is there. One that is not comes back no more.
    pub fn is_there(&self) -> bool {
        let Ok(inner) = self.inner.lock() else { return false };
        let mut line = [PollFd::from_borrowed_fd(inner.line.socket(), PollFlags::RDHUP)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        matches!(poll(&mut line, Some(&now)), Ok(0) | Err(rustix::io::Errno::INTR))
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // The launcher ends at the end of its line; this is for one that hangs.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn lost() -> Error {
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

/// The launcher's own life. Ends with its line.
pub fn serve() -> ExitCode {
    match serve_line() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn serve_line() -> Result<()> {
    allow_descriptors();
    let socket = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)
        .map_err(|errno| io_error("take the line", errno))?;
    let children =
        sys::signals(&[libc::SIGCHLD]).map_err(|errno| io_error("watch children", errno))?;
    let mut line = Line::new(socket);
    // Kept until they end, because dropping one ends it.
    let mut living: BTreeMap<i32, Born> = BTreeMap::new();
    loop {
        let ready = {
            let mut wait = [
                PollFd::from_borrowed_fd(line.socket(), PollFlags::IN),
                PollFd::new(&children, PollFlags::IN),
            ];
            match poll(&mut wait, None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(io_error("wait", errno)),
            }
            wait.map(|fd| !fd.revents().is_empty())
        };
        let [said, ended] = ready;
        if ended {
            reap(&children, &mut living);
        }
        if said {
            line.fill().map_err(|_| lost())?;
            while let Some((header, body)) = line.next_frame().map_err(|_| lost())? {
                if header.kind == Kind::Message {
                    answer(&mut line, &body, &mut living)?;
                }
            }
        }
    }
}

/// Each sandbox takes four descriptors here, and the usual limit is low only for the sake of old
/// programs. What is inside has limits of its own.
fn allow_descriptors() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
}

fn reap(children: &OwnedFd, living: &mut BTreeMap<i32, Born>) {
    let mut buffer = [0; 512];
    while rustix::io::read(children, &mut buffer).is_ok() {}
    use rustix::process::{WaitOptions, wait};
    while let Ok(Some((pid, _))) = wait(WaitOptions::NOHANG) {
        living.remove(&pid.as_raw_nonzero().get());
    }
}

fn answer(line: &mut Line, body: &[u8], living: &mut BTreeMap<i32, Born>) -> Result<()> {
    match understand(body).ok_or_else(lost)? {
        Request::Make { plan, join, born_in } => {
            let join = (0..join).filter_map(|_| line.take_descriptor()).collect();
            let born_in = if born_in { line.take_descriptor() } else { None };
            match make(&plan, Groups { join, born_in }) {
                Ok((born, pidfd, theirs)) => {
                    line.message(0, &Reply::Born { pid: born.pid }, vec![pidfd, theirs]);
                    living.insert(born.pid, born);
                }
                Err(error) => line.message(0, &refusal(error), Vec::new()),
            }
        }
        Request::Pin { pid, pins } => {
            // One that is gone needs no pins any more.
            let pinned = living.get(&pid).map_or(Ok(()), |born| born.pin_again(&pins));
            let reply = pinned.map_or_else(refusal, |()| Reply::Pinned);
            line.message(0, &reply, Vec::new());
        }
    }
    line.drain();
    Ok(())
}

fn make(plan: &Plan, groups: Groups) -> Result<(Born, OwnedFd, OwnedFd)> {
    let mut born = launch(plan, groups)?;
    let pidfd = rustix::io::fcntl_dupfd_cloexec(born.pidfd.as_fd(), 3)
        .map_err(|errno| io_error("copy a descriptor", errno))?;
    let theirs = born.take_line().ok_or_else(lost)?;
    Ok((born, pidfd, theirs))
}

fn refusal(error: Error) -> Reply {
    let message = error.chain();
    Reply::Failed { kind: error.kind.name().to_owned(), message, hint: error.hint }
}

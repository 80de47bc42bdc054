//! A small single-threaded process from which a library's sandboxes are cloned.
//!
//! A library lives in a process with many threads and much memory, which must not fork. So it keeps
//! one launcher: started once from an embedded static program, with an empty environment, ended with
//! the library's process and ending all its sandboxes with itself. It learns of that end by its line,
//! and by a descriptor of the process where a forked child of that holds the line too.

use crate::conversation::{Conversation, lost};
use crate::launch::{Born, Groups, io_error, launch};
use crate::sys;
use cofferdam_core::{Error, ErrorKind, Result};
use cofferdam_guestd::apply::LostPin;
use cofferdam_guestd::line::{Line, understand};
use cofferdam_wire::frame::Kind;
use cofferdam_wire::plan::Plan;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, OwnedFd};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Mutex;

/// What the launcher is asked for.
#[derive(Serialize, Deserialize)]
enum Request<'a> {
    /// A sandbox. The descriptors of its groups come with the message.
    Make { plan: Cow<'a, Plan>, join: usize, born_in: bool },
    /// New pins for names inside a sandbox that lives.
    Pin { pid: i32, pins: Cow<'a, [LostPin]> },
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
    inner: Mutex<Conversation>,
}

impl Launcher {
    /// Starts a launcher from the bytes of the static program.
    pub fn start(program: &[u8]) -> Result<Self> {
        Ok(Self { inner: Mutex::new(Conversation::start(program, None)?) })
    }

    /// Clones a sandbox. Blocks for about as long as clone(2) takes; the sandbox's greeting on its
    /// line says when it stands.
    pub fn launch(&self, plan: &Plan, groups: Groups) -> Result<Launched> {
        let request = Request::Make {
            plan: Cow::Borrowed(plan),
            join: groups.join.len(),
            born_in: groups.born_in.is_some(),
        };
        let given = groups.join.into_iter().chain(groups.born_in).collect();
        let answer = self.inner.lock().map_err(|_| lost())?.ask(&request, given)?;
        match answer {
            (Reply::Born { pid }, came) => {
                let [pidfd, line] = came.try_into().map_err(|_| lost())?;
                Ok(Launched { pid, pidfd, line })
            }
            (Reply::Failed { kind, message, hint }, _) => Err(failed(&kind, message, hint)),
            (Reply::Pinned, _) => Err(lost()),
        }
    }

    /// Pins names inside a sandbox of this launcher that lost their pin because the host put another
    /// file there.
    pub fn pin_again(&self, pid: i32, pins: &[LostPin]) -> Result<()> {
        let request = Request::Pin { pid, pins: Cow::Borrowed(pins) };
        let answer = self.inner.lock().map_err(|_| lost())?.ask(&request, Vec::new())?;
        match answer.0 {
            Reply::Pinned => Ok(()),
            Reply::Failed { kind, message, hint } => Err(failed(&kind, message, hint)),
            Reply::Born { .. } => Err(lost()),
        }
    }

    /// Whether its process is there. One that is not comes back no more.
    pub fn is_there(&self) -> bool {
        self.inner.lock().is_ok_and(|inner| inner.is_there())
    }
}

fn failed(kind: &str, message: String, hint: Option<String>) -> Error {
    let kind = ErrorKind::ALL.into_iter().find(|known| known.name() == kind);
    let mut error = Error::new(kind.unwrap_or(ErrorKind::SetupFailed), message);
    error.hint = hint;
    error
}

/// The launcher's own life. Ends with its line or its owner.
pub fn serve() -> ExitCode {
    match serve_line() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// The line of a process that was started with it as standard input, a descriptor of its owner, which
/// was standard output, and a place for many more descriptors.
pub(crate) fn take_line() -> Result<(Line, OwnedFd)> {
    allow_descriptors();
    let socket = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)
        .map_err(|errno| io_error("take the line", errno))?;
    let owner = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)
        .map_err(|errno| io_error("take the owner", errno))?;
    Ok((Line::new(socket), owner))
}

fn serve_line() -> Result<()> {
    let (mut line, owner) = take_line()?;
    let children =
        sys::signals(&[libc::SIGCHLD]).map_err(|errno| io_error("watch children", errno))?;
    // Kept until they end, because dropping one ends it.
    let mut living: BTreeMap<i32, Born> = BTreeMap::new();
    loop {
        let ready = {
            let mut wait = [
                PollFd::from_borrowed_fd(line.socket(), PollFlags::IN),
                PollFd::new(&children, PollFlags::IN),
                PollFd::new(&owner, PollFlags::IN),
            ];
            match poll(&mut wait, None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(io_error("wait", errno)),
            }
            wait.map(|fd| !fd.revents().is_empty())
        };
        let [said, ended, is_alone] = ready;
        if is_alone {
            return Ok(());
        }
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

/// Each sandbox takes four descriptors of a launcher, each command up to three of a keeper, and the
/// usual limit is low only for the sake of old programs. What is inside has limits of its own.
pub(crate) fn allow_descriptors() {
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

//! A process that knows nothing, from which a sandbox's first process is cloned.
//!
//! A clone has all of its maker's memory. Who keeps one sandbox has read an order with the caller's
//! variables, looked at the host, and made a plan; none of that is the sandbox's business, and it
//! would stay in memory for as long as the sandbox lives. So a copy of the maker is taken before it
//! has heard anything. That copy clones the first process, as a child of the maker and not of its
//! own, and the plan goes over the sandbox's line.

use crate::conversation::{Conversation, lost, pair};
use crate::launch::{io_error, not_cloned};
use crate::sys::{self, Cloned};
use cofferdam_core::Result;
use cofferdam_guestd::line::{Line, understand};
use cofferdam_guestd::live_as_told;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{WaitId, WaitIdOptions, waitid};
use serde::{Deserialize, Serialize};

/// A process that knows nothing. Dropping it ends it; what was cloned from it lives on.
#[derive(Debug)]
pub(crate) struct Blank {
    conversation: Option<Conversation>,
    process: OwnedFd,
}

/// What it is asked for. The new process's own descriptors come with it, then the directory of the
/// control group to be born in.
#[derive(Debug, Serialize, Deserialize)]
struct Clone {
    flags: i32,
    born_in: bool,
}

/// What came of it: the process with a descriptor of it, or the number of an error.
#[derive(Debug, Serialize, Deserialize)]
enum Answer {
    Cloned { pid: i32 },
    Failed { errno: i32 },
}

impl Blank {
    /// Takes one. The caller must have one thread only, nothing open but its standard streams, and
    /// should have read nothing yet.
    pub(crate) fn start() -> Result<Self> {
        let (ours, theirs) = pair()?;
        match sys::clone_process(0, None).map_err(not_cloned)? {
            Cloned::Child => {
                // A first process would not outlive its maker's end of this.
                drop(ours);
                serve(theirs);
                sys::exit_now(0)
            }
            Cloned::Parent { pidfd, .. } => {
                let conversation = Some(Conversation::over(ours));
                Ok(Self { conversation, process: pidfd })
            }
        }
    }

    /// Clones a first process as a child of the caller. It waits to be told what it is.
    pub(crate) fn clone_first(
        &mut self,
        flags: i32,
        birth: cofferdam_guestd::Blank,
        born_in: Option<&OwnedFd>,
    ) -> Result<(i32, OwnedFd)> {
        let copy = |group: &OwnedFd| {
            rustix::io::fcntl_dupfd_cloexec(group, 3).map_err(|e| io_error("copy a descriptor", e))
        };
        let group = born_in.map(copy).transpose()?;
        let request = Clone { flags, born_in: group.is_some() };
        let cofferdam_guestd::Blank { line, parent, null } = birth;
        let given = [line, parent, null].into_iter().chain(group).collect();
        let conversation = self.conversation.as_mut().ok_or_else(lost)?;
        match conversation.ask::<_, Answer>(&request, given)? {
            (Answer::Cloned { pid }, came) => {
                let [pidfd] = came.try_into().map_err(|_| lost())?;
                Ok((pid, pidfd))
            }
            (Answer::Failed { errno }, _) => Err(not_cloned(Errno::from_raw_os_error(errno))),
        }
    }
}

impl Drop for Blank {
    fn drop(&mut self) {
        // ORDER: it ends with its line.
        self.conversation = None;
        let waited = || waitid(WaitId::PidFd(self.process.as_fd()), WaitIdOptions::EXITED);
        while matches!(waited(), Err(Errno::INTR)) {}
    }
}

/// The blank process's own life.
fn serve(socket: OwnedFd) {
    // Somebody waits for the end of what the caller answers on one of these.
    if let_streams_lead_nowhere().is_err() {
        return;
    }
    let mut line = Line::new(socket);
    loop {
        match line.next_frame() {
            Ok(Some((_, body))) => {
                let Some(request) = understand(&body) else { return };
                match answer(request, line) {
                    Some(same) => line = same,
                    None => return,
                }
            }
            Ok(None) => {
                let _ = poll(&mut [PollFd::from_borrowed_fd(line.socket(), PollFlags::IN)], None);
                if line.fill().is_err() {
                    return;
                }
            }
            Err(_) => return,
        }
    }
}

/// Has the standard streams of this process lead nowhere.
pub(crate) fn let_streams_lead_nowhere() -> rustix::io::Result<()> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let null = rustix::fs::openat(CWD, "/dev/null", flags, Mode::empty())?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)
}

fn answer(request: Clone, mut line: Line) -> Option<Line> {
    let Clone { flags, born_in } = request;
    let mut next = || line.take_descriptor();
    let birth = cofferdam_guestd::Blank { line: next()?, parent: next()?, null: next()? };
    let group = if born_in { Some(next()?) } else { None };
    // As a sibling, so that its parent is the one who keeps it: the kernel kills it with that one,
    // and tells that one of its end.
    let flags = flags | libc::CLONE_PARENT;
    match sys::clone_process(flags, group.as_ref().map(AsRawFd::as_raw_fd)) {
        Ok(Cloned::Child) => {
            drop(line);
            live_as_told(birth)
        }
        Ok(Cloned::Parent { pid, pidfd }) => {
            line.message(0, &Answer::Cloned { pid }, vec![pidfd]);
        }
        Err(errno) => {
            let errno = errno.raw_os_error();
            line.message(0, &Answer::Failed { errno }, Vec::new());
        }
    }
    line.drain();
    Some(line)
}

//! A gate as a process: how it is started, told, and found to have ended.

use super::failed;
use crate::sys;
use cofferdam_core::network::MAX_CONTROL_LINE_BYTES;
use cofferdam_core::{Error, ErrorKind, FromGate, Result, ToGate};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

/// The verb of the command that is a gate.
const VERB: &str = "gate";
/// The most descriptors that go with the order.
const MAX_GIVEN: usize = 8;
/// How much of what it says is read at a time.
const HEARD_BYTES: usize = 16 * 1024;
/// How often in a row, before others are looked at.
const HEARD_AT_A_TIME: u32 = 4;
/// The longest line that it may say.
const MAX_HEARD_LINE_BYTES: usize = 16 * 1024;
/// How long a gate may take for its last words.
const ENDS_WITHIN: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };
/// From where on a descriptor is in nobody's way in a new process.
const OUT_OF_THE_WAY: i32 = 10;

/// The program that is a gate when it is started with the verb `gate`: the command.
#[derive(Debug, Clone)]
pub struct GateProgram(Arc<OwnedFd>);

impl GateProgram {
    /// The program at this path, as it is now: one that is put there later is not started.
    pub fn open(path: &Path) -> Result<Self> {
        let program =
            rustix::fs::openat(CWD, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
                .map_err(failed("open the gate's program"))?;
        Self::from_descriptor(program.as_fd())
    }

    /// The command that this process is.
    pub fn own() -> Result<Self> {
        Self::open(Path::new("/proc/self/exe"))
    }

    /// That of an open file.
    pub(crate) fn from_descriptor(program: BorrowedFd<'_>) -> Result<Self> {
        rustix::io::fcntl_dupfd_cloexec(program, OUT_OF_THE_WAY)
            .map(|program| Self(Arc::new(program)))
            .map_err(failed("keep the gate's program"))
    }

    /// Itself, to pass it on.
    pub(crate) fn descriptor(&self) -> &OwnedFd {
        &self.0
    }

    /// Starts a gate with its order. It dies with this thread.
    pub(super) fn start(&self, order: &ToGate, given: &[BorrowedFd<'_>]) -> Result<Running> {
        let (family, kind) = (AddressFamily::UNIX, SocketType::STREAM);
        let pair = rustix::net::socketpair(family, kind, SocketFlags::CLOEXEC, None);
        let (control, theirs) = pair.map_err(failed("make the gate's control socket"))?;
        let theirs = rustix::io::fcntl_dupfd_cloexec(&theirs, OUT_OF_THE_WAY)
            .map_err(failed("make the gate's control socket"))?;
        rustix::io::ioctl_fionbio(&control, true)
            .map_err(failed("make the gate's control socket"))?;
        let mut command = Command::new(format!("/proc/self/fd/{}", self.0.as_raw_fd()));
        command.arg(VERB).env_clear().current_dir("/");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        sys::prepare_gate(&mut command, &theirs);
        let process = command
            .spawn()
            .map_err(|e| Error::new(ErrorKind::SetupFailed, "start the gate").source(e))?;
        let waiting = line(order)?;
        let mut running = Running { process, control, waiting, sent: 0, heard: Vec::new() };
        running.hand_over(given)?;
        running.flush();
        Ok(running)
    }
}

/// A gate that was started. Dropping it ends it.
#[derive(Debug)]
pub(super) struct Running {
    process: Child,
    control: OwnedFd,
    /// What is to be said, and how much of it was.
    waiting: Vec<u8>,
    sent: usize,
    /// The beginning of a line that it says.
    heard: Vec<u8>,
}

impl Running {
    pub(super) fn waits(&self) -> Vec<(BorrowedFd<'_>, PollFlags)> {
        let is_behind = self.sent < self.waiting.len();
        let flags = if is_behind { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        vec![(self.control.as_fd(), flags)]
    }

    /// What it has said, as much as is heard at a time, and how it ended, if it did.
    pub(super) fn hear(&mut self) -> (Vec<FromGate>, Option<String>) {
        let (mut news, mut bytes) = (Vec::new(), [0; HEARD_BYTES]);
        // HOSTILE: a gate that was taken over talks without a pause, and others are to be heard too.
        for _ in 0..HEARD_AT_A_TIME {
            match rustix::io::read(&self.control, &mut bytes) {
                Err(Errno::AGAIN) => return (news, None),
                Err(Errno::INTR) => {}
                Ok(count @ 1..) => {
                    self.heard.extend_from_slice(bytes.get(..count).unwrap_or_default());
                    match self.understood() {
                        Some(more) => news.extend(more),
                        // Who says what nobody understands is of no use.
                        None => return (news, Some(self.end())),
                    }
                }
                Ok(0) | Err(_) => return (news, Some(self.end())),
            }
        }
        (news, None)
    }

    /// The whole lines of what was heard; `None` where one of them is no message.
    fn understood(&mut self) -> Option<Vec<FromGate>> {
        let whole = self.heard.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let lines: Vec<u8> = self.heard.drain(..whole).collect();
        let mut lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        if self.heard.len() > MAX_HEARD_LINE_BYTES {
            return None;
        }
        let read = |line: &[u8]| match line.len() > MAX_HEARD_LINE_BYTES {
            true => None,
            false => serde_json::from_slice(line).ok(),
        };
        lines.try_fold(Vec::new(), |mut news, line| {
            news.push(read(line)?);
            Some(news)
        })
    }

    fn end(&mut self) -> String {
        let _ = self.process.kill();
        match self.process.wait() {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        }
    }

    pub(super) fn tell(&mut self, what: &ToGate) -> Result<()> {
        self.waiting.drain(..self.sent);
        self.sent = 0;
        self.waiting.extend(line(what)?);
        self.flush();
        Ok(())
    }

    /// Says as much as it takes now.
    pub(super) fn flush(&mut self) {
        while let Some(rest) = self.waiting.get(self.sent..).filter(|rest| !rest.is_empty()) {
            match rustix::net::send(&self.control, rest, SendFlags::NOSIGNAL) {
                Ok(count) => self.sent += count,
                Err(Errno::INTR) => {}
                // Full, or gone: that is seen otherwise.
                Err(_) => return,
            }
        }
        (self.waiting, self.sent) = (Vec::new(), 0);
    }

    /// Sends the descriptors beside the first bytes of what is to be said.
    fn hand_over(&mut self, given: &[BorrowedFd<'_>]) -> Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_GIVEN))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let fits = ancillary.push(SendAncillaryMessage::ScmRights(given));
        let pieces = [IoSlice::new(&self.waiting)];
        let sent = loop {
            match rustix::net::sendmsg(&self.control, &pieces, &mut ancillary, SendFlags::NOSIGNAL)
            {
                Err(Errno::INTR) => {}
                other => break other.map_err(failed("hand the sockets to the gate"))?,
            }
        };
        self.sent = sent;
        match fits {
            true => Ok(()),
            false => Err(Error::new(ErrorKind::SetupFailed, "the gate has too many sockets")),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // ORDER: its control socket first, whose end it takes as its own: it still writes down what
        // it has under way.
        let _ = rustix::net::shutdown(&self.control, rustix::net::Shutdown::Both);
        if let Some(process) = Pid::from_raw(i32::try_from(self.process.id()).unwrap_or(0))
            && let Ok(process) = pidfd_open(process, PidfdFlags::empty())
        {
            let _ = poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&ENDS_WITHIN));
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn line(what: &ToGate) -> Result<Vec<u8>> {
    let mut line = serde_json::to_vec(what)
        .map_err(|e| Error::new(ErrorKind::Usage, "write down the gate's policy").source(e))?;
    line.push(b'\n');
    if line.len() > MAX_CONTROL_LINE_BYTES {
        return Err(Error::new(ErrorKind::Usage, "the network policy is too long")
            .hint("Use fewer rules, or wildcards."));
    }
    Ok(line)
}

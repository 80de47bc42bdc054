//! Pseudo-terminals, and the monitor that leads a terminal's session.
//!
//! A command that led its session itself could not be stopped from the keyboard: its group would be
//! an orphaned one. So a small process of ours leads, and the command gets a foreground group.

use crate::descriptors::close_all_but;
use crate::process::{Prepared, Tie, not_started};
use crate::sys;
use cofferdam_wire::message::{Ended, FromProcess, How, TerminalSize};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Result;
use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;

/// A terminal of the sandbox's own.
pub(crate) struct Pair {
    pub(crate) master: OwnedFd,
    pub(crate) slave: OwnedFd,
}

/// Opens a terminal of this size.
pub(crate) fn open(size: TerminalSize) -> Result<Pair> {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let master = rustix::fs::openat(CWD, "/dev/pts/ptmx", flags, Mode::empty())?;
    rustix::pty::unlockpt(&master)?;
    let slave = rustix::pty::ioctl_tiocgptpeer(
        &master,
        OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC,
    )?;
    resize(&master, size)?;
    Ok(Pair { master, slave })
}

/// Changes a terminal's size; its foreground group hears of it.
pub(crate) fn resize(master: impl AsFd, size: TerminalSize) -> Result<()> {
    let size = Winsize { ws_row: size.rows, ws_col: size.columns, ws_xpixel: 0, ws_ypixel: 0 };
    rustix::termios::tcsetwinsize(master, size)
}

/// A monitor, as process 1 sees it.
pub(crate) struct Monitor {
    pub(crate) pid: i32,
    /// What it says, a message a line.
    pub(crate) reports: OwnedFd,
    /// It was waited for.
    pub(crate) is_gone: bool,
}

/// Starts a monitor that starts the program on the terminal.
pub(crate) fn start_monitor(
    prepared: Prepared,
    slave: OwnedFd,
    scope: Option<BorrowedFd<'_>>,
) -> Result<Monitor> {
    let (reports, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&reports, true)?;
    match sys::fork()? {
        0 => monitor(prepared, &slave, &writer, scope),
        pid => Ok(Monitor { pid, reports, is_gone: false }),
    }
}

fn monitor(
    prepared: Prepared,
    slave: &OwnedFd,
    reports: &OwnedFd,
    scope: Option<BorrowedFd<'_>>,
) -> ! {
    let scope = scope.and_then(|fd| rustix::io::fcntl_dupfd_cloexec(fd, 3).ok());
    // A copy of process 1 holds its pipes; held here, they would never end for their readers.
    close_all_but([slave, reports].into_iter().chain(&scope));
    let code = match lead(prepared, slave, reports, scope.as_ref()) {
        Ok(()) => 0,
        Err(_) => 1,
    };
    sys::exit_now(code)
}

fn lead(
    prepared: Prepared,
    slave: &OwnedFd,
    reports: &OwnedFd,
    scope: Option<&OwnedFd>,
) -> Result<()> {
    rustix::process::setsid()?;
    sys::take_terminal(slave.as_fd())?;
    sys::prctl(libc::PR_SET_CHILD_SUBREAPER, 1)?;
    let stdio = [slave.as_fd(), slave.as_fd(), slave.as_fd()];
    let tie = Tie { gathers_orphans: false, scope: scope.map(AsFd::as_fd) };
    let started = prepared.start(stdio, Some(slave.as_fd()), tie).and_then(|starting| {
        // Only this command waits if somebody stops it here.
        starting.settle(None);
        not_started(&starting).map_or(Ok(starting.pid()), Err)
    });
    let leader = match started {
        Ok(pid) => pid,
        Err(why) => return report(reports, &FromProcess::NotStarted(why)),
    };
    report(reports, &FromProcess::Started { pid: leader })?;
    loop {
        let Some(child) = sys::wait4(-1, libc::WUNTRACED)? else { continue };
        if child.pid != leader {
            continue;
        }
        if libc::WIFSTOPPED(child.status) {
            report(reports, &FromProcess::Stopped { signal: libc::WSTOPSIG(child.status) })?;
        } else {
            return report(reports, &FromProcess::Ended(ended(&child)));
        }
    }
}

fn report(reports: &OwnedFd, message: &FromProcess) -> Result<()> {
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    rustix::io::write(reports, &line).map(drop)
}

/// The ending of a reaped main process, without what is only known later.
pub(crate) fn ended(child: &sys::Waited) -> Ended {
    Ended {
        how: if libc::WIFSIGNALED(child.status) {
            How::Signaled(libc::WTERMSIG(child.status))
        } else {
            How::Exited(libc::WEXITSTATUS(child.status))
        },
        timed_out: false,
        killed_descendants: 0,
        cpu_us: child.cpu_us,
        peak_rss_bytes: child.peak_rss_bytes,
    }
}

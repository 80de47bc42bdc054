//! A small process of ours between process 1 and a command, where one is needed.
//!
//! It leads a terminal's session: a command that did so itself could not be stopped from the keyboard,
//! for its group would be an orphaned one. And below it gathers what a command leaves that may go on:
//! without it nobody could say whose that is once the command has ended.

use crate::descriptors::close_all_but;
use crate::process::{Prepared, Tie, not_started};
use crate::reap::ended;
use crate::sys;
use cofferdam_wire::message::{Descendants, Ended, FromProcess};
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::io::{Errno, Result};

/// A monitor, as process 1 sees it.
pub(crate) struct Monitor {
    pub(crate) pid: i32,
    /// What it says, a message a line.
    pub(crate) reports: OwnedFd,
    /// It was waited for.
    pub(crate) is_gone: bool,
}

/// What a monitor has to know of its command.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Charge<'a> {
    pub(crate) stdio: [BorrowedFd<'a>; 3],
    /// Whether all three are one terminal, whose session it leads.
    pub(crate) seat: Seat,
    /// Rules that keep the command's signals among itself and what it starts.
    pub(crate) scope: Option<BorrowedFd<'a>>,
    pub(crate) descendants: Descendants,
}

/// What a command sits at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seat {
    Terminal,
    Streams,
}

/// Starts a monitor that starts the program.
pub(crate) fn start(prepared: Prepared, charge: Charge<'_>) -> Result<Monitor> {
    let (reports, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&reports, true)?;
    match sys::fork()? {
        0 => {
            // A copy of process 1 holds its pipes; held here, they would never end for their readers.
            let ours = charge.stdio.iter().chain(&charge.scope).copied().chain([fd(&writer)]);
            close_all_but(ours.chain(prepared.given()));
            let code = match lead(prepared, charge, &writer) {
                Ok(()) => 0,
                Err(_) => 1,
            };
            sys::exit_now(code)
        }
        pid => Ok(Monitor { pid, reports, is_gone: false }),
    }
}

fn fd(owned: &OwnedFd) -> BorrowedFd<'_> {
    rustix::fd::AsFd::as_fd(owned)
}

fn lead(prepared: Prepared, charge: Charge<'_>, reports: &OwnedFd) -> Result<()> {
    let [terminal, ..] = charge.stdio;
    let terminal = (charge.seat == Seat::Terminal).then_some(terminal);
    if let Some(terminal) = terminal {
        rustix::process::setsid()?;
        sys::take_terminal(terminal)?;
    }
    sys::prctl(libc::PR_SET_CHILD_SUBREAPER, 1)?;
    let tie = Tie { gathers_orphans: false, scope: charge.scope };
    let started = prepared.start(charge.stdio, terminal, tie).and_then(|starting| {
        // Only this command waits if somebody stops it here.
        starting.settle(None);
        not_started(&starting).map_or(Ok(starting.pid()), Err)
    });
    let leader = match started {
        Ok(pid) => pid,
        Err(why) => return report(reports, &FromProcess::NotStarted(why)),
    };
    if terminal.is_none() {
        // The command's and its descendants' alone, so that they end with the last of these.
        close_all_but([reports]);
    }
    report(reports, &FromProcess::Started { pid: leader })?;
    let ended = watch(leader, charge.seat, reports)?;
    match charge.descendants {
        Descendants::Die | Descendants::DieWithSandbox => {
            report(reports, &FromProcess::Ended(ended))
        }
        Descendants::Stay => outlast(ended, reports),
    }
}

/// Waits for the end of the command, and tells of its stops where it has a terminal.
fn watch(leader: i32, seat: Seat, reports: &OwnedFd) -> Result<Ended> {
    let options = match seat {
        Seat::Terminal => libc::WUNTRACED,
        Seat::Streams => 0,
    };
    loop {
        let Some(child) = sys::wait4(-1, options)? else { continue };
        if child.pid != leader {
            continue;
        }
        if !libc::WIFSTOPPED(child.status) {
            return Ok(ended(&child));
        }
        report(reports, &FromProcess::Stopped { signal: libc::WSTOPSIG(child.status) })?;
    }
}

/// Tells the end, and stays until nothing is left below.
fn outlast(mut ended: Ended, reports: &OwnedFd) -> Result<()> {
    ended.left_below = has_children()?.then(|| rustix::process::getpid().as_raw_nonzero().get());
    report(reports, &FromProcess::Ended(ended))?;
    loop {
        match sys::wait4(-1, 0) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(Errno::CHILD) => return Ok(()),
            Err(errno) => return Err(errno),
        }
    }
}

/// Whether there are children that have not ended. Takes leave of those that have.
fn has_children() -> Result<bool> {
    loop {
        match sys::wait4(-1, libc::WNOHANG) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return Ok(true),
            Err(Errno::CHILD) => return Ok(false),
            Err(errno) => return Err(errno),
        }
    }
}

fn report(reports: &OwnedFd, message: &FromProcess) -> Result<()> {
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    rustix::io::write(reports, &line).map(drop)
}

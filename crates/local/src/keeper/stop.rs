//! Stops a sandbox where it stands: by the kernel's freezer, or else by a signal to each process.

use super::tree::{children, stat};
use crate::assemble::Assembly;
use crate::cgroup::{Cgroups, Freezer};
use crate::launch::Born;
use crate::sys;
use cofferdam_core::{Error, ErrorKind, PausedBy, Result};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// How often the processes are listed to find those that were made meanwhile.
const ROUNDS: u32 = 64;
/// How long a process may take to stop. One in an uninterruptible sleep takes as long as that.
const STOPS_WITHIN: Duration = Duration::from_secs(2);

/// What stops a sandbox.
#[derive(Debug)]
pub(super) enum Stop {
    Freezer(Freezer),
    Signals {
        /// The sandbox's first process.
        first: i32,
        /// Those that were stopped, in that order.
        stopped: Vec<OwnedFd>,
    },
}

impl Stop {
    pub(super) fn new(assembly: &Assembly, born: &Born) -> Self {
        match assembly.cgroups().and_then(Cgroups::freezer) {
            Some(freezer) => Self::Freezer(freezer),
            None => Self::Signals { first: born.pid, stopped: Vec::new() },
        }
    }

    /// Stops everything. Where that cannot be done, everything goes on.
    pub(super) fn pause(&mut self) -> Result<PausedBy> {
        let paused = match self {
            Self::Freezer(freezer) => freezer.freeze().map(|()| PausedBy::Freezer),
            Self::Signals { first, stopped } => {
                stop_all(*first, stopped).map(|()| PausedBy::Signals)
            }
        };
        if paused.is_err() {
            let _ = self.resume();
        }
        paused
    }

    /// Lets everything go on.
    pub(super) fn resume(&mut self) -> Result<()> {
        match self {
            Self::Freezer(freezer) => freezer.thaw(),
            Self::Signals { stopped, .. } => {
                // ORDER: children first, or a parent would see them stopped.
                for process in stopped.drain(..).rev() {
                    let _ = pidfd_send_signal(&process, Signal::CONT);
                }
                Ok(())
            }
        }
    }
}

/// Stops the first process, then what it started, and so on, until a look finds nothing new. A
/// process that is stopped makes no others, and lets none of its children's numbers be used again.
fn stop_all(first: i32, stopped: &mut Vec<OwnedFd>) -> Result<()> {
    let mut known = BTreeSet::new();
    for _ in 0..ROUNDS {
        let before = known.len();
        let mut next = vec![(first, None)];
        let mut place = 0;
        while let Some((pid, parent)) = next.get(place).copied() {
            place += 1;
            if known.insert(pid) {
                stopped.extend(stop_one(pid, parent)?);
            }
            next.extend(children(pid).into_iter().map(|child| (child, Some(pid))));
        }
        if known.len() == before {
            return Ok(());
        }
    }
    Err(Error::new(ErrorKind::Unavailable, "pause the sandbox: it makes processes without end")
        .hint("Try again, or destroy it."))
}

/// Stops a process and gives what to continue it by. `None` where it is stopped already, or gone.
fn stop_one(pid: i32, parent: Option<i32>) -> Result<Option<OwnedFd>> {
    let Some(number) = Pid::from_raw(pid) else { return Ok(None) };
    let Ok(process) = pidfd_open(number, PidfdFlags::empty()) else { return Ok(None) };
    // ORDER: after the descriptor, which cannot come to mean another process any more.
    match stat(pid) {
        Some(found) if found.is_still() => return Ok(None),
        Some(found) if parent.is_none_or(|parent| found.parent == parent) => {}
        Some(_) | None => return Ok(None),
    }
    if pidfd_send_signal(&process, Signal::STOP).is_err() {
        return Ok(None);
    }
    let until = Instant::now() + STOPS_WITHIN;
    while stat(pid).is_some_and(|found| !found.is_still()) {
        if Instant::now() >= until {
            let what = format!("stop process {pid} of the sandbox");
            return Err(Error::new(ErrorKind::TimedOut, what));
        }
        std::thread::yield_now();
    }
    Ok(Some(process))
}

/// Has the kernel give back the memory that a paused sandbox can do without. That can take long, so
/// a copy of this process does it, which ends by itself; nobody depends on its success. Gives what
/// to wait for its end by.
pub(super) fn give_back_memory(assembly: &Assembly) -> Option<OwnedFd> {
    let (file, word) = assembly.cgroups().and_then(Cgroups::reclaim)?;
    match sys::clone_process(0, None).ok()? {
        sys::Cloned::Parent { pidfd, .. } => Some(pidfd),
        sys::Cloned::Child => {
            let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
            // ORDER: only this file is kept, above all no lock.
            let _ = rustix::stdio::dup2_stdin(&file);
            let _ = sys::close_all_from(3);
            let _ = rustix::io::write(rustix::stdio::stdin(), &word);
            sys::exit_now(0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_tree_is_stopped_and_goes_on_and_what_was_stopped_before_stays_so() {
        let mut shell = Command::new("sh")
            .args(["-c", "sleep 60 & kill -STOP $!; sh -c 'sleep 60 & wait' & echo up; wait"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut word = [0; 2];
        std::io::Read::read_exact(shell.stdout.as_mut().unwrap(), &mut word).unwrap();
        let first = i32::try_from(shell.id()).unwrap();
        let until = Instant::now() + Duration::from_secs(10);
        let mut all = vec![first];
        while all.len() < 4 {
            assert!(Instant::now() < until, "{all:?}");
            all = vec![first];
            let mut place = 0;
            while let Some(pid) = all.get(place) {
                all.extend(children(*pid));
                place += 1;
            }
        }
        let states = || all.iter().filter(|pid| stat(**pid).unwrap().is_still()).count();
        let mut stop = Stop::Signals { first, stopped: Vec::new() };
        assert_eq!(stop.pause().unwrap(), PausedBy::Signals);
        assert_eq!(states(), 4);
        stop.resume().unwrap();
        while states() != 1 {
            assert!(Instant::now() < until, "one was stopped before");
        }
        for pid in all.iter().rev() {
            let pid = Pid::from_raw(*pid).unwrap();
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
        shell.wait().unwrap();
    }
}

//! Stops a sandbox where it stands: by the kernel's freezer, or else by a signal to each process.

use super::tree::{Motion, children, motion, stat};
use crate::assemble::Assembly;
use crate::cgroup::{Cgroups, Freezer};
use crate::launch::Born;
use crate::sys;
use cofferdam_core::{Error, ErrorKind, PausedBy, Result};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// How long all processes together may take to stop.
const STOPS_WITHIN: Duration = Duration::from_secs(2);
/// How long one of them is waited for before the next is told.
const AT_ONCE: Duration = Duration::from_millis(1);
/// How many looks in a row have to find nothing that moves before a sandbox counts as paused.
const QUIET: u32 = 1;
/// The same after an alarm: what is inside knows that it is being stopped, and may have its processes
/// continue each other between two looks.
const CERTAIN: u32 = 8;

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
        let paused = self.stop(QUIET);
        if paused.is_err() {
            let _ = self.resume();
        }
        paused
    }

    /// Stops everything for good. Where that cannot be done, what was stopped stays so: whoever asks for
    /// this ends the sandbox then.
    pub(super) fn freeze(&mut self) -> Result<PausedBy> {
        self.stop(CERTAIN)
    }

    fn stop(&mut self, looks: u32) -> Result<PausedBy> {
        match self {
            Self::Freezer(freezer) => freezer.freeze().map(|()| PausedBy::Freezer),
            Self::Signals { first, stopped } => {
                let until = Instant::now() + STOPS_WITHIN;
                stop_all(*first, stopped, (looks, until)).map(|()| PausedBy::Signals)
            }
        }
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

/// Stops the first process, then what it started, and so on, until so many looks in a row find nothing
/// that moves. A process that is stopped makes no others, and lets none of its children's numbers be used
/// again.
// HOSTILE: one that still runs may continue those that were stopped before it, so each look is at all.
fn stop_all(first: i32, stopped: &mut Vec<OwnedFd>, (looks, until): (u32, Instant)) -> Result<()> {
    let (mut told, mut quiet) = (BTreeSet::new(), 0);
    while quiet < looks {
        let mut is_quiet = true;
        let mut next = vec![(first, None)];
        let mut place = 0;
        while let Some((pid, parent)) = next.get(place).copied() {
            place += 1;
            match stop_one(pid, parent) {
                Found::Still => {}
                Found::Elsewhere => is_quiet = false,
                Found::Told(process, motion) => {
                    let is_new = told.insert(pid);
                    stopped.extend(is_new.then_some(process));
                    is_quiet &= motion == Motion::Asleep && !is_new;
                }
            }
            if Instant::now() >= until {
                let what = "pause the sandbox: its processes do not come to a stop";
                return Err(Error::new(ErrorKind::TimedOut, what).hint("Try again, or destroy it."));
            }
            next.extend(children(pid).into_iter().map(|child| (child, Some(pid))));
        }
        quiet = if is_quiet { quiet + 1 } else { 0 };
    }
    Ok(())
}

/// How a process was found.
enum Found {
    /// It was stopped already, or is gone.
    Still,
    /// It has another parent by now, below which the next look finds it.
    Elsewhere,
    /// It was told to stop, and does; what to continue it by, and how it was before.
    Told(OwnedFd, Motion),
}

/// Stops a process. One that sleeps where no signal reaches it stops as soon as it wakes, before anything of
/// its own runs.
fn stop_one(pid: i32, parent: Option<i32>) -> Found {
    let Some(number) = Pid::from_raw(pid) else { return Found::Still };
    let Ok(process) = pidfd_open(number, PidfdFlags::empty()) else { return Found::Still };
    // ORDER: after the descriptor, which cannot come to mean another process any more.
    let before = match stat(pid) {
        Some(found) if parent.is_none_or(|parent| found.parent == parent) => motion(pid),
        Some(_) => return Found::Elsewhere,
        None => return Found::Still,
    };
    // One that sleeps so is told at every look: somebody may have taken the signal back.
    if before == Motion::Still || pidfd_send_signal(&process, Signal::STOP).is_err() {
        return Found::Still;
    }
    // One that is seen to stop makes no children after they were listed. One that does not is looked at
    // again: others that still run may keep it from that.
    let until = Instant::now() + AT_ONCE;
    while motion(pid) == Motion::Moves && Instant::now() < until {
        std::thread::yield_now();
    }
    Found::Told(process, before)
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
        soon("one is stopped before", || all.iter().any(|pid| motion(*pid) == Motion::Still));
        let states = || all.iter().filter(|pid| motion(**pid) == Motion::Still).count();
        let mut stop = Stop::Signals { first, stopped: Vec::new() };
        assert_eq!(stop.pause().unwrap(), PausedBy::Signals);
        assert_eq!(states(), 4);
        stop.resume().unwrap();
        while states() != 1 {
            assert!(Instant::now() < until, "one was stopped before: {}", states());
        }
        for pid in all.iter().rev() {
            let pid = Pid::from_raw(*pid).unwrap();
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
        shell.wait().unwrap();
    }

    /// A program in a process group of its own, all of which is killed at the end.
    struct Group(std::process::Child);

    impl Group {
        /// Started once it has written a line.
        fn start(program: &str, words: &[&str]) -> (Self, i32) {
            use std::os::unix::process::CommandExt;
            let mut command = Command::new(program);
            let mut child =
                command.args(words).process_group(0).stdout(Stdio::piped()).spawn().unwrap();
            let mut word = [0; 3];
            std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut word).unwrap();
            let first = i32::try_from(child.id()).unwrap();
            (Self(child), first)
        }
    }

    impl Drop for Group {
        fn drop(&mut self) {
            let first = Pid::from_raw(i32::try_from(self.0.id()).unwrap()).unwrap();
            let _ = rustix::process::kill_process_group(first, Signal::KILL);
            let _ = self.0.wait();
        }
    }

    /// Looks until it is so.
    fn soon(what: &str, is_so: impl Fn() -> bool) {
        let until = Instant::now() + Duration::from_secs(10);
        while !is_so() {
            assert!(Instant::now() < until, "{what}");
            std::thread::yield_now();
        }
    }

    /// Every process of a tree.
    fn all(first: i32) -> Vec<i32> {
        let mut all = vec![first];
        let mut place = 0;
        while let Some(pid) = all.get(place) {
            all.extend(children(*pid));
            place += 1;
        }
        all
    }

    #[test]
    fn a_process_in_vfork_counts_as_stopped_and_stops_when_it_returns() {
        // The child that vfork makes is the same program in the same memory: it waits to be killed.
        let script = "$| = 1; print qq(up\\n); syscall(58) == 0 and do { sleep 1 while 1 }; \
            print qq(on\\n); sleep 1 while 1";
        if !cfg!(target_arch = "x86_64") {
            return;
        }
        let (_group, first) = Group::start("perl", &["-e", script]);
        soon("it is in vfork", || motion(first) == Motion::Asleep && all(first).len() == 2);
        let child = all(first)[1];
        let mut stop = Stop::Signals { first, stopped: Vec::new() };
        let began = Instant::now();
        assert_eq!(stop.freeze().unwrap(), PausedBy::Signals);
        assert!(began.elapsed() < STOPS_WITHIN, "it is not waited for");
        assert_eq!((motion(first), motion(child)), (Motion::Asleep, Motion::Still));
        // ORDER: what it waits for is over, and it stops all the same.
        let child = Pid::from_raw(child).unwrap();
        rustix::process::kill_process(child, Signal::KILL).unwrap();
        soon("it stops when it returns", || motion(first) == Motion::Still);
        let has_ended = || stat(first).is_none_or(|stat| stat.has_ended());
        assert!(!has_ended(), "it is stopped, and has not run into its end");
        stop.resume().unwrap();
        // What its child did to their memory may end it then.
        let goes_on = || motion(first) == Motion::Moves || has_ended();
        soon("control: it goes on when it may", goes_on);
    }

    #[test]
    fn a_process_whose_first_thread_has_ended_is_stopped_with_the_others() {
        let script = "import ctypes, threading, time\n\
            threading.Thread(target=lambda: [time.sleep(0.001) for _ in iter(int, 1)]).start()\n\
            print('up', flush=True)\n\
            ctypes.CDLL(None).syscall(60, 0)";
        if !cfg!(target_arch = "x86_64") {
            return;
        }
        let (_group, first) = Group::start("python3", &["-c", script]);
        soon("its first thread ends", || stat(first).unwrap().has_ended());
        assert_eq!(motion(first), Motion::Moves);
        let mut stop = Stop::Signals { first, stopped: Vec::new() };
        stop.freeze().unwrap();
        assert_eq!(motion(first), Motion::Still);
        stop.resume().unwrap();
        soon("control: it goes on when it may", || motion(first) == Motion::Moves);
    }

    #[test]
    fn processes_that_continue_each_other_are_stopped_all_the_same() {
        let script = "for n in 1 2; do perl -e '$p = getppid; kill CONT => $p while 1' & done; \
            echo up; while :; do kill -CONT $! $!; done";
        let (_group, first) = Group::start("sh", &["-c", script]);
        soon("all run", || all(first).len() == 3);
        for _ in 0..20 {
            let mut stop = Stop::Signals { first, stopped: Vec::new() };
            stop.freeze().unwrap();
            for pid in all(first) {
                assert_eq!(motion(pid), Motion::Still, "{pid}");
            }
            stop.resume().unwrap();
            soon("control: they go on", || all(first).iter().all(|p| motion(*p) == Motion::Moves));
        }
    }

    #[test]
    fn what_cannot_be_frozen_does_not_go_on() {
        let (_group, first) = Group::start("sh", &["-c", "sleep 60 & echo up; wait"]);
        soon("all run", || all(first).len() == 2);
        let mut stopped = Vec::new();
        // No time for it: the first is told, and then it is given up.
        let none = (CERTAIN, Instant::now());
        assert_eq!(stop_all(first, &mut stopped, none).unwrap_err().kind, ErrorKind::TimedOut);
        soon("what was told stays stopped", || motion(first) == Motion::Still);
        let mut stop = Stop::Signals { first, stopped };
        stop.pause().unwrap();
        stop.resume().unwrap();
        soon("control: a pause can be resumed", || motion(first) == Motion::Moves);
    }
}

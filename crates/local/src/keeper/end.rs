//! The end of a kept sandbox, in the order in which nothing is lost and nothing left.

use super::exec::LastWord;
use super::journal::Journal;
use super::keep::Keeper;
use super::serve::Conn;
use crate::clearing;
use crate::plan::Tier;
use cofferdam_core::{Cause, DestroyReason, Ending, Happened};
use cofferdam_wire::message::ToProcess;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, pidfd_send_signal};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How long the killed sandbox is waited for. The kernel takes milliseconds, and longer only to give
/// gigabytes back.
const GONE_WITHIN: Duration = Duration::from_secs(60);

/// How long the guest may take to kill all commands.
const KILLED_WITHIN: Duration = Duration::from_secs(5);
/// How much of the paths of control files that appeared is written down.
const MAX_PATHS_BYTES: usize = 4096;
/// The longest pause between two looks at that.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// What is left of a keeper when its sandbox is gone.
pub(super) struct Left {
    pub(super) journal: Journal,
    pub(super) conns: BTreeMap<u64, Conn>,
}

impl Keeper<'_> {
    /// Ends the sandbox and notes what became of its commands.
    pub(super) fn leave(mut self, reason: DestroyReason) -> Left {
        if self.assembly.planned.tier == Tier::Landlock {
            self.have_all_killed();
        }
        let _ = pidfd_send_signal(&self.born.pidfd, Signal::KILL);
        // ORDER: after the kill, so that nothing runs again.
        if self.paused.is_some() || self.alarm.is_some() {
            let _ = self.stop.resume();
        }
        if let Some(process) = &self.reclaiming {
            let _ = pidfd_send_signal(process, Signal::KILL);
        }
        if !self.is_gone() {
            let what = "the sandbox's first process does not go away".to_owned();
            self.journal.add(Happened::Leftover(what));
        }
        // What the guest said before it died counts.
        self.hear();
        for channel in self.execs.channels() {
            if self.execs.on(channel).is_some_and(|exec| exec.has_ended()) {
                self.empty(channel);
                continue;
            }
            let killed = self.execs.on(channel).and_then(|exec| exec.live.as_ref()?.killed);
            let ending = match killed {
                Some((why, _)) => super::exec::with_kill(Ending::Signaled(9), Some(why)),
                None => ending(reason),
            };
            self.end(channel, ending, LastWord::default());
        }
        self.answer_parked();
        Left { journal: self.journal, conns: self.conns }
    }

    /// Has the guest kill every command, where the kernel does not end them with it.
    fn have_all_killed(&mut self) {
        if self.paused.take().is_some() {
            let _ = self.stop.resume();
        }
        let until = Instant::now() + KILLED_WITHIN;
        for channel in self.execs.channels() {
            self.line.message(channel, &ToProcess::Kill, Vec::new());
        }
        while !self.execs.channels().is_empty() && Instant::now() < until {
            let is_lost = self.line.flush().is_err();
            let mut wait = [PollFd::from_borrowed_fd(self.line.socket(), PollFlags::IN)];
            if is_lost || poll(&mut wait, Some(&LOOK)) == Ok(1) && !self.hears() {
                return;
            }
        }
    }

    /// Whether the guest is still there after what it says now was heard.
    fn hears(&mut self) -> bool {
        let before = self.over.take();
        self.hear();
        let lost = self.over.is_some();
        self.over = before;
        !lost
    }

    fn is_gone(&self) -> bool {
        clearing::is_gone(self.born.pid, &self.born.pidfd, GONE_WITHIN).unwrap_or(false)
    }
}

/// The first of these paths, as many as the journal takes.
// HOSTILE: commands chose the paths, and their number.
pub(super) fn first_paths(paths: Vec<String>) -> Vec<String> {
    let mut room = MAX_PATHS_BYTES;
    let fits = |path: &String| {
        let fits = path.len() < room;
        room = room.saturating_sub(path.len() + 1);
        fits
    };
    paths.into_iter().take_while(fits).collect()
}

/// How a command ended that ran until its sandbox ended.
fn ending(reason: DestroyReason) -> Ending {
    match reason {
        DestroyReason::Timeout => Ending::Killed(Cause::Time),
        DestroyReason::Lease => Ending::Killed(Cause::Lease),
        DestroyReason::Success | DestroyReason::Error | DestroyReason::Canceled => Ending::Canceled,
        DestroyReason::Lost => Ending::Lost,
    }
}

/// Tells those who asked for the end that it has come.
pub(super) fn say_farewell(conns: &mut BTreeMap<u64, Conn>) {
    for conn in conns.values_mut() {
        conn.say_farewell();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_paths_the_first_are_written_down() {
        let path = "p".repeat(999);
        assert_eq!(first_paths(vec![path.clone(); 9]).len(), 4);
        assert_eq!(first_paths(vec![path.clone(); 2]), [path.clone(), path]);
    }
}

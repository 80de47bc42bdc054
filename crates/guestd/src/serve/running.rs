//! A command from its request to its report.

use crate::monitor::Monitor;
use crate::process::{Starting, not_started};
use crate::{reap, sys};
use cofferdam_wire::message::{Descendants, Ended, FromProcess, How, News, NotStarted, Spawn};
use rustix::fd::OwnedFd;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// The most signals that are kept for a command that is just starting.
const MAX_EARLY_SIGNALS: usize = 16;

/// How long a start is waited for, while nothing else is served. Somebody inside may stop the
/// process before it runs its program, as often as it is continued.
const START_PATIENCE: Duration = Duration::from_millis(50);

/// How long a command that is told of together may take before it is looked after. Most have ended.
///
/// Longer than the kernel's tick (4 ms at 250 Hz). A wait that ends before the next tick programs the
/// processor's clock, and again when it is given up; on a virtual machine that costs each command more
/// than all else that is added to it.
const LEFT_ALONE: Duration = Duration::from_millis(5);

/// How long a monitor may take to tell of an end. Somebody inside may stop it.
const TELLS_WITHIN: Duration = Duration::from_secs(1);

/// How often a process is looked at that is kept from running its program.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// A command that runs, or whose end was not reported yet.
pub(super) struct Running {
    pub(super) id: String,
    /// The command's process and its group. 0 until a monitor has said it.
    pub(super) leader: i32,
    /// Until its process is seen to run its program.
    starting: Option<Starting>,
    /// When to look at it next.
    look_at: Option<Instant>,
    pub(super) monitor: Option<Monitor>,
    pub(super) master: Option<OwnedFd>,
    pub(super) descendants: Descendants,
    pub(super) news: News,
    deadline: Option<Instant>,
    pub(super) timed_out: bool,
    /// It and all its descendants are to go.
    is_killed: bool,
    pub(super) ended: Option<Ended>,
    told: Told,
    /// Why its program could not be run, where its process has ended by that.
    pub(super) not_started: Option<NotStarted>,
    /// Signals that came before the command's group was known.
    early: Vec<i32>,
    /// Channels that still carry its output.
    pub(super) outputs: BTreeSet<u32>,
}

/// What the host knows of the end of a command whose descendants stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Nothing,
    /// That it ended and left something.
    End,
    /// That it ended and left nothing.
    All,
}

/// What a look at a command found.
pub(super) enum Look {
    /// Its program runs, which the host waits to hear.
    Started(i32),
    /// Nothing to tell.
    Nothing,
}

impl Running {
    pub(super) fn new(spawn: &Spawn) -> Self {
        let timeout = spawn.timeout_ms.map(Duration::from_millis);
        Self {
            id: spawn.id.clone(),
            leader: 0,
            starting: None,
            look_at: None,
            monitor: None,
            master: None,
            descendants: spawn.descendants,
            news: spawn.news,
            deadline: timeout.and_then(|timeout| Instant::now().checked_add(timeout)),
            timed_out: false,
            is_killed: false,
            ended: None,
            told: Told::Nothing,
            not_started: None,
            early: Vec::new(),
            outputs: BTreeSet::new(),
        }
    }

    /// Takes its process. An error where it ended without running the program, and is gone.
    pub(super) fn begin(&mut self, starting: Starting) -> Result<Look, NotStarted> {
        self.leader = starting.pid();
        let wait = match self.news {
            News::AtOnce if starting.settle(Some(START_PATIENCE)) => {
                return match not_started(&starting) {
                    None => Ok(Look::Started(self.leader)),
                    Some(why) => {
                        let _ = sys::wait4(self.leader, 0);
                        Err(why)
                    }
                };
            }
            News::AtOnce => LOOK_AGAIN,
            News::Together => LEFT_ALONE,
        };
        self.starting = Some(starting);
        self.look_at = Instant::now().checked_add(wait);
        Ok(Look::Nothing)
    }

    /// When it needs something without being asked.
    pub(super) fn next_time(&self) -> Option<Instant> {
        let deadline = self.deadline.filter(|_| !self.timed_out);
        deadline.into_iter().chain(self.look_at).min()
    }

    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.look_at.is_some_and(|at| at <= now)
    }

    pub(super) fn is_overdue(&self, now: Instant) -> bool {
        let over = self.deadline.is_some_and(|deadline| deadline <= now);
        over && !self.timed_out && (self.ended.is_none() || self.told == Told::End)
    }

    /// Sees whether the program runs by now, and goes on for a process that somebody stopped.
    pub(super) fn look(&mut self, now: Instant) -> Look {
        self.look_at = None;
        if self.is_killed {
            self.kill_monitor();
        }
        match &self.starting {
            Some(starting) if !starting.is_settled() => {
                let _ = sys::kill(starting.pid(), libc::SIGCONT);
                self.look_at = now.checked_add(LOOK_AGAIN);
                Look::Nothing
            }
            // Its end tells why.
            Some(starting) if starting.failure().is_some() => Look::Nothing,
            Some(_) => self.has_started(self.leader),
            None => Look::Nothing,
        }
    }

    /// The program runs, as this process.
    pub(super) fn has_started(&mut self, leader: i32) -> Look {
        self.leader = leader;
        self.starting = None;
        for signal in self.early.drain(..) {
            let _ = sys::kill(-leader, signal);
        }
        match self.news {
            News::AtOnce => Look::Started(leader),
            News::Together => Look::Nothing,
        }
    }

    /// Its monitor says how it ended.
    pub(super) fn end(&mut self, ended: Ended) {
        self.leader = 0;
        self.ended = Some(ended);
        if self.is_killed {
            // What is below it comes to us.
            self.kill_monitor();
        }
    }

    /// Its monitor is gone. One that said nothing about the end was killed from inside.
    pub(super) fn lose_monitor(&mut self) {
        if self.ended.is_none() {
            self.kill();
            self.end(Ended {
                how: How::Signaled(libc::SIGKILL),
                timed_out: false,
                killed_descendants: 0,
                cpu_us: 0,
                peak_rss_bytes: 0,
                left_below: None,
            });
        }
        if let Some(monitor) = &mut self.monitor {
            monitor.is_gone = true;
        }
    }

    /// Whether it has ended, and what it leaves has come to us.
    pub(super) fn is_over(&self) -> bool {
        let has_monitor = self.monitor.as_ref().is_some_and(|monitor| !monitor.is_gone);
        let waits = match self.descendants {
            Descendants::Die | Descendants::Stay => has_monitor,
            // The kernel ends them.
            Descendants::DieWithSandbox => false,
        };
        self.ended.is_some() && !waits
    }

    /// The end of one whose descendants stay, once, as soon as it is known. One that was killed ends
    /// when they are gone.
    pub(super) fn untold_end(&mut self) -> Option<Ended> {
        match self.descendants {
            Descendants::Stay if self.told == Told::Nothing && !self.is_killed => {
                let ended = self.ended.clone()?;
                self.told = if ended.left_below.is_some() { Told::End } else { Told::All };
                Some(ended)
            }
            Descendants::Stay | Descendants::Die | Descendants::DieWithSandbox => None,
        }
    }

    /// The last word about one that is over, unless it was said.
    pub(super) fn last_word(self) -> Option<FromProcess> {
        match (self.told, self.not_started, self.ended) {
            (Told::All, ..) => None,
            (Told::End, ..) => Some(FromProcess::Emptied),
            (Told::Nothing, Some(why), _) => Some(FromProcess::NotStarted(why)),
            (Told::Nothing, None, ended) => {
                ended.map(|ended| FromProcess::Ended(Ended { left_below: None, ..ended }))
            }
        }
    }

    /// Its process was waited for.
    pub(super) fn has_ended(&mut self, ended: Ended) -> Look {
        let leader = std::mem::take(&mut self.leader);
        self.ended = Some(ended);
        self.look_at = None;
        let Some(starting) = self.starting.take() else { return Look::Nothing };
        starting.is_reaped();
        self.not_started = not_started(&starting);
        match (self.news, &self.not_started) {
            (News::AtOnce, None) => Look::Started(leader),
            (News::AtOnce | News::Together, _) => Look::Nothing,
        }
    }

    /// Sends a signal to its group, once there is one; to all that it left, if it has ended.
    pub(super) fn signal(&mut self, signal: i32) {
        if self.ended.is_some() {
            return self.signal_what_is_left(signal);
        }
        let has_group = self.starting.as_ref().is_none_or(Starting::is_settled);
        if self.leader > 0 && has_group {
            let _ = sys::kill(-self.leader, signal);
        } else if self.early.len() < MAX_EARLY_SIGNALS {
            self.early.push(signal);
        }
    }

    fn signal_what_is_left(&mut self, signal: i32) {
        match (&self.monitor, self.told) {
            (Some(_), Told::End) if signal == libc::SIGKILL => self.kill(),
            (Some(monitor), Told::End) if !monitor.is_gone => {
                for pid in reap::descendants(monitor.pid) {
                    let _ = sys::kill(pid, signal);
                }
            }
            (Some(_) | None, Told::Nothing | Told::End | Told::All) => {}
        }
    }

    /// Kills it with all its descendants: those that it does not gather itself come to us when it, or
    /// its monitor, is gone.
    pub(super) fn kill(&mut self) {
        self.is_killed = true;
        if self.leader == 0 {
            return self.kill_monitor();
        }
        let _ = sys::kill(-self.leader, libc::SIGKILL);
        let _ = sys::kill(self.leader, libc::SIGKILL);
        if let Some(monitor) = &self.monitor {
            // It tells how the command ended before it goes.
            let _ = sys::kill(monitor.pid, libc::SIGCONT);
            self.look_at = Instant::now().checked_add(TELLS_WITHIN);
        }
    }

    fn kill_monitor(&self) {
        if let Some(monitor) = self.monitor.as_ref().filter(|monitor| !monitor.is_gone) {
            let _ = sys::kill(monitor.pid, libc::SIGKILL);
        }
    }
}

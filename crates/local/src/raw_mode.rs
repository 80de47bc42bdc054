//! The caller's terminal passing every key on.

use crate::sys::{group_of, session_of};
use rustix::process::{Signal, getpid, kill_current_process_group};
use rustix::stdio::stdin;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr};

/// To the kernel, this process.
const OURS: i32 = 0;

/// The modes of the terminal at standard input. Where that is none, nothing is done to it.
///
/// Makes them as they were when it is dropped.
#[derive(Debug)]
pub struct RawMode {
    before: Option<Termios>,
    is_on: bool,
}

impl RawMode {
    /// Remembers the modes and changes nothing yet.
    #[must_use]
    pub fn off() -> Self {
        Self { before: tcgetattr(stdin()).ok(), is_on: false }
    }

    /// Whether every key is passed on.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// Passes every key on.
    pub fn enter(&mut self) {
        if !self.is_on {
            self.enter_anew();
        }
    }

    /// The same though it seems so already: somebody else may have set other modes since.
    pub fn enter_anew(&mut self) {
        if let Some(before) = &self.before {
            let mut raw = before.clone();
            raw.make_raw();
            self.is_on = tcsetattr(stdin(), OptionalActions::Drain, &raw).is_ok();
        }
    }

    /// Makes the modes as they were.
    pub fn leave(&mut self) {
        if let Some(before) = self.before.as_ref().filter(|_| self.is_on) {
            let _ = tcsetattr(stdin(), OptionalActions::Drain, before);
            self.is_on = false;
        }
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Stops this program with the rest of its job, as the key that does so would: a shell that waits for one of them waits
/// for all. Where nobody could call the job back, nothing is stopped.
pub fn stop_job() {
    if is_job() {
        let _ = kill_current_process_group(Signal::STOP);
    }
}

/// Whether the terminal at standard input is somebody else's for now: what is typed there is for others, and whoever
/// changes its modes is stopped.
#[must_use]
pub fn is_in_background() -> bool {
    // Fails where it is the terminal of no session, or of another one.
    tcgetpgrp(stdin()).is_ok_and(|group| Some(group.as_raw_pid()) != group_of(OURS))
}

/// Whether somebody outside of our process group, but at its terminal, looks after it: a shell that can call
/// it back. Who is alone there (`ssh -t host cofferdam …`) is stopped by no key, nor are other programs.
fn is_job() -> bool {
    let (own, session) = (group_of(OURS), session_of(OURS));
    let mut above = parent(getpid().as_raw_pid());
    while let Some(pid) = above {
        if group_of(pid) != own {
            return session.is_some() && session_of(pid) == session;
        }
        above = parent(pid);
    }
    false
}

/// None where it is outside of our pid namespace.
fn parent(pid: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before it may hold anything, so that only its end counts.
    let (_, after) = stat.rsplit_once(')')?;
    after.split_whitespace().nth(1)?.parse().ok().filter(|pid| *pid > 0)
}

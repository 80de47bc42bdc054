//! The caller's terminal passing every key on.

use rustix::process::{Signal, getpgrp, getpid, getsid, kill_current_process_group, kill_process};
use rustix::stdio::stdin;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

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
/// for all.
pub fn stop_job() {
    // The group of who leads the session is nobody's job, but whoever started us may look after us alone.
    let _ = match getsid(None).is_ok_and(|session| session != getpgrp()) {
        true => kill_current_process_group(Signal::STOP),
        false => kill_process(getpid(), Signal::STOP),
    };
}

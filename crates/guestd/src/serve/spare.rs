//! What is made before it is needed, and thrown away after somebody waited for it.
//!
//! A command that ends at once costs little more than a few descriptors made and closed. They are
//! made and closed while nobody waits.

use crate::relay::Relay;
use rustix::fd::OwnedFd;
use rustix::io::Result;
use rustix::pipe::{PipeFlags, pipe_with};

/// How many pipes are kept: a command's standard output and standard error.
const SPARE_PIPES: usize = 2;

/// How many descriptors may wait to be closed. They may wait long where something always happens.
const MAX_DONE: usize = 16;

/// Reading end, which does not block, and writing end.
pub(super) type Pipe = (OwnedFd, OwnedFd);

/// Pipes for the next command, and what is left of the last one.
#[derive(Default)]
pub(super) struct Spare {
    pipes: Vec<Pipe>,
    done: Vec<Relay>,
    is_wanted: bool,
}

impl Spare {
    /// A pipe for output.
    pub(super) fn pipe(&mut self) -> Result<Pipe> {
        self.is_wanted = true;
        self.pipes.pop().map_or_else(fresh, Ok)
    }

    /// Takes what is to be closed.
    pub(super) fn throw_away(&mut self, relay: Relay) {
        self.is_wanted = true;
        if self.done.len() < MAX_DONE {
            self.done.push(relay);
        }
    }

    /// Whether there is something to do while nobody waits.
    pub(super) fn is_wanted(&self) -> bool {
        self.is_wanted
    }

    /// Does it. What fails now is tried again when it is needed.
    pub(super) fn refill(&mut self) {
        self.is_wanted = false;
        self.done.clear();
        while self.pipes.len() < SPARE_PIPES {
            let Ok(pipe) = fresh() else { return };
            self.pipes.push(pipe);
        }
    }
}

fn fresh() -> Result<Pipe> {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&reader, true)?;
    Ok((reader, writer))
}

//! The counters of why something dies, held open: they are read for every command.

use super::directory::{Group, counter};
use super::groups::Causes;
use rustix::fd::OwnedFd;

/// The counters of one sandbox. Reading them when the groups are gone tells nothing.
#[derive(Debug, Default)]
pub struct Counters {
    pub(super) memory: Option<Counter>,
    pub(super) pids: Option<Counter>,
}

/// A number in a file of lines of a word and a number.
#[derive(Debug)]
pub(super) struct Counter {
    file: OwnedFd,
    word: &'static str,
}

/// More than any of these files holds.
const MOST_BYTES: usize = 1024;

impl Counters {
    /// What they say now.
    pub fn read(&self) -> Causes {
        Causes {
            oom_kills: self.memory.as_ref().and_then(Counter::read),
            pids_hits: self.pids.as_ref().and_then(Counter::read),
        }
    }
}

impl Counter {
    pub(super) fn open(group: &Group, name: &str, word: &'static str) -> Option<Self> {
        Some(Self { file: group.open_to_read(name)?, word })
    }

    fn read(&self) -> Option<u64> {
        let mut bytes = [0; MOST_BYTES];
        let count = rustix::io::pread(&self.file, &mut bytes, 0).ok()?;
        counter(std::str::from_utf8(bytes.get(..count)?).ok()?, self.word)
    }
}

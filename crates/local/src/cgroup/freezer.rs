//! What stops a kept sandbox where it stands, held open: a pause is to take microseconds.

use super::directory::{Group, Wait};
use super::groups::Cgroups;
use cofferdam_core::{Error, ErrorKind, Result};
use rustix::fd::OwnedFd;
use std::time::Duration;

/// How long freezing may take. It needs a slice of the processor for every thread.
const FREEZE_WITHIN: Duration = Duration::from_secs(2);
/// More than any of these files holds.
const MOST_BYTES: usize = 1024;

/// The kernel's freezer for one sandbox.
#[derive(Debug)]
pub struct Freezer {
    control: OwnedFd,
    state: OwnedFd,
    words: Words,
}

/// How a version of control groups is told to freeze, and how it says that it is so.
#[derive(Debug)]
struct Words {
    freeze: (&'static [u8], &'static str),
    thaw: (&'static [u8], &'static str),
}

const V1: Words = Words { freeze: (b"FROZEN", "FROZEN"), thaw: (b"THAWED", "THAWED") };
const V2: Words = Words { freeze: (b"1", "frozen 1"), thaw: (b"0", "frozen 0") };

impl Cgroups {
    /// The kernel's freezer, where there is one for this sandbox.
    pub fn freezer(&self) -> Option<Freezer> {
        let open = |group: &Group, control: &str, state: &str, words| {
            let control = group.open_to_write(control).ok()?;
            Some(Freezer { control, state: group.open_to_read(state)?, words })
        };
        let v2 = self.unified_group().and_then(|g| open(g, "cgroup.freeze", "cgroup.events", V2));
        v2.or_else(|| open(self.v1_with(|c| c.freezer)?, "freezer.state", "freezer.state", V1))
    }

    /// A file, and what to write to it, by which the kernel gives back what memory it can.
    pub(crate) fn reclaim(&self) -> Option<(OwnedFd, Vec<u8>)> {
        if let Some(group) = self.unified_group()
            && let Some(used) = group.number("memory.current")
            && let Ok(file) = group.open_to_write("memory.reclaim")
        {
            return Some((file, used.to_string().into_bytes()));
        }
        let group = self.v1_with(|c| c.memory)?;
        Some((group.open_to_write("memory.force_empty").ok()?, b"0".to_vec()))
    }
}

impl Freezer {
    /// Stops every process where it is, and returns when all stand. Repeating it changes nothing.
    pub fn freeze(&self) -> Result<()> {
        self.bring(self.words.freeze)
    }

    /// Lets every process go on.
    pub fn thaw(&self) -> Result<()> {
        self.bring(self.words.thaw)
    }

    fn bring(&self, (word, state): (&[u8], &str)) -> Result<()> {
        let mut wait = Wait::new(FREEZE_WITHIN);
        loop {
            // Writing it again is how a version 1 freeze that met a moving process is taken up again.
            rustix::io::pwrite(&self.control, word, 0).map_err(|errno| {
                Error::new(ErrorKind::Io, "freeze or thaw the sandbox")
                    .source(std::io::Error::from(errno))
            })?;
            // The kernel tells of changes at most every 10 ms, so looking again is faster than
            // being told.
            if self.says(state) {
                return Ok(());
            }
            if !wait.again() {
                let what = format!("bring the sandbox's processes to {state:?}");
                return Err(Error::new(ErrorKind::TimedOut, what));
            }
        }
    }

    fn says(&self, state: &str) -> bool {
        let mut bytes = [0; MOST_BYTES];
        let count = rustix::io::pread(&self.state, &mut bytes, 0).unwrap_or(0);
        let text = bytes.get(..count).and_then(|text| std::str::from_utf8(text).ok());
        text.is_some_and(|text| text.lines().any(|line| line.trim() == state))
    }
}

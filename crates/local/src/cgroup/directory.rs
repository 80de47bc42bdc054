//! One group, as the directory that it is.

use crate::kernel_text::text_of;
use crate::state::{io, retry};
use cofferdam_core::{Error, ErrorKind, Result};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Signal};
use rustix::thread::set_current_timer_slack;
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a group is given to become empty after all in it was killed. Processes end within
/// milliseconds; freeing gigabytes of memory takes longer.
const EMPTY_WITHIN: Duration = Duration::from_secs(10);
/// How many looks are made in turn with who else has work to do, before there is a pause between them: what
/// stands still or ends at once is seen at once.
const EAGER_LOOKS: u32 = 16;
/// The first pause between two looks; it doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_micros(50);
/// The longest pause between two looks.
const LONGEST_PAUSE: Duration = Duration::from_millis(10);

/// A group that was made here.
#[derive(Debug)]
pub(super) struct Group {
    path: PathBuf,
    directory: OwnedFd,
}

impl Group {
    /// Makes the group. One that is there already is an error: it is somebody else's.
    pub(super) fn make(path: PathBuf) -> Result<Self> {
        rustix::fs::mkdirat(CWD, &path, Mode::from_raw_mode(0o755))
            .map_err(|e| io("make the control group", &path, e))?;
        match open_directory(&path) {
            Ok(directory) => Ok(Self { path, directory }),
            Err(e) => {
                // The error of opening it is the one that matters.
                let _ = std::fs::remove_dir(&path);
                Err(io("open the control group", &path, e))
            }
        }
    }

    /// A group that somebody made; `None` where it is not there.
    pub(super) fn find(path: PathBuf) -> Result<Option<Self>> {
        match open_directory(&path) {
            Ok(directory) => Ok(Some(Self { path, directory })),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(e) => Err(io("open the control group", &path, e)),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Another descriptor of the directory.
    pub(super) fn directory(&self) -> Result<OwnedFd> {
        self.directory.try_clone().map_err(|e| {
            Error::new(ErrorKind::Io, format!("copy a descriptor of {}", self.path.display()))
                .source(e)
        })
    }

    /// Opens one of its files for writing. What may be written is checked against who opened it.
    pub(super) fn open_to_write(&self, name: &str) -> Result<OwnedFd> {
        self.open(name, OFlags::WRONLY).map_err(|e| io("open", &self.path.join(name), e))
    }

    pub(super) fn write(&self, name: &str, value: &str) -> Result<()> {
        self.try_write(name, value)
            .map_err(|e| io(&format!("write {value:?} to"), &self.path.join(name), e))
    }

    /// Writes where the kernel has this file at all.
    pub(super) fn write_if_there(&self, name: &str, value: &str) -> Result<()> {
        match self.try_write(name, value) {
            Err(Errno::NOENT) => Ok(()),
            other => {
                other.map_err(|e| io(&format!("write {value:?} to"), &self.path.join(name), e))
            }
        }
    }

    pub(super) fn try_write(&self, name: &str, value: &str) -> Result<(), Errno> {
        let file = self.open(name, OFlags::WRONLY)?;
        retry(|| rustix::io::write(&file, value.as_bytes())).map(|_| ())
    }

    /// Opens one of its files for reading; `None` where it cannot be read.
    pub(super) fn open_to_read(&self, name: &str) -> Option<OwnedFd> {
        self.open(name, OFlags::RDONLY).ok()
    }

    /// What one of its files says; `None` where it cannot be read.
    pub(super) fn read(&self, name: &str) -> Option<String> {
        text_of(self.open_to_read(name)?).ok()
    }

    /// The number in a file of one number.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.read(name)?.trim().parse().ok()
    }

    /// The number behind a word, in a file of lines of a word and a number.
    pub(super) fn counter(&self, name: &str, word: &str) -> Option<u64> {
        counter(&self.read(name)?, word)
    }

    /// Kills all that is in it, once. Says how many there were.
    pub(super) fn kill_each(&self) -> usize {
        self.signal_each(Signal::KILL)
    }

    /// Sends a signal to all that is in it, once. Says how many there were.
    pub(super) fn signal_each(&self, signal: Signal) -> usize {
        let text = self.read("cgroup.procs").unwrap_or_default();
        let pids = text.split_whitespace().filter_map(|word| word.parse().ok());
        // A process of another pid namespace reads as 0.
        let pids = pids.filter_map(Pid::from_raw);
        pids.filter(|pid| rustix::process::kill_process(*pid, signal).is_ok()).count()
    }

    /// Removes it, after killing whatever is still in it. A group that is gone is removed. That it
    /// could be removed is the proof that it was empty.
    pub(super) fn remove(&self) -> Result<()> {
        let mut wait = Wait::new(EMPTY_WITHIN);
        loop {
            match rustix::fs::unlinkat(CWD, &self.path, rustix::fs::AtFlags::REMOVEDIR) {
                Ok(()) | Err(Errno::NOENT) => return Ok(()),
                Err(Errno::BUSY) if wait.again() => {
                    if self.try_write("cgroup.kill", "1").is_err() {
                        // Where this is the group that counts processes, a fork bomb ends here.
                        let _ = self.try_write("pids.max", "0");
                        self.kill_each();
                    }
                }
                Err(e) => return Err(io("remove the control group", &self.path, e)),
            }
        }
    }

    fn open(&self, name: &str, access: OFlags) -> Result<OwnedFd, Errno> {
        rustix::fs::openat(&self.directory, name, access | OFlags::CLOEXEC, Mode::empty())
    }
}

/// Looks at something again and again, with growing pauses, until a deadline.
#[derive(Debug)]
pub(super) struct Wait {
    until: Instant,
    eager: u32,
    pause: Duration,
}

impl Wait {
    pub(super) fn new(within: Duration) -> Self {
        Self { until: Instant::now() + within, eager: EAGER_LOOKS, pause: FIRST_PAUSE }
    }

    /// Pauses, and says whether there is time for another look.
    pub(super) fn again(&mut self) -> bool {
        if Instant::now() >= self.until {
            return false;
        }
        if let Some(eager) = self.eager.checked_sub(1) {
            self.eager = eager;
            std::thread::yield_now();
            return true;
        }
        // The kernel adds up to 50 µs to a sleep otherwise, as much again as the first one.
        let _ = set_current_timer_slack(NonZeroU64::new(1));
        sleep(self.pause);
        let _ = set_current_timer_slack(None);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        true
    }
}

fn open_directory(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(CWD, path, flags, Mode::empty())
}

pub(super) fn counter(text: &str, word: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(word)?.strip_prefix(' ')?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_found_by_their_whole_word() {
        let text = "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n";
        assert_eq!(counter(text, "oom_kill"), Some(3));
        assert_eq!(counter(text, "oom"), None);
        assert_eq!(counter("max x\n", "max"), None);
    }
}

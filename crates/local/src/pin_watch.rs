//! Notices when the host takes a pinned name away.
//!
//! A pin is a mount over a name. When somebody on the host renames another file over the name, as
//! `git config` does, or removes it, the kernel drops the mount in every sandbox, and the name is
//! open there. So the keeper of a sandbox watches the directories that pinned names are in, and pins
//! again what [`PinWatch::changed`] tells. A user may have used up the kernel's watches, which is so beyond 128
//! sandboxes by default: then it looks every few milliseconds, while something runs inside that could profit.

use crate::control_files::PinnedName;
use crate::placeholders::Identity;
use crate::state::io;
use cofferdam_core::{Error, ErrorKind, Result};
use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Room for some hundred notices at once.
const BUFFER_BYTES: usize = 8 * 1024;
/// How many notices are taken at once. Programs inside cause them too, as fast as they can.
const MAX_NOTICES: usize = 4096;

/// How often is looked where nothing notices, in nanoseconds. Some thirty names take 50 µs.
const LOOK_EVERY_NS: i64 = 5_000_000;
/// The same where nothing runs inside. It adds up: there may be hundreds of such sandboxes.
const LOOK_AT_REST_EVERY_NS: i64 = 50_000_000;

/// What stands at the pinned names now.
pub(crate) fn identities(
    workspace: BorrowedFd<'_>,
    pins: &[PinnedName],
) -> Result<BTreeMap<String, Option<Identity>>> {
    let identity = |pin: &PinnedName| {
        let identity = Identity::of(workspace, &pin.path)
            .map_err(|e| io("look at the pinned name", Path::new(&pin.path), e))?;
        Ok((pin.path.clone(), identity))
    };
    pins.iter().map(identity).collect()
}

/// Watches the pinned names of one workspace.
#[derive(Debug)]
pub struct PinWatch {
    workspace: OwnedFd,
    eyes: Eyes,
    known: BTreeMap<String, Option<Identity>>,
    /// Which directory a notice is about.
    watched: BTreeMap<i32, String>,
}

/// By what changes are seen.
#[derive(Debug)]
enum Eyes {
    Notices(Notices),
    Clock(OwnedFd),
}

impl Eyes {
    /// Becomes readable every few milliseconds.
    fn clock() -> Result<Self> {
        use rustix::time::{TimerfdClockId, TimerfdFlags, timerfd_create};
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let clock = timerfd_create(TimerfdClockId::Monotonic, flags).map_err(no_clock)?;
        set(&clock, LOOK_EVERY_NS)?;
        Ok(Self::Clock(clock))
    }
}

/// Has a clock become readable so often.
fn set(clock: &OwnedFd, every_ns: i64) -> Result<()> {
    use rustix::time::{Itimerspec, TimerfdTimerFlags, Timespec, timerfd_settime};
    let every = Timespec { tv_sec: 0, tv_nsec: every_ns };
    let times = Itimerspec { it_interval: every, it_value: every };
    timerfd_settime(clock, TimerfdTimerFlags::empty(), &times).map_err(no_clock)?;
    Ok(())
}

fn no_clock(errno: Errno) -> Error {
    Error::new(ErrorKind::Unavailable, "watch the pinned names of the workspace")
        .source(std::io::Error::from(errno))
}

/// An instance of inotify that others may have used before. Closing one takes the kernel
/// milliseconds, in which the caller's thread stands still; ending its watches takes microseconds.
type Notices = Arc<OwnedFd>;

/// Instances that nobody uses.
static SPARE: Mutex<Vec<Notices>> = Mutex::new(Vec::new());
/// As many as a busy process needs at a time. An ordinary user may have 128 by default.
const MAX_SPARE: usize = 16;

fn spare() -> MutexGuard<'static, Vec<Notices>> {
    SPARE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn take_notices() -> rustix::io::Result<Notices> {
    if let Some(notices) = spare().pop() {
        return Ok(notices);
    }
    let flags = CreateFlags::CLOEXEC | CreateFlags::NONBLOCK;
    rustix::fs::inotify::init(flags).map(Arc::new)
}

/// Reads to the end what was about ended watches. A busy directory may not let it come to that.
fn is_silent(notices: &OwnedFd) -> bool {
    let mut buffer = [0; BUFFER_BYTES];
    let mut reads = (0..MAX_NOTICES).map(|_| rustix::io::read(notices, &mut buffer));
    reads.find(std::result::Result::is_err) == Some(Err(Errno::AGAIN))
}

impl Drop for PinWatch {
    fn drop(&mut self) {
        let Eyes::Notices(notices) = &self.eyes else { return };
        for watch in self.watched.keys() {
            // A directory that is gone is watched no more.
            let _ = rustix::fs::inotify::remove_watch(notices, *watch);
        }
        if is_silent(notices) {
            let mut spare = spare();
            if spare.len() < MAX_SPARE {
                spare.push(Arc::clone(notices));
            }
        }
    }
}

/// What notices tell.
#[derive(Debug, Default)]
struct Noticed {
    /// Pinned names that something happened to.
    names: BTreeSet<String>,
    /// Some notices were lost, so that anything can have happened.
    lost: bool,
}

/// A pinned name that is not what it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedPin {
    /// Relative to the workspace.
    pub path: String,
    /// What is there now.
    pub now: Now,
}

/// What is at a name that changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Now {
    /// Another file or directory.
    Other,
    /// Nothing.
    Nothing,
}

impl PinWatch {
    /// Starts to watch. To be called when the placeholders are made and the pins are not yet, so that
    /// no change is missed.
    ///
    /// Where the user has too many watches already it looks by itself. Fails with
    /// [`ErrorKind::Unavailable`] where there is no clock for that either.
    pub fn new(workspace: BorrowedFd<'_>, pins: &[PinnedName]) -> Result<Self> {
        let eyes = match take_notices() {
            Ok(notices) => Eyes::Notices(notices),
            Err(_) => Eyes::clock()?,
        };
        Self::by(eyes, workspace, pins)
    }

    fn by(eyes: Eyes, workspace: BorrowedFd<'_>, pins: &[PinnedName]) -> Result<Self> {
        let workspace = workspace.try_clone_to_owned().map_err(|e| {
            Error::new(ErrorKind::Io, "copy a descriptor of the workspace").source(e)
        })?;
        let (known, watched) = (BTreeMap::new(), BTreeMap::new());
        let mut watch = Self { workspace, eyes, known, watched };
        // ORDER: watched before looked at, or a change in between is in neither.
        watch.watch(pins.iter().map(|pin| pin.path.as_str()))?;
        watch.known = identities(watch.workspace.as_fd(), pins)?;
        Ok(watch)
    }

    /// Becomes readable when something may have changed.
    pub fn fd(&self) -> BorrowedFd<'_> {
        match &self.eyes {
            Eyes::Notices(notices) => notices.as_fd(),
            Eyes::Clock(clock) => clock.as_fd(),
        }
    }

    /// Whether it looks by itself, which takes time though nothing happens.
    pub fn looks_by_itself(&self) -> bool {
        matches!(self.eyes, Eyes::Clock(_))
    }

    /// Looks less often while nothing runs inside, where it looks by itself.
    pub(crate) fn pace(&self, is_at_rest: bool) -> Result<()> {
        match &self.eyes {
            Eyes::Clock(clock) if is_at_rest => set(clock, LOOK_AT_REST_EVERY_NS),
            Eyes::Clock(clock) => set(clock, LOOK_EVERY_NS),
            Eyes::Notices(_) => Ok(()),
        }
    }

    /// The pinned names that changed since the last time, parents first. Never waits.
    pub fn changed(&mut self) -> Result<Vec<ChangedPin>> {
        let noticed = self.drain()?;
        if noticed.names.is_empty() && !noticed.lost {
            return Ok(Vec::new());
        }
        let mut changed = Vec::new();
        for (path, before) in &mut self.known {
            let now = Identity::of(self.workspace.as_fd(), path)
                .map_err(|e| io("look at the pinned name", Path::new(path), e))?;
            // A number and a time of birth can come again within one tick of the clock, so what was
            // noticed counts even if it looks the same.
            if now != *before || noticed.names.contains(path) {
                let what = if now.is_some() { Now::Other } else { Now::Nothing };
                changed.push(ChangedPin { path: path.clone(), now: what });
                *before = now;
            }
        }
        if !changed.is_empty() {
            // A directory that was exchanged is not watched any more.
            let paths: Vec<String> = self.known.keys().cloned().collect();
            self.watch(paths.iter().map(String::as_str))?;
        }
        Ok(changed)
    }

    /// Watches the directories that these names are in. One that is watched already stays so, one
    /// that is not there is seen by its own name.
    fn watch<'a>(&mut self, paths: impl Iterator<Item = &'a str>) -> Result<()> {
        let Eyes::Notices(notices) = &self.eyes else { return Ok(()) };
        let notices = Arc::clone(notices);
        let parents: BTreeSet<&str> =
            paths.map(|path| path.rsplit_once('/').map_or("", |(parent, _)| parent)).collect();
        let events = WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO
            | WatchFlags::ONLYDIR;
        for parent in parents {
            let path = format!("/proc/self/fd/{}/{parent}", self.workspace.as_raw_fd());
            match rustix::fs::inotify::add_watch(&notices, path, events) {
                Ok(watch) => {
                    self.watched.insert(watch, parent.to_owned());
                }
                Err(Errno::NOENT | Errno::NOTDIR) => {}
                // What was watched until now is looked at as well.
                Err(_) => {
                    self.eyes = Eyes::clock()?;
                    self.watched.clear();
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Takes the notices that are there.
    fn drain(&self) -> Result<Noticed> {
        let notices = match &self.eyes {
            Eyes::Notices(notices) => notices,
            Eyes::Clock(clock) => {
                let mut times = [0; 8];
                let is_time = rustix::io::read(clock, &mut times).is_ok();
                return Ok(Noticed { lost: is_time, ..Noticed::default() });
            }
        };
        let mut buffer = [MaybeUninit::uninit(); BUFFER_BYTES];
        let mut reader = Reader::new(notices, &mut buffer);
        let mut noticed = Noticed::default();
        for _ in 0..MAX_NOTICES {
            match reader.next() {
                Ok(event) => {
                    noticed.lost |= event.events().contains(ReadFlags::QUEUE_OVERFLOW);
                    let name = event.file_name().and_then(|name| name.to_str().ok());
                    let path = name.and_then(|name| self.pinned(event.wd(), name));
                    noticed.names.extend(path);
                }
                Err(Errno::AGAIN) => return Ok(noticed),
                Err(Errno::INTR) => {}
                Err(e) => return Err(io("read notices of", Path::new("the workspace"), e)),
            }
        }
        // What is left in the buffer is dropped.
        noticed.lost = true;
        Ok(noticed)
    }

    /// The pinned name that a notice is about, if it is about one.
    fn pinned(&self, watch: i32, name: &str) -> Option<String> {
        let parent = self.watched.get(&watch)?;
        let path = if parent.is_empty() { name.to_owned() } else { format!("{parent}/{name}") };
        self.known.contains_key(&path).then_some(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control_files;
    use crate::test_directory::TestDirectory;
    use rustix::event::{PollFd, PollFlags, poll};
    use std::fs;
    use std::process::Command;

    struct Fixture {
        directory: TestDirectory,
        watch: PinWatch,
    }

    fn fixture(name: &str) -> Fixture {
        let directory = TestDirectory::new(&format!("watch-{name}"));
        git(directory.path(), &["init", "-q", "."]);
        fs::create_dir(directory.path().join(".vscode")).unwrap();
        let workspace = fs::File::open(directory.path()).unwrap();
        let found = control_files::find(&workspace).unwrap();
        let watch = PinWatch::new(workspace.as_fd(), &found.pins).unwrap();
        Fixture { directory, watch }
    }

    fn git(directory: &Path, arguments: &[&str]) {
        let status = Command::new("git").args(arguments).current_dir(directory).status().unwrap();
        assert!(status.success());
    }

    fn changed(fixture: &mut Fixture) -> Vec<(String, Now)> {
        let changed = fixture.watch.changed().unwrap();
        changed.into_iter().map(|pin| (pin.path, pin.now)).collect()
    }

    #[test]
    fn git_config_on_the_host_is_noticed_each_time() {
        let mut fixture = fixture("config");
        assert_eq!(changed(&mut fixture), []);
        for turn in 0..5 {
            git(fixture.directory.path(), &["config", "user.name", &turn.to_string()]);
            assert_eq!(changed(&mut fixture), [(".git/config".to_owned(), Now::Other)]);
            assert_eq!(changed(&mut fixture), []);
        }
    }

    #[test]
    fn without_notices_it_looks_every_few_milliseconds() {
        let mut fixture = fixture("clock");
        let workspace = fs::File::open(fixture.directory.path()).unwrap();
        let found = control_files::find(&workspace).unwrap();
        fixture.watch =
            PinWatch::by(Eyes::clock().unwrap(), workspace.as_fd(), &found.pins).unwrap();
        assert_eq!(changed(&mut fixture), [], "it is not time yet");
        for turn in 0..3 {
            git(fixture.directory.path(), &["config", "user.name", &turn.to_string()]);
            let fd = fixture.watch.fd();
            let mut wait = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
            assert_eq!(poll(&mut wait, None), Ok(1));
            assert_eq!(changed(&mut fixture), [(".git/config".to_owned(), Now::Other)]);
        }
    }

    #[test]
    fn a_name_that_is_removed_or_comes_back_is_noticed() {
        let mut fixture = fixture("removed");
        let path = fixture.directory.path().join(".vscode");
        fs::remove_dir(&path).unwrap();
        assert_eq!(changed(&mut fixture), [(".vscode".to_owned(), Now::Nothing)]);
        fs::create_dir(&path).unwrap();
        assert_eq!(changed(&mut fixture), [(".vscode".to_owned(), Now::Other)]);
        fs::remove_dir(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert_eq!(changed(&mut fixture), [(".vscode".to_owned(), Now::Other)]);
    }

    #[test]
    fn a_directory_that_is_exchanged_is_watched_again() {
        let mut fixture = fixture("exchanged");
        let git_directory = fixture.directory.path().join(".git");
        fs::rename(&git_directory, fixture.directory.path().join("old")).unwrap();
        git(fixture.directory.path(), &["init", "-q", "."]);
        let names: Vec<String> = changed(&mut fixture).into_iter().map(|pin| pin.0).collect();
        assert!(names.contains(&".git".to_owned()) && names.contains(&".git/config".to_owned()));
        git(fixture.directory.path(), &["config", "user.name", "x"]);
        assert_eq!(changed(&mut fixture), [(".git/config".to_owned(), Now::Other)]);
    }

    #[test]
    fn other_files_and_writes_in_place_are_not_told() {
        let mut fixture = fixture("other");
        fs::write(fixture.directory.path().join("main.rs"), "x").unwrap();
        fs::write(fixture.directory.path().join(".git/config"), "").unwrap();
        fs::write(fixture.directory.path().join(".vscode/settings.json"), "").unwrap();
        assert_eq!(changed(&mut fixture), []);
    }
}

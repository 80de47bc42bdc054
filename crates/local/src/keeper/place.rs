//! The directory of a kept sandbox: journal, spools and socket, below `sessions` of the state
//! directory.
//!
//! A keeper holds a lock on the journal for as long as it lives. A directory gets its name only when
//! its journal is locked, so one whose journal can be locked has lost its keeper. A name that begins
//! with a dot is of a directory that is being made or removed.

use super::spool::{Ledger, Sink, counted};
use crate::gate;
use crate::oneshot::unique;
use crate::state::{StateDirectory, io, retry};
use cofferdam_core::{Error, ErrorKind, ProcessId, Result, SandboxId, Spooled, Standard};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

/// The folder of directories.
const SESSIONS: &str = "sessions";
/// Leads the name of a directory that is being removed.
const OLD: &str = ".old-";
const JOURNAL: &str = "journal";
const SOCKET: &str = "sock";
/// Names the first process of the sandbox, to wait for its end where the keeper died.
const FIRST: &str = "first";
/// How often a directory is made anew because a sweep took it away.
const ATTEMPTS: u32 = 16;
/// How often a lock is tried while somebody may only be looking.
const LOOKS: u32 = 100;
/// The pause between two such tries.
const LOOK: Duration = Duration::from_millis(2);
/// How long a killed first process is waited for.
const GONE_WITHIN: Timespec = Timespec { tv_sec: 60, tv_nsec: 0 };

/// The directory of one sandbox.
#[derive(Debug)]
pub(super) struct Place {
    path: PathBuf,
    directory: Arc<OwnedFd>,
}

impl Place {
    /// Makes the directory, and gives its locked journal.
    pub(super) fn make(state: &StateDirectory, id: &SandboxId) -> Result<(Self, OwnedFd)> {
        let sessions = sessions(state)?;
        let path = state.path().join(SESSIONS);
        keep_sweeps_away(&sessions);
        for _ in 0..ATTEMPTS {
            let hidden = format!(".new-{id}-{}", unique());
            match Self::try_make(&sessions, &hidden, id.as_str()) {
                Ok((directory, journal)) => {
                    let directory = Arc::new(directory);
                    return Ok((Self { path: path.join(id.as_str()), directory }, journal));
                }
                Err(Errno::EXIST) => {
                    let _ = remove(&path.join(&hidden));
                    return Err(Error::new(
                        ErrorKind::Conflict,
                        format!("a sandbox {id} is there already"),
                    )
                    .hint("Destroy it and forget it first, or choose another id."));
                }
                // A sweep took it for a dead one's.
                Err(Errno::NOENT | Errno::WOULDBLOCK) => {}
                Err(errno) => return Err(io("make a directory in", &path, errno)),
            }
        }
        Err(Error::new(ErrorKind::Unavailable, format!("the directory of {id} keeps vanishing")))
    }

    fn try_make(
        sessions: &OwnedFd,
        hidden: &str,
        name: &str,
    ) -> rustix::io::Result<(OwnedFd, OwnedFd)> {
        rustix::fs::mkdirat(sessions, hidden, Mode::RWXU)?;
        let directory = open_directory(sessions, hidden)?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let journal = rustix::fs::openat(&directory, JOURNAL, flags, Mode::RUSR | Mode::WUSR)?;
        rustix::fs::flock(&journal, FlockOperation::NonBlockingLockExclusive)?;
        rustix::fs::renameat_with(sessions, hidden, sessions, name, RenameFlags::NOREPLACE)?;
        Ok((directory, journal))
    }

    /// The directory of this sandbox, if there is one.
    pub(super) fn find(state: &StateDirectory, id: &SandboxId) -> Result<Option<Self>> {
        let path = state.path().join(SESSIONS).join(id.as_str());
        match open_directory(&sessions(state)?, id.as_str()) {
            Ok(directory) => Ok(Some(Self { path, directory: Arc::new(directory) })),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(io("open", &path, errno)),
        }
    }

    /// The same, where it has to be there.
    pub(super) fn get(state: &StateDirectory, id: &SandboxId) -> Result<Self> {
        Self::find(state, id)?.ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("sandbox {id} is not there, or forgotten"))
                .hint("List the sessions with `cofferdam ls`.")
        })
    }

    /// The ids of all directories.
    pub(super) fn all(state: &StateDirectory) -> Result<Vec<SandboxId>> {
        sessions(state)?;
        let path = state.path().join(SESSIONS);
        let entries = std::fs::read_dir(&path).map_err(|error| {
            Error::new(ErrorKind::Io, format!("list {}", path.display())).source(error)
        })?;
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let mut ids: Vec<_> = names.filter_map(|name| SandboxId::new(name).ok()).collect();
        ids.sort();
        Ok(ids)
    }

    /// The journal, to read; `None` where it is not there.
    pub(super) fn journal(&self) -> Result<Option<OwnedFd>> {
        match self.open(JOURNAL, OFlags::RDONLY) {
            Ok(file) => Ok(Some(file)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(io("open the journal in", &self.path, errno)),
        }
    }

    /// Whether a keeper holds it.
    pub(super) fn is_kept(&self) -> Result<bool> {
        let Some(journal) = self.journal()? else { return Ok(false) };
        // Shared, so that two who look do not see each other.
        match retry(|| rustix::fs::flock(&journal, FlockOperation::NonBlockingLockShared)) {
            Ok(()) => Ok(false),
            Err(Errno::WOULDBLOCK) => Ok(true),
            Err(errno) => Err(io("look at the lock in", &self.path, errno)),
        }
    }

    /// Takes the place of a dead keeper, and gives the locked journal. A keeper that lives is a
    /// conflict. To be called where waiting is allowed.
    pub(super) fn take_over(&self) -> Result<OwnedFd> {
        let journal = self
            .open(JOURNAL, OFlags::RDWR | OFlags::CREATE)
            .map_err(|errno| io("open the journal in", &self.path, errno))?;
        for _ in 0..LOOKS {
            match retry(|| rustix::fs::flock(&journal, FlockOperation::NonBlockingLockExclusive)) {
                Ok(()) => return Ok(journal),
                // Somebody looks, or the keeper is just ending.
                Err(Errno::WOULDBLOCK) => std::thread::sleep(LOOK),
                Err(errno) => return Err(io("lock the journal in", &self.path, errno)),
            }
        }
        Err(Error::new(ErrorKind::Conflict, format!("{} has a keeper", self.path.display()))
            .hint("Try again in a moment, or remove the session with `cofferdam rm`."))
    }

    /// Removes the directory. Whoever calls this holds its lock.
    pub(super) fn forget(&self, state: &StateDirectory) -> Result<()> {
        let sessions = sessions(state)?;
        let Some(name) = self.path.file_name() else { return Ok(()) };
        let hidden = format!("{OLD}{}-{}", name.to_string_lossy(), unique());
        match rustix::fs::renameat(&sessions, name, &sessions, &hidden) {
            Ok(()) => remove(&state.path().join(SESSIONS).join(hidden)),
            Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(io("remove", &self.path, errno)),
        }
    }

    /// A path of the socket that is short enough, whatever the state directory is called. Good for
    /// as long as this lives.
    pub(super) fn socket(&self) -> String {
        format!("/proc/self/fd/{}/{SOCKET}", self.directory.as_raw_fd())
    }

    pub(super) fn remove_socket(&self) {
        let _ = rustix::fs::unlinkat(&*self.directory, SOCKET, AtFlags::empty());
    }

    /// Notes the sandbox's first process.
    pub(super) fn note_first(&self, pid: i32) -> Result<()> {
        let text = format!("{pid} {}", started(pid).unwrap_or(0));
        let written = self
            .open(FIRST, OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC)
            .and_then(|file| retry(|| rustix::io::write(&file, text.as_bytes())));
        written.map(drop).map_err(|errno| io("note the first process in", &self.path, errno))
    }

    /// Kills the noted first process if it is there still, and waits for its end. The kernel has
    /// killed it with its keeper, but tells so a little after it let go of the keeper's lock.
    pub(super) fn await_first(&self) -> Result<()> {
        let Ok(text) = std::fs::read_to_string(self.path.join(FIRST)) else { return Ok(()) };
        let mut words = text.split(' ').map(str::parse::<u64>);
        let (Some(Ok(pid)), Some(Ok(start))) = (words.next(), words.next()) else { return Ok(()) };
        let Ok(number) = i32::try_from(pid) else { return Ok(()) };
        let Some(pid) = Pid::from_raw(number) else { return Ok(()) };
        let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else { return Ok(()) };
        // ORDER: after the descriptor, which cannot come to mean another process any more.
        if started(number) != Some(start) {
            return Ok(());
        }
        let _ = pidfd_send_signal(&process, Signal::KILL);
        match retry(|| poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&GONE_WITHIN))) {
            Ok(1..) => Ok(()),
            Ok(0) => Err(Error::new(ErrorKind::TimedOut, "end the sandbox: it does not go away")),
            Err(errno) => Err(io("wait for the first process of", &self.path, errno)),
        }
    }

    /// The spool of one stream, to be made when something is written to it.
    pub(super) fn sink(&self, id: &ProcessId, stream: Standard) -> Sink {
        Sink::new(Arc::clone(&self.directory), spool_name(id, stream), OFlags::TRUNC)
    }

    /// Whether its disk has room for another file. One that does not count files has.
    pub(super) fn takes_files(&self) -> bool {
        let disk = rustix::fs::fstatvfs(&*self.directory);
        disk.is_ok_and(|disk| disk.f_files == 0 || disk.f_favail > 0)
    }

    /// Opens the spool of one stream.
    pub(super) fn spool(
        &self,
        id: &ProcessId,
        stream: Standard,
        access: OFlags,
    ) -> rustix::io::Result<OwnedFd> {
        self.open(&spool_name(id, stream), access)
    }

    /// Where it will be noted what was dropped of a stream.
    pub(super) fn ledger(&self, id: &ProcessId, stream: Standard) -> Ledger {
        // The other stream's entry may be in it.
        let file = Sink::new(Arc::clone(&self.directory), ledger_name(id), OFlags::empty());
        Ledger { file, entry: ledger_entry(stream) }
    }

    /// The ledger to read; `None` where nothing was dropped.
    pub(super) fn read_ledger(&self, id: &ProcessId) -> Option<OwnedFd> {
        self.open(&ledger_name(id), OFlags::RDONLY).ok()
    }

    /// How much is there of what a command wrote, by its files; `None` where they are not there.
    pub(super) fn counted(&self, id: &ProcessId, stream: Standard) -> Option<Spooled> {
        let file = self.spool(id, stream, OFlags::RDONLY).ok()?;
        Some(counted(&file, self.read_ledger(id).as_ref(), ledger_entry(stream)))
    }

    /// When a command last wrote to a stream, in milliseconds since 1970; `None` where it never did.
    pub(super) fn wrote_ms(&self, id: &ProcessId, stream: Standard) -> Option<u64> {
        let file = File::from(self.spool(id, stream, OFlags::RDONLY).ok()?);
        let changed = file.metadata().and_then(|about| about.modified()).ok()?;
        let since = changed.duration_since(UNIX_EPOCH).ok()?;
        u64::try_from(since.as_millis()).ok()
    }

    /// The log of the gate, to append to it.
    pub(super) fn egress_log(&self) -> Result<OwnedFd> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::APPEND;
        self.open(gate::LOG_NAME, flags)
            .map_err(|errno| io("make the gate's log in", &self.path, errno))
    }

    /// The same, to read it; `None` where there is none.
    pub(super) fn read_egress_log(&self) -> Option<OwnedFd> {
        self.open(gate::LOG_NAME, OFlags::RDONLY).ok()
    }

    /// Removes the spools of a command.
    pub(super) fn forget_spools(&self, id: &ProcessId) {
        let streams = [Standard::Output, Standard::Error].map(|stream| spool_name(id, stream));
        for name in streams.into_iter().chain([ledger_name(id)]) {
            let _ = rustix::fs::unlinkat(&*self.directory, name, AtFlags::empty());
        }
    }

    fn open(&self, name: &str, access: OFlags) -> rustix::io::Result<OwnedFd> {
        let flags = access | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        retry(|| rustix::fs::openat(&*self.directory, name, flags, Mode::RUSR | Mode::WUSR))
    }
}

fn spool_name(id: &ProcessId, stream: Standard) -> String {
    match stream {
        Standard::Output => format!("exec-{id}.out"),
        Standard::Error => format!("exec-{id}.err"),
    }
}

fn ledger_name(id: &ProcessId) -> String {
    format!("exec-{id}.dropped")
}

/// Where the entry of a stream is in the ledger.
pub(super) fn ledger_entry(stream: Standard) -> u64 {
    match stream {
        Standard::Output => 0,
        Standard::Error => 1,
    }
}

/// When a process started, in ticks since boot.
fn started(pid: i32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // Fields are counted behind the name; the first one behind it is field 3.
    stat.rsplit_once(") ")?.1.split(' ').nth(22 - 3)?.parse().ok()
}

/// The folder of directories, made if it is not there.
fn sessions(state: &StateDirectory) -> Result<OwnedFd> {
    let failed = |errno| io("open the folder of sessions in", state.path(), errno);
    match open_directory(state.directory(), SESSIONS) {
        Err(Errno::NOENT) => match rustix::fs::mkdirat(state.directory(), SESSIONS, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {
                open_directory(state.directory(), SESSIONS).map_err(failed)
            }
            Err(errno) => Err(failed(errno)),
        },
        other => other.map_err(failed),
    }
}

fn open_directory(at: impl AsFd, name: &str) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(at, name, flags, Mode::empty())
}

fn remove(path: &Path) -> Result<()> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::new(ErrorKind::Io, format!("remove {}", path.display())).source(error))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Removes directories whose maker or remover died. Says how many, and what could not be removed.
pub(crate) fn sweep_half_made(state: &StateDirectory) -> (usize, Vec<String>) {
    let (mut removed, mut kept) = (0, Vec::new());
    for name in half_made(state) {
        match remove_half_made(state, &name) {
            Ok(was_there) => removed += usize::from(was_there),
            Err(error) => kept.push(error.chain()),
        }
    }
    (removed, kept)
}

/// The names of such directories. Their names begin with a dot.
pub(crate) fn half_made(state: &StateDirectory) -> Vec<String> {
    let folder = state.path().join(SESSIONS);
    let Some(_nobody_makes) = while_nobody_makes(state) else { return Vec::new() };
    let Ok(entries) = std::fs::read_dir(&folder) else { return Vec::new() };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.starts_with('.') && !is_at_work(&folder.join(name))).collect()
}

/// Removes one of them. `false` where it is gone, or somebody is at work on it.
pub(crate) fn remove_half_made(state: &StateDirectory, name: &str) -> Result<bool> {
    let folder = state.path().join(SESSIONS);
    let path = folder.join(name);
    let Some(nobody_makes) = while_nobody_makes(state) else { return Ok(false) };
    if is_at_work(&path) {
        return Ok(false);
    }
    // ORDER: it changes its name first. A maker may have come between making and locking, and what
    // is moved away cannot get the name of a sandbox any more.
    let condemned = folder.join(format!("{OLD}{}", unique()));
    let moved = std::fs::rename(&path, &condemned);
    drop(nobody_makes);
    match moved {
        Ok(()) => remove(&condemned).map(|()| true),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => {
            Err(Error::new(ErrorKind::Io, format!("move {}", path.display())).source(error))
        }
    }
}

/// Holds the folder for one who makes a directory, as long as `sessions` is open. Goes on without it
/// where somebody holds it who stands still: then a sweep may take the directory, and another is made.
fn keep_sweeps_away(sessions: &OwnedFd) {
    for _ in 0..LOOKS {
        match rustix::fs::flock(sessions, FlockOperation::NonBlockingLockShared) {
            Ok(()) => return,
            Err(_) => std::thread::sleep(LOOK),
        }
    }
}

/// The folder, held for one who sweeps. `None` while somebody makes a directory, which could be taken
/// for one whose maker died.
fn while_nobody_makes(state: &StateDirectory) -> Option<OwnedFd> {
    let folder = open_directory(state.directory(), SESSIONS).ok()?;
    rustix::fs::flock(&folder, FlockOperation::NonBlockingLockExclusive).ok()?;
    Some(folder)
}

/// Whether somebody holds the journal of a directory without a name.
fn is_at_work(path: &Path) -> bool {
    let journal = File::open(path.join(JOURNAL)).ok();
    let lock = FlockOperation::NonBlockingLockExclusive;
    journal.is_some_and(|journal| rustix::fs::flock(&journal, lock).is_err())
}

#[cfg(test)]
#[path = "place_tests.rs"]
mod tests;

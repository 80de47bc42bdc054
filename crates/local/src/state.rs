//! What Cofferdam owes this machine: records of things that outlive a killed process.
//!
//! A record is a small file below `owed`, written before the thing is made and removed after the
//! thing is gone. It needs no fsync: it has to survive the end of our process, not of the machine.
//! Its owner holds a lock on it, which the kernel lets go when the owner dies, however it dies. So a
//! record that can be locked is a debt that nobody pays any more, and [`StateDirectory::sweep`]
//! pays it. No process id is compared: ids are re-used and mean another process in another namespace.
//!
//! LIMIT: a state directory belongs to one machine; locks of another one are not seen everywhere.

mod away;
mod home;
mod landing;

use crate::cow::passing;
use crate::probe_targets::leftovers;
use crate::{cgroup, keeper, layers, placeholders};
use cofferdam_core::{Error, ErrorKind, Result, SandboxId};
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, RawDir};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The folder of records.
const OWED: &str = "owed";
/// Leads the name of a record of control groups; the sandbox's id follows.
const SANDBOX: &str = "sandbox-";
/// Leads the name of a ledger of placeholders; device and inode of the workspace follow.
const WORKSPACE: &str = "workspace-";
/// Leads the name of a record of what a probe made on the host.
const PROBE: &str = "probe-";
/// How often a record is made anew because a sweep took it away between its making and its locking.
const ATTEMPTS: u32 = 16;

/// The directory that holds what Cofferdam has to remember.
#[derive(Debug)]
pub struct StateDirectory {
    path: PathBuf,
    home: OwnedFd,
    owed: Arc<OwnedFd>,
}

/// What a sweep found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SweepReport {
    /// Records whose owner lives.
    pub alive: usize,
    /// Placeholders that were removed.
    pub placeholders: usize,
    /// Control groups that were emptied and removed.
    pub cgroups: usize,
    /// Files and directories of killed probes that were removed.
    pub probes: usize,
    /// Directories of kept sandboxes that were half made or half removed.
    pub sessions: usize,
    /// What could not be removed and stays recorded, with the reason: one line each.
    pub kept: Vec<String>,
}

/// A locked record.
#[derive(Debug)]
pub(crate) struct Record {
    owed: Arc<OwnedFd>,
    name: String,
    file: OwnedFd,
}

/// Who may hold a record at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hold {
    /// One owner.
    Alone,
    /// Any number of owners.
    Together,
}

impl StateDirectory {
    /// Opens the state directory, and makes it with mode 0700 if it is not there.
    ///
    /// Refused where it belongs to somebody else or others may write it: whoever can write it could
    /// have us remove things.
    pub fn open(home: &Path) -> Result<Self> {
        let directory = match open_directory(rustix::fs::CWD, home) {
            Err(Errno::NOENT) => {
                home::make(home)?;
                open_directory(rustix::fs::CWD, home)
            }
            other => other,
        };
        let fd = directory.map_err(|e| io("open the state directory", home, e))?;
        home::check_owner(&fd, home)?;
        let owed = match open_directory(&fd, Path::new(OWED)) {
            Err(Errno::NOENT) => {
                ignore_existing(rustix::fs::mkdirat(&fd, OWED, Mode::RWXU))
                    .map_err(|e| io("make the folder of records in", home, e))?;
                open_directory(&fd, Path::new(OWED))
            }
            other => other,
        };
        let owed = owed.map_err(|e| io("open the folder of records in", home, e))?;
        Ok(Self { path: home.to_path_buf(), home: fd, owed: Arc::new(owed) })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The open directory.
    pub fn directory(&self) -> BorrowedFd<'_> {
        self.home.as_fd()
    }

    /// Whether a sandbox of this id is recorded.
    pub(crate) fn has_sandbox(&self, id: &str) -> bool {
        let name = format!("{SANDBOX}{id}");
        rustix::fs::statat(self.owed.as_ref(), name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// Removes what dead owners left behind. Costs an empty listing where there is nothing. Any
    /// number of processes may sweep at once.
    pub fn sweep(&self) -> Result<SweepReport> {
        let mut report = SweepReport::default();
        for name in self.names()? {
            self.sweep_one(&name, &mut report);
        }
        let (removed, kept) = keeper::sweep_half_made(self);
        report.sessions = removed;
        report.kept.extend(kept);
        report.kept.extend(passing::sweep(self));
        Ok(report)
    }

    /// The names of what dead owners left behind: their records, but for those of these sandboxes, and
    /// directories of kept sandboxes that were half made. Removes nothing.
    pub fn debts(&self, but: &[SandboxId]) -> Result<Vec<String>> {
        // What was out of reach may be there again.
        let is_there = |content: &[u8], name: &str| {
            placeholders::is_found(content, |device, inode| name == workspace_record(device, inode))
        };
        away::take_back_all(self, is_there);
        let mut names = self.names()?;
        let known: BTreeSet<&str> = but.iter().map(SandboxId::as_str).collect();
        names.retain(|name| !name.strip_prefix(SANDBOX).is_some_and(|id| known.contains(id)));
        names.retain(|name| {
            self.record(name).ok().flatten().is_some_and(|record| record.owners() == Owners::None)
        });
        names.extend(keeper::half_made(self));
        names.extend(passing::debts(self));
        Ok(names)
    }

    /// Removes what one of these names stands for. `false` where somebody else did, or owns it.
    pub fn pay(&self, name: &str) -> Result<bool> {
        if name.starts_with('.') {
            return keeper::remove_half_made(self, name);
        }
        if let Some(paid) = passing::pay(self, name) {
            return paid;
        }
        let failed = |e| io(&format!("open the record {name} in"), &self.path, e);
        let Some(record) = self.record(name).map_err(failed)? else { return Ok(false) };
        match record.owners() {
            Owners::Gone | Owners::Some => Ok(false),
            Owners::None => self.settle(record, &mut SweepReport::default()).map(|()| true),
        }
    }

    /// Records what a sandbox will own. An id whose owner lives is a conflict; what a dead owner of
    /// the id left is swept first.
    pub(crate) fn record_sandbox(&self, id: &SandboxId, content: &[u8]) -> Result<Record> {
        let name = format!("{SANDBOX}{id}");
        for _ in 0..ATTEMPTS {
            match self.claim(&name, Hold::Alone) {
                Ok(Some(record)) => {
                    record.append(content)?;
                    return Ok(record);
                }
                Ok(None) => {}
                Err(Errno::EXIST) => {
                    let mut report = SweepReport::default();
                    self.sweep_one(&name, &mut report);
                    if report.alive > 0 {
                        return Err(Error::new(
                            ErrorKind::Conflict,
                            format!("a sandbox {id} is there already"),
                        ));
                    }
                    if let Some(why) = report.kept.pop() {
                        return Err(Error::new(
                            ErrorKind::Conflict,
                            format!("an earlier sandbox {id} left something behind: {why}"),
                        ));
                    }
                }
                Err(e) => return Err(io("record a sandbox in", &self.path, e)),
            }
        }
        Err(Error::new(
            ErrorKind::Unavailable,
            format!("the record of sandbox {id} keeps vanishing"),
        ))
    }

    /// Joins the owners of a workspace's ledger, and makes it if there is none.
    pub(crate) fn join_workspace(&self, device: u64, inode: u64) -> Result<Record> {
        let name = workspace_record(device, inode);
        // It may be the one that was out of reach.
        away::take_back(self, &name);
        self.claim_in_the_end(&name, Hold::Together)
    }

    /// What a workspace's ledger says, for one who does not join its owners; `None` where there is none.
    pub(crate) fn workspace_ledger(&self, device: u64, inode: u64) -> Result<Option<Vec<u8>>> {
        let name = workspace_record(device, inode);
        let record = self.record(&name);
        let record = record.map_err(|e| io("open a record in", &self.path, e))?;
        record.map(|record| record.content()).transpose()
    }

    /// Begins a record of what a probe makes. No two may have the same mark.
    pub(crate) fn record_probe(&self, mark: &str) -> Result<Record> {
        self.claim_in_the_end(&format!("{PROBE}{mark}"), Hold::Alone)
    }

    fn claim_in_the_end(&self, name: &str, hold: Hold) -> Result<Record> {
        for _ in 0..ATTEMPTS {
            match self.claim(name, hold) {
                Ok(Some(record)) => return Ok(record),
                Ok(None) => {}
                Err(e) => return Err(io(&format!("make the record {name} in"), &self.path, e)),
            }
        }
        Err(Error::new(ErrorKind::Unavailable, format!("the record {name} keeps vanishing")))
    }

    /// Opens and locks a record. `None` where it was removed before the lock was ours.
    fn claim(&self, name: &str, hold: Hold) -> Result<Option<Record>, Errno> {
        let (only_new, lock) = match hold {
            Hold::Alone => (OFlags::EXCL, FlockOperation::LockExclusive),
            Hold::Together => (OFlags::empty(), FlockOperation::LockShared),
        };
        let flags = OFlags::RDWR
            | OFlags::CREATE
            | OFlags::APPEND
            | OFlags::NOFOLLOW
            | OFlags::CLOEXEC
            | only_new;
        let file = rustix::fs::openat(&*self.owed, name, flags, Mode::RUSR | Mode::WUSR)?;
        // Whoever holds the other kind of lock is about to remove the file, so this is short.
        retry(|| rustix::fs::flock(&file, lock))?;
        let record = Record { owed: Arc::clone(&self.owed), name: name.to_owned(), file };
        Ok(record.is_there()?.then_some(record))
    }

    fn names(&self) -> Result<Vec<String>> {
        names(&self.home, OWED).map_err(|errno| io("list the records in", &self.path, errno))
    }

    /// A record that is there, unlocked.
    fn record(&self, name: &str) -> Result<Option<Record>, Errno> {
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let owed = Arc::clone(&self.owed);
        match rustix::fs::openat(&*self.owed, name, flags, Mode::empty()) {
            Ok(file) => Ok(Some(Record { owed, name: name.to_owned(), file })),
            Err(Errno::NOENT) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Removes what a record of a dead owner lists, and the record. One whose workspace is out of reach is put away.
    fn settle(&self, record: Record, report: &mut SweepReport) -> Result<()> {
        let content = record.content()?;
        if record.name.starts_with(SANDBOX) {
            report.cgroups += cgroup::remove_leftovers(&content)?;
        } else if record.name.starts_with(WORKSPACE) {
            let removed = placeholders::remove_leftovers(&content, |device, inode| {
                record.name == workspace_record(device, inode)
            });
            match removed? {
                Some(count) => report.placeholders += count,
                // ORDER: before the record is removed.
                None => away::put(self, &record.name, &content)?,
            }
        } else if record.name.starts_with(PROBE) {
            report.probes += leftovers::remove(&content)?;
        } else if record.name.starts_with(landing::LANDING) {
            layers::pay(&content, &record)?;
        } else {
            return Err(Error::new(ErrorKind::Unsupported, "its kind is unknown to this version"));
        }
        record.settle()
    }

    fn sweep_one(&self, name: &str, report: &mut SweepReport) {
        let record = match self.record(name) {
            Ok(Some(record)) => record,
            Ok(None) => return,
            Err(e) => return report.kept.push(format!("record {name}: {e}")),
        };
        match record.owners() {
            Owners::Gone => {}
            Owners::Some => report.alive += 1,
            Owners::None => {
                if let Err(error) = self.settle(record, report) {
                    report.kept.push(format!("record {name}: {}", error.chain()));
                }
            }
        }
    }
}

/// Whether somebody owns a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owners {
    /// The record is not there any more.
    Gone,
    /// Nobody but the asker, who owns it alone now.
    None,
    /// Others.
    Some,
}

impl Record {
    /// Adds to the record, whole or not at all as far as later readers are concerned.
    pub(crate) fn append(&self, content: &[u8]) -> Result<()> {
        let written = retry(|| rustix::io::write(&self.file, content))
            .map_err(|e| io("write the record", Path::new(&self.name), e))?;
        if written == content.len() {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Io, format!("write the record {} in one piece", self.name)))
    }

    /// All that was recorded.
    pub(crate) fn content(&self) -> Result<Vec<u8>> {
        let mut content = Vec::new();
        let mut chunk = [0_u8; 4096];
        loop {
            let offset = content.len() as u64;
            let count = retry(|| rustix::io::pread(&self.file, &mut chunk, offset))
                .map_err(|e| io("read the record", Path::new(&self.name), e))?;
            match chunk.get(..count) {
                None | Some([]) => return Ok(content),
                Some(bytes) => content.extend_from_slice(bytes),
            }
        }
    }

    /// The folder that it lies in, which no sandbox is shown.
    pub(crate) fn folder(&self) -> &OwnedFd {
        &self.owed
    }

    /// Asks for sole ownership without waiting, and gives up a shared one where there are others.
    pub(crate) fn owners(&self) -> Owners {
        // Anything but a lock counts as "others": nothing is removed on a doubt.
        match retry(|| rustix::fs::flock(&self.file, FlockOperation::NonBlockingLockExclusive)) {
            Ok(()) => match self.is_there() {
                Ok(true) => Owners::None,
                Ok(false) => Owners::Gone,
                Err(_) => Owners::Some,
            },
            Err(_) => Owners::Some,
        }
    }

    /// Removes the record: the debt is paid.
    pub(crate) fn settle(self) -> Result<()> {
        match rustix::fs::unlinkat(&*self.owed, &self.name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(e) => Err(io("remove the record", Path::new(&self.name), e)),
        }
    }

    fn is_there(&self) -> Result<bool, Errno> {
        rustix::fs::fstat(&self.file).map(|stat| stat.st_nlink > 0)
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        // A child that another thread is just starting holds a copy of the descriptor until it runs its
        // program. Closing ours would leave the lock with it.
        let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
    }
}

/// The names in one of the folders of records, but for what is not whole.
fn names(home: &OwnedFd, folder: &str) -> Result<Vec<String>, Errno> {
    // A descriptor of its own, because the position of a listing is shared with every copy.
    let listing = open_directory(home, Path::new(folder))?;
    let mut names = Vec::new();
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut entries = RawDir::new(listing, &mut buffer);
    while let Some(entry) = entries.next() {
        if let Ok(name) = entry?.file_name().to_str()
            && !name.starts_with('.')
        {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

/// The name of a workspace's ledger.
fn workspace_record(device: u64, inode: u64) -> String {
    format!("{WORKSPACE}{device:x}-{inode:x}")
}

fn open_directory<Fd: AsFd>(at: Fd, path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(at, path, flags, Mode::empty())
}

fn ignore_existing(result: Result<(), Errno>) -> Result<(), Errno> {
    match result {
        Err(Errno::EXIST) => Ok(()),
        other => other,
    }
}

/// Repeats a call that a signal interrupted.
pub(crate) fn retry<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
}

/// An error about a path, from what the kernel said.
pub(crate) fn io(what: &str, path: &Path, errno: Errno) -> Error {
    Error::new(ErrorKind::Io, format!("{what} {}", path.display()))
        .source(std::io::Error::from(errno))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_directory::{TestDirectory, sweep};
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    fn id(text: &str) -> SandboxId {
        SandboxId::new(text).unwrap()
    }

    #[test]
    fn it_is_made_for_its_owner_only() {
        let directory = TestDirectory::new("state-made");
        let home = directory.path().join("a/b/cofferdam");
        StateDirectory::open(&home).unwrap();
        assert_eq!(std::fs::metadata(&home).unwrap().mode() & 0o777, 0o700);
        StateDirectory::open(&home).unwrap();
    }

    #[test]
    fn a_record_that_was_let_go_is_free_whatever_a_child_copied() {
        let directory = TestDirectory::new("state-copied");
        let state = StateDirectory::open(directory.path()).unwrap();
        let record = state.record_landing("layer").unwrap();
        assert_eq!(state.record_landing("layer").unwrap_err().kind, ErrorKind::Conflict);
        let copy = rustix::io::dup(&record.file).unwrap();
        drop(record);
        assert!(state.record_landing("layer").is_ok());
        drop(copy);
    }

    #[test]
    fn one_that_others_may_write_is_refused() {
        let directory = TestDirectory::new("state-refused");
        let home = directory.path().join("home");
        std::fs::create_dir(&home).unwrap();
        for mode in [0o770, 0o702] {
            std::fs::set_permissions(&home, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(StateDirectory::open(&home).unwrap_err().kind, ErrorKind::Denied);
        }
    }

    #[test]
    fn one_of_somebody_else_is_refused_and_none_is_made_in_their_home() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let directory = TestDirectory::new("state-foreign");
        let home = directory.path().join("home");
        std::fs::create_dir(&home).unwrap();
        std::os::unix::fs::chown(&home, Some(1000), Some(1000)).unwrap();
        assert_eq!(StateDirectory::open(&home).unwrap_err().kind, ErrorKind::Denied);
        assert_eq!(StateDirectory::open(&home.join("x/y")).unwrap_err().kind, ErrorKind::Io);
        assert!(!home.join("x").exists());
    }

    #[test]
    fn an_id_in_use_is_a_conflict_until_its_owner_ends() {
        let directory = TestDirectory::new("state-conflict");
        let state = StateDirectory::open(&directory.path().join("s")).unwrap();
        let record = state.record_sandbox(&id("one"), b"1\0").unwrap();
        let again = state.record_sandbox(&id("one"), b"1\0").unwrap_err();
        assert_eq!(again.kind, ErrorKind::Conflict);
        assert_eq!(state.sweep().unwrap().alive, 1);
        drop(record);
        assert_eq!(sweep(&state), SweepReport::default());
        let record = state.record_sandbox(&id("one"), b"1\0").unwrap();
        record.settle().unwrap();
        assert_eq!(state.sweep().unwrap(), SweepReport::default());
    }

    #[test]
    fn a_record_of_a_dead_owner_is_swept() {
        let directory = TestDirectory::new("state-dead");
        let state = StateDirectory::open(&directory.path().join("s")).unwrap();
        drop(
            state.record_sandbox(&id("dead"), b"1\0/sys/fs/cgroup/none/cofferdam-dead\0").unwrap(),
        );
        assert_eq!(state.names().unwrap(), ["sandbox-dead"]);
        assert_eq!(sweep(&state), SweepReport::default());
        assert!(state.names().unwrap().is_empty());
    }

    #[test]
    fn what_a_dead_owner_left_is_named_before_it_is_paid() {
        let directory = TestDirectory::new("state-debts");
        let state = StateDirectory::open(&directory.path().join("s")).unwrap();
        let alive = state.record_sandbox(&id("alive"), b"1\0").unwrap();
        drop(state.record_sandbox(&id("dead"), b"1\0").unwrap());
        let half_made = directory.path().join("s/sessions/.new-x-1");
        std::fs::create_dir_all(&half_made).unwrap();
        // A child that another test is just starting holds a copy of every lock for an instant.
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        let named = ["sandbox-dead", ".new-x-1"];
        while state.debts(&[]).unwrap() != named {
            assert!(std::time::Instant::now() < deadline, "{:?}", state.debts(&[]));
        }
        assert_eq!(state.debts(&[id("dead")]).unwrap(), [".new-x-1"], "somebody knows of it");
        while !state.pay("sandbox-dead").unwrap() {
            assert!(std::time::Instant::now() < deadline);
        }
        assert!(state.pay(".new-x-1").unwrap() && !half_made.exists());
        for gone in named {
            assert!(!state.pay(gone).unwrap(), "{gone}");
        }
        assert!(!state.pay("sandbox-alive").unwrap(), "its owner lives");
        assert_eq!(state.debts(&[]).unwrap(), [""; 0]);
        assert_eq!(state.names().unwrap(), ["sandbox-alive"]);
        alive.settle().unwrap();
    }

    #[test]
    fn what_is_not_understood_is_kept() {
        let directory = TestDirectory::new("state-unknown");
        let state = StateDirectory::open(&directory.path().join("s")).unwrap();
        std::fs::write(directory.path().join("s/owed/future-1"), b"9\0").unwrap();
        std::fs::write(directory.path().join("s/owed/sandbox-1"), b"9\0/x\0").unwrap();
        assert_eq!(state.sweep().unwrap().kept.len(), 2);
    }

    #[test]
    fn many_sweeps_at_once_pay_each_debt_once() {
        let directory = TestDirectory::new("state-many");
        let home = directory.path().join("s");
        let state = StateDirectory::open(&home).unwrap();
        std::thread::scope(|scope| {
            for worker in 0..4 {
                let home = &home;
                scope.spawn(move || {
                    let state = StateDirectory::open(home).unwrap();
                    for turn in 0..50 {
                        let record =
                            state.record_sandbox(&id(&format!("{worker}-{turn}")), b"1\0").unwrap();
                        assert_eq!(state.sweep().unwrap().kept, Vec::<String>::new());
                        assert!(record.is_there().unwrap());
                        record.settle().unwrap();
                    }
                });
            }
        });
        assert!(state.names().unwrap().is_empty());
    }
}

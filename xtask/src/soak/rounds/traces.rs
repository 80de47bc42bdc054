//! What sessions have on the machine: processes, control groups, mounts, files.

use super::{Outcome, Plan, until};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::collections::BTreeSet;
use std::fs::{read_dir, read_to_string};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What may be in a state directory, whether there are sessions or not.
const KNOWN: [&str; 15] = [
    "bundles",
    "copies",
    "homes",
    "kept",
    "locks",
    "owed",
    "reserve",
    "secrets",
    "session-uids",
    "sessions",
    "sessions.db",
    "sessions.db-shm",
    "sessions.db-wal",
    "sessions.lock",
    "staging",
];
/// Leads the name of the static program, which is kept there to be started.
const PROGRAM: &str = "program-";

/// A process, by a name that is never re-used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Process {
    id: i32,
    started: u64,
}

impl Process {
    fn of(id: i32) -> Option<Self> {
        Some(Self { id, started: started(id)? })
    }

    fn is_there(self) -> bool {
        started(self.id) == Some(self.started)
    }

    /// Kills it, and says whether it was there.
    pub(super) fn kill(self) -> bool {
        let Some(pid) = Pid::from_raw(self.id) else { return false };
        let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else { return false };
        // ORDER: after the descriptor, which cannot come to mean another process any more.
        self.is_there() && pidfd_send_signal(&process, Signal::KILL).is_ok()
    }
}

/// When a process started, in ticks since boot; `None` for one that has ended.
fn started(id: i32) -> Option<u64> {
    let stat = read_to_string(format!("/proc/{id}/stat")).ok()?;
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    if matches!(fields.next(), Some("Z" | "X")) {
        return None;
    }
    fields.nth(22 - 4)?.parse().ok()
}

/// How much there is of each sort.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Counts {
    processes: usize,
    groups: usize,
    mounts: usize,
    /// By directory below the state directory.
    files: Vec<(String, usize)>,
}

/// What was seen so far.
pub(super) struct Traces<'a> {
    plan: &'a Plan<'a>,
    firsts: BTreeSet<Process>,
    groups: BTreeSet<PathBuf>,
}

impl<'a> Traces<'a> {
    pub(super) fn new(plan: &'a Plan<'a>) -> Self {
        Self { plan, firsts: BTreeSet::new(), groups: BTreeSet::new() }
    }

    /// Remembers what there is now, to see later that it is gone.
    pub(super) fn note(&mut self) -> Outcome<()> {
        self.firsts.extend(self.firsts());
        for name in names(&self.plan.state.join("owed"))? {
            let record = read_to_string(self.plan.state.join("owed").join(&name));
            let words = record.unwrap_or_default();
            let groups = words.split(' ').filter(|word| word.contains("/cofferdam-"));
            if name.starts_with("sandbox-") {
                self.groups.extend(groups.map(|path| PathBuf::from(path.trim_end())));
            }
        }
        Ok(())
    }

    fn places(&self) -> Outcome<Vec<(String, PathBuf)>> {
        let folder = self.plan.state.join("sessions");
        Ok(names(&folder)?.into_iter().map(|name| (name.clone(), folder.join(name))).collect())
    }

    /// The first processes of sandboxes.
    pub(super) fn firsts(&self) -> Vec<Process> {
        let noted = |path: PathBuf| {
            let text = read_to_string(path.join("first")).ok()?;
            let (id, started) = text.split_once(' ')?;
            let process = Process { id: id.parse().ok()?, started: started.trim().parse().ok()? };
            process.is_there().then_some(process)
        };
        let places = self.places().unwrap_or_default();
        places.into_iter().filter_map(|(_, path)| noted(path)).collect()
    }

    /// Those who hold the lock of a journal.
    pub(super) fn keepers(&self) -> Outcome<Vec<Process>> {
        let holders = self.places()?.into_iter().filter_map(|(_, path)| holder(&path));
        Ok(holders.collect())
    }

    /// Waits until these have ended, and with them all copies of the dead that hold their locks: a
    /// process that has only just been copied dies a moment after the one that it was.
    pub(super) fn await_ends(&self, killed: &[Process], patience: Duration) -> Outcome<()> {
        until(patience, || {
            if let Some(process) = killed.iter().find(|process| process.is_there()) {
                return Err(format!("{process:?} was killed and has not ended"));
            }
            match self.lock_of_the_dead()? {
                Some(path) => Err(format!("{} is locked, and its owner dead", path.display())),
                None => Ok(()),
            }
        })
    }

    /// A file of the state directory whose lock somebody took who has ended.
    fn lock_of_the_dead(&self) -> Outcome<Option<PathBuf>> {
        let locks: Vec<Lock> = locks().into_iter().filter(|lock| lock.owner().is_none()).collect();
        let mut files = Vec::new();
        for folder in ["owed", "locks"].map(|name| self.plan.state.join(name)) {
            files.extend(names(&folder)?.into_iter().map(|name| folder.join(name)));
        }
        files.extend(self.places()?.into_iter().map(|(_, path)| path.join("journal")));
        let is_locked = |path: &PathBuf| {
            file_of(path).is_some_and(|file| locks.iter().any(|lock| lock.file == file))
        };
        Ok(files.into_iter().find(is_locked))
    }

    /// Nothing is there but what belongs to these sessions.
    pub(super) fn nothing_is_left(&self, ids: &[&String], patience: Duration) -> Outcome<()> {
        until(patience, || self.look(ids))
    }

    fn look(&self, ids: &[&String]) -> Outcome<()> {
        let state = self.plan.state;
        let owned = |name: &str| {
            let id = name.split('.').next().unwrap_or_default();
            ids.iter().any(|known| known.as_str() == id)
        };
        for folder in ["homes", "kept", "locks", "sessions", "staging"] {
            if let Some(name) = names(&state.join(folder))?.into_iter().find(|name| !owned(name)) {
                return Err(format!("{folder}/{name} belongs to no session of {ids:?}"));
            }
        }
        let kept: Vec<(String, PathBuf)> =
            self.places()?.into_iter().filter(|(_, path)| holder(path).is_some()).collect();
        for name in names(&state.join("owed"))? {
            let is_owed = match name.strip_prefix("sandbox-") {
                Some(id) => kept.iter().any(|(kept, _)| kept == id),
                None => name.starts_with("workspace-") && !kept.is_empty(),
            };
            if !is_owed {
                return Err(format!("owed/{name} is of nobody who lives"));
            }
        }
        let mut others = names(state)?.into_iter();
        let is_known = |name: &String| KNOWN.contains(&name.as_str()) || name.starts_with(PROGRAM);
        if let Some(name) = others.find(|name| !is_known(name)) {
            return Err(format!("{name} is in the state directory"));
        }
        if let Some(name) = names(&state.join("bundles"))?.first() {
            return Err(format!("bundles/{name} is of a run that nobody began"));
        }
        self.look_at_machine(&kept)
    }

    fn look_at_machine(&self, kept: &[(String, PathBuf)]) -> Outcome<()> {
        let live = self.firsts();
        let is_kept = |process: &Process| live.contains(process) && live.len() <= kept.len();
        if let Some(process) = self.firsts.iter().find(|one| one.is_there() && !is_kept(one)) {
            return Err(format!("{process:?} lives, of {} sandboxes", kept.len()));
        }
        let of_kept = |path: &Path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            kept.iter().any(|(id, _)| name.contains(id.as_str()))
        };
        let mut groups = self.groups.iter().filter(|path| path.exists());
        if let Some(group) = groups.find(|path| !of_kept(path)) {
            return Err(format!("the control group {} is left", group.display()));
        }
        if !kept.is_empty() {
            return Ok(());
        }
        let counts = self.counts()?;
        if counts.processes + counts.groups + counts.mounts > 0 {
            return Err(format!("no sandbox lives, and there are {counts:?}"));
        }
        Ok(())
    }

    /// How much there is now.
    pub(super) fn counts(&self) -> Outcome<Counts> {
        let mounts = read_to_string("/proc/self/mountinfo").map_err(|e| e.to_string())?;
        let ours = [self.plan.state, self.plan.workspace].map(Path::to_string_lossy);
        let is_ours = |line: &&str| ours.iter().any(|path| line.contains(&**path));
        let mut files = Vec::new();
        for folder in ["bundles", "homes", "locks", "owed", "session-uids", "sessions"] {
            let path = self.plan.state.join(folder);
            let count = if path.is_dir() { names(&path)?.len() } else { 0 };
            files.push((folder.to_owned(), count));
        }
        Ok(Counts {
            processes: self.marked() + self.keepers()?.len() + self.firsts().len(),
            groups: self.groups.iter().filter(|path| path.exists()).count(),
            mounts: mounts.lines().filter(is_ours).count(),
            files,
        })
    }

    /// Processes whose command line has the marker, but for this one.
    fn marked(&self) -> usize {
        let own = std::process::id().to_string();
        let all = names(Path::new("/proc")).unwrap_or_default().into_iter();
        let ids = all.filter(|name| name.bytes().all(|b| b.is_ascii_digit()) && *name != own);
        let line = |id: String| std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let has_it = |id: &String| {
            let line = line(id.clone());
            String::from_utf8_lossy(&line).contains(self.plan.marker)
        };
        ids.filter(has_it).count()
    }
}

/// Who holds the lock of the journal in this directory, as the kernel tells everybody.
fn holder(path: &Path) -> Option<Process> {
    let wanted = file_of(&path.join("journal"))?;
    locks().into_iter().filter(|lock| lock.file == wanted).find_map(|lock| lock.owner())
}

/// A lock that excludes others.
struct Lock {
    id: i32,
    /// As [`file_of`] says it.
    file: String,
}

impl Lock {
    /// Who took it, unless that one has ended: copies of it may hold it still.
    fn owner(&self) -> Option<Process> {
        Process::of(self.id)
    }
}

/// All locks of the machine.
fn locks() -> Vec<Lock> {
    let text = read_to_string("/proc/locks").unwrap_or_default();
    let lock = |line: &str| {
        let mut words = line.split_whitespace().skip_while(|word| *word != "WRITE").skip(1);
        Some(Lock { id: words.next()?.parse().ok()?, file: words.next()?.to_owned() })
    };
    text.lines().filter_map(lock).collect()
}

/// What the kernel's list of locks calls a file.
fn file_of(path: &Path) -> Option<String> {
    let found = std::fs::metadata(path).ok()?;
    let (device, inode) = (found.dev(), found.ino());
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    Some(format!("{major:02x}:{minor:02x}:{inode}"))
}

fn names(folder: &Path) -> Outcome<Vec<String>> {
    let entries = match read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(format!("list {}: {error}", folder.display())),
    };
    Ok(entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect())
}

//! Version 2: one hierarchy for all controllers.

use super::counters::Counter;
use super::directory::{Group, Wait};
use super::facts::Controllers;
use super::v1::Numbers;
use cofferdam_core::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The file to which a process writes `0` to join.
pub(super) const JOIN: &str = "cgroup.procs";
/// The period in which a quota of processor time counts, in microseconds: the kernel's default.
const PERIOD_US: u64 = 100_000;
/// How long freezing may take. It needs a slice of the processor for every thread.
const FREEZE_WITHIN: Duration = Duration::from_secs(2);

pub(super) fn limit(group: &Group, which: Controllers, numbers: Numbers) -> Result<()> {
    if which.memory {
        group.write("memory.max", &numbers.memory_bytes.to_string())?;
        // Without these files there is no swap to limit, or no way to end all at once.
        group.write_if_there("memory.swap.max", "0")?;
        group.write_if_there("memory.oom.group", "1")?;
    }
    if which.pids {
        group.write("pids.max", &numbers.pids.to_string())?;
    }
    if which.cpu {
        let quota = numbers.cpu_millis.saturating_mul(PERIOD_US) / 1000;
        group.write("cpu.max", &format!("{quota} {PERIOD_US}"))?;
    }
    Ok(())
}

pub(super) fn oom_counter(group: &Group) -> Option<Counter> {
    Counter::open(group, "memory.events", "oom_kill")
}

pub(super) fn memory(group: &Group) -> Option<u64> {
    group.number("memory.current")
}

pub(super) fn peak_memory(group: &Group) -> Option<u64> {
    group.number("memory.peak")
}

/// Processor time in microseconds. Counted with and without the controller.
pub(super) fn cpu_us(group: &Group) -> Option<u64> {
    group.counter("cpu.stat", "usage_usec")
}

/// Freezes or thaws, and returns when that is so.
pub(super) fn set_frozen(group: &Group, frozen: u64) -> Result<()> {
    group.write("cgroup.freeze", &frozen.to_string())?;
    let mut wait = Wait::new(FREEZE_WITHIN);
    // The kernel tells of changes at most every 10 ms, so looking again is faster than being told.
    while group.counter("cgroup.events", "frozen") != Some(frozen) {
        if !wait.again() {
            let what = format!("see {} frozen: {frozen}", group.path().display());
            return Err(Error::new(ErrorKind::TimedOut, what));
        }
    }
    Ok(())
}

/// Our process in a leaf of its own, so that its former group can give controllers to others.
#[derive(Debug)]
pub(super) struct Aside {
    parent: PathBuf,
    leaf: Group,
    enabled: Controllers,
}

impl Aside {
    /// Where the leaf is.
    pub(super) fn leaf(parent: &Path, id: &str) -> PathBuf {
        parent.join(format!("cofferdam-{id}-caller"))
    }

    /// Moves this process, and enables the controllers.
    pub(super) fn step(parent: &Path, id: &str, controllers: Controllers) -> Result<Self> {
        let leaf = Group::make(Self::leaf(parent, id))?;
        let aside = Self { parent: parent.to_path_buf(), leaf, enabled: controllers };
        let moved = aside.leaf.write(JOIN, "0").and_then(|()| aside.control('+'));
        match moved {
            Ok(()) => Ok(aside),
            Err(error) => {
                // The error that led here is the one that matters.
                let _ = aside.back();
                Err(error)
            }
        }
    }

    /// Undoes it, unless somebody else made a group beside the leaf in the meantime: taking the
    /// controllers away would take that group's limits away.
    pub(super) fn back(&self) -> Result<()> {
        if self.has_neighbours() {
            return Ok(());
        }
        self.control('-')?;
        if let Some(parent) = Group::find(self.parent.clone())? {
            parent.write(JOIN, "0")?;
        }
        self.leaf.remove()
    }

    fn control(&self, sign: char) -> Result<()> {
        let names = [
            (self.enabled.memory, "memory"),
            (self.enabled.pids, "pids"),
            (self.enabled.cpu, "cpu"),
        ];
        let words: Vec<String> = names
            .into_iter()
            .filter(|(on, _)| *on)
            .map(|(_, name)| format!("{sign}{name}"))
            .collect();
        match Group::find(self.parent.clone())? {
            Some(parent) => parent.write("cgroup.subtree_control", &words.join(" ")),
            None => Ok(()),
        }
    }

    fn has_neighbours(&self) -> bool {
        let Ok(entries) = std::fs::read_dir(&self.parent) else { return false };
        entries
            .flatten()
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .any(|entry| entry.path() != self.leaf.path())
    }
}

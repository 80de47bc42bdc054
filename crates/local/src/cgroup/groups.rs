//! The groups of one sandbox, from their record to their removal.

use super::assessment::GUEST_PROCESSES;
use super::counters::{Counter, Counters};
use super::directory::{Group, Wait};
use super::facts::{CgroupFacts, Controllers, First, Where, lowest};
use super::v1::Numbers;
use super::v2::Aside;
use super::{v1, v2};
use crate::state::{Record, StateDirectory};
use cofferdam_core::{Error, ErrorKind, Limits, Result, SandboxId};
use rustix::process::Signal;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Leads the content of a record.
const FORMAT: &[u8] = b"1";
/// Leads the name of every group, so that nothing else is ever removed.
const PREFIX: &str = "cofferdam-";
/// How long [`Cgroups::kill`] waits for the last process to be gone.
const GONE_WITHIN: Duration = Duration::from_secs(10);

/// How often the processes of a sandbox are listed to stop those that were made meanwhile.
const STOP_ROUNDS: u32 = 16;

/// The groups of one sandbox. Dropping them removes them, and kills what is in them.
///
/// A forked child inherits the record's lock with its descriptor: it has to close it, and may not
/// drop this value.
#[derive(Debug)]
pub struct Cgroups {
    unified: Option<Made>,
    v1: Vec<Made>,
    aside: Option<Aside>,
    record: Option<Record>,
}

/// A group and what it controls.
#[derive(Debug)]
struct Made {
    group: Group,
    controllers: Controllers,
}

/// What the groups know of why something died; `None` where nothing counts it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Causes {
    /// Processes killed because memory was used up.
    pub oom_kills: Option<u64>,
    /// Processes that were not made because there were too many.
    pub pids_hits: Option<u64>,
}

/// What was used so far; `None` where nothing counts it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Processor time in microseconds.
    pub cpu_us: Option<u64>,
    /// The memory that is in use.
    pub memory_bytes: Option<u64>,
    /// The most memory that was in use at once.
    pub peak_memory_bytes: Option<u64>,
}

/// Groups that are to be made.
#[derive(Debug, Default, PartialEq, Eq)]
struct Wanted {
    unified: Option<(PathBuf, Controllers)>,
    aside: Option<PathBuf>,
    v1: Vec<(PathBuf, Controllers)>,
}

impl Cgroups {
    /// Records the groups of a sandbox, makes them, and sets their limits. Nobody is in them yet.
    ///
    /// What no group holds is left out; [`super::assess`] has said so before. Where nothing can be
    /// made at all, the result is empty and does nothing.
    pub fn prepare(
        state: &StateDirectory,
        id: &SandboxId,
        limits: &Limits,
        facts: &CgroupFacts,
    ) -> Result<Self> {
        let wanted = Wanted::of(facts, id, limits);
        let mut made = Self { unified: None, v1: Vec::new(), aside: None, record: None };
        // ORDER: the record before the groups, so that nothing is ever there unrecorded.
        made.record = Some(state.record_sandbox(id, &wanted.record())?);
        match made.make(&wanted, id, numbers(limits, facts)) {
            Ok(()) => Ok(made),
            Err(error) => {
                // The error that led here is the one that matters; what is left stays recorded.
                let _ = made.clear();
                Err(error)
            }
        }
    }

    /// Descriptors to which a process writes `0`, one after the other, to join the version 1 groups.
    pub fn join_descriptors(&self) -> Result<Vec<OwnedFd>> {
        self.v1.iter().map(|made| made.group.open_to_write(v1::JOIN)).collect()
    }

    /// The version 2 group, for `CLONE_INTO_CGROUP`: it costs nothing there.
    pub fn clone_into(&self) -> Result<Option<OwnedFd>> {
        self.unified.as_ref().map(|made| made.group.directory()).transpose()
    }

    /// A descriptor to which a process writes `0` to join the version 2 group, where it cannot be
    /// cloned into it. Can take milliseconds.
    pub fn join_unified(&self) -> Result<Option<OwnedFd>> {
        self.unified.as_ref().map(|made| made.group.open_to_write(v2::JOIN)).transpose()
    }

    /// Whether there is a group that sees every process of the sandbox.
    pub fn is_empty(&self) -> bool {
        self.unified.is_none() && self.v1.is_empty()
    }

    /// What is known of the cause of a death.
    pub fn causes(&self) -> Causes {
        self.counters().read()
    }

    /// The counters behind [`Cgroups::causes`], to read often.
    pub fn counters(&self) -> Counters {
        let unified = |of: fn(&Controllers) -> bool| {
            self.unified.as_ref().filter(|made| of(&made.controllers)).map(|made| &made.group)
        };
        let memory = unified(|c| c.memory).and_then(v2::oom_counter);
        let pids = unified(|c| c.pids).or_else(|| self.v1_with(|c| c.pids));
        Counters {
            memory: memory.or_else(|| self.v1_with(|c| c.memory).and_then(v1::oom_counter)),
            pids: pids.and_then(|group| Counter::open(group, "pids.events", "max")),
        }
    }

    /// What was used so far. Can be read until the groups are removed.
    pub fn usage(&self) -> Usage {
        let unified = self.unified.as_ref().map(|made| &made.group);
        let v1 = |of: fn(&Controllers) -> bool| self.v1_with(of);
        Usage {
            cpu_us: unified.and_then(v2::cpu_us).or_else(|| v1(|c| c.cpu).and_then(v1::cpu_us)),
            memory_bytes: unified
                .and_then(v2::memory)
                .or_else(|| v1(|c| c.memory).and_then(v1::memory)),
            peak_memory_bytes: unified
                .and_then(v2::peak_memory)
                .or_else(|| v1(|c| c.memory).and_then(v1::peak_memory)),
        }
    }

    /// Stops every process of the sandbox where it is. Repeating it changes nothing.
    pub fn freeze(&self) -> Result<()> {
        self.set_frozen(1, "FROZEN")
    }

    /// Lets every process go on.
    pub fn thaw(&self) -> Result<()> {
        self.set_frozen(0, "THAWED")
    }

    /// Kills every process of the sandbox and returns when none is left. Nobody may join afterwards.
    pub fn kill(&self) -> Result<()> {
        let by_kernel = self
            .unified
            .as_ref()
            .is_some_and(|made| made.group.try_write("cgroup.kill", "1").is_ok());
        if !by_kernel {
            // A fork bomb outruns a loop of kills, unless it cannot fork any more.
            if let Some(group) = self.v1_with(|c| c.pids) {
                group.write("pids.max", "0")?;
            }
        }
        let Some(group) = self.any() else { return Ok(()) };
        let mut wait = Wait::new(GONE_WITHIN);
        while group.read("cgroup.procs").is_some_and(|pids| !pids.trim().is_empty()) {
            if !by_kernel {
                group.kill_each();
            }
            if !wait.again() {
                let what = format!("end what is in {}", group.path().display());
                return Err(Error::new(ErrorKind::TimedOut, what));
            }
        }
        Ok(())
    }

    /// Removes the groups and their record. What is still in them is killed.
    pub fn remove(mut self) -> Result<()> {
        self.clear()
    }

    fn make(&mut self, wanted: &Wanted, id: &SandboxId, numbers: Numbers) -> Result<()> {
        if let Some((path, controllers)) = &wanted.unified {
            if let (Some(_), Some(parent)) = (&wanted.aside, path.parent()) {
                self.aside = Some(Aside::step(parent, id.as_str(), *controllers)?);
            }
            let made = self.unified.insert(Made::new(path, *controllers)?);
            v2::limit(&made.group, *controllers, numbers)?;
        }
        for (path, controllers) in &wanted.v1 {
            let made = Made::new(path, *controllers)?;
            let limited = v1::limit(&made.group, *controllers, numbers);
            self.v1.push(made);
            limited?;
        }
        Ok(())
    }

    fn set_frozen(&self, frozen: u64, state: &'static str) -> Result<()> {
        match (&self.unified, self.v1_with(|c| c.freezer)) {
            (Some(made), _) => v2::set_frozen(&made.group, frozen),
            (None, Some(freezer)) => v1::set_frozen(freezer, state),
            (None, None) => self.signal_each(frozen),
        }
    }

    /// Stops or continues each process by a signal, again until no new one appears. A command that
    /// was stopped by somebody else goes on with the others.
    fn signal_each(&self, frozen: u64) -> Result<()> {
        let Some(group) = self.any() else {
            return Err(Error::new(
                ErrorKind::Unavailable,
                "freeze the sandbox: there is no control group to find its processes by",
            ));
        };
        let signal = if frozen == 0 { Signal::CONT } else { Signal::STOP };
        let mut count = 0;
        for _ in 0..STOP_ROUNDS {
            let signaled = group.signal_each(signal);
            if signaled == count {
                break;
            }
            count = signaled;
        }
        Ok(())
    }

    /// The version 1 group that controls this.
    pub(super) fn v1_with(&self, of: fn(&Controllers) -> bool) -> Option<&Group> {
        self.v1.iter().find(|made| of(&made.controllers)).map(|made| &made.group)
    }

    pub(super) fn unified_group(&self) -> Option<&Group> {
        self.unified.as_ref().map(|made| &made.group)
    }

    fn any(&self) -> Option<&Group> {
        self.unified.as_ref().or(self.v1.first()).map(|made| &made.group)
    }

    /// Removes what is there, and settles the record if nothing is left.
    fn clear(&mut self) -> Result<()> {
        let mut result = Ok(());
        // ORDER: version 2 first, because it can kill all at once.
        for made in self.unified.take().into_iter().chain(self.v1.drain(..)) {
            result = result.and(made.group.remove());
        }
        if let Some(aside) = self.aside.take() {
            result = result.and(aside.back());
        }
        match self.record.take() {
            Some(record) if result.is_ok() => record.settle(),
            // Without its owner the record is a debt that the next sweep pays.
            Some(_) | None => result,
        }
    }
}

impl Drop for Cgroups {
    fn drop(&mut self) {
        // Nobody is there to tell; what is left stays recorded for the next sweep.
        let _ = self.clear();
    }
}

impl Made {
    fn new(path: &Path, controllers: Controllers) -> Result<Self> {
        Ok(Self { group: Group::make(path.to_path_buf())?, controllers })
    }
}

impl Wanted {
    fn of(facts: &CgroupFacts, id: &SandboxId, limits: &Limits) -> Self {
        let name = format!("{PREFIX}{id}");
        let mut wanted = Self::default();
        if let Some(unified) = &facts.unified {
            let held = |found: &Where| *found == Where::Unified;
            let controllers = Controllers {
                memory: held(&facts.memory),
                pids: held(&facts.pids),
                cpu: held(&facts.cpu) && limits.cpu_millis.value() > 0,
                freezer: false,
            };
            wanted.aside = match unified.first {
                First::Nothing => None,
                First::StepAside => Some(Aside::leaf(&unified.parent, id.as_str())),
            };
            wanted.unified = Some((unified.parent.join(&name), controllers));
        } else if let Some(freezer) = &facts.freezer {
            wanted.add(freezer.join(&name), |controllers| controllers.freezer = true);
        }
        if let Where::V1(parent) = &facts.memory {
            wanted.add(parent.join(&name), |controllers| controllers.memory = true);
        }
        if let Where::V1(parent) = &facts.pids {
            wanted.add(parent.join(&name), |controllers| controllers.pids = true);
        }
        if let (Where::V1(parent), 1..) = (&facts.cpu, limits.cpu_millis.value()) {
            wanted.add(parent.join(&name), |controllers| controllers.cpu = true);
        }
        wanted
    }

    /// Controllers that are mounted together share a group.
    fn add(&mut self, path: PathBuf, enable: fn(&mut Controllers)) {
        if let Some((_, controllers)) = self.v1.iter_mut().find(|(known, _)| *known == path) {
            return enable(controllers);
        }
        let mut controllers = Controllers::default();
        enable(&mut controllers);
        self.v1.push((path, controllers));
    }

    /// The format, then each path in the order of removal, all ended by a zero byte.
    fn record(&self) -> Vec<u8> {
        let unified = self.unified.iter().map(|(path, _)| path);
        let paths = unified.chain(self.v1.iter().map(|(path, _)| path)).chain(&self.aside);
        let mut record = Vec::from(FORMAT);
        record.push(0);
        for path in paths {
            record.extend_from_slice(path.as_os_str().as_bytes());
            record.push(0);
        }
        record
    }
}

fn numbers(limits: &Limits, facts: &CgroupFacts) -> Numbers {
    let ceiling = facts.unified.as_ref().map(|unified| unified.ceiling).unwrap_or_default();
    let lower = |limit: u64, ceiling| lowest(Some(limit), ceiling).unwrap_or(limit);
    Numbers {
        memory_bytes: lower(limits.memory_bytes.value(), ceiling.memory_bytes),
        pids: lower(u64::from(limits.pids.value()) + u64::from(GUEST_PROCESSES), ceiling.pids),
        cpu_millis: lower(u64::from(limits.cpu_millis.value()), ceiling.cpu_millis),
    }
}

/// Kills what is in the groups of a record, and removes them. Says how many were there.
pub(crate) fn remove_leftovers(record: &[u8]) -> Result<usize> {
    let mut count = 0;
    for path in recorded(record)? {
        if let Some(group) = Group::find(path)? {
            group.remove()?;
            count += 1;
        }
    }
    Ok(count)
}

/// The paths of a record. One that was cut short by the death of its writer owes nothing, because
/// nothing is made before the record is whole.
fn recorded(record: &[u8]) -> Result<Vec<PathBuf>> {
    let Some(last) = record.iter().rposition(|byte| *byte == 0) else { return Ok(Vec::new()) };
    let mut fields = record.get(..last).unwrap_or_default().split(|byte| *byte == 0);
    if fields.next() != Some(FORMAT) {
        return Err(Error::new(ErrorKind::Unsupported, "its format is unknown to this version"));
    }
    let paths = fields.map(|field| PathBuf::from(OsStr::from_bytes(field)));
    let ours = |path: &PathBuf| {
        path.is_absolute()
            && path.file_name().is_some_and(|name| name.as_bytes().starts_with(PREFIX.as_bytes()))
    };
    Ok(paths.filter(ours).collect())
}

#[cfg(test)]
#[path = "groups_tests.rs"]
mod tests;

//! Version 1: a hierarchy for each controller.

use super::counters::Counter;
use super::directory::{Group, Wait};
use super::facts::Controllers;
use cofferdam_core::{Error, ErrorKind, Result};
use std::time::Duration;

/// The file to which a process writes `0` to join. Joining oneself is cheap; attaching somebody else
/// from outside can take 16 ms.
pub(super) const JOIN: &str = "tasks";
/// The period in which a quota of processor time counts, in microseconds: the kernel's default.
const PERIOD_US: u64 = 100_000;
/// How long freezing may take. It needs a slice of the processor for every thread.
const FREEZE_WITHIN: Duration = Duration::from_secs(2);

/// Numbers to write.
#[derive(Debug, Clone, Copy)]
pub(super) struct Numbers {
    pub(super) memory_bytes: u64,
    pub(super) pids: u64,
    pub(super) cpu_millis: u64,
}

pub(super) fn limit(group: &Group, which: Controllers, numbers: Numbers) -> Result<()> {
    if which.memory {
        let bytes = numbers.memory_bytes.to_string();
        // ORDER: memory before memory and swap, which may not be the lower of the two.
        group.write("memory.limit_in_bytes", &bytes)?;
        group.write_if_there("memory.memsw.limit_in_bytes", &bytes)?;
        // What sockets hold is counted apart, and only where it has a limit.
        group.write_if_there("memory.kmem.tcp.limit_in_bytes", &bytes)?;
    }
    if which.pids {
        group.write("pids.max", &numbers.pids.to_string())?;
    }
    if which.cpu {
        group.write("cpu.cfs_period_us", &PERIOD_US.to_string())?;
        let quota = numbers.cpu_millis.saturating_mul(PERIOD_US) / 1000;
        group.write("cpu.cfs_quota_us", &quota.to_string())?;
    }
    Ok(())
}

pub(super) fn oom_counter(group: &Group) -> Option<Counter> {
    Counter::open(group, "memory.oom_control", "oom_kill")
}

pub(super) fn memory(group: &Group) -> Option<u64> {
    group.number("memory.usage_in_bytes")
}

pub(super) fn peak_memory(group: &Group) -> Option<u64> {
    group.number("memory.max_usage_in_bytes")
}

/// Processor time in microseconds, where that controller is mounted together with this one.
pub(super) fn cpu_us(group: &Group) -> Option<u64> {
    group.number("cpuacct.usage").map(|ns| ns / 1000)
}

/// Freezes or thaws, and returns when that is so.
pub(super) fn set_frozen(group: &Group, state: &'static str) -> Result<()> {
    let mut wait = Wait::new(FREEZE_WITHIN);
    loop {
        // Writing it again is how a freeze that met a moving process is taken up again.
        group.write("freezer.state", state)?;
        if group.read("freezer.state").is_some_and(|text| text.trim() == state) {
            return Ok(());
        }
        if !wait.again() {
            let what = format!("bring {} to {state}", group.path().display());
            return Err(Error::new(ErrorKind::TimedOut, what));
        }
    }
}

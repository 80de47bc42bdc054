//! The processes of a sandbox, and what they use, as the host sees them.

use cofferdam_core::SandboxMetrics;
use std::collections::BTreeMap;

/// How many processes are counted at most: somebody inside may make them without end.
const MAX_COUNTED: usize = 1 << 16;

/// How many processes live below the child of `first` that the sandbox calls `inside`.
// HOSTILE: the sandbox says that number. Whatever it says, what is counted is its own.
pub(super) fn count_below(first: i32, inside: i32) -> u32 {
    let top = children(first).into_iter().find(|pid| inner(*pid) == Some(inside));
    let found = with_descendants(top.into_iter().flat_map(children).collect());
    let lives = |pid: &&i32| stat(**pid).is_some_and(|stat| !stat.has_ended());
    u32::try_from(found.iter().filter(lives).count()).unwrap_or(u32::MAX)
}

/// What a process and all its descendants use: those that live, and those whose end was noticed inside.
pub(super) fn used_by(first: i32) -> SandboxMetrics {
    let ticks = rustix::param::clock_ticks_per_second();
    let page = u64::try_from(rustix::param::page_size()).unwrap_or(u64::MAX);
    let alive: Vec<Stat> = with_descendants(vec![first]).into_iter().filter_map(stat).collect();
    let sum = |of: fn(&Stat) -> u64| alive.iter().map(of).fold(0, u64::saturating_add);
    // Ticks are some ten milliseconds: no number here needs more digits than a float has.
    #[expect(clippy::cast_precision_loss, reason = "it is a measure, not a count")]
    let cpu_ms = sum(|stat| stat.cpu_ticks) as f64 * 1000.0 / ticks.max(1) as f64;
    SandboxMetrics {
        processes: u32::try_from(alive.iter().filter(|stat| !stat.has_ended()).count())
            .unwrap_or(u32::MAX),
        cpu_ms: Some(cpu_ms),
        memory_bytes: Some(sum(|stat| stat.resident_pages).saturating_mul(page)),
        peak_memory_bytes: None,
    }
}

/// These and all below them, as many as are counted.
fn with_descendants(mut found: Vec<i32>) -> Vec<i32> {
    let mut next = 0;
    while let Some(pid) = found.get(next).copied().filter(|_| found.len() < MAX_COUNTED) {
        found.extend(children(pid));
        next += 1;
    }
    found
}

/// All below a process, as many as are counted.
pub(crate) fn descendants(first: i32) -> Vec<i32> {
    with_descendants(children(first))
}

/// What a process is called in its own, innermost namespace.
fn inner(pid: i32) -> Option<i32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    ids.split_whitespace().next_back()?.parse().ok()
}

/// Whether something of a process can run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Motion {
    /// Every thread of it is stopped, or has ended.
    Still,
    /// What is not sleeps where no signal reaches it, as one does whose `vfork` has not returned.
    Asleep,
    /// A thread runs, or may at any moment.
    Moves,
}

/// Looks at every thread of a process: the first may have ended and left others running.
pub(super) fn motion(pid: i32) -> Motion {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Motion::Still };
    let of = |thread: std::fs::DirEntry| {
        let text = std::fs::read_to_string(thread.path().join("stat")).ok()?;
        Some(match text.rsplit_once(") ")?.1.chars().next()? {
            'T' | 't' | 'Z' | 'X' => Motion::Still,
            'D' => Motion::Asleep,
            _ => Motion::Moves,
        })
    };
    threads.flatten().filter_map(of).max().unwrap_or(Motion::Still)
}

/// What is known of a process.
pub(super) struct Stat {
    state: char,
    pub(super) parent: i32,
    /// Its own, and that of children whose end it noticed.
    cpu_ticks: u64,
    resident_pages: u64,
}

impl Stat {
    pub(super) fn has_ended(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }

    /// Whether a signal stopped it. One that is only looked at by a debugger goes on soon.
    pub(super) fn is_stopped(&self) -> bool {
        self.state == 'T'
    }
}

/// Looks at a process; `None` where it is gone.
pub(super) fn stat(pid: i32) -> Option<Stat> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = text.rsplit_once(") ")?;
    let fields: Vec<&str> = fields.split(' ').collect();
    // Field 3 of proc(5) is the first here.
    let number = |field: usize| fields.get(field.checked_sub(3)?)?.parse::<u64>().ok();
    let cpu = (14..=17).filter_map(number).fold(0, u64::saturating_add);
    Some(Stat {
        state: fields.first()?.chars().next()?,
        parent: fields.get(1)?.parse().ok()?,
        cpu_ticks: cpu,
        resident_pages: number(24).unwrap_or(0),
    })
}

/// The children of all threads of a process.
pub(crate) fn children(pid: i32) -> Vec<i32> {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let mut all = Vec::new();
    for thread in threads.flatten() {
        match std::fs::read_to_string(thread.path().join("children")) {
            Ok(text) => all.extend(text.split_whitespace().filter_map(|n| n.parse::<i32>().ok())),
            // A thread that has ended, or a kernel that keeps no list.
            Err(_) if thread.path().join("children").exists() => {}
            Err(_) => return by_parent().remove(&pid).unwrap_or_default(),
        }
    }
    all
}

fn by_parent() -> BTreeMap<i32, Vec<i32>> {
    let mut all: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    let Ok(entries) = std::fs::read_dir("/proc") else { return all };
    for pid in entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()) {
        if let Some(found) = stat(pid) {
            all.entry(found.parent).or_default().push(pid);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn the_time_of_a_process_and_of_its_children_counts() {
        let before = used_by(std::process::id().cast_signed()).cpu_ms.unwrap();
        let line = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        assert!(Command::new("sh").args(["-c", line]).status().unwrap().success());
        let after = used_by(std::process::id().cast_signed()).cpu_ms.unwrap();
        assert!(after > before, "{before} {after}");
    }

    #[test]
    fn what_lives_below_a_process_is_counted() {
        let script = "setsid sh -c 'echo up; sleep 60 & wait' & sh -c 'exit 0' & sleep 60 & wait";
        let mut shell =
            Command::new("sh").args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap();
        let mut word = [0; 2];
        std::io::Read::read_exact(shell.stdout.as_mut().unwrap(), &mut word).unwrap();
        let own = std::process::id().cast_signed();
        let top = shell.id().cast_signed();
        let until = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while count_below(own, inner(top).unwrap()) != 3 {
            assert!(std::time::Instant::now() < until, "{}", count_below(own, top));
        }
        assert_eq!(count_below(own, i32::MAX), 0);
        let used = used_by(top);
        assert_eq!(used.processes, 4);
        assert!(used.memory_bytes.unwrap() > 100 << 10, "{used:?}");
        assert_eq!(used_by(i32::MAX).processes, 0);
        for pid in
            [vec![top], children(top), children(top).into_iter().flat_map(children).collect()]
                .concat()
        {
            let pid = rustix::process::Pid::from_raw(pid).unwrap();
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        shell.wait().unwrap();
        assert_eq!(count_below(own, top), 0);
    }
}

//! What the machine and the processes below this one hold.

use super::Outcome;
use std::fs::read_to_string;

/// A moment's memory, in bytes.
pub(super) struct Memory {
    /// The proportional share of all processes below this one; `None` where one cannot be weighed.
    pub(super) processes: Option<u64>,
    /// Of the kernel: slab that cannot be reclaimed, stacks, page tables, per-processor memory.
    pub(super) kernel: u64,
    /// What could still be given to a program.
    pub(super) available: u64,
}

/// The lines of `/proc/meminfo` that a namespace, a mount or a process makes grow.
const KERNEL: [&str; 4] = ["SUnreclaim", "KernelStack", "PageTables", "Percpu"];

impl Memory {
    pub(super) fn now() -> Outcome<Self> {
        let facts = read_to_string("/proc/meminfo").map_err(|error| error.to_string())?;
        let kernel = KERNEL.iter().filter_map(|name| line_bytes(&facts, name)).sum();
        let available = line_bytes(&facts, "MemAvailable").ok_or("no MemAvailable")?;
        let mut processes = 0;
        let mut unread = 0;
        for id in below(std::process::id()) {
            // A process that is not dumpable is read by root alone; one that just ended by nobody.
            match read_to_string(format!("/proc/{id}/smaps_rollup")) {
                Ok(text) => processes += line_bytes(&text, "Pss").unwrap_or(0),
                Err(_) => unread += 1,
            }
        }
        if unread > 0 {
            eprintln!("{unread} processes cannot be weighed by this user");
        }
        let processes = (unread == 0).then_some(processes);
        Ok(Self { processes, kernel, available })
    }
}

/// The number of a line `Name:   123 kB`.
fn line_bytes(text: &str, name: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    value.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kib| kib << 10)
}

/// What processes hold for themselves, in bytes.
pub(super) struct Weight {
    /// Their proportional share.
    pub(super) share: u64,
    /// What no other process has.
    pub(super) private: u64,
}

impl Weight {
    /// Of these processes; `None` where one cannot be weighed.
    pub(super) fn of(ids: &[String]) -> Option<Self> {
        let mut weight = Self { share: 0, private: 0 };
        for id in ids {
            let text = read_to_string(format!("/proc/{id}/smaps_rollup")).ok()?;
            weight.share += line_bytes(&text, "Pss")?;
            weight.private += line_bytes(&text, "Private_Clean")?;
            weight.private += line_bytes(&text, "Private_Dirty")?;
        }
        Some(weight)
    }
}

/// All processes below one.
pub(super) fn below(process: u32) -> Vec<String> {
    let mut found = Vec::new();
    let mut parents = vec![process.to_string()];
    while let Some(parent) = parents.pop() {
        let Ok(threads) = std::fs::read_dir(format!("/proc/{parent}/task")) else { continue };
        for thread in threads.flatten() {
            let children = read_to_string(thread.path().join("children")).unwrap_or_default();
            for child in children.split_whitespace() {
                found.push(child.to_owned());
                parents.push(child.to_owned());
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_kibibytes() {
        let text = "Pss_Anon:  7 kB\nPss:      12 kB\n";
        assert_eq!(line_bytes(text, "Pss"), Some(12 << 10));
        assert_eq!(line_bytes(text, "Rss"), None);
    }
}

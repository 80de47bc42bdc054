//! The processes of a sandbox, as the host sees them.

use std::collections::BTreeMap;

/// What is known of a process.
pub(super) struct Stat {
    state: char,
    pub(super) parent: i32,
}

impl Stat {
    /// Whether it is stopped, or has ended.
    pub(super) fn is_still(&self) -> bool {
        matches!(self.state, 'T' | 't') || self.has_ended()
    }

    fn has_ended(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }
}

/// Looks at a process; `None` where it is gone.
pub(super) fn stat(pid: i32) -> Option<Stat> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = text.rsplit_once(") ")?;
    let mut fields = fields.split(' ');
    Some(Stat { state: fields.next()?.chars().next()?, parent: fields.next()?.parse().ok()? })
}

/// The children of all threads of a process.
pub(super) fn children(pid: i32) -> Vec<i32> {
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

//! What the host sees of sandboxes: processes, mounts, control groups, records, files.

use crate::place::{Place, STARTED};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

/// Processes of the whole machine whose command line holds a word, by id. The test's own is none.
pub(crate) fn processes(marker: &str) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if String::from_utf8_lossy(&line).contains(marker) && id != std::process::id() {
            found.push(id);
        }
    }
    found
}

/// All that the runs of a place could leave behind.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Traces {
    /// Processes with the place's marker.
    pub(crate) processes: usize,
    /// Mounts that the host sees.
    pub(crate) mounts: Vec<String>,
    /// Control groups of sandboxes that were started here.
    pub(crate) groups: BTreeSet<PathBuf>,
    /// Records of what is owed.
    pub(crate) records: BTreeSet<PathBuf>,
    /// Everything in the place, by name.
    pub(crate) files: BTreeSet<PathBuf>,
}

impl Traces {
    /// Takes in what there is now.
    pub(crate) fn of(place: &Place) -> Self {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let mounts = mounts.lines().filter(|line| line.contains(&place.marker)).map(str::to_owned);
        let mut files = BTreeSet::new();
        below(&place.base, &mut files);
        // The folder itself stays: it is made by the first run.
        let records = files.iter().filter(|path| path.parent() == Some(&place.state.join("owed")));
        Self {
            processes: processes(&place.marker).len(),
            mounts: mounts.collect(),
            groups: groups(),
            records: records.cloned().collect(),
            files: files.into_iter().filter(|path| !path.starts_with(&place.state)).collect(),
        }
    }
}

fn below(path: &Path, found: &mut BTreeSet<PathBuf>) {
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        found.insert(entry.path());
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            below(&entry.path(), found);
        }
    }
}

/// Control groups of sandboxes that were started here. The id of the program stands in their names, and
/// the moment in microseconds since 1970.
fn groups() -> BTreeSet<PathBuf> {
    let started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
    let mut all = BTreeSet::new();
    directories(Path::new("/sys/fs/cgroup"), &mut all);
    all.retain(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let parts = name.strip_prefix("cofferdam-run-").and_then(|rest| rest.split_once('-'));
        parts.is_some_and(|(id, moment)| {
            let first = id.parse().ok().and_then(|id: u32| started.get(&id));
            let made = u128::from_str_radix(moment, 16).ok();
            first.is_some_and(|first| made.is_none_or(|made| made >= *first))
        })
    });
    all
}

fn directories(path: &Path, found: &mut BTreeSet<PathBuf>) {
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            directories(&entry.path(), found);
            found.insert(entry.path());
        }
    }
}

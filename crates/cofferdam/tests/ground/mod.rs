//! A place for one test, and what can be counted there.
#![expect(clippy::unwrap_used, reason = "only tests use this")]

use cofferdam::{Builder, LocalBackend, Sandbox, own_backend};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long anything here may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// A workspace with a repository in it, and a state directory. Gone in the end.
pub(crate) struct Ground {
    pub(crate) place: PathBuf,
}

/// What a sandbox could leave behind.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Left {
    mounts: String,
    cgroups: BTreeSet<PathBuf>,
    records: BTreeSet<PathBuf>,
    files: BTreeSet<PathBuf>,
}

impl Ground {
    pub(crate) fn new(name: &str) -> Self {
        let place = std::env::temp_dir().join(format!("cofferdam-{name}-{}", std::process::id()));
        std::fs::create_dir_all(place.join("workspace/.git/refs")).unwrap();
        std::fs::create_dir(place.join("workspace/.git/objects")).unwrap();
        std::fs::write(place.join("workspace/.git/HEAD"), "ref: refs/heads/main\n").unwrap();
        Self { place }
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.place.join("workspace")
    }

    pub(crate) fn backend(&self) -> Arc<LocalBackend> {
        Arc::new(own_backend(self.place.join("state")))
    }

    pub(crate) fn builder(&self, backend: &Arc<LocalBackend>) -> Builder {
        Sandbox::builder().workspace(self.workspace()).backend(Arc::clone(backend) as _)
    }

    /// Counts what there is of the sandboxes whose ids begin with this.
    pub(crate) fn left(&self, ids: &str) -> Left {
        let mut cgroups = BTreeSet::new();
        let ours = |name: &str| name.starts_with("cofferdam-") && name.contains(ids);
        walk(Path::new("/sys/fs/cgroup"), 8, &mut |path| {
            if path.file_name().is_some_and(|name| ours(&name.to_string_lossy())) {
                cgroups.insert(path.to_path_buf());
            }
        });
        Left {
            mounts: std::fs::read_to_string("/proc/self/mountinfo").unwrap(),
            cgroups,
            records: below(&self.place.join("state/owed")),
            files: below(&self.workspace()),
        }
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.place);
    }
}

fn below(directory: &Path) -> BTreeSet<PathBuf> {
    let mut all = BTreeSet::new();
    walk(directory, 16, &mut |path| {
        all.insert(path.to_path_buf());
    });
    all
}

fn walk(directory: &Path, depth: u32, visit: &mut dyn FnMut(&Path)) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        visit(&entry.path());
        if depth > 0 && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            walk(&entry.path(), depth - 1, visit);
        }
    }
}

/// All that a process started and that is there, zombies included.
pub(crate) fn descendants(of: u32) -> Vec<u32> {
    let mut parents = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let parent = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1));
        if let Some(parent) = parent.and_then(|parent| parent.parse::<u32>().ok()) {
            parents.push((pid, parent));
        }
    }
    let mut found = vec![of];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        found.extend(parents.iter().filter(|(_, p)| *p == parent).map(|(pid, _)| *pid));
        next += 1;
    }
    found.split_off(1)
}

/// Descriptors of processes, to wait for their end.
pub(crate) fn hold(pids: &[u32]) -> Vec<OwnedFd> {
    let pid = |pid: &u32| Pid::from_raw(i32::try_from(*pid).unwrap()).unwrap();
    pids.iter().filter_map(|p| pidfd_open(pid(p), PidfdFlags::empty()).ok()).collect()
}

/// Waits until they have all ended.
pub(crate) fn await_ends(processes: &[OwnedFd]) {
    for process in processes {
        let timeout = Timespec { tv_sec: PATIENCE.as_secs().cast_signed(), tv_nsec: 0 };
        let ready = poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&timeout)).unwrap();
        assert_eq!(ready, 1, "a process outlived its sandbox");
    }
}

/// Waits until something holds.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "never came true: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

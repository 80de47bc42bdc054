//! A directory of one test's own, gone with it.

use crate::state::{StateDirectory, SweepReport};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A fresh directory that is removed when dropped.
pub(crate) struct TestDirectory(PathBuf);

impl TestDirectory {
    /// Below the system's temporary directory, with mode 0755, so that other users can enter it.
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("cofferdam-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TestDirectory {
    fn drop(&mut self) {
        if std::fs::remove_dir_all(&self.0).is_err() {
            // An overlay leaves a directory that even its owner may not enter.
            open_all(&self.0);
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}

fn open_all(directory: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let _ = std::fs::set_permissions(directory, std::fs::Permissions::from_mode(0o700));
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        open_all(&entry.path());
    }
}

/// Sweeps until no owner lives. A child that another test is just starting holds a copy of every
/// lock for an instant.
pub(crate) fn sweep(state: &StateDirectory) -> SweepReport {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let report = state.sweep().unwrap();
        assert_eq!(report.kept, Vec::<String>::new());
        if report.alive == 0 {
            return report;
        }
        assert!(Instant::now() < deadline, "{report:?}");
    }
}

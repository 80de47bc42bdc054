//! What a probe that was killed left on the host.
//!
//! A record names each path, ended by a zero byte, before anything is made there.

use super::PROBE_LEAD;
use crate::state::{Record, StateDirectory};
use cofferdam_core::{Error, ErrorKind, Result};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The record of one probe. Dropping it without [`Noted::settle`] leaves the debt to the next start.
#[derive(Debug)]
pub(crate) struct Noted(Record);

impl Noted {
    /// Begins a record.
    pub(crate) fn new(state: &StateDirectory) -> Result<Self> {
        state.record_probe(&super::random_mark()?).map(Self)
    }

    /// Notes what is about to be made.
    pub(crate) fn add(&self, paths: &[PathBuf]) -> Result<()> {
        let mut content = Vec::new();
        for path in paths {
            content.extend_from_slice(path.as_os_str().as_bytes());
            content.push(0);
        }
        self.0.append(&content)
    }

    /// Removes the record. All that was noted must be gone.
    pub(crate) fn settle(self) -> Result<()> {
        self.0.settle()
    }
}

/// Removes what a record names, and says how many there were.
pub(crate) fn remove(content: &[u8]) -> Result<usize> {
    let mut removed = 0;
    for path in content.split_inclusive(|byte| *byte == 0) {
        // The last one is not whole where its writer died: then nothing was made there.
        if let Some(path) = path.strip_suffix(&[0]) {
            removed += usize::from(remove_one(Path::new(OsStr::from_bytes(path)))?);
        }
    }
    Ok(removed)
}

fn remove_one(path: &Path) -> Result<bool> {
    let is_ours = |name: &OsStr| name.as_bytes().starts_with(PROBE_LEAD.as_bytes());
    if !path.is_absolute() || !path.file_name().is_some_and(is_ours) {
        let message = format!("{} is nothing that a probe makes", path.display());
        return Err(Error::new(ErrorKind::Unsupported, message));
    }
    let outcome = match path.symlink_metadata() {
        // HOSTILE: in a directory that others write, the name may be theirs by now.
        Ok(found) if found.uid() != rustix::process::geteuid().as_raw() => return Ok(false),
        Ok(found) if found.is_dir() => std::fs::remove_dir_all(path),
        Ok(_) => std::fs::remove_file(path),
        Err(error) => Err(error),
    };
    match outcome {
        Ok(()) => Ok(true),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound) => Ok(false),
        Err(error) => {
            Err(Error::new(ErrorKind::Io, format!("remove {}", path.display())).source(error))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_directory::{TestDirectory, sweep};

    #[test]
    fn what_a_killed_probe_left_is_removed_by_the_next_start() {
        let directory = TestDirectory::new("probe-leftovers");
        let state = StateDirectory::open(&directory.path().join("s")).unwrap();
        let path = |name: &str| directory.path().join(name);
        let (ground, canary) = (path(".cofferdam-probe-7"), path(".cofferdam-probe-x"));
        let noted = Noted::new(&state).unwrap();
        noted.add(&[ground.clone(), path(".cofferdam-probe-never-made")]).unwrap();
        noted.add(std::slice::from_ref(&canary)).unwrap();
        std::fs::create_dir_all(ground.join("workspace/.git")).unwrap();
        std::fs::write(&canary, "canary").unwrap();
        assert_eq!(state.sweep().unwrap().alive, 1);
        assert!(ground.exists() && canary.exists(), "its owner lives");
        drop(noted);
        sweep(&state);
        assert!(!ground.exists() && !canary.exists());
        assert!(std::fs::read_dir(path("s/owed")).unwrap().next().is_none());
    }

    #[test]
    fn nothing_else_is_removed() {
        let directory = TestDirectory::new("probe-nothing-else");
        let other = directory.path().join("file");
        std::fs::write(&other, "").unwrap();
        let link = directory.path().join(".cofferdam-probe-link");
        std::os::unix::fs::symlink(directory.path(), &link).unwrap();
        let named = |path: &Path| [path.as_os_str().as_bytes(), &[0]].concat();
        assert_eq!(remove(&named(&other)).unwrap_err().kind, ErrorKind::Unsupported);
        assert_eq!(
            remove(&named(Path::new(".cofferdam-probe-x"))).unwrap_err().kind,
            ErrorKind::Unsupported
        );
        assert_eq!(remove(b"/half/a/pa").unwrap(), 0);
        assert_eq!(remove(&named(&link)).unwrap(), 1);
        assert!(other.exists() && !link.is_symlink());
    }
}

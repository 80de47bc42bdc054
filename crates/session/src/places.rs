//! Where sessions are on disk.

use cofferdam_core::{Error, ErrorKind, Result};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The directories of sessions below the state directory.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    state: PathBuf,
}

impl Places {
    /// Makes what is missing, with mode 0700. Refused where somebody else could write there.
    pub(crate) fn open(state: &Path) -> Result<Self> {
        let places = Self::of(state)?;
        let own =
            [places.locks(), places.homes(), places.kept(), places.bundles(), places.staging()];
        for directory in std::iter::once(state).chain(own.iter().map(PathBuf::as_path)) {
            make_private(directory)?;
        }
        Ok(places)
    }

    /// The same for one who only looks, ends or removes, and makes nothing where no session ever was: there may
    /// be no room for it.
    pub(crate) fn open_to_look(state: &Path) -> Result<Self> {
        let places = Self::of(state)?;
        if places.database().try_exists().unwrap_or(true) {
            return Self::open(state);
        }
        match std::fs::symlink_metadata(state) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(places),
            _ => refuse_others(state).map(|()| places),
        }
    }

    fn of(state: &Path) -> Result<Self> {
        if !state.is_absolute() {
            let what = format!("the state directory {} is not absolute", state.display());
            return Err(
                Error::new(ErrorKind::Config, what).hint("Set COFFERDAM_HOME to an absolute path.")
            );
        }
        Ok(Self { state: state.to_owned() })
    }

    /// The state directory itself.
    pub(crate) fn state(&self) -> &Path {
        &self.state
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.state.join("sessions.db")
    }

    pub(crate) fn locks(&self) -> PathBuf {
        self.state.join("locks")
    }

    pub(crate) fn homes(&self) -> PathBuf {
        self.state.join("homes")
    }

    /// What else stays of sessions: the layers of copy-on-write workspaces.
    pub(crate) fn kept(&self) -> PathBuf {
        self.state.join("kept")
    }

    /// What failed runs left for later study.
    pub(crate) fn bundles(&self) -> PathBuf {
        self.state.join("bundles")
    }

    /// Which carries were begun, and are not known to have ended. Made with the first.
    pub(crate) fn carries(&self) -> PathBuf {
        self.state.join("carries")
    }

    /// What is fetched before it goes into a workspace.
    pub(crate) fn staging(&self) -> PathBuf {
        self.state.join("staging")
    }
}

/// A directory that only its owner can use.
pub(crate) fn make_private(path: &Path) -> Result<()> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|e| failed("make the directory", path, e))?;
    refuse_others(path)
}

/// Fails where it is no directory of ours alone.
fn refuse_others(path: &Path) -> Result<()> {
    let found = std::fs::symlink_metadata(path).map_err(|e| failed("look at", path, e))?;
    let mine = found.uid() == rustix::process::geteuid().as_raw();
    if !found.is_dir() || !mine || found.permissions().mode() & 0o022 != 0 {
        let what = format!("{} is not a directory that only you can write", path.display());
        return Err(Error::new(ErrorKind::Denied, what)
            .hint("Give it to yourself with mode 0700, or set COFFERDAM_HOME to another place."));
    }
    Ok(())
}

fn failed(what: &str, path: &Path, cause: std::io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("{what} {}", path.display()))
        .hint("Make room and give yourself the right to write there, or set COFFERDAM_HOME.")
        .source(cause)
}

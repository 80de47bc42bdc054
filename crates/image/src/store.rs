//! Images that lie ready, in a directory of their owner's alone.
//!
//! ```text
//! images/
//!   layers/<digits of the unpacked layer's digest>/tree/…   what it holds
//!                                                 record.json, owners
//!   records/<digits of the image's digest>.json
//!   used/<digits>/         held by whoever lies on the image
//!   seen/<digits>          which image a file holds, by what the file is
//!   staging/<name>/        what is being made or removed
//!   staging/fetch-<digits>/packed   what is being downloaded, or what came of it before it stopped
//! ```
//!
//! What is below `layers` is whole: it is made below `staging`, written to disk and renamed. Whoever
//! works below `staging` holds a lock on the directory there; what nobody holds is a crash's, and
//! the next opening removes it, but for downloads: a pull goes on with them, and `collect` removes them.
//! Whoever uses an image holds a shared lock on its own directory and on those of its layers, which
//! other images may have too; removing takes that lock alone.

mod directory;
mod fetch;
mod layers;
mod open;
mod pull;
mod record;
mod removal;
mod staging;

pub use fetch::{Blob, Registry, Stop};
pub use record::{ImageRecord, ImageReport, LayerRecord, PulledFrom};
pub use removal::Removed;

use crate::limits::Bounds;
use cofferdam_core::{Error, ErrorKind, Result};
use directory::{open_directory, own_directory};
use rustix::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Unpacked layers.
const LAYERS: &str = "layers";
/// What images are made of.
const RECORDS: &str = "records";
/// Which images are used.
const USED: &str = "used";
/// Which image a file holds.
const SEEN: &str = "seen";
/// What is not whole.
const STAGING: &str = "staging";

/// The images of one state directory.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    directory: OwnedFd,
    bounds: Bounds,
}

/// Layers that are not removed while this lives.
#[derive(Debug, Default)]
pub struct Held {
    _layers: Vec<OwnedFd>,
}

impl Store {
    /// Opens the store below a state directory, makes it where it is not there, and removes what a
    /// crash left.
    pub fn open(state: &Path) -> Result<Self> {
        Self::with_bounds(state, Bounds::default())
    }

    /// The same with other bounds for what is unpacked.
    pub fn with_bounds(state: &Path, bounds: Bounds) -> Result<Self> {
        let path = std::path::absolute(state)
            .map_err(|error| failed("find the state directory", state, error))?
            .join("images");
        let directory = own_directory(&path)?;
        for name in [LAYERS, RECORDS, SEEN, STAGING] {
            own_directory(&path.join(name))?;
        }
        let store = Self { path, directory, bounds };
        store.sweep()?;
        Ok(store)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn folder(&self, name: &str) -> Result<OwnedFd> {
        let opened = open_directory(&self.directory, name);
        opened.map_err(|errno| failed("open", &self.path.join(name), errno))
    }
}

fn failed(what: &str, path: &Path, cause: impl Into<std::io::Error>) -> Error {
    let cause = cause.into();
    let is_full = cause.kind() == std::io::ErrorKind::StorageFull;
    let error = Error::new(ErrorKind::Io, format!("{what} {}", path.display())).source(cause);
    match is_full {
        true => error.hint("Make room on the disk, for instance with `cofferdam image gc`."),
        false => error,
    }
}

#[cfg(test)]
mod record_tests;
#[cfg(test)]
mod tests;

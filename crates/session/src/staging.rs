//! A private directory for what is fetched before it goes into a workspace.
//!
//! ORDER: its lock is taken before it is made, and let go when it is removed. So one whose lock nobody
//! holds is a leftover, which the next start removes.

use crate::lock::{Lock, Locks};
use crate::places::Places;
use crate::{home, random_text};
use cofferdam_core::{Error, ErrorKind, Result};
use std::path::PathBuf;

/// One such directory, removed with the value.
#[derive(Debug)]
pub(crate) struct Staging {
    parent: PathBuf,
    name: String,
    lock: Option<Lock>,
}

impl Staging {
    pub(crate) fn make(places: &Places, locks: &Locks) -> Result<Self> {
        let name = random_text()?;
        let Some(lock) = locks.try_take(&key(&name))? else {
            return Err(Error::new(ErrorKind::Unavailable, "make room for a clone"));
        };
        let staging = Self { parent: places.staging(), name, lock: Some(lock) };
        home::make(&staging.parent, &staging.name)?;
        Ok(staging)
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.parent.join(&self.name)
    }

    /// Removes it with all that is in it.
    pub(crate) fn remove(mut self) -> Result<()> {
        self.clear()
    }

    fn clear(&mut self) -> Result<()> {
        let Some(lock) = self.lock.take() else { return Ok(()) };
        home::remove(&self.parent, &self.name)?;
        lock.retire();
        Ok(())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // What cannot be removed is a leftover.
        self.clear().ok();
    }
}

/// Whether something is there, be it a leftover or what somebody is just fetching.
pub(crate) fn has_any(places: &Places) -> Result<bool> {
    match std::fs::read_dir(places.staging()) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        entries => Ok(entries.map_err(unlisted)?.next().is_some()),
    }
}

fn unlisted(cause: std::io::Error) -> Error {
    Error::new(ErrorKind::Io, "list what was fetched").source(cause)
}

/// The leftovers, each with whether it was removed. Those are looked at alone where nothing is to change.
pub(crate) fn sweep(
    places: &Places,
    locks: &Locks,
    changes: Changes,
) -> Result<Vec<(String, Result<()>)>> {
    let mut swept = Vec::new();
    for entry in std::fs::read_dir(places.staging()).map_err(unlisted)? {
        let Ok(name) = entry.map_err(unlisted)?.file_name().into_string() else { continue };
        let Some(lock) = locks.try_take(&key(&name))? else { continue };
        let removed = match changes {
            Changes::None => Ok(()),
            Changes::Remove => home::remove(&places.staging(), &name),
        };
        if removed.is_ok() {
            lock.retire();
        }
        swept.push((name, removed));
    }
    Ok(swept)
}

/// Whether leftovers are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Changes {
    None,
    Remove,
}

fn key(name: &str) -> String {
    format!("{name}.staging")
}

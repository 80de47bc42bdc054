//! The marker of a history that somebody is at work on, or was when they died.

use super::store::io;
use cofferdam_core::Result;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

/// A file that is there from before the first thing that is made until all is made or taken back. Who
/// finds it tidies.
#[derive(Debug)]
pub(super) struct Marker {
    path: PathBuf,
    is_set: AtomicBool,
}

impl Marker {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, is_set: AtomicBool::new(false) }
    }

    /// Makes it, if that was not done yet.
    pub(super) fn set(&self) -> Result<()> {
        if !self.is_set.load(Ordering::Relaxed) {
            std::fs::write(&self.path, b"").map_err(|e| io("make", &self.path, e))?;
            self.is_set.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Removes it, if it was made here. One that stays costs the next one a look.
    pub(super) fn clear(&self) {
        if self.is_set.swap(false, Ordering::Relaxed) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

//! Which repositories a workspace was seen to have: the file `repositories.json` beside the layer's base.
//! Format 1.
//!
//! It is there to be quick. Whoever cannot read it looks at the whole workspace.

use super::landed::fresh_file;
use super::layer::Layer;
use crate::control_files::{Repositories, repositories};
use cofferdam_core::Result;
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};

/// The file.
const SEEN: &str = "repositories.json";
/// Where it is written until it is whole.
const FRESH: &str = ".repositories.json";
const FORMAT: u32 = 1;
/// The most bytes of the file: as many repositories as a scan finds, of the longest paths.
const MOST_BYTES: u64 = 4 << 20;

/// How far repositories are looked for that no change is in. Their configuration may name what changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Looking {
    /// Those that an earlier look found.
    Remembered,
    /// The whole workspace, as it is now.
    Whole,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    format: u32,
    repositories: Repositories,
}

impl Layer {
    /// The repositories of the workspace.
    pub(super) fn repositories(&self, looking: Looking) -> Result<Repositories> {
        let remembered = match looking {
            Looking::Remembered => read(&self.folder),
            Looking::Whole => None,
        };
        if let Some(remembered) = remembered {
            return Ok(remembered);
        }
        let found = repositories(&self.workspace)?;
        // Where it cannot be kept, the next look takes longer.
        let _ = write(&self.folder, &found);
        Ok(found)
    }
}

fn read(folder: &OwnedFd) -> Option<Repositories> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(folder, SEEN, flags, Mode::empty()).ok()?;
    let mut text = Vec::new();
    std::fs::File::from(file).take(MOST_BYTES).read_to_end(&mut text).ok()?;
    let stored: Stored = serde_json::from_slice(&text).ok()?;
    (stored.format == FORMAT).then_some(stored.repositories)
}

fn write(folder: &OwnedFd, found: &Repositories) -> std::io::Result<()> {
    let stored = Stored { format: FORMAT, repositories: found.clone() };
    fresh_file(folder, FRESH)?.write_all(&serde_json::to_vec(&stored)?)?;
    Ok(rustix::fs::renameat(folder, FRESH, folder, SEEN)?)
}

//! Snapshots of one session on disk: below `snapshots` of what it keeps, one directory each.
//!
//! A directory gets its number when it is whole. One whose name begins with a dot is being made or
//! removed.

use super::copy::{BOUNDS, Copied, copy};
use super::widened::put_back;
use super::{MAX_SNAPSHOTS, SnapshotReport};
use crate::home;
use cofferdam_core::{Error, ErrorKind, Result};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The folder of snapshots.
const SNAPSHOTS: &str = "snapshots";
/// The folder of the layer, and what is in it. The backend made it so.
const LAYER: &str = "cow";
const UPPER: &str = "upper";
const WORK: &str = "work";
const BASE: &str = "base.json";
/// What a layer that is a copy of the workspace needs besides.
const OF_COPIES: [&str; 2] = ["listing", "landed.json"];
/// Where something is made until it is whole.
const FRESH: &str = ".fresh";
/// What is said of a snapshot, beside its copy.
const SAID: &str = "snapshot.json";
/// The format that this program writes, and the only one that it reads.
const FORMAT: u32 = 1;

/// What one session keeps beside its home directory.
#[derive(Debug, Clone)]
pub(super) struct Shelf {
    kept: PathBuf,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Said {
    format: u32,
    label: Option<String>,
    made_ms: u64,
    files: u64,
    bytes: u64,
}

impl Shelf {
    /// That of a session, by its directory.
    pub(super) fn new(kept: PathBuf) -> Self {
        Self { kept }
    }

    fn layer(&self) -> PathBuf {
        self.kept.join(LAYER)
    }

    fn snapshots(&self) -> PathBuf {
        self.kept.join(SNAPSHOTS)
    }

    fn one(&self, number: u32) -> PathBuf {
        self.snapshots().join(number.to_string())
    }

    /// All snapshots, oldest first.
    pub(super) fn all(&self) -> Result<Vec<SnapshotReport>> {
        let folder = self.snapshots();
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(io("list", &folder, e)),
        };
        let mut all = Vec::new();
        for entry in entries {
            let name = entry.map_err(|e| io("list", &folder, e))?.file_name();
            if let Some(number) = name.to_str().and_then(|name| name.parse().ok()) {
                all.push(self.report(number)?);
            }
        }
        all.sort_by_key(|snapshot| snapshot.snapshot);
        Ok(all)
    }

    /// One of them. One that is not there is an error.
    pub(super) fn report(&self, number: u32) -> Result<SnapshotReport> {
        let path = self.one(number).join(SAID);
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                let what = format!("there is no snapshot {number}");
                return Err(Error::new(ErrorKind::NotFound, what)
                    .hint("List the snapshots with `cofferdam snapshot ls`."));
            }
            Err(e) => return Err(io("read", &path, e)),
        };
        let said: Said = serde_json::from_slice(&text)
            .map_err(|e| Error::new(ErrorKind::Io, "a snapshot is damaged").source(e))?;
        if said.format != FORMAT {
            let what = format!("snapshot {number} is of format {}, not {FORMAT}", said.format);
            return Err(Error::new(ErrorKind::Unsupported, what)
                .hint("Use the version of Cofferdam that made it."));
        }
        let Said { format: _, label, made_ms, files, bytes } = said;
        Ok(SnapshotReport { snapshot: number, label, made_ms, files, bytes })
    }

    /// Copies the layer, which nobody may write meanwhile.
    pub(super) fn take(&self, label: Option<String>, made_ms: u64) -> Result<SnapshotReport> {
        self.has_layer()?;
        let all = self.all()?;
        if all.len() >= MAX_SNAPSHOTS {
            let what = format!("the session has {MAX_SNAPSHOTS} snapshots already");
            return Err(Error::new(ErrorKind::TooLarge, what)
                .hint("Remove one with `cofferdam snapshot rm`."));
        }
        let number = all.last().map_or(1, |last| last.snapshot.saturating_add(1));
        home::make(&self.kept, SNAPSHOTS)?;
        let folder = self.snapshots();
        let whole = self.one(number);
        let made = fresh_below(&folder).and_then(|fresh| {
            let Copied { files, bytes } = copy(&self.layer(), &fresh, UPPER, BOUNDS)?;
            copy_file(&self.layer(), &fresh, BASE)?;
            let said = Said { format: FORMAT, label, made_ms, files, bytes };
            let text = serde_json::to_vec(&said)
                .map_err(|e| Error::new(ErrorKind::Io, "write down a snapshot").source(e))?;
            let path = fresh.join(SAID);
            std::fs::write(&path, text).map_err(|e| io("write", &path, e))?;
            settled(&fresh)?;
            std::fs::rename(&fresh, &whole).map_err(|e| io("make", &whole, e))
        });
        or_nothing(made, &folder)?;
        self.report(number)
    }

    /// Puts a copy of a snapshot in the place of the layer, which nobody may use meanwhile. A crash
    /// leaves either the layer or the copy.
    pub(super) fn restore(&self, number: u32) -> Result<SnapshotReport> {
        let report = self.report(number)?;
        self.has_layer()?;
        let fresh = fresh_below(&self.layer()).and_then(|fresh| {
            copy(&self.one(number), &fresh, UPPER, BOUNDS)?;
            settled(&fresh).map(|()| fresh)
        });
        let fresh = or_nothing(fresh, &self.layer())?;
        // ORDER: first, because an older base reports more of what the host changed, and never less.
        copy_file(&self.one(number), &self.layer(), BASE)?;
        let (new, place) = (fresh.join(UPPER), self.layer().join(UPPER));
        renameat_with(CWD, &new, CWD, &place, RenameFlags::EXCHANGE)
            .map_err(|e| io("exchange", &place, e.into()))?;
        home::remove(&self.layer(), FRESH)?;
        // What the kernel noted for the layer that was there. It is made anew.
        home::remove(&self.layer(), WORK)?;
        Ok(report)
    }

    /// Removes a snapshot, and says what it was.
    pub(super) fn remove(&self, number: u32) -> Result<SnapshotReport> {
        let report = self.report(number)?;
        let folder = self.snapshots();
        let old = format!(".old-{number}");
        home::remove(&folder, &old)?;
        // ORDER: it loses its number before anything of it is gone.
        std::fs::rename(self.one(number), folder.join(&old))
            .map_err(|e| io("remove", &self.one(number), e))?;
        home::remove(&folder, &old)?;
        Ok(report)
    }

    /// Copies the layer, which nobody may write meanwhile, or a snapshot of it, to a session that has
    /// none yet.
    pub(super) fn fork(&self, other: &Self, snapshot: Option<u32>) -> Result<()> {
        let from = match snapshot {
            Some(number) => {
                self.report(number)?;
                self.one(number)
            }
            None => {
                self.has_layer()?;
                self.layer()
            }
        };
        if let (Some(above), Some(name)) = (other.kept.parent(), other.kept.file_name()) {
            home::make(above, &name.to_string_lossy())?;
        }
        home::make(&other.kept, LAYER)?;
        // ORDER: first, because a layer without it would be taken for one over the tree of now.
        copy_file(&from, &other.layer(), BASE)?;
        // Of a layer that is a copy. What was copied once, and what landed, is so for all snapshots.
        for name in OF_COPIES.iter().filter(|name| self.layer().join(name).is_file()) {
            copy_file(&self.layer(), &other.layer(), name)?;
        }
        copy(&from, &other.layer(), UPPER, BOUNDS)?;
        settled(&other.layer())
    }

    /// Removes what was being made or removed when somebody died. Says whether there was something. To
    /// be called while nobody else is at work on the session.
    pub(super) fn tidy(&self) -> Result<bool> {
        let mut was_widened = put_back(&self.layer())?;
        for snapshot in self.all()? {
            was_widened |= put_back(&self.one(snapshot.snapshot))?;
        }
        let mut left = Vec::new();
        if self.layer().join(FRESH).is_dir() {
            left.push((self.layer(), FRESH.to_owned()));
        }
        for entry in std::fs::read_dir(self.snapshots()).into_iter().flatten().flatten() {
            if let Some(name) = entry.file_name().to_str().filter(|name| name.starts_with('.')) {
                left.push((self.snapshots(), name.to_owned()));
            }
        }
        left.iter().try_for_each(|(folder, name)| home::remove(folder, name))?;
        Ok(was_widened || !left.is_empty())
    }

    fn has_layer(&self) -> Result<()> {
        match self.layer().join(UPPER).is_dir() && self.layer().join(BASE).is_file() {
            true => Ok(()),
            false => Err(Error::new(ErrorKind::NotFound, "the session has no layer yet")
                .hint("Run a command in it first.")),
        }
    }
}

/// An empty directory to make something in. What a crash left of an earlier one is removed.
fn fresh_below(folder: &Path) -> Result<PathBuf> {
    home::remove(folder, FRESH)?;
    home::make(folder, FRESH)?;
    Ok(folder.join(FRESH))
}

/// What came of making something fresh. Where nothing did, nothing is left: a disk that is full is not
/// kept so.
fn or_nothing<T>(made: Result<T>, folder: &Path) -> Result<T> {
    if made.is_err() {
        let _ = home::remove(folder, FRESH);
    }
    made
}

/// Copies a small file of our own, whole or not at all.
fn copy_file(from: &Path, to: &Path, name: &str) -> Result<()> {
    let (whole, fresh) = (to.join(name), to.join(format!(".{name}")));
    std::fs::copy(from.join(name), &fresh)
        .and_then(|_| std::fs::rename(&fresh, &whole))
        .map_err(|e| io("write", &whole, e))
}

/// Waits until all that was written is on disk, so that what gets its name is whole after a crash too.
fn settled(directory: &Path) -> Result<()> {
    let file = std::fs::File::open(directory).map_err(|e| io("open", directory, e))?;
    rustix::fs::syncfs(&file).map_err(|e| io("write out", directory, e.into()))
}

fn io(what: &str, path: &Path, error: std::io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("{what} {}", path.display())).source(error)
}

//! Packed layers on their way from a registry: files that stay where a download stops.

use super::{STAGING, Store, failed};
use crate::described::LayerSource;
use crate::digest::Digest;
use crate::progress::{Event, Progress};
use cofferdam_core::Result;
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use std::collections::BTreeMap;
use std::fs::File;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Leads the name of a directory with a packed layer.
const LEAD: &str = "fetch-";

/// The packed layer in it.
const PACKED: &str = "packed";

/// One repository of a registry, as far as a pull needs it.
///
/// What it answers is bounded in size and time, and nothing of it is believed here.
pub trait Registry: Sync {
    /// A manifest or a list of them, by a tag or a digest; at most
    /// [`MAX_DOCUMENT_BYTES`](crate::MAX_DOCUMENT_BYTES).
    fn manifest(&self, version: &str) -> Result<Vec<u8>>;

    /// A small blob of this size.
    fn document(&self, digest: &Digest, size: u64) -> Result<Vec<u8>>;

    /// Fills files, some at once, and says of each what came of it, as soon as it is known. Returns
    /// when all are told, or soon after it is stopped.
    fn download(
        &self,
        blobs: Vec<Blob<'_>>,
        stop: &Stop,
        told: &(dyn Fn(usize, Result<()>) + Sync),
    );
}

/// A packed layer that is downloaded.
#[derive(Debug)]
pub struct Blob<'a> {
    /// What it is told as.
    pub number: usize,
    /// What it must be.
    pub digest: Digest,
    /// How long it must be.
    pub size: u64,
    /// Where it goes. What an earlier download left is in it.
    pub file: File,
    /// How many bytes of the file are there, for who looks on.
    pub passed: &'a AtomicU64,
}

/// What ends downloads.
#[derive(Debug, Default)]
pub struct Stop(AtomicBool);

impl Stop {
    /// Ends them.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether they are to end.
    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Whether a name in the staging place is that of a download.
pub(super) fn is_fetch(name: &str) -> bool {
    of_fetch(name).is_some()
}

/// The digits of the packed layer whose download has this name in the staging place.
pub(super) fn of_fetch(name: &str) -> Option<&str> {
    name.strip_prefix(LEAD)
}

/// A packed layer of which we alone have the file.
#[derive(Debug)]
pub(super) struct Fetch {
    pub(super) digest: Digest,
    pub(super) size: u64,
    /// How much an earlier download left.
    pub(super) resumed_bytes: u64,
    pub(super) passed: AtomicU64,
    file: File,
    directory: OwnedFd,
}

impl Fetch {
    /// The file, read and written from its own place.
    pub(super) fn file(&self) -> Result<File> {
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.directory, PACKED, flags, Mode::empty());
        file.map(File::from)
            .map_err(|errno| failed("open the download of", self.digest.hex().as_ref(), errno))
    }

    /// How much of it is there.
    pub(super) fn len(&self) -> u64 {
        self.file.metadata().map_or(0, |metadata| metadata.len())
    }
}

impl Store {
    /// The packed layers that are missing, each once. Nobody else has them while this lives.
    pub(super) fn fetches(
        &self,
        layers: &[LayerSource],
        progress: &mut dyn Progress,
    ) -> Result<Vec<Fetch>> {
        // ORDER: by digest, so that no two processes ever wait for each other.
        let wanted: BTreeMap<&Digest, &LayerSource> = layers
            .iter()
            .filter_map(|layer| layer.packed.as_ref().map(|packed| (packed, layer)))
            .collect();
        let mut fetches = Vec::new();
        for (digest, layer) in wanted {
            let is_there = || {
                let same = layers.iter().filter(|one| one.packed.as_ref() == Some(digest));
                same.into_iter().all(|one| self.layer(&one.diff_id).exists())
            };
            let waits = || progress.tell(Event::Waiting { layer: digest.to_string() });
            let name = format!("{LEAD}{}", digest.hex());
            if let Some(directory) = self.claim(&name, is_there, waits)? {
                let fetch = self.fetch(directory, digest.clone(), layer.size.unwrap_or(0))?;
                match is_there() {
                    true => self.discard(&fetch)?,
                    false => fetches.push(fetch),
                }
            }
        }
        Ok(fetches)
    }

    fn fetch(&self, directory: OwnedFd, digest: Digest, size: u64) -> Result<Fetch> {
        let path = self.path.join(STAGING);
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&directory, PACKED, flags, Mode::RUSR | Mode::WUSR);
        let file = File::from(file.map_err(|errno| failed("make a file in", &path, errno))?);
        let there = file.metadata().map_err(|error| failed("look at", &path, error))?.len();
        let resumed_bytes = if there > size { 0 } else { there };
        file.set_len(resumed_bytes).map_err(|error| failed("cut a file in", &path, error))?;
        let passed = AtomicU64::new(resumed_bytes);
        Ok(Fetch { digest, size, resumed_bytes, passed, file, directory })
    }

    /// Removes the file of one that is not needed any more.
    pub(super) fn discard(&self, fetch: &Fetch) -> Result<()> {
        let (folder, name) = (self.folder(STAGING)?, format!("{LEAD}{}", fetch.digest.hex()));
        super::directory::remove_all(&folder, name.as_bytes())
            .map_err(|errno| failed("remove", &self.path.join(STAGING).join(&name), errno))
    }
}

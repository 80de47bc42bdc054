//! Removing images, and layers that no image has any more.

use super::directory::{Lock, lock, remove_all};
use super::fetch::is_fetch;
use super::record::ImageRecord;
use super::{LAYERS, RECORDS, SEEN, STAGING, Store, USED, failed};
use crate::digest::Digest;
use cofferdam_core::{Error, ErrorKind, Result};
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::Path;

/// What was removed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Removed {
    /// Ids of images.
    pub images: Vec<String>,
    /// Digests of layers.
    pub layers: Vec<String>,
}

impl Store {
    /// Removes one image and the layers that no other one has. `sessions` are ids of images that
    /// sessions lie on. One that only shares layers with an image that is used is not: what a sandbox
    /// lies on stays with that other one.
    pub fn remove(&self, name: &str, sessions: &BTreeSet<String>) -> Result<Removed> {
        let record = self.find_record(name)?;
        let busy =
            |who: &str| Error::new(ErrorKind::Conflict, format!("image {name} is used by {who}"));
        if sessions.contains(record.id.as_str()) {
            return Err(
                busy("a session").hint("Remove the session first; `cofferdam ls` lists them.")
            );
        }
        if self.is_used(&record)? {
            return Err(busy("a sandbox that runs").hint("Wait for its end, or end it."));
        }
        let mut removed = Removed::default();
        self.forget(&record, &mut removed)?;
        self.remove_layers(&mut removed)?;
        Ok(removed)
    }

    /// Removes all images that neither a session nor a sandbox uses, and what belongs to none:
    /// downloads that were interrupted among it.
    pub fn collect(&self, sessions: &BTreeSet<String>) -> Result<Removed> {
        let mut removed = Removed::default();
        for record in self.records()? {
            if !sessions.contains(record.id.as_str()) && !self.is_used(&record)? {
                self.forget(&record, &mut removed)?;
            }
        }
        self.remove_layers(&mut removed)?;
        self.sweep_all(is_fetch)?;
        Ok(removed)
    }

    fn forget(&self, record: &ImageRecord, removed: &mut Removed) -> Result<()> {
        let path = self.path.join(RECORDS).join(format!("{}.json", record.id.hex()));
        remove_file(&path)?;
        removed.images.push(record.id.to_string());
        self.forget_use(&record.id)?;
        let seen = self.path.join(SEEN);
        for entry in std::fs::read_dir(&seen).map_err(|error| failed("list", &seen, error))? {
            let path = entry.map_err(|error| failed("list", &seen, error))?.path();
            if super::record::read::<Digest>(&path).ok().flatten().is_none_or(|id| id == record.id)
            {
                remove_file(&path)?;
            }
        }
        Ok(())
    }

    /// Removes the directory that was held by who lay on an image, unless somebody just began to.
    fn forget_use(&self, id: &Digest) -> Result<()> {
        let path = self.path.join(USED);
        if !path.join(id.hex()).exists() {
            return Ok(());
        }
        let folder = self.folder(USED)?;
        let alone = lock(&folder, id.hex(), Lock::Alone).map_err(|e| failed("lock", &path, e))?;
        let Some(_alone) = alone else { return Ok(()) };
        remove_all(&folder, id.hex().as_bytes()).map_err(|errno| failed("remove", &path, errno))
    }

    /// Removes the layers that no image has and nobody holds.
    pub(super) fn remove_layers(&self, removed: &mut Removed) -> Result<()> {
        let (folder, staging) = (self.folder(LAYERS)?, self.folder(STAGING)?);
        let wanted: BTreeSet<Digest> =
            self.records()?.into_iter().flat_map(|record| record.layers).collect();
        let wanted: BTreeSet<&str> = wanted.iter().map(Digest::hex).collect();
        let path = self.path.join(LAYERS);
        let entries = rustix::fs::Dir::read_from(&folder).map_err(|e| failed("list", &path, e))?;
        for entry in entries {
            let entry = entry.map_err(|errno| failed("list", &path, errno))?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            if matches!(name, "." | "..") || wanted.contains(name) {
                continue;
            }
            let path = path.join(name);
            // Who unpacks an image holds its layers until its record is written.
            let alone = lock(&folder, name, Lock::Alone).map_err(|e| failed("lock", &path, e))?;
            let Some(_alone) = alone else { continue };
            // ORDER: out of the way first, whole, so that nobody ever takes a half of it for all.
            let going = format!("gone-{name}");
            rustix::fs::renameat(&folder, name, &staging, &going)
                .and_then(|()| remove_all(&staging, going.as_bytes()))
                .map_err(|errno| failed("remove", &path, errno))?;
            removed.layers.push(format!("sha256:{name}"));
        }
        Ok(())
    }
}

fn remove_file(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other.map_err(|error| failed("remove", path, error)),
    }
}

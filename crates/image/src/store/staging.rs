//! What is being made or removed.

use super::directory::{Lock, lock, remove_all};
use super::fetch::is_fetch;
use super::record::is_unwritten;
use super::{RECORDS, SEEN, STAGING, Store, failed};
use cofferdam_core::{Error, ErrorKind, Result};
use rustix::fd::OwnedFd;
use rustix::fs::Mode;
use rustix::io::Errno;
use std::time::{Duration, Instant};

/// How long one process waits for another that downloads or unpacks the same layer.
const WAIT: Duration = Duration::from_secs(3600);

/// How often it looks.
const LOOK: Duration = Duration::from_millis(50);

/// A directory that is being filled. Dropping it removes it, unless it was renamed away.
#[derive(Debug)]
pub(super) struct Staged {
    folder: OwnedFd,
    name: String,
    directory: OwnedFd,
}

impl Store {
    /// An empty directory of this name, once nobody else has it. `None` as soon as `done` holds.
    pub(super) fn stage(
        &self,
        name: &str,
        done: impl Fn() -> bool,
        waits: impl FnOnce(),
    ) -> Result<Option<Staged>> {
        let Some(directory) = self.claim(name, &done, waits)? else { return Ok(None) };
        // What a crash left in it is nothing to go on with.
        let staged = Staged { folder: self.folder(STAGING)?, name: name.to_owned(), directory };
        let path = self.path.join(STAGING).join(name);
        staged.empty().map_err(|errno| failed("empty", &path, errno))?;
        // The one who had it may have finished meanwhile.
        Ok((!done()).then_some(staged))
    }

    /// A directory of this name as it was left, once nobody else has it. `None` as soon as `done`
    /// holds.
    pub(super) fn claim(
        &self,
        name: &str,
        done: impl Fn() -> bool,
        waits: impl FnOnce(),
    ) -> Result<Option<OwnedFd>> {
        let folder = self.folder(STAGING)?;
        let path = self.path.join(STAGING).join(name);
        let end = Instant::now() + WAIT;
        let mut waits = Some(waits);
        while !done() {
            match rustix::fs::mkdirat(&folder, name, Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(failed("make", &path, errno)),
            }
            let locked = lock(&folder, name, Lock::Alone).map_err(|e| failed("lock", &path, e))?;
            if locked.is_some() {
                return Ok(locked);
            }
            if Instant::now() > end {
                let what = format!("another process has been at {name} for too long");
                return Err(Error::new(ErrorKind::Unavailable, what)
                    .hint("End the process that makes this image ready, and try again."));
            }
            if let Some(waits) = waits.take() {
                waits();
            }
            std::thread::sleep(LOOK);
        }
        Ok(None)
    }

    /// Removes what nobody works at any more, but for what a download can go on with.
    pub(super) fn sweep(&self) -> Result<()> {
        self.sweep_all(|name| !is_fetch(name))?;
        self.sweep_unwritten()
    }

    /// Removes records that were not written to their end by those who are gone.
    fn sweep_unwritten(&self) -> Result<()> {
        for place in [RECORDS, SEEN] {
            let path = self.path.join(place);
            let left = unwritten(&self.folder(place)?).map_err(|e| failed("list", &path, e))?;
            if left.is_empty() {
                continue;
            }
            // Who writes one holds this; what is left then is the next opening's.
            let Some(_alone) = self.alone_at_quiet_records()? else { return Ok(()) };
            let folder = self.folder(place)?;
            // Not those from before: they may have been written meanwhile, and others of their names begun.
            for name in unwritten(&folder).map_err(|errno| failed("list", &path, errno))? {
                remove_all(&folder, name.as_bytes())
                    .map_err(|errno| failed("remove", &path.join(&name), errno))?;
            }
        }
        Ok(())
    }

    /// The same with those of this name.
    pub(super) fn sweep_all(&self, goes: impl Fn(&str) -> bool) -> Result<()> {
        let folder = self.folder(STAGING)?;
        let path = self.path.join(STAGING);
        let entries = rustix::fs::Dir::read_from(&folder).map_err(|e| failed("list", &path, e))?;
        for entry in entries {
            let entry = entry.map_err(|errno| failed("list", &path, errno))?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            if matches!(name, "." | "..") || !goes(name) {
                continue;
            }
            let abandoned =
                lock(&folder, name, Lock::Alone).map_err(|e| failed("lock", &path, e))?;
            if abandoned.is_some() {
                remove_all(&folder, name.as_bytes())
                    .map_err(|errno| failed("remove", &path.join(name), errno))?;
            }
        }
        Ok(())
    }
}

/// The names in this directory of what is being written or was left so.
fn unwritten(folder: &OwnedFd) -> rustix::io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in rustix::fs::Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy();
        if is_unwritten(&name) {
            names.push(name.into_owned());
        }
    }
    Ok(names)
}

impl Staged {
    pub(super) fn directory(&self) -> &OwnedFd {
        &self.directory
    }

    /// Writes it to the disk and gives it its place, where nobody else may have put the same.
    pub(super) fn finish(mut self, into: &OwnedFd, name: &str) -> rustix::io::Result<()> {
        // ORDER: content before the name that promises it, so that no crash of the machine leaves a
        // layer with holes.
        rustix::fs::syncfs(&self.directory)?;
        match rustix::fs::renameat(&self.folder, &self.name, into, name) {
            Err(Errno::EXIST | Errno::NOTEMPTY) => Ok(()),
            other => {
                other?;
                self.name.clear();
                Ok(())
            }
        }
    }

    fn empty(&self) -> rustix::io::Result<()> {
        for entry in rustix::fs::Dir::read_from(&self.directory)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if !matches!(name, b"." | b"..") {
                remove_all(&self.directory, name)?;
            }
        }
        Ok(())
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if !self.name.is_empty() {
            // What cannot be removed is the next opening's.
            let _ = remove_all(&self.folder, self.name.as_bytes());
        }
    }
}

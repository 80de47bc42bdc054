//! Copies of contents: one file each that nobody changes, named by its number, shared by all trees that
//! name it.

use cofferdam_core::{Error, ErrorKind, Result};
use rustix::fs::{AtFlags, Mode, OFlags, fstat, linkat, openat, unlinkat};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// The blobs of one history, and those that were made just now.
#[derive(Debug)]
pub(crate) struct Blobs {
    path: PathBuf,
    folder: OwnedFd,
    /// The number of the next one.
    pub(super) next: u64,
    /// Those that were made, which nothing names yet.
    fresh: Vec<u64>,
    /// The bytes on disk of those.
    pub(super) bytes: u64,
}

/// The bytes on disk of one block as the kernel counts them.
const BLOCK_BYTES: u64 = 512;

impl Blobs {
    /// Those of a folder. Numbers from `next` on are free, but for what a crash left.
    pub(super) fn new(path: PathBuf, next: u64) -> Result<Self> {
        let folder = super::walk::directory(&path)?;
        Ok(Self { path, folder, next, fresh: Vec::new(), bytes: 0 })
    }

    /// One of them, to be read.
    pub(crate) fn open(&self, blob: u64) -> Result<OwnedFd> {
        open(&self.folder, blob)
    }

    /// A new one, empty, with its number.
    pub(crate) fn make(&mut self) -> Result<(u64, OwnedFd)> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        loop {
            let number = self.take_number();
            let made = openat(&self.folder, number.to_string(), flags, Mode::RUSR | Mode::WUSR);
            match made {
                Ok(file) => {
                    self.fresh.push(number);
                    return Ok((number, file));
                }
                Err(Errno::EXIST) => {}
                Err(e) => return Err(io("make", &self.path, number, e)),
            }
        }
    }

    /// Counts what was written to a new one.
    pub(crate) fn made(&mut self, file: &OwnedFd) -> Result<()> {
        let stat = fstat(file).map_err(|e| io("look at", &self.path, self.next, e))?;
        let blocks = u64::try_from(stat.st_blocks).unwrap_or(0);
        self.bytes = self.bytes.saturating_add(blocks.saturating_mul(BLOCK_BYTES));
        Ok(())
    }

    /// A new one that is one of another history, by another name of the same file where that can be.
    pub(super) fn share(&mut self, from: &Self, blob: u64, size: u64) -> Result<u64> {
        loop {
            let number = self.take_number();
            let (old, new) = (blob.to_string(), number.to_string());
            match linkat(&from.folder, &*old, &self.folder, &*new, AtFlags::empty()) {
                Ok(()) => {
                    self.fresh.push(number);
                    return Ok(number);
                }
                Err(Errno::EXIST) => {}
                Err(Errno::MLINK | Errno::PERM | Errno::XDEV) => break,
                Err(e) => return Err(io("share", &from.path, blob, e)),
            }
        }
        let source = from.open(blob)?;
        let (number, target) = self.make()?;
        let mut copier = super::content::Copier::new(u64::MAX);
        use std::os::fd::AsFd;
        copier.copy((source.as_fd(), target.as_fd()), size, b"a blob")?;
        self.made(&target)?;
        Ok(number)
    }

    /// Nothing is to be taken back any more.
    pub(super) fn keep(&mut self) {
        self.fresh.clear();
    }

    fn take_number(&mut self) -> u64 {
        let number = self.next;
        self.next = self.next.saturating_add(1);
        number
    }
}

impl Drop for Blobs {
    fn drop(&mut self) {
        // What nothing names yet: a disk that is full is not kept so. The first one goes last, because who
        // is killed here is known to have died at work by that one.
        for blob in self.fresh.iter().rev() {
            let _ = unlinkat(&self.folder, blob.to_string(), AtFlags::empty());
        }
    }
}

/// One of the blobs in a folder, to be read.
pub(super) fn open(folder: &OwnedFd, blob: u64) -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(folder, blob.to_string(), flags, Mode::empty()).map_err(|e| {
        Error::new(ErrorKind::Io, format!("the content {blob} of the history is not there"))
            .hint("Go to another point of the history.")
            .source(std::io::Error::from(e))
    })
}

fn io(what: &str, path: &Path, blob: u64, error: Errno) -> Error {
    Error::new(ErrorKind::Io, format!("{what} {}", path.join(blob.to_string()).display()))
        .source(std::io::Error::from(error))
}

//! Copies of contents that nobody changes, named by a number and shared by all trees that name it: a file
//! each, or, where they are small, a part of the file of a point.

use super::pack::{self, Pack, Parts};
use super::tree::Content;
use cofferdam_core::{Error, ErrorKind, Result};
use rustix::fs::{
    AtFlags, MemfdFlags, Mode, OFlags, fstat, linkat, memfd_create, openat, unlinkat,
};
use rustix::io::Errno;
use std::collections::HashMap;
use std::fs::File;
use std::io::{Seek, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Where files are that have contents in them, from the folder of blobs. What was removed from the points
/// and is still named goes to the lists.
const PACKS: [&str; 2] = ["../points", "../trees"];

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
    /// Small ones that were made, and go into the file of the next point.
    pack: Option<Pack>,
    /// The numbers here of files of another history, and those that were made just now.
    foreign: HashMap<u32, u32>,
}

/// The bytes on disk of one block as the kernel counts them.
const BLOCK_BYTES: u64 = 512;

impl Blobs {
    /// Those of a folder. Numbers from `next` on are free, but for what a crash left.
    pub(super) fn new(path: PathBuf, next: u64) -> Result<Self> {
        let folder = super::walk::directory(&path)?;
        let (fresh, foreign) = (Vec::new(), HashMap::new());
        Ok(Self { path, folder, next, fresh, bytes: 0, pack: None, foreign })
    }

    /// The same, of which small ones go into the file of the point of this number.
    pub(super) fn packing(mut self, point: u32) -> Self {
        self.pack = Some(Pack::new(point));
        self
    }

    /// One of them, to be read from its beginning.
    pub(crate) fn open(&self, content: Content) -> Result<OwnedFd> {
        let Some((number, _)) = pack::place(content.blob) else {
            return open(&self.folder, content.blob);
        };
        let bytes = self.packed(content).ok_or_else(|| {
            let what = format!("a content of point {number} of the history is not there");
            Error::new(ErrorKind::Io, what).hint("Go to another point of the history.")
        })?;
        in_memory(&bytes).map_err(|e| Error::new(ErrorKind::Io, "hold a content").source(e))
    }

    /// Whether it is a part of a file.
    pub(super) fn is_packed(&self, content: Content) -> bool {
        pack::place(content.blob).is_some()
    }

    /// Whether it is a part of a file, and these bytes.
    pub(super) fn packs(&self, content: Content, bytes: &[u8]) -> bool {
        self.packed(content).is_some_and(|kept| kept == bytes)
    }

    /// Makes a part of the next file of these bytes, if there is room.
    pub(super) fn pack(&mut self, bytes: &[u8]) -> Option<u64> {
        self.pack.as_mut()?.add(bytes)
    }

    /// What is to be written to that file. Contents come from here on into the one of this point.
    pub(super) fn take_pack(&mut self, next_point: u32) -> Option<Pack> {
        self.pack.replace(Pack::new(next_point))
    }

    /// The bytes of one that is a part of a file.
    pub(super) fn packed(&self, content: Content) -> Option<Vec<u8>> {
        let (number, at) = pack::place(content.blob)?;
        let part = at..at.checked_add(content.size.min(pack::MAX_SMALL_BYTES))?;
        if let Some(pack) = self.pack.as_ref().filter(|pack| pack.number == number) {
            return pack.get(part);
        }
        let file = File::from(self.pack_file(number)?);
        let parts = Parts::of(&file)?;
        let is_inside = parts.contents.start <= part.start && part.end <= parts.contents.end;
        Parts::read(&file, part).filter(|_| is_inside)
    }

    fn pack_file(&self, number: u32) -> Option<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = |place| openat(&self.folder, format!("{place}/{number}"), flags, Mode::empty());
        PACKS.iter().find_map(|place| open(place).ok())
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
    pub(super) fn share(&mut self, from: &Self, content: Content) -> Result<u64> {
        let Content { blob, size } = content;
        if let Some((number, _)) = pack::place(blob)
            && let Some(own) = self.share_pack(from, number)?
        {
            return Ok(pack::moved(blob, own));
        }
        while !from.is_packed(content) {
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
        let source = from.open(content)?;
        let (number, target) = self.make()?;
        let mut copier = super::content::Copier::new(u64::MAX);
        copier.copy((source.as_fd(), target.as_fd()), size, b"a blob")?;
        self.made(&target)?;
        Ok(number)
    }

    /// The number here of a file of another history, by another name of it; nothing where that cannot be.
    fn share_pack(&mut self, from: &Self, number: u32) -> Result<Option<u32>> {
        if let Some(own) = self.foreign.get(&number) {
            return Ok(Some(*own));
        }
        // LIMIT: each is one of as many points at most.
        let mut own = pack::FOREIGN;
        for place in PACKS {
            while own < pack::TOO_HIGH {
                let (old, new) = (format!("{place}/{number}"), format!("../trees/{own}"));
                match linkat(&from.folder, &*old, &self.folder, &*new, AtFlags::empty()) {
                    Ok(()) => {
                        self.foreign.insert(number, own);
                        return Ok(Some(own));
                    }
                    Err(Errno::EXIST) => own += 1,
                    Err(Errno::NOENT) => break,
                    Err(Errno::MLINK | Errno::PERM | Errno::XDEV) => return Ok(None),
                    Err(e) => return Err(io("share a file of", &from.path, number.into(), e)),
                }
            }
        }
        Ok(None)
    }

    /// Nothing is to be taken back any more.
    pub(super) fn keep(&mut self) {
        self.fresh.clear();
        self.foreign.clear();
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
        for own in self.foreign.values() {
            let _ = unlinkat(&self.folder, format!("../trees/{own}"), AtFlags::empty());
        }
    }
}

/// A file that is nowhere, with these bytes.
fn in_memory(bytes: &[u8]) -> std::io::Result<OwnedFd> {
    let mut file = File::from(memfd_create(c"content", MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    // It is read from its beginning, by whoever asks for no place in it.
    file.rewind()?;
    Ok(file.into())
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

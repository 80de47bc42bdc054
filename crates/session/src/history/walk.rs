//! All names of a layer, with what the kernel says of each.
//!
//! HOSTILE: names, modes and depth come from inside. Nothing is followed, every name is used beneath a
//! directory that is held open, nothing but directories is opened, and there are bounds.

use super::tree::{MAX_TREE_DEPTH, MAX_TREE_ENTRIES};
use super::widened::Widened;
use cofferdam_core::{Error, ErrorKind, Result};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, chmodat, fstat, openat, statat};
use rustix::io::Errno;
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

/// What a look at a layer may cost.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Files and directories.
    pub(crate) entries: usize,
    /// Bytes of content that are read.
    pub(crate) bytes: u64,
    /// Directories within directories.
    pub(crate) depth: usize,
}

impl Bounds {
    /// Those of every walk, with so many bytes.
    pub(crate) const fn of(bytes: u64) -> Self {
        Self { entries: MAX_TREE_ENTRIES, bytes, depth: MAX_TREE_DEPTH }
    }
}

/// Whether anything can happen in a layer while it is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stillness {
    /// Whoever could change it is frozen or gone.
    Still,
    /// Nobody is known to be at work in it, but somebody may begin.
    Perhaps,
}

/// One name.
#[derive(Debug, Clone)]
pub(super) struct Found {
    /// Its path below the top; empty for the top itself.
    pub(super) path: Vec<u8>,
    pub(super) stat: Stat,
}

impl Found {
    pub(super) fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.stat.st_mode)
    }

    /// What tells this state of it from every other one.
    pub(super) fn mark(&self) -> Mark {
        Mark::of(&self.stat)
    }
}

/// What tells one state of a file from another, as long as the clock went on between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) device: u64,
    pub(super) inode: u64,
    /// When it was changed last, by the clock that nobody inside can set.
    pub(super) changed: (i64, u32),
}

impl Mark {
    pub(super) fn of(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev,
            inode: stat.st_ino,
            changed: (stat.st_ctime, u32::try_from(stat.st_ctime_nsec).unwrap_or(0)),
        }
    }
}

/// Walks through the directory `name` of a folder.
pub(super) struct Walk<'w> {
    bounds: Bounds,
    stillness: Stillness,
    widened: &'w mut Widened,
    found: Vec<Found>,
}

/// All that is at and below `name`, in the order of a walk.
pub(super) fn walk(
    folder: &Path,
    name: &CStr,
    (bounds, stillness): (Bounds, Stillness),
    widened: &mut Widened,
) -> Result<Vec<Found>> {
    let above = directory(folder)?;
    let mut walk = Walk { bounds, stillness, widened, found: Vec::new() };
    let stat = look((above.as_fd(), name))?;
    walk.directory((above.as_fd(), name), Found { path: Vec::new(), stat }, 0)?;
    Ok(walk.found)
}

/// A name in a directory.
pub(super) type Named<'a> = (BorrowedFd<'a>, &'a CStr);

impl Walk<'_> {
    fn directory(&mut self, at: Named<'_>, found: Found, depth: usize) -> Result<()> {
        if depth > self.bounds.depth {
            let most = self.bounds.depth;
            return Err(too_large(&format!("more than {most} directories within directories")));
        }
        let opened = open((at, &found.stat), (self.stillness, &mut *self.widened))?;
        let path = found.path.clone();
        self.push(found)?;
        let above = self.widened.enter(at.1);
        for name in names((opened.as_fd(), at.1), self.bounds.entries - self.found.len())? {
            let stat = match look((opened.as_fd(), &name)) {
                Ok(stat) => stat,
                Err(_) if self.stillness == Stillness::Perhaps => return Err(moved()),
                Err(error) => return Err(error),
            };
            let mut inner = path.clone();
            if !inner.is_empty() {
                inner.push(b'/');
            }
            inner.extend(name.to_bytes());
            let found = Found { path: inner, stat };
            match found.kind() == FileType::Directory {
                true => self.directory((opened.as_fd(), &name), found, depth + 1)?,
                false => self.push(found)?,
            }
        }
        self.widened.leave(above);
        Ok(())
    }

    fn push(&mut self, found: Found) -> Result<()> {
        if self.found.len() >= self.bounds.entries {
            return Err(too_large(&format!("more than {} files", self.bounds.entries)));
        }
        self.found.push(found);
        Ok(())
    }
}

/// Opens a file or directory of the layer to read it, whatever its permissions, if it is still the one
/// that was looked at.
pub(super) fn open(
    ((above, name), stat): (Named<'_>, &Stat),
    (stillness, widened): (Stillness, &mut Widened),
) -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(stat.st_mode & 0o7777);
    let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
    // What is in a directory is found only by who may search it.
    let needed = if is_directory { Mode::RUSR | Mode::XUSR } else { Mode::RUSR };
    if !mode.contains(needed) && !rustix::process::geteuid().is_root() {
        if stillness == Stillness::Perhaps {
            return Err(moved());
        }
        // ORDER: written down before it is done.
        widened.note(name, mode)?;
        chmodat(above, name, mode | needed, AtFlags::empty())
            .map_err(|e| failed("open up", name.to_bytes(), e))?;
    }
    let changed = |e| match stillness {
        Stillness::Perhaps => moved(),
        Stillness::Still => failed("open", name.to_bytes(), e),
    };
    let file = openat(above, name, flags, Mode::empty()).map_err(changed)?;
    let now = fstat(&file).map_err(|e| failed("look at", name.to_bytes(), e))?;
    match (now.st_dev, now.st_ino) == (stat.st_dev, stat.st_ino) {
        true => Ok(file),
        false => Err(changed(Errno::STALE)),
    }
}

/// A directory of our own.
pub(super) fn directory(path: &Path) -> Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
    rustix::fs::open(path, flags, Mode::empty()).map_err(|e| {
        Error::new(ErrorKind::Io, format!("open {}", path.display()))
            .source(std::io::Error::from(e))
    })
}

fn look((above, name): Named<'_>) -> Result<Stat> {
    statat(above, name, AtFlags::SYMLINK_NOFOLLOW)
        .map_err(|e| failed("look at", name.to_bytes(), e))
}

/// The names in a directory, in the order of their bytes.
fn names((directory, name): Named<'_>, most: usize) -> Result<Vec<CString>> {
    let bad = |e| failed("list", name.to_bytes(), e);
    let mut found = Vec::new();
    for entry in Dir::read_from(directory).map_err(bad)? {
        let entry = entry.map_err(bad)?;
        if entry.file_name() == c"." || entry.file_name() == c".." {
            continue;
        }
        // LIMIT: before all names of a huge directory are in memory.
        if found.len() >= most {
            return Err(too_large("more files than are kept"));
        }
        found.push(entry.file_name().to_owned());
    }
    found.sort_unstable();
    Ok(found)
}

/// What tells that a look has to be repeated while everything stands still.
pub(super) fn moved() -> Error {
    Error::new(ErrorKind::Canceled, "the layer changed while it was looked at")
}

pub(super) fn is_moved(error: &Error) -> bool {
    error.kind == ErrorKind::Canceled
}

pub(super) fn too_large(what: &str) -> Error {
    Error::new(ErrorKind::TooLarge, format!("the layer holds {what}"))
        .hint("Remove what the session does not need, or carry over what it made.")
}

pub(super) fn failed(what: &str, name: &[u8], error: Errno) -> Error {
    Error::new(ErrorKind::Io, format!("{what} {:?} of the layer", String::from_utf8_lossy(name)))
        .source(std::io::Error::from(error))
}

//! Files of the present layer that the layer in its place has as well: they get a name there, rather than
//! being copied.
//!
//! A file that is the same in both lists is taken where the kernel says of it what it said for certain of the
//! one that was listed: then nobody changed it since. Where anything else is so, it is copied.
//!
//! HOSTILE: what stands in the layer was put there from inside. Nothing is followed, every name is used
//! beneath a directory that is held open, and what has got the new name is looked at before it counts.

use super::live::Live;
use super::tree::{Entry, Tree, in_order};
use super::walk::{Mark, directory, failed};
use cofferdam_core::Result;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, fstat, linkat, openat, statat, unlinkat};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;

/// The present layer, and what is known of it.
pub(super) struct Present<'p> {
    /// The folder that it lies in.
    pub(super) folder: OwnedFd,
    tree: &'p Tree,
    live: &'p Live,
    /// The first entry that does not come before what was asked for last.
    next: usize,
    has_given: bool,
}

impl<'p> Present<'p> {
    /// The layer in this folder, with its list and what was seen of that.
    pub(super) fn new(folder: &Path, tree: &'p Tree, live: &'p Live) -> Result<Self> {
        Ok(Self { folder: directory(folder)?, tree, live, next: 0, has_given: false })
    }

    /// Whether it gave any file another name, or tried to: then times of change are not what they were.
    pub(super) fn has_given(&self) -> bool {
        self.has_given
    }

    /// Gives the file that is as this entry, in one directory, the same name in another one. Says whether it
    /// did. To be asked in the order of a walk.
    pub(super) fn link(
        &mut self,
        entry: &Entry,
        (from, to): (BorrowedFd<'_>, BorrowedFd<'_>),
        name: &[u8],
    ) -> Result<bool> {
        let Some(mark) = self.mark(entry) else { return Ok(false) };
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // As long as it is open no other file has its number.
        let Ok(file) = openat(from, name, flags, Mode::empty()) else { return Ok(false) };
        let Ok(stat) = fstat(&file) else { return Ok(false) };
        let is_plain = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        // What has another name, which may stand outside of the layer, is made anew.
        if !is_plain || stat.st_nlink != 1 || Mark::of(&stat) != mark {
            return Ok(false);
        }
        // Where that cannot be, a copy may be, or says why not.
        if linkat(from, name, to, name, AtFlags::empty()).is_err() {
            return Ok(false);
        }
        self.has_given = true;
        let linked = statat(to, name, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|e| failed("look at", &entry.path, e))?;
        if (linked.st_dev, linked.st_ino) == (mark.device, mark.inode) {
            return Ok(true);
        }
        unlinkat(to, name, AtFlags::empty()).map_err(|e| failed("remove", &entry.path, e))?;
        Ok(false)
    }

    /// What was seen for certain of the file that is as this entry.
    fn mark(&mut self, entry: &Entry) -> Option<Mark> {
        let entries = self.tree.entries();
        let is_before = |place: usize| {
            entries.get(place).is_some_and(|before| in_order(&before.path, &entry.path).is_lt())
        };
        while is_before(self.next) {
            self.next += 1;
        }
        let is_same = entries.get(self.next).is_some_and(|present| present.is_as(entry));
        // One of another list tells nothing of this one.
        let is_of_it = self.live.entries.len() == entries.len();
        let seen = self.live.entries.get(self.next).filter(|_| is_same && is_of_it)?;
        seen.is_certain.then_some(seen.mark)
    }
}

/// A directory of the present layer, if it is one.
pub(super) fn beneath(above: &OwnedFd, name: &[u8]) -> Option<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(above, name, flags, Mode::empty()).ok()
}

#[cfg(test)]
#[path = "linked_tests.rs"]
mod tests;

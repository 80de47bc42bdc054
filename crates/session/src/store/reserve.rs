//! Room on the disk that is kept for those who make room.
//!
//! The state directory holds a file of no use but its size, and that it is one. Whoever only looks, ends or removes lets
//! go of it before he writes on a full disk, and it is made again when he is done. To look, he needs
//! none: he uses the database alone.
//!
//! LIMIT: a program that fills the disk without a pause may take what was let go, so whoever ends a
//! sandbox stops that first. Where a quota is full and the disk is not, there is no reserve.

use rustix::fs::{FallocateFlags, Mode, OFlags, StatVfs, fallocate, open, statvfs};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Beside the database.
const NAME: &str = "reserve";
/// What the removal of a thousand commands and the ends of their sandboxes write, a few times over.
const BYTES: u64 = 512 * 1024;
/// A log, and the file that its users share in memory.
const LEAST_FILES: u64 = 2;
/// Less than this helps nobody.
const LEAST_BYTES: u64 = 64 * 1024;

/// Whose room on a full disk is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
    /// Everybody's: on a full disk there is none.
    Ordinary,
    /// The reserve, for those who only look, or make room.
    Reserve,
}

/// The reserve of one state directory, made again when this is dropped.
#[derive(Debug)]
pub(super) struct Reserve {
    path: PathBuf,
    room: Room,
    is_let_go: AtomicBool,
    /// How many make room now, for whom it is there whatever else is done by this one.
    makers: AtomicU32,
}

impl Reserve {
    /// The one beside this database, for one who may use that room.
    pub(super) fn of(database: &Path, room: Room) -> Self {
        let path = database.with_file_name(NAME);
        Self { path, room, is_let_go: AtomicBool::new(false), makers: AtomicU32::new(0) }
    }

    /// Makes it if it is not there, or as much of it as there is room for.
    pub(super) fn make(&self) {
        if self.bytes() >= BYTES || self.is_let_go.load(Ordering::Relaxed) {
            return;
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let Ok(file) = open(&self.path, flags, Mode::RUSR | Mode::WUSR) else { return };
        let sizes = std::iter::successors(Some(BYTES), |size| Some(size / 2));
        for size in sizes.take_while(|size| *size >= LEAST_BYTES) {
            if fallocate(&file, FallocateFlags::empty(), 0, size).is_ok() {
                return;
            }
        }
        if self.bytes() == 0 {
            std::fs::remove_file(&self.path).ok();
        }
    }

    /// It may be let go of until [`Self::made_room`].
    pub(super) fn begin_making_room(&self) {
        self.makers.fetch_add(1, Ordering::Relaxed);
    }

    /// The last one who made room makes it again, unless it stays open for those who do.
    pub(super) fn made_room(&self) {
        let is_last = self.makers.fetch_sub(1, Ordering::Relaxed) == 1;
        if is_last && self.room == Room::Ordinary && self.is_let_go.swap(false, Ordering::Relaxed) {
            self.make();
        }
    }

    fn makes_room(&self) -> bool {
        self.makers.load(Ordering::Relaxed) > 0
    }

    /// Lets go of it where that is permitted and the disk has less left than it holds.
    pub(super) fn let_go_if_needed(&self) {
        if self.makes_room() && self.is_needed() {
            let was_there = std::fs::remove_file(&self.path).is_ok();
            self.is_let_go.fetch_or(was_there, Ordering::Relaxed);
        }
    }

    /// Whether the disk has less left than the reserve holds, and this one may use that.
    pub(super) fn is_needed(&self) -> bool {
        let directory = self.path.parent().unwrap_or(Path::new("/"));
        (self.room == Room::Reserve || self.makes_room())
            && statvfs(directory).is_ok_and(|disk| has_little(&disk))
    }

    /// Lets go of it before the database is opened where its log would be a file too many.
    pub(super) fn let_go_to_open(&self) {
        if self.room == Room::Reserve && is_without_files(&self.path) {
            let was_there = std::fs::remove_file(&self.path).is_ok();
            self.is_let_go.fetch_or(was_there, Ordering::Relaxed);
        }
    }

    fn bytes(&self) -> u64 {
        std::fs::symlink_metadata(&self.path).map_or(0, |found| found.len())
    }
}

impl Drop for Reserve {
    fn drop(&mut self) {
        if std::mem::take(self.is_let_go.get_mut()) {
            self.make();
        }
    }
}

/// Whether there is less left than the reserve holds, in bytes or in files.
fn has_little(disk: &StatVfs) -> bool {
    disk.f_bavail.saturating_mul(disk.f_frsize) < BYTES || has_few_files(disk)
}

/// Whether there is no room for the files that a database has beside it. Some file systems have no such number.
fn has_few_files(disk: &StatVfs) -> bool {
    disk.f_files > 0 && disk.f_favail < LEAST_FILES
}

/// The same of where a database is.
pub(super) fn is_without_files(database: &Path) -> bool {
    let directory = database.parent().unwrap_or(Path::new("/"));
    statvfs(directory).is_ok_and(|disk| has_few_files(&disk))
}

/// Whether there is little left where a database is.
pub(super) fn is_without_room(database: &Path) -> bool {
    let directory = database.parent().unwrap_or(Path::new("/"));
    statvfs(directory).is_ok_and(|disk| has_little(&disk))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn what_was_let_go_is_made_again() {
        let directory = std::env::temp_dir().join(format!("cofferdam-res-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let mut reserve = Reserve::of(&directory.join("sessions.db"), Room::Ordinary);
        let path = directory.join(NAME);
        let is_there = || std::fs::metadata(&path).is_ok_and(|it| it.blocks() * 512 >= BYTES);
        reserve.make();
        assert!(is_there());
        reserve.begin_making_room();
        reserve.let_go_if_needed();
        assert!(is_there(), "there is room, and it is for others");
        std::fs::remove_file(&path).unwrap();
        *reserve.is_let_go.get_mut() = true;
        reserve.make();
        assert!(!is_there(), "it is in use");
        drop(reserve);
        assert!(is_there());
        std::fs::remove_dir_all(&directory).unwrap();
    }
}

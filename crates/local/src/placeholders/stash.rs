//! Placeholders that wait for their next use.
//!
//! A file system makes and frees an inode in 30 to 1000 µs, and renames one in 7. So what is removed
//! from a workspace is kept in the state directory, and the next workspace gets it from there; and
//! several names of one kind are links to one inode where links are possible. On another file
//! system than the workspace's, or where the workspace is somebody else's, a stash does nothing.

use super::ledger::Kind;
use crate::state::StateDirectory;
use rustix::fs::{AtFlags, Mode, OFlags, RawDir, RenameFlags};
use rustix::io::Errno;
use std::cell::Cell;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

/// Its folder in the state directory.
const FOLDER: &str = "stash";
/// How many placeholders of one kind are kept: enough for three repositories.
const SLOTS: u32 = 32;

/// The stash of a state directory.
#[derive(Debug)]
pub(super) struct Stash {
    /// `None` where it cannot be used.
    folder: Option<OwnedFd>,
    /// Slots before these were found empty.
    empty: ByKind,
    /// Slots before these were found full.
    full: ByKind,
    useless: Cell<Use>,
}

/// Whether a stash has shown itself to be of use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    Unknown,
    None,
}

/// A number of a slot for each kind.
#[derive(Debug, Default)]
struct ByKind {
    directory: Cell<u32>,
    socket: Cell<u32>,
    empty: Cell<u32>,
    common_dir: Cell<u32>,
}

impl ByKind {
    fn of(&self, kind: Kind) -> &Cell<u32> {
        match kind {
            Kind::Directory => &self.directory,
            Kind::Socket => &self.socket,
            Kind::Empty => &self.empty,
            Kind::CommonDir => &self.common_dir,
        }
    }
}

impl Stash {
    /// Opens the stash, and makes it. One that cannot be opened is never full and never has anything.
    pub(super) fn open(state: &StateDirectory) -> Self {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = || rustix::fs::openat(state.directory(), FOLDER, flags, Mode::empty());
        let folder = open().or_else(|_| {
            rustix::fs::mkdirat(state.directory(), FOLDER, Mode::RWXU)?;
            open()
        });
        Self {
            folder: folder.ok(),
            empty: ByKind::default(),
            full: ByKind::default(),
            useless: Cell::new(Use::Unknown),
        }
    }

    /// Puts a placeholder at a name that is free. Says whether there was one.
    pub(super) fn take(
        &self,
        kind: Kind,
        parent: BorrowedFd<'_>,
        name: &str,
    ) -> Result<bool, Errno> {
        let Some(folder) = self.folder() else { return Ok(false) };
        let next = self.empty.of(kind);
        while next.get() < SLOTS {
            let slot = slot(kind, next.get());
            next.set(next.get() + 1);
            match rustix::fs::renameat_with(folder, &slot, parent, name, RenameFlags::NOREPLACE) {
                Ok(()) if kind.is_still(parent, name) == Ok(true) => return Ok(true),
                // Somebody kept it open and wrote to it.
                Ok(()) => rustix::fs::unlinkat(parent, name, kind.removal())?,
                Err(Errno::NOENT) => {}
                Err(Errno::EXIST) => return Err(Errno::EXIST),
                Err(_) => {
                    self.useless.set(Use::None);
                    return Ok(false);
                }
            }
        }
        Ok(false)
    }

    /// Takes a placeholder away from its name, if there is room and it is as it was made. Says
    /// whether it did.
    pub(super) fn give(&self, kind: Kind, parent: BorrowedFd<'_>, name: &str) -> bool {
        let Some(folder) = self.folder().filter(|_| is_plain(kind, parent, name)) else {
            return false;
        };
        let next = self.full.of(kind);
        while next.get() < SLOTS {
            let slot = slot(kind, next.get());
            next.set(next.get() + 1);
            match rustix::fs::renameat_with(parent, name, folder, &slot, RenameFlags::NOREPLACE) {
                Ok(()) if kind != Kind::Directory || is_empty(folder, &slot) => return true,
                // It is somebody's now. Back it goes, unless they made another one already.
                Ok(()) => {
                    let _ = rustix::fs::renameat(folder, &slot, parent, name);
                    return false;
                }
                Err(Errno::EXIST) => {}
                Err(_) => {
                    self.useless.set(Use::None);
                    return false;
                }
            }
        }
        false
    }

    fn folder(&self) -> Option<&OwnedFd> {
        self.folder.as_ref().filter(|_| self.useless.get() == Use::Unknown)
    }
}

fn slot(kind: Kind, number: u32) -> String {
    format!("{}{number}", kind.letter())
}

/// Whether another workspace can have it: one name only, and the permissions of a new one.
fn is_plain(kind: Kind, parent: BorrowedFd<'_>, name: &str) -> bool {
    rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|stat| {
        let owner_only = stat.st_mode & 0o7022 == 0 && stat.st_mode & 0o600 == 0o600;
        owner_only && (kind == Kind::Directory || stat.st_nlink == 1)
    })
}

fn is_empty(folder: &OwnedFd, slot: &str) -> bool {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(directory) = rustix::fs::openat(folder, slot, flags, Mode::empty()) else {
        return false;
    };
    let mut buffer = [MaybeUninit::uninit(); 512];
    let mut entries = RawDir::new(directory, &mut buffer);
    while let Some(entry) = entries.next() {
        match entry {
            Ok(entry) if matches!(entry.file_name().to_bytes(), b"." | b"..") => {}
            Ok(_) | Err(_) => return false,
        }
    }
    true
}

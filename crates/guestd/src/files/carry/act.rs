//! The renamings of a carry: done, and taken back.
//!
//! Taking back asks what is there and not what was done, so it can be repeated, by another worker too.

use super::super::failure::{Trouble, failed, refused};
use super::super::read::look_at;
use super::super::walk::Root;
use super::expect::{Sign, changed, check, check_empty};
use super::held::{Held, name};
use cofferdam_wire::ByteString;
use cofferdam_wire::files::{Before, Failure, Why};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{RenameFlags, Stat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// The number of something in a stage, which is its name there.
pub(super) type Slot = u64;

/// One renaming.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Act {
    /// What is new and what was there exchange their places.
    Exchange { slot: Slot, path: ByteString, new: Identity, before: Before },
    /// What is new goes where nothing is.
    Put { slot: Slot, path: ByteString, new: Identity },
    /// What was there goes to the stage.
    Take { slot: Slot, path: ByteString, what: Taken },
    /// What was there gets another name, where nothing is.
    Rename { from: ByteString, to: ByteString, before: Before },
}

/// What goes to the stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Taken {
    /// A file or link.
    Thing(Before),
    /// A directory, which is empty.
    Directory,
}

/// Which inode something is, of those that can be renamed to or from the stage.
///
/// Its device is no part of it: a layer has another one each time that it is mounted, so the next sandbox would
/// know nothing again of what the one before it did. Nothing is renamed from one device to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    inode: u64,
}

impl Identity {
    pub(super) fn of(stat: &Stat) -> Self {
        Self { inode: stat.st_ino }
    }
}

/// Where renamings happen.
pub(super) struct Ground<'g, 'r> {
    pub(super) root: &'r Root,
    pub(super) held: &'g Held<'r>,
    pub(super) stage: &'g OwnedFd,
}

/// A name in a directory.
type Spot<'s> = (BorrowedFd<'s>, &'s [u8]);

impl Act {
    /// The paths that it changes.
    pub(super) fn paths(&self) -> impl Iterator<Item = &ByteString> {
        let (one, other) = match self {
            Self::Exchange { path, .. } | Self::Put { path, .. } | Self::Take { path, .. } => {
                (path, None)
            }
            Self::Rename { from, to, .. } => (from, Some(to)),
        };
        [one].into_iter().chain(other)
    }
}

impl Ground<'_, '_> {
    /// Does it, and looks whether what came away is what was expected there.
    pub(super) fn perform(&self, act: &Act, sign: Sign<'_>) -> Result<(), Trouble> {
        match act {
            Act::Exchange { slot, path, before, .. } => {
                let (slot, path) = (slot.to_string(), path.as_bytes());
                let (here, there) = ((self.stage.as_fd(), slot.as_bytes()), self.spot(path)?);
                exchange(here, there).map_err(|e| not_done(e, path))?;
                check(self.root, here, path, before, sign)
            }
            Act::Put { slot, path, .. } => {
                let (slot, path) = (slot.to_string(), path.as_bytes());
                let here = (self.stage.as_fd(), slot.as_bytes());
                Ok(rename(here, self.spot(path)?).map_err(|e| not_done(e, path))?)
            }
            Act::Take { slot, path, what } => {
                let (slot, path) = (slot.to_string(), path.as_bytes());
                let here = (self.stage.as_fd(), slot.as_bytes());
                rename(self.spot(path)?, here).map_err(|e| not_done(e, path))?;
                match what {
                    Taken::Thing(before) => check(self.root, here, path, before, sign),
                    Taken::Directory => Ok(check_empty(here, path)?),
                }
            }
            Act::Rename { from, to, before } => {
                let (from, to) = (from.as_bytes(), to.as_bytes());
                let there = self.spot(to)?;
                rename(self.spot(from)?, there).map_err(|e| not_done(e, from))?;
                check(self.root, there, from, before, sign)
            }
        }
    }

    /// Takes it back as far as it was done.
    ///
    /// Where somebody has put something else there meanwhile, that stays: it would have taken the place
    /// of what was there before, too.
    pub(super) fn take_back(&self, act: &Act) -> Result<(), Failure> {
        match act {
            Act::Exchange { slot, path, new, .. } => {
                let slot = slot.to_string();
                let here = (self.stage.as_fd(), slot.as_bytes());
                self.exchange_back(here, path.as_bytes(), *new)
            }
            Act::Put { slot, path, new } => {
                let slot = slot.to_string();
                let here = (self.stage.as_fd(), slot.as_bytes());
                self.take_new(here, path.as_bytes(), *new)
            }
            Act::Take { slot, path, .. } => {
                let slot = slot.to_string();
                self.give_back((self.stage.as_fd(), slot.as_bytes()), path.as_bytes())
            }
            Act::Rename { from, to, before } => {
                // Where there is no such directory, nothing came there.
                let Ok(there) = self.spot(to.as_bytes()) else { return Ok(()) };
                let it_moved = check(self.root, there, to.as_bytes(), before, &mut || Ok(()));
                match it_moved {
                    Ok(()) => self.give_back(there, from.as_bytes()),
                    // Somebody changed it there, or it never came.
                    Err(Trouble::Failed(Failure { why: Why::Changed, .. })) => Ok(()),
                    Err(Trouble::Failed(failure)) => Err(failure),
                    Err(Trouble::Gone) => Ok(()),
                }
            }
        }
    }

    fn exchange_back(&self, here: Spot<'_>, path: &[u8], new: Identity) -> Result<(), Failure> {
        let there = self.spot(path)?;
        if identity(here, path)? == Some(new) {
            return Ok(());
        }
        if identity(there, path)? != Some(new) {
            // What was there lies in the stage, and goes back unless something else is there.
            return self.give_back(here, path);
        }
        exchange(here, there).map_err(|e| not_back(e, path))?;
        if identity(here, path)? != Some(new) {
            // Somebody was faster: what came is theirs, and has its place again.
            exchange(here, there).map_err(|e| not_back(e, path))?;
        }
        Ok(())
    }

    /// A directory goes with all that others have put into it: without the carry, there was none.
    fn take_new(&self, here: Spot<'_>, path: &[u8], new: Identity) -> Result<(), Failure> {
        // Where there is no such directory, nothing came there.
        let Ok(there) = self.spot(path) else { return Ok(()) };
        if identity(there, path)? != Some(new) {
            return Ok(());
        }
        rename(there, here).map_err(|e| not_back(e, path))?;
        if identity(here, path)? != Some(new) {
            // Somebody was faster: what came is theirs, and has its place again.
            rename(here, there).map_err(|e| not_back(e, path))?;
        }
        Ok(())
    }

    fn give_back(&self, here: Spot<'_>, path: &[u8]) -> Result<(), Failure> {
        match rename(here, self.spot(path)?) {
            Ok(()) | Err(Errno::NOENT | Errno::EXIST) => Ok(()),
            Err(errno) => Err(not_back(errno, path)),
        }
    }

    fn spot<'s>(&'s self, path: &'s [u8]) -> Result<Spot<'s>, Failure> {
        Ok((self.held.get(path)?, name(path)))
    }
}

fn rename(from: Spot<'_>, to: Spot<'_>) -> rustix::io::Result<()> {
    rustix::fs::renameat_with(from.0, from.1, to.0, to.1, RenameFlags::NOREPLACE)
}

fn exchange(one: Spot<'_>, other: Spot<'_>) -> rustix::io::Result<()> {
    rustix::fs::renameat_with(one.0, one.1, other.0, other.1, RenameFlags::EXCHANGE)
}

/// Which inode has this name, if any has.
fn identity(spot: Spot<'_>, path: &[u8]) -> Result<Option<Identity>, Failure> {
    match look_at(spot.0, spot.1) {
        Ok(stat) => Ok(Some(Identity::of(&stat))),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(not_back(errno, path)),
    }
}

fn not_done(errno: Errno, path: &[u8]) -> Failure {
    let shown = ByteString::from(path.to_vec());
    match errno {
        Errno::NOENT | Errno::EXIST => changed(path),
        Errno::BUSY | Errno::ROFS => failed(errno, format!("{shown:?} is protected")),
        Errno::XDEV => failed(errno, format!("{shown:?} lies on a mount of its own")),
        Errno::INVAL => {
            let what = "its file system cannot exchange names, and so nothing is done whole there";
            Failure { errno: errno.raw_os_error(), ..refused(Why::Denied, what) }
        }
        _ => failed(errno, format!("{shown:?} cannot be changed")),
    }
}

fn not_back(errno: Errno, path: &[u8]) -> Failure {
    failed(errno, format!("{:?} cannot be put back", ByteString::from(path.to_vec())))
}

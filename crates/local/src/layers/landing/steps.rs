//! The steps by which changes land, and the same backward.
//!
//! HOSTILE: somebody else may write the workspace at the same time. A step goes through an open
//! directory that no link led to, takes or replaces only what was looked at, and looks again at what
//! it got. Where others can write the stage it looks at what it brings, too, and at what it puts back. Whether a step was done is told by which file is where, never by what was remembered.

use super::super::changes::parent;
use super::super::content::hash;
use super::super::look::{DIRECTORY_MODE, Id, Kind, Seen, look, open, some_names};
use super::journal::{Op, Sum};
use super::place::Stage;
use super::stage::{Made, set_mode};
use crate::kernel_path::through;
use crate::oneshot::unique;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, OFlags, RenameFlags, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT};
use rustix::io::Errno;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// The workspace and what is between it and the layer.
pub(super) struct Ground<'g> {
    pub(super) workspace: &'g OwnedFd,
    pub(super) stage: &'g Stage,
    /// What was made ready, by the number of its step.
    pub(super) made: &'g BTreeMap<usize, Made>,
}

/// What a place has, or has had, and is to be had back: by its file and what it held, and its name in the stage.
#[derive(Clone, Copy)]
struct Aside<'a> {
    directory: &'a OwnedFd,
    name: &'a [u8],
    slot: &'a str,
    was: Id,
    held: Option<Sum>,
}

/// Why a step was not done, or was undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hitch {
    /// Somebody else changed something there.
    Changed,
    /// Somebody did, and something of theirs or of the workspace is in the stage; with an error, because the file
    /// system refused to put it back.
    Stuck(Option<Errno>),
    Failed(Errno),
}

impl Hitch {
    /// What the file system said, where nobody else is in the way.
    pub(super) fn refused(self) -> Option<Errno> {
        match self {
            Self::Changed => None,
            Self::Stuck(refused) => refused,
            Self::Failed(errno) => Some(errno),
        }
    }
}

impl From<Errno> for Hitch {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::EXIST | Errno::NOENT | Errno::NOTDIR | Errno::NOTEMPTY | Errno::LOOP => {
                Self::Changed
            }
            _ => Self::Failed(errno),
        }
    }
}

/// Has a directory changed now.
fn touch(directory: &OwnedFd) -> Result<(), Errno> {
    let never = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    let times = Timestamps { last_access: never, last_modification: now };
    rustix::fs::utimensat(directory, ".", &times, AtFlags::empty())
}

impl Op {
    pub(super) fn path(&self) -> &[u8] {
        match self {
            Self::Take { path, .. }
            | Self::Put { path, .. }
            | Self::Name { path, .. }
            | Self::Mode { path, .. } => path.as_bytes(),
        }
    }
}

impl Ground<'_> {
    /// Does one step, or nothing of it. `seen` is what the workspace had there when it was looked at.
    pub(super) fn step(&self, at: usize, op: &Op, seen: Option<&Seen>) -> Result<(), Hitch> {
        #[cfg(test)]
        super::seam::step(at, self.stage.place)?;
        let slot = at.to_string();
        let slot = slot.as_str();
        let (directory, name) = self.place(op.path())?;
        let aside = |was, held| Aside { directory: &directory, name, slot, was, held };
        match op {
            Op::Take { was, held, .. } => self.take(aside(*was, *held), seen),
            Op::Put { was: None, .. } => {
                let flags = RenameFlags::NOREPLACE;
                let stage = &self.stage.directory;
                self.expect_made(at, slot)?;
                rustix::fs::renameat_with(stage, slot, &directory, name, flags)?;
                or_back(self.expect_come(at, &directory, name), || {
                    Ok(rustix::fs::renameat_with(&directory, name, stage, slot, flags)?)
                })
            }
            Op::Put { was: Some(was), held, .. } => {
                let flags = RenameFlags::EXCHANGE;
                let stage = &self.stage.directory;
                self.expect(&directory, name, *was, seen)?;
                self.expect_made(at, slot)?;
                rustix::fs::renameat_with(stage, slot, &directory, name, flags)?;
                let fits = self.expect_taken(slot, *was, seen);
                or_back(fits.and_then(|()| self.expect_come(at, &directory, name)), || {
                    self.return_taken(aside(*was, *held), flags)
                })
            }
            Op::Name { was, held, .. } => {
                let made = self.made.get(&at).and_then(|made| made.nameless.as_ref());
                let file = made.ok_or(Hitch::Changed)?;
                if let Some(was) = was {
                    self.take(aside(*was, *held), seen)?;
                }
                let follow = AtFlags::SYMLINK_FOLLOW;
                let named = rustix::fs::linkat(CWD, through(file), &directory, name, follow);
                or_back(named.map_err(Hitch::from), || match was {
                    Some(was) => {
                        let flags = RenameFlags::NOREPLACE;
                        self.put_back(aside(*was, *held), flags)
                    }
                    None => Ok(()),
                })
            }
            Op::Mode { of, from, to, .. } => {
                let Some((found, file)) = look(&directory, name)? else {
                    return Err(Hitch::Changed);
                };
                if found.id != *of || found.mode != *from {
                    return Err(Hitch::Changed);
                }
                set_mode(&file, *to)?;
                // Who comes after a crash tells by this when the last step was done.
                or_back(touch(&self.stage.directory).map_err(Hitch::from), || {
                    Ok(set_mode(&file, *from & DIRECTORY_MODE)?)
                })
            }
        }
    }

    /// Takes what is there to the stage.
    fn take(&self, aside: Aside<'_>, seen: Option<&Seen>) -> Result<(), Hitch> {
        let Aside { directory, name, slot, was, .. } = aside;
        let (stage, flags) = (&self.stage.directory, RenameFlags::NOREPLACE);
        self.expect(directory, name, was, seen)?;
        rustix::fs::renameat_with(directory, name, stage, slot, flags)?;
        or_back(self.expect_taken(slot, was, seen), || self.return_taken(aside, flags))
    }

    /// Returns what was taken in this moment. It may be of one who saved it just before.
    fn return_taken(&self, aside: Aside<'_>, flags: RenameFlags) -> Result<(), Hitch> {
        if aside.held.is_some() {
            return self.put_back(aside, flags);
        }
        let Aside { directory, name, slot, .. } = aside;
        Ok(rustix::fs::renameat_with(&self.stage.directory, slot, directory, name, flags)?)
    }

    /// Puts back what was set aside.
    fn put_back(&self, aside: Aside<'_>, flags: RenameFlags) -> Result<(), Hitch> {
        let Aside { directory, name, slot, was, held } = aside;
        let stage = &self.stage.directory;
        self.expect_aside((stage, slot.as_bytes()), was, held)?;
        rustix::fs::renameat_with(stage, slot, directory, name, flags)?;
        if self.expect_aside((directory, name), was, held).is_ok() {
            return Ok(());
        }
        // HOSTILE: another file may have come to the stage since that was looked at. What has its name
        // there may be another one by now, too, so nothing is exchanged for it.
        let (free, flags) = (format!("{slot}-{}", unique()), RenameFlags::NOREPLACE);
        rustix::fs::renameat_with(directory, name, stage, free, flags)?;
        Err(Hitch::Stuck(None))
    }

    /// Undoes a step if it was done. An error says that somebody changed something since: then
    /// everything stays where it is.
    pub(super) fn undo(&self, at: usize, op: &Op) -> Result<(), Hitch> {
        #[cfg(test)]
        super::seam::undo(at)?;
        let slot = at.to_string();
        let held = look(&self.stage.directory, slot.as_bytes())?.map(|(seen, _)| seen.id);
        // ORDER: before its place is looked for, which may not have come either.
        let was_done = match op {
            Op::Take { .. } => held.is_some(),
            Op::Put { new, .. } => held != Some(*new),
            // One without a name leaves nothing in the stage that tells.
            Op::Name { was, .. } => held.is_some() || was.is_none(),
            Op::Mode { .. } => true,
        };
        if !was_done {
            return Ok(());
        }
        let (directory, name) = match self.place(op.path()) {
            Ok(place) => place,
            // Nothing of it is out there.
            Err(_) if matches!(op, Op::Mode { .. }) => return Ok(()),
            Err(_) if matches!(op, Op::Name { .. }) && held.is_none() => return Ok(()),
            Err(hitch) => return Err(hitch),
        };
        let (stage, slot) = (&self.stage.directory, slot.as_str());
        let aside = |was, held| Aside { directory: &directory, name, slot, was, held };
        let present = look(&directory, name)?;
        let is_there = |id: Id| present.as_ref().is_some_and(|(seen, _)| seen.id == id);
        let to_stage = |slot: &str| {
            let flags = RenameFlags::NOREPLACE;
            rustix::fs::renameat_with(&directory, name, stage, slot, flags)
        };
        match op {
            Op::Take { was, held, .. } => {
                let flags = RenameFlags::NOREPLACE;
                self.put_back(aside(*was, *held), flags)
            }
            Op::Put { new, .. } if !is_there(*new) => Err(Hitch::Changed),
            Op::Put { was: None, .. } => Ok(to_stage(slot)?),
            Op::Put { was: Some(was), held, .. } => {
                let flags = RenameFlags::EXCHANGE;
                self.put_back(aside(*was, *held), flags)
            }
            Op::Name { new, was, held, .. } => {
                if let Some(was) = was {
                    self.expect_aside((stage, slot.as_bytes()), *was, *held)?;
                }
                if is_there(*new) {
                    to_stage(&format!("{slot}-undone"))?;
                }
                match was {
                    Some(was) => {
                        let flags = RenameFlags::NOREPLACE;
                        self.put_back(aside(*was, *held), flags)
                    }
                    None => Ok(()),
                }
            }
            Op::Mode { of, from, to, .. } => match present {
                Some((seen, file)) if seen.id == *of && seen.mode == *to => {
                    Ok(set_mode(&file, *from & DIRECTORY_MODE)?)
                }
                Some(_) | None => Ok(()),
            },
        }
    }

    /// The directory that a path is in, and its name there.
    fn place<'p>(&self, path: &'p [u8]) -> Result<(OwnedFd, &'p [u8]), Hitch> {
        let above = parent(path);
        let name = path.get(above.map_or(0, |above| above.len() + 1)..).unwrap_or_default();
        let above = above.unwrap_or(b".");
        let directory = open(self.workspace.as_fd(), above, OFlags::PATH | OFlags::DIRECTORY)?;
        Ok((directory, name))
    }

    /// What is there must be what was looked at.
    fn expect(
        &self,
        directory: &OwnedFd,
        name: &[u8],
        was: Id,
        seen: Option<&Seen>,
    ) -> Result<(), Hitch> {
        let Some((found, _)) = look(directory, name)? else { return Err(Hitch::Changed) };
        // A directory changes with what was taken out of it.
        let is_as_seen = found.kind == Kind::Directory
            || seen.is_some_and(|seen| {
                let same = (seen.size, seen.modified_ns, seen.mode)
                    == (found.size, found.modified_ns, found.mode);
                // Another name of it may just have been taken.
                seen.changed_ns == found.changed_ns || seen.links > 1 && same
            });
        if found.id == was && is_as_seen { Ok(()) } else { Err(Hitch::Changed) }
    }

    /// What was taken must be what was looked at, and a directory empty.
    fn expect_taken(&self, slot: &str, was: Id, seen: Option<&Seen>) -> Result<(), Hitch> {
        let Some((taken, _)) = look(&self.stage.directory, slot.as_bytes())? else {
            return Err(Hitch::Changed);
        };
        let is_as_seen = match taken.kind {
            Kind::Directory => {
                let directory =
                    open(self.stage.directory.as_fd(), slot.as_bytes(), OFlags::RDONLY)?;
                some_names(&directory, 1)?.is_empty()
            }
            Kind::File | Kind::Link | Kind::Fifo | Kind::Socket | Kind::Device | Kind::Mounted => {
                let same = |seen: &Seen| {
                    (seen.size, seen.modified_ns, seen.mode)
                        == (taken.size, taken.modified_ns, taken.mode)
                };
                seen.is_some_and(same)
            }
        };
        if taken.id == was && is_as_seen { Ok(()) } else { Err(Hitch::Changed) }
    }

    /// What is to come must be what was made ready, where anybody else could have reached that.
    fn expect_made(&self, at: usize, slot: &str) -> Result<(), Hitch> {
        let Some(made) = self.made.get(&at) else { return Ok(()) };
        let stage = &self.stage.directory;
        let Some((found, file)) = look(stage, slot.as_bytes())? else { return Err(Hitch::Changed) };
        is_made(made, &found, &file)
    }

    /// The same of what came. Another file in its place may be of one who just saved it.
    fn expect_come(&self, at: usize, directory: &OwnedFd, name: &[u8]) -> Result<(), Hitch> {
        let Some(made) = self.made.get(&at) else { return Ok(()) };
        match look(directory, name)? {
            Some((found, file)) if found.id == made.seen.id => is_made(made, &found, &file),
            Some(_) | None => Err(Hitch::Stuck(None)),
        }
    }

    /// What is to be put back must be what was set aside, where anybody else could have reached that.
    fn expect_aside(
        &self,
        (directory, name): (&OwnedFd, &[u8]),
        was: Id,
        held: Option<Sum>,
    ) -> Result<(), Hitch> {
        if !self.stage.is_open_to_others() {
            return Ok(());
        }
        match look(directory, name)? {
            Some((seen, file)) if seen.id == was => holds(&seen, &file, held),
            Some(_) | None => Err(Hitch::Changed),
        }
    }
}

fn is_made(made: &Made, found: &Seen, file: &OwnedFd) -> Result<(), Hitch> {
    let key = |seen: &Seen| (seen.id, seen.kind, seen.mode, seen.target.clone());
    let is_same = match found.kind {
        Kind::Directory => {
            let directory = open(file.as_fd(), b".", OFlags::RDONLY)?;
            some_names(&directory, 1)?.is_empty()
        }
        Kind::File | Kind::Link | Kind::Fifo | Kind::Socket | Kind::Device | Kind::Mounted => {
            (found.size, found.modified_ns) == (made.seen.size, made.seen.modified_ns)
        }
    };
    if key(found) != key(&made.seen) || !is_same {
        return Err(Hitch::Changed);
    }
    holds(found, file, made.sum)
}

/// A file or link must hold what it held, if that is known.
fn holds(seen: &Seen, file: &OwnedFd, sum: Option<Sum>) -> Result<(), Hitch> {
    match sum {
        Some(sum) if sum_of(seen, file)? != Some(sum) => Err(Hitch::Changed),
        Some(_) | None => Ok(()),
    }
}

/// The SHA-256 of what a file holds, or of where a link leads.
pub(super) fn sum_of(seen: &Seen, file: &OwnedFd) -> Result<Option<Sum>, Errno> {
    match seen.kind {
        Kind::File => hash(file).map(Some),
        Kind::Link => Ok(Some(Sha256::digest(&seen.target).into())),
        Kind::Directory | Kind::Fifo | Kind::Socket | Kind::Device | Kind::Mounted => Ok(None),
    }
}

/// Takes a step back after which not all is as it has to be.
fn or_back(fits: Result<(), Hitch>, back: impl FnOnce() -> Result<(), Hitch>) -> Result<(), Hitch> {
    let Err(hitch) = fits else { return Ok(()) };
    match back() {
        Ok(()) => Err(hitch),
        Err(left) => Err(Hitch::Stuck(left.refused())),
    }
}

//! The steps by which changes land, and the same backward.
//!
//! HOSTILE: somebody else may write the workspace at the same time. A step goes through an open
//! directory that no link led to, takes or replaces only what was looked at, and looks again at what
//! it got. Whether a step was done is told by which file is where, never by what was remembered.

use super::super::changes::parent;
use super::super::look::{DIRECTORY_MODE, Id, Kind, Seen, look, open, some_names};
use super::journal::Op;
use super::stage::set_mode;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, OFlags, RenameFlags, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT};
use rustix::io::Errno;
use std::collections::BTreeMap;

/// Times of change by path.
pub(super) type Times = BTreeMap<Vec<u8>, u64>;

/// The workspace and what is between it and the layer.
pub(super) struct Ground<'g> {
    pub(super) workspace: &'g OwnedFd,
    pub(super) stage: &'g OwnedFd,
}

/// Why a step was not done, or was undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hitch {
    /// Somebody else changed something there.
    Changed,
    Failed(Errno),
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
            Self::Take { path, .. } | Self::Put { path, .. } | Self::Mode { path, .. } => {
                path.as_bytes()
            }
        }
    }
}

impl Ground<'_> {
    /// Does one step. `seen` is what the workspace had there when it was looked at.
    pub(super) fn step(&self, at: usize, op: &Op, seen: Option<&Seen>) -> Result<(), Hitch> {
        let slot = at.to_string();
        let (directory, name) = self.place(op.path())?;
        match op {
            Op::Take { was, .. } => {
                self.expect(&directory, name, *was, seen)?;
                let flags = RenameFlags::NOREPLACE;
                rustix::fs::renameat_with(&directory, name, self.stage, slot.as_str(), flags)?;
                self.expect_taken(&slot, *was, seen)
            }
            Op::Put { was: None, .. } => {
                let flags = RenameFlags::NOREPLACE;
                rustix::fs::renameat_with(self.stage, slot.as_str(), &directory, name, flags)?;
                Ok(())
            }
            Op::Put { was: Some(was), .. } => {
                self.expect(&directory, name, *was, seen)?;
                let flags = RenameFlags::EXCHANGE;
                rustix::fs::renameat_with(self.stage, slot.as_str(), &directory, name, flags)?;
                self.expect_taken(&slot, *was, seen)
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
                Ok(touch(self.stage)?)
            }
        }
    }

    /// Undoes a step if it was done. An error says that somebody changed something since: then
    /// everything stays where it is.
    pub(super) fn undo(&self, at: usize, op: &Op) -> Result<(), Hitch> {
        let slot = at.to_string();
        let held = look(self.stage, slot.as_bytes())?.map(|(seen, _)| seen.id);
        // ORDER: before its place is looked for, which may not have come either.
        let was_done = match op {
            Op::Take { .. } => held.is_some(),
            Op::Put { new, .. } => held != Some(*new),
            Op::Mode { .. } => true,
        };
        if !was_done {
            return Ok(());
        }
        let (directory, name) = match self.place(op.path()) {
            Ok(place) => place,
            // Nothing of it is out there.
            Err(_) if matches!(op, Op::Mode { .. }) => return Ok(()),
            Err(hitch) => return Err(hitch),
        };
        let present = look(&directory, name)?;
        let is_there = |id: Id| present.as_ref().is_some_and(|(seen, _)| seen.id == id);
        match op {
            Op::Take { .. } => {
                let flags = RenameFlags::NOREPLACE;
                Ok(rustix::fs::renameat_with(self.stage, slot, &directory, name, flags)?)
            }
            Op::Put { new, .. } if !is_there(*new) => Err(Hitch::Changed),
            Op::Put { was, .. } => {
                let flags = match was {
                    Some(_) => RenameFlags::EXCHANGE,
                    None => RenameFlags::NOREPLACE,
                };
                let slot = slot.as_str();
                Ok(rustix::fs::renameat_with(&directory, name, self.stage, slot, flags)?)
            }
            Op::Mode { of, from, to, .. } => match present {
                Some((seen, file)) if seen.id == *of && seen.mode == *to => {
                    Ok(set_mode(&file, *from & DIRECTORY_MODE)?)
                }
                Some(_) | None => Ok(()),
            },
        }
    }

    /// The times of change of what these steps put there, or put back, and nobody changed since: what
    /// was put there after `until_ns`.
    pub(super) fn left(&self, ops: &[Op], until_ns: u64, since_ns: impl Fn(&[u8]) -> u64) -> Times {
        let mut times = Times::new();
        for op in ops {
            let (new, was) = match op {
                Op::Put { new, was, .. } => (Some(*new), *was),
                Op::Mode { of, .. } => (Some(*of), None),
                Op::Take { was, .. } => (None, Some(*was)),
            };
            let Ok(Some((seen, _))) = look(self.workspace, op.path()) else { continue };
            let is_back = was == Some(seen.id) && seen.modified_ns <= since_ns(op.path());
            let has_come = new == Some(seen.id) && seen.modified_ns <= until_ns;
            if has_come || is_back {
                times.insert(op.path().to_vec(), seen.changed_ns);
            }
        }
        times
    }

    /// The times of change of these directories; the empty path is the workspace.
    pub(super) fn times(&self, paths: &[Vec<u8>]) -> Times {
        let time = |path: &Vec<u8>| {
            let path_or_top = if path.is_empty() { b"." } else { path.as_slice() };
            let (seen, _) = look(self.workspace, path_or_top).ok().flatten()?;
            Some((path.clone(), seen.changed_ns))
        };
        paths.iter().filter_map(time).collect()
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
        let Some((taken, _)) = look(self.stage, slot.as_bytes())? else {
            return Err(Hitch::Changed);
        };
        let is_as_seen = match taken.kind {
            Kind::Directory => {
                let directory = open(self.stage.as_fd(), slot.as_bytes(), OFlags::RDONLY)?;
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
}

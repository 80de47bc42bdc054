//! What is to land, made ready in a directory of the workspace that nobody else enters.

use super::super::changes::Item;
use super::super::content::{copy, failed, hash, write};
use super::super::layer::Layer;
use super::super::look::{Id, Kind, Seen, look};
use super::journal::Op;
use super::plan::brings_directory;
use crate::kernel_path::through;
use cofferdam_core::{
    ApplyOrder, ByteString, ChangeKind, Error, ErrorKind, GuestPath, Result, Step, Unit,
};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;
use std::collections::BTreeMap;

/// The permissions of a directory while its entries come.
const OPEN_MODE: u32 = 0o700;

/// Makes ready what lands, and says in which steps it does.
pub(super) struct Staging<'l> {
    pub(super) layer: &'l Layer,
    pub(super) stage: &'l OwnedFd,
    pub(super) order: &'l ApplyOrder,
    pub(super) ops: Vec<Op>,
    /// The first copy of each file that has several names.
    linked: BTreeMap<Id, usize>,
}

impl<'l> Staging<'l> {
    pub(super) fn new(layer: &'l Layer, stage: &'l OwnedFd, order: &'l ApplyOrder) -> Self {
        Self { layer, stage, order, ops: Vec::new(), linked: BTreeMap::new() }
    }

    /// The steps: first what goes, the innermost first; then what comes, the outermost first; then
    /// permissions of directories, for which entries could not come any more.
    pub(super) fn all(mut self, items: &[Item]) -> Result<Vec<Op>> {
        for item in items.iter().rev().filter(|item| item.change.kind == ChangeKind::Removed) {
            if let Some(lower) = &item.lower {
                self.ops.push(Op::Take { path: bytes(&item.change.path), was: lower.id });
            }
        }
        let total = Some(items.len() as u64);
        for (done, item) in items.iter().enumerate() {
            if item.change.kind != ChangeKind::Removed {
                self.put(item)?;
            }
            self.order.progress.tell(Step { done: done as u64 + 1, total, unit: Unit::Entries });
        }
        let mut modes = Vec::new();
        for item in items.iter().rev() {
            modes.extend(self.mode(item));
        }
        self.ops.extend(modes);
        Ok(self.ops)
    }

    fn put(&mut self, item: &Item) -> Result<()> {
        let Some(upper) = &item.upper else { return Ok(()) };
        let path = &item.change.path;
        let name = self.ops.len().to_string();
        let was = item.lower.as_ref().map(|lower| lower.id);
        let at = |errno| failed("make ready", path, errno);
        match upper.kind {
            Kind::Directory if !brings_directory(&item.change) => return Ok(()),
            Kind::Directory => {
                rustix::fs::mkdirat(self.stage, name.as_str(), Mode::RWXU).map_err(at)?;
            }
            Kind::Link => {
                let target = upper.target.as_slice();
                rustix::fs::symlinkat(target, self.stage, name.as_str()).map_err(at)?;
            }
            Kind::File => self.file(item, upper, &name)?,
            Kind::Fifo | Kind::Socket | Kind::Device | Kind::Mounted => {
                let what = format!("{path:?} is neither a file nor a directory nor a link");
                return Err(Error::new(ErrorKind::NotAFile, what));
            }
        }
        self.give_away(&name).map_err(at)?;
        let found = look(self.stage, name.as_bytes()).map_err(at)?;
        let Some((made, _)) = found.filter(|(made, _)| made.kind == upper.kind) else {
            let what = format!("what was made ready for {path:?} is not there any more");
            return Err(Error::new(ErrorKind::Conflict, what));
        };
        self.check_sum(path, &name)?;
        self.ops.push(Op::Put { path: bytes(path), new: made.id, was });
        Ok(())
    }

    /// HOSTILE: whoever has the layer's file mapped may have written to it since, and it tells nobody.
    fn check_sum(&self, path: &GuestPath, name: &str) -> Result<()> {
        let sum = self.order.sums.get(path);
        let Some(sum) = sum.filter(|_| !self.order.contents.contains_key(path)) else {
            return Ok(());
        };
        let at = |errno| failed("make ready", path, errno);
        let found = look(self.stage, name.as_bytes()).map_err(at)?;
        let is_it = match &found {
            Some((_, file)) => hash(file).map_err(at)? == *sum,
            None => false,
        };
        if is_it { Ok(()) } else { Err(changed(path)) }
    }

    fn file(&mut self, item: &Item, upper: &Seen, name: &str) -> Result<()> {
        let path = &item.change.path;
        let at = |errno| failed("make ready", path, errno);
        let content = self.order.contents.get(path);
        if content.is_none() && upper.links > 1 {
            if let Some(first) = self.linked.get(&upper.id) {
                let first = first.to_string();
                let flags = AtFlags::empty();
                return rustix::fs::linkat(self.stage, first.as_str(), self.stage, name, flags)
                    .map_err(at);
            }
            self.linked.insert(upper.id, self.ops.len());
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let mode = Mode::RUSR | Mode::WUSR;
        let made = rustix::fs::openat(self.stage, name, flags | OFlags::CLOEXEC, mode);
        let made = made.map_err(at)?;
        let mode = match (content, &item.lower) {
            (Some(content), lower) => {
                write(&made, content).map_err(at)?;
                lower.as_ref().map_or(upper.mode, |lower| lower.mode)
            }
            (None, _) => {
                self.copy(path, upper, &made)?;
                upper.mode
            }
        };
        // ORDER: the owner before the permissions, which a change of owner takes from.
        self.give_away(name).map_err(at)?;
        rustix::fs::fchmod(&made, Mode::from_raw_mode(mode)).map_err(at)
    }

    fn copy(&self, path: &GuestPath, upper: &Seen, to: &OwnedFd) -> Result<()> {
        let found = look(&self.layer.upper, path.as_bytes())
            .map_err(|errno| failed("look at", path, errno))?;
        match found {
            Some((seen, file)) if seen == *upper => copy(path, &file, upper, to),
            Some(_) | None => Err(changed(path)),
        }
    }

    /// Gives what was made to the workspace's owner.
    fn give_away(&self, name: &str) -> Result<(), Errno> {
        let owner = self.layer.base.owner;
        let found = rustix::fs::statat(self.stage, name, AtFlags::SYMLINK_NOFOLLOW)?;
        if (found.st_uid, found.st_gid) == (owner.uid, owner.gid) {
            return Ok(());
        }
        // An ordinary user's files are theirs by birth; a group that is given on by a directory stays.
        if found.st_uid == owner.uid && !rustix::process::geteuid().is_root() {
            return Ok(());
        }
        let (uid, gid) = (Uid::from_raw(owner.uid), Gid::from_raw(owner.gid));
        rustix::fs::chownat(self.stage, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)
    }

    fn mode(&self, item: &Item) -> Option<Op> {
        let upper = item.upper.as_ref().filter(|upper| upper.kind == Kind::Directory)?;
        let path = bytes(&item.change.path);
        if !brings_directory(&item.change) {
            let lower = item.lower.as_ref()?;
            return Some(Op::Mode { path, of: lower.id, from: lower.mode, to: upper.mode });
        }
        let new = self.ops.iter().find_map(|op| match op {
            Op::Put { path: put, new, .. } if *put == path => Some(*new),
            Op::Put { .. } | Op::Take { .. } | Op::Mode { .. } => None,
        })?;
        let is_another = upper.mode != OPEN_MODE;
        is_another.then_some(Op::Mode { path, of: new, from: OPEN_MODE, to: upper.mode })
    }
}

/// Sets the permissions of a directory that a descriptor stands for. That it gives its group on stays:
/// this is the workspace's own way.
pub(super) fn set_mode(directory: impl AsFd, mode: u32) -> Result<(), Errno> {
    let kept = rustix::fs::fstat(&directory)?.st_mode & Mode::SGID.as_raw_mode();
    rustix::fs::chmod(through(directory), Mode::from_raw_mode(mode | kept))
}

fn changed(path: &GuestPath) -> Error {
    Error::new(ErrorKind::Conflict, format!("{path:?} changed in the session"))
        .hint("Pause the session, and try again.")
}

fn bytes(path: &GuestPath) -> ByteString {
    ByteString::from(path.as_bytes().to_vec())
}

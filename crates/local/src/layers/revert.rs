//! Changes that are dropped from a layer which is a copy of its workspace.
//!
//! What a path has in the workspace now takes its place in the copy, each in one moment. What was
//! copied anew is known as such once all is done; a crash before leaves it to be compared.

use super::changes::parent;
use super::copying::{self, Job};
use super::layer::Layer;
use super::listing::Listing;
use super::look::{Kind, Seen, directory, look, names, open};
use super::walk::MAX_LAYER_ENTRIES;
use super::writable::Writable;
use crate::cow::base::wait_beyond;
use crate::kernel_path::through;
use cofferdam_core::{Error, ErrorKind, GuestPath, Result};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags, RenameFlags, renameat_with};
use rustix::io::Errno;
use std::collections::BTreeSet;

/// What stands in the way of a path that is to show the workspace again.
pub(super) enum Place {
    Free,
    HiddenBy(GuestPath),
}

impl Layer {
    /// Makes the copy what the workspace is, wherever the sandbox made something else of it, and says of
    /// which paths.
    ///
    /// HOSTILE: what the sandbox made is not looked into: it goes as a whole, however deep it is.
    pub(super) fn revert(
        &mut self,
        listing: Listing,
        paths: &[GuestPath],
        trash: &OwnedFd,
    ) -> Result<Vec<Vec<u8>>> {
        let mut reverting = Reverting {
            layer: self,
            trash,
            listing,
            waiting: Vec::new(),
            number: 0,
            exchanged: Vec::new(),
            last_ns: 0,
        };
        let reverted = reverting.all(paths);
        let Reverting { listing, exchanged, last_ns, .. } = reverting;
        // ORDER: once for all, before anybody changes what was copied, or that would be seen as nothing.
        wait_beyond(last_ns);
        // ORDER: also where it failed, for what was done before.
        listing.write(&self.folder)?;
        self.listing = Some(listing);
        reverted.map(|()| exchanged)
    }

    /// Whether a path of the copy can show the workspace again by itself.
    pub(super) fn place(&self, path: &GuestPath) -> Result<Place, Errno> {
        let mut ways: Vec<GuestPath> = path.ancestors().collect();
        ways.reverse();
        let in_workspace = self.below(&self.workspace, path.as_bytes(), path)?.is_some();
        for above in ways {
            let is_directory = look(&self.upper, above.as_bytes())?
                .is_some_and(|(seen, _)| seen.kind == Kind::Directory);
            if !is_directory {
                return Ok(if in_workspace { Place::HiddenBy(above) } else { Place::Free });
            }
        }
        Ok(Place::Free)
    }
}

/// A copy that is made what its workspace is.
struct Reverting<'r> {
    layer: &'r Layer,
    trash: &'r OwnedFd,
    listing: Listing,
    /// Directories that both sides have.
    waiting: Vec<Option<GuestPath>>,
    /// How many places in the trash were taken.
    number: usize,
    /// Paths that were copied anew. Others still are what they were copied as, whatever the workspace has.
    exchanged: Vec<Vec<u8>>,
    /// The last time of change of what was copied anew.
    last_ns: u64,
}

impl Reverting<'_> {
    fn all(&mut self, paths: &[GuestPath]) -> Result<()> {
        if paths.is_empty() {
            self.waiting.push(None);
        }
        for path in paths {
            if matches!(self.at(path, self.layer.place(path))?, Place::Free) {
                self.path(path.clone())?;
            }
        }
        while let Some(path) = self.waiting.pop() {
            self.directory(path.as_ref())?;
        }
        Ok(())
    }

    fn directory(&mut self, path: Option<&GuestPath>) -> Result<()> {
        let bytes = path.map_or(&b""[..], GuestPath::as_bytes);
        let mut all = BTreeSet::new();
        for side in [&self.layer.upper, &self.layer.workspace] {
            let at = |errno| self.layer.failed("list a directory of", errno);
            if let Some(side) = directory(side, bytes).map_err(at)? {
                all.extend(names(&side, MAX_LAYER_ENTRIES).map_err(at)?);
            }
        }
        for name in all {
            let child = if bytes.is_empty() { name } else { [bytes, b"/", &name].concat() };
            self.path(GuestPath::new(&child)?)?;
        }
        Ok(())
    }

    fn path(&mut self, path: GuestPath) -> Result<()> {
        let side = |root: &OwnedFd| look(root, path.as_bytes()).map(|found| found.map(|at| at.0));
        let mine = self.at(&path, side(&self.layer.upper))?;
        let theirs = self.at(&path, side(&self.layer.workspace))?;
        let is_directory = |seen: &Seen| seen.kind == Kind::Directory;
        match (&mine, &theirs) {
            (Some(mine), Some(theirs)) if is_directory(mine) && is_directory(theirs) => {
                if mine.mode != theirs.mode {
                    self.take_mode(&path, theirs.mode)?;
                }
                self.waiting.push(Some(path));
                Ok(())
            }
            (None, _) if !self.layer.has_had(path.as_bytes()) => Ok(()),
            (Some(mine), _) if !is_directory(mine) && self.is_untouched(&path, mine) => Ok(()),
            (None, None) => Ok(()),
            (Some(_), _) | (None, Some(_)) => self.exchange(&path),
        }
    }

    fn is_untouched(&self, path: &GuestPath, seen: &Seen) -> bool {
        self.listing.is_untouched(path.as_bytes(), seen)
    }

    /// What is in both stays; its permissions are those of the workspace.
    fn take_mode(&mut self, path: &GuestPath, mode: u32) -> Result<()> {
        let found = self.at(path, look(&self.layer.upper, path.as_bytes()))?;
        if let Some((_, directory)) = found {
            let set = rustix::fs::chmod(through(&directory), Mode::from_raw_mode(mode));
            self.at(path, set)?;
        }
        self.listing.set_directory(path.as_bytes(), mode);
        Ok(())
    }

    fn exchange(&mut self, path: &GuestPath) -> Result<()> {
        let slot = self.number.to_string();
        self.number += 1;
        let (bytes, trash) = (path.as_bytes(), self.trash);
        let Layer { workspace, placeholders, .. } = self.layer;
        let job = Job { workspace, path: bytes, into: trash, name: &slot, placeholders };
        let copied = copying::copy(&job)?;
        let above = parent(bytes);
        let name = bytes.get(above.map_or(0, |above| above.len() + 1)..).unwrap_or_default();
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let above = open(self.layer.upper.as_fd(), above.unwrap_or(b"."), flags);
        let above = self.at(path, above)?;
        let there = self.at(path, look(&above, name))?.map(|(_, file)| file);
        let come = self.at(path, look(trash, slot.as_bytes()))?.map(|(_, file)| file);
        let slot = slot.as_str();
        let writable = Writable::all([Some(&above), there.as_ref(), come.as_ref()]);
        let moved = match (there.is_some(), come.is_some()) {
            (true, true) => renameat_with(trash, slot, &above, name, RenameFlags::EXCHANGE),
            (false, true) => renameat_with(trash, slot, &above, name, RenameFlags::NOREPLACE),
            (true, false) => renameat_with(&above, name, trash, slot, RenameFlags::NOREPLACE),
            (false, false) => Ok(()),
        };
        // ORDER: before it is looked at as it is from now on.
        drop(writable);
        self.at(path, moved)?;
        self.exchanged.push(bytes.to_vec());
        self.listing.forget(bytes);
        self.listing.take_over(&copied);
        self.last_ns = self.last_ns.max(copied.last_ns);
        // A rename is a change of what was moved.
        if let Some((seen, _)) = self.at(path, look(&above, name))? {
            self.listing.renew(bytes, &seen);
            self.last_ns = self.last_ns.max(seen.changed_ns);
        }
        Ok(())
    }

    fn at<T>(&self, path: &GuestPath, done: Result<T, Errno>) -> Result<T> {
        done.map_err(|errno| self.layer.failed(&format!("drop {path:?} from"), errno))
    }
}

/// A path cannot be dropped because of what became of one above it.
pub(super) fn hidden(path: &GuestPath, above: &GuestPath) -> Error {
    let what = format!("{path:?} is hidden by what became of {above:?}");
    Error::new(ErrorKind::Conflict, what).hint(format!("Discard {above:?} as a whole."))
}

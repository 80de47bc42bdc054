//! The directories of one layer.

use super::dropped::Dropped;
use super::landed::Landed;
use super::listing::Listing;
use super::look::{Seen, look};
use crate::cow::base::{Base, UPPER, Xattrs};
use crate::placeholders::Standing;
use crate::state::io;
use cofferdam_core::{Error, ErrorKind, GuestPath, Result};
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use std::path::{Path, PathBuf};

/// A layer and what it lies on, both open.
///
/// Nothing may be landed or discarded by two at once: whoever calls these holds what keeps others off.
#[derive(Debug)]
pub struct Layer {
    pub(super) base: Base,
    pub(super) path: PathBuf,
    pub(super) folder: OwnedFd,
    pub(super) upper: OwnedFd,
    pub(super) workspace: OwnedFd,
    pub(super) landed: Landed,
    pub(super) dropped: Dropped,
    /// What was copied, where the upper directory is a copy of the workspace.
    pub(super) listing: Option<Listing>,
    /// What others made in the workspace to hold names, which is nothing to the sandbox.
    pub(super) placeholders: Standing,
}

impl Layer {
    /// Opens the layer in this folder, which belongs to nobody else; `None` where there is none.
    ///
    /// A workspace that is not the one that the layer was made on is a conflict.
    pub fn open(folder: &Path) -> Result<Option<Self>> {
        let path = folder.to_owned();
        let folder = match directory(folder) {
            Ok(folder) => folder,
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(io("open the layer", &path, errno)),
        };
        let Some(base) = Base::read(&folder)? else { return Ok(None) };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let upper = rustix::fs::openat(&folder, UPPER, flags, Mode::empty())
            .map_err(|errno| io("open the upper directory of the layer", &path, errno))?;
        let workspace = workspace(&base.workspace, base.device, base.inode)?;
        let landed = Landed::read(&folder)?;
        let dropped = Dropped::read(&folder, &upper)?;
        let listing = base.copied.as_ref().map(|_| Listing::read(&folder)).transpose()?;
        Ok(Some(Self {
            base,
            path,
            folder,
            upper,
            workspace,
            landed,
            dropped,
            listing,
            placeholders: Standing::default(),
        }))
    }

    /// Takes these for nothing from now on, where the workspace has them.
    pub(crate) fn pass_over(&mut self, placeholders: Standing) {
        self.placeholders = placeholders;
    }

    /// The directory that it lies on, by device and inode.
    pub(crate) fn lies_on(&self) -> (u64, u64) {
        (self.base.device, self.base.inode)
    }

    /// What the workspace has under a name of one of its directories, if it is no placeholder of others.
    pub(super) fn below(
        &self,
        directory: &OwnedFd,
        name: &[u8],
        path: &GuestPath,
    ) -> Result<Option<(Seen, OwnedFd)>, Errno> {
        let found = look(directory, name)?;
        Ok(found.filter(|(_, file)| !self.placeholders.has(path.as_bytes(), file)))
    }

    /// Whether the workspace has a placeholder of others there.
    pub(super) fn is_held(&self, path: &GuestPath) -> bool {
        !self.placeholders.is_empty()
            && look(&self.workspace, path.as_bytes()).is_ok_and(|found| {
                found.is_some_and(|(_, file)| self.placeholders.has(path.as_bytes(), file))
            })
    }

    /// What tells this layer from others of this machine.
    pub(super) fn identity(&self) -> Result<String> {
        let stat = rustix::fs::fstat(&self.folder)
            .map_err(|errno| io("look at the layer", &self.path, errno))?;
        Ok(format!("{:x}-{:x}", stat.st_dev, stat.st_ino))
    }

    /// From when on a change of this path in the workspace is news; the empty path is the workspace.
    pub(super) fn since_ns(&self, path: &[u8]) -> u64 {
        let copied_ns = self.listing.as_ref().map_or(0, |listing| listing.since_ns(path));
        match self.is_left_out(path) {
            // The sandbox never saw it.
            true => self.landed.since(path, 0),
            false => {
                let seen_ns = self.base.made_ns.max(copied_ns).max(self.dropped.at_ns(path));
                self.landed.since(path, seen_ns)
            }
        }
    }

    /// Whether a copy has had what the workspace has under this path: it was copied, or it landed.
    pub(super) fn has_had(&self, path: &[u8]) -> bool {
        let listed = self.listing.as_ref().and_then(|listing| listing.get(path));
        listed.map_or_else(|| self.landed.has(path), |listed| listed.kind.is_some())
    }

    /// Whether the workspace had something there that was not copied.
    pub(super) fn is_left_out(&self, path: &[u8]) -> bool {
        let listed = self.listing.as_ref().and_then(|listing| listing.get(path));
        listed.is_some_and(|listed| listed.kind.is_none())
    }

    /// The name of a mark that the kernel has in this layer.
    pub(super) fn mark(&self, name: &str) -> String {
        match self.base.xattrs {
            Xattrs::User => format!("user.overlay.{name}"),
            Xattrs::Trusted => format!("trusted.overlay.{name}"),
        }
    }
}

/// Opens a workspace, if it is still that directory.
pub(crate) fn workspace(path: &str, device: u64, inode: u64) -> Result<OwnedFd> {
    let moved = |why: &str| {
        let what = format!("the workspace {path} {why}");
        Error::new(ErrorKind::Conflict, what)
            .hint("Put the directory that the session was made on back to its place.")
    };
    let found = match directory(Path::new(path)) {
        Ok(found) => found,
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Err(moved("is not there")),
        Err(errno) => return Err(io("open the workspace", Path::new(path), errno)),
    };
    let stat = rustix::fs::fstat(&found)
        .map_err(|errno| io("look at the workspace", Path::new(path), errno))?;
    if (stat.st_dev, stat.st_ino) != (device, inode) {
        return Err(moved("is another directory by now"));
    }
    Ok(found)
}

fn directory(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(CWD, path, flags, Mode::empty())
}

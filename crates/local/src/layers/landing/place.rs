//! Where a landing is staged: beside the records, where no sandbox sees it, or else in the workspace.
//!
//! HOSTILE: another sandbox of the workspace writes whatever lies in it, and the user that it runs as
//! is ours. No permission and no name keeps it out of a stage there.

use super::super::clear;
use super::super::look;
use crate::kernel_path::through;
use crate::oneshot::unique;
use rustix::buffer::spare_capacity;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Gid, Mode, OFlags, RenameFlags, XattrFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// Leads the name of a stage.
pub(super) const STAGE: &str = ".cofferdam-landing-";
/// What the kernel gives on from a directory to what is made in it, besides its group.
const GIVEN_ON: [&str; 2] = ["system.posix_acl_default", "security.selinux"];
/// No value of one of these is longer.
const GIVEN_ON_BYTES: usize = 64 * 1024;

/// In what a stage lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(in super::super) enum Place {
    /// All stages lay there once.
    #[default]
    Workspace,
    /// The folder of records of the state directory, which no sandbox is shown.
    Records,
}

/// The name of a new stage.
pub(super) fn name() -> String {
    format!("{STAGE}{}", unique())
}

/// A directory that holds what comes and what went.
#[derive(Debug)]
pub(super) struct Stage {
    pub(super) place: Place,
    pub(super) directory: OwnedFd,
}

impl Stage {
    /// Makes one of this name in the workspace.
    pub(super) fn in_workspace(workspace: &OwnedFd, name: &str) -> Result<Self, Errno> {
        Self::make(Place::Workspace, workspace, name)
    }

    /// Makes one of this name beside the records; `None` where nothing can be renamed from there to the
    /// workspace, or what is made there would not be as if it were made in the workspace.
    pub(super) fn beside_records(
        records: &OwnedFd,
        name: &str,
        workspace: &OwnedFd,
    ) -> Result<Option<Self>, Errno> {
        let stage = Self::make(Place::Records, records, name).ok();
        // Every doubt speaks for the place from which it always works.
        let stage = stage.filter(|stage| stage.suits(workspace).unwrap_or(false));
        if stage.is_some() {
            return Ok(stage);
        }
        clear::remove(records, name.as_bytes())?;
        Ok(None)
    }

    fn make(place: Place, at: &OwnedFd, name: &str) -> Result<Self, Errno> {
        rustix::fs::mkdirat(at, name, Mode::RWXU)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
        let directory = look::open(at.as_fd(), name.as_bytes(), flags)?;
        Ok(Self { place, directory })
    }

    /// Opens one that somebody made; `None` where it was thrown away, or never made.
    pub(super) fn open(place: Place, at: &OwnedFd, name: &str) -> Result<Option<Self>, Errno> {
        let directory = look::directory(at, name.as_bytes())?;
        Ok(directory.map(|directory| Self { place, directory }))
    }

    /// Whether anybody else may have changed what is in it.
    pub(super) fn is_open_to_others(&self) -> bool {
        match self.place {
            Place::Workspace => true,
            Place::Records => false,
        }
    }

    /// Has what is made in it be as if it were made in the workspace, and says whether that holds and it can
    /// be renamed to there.
    fn suits(&self, workspace: &OwnedFd) -> Result<bool, Errno> {
        let (here, there) = (rustix::fs::fstat(&self.directory)?, rustix::fs::fstat(workspace)?);
        if here.st_dev != there.st_dev {
            return Ok(false);
        }
        // The kernel compares mounts before it looks whether anything is there, so nothing is moved.
        let (none, flags) = ("none", RenameFlags::NOREPLACE);
        match rustix::fs::renameat_with(&self.directory, none, workspace, name(), flags) {
            Err(Errno::NOENT) => {}
            Ok(()) | Err(_) => return Ok(false),
        }
        if there.st_mode & Mode::SGID.as_raw_mode() != 0 {
            let group = Some(Gid::from_raw(there.st_gid));
            rustix::fs::fchown(&self.directory, None, group)?;
            rustix::fs::fchmod(&self.directory, Mode::RWXU | Mode::SGID)?;
            // The kernel drops the bit without an error where the group is not the caller's.
            let now = rustix::fs::fstat(&self.directory)?;
            if now.st_mode & Mode::SGID.as_raw_mode() == 0 {
                return Ok(false);
            }
        }
        for mark in GIVEN_ON {
            let wanted = value(workspace, mark)?;
            if value(&self.directory, mark)? == wanted {
                continue;
            }
            let Some(wanted) = wanted else { return Ok(false) };
            let flags = XattrFlags::empty();
            rustix::fs::setxattr(through(&self.directory), mark, &wanted, flags)?;
        }
        Ok(true)
    }
}

fn value(directory: &OwnedFd, mark: &str) -> Result<Option<Vec<u8>>, Errno> {
    let mut value = Vec::with_capacity(GIVEN_ON_BYTES);
    match rustix::fs::getxattr(through(directory), mark, spare_capacity(&mut value)) {
        Ok(_) => Ok(Some(value)),
        Err(Errno::NODATA | Errno::NOTSUP) => Ok(None),
        Err(errno) => Err(errno),
    }
}

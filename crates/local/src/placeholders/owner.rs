//! As whom files are made.

use super::sys;
use rustix::io::Errno;
use std::os::fd::OwnedFd;

/// Asks for the present ids without changing them: no user has this number.
const NOBODY: u32 = u32::MAX;

/// The owner of a workspace, as far as it is not ourselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Owner {
    uid: u32,
    gid: u32,
}

/// While this lives, this thread accesses files as somebody else.
#[derive(Debug)]
pub(super) struct Acting {
    before: Option<(u32, u32)>,
}

impl Owner {
    pub(super) fn of(directory: &OwnedFd) -> Result<Self, Errno> {
        let stat = rustix::fs::fstat(directory)?;
        Ok(Self { uid: stat.st_uid, gid: stat.st_gid })
    }

    /// As whom this thread accesses files now.
    pub(super) fn acting() -> u32 {
        sys::access_files_as(NOBODY, NOBODY).0
    }

    /// Only root can be somebody else; everybody else goes on as who they are.
    pub(super) fn act(self) -> Acting {
        let changes = rustix::process::geteuid().is_root() && self.uid != 0;
        Acting { before: changes.then(|| sys::access_files_as(self.uid, self.gid)) }
    }
}

impl Drop for Acting {
    fn drop(&mut self) {
        if let Some((uid, gid)) = self.before {
            sys::access_files_as(uid, gid);
        }
    }
}

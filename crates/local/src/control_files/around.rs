//! Which repositories some directories are in.

use super::{Repositories, is_repository};
use crate::state::{io, retry};
use cofferdam_core::Result;
use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

/// Finds the repositories that any of these directories is, or is in; the empty path is the workspace.
/// What git looks for may be on any of the `sides`. Costs what there are of the directories and above
/// them, whatever else the workspace holds. Follows no link.
///
/// One that may not be entered is passed over, as a scan does. Those whose path is no text come by themselves.
pub(crate) fn around<'d>(
    sides: &[&OwnedFd],
    directories: impl IntoIterator<Item = &'d [u8]>,
) -> Result<(Repositories, Vec<Vec<u8>>)> {
    let (mut found, mut unnamed) = (Repositories::default(), Vec::new());
    for directory in with_all_above(directories) {
        let open = sides.iter().map(|side| open(side.as_fd(), directory));
        let open: Vec<Option<OwnedFd>> = open.collect::<Result<_>>()?;
        let has = |name: &str| open.iter().flatten().any(|side| has(side, name));
        let Ok(path) = std::str::from_utf8(directory) else {
            if has(".git") || is_repository(has) {
                unnamed.push(directory.to_vec());
            }
            continue;
        };
        if has(".git") {
            found.trees.insert(path.to_owned());
        }
        // The workspace itself is looked at in any case.
        if !path.is_empty() && is_repository(has) {
            found.bare.insert(path.to_owned());
        }
    }
    Ok((found, unnamed))
}

fn has(directory: &OwnedFd, name: &str) -> bool {
    rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
}

fn with_all_above<'d>(directories: impl IntoIterator<Item = &'d [u8]>) -> BTreeSet<&'d [u8]> {
    let mut all = BTreeSet::from([&b""[..]]);
    for directory in directories {
        let mut next = directory;
        // What is above one that is known is known.
        while all.insert(next) {
            let slash = next.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
            next = next.get(..slash).unwrap_or_default();
        }
    }
    all
}

fn open(workspace: BorrowedFd<'_>, path: &[u8]) -> Result<Option<OwnedFd>> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let rules = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let name = if path.is_empty() { b"." } else { path };
    match retry(|| rustix::fs::openat2(workspace, name, flags, Mode::empty(), rules)) {
        Ok(directory) => Ok(Some(directory)),
        Err(errno @ (Errno::MFILE | Errno::NFILE | Errno::NOMEM)) => {
            let path = String::from_utf8_lossy(path).into_owned();
            Err(io("look at a directory of the workspace", Path::new(&path), errno))
        }
        Err(_) => Ok(None),
    }
}

//! Whether something is as it is expected.

use super::super::failure::{Trouble, failed, refused};
use super::super::read::{hash_with, look_at};
use super::super::talk::Gone;
use super::super::walk::Root;
use super::held::name;
use cofferdam_wire::ByteString;
use cofferdam_wire::files::{Before, Failure, Why};
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::fs::{Access, AtFlags, Dir, FileType, Mode, OFlags, StatxAttributes, StatxFlags};
use rustix::io::Errno;

/// How a worker tells its host that it is still at work.
pub(super) type Sign<'a> = &'a mut dyn FnMut() -> Result<(), Gone>;

/// Refuses what is not as expected. `path` is for the words alone.
pub(super) fn check(
    root: &Root,
    (directory, name): (BorrowedFd<'_>, &[u8]),
    path: &[u8],
    before: &Before,
    sign: Sign<'_>,
) -> Result<(), Trouble> {
    let fits = match before {
        Before::Nothing => match look_at(directory, name) {
            Ok(_) => false,
            Err(Errno::NOENT) => true,
            Err(errno) => return Err(failed(errno, unseen(path)).into()),
        },
        Before::Link { target } => match rustix::fs::readlinkat(directory, name, Vec::new()) {
            Ok(found) => found.as_bytes() == target.as_bytes(),
            Err(Errno::NOENT | Errno::INVAL) => false,
            Err(errno) => return Err(failed(errno, unseen(path)).into()),
        },
        Before::File { sha256, mode } => match open(directory, name) {
            Ok(file) => {
                let stat = rustix::fs::fstat(&file).map_err(|e| failed(e, unseen(path)))?;
                let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
                root.admit(&file, &stat)?;
                is_file
                    && stat.st_mode & 0o7777 == *mode
                    && hash_with(&file, sign)?.eq_ignore_ascii_case(sha256)
            }
            Err(Errno::NOENT | Errno::LOOP | Errno::NXIO) => false,
            Err(errno) => return Err(failed(errno, unseen(path)).into()),
        },
    };
    if fits { Ok(()) } else { Err(changed(path).into()) }
}

/// Refuses a directory that is not empty.
pub(super) fn check_empty(
    (directory, name): (BorrowedFd<'_>, &[u8]),
    path: &[u8],
) -> Result<(), Failure> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(directory, name, flags, Mode::empty());
    let opened = opened.map_err(|e| failed(e, unseen(path)))?;
    let mut entries = Dir::read_from(&opened).map_err(|e| failed(e, unseen(path)))?;
    while let Some(entry) = entries.read() {
        let entry = entry.map_err(|e| failed(e, unseen(path)))?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            return Err(changed(path));
        }
    }
    Ok(())
}

/// Refuses a name that cannot be given away: one that is protected, or in a directory that is.
pub(super) fn check_changeable(directory: BorrowedFd<'_>, path: &[u8]) -> Result<(), Failure> {
    let shown = ByteString::from(path.to_vec());
    let access = Access::WRITE_OK | Access::EXEC_OK;
    rustix::fs::accessat(directory, c".", access, AtFlags::empty()).map_err(|e| match e {
        Errno::ROFS => failed(e, format!("{shown:?} is protected: it can be read only")),
        _ => failed(e, format!("no name can be changed in the directory of {shown:?}")),
    })?;
    let flags = AtFlags::SYMLINK_NOFOLLOW;
    let Ok(seen) = rustix::fs::statx(directory, name(path), flags, StatxFlags::empty()) else {
        return Ok(());
    };
    // One that is mounted is pinned.
    match seen.stx_attributes.contains(StatxAttributes::MOUNT_ROOT) {
        true => Err(refused(Why::Denied, format!("{shown:?} is protected"))),
        false => Ok(()),
    }
}

pub(super) fn changed(path: &[u8]) -> Failure {
    let path = ByteString::from(path.to_vec());
    refused(Why::Changed, format!("{path:?} is not what it was when it was looked at"))
}

fn unseen(path: &[u8]) -> String {
    format!("{:?} cannot be looked at", ByteString::from(path.to_vec()))
}

fn open(directory: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<OwnedFd> {
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    rustix::fs::openat(directory, name, flags, Mode::empty())
}

//! Why a request cannot be done.

use super::talk::Gone;
use cofferdam_wire::files::{Failure, Why};
use rustix::fs::{FileType, Stat};
use rustix::io::Errno;

/// What ends a request early.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The host is told why.
    Failed(Failure),
    /// Nobody is there to tell.
    Gone,
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<Gone> for Trouble {
    fn from(_: Gone) -> Self {
        Self::Gone
    }
}

/// A refusal of ours.
pub(super) fn refused(why: Why, detail: impl Into<String>) -> Failure {
    Failure { why, detail: detail.into(), errno: 0 }
}

/// A refusal of the kernel's.
pub(super) fn failed(errno: Errno, detail: impl Into<String>) -> Failure {
    let why = match errno {
        Errno::NOENT => Why::NotFound,
        Errno::NOTDIR | Errno::ISDIR | Errno::NXIO | Errno::LOOP => Why::WrongType,
        Errno::EXIST | Errno::NOTEMPTY => Why::Exists,
        // A name that is pinned is a mount, which is busy for whoever wants to move or remove it.
        Errno::ACCESS | Errno::PERM | Errno::ROFS | Errno::BUSY | Errno::XDEV => Why::Denied,
        Errno::FBIG | Errno::OVERFLOW => Why::TooLarge,
        Errno::NAMETOOLONG | Errno::INVAL => Why::BadRequest,
        Errno::NOSPC | Errno::DQUOT | Errno::NOMEM | Errno::MFILE | Errno::NFILE | Errno::AGAIN => {
            Why::Exhausted
        }
        _ => Why::Io,
    };
    Failure { why, detail: detail.into(), errno: errno.raw_os_error() }
}

/// Refuses everything but a regular file.
pub(super) fn regular(stat: &Stat) -> Result<(), Failure> {
    let kind = FileType::from_raw_mode(stat.st_mode);
    if kind == FileType::RegularFile { Ok(()) } else { Err(no_file(kind)) }
}

/// Something is no regular file.
pub(super) fn no_file(kind: FileType) -> Failure {
    refused(Why::WrongType, format!("it is {}, and no regular file", in_words(kind)))
}

pub(super) fn in_words(kind: FileType) -> &'static str {
    match kind {
        FileType::RegularFile => "a regular file",
        FileType::Directory => "a directory",
        FileType::Symlink => "a symbolic link",
        FileType::Fifo => "a named pipe",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Unknown => "of an unknown type",
    }
}

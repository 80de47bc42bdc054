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

/// What the kernel means by EOVERFLOW: an owner that has no number in a workspace whose owners are others
/// inside than outside. Sizes do not come to it where they have 64 bits.
const NO_OWNER: &str = "it belongs to a user or group that does not exist inside";

/// A refusal of the kernel's.
pub(super) fn failed(errno: Errno, detail: impl Into<String>) -> Failure {
    let why = match errno {
        Errno::NOENT => Why::NotFound,
        Errno::NOTDIR | Errno::ISDIR | Errno::NXIO | Errno::LOOP => Why::WrongType,
        Errno::EXIST | Errno::NOTEMPTY => Why::Exists,
        // A name that is pinned is a mount, which is busy for whoever wants to move or remove it.
        Errno::ACCESS | Errno::PERM | Errno::ROFS | Errno::BUSY | Errno::XDEV | Errno::OVERFLOW => {
            Why::Denied
        }
        Errno::FBIG => Why::TooLarge,
        Errno::NAMETOOLONG | Errno::INVAL => Why::BadRequest,
        Errno::NOSPC | Errno::DQUOT | Errno::NOMEM | Errno::MFILE | Errno::NFILE | Errno::AGAIN => {
            Why::Exhausted
        }
        _ => Why::Io,
    };
    let mut detail: String = detail.into();
    if errno == Errno::OVERFLOW {
        detail = format!("{detail}: {NO_OWNER}");
    }
    Failure { why, detail, errno: errno.raw_os_error() }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_belongs_to_nobody_inside_is_denied() {
        let failure = failed(Errno::OVERFLOW, "it cannot be written");
        assert_eq!(failure.why, Why::Denied);
        assert_eq!(failure.detail, format!("it cannot be written: {NO_OWNER}"));
        // The control.
        let failure = failed(Errno::FBIG, "it cannot be written");
        assert_eq!((failure.why, failure.detail.as_str()), (Why::TooLarge, "it cannot be written"));
    }
}

//! Directories of the store, and locks on them.

use super::failed;
use cofferdam_core::{Error, ErrorKind, Result};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long whoever uses a directory waits for one who holds it alone. Who removes it has it out of the way
/// by then, and others hold it for a moment, to see whether anybody uses it.
const USED_WITHIN: Duration = Duration::from_millis(200);
/// How long it is looked whether all who hold it do so for that moment.
const ALONE_WITHIN: Duration = Duration::from_millis(5);
/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(1);

/// How a directory is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lock {
    /// With others who use it.
    Shared,
    /// Alone.
    Alone,
}

pub(super) fn open_directory(
    at: impl AsFd,
    name: impl rustix::path::Arg,
) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(at, name, flags, Mode::empty())
}

/// Opens a directory of ours, and makes it for us alone where it is not there.
pub(super) fn own_directory(path: &Path) -> Result<OwnedFd> {
    match std::fs::DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            return Err(failed("make the directory", path, error));
        }
        _ => {}
    }
    let directory = open_directory(CWD, path).map_err(|e| failed("open the directory", path, e))?;
    let metadata = std::fs::File::from(directory);
    let stat = metadata.metadata().map_err(|e| failed("look at", path, e))?;
    // HOSTILE: whoever can write here could give us anything to run.
    if stat.uid() != rustix::process::geteuid().as_raw() || stat.mode() & 0o022 != 0 {
        let what = format!("use {}: others may write it", path.display());
        return Err(Error::new(ErrorKind::Denied, what)
            .hint("Remove it, or set COFFERDAM_HOME to a directory of your own."));
    }
    Ok(metadata.into())
}

/// Locks a directory below another one, if nobody stands against it. `None` where somebody does, or
/// where it is gone.
pub(super) fn lock(at: impl AsFd, name: &str, lock: Lock) -> rustix::io::Result<Option<OwnedFd>> {
    let (operation, within) = match lock {
        Lock::Shared => (FlockOperation::NonBlockingLockShared, USED_WITHIN),
        Lock::Alone => (FlockOperation::NonBlockingLockExclusive, ALONE_WITHIN),
    };
    let begin = Instant::now();
    let directory = loop {
        let directory = match open_directory(&at, name) {
            Err(Errno::NOENT) => return Ok(None),
            other => other?,
        };
        match rustix::fs::flock(&directory, operation) {
            Err(Errno::WOULDBLOCK) if begin.elapsed() < within => std::thread::sleep(PAUSE),
            Err(Errno::WOULDBLOCK) => return Ok(None),
            other => break other.map(|()| directory)?,
        }
    };
    // It may have been renamed, or removed, between the two.
    let ours = rustix::fs::fstat(&directory)?;
    match rustix::fs::statat(&at, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(now) if (now.st_dev, now.st_ino) == (ours.st_dev, ours.st_ino) => Ok(Some(directory)),
        Ok(_) | Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// Removes a directory with everything in it, whatever modes an image gave to what is there. What is
/// not there is removed.
pub(super) fn remove_all(at: impl AsFd, name: &[u8]) -> rustix::io::Result<()> {
    match rustix::fs::unlinkat(&at, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        Err(Errno::ISDIR | Errno::PERM) => {}
        Err(errno) => return Err(errno),
    }
    let directory = match open_directory(&at, name) {
        Err(Errno::ACCESS) => {
            open_up(&at, name)?;
            open_directory(&at, name)?
        }
        Err(Errno::NOENT) => return Ok(()),
        other => other?,
    };
    // A directory that cannot be written keeps what is in it.
    rustix::fs::fchmod(&directory, Mode::RWXU)?;
    for entry in rustix::fs::Dir::read_from(&directory)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if !matches!(name, b"." | b"..") {
            // LIMIT: as deep as a layer may be.
            remove_all(&directory, name)?;
        }
    }
    match rustix::fs::unlinkat(&at, name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// Makes a directory one that we can enter. The name is no link: it could not be removed as a file.
fn open_up(at: impl AsFd, name: &[u8]) -> rustix::io::Result<()> {
    rustix::fs::chmodat(at, name, Mode::RWXU, AtFlags::empty())
}

//! Contents of regular files: compared, read, copied.

use super::look::{Kind, Seen};
use crate::kernel_path::through;
use crate::state::retry;
use cofferdam_core::{Error, ErrorKind, GuestPath, Result};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags, SeekFrom};
use rustix::io::Errno;
use sha2::{Digest, Sha256};

/// The largest file that lands, in bytes, holes included.
pub const MAX_LANDED_FILE_BYTES: u64 = 16 << 30;
/// How much is read at once.
const PIECE_BYTES: usize = 128 * 1024;

/// Opens what a descriptor stands for to read it. To be called for what was seen to be a regular file,
/// so that no pipe is waited for and no device is asked. Reading leaves no trace where that is allowed.
pub(super) fn reopened(file: &OwnedFd) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let open = |flags| retry(|| rustix::fs::openat(CWD, through(file), flags, Mode::empty()));
    match open(flags | OFlags::NOATIME) {
        Err(Errno::PERM) => open(flags),
        other => other,
    }
}

/// Whether two regular files of one size hold the same bytes.
pub(super) fn same(one: &OwnedFd, other: &OwnedFd) -> Result<bool, Errno> {
    let (one, other) = (reopened(one)?, reopened(other)?);
    let (mut left, mut right) = (vec![0; PIECE_BYTES], vec![0; PIECE_BYTES]);
    let mut offset = 0;
    loop {
        let read = fill(&one, &mut left, offset)?;
        let there = fill(&other, &mut right, offset)?;
        if left.get(..read) != right.get(..there) {
            return Ok(false);
        }
        if read < PIECE_BYTES {
            return Ok(true);
        }
        offset += read as u64;
    }
}

/// The SHA-256 of what a regular file holds.
pub(super) fn hash(file: &OwnedFd) -> Result<[u8; 32], Errno> {
    let file = reopened(file)?;
    let mut piece = vec![0; PIECE_BYTES];
    let mut hash = Sha256::new();
    let mut offset = 0;
    loop {
        let read = fill(&file, &mut piece, offset)?;
        hash.update(piece.get(..read).unwrap_or_default());
        if read < PIECE_BYTES {
            return Ok(hash.finalize().into());
        }
        offset += read as u64;
    }
}

/// Reads until the buffer is full or the file ends.
fn fill(file: &OwnedFd, buffer: &mut [u8], offset: u64) -> Result<usize, Errno> {
    let mut len = 0;
    while let Some(rest) = buffer.get_mut(len..).filter(|rest| !rest.is_empty()) {
        match retry(|| rustix::io::pread(file, &mut *rest, offset + len as u64))? {
            0 => break,
            count => len += count,
        }
    }
    Ok(len)
}

/// The whole content of a regular file, if it has no more bytes than this.
pub(super) fn read(path: &GuestPath, file: &OwnedFd, seen: &Seen, most: u64) -> Result<Vec<u8>> {
    if seen.kind != Kind::File {
        return Err(Error::new(ErrorKind::NotAFile, format!("{path:?} is no regular file"))
            .hint("Name a file."));
    }
    let too_large = || {
        let what = format!("{path:?} has more than {most} bytes");
        Error::new(ErrorKind::TooLarge, what)
    };
    if seen.size > most {
        return Err(too_large());
    }
    let file = reopened(file).map_err(|errno| failed("open", path, errno))?;
    let mut content = Vec::new();
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let read = fill(&file, &mut piece, content.len() as u64);
        let read = read.map_err(|errno| failed("read", path, errno))?;
        content.extend_from_slice(piece.get(..read).unwrap_or_default());
        // It may grow while it is read.
        if content.len() as u64 > most {
            return Err(too_large());
        }
        if read < PIECE_BYTES {
            return Ok(content);
        }
    }
}

/// Copies a regular file as it was seen, holes left out, and tells how far it is. One that changes meanwhile
/// is a conflict.
pub(super) fn copy(
    path: &GuestPath,
    (from, seen): (&OwnedFd, &Seen),
    to: &OwnedFd,
    told: impl FnMut(u64),
) -> Result<()> {
    let source = reopened(from).map_err(|errno| failed("open", path, errno))?;
    copy_bytes(&source, seen.size, to, told).map_err(|errno| failed("copy", path, errno))?;
    let now = Seen::of(&source).map_err(|errno| failed("look at", path, errno))?;
    let is_as_seen = now.size == seen.size
        && now.modified_ns == seen.modified_ns
        && now.changed_ns == seen.changed_ns;
    if is_as_seen {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Conflict, format!("{path:?} changed while it was copied"))
        .hint("Pause the session, and try again."))
}

/// Copies so many bytes into an empty file, holes left out, and tells how far it is.
pub(super) fn copy_bytes(
    source: &OwnedFd,
    size: u64,
    to: &OwnedFd,
    mut told: impl FnMut(u64),
) -> Result<(), Errno> {
    rustix::fs::ftruncate(to, size)?;
    let mut piece = vec![0; PIECE_BYTES];
    let mut offset = 0;
    while offset < size {
        offset = match rustix::fs::seek(source, SeekFrom::Data(offset)) {
            Ok(data) => data.max(offset),
            // The rest is a hole.
            Err(Errno::NXIO) => return Ok(()),
            Err(Errno::INVAL) => offset,
            Err(errno) => return Err(errno),
        };
        let end = match rustix::fs::seek(source, SeekFrom::Hole(offset)) {
            Ok(hole) => hole.min(size),
            Err(Errno::NXIO | Errno::INVAL) => size,
            Err(errno) => return Err(errno),
        };
        while offset < end {
            let most = usize::try_from(end - offset).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
            let read = fill(source, piece.get_mut(..most).unwrap_or_default(), offset)?;
            if read == 0 {
                return Ok(());
            }
            write_at(to, piece.get(..read).unwrap_or_default(), offset)?;
            offset += read as u64;
            told(offset);
        }
    }
    Ok(())
}

/// Writes bytes at the beginning of an empty file.
pub(super) fn write(to: &OwnedFd, bytes: &[u8]) -> Result<(), Errno> {
    write_at(to, bytes, 0)
}

fn write_at(to: impl AsFd, mut bytes: &[u8], mut offset: u64) -> Result<(), Errno> {
    while !bytes.is_empty() {
        let count = retry(|| rustix::io::pwrite(&to, bytes, offset))?;
        bytes = bytes.get(count..).unwrap_or_default();
        offset += count as u64;
    }
    Ok(())
}

/// An error about a path below the workspace.
pub(super) fn failed(what: &str, path: &GuestPath, errno: Errno) -> Error {
    let cause = std::io::Error::from(errno);
    match errno {
        Errno::ACCESS | Errno::PERM => {
            Error::new(ErrorKind::Denied, format!("{what} {path:?}")).source(cause).hint(
                "Give its owner the right to read, write and enter it, with chmod in the session \
                 or in the workspace.",
            )
        }
        Errno::NOSPC | Errno::DQUOT => Error::new(ErrorKind::Io, format!("{what} {path:?}"))
            .source(cause)
            .hint("Make room on the disk of the workspace."),
        _ => Error::new(ErrorKind::Io, format!("{what} {path:?}")).source(cause),
    }
}

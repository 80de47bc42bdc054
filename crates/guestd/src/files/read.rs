//! Reading, and describing.

use super::failure::{Trouble, failed, no_file, refused, regular};
use super::talk::{Gone, Talk};
use super::tally::Tally;
use super::walk::{Missing, Root};
use cofferdam_wire::ByteString;
use cofferdam_wire::files::{
    Answer, Entry, EntryKind, Failure, HasRead, MAX_PIECE_BYTES, Read, Why,
};
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, OFlags, Stat, StatxAttributes, StatxFlags};
use rustix::io::Errno;

/// Sends a file or a part of it. The answer goes with the last bytes.
pub(super) fn read(root: &Root, order: &Read, talk: &mut Talk) -> Result<Answer, Trouble> {
    let (file, stat) = open_file(root, &order.path)?;
    let size = u64::try_from(stat.st_size).unwrap_or(0);
    let rest = size.saturating_sub(order.offset);
    let wanted = order.length.map_or(rest, |length| length.min(rest));
    if let Some(max) = order.max_bytes.filter(|max| wanted > *max) {
        let what = format!("there are {wanted} bytes to read, over the limit of {max}");
        return Err(refused(Why::TooLarge, what).into());
    }
    let sha256 = if order.hash { Some(hash(&file, talk)?) } else { None };
    let mut bytes = 0;
    send(&file, order.offset, wanted, &mut bytes, talk)?;
    Ok(Answer::Read(HasRead { sha256, ..has_read(&stat, bytes) }))
}

/// Sends so many bytes from there on, or as many as there are. Counts them also where it fails.
pub(super) fn send(
    file: &OwnedFd,
    offset: u64,
    wanted: u64,
    bytes: &mut u64,
    talk: &mut Talk,
) -> Result<(), Trouble> {
    while *bytes < wanted {
        let most = usize::try_from(wanted - *bytes).unwrap_or(usize::MAX);
        let at = offset.saturating_add(*bytes);
        match talk.piece(most, |place| read_at(file, place, at))? {
            // It became shorter meanwhile.
            0 => break,
            count => *bytes += count as u64,
        }
    }
    Ok(())
}

/// What was read of a file of which no hash was asked.
pub(super) fn has_read(stat: &Stat, bytes: u64) -> HasRead {
    HasRead {
        size: u64::try_from(stat.st_size).unwrap_or(0),
        bytes,
        sha256: None,
        mode: stat.st_mode & 0o7777,
        modified_ms: modified_ms(stat),
    }
}

/// Describes what is there.
pub(super) fn stat(root: &Root, path: &ByteString) -> Result<Answer, Failure> {
    let place = root.place(path, Missing::Refuse)?;
    let entry = match &place.name {
        Some(name) => entry(place.directory(), name, ByteString::default())?,
        None => {
            let stat = rustix::fs::fstat(place.directory());
            described(&stat.map_err(|e| failed(e, "it cannot be looked at"))?)
        }
    };
    Ok(Answer::Entry(entry))
}

/// Opens a regular file to read it, links followed as long as they stay inside.
pub(super) fn open_file(root: &Root, path: &ByteString) -> Result<(OwnedFd, Stat), Failure> {
    let opened = root.walk(path, Missing::Refuse)?.open(OFlags::RDONLY);
    // A socket cannot be opened at all.
    let opened = opened.map_err(|failure| match failure.errno {
        errno if errno == Errno::NXIO.raw_os_error() => no_file(FileType::Socket),
        _ => failure,
    })?;
    let file = opened.ok_or_else(|| no_file(FileType::Directory))?;
    let stat = rustix::fs::fstat(&file).map_err(|e| failed(e, "it cannot be looked at"))?;
    regular(&stat)?;
    root.admit(&file, &stat)?;
    Ok((file, stat))
}

/// The hash of a whole file, as it is read now.
pub(super) fn hash(file: &OwnedFd, talk: &mut Talk) -> Result<String, Trouble> {
    hash_with(file, &mut || talk.still_at_it())
}

/// The same for who gives signs of life in another way, or none.
pub(super) fn hash_with(
    file: &OwnedFd,
    sign: &mut dyn FnMut() -> Result<(), Gone>,
) -> Result<String, Trouble> {
    let mut piece = vec![0; MAX_PIECE_BYTES];
    let mut tally = Tally::new();
    loop {
        match read_at(file, &mut piece, tally.bytes())? {
            0 => return Ok(tally.sha256()),
            count => tally.add(piece.get(..count).unwrap_or_default()),
        }
        if tally.owes_a_sign() {
            sign()?;
        }
    }
}

pub(super) fn read_at(file: &OwnedFd, place: &mut [u8], at: u64) -> Result<usize, Trouble> {
    loop {
        match rustix::io::pread(file, &mut *place, at) {
            Ok(count) => return Ok(count),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(failed(errno, "it cannot be read").into()),
        }
    }
}

/// What a name in a directory stands for.
pub(super) fn entry(
    directory: BorrowedFd<'_>,
    name: &[u8],
    path: ByteString,
) -> Result<Entry, Failure> {
    let stat = look_at(directory, name).map_err(|e| failed(e, "it cannot be looked at"))?;
    let mut entry = described(&stat);
    if entry.kind == EntryKind::Link {
        let target = rustix::fs::readlinkat(directory, name, Vec::new());
        entry.target = target.ok().map(|target| target.into_bytes().into());
    }
    entry.path = path;
    Ok(entry)
}

/// What a name stands for, a link being a link.
pub(super) fn look_at(directory: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<Stat> {
    rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
}

/// Whether a name is a placeholder of ours: a socket that is a mount of its own, which stands for a
/// protected name as long as a sandbox lives. No command can mount one.
pub(super) fn is_placeholder(directory: BorrowedFd<'_>, name: &[u8]) -> bool {
    let told = rustix::fs::statx(directory, name, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::TYPE);
    told.is_ok_and(|told| {
        FileType::from_raw_mode(told.stx_mode.into()) == FileType::Socket
            && told.stx_attributes.contains(StatxAttributes::MOUNT_ROOT)
    })
}

pub(super) fn described(stat: &Stat) -> Entry {
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => EntryKind::File,
        FileType::Directory => EntryKind::Directory,
        FileType::Symlink => EntryKind::Link,
        FileType::Fifo => EntryKind::Fifo,
        FileType::Socket => EntryKind::Socket,
        FileType::CharacterDevice | FileType::BlockDevice | FileType::Unknown => EntryKind::Device,
    };
    Entry {
        path: ByteString::default(),
        kind,
        size: u64::try_from(stat.st_size).unwrap_or(0),
        mode: stat.st_mode & 0o7777,
        modified_ms: modified_ms(stat),
        links: stat.st_nlink,
        target: None,
    }
}

fn modified_ms(stat: &Stat) -> i64 {
    let part = i64::try_from(stat.st_mtime_nsec / 1_000_000).unwrap_or(0);
    stat.st_mtime.saturating_mul(1000).saturating_add(part)
}

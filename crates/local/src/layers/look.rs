//! What stands under a name, by a descriptor that reads nothing.

use crate::kernel_path::through;
use crate::state::retry;
use rustix::buffer::spare_capacity;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{FileType, Mode, OFlags, RawDir, ResolveFlags, Stat};
use rustix::io::Errno;
use std::mem::MaybeUninit;

/// What a listing is read into.
const BUFFER_BYTES: usize = 16 * 1024;
/// No mark of a layer that is looked at is longer.
const MARK_BYTES: usize = 512;
/// The permissions of a file that count.
pub(super) const FILE_MODE: u32 = 0o777;
/// Those of a directory: also that only owners remove what is in it.
pub(super) const DIRECTORY_MODE: u32 = 0o1777;
/// Rights of another user or group.
const SET_ID: u32 = 0o6000;

/// A type of what stands under a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Directory,
    Link,
    Fifo,
    Socket,
    Device,
    /// What is mounted there is not looked at.
    Mounted,
}

/// Which file it is, whatever it is called.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub(super) struct Id {
    pub(super) device: u64,
    pub(super) inode: u64,
}

/// What stands under a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) kind: Kind,
    /// The permissions that count.
    pub(super) mode: u32,
    pub(super) set_id: bool,
    pub(super) size: u64,
    pub(super) id: Id,
    pub(super) links: u64,
    pub(super) device_number: u64,
    pub(super) changed_ns: u64,
    pub(super) modified_ns: u64,
    /// Where a link leads.
    pub(super) target: Vec<u8>,
}

/// Looks at a path below a directory; `None` where nothing is there, or the way leads over a link.
pub(super) fn look(at: impl AsFd, path: &[u8]) -> Result<Option<(Seen, OwnedFd)>, Errno> {
    match open(at.as_fd(), path, OFlags::PATH | OFlags::NOFOLLOW) {
        Ok(file) => Seen::of(&file).map(|seen| Some((seen, file))),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
        Err(Errno::XDEV) => {
            // What it is mounted on stays hidden; the directory itself stands for it.
            let file = open(at.as_fd(), b".", OFlags::PATH)?;
            let mut seen = Seen::of(&file)?;
            seen.kind = Kind::Mounted;
            Ok(Some((seen, file)))
        }
        Err(errno) => Err(errno),
    }
}

/// Opens a directory below another one to list it; the empty path is that one itself. `None` where
/// there is none, or the way leads over a link or out.
pub(super) fn directory(at: impl AsFd, path: &[u8]) -> Result<Option<OwnedFd>, Errno> {
    let path = if path.is_empty() { b"." } else { path };
    match open(at.as_fd(), path, OFlags::RDONLY | OFlags::DIRECTORY) {
        Ok(directory) => Ok(Some(directory)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// Opens below a directory, over no link and no mount.
pub(super) fn open(at: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    let rules = ResolveFlags::BENEATH
        | ResolveFlags::NO_SYMLINKS
        | ResolveFlags::NO_MAGICLINKS
        | ResolveFlags::NO_XDEV;
    retry(|| rustix::fs::openat2(at, path, flags | OFlags::CLOEXEC, Mode::empty(), rules))
}

/// The names in a directory, sorted. One of more than this many entries is an error.
pub(super) fn names(directory: &OwnedFd, most: usize) -> Result<Vec<Vec<u8>>, Errno> {
    let mut names = some_names(directory, most + 1)?;
    if names.len() > most {
        return Err(Errno::OVERFLOW);
    }
    names.sort();
    Ok(names)
}

/// At most so many names of a directory, in no order.
pub(super) fn some_names(directory: &OwnedFd, most: usize) -> Result<Vec<Vec<u8>>, Errno> {
    let mut buffer = [MaybeUninit::uninit(); BUFFER_BYTES];
    // A descriptor of its own, because the position of a listing is shared with every copy.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    // Looking leaves no trace where that is allowed.
    let listing = match open(directory.as_fd(), b".", flags | OFlags::NOATIME) {
        Err(Errno::PERM) => open(directory.as_fd(), b".", flags)?,
        other => other?,
    };
    let mut entries = RawDir::new(listing, &mut buffer);
    let mut names = Vec::new();
    while let Some(entry) = entries.next() {
        let name = entry?.file_name().to_bytes().to_vec();
        if matches!(name.as_slice(), b"." | b"..") {
            continue;
        }
        if names.len() >= most {
            break;
        }
        names.push(name);
    }
    Ok(names)
}

/// A mark that a layer has on a file; `None` where there is none, or nobody may ask.
pub(super) fn mark(file: &OwnedFd, name: &str) -> Result<Option<Vec<u8>>, Errno> {
    let mut value = Vec::with_capacity(MARK_BYTES);
    match rustix::fs::getxattr(through(file), name, spare_capacity(&mut value)) {
        Ok(_) => Ok(Some(value)),
        // Longer than any that is compared.
        Err(Errno::RANGE) => Ok(Some(Vec::new())),
        Err(Errno::NODATA | Errno::NOTSUP | Errno::PERM | Errno::ACCESS) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// The time of change, in nanoseconds since 1970.
pub(crate) fn changed_ns(stat: &Stat) -> u64 {
    nanoseconds(stat.st_ctime, stat.st_ctime_nsec)
}

impl Seen {
    pub(super) fn of(file: &OwnedFd) -> Result<Self, Errno> {
        let stat = rustix::fs::fstat(file)?;
        let kind = kind(&stat);
        let target = match kind {
            Kind::Link => rustix::fs::readlinkat(file, c"", Vec::new())?.into_bytes(),
            Kind::File
            | Kind::Directory
            | Kind::Fifo
            | Kind::Socket
            | Kind::Device
            | Kind::Mounted => Vec::new(),
        };
        let counts = if kind == Kind::Directory { DIRECTORY_MODE } else { FILE_MODE };
        // The width of the count differs between architectures.
        #[expect(clippy::useless_conversion, reason = "it is 32 bits wide elsewhere")]
        let links = u64::from(stat.st_nlink);
        Ok(Self {
            kind,
            mode: if kind == Kind::Link { 0o777 } else { stat.st_mode & counts },
            set_id: kind == Kind::File && stat.st_mode & SET_ID != 0,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            id: Id { device: stat.st_dev, inode: stat.st_ino },
            links,
            device_number: stat.st_rdev,
            changed_ns: changed_ns(&stat),
            modified_ns: nanoseconds(stat.st_mtime, stat.st_mtime_nsec),
            target,
        })
    }
}

fn kind(stat: &Stat) -> Kind {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Kind::File,
        FileType::Directory => Kind::Directory,
        FileType::Symlink => Kind::Link,
        FileType::Fifo => Kind::Fifo,
        FileType::Socket => Kind::Socket,
        FileType::CharacterDevice | FileType::BlockDevice | FileType::Unknown => Kind::Device,
    }
}

fn nanoseconds(seconds: i64, rest: impl TryInto<u64>) -> u64 {
    let whole = u64::try_from(seconds).unwrap_or(0).saturating_mul(1_000_000_000);
    whole.saturating_add(rest.try_into().unwrap_or(0))
}

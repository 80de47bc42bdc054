//! An exact copy of a layer.
//!
//! HOSTILE: names, links, modes, sizes and depth come from inside. Nothing is followed, every name is
//! used beneath a directory that is held open, and what a copy may cost has bounds. Nobody changes the
//! layer meanwhile: whoever could is frozen or gone.

use super::widened::{Widened, put_back};
use crate::home;
use cofferdam_core::{Error, ErrorKind, Result};
use rustix::fs::{
    AtFlags, Dir, FileType, Gid, Mode, OFlags, SeekFrom, Stat, Timespec, Timestamps, Uid,
    XattrFlags, chmodat, chownat, fchmod, fchown, fgetxattr, flistxattr, fsetxattr, fstat,
    ftruncate, futimens, ioctl_ficlone, linkat, mkdirat, mknodat, openat, readlinkat, seek, statat,
    symlinkat, utimensat,
};
use rustix::io::{Errno, pread, pwrite};
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

/// What a copy may cost.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// Files and directories.
    pub(super) files: u64,
    /// Bytes of content.
    pub(super) bytes: u64,
    /// Directories within directories. Each holds two descriptors.
    pub(super) depth: u32,
}

/// The bounds of every copy.
pub(super) const BOUNDS: Bounds = Bounds { files: 1_000_000, bytes: 16 << 30, depth: 200 };

/// Where files of several names stand while a copy is made.
const LINKS: &str = ".links";
/// How much is copied at once.
const PIECE_BYTES: usize = 1 << 20;
/// What leads the names of attributes that something inside can give: its own, what the kernel notes of
/// the layer's files, and lists of who may do what.
const ATTRIBUTES: [&[u8]; 2] = [b"user.", b"system.posix_acl_"];
/// The most bytes of an attribute, and of all names of attributes: what the kernel allows.
const ATTRIBUTE_BYTES: usize = 64 << 10;

/// What was copied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Copied {
    /// Files and directories.
    pub(super) files: u64,
    /// Bytes of content, holes left out.
    pub(super) bytes: u64,
}

/// Copies the directory `name` with all that is in it into another place: content with its holes,
/// owners, permissions, times, attributes, and names of one file as such.
pub(super) fn copy(from: &Path, to: &Path, name: &str, bounds: Bounds) -> Result<Copied> {
    let (source, target) = (directory(from)?, directory(to)?);
    let c_name = CString::new(name)
        .map_err(|e| Error::new(ErrorKind::Usage, "a name with a NUL").source(e))?;
    home::make(to, LINKS)?;
    let links = directory(&to.join(LINKS))?;
    let mut copying = Copying {
        bounds,
        copied: Copied::default(),
        links,
        piece: vec![0; PIECE_BYTES],
        widened: Widened::new(from)?,
    };
    let done = copying.directory((source.as_fd(), &c_name), (target.as_fd(), &c_name), 0);
    // ORDER: also where it failed, before anybody hears of that.
    put_back(from)?;
    done?;
    home::remove(to, LINKS)?;
    Ok(copying.copied)
}

struct Copying {
    bounds: Bounds,
    copied: Copied,
    links: OwnedFd,
    piece: Vec<u8>,
    widened: Widened,
}

/// A name in a directory.
type Named<'a> = (BorrowedFd<'a>, &'a CStr);

impl Copying {
    fn directory(&mut self, from: Named<'_>, to: Named<'_>, depth: u32) -> Result<()> {
        if depth > self.bounds.depth {
            let most = self.bounds.depth;
            return Err(too_large(&format!("more than {most} directories within directories")));
        }
        self.count(1, 0)?;
        let stat = look(from)?;
        let source = self.open(from, &stat)?;
        let above = self.widened.enter(from.1);
        mkdirat(to.0, to.1, Mode::RWXU).map_err(|e| failed("make", to.1, e))?;
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
        let target =
            openat(to.0, to.1, flags, Mode::empty()).map_err(|e| failed("open", to.1, e))?;
        for name in names(source.as_fd(), from.1)? {
            self.entry((source.as_fd(), &name), (target.as_fd(), &name), depth)?;
        }
        self.widened.leave(above);
        attributes(source.as_fd(), target.as_fd(), from.1)?;
        settle(target.as_fd(), &stat, from.1)
    }

    fn entry(&mut self, from: Named<'_>, to: Named<'_>, depth: u32) -> Result<()> {
        let stat = look(from)?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        if kind == FileType::Directory {
            return self.directory(from, to, depth + 1);
        }
        self.count(1, 0)?;
        if stat.st_nlink < 2 {
            return self.plain(from, to, &stat);
        }
        let known = CString::new(format!("{}-{}", stat.st_dev, stat.st_ino)).unwrap_or_default();
        let first = self
            .links
            .try_clone()
            .map_err(|e| Error::new(ErrorKind::Io, "copy a file of several names").source(e))?;
        match statat(&first, &*known, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => {}
            Err(Errno::NOENT) => self.plain(from, (first.as_fd(), &known), &stat)?,
            Err(e) => return Err(failed("look for", &known, e)),
        }
        linkat(&first, &*known, to.0, to.1, AtFlags::empty()).map_err(|e| failed("link", to.1, e))
    }

    /// A file of any kind but a directory.
    fn plain(&mut self, from: Named<'_>, to: Named<'_>, stat: &Stat) -> Result<()> {
        let made = |what: rustix::io::Result<()>| what.map_err(|e| failed("make", to.1, e));
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => return self.content(from, to, stat),
            FileType::Symlink => {
                let target = readlinkat(from.0, from.1, Vec::new());
                let target = target.map_err(|e| failed("read the link", from.1, e))?;
                made(symlinkat(&*target, to.0, to.1))?;
            }
            // The mark of what was removed, and what nobody has open outside.
            kind @ (FileType::CharacterDevice | FileType::Fifo | FileType::Socket) => {
                let is_mark = kind == FileType::CharacterDevice;
                if is_mark && stat.st_rdev != 0 {
                    return Err(failed("copy the device", from.1, Errno::INVAL));
                }
                made(mknodat(to.0, to.1, kind, Mode::from_raw_mode(stat.st_mode), 0))?;
                chmodat(to.0, to.1, Mode::from_raw_mode(stat.st_mode & 0o7777), AtFlags::empty())
                    .map_err(|e| failed("change the mode of", to.1, e))?;
            }
            FileType::BlockDevice | FileType::Directory | FileType::Unknown => {
                return Err(failed("copy", from.1, Errno::INVAL));
            }
        }
        if rustix::process::geteuid().is_root() {
            let (user, group) = owner(stat);
            chownat(to.0, to.1, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW)
                .map_err(|e| failed("give away", to.1, e))?;
        }
        utimensat(to.0, to.1, &times(stat), AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|e| failed("date", to.1, e))
    }

    fn content(&mut self, from: Named<'_>, to: Named<'_>, stat: &Stat) -> Result<()> {
        let source = self.open(from, stat)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let target = openat(to.0, to.1, flags, Mode::RUSR | Mode::WUSR)
            .map_err(|e| failed("make", to.1, e))?;
        if ioctl_ficlone(&target, &source).is_err() {
            let size = u64::try_from(stat.st_size).unwrap_or(0);
            ftruncate(&target, size).map_err(|e| failed("make room for", to.1, e))?;
            self.extents(source.as_fd(), target.as_fd(), from.1)?;
        }
        attributes(source.as_fd(), target.as_fd(), from.1)?;
        settle(target.as_fd(), stat, from.1)
    }

    /// What is in a file beside its holes.
    fn extents(
        &mut self,
        source: BorrowedFd<'_>,
        target: BorrowedFd<'_>,
        name: &CStr,
    ) -> Result<()> {
        let read = |e| failed("read", name, e);
        let mut at = 0;
        loop {
            let begin = match seek(source, SeekFrom::Data(at)) {
                Ok(begin) => begin,
                Err(Errno::NXIO) => return Ok(()),
                Err(e) => return Err(read(e)),
            };
            let end = seek(source, SeekFrom::Hole(begin)).map_err(read)?;
            self.count(0, end.saturating_sub(begin))?;
            at = begin;
            while at < end {
                let most = usize::try_from(end - at).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
                let piece = self.piece.get_mut(..most).unwrap_or_default();
                let count = pread(source, &mut *piece, at).map_err(read)?;
                if count == 0 {
                    return Ok(());
                }
                let mut rest = piece.get(..count).unwrap_or_default();
                while !rest.is_empty() {
                    let wrote = pwrite(target, rest, at).map_err(|e| failed("write", name, e))?;
                    rest = rest.get(wrote..).unwrap_or_default();
                    at += wrote as u64;
                }
            }
        }
    }

    /// Opens something of the layer to read it, whatever its permissions.
    fn open(&mut self, (above, name): Named<'_>, stat: &Stat) -> Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(stat.st_mode & 0o7777);
        let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        // What is in a directory is found only by who may search it.
        let needed = if is_directory { Mode::RUSR | Mode::XUSR } else { Mode::RUSR };
        if !mode.contains(needed) && !rustix::process::geteuid().is_root() {
            // ORDER: written down before it is done.
            self.widened.note(name, mode)?;
            chmodat(above, name, mode | needed, AtFlags::empty())
                .map_err(|e| failed("open up", name, e))?;
        }
        let file =
            openat(above, name, flags, Mode::empty()).map_err(|e| failed("open", name, e))?;
        let now = fstat(&file).map_err(|e| failed("look at", name, e))?;
        match (now.st_dev, now.st_ino) == (stat.st_dev, stat.st_ino) {
            true => Ok(file),
            false => Err(failed("open", name, Errno::STALE)),
        }
    }

    fn count(&mut self, files: u64, bytes: u64) -> Result<()> {
        self.copied.files += files;
        self.copied.bytes = self.copied.bytes.saturating_add(bytes);
        if self.copied.files > self.bounds.files {
            return Err(too_large(&format!("more than {} files", self.bounds.files)));
        }
        if self.copied.bytes > self.bounds.bytes {
            return Err(too_large(&format!("more than {} bytes", self.bounds.bytes)));
        }
        Ok(())
    }
}

fn directory(path: &Path) -> Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
    rustix::fs::open(path, flags, Mode::empty()).map_err(|e| {
        Error::new(ErrorKind::Io, format!("open {}", path.display()))
            .source(std::io::Error::from(e))
    })
}

fn look((above, name): Named<'_>) -> Result<Stat> {
    statat(above, name, AtFlags::SYMLINK_NOFOLLOW).map_err(|e| failed("look at", name, e))
}

fn names(directory: BorrowedFd<'_>, name: &CStr) -> Result<Vec<CString>> {
    let bad = |e| failed("list", name, e);
    let mut found = Vec::new();
    for entry in Dir::read_from(directory).map_err(bad)? {
        let entry = entry.map_err(bad)?;
        if entry.file_name() != c"." && entry.file_name() != c".." {
            found.push(entry.file_name().to_owned());
        }
    }
    Ok(found)
}

/// Copies attributes.
fn attributes(source: BorrowedFd<'_>, target: BorrowedFd<'_>, name: &CStr) -> Result<()> {
    let bad = |e| failed("copy the attributes of", name, e);
    let mut list = vec![0; ATTRIBUTE_BYTES];
    let count = match flistxattr(source, &mut list[..]) {
        Ok(count) => count,
        Err(Errno::OPNOTSUPP) => return Ok(()),
        Err(e) => return Err(bad(e)),
    };
    let listed = list.get(..count).unwrap_or_default();
    let is_ours = |key: &&[u8]| ATTRIBUTES.iter().any(|lead| key.starts_with(lead));
    for key in listed.split(|byte| *byte == 0).filter(is_ours) {
        let mut value = vec![0; ATTRIBUTE_BYTES];
        let count = fgetxattr(source, key, &mut value[..]).map_err(bad)?;
        let value = value.get(..count).unwrap_or_default();
        fsetxattr(target, key, value, XattrFlags::empty()).map_err(bad)?;
    }
    Ok(())
}

/// Owner, permissions and times, in the order in which one does not undo the other.
fn settle(target: BorrowedFd<'_>, stat: &Stat, name: &CStr) -> Result<()> {
    let bad = |e| failed("settle", name, e);
    if rustix::process::geteuid().is_root() {
        let (user, group) = owner(stat);
        fchown(target, Some(user), Some(group)).map_err(bad)?;
    }
    fchmod(target, Mode::from_raw_mode(stat.st_mode & 0o7777)).map_err(bad)?;
    futimens(target, &times(stat)).map_err(bad)
}

fn owner(stat: &Stat) -> (Uid, Gid) {
    (Uid::from_raw(stat.st_uid), Gid::from_raw(stat.st_gid))
}

fn times(stat: &Stat) -> Timestamps {
    let time = |seconds, rest: u64| Timespec {
        tv_sec: seconds,
        tv_nsec: i64::try_from(rest).unwrap_or(0),
    };
    Timestamps {
        last_access: time(stat.st_atime, stat.st_atime_nsec),
        last_modification: time(stat.st_mtime, stat.st_mtime_nsec),
    }
}

fn too_large(what: &str) -> Error {
    Error::new(ErrorKind::TooLarge, format!("the layer holds {what}"))
        .hint("Remove what the session does not need, or carry over what it made.")
}

fn failed(what: &str, name: &CStr, error: Errno) -> Error {
    Error::new(ErrorKind::Io, format!("{what} {:?} of the layer", name.to_string_lossy()))
        .source(std::io::Error::from(error))
}

#[cfg(test)]
#[path = "copy_tests.rs"]
mod tests;

//! What is no directory, copied; and owner, permissions and times of everything.

use super::{Copying, failed};
use crate::layers::content::{copy_bytes, reopened};
use crate::layers::look::{Kind, Seen, changed_ns};
use cofferdam_core::Result;
use rustix::fd::OwnedFd;
use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, Stat, Timespec, Timestamps, Uid, XattrFlags,
};
use rustix::io::Errno;

/// How often a file is copied that changes meanwhile.
const TRIES: u32 = 4;
/// Rights of another user or group. A copy gives none.
const SET_ID: u32 = 0o6000;
/// The same of a directory, whose group is given on to what is made in it.
const SET_UID: u32 = 0o4000;
/// What leads the names of attributes that are copied: a program's own, and lists of who may do what.
const ATTRIBUTES: [&[u8]; 2] = [b"user.", b"system.posix_acl_"];
/// The most bytes of an attribute, and of all names of attributes: what the kernel allows.
const ATTRIBUTE_BYTES: usize = 64 << 10;
/// How many bytes the kernel counts a block for.
const BLOCK_BYTES: u64 = 512;

/// Attributes by name.
pub(super) type Attributes = Vec<(Vec<u8>, Vec<u8>)>;

impl Copying<'_> {
    pub(super) fn file(
        &mut self,
        path: Vec<u8>,
        (seen, file): (&Seen, &OwnedFd),
        (target, name): (&OwnedFd, &[u8]),
    ) -> Result<()> {
        let id = (seen.id.device, seen.id.inode);
        if let Some(first) = self.linked.get(&id).filter(|_| seen.links > 1) {
            let flags = AtFlags::empty();
            rustix::fs::linkat(self.job.into, first.as_slice(), target, name, flags)
                .map_err(|errno| failed("copy", &path, errno))?;
            self.others.push((path, seen.changed_ns));
            return Ok(());
        }
        let source = match reopened(file) {
            Ok(source) => source,
            Err(Errno::ACCESS) => return self.left_out(path, "it cannot be read by you"),
            Err(errno) => return Err(failed("open", &path, errno)),
        };
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let made = rustix::fs::openat(target, name, flags | OFlags::CLOEXEC, Mode::RWXU);
        let made = made.map_err(|errno| failed("make a copy of", &path, errno))?;
        let before = self.content(&path, &source, &made)?;
        attributes(&source)
            .and_then(|kept| settle(&made, &before, &kept))
            .map_err(|errno| failed("settle the copy of", &path, errno))?;
        if seen.links > 1 {
            self.linked.insert(id, self.place(&path));
        }
        self.others.push((path, changed_ns(&before)));
        Ok(())
    }

    /// Copies the content until it is of one moment, and says what the file was then.
    fn content(&mut self, path: &[u8], source: &OwnedFd, to: &OwnedFd) -> Result<Stat> {
        let look = || rustix::fs::fstat(source).map_err(|errno| failed("look at", path, errno));
        let mut before = look()?;
        for _ in 0..TRIES {
            self.bytes(path, (source, &before), to)?;
            let after = look()?;
            if is_same(&before, &after) {
                return Ok(before);
            }
            before = after;
            rustix::fs::ftruncate(to, 0).map_err(|errno| failed("copy", path, errno))?;
        }
        self.bytes(path, (source, &before), to)?;
        if !is_same(&before, &look()?) {
            let why = "it was written all the time, so its copy may be of no one moment";
            self.copied.left_out.add(path, why);
        }
        Ok(before)
    }

    fn bytes(
        &mut self,
        path: &[u8],
        (source, stat): (&OwnedFd, &Stat),
        to: &OwnedFd,
    ) -> Result<()> {
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        if size == 0 {
            return Ok(());
        }
        if self.can_clone {
            match rustix::fs::ioctl_ficlone(to, source) {
                Ok(()) => {
                    self.cloned += 1;
                    return Ok(());
                }
                Err(_) => self.can_clone = self.cloned > 0,
            }
        }
        self.plain += 1;
        let held = u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(BLOCK_BYTES);
        // ORDER: before the disk is full.
        self.bounds.count(&mut self.copied, 0, size.min(held))?;
        copy_bytes(source, size, to, |_| ()).map_err(|errno| failed("copy", path, errno))
    }

    /// A link, a pipe, or a socket that nobody listens at.
    pub(super) fn special(
        &self,
        (seen, file): (&Seen, &OwnedFd),
        (target, name): (&OwnedFd, &[u8]),
    ) -> Result<(), Errno> {
        let stat = rustix::fs::fstat(file)?;
        let mode = Mode::from_raw_mode(stat.st_mode & 0o777);
        let made = |kind| rustix::fs::mknodat(target, name, kind, Mode::RUSR | Mode::WUSR, 0);
        match seen.kind {
            Kind::Fifo => made(FileType::Fifo)?,
            Kind::Socket => made(FileType::Socket)?,
            Kind::Link => rustix::fs::symlinkat(seen.target.as_slice(), target, name)?,
            Kind::File | Kind::Directory | Kind::Device | Kind::Mounted => {
                return Err(Errno::INVAL);
            }
        }
        let is_root = rustix::process::geteuid().is_root();
        let (uid, gid) = (Uid::from_raw(stat.st_uid), Gid::from_raw(stat.st_gid));
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        match rustix::fs::chownat(target, name, is_root.then_some(uid), Some(gid), flags) {
            Err(Errno::PERM | Errno::INVAL) if !is_root => {}
            other => other?,
        }
        if seen.kind != Kind::Link {
            rustix::fs::chmodat(target, name, mode, AtFlags::empty())?;
        }
        rustix::fs::utimensat(target, name, &times(&stat), flags)
    }
}

/// Owner, attributes, permissions and times, in the order in which one does not undo the other.
///
/// For an ordinary user what is made is theirs, and of another group where they are in it.
pub(super) fn settle(made: &OwnedFd, stat: &Stat, kept: &Attributes) -> Result<(), Errno> {
    let is_root = rustix::process::geteuid().is_root();
    let (uid, gid) = (Uid::from_raw(stat.st_uid), Gid::from_raw(stat.st_gid));
    match rustix::fs::fchown(made, is_root.then_some(uid), Some(gid)) {
        Err(Errno::PERM | Errno::INVAL) if !is_root => {}
        other => other?,
    }
    for (name, value) in kept {
        match rustix::fs::fsetxattr(made, name.as_slice(), value, XattrFlags::empty()) {
            // The disk of the copy may know none.
            Err(Errno::OPNOTSUPP) => {}
            other => other?,
        }
    }
    let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
    let without = if is_directory { SET_UID } else { SET_ID };
    rustix::fs::fchmod(made, Mode::from_raw_mode(stat.st_mode & 0o7777 & !without))?;
    rustix::fs::futimens(made, &times(stat))
}

/// The attributes of a file that are copied.
pub(super) fn attributes(file: &OwnedFd) -> Result<Attributes, Errno> {
    let mut few = [0; 256];
    let listed = match rustix::fs::flistxattr(file, &mut few[..]) {
        Ok(count) => few.get(..count).unwrap_or_default().to_vec(),
        Err(Errno::OPNOTSUPP) => return Ok(Vec::new()),
        Err(Errno::RANGE) => {
            let mut many = vec![0; ATTRIBUTE_BYTES];
            let count = rustix::fs::flistxattr(file, &mut many[..])?;
            many.truncate(count);
            many
        }
        Err(errno) => return Err(errno),
    };
    let is_copied = |name: &&[u8]| ATTRIBUTES.iter().any(|lead| name.starts_with(lead));
    let mut kept = Vec::new();
    for name in listed.split(|byte| *byte == 0).filter(is_copied) {
        let mut value = vec![0; ATTRIBUTE_BYTES];
        match rustix::fs::fgetxattr(file, name, &mut value[..]) {
            Ok(count) => value.truncate(count),
            // It has just gone.
            Err(Errno::NODATA) => continue,
            Err(errno) => return Err(errno),
        }
        kept.push((name.to_vec(), value));
    }
    Ok(kept)
}

fn is_same(before: &Stat, after: &Stat) -> bool {
    let of = |stat: &Stat| (stat.st_size, stat.st_mtime, stat.st_mtime_nsec);
    of(before) == of(after) && changed_ns(before) == changed_ns(after)
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

//! Names of a layer that do not show through: a layer over it that says they are not there.
//!
//! What is passed over is a socket that another sandbox holds a name with. It is looked at once more: what is
//! not a socket by now shows through. Neither does a name go that has a directory on the way which cannot be
//! made as it is, for that one would be seen in its place.

use super::mounts::new_tmpfs;
use super::{CallFailed, During};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, ResolveFlags, Stat, Timespec, Timestamps, Uid,
};
use rustix::io::Errno;

/// What a name costs at most.
const NAME_BYTES: u64 = 4 << 10;

/// A layer that hides these paths of another one; `None` where there is nothing to hide.
pub(super) fn over(
    lower: BorrowedFd<'_>,
    without: &[String],
) -> Result<Option<OwnedFd>, CallFailed> {
    if without.is_empty() {
        return Ok(None);
    }
    let entries = without.iter().map(|path| path.split('/').count() as u64).sum::<u64>() + 1;
    let veil = new_tmpfs(entries * NAME_BYTES, entries, 0o755)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root =
        rustix::fs::openat(&veil, ".", flags, Mode::empty()).during(|| "open(veil)".to_owned())?;
    for path in without {
        // What cannot be hidden shows through, as it does where the other sandbox comes later.
        let _ = hide(lower, &root, path);
    }
    // ORDER: the deepest first, and after all names: each name in a directory changes its times.
    let mut ways: Vec<&str> = without.iter().flat_map(|path| above(path)).collect();
    ways.sort_by_key(|way| std::cmp::Reverse(way.len()));
    for way in ways {
        let _ = set_times(lower, &root, way);
    }
    Ok(Some(veil))
}

fn hide(lower: BorrowedFd<'_>, veil: &OwnedFd, path: &str) -> Result<(), Errno> {
    let found = FileType::from_raw_mode(look(lower, path)?.st_mode);
    if found != FileType::Socket {
        return Ok(());
    }
    for way in above(path) {
        directory(&look(lower, way)?, veil, way)?;
    }
    let (parent, name) = place(veil, path)?;
    match rustix::fs::mknodat(parent, name, FileType::CharacterDevice, Mode::empty(), 0) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// A directory that is as the one below is, whose place it takes.
fn directory(as_is: &Stat, veil: &OwnedFd, path: &str) -> Result<(), Errno> {
    let (parent, name) = place(veil, path)?;
    match rustix::fs::mkdirat(&parent, name, Mode::RWXU) {
        Ok(()) => {}
        Err(Errno::EXIST) => return Ok(()),
        Err(errno) => return Err(errno),
    }
    let (uid, gid) = (Uid::from_raw(as_is.st_uid), Gid::from_raw(as_is.st_gid));
    let made = rustix::fs::chownat(&parent, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)
        .and_then(|()| {
            let mode = Mode::from_raw_mode(as_is.st_mode);
            rustix::fs::chmodat(&parent, name, mode, AtFlags::empty())
        });
    if made.is_err() {
        rustix::fs::unlinkat(&parent, name, AtFlags::REMOVEDIR)?;
    }
    made
}

fn set_times(lower: BorrowedFd<'_>, veil: &OwnedFd, path: &str) -> Result<(), Errno> {
    let stat = look(lower, path)?;
    let times = Timestamps {
        last_access: time(stat.st_atime, stat.st_atime_nsec),
        last_modification: time(stat.st_mtime, stat.st_mtime_nsec),
    };
    let (parent, name) = place(veil, path)?;
    rustix::fs::utimensat(parent, name, &times, AtFlags::SYMLINK_NOFOLLOW)
}

fn time(seconds: i64, rest: impl TryInto<i64>) -> Timespec {
    Timespec { tv_sec: seconds, tv_nsec: rest.try_into().unwrap_or(0) }
}

/// What has this path, over no link.
fn look(at: BorrowedFd<'_>, path: &str) -> Result<Stat, Errno> {
    let file = open(at, path, OFlags::PATH | OFlags::NOFOLLOW)?;
    rustix::fs::fstat(file)
}

/// The directory that a path's last name is in, and that name.
fn place<'p>(veil: &OwnedFd, path: &'p str) -> Result<(OwnedFd, &'p str), Errno> {
    let (parent, name) = path.rsplit_once('/').unwrap_or((".", path));
    Ok((open(veil.as_fd(), parent, OFlags::PATH | OFlags::DIRECTORY)?, name))
}

/// HOSTILE: another sandbox writes what is below.
fn open(at: BorrowedFd<'_>, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    let rules = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    rustix::fs::openat2(at, path, flags | OFlags::CLOEXEC, Mode::empty(), rules)
}

/// The directories on the way to a path, outermost first.
fn above(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').filter_map(|(end, _)| path.get(..end))
}

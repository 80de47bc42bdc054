//! Directories of a layer, reached by descriptors from its root and never through a link.

use super::at_path;
use cofferdam_core::Result;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, XattrFlags};
use rustix::io::Errno;

const NO_LINKS: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);

/// What the kernel's overlay takes for "nothing of lower layers shows here".
const OPAQUE: &str = "user.overlay.opaque";

/// What a directory gets of which a layer has no entry.
const PARENT_MODE: Mode = Mode::from_raw_mode(0o755);

/// The root of a layer.
pub(super) struct Beneath {
    root: OwnedFd,
    /// The directory of the last entry: entries come sorted.
    last: Option<(Vec<u8>, OwnedFd)>,
}

/// A directory of a layer.
pub(super) struct Directory<'a>(BorrowedFd<'a>);

impl Beneath {
    pub(super) fn new(root: OwnedFd) -> Self {
        Self { root, last: None }
    }

    /// The directory below these names, made where it is not there.
    pub(super) fn directory(&mut self, names: &[&[u8]]) -> Result<Directory<'_>> {
        if names.is_empty() {
            return Ok(Directory(self.root.as_fd()));
        }
        let path = names.join(&b'/');
        if self.last.as_ref().is_none_or(|(known, _)| *known != path) {
            let opened = match self.open_path(&path) {
                Err(Errno::NOENT | Errno::NOTDIR) => self.make_all(names),
                other => other,
            };
            let opened = opened.map_err(|errno| at_path(&path, errno))?;
            self.last = Some((path, opened));
        }
        let known = self.last.as_ref().map_or(&self.root, |(_, known)| known);
        Ok(Directory(known.as_fd()))
    }

    /// The same where it must be there.
    pub(super) fn existing(&self, names: &[&[u8]]) -> rustix::io::Result<OwnedFd> {
        match names {
            [] => rustix::io::fcntl_dupfd_cloexec(&self.root, 3),
            names => self.open_path(&names.join(&b'/')),
        }
    }

    /// Opens a directory to change its mode.
    pub(super) fn open(&self, path: &[u8]) -> rustix::io::Result<OwnedFd> {
        let path = if path.is_empty() { b"." } else { path };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::openat2(&self.root, path, flags, Mode::empty(), NO_LINKS)
    }

    /// A directory was removed.
    pub(super) fn forget(&mut self) {
        self.last = None;
    }

    fn open_path(&self, path: &[u8]) -> rustix::io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::openat2(&self.root, path, flags, Mode::empty(), NO_LINKS)
    }

    fn make_all(&self, names: &[&[u8]]) -> rustix::io::Result<OwnedFd> {
        let mut at = rustix::io::fcntl_dupfd_cloexec(&self.root, 3)?;
        for name in names {
            Directory(at.as_fd()).make_parent(name)?;
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            at = rustix::fs::openat(&at, *name, flags, Mode::empty())?;
        }
        Ok(at)
    }
}

impl Directory<'_> {
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.0
    }

    /// Makes a directory of this name, if none is there. Where the layer removed what lower layers
    /// have there, none of that shows through. Anything else that stands there is an error.
    pub(super) fn make_directory(&self, name: &[u8]) -> rustix::io::Result<()> {
        // Everything can be done in it until it gets its mode.
        match rustix::fs::mkdirat(self.0, name, Mode::RWXU) {
            Err(Errno::EXIST) => {}
            other => return other,
        }
        match self.kind(name)? {
            Some(FileType::Directory) => Ok(()),
            // No other device is ever made here.
            Some(FileType::CharacterDevice) => {
                rustix::fs::unlinkat(self.0, name, AtFlags::empty())?;
                rustix::fs::mkdirat(self.0, name, Mode::RWXU)?;
                self.below(name)?.make_opaque()
            }
            Some(_) | None => Err(Errno::NOTDIR),
        }
    }

    /// The same for a directory that no entry tells of so far. Whoever comes through it must get on to what
    /// lower layers have there: it has the mode that other programs give it, whatever the caller's mask.
    fn make_parent(&self, name: &[u8]) -> rustix::io::Result<()> {
        let was_there = self.kind(name)? == Some(FileType::Directory);
        self.make_directory(name)?;
        match was_there {
            true => Ok(()),
            false => rustix::fs::chmodat(self.0, name, PARENT_MODE, AtFlags::empty()),
        }
    }

    /// The same, but what is no directory gives way.
    pub(super) fn replace_by_directory(&self, name: &[u8]) -> rustix::io::Result<()> {
        match self.make_directory(name) {
            Err(Errno::NOTDIR) => {
                rustix::fs::unlinkat(self.0, name, AtFlags::empty())?;
                self.make_directory(name)
            }
            other => other,
        }
    }

    /// Removes what has this name. Whether it was a directory.
    pub(super) fn clear(&self, name: &[u8]) -> rustix::io::Result<bool> {
        match self.kind(name)? {
            None => Ok(false),
            Some(FileType::Directory) => {
                rustix::fs::unlinkat(self.0, name, AtFlags::REMOVEDIR).map(|()| true)
            }
            Some(_) => rustix::fs::unlinkat(self.0, name, AtFlags::empty()).map(|()| false),
        }
    }

    /// Hides what lower layers have under this name. What this layer itself has there stays.
    pub(super) fn white_out(&self, name: &[u8]) -> rustix::io::Result<()> {
        match self.kind(name)? {
            None => {
                let mode = Mode::empty();
                rustix::fs::mknodat(self.0, name, FileType::CharacterDevice, mode, 0)
            }
            Some(FileType::Directory) => self.below(name)?.make_opaque(),
            Some(_) => Ok(()),
        }
    }

    pub(super) fn make_opaque(&self) -> rustix::io::Result<()> {
        // An attribute is not written through a descriptor that only names.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::openat(self.0, ".", flags, Mode::empty())?;
        rustix::fs::fsetxattr(directory, OPAQUE, b"y", XattrFlags::empty())
    }

    fn below(&self, name: &[u8]) -> rustix::io::Result<Opened> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(self.0, name, flags, Mode::empty()).map(Opened)
    }

    fn kind(&self, name: &[u8]) -> rustix::io::Result<Option<FileType>> {
        match rustix::fs::statat(self.0, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(FileType::from_raw_mode(stat.st_mode))),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno),
        }
    }
}

/// A directory of its own descriptor.
struct Opened(OwnedFd);

impl Opened {
    fn make_opaque(&self) -> rustix::io::Result<()> {
        Directory(self.0.as_fd()).make_opaque()
    }
}

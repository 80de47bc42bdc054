//! Files of the host that a manifest names, opened without following what is put in their way.
//!
//! HOSTILE: what is copied may be the workspace of another sandbox, in which commands swap names. So a
//! directory that a person named is opened once, and everything in it is reached from there by one name
//! after the other, none of which may be a link. The way to it passes no link that a command may have made,
//! see [`cofferdam_core::way`]: a manifest often lies in a project that sandboxes work in.

use cofferdam_core::files::Content;
use cofferdam_core::way::{PassedLink, doubted_link, planted};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, openat, statat};
use rustix::io::{Errno, Result};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A directory or file that a person named.
#[derive(Debug, Clone)]
pub(super) struct Named(Arc<OwnedFd>);

/// A regular file of the host, as it was looked at.
#[derive(Debug, Clone)]
pub(super) struct HostFile {
    top: Named,
    /// The names from there, parted by slashes; none for the file that a person named.
    way: Vec<u8>,
    pub(super) bytes: u64,
}

impl Named {
    /// Opens what only this program wrote to, unless it is a link itself. Nothing is read, and no pipe waited for.
    pub(super) fn open(path: &Path) -> Result<Self> {
        open_as(path, Last::AsItIs).map(|opened| Self(Arc::new(opened)))
    }

    /// The same of what a person named. `what` says what it was named as.
    pub(super) fn open_named(path: &Path, what: &str) -> cofferdam_core::Result<Self> {
        open_named(path, what, Last::AsItIs).map(|opened| Self(Arc::new(opened)))
    }

    /// The same, and what it leads to where it is a link itself.
    pub(super) fn follow_named(path: &Path, what: &str) -> cofferdam_core::Result<Self> {
        open_named(path, what, Last::Followed).map(|opened| Self(Arc::new(opened)))
    }

    /// A directory below it, through no link.
    pub(super) fn below(&self, way: &[u8]) -> Result<Self> {
        self.walk(way).map(|opened| Self(Arc::new(opened)))
    }

    /// What is below it at a path, through no link, a link itself too.
    pub(super) fn stat(&self, way: &[u8]) -> Result<Stat> {
        let (above, name) = cut(way);
        statat(self.walk(above)?, name, AtFlags::SYMLINK_NOFOLLOW)
    }

    pub(super) fn look(&self) -> Result<Stat> {
        rustix::fs::fstat(&*self.0)
    }

    /// What is in a directory below it, in no order, each name with what it is. What goes meanwhile is not there.
    pub(super) fn list(&self, way: &[u8]) -> Result<Vec<(Vec<u8>, Stat)>> {
        let opened = self.walk(way)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = openat(&opened, c".", flags, Mode::empty())?;
        let mut found = Vec::new();
        let mut entries = Dir::read_from(&directory)?;
        while let Some(entry) = entries.read() {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if !matches!(name, b"." | b"..") {
                match statat(&opened, name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) => found.push((name.to_vec(), stat)),
                    Err(Errno::NOENT) => {}
                    Err(errno) => return Err(errno),
                }
            }
        }
        Ok(found)
    }

    /// Where a link below it leads.
    pub(super) fn target(&self, way: &[u8]) -> Result<Vec<u8>> {
        let (above, name) = cut(way);
        let opened = self.walk(above)?;
        rustix::fs::readlinkat(&opened, name, Vec::new()).map(std::ffi::CString::into_bytes)
    }

    pub(super) fn file(&self, way: &[u8], stat: &Stat) -> HostFile {
        let bytes = u64::try_from(stat.st_size).unwrap_or(0);
        HostFile { top: self.clone(), way: way.to_vec(), bytes }
    }

    /// A directory below it, through no link.
    fn walk(&self, way: &[u8]) -> Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut present = openat(&*self.0, c".", flags, Mode::empty())?;
        for name in way.split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
            present = openat(&present, name, flags, Mode::empty())?;
        }
        Ok(present)
    }
}

/// What is opened where the last name of a path is a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Last {
    /// The link.
    AsItIs,
    /// What it leads to.
    Followed,
}

fn open_as(path: &Path, last: Last) -> Result<OwnedFd> {
    let usual = OFlags::PATH | OFlags::CLOEXEC;
    let flags = match last {
        Last::AsItIs => usual | OFlags::NOFOLLOW,
        Last::Followed => usual,
    };
    openat(CWD, path, flags, Mode::empty())
}

/// Opens what a person named, if no link on the way there may have been made by a command. Every entry that
/// names something of the host comes by here.
pub(super) fn open_named(path: &Path, what: &str, last: Last) -> cofferdam_core::Result<OwnedFd> {
    let seen = |errno| unseen(path, errno);
    let opened = open_as(path, last).map_err(seen)?;
    // HOSTILE: names change meanwhile, so what was opened says where the way has to end.
    let number = std::os::fd::AsRawFd::as_raw_fd(&opened);
    let end = readlink(Path::new(&format!("/proc/self/fd/{number}")))
        .ok_or_else(|| seen(Errno::NOENT))?;
    let whole = std::path::absolute(path).map_err(|_| seen(Errno::NOENT))?;
    let kind = FileType::from_raw_mode(rustix::fs::fstat(&opened).map_err(seen)?.st_mode);
    let (way, to) = match (kind, whole.parent(), end.parent()) {
        // It is refused for what it is.
        (FileType::Symlink, Some(way), Some(to)) => (way, to),
        (_, _, _) => (whole.as_path(), end.as_path()),
    };
    let home = std::env::home_dir().and_then(|home| home.canonicalize().ok());
    let doubts = |link: &PassedLink| !link.stays() && !link.is_out_of_reach(home.as_deref());
    match doubted_link(way, to, readlink, doubts) {
        Some(link) => Err(planted(what, path, &link, &end)),
        None => Ok(opened),
    }
}

fn readlink(path: &Path) -> Option<PathBuf> {
    std::fs::read_link(path).ok()
}

impl HostFile {
    /// Opens it, if it is still the sort and size of file that was looked at.
    pub(super) fn open(&self) -> io::Result<File> {
        let opened = if self.way.is_empty() {
            // The name in our own process file system leads to what was opened, whatever has its name now.
            let number = std::os::fd::AsRawFd::as_raw_fd(&self.top.0.as_fd());
            let itself = format!("/proc/self/fd/{number}");
            openat(CWD, itself.as_str(), READ, Mode::empty())?
        } else {
            let (above, name) = cut(&self.way);
            openat(&self.top.walk(above)?, name, READ | OFlags::NOFOLLOW, Mode::empty())?
        };
        let stat = rustix::fs::fstat(&opened)?;
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        if is_file && u64::try_from(stat.st_size) == Ok(self.bytes) {
            return Ok(File::from(opened));
        }
        let shown = String::from_utf8_lossy(&self.way).into_owned();
        Err(io::Error::other(format!("the host's file {shown:?} is another by now")))
    }

    pub(super) fn content(&self) -> Content {
        let file = self.clone();
        Content::Later { open: Box::new(move || file.open()), bytes: self.bytes }
    }
}

/// Nothing that is opened by mistake is waited for.
const READ: OFlags =
    OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// The way to the directory, and the last name.
fn cut(way: &[u8]) -> (&[u8], &[u8]) {
    match way.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (way.get(..at).unwrap_or_default(), way.get(at + 1..).unwrap_or_default()),
        None => (&[], way),
    }
}

/// What an error of the kernel's is for people.
pub(super) fn unseen(path: &Path, errno: Errno) -> cofferdam_core::Error {
    use cofferdam_core::ErrorKind;
    let kind = match errno {
        Errno::NOENT | Errno::NOTDIR => ErrorKind::NotFound,
        Errno::ACCESS | Errno::PERM => ErrorKind::Denied,
        _ => ErrorKind::Io,
    };
    let shown = Path::new(std::ffi::OsStr::from_bytes(path.as_os_str().as_bytes()));
    cofferdam_core::Error::new(kind, format!("look at {} for the manifest", shown.display()))
        .source(io::Error::from(errno))
}

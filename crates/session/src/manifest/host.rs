//! Files of the host that a manifest names, opened without following what is put in their way.
//!
//! HOSTILE: what is copied may be the workspace of another sandbox, in which commands swap names. So a
//! directory that a person named is opened once, and everything in it is reached from there by one name
//! after the other, none of which may be a link.

use cofferdam_core::files::Content;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, openat, statat};
use rustix::io::{Errno, Result};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
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
    /// Opens what a person named, unless it is a link itself. Nothing is read, and no pipe waited for.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        openat(CWD, path, flags, Mode::empty()).map(|opened| Self(Arc::new(opened)))
    }

    pub(super) fn look(&self) -> Result<Stat> {
        rustix::fs::fstat(&*self.0)
    }

    /// What is in a directory below it, in no order, each name with what it is.
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
                let stat = statat(&opened, name, AtFlags::SYMLINK_NOFOLLOW)?;
                found.push((name.to_vec(), stat));
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

//! Files without a name, for what a door collects before it passes it on.

use crate::Sessions;
use cofferdam_core::{Error, ErrorKind, Result};
use rustix::fs::{CWD, MemfdFlags, Mode, OFlags};
use std::fs::File;
use std::path::Path;

impl Sessions {
    /// A file without a name in the state directory, gone with its descriptor.
    pub fn unnamed_file(&self) -> Result<File> {
        unnamed_file(&self.0.places.staging())
    }
}

/// A file without a name in a directory of this user, gone with its descriptor.
pub fn unnamed_file(directory: &Path) -> Result<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let made = rustix::fs::openat(CWD, directory, flags, Mode::RUSR | Mode::WUSR);
    // Where the file system has no files without a name, there is memory.
    let file = made.or_else(|_| rustix::fs::memfd_create("cofferdam-spool", MemfdFlags::CLOEXEC));
    let file = file.map_err(|errno| {
        Error::new(ErrorKind::Io, "make room for what is passed on")
            .hint("Make room on the disk of the state directory.")
            .source(std::io::Error::from(errno))
    })?;
    Ok(File::from(file))
}

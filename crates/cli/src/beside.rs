//! Files of this machine that come to be whole or not at all.

use cofferdam_core::{Error, ErrorKind, Result};
use rustix::fs::{CWD, RenameFlags};
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A file beside the one that is to be, removed unless it took its place.
pub(crate) struct Beside {
    path: Option<PathBuf>,
    pub(crate) file: File,
}

impl Beside {
    /// With these permissions, as far as the process gives them.
    pub(crate) fn new(to: &Path, mode: u32) -> Result<Self> {
        let name = to.file_name().ok_or_else(|| {
            Error::new(ErrorKind::Usage, format!("{to:?} names no file"))
                .hint("Write the name that the file is to have.")
        })?;
        let mut own = OsString::from(".");
        own.push(name);
        own.push(format!(".cofferdam-{}", std::process::id()));
        let path = to.with_file_name(own);
        let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&path);
        let file = file.map_err(|cause| local("make", &path, cause))?;
        Ok(Self { path: Some(path), file })
    }

    /// Puts it there, on disk when this returns.
    pub(crate) fn take_place(mut self, to: &Path, replace: bool) -> Result<()> {
        self.file.sync_all().map_err(|cause| local("write", to, cause))?;
        let Some(path) = &self.path else { return Ok(()) };
        let flags = if replace { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
        match rustix::fs::renameat_with(CWD, path, CWD, to, flags) {
            Ok(()) => self.path = None,
            Err(rustix::io::Errno::EXIST) => return Err(there_already(to)),
            Err(errno) => return Err(local("write", to, errno.into())),
        }
        Ok(())
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // What is gone already is gone.
            let _ = fs::remove_file(path);
        }
    }
}

/// An error about a file of this machine.
pub(crate) fn local(verb: &str, path: &Path, cause: io::Error) -> Error {
    let is = |kind| cause.kind() == kind;
    let kind = if is(io::ErrorKind::NotFound) {
        ErrorKind::NotFound
    } else if is(io::ErrorKind::PermissionDenied) {
        ErrorKind::Denied
    } else {
        ErrorKind::Io
    };
    Error::new(kind, format!("{verb} {path:?}")).source(cause)
}

/// An error about a file that nobody wants replaced.
pub(crate) fn there_already(path: &Path) -> Error {
    Error::new(ErrorKind::Conflict, format!("{path:?} is there already"))
        .hint("Choose another name, or say --replace.")
}

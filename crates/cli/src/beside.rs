//! Files of this machine that come to be whole or not at all.

use crate::report::ROOM_THERE;
use cofferdam_core::{Error, ErrorKind, Result};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A file that is to be somewhere, which has no name until it is whole. Where the file system makes none
/// without a name it has one beside its place, which is removed unless it took that.
pub(crate) struct Beside {
    /// The name that it has or gets for a moment.
    name: PathBuf,
    has_name: bool,
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
        let name = to.with_file_name(own);
        // A file without a name is gone with whoever is killed.
        if let Ok(file) = nameless(to, mode) {
            return Ok(Self { name, has_name: false, file });
        }
        let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&name);
        // By its own name: nobody knows the other one.
        let file = file.map_err(|cause| match cause.kind() == io::ErrorKind::NotFound {
            true => local("write", to, cause).hint("Make the directory for it first."),
            false => local("write", to, cause),
        })?;
        Ok(Self { name, has_name: true, file })
    }

    /// Puts it there, on disk when this returns.
    pub(crate) fn take_place(mut self, to: &Path, replace: bool) -> Result<()> {
        self.file.sync_all().map_err(|cause| local("write", to, cause))?;
        self.place(to, replace).map_err(|errno| match errno {
            Errno::EXIST | Errno::ISDIR => there_already(to),
            errno => local("write", to, errno.into()),
        })
    }

    fn place(&mut self, to: &Path, replace: bool) -> std::result::Result<(), Errno> {
        if !self.has_name && !replace {
            return give_name(&self.file, to);
        }
        if !self.has_name {
            // One of a dead process that had this number.
            let _ = fs::remove_file(&self.name);
            give_name(&self.file, &self.name)?;
            self.has_name = true;
        }
        let flags = if replace { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
        rustix::fs::renameat_with(CWD, &self.name, CWD, to, flags)?;
        self.has_name = false;
        Ok(())
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        if self.has_name {
            // What is gone already is gone.
            let _ = fs::remove_file(&self.name);
        }
    }
}

fn nameless(to: &Path, mode: u32) -> std::result::Result<File, Errno> {
    let directory = to.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new("."));
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    rustix::fs::openat(CWD, directory, flags, Mode::from_raw_mode(mode)).map(File::from)
}

fn give_name(file: &File, to: &Path) -> std::result::Result<(), Errno> {
    let own = format!("/proc/self/fd/{}", file.as_raw_fd());
    rustix::fs::linkat(CWD, own, CWD, to, AtFlags::SYMLINK_FOLLOW)
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
    let is_full = is(io::ErrorKind::StorageFull) || is(io::ErrorKind::QuotaExceeded);
    let error = Error::new(kind, format!("{verb} {path:?}")).source(cause);
    if is_full {
        error.hint(ROOM_THERE)
    } else if kind == ErrorKind::NotFound {
        error.hint("Name a file of this machine that is there.")
    } else {
        error
    }
}

/// An error about a file that nobody wants replaced, or a directory, which nothing replaces.
pub(crate) fn there_already(path: &Path) -> Error {
    if path.is_dir() {
        return Error::new(ErrorKind::Conflict, format!("{path:?} is a directory"))
            .hint("Write the name of the file with it, as in DIRECTORY/NAME.");
    }
    Error::new(ErrorKind::Conflict, format!("{path:?} is there already"))
        .hint("Choose another name, or say --replace.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn what_is_not_whole_has_no_name_and_what_is_has_its_own_alone() {
        let place = std::env::temp_dir().join(format!("cofferdam-beside-{}", std::process::id()));
        fs::create_dir_all(&place).unwrap();
        let to = place.join("file");
        let names = || fs::read_dir(&place).unwrap().count();
        let write = |text: &str| {
            let mut beside = Beside::new(&to, 0o600).unwrap();
            beside.file.write_all(text.as_bytes()).unwrap();
            beside
        };
        let half = write("half");
        let is_nameless = !half.has_name;
        assert_eq!(names(), usize::from(!is_nameless));
        drop(half);
        assert_eq!(names(), 0);
        for (text, replace) in [("one", false), ("two", true)] {
            write(text).take_place(&to, replace).unwrap();
            assert_eq!((fs::read_to_string(&to).unwrap().as_str(), names()), (text, 1));
        }
        let refused = write("three").take_place(&to, false).unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Conflict);
        assert_eq!((fs::read_to_string(&to).unwrap().as_str(), names()), ("two", 1));
        assert!(refused.hint.unwrap().contains("--replace"));
        // Nothing takes the place of a directory, so that nobody is told to try.
        fs::remove_file(&to).unwrap();
        fs::create_dir(&to).unwrap();
        for replace in [false, true] {
            let refused = write("four").take_place(&to, replace).unwrap_err();
            assert_eq!(refused.message, format!("{to:?} is a directory"));
            assert!(refused.hint.unwrap().contains("DIRECTORY/NAME"));
        }
        let missing = Beside::new(&place.join("none/file"), 0o600).err().unwrap();
        assert_eq!(missing.message, format!("write {:?}", place.join("none/file")));
        assert!(missing.hint.is_some());
        fs::remove_dir_all(&place).unwrap();
    }
}

//! Permissions of a layer that are widened while it is copied, and put back whatever happens.
//!
//! An ordinary user cannot read what a sandbox closed to everybody, though it is their own. It is written
//! down before it is opened up, so that the next one at work on the layer puts back what a killed one
//! left.

use cofferdam_core::{Error, ErrorKind, Result};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, chmodat, fstat, openat};
use rustix::io::Errno;
use std::ffi::CStr;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Where it is written, beside what is copied: for each thing its mode in octal, a space, its path, NUL.
const LIST: &str = ".widened";
/// The most bytes of that list.
const LIST_BYTES: u64 = 1 << 30;

/// What was widened.
pub(super) struct Widened {
    folder: PathBuf,
    list: Option<File>,
    /// The way to what is copied now.
    path: Vec<u8>,
}

impl Widened {
    /// For what is copied from this folder. What a killed one left there is put back first.
    pub(super) fn new(folder: &Path) -> Result<Self> {
        put_back(folder)?;
        Ok(Self { folder: folder.to_owned(), list: None, path: Vec::new() })
    }

    /// Goes down into a directory. Answers what [`Widened::leave`] takes.
    pub(super) fn enter(&mut self, name: &CStr) -> usize {
        let above = self.path.len();
        self.path = self.below(name);
        above
    }

    /// Goes to a directory by its whole path below the folder.
    pub(super) fn stand(&mut self, path: Vec<u8>) {
        self.path = path;
    }

    /// Goes up again.
    pub(super) fn leave(&mut self, above: usize) {
        self.path.truncate(above);
    }

    /// Writes down what permissions something has, before they are others.
    pub(super) fn note(&mut self, name: &CStr, mode: Mode) -> Result<()> {
        let mut line = format!("{:o} ", mode.as_raw_mode()).into_bytes();
        line.extend(self.below(name));
        line.push(0);
        let path = self.folder.join(LIST);
        let file = match &mut self.list {
            Some(file) => file,
            None => {
                let opened = File::options().append(true).create(true).open(&path);
                self.list.insert(opened.map_err(|e| io("write", &path, e))?)
            }
        };
        file.write_all(&line).map_err(|e| io("write", &path, e))
    }

    fn below(&self, name: &CStr) -> Vec<u8> {
        match self.path.is_empty() {
            true => name.to_bytes().to_vec(),
            false => [self.path.as_slice(), b"/", name.to_bytes()].concat(),
        }
    }
}

/// Whether something in this folder has other permissions than it had.
pub(super) fn is_widened(folder: &Path) -> bool {
    folder.join(LIST).exists()
}

/// Gives everything in this folder the permissions again that it had. Says whether there was something.
pub(super) fn put_back(folder: &Path) -> Result<bool> {
    let path = folder.join(LIST);
    let mut list = Vec::new();
    match File::open(&path) {
        Ok(file) => file.take(LIST_BYTES).read_to_end(&mut list),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        Err(e) => Err(e),
    }
    .map_err(|e| io("read", &path, e))?;
    // ORDER: a directory after what is in it. What is not whole was not widened yet.
    let whole = list.split_inclusive(|byte| *byte == 0).filter_map(|line| line.strip_suffix(b"\0"));
    for line in whole.rev() {
        put_back_one(folder, line).map_err(|e| io("put back permissions in", folder, e.into()))?;
    }
    std::fs::remove_file(&path).map_err(|e| io("remove", &path, e))?;
    Ok(true)
}

fn put_back_one(folder: &Path, line: &[u8]) -> rustix::io::Result<()> {
    let mut parts = line.splitn(2, |byte| *byte == b' ');
    let mode = parts.next().and_then(|mode| std::str::from_utf8(mode).ok());
    let mode = mode.and_then(|mode| u32::from_str_radix(mode, 8).ok()).ok_or(Errno::INVAL)?;
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut present: OwnedFd = openat(CWD, folder, flags | OFlags::DIRECTORY, Mode::empty())?;
    for name in parts.next().unwrap_or_default().split(|byte| *byte == b'/') {
        present = match openat(&present, name, flags, Mode::empty()) {
            Ok(next) => next,
            // HOSTILE: whoever is inside may have gone on since, and done with it what they like.
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(()),
            Err(errno) => return Err(errno),
        };
    }
    if FileType::from_raw_mode(fstat(&present)?.st_mode) == FileType::Symlink {
        return Ok(());
    }
    // A descriptor of this sort takes no other way.
    let through = format!("/proc/self/fd/{}", present.as_raw_fd());
    chmodat(CWD, through, Mode::from_raw_mode(mode), AtFlags::empty())
}

fn io(what: &str, path: &Path, error: std::io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("{what} {}", path.display())).source(error)
}

//! Where the parts of an image lie: a directory, or one file.

use crate::archive::Archive;
use crate::digest::{Digest, Hashing};
use crate::document::Descriptor;
use crate::limits::MAX_DOCUMENT_BYTES;
use cofferdam_core::{Error, ErrorKind, Result};
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The parts of an image.
pub(crate) enum Blobs {
    /// As files below a directory.
    Directory(OwnedFd),
    /// As members of an archive.
    Archive(Archive),
}

impl Blobs {
    /// Those below a directory.
    pub(crate) fn directory(path: &Path) -> Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(CWD, path, flags, Mode::empty());
        opened.map(Self::Directory).map_err(|errno| not_opened(path, errno))
    }

    /// Whether there is one of this name, whether or not it can be read.
    pub(crate) fn has(&self, name: &str) -> bool {
        match self {
            Self::Directory(directory) => {
                !matches!(open_below(directory, name), Err(Errno::NOENT | Errno::NOTDIR))
            }
            Self::Archive(archive) => archive.has(name),
        }
    }

    /// One by its name, and how long it is.
    pub(crate) fn open(&self, name: &str) -> Result<(Box<dyn Read + '_>, u64)> {
        match self {
            Self::Directory(directory) => {
                let file = open_below(directory, name).map_err(|errno| lacks(name, errno))?;
                let metadata = file.metadata().map_err(|error| lacks(name, error))?;
                if !metadata.is_file() {
                    let what = format!("read {name} of the image: it is no regular file");
                    return Err(Error::new(ErrorKind::NotFound, what).hint("Write the image anew."));
                }
                Ok((Box::new(file), metadata.len()))
            }
            Self::Archive(archive) => {
                let part = archive.open(name).ok_or_else(|| lacks(name, Errno::NOENT))?;
                Ok((Box::new(part.0), part.1))
            }
        }
    }

    /// A small one as a whole.
    pub(crate) fn document(&self, name: &str) -> Result<Vec<u8>> {
        let (content, length) = self.open(name)?;
        let mut bytes = Vec::new();
        // HOSTILE: it may be longer than it said.
        let read = content.take(MAX_DOCUMENT_BYTES + 1).read_to_end(&mut bytes);
        read.map_err(|error| lacks(name, error))?;
        if length > MAX_DOCUMENT_BYTES || bytes.len() as u64 > MAX_DOCUMENT_BYTES {
            let what =
                format!("read {name} of the image: it has more than {MAX_DOCUMENT_BYTES} bytes");
            return Err(Error::new(ErrorKind::TooLarge, what));
        }
        Ok(bytes)
    }

    /// A small one that is what its digest says.
    pub(crate) fn verified(&self, descriptor: &Descriptor) -> Result<Vec<u8>> {
        let bytes = self.document(&name_of(&descriptor.digest))?;
        let mut hashing = Hashing::new(&bytes[..]);
        let _ = std::io::copy(&mut hashing, &mut std::io::sink());
        check(&descriptor.digest, &hashing.digest())?;
        Ok(bytes)
    }
}

/// Where content of this digest lies.
pub(crate) fn name_of(digest: &Digest) -> String {
    format!("blobs/sha256/{}", digest.hex())
}

/// Fails where content is not what it was called.
pub(crate) fn check(promised: &Digest, found: &Digest) -> Result<()> {
    if promised == found {
        return Ok(());
    }
    let message = format!("the content of {promised} is another one, {found}");
    Err(Error::new(ErrorKind::Denied, message)
        .hint("Get the image anew; somebody, or a broken disk, changed it."))
}

/// How often a way is walked that leads up somewhere. Where anything is mounted or moved anywhere on the machine
/// meanwhile, the kernel cannot tell whether it stayed below, and asks to try again.
const MOST_WALKS: usize = 1000;

/// Nothing above the directory is reached, and nothing waits for whoever made a pipe there.
fn open_below(directory: &OwnedFd, name: &str) -> rustix::io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let walk = || rustix::fs::openat2(directory, name, flags, Mode::empty(), resolve);
    let mut walked = walk();
    for _ in 1..MOST_WALKS {
        if !matches!(walked, Err(Errno::AGAIN)) {
            break;
        }
        std::thread::yield_now();
        walked = walk();
    }
    walked.map(File::from)
}

fn lacks(name: &str, cause: impl Into<std::io::Error>) -> Error {
    let cause = cause.into();
    let (kind, hint) = if cause.kind() == std::io::ErrorKind::PermissionDenied {
        (ErrorKind::Io, "Make that file readable for you, as with chmod or chown.")
    } else {
        (ErrorKind::NotFound, "Write the image anew; a part of it is missing, or cannot be read.")
    };
    Error::new(kind, format!("read {name} of the image")).hint(hint).source(cause)
}

pub(crate) fn not_opened(path: &Path, cause: impl Into<std::io::Error>) -> Error {
    let cause = cause.into();
    let is_missing = cause.kind() == std::io::ErrorKind::NotFound;
    let kind = if is_missing { ErrorKind::NotFound } else { ErrorKind::Io };
    Error::new(kind, format!("open the image {}", path.display()))
        .hint("Check the path and its permissions.")
        .source(cause)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn a_way_up_within_the_directory_is_walked_whatever_is_moved_meanwhile() {
        let directory =
            std::env::temp_dir().join(format!("cofferdam-blobs-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(directory.join("there/way")).unwrap();
        std::fs::write(directory.join("there/index.json"), "{}").unwrap();
        std::os::unix::fs::symlink("there/way/..", directory.join("link")).unwrap();
        std::fs::write(directory.join("moved"), "").unwrap();
        let blobs = Blobs::directory(&directory).unwrap();
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (here, there) = (directory.join("moved"), directory.join("away"));
                while !is_done.load(Ordering::Relaxed) {
                    std::fs::rename(&here, &there).unwrap();
                    std::fs::rename(&there, &here).unwrap();
                }
            });
            let failed: Vec<Error> =
                (0..20_000).filter_map(|_| blobs.document("link/index.json").err()).collect();
            is_done.store(true, Ordering::Relaxed);
            assert!(failed.is_empty(), "{} of 20000: {:?}", failed.len(), failed[0]);
        });
        // The control: a way that leads out is none.
        std::os::unix::fs::symlink("../..", directory.join("out")).unwrap();
        assert!(blobs.document("out/etc/passwd").is_err());
        std::fs::remove_dir_all(&directory).unwrap();
    }
}

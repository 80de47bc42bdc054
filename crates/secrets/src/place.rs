//! A directory that only its owner can use, and whole files in it.

use cofferdam_core::{Error, ErrorKind, Result, hexadecimal};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, Stat};
use rustix::io::{Errno, retry_on_intr};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Begins the name of a file that is being written. What is left of one after a crash goes with the next
/// change.
const HALF_MADE: &str = ".new-";
/// The file whose lock writers hold.
const LOCK: &str = "lock";

/// An open directory.
#[derive(Debug)]
pub(crate) struct Place {
    directory: OwnedFd,
    path: PathBuf,
    /// How many names are confirmed before one is not.
    #[cfg(test)]
    pub(crate) confirmed: std::sync::atomic::AtomicU32,
}

/// Others' writing waits while this lives.
#[derive(Debug)]
pub(crate) struct WriteLock(#[expect(dead_code, reason = "it is held, not read")] OwnedFd);

impl Place {
    /// Opens the directory, and makes it with mode 0700 where it is missing. The one above must be there.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        match rustix::fs::mkdir(path, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(failed("make the directory", path, errno)),
        }
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(path, flags, Mode::empty())
            .map_err(|errno| failed("open the directory", path, errno))?;
        let stat = rustix::fs::fstat(&directory).map_err(|errno| failed("look at", path, errno))?;
        check_owner(&stat, path, 0o700)?;
        Ok(Self {
            directory,
            path: path.to_owned(),
            #[cfg(test)]
            confirmed: u32::MAX.into(),
        })
    }

    /// Waits until nobody else writes here, and removes what a crash left.
    pub(crate) fn lock(&self) -> Result<WriteLock> {
        let path = self.path.join(LOCK);
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let lock = rustix::fs::openat(&self.directory, LOCK, flags, mode)
            .map_err(|errno| failed("open", &path, errno))?;
        retry_on_intr(|| rustix::fs::flock(&lock, FlockOperation::LockExclusive))
            .map_err(|errno| failed("lock", &path, errno))?;
        for name in self.all_names()?.iter().filter(|name| name.starts_with(HALF_MADE)) {
            let _ = rustix::fs::unlinkat(&self.directory, name, AtFlags::empty());
        }
        Ok(WriteLock(lock))
    }

    /// Where a file of this name is, for people.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The names of the files here, in order.
    pub(crate) fn names(&self) -> Result<Vec<String>> {
        let mut names = self.all_names()?;
        names.retain(|name| name != LOCK && !name.starts_with(HALF_MADE));
        names.sort();
        Ok(names)
    }

    fn all_names(&self) -> Result<Vec<String>> {
        let failed = |errno| failed("list", &self.path, errno);
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.directory).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        Ok(names)
    }

    /// What is in a file of at most `most` bytes. `None` where there is none.
    pub(crate) fn read(&self, name: &str, most: usize) -> Result<Option<Zeroizing<Vec<u8>>>> {
        let Some(bytes) = self.read_beginning(name, most + 1)? else { return Ok(None) };
        if bytes.len() > most {
            return Err(foreign(&self.path(name), "it is too long"));
        }
        Ok(Some(bytes))
    }

    /// The first `most` bytes of a file, or all if it has fewer. `None` where there is none.
    pub(crate) fn read_beginning(
        &self,
        name: &str,
        most: usize,
    ) -> Result<Option<Zeroizing<Vec<u8>>>> {
        let path = self.path(name);
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(&self.directory, name, flags, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP) => return Err(foreign(&path, "it is a symbolic link")),
            Err(errno) => return Err(failed("open", &path, errno)),
        };
        let stat = rustix::fs::fstat(&file).map_err(|errno| failed("look at", &path, errno))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(foreign(&path, "it is no regular file"));
        }
        check_owner(&stat, &path, 0o600)?;
        // Where it is put is as large as it gets: what grows would leave copies behind.
        let mut bytes = Zeroizing::new(vec![0; most]);
        let mut length = 0;
        while let Some(rest) = bytes.get_mut(length..).filter(|rest| !rest.is_empty()) {
            match rustix::io::read(file.as_fd(), rest) {
                Ok(0) => break,
                Ok(count) => length += count,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(failed("read", &path, errno)),
            }
        }
        bytes.truncate(length);
        Ok(Some(bytes))
    }

    /// Makes or replaces a file as a whole. Only under the lock. Where the disk does not confirm that, it is an
    /// error, though the new one is there.
    pub(crate) fn write(&self, _lock: &WriteLock, name: &str, bytes: &[u8]) -> Result<()> {
        let mut random = [0; 8];
        crate::seal::fill(&mut random)?;
        let new = format!("{HALF_MADE}{}", hexadecimal(random));
        let written = self.write_new(&new, bytes);
        let written = written
            .and_then(|()| rustix::fs::renameat(&self.directory, &new, &self.directory, name));
        written.map_err(|errno| {
            let _ = rustix::fs::unlinkat(&self.directory, &new, AtFlags::empty());
            failed("write", &self.path(name), errno)
        })?;
        self.confirm().map_err(|errno| {
            let path = self.path(name);
            let what = format!("{} is written, but the disk did not confirm it", path.display());
            Error::new(ErrorKind::Io, what)
                .hint("Do it again when the disk works: until then a loss of power may bring back what was there before.")
                .source(std::io::Error::from(errno))
        })
    }

    /// Waits until the names are on disk.
    fn confirm(&self) -> rustix::io::Result<()> {
        #[cfg(test)]
        {
            use std::sync::atomic::Ordering::Relaxed;
            match self.confirmed.load(Relaxed) {
                u32::MAX => {}
                0 => {
                    self.confirmed.store(u32::MAX, Relaxed);
                    return Err(Errno::IO);
                }
                left => self.confirmed.store(left - 1, Relaxed),
            }
        }
        rustix::fs::fsync(&self.directory)
    }

    fn write_new(&self, name: &str, bytes: &[u8]) -> rustix::io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let file = rustix::fs::openat(&self.directory, name, flags, mode)?;
        let mut rest = bytes;
        while !rest.is_empty() {
            match rustix::io::write(&file, rest) {
                Ok(0) => return Err(Errno::NOSPC),
                Ok(count) => rest = rest.get(count..).unwrap_or_default(),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        rustix::fs::fsync(&file)
    }

    /// Removes a file, and says whether there was one. Only under the lock.
    pub(crate) fn remove(&self, _lock: &WriteLock, name: &str) -> Result<bool> {
        match rustix::fs::unlinkat(&self.directory, name, AtFlags::empty()) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(failed("remove", &self.path(name), errno)),
        }
    }
}

fn check_owner(stat: &Stat, path: &Path, mode: u32) -> Result<()> {
    let shown = path.display();
    if stat.st_uid != rustix::process::geteuid().as_raw() {
        let what = format!("{shown} belongs to somebody else");
        return Err(Error::new(ErrorKind::Denied, what)
            .hint("Find out who put it there; move it away and add the secrets anew."));
    }
    if stat.st_mode & 0o077 != 0 {
        let what = format!("{shown} is open to others: its mode is {:04o}", stat.st_mode & 0o7777);
        return Err(Error::new(ErrorKind::Denied, what).hint(format!(
            "If nobody read it meanwhile, run `chmod {mode:04o}` on it; if not, change the secrets."
        )));
    }
    Ok(())
}

/// An error of the operating system's.
fn failed(doing: &str, path: &Path, errno: Errno) -> Error {
    let what = format!("{doing} {}", path.display());
    Error::new(ErrorKind::Io, what)
        .hint("Make room and give yourself the right to read and write there.")
        .source(std::io::Error::from(errno))
}

/// Something is there that was not written by this.
pub(crate) fn foreign(path: &Path, why: &str) -> Error {
    let what = format!("{} is damaged or not of this store: {why}", path.display());
    Error::new(ErrorKind::Conflict, what)
        .hint("Remove the secret with `cofferdam secret rm` or move the file away; add it anew.")
}

//! Removing.

use super::failure::failed;
use super::read::look_at;
use super::walk::Root;
use cofferdam_wire::files::{Answer, Failure, MAX_DEPTH, Remove};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

/// How many names of a directory are held at a time.
const BATCH: usize = 1024;

/// Removes something. Whoever repeats it hears that it is not there.
pub(super) fn remove(root: &Root, order: &Remove) -> Result<Answer, Failure> {
    let place = root.itself(&order.path)?;
    let (directory, name) = (place.directory(), place.name.as_slice());
    let stat = look_at(directory, name).map_err(|e| failed(e, "there is no such thing"))?;
    let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
    if is_directory && order.recursive {
        remove_tree(directory, name)?;
    } else {
        let flags = if is_directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        rustix::fs::unlinkat(directory, name, flags).map_err(not_removed)?;
    }
    Ok(Answer::Done)
}

/// Removes a directory and what is in it.
pub(super) fn remove_tree(above: BorrowedFd<'_>, name: &[u8]) -> Result<(), Failure> {
    Removal::default().tree(above, name, 0)
}

/// The same, with one name in it that goes after all others.
pub(super) fn remove_tree_and_last(
    above: BorrowedFd<'_>,
    name: &[u8],
    last: &[u8],
) -> Result<(), Failure> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = rustix::fs::openat(above, name, flags, Mode::empty()).map_err(partly)?;
    loop {
        let mut names = some_names(&directory)?;
        names.retain(|(name, _)| name != last);
        if names.is_empty() {
            break;
        }
        for (name, _) in names {
            remove_tree(directory.as_fd(), &name)?;
        }
    }
    unlink(directory.as_fd(), last, AtFlags::empty())?;
    unlink(above, name, AtFlags::REMOVEDIR)
}

/// A directory on its way out, with all that is in it.
#[derive(Default)]
struct Removal {
    /// The outermost directory, to which too deep ones are moved.
    outermost: Option<OwnedFd>,
    /// How many were.
    moved: u32,
}

impl Removal {
    /// Removes a directory and what is in it. What disappears by itself meanwhile is as good as removed.
    fn tree(&mut self, above: BorrowedFd<'_>, name: &[u8], depth: usize) -> Result<(), Failure> {
        if depth >= MAX_DEPTH {
            return self.move_up(above, name);
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = match rustix::fs::openat(above, name, flags, Mode::empty()) {
            Ok(directory) => directory,
            Err(Errno::NOENT) => return Ok(()),
            // It was a directory a moment ago. What took its place is removed itself, never gone through.
            Err(Errno::NOTDIR | Errno::LOOP) => return unlink(above, name, AtFlags::empty()),
            Err(errno) => return Err(partly(errno)),
        };
        if depth == 0 {
            self.outermost = Some(rustix::io::fcntl_dupfd_cloexec(&directory, 0).map_err(partly)?);
        }
        loop {
            let names = some_names(&directory)?;
            if names.is_empty() {
                return unlink(above, name, AtFlags::REMOVEDIR);
            }
            for (name, kind) in names {
                match kind {
                    FileType::Directory => self.tree(directory.as_fd(), &name, depth + 1)?,
                    FileType::Unknown => self.unknown(directory.as_fd(), &name, depth)?,
                    FileType::RegularFile
                    | FileType::Symlink
                    | FileType::Fifo
                    | FileType::Socket
                    | FileType::CharacterDevice
                    | FileType::BlockDevice => {
                        unlink(directory.as_fd(), &name, AtFlags::empty())?;
                    }
                }
            }
        }
    }

    /// Moves a directory that lies too deep to the outermost one, where it is found again: a worker
    /// holds a descriptor for each directory above the one it is in.
    fn move_up(&mut self, above: BorrowedFd<'_>, name: &[u8]) -> Result<(), Failure> {
        let Some(outermost) = &self.outermost else { return Err(partly(Errno::NAMETOOLONG)) };
        loop {
            let aside = format!(".cofferdam-deep-{}", self.moved);
            self.moved += 1;
            let flags = RenameFlags::NOREPLACE;
            match rustix::fs::renameat_with(above, name, outermost, aside.as_str(), flags) {
                Ok(()) | Err(Errno::NOENT) => return Ok(()),
                // Somebody has that name; there are more than anybody can take.
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(partly(errno)),
            }
        }
    }

    /// Where the file system does not tell types beside names.
    fn unknown(
        &mut self,
        directory: BorrowedFd<'_>,
        name: &[u8],
        depth: usize,
    ) -> Result<(), Failure> {
        match look_at(directory, name).map(|stat| FileType::from_raw_mode(stat.st_mode)) {
            Ok(FileType::Directory) => self.tree(directory, name, depth + 1),
            Ok(_) | Err(_) => unlink(directory, name, AtFlags::empty()),
        }
    }
}

fn unlink(directory: BorrowedFd<'_>, name: &[u8], flags: AtFlags) -> Result<(), Failure> {
    match rustix::fs::unlinkat(directory, name, flags) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(partly(errno)),
    }
}

fn some_names(directory: &OwnedFd) -> Result<Vec<(Vec<u8>, FileType)>, Failure> {
    let mut names = Vec::new();
    // From the beginning each time: what was removed is not there any more.
    let mut entries = Dir::read_from(directory).map_err(partly)?;
    while names.len() < BATCH
        && let Some(entry) = entries.read()
    {
        let entry = entry.map_err(partly)?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push((name.to_vec(), entry.file_type()));
        }
    }
    Ok(names)
}

fn not_removed(errno: Errno) -> Failure {
    match errno {
        Errno::NOTEMPTY => failed(errno, "it is a directory that is not empty"),
        Errno::BUSY => failed(errno, "it is protected"),
        _ => failed(errno, "it cannot be removed"),
    }
}

fn partly(errno: Errno) -> Failure {
    match errno {
        Errno::BUSY | Errno::ROFS => {
            failed(errno, "something in it is protected; some of it may be removed")
        }
        _ => failed(errno, "something in it cannot be removed; some of it may be removed"),
    }
}

//! Removes what somebody hostile may have made, however deep, with few descriptors.

use super::look::{open, some_names};
use crate::kernel_path::through;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

/// How many entries are removed at most.
const MAX_REMOVED: usize = 8_000_000;
/// How many names are read at once.
const AT_ONCE: usize = 4096;

/// Removes a directory and all in it. Follows no link. What is not there is removed.
pub(crate) fn remove(at: &OwnedFd, name: &[u8]) -> Result<(), Errno> {
    let top = match entered(at, name) {
        Ok(top) => top,
        Err(Errno::NOENT) => return Ok(()),
        Err(errno) => return Err(errno),
    };
    let mut clearing = Clearing { top, count: 0 };
    while clearing.round()? {}
    rustix::fs::unlinkat(at, name, AtFlags::REMOVEDIR)
}

struct Clearing {
    top: OwnedFd,
    count: usize,
}

impl Clearing {
    /// Removes what is in the top directory; what is below two levels comes up to it, so that no
    /// depth is too great. Says whether there was something.
    fn round(&mut self) -> Result<bool, Errno> {
        let names = some_names(&self.top, AT_ONCE)?;
        for name in &names {
            match rustix::fs::unlinkat(&self.top, name.as_slice(), AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => self.counted()?,
                Err(Errno::ISDIR | Errno::PERM) => self.directory(name)?,
                Err(errno) => return Err(errno),
            }
        }
        Ok(!names.is_empty())
    }

    fn directory(&mut self, name: &[u8]) -> Result<(), Errno> {
        let directory = entered(&self.top, name)?;
        loop {
            let names = some_names(&directory, AT_ONCE)?;
            if names.is_empty() {
                break;
            }
            for name in names {
                self.counted()?;
                match rustix::fs::unlinkat(&directory, name.as_slice(), AtFlags::empty()) {
                    Ok(()) | Err(Errno::NOENT) => continue,
                    Err(Errno::ISDIR | Errno::PERM) => {}
                    Err(errno) => return Err(errno),
                }
                match rustix::fs::unlinkat(&directory, name.as_slice(), AtFlags::REMOVEDIR) {
                    Ok(()) | Err(Errno::NOENT) => {}
                    Err(Errno::NOTEMPTY | Errno::ACCESS) => self.lift(&directory, &name)?,
                    Err(errno) => return Err(errno),
                }
            }
        }
        rustix::fs::unlinkat(&self.top, name, AtFlags::REMOVEDIR)
    }

    fn lift(&mut self, from: &OwnedFd, name: &[u8]) -> Result<(), Errno> {
        // ORDER: a directory that changes its parent is written itself.
        drop(entered(from, name)?);
        loop {
            self.counted()?;
            let free = format!("lifted-{}", self.count);
            let flags = RenameFlags::NOREPLACE;
            match rustix::fs::renameat_with(from, name, &self.top, free.as_str(), flags) {
                Err(Errno::EXIST) => {}
                other => return other,
            }
        }
    }

    fn counted(&mut self) -> Result<(), Errno> {
        self.count += 1;
        if self.count > MAX_REMOVED { Err(Errno::OVERFLOW) } else { Ok(()) }
    }
}

/// Opens a directory whose entries are to be removed, with the right to do so.
fn entered(at: &OwnedFd, name: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW;
    let directory = open(at.as_fd(), name, flags)?;
    let stat = rustix::fs::fstat(&directory)?;
    let mode = Mode::from_raw_mode(stat.st_mode & 0o7777);
    if !mode.contains(Mode::RWXU) {
        rustix::fs::chmod(through(&directory), mode | Mode::RWXU)?;
    }
    open(directory.as_fd(), b".", OFlags::RDONLY | OFlags::DIRECTORY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_directory::TestDirectory;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_tree_of_any_depth_goes_and_what_links_name_stays() {
        let directory = TestDirectory::new("clear");
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let top = rustix::fs::open(directory.path(), flags, Mode::empty()).unwrap();
        std::fs::create_dir(directory.path().join("kept")).unwrap();
        std::fs::write(directory.path().join("kept/file"), "x").unwrap();
        rustix::fs::mkdirat(&top, "tree", Mode::RWXU).unwrap();
        let mut at = open(top.as_fd(), b"tree", flags).unwrap();
        // Deeper than any path can be.
        for depth in 0..2100 {
            rustix::fs::symlinkat("../../kept", &at, "link").unwrap();
            if depth % 100 == 0 {
                symlink(directory.path().join("kept"), through(&at) + "/absolute").unwrap();
            }
            rustix::fs::mkdirat(&at, "d", Mode::RWXU).unwrap();
            at = open(at.as_fd(), b"d", flags).unwrap();
        }
        let closed = std::fs::Permissions::from_mode(0o0);
        std::fs::set_permissions(directory.path().join("tree/d/d"), closed).unwrap();
        remove(&top, b"tree").unwrap();
        assert!(!directory.path().join("tree").exists());
        assert!(directory.path().join("kept/file").exists());
        remove(&top, b"tree").unwrap();
    }
}

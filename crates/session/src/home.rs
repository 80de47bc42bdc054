//! Removal of directories that strangers filled.
//!
//! HOSTILE: names, links, modes and depth come from inside. Nothing is followed, every name is used
//! beneath a directory that is held open, and depth costs no memory and no descriptors: a directory
//! within a directory is first moved to the top.

use cofferdam_core::{Error, ErrorKind, Result};
use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, chmodat, fchmod, mkdirat, open, openat, renameat, statat,
    unlinkat,
};
use rustix::io::Errno;
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

/// Leads the names of directories that were moved to the top.
const MOVED: &str = ".cofferdam-moved-";
/// How often one place is looked through: each time removes all that it sees.
const ROUNDS: usize = 1 << 20;
/// How many names are held in memory at a time.
const MOST_SEEN: usize = 1 << 16;

/// Makes an empty private directory. One that is there is kept as it is.
pub(crate) fn make(parent: &Path, name: &str) -> Result<()> {
    let beneath = open_directory(parent)?;
    match mkdirat(&beneath, name, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(e) => Err(failed("make", name, e)),
    }
}

/// Removes a directory and all that is in it. One that is not there is removed already.
pub(crate) fn remove(parent: &Path, name: &str) -> Result<()> {
    let beneath = open_directory(parent)?;
    let c_name = CString::new(name)
        .map_err(|e| Error::new(ErrorKind::Usage, "a name with a NUL").source(e))?;
    let Some(top) = open_beneath(beneath.as_fd(), &c_name)? else { return Ok(()) };
    let mut moved = Moved::default();
    for _ in 0..ROUNDS {
        let mut empty = true;
        for (entry, is_directory) in entries(top.as_fd())? {
            empty = false;
            if is_directory {
                flatten(top.as_fd(), &entry, &mut moved)?;
            } else {
                unlink(top.as_fd(), &entry, AtFlags::empty())?;
            }
            // Listing the top anew for each level costs as much as it ever held.
            while let Some(number) = moved.waiting.pop() {
                flatten(top.as_fd(), &moved_name(number), &mut moved)?;
            }
        }
        if empty {
            return unlink(beneath.as_fd(), &c_name, AtFlags::REMOVEDIR);
        }
    }
    Err(Error::new(ErrorKind::Io, format!("{name} is filled faster than it can be emptied")))
}

/// The directories that were moved to the top.
#[derive(Debug, Default)]
struct Moved {
    /// The number of the last one.
    last: u64,
    /// Those that still stand there, as far as they are remembered.
    waiting: Vec<u64>,
}

impl Moved {
    fn add(&mut self) {
        // LIMIT: one that is not remembered is seen when the top is listed again.
        if self.waiting.len() < MOST_SEEN {
            self.waiting.push(self.last);
        }
    }
}

fn moved_name(number: u64) -> CString {
    CString::new(format!("{MOVED}{number}")).unwrap_or_default()
}

/// Empties a directory of the top, moving what is a directory in it to the top, and removes it.
fn flatten(top: BorrowedFd<'_>, name: &CStr, moved: &mut Moved) -> Result<()> {
    let Some(inner) = open_beneath(top, name)? else { return Ok(()) };
    for (entry, is_directory) in entries(inner.as_fd())? {
        if !is_directory {
            unlink(inner.as_fd(), &entry, AtFlags::empty())?;
            continue;
        }
        // A directory that cannot be written cannot be moved either: its parent is an entry of it.
        chmodat(&inner, &*entry, Mode::RWXU, AtFlags::empty()).ok();
        loop {
            moved.last += 1;
            let target = moved_name(moved.last);
            match statat(top, &*target, AtFlags::SYMLINK_NOFOLLOW) {
                // Somebody inside chose that name.
                Ok(_) => continue,
                Err(Errno::NOENT) => {}
                Err(e) => return Err(failed("look at", &target.to_string_lossy(), e)),
            }
            renameat(&inner, &*entry, top, &*target)
                .map_err(|e| failed("move", &target.to_string_lossy(), e))?;
            moved.add();
            break;
        }
    }
    unlink(top, name, AtFlags::REMOVEDIR)
}

fn open_directory(path: &Path) -> Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
    open(path, flags, Mode::empty()).map_err(|e| failed("open", &path.to_string_lossy(), e))
}

/// Opens a directory beneath another, whatever its mode. `None` where there is none; what is not a
/// directory is removed.
fn open_beneath(parent: BorrowedFd<'_>, name: &CStr) -> Result<Option<OwnedFd>> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
    let open = || openat(parent, name, flags, Mode::empty());
    let opened = match open() {
        Err(Errno::ACCESS) => {
            // ORDER: nothing runs in there any more, so what was a directory still is one.
            chmodat(parent, name, Mode::RWXU, AtFlags::empty())
                .map_err(|e| failed("open up", &name.to_string_lossy(), e))?;
            open()
        }
        other => other,
    };
    match opened {
        Ok(directory) => {
            fchmod(&directory, Mode::RWXU).ok();
            Ok(Some(directory))
        }
        Err(Errno::NOENT) => Ok(None),
        Err(Errno::LOOP | Errno::NOTDIR) => {
            unlink(parent, name, AtFlags::empty())?;
            Ok(None)
        }
        Err(e) => Err(failed("open", &name.to_string_lossy(), e)),
    }
}

/// The names in a directory, and whether each is a directory itself.
fn entries(directory: BorrowedFd<'_>) -> Result<Vec<(CString, bool)>> {
    let mut found = Vec::new();
    let bad = |e| failed("list", "a directory", e);
    for entry in Dir::read_from(directory).map_err(bad)? {
        let entry = entry.map_err(bad)?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        let mut kind = entry.file_type();
        if kind == FileType::Unknown {
            let found = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).map_err(bad)?;
            kind = FileType::from_raw_mode(found.st_mode);
        }
        found.push((name.to_owned(), kind == FileType::Directory));
        // LIMIT: the rest is seen in the next round.
        if found.len() >= MOST_SEEN {
            break;
        }
    }
    Ok(found)
}

fn unlink(parent: BorrowedFd<'_>, name: &CStr, flags: AtFlags) -> Result<()> {
    match unlinkat(parent, name, flags) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        // More is in it than one look saw; the next round goes on.
        Err(Errno::NOTEMPTY) if flags.contains(AtFlags::REMOVEDIR) => Ok(()),
        Err(e) => Err(failed("remove", &name.to_string_lossy(), e)),
    }
}

fn failed(what: &str, name: &str, error: Errno) -> Error {
    Error::new(ErrorKind::Io, format!("{what} {name}")).source(std::io::Error::from(error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::PathBuf;

    fn place(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("cofferdam-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    #[test]
    fn links_are_removed_and_never_followed() {
        let (parent, outside) = (place("home-links"), place("home-outside"));
        std::fs::write(outside.join("kept"), "x").unwrap();
        make(&parent, "h").unwrap();
        symlink(&outside, parent.join("h/link")).unwrap();
        symlink("/", parent.join("h/.cofferdam-moved-1")).unwrap();
        std::fs::create_dir_all(parent.join("h/a/b")).unwrap();
        symlink(&outside, parent.join("h/a/b/link")).unwrap();
        remove(&parent, "h").unwrap();
        remove(&parent, "h").unwrap();
        assert!(!parent.join("h").exists());
        assert!(outside.join("kept").exists());
        symlink(&outside, parent.join("h")).unwrap();
        remove(&parent, "h").unwrap();
        assert!(outside.join("kept").exists());
        assert!(std::fs::symlink_metadata(parent.join("h")).is_err());
        for path in [parent, outside] {
            std::fs::remove_dir_all(path).unwrap();
        }
    }

    #[test]
    fn depth_modes_and_odd_names_stop_nobody() {
        let parent = place("home-deep");
        make(&parent, "h").unwrap();
        let mut at = open_directory(&parent.join("h")).unwrap();
        for _ in 0..1500 {
            mkdirat(&at, "d", Mode::RWXU).unwrap();
            let inner = openat(&at, "d", OFlags::DIRECTORY | OFlags::RDONLY, Mode::empty());
            at = inner.unwrap();
        }
        let closed = parent.join("h/closed");
        std::fs::create_dir_all(closed.join("in ner\n")).unwrap();
        std::fs::write(closed.join("f"), "x").unwrap();
        std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o000)).unwrap();
        remove(&parent, "h").unwrap();
        assert!(!parent.join("h").exists());
        std::fs::remove_dir_all(parent).unwrap();
    }
}

//! Records of workspaces that are out of reach: moved, not mounted, behind a directory that may not be entered, or
//! gone. What a crash left in one is removed when it is a workspace again, or is found where it was.
//!
//! They lie in a folder of their own, which no start looks through.
//!
//! LIMIT: [`MOST`] records; the oldest makes room for the next.

use super::{StateDirectory, ignore_existing, io, names, open_directory, retry};
use cofferdam_core::Result;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use std::path::{Path, PathBuf};

/// The folder, beside that of the records that are owed.
const FOLDER: &str = "away";
/// Leads the name of one that is not whole.
const FRESH: &str = ".fresh-";
/// How many there are at most: a workspace that was removed is never found.
pub(super) const MOST: usize = 256;
/// The largest that is read.
const MOST_BYTES: usize = 1 << 20;

/// Puts a record there.
pub(super) fn put(state: &StateDirectory, name: &str, content: &[u8]) -> Result<()> {
    let put = || {
        ignore_existing(rustix::fs::mkdirat(&state.home, FOLDER, Mode::RWXU))?;
        let folder = open_directory(&state.home, Path::new(FOLDER))?;
        make_room(state, &folder)?;
        let fresh = format!("{FRESH}{}", std::process::id());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW;
        let file =
            rustix::fs::openat(&folder, &*fresh, flags | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR)?;
        if retry(|| rustix::io::write(&file, content))? != content.len() {
            return Err(Errno::NOSPC);
        }
        rustix::fs::renameat(&folder, &*fresh, &folder, name)
    };
    put().map_err(|errno| io(&format!("put the record {name} away in"), &state.path, errno))
}

fn make_room(state: &StateDirectory, folder: &OwnedFd) -> Result<(), Errno> {
    let all = names(&state.home, FOLDER)?;
    if all.len() < MOST {
        return Ok(());
    }
    let age = |name: &String| {
        let stat = rustix::fs::statat(folder, &**name, AtFlags::SYMLINK_NOFOLLOW);
        stat.map_or((0, 0), |stat| (stat.st_mtime, stat.st_mtime_nsec))
    };
    match all.iter().min_by_key(|name| age(name)) {
        Some(oldest) => rustix::fs::unlinkat(folder, &**oldest, AtFlags::empty()),
        None => Ok(()),
    }
}

/// Makes a record one that is owed again, if it was put away. Where there is another one by now, that counts.
pub(super) fn take_back(state: &StateDirectory, name: &str) {
    let away: PathBuf = [FOLDER, name].iter().collect();
    let flags = RenameFlags::NOREPLACE;
    // Nearly always there is none.
    let _ = rustix::fs::renameat_with(&state.home, &away, &*state.owed, name, flags);
}

/// The same for all of which this is true, by content and name.
pub(super) fn take_back_all(state: &StateDirectory, is_there: impl Fn(&[u8], &str) -> bool) {
    // Without the folder there are none.
    for name in names(&state.home, FOLDER).unwrap_or_default() {
        if read(state, &name).is_ok_and(|content| is_there(&content, &name)) {
            take_back(state, &name);
        }
    }
}

fn read(state: &StateDirectory, name: &str) -> Result<Vec<u8>, Errno> {
    let away: PathBuf = [FOLDER, name].iter().collect();
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(&state.home, &away, flags, Mode::empty())?;
    let mut content = vec![0; MOST_BYTES];
    let read = retry(|| rustix::io::pread(&file, &mut content[..], 0))?;
    content.truncate(read);
    Ok(content)
}

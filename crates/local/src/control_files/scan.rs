//! The bounded search for nested repositories.

use crate::state::io;
use cofferdam_core::Result;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, ResolveFlags};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;

/// How deep below the workspace a repository is looked for. Checkouts side by side lie at 1 or 2,
/// submodules rarely below 4.
const MAX_DEPTH: usize = 6;
/// How many directories are listed, nearest first. A listing costs about 6 µs, so that a large tree
/// delays a start by some 3 ms and not more.
const MAX_DIRECTORIES: usize = 500;
/// How many entries are looked at.
const MAX_ENTRIES: usize = 20_000;
/// How many repositories are protected. Each costs some 30 mounts.
const MAX_REPOSITORIES: usize = 32;
/// Directories that are not entered: what is in them was installed or built, and is large.
const NOT_ENTERED: [&str; 3] = [".git", "node_modules", "target"];
/// What one listing is read into.
const BUFFER_BYTES: usize = 16 * 1024;

/// Why a scan ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ScanEnd {
    /// All was seen, to the depth that is looked at.
    #[default]
    Complete,
    /// There were too many directories or entries. Repositories that are farther off than those
    /// that were found may be unprotected.
    TooLarge,
    /// There were too many repositories.
    TooManyRepositories,
}

/// What a scan found.
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// Work trees of repositories, nearest first, relative; the workspace itself is the empty path.
    pub(super) repositories: Vec<String>,
    /// Repositories whose path is not UTF-8, shown as far as can be.
    pub(super) unreadable: Vec<String>,
    pub(super) end: ScanEnd,
}

/// A directory that waits to be listed.
struct Waiting {
    path: Vec<u8>,
    depth: usize,
}

/// Finds the repositories at and below the workspace. Follows no link. What vanishes meanwhile, or
/// may not be read, is passed over: it cannot be written from inside either.
pub(super) fn repositories(workspace: BorrowedFd<'_>) -> Result<Scan> {
    let mut scan = Scan::default();
    let mut waiting = VecDeque::from([Waiting { path: Vec::new(), depth: 0 }]);
    let (mut directories, mut entries) = (0, 0);
    while let Some(next) = waiting.pop_front() {
        directories += 1;
        if directories > MAX_DIRECTORIES || entries > MAX_ENTRIES {
            scan.end = ScanEnd::TooLarge;
            break;
        }
        let Some(directory) = open(workspace, &next.path)? else { continue };
        let found = list(&directory, &next, &mut waiting, &mut entries)?;
        if found == Found::Repository && !scan.add(next.path) {
            break;
        }
    }
    Ok(scan)
}

impl Scan {
    /// Says whether there is room for more.
    fn add(&mut self, path: Vec<u8>) -> bool {
        if self.repositories.len() >= MAX_REPOSITORIES {
            self.end = ScanEnd::TooManyRepositories;
            return false;
        }
        match String::from_utf8(path) {
            Ok(path) => self.repositories.push(path),
            Err(e) => self.unreadable.push(String::from_utf8_lossy(e.as_bytes()).into_owned()),
        }
        true
    }
}

/// What a directory turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    Repository,
    Directory,
}

fn open(workspace: BorrowedFd<'_>, path: &[u8]) -> Result<Option<OwnedFd>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let rules = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let name = if path.is_empty() { b"." } else { path };
    match rustix::fs::openat2(workspace, name, flags, Mode::empty(), rules) {
        Ok(directory) => Ok(Some(directory)),
        Err(e) if path.is_empty() => Err(io("list the workspace", Path::new("."), e)),
        Err(Errno::MFILE | Errno::NFILE | Errno::NOMEM) => {
            Err(io("list a directory of the workspace", Path::new("."), Errno::MFILE))
        }
        Err(_) => Ok(None),
    }
}

fn list(
    directory: &OwnedFd,
    at: &Waiting,
    waiting: &mut VecDeque<Waiting>,
    entries: &mut usize,
) -> Result<Found> {
    let mut buffer = [MaybeUninit::uninit(); BUFFER_BYTES];
    let mut listing = RawDir::new(directory, &mut buffer);
    let mut found = Found::Directory;
    while let Some(entry) = listing.next() {
        let entry = entry.map_err(|e| io("list a directory of", Path::new("the workspace"), e))?;
        let name = entry.file_name();
        *entries += 1;
        if name.to_bytes().eq_ignore_ascii_case(b".git") {
            found = Found::Repository;
        } else if at.depth < MAX_DEPTH
            && *entries <= MAX_ENTRIES
            && is_directory(directory, name, entry.file_type())
            && is_entered(name)
        {
            let mut path = at.path.clone();
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend_from_slice(name.to_bytes());
            waiting.push_back(Waiting { path, depth: at.depth + 1 });
        }
    }
    Ok(found)
}

/// Some file systems do not say what an entry is.
fn is_directory(directory: &OwnedFd, name: &CStr, kind: FileType) -> bool {
    match kind {
        FileType::Directory => true,
        FileType::Unknown => rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory),
        FileType::RegularFile
        | FileType::Symlink
        | FileType::Fifo
        | FileType::Socket
        | FileType::CharacterDevice
        | FileType::BlockDevice => false,
    }
}

fn is_entered(name: &CStr) -> bool {
    let bytes = name.to_bytes();
    let passed_over = bytes == b"."
        || bytes == b".."
        || NOT_ENTERED.iter().any(|known| bytes == known.as_bytes())
        // All below is read-only already.
        || name.to_str().is_ok_and(super::is_protected_directory);
    !passed_over
}

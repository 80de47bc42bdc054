//! The bounded search for nested repositories.

use crate::state::io;
use cofferdam_core::{Error, ErrorKind, Result};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, ResolveFlags};
use rustix::io::Errno;
use std::collections::{BTreeSet, VecDeque};
use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;

/// How deep below the workspace a repository is looked for: deeper than trees of packages that hold
/// their own packages become.
pub(super) const MAX_DEPTH: usize = 64;
/// How many names from the top tell where it is too deep. What is below is made in no time, and nobody reads it.
const TOLD_DEPTH: usize = 8;
/// How many directories are listed, nearest first. A listing costs some 10 µs, so that most starts
/// do not notice, and one in a tree of this size takes a second longer.
const MAX_DIRECTORIES: usize = 100_000;
/// How many entries are looked at. One costs less than 1 µs.
const MAX_ENTRIES: usize = 2_000_000;
/// How many repositories are protected. Each costs some 30 mounts.
const MAX_REPOSITORIES: usize = 256;
/// What one listing is read into.
pub(super) const BUFFER_BYTES: usize = 16 * 1024;

/// Why a scan ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ScanEnd {
    /// All was seen.
    #[default]
    Complete,
    /// There were too many directories or entries. Repositories that are farther off than those that
    /// were found may be unprotected.
    TooLarge,
    /// There were too many repositories.
    TooManyRepositories,
}

impl ScanEnd {
    /// What is not protected and what to do; `None` where all was seen.
    pub(super) fn reason(self) -> Option<String> {
        Some(match self {
            Self::Complete => return None,
            Self::TooLarge => format!("{}, or --cow", too_large("repository")),
            Self::TooManyRepositories => format!(
                "the workspace has more than {MAX_REPOSITORIES} repositories; choose a smaller \
                 one, or --allow-sensitive-writes"
            ),
        })
    }

    /// The same where nothing but sockets is covered.
    pub(super) fn reason_of_sockets(self) -> Option<String> {
        match self {
            Self::Complete => None,
            Self::TooLarge | Self::TooManyRepositories => Some(too_large("socket of the host")),
        }
    }
}

fn too_large(sought: &str) -> String {
    format!(
        "the workspace is too large to find every {sought} in it ({MAX_DIRECTORIES} directories, \
         {MAX_ENTRIES} entries); choose a smaller one"
    )
}

/// How many repositories a scan finds before it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Most {
    /// As many as can be protected.
    Protected,
    /// All: only their sockets are looked for.
    All,
}

/// What a scan found.
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// Work trees of repositories, nearest first, relative; the workspace itself is the empty path.
    pub(super) repositories: Vec<String>,
    /// Directories that are bare repositories, relative.
    pub(super) bare: Vec<String>,
    /// Sockets, relative.
    pub(super) sockets: Vec<Vec<u8>>,
    /// What cannot be protected, shown as far as can be, and why.
    pub(super) unreadable: Vec<(String, &'static str)>,
    /// Where directories are too deep to be looked into, by the beginning of their paths.
    pub(super) too_deep: BTreeSet<String>,
    pub(super) end: ScanEnd,
}

/// A directory that waits to be listed.
#[derive(Debug)]
struct Waiting {
    path: Vec<u8>,
    depth: usize,
    /// All in it is read-only: no repository in it matters.
    is_pinned: bool,
}

impl Waiting {
    fn child(&self, name: &CStr) -> Vec<u8> {
        let mut path = self.path.clone();
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(name.to_bytes());
        path
    }
}

/// Finds the repositories at and below the workspace. Follows no link. What vanishes meanwhile, or
/// may not be read and belongs to somebody else, is passed over: it cannot be written from inside.
pub(super) fn repositories(workspace: BorrowedFd<'_>, most: Most) -> Result<Scan> {
    let mut scan = Scan::default();
    let mut waiting = VecDeque::from([Waiting { path: Vec::new(), depth: 0, is_pinned: false }]);
    let (mut directories, mut entries) = (0, 0);
    while let Some(next) = waiting.pop_front() {
        directories += 1;
        if directories > MAX_DIRECTORIES || entries > MAX_ENTRIES {
            scan.end = ScanEnd::TooLarge;
            break;
        }
        let directory = match open(workspace, &next.path)? {
            Opened::Directory(directory) => directory,
            Opened::Nothing => continue,
            Opened::Closed => {
                // HOSTILE: an earlier command may have closed it, to open it again from inside.
                let path = String::from_utf8_lossy(&next.path).into_owned();
                scan.unreadable.push((path, "it may not be listed"));
                continue;
            }
            Opened::TooDeep => {
                scan.too_deep.insert(beginning(&next.path));
                continue;
            }
        };
        let found = list(&directory, &next, &mut entries)?;
        if entries > MAX_ENTRIES {
            scan.end = ScanEnd::TooLarge;
        }
        if next.depth >= MAX_DEPTH && !found.below.is_empty() {
            scan.too_deep.insert(beginning(&next.path));
        } else {
            waiting.extend(found.below);
        }
        scan.sockets.extend(found.sockets);
        if !next.is_pinned && !scan.add(next.path, found.signs, most) {
            break;
        }
    }
    Ok(scan)
}

fn beginning(path: &[u8]) -> String {
    let names: Vec<&[u8]> = path.split(|byte| *byte == b'/').take(TOLD_DEPTH).collect();
    String::from_utf8_lossy(&names.join(&b'/')).into_owned()
}

impl Scan {
    /// Says whether there is room for more.
    fn add(&mut self, path: Vec<u8>, signs: Signs, most: Most) -> bool {
        // The workspace itself is looked at in any case.
        let is_bare = signs.bare() && !path.is_empty();
        if !signs.git && !is_bare {
            return true;
        }
        let is_full = self.repositories.len() + self.bare.len() >= MAX_REPOSITORIES;
        if is_full && most == Most::Protected {
            self.end = ScanEnd::TooManyRepositories;
            return false;
        }
        match String::from_utf8(path) {
            Ok(path) => {
                self.bare.extend(is_bare.then(|| path.clone()));
                self.repositories.extend(signs.git.then_some(path));
            }
            Err(e) => {
                let path = String::from_utf8_lossy(e.as_bytes()).into_owned();
                self.unreadable.push((path, "its name is not UTF-8"));
            }
        }
        true
    }
}

/// What a directory has in it.
#[derive(Debug, Default)]
struct Found {
    signs: Signs,
    below: Vec<Waiting>,
    sockets: Vec<Vec<u8>>,
}

/// Names that make a directory a repository.
#[derive(Debug, Clone, Copy, Default)]
struct Signs {
    git: bool,
    head: bool,
    objects: bool,
    refs: bool,
    commondir: bool,
}

impl Signs {
    fn see(&mut self, name: &[u8]) {
        self.git |= name.eq_ignore_ascii_case(b".git");
        self.head |= name.eq_ignore_ascii_case(b"HEAD");
        self.objects |= name.eq_ignore_ascii_case(b"objects");
        self.refs |= name.eq_ignore_ascii_case(b"refs");
        self.commondir |= name.eq_ignore_ascii_case(b"commondir");
    }

    /// As git would take it for one.
    fn bare(self) -> bool {
        super::is_repository(|sign| match sign {
            "HEAD" => self.head,
            "objects" => self.objects,
            "refs" => self.refs,
            _ => self.commondir,
        })
    }
}

/// The workspace itself is closed.
fn unlisted(errno: Errno) -> Error {
    Error::new(ErrorKind::Denied, "the workspace cannot be listed")
        .source(std::io::Error::from(errno))
        .hint("Give yourself the right to read it, or name another one with --workspace.")
}

/// What came of opening a directory.
enum Opened {
    Directory(OwnedFd),
    /// It vanished, or cannot be written from inside.
    Nothing,
    /// Its owner forbids it to themselves.
    Closed,
    TooDeep,
}

fn open(workspace: BorrowedFd<'_>, path: &[u8]) -> Result<Opened> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let rules = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let name = if path.is_empty() { b"." } else { path };
    match rustix::fs::openat2(workspace, name, flags, Mode::empty(), rules) {
        Ok(directory) => Ok(Opened::Directory(directory)),
        Err(e) if path.is_empty() => Err(unlisted(e)),
        Err(Errno::MFILE | Errno::NFILE | Errno::NOMEM) => {
            Err(io("list a directory of the workspace", Path::new("."), Errno::MFILE))
        }
        Err(Errno::NAMETOOLONG) => Ok(Opened::TooDeep),
        Err(Errno::ACCESS) if super::is_own(workspace, path) => Ok(Opened::Closed),
        Err(_) => Ok(Opened::Nothing),
    }
}

fn list(directory: &OwnedFd, at: &Waiting, entries: &mut usize) -> Result<Found> {
    let mut buffer = [MaybeUninit::uninit(); BUFFER_BYTES];
    let mut listing = RawDir::new(directory, &mut buffer);
    let mut found = Found::default();
    while let Some(entry) = listing.next() {
        let entry = entry.map_err(|e| io("list a directory of", Path::new("the workspace"), e))?;
        let name = entry.file_name();
        *entries += 1;
        if *entries > MAX_ENTRIES {
            break;
        }
        found.signs.see(name.to_bytes());
        let kind = match is_entered(name) {
            true => kind(directory, name, entry.file_type()),
            false => continue,
        };
        if kind == FileType::Directory {
            let (depth, is_pinned) = (at.depth + 1, at.is_pinned);
            found.below.push(Waiting { path: at.child(name), depth, is_pinned });
        } else if kind == FileType::Socket {
            found.sockets.push(at.child(name));
        }
    }
    if at.depth == 0 || found.signs.git {
        for below in &mut found.below {
            below.is_pinned |= is_pinned(&below.path);
        }
    }
    Ok(found)
}

/// What an entry is; some file systems do not say.
pub(super) fn kind(directory: &OwnedFd, name: &CStr, said: FileType) -> FileType {
    if said != FileType::Unknown {
        return said;
    }
    rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
        .map_or(said, |stat| FileType::from_raw_mode(stat.st_mode))
}

/// What matters in a git directory is pinned; the rest of it is large.
fn is_entered(name: &CStr) -> bool {
    !matches!(name.to_bytes(), b"." | b".." | b".git")
}

/// Whether a directory in a work tree is a protected name.
fn is_pinned(path: &[u8]) -> bool {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    std::str::from_utf8(name).is_ok_and(super::is_protected_directory)
}

//! A repository of this machine, copied before git looks at it.
//!
//! HOSTILE: it may be the workspace of another sandbox, in which commands plant links and pipes at any name of
//! `.git`, and exchange them at any moment. Git follows the ones and waits for the others. So it is shown a
//! private copy: of regular files alone, which are reached from the opened directory through no link, and of
//! what holds objects and references alone. Nothing that names other places is among it: no configuration, no
//! `commondir`, no `objects/info`, no index of several packs.

use super::git::{Waiting, io};
use super::host::{Named, unseen};
use cofferdam_core::files::MAX_CARRIED_BYTES;
use cofferdam_core::{Error, ErrorKind, Result};
use rustix::fs::{FileType, Stat};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File};
use std::io::{ErrorKind as IoKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// The most names of a repository of this machine that are copied. A clone of few of them is smaller.
const MAX_OWN_NAMES: usize = 4 * super::load::MAX_COPIED;
/// The most bytes of these.
const MAX_OWN_BYTES: u64 = 4 * MAX_CARRIED_BYTES;
/// The most bytes of a file of a git directory that is read here: its configuration, and what lists its tables.
const MAX_READ_BYTES: u64 = 1 << 20;
/// How much is copied between two looks at whether anybody waits.
const PIECE_BYTES: u64 = 8 << 20;

/// What is copied of a git directory.
///
/// ORDER: what refers before what it refers to, and where git moves things, from where it takes them first. So
/// what a commit or a `git gc` changes meanwhile is all there.
const PARTS: [&str; 6] = ["HEAD", "refs", "packed-refs", "reftable", "shallow", "objects"];
/// Lists the files beside it that hold references.
const TABLES: &[u8] = b"reftable/tables.list";

/// How large a repository may be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    names: usize,
    bytes: u64,
}

impl Room {
    pub(super) const USUAL: Self = Self { names: MAX_OWN_NAMES, bytes: MAX_OWN_BYTES };
}

/// Copies the repository that lies in a directory itself to a new directory, as one without a work tree.
pub(super) fn copy(directory: &Path, to: &Path, room: Room, waiting: Waiting<'_>) -> Result<()> {
    let mut own = Own { directory, from: open(directory)?, left: room, room, waiting };
    own.borrows_from_nobody()?;
    DirBuilder::new().mode(0o700).create(to).map_err(|e| io("make a directory", e))?;
    own.parts(to)?;
    let said = own.small(b"config")?.unwrap_or_default();
    let written = configuration(&String::from_utf8_lossy(&said));
    fs::write(to.join("config"), written).map_err(|e| io("write a configuration for git", e))
}

/// The git directory of a directory, or itself.
fn open(directory: &Path) -> Result<Named> {
    let named = match Named::follow_named(directory, "the repository") {
        Err(error) if error.kind == ErrorKind::NotFound => return Err(none(directory, error)),
        named => named?,
    };
    let git = match named.below(b".git") {
        Ok(below) => below,
        Err(Errno::NOENT) => named,
        Err(Errno::NOTDIR) => return Err(refused(directory, "has a .git that leads elsewhere")),
        Err(errno) => return Err(unseen(directory, errno)),
    };
    for name in ["objects", "refs"] {
        match git.stat(name.as_bytes()) {
            Ok(_) => {}
            Err(errno @ (Errno::NOENT | Errno::NOTDIR)) => {
                return Err(none(directory, unseen(&directory.join(name), errno)));
            }
            Err(errno) => return Err(unseen(directory, errno)),
        }
    }
    Ok(git)
}

struct Own<'a> {
    directory: &'a Path,
    from: Named,
    left: Room,
    room: Room,
    waiting: Waiting<'a>,
}

impl Own<'_> {
    fn borrows_from_nobody(&self) -> Result<()> {
        let borrows = || Err(refused(self.directory, "borrows from another repository"));
        match self.from.stat(b"objects/info/alternates") {
            Err(Errno::NOENT | Errno::NOTDIR) => {}
            Ok(_) | Err(_) => return borrows(),
        }
        // A session that works there holds the name with a file that names the directory itself.
        match self.small(b"commondir")?.as_deref().map(<[u8]>::trim_ascii) {
            None | Some(b"" | b".") => Ok(()),
            Some(_) => borrows(),
        }
    }

    fn parts(&mut self, to: &Path) -> Result<()> {
        let mut ways: VecDeque<Vec<u8>> = PARTS.map(|part| part.as_bytes().to_vec()).into();
        while let Some(way) = ways.pop_front() {
            let Some(stat) = self.look(&way)? else { continue };
            self.count(&stat)?;
            let to = to.join(OsStr::from_bytes(&way));
            if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
                fs::create_dir(to).map_err(|e| io("make a directory", e))?;
                ways.extend(self.names(&way)?);
            } else if way == TABLES {
                self.tables(&to)?;
            } else {
                self.file(&way, &stat, &to)?;
            }
        }
        Ok(())
    }

    /// What is there, if it is a directory or a regular file. What goes meanwhile is not there.
    fn look(&self, way: &[u8]) -> Result<Option<Stat>> {
        let stat = match self.from.stat(way) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(self.unseen(way, errno)),
        };
        let shown = String::from_utf8_lossy(way);
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory | FileType::RegularFile => Ok(Some(stat)),
            FileType::Symlink => {
                Err(planted(self.directory, &format!("whose {shown:?} leads elsewhere")))
            }
            FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => {
                let what = format!("whose {shown:?} is no file and no directory");
                Err(planted(self.directory, &what))
            }
        }
    }

    /// What git reads in a directory, in order.
    fn names(&self, way: &[u8]) -> Result<Vec<Vec<u8>>> {
        let mut names = match self.from.list(way) {
            Ok(names) => names,
            Err(Errno::NOENT) => return Ok(Vec::new()),
            Err(errno) => return Err(self.unseen(way, errno)),
        };
        names.retain(|(name, _)| match way {
            b"objects" => name.len() == 2 || name == b"pack",
            b"objects/pack" => name.starts_with(b"pack-"),
            _ => true,
        });
        // ORDER: `pack` after the directories of single objects, from which git moves them there.
        names.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok(names.into_iter().map(|(name, _)| [way, &name].join(&b'/')).collect())
    }

    fn file(&self, way: &[u8], stat: &Stat, to: &Path) -> Result<()> {
        let Some(mut from) = self.open(way, stat)? else { return Ok(()) };
        let failed = |e| io("copy a repository", e);
        let mut to = File::create_new(to).map_err(failed)?;
        let mut left = size(stat);
        while left > 0 {
            self.waiting.goes_on()?;
            let piece = left.min(PIECE_BYTES);
            let copied = std::io::copy(&mut (&mut from).take(piece), &mut to).map_err(failed)?;
            if copied == 0 {
                break;
            }
            left = left.saturating_sub(copied);
        }
        Ok(())
    }

    /// HOSTILE: git takes what is listed for a name, whatever is in it.
    fn tables(&self, to: &Path) -> Result<()> {
        let Some(said) = self.small(TABLES)? else { return Ok(()) };
        if said.contains(&b'/') {
            return Err(planted(self.directory, "whose tables lie elsewhere"));
        }
        fs::write(to, said).map_err(|e| io("copy a repository", e))
    }

    /// What a small file holds, if there is one.
    fn small(&self, way: &[u8]) -> Result<Option<Vec<u8>>> {
        let Some(stat) = self.look(way)? else { return Ok(None) };
        if size(&stat) > MAX_READ_BYTES {
            return Err(self.too_large(&format!("{MAX_READ_BYTES} bytes in one file of its own")));
        }
        let Some(file) = self.open(way, &stat)? else { return Ok(None) };
        let mut held = Vec::new();
        let read = file.take(MAX_READ_BYTES).read_to_end(&mut held);
        read.map_err(|e| io("read a file of a repository", e))?;
        Ok(Some(held))
    }

    fn open(&self, way: &[u8], stat: &Stat) -> Result<Option<File>> {
        match self.from.file(way, stat).open() {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == IoKind::NotFound => Ok(None),
            Err(error) => {
                let what = format!("copy the repository in {}", self.directory.display());
                Err(io(&what, error).hint("Repeat it when nothing works in the repository."))
            }
        }
    }

    fn count(&mut self, stat: &Stat) -> Result<()> {
        self.waiting.goes_on()?;
        let Room { names, bytes } = self.left;
        match (names.checked_sub(1), bytes.checked_sub(size(stat))) {
            (Some(names), Some(bytes)) => self.left = Room { names, bytes },
            (_, _) => {
                let Room { names, bytes } = self.room;
                return Err(self.too_large(&format!("{names} names or {bytes} bytes")));
            }
        }
        Ok(())
    }

    fn too_large(&self, most: &str) -> Error {
        let what = format!("the repository in {} has more than {most}", self.directory.display());
        Error::new(ErrorKind::TooLarge, what).hint("Clone a part of it, and name that.")
    }

    fn unseen(&self, way: &[u8], errno: Errno) -> Error {
        unseen(&self.directory.join(OsStr::from_bytes(way)), errno)
    }
}

/// Of directories, nothing is copied but names.
fn size(stat: &Stat) -> u64 {
    match FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile {
        true => u64::try_from(stat.st_size).unwrap_or(u64::MAX),
        false => 0,
    }
}

/// The configuration of a copy: how its objects and references are written, and nothing else.
///
/// HOSTILE: git finds by itself where what is said is not so.
fn configuration(said: &str) -> String {
    let mut written =
        "[core]\n\tbare = true\n\trepositoryformatversion = 1\n[extensions]\n".to_owned();
    let mut is_here = false;
    for line in said.lines() {
        let mut line = line.trim();
        if let Some((section, rest)) = line.strip_prefix('[').and_then(|rest| rest.split_once(']'))
        {
            is_here = section.trim().eq_ignore_ascii_case("extensions");
            line = rest;
        }
        let Some((key, value)) = line.split_once('=').filter(|_| is_here) else { continue };
        match (key.trim().to_ascii_lowercase().as_str(), value.trim()) {
            ("objectformat", "sha256") => written.push_str("\tobjectformat = sha256\n"),
            ("refstorage", "reftable") => written.push_str("\trefstorage = reftable\n"),
            (_, _) => {}
        }
    }
    written
}

fn none(directory: &Path, source: Error) -> Error {
    let what = format!("{} is no git repository", directory.display());
    let error = Error::new(ErrorKind::NotFound, what).source(source);
    error.hint("Name the directory that holds its .git.")
}

fn refused(directory: &Path, what: &str) -> Error {
    let what = format!("{} {what}", directory.display());
    Error::new(ErrorKind::Usage, what).hint("Name the repository that it leads to.")
}

fn planted(directory: &Path, what: &str) -> Error {
    let what = format!("{} has a repository {what}", directory.display());
    Error::new(ErrorKind::Usage, what).hint(
        "Look at it: an earlier command in a sandbox may have put it there. Remove it, or name another \
         repository.",
    )
}

#[cfg(test)]
#[path = "own_tests.rs"]
mod tests;

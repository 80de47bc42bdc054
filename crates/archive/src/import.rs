//! From an archive to the steps of a carry.

use crate::checked::{Checked, MAX_ARCHIVE_ENTRIES, Thing, content, too_many, wrong};
use crate::notes::Notes;
use cofferdam_core::files::{Before, ByteString, Entry, EntryKind, Load, Read, Step};
use cofferdam_core::{Error, ErrorKind, Files, GuestPath, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// What becomes of files and links that are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Over {
    /// They refuse the archive.
    #[default]
    Refuse,
    /// They are replaced. A directory never is.
    Replace,
}

/// Where an archive goes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Import {
    /// The directory, which is made where it is missing. No link on the way is followed.
    pub path: ByteString,
    /// What becomes of what is there.
    pub over: Over,
}

/// What was imported.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Imported {
    /// How many regular files.
    pub files: u64,
    /// How many directories, those among them that were there.
    pub directories: u64,
    /// How many symbolic links.
    pub links: u64,
    /// How many bytes the files hold.
    pub bytes: u64,
    /// What is not as the archive says.
    pub notes: Notes,
}

/// Puts all that an archive holds in the workspace, or nothing.
///
/// Whatever is there and would be replaced is looked at before and once more in its turn; who changes it
/// meanwhile makes it a `Conflict`. Directories that are there keep their permissions. New files have the
/// time at which they were made.
pub async fn import(files: &Files, order: &Import, archive: Checked) -> Result<Imported> {
    let mut imported = Imported { notes: archive.notes.clone(), ..Imported::default() };
    for thing in archive.things.values() {
        match thing {
            Thing::File { bytes, .. } => {
                imported.files += 1;
                imported.bytes += bytes;
            }
            Thing::Directory { .. } => imported.directories += 1,
            Thing::Link { .. } => imported.links += 1,
        }
    }
    let mut way = Way { files, over: order.over, made: BTreeSet::new(), expected: Vec::new() };
    let mut done = Vec::new();
    for (path, thing) in placed(&order.path, archive.things)? {
        if way.is_free(&path, &thing).await? == Free::Taken {
            continue;
        }
        let place = name(&path);
        let (step, content) = match thing {
            Thing::File { at, bytes, mode } => {
                let step = Step::File { path: place, mode, bytes };
                (step, Some(content(&archive.spool, at, bytes)))
            }
            Thing::Directory { mode } => {
                way.made.insert(path);
                (Step::Directory { path: place, mode }, None)
            }
            Thing::Link { target } => (Step::Link { path: place, target: target.into() }, None),
        };
        let mut load = Load::from(step);
        load.content = content.unwrap_or(load.content);
        done.push(load);
    }
    if !done.is_empty() {
        let mut load: Vec<Load> = way.expected.into_iter().map(Load::from).collect();
        load.append(&mut done);
        files.carry(load).await?;
    }
    Ok(imported)
}

/// Everything by its path in the workspace, each directory before what is in it, none missing.
fn placed(
    directory: &ByteString,
    things: BTreeMap<GuestPath, Thing>,
) -> Result<BTreeMap<GuestPath, Thing>> {
    let given = directory.as_bytes();
    let below =
        given.strip_prefix(b"/workspace").filter(|rest| matches!(rest.first(), Some(b'/') | None));
    let below = below.map(|rest| rest.strip_prefix(b"/").unwrap_or(rest)).unwrap_or(given);
    let is_root = below.split(|byte| *byte == b'/').all(|name| matches!(name, b"" | b"."));
    let top = match is_root && below.first() != Some(&b'/') {
        true => None,
        false => Some(GuestPath::new(below)?),
    };
    let mut all = BTreeMap::new();
    if let Some(top) = &top {
        all.insert(top.clone(), Thing::Directory { mode: None });
    }
    for (path, thing) in things {
        let path = match &top {
            Some(top) => GuestPath::new([top.as_bytes(), path.as_bytes()].join(&b'/'))?,
            None => path,
        };
        all.insert(path, thing);
    }
    let above: BTreeSet<GuestPath> = all.keys().flat_map(GuestPath::ancestors).collect();
    for path in above {
        all.entry(path).or_insert(Thing::Directory { mode: None });
    }
    if all.len() > MAX_ARCHIVE_ENTRIES { Err(too_many()) } else { Ok(all) }
}

/// What is known of the workspace on the way through it.
struct Way<'a> {
    files: &'a Files,
    over: Over,
    /// Directories that come with all that is in them.
    made: BTreeSet<GuestPath>,
    expected: Vec<Step>,
}

/// Whether there is something to do at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Free {
    Yes,
    /// A directory is there, as there is to be.
    Taken,
}

impl Way<'_> {
    /// Looks at a place, and keeps in mind what is to be so there.
    async fn is_free(&mut self, path: &GuestPath, thing: &Thing) -> Result<Free> {
        if path.ancestors().next().is_some_and(|above| self.made.contains(&above)) {
            return Ok(Free::Yes);
        }
        let is = match self.files.stat(OsStr::from_bytes(path.as_bytes())).await {
            Err(error) if error.kind == ErrorKind::NotFound => Before::Nothing,
            Err(error) => return Err(error),
            Ok(found) => match (found.kind, thing) {
                (EntryKind::Directory, Thing::Directory { .. }) => return Ok(Free::Taken),
                (EntryKind::File | EntryKind::Link, Thing::File { .. } | Thing::Link { .. }) => {
                    self.replaced(path, &found).await?
                }
                (EntryKind::Directory, Thing::File { .. } | Thing::Link { .. }) => {
                    return Err(taken(path, "a directory is there, which is never replaced"));
                }
                (EntryKind::File | EntryKind::Link, Thing::Directory { .. }) => {
                    return Err(taken(path, "what is there is no directory"));
                }
                (EntryKind::Fifo | EntryKind::Socket | EntryKind::Device, _) => {
                    return Err(taken(path, "what is there is no file"));
                }
            },
        };
        self.expected.push(Step::Expect { path: name(path), is });
        Ok(Free::Yes)
    }

    async fn replaced(&self, path: &GuestPath, found: &Entry) -> Result<Before> {
        if self.over == Over::Refuse {
            return Err(taken(path, "something is there already")
                .hint("Say that it is replaced: --replace (`replace`)."));
        }
        if let Some(target) = &found.target {
            return Ok(Before::Link { target: target.clone() });
        }
        let order = Read { path: name(path), length: Some(0), hash: true, ..Read::default() };
        let read = self.files.read_to(&order, &mut tokio::io::sink()).await?;
        let sha256 = read.sha256.ok_or_else(|| {
            Error::new(ErrorKind::Protocol, "the file worker told no hash of a file")
        })?;
        Ok(Before::File { sha256, mode: read.mode })
    }
}

fn taken(path: &GuestPath, what: &str) -> Error {
    let what = format!("cannot be put in the workspace: {what}");
    wrong(path.as_bytes(), ErrorKind::Conflict, &what)
}

fn name(path: &GuestPath) -> ByteString {
    path.as_bytes().to_vec().into()
}

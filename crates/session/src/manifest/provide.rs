//! What is missing of a manifest, and is brought.

use super::load::{Provisions, Source, Thing};
use crate::apply::{bytes, name, sha256, sha256_of};
use cofferdam_core::files::{Before, EntryKind, Load, Read, Step};
use cofferdam_core::{Error, ErrorKind, Files, GuestPath, Result};
use std::collections::{BTreeMap, BTreeSet};

/// What stands at a path already.
#[derive(Debug, Clone, PartialEq, Eq)]
enum There {
    Nothing,
    Directory,
    File { sha256: String, mode: u32 },
    Link { target: Vec<u8> },
    Other,
}

impl Provisions {
    /// How many things are wanted.
    pub fn count(&self) -> usize {
        self.things.len() + self.repositories.len() + self.archives.len() + self.mounts.len()
    }

    /// Whether anything of it comes to the workspace.
    pub(crate) fn brings(&self) -> bool {
        self.count() > self.mounts.len()
    }

    /// Brings what is missing, all of it or nothing. Answers how many steps that took.
    ///
    /// What is there as it is wanted stays; something else there is a `Conflict`.
    pub async fn provide(&self, files: &Files) -> Result<u64> {
        let load = self.steps(files).await?;
        let changes = load.iter().any(|load| !matches!(load.step, Step::Expect { .. }));
        if changes { files.carry(load).await } else { Ok(0) }
    }

    async fn steps(&self, files: &Files) -> Result<Vec<Load>> {
        let mut known: BTreeMap<GuestPath, There> = BTreeMap::new();
        let mut made: BTreeSet<GuestPath> = BTreeSet::new();
        let (mut expected, mut steps) = (Vec::new(), Vec::new());
        for (path, thing) in &self.things {
            let mut way: Vec<GuestPath> = path.ancestors().collect();
            way.reverse();
            for above in way {
                look(files, &above, &mut known).await?;
                match known.get(&above) {
                    Some(There::Directory) => {}
                    Some(There::Nothing) | None => {
                        if made.insert(above.clone()) {
                            expected.push(nothing(&above));
                            steps.push(Step::Directory { path: bytes(&above), mode: None }.into());
                        }
                    }
                    Some(There::File { .. } | There::Link { .. } | There::Other) => {
                        return Err(in_the_way(&above));
                    }
                }
            }
            look(files, path, &mut known).await?;
            let there = known.get(path).cloned().unwrap_or(There::Nothing);
            match (thing, there) {
                (Thing::Directory { .. }, There::Directory) => {}
                (thing, There::Nothing) => {
                    let is_new = path.ancestors().next().is_none_or(|above| !made.contains(&above));
                    // What lies in a directory that is made is not there either.
                    if is_new && !made.contains(path) {
                        expected.push(nothing(path));
                    }
                    steps.extend(brought(path, thing, &mut made));
                }
                (Thing::Link { target }, There::Link { target: there }) if *target == there => {
                    let target = there.into();
                    let is = Before::Link { target };
                    expected.push(Step::Expect { path: bytes(path), is }.into());
                }
                (Thing::File { content, mode }, There::File { sha256, mode: there })
                    if there & 0o777 == *mode && hash(content)? == sha256 =>
                {
                    let is = Before::File { sha256, mode: there };
                    expected.push(Step::Expect { path: bytes(path), is }.into());
                }
                (_, _) => return Err(in_the_way(path)),
            }
        }
        expected.append(&mut steps);
        Ok(expected)
    }
}

fn brought(path: &GuestPath, thing: &Thing, made: &mut BTreeSet<GuestPath>) -> Option<Load> {
    Some(match thing {
        Thing::File { content, mode } => Load {
            step: Step::File { path: bytes(path), mode: *mode, bytes: 0 },
            content: content.content(),
        },
        Thing::Link { target } => {
            Step::Link { path: bytes(path), target: target.clone().into() }.into()
        }
        Thing::Directory { mode } if made.insert(path.clone()) => {
            Step::Directory { path: bytes(path), mode: *mode }.into()
        }
        Thing::Directory { .. } => return None,
    })
}

fn nothing(path: &GuestPath) -> Load {
    Step::Expect { path: bytes(path), is: Before::Nothing }.into()
}

/// Looks at a path that was not looked at. Nothing is below what is no directory.
async fn look(
    files: &Files,
    path: &GuestPath,
    known: &mut BTreeMap<GuestPath, There>,
) -> Result<()> {
    if known.contains_key(path) {
        return Ok(());
    }
    let above = path.ancestors().next();
    let is_open = above.is_none_or(|above| known.get(&above) == Some(&There::Directory));
    let there = if is_open { there(files, path).await? } else { There::Nothing };
    known.insert(path.clone(), there);
    Ok(())
}

async fn there(files: &Files, path: &GuestPath) -> Result<There> {
    let entry = match files.stat(name(path)).await {
        Ok(entry) => entry,
        Err(error) if error.kind == ErrorKind::NotFound => return Ok(There::Nothing),
        Err(error) => return Err(error),
    };
    Ok(match entry.kind {
        EntryKind::Directory => There::Directory,
        EntryKind::Link => {
            let target = entry.target.map(|target| target.as_bytes().to_vec());
            There::Link { target: target.unwrap_or_default() }
        }
        EntryKind::File => {
            let order = Read { path: bytes(path), length: Some(0), hash: true, ..Read::default() };
            let read = files.read_to(&order, &mut tokio::io::sink()).await?;
            There::File { sha256: read.sha256.unwrap_or_default(), mode: read.mode }
        }
        EntryKind::Fifo | EntryKind::Socket | EntryKind::Device => There::Other,
    })
}

fn hash(content: &Source) -> Result<String> {
    let hash = match content {
        Source::Bytes(bytes) => return Ok(sha256(bytes)),
        Source::Host(file) => file.open().and_then(sha256_of),
        Source::Archived(file) => file.open().and_then(sha256_of),
    };
    hash.map_err(|e| {
        Error::new(ErrorKind::Io, "read a file of the host for the manifest").source(e)
    })
}

pub(super) fn in_the_way(path: &GuestPath) -> Error {
    let what =
        format!("{path:?} is there already, and is not what the manifest wants, or protected");
    Error::new(ErrorKind::Conflict, what).hint("Remove it, or leave it out of the manifest.")
}

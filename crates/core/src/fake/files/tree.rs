//! What is in a workspace in memory, and what requests make of it.

use crate::fake::Fault;
use crate::files::{
    Append, Copied, CopyTree, Entry, EntryKind, HasRead, List, MAX_DEPTH, MAX_ENTRIES, MAX_LINKS,
    Move, Only, Read, ReadMany, Remove, Reply, Request, Watch, Write, Written,
};
use cofferdam_wire::files::{Answer, CarryEnd, Failure, OneRead, Part, PathError, Why, parts};
use cofferdam_wire::{ByteString, hexadecimal};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};

/// The names on the way to something; the root has none.
type Place = Vec<Vec<u8>>;

/// What there is, by its place.
#[derive(Debug, Clone)]
pub(super) struct Tree {
    pub(super) nodes: BTreeMap<Place, Node>,
    access: Access,
    pub(super) faults: BTreeSet<Fault>,
}

/// Whether the workspace may be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::fake) enum Access {
    ReadOnly,
    ReadWrite,
}

#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) what: What,
    pub(super) mode: u32,
}

#[derive(Debug, Clone)]
pub(super) enum What {
    File(Vec<u8>),
    Directory,
    Link(Vec<u8>),
}

/// What is done with a link at the end of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Last {
    Follow,
    Keep,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Missing {
    Refuse,
    Make,
}

enum Step {
    Name(Vec<u8>),
    Up,
}

impl Node {
    pub(super) fn bytes(&self) -> &[u8] {
        match &self.what {
            What::File(bytes) | What::Link(bytes) => bytes,
            What::Directory => b"",
        }
    }

    pub(super) fn is_directory(&self) -> bool {
        matches!(self.what, What::Directory)
    }

    fn entry(&self, path: ByteString) -> Entry {
        let (kind, target) = match &self.what {
            What::File(_) => (EntryKind::File, None),
            What::Directory => (EntryKind::Directory, None),
            What::Link(target) => (EntryKind::Link, Some(target.clone().into())),
        };
        let size = self.bytes().len() as u64;
        Entry { path, kind, size, mode: self.mode, modified_ms: 0, links: 1, target }
    }
}

const ROOT: Node = Node { what: What::Directory, mode: 0o755 };

impl Tree {
    pub(super) fn new(access: Access, faults: BTreeSet<Fault>) -> Self {
        Self { nodes: BTreeMap::new(), access, faults }
    }

    pub(super) fn perform(&mut self, request: &Request, bytes: &[u8]) -> Result<Reply, Failure> {
        let mut entries = Vec::new();
        let answer = match request {
            Request::Read(order) => Answer::Read(self.read(order)?.0),
            Request::Write(order) => Answer::Written(self.write(order, bytes)?),
            Request::Append(order) => Answer::Written(self.append(order, bytes)?),
            Request::Stat { path } => Answer::Entry(self.stat(path)?),
            Request::List(order) => {
                let next;
                (entries, next) = self.list(order)?;
                Answer::Listed { next }
            }
            Request::MakeDirectory { path } => Answer::Made { created: self.make(path)? },
            Request::Move(order) => self.rename(order).map(|()| Answer::Done)?,
            Request::Copy(order) => Answer::Written(self.copy(order)?),
            Request::Remove(order) => self.remove(order).map(|()| Answer::Done)?,
            Request::SetMode { path, mode } => Answer::Entry(self.set_mode(path, *mode)?),
            Request::Carry(_) => Answer::Carried { steps: self.carry(bytes)? },
            // Nothing is ever left here.
            Request::Recover(_) => Answer::Recovered(CarryEnd::NoTrace),
            Request::ReadMany(order) => Answer::ReadMany(self.read_many(order).0),
            Request::CopyTree(order) => Answer::Copied(self.copy_tree(order)?),
            Request::Watch(_) => return Err(refused(Why::BadRequest, "it has no answer")),
        };
        Ok(Reply { answer, entries })
    }

    pub(super) fn read(&mut self, order: &Read) -> Result<(HasRead, Vec<u8>), Failure> {
        let (_, file) = self.file(&order.path)?;
        let all = file.bytes();
        let begin = usize::try_from(order.offset).unwrap_or(usize::MAX).min(all.len());
        let rest = all.get(begin..).unwrap_or_default();
        let wanted = order.length.and_then(|length| usize::try_from(length).ok());
        let bytes = rest.get(..wanted.unwrap_or(usize::MAX).min(rest.len())).unwrap_or_default();
        let count = bytes.len() as u64;
        if order.max_bytes.is_some_and(|max| count > max) {
            return Err(refused(Why::TooLarge, "there is more to read than the limit"));
        }
        let read = HasRead {
            size: all.len() as u64,
            bytes: count,
            sha256: order.hash.then(|| sha256(all)),
            mode: file.mode,
            modified_ms: 0,
        };
        Ok((read, bytes.to_vec()))
    }

    pub(super) fn read_many(&mut self, order: &ReadMany) -> (Vec<OneRead>, Vec<u8>) {
        let mut bytes = Vec::new();
        let one = |path: &ByteString| {
            let left = order.total_bytes.saturating_sub(bytes.len() as u64);
            let max_bytes = Some(order.max_bytes.min(left));
            match self.read(&Read { path: path.clone(), max_bytes, ..Read::default() }) {
                Ok((read, own)) => {
                    bytes.extend(own);
                    OneRead::Read(read)
                }
                Err(failure) => OneRead::Failed { failure, bytes: 0 },
            }
        };
        let mut all: Vec<OneRead> = order.paths.iter().map(one).collect();
        if self.faults.contains(&Fault::FilesOneStopsAll)
            && let Some(first) = all.iter().position(|one| matches!(one, OneRead::Failed { .. }))
        {
            let failure = refused(Why::Io, "a file before it could not be read");
            let read = |one: &OneRead| if let OneRead::Read(read) = one { read.bytes } else { 0 };
            let kept: u64 = all.iter().take(first).map(read).sum();
            bytes.truncate(usize::try_from(kept).unwrap_or(0));
            all.iter_mut().skip(first).for_each(|one| {
                *one = OneRead::Failed { failure: failure.clone(), bytes: 0 };
            });
        }
        (all, bytes)
    }

    pub(super) fn write(&mut self, order: &Write, bytes: &[u8]) -> Result<Written, Failure> {
        let mode = order.mode.map(permissions).transpose()?;
        let place = self.changeable(&order.path)?;
        let before = match self.nodes.get(&place) {
            None => None,
            Some(node) => Some(regular(node)?.clone()),
        };
        let only = match self.faults.contains(&Fault::FilesOverwrite) {
            true => &Only::Always,
            false => &order.only,
        };
        match (only, &before) {
            (Only::Always | Only::IfMissing, None) | (Only::Always | Only::IfExists, Some(_)) => {}
            (Only::IfMissing, Some(_)) => return Err(there_already()),
            (Only::IfExists | Only::IfMatch(_), None) => {
                return Err(refused(Why::NotFound, "there is no such file"));
            }
            (Only::IfMatch(hash), Some(node)) => {
                if !sha256(node.bytes()).eq_ignore_ascii_case(hash) {
                    return Err(refused(Why::Changed, "its bytes are others"));
                }
            }
        }
        let mode = mode.or(before.as_ref().map(|node| node.mode)).unwrap_or(0o644);
        let mut kept = bytes.to_vec();
        if self.faults.contains(&Fault::FilesDropBytes) {
            kept.retain(|byte| byte.is_ascii() && *byte != 0);
        }
        self.put(place, What::File(kept), mode);
        Ok(written(bytes, before.is_none()))
    }

    fn append(&mut self, order: &Append, bytes: &[u8]) -> Result<Written, Failure> {
        let mode = order.mode.map(permissions).transpose()?;
        let place = self.changeable(&order.path)?;
        let (mut all, mode, created) = match self.nodes.get(&place) {
            None => (Vec::new(), mode.unwrap_or(0o644), true),
            Some(node) => (regular(node)?.bytes().to_vec(), node.mode, false),
        };
        all.extend_from_slice(bytes);
        self.put(place, What::File(all), mode);
        Ok(written(bytes, created))
    }

    fn stat(&mut self, path: &ByteString) -> Result<Entry, Failure> {
        let place = self.place(path, Last::Keep, Missing::Refuse)?;
        Ok(self.get(&place)?.entry(ByteString::default()))
    }

    fn list(&mut self, order: &List) -> Result<(Vec<Entry>, Option<ByteString>), Failure> {
        let depth = usize::try_from(order.depth).unwrap_or(MAX_DEPTH).min(MAX_DEPTH);
        let limit = usize::try_from(order.limit.min(MAX_ENTRIES)).unwrap_or(0);
        if depth == 0 || limit == 0 {
            return Err(refused(Why::BadRequest, "a list has at least one level and entry"));
        }
        let root = self.place(&order.path, Last::Follow, Missing::Refuse)?;
        if !matches!(self.get(&root)?.what, What::Directory) {
            return Err(refused(Why::WrongType, "a part of the path is no directory"));
        }
        let after: Option<Place> = order.after.as_ref().map(|after| {
            after.as_bytes().split(|byte| *byte == b'/').map(<[u8]>::to_vec).collect()
        });
        let below = self.nodes.iter().filter_map(|(place, node)| {
            let below = place.strip_prefix(root.as_slice())?;
            let fits = (1..=depth).contains(&below.len());
            let behind = after.as_deref().is_none_or(|after| below > after);
            (fits && behind).then(|| node.entry(below.join(&b'/').into()))
        });
        let mut entries: Vec<Entry> = below.take(limit + 1).collect();
        let more = entries.len() > limit;
        entries.truncate(limit);
        let next = entries.last().filter(|_| more).map(|last| last.path.clone());
        Ok((entries, next))
    }

    pub(super) fn make(&mut self, path: &ByteString) -> Result<bool, Failure> {
        let place = self.place(path, Last::Keep, Missing::Make)?;
        match self.get(&place).map(|node| &node.what) {
            Ok(What::Directory) => Ok(false),
            Ok(What::File(_) | What::Link(_)) => Err(there_already()),
            Err(_) => {
                self.writable()?;
                self.put(place, What::Directory, 0o755);
                Ok(true)
            }
        }
    }

    pub(super) fn rename(&mut self, order: &Move) -> Result<(), Failure> {
        let from = self.place(&order.from, Last::Keep, Missing::Refuse)?;
        let node = self.get(&from)?.clone();
        let to = self.changeable(&order.to)?;
        if from.is_empty() || to.starts_with(&from) && to != from {
            return Err(refused(Why::BadRequest, "a directory cannot be moved into itself"));
        }
        match self.nodes.get(&to).map(|node| &node.what) {
            Some(_) if !order.replace => return Err(there_already()),
            Some(What::Directory) if self.has_entries(&to) => {
                return Err(refused(Why::Exists, "a directory is there that is not empty"));
            }
            Some(What::Directory) if !matches!(node.what, What::Directory) => {
                return Err(refused(Why::WrongType, "a directory is there"));
            }
            Some(_) | None => {}
        }
        let moved: Vec<Place> =
            self.nodes.keys().filter(|place| place.starts_with(&from)).cloned().collect();
        for old in moved {
            if let Some(node) = self.nodes.remove(&old) {
                let below = old.get(from.len()..).unwrap_or_default();
                self.nodes.insert([to.as_slice(), below].concat(), node);
            }
        }
        Ok(())
    }

    fn copy(&mut self, order: &Move) -> Result<Written, Failure> {
        let (_, file) = self.file(&order.from)?;
        let (bytes, mode) = (file.bytes().to_vec(), file.mode);
        let to = self.changeable(&order.to)?;
        let before = self.nodes.get(&to).map(regular).transpose()?;
        if before.is_some() && !order.replace {
            return Err(there_already());
        }
        let created = before.is_none();
        self.put(to, What::File(bytes.clone()), mode);
        Ok(written(&bytes, created))
    }

    fn copy_tree(&mut self, order: &CopyTree) -> Result<Copied, Failure> {
        let from = self.place(&order.from, Last::Keep, Missing::Refuse)?;
        self.get(&from)?;
        let to = self.changeable(&order.to)?;
        if from.is_empty() || to.starts_with(&from) && to != from {
            return Err(refused(Why::BadRequest, "a directory cannot be copied into itself"));
        }
        if self.nodes.contains_key(&to) {
            return Err(there_already());
        }
        let mut copied = Copied::default();
        let below = self.nodes.iter().filter(|(place, _)| place.starts_with(&from));
        let below: Vec<(Place, Node)> =
            below.map(|(place, node)| (place.clone(), node.clone())).collect();
        if below.len() as u64 > order.max_entries {
            return Err(refused(Why::TooLarge, "there are more things to copy than may be"));
        }
        for (old, node) in below {
            match &node.what {
                What::File(bytes) => {
                    copied.files += 1;
                    copied.bytes += bytes.len() as u64;
                }
                What::Directory => copied.directories += 1,
                What::Link(_) if self.faults.contains(&Fault::FilesCopyForgetsLinks) => continue,
                What::Link(_) => copied.links += 1,
            }
            let rest = old.get(from.len()..).unwrap_or_default();
            self.nodes.insert([to.as_slice(), rest].concat(), node);
        }
        Ok(copied)
    }

    pub(super) fn remove(&mut self, order: &Remove) -> Result<(), Failure> {
        let place = self.place(&order.path, Last::Keep, Missing::Refuse)?;
        if !self.faults.contains(&Fault::FilesRemoveAgain) {
            self.get(&place)?;
        }
        self.writable()?;
        if place.is_empty() {
            return Err(refused(Why::BadRequest, "the path names no entry of a directory"));
        }
        if self.has_entries(&place) && !order.recursive {
            return Err(refused(Why::Exists, "it is a directory that is not empty"));
        }
        self.nodes.retain(|other, _| !other.starts_with(&place));
        Ok(())
    }

    pub(super) fn set_mode(&mut self, path: &ByteString, mode: u32) -> Result<Entry, Failure> {
        let mode = permissions(mode)?;
        let place = self.place(path, Last::Keep, Missing::Refuse)?;
        self.writable()?;
        match self.nodes.get_mut(&place) {
            Some(Node { what: What::Link(_), .. }) => Err(no_file()),
            Some(node) => {
                node.mode = mode;
                Ok(node.entry(ByteString::default()))
            }
            None => Err(refused(Why::NotFound, "there is no such thing")),
        }
    }

    pub(super) fn link(&mut self, path: &ByteString, target: &[u8]) -> Result<(), Failure> {
        let place = self.changeable(path)?;
        self.put(place, What::Link(target.to_vec()), 0o777);
        Ok(())
    }

    /// The places that a watch is about, and the directories there are.
    pub(super) fn watched(
        &mut self,
        order: &Watch,
    ) -> Result<(Vec<Place>, BTreeSet<Place>), Failure> {
        let mut places = Vec::new();
        for path in &order.paths {
            let place = self.place(path, Last::Keep, Missing::Refuse)?;
            self.get(&place)?;
            places.push(place);
        }
        if places.is_empty() {
            places.push(Place::new());
        }
        let directories = self.nodes.iter().filter(|(_, node)| node.is_directory());
        let known = directories.map(|(place, _)| place.clone()).chain([Place::new()]).collect();
        Ok((places, known))
    }

    /// What is at a path itself.
    pub(super) fn kept(&mut self, path: &ByteString) -> Result<&Node, Failure> {
        let place = self.place(path, Last::Keep, Missing::Refuse)?;
        self.get(&place)
    }

    /// The regular file of a path, links followed.
    pub(super) fn file(&mut self, path: &ByteString) -> Result<(Place, &Node), Failure> {
        let place = self.place(path, Last::Follow, Missing::Refuse)?;
        let file = regular(self.get(&place)?)?;
        Ok((place, file))
    }

    /// A place that something may be put at.
    fn changeable(&mut self, path: &ByteString) -> Result<Place, Failure> {
        let place = self.place(path, Last::Keep, Missing::Make)?;
        self.writable()?;
        match place.is_empty() {
            true => Err(refused(Why::BadRequest, "the path names no entry of a directory")),
            false => Ok(place),
        }
    }

    fn writable(&self) -> Result<(), Failure> {
        match self.access {
            Access::ReadWrite => Ok(()),
            Access::ReadOnly => Err(refused(Why::Denied, "the workspace is read-only")),
        }
    }

    fn get(&self, place: &Place) -> Result<&Node, Failure> {
        let found = if place.is_empty() { Some(&ROOT) } else { self.nodes.get(place) };
        found.ok_or_else(|| refused(Why::NotFound, "there is no such thing"))
    }

    fn put(&mut self, place: Place, what: What, mode: u32) {
        self.nodes.insert(place, Node { what, mode });
    }

    fn has_entries(&self, place: &Place) -> bool {
        self.nodes.keys().any(|other| other.starts_with(place) && other != place)
    }

    /// Where a path leads. What is last may be missing.
    fn place(&mut self, path: &ByteString, last: Last, missing: Missing) -> Result<Place, Failure> {
        let mut through = Place::new();
        let mut left = steps(path.as_bytes())?;
        let mut links = 0;
        while let Some(step) = left.pop() {
            let Step::Name(name) = step else {
                if through.pop().is_none() && !self.faults.contains(&Fault::PathsLeave) {
                    return Err(refused(Why::Escape, "the path leaves the workspace"));
                }
                continue;
            };
            through.push(name);
            let is_last = left.is_empty();
            match self.nodes.get(&through).map(|node| &node.what) {
                Some(What::Link(target)) if !is_last || last == Last::Follow => {
                    links += 1;
                    if links > MAX_LINKS {
                        return Err(refused(Why::WrongType, "it leads through too many links"));
                    }
                    if target.first() == Some(&b'/') {
                        through.clear();
                    } else {
                        through.pop();
                    }
                    let target = match self.faults.contains(&Fault::LinksLeadOut) {
                        true => target.strip_prefix(b"/").unwrap_or(target),
                        false => target,
                    };
                    left.extend(steps(target)?);
                }
                Some(What::File(_)) if !is_last => {
                    return Err(refused(Why::WrongType, "a part of the path is no directory"));
                }
                None if !is_last && missing == Missing::Make => {
                    self.writable()?;
                    self.put(through.clone(), What::Directory, 0o755);
                }
                None if !is_last => {
                    return Err(refused(Why::NotFound, "a directory above it is missing"));
                }
                Some(_) | None => {}
            }
        }
        Ok(through)
    }
}

/// The steps of a path, the first one last.
fn steps(path: &[u8]) -> Result<Vec<Step>, Failure> {
    let parts = parts(path, &[b"/workspace"]).map_err(|error| match error {
        PathError::TooLong => refused(Why::BadRequest, "the path is too long"),
        PathError::HasNul => refused(Why::BadRequest, "the path holds a NUL byte"),
        PathError::Outside => refused(Why::Escape, "the path leads out of the workspace"),
    })?;
    let steps = parts.into_iter().rev().map(|part| match part {
        Part::Name(name) => Step::Name(name.to_vec()),
        Part::Up => Step::Up,
    });
    Ok(steps.collect())
}

fn regular(node: &Node) -> Result<&Node, Failure> {
    match node.what {
        What::File(_) => Ok(node),
        What::Directory | What::Link(_) => Err(no_file()),
    }
}

pub(super) fn no_file() -> Failure {
    refused(Why::WrongType, "it is no regular file")
}

fn there_already() -> Failure {
    refused(Why::Exists, "something is there already")
}

fn permissions(mode: u32) -> Result<u32, Failure> {
    match mode {
        0..=0o777 => Ok(mode),
        _ => Err(refused(Why::BadRequest, "permissions are at most 0777")),
    }
}

fn written(bytes: &[u8], created: bool) -> Written {
    Written { bytes: bytes.len() as u64, sha256: sha256(bytes), created }
}

pub(super) fn sha256(bytes: &[u8]) -> String {
    hexadecimal(Sha256::digest(bytes))
}

pub(super) fn refused(why: Why, detail: &str) -> Failure {
    Failure { why, detail: detail.to_owned(), errno: 0 }
}

//! What changed between two trees of one session, for who looks through the layer.
//!
//! Only paths that differ are looked at in the workspace below: whether something was there before, and
//! whether what was copied up is another by now.

use super::blobs::Blobs;
use super::content::{Copier, attributes};
use super::point::{MAX_POINT_PATHS, PointDeed, PointEffects, PointPath};
use super::tree::{Attribute, Entry, Node, Tree, in_order};
use crate::text_or_base64;
use cofferdam_core::files::EntryKind;
use cofferdam_core::{Below, ChangeKind, Effect, GuestPath, LayerLook, LayerMark, Result};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, openat, readlinkat, statat};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// How many names of the workspace are looked at below what a layer hides.
const MAX_HIDDEN: usize = 100_000;
/// How many bytes are compared with the workspace. What was copied up beyond that counts as changed.
const MAX_COMPARED_BYTES: u64 = 64 << 20;
/// The permissions that count: set-id bits never come out of a layer.
pub(super) const MODE: u32 = 0o1777;

/// What was done between two trees, in the order of paths, and whether there may be more.
pub(crate) struct Differences {
    pub(crate) effects: Vec<Effect>,
    pub(crate) more: bool,
}

impl Differences {
    /// The counts, and the first paths.
    pub(super) fn told(&self) -> PointEffects {
        let mut told = PointEffects { more: self.more, ..PointEffects::default() };
        for effect in &self.effects {
            let (what, count) = match effect.kind {
                ChangeKind::Added => (PointDeed::Added, &mut told.added),
                ChangeKind::Modified => (PointDeed::Changed, &mut told.changed),
                ChangeKind::Removed => (PointDeed::Removed, &mut told.removed),
            };
            *count += 1;
            if told.paths.len() < MAX_POINT_PATHS {
                let (path, path_base64) = text_or_base64(effect.path.as_bytes().to_vec());
                told.paths.push(PointPath { what, path, path_base64 });
            }
        }
        told
    }
}

/// What is below a layer.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Lower<'l> {
    /// The workspace, which may be gone by now.
    pub(crate) workspace: Option<&'l Path>,
    /// Whether the layer is a copy of it: then nothing of it is seen through the layer, and what the layer
    /// does not have is not there.
    pub(crate) is_copy: bool,
}

/// What changed from one tree to another, over this workspace.
pub(crate) fn compare(
    (before, after): (&Tree, &Tree),
    blobs: &Blobs,
    lower: Lower<'_>,
) -> Result<Differences> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let workspace = lower.workspace.and_then(|path| openat(CWD, path, flags, Mode::empty()).ok());
    let mut comparing = Comparing {
        blobs,
        workspace,
        is_copy: lower.is_copy,
        copier: Copier::new(MAX_COMPARED_BYTES),
        hidden: 0,
        more: false,
    };
    let mut paths = differing(before, after);
    for path in paths.clone().into_iter().filter(|_| !lower.is_copy) {
        let hides = |tree: &Tree| tree.get(&path).is_some_and(Entry::hides);
        if hides(before) != hides(after) {
            comparing.below(&path, &mut paths);
        }
    }
    let (mut old, mut new) = (LayerLook::default(), LayerLook::default());
    for path in &paths {
        let Ok(name) = GuestPath::new(path) else {
            comparing.more = true;
            continue;
        };
        for (tree, look) in [(before, &mut old), (after, &mut new)] {
            if let Some(state) = comparing.state(tree, path) {
                look.entries.insert(name.clone(), state);
            }
        }
    }
    Ok(Differences { effects: new.effects_since(&old), more: comparing.more })
}

/// The paths that are not the same in both, the top left out.
pub(super) fn differing(before: &Tree, after: &Tree) -> BTreeSet<Vec<u8>> {
    let mut paths = BTreeSet::new();
    let mut old = before.entries().iter().skip(1).peekable();
    let mut new = after.entries().iter().skip(1).peekable();
    loop {
        let order = match (old.peek(), new.peek()) {
            (None, None) => return paths,
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some(a), Some(b)) => in_order(&a.path, &b.path),
        };
        let one = if order.is_le() { old.next() } else { None };
        let other = if order.is_ge() { new.next() } else { None };
        let is_same = match (one, other) {
            (Some(a), Some(b)) => is_alike((before, a), (after, b)),
            (Some(_) | None, _) => false,
        };
        if let Some(entry) = one.or(other).filter(|_| !is_same) {
            paths.insert(entry.path.clone());
        }
    }
}

fn is_alike((before, a): (&Tree, &Entry), (after, b): (&Tree, &Entry)) -> bool {
    let (first, second) = (before.resolved(a), after.resolved(b));
    first.node == second.node
        && (first.mode & MODE) == (second.mode & MODE)
        && first.hides() == second.hides()
        && first.is_removal() == second.is_removal()
        && (first.node.content().is_none() || own(&first.attributes).eq(own(&second.attributes)))
}

/// The attributes that something inside gave; the kernel notes others of the files of a layer.
fn own(attributes: &[Attribute]) -> impl Iterator<Item = &Attribute> {
    attributes.iter().filter(|(name, _)| !name.starts_with(b"user.overlay."))
}

struct Comparing<'c> {
    blobs: &'c Blobs,
    workspace: Option<OwnedFd>,
    is_copy: bool,
    copier: Copier,
    hidden: usize,
    more: bool,
}

impl Comparing<'_> {
    /// What a path is in a tree: `None` where it is as the workspace has it, `Some(None)` where it hides
    /// what is there.
    fn state(&mut self, tree: &Tree, path: &[u8]) -> Option<Option<LayerMark>> {
        if let Some(entry) = tree.get(path) {
            let entry = tree.resolved(entry);
            return match entry.is_removal() {
                true => self.lower(path).map(|_| None),
                false => Some(Some(self.mark(entry, path))),
            };
        }
        if self.is_copy {
            return Some(None);
        }
        let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        let mut ways = slashes.filter_map(|(at, _)| path.get(..at));
        let is_hidden = ways.any(|way| tree.get(way).is_some_and(Entry::hides));
        match is_hidden {
            true => self.lower(path).map(|_| None),
            false => None,
        }
    }

    fn mark(&mut self, entry: &Entry, path: &[u8]) -> LayerMark {
        let (kind, size, identity) = match &entry.node {
            Node::Directory => (EntryKind::Directory, 0, (0, 0)),
            Node::File(content) => {
                let attributes: Vec<&Attribute> = own(&entry.attributes).collect();
                (EntryKind::File, content.size, (number_of(attributes), content.blob))
            }
            Node::Link(target) => (EntryKind::Link, target.len() as u64, (0, number_of(target))),
            Node::Fifo => (EntryKind::Fifo, 0, (0, 0)),
            Node::Socket => (EntryKind::Socket, 0, (0, 0)),
            Node::Removed | Node::Again(_) => (EntryKind::Device, 0, (0, 0)),
        };
        let below = self.below_mark(entry, path);
        LayerMark { kind, mode: entry.mode & MODE, size, identity, changed_ns: 0, below }
    }

    fn below_mark(&mut self, entry: &Entry, path: &[u8]) -> Below {
        let Some((above, stat)) = self.lower(path) else { return Below::Nothing };
        let kind = FileType::from_raw_mode(stat.st_mode);
        let is_alike = (stat.st_mode & MODE) == (entry.mode & MODE);
        let name = OsStr::from_bytes(super::tree::split(path).1);
        let is_same = match (&entry.node, kind) {
            (Node::Directory, FileType::Directory) => is_alike,
            (Node::File(content), FileType::RegularFile) => {
                let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
                let size = u64::try_from(stat.st_size).ok();
                is_alike
                    && size == Some(content.size)
                    && openat(&above, name, flags, Mode::empty()).is_ok_and(|file| {
                        let Ok(blob) = self.blobs.open(*content) else { return false };
                        let both = (file.as_fd(), blob.as_fd());
                        let there = attributes(file.as_fd(), path);
                        there.is_ok_and(|there| own(&there).eq(own(&entry.attributes)))
                            && self.copier.same(both, content.size, path).unwrap_or(false)
                    })
            }
            (Node::Link(target), FileType::Symlink) => readlinkat(&above, name, Vec::new())
                .is_ok_and(|there| there.as_bytes() == target.as_slice()),
            (Node::Fifo, FileType::Fifo) | (Node::Socket, FileType::Socket) => is_alike,
            (
                Node::Directory
                | Node::File(_)
                | Node::Link(_)
                | Node::Removed
                | Node::Fifo
                | Node::Socket
                | Node::Again(_),
                _,
            ) => false,
        };
        if is_same { Below::Same } else { Below::Other }
    }

    /// What the workspace has under a path, and the directory that it is in.
    fn lower(&self, path: &[u8]) -> Option<(OwnedFd, Stat)> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut at = self.workspace.as_ref()?.try_clone().ok()?;
        let (parent, name) = super::tree::split(path);
        for part in parent.split(|byte| *byte == b'/').filter(|part| !part.is_empty()) {
            at = openat(&at, part, flags, Mode::empty()).ok()?;
        }
        let stat = statat(&at, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some((at, stat))
    }

    /// All that the workspace has below a path.
    fn below(&mut self, path: &[u8], paths: &mut BTreeSet<Vec<u8>>) {
        let mut waiting = vec![path.to_vec()];
        while let Some(path) = waiting.pop() {
            let Some((above, stat)) = self.lower(&path) else { continue };
            if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
                continue;
            }
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let name = OsStr::from_bytes(super::tree::split(&path).1);
            let listed = openat(&above, name, flags, Mode::empty()).and_then(Dir::read_from);
            let Ok(listed) = listed else {
                self.more = true;
                continue;
            };
            for entry in listed.flatten() {
                let name = entry.file_name().to_bytes();
                if name == b"." || name == b".." {
                    continue;
                }
                if self.hidden >= MAX_HIDDEN {
                    self.more = true;
                    return;
                }
                self.hidden += 1;
                let inner = [path.as_slice(), b"/", name].concat();
                paths.insert(inner.clone());
                waiting.push(inner);
            }
        }
    }
}

fn number_of(what: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

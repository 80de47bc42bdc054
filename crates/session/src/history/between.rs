//! What differs between two points, for who looks through the layer. Pure but for the contents of
//! blobs.
//!
//! A point holds what its layer held. What that layer did not have is what the workspace has, now:
//! nobody kept what it had then. What the layer hid is nothing. So a directory that was removed, made
//! anew or brought back takes along all that the workspace has below it.

use super::blobs::Blobs;
use super::compare::{MODE, differing};
use super::content::Copier;
use super::tree::{Content, Entry, Node, Tree};
use super::walk::failed;
use cofferdam_core::files::EntryKind;
use cofferdam_core::{
    ByteString, Change, ChangeKind, Error, ErrorKind, FileState, GuestPath, Held, Result, Standing,
    WorkspaceEntry, WorkspaceOrder, is_at_or_below, is_within, leads_out,
};
use rustix::fs::fstat;
use rustix::io::pread;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::os::fd::{AsFd, OwnedFd};

/// How much of a content is hashed at once.
const PIECE_BYTES: usize = 128 << 10;
/// Rights of another user or group.
const SET_ID: u32 = 0o6000;
/// The permissions of a file that count.
const FILE_MODE: u32 = 0o777;

/// Two points of one history, and where somebody wants to know what differs.
pub(super) struct Between<'b> {
    pub(super) from: &'b Tree,
    pub(super) to: &'b Tree,
    pub(super) scope: &'b [GuestPath],
    pub(super) blobs: &'b Blobs,
    /// The path of the workspace, as links may name it.
    pub(super) workspace: &'b [u8],
    /// Whether the layer is a copy, through which nothing of the workspace is seen.
    pub(super) is_copy: bool,
}

/// Where the content of a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// In the history.
    Kept(Content),
    /// In the workspace.
    Workspace,
}

/// A change, and where the contents of its files are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) change: Change,
    pub(super) before: Option<Place>,
    pub(super) after: Option<Place>,
}

/// What a path is at a point.
#[derive(Clone, Copy)]
enum View<'v> {
    Nothing,
    Own(&'v Entry),
    Workspace(&'v WorkspaceEntry),
}

impl Between<'_> {
    /// The paths that may differ.
    fn paths(&self) -> BTreeSet<Vec<u8>> {
        let mut paths = differing(self.from, self.to);
        let (before, after) = (Names::of(self.from), Names::of(self.to));
        paths.extend(after.grown_since(&before));
        paths
    }

    /// What has to be known of the workspace.
    pub(super) fn wanted(&self) -> Result<WorkspaceOrder> {
        let mut order = WorkspaceOrder::default();
        if self.is_copy {
            return Ok(order);
        }
        for path in self.paths() {
            let name = guest_path(&path)?;
            let hides = |tree: &Tree| tree.get(&path).is_some_and(Entry::hides);
            if hides(self.from) != hides(self.to) {
                order.below.extend(self.wanted_below(&name));
            }
            if !is_within(&name, self.scope) {
                continue;
            }
            for tree in [self.from, self.to] {
                if let Some(Node::File(content)) =
                    tree.get(&path).map(|entry| &tree.resolved(entry).node)
                {
                    order.hashed.insert(name.clone(), content.size);
                }
            }
            order.at.insert(name);
        }
        // Those of one point that are hidden by the other one are looked at with all that is below.
        order.at.extend(order.below.iter().filter(|path| is_within(path, self.scope)).cloned());
        Ok(order)
    }

    /// The paths at and below which all of the workspace is wanted, for a directory where that is so.
    fn wanted_below(&self, path: &GuestPath) -> Vec<GuestPath> {
        if is_within(path, self.scope) {
            return vec![path.clone()];
        }
        self.scope.iter().filter(|root| is_at_or_below(root, path)).cloned().collect()
    }

    /// All changes, in the order of paths.
    pub(super) fn changes(
        &self,
        workspace: &BTreeMap<GuestPath, WorkspaceEntry>,
    ) -> Result<Vec<Item>> {
        let mut paths: BTreeSet<GuestPath> = workspace.keys().cloned().collect();
        for path in self.paths() {
            paths.insert(guest_path(&path)?);
        }
        let mut comparing = Comparing {
            between: self,
            workspace,
            before: Names::of(self.from),
            after: Names::of(self.to),
            copier: Copier::new(u64::MAX),
        };
        let mut items = Vec::new();
        for path in paths.iter().filter(|path| is_within(path, self.scope)) {
            items.extend(comparing.item(path)?);
        }
        note_moves(&mut items);
        Ok(items)
    }
}

struct Comparing<'c> {
    between: &'c Between<'c>,
    workspace: &'c BTreeMap<GuestPath, WorkspaceEntry>,
    before: Names<'c>,
    after: Names<'c>,
    copier: Copier,
}

impl<'c> Comparing<'c> {
    fn item(&mut self, path: &GuestPath) -> Result<Option<Item>> {
        let before = self.view(self.between.from, path);
        let after = self.view(self.between.to, path);
        let kind = match (before, after) {
            (View::Nothing, View::Nothing) | (View::Workspace(_), View::Workspace(_)) => {
                return Ok(None);
            }
            (View::Nothing, View::Own(_) | View::Workspace(_)) => ChangeKind::Added,
            (View::Own(_) | View::Workspace(_), View::Nothing) => ChangeKind::Removed,
            (View::Own(_) | View::Workspace(_), View::Own(_) | View::Workspace(_)) => {
                if self.is_same(path, before, after)? {
                    return Ok(None);
                }
                ChangeKind::Modified
            }
        };
        let target = match after {
            View::Own(Entry { node: Node::Link(target), .. }) => Some(target),
            View::Own(_) | View::Nothing | View::Workspace(_) => None,
        };
        let is_file =
            |entry: &Entry| matches!(entry.node, Node::File(_)) && entry.mode & SET_ID != 0;
        let change = Change {
            path: path.clone(),
            kind,
            before: state(before),
            after: state(after),
            moved_from: None,
            linked_to: self.after.first(path.as_bytes()).map(guest_path).transpose()?,
            leads_out: target.is_some_and(|target| leads_out(path, target, self.between.workspace)),
            set_id: matches!(after, View::Own(entry) if is_file(entry)),
            version: 0,
            standing: Standing::Held(Held::History),
        };
        Ok(Some(Item { change, before: place(before), after: place(after) }))
    }

    fn view(&self, tree: &'c Tree, path: &GuestPath) -> View<'c> {
        let bytes = path.as_bytes();
        if let Some(entry) = tree.get(bytes) {
            let entry = tree.resolved(entry);
            return if entry.is_removal() { View::Nothing } else { View::Own(entry) };
        }
        let hides = |above: GuestPath| tree.get(above.as_bytes()).is_some_and(Entry::hides);
        let is_seen = !self.between.is_copy && !path.ancestors().any(hides);
        match self.workspace.get(path).filter(|_| is_seen) {
            Some(entry) => View::Workspace(entry),
            None => View::Nothing,
        }
    }

    fn is_same(&mut self, path: &GuestPath, before: View<'_>, after: View<'_>) -> Result<bool> {
        let (Some(old), Some(new)) = (state(before), state(after)) else { return Ok(false) };
        if old.kind != new.kind || old.mode != new.mode || old.target != new.target {
            return Ok(false);
        }
        if new.kind != EntryKind::File {
            return Ok(true);
        }
        Ok(old.size == new.size && !self.is_relinked(path) && self.same(path, before, after)?)
    }

    /// Whether two files of one size have the same content.
    fn same(&mut self, path: &GuestPath, before: View<'_>, after: View<'_>) -> Result<bool> {
        let name = path.as_bytes();
        match (place(before), place(after), before, after) {
            (Some(Place::Kept(old)), Some(Place::Kept(new)), _, _) => {
                if old.blob == new.blob {
                    return Ok(true);
                }
                let (old_file, new_file) =
                    (whole(self.between.blobs, old, name)?, whole(self.between.blobs, new, name)?);
                // Where only their holes differ that is told by what they hold.
                Ok(self.copier.same((old_file.as_fd(), new_file.as_fd()), new.size, name)?
                    || hash(&old_file, name)? == hash(&new_file, name)?)
            }
            (Some(Place::Kept(kept)), Some(Place::Workspace), _, View::Workspace(there))
            | (Some(Place::Workspace), Some(Place::Kept(kept)), View::Workspace(there), _) => {
                let file = whole(self.between.blobs, kept, name)?;
                Ok(there.sha256 == Some(hash(&file, name)?))
            }
            _ => Ok(false),
        }
    }

    /// Whether it is one file with names that were others before.
    fn is_relinked(&self, path: &GuestPath) -> bool {
        let identity = |path: &GuestPath| match self.view(self.between.from, path) {
            View::Nothing => None,
            View::Own(_) => Some((None, self.before.leader(path.as_bytes()).to_vec())),
            View::Workspace(entry) => Some((Some(entry.identity), Vec::new())),
        };
        let own = identity(path);
        let others = self.after.members(path.as_bytes()).iter();
        others.filter_map(|other| GuestPath::new(other).ok()).any(|other| identity(&other) != own)
    }
}

fn guest_path(bytes: impl AsRef<[u8]>) -> Result<GuestPath> {
    GuestPath::new(bytes)
}

/// Which names of a tree are one file.
struct Names<'t> {
    groups: HashMap<&'t [u8], Vec<&'t [u8]>>,
    leaders: HashMap<&'t [u8], &'t [u8]>,
}

impl<'t> Names<'t> {
    fn of(tree: &'t Tree) -> Self {
        let mut groups: HashMap<&[u8], Vec<&[u8]>> = HashMap::new();
        let mut leaders = HashMap::new();
        for entry in tree.entries() {
            if let Node::Again(_) = entry.node {
                let first = tree.resolved(entry);
                // What has several names and is no file counts by what it is.
                if matches!(first.node, Node::File(_)) && !first.is_removal() {
                    let leader = first.path.as_slice();
                    groups.entry(leader).or_insert_with(|| vec![leader]).push(&entry.path);
                    leaders.insert(leader, leader);
                    leaders.insert(entry.path.as_slice(), leader);
                }
            }
        }
        Self { groups, leaders }
    }

    /// The first name of the file; the path itself where it has no other.
    fn leader<'p>(&'p self, path: &'p [u8]) -> &'p [u8] {
        self.leaders.get(path).copied().unwrap_or(path)
    }

    fn members(&self, path: &[u8]) -> &[&'t [u8]] {
        let leader = self.leaders.get(path);
        leader.and_then(|leader| self.groups.get(leader)).map_or(&[], Vec::as_slice)
    }

    /// Another name of the same file, the first there is.
    fn first(&self, path: &[u8]) -> Option<&'t [u8]> {
        self.leaders.get(path).copied().filter(|leader| *leader != path)
    }

    /// The names of files that were not one file before.
    fn grown_since(&self, before: &Self) -> Vec<Vec<u8>> {
        let mut grown = Vec::new();
        for members in self.groups.values() {
            let leader = |path: &&[u8]| before.leaders.get(path).copied();
            let first = members.first().and_then(leader);
            if first.is_none() || members.iter().any(|member| leader(member) != first) {
                grown.extend(members.iter().map(|member| member.to_vec()));
            }
        }
        grown
    }
}

fn place(view: View<'_>) -> Option<Place> {
    match view {
        View::Own(Entry { node: Node::File(content), .. }) => Some(Place::Kept(*content)),
        View::Workspace(entry) if entry.state.kind == EntryKind::File => Some(Place::Workspace),
        View::Nothing | View::Own(_) | View::Workspace(_) => None,
    }
}

fn state(view: View<'_>) -> Option<FileState> {
    let entry = match view {
        View::Nothing => return None,
        View::Workspace(entry) => return Some(entry.state.clone()),
        View::Own(entry) => entry,
    };
    let (kind, mode, size) = match &entry.node {
        Node::Directory => (EntryKind::Directory, entry.mode & MODE, 0),
        Node::File(content) => (EntryKind::File, entry.mode & FILE_MODE, content.size),
        Node::Link(target) => (EntryKind::Link, FILE_MODE, target.len() as u64),
        Node::Fifo => (EntryKind::Fifo, entry.mode & FILE_MODE, 0),
        Node::Socket => (EntryKind::Socket, entry.mode & FILE_MODE, 0),
        Node::Removed | Node::Again(_) => (EntryKind::Device, entry.mode & FILE_MODE, 0),
    };
    let target = match &entry.node {
        Node::Link(target) => Some(ByteString::from(target.clone())),
        Node::Directory
        | Node::File(_)
        | Node::Removed
        | Node::Fifo
        | Node::Socket
        | Node::Again(_) => None,
    };
    Some(FileState { kind, mode, size, target })
}

/// Notes files that came where another one of the same content went. For people alone.
fn note_moves(items: &mut [Item]) {
    let mut gone: HashMap<u64, Vec<GuestPath>> = HashMap::new();
    for item in items.iter().filter(|item| item.change.kind == ChangeKind::Removed) {
        if let Some(Place::Kept(content)) = item.before {
            gone.entry(content.blob).or_default().push(item.change.path.clone());
        }
    }
    for item in items.iter_mut().filter(|item| item.change.kind == ChangeKind::Added) {
        // Empty files say nothing.
        if let Some(Place::Kept(Content { blob, size: 1.. })) = item.after {
            item.change.moved_from = gone.get_mut(&blob).and_then(Vec::pop);
        }
    }
}

/// A content of the history, if it is whole.
pub(super) fn whole(blobs: &Blobs, content: Content, name: &[u8]) -> Result<OwnedFd> {
    let file = blobs.open(content)?;
    let has = fstat(&file).map_err(|e| failed("look at", name, e))?.st_size;
    if u64::try_from(has).ok() == Some(content.size) {
        return Ok(file);
    }
    let what = format!("the content of {:?} is damaged", String::from_utf8_lossy(name));
    Err(Error::new(ErrorKind::Io, what).hint("Name another point of the history."))
}

fn hash(file: &OwnedFd, name: &[u8]) -> Result<[u8; 32]> {
    let mut piece = vec![0; PIECE_BYTES];
    let (mut hash, mut at) = (Sha256::new(), 0);
    loop {
        let count = pread(file, &mut piece, at).map_err(|e| failed("read", name, e))?;
        if count == 0 {
            return Ok(hash.finalize().into());
        }
        hash.update(piece.get(..count).unwrap_or_default());
        at += count as u64;
    }
}

#[cfg(test)]
#[path = "between_tests.rs"]
mod tests;

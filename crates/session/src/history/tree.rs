//! What a layer holds at one moment: everything that is needed to make it again, but for the content of
//! files, which lies in blobs.
//!
//! A tree is written as one file: a lead, the number of entries, the entries in the order of a walk (a
//! directory before what is in it, names in the order of their bytes), and the SHA-256 of all that.
//!
//! HOSTILE: names come from inside, and a disk may damage a file. What is read is checked entry by entry
//! before any of it is used: no way leads out of the tree, and nothing stands twice.

use super::encode;
use cofferdam_core::{Error, ErrorKind, Result};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// What a file of this format begins with.
pub(super) const LEAD: &[u8; 16] = b"cofferdam-tree\x01\n";
/// The most entries of a tree.
pub(crate) const MAX_TREE_ENTRIES: usize = 1_000_000;
/// The most bytes of a file of a tree.
pub(crate) const MAX_TREE_BYTES: u64 = 1 << 30;
/// Directories within directories. A walk holds a descriptor of each.
pub(crate) const MAX_TREE_DEPTH: usize = 200;
/// The most bytes of one name, of where a link leads, and of an attribute: what the kernel allows.
pub(super) const NAME_BYTES: usize = 255;
pub(super) const LINK_BYTES: usize = 4096;
pub(crate) const ATTRIBUTE_BYTES: usize = 64 << 10;
/// What leads the names of attributes that something inside can give: its own, what the kernel notes of
/// the layer's files, and lists of who may do what.
pub(crate) const ATTRIBUTES: [&[u8]; 2] = [b"user.", b"system.posix_acl_"];

/// All that a layer holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tree {
    entries: Vec<Entry>,
}

/// One name in a layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Its path below the layer's top, which itself is the empty path.
    pub(crate) path: Vec<u8>,
    /// What it is.
    pub(crate) node: Node,
    /// Its permissions, set-id bits included.
    pub(crate) mode: u32,
    /// Its owner on the host, which counts where root makes it again.
    pub(crate) user: u32,
    /// Its group on the host.
    pub(crate) group: u32,
    /// When its content was changed last.
    pub(crate) modified: Moment,
    /// When it was read last, as far as anybody kept that.
    pub(crate) accessed: Moment,
    /// Its attributes, in the order of their names.
    pub(crate) attributes: Vec<Attribute>,
}

/// A moment of a file, in seconds since 1970 and nanoseconds.
pub(crate) type Moment = (i64, u32);
/// Name and value of an attribute.
pub(crate) type Attribute = (Vec<u8>, Vec<u8>);

/// What stands under a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Node {
    Directory,
    File(Content),
    /// Where it leads.
    Link(Vec<u8>),
    /// The mark of what was removed.
    Removed,
    Fifo,
    Socket,
    /// Another name of the file at this place in the tree.
    Again(u32),
}

/// Where the content of a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Content {
    /// The number of its blob.
    pub(crate) blob: u64,
    /// How many bytes it has, holes included.
    pub(crate) size: u64,
}

impl Node {
    /// The content of a file.
    pub(crate) fn content(&self) -> Option<Content> {
        match self {
            Self::File(content) => Some(*content),
            Self::Directory
            | Self::Link(_)
            | Self::Removed
            | Self::Fifo
            | Self::Socket
            | Self::Again(_) => None,
        }
    }

    /// The place of the file that it is another name of.
    pub(crate) fn first(&self) -> Option<u32> {
        match self {
            Self::Again(of) => Some(*of),
            Self::Directory
            | Self::File(_)
            | Self::Link(_)
            | Self::Removed
            | Self::Fifo
            | Self::Socket => None,
        }
    }
}

impl Entry {
    /// Whether it is as another one, but for the time when it was read.
    pub(crate) fn is_as(&self, other: &Self) -> bool {
        let Self { path, node, mode, user, group, modified, accessed: _, attributes } = self;
        (path, node, mode) == (&other.path, &other.node, &other.mode)
            && (user, group, modified) == (&other.user, &other.group, &other.modified)
            && *attributes == other.attributes
    }

    /// Whether it hides what the workspace has below its path.
    pub(crate) fn hides(&self) -> bool {
        let is_mark = |(name, value): &Attribute| {
            let name = name.as_slice();
            (name == b"user.overlay.opaque" || name == b"trusted.overlay.opaque") && value == b"y"
        };
        self.node != Node::Directory || self.attributes.iter().any(is_mark)
    }

    /// Whether it stands for what was removed.
    pub(crate) fn is_removal(&self) -> bool {
        let is_mark = |(name, _): &Attribute| name == b"user.overlay.whiteout";
        let is_empty = self.node.content().is_some_and(|content| content.size == 0);
        self.node == Node::Removed || is_empty && self.attributes.iter().any(is_mark)
    }
}

impl Tree {
    /// A tree of these entries, if they are one.
    pub(crate) fn new(entries: Vec<Entry>) -> Result<Self> {
        check(&entries)?;
        Ok(Self { entries })
    }

    /// Its entries in the order of a walk, the top first.
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// What stands at a path.
    pub(crate) fn get(&self, path: &[u8]) -> Option<&Entry> {
        let place = self.entries.binary_search_by(|entry| in_order(&entry.path, path));
        self.entries.get(place.ok()?)
    }

    /// The entry itself, or the one of which it is another name.
    pub(crate) fn resolved<'t>(&'t self, entry: &'t Entry) -> &'t Entry {
        let first = entry.node.first().and_then(|of| self.entries.get(of as usize));
        first.unwrap_or(entry)
    }

    /// Whether it is as another one, but for times of reading and for what the kernel notes at the top.
    pub(crate) fn is_as(&self, other: &Self) -> bool {
        let (Some((top, rest)), Some((top_of_other, others))) =
            (self.entries.split_first(), other.entries.split_first())
        else {
            return false;
        };
        let top = Entry { attributes: top_of_other.attributes.clone(), ..top.clone() };
        top.is_as(top_of_other)
            && rest.len() == others.len()
            && rest.iter().zip(others).all(|(a, b)| a.is_as(b))
    }

    /// How many files and directories it has, and bytes of content.
    pub(crate) fn size(&self) -> (u64, u64) {
        let contents = self.entries.iter().filter_map(|entry| entry.node.content());
        let bytes = contents.map(|content| content.size);
        (self.entries.len() as u64, bytes.fold(0, u64::saturating_add))
    }

    /// The blobs that it names.
    pub(crate) fn blobs(&self) -> impl Iterator<Item = u64> + '_ {
        self.entries.iter().filter_map(|entry| Some(entry.node.content()?.blob))
    }

    /// The same tree with other blobs, each of which is asked for once.
    pub(crate) fn with_blobs(&self, mut of: impl FnMut(Content) -> Result<u64>) -> Result<Self> {
        let mut known = BTreeMap::new();
        let mut entries = self.entries.clone();
        for entry in &mut entries {
            if let Node::File(content) = &mut entry.node {
                let blob = match known.get(&content.blob) {
                    Some(blob) => *blob,
                    None => *known.entry(content.blob).or_insert(of(*content)?),
                };
                content.blob = blob;
            }
        }
        Ok(Self { entries })
    }

    /// The file of it.
    pub(crate) fn encode(&self) -> Result<Vec<u8>> {
        let mut out = LEAD.to_vec();
        out.extend(u32::try_from(self.entries.len()).unwrap_or(u32::MAX).to_le_bytes());
        for entry in &self.entries {
            encode::write_entry(&mut out, entry);
        }
        let sum = Sha256::digest(&out);
        out.extend(sum);
        check_size(out.len() as u64)?;
        Ok(out)
    }

    /// Reads a file of one. What is not whole is damage.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        encode::read(bytes).ok_or_else(damaged).and_then(|entries| {
            check(&entries).map_err(|error| damaged().source(error))?;
            Ok(Self { entries })
        })
    }
}

/// The order of a walk.
pub(crate) fn in_order(a: &[u8], b: &[u8]) -> std::cmp::Ordering {
    // The empty path is the top, before a name that begins with whatever.
    let parts = |path| <[u8]>::split(path, |byte: &u8| *byte == b'/');
    parts(a).cmp(parts(b))
}

/// Refuses the file of a tree that nobody would read again.
pub(super) fn check_size(bytes: u64) -> Result<()> {
    if bytes <= MAX_TREE_BYTES {
        return Ok(());
    }
    let what = format!("the list of the layer has more than {MAX_TREE_BYTES} bytes");
    Err(Error::new(ErrorKind::TooLarge, what)
        .hint("Remove what the session does not need, or carry over what it made."))
}

fn damaged() -> Error {
    Error::new(ErrorKind::Io, "the list of what a layer held is damaged")
        .hint("Go to another point of the history.")
}

/// Refuses what no walk of a layer finds.
fn check(entries: &[Entry]) -> Result<()> {
    let wrong = |entry: &Entry, why: &str| {
        let path = String::from_utf8_lossy(&entry.path);
        Err(Error::new(ErrorKind::Io, format!("{path:?} {why}")))
    };
    let Some((top, rest)) = entries.split_first().filter(|(top, _)| top.path.is_empty()) else {
        return Err(Error::new(ErrorKind::Io, "a list without a top"));
    };
    if top.node != Node::Directory || entries.len() > MAX_TREE_ENTRIES {
        return wrong(top, "is no top of a tree");
    }
    let mut above: Vec<&[u8]> = Vec::new();
    let mut before = top;
    for (place, entry) in entries.iter().enumerate() {
        if !has_good_values(entry) {
            return wrong(entry, "has what nothing in a layer has");
        }
        if let Node::Again(of) = entry.node {
            let first = entries.get(of as usize).filter(|_| (of as usize) < place);
            let is_file = |first: &Entry| !matches!(first.node, Node::Directory | Node::Again(_));
            if !first.is_some_and(is_file) {
                return wrong(entry, "is another name of nothing");
            }
        }
    }
    for entry in rest {
        if in_order(&before.path, &entry.path).is_ge() {
            return wrong(entry, "stands twice, or out of order");
        }
        let (parent, name) = split(&entry.path);
        if entry.path.starts_with(b"/") {
            return wrong(entry, "is absolute");
        }
        if name.is_empty() || name == b"." || name == b".." || name.len() > NAME_BYTES {
            return wrong(entry, "has a name that is none");
        }
        while above.last().is_some_and(|last| *last != parent) {
            above.pop();
        }
        if above.is_empty() && !parent.is_empty() {
            return wrong(entry, "stands in no directory");
        }
        if entry.node == Node::Directory {
            above.push(&entry.path);
        }
        if above.len() > MAX_TREE_DEPTH {
            return wrong(entry, "lies too deep");
        }
        before = entry;
    }
    Ok(())
}

fn has_good_values(entry: &Entry) -> bool {
    let is_ours = |(name, value): &Attribute| {
        ATTRIBUTES.iter().any(|lead| name.starts_with(lead))
            && !name.contains(&0)
            && name.len() <= NAME_BYTES
            && value.len() <= ATTRIBUTE_BYTES
    };
    let is_whole_link = match &entry.node {
        Node::Link(target) => {
            !target.is_empty() && !target.contains(&0) && target.len() <= LINK_BYTES
        }
        Node::Directory
        | Node::File(_)
        | Node::Removed
        | Node::Fifo
        | Node::Socket
        | Node::Again(_) => true,
    };
    let is_moment = |(_, rest): Moment| rest < 1_000_000_000;
    entry.mode <= 0o7777
        && !entry.path.contains(&0)
        && is_whole_link
        && is_moment(entry.modified)
        && is_moment(entry.accessed)
        && entry.attributes.iter().all(is_ours)
}

/// The directory of a path, and the name in it.
pub(crate) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(at) => {
            let (parent, rest) = path.split_at(at);
            (parent, rest.get(1..).unwrap_or_default())
        }
        None => (b"", path),
    }
}

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;

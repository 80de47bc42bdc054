//! What of a layer goes out, and what stays.
//!
//! Owners are those of this host, and times of reading are nobody's business: neither goes out. Nor do
//! set-id bits, lists of access rights, which name users, and what the kernel notes for itself, but for
//! the marks without which the layer would be another one.

use super::super::blobs::Blobs;
use super::super::store::History;
use super::super::tree::{Content, Entry, Node, Tree};
use super::{
    ExportManifest, ExportedWorkspace, FORMAT, MAX_EXPORTED_BYTES, MAX_EXPORTED_FILE_BYTES,
    MAX_EXPORTED_LIST_BYTES, write,
};
use cofferdam_core::{Error, ErrorKind, Result, hexadecimal};
use sha2::{Digest, Sha256};

/// Rights of another user or group.
pub(super) const SET_ID: u32 = 0o6000;
/// What leads the names of marks of the kernel.
pub(super) const OVERLAY: &[u8] = b"user.overlay.";
/// What leads the names of attributes that anybody may give.
pub(super) const OWN: &[u8] = b"user.";

/// A snapshot that is to go out.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) manifest: ExportManifest,
    /// How many files and directories lose their set-id bits.
    pub(crate) set_id: u64,
    /// How many attributes stay behind.
    pub(crate) attributes: u64,
    pub(super) list: Vec<u8>,
    /// Where the contents are here, in the order of the list.
    pub(super) contents: Vec<Content>,
    pub(super) blobs: Blobs,
}

impl History {
    /// What goes out of a point. Nothing is locked for that: whoever removes the point meanwhile makes
    /// the rest fail, and contents never change.
    pub(crate) fn outgoing(&self, number: u32, workspace: ExportedWorkspace) -> Result<Outgoing> {
        let said = self.header(number)?.said;
        let (mut set_id, mut attributes) = (0, 0);
        let mut entries = self.tree(number)?.entries().to_vec();
        for entry in &mut entries {
            let had = entry.attributes.len();
            set_id += u64::from(entry.mode & SET_ID != 0);
            clean(entry)?;
            attributes += (had - entry.attributes.len()) as u64;
        }
        let mut contents = Vec::new();
        let numbered = Tree::new(entries)?.with_blobs(|content| {
            contents.push(content);
            Ok(contents.len() as u64)
        })?;
        let list = numbered.encode()?;
        if list.len() as u64 > MAX_EXPORTED_LIST_BYTES {
            let what =
                format!("the list of the snapshot has more than {MAX_EXPORTED_LIST_BYTES} bytes");
            return Err(too_large(what));
        }
        let blobs = self.blobs()?;
        let (files, bytes) = numbered.size();
        let manifest = ExportManifest {
            format: FORMAT,
            cofferdam: env!("CARGO_PKG_VERSION").to_owned(),
            made_ms: said.made_ms,
            label: said.label,
            workspace,
            files,
            bytes,
            contents: contents.len() as u64,
            content_bytes: content_bytes(&numbered, &contents, &blobs)?,
            list_bytes: list.len() as u64,
            list_sha256: hexadecimal(Sha256::digest(&list)),
        };
        Ok(Outgoing { manifest, set_id, attributes, list, contents, blobs })
    }
}

/// Leaves of an entry what goes out.
fn clean(entry: &mut Entry) -> Result<()> {
    (entry.user, entry.group) = (0, 0);
    entry.mode &= !SET_ID;
    entry.accessed = entry.modified;
    for (name, _) in &entry.attributes {
        if name == b"user.overlay.redirect" || name == b"user.overlay.metacopy" {
            let path = String::from_utf8_lossy(&entry.path);
            let what = format!("{path:?} is in the layer by a reference alone");
            return Err(Error::new(ErrorKind::Unsupported, what)
                .hint("Copy the file in the session, and remove the original."));
        }
    }
    for (name, value) in &mut entry.attributes {
        if name == b"user.overlay.origin" {
            // That it was copied up is told; of which file of which disk is not.
            value.clear();
        }
    }
    let is_top = entry.path.is_empty();
    let node = entry.node.clone();
    entry.attributes.retain(|attribute| is_carried((&node, is_top), attribute));
    Ok(())
}

/// Whether an attribute goes from one machine to another.
pub(super) fn is_carried(
    (node, is_top): (&Node, bool),
    (name, value): &(Vec<u8>, Vec<u8>),
) -> bool {
    let is_directory = *node == Node::Directory;
    let (is_file, is_empty) = match node {
        Node::File(content) => (true, content.size == 0),
        Node::Directory
        | Node::Link(_)
        | Node::Removed
        | Node::Fifo
        | Node::Socket
        | Node::Again(_) => (false, false),
    };
    match name.strip_prefix(OVERLAY) {
        // Everything of the workspace would be hidden by it, and nobody would show that.
        Some(b"opaque") => is_directory && !is_top && (value == b"y" || value == b"x"),
        Some(b"impure") => is_directory && value == b"y",
        Some(b"origin") => (is_directory || is_file) && value.is_empty(),
        Some(b"whiteout") => is_file && is_empty && value.len() <= 1,
        Some(_) => false,
        None => (is_directory || is_file) && name.starts_with(OWN),
    }
}

/// How many bytes of contents follow. More than may come in do not go out.
fn content_bytes(tree: &Tree, contents: &[Content], blobs: &Blobs) -> Result<u64> {
    let mut each = Vec::new();
    let mut all = 0_u64;
    for content in contents {
        if content.size > MAX_EXPORTED_FILE_BYTES {
            return Err(too_large(format!("a file has more than {MAX_EXPORTED_FILE_BYTES} bytes")));
        }
        let held = write::held(blobs, *content)?;
        each.push(held);
        all = all.saturating_add(held);
    }
    if unpacked(tree, &each) > MAX_EXPORTED_BYTES {
        let what = format!("the files of the snapshot have more than {MAX_EXPORTED_BYTES} bytes");
        return Err(too_large(what));
    }
    Ok(all)
}

/// How many bytes all files take where the layer is made, with one content in each of them.
pub(super) fn unpacked(tree: &Tree, held: &[u64]) -> u64 {
    let of = |blob: u64| {
        let place = usize::try_from(blob.checked_sub(1)?).ok()?;
        held.get(place).copied()
    };
    tree.blobs().filter_map(of).fold(0, u64::saturating_add)
}

fn too_large(what: String) -> Error {
    Error::new(ErrorKind::TooLarge, what)
        .hint("Remove what the session does not need, and take another snapshot.")
}

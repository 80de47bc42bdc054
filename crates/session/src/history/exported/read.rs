//! An exported snapshot, read. Whoever reads one keeps what comes where nobody sees it, until
//! [`Reading::finish`] found all of it whole.

use super::super::tree::{Node, Tree};
use super::outgoing::{SET_ID, is_carried, unpacked};
use super::{
    ExportManifest, FORMAT, LEAD, MAX_EXPORTED_BYTES, MAX_EXPORTED_ENTRIES,
    MAX_EXPORTED_FILE_BYTES, MAX_EXPORTED_LIST_BYTES, MAX_MANIFEST_BYTES, PIECE_BYTES,
};
use cofferdam_core::{Error, ErrorKind, Result, hexadecimal};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::Read;

/// The bytes of the lead that are the same in every format.
const NAME_BYTES: usize = 18;

/// Reads an exported snapshot to its end and keeps nothing of it: says what it is, or what is wrong.
pub fn check_export(input: impl Read) -> Result<ExportManifest> {
    let mut reading = Reading::new(input);
    let manifest = reading.manifest()?;
    let list = reading.list(&manifest)?;
    for size in list.sizes.clone() {
        reading.content(size, |_, _| Ok(()))?;
    }
    reading.finish(&manifest, &list)?;
    Ok(manifest)
}

/// The list of an exported snapshot, and what is to follow.
#[derive(Debug)]
pub(super) struct List {
    pub(super) tree: Tree,
    /// The sizes of the contents.
    pub(super) sizes: Vec<u64>,
}

/// An exported snapshot that is being read.
pub(super) struct Reading<R> {
    input: R,
    all: Sha256,
    part: Option<Sha256>,
    /// How many bytes each content has without holes, as far as they were read.
    held: Vec<u64>,
    /// How many bytes may still come.
    left: u64,
    piece: Vec<u8>,
}

impl<R: Read> Reading<R> {
    pub(super) fn new(input: R) -> Self {
        let (all, piece) = (Sha256::new(), vec![0; PIECE_BYTES as usize]);
        Self { input, all, part: None, held: Vec::new(), left: 0, piece }
    }

    pub(super) fn manifest(&mut self) -> Result<ExportManifest> {
        self.lead()?;
        let length = u32::from_le_bytes(self.array()?);
        if length > MAX_MANIFEST_BYTES {
            return Err(hostile("its manifest has more than 64 KiB"));
        }
        let text = self.bytes(length.into())?;
        let value: serde_json::Value =
            serde_json::from_slice(&text).map_err(|e| damaged("its manifest").source(e))?;
        if value.get("format").and_then(serde_json::Value::as_u64) != Some(FORMAT.into()) {
            return Err(unknown_format("the manifest"));
        }
        let manifest: ExportManifest =
            serde_json::from_value(value).map_err(|e| damaged("its manifest").source(e))?;
        check_amounts(&manifest)?;
        self.left = manifest.content_bytes;
        Ok(manifest)
    }

    fn lead(&mut self) -> Result<()> {
        let mut lead = Vec::new();
        self.input.by_ref().take(LEAD.len() as u64).read_to_end(&mut lead).map_err(unread)?;
        self.all.update(&lead);
        let named = lead.len().min(NAME_BYTES);
        if lead.get(..named) != LEAD.get(..named) {
            return Err(Error::new(ErrorKind::NotAFile, "the file is no exported snapshot")
                .hint("Make one with `cofferdam snapshot export`."));
        }
        if lead.len() < LEAD.len() {
            return Err(cut());
        }
        match lead == LEAD {
            true => Ok(()),
            false => Err(unknown_format("the file")),
        }
    }

    pub(super) fn list(&mut self, manifest: &ExportManifest) -> Result<List> {
        let bytes = self.bytes(manifest.list_bytes)?;
        if hexadecimal(Sha256::digest(&bytes)) != manifest.list_sha256 {
            return Err(damaged("its list"));
        }
        let tree = Tree::decode(&bytes).map_err(|e| hostile("its list is none").source(e))?;
        let sizes = check_tree(&tree)?;
        if tree.size() != (manifest.files, manifest.bytes)
            || sizes.len() as u64 != manifest.contents
        {
            return Err(hostile("its manifest tells of other files than its list"));
        }
        Ok(List { tree, sizes })
    }

    /// Reads the next content, which has this size, piece by piece.
    pub(super) fn content(
        &mut self,
        size: u64,
        mut each: impl FnMut(u64, &[u8]) -> Result<()>,
    ) -> Result<()> {
        self.part = Some(Sha256::new());
        let (mut after, mut held) = (0, 0);
        loop {
            let offset = u64::from_le_bytes(self.array()?);
            let length = u32::from_le_bytes(self.array()?);
            if length == 0 {
                if offset != size {
                    return Err(hostile("a content is not as large as its list says"));
                }
                break;
            }
            let end = offset.checked_add(length.into()).filter(|end| *end <= size);
            if length > PIECE_BYTES || offset < after || end.is_none() {
                return Err(hostile("a piece of a content lies where none may be"));
            }
            after = end.unwrap_or(size);
            held += u64::from(length);
            self.left = self.left.checked_sub(length.into()).ok_or_else(|| {
                hostile("there are more bytes of contents than its manifest says")
            })?;
            let mut piece = std::mem::take(&mut self.piece);
            let part = piece.get_mut(..length as usize).unwrap_or_default();
            let read = self.fill(part).and_then(|()| each(offset, part));
            self.piece = piece;
            read?;
        }
        self.held.push(held);
        let sum: [u8; 32] = match self.part.take() {
            Some(part) => part.finalize().into(),
            None => return Err(damaged("a content")),
        };
        if self.array::<32>()? != sum {
            return Err(damaged(&format!("content {}", self.held.len())));
        }
        Ok(())
    }

    /// Compares the last sum, and that nothing follows and nothing is more than may be.
    pub(super) fn finish(mut self, manifest: &ExportManifest, list: &List) -> Result<()> {
        if self.held.iter().sum::<u64>() != manifest.content_bytes {
            return Err(hostile("there are fewer bytes of contents than its manifest says"));
        }
        if unpacked(&list.tree, &self.held) > MAX_EXPORTED_BYTES {
            let what = format!("all its files have more than {MAX_EXPORTED_BYTES} bytes");
            return Err(too_large(&what));
        }
        let sum: [u8; 32] = self.all.clone().finalize().into();
        if self.array::<32>()? != sum {
            return Err(damaged("its sum"));
        }
        let mut more = [0];
        match self.input.read(&mut more) {
            Ok(0) => Ok(()),
            Ok(_) => Err(hostile("something follows its end")),
            Err(cause) => Err(unread(cause)),
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    /// LIMIT: no room is made for what only a number says.
    fn bytes(&mut self, length: u64) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.input.by_ref().take(length).read_to_end(&mut bytes).map_err(unread)?;
        if (bytes.len() as u64) < length {
            return Err(cut());
        }
        self.all.update(&bytes);
        Ok(bytes)
    }

    fn fill(&mut self, place: &mut [u8]) -> Result<()> {
        self.input.read_exact(place).map_err(|cause| {
            match cause.kind() == std::io::ErrorKind::UnexpectedEof {
                true => cut(),
                false => unread(cause),
            }
        })?;
        self.all.update(&*place);
        if let Some(part) = &mut self.part {
            part.update(&*place);
        }
        Ok(())
    }
}

/// Refuses more than may come in before any of it comes.
fn check_amounts(manifest: &ExportManifest) -> Result<()> {
    let ExportManifest { files, bytes, contents, content_bytes, list_bytes, .. } = manifest;
    if *list_bytes > MAX_EXPORTED_LIST_BYTES {
        return Err(too_large(&format!("its list has more than {MAX_EXPORTED_LIST_BYTES} bytes")));
    }
    if *files > MAX_EXPORTED_ENTRIES || contents > files {
        return Err(too_large(&format!("it has more than {MAX_EXPORTED_ENTRIES} files")));
    }
    if *content_bytes > MAX_EXPORTED_BYTES {
        return Err(too_large(&format!("its contents have more than {MAX_EXPORTED_BYTES} bytes")));
    }
    match content_bytes > bytes {
        true => Err(hostile("it has more bytes of contents than of files")),
        false => Ok(()),
    }
}

/// Refuses what an export never writes, by the name of the entry. Says the sizes of the contents.
fn check_tree(tree: &Tree) -> Result<Vec<u64>> {
    let mut sizes: BTreeMap<u64, u64> = BTreeMap::new();
    for entry in tree.entries() {
        let wrong = |why: &str| {
            let path = String::from_utf8_lossy(&entry.path);
            Err(hostile(&format!("{path:?} {why}")))
        };
        if entry.mode & SET_ID != 0 {
            return wrong("has set-id bits");
        }
        if (entry.user, entry.group) != (0, 0) {
            return wrong("names an owner");
        }
        let is_top = entry.path.is_empty();
        if let Some((name, _)) =
            entry.attributes.iter().find(|one| !is_carried((&entry.node, is_top), one))
        {
            return wrong(&format!("has the attribute {:?}", String::from_utf8_lossy(name)));
        }
        if !entry.attributes.is_sorted_by(|(a, _), (b, _)| a < b) {
            return wrong("has an attribute twice, or out of order");
        }
        if let Node::File(content) = entry.node {
            if content.size > MAX_EXPORTED_FILE_BYTES {
                return wrong(&format!("has more than {MAX_EXPORTED_FILE_BYTES} bytes"));
            }
            let next = sizes.len() as u64 + 1;
            let known = sizes.get(&content.blob).copied();
            if known.map_or(content.blob != next, |known| known != content.size) {
                return wrong("has a content that is none");
            }
            sizes.insert(content.blob, content.size);
        }
    }
    Ok(sizes.into_values().collect())
}

fn hostile(what: &str) -> Error {
    Error::new(ErrorKind::Denied, format!("the exported snapshot is refused: {what}"))
        .hint("Export the snapshot again, and import nothing that you do not trust.")
}

fn too_large(what: &str) -> Error {
    Error::new(ErrorKind::TooLarge, format!("the exported snapshot is refused: {what}"))
}

fn damaged(what: &str) -> Error {
    Error::new(ErrorKind::Io, format!("the exported snapshot is damaged: {what} is not whole"))
        .hint("Copy the file again, or export the snapshot again.")
}

fn cut() -> Error {
    Error::new(ErrorKind::Io, "the exported snapshot is damaged: its end is missing")
        .hint("Copy the file again, or export the snapshot again.")
}

fn unknown_format(what: &str) -> Error {
    Error::new(ErrorKind::Unsupported, format!("{what} is of another format than {FORMAT}"))
        .hint("Use the version of Cofferdam that wrote it.")
}

fn unread(cause: std::io::Error) -> Error {
    Error::new(ErrorKind::Io, "read the exported snapshot").source(cause)
}

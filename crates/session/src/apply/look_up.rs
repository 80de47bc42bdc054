//! What stands at the paths of a patch.

use crate::patch::{Executable, MAX_PATCHED_BYTES, MAX_PATCHED_FILE_BYTES, Node, Patch, Tree};
use cofferdam_core::files::{ByteString, EntryKind, List, MAX_DEPTH, MAX_ENTRIES, Read};
use cofferdam_core::{Error, ErrorKind, Files, GuestPath, Result, hexadecimal};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

/// How many names below a directory are looked at that is to make room for a file.
const MAX_BELOW: usize = 10_000;
/// How much of a file of the host is read at once.
const PIECE_BYTES: usize = 64 << 10;

/// What a patch is planned on.
pub(super) struct Found {
    pub(super) tree: Tree,
    /// Every path that was looked for, and of files what identifies them.
    pub(super) looked: BTreeMap<GuestPath, Option<FileMark>>,
}

/// What has to be so when a file is changed.
pub(super) struct FileMark {
    pub(super) sha256: String,
    pub(super) mode: u32,
}

/// Looks everything up that a patch names. What is below a link or a file is not there.
pub(super) async fn look_up(files: &Files, patch: &Patch) -> Result<Found> {
    let directories = patch.directories();
    let mut found = Found { tree: Tree::new(), looked: BTreeMap::new() };
    let mut left = MAX_PATCHED_BYTES;
    // A path sorts behind those that it lies in.
    for path in patch.paths() {
        let way = path.ancestors().next();
        let is_open =
            way.is_none_or(|above| matches!(found.tree.get(&above), Some(Node::Directory { .. })));
        let node = if is_open { node(files, &path, &directories, &mut left).await? } else { None };
        let (node, mark) = node.map_or((None, None), |(node, mark)| (Some(node), mark));
        found.tree.extend(node.map(|node| (path.clone(), node)));
        found.looked.insert(path, mark);
    }
    Ok(found)
}

async fn node(
    files: &Files,
    path: &GuestPath,
    directories: &BTreeSet<GuestPath>,
    left: &mut usize,
) -> Result<Option<(Node, Option<FileMark>)>> {
    let entry = match files.stat(name(path)).await {
        Ok(entry) => entry,
        Err(error) if error.kind == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    Ok(Some(match entry.kind {
        EntryKind::File => {
            let (node, mark) = file(files, path, left).await?;
            (node, Some(mark))
        }
        EntryKind::Link => {
            let target = entry.target.as_ref().map(ByteString::as_bytes).unwrap_or_default();
            (Node::Link { target: target.into() }, None)
        }
        EntryKind::Directory => {
            let below = match directories.contains(path) {
                true => below(files, path).await?,
                false => None,
            };
            (Node::Directory { below }, None)
        }
        EntryKind::Fifo | EntryKind::Socket | EntryKind::Device => (Node::Other, None),
    }))
}

async fn file(files: &Files, path: &GuestPath, left: &mut usize) -> Result<(Node, FileMark)> {
    let order = Read {
        path: bytes(path),
        max_bytes: Some(MAX_PATCHED_FILE_BYTES as u64),
        ..Read::default()
    };
    let mut content = Vec::new();
    let read = files.read_to(&order, &mut content).await?;
    *left = left.checked_sub(content.len()).ok_or_else(|| {
        let what =
            format!("the files of the patch have more than {MAX_PATCHED_BYTES} bytes together");
        Error::new(ErrorKind::TooLarge, what).hint("Split the patch.")
    })?;
    let executable = if read.mode & 0o100 == 0 { Executable::No } else { Executable::Yes };
    // Of the bytes that came, so that what is planned and what is expected are the same.
    let mark = FileMark { sha256: sha256(&content), mode: read.mode };
    Ok((Node::File { content: Arc::from(content), executable }, mark))
}

/// Everything below a directory that is no directory itself, or an empty one. `None` for too much.
async fn below(files: &Files, path: &GuestPath) -> Result<Option<BTreeSet<GuestPath>>> {
    let depth = u32::try_from(MAX_DEPTH).unwrap_or(u32::MAX);
    let mut order = List { path: bytes(path), depth, after: None, limit: MAX_ENTRIES };
    let (mut all, mut holding) = (BTreeSet::new(), BTreeSet::new());
    loop {
        let page = files.list(&order).await?;
        for entry in &page.entries {
            let below = GuestPath::new([path.as_bytes(), entry.path.as_bytes()].join(&b'/'))?;
            holding.extend(below.ancestors().next());
            all.insert(below);
        }
        if all.len() > MAX_BELOW {
            return Ok(None);
        }
        match page.next {
            Some(next) => order.after = Some(next),
            None => return Ok(Some(all.difference(&holding).cloned().collect())),
        }
    }
}

pub(crate) fn bytes(path: &GuestPath) -> ByteString {
    path.as_bytes().to_vec().into()
}

pub(crate) fn sha256(content: &[u8]) -> String {
    hexadecimal(Sha256::digest(content))
}

/// The same for a file of the host, a piece at a time.
pub(crate) fn sha256_of(mut file: impl std::io::Read) -> std::io::Result<String> {
    let (mut hash, mut piece) = (Sha256::new(), vec![0; PIECE_BYTES]);
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(hexadecimal(hash.finalize())),
            count => hash.update(piece.get(..count).unwrap_or_default()),
        }
    }
}

pub(crate) fn name(path: &GuestPath) -> &OsStr {
    OsStr::from_bytes(path.as_bytes())
}

//! An exported snapshot becomes a point of a history.

use super::super::compare::{Lower, compare};
use super::super::evict::MAX_HISTORY_BYTES;
use super::super::point::{PointImport, PointKind, PointReport};
use super::super::store::{History, NewTree, Work, io};
use super::super::tree::Tree;
use super::super::walk::failed;
use super::ExportManifest;
use super::read::{List, Reading};
use crate::now_ms;
use cofferdam_core::{Error, ErrorKind, Result};
use rustix::fs::ftruncate;
use rustix::io::pwrite;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What came in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Imported {
    /// The point that it is now.
    pub(crate) point: PointReport,
    /// What it said of itself.
    pub(crate) manifest: ExportManifest,
}

impl History {
    /// Makes a snapshot of an exported one, on disk when this returns; of a file in which anything is
    /// wrong nothing is left. The session stands where it stood. To be called under its lock.
    ///
    /// What is in it belongs to whoever the layer of this session belongs to.
    pub(crate) fn import(
        &self,
        input: impl Read,
        label: impl FnOnce(Option<&str>) -> Result<Option<String>>,
        workspace: Option<&Path>,
    ) -> Result<Imported> {
        self.has_layer()?;
        let mut work = self.work()?;
        let mut reading = Reading::new(input);
        let manifest = reading.manifest()?;
        check_room(&work, &manifest)?;
        // ORDER: nothing is read for a label that is refused.
        let label = label(manifest.label.as_deref())?;
        let list = reading.list(&manifest)?;
        let mut numbers = Vec::new();
        for size in &list.sizes {
            numbers.push(content(&mut work, &mut reading, *size)?);
        }
        reading.finish(&manifest, &list)?;
        let tree = self.owned(&list, &numbers)?;
        let mut said = PointReport::new(PointKind::Snapshot, now_ms());
        (said.files, said.bytes) = tree.size();
        said.label = label;
        let path = manifest.workspace.path.clone();
        said.imported = Some(PointImport { made_ms: manifest.made_ms, workspace: path });
        let present = work.state.tree.as_ref().and_then(|file| self.read_tree(file).ok());
        if let Some(present) = present {
            let lower = Lower { workspace, is_copy: self.is_copy() };
            said.effects = compare((&present, &tree), &work.blobs, lower)?.told();
        }
        let (point, _) = work.put(said, NewTree::Fresh(tree, None))?;
        work.commit()?;
        work.settle()?;
        Ok(Imported { point, manifest })
    }

    /// The tree with contents of this history, and one owner.
    fn owned(&self, list: &List, numbers: &[u64]) -> Result<Tree> {
        let upper = self.layer().join("upper");
        let owner = std::fs::symlink_metadata(&upper).map_err(|e| io("look at", &upper, e))?;
        let mut entries = list.tree.entries().to_vec();
        for entry in &mut entries {
            (entry.user, entry.group) = (owner.uid(), owner.gid());
        }
        Tree::new(entries)?.with_blobs(|content| {
            let place = usize::try_from(content.blob.saturating_sub(1)).unwrap_or(usize::MAX);
            numbers
                .get(place)
                .copied()
                .ok_or_else(|| Error::new(ErrorKind::Io, "a content is missing"))
        })
    }
}

/// Refuses what would drive the points of the session out of its history.
fn check_room(work: &Work, manifest: &ExportManifest) -> Result<()> {
    let comes = manifest.content_bytes.saturating_add(manifest.list_bytes);
    if work.state.bytes.saturating_add(comes) <= MAX_HISTORY_BYTES {
        return Ok(());
    }
    let what = format!(
        "with the {comes} bytes of the snapshot the history would have more than \
         {MAX_HISTORY_BYTES} bytes"
    );
    Err(Error::new(ErrorKind::TooLarge, what)
        .hint("Import it in a new session, or remove snapshots."))
}

/// Keeps the next content, and says its number.
fn content(work: &mut Work, reading: &mut Reading<impl Read>, size: u64) -> Result<u64> {
    let name = b"an imported file";
    let (number, file) = work.blobs.make()?;
    ftruncate(&file, size).map_err(|e| failed("make room for", name, e))?;
    reading.content(size, |mut at, mut bytes| {
        while !bytes.is_empty() {
            let wrote = pwrite(&file, bytes, at).map_err(|e| failed("keep", name, e))?;
            bytes = bytes.get(wrote..).unwrap_or_default();
            at += wrote as u64;
        }
        Ok(())
    })?;
    work.blobs.made(&file)?;
    Ok(number)
}

//! What a history may hold, and what goes first: the oldest points that nobody named. A snapshot stays
//! until somebody removes it, and so does the point that the session stands at.

use super::pack;
use super::point::PointKind;
use super::state::State;
use super::store::{History, Work};
use cofferdam_core::Result;
use std::collections::BTreeSet;

/// The most points of a session that nobody named.
pub const MAX_POINTS: usize = 256;
/// How many points more there may be before the oldest are removed, all at once: what that costs is
/// shared by so many commands.
const BATCH: usize = 32;
/// The most bytes on disk of one history. Snapshots are never removed for it.
pub const MAX_HISTORY_BYTES: u64 = 8 << 30;

/// What a history may hold.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) points: usize,
    pub(super) batch: usize,
    pub(super) bytes: u64,
}

/// The limits of every history.
pub(super) const LIMITS: Limits =
    Limits { points: MAX_POINTS, batch: BATCH, bytes: MAX_HISTORY_BYTES };

/// Removes the oldest points of what is too much.
pub(super) fn evict(work: &mut Work, limits: Limits) -> Result<()> {
    let numbers = work.history.numbers()?;
    let is_crowded = numbers.len() > limits.points.saturating_add(limits.batch);
    let is_large = work.state.bytes > limits.bytes;
    if !is_crowded && !is_large {
        return Ok(());
    }
    let mut unnamed: Vec<u32> = Vec::new();
    for number in numbers {
        // One that cannot be read is of no use to anybody.
        let is_named =
            work.history.header(number).is_ok_and(|header| header.said.kind == PointKind::Snapshot);
        if !is_named && work.state.at != Some(number) {
            unnamed.push(number);
        }
    }
    let mut rest = unnamed.as_slice();
    if rest.len() >= limits.points.saturating_add(limits.batch) {
        // The one that the session stands at is one of them.
        let (old, new) = rest.split_at(rest.len().saturating_sub(limits.points.saturating_sub(1)));
        remove(work, old)?;
        rest = new;
    }
    while work.state.bytes > limits.bytes && !rest.is_empty() {
        let (old, new) = rest.split_at(rest.len().div_ceil(4));
        remove(work, old)?;
        rest = new;
    }
    Ok(())
}

/// Removes points, and what only they needed.
pub(super) fn remove(work: &mut Work, numbers: &[u32]) -> Result<()> {
    work.begin()?;
    for number in numbers {
        work.history.remove_header(*number)?;
    }
    work.state.bytes = sweep(&work.history, &work.state)?;
    work.history.write_state(&work.state)
}

/// Removes trees that no point names and contents that no tree names. Says how many bytes on disk stay.
/// A file that is named for one content stays whole.
///
/// Where a tree cannot be read nobody knows what it names, so all contents stay.
pub(super) fn sweep(history: &History, state: &State) -> Result<u64> {
    let mut files: Vec<_> = state.tree.iter().cloned().collect();
    for number in history.numbers()? {
        files.extend(history.header(number).ok().and_then(|header| header.tree));
    }
    files.sort_by_key(|file| file.number);
    files.dedup();
    let mut named: BTreeSet<u64> = files.iter().map(|file| u64::from(file.number)).collect();
    let mut wanted: Option<BTreeSet<u64>> = Some(BTreeSet::new());
    for file in &files {
        match (history.read_tree(file), &mut wanted) {
            (Ok(tree), Some(wanted)) => wanted.extend(tree.blobs()),
            (Ok(_) | Err(_), _) => wanted = None,
        }
    }
    let packs = wanted.iter().flatten().filter_map(|blob| pack::place(*blob));
    named.extend(packs.map(|(pack, _)| u64::from(pack)));
    let mut bytes: u64 = 0;
    for tree in history.trees()? {
        match named.contains(&tree) || wanted.is_none() {
            true => bytes = bytes.saturating_add(history.size_of_tree(tree)),
            false => history.remove_tree(tree)?,
        }
    }
    for number in history.numbers()? {
        bytes = bytes.saturating_add(history.size_of_point(number));
    }
    for blob in history.all_blobs()? {
        match wanted.as_ref().is_none_or(|wanted| wanted.contains(&blob)) {
            true => bytes = bytes.saturating_add(history.size_of_blob(blob)),
            false => history.remove_blob(blob)?,
        }
    }
    Ok(bytes)
}

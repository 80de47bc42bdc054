//! Files that were probably moved: added ones with the content of a removed one. For people alone.

use super::changes::Item;
use super::content::same;
use super::layer::Layer;
use super::look::{Kind, look};
use cofferdam_core::{ChangeKind, GuestPath};
use std::collections::BTreeMap;

/// How many pairs of files are compared.
const MAX_COMPARED: usize = 1000;
/// The largest file that is compared, in bytes.
const MAX_COMPARED_BYTES: u64 = 1 << 20;

/// Notes which added files were probably moved. Empty files say nothing.
pub(super) fn note(layer: &Layer, items: &mut [Item]) {
    let mut removed: BTreeMap<u64, Vec<GuestPath>> = BTreeMap::new();
    for item in items.iter().filter(|item| item.change.kind == ChangeKind::Removed) {
        if let Some(seen) = item.lower.as_ref().filter(|seen| seen.kind == Kind::File) {
            removed.entry(seen.size).or_default().push(item.change.path.clone());
        }
    }
    let mut compared = 0;
    for item in items.iter_mut().filter(|item| item.change.kind == ChangeKind::Added) {
        let Some(seen) = item.upper.as_ref().filter(|seen| seen.kind == Kind::File) else {
            continue;
        };
        if seen.size == 0 || seen.size > MAX_COMPARED_BYTES {
            continue;
        }
        let Some(candidates) = removed.get_mut(&seen.size) else { continue };
        let room = MAX_COMPARED.saturating_sub(compared);
        compared += candidates.len().min(room);
        let path = item.change.path.clone();
        let found = candidates.iter().take(room).position(|from| is_same(layer, from, &path));
        item.change.moved_from = found.map(|at| candidates.remove(at));
    }
}

/// Whether what was there is, by its content, what is here now.
pub(super) fn is_same(layer: &Layer, from: &GuestPath, to: &GuestPath) -> bool {
    let before = look(&layer.workspace, from.as_bytes()).ok().flatten();
    let after = look(&layer.upper, to.as_bytes()).ok().flatten();
    let (Some((before, one)), Some((after, other))) = (before, after) else { return false };
    before.kind == Kind::File
        && after.kind == Kind::File
        && before.size == after.size
        && same(&one, &other).unwrap_or(false)
}

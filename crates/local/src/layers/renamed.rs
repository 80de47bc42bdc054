//! Which files of a layer are files of the workspace under another name. Known, and not guessed from
//! what is in them.
//!
//! An overlay of the host's root marks what it copied up with a handle of the original, which the
//! original is asked for too. One of a user namespace marks only that it did; such a file is known by its
//! time of modification and its content, and once it is written to, nobody knows what it was. Links,
//! pipes and the like cannot have that mark at all, and are never written to: they are known by their
//! time and by what they are. A copy has the inode that its listing knows, and is no younger than that.

use super::layer::Layer;
use super::look::{Kind, Seen, look, mark};
use super::moves::is_same;
use super::walk::{Pair, walk};
use crate::sys::file_handle;
use cofferdam_core::{GuestPath, Result};
use rustix::fs::{AtFlags, StatxFlags};
use std::collections::BTreeMap;

/// Where the handle's type stands in the mark of an overlay; its bytes follow this and an identifier of
/// the file system.
const TYPE_AT: usize = 4;
const HANDLE_AT: usize = 21;

/// By what a file is known again whatever it is called: the type and bytes of a handle, or an inode.
type Known = (i32, Vec<u8>);

/// Stands where a handle has its type: what follows is no handle.
const BY_TIME: i32 = -1;

/// Where a file of the workspace was.
struct Source {
    path: GuestPath,
    /// A copy of it is no younger.
    until_ns: u64,
}

/// Notes of each pair whose file the sandbox gave its name what that was called in the workspace.
pub(super) fn note(layer: &Layer, pairs: &mut [Pair], scope: &[GuestPath]) -> Result<()> {
    let mut sources = find_sources(layer, pairs);
    // Somebody may ask for the new name alone, and a directory that changed would seem a conflict.
    let is_wanting = |pair: &Pair| {
        let is_made = pair.upper.as_ref().is_some_and(|top| {
            let may_be = top.copied || takes_no_mark(&top.seen);
            may_be && top.seen.kind != Kind::Directory && pair.lower.is_none()
        });
        is_made && made_of(layer, pair, &sources).is_none()
    };
    if !scope.is_empty() && pairs.iter().any(is_wanting) {
        sources = find_sources(layer, &walk(layer, &[])?);
    }
    if sources.is_empty() {
        return Ok(());
    }
    for pair in pairs {
        pair.made_of = made_of(layer, pair, &sources);
        pair.of_unknown = pair.made_of.is_none() && is_of_unknown(layer, pair);
    }
    Ok(())
}

/// Whether the sandbox may have given a file its name, and nobody knows what it was called.
fn is_of_unknown(layer: &Layer, pair: &Pair) -> bool {
    layer.listing.is_none()
        && pair.lower.is_none()
        && pair.upper.as_ref().is_some_and(|top| top.copied)
        && shown(layer, pair).is_some_and(|(kind, _)| kind == BY_TIME)
}

/// What the workspace has under names that the sandbox removed or gave to something else.
fn find_sources(layer: &Layer, pairs: &[Pair]) -> BTreeMap<Known, Vec<Source>> {
    let mut sources: BTreeMap<Known, Vec<Source>> = BTreeMap::new();
    for pair in pairs {
        let Some(lower) = pair.lower.as_ref().filter(|lower| is_file(lower)) else { continue };
        let knowns = originals(layer, &pair.path, lower);
        if shown(layer, pair).is_some_and(|shown| knowns.contains(&shown)) {
            continue;
        }
        let listed = layer.listing.as_ref().and_then(|listing| listing.get(pair.path.as_bytes()));
        let until_ns = listed.map_or(u64::MAX, |listed| listed.copy.changed_ns);
        for known in knowns {
            let path = pair.path.clone();
            sources.entry(known).or_default().push(Source { path, until_ns });
        }
    }
    sources
}

fn made_of(
    layer: &Layer,
    pair: &Pair,
    sources: &BTreeMap<Known, Vec<Source>>,
) -> Option<GuestPath> {
    if sources.is_empty() {
        return None;
    }
    let known = shown(layer, pair)?;
    let is_it = |source: &&Source| {
        let is_as_old = || born_ns(layer, pair).is_some_and(|born| born <= source.until_ns);
        source.path != pair.path
            // An inode is used again, by a file that was made later.
            && (layer.listing.is_none() || is_as_old())
            && (known.0 != BY_TIME || is_alike(layer, &source.path, pair))
    };
    sources.get(&known)?.iter().find(is_it).map(|source| source.path.clone())
}

fn is_file(seen: &Seen) -> bool {
    !matches!(seen.kind, Kind::Directory | Kind::Mounted)
}

/// Whether a layer of a user namespace cannot mark it: only files and directories take such marks.
fn takes_no_mark(seen: &Seen) -> bool {
    match seen.kind {
        Kind::Link | Kind::Fifo | Kind::Socket | Kind::Device => true,
        Kind::File | Kind::Directory | Kind::Mounted => false,
    }
}

/// Whether what the workspace has under one name is, but for its name, what the layer has under another.
fn is_alike(layer: &Layer, from: &GuestPath, pair: &Pair) -> bool {
    let Some(top) = pair.upper.as_ref().filter(|top| takes_no_mark(&top.seen)) else {
        return is_same(layer, from, &pair.path);
    };
    let before = look(&layer.workspace, from.as_bytes()).ok().flatten();
    before.is_some_and(|(before, _)| {
        before.kind == top.seen.kind
            && before.target == top.seen.target
            && before.device_number == top.seen.device_number
    })
}

/// What the file that the workspace has there is known by. What cannot be asked is not known.
fn originals(layer: &Layer, path: &GuestPath, lower: &Seen) -> Vec<Known> {
    if let Some(listing) = &layer.listing {
        let listed = listing.get(path.as_bytes()).filter(|listed| listed.kind.is_some());
        return listed.map(|listed| by_inode(listed.copy.inode)).into_iter().collect();
    }
    let file = look(&layer.workspace, path.as_bytes()).ok().flatten();
    let handle = file.and_then(|(_, file)| file_handle(&file).ok());
    handle.into_iter().chain([by_time(lower)]).collect()
}

fn by_inode(inode: u64) -> Known {
    (0, inode.to_le_bytes().to_vec())
}

fn by_time(seen: &Seen) -> Known {
    (BY_TIME, [seen.modified_ns.to_le_bytes(), seen.size.to_le_bytes()].concat())
}

/// What the file that the layer has there is known by, if it is one of the workspace.
fn shown(layer: &Layer, pair: &Pair) -> Option<Known> {
    let top = pair.upper.as_ref().filter(|top| is_file(&top.seen))?;
    if layer.listing.is_some() {
        return Some(by_inode(top.seen.id.inode));
    }
    let (_, file) = look(&layer.upper, pair.path.as_bytes()).ok().flatten()?;
    let Some(origin) = mark(&file, &layer.mark("origin")).ok().flatten() else {
        return takes_no_mark(&top.seen).then(|| by_time(&top.seen));
    };
    Some(match (origin.get(TYPE_AT), origin.get(HANDLE_AT..)) {
        (Some(kind), Some(handle)) => (i32::from(*kind), handle.to_vec()),
        (Some(_) | None, Some(_) | None) => by_time(&top.seen),
    })
}

fn born_ns(layer: &Layer, pair: &Pair) -> Option<u64> {
    let (_, file) = look(&layer.upper, pair.path.as_bytes()).ok().flatten()?;
    let stat = rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::BTIME).ok()?;
    if stat.stx_mask & StatxFlags::BTIME.bits() == 0 {
        return None;
    }
    let seconds = u64::try_from(stat.stx_btime.tv_sec).ok()?;
    Some(seconds.saturating_mul(1_000_000_000) + u64::from(stat.stx_btime.tv_nsec))
}

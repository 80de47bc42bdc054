//! Which changes land, and which do not though they could. Pure.

use super::super::changes::{Item, parent};
use cofferdam_core::files::EntryKind;
use cofferdam_core::{
    ApplyOrder, Change, ChangeKind, Conflict, FileState, GuestPath, Held, Standing, is_within,
};
use std::collections::{BTreeMap, BTreeSet};

/// What lands and what is kept back, each in the order of paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Landing {
    pub(super) items: Vec<Item>,
    pub(super) kept: Vec<Change>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Lands,
    Kept(Standing),
    /// Nobody asked for it.
    Outside,
}

/// Of these changes, those that land. A directory that goes, goes only with all that is in it; what is
/// in a directory that comes, comes only with it, and a directory comes with what is in it. Of a move
/// both halves land, or neither.
pub(super) fn settle(items: Vec<Item>, order: &ApplyOrder) -> Landing {
    let named: BTreeSet<&GuestPath> = order.paths.iter().collect();
    let is_asked_for = |path: &GuestPath| match order.exact {
        true => named.contains(path),
        false => is_within(path, &order.paths),
    };
    let mut fates: Vec<Fate> = items
        .iter()
        .map(|item| match item.change.standing {
            _ if !is_asked_for(&item.change.path) => Fate::Outside,
            Standing::Lands => Fate::Lands,
            standing @ (Standing::Conflict(_) | Standing::Held(_)) => Fate::Kept(standing),
        })
        .collect();
    loop {
        keep_full_directories(&items, &mut fates);
        bring_directories(&items, &mut fates);
        // What is kept may keep more. It ends, because what is kept stays so.
        if !keep_other_halves(&items, &mut fates) {
            break;
        }
    }
    let mut landing = Landing::default();
    for (mut item, fate) in items.into_iter().zip(fates) {
        match fate {
            Fate::Lands => landing.items.push(item),
            Fate::Kept(standing) => {
                item.change.standing = standing;
                landing.kept.push(item.change);
            }
            Fate::Outside => {}
        }
    }
    landing
}

/// From the innermost out.
fn keep_full_directories(items: &[Item], fates: &mut [Fate]) {
    let mut kept: BTreeSet<&[u8]> = BTreeSet::new();
    for (item, fate) in items.iter().zip(fates.iter_mut()).rev() {
        let path = item.change.path.as_bytes();
        if *fate == Fate::Lands && takes_directory(&item.change) && kept.contains(path) {
            *fate = Fate::Kept(Standing::Conflict(Conflict::NotEmpty));
        }
        let stays = *fate != Fate::Lands && item.change.kind == ChangeKind::Removed;
        let mut at = path;
        while let Some(above) = parent(at).filter(|_| stays) {
            if !kept.insert(above) {
                break;
            }
            at = above;
        }
    }
}

/// From the outermost in.
fn bring_directories(items: &[Item], fates: &mut [Fate]) {
    let directories: BTreeMap<&[u8], usize> = items
        .iter()
        .enumerate()
        .filter(|(_, item)| brings_directory(&item.change))
        .map(|(at, item)| (item.change.path.as_bytes(), at))
        .collect();
    for (at, item) in items.iter().enumerate() {
        if fates.get(at) != Some(&Fate::Lands) {
            continue;
        }
        let mut ways: Vec<usize> = item
            .change
            .path
            .ancestors()
            .filter_map(|above| directories.get(above.as_bytes()).copied())
            .collect();
        ways.reverse();
        for above in ways {
            let may_come = items.get(above).is_some_and(|above| {
                above.change.standing == Standing::Lands && above.change.kind == ChangeKind::Added
            });
            let come = match fates.get(above) {
                Some(Fate::Lands) => continue,
                Some(Fate::Outside) if may_come => Fate::Lands,
                Some(Fate::Outside | Fate::Kept(_)) | None => {
                    if let Some(fate) = fates.get_mut(at) {
                        *fate = Fate::Kept(Standing::Held(Held::Directory));
                    }
                    break;
                }
            };
            if let Some(fate) = fates.get_mut(above) {
                *fate = come;
            }
        }
    }
}

/// Keeps back one half of each move whose other half is, and says whether there was any.
///
/// A half that nobody asked for holds nothing back: who names one alone wants it so.
fn keep_other_halves(items: &[Item], fates: &mut [Fate]) -> bool {
    let places: BTreeMap<&[u8], usize> =
        items.iter().enumerate().map(|(at, item)| (item.change.path.as_bytes(), at)).collect();
    let mut has_kept = false;
    for (target, item) in items.iter().enumerate() {
        let source = item.made_of.as_ref().and_then(|path| places.get(path.as_bytes()));
        let Some(source) = source.copied() else { continue };
        let half = match (fates.get(target), fates.get(source)) {
            (Some(Fate::Kept(_)), Some(Fate::Lands)) => source,
            (Some(Fate::Lands), Some(Fate::Kept(_))) => target,
            _ => continue,
        };
        if let Some(fate) = fates.get_mut(half) {
            *fate = Fate::Kept(Standing::Held(Held::Move));
            has_kept = true;
        }
    }
    has_kept | keep_what_was_perhaps_moved(items, fates)
}

/// Where a file is kept that may have had another name, every removal may be the other half of its move.
fn keep_what_was_perhaps_moved(items: &[Item], fates: &mut [Fate]) -> bool {
    let is_kept = |(item, fate): (&Item, &Fate)| item.of_unknown && matches!(fate, Fate::Kept(_));
    if !items.iter().zip(fates.iter()).any(is_kept) {
        return false;
    }
    let known: BTreeSet<&GuestPath> =
        items.iter().filter_map(|item| item.made_of.as_ref()).collect();
    let mut has_kept = false;
    for (item, fate) in items.iter().zip(fates.iter_mut()) {
        let change = &item.change;
        let may_be = change.kind == ChangeKind::Removed && !is_directory(change.before.as_ref());
        if may_be && *fate == Fate::Lands && !known.contains(&change.path) {
            *fate = Fate::Kept(Standing::Held(Held::Move));
            has_kept = true;
        }
    }
    has_kept
}

fn is_directory(state: Option<&FileState>) -> bool {
    state.is_some_and(|state| state.kind == EntryKind::Directory)
}

/// Whether a directory goes.
fn takes_directory(change: &Change) -> bool {
    is_directory(change.before.as_ref()) && !is_directory(change.after.as_ref())
}

/// Whether a directory comes.
pub(super) fn brings_directory(change: &Change) -> bool {
    is_directory(change.after.as_ref()) && !is_directory(change.before.as_ref())
}

//! What two sides of a layer make: changes, and whether each can land. Pure.

use super::content::MAX_LANDED_FILE_BYTES;
use super::look::{Id, Kind, Seen};
use super::walk::{Pair, Top};
use cofferdam_core::files::EntryKind;
use cofferdam_core::{
    ByteString, Change, ChangeKind, Conflict, FileState, GuestPath, Held, Standing, leads_out,
};
use std::collections::BTreeMap;

/// What is known besides both sides.
pub(super) trait Facts {
    /// From when on a change of this path in the workspace is news.
    fn since_ns(&self, path: &GuestPath) -> u64;

    /// When the sandbox's changes of this path were discarded last; 0 where they never were.
    fn dropped_ns(&self, path: &GuestPath) -> u64;

    /// When entries of the workspace itself came or went last, if any did since.
    fn top_touched_ns(&self) -> Option<u64>;

    /// Whether the sandbox's landed there, and no removal of it since.
    fn has_landed(&self, path: &GuestPath) -> bool;

    /// Whether it is a control file that nobody named.
    fn is_protected(&self, path: &GuestPath) -> bool;

    /// Whether it is a control file that somebody named.
    fn is_freed(&self, path: &GuestPath) -> bool;

    /// Whether a path that a link names is in the workspace, by its text.
    fn workspace(&self) -> &[u8];
}

/// A change, and what it was made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) change: Change,
    pub(super) upper: Option<Seen>,
    pub(super) lower: Option<Seen>,
    /// The change that is the other half of a move: what its file was called.
    pub(super) made_of: Option<GuestPath>,
    /// It may be half of a move, and nobody knows what its file was called.
    pub(super) of_unknown: bool,
    /// It is a control file, and lands because somebody named it.
    pub(super) is_freed: bool,
    /// Why it would not land even where nothing had changed in the workspace.
    pub(super) held: Option<Held>,
}

/// What was found on the way to a path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Fine,
    /// Entries of its directory came or went since the sandbox began, for the last time at this moment.
    Touched(u64),
    Gone,
    /// A directory was moved or got other permissions, for the last time at this moment.
    Moved(u64),
    Mounted,
}

/// All changes, in the order of paths.
pub(super) fn changes(pairs: &[Pair], facts: &impl Facts) -> Vec<Item> {
    let groups = Groups::of(pairs);
    let mut ways: BTreeMap<&[u8], Way> = BTreeMap::new();
    let top = facts.top_touched_ns().map_or(Way::Fine, Way::Touched);
    let mut items = Vec::new();
    for pair in pairs {
        let above = parent(pair.path.as_bytes());
        let on_the_way = above.map_or(Some(top), |above| ways.get(above).copied());
        let on_the_way = on_the_way.unwrap_or(Way::Fine);
        if pair.is_directory() {
            ways.insert(pair.path.as_bytes(), way(pair, on_the_way, facts));
        }
        let relinked = groups.is_relinked(pair);
        let Some(kind) = kind(pair, relinked) else { continue };
        let held = held(pair, facts);
        let standing = standing(pair, on_the_way, held, facts);
        items.push(Item {
            change: change(pair, kind, standing, &groups, facts),
            upper: pair.upper.as_ref().map(|top| top.seen.clone()),
            lower: pair.lower.clone(),
            made_of: pair.made_of.clone(),
            of_unknown: pair.of_unknown,
            is_freed: facts.is_freed(&pair.path),
            held,
        });
    }
    items
}

impl Pair {
    fn is_directory(&self) -> bool {
        let is = |seen: &Seen| seen.kind == Kind::Directory;
        self.upper.as_ref().is_some_and(|top| is(&top.seen)) || self.lower.as_ref().is_some_and(is)
    }
}

/// What differs, if anything does.
fn kind(pair: &Pair, relinked: bool) -> Option<ChangeKind> {
    if pair.untouched {
        return None;
    }
    match (&pair.upper, &pair.lower) {
        (None, None) => None,
        (None, Some(_)) => Some(ChangeKind::Removed),
        (Some(_), None) => Some(ChangeKind::Added),
        (Some(top), Some(lower)) => {
            let same = match (top.seen.kind, lower.kind) {
                (Kind::File, Kind::File) => pair.same && top.seen.mode == lower.mode && !relinked,
                (Kind::Directory, Kind::Directory) => top.seen.mode == lower.mode,
                (Kind::Link, Kind::Link) => top.seen.target == lower.target,
                (upper, lower_kind) => {
                    upper == lower_kind
                        && upper != Kind::Mounted
                        && top.seen.mode == lower.mode
                        && top.seen.device_number == lower.device_number
                }
            };
            (!same).then_some(ChangeKind::Modified)
        }
    }
}

/// How things stand below a directory.
fn way(pair: &Pair, above: Way, facts: &impl Facts) -> Way {
    let since_ns = facts.since_ns(&pair.path);
    let own = match (&pair.upper, &pair.lower) {
        (Some(top), None) if top.copied => Way::Gone,
        (_, Some(lower)) if lower.kind == Kind::Mounted => Way::Mounted,
        (_, Some(lower)) if pair.untouched && lower.kind != Kind::Directory => Way::Gone,
        (_, Some(lower)) if is_moved(lower, since_ns) => Way::Moved(lower.changed_ns),
        (_, Some(lower)) if lower.modified_ns > since_ns => Way::Touched(lower.modified_ns),
        (_, Some(_) | None) => Way::Fine,
    };
    match (above, own) {
        (Way::Gone | Way::Mounted, _) => above,
        (Way::Moved(at_ns), Way::Moved(later_ns)) => Way::Moved(at_ns.max(later_ns)),
        // Nothing that was discarded makes up for that.
        (Way::Moved(_), Way::Gone | Way::Mounted) => Way::Moved(u64::MAX),
        (Way::Moved(_), Way::Fine | Way::Touched(_)) => above,
        (Way::Fine | Way::Touched(_), own) => own,
    }
}

/// A change of entries sets both times to one moment; what sets the time of change alone is a move, or
/// other permissions.
fn is_moved(directory: &Seen, since_ns: u64) -> bool {
    directory.kind == Kind::Directory
        && directory.changed_ns > since_ns
        && directory.changed_ns != directory.modified_ns
}

fn standing(pair: &Pair, way: Way, held: Option<Held>, facts: &impl Facts) -> Standing {
    let conflict = match way {
        Way::Gone => Some(Conflict::DirectoryGone),
        Way::Mounted => Some(Conflict::Mounted),
        Way::Moved(at_ns) if at_ns > facts.dropped_ns(&pair.path) => Some(Conflict::DirectoryMoved),
        // The sandbox went on from what that directory has; what came or went in it is not known.
        Way::Moved(_) => conflict(pair, Way::Touched(u64::MAX), facts),
        Way::Fine | Way::Touched(_) => conflict(pair, way, facts),
    };
    match (conflict, held) {
        (Some(conflict), _) => Standing::Conflict(conflict),
        (None, Some(held)) => Standing::Held(held),
        (None, None) => Standing::Lands,
    }
}

/// Why it does not land, whatever the workspace has there.
fn held(pair: &Pair, facts: &impl Facts) -> Option<Held> {
    let after = pair.upper.as_ref().map(|top| top.seen.kind);
    if matches!(after, Some(Kind::Fifo | Kind::Socket | Kind::Device | Kind::Mounted)) {
        return Some(Held::Special);
    }
    if after == Some(Kind::File)
        && pair.upper.as_ref().is_some_and(|top| top.seen.size > MAX_LANDED_FILE_BYTES)
    {
        return Some(Held::TooLarge);
    }
    facts.is_protected(&pair.path).then_some(Held::Protected)
}

impl Item {
    /// How it stands where it may land over what the workspace changed at its path since: a file or a link
    /// over one. Anything else stands as it does.
    pub(super) fn overwriting(&self) -> Standing {
        let is_plain = |seen: &Seen| matches!(seen.kind, Kind::File | Kind::Link);
        let comes = self.upper.as_ref().is_none_or(is_plain);
        let goes = self.lower.as_ref().is_some_and(is_plain);
        match self.change.standing {
            Standing::Conflict(Conflict::Changed) if comes && goes => {
                self.held.map_or(Standing::Lands, Standing::Held)
            }
            standing @ (Standing::Lands | Standing::Conflict(_) | Standing::Held(_)) => standing,
        }
    }
}

fn conflict(pair: &Pair, way: Way, facts: &impl Facts) -> Option<Conflict> {
    let Some(lower) = &pair.lower else {
        let Top { seen, copied, .. } = pair.upper.as_ref()?;
        // What landed and is not there any more was removed by somebody else.
        let is_back = !copied && facts.has_landed(&pair.path);
        if !copied && !is_back {
            return None;
        }
        if seen.kind == Kind::Directory {
            return Some(Conflict::DirectoryGone);
        }
        // A file that the sandbox gave this name was copied as well, from another one.
        let dropped_ns = facts.dropped_ns(&pair.path);
        let is_touched = matches!(way, Way::Touched(at_ns) if at_ns > dropped_ns);
        return (is_touched && pair.made_of.is_none()).then_some(Conflict::Gone);
    };
    if lower.kind == Kind::Mounted {
        return Some(Conflict::Mounted);
    }
    (lower.changed_ns > facts.since_ns(&pair.path)).then_some(Conflict::Changed)
}

fn change(
    pair: &Pair,
    kind: ChangeKind,
    standing: Standing,
    groups: &Groups<'_>,
    facts: &impl Facts,
) -> Change {
    let upper = pair.upper.as_ref().map(|top| &top.seen);
    let is_link = upper.is_some_and(|seen| seen.kind == Kind::Link);
    Change {
        path: pair.path.clone(),
        kind,
        before: pair.lower.as_ref().map(state),
        after: upper.map(state),
        moved_from: None,
        linked_to: groups.first(pair).cloned(),
        leads_out: is_link
            && upper.is_some_and(|seen| leads_out(&pair.path, &seen.target, facts.workspace())),
        set_id: upper.is_some_and(|seen| seen.set_id),
        version: upper.map_or(0, |seen| seen.changed_ns),
        standing,
    }
}

pub(super) fn state(seen: &Seen) -> FileState {
    let kind = match seen.kind {
        Kind::File => EntryKind::File,
        Kind::Directory | Kind::Mounted => EntryKind::Directory,
        Kind::Link => EntryKind::Link,
        Kind::Fifo => EntryKind::Fifo,
        Kind::Socket => EntryKind::Socket,
        Kind::Device => EntryKind::Device,
    };
    let target = (seen.kind == Kind::Link).then(|| ByteString::from(seen.target.clone()));
    FileState { kind, mode: seen.mode, size: seen.size, target }
}

/// The directory that a path is in; `None` for the workspace itself.
pub(super) fn parent(path: &[u8]) -> Option<&[u8]> {
    let slash = path.iter().rposition(|byte| *byte == b'/')?;
    path.get(..slash)
}

/// Names of the layer that are one file.
struct Groups<'p> {
    members: BTreeMap<Id, Vec<&'p Pair>>,
}

impl<'p> Groups<'p> {
    fn of(pairs: &'p [Pair]) -> Self {
        let mut members: BTreeMap<Id, Vec<&Pair>> = BTreeMap::new();
        for pair in pairs {
            if let Some(Top { seen, .. }) = &pair.upper
                && seen.kind == Kind::File
                && seen.links > 1
            {
                members.entry(seen.id).or_default().push(pair);
            }
        }
        members.retain(|_, pairs| pairs.len() > 1);
        Self { members }
    }

    fn members(&self, pair: &Pair) -> &[&'p Pair] {
        let id = pair.upper.as_ref().map(|top| top.seen.id);
        id.and_then(|id| self.members.get(&id)).map_or(&[], Vec::as_slice)
    }

    /// Whether its names are one file in the layer and not in the workspace.
    fn is_relinked(&self, pair: &Pair) -> bool {
        let lower = |pair: &Pair| pair.lower.as_ref().map(|lower| lower.id);
        self.members(pair).iter().any(|other| lower(other) != lower(pair))
    }

    /// Another name of the same file, the first there is.
    fn first(&self, pair: &Pair) -> Option<&'p GuestPath> {
        let first = self.members(pair).first()?;
        (first.path != pair.path).then_some(&first.path)
    }
}

//! What a command did to a copy-on-write workspace: two looks at its layer, and what differs.

use crate::files::EntryKind;
use crate::{ChangeKind, GuestPath};
use std::collections::{BTreeMap, BTreeSet};

/// How a layer stood at one moment. What it does not name is as the workspace has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LayerLook {
    /// What stands under each path of the layer; `None` where it hides what the workspace has.
    pub entries: BTreeMap<GuestPath, Option<LayerMark>>,
    /// What the workspace has under paths that the layer hides, where the look told it.
    pub hidden: BTreeMap<GuestPath, Former>,
}

/// What stood under a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Former {
    /// Its type.
    pub kind: EntryKind,
    /// The permissions that count.
    pub mode: u32,
    /// Its size in bytes.
    pub size: u64,
    /// Whether the workspace has it still, under that path.
    pub in_workspace: bool,
}

/// What tells one state of a path of a layer from another, without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerMark {
    /// Its type.
    pub kind: EntryKind,
    /// The permissions that count.
    pub mode: u32,
    /// Its size in bytes.
    pub size: u64,
    /// Device and inode.
    pub identity: (u64, u64),
    /// When it was changed last, in nanoseconds since 1970, by the clock that nobody can set.
    pub changed_ns: u64,
    /// What the workspace has under that path.
    pub below: Below,
}

/// What the workspace has under a path of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Below {
    /// Nothing.
    Nothing,
    /// The same, in everything that counts as a change.
    Same,
    /// Something else.
    Other,
}

/// One thing that was done to a path between two looks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effect {
    /// Where.
    pub path: GuestPath,
    /// What.
    pub kind: ChangeKind,
    /// What stands there now; nothing where it was removed.
    pub now: Option<LayerMark>,
    /// What stood there, of what was removed, where that is known.
    pub former: Option<Former>,
}

/// What a path is for whoever looks through the layer.
#[derive(Clone, Copy)]
enum State<'l> {
    /// What the workspace has, if anything.
    Untouched,
    Hidden,
    Own(&'l LayerMark),
}

impl LayerLook {
    /// What was done since an earlier look, in the order of paths. What was written and left as it was
    /// in the workspace is nothing that was done.
    pub fn effects_since(&self, earlier: &Self) -> Vec<Effect> {
        let paths: BTreeSet<&GuestPath> =
            self.entries.keys().chain(earlier.entries.keys()).collect();
        let effect = |path: &GuestPath| {
            let kind = difference(earlier.state(path), self.state(path))?;
            let now = match (kind, self.state(path)) {
                (ChangeKind::Added | ChangeKind::Modified, State::Own(mark)) => Some(mark.clone()),
                _ => None,
            };
            let former = match (kind, earlier.state(path)) {
                (ChangeKind::Removed, State::Own(mark)) => Some(mark.former()),
                (ChangeKind::Removed, State::Untouched) => self.hidden.get(path).copied(),
                _ => None,
            };
            Some(Effect { path: path.clone(), kind, now, former })
        };
        paths.into_iter().filter_map(effect).collect()
    }

    fn state(&self, path: &GuestPath) -> State<'_> {
        match self.entries.get(path) {
            None => State::Untouched,
            Some(None) => State::Hidden,
            Some(Some(mark)) => State::Own(mark),
        }
    }
}

impl LayerMark {
    fn former(&self) -> Former {
        let in_workspace = self.below == Below::Same;
        Former { kind: self.kind, mode: self.mode, size: self.size, in_workspace }
    }
}

fn difference(before: State<'_>, after: State<'_>) -> Option<ChangeKind> {
    match (before, after) {
        (State::Untouched, State::Untouched) | (State::Hidden, State::Hidden) => None,
        (State::Untouched | State::Own(_), State::Hidden) => Some(ChangeKind::Removed),
        (State::Hidden, State::Untouched | State::Own(_)) => Some(ChangeKind::Added),
        (State::Untouched, State::Own(mark)) => match mark.below {
            Below::Nothing => Some(ChangeKind::Added),
            Below::Same => None,
            Below::Other => Some(ChangeKind::Modified),
        },
        (State::Own(mark), State::Untouched) => match mark.below {
            Below::Nothing => Some(ChangeKind::Removed),
            Below::Same => None,
            Below::Other => Some(ChangeKind::Modified),
        },
        (State::Own(before), State::Own(after)) => {
            (!is_unchanged(before, after)).then_some(ChangeKind::Modified)
        }
    }
}

/// A directory is its type and its permissions: what comes and goes in it has a path of its own.
///
/// LIMIT: nobody kept what a file held. So one that the kernel dates otherwise is told to be changed, be its content the
/// same or not: whoever writes it can keep its size and set its time.
fn is_unchanged(before: &LayerMark, after: &LayerMark) -> bool {
    let is_alike = (before.kind, before.mode) == (after.kind, after.mode);
    match after.kind {
        EntryKind::Directory => is_alike,
        EntryKind::File
        | EntryKind::Link
        | EntryKind::Fifo
        | EntryKind::Socket
        | EntryKind::Device => {
            before == after
                || (is_alike && (before.below, after.below) == (Below::Same, Below::Same))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(inode: u64, below: Below) -> LayerMark {
        LayerMark {
            kind: EntryKind::File,
            mode: 0o644,
            size: 3,
            identity: (1, inode),
            changed_ns: inode,
            below,
        }
    }

    fn look(entries: &[(&str, Option<LayerMark>)]) -> LayerLook {
        let entry = |(path, mark): &(&str, Option<LayerMark>)| {
            (GuestPath::new(*path).unwrap(), mark.clone())
        };
        LayerLook { entries: entries.iter().map(entry).collect(), ..LayerLook::default() }
    }

    fn told(before: &LayerLook, after: &LayerLook) -> Vec<(String, &'static str)> {
        let effects = after.effects_since(before);
        let words = |effect: &Effect| {
            assert_eq!(effect.now.is_none(), effect.kind == ChangeKind::Removed, "{effect:?}");
            (String::from_utf8_lossy(effect.path.as_bytes()).into_owned(), effect.kind.name())
        };
        effects.iter().map(words).collect()
    }

    #[test]
    fn the_first_command_is_told_against_the_workspace() {
        let after = look(&[
            ("copied", Some(mark(1, Below::Same))),
            ("gone", None),
            ("new", Some(mark(2, Below::Nothing))),
            ("other", Some(mark(3, Below::Other))),
        ]);
        let expected = [("gone", "removed"), ("new", "added"), ("other", "modified")];
        assert_eq!(told(&LayerLook::default(), &after), expected.map(|(p, k)| (p.to_owned(), k)));
    }

    #[test]
    fn a_later_command_is_told_against_what_the_layer_was() {
        let before = look(&[
            ("again", None),
            ("both", Some(mark(1, Below::Other))),
            ("dropped", Some(mark(2, Below::Nothing))),
            ("kept", Some(mark(3, Below::Other))),
            ("lost", Some(mark(4, Below::Other))),
        ]);
        let after = look(&[
            ("again", Some(mark(5, Below::Other))),
            ("both", Some(mark(6, Below::Other))),
            ("kept", Some(mark(3, Below::Other))),
            ("lost", None),
        ]);
        let expected =
            [("again", "added"), ("both", "modified"), ("dropped", "removed"), ("lost", "removed")];
        assert_eq!(told(&before, &after), expected.map(|(path, kind)| (path.to_owned(), kind)));
        assert_eq!(told(&after, &after), []);
    }

    #[test]
    fn of_what_was_removed_it_is_told_what_it_was() {
        let untouched = Former { kind: EntryKind::Link, mode: 0o777, size: 9, in_workspace: true };
        let before = look(&[
            ("made", Some(mark(1, Below::Nothing))),
            ("other", Some(mark(2, Below::Other))),
            ("same", Some(mark(3, Below::Same))),
        ]);
        let mut after =
            look(&[("kept", Some(mark(4, Below::Nothing))), ("other", None), ("same", None)]);
        after.entries.insert(GuestPath::new("untouched").unwrap(), None);
        after.hidden.insert(GuestPath::new("untouched").unwrap(), untouched);
        // What the workspace has there is not what stood there for the sandbox.
        after.hidden.insert(GuestPath::new("other").unwrap(), untouched);
        let effects = after.effects_since(&before);
        let former: Vec<Option<Former>> = effects.iter().map(|effect| effect.former).collect();
        let own = |in_workspace| {
            Some(Former { kind: EntryKind::File, mode: 0o644, size: 3, in_workspace })
        };
        assert_eq!(former, [None, own(false), own(false), own(true), Some(untouched)]);
    }

    #[test]
    fn a_directory_changes_by_its_permissions_alone() {
        let directory = |inode, mode| {
            Some(LayerMark { kind: EntryKind::Directory, mode, ..mark(inode, Below::Same) })
        };
        let before = look(&[("a", directory(1, 0o755)), ("b", directory(2, 0o755))]);
        let after = look(&[("a", directory(9, 0o755)), ("b", directory(2, 0o700))]);
        assert_eq!(told(&before, &after), [("b".to_owned(), "modified")]);
    }
}

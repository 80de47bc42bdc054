//! Where the directories are that are watched, as far as the kernel has told.
//!
//! A directory is known to the kernel by a number, and to us by its name in the one above it. So when
//! one is renamed, all that is below it has its new path at once.

use cofferdam_wire::files::MAX_DEPTH;
use std::collections::BTreeMap;

/// The kernel's number of a watched directory.
pub(super) type Number = i32;

/// All directories that are watched.
#[derive(Debug, Default)]
pub(super) struct Tree {
    nodes: BTreeMap<Number, Node>,
    below: BTreeMap<(Number, Vec<u8>), Number>,
}

#[derive(Debug)]
struct Node {
    /// `None` for the root.
    above: Option<Number>,
    name: Vec<u8>,
}

/// What it means that a directory was put somewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Put {
    /// It was not watched before.
    New,
    /// It was known there.
    Known,
    /// It was known elsewhere, or another one there: names have changed in ways that were not told yet.
    Doubtful,
}

impl Tree {
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn knows(&self, number: Number) -> bool {
        self.nodes.contains_key(&number)
    }

    pub(super) fn numbers(&self) -> impl Iterator<Item = Number> {
        self.nodes.keys().copied()
    }

    /// The path of a directory; `None` if it is not watched any more.
    pub(super) fn path(&self, number: Number) -> Option<Vec<u8>> {
        let mut names = Vec::new();
        let mut node = self.nodes.get(&number)?;
        while let Some(above) = node.above {
            names.push(node.name.as_slice());
            node = self.nodes.get(&above)?;
        }
        names.reverse();
        Some(names.join(&b'/'))
    }

    /// The watched directory of this name in another.
    pub(super) fn child(&self, above: Number, name: &[u8]) -> Option<Number> {
        self.below.get(&(above, name.to_vec())).copied()
    }

    /// Takes in where a directory is; `above` is `None` for the root.
    pub(super) fn put(&mut self, above: Option<Number>, name: &[u8], number: Number) -> Put {
        if let Some(node) = self.nodes.get(&number) {
            return match node.above == above && node.name == name {
                true => Put::Known,
                false => Put::Doubtful,
            };
        }
        if let Some(above) = above {
            if self.child(above, name).is_some() {
                return Put::Doubtful;
            }
            self.below.insert((above, name.to_vec()), number);
        }
        self.nodes.insert(number, Node { above, name: name.to_vec() });
        Put::New
    }

    /// Gives a directory another place. `false`, and nothing is changed, where that cannot be.
    pub(super) fn rename(&mut self, number: Number, above: Number, name: &[u8]) -> bool {
        if self.child(above, name).is_some() || self.is_within(above, number) {
            return false;
        }
        let Some(node) = self.nodes.get_mut(&number) else { return false };
        let Some(before) = node.above.replace(above) else { return false };
        let old = std::mem::replace(&mut node.name, name.to_vec());
        self.below.remove(&(before, old));
        self.below.insert((above, name.to_vec()), number);
        true
    }

    /// Takes a directory out with all below it, and answers their numbers.
    pub(super) fn take(&mut self, number: Number) -> Vec<Number> {
        let mut left = vec![number];
        let mut taken = Vec::new();
        while let Some(number) = left.pop() {
            let Some(node) = self.nodes.remove(&number) else { continue };
            if let Some(above) = node.above {
                self.below.remove(&(above, node.name));
            }
            let last = (number.saturating_add(1), Vec::new());
            left.extend(self.below.range((number, Vec::new())..last).map(|(_, below)| *below));
            taken.push(number);
        }
        taken
    }

    /// Whether a directory is this other one, or below it.
    pub(super) fn is_within(&self, mut number: Number, other: Number) -> bool {
        // No deeper than anything is watched.
        for _ in 0..=2 * MAX_DEPTH {
            if number == other {
                return true;
            }
            match self.nodes.get(&number).and_then(|node| node.above) {
                Some(above) => number = above,
                None => return false,
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1 is the root, 2 is `a`, 3 is `a/b`, 4 is `c`.
    fn tree() -> Tree {
        let mut tree = Tree::default();
        let put = [(None, "", 1), (Some(1), "a", 2), (Some(2), "b", 3), (Some(1), "c", 4)];
        for (above, name, number) in put {
            assert_eq!(tree.put(above, name.as_bytes(), number), Put::New);
        }
        tree
    }

    fn path(tree: &Tree, number: Number) -> Option<String> {
        tree.path(number).map(|path| String::from_utf8(path).unwrap())
    }

    #[test]
    fn what_lies_below_moves_with_its_directory() {
        let mut tree = tree();
        assert_eq!(path(&tree, 3).as_deref(), Some("a/b"));
        assert!(tree.rename(2, 4, b"x"));
        assert_eq!(path(&tree, 3).as_deref(), Some("c/x/b"));
        assert_eq!((tree.child(1, b"a"), tree.child(4, b"x")), (None, Some(2)));
        assert_eq!(path(&tree, 1).as_deref(), Some(""));
    }

    #[test]
    fn no_directory_comes_into_itself_or_over_another() {
        let mut tree = tree();
        assert!(!tree.rename(2, 3, b"x") && !tree.rename(2, 2, b"x"));
        assert!(!tree.rename(2, 1, b"c") && !tree.rename(1, 4, b"x"));
        assert_eq!(path(&tree, 3).as_deref(), Some("a/b"));
    }

    #[test]
    fn what_is_taken_out_goes_with_all_below_it() {
        let mut tree = tree();
        assert_eq!(tree.take(2), [2, 3]);
        assert_eq!((tree.len(), path(&tree, 3), tree.knows(3)), (2, None, false));
        assert_eq!(tree.put(Some(1), b"a", 5), Put::New);
        assert!(tree.take(2).is_empty());
    }

    #[test]
    fn what_is_not_where_it_was_is_doubtful() {
        let mut tree = tree();
        assert_eq!(tree.put(Some(1), b"c", 4), Put::Known);
        assert_eq!(tree.put(Some(2), b"c", 4), Put::Doubtful);
        assert_eq!(tree.put(Some(1), b"c", 9), Put::Doubtful);
        assert_eq!((path(&tree, 4).as_deref(), tree.len()), (Some("c"), 4));
    }
}

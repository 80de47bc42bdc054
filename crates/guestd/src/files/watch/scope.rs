//! Which paths a watch is about. Paths begin at the root of the workspace, which is the empty one.

use cofferdam_wire::files::MAX_DEPTH;

/// What somebody wants to hear of.
#[derive(Debug)]
pub(super) struct Scope {
    asked: Vec<Asked>,
    /// How many levels below each.
    depth: usize,
}

/// A place that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) path: Vec<u8>,
    pub(super) is_directory: bool,
    /// Whether it is there, as far as was told.
    is_there: bool,
}

impl Asked {
    /// A place that is there.
    pub(super) fn new(path: Vec<u8>, is_directory: bool) -> Self {
        Self { path, is_directory, is_there: true }
    }
}

impl Scope {
    pub(super) fn new(asked: Vec<Asked>, depth: u32) -> Self {
        // What lies deeper than anything is watched is told as such, and not passed over.
        let depth = usize::try_from(depth).ok().filter(|depth| *depth <= MAX_DEPTH);
        Self { asked, depth: depth.unwrap_or(usize::MAX) }
    }

    /// Whether what happens to this path is told.
    pub(super) fn tells(&self, path: &[u8]) -> bool {
        let is_in = |asked: &Asked| levels(&asked.path, path).is_some_and(|l| l <= self.depth);
        self.asked.iter().any(is_in)
    }

    /// Whether a directory at this path is watched: something below it is told, or lies on the way.
    pub(super) fn enters(&self, path: &[u8]) -> bool {
        let is_in = |asked: &Asked| {
            levels(&asked.path, path).is_some_and(|levels| levels < self.depth)
                || levels(path, &asked.path).is_some()
        };
        self.asked.iter().any(is_in)
    }

    /// Whether every path is told, so that it makes no difference where something is moved.
    pub(super) fn is_whole(&self) -> bool {
        self.depth == usize::MAX && self.asked.iter().any(|asked| asked.path.is_empty())
    }

    /// Takes in that something is there, or is not.
    pub(super) fn note(&mut self, path: &[u8], is_there: bool, is_directory: bool) {
        for asked in self.asked.iter_mut().filter(|asked| asked.path == path) {
            (asked.is_there, asked.is_directory) = (is_there, is_directory);
        }
    }

    /// The places below a directory that are gone when it is, and are not told on account of it.
    pub(super) fn lose_below(&mut self, directory: &[u8]) -> Vec<Asked> {
        let is_below = |path: &[u8]| levels(directory, path).is_some_and(|levels| levels > 0);
        let mut lost = Vec::new();
        for asked in self.asked.iter_mut().filter(|a| a.is_there && is_below(&a.path)) {
            asked.is_there = false;
            lost.push(asked.clone());
        }
        lost
    }

    /// Nobody knows any more what is there.
    pub(super) fn forget(&mut self) {
        self.asked.iter_mut().for_each(|asked| asked.is_there = true);
    }
}

/// How many levels a path lies below another; `None` if it does not.
fn levels(above: &[u8], path: &[u8]) -> Option<usize> {
    let rest = path.strip_prefix(above)?;
    let rest = match (above.is_empty(), rest) {
        (_, []) => return Some(0),
        (true, rest) => rest,
        (false, rest) => rest.strip_prefix(b"/")?,
    };
    Some(1 + rest.iter().filter(|byte| **byte == b'/').count())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(paths: &[&str], depth: u32) -> Scope {
        let asked = paths.iter().map(|path| Asked::new(path.as_bytes().to_vec(), true));
        Scope::new(asked.collect(), depth)
    }

    #[test]
    fn what_lies_below_is_told_as_deep_as_was_asked() {
        let check = |paths: &[&str], depth, path: &str, tells, enters| {
            let scope = scope(paths, depth);
            let said = (scope.tells(path.as_bytes()), scope.enters(path.as_bytes()));
            assert_eq!(said, (tells, enters), "{path} of {paths:?} to {depth}");
        };
        check(&[""], u32::MAX, "a/b/c/d", true, true);
        check(&[""], 1, "", true, true);
        check(&[""], 1, "a", true, false);
        check(&[""], 1, "a/b", false, false);
        check(&["a/b"], 1, "a", false, true);
        check(&["a/b"], 1, "a/b", true, true);
        check(&["a/b"], 1, "a/b/c", true, false);
        check(&["a/b"], 2, "a/b/c", true, true);
        check(&["a/b"], 2, "a/bc", false, false);
        check(&["a/b", "c"], 1, "c/x", true, false);
        check(&["a/b", "c"], 1, "x", false, false);
    }

    #[test]
    fn what_was_asked_for_is_lost_once_with_a_directory_above_it() {
        let mut scope = scope(&["a/b", "a/c", "d", "a"], 1);
        scope.note(b"a/c", false, false);
        let lost = scope.lose_below(b"a");
        assert_eq!(lost.iter().map(|a| a.path.as_slice()).collect::<Vec<_>>(), [b"a/b"]);
        assert!(scope.lose_below(b"a").is_empty());
        scope.note(b"a/b", true, true);
        assert_eq!(scope.lose_below(b"a").len(), 1);
        scope.forget();
        assert_eq!(scope.lose_below(b"").len(), 4);
        assert!(!scope.is_whole());
    }
}

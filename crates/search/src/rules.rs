//! What `.gitignore` files say, the deeper one before the upper one.

use crate::left_out::{LeftOut, Reason, leave_out};
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The file with rules.
pub(crate) const RULES: &[u8] = b".gitignore";

/// The most bytes of rules that hold for one place together.
pub const MAX_RULE_BYTES: usize = 256 << 10;

/// The most files with rules that hold for one place together. Each may cost a matcher of its own.
pub const MAX_RULE_FILES: usize = 16;

/// The rules of all directories on the way to a place.
#[derive(Default)]
pub(crate) struct Rules {
    levels: Vec<Level>,
}

struct Level {
    /// How much of a path lies above the directory of these rules.
    above: usize,
    bytes: usize,
    matcher: Gitignore,
}

impl Rules {
    pub(crate) fn len(&self) -> usize {
        self.levels.len()
    }

    /// Forgets what was added since there were so many.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.levels.truncate(len);
    }

    /// How many more bytes of rules may hold here.
    pub(crate) fn room(&self) -> usize {
        let held: usize = self.levels.iter().map(|level| level.bytes).sum();
        match self.levels.len() < MAX_RULE_FILES {
            true => MAX_RULE_BYTES.saturating_sub(held),
            false => 0,
        }
    }

    /// Adds the rules of a directory. What makes no sense is left out and told.
    pub(crate) fn add(&mut self, directory: &[u8], text: &[u8], left_out: &mut Vec<LeftOut>) {
        let mut builder = GitignoreBuilder::new(".");
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        let mut all_make_sense = true;
        for line in text.split(|byte| *byte == b'\n') {
            let added = str::from_utf8(line).is_ok_and(|line| builder.add_line(None, line).is_ok());
            all_make_sense &= added;
        }
        let matcher = builder.build();
        if !all_make_sense || matcher.is_err() {
            leave_out(left_out, Reason::Rules, directory);
        }
        if let Ok(matcher) = matcher
            && !matcher.is_empty()
        {
            let above = if directory.is_empty() { 0 } else { directory.len() + 1 };
            self.levels.push(Level { above, bytes: text.len(), matcher });
        }
    }

    /// Whether something is excluded.
    pub(crate) fn exclude(&self, path: &[u8], is_directory: bool) -> bool {
        for level in self.levels.iter().rev() {
            let below = Path::new(OsStr::from_bytes(path.get(level.above..).unwrap_or_default()));
            match level.matcher.matched(below, is_directory) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => {}
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(files: &[(&str, &str)]) -> (Rules, Vec<LeftOut>) {
        let (mut rules, mut left_out) = (Rules::default(), Vec::new());
        for (directory, text) in files {
            rules.add(directory.as_bytes(), text.as_bytes(), &mut left_out);
        }
        (rules, left_out)
    }

    #[test]
    fn the_deeper_rule_and_the_later_line_win() {
        let files = [("", "*.log\n/build/\n!keep.log\n"), ("a", "!*.log\nsecret.log\n/only\n")];
        let (both, left_out) = rules(&files);
        let (upper, _) = rules(&files[..1]);
        let check = |rules: &Rules, path: &str, is_directory, expected| {
            assert_eq!(rules.exclude(path.as_bytes(), is_directory), expected, "{path}");
        };
        check(&upper, "x.log", false, true);
        check(&upper, "b/x.log", false, true);
        check(&upper, "keep.log", false, false);
        check(&upper, "build", true, true);
        check(&upper, "build", false, false);
        check(&upper, "b/build", true, false);
        check(&both, "a/x.log", false, false);
        check(&both, "a/secret.log", false, true);
        check(&both, "a/only", false, true);
        check(&both, "a/b/only", false, false);
        assert!(left_out.is_empty());
    }

    #[test]
    fn what_makes_no_sense_is_told_and_stops_no_other_line() {
        let mut left_out = Vec::new();
        let mut rules = Rules::default();
        rules.add(b"", b"a[z-a]\n\xff\xfe\nfine\n", &mut left_out);
        assert!(rules.exclude(b"fine", false));
        assert_eq!((left_out[0].reason, left_out[0].count), (Reason::Rules, 1));
    }

    #[test]
    fn no_more_rules_hold_than_fit() {
        let mut rules = Rules::default();
        for _ in 0..MAX_RULE_FILES {
            assert!(rules.room() > 0);
            rules.add(b"", b"x\n", &mut Vec::new());
        }
        assert_eq!(rules.room(), 0);
        rules.truncate(1);
        assert_eq!(rules.room(), MAX_RULE_BYTES - 2);
    }
}

//! What of a git directory leads git elsewhere by its content: references that stand for another name, the
//! index, and what is remembered of conflicts.
//!
//! HOSTILE: git writes a reference where one that stands for it says, `commondir` for example, and whatever
//! an index names. No name of these can be pinned, for git writes them at every commit, so they are looked
//! at when a command is over.

use super::Search;
use super::index::{self, Names};
use rustix::fs::{AtFlags, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read as _};

/// No index that is larger is read, nor more of all together.
const MAX_INDEX_BYTES: usize = 256 << 20;
const MAX_INDEXES_BYTES: u64 = 512 << 20;
/// How many references are read. Each takes some ten microseconds.
const MAX_REFERENCES: usize = 200_000;
/// What is read of a reference. A name of git is shorter.
const REFERENCE_BYTES: usize = 4096;
/// The same of `MERGE_RR`.
const MAX_REMEMBERED_BYTES: usize = 4 << 20;

/// What git makes of a file in a git directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Read {
    Reference,
    Index,
    Conflicts,
}

impl Read {
    /// By its names below the git directory; `None` where nothing in it leads anywhere.
    pub(crate) fn of(names: &[&[u8]]) -> Option<Self> {
        // A linked work tree has some of its own.
        let own = match names {
            [b"worktrees", _, own @ ..] => own,
            all => all,
        };
        match own {
            [b"refs", _, ..] => Some(Self::Reference),
            [b"MERGE_RR"] => Some(Self::Conflicts),
            [b"index"] => Some(Self::Index),
            [name] if name.starts_with(b"sharedindex.") => Some(Self::Index),
            [name] if is_of_top(name) => Some(Self::Reference),
            _ => None,
        }
    }

    /// Whether what a file of that kind holds leads out of where git should be.
    pub(crate) fn leads_out(self, file: File) -> io::Result<bool> {
        let most = match self {
            Self::Reference => REFERENCE_BYTES,
            Self::Index => MAX_INDEX_BYTES,
            Self::Conflicts => MAX_REMEMBERED_BYTES,
        };
        let mut content = Vec::with_capacity(REFERENCE_BYTES);
        file.take(most as u64 + 1).read_to_end(&mut content)?;
        // Of a reference the beginning is enough; what else is not read whole may say anything.
        let is_cut = content.len() > most && self != Self::Reference;
        Ok(is_cut || self.says_out(&content))
    }

    fn says_out(self, content: &[u8]) -> bool {
        match self {
            Self::Reference => stands_for_other(content),
            Self::Index => index::judge(content) != Names::Inside,
            Self::Conflicts => !index::remembers_inside(content),
        }
    }
}

/// References beside `refs` have such names: `HEAD`, `ORIG_HEAD`.
fn is_of_top(name: &[u8]) -> bool {
    name.iter().all(|byte| byte.is_ascii_uppercase() || matches!(byte, b'_' | b'-'))
}

/// Whether a reference stands for a name that is none of a reference.
fn stands_for_other(content: &[u8]) -> bool {
    let Some(named) = content.strip_prefix(b"ref:") else { return false };
    // A name that begins so and would lead out of there is refused by git.
    !named.trim_ascii_start().starts_with(b"refs/")
}

impl Search<'_> {
    /// Looks at a file of a git directory, where it may lead somewhere.
    pub(super) fn leading(&mut self, git: &str, path: &str) {
        let below = path.strip_prefix(git).unwrap_or(path);
        let names: Vec<&[u8]> =
            below.split('/').filter(|name| !name.is_empty()).map(str::as_bytes).collect();
        let Some(kind) = Read::of(&names) else { return };
        if kind == Read::Index && self.is_as_before(path) {
            return;
        }
        // Before a command there is nothing to tell of.
        if self.before.is_none() {
            return;
        }
        if !self.may_read(path, kind) {
            self.found.present.insert(path.to_owned());
            return;
        }
        // Nothing is waited for.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let is_led = match self.open_as(path, flags) {
            Ok(file) => kind.leads_out(file.into()).unwrap_or(true),
            Err(Errno::NOENT) if !path.contains(char::REPLACEMENT_CHARACTER) => false,
            // HOSTILE: what is closed to a look is not closed to git.
            Err(_) => true,
        };
        if is_led {
            self.found.present.insert(path.to_owned());
        }
    }

    /// LIMIT: what is not read any more is told of.
    fn may_read(&mut self, path: &str, kind: Read) -> bool {
        match kind {
            Read::Reference => {
                self.references += 1;
                self.references <= MAX_REFERENCES
            }
            Read::Index | Read::Conflicts => {
                let found = rustix::fs::statat(self.workspace, path, AtFlags::SYMLINK_NOFOLLOW);
                let size = found.map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or(u64::MAX));
                self.index_bytes = self.index_bytes.saturating_add(size);
                self.index_bytes <= MAX_INDEXES_BYTES
            }
        }
    }

    /// Notes which file an index is, and says whether it is the one that it was.
    fn is_as_before(&mut self, path: &str) -> bool {
        let Ok(stat) = rustix::fs::statat(self.workspace, path, AtFlags::SYMLINK_NOFOLLOW) else {
            return false;
        };
        let stamp = (stat.st_ino, stat.st_size, stat.st_ctime, stat.st_ctime_nsec);
        let stamp = format!("{stamp:?}");
        let is_as_before =
            self.before.is_some_and(|before| before.indexes.get(path) == Some(&stamp));
        self.found.indexes.insert(path.to_owned(), stamp);
        is_as_before
    }
}

/// Whether files of this directory of a git directory may lead somewhere.
pub(super) fn has_leading(git: &str, directory: &str) -> bool {
    let below = directory.strip_prefix(git).unwrap_or(directory).trim_start_matches('/');
    matches!(below.split('/').next(), Some("" | "refs" | "worktrees"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str) -> Option<Read> {
        Read::of(&path.split('/').map(str::as_bytes).collect::<Vec<_>>())
    }

    #[test]
    fn what_git_reads_is_known_by_its_names() {
        for path in ["HEAD", "ORIG_HEAD", "refs/heads/a/b", "refs/stash", "worktrees/w/HEAD"] {
            assert_eq!(of(path), Some(Read::Reference), "{path}");
        }
        for path in ["index", "sharedindex.0a", "worktrees/w/index"] {
            assert_eq!(of(path), Some(Read::Index), "{path}");
        }
        assert_eq!(of("MERGE_RR"), Some(Read::Conflicts));
        for path in ["config", "logs/HEAD", "objects/ab/cd", "index.lock", "packed-refs", "refs"] {
            assert_eq!(of(path), None, "{path}");
        }
    }

    #[test]
    fn a_reference_stands_for_references_alone() {
        for good in ["ref: refs/heads/main\n", "ref:refs/remotes/o/m", "0123abcd\n", "", "refs: x"]
        {
            assert!(!Read::Reference.says_out(good.as_bytes()), "{good:?}");
        }
        let padded = format!("ref:{}refs/heads/main", " ".repeat(10));
        assert!(!Read::Reference.says_out(padded.as_bytes()));
        for bad in ["ref: commondir\n", "ref:\t\nconfig", "ref: ../x", "ref:", "ref: ref"] {
            assert!(Read::Reference.says_out(bad.as_bytes()), "{bad:?}");
        }
        // What is said so late that it was not read counts as elsewhere.
        assert!(Read::Reference.says_out(format!("ref:{}", " ".repeat(4092)).as_bytes()));
    }
}

//! What of a git directory leads git elsewhere by its content: references that stand for another name, the
//! index, and what is remembered of conflicts.
//!
//! HOSTILE: git writes a reference where one that stands for it says, `commondir` for example, and whatever
//! an index names. No name of these can be pinned, for git writes them at every commit, so they are looked
//! at when a command is over.

use super::index::{self, Names};
use super::{Look, Search};
use crate::state::retry;
use rustix::fs::{AtFlags, OFlags};
use rustix::io::Errno;

/// No index that is larger is read.
pub(crate) const MAX_INDEX_BYTES: usize = 256 << 20;
/// What is read of a reference. A name of git is shorter.
pub(crate) const REFERENCE_BYTES: usize = 4096;
/// The same of `MERGE_RR`.
pub(crate) const MAX_REMEMBERED_BYTES: usize = 4 << 20;

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

    /// Whether content of that kind leads out of where git should be.
    pub(crate) fn leads_out(self, content: &[u8]) -> bool {
        match self {
            Self::Reference => stands_for_other(content),
            Self::Index => index::judge(content) != Names::Inside,
            Self::Conflicts => !index::remembers_inside(content),
        }
    }

    /// How much of a file tells that.
    pub(crate) fn most_bytes(self) -> usize {
        match self {
            Self::Reference => REFERENCE_BYTES,
            Self::Index => MAX_INDEX_BYTES,
            Self::Conflicts => MAX_REMEMBERED_BYTES,
        }
    }

    /// Whether the beginning is enough.
    pub(crate) fn is_cut(self) -> bool {
        self == Self::Reference
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
        if self.look == Look::Before {
            return;
        }
        let is_led = match self.beginning(path, kind.most_bytes()) {
            Ok((content, is_all)) => (!is_all && !kind.is_cut()) || kind.leads_out(&content),
            Err(Errno::NOENT) if !path.contains(char::REPLACEMENT_CHARACTER) => false,
            // HOSTILE: what is closed to a look is not closed to git.
            Err(_) => true,
        };
        if is_led {
            self.found.present.insert(path.to_owned());
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

    /// The beginning of a regular file, and whether it is all. Waits for nothing.
    fn beginning(&self, path: &str, most: usize) -> Result<(Vec<u8>, bool), Errno> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = self.open_as(path, flags)?;
        let mut content = vec![0; most.min(REFERENCE_BYTES)];
        let mut len = 0;
        loop {
            let count = match content.get_mut(len..) {
                None | Some([]) => 0,
                Some(room) => retry(|| rustix::io::read(&file, &mut *room))?,
            };
            len += count;
            if count == 0 && len < content.len() {
                content.truncate(len);
                return Ok((content, true));
            }
            if len == content.len() {
                if len >= most {
                    return Ok((content, false));
                }
                content.resize(len.saturating_mul(2).min(most), 0);
            }
        }
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
            assert!(!Read::Reference.leads_out(good.as_bytes()), "{good:?}");
        }
        let padded = format!("ref:{}refs/heads/main", " ".repeat(10));
        assert!(!Read::Reference.leads_out(padded.as_bytes()));
        for bad in ["ref: commondir\n", "ref:\t\nconfig", "ref: ../x", "ref:", "ref: ref"] {
            assert!(Read::Reference.leads_out(bad.as_bytes()), "{bad:?}");
        }
        // What is said so late that it was not read counts as elsewhere.
        assert!(Read::Reference.leads_out(format!("ref:{}", " ".repeat(4092)).as_bytes()));
    }
}

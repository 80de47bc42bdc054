//! Git directories of submodules, which lie below `modules` of another one.
//!
//! `modules` itself is pinned read-only with all in it, so that no repository can be put there for a later git
//! of the user to take. In that, each that is a git directory already is written as an ordinary one is, with
//! its own control files pinned.
//!
//! HOSTILE: git finds one by the name of a submodule, which the content of a commit gives. One that was made
//! within the git directory of another submodule would be found, too, where git does not take that for one any
//! more. It cannot be prevented, for git makes directories there, so it is told of.

use super::{Search, join};
use cofferdam_core::Result;
use cofferdam_wire::plan::Access;
use rustix::fs::FileType;
use std::collections::VecDeque;
use std::path::Path;

/// How many of one workspace are written. Each costs some ten mounts.
const MAX_MODULES: usize = 128;
/// How many directories are listed for them, and how deep below the workspace they are.
const MAX_DIRECTORIES: usize = 2000;
const MAX_DEPTH: usize = 32;
/// What git has them in.
const MODULES: &str = "modules";

/// What was found of them so far.
#[derive(Debug, Default)]
pub(super) struct Modules {
    found: usize,
    listed: usize,
    /// Whether they are another work tree's, which stay read-only.
    pub(super) are_of_others: bool,
}

impl Search<'_> {
    /// The git directories of submodules of this one, those that they have themselves among them.
    ///
    /// LIMIT: beyond the limits they stay read-only with what they lie in, and that is said.
    pub(super) fn modules(&mut self, git: &str) -> Result<()> {
        let top = join(git, MODULES);
        let is_there = matches!(self.kind(&top)?, Some((FileType::Directory, _)));
        if !is_there || self.modules.are_of_others {
            return Ok(());
        }
        let mut waiting = VecDeque::from([top]);
        while let Some(directory) = waiting.pop_front() {
            self.modules.listed += 1;
            if self.modules.listed > MAX_DIRECTORIES || depth(&directory) >= MAX_DEPTH {
                self.kept_read_only(&directory);
                continue;
            }
            for (name, _) in self.entries(&directory, usize::MAX, |it| it == FileType::Directory) {
                let path = join(&directory, &name);
                if self.open.contains(&path) {
                    continue;
                }
                if !self.is_module(&path)? {
                    waiting.push_back(path);
                } else if self.modules.found >= MAX_MODULES {
                    self.kept_read_only(&path);
                } else {
                    self.modules.found += 1;
                    self.module(&path)?;
                }
            }
        }
        Ok(())
    }

    /// One that was one before the command stays one, or what leads git elsewhere in it would not be told
    /// where its `HEAD` is gone for the moment.
    fn is_module(&mut self, path: &str) -> Result<bool> {
        let was = self.before.is_some_and(|before| before.present.contains(path));
        Ok(was || self.is_git_directory(path)?)
    }

    fn module(&mut self, path: &str) -> Result<()> {
        self.found.present.insert(path.to_owned());
        self.pin(path.to_owned(), Access::ReadWrite);
        self.open.insert(path.to_owned());
        let tree = self.named_work_tree(path).unwrap_or_else(|| path.to_owned());
        self.git_directory(path, &tree)
    }

    fn kept_read_only(&mut self, path: &str) {
        let note = format!(
            "{path:?} is shown read-only, because there are more than {MAX_MODULES} git directories of \
             submodules, or they are too deep or too many directories to look through: commits fail there"
        );
        if self.found.notes.is_empty() {
            self.found.notes.push(note);
        }
    }

    /// Whether git might find a git directory within this one by the name of a submodule.
    pub(super) fn may_hold_modules(&self, git: &str) -> bool {
        self.root.join(git).iter().any(|name| name == MODULES)
    }
}

fn depth(path: &str) -> usize {
    Path::new(path).iter().count()
}

#[cfg(test)]
#[path = "modules_tests.rs"]
mod tests;

//! Git directories of submodules, which git keeps in `modules` of the git directory that they belong to.
//!
//! A submodule that has one can be committed in: its git directory stays as it is, with its own control files
//! pinned as those of any other. All else below `modules` is read-only, so that no git directory comes, goes
//! or is exchanged there. The name of a submodule may have several parts, `a/b`, and the directory `a` is then
//! none itself; it has `modules` of its own where it has submodules.
//!
//! HOSTILE: all of it may have been made by an earlier command. What is not plainly a git directory, what another
//! one lies in, where no name would be pinned, and what is more than the limits below stays read-only, which
//! needs no word: it is protected, and git fails there.

use super::git_config::{Target, targets};
use super::links::is_by_sum;
use super::{ControlFiles, Nature, PinnedName, Search, join, parent_of};
use crate::placeholders;
use cofferdam_core::Result;
use cofferdam_wire::plan::Access;
use rustix::fs::{AtFlags, FileType};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Where they are in a git directory.
pub(super) const MODULES: &str = "modules";
/// How many stay as they are. Each costs some 10 mounts.
pub(super) const MAX_MODULES: usize = 64;
/// How many directories are listed to find them. A listing costs some 6 µs.
const MAX_LISTED: usize = 20_000;
/// How many entries of one are looked at.
const MAX_ENTRIES: usize = 10_000;
/// No path of one is longer, so that the names in it can be asked for.
const MAX_PATH_BYTES: usize = 1024;
/// Directories of a git directory that are pinned themselves.
const PINNED: [&str; 3] = [MODULES, "hooks", "worktrees"];

/// What was found of them.
#[derive(Debug, Default)]
pub(super) struct Modules {
    /// The git directories of submodules that stay as they are, by the directory `modules` that each is in.
    open: BTreeMap<String, Vec<String>>,
    /// Those that were such before.
    before: BTreeSet<String>,
    /// Work trees of such that are not checked out.
    left: BTreeSet<String>,
    /// How many there are.
    count: usize,
    /// How many directories were listed.
    listed: usize,
}

impl Modules {
    /// Those of a workspace that was looked at before.
    pub(super) fn of(before: &ControlFiles) -> Self {
        let open = before.pins.iter().flat_map(|pin| pin.open.iter().cloned());
        let before: BTreeSet<String> = open.collect();
        Self { count: before.len(), before, ..Self::default() }
    }

    /// Whether a path is read-only, with all that is in it, by the directory `modules` that it is in, as far as
    /// is known by now.
    pub(super) fn is_closed(&self, path: &str) -> bool {
        let open = || self.open.values().flatten();
        let mut around = Path::new(path).ancestors().filter_map(Path::to_str);
        // The innermost decides.
        let innermost = around.find_map(|around| match self.open.contains_key(around) {
            true => Some(true),
            false => open().any(|open| open == around).then_some(false),
        });
        innermost == Some(true) && !open().any(|open| Path::new(open).starts_with(path))
    }

    /// Whether no submodule is checked out in a work tree that one has.
    pub(super) fn is_left(&self, tree: &str) -> bool {
        self.left.contains(tree)
    }

    /// What is made of a pinned path.
    ///
    /// What was pinned read-only for another reason has nothing in it that can be written.
    pub(super) fn pinned(&mut self, path: String, access: Access) -> PinnedName {
        match (access, self.open.remove(&path)) {
            (Access::ReadWrite, Some(open)) => PinnedName { path, access: Access::ReadOnly, open },
            (access, _) => PinnedName { path, access, open: Vec::new() },
        }
    }
}

impl Search<'_> {
    /// Pins a directory `modules`, and the control files of the git directories in it.
    pub(super) fn modules(&mut self, modules: String, nature: Nature) -> Result<()> {
        if self.modules.open.contains_key(&modules) {
            return Ok(());
        }
        if !placeholders::is_like_one(self.workspace, &modules, nature, FileType::Directory) {
            self.found.present.insert(modules.clone());
        }
        self.pin(modules.clone(), Access::ReadWrite);
        let found = self.in_modules(&modules);
        // ORDER: all are known before any is looked at. What leads to another one is not read-only.
        self.modules.open.insert(modules, found.clone());
        for git in found {
            self.way(&git);
            let tree = self.tree_of(&git);
            if tree != git && self.kind(&join(&tree, ".git"))?.is_none() {
                self.modules.left.insert(tree.clone());
            }
            self.git_directory(&git, &tree)?;
        }
        Ok(())
    }

    /// The git directories of submodules that stay as they are.
    fn in_modules(&mut self, modules: &str) -> Vec<String> {
        let mut waiting = vec![modules.to_owned()];
        let mut found = Vec::new();
        while let Some(directory) = waiting.pop() {
            for path in self.directories_in(&directory).unwrap_or_default() {
                if self.modules.before.contains(&path) {
                    found.push(path);
                } else if path.len() > MAX_PATH_BYTES || is_odd(&path) {
                    continue;
                } else if !self.is_plainly_git(&path) {
                    waiting.push(path);
                } else if self.modules.count < MAX_MODULES && !self.holds_another(&path) {
                    self.modules.count += 1;
                    found.push(path);
                }
            }
        }
        found
    }

    /// The directories in a directory, in their order; `None` where not all of them are known.
    fn directories_in(&mut self, directory: &str) -> Option<Vec<String>> {
        self.modules.listed += 1;
        if self.modules.listed > MAX_LISTED {
            return None;
        }
        let is_wanted = |kind| kind == FileType::Directory;
        let entries = self.listing(directory, MAX_ENTRIES, is_wanted).ok()?;
        let paths = entries.into_iter().map(|(name, _)| join(directory, &name));
        let mut paths: Vec<String> = paths.collect();
        paths.sort();
        (paths.len() < MAX_ENTRIES).then_some(paths)
    }

    /// Whether a directory can be nothing else: that a name is there which is one of git's, `refs` for one, may
    /// be the beginning of a submodule's name.
    fn is_plainly_git(&self, path: &str) -> bool {
        let is = |name: &str, kind: FileType| {
            let path = join(path, name);
            rustix::fs::statat(self.workspace, path, AtFlags::SYMLINK_NOFOLLOW)
                .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == kind)
        };
        is("HEAD", FileType::RegularFile)
            && is("objects", FileType::Directory)
            && is("refs", FileType::Directory)
    }

    /// Whether another git directory lies in one, as old versions of git made them for submodules `a` and `a/b`,
    /// or may: no name in that would be pinned.
    fn holds_another(&mut self, git: &str) -> bool {
        let mut waiting = vec![git.to_owned()];
        while let Some(directory) = waiting.pop() {
            let Some(paths) = self.directories_in(&directory) else { return true };
            let is_looked_at = |path: &String| {
                let is_pinned = PINNED.iter().any(|name| *path == join(git, name));
                let is_of_sums = parent_of(path) == join(git, "objects") && is_by_sum(path);
                !is_pinned && !is_of_sums
            };
            for path in paths.into_iter().filter(is_looked_at) {
                if is_odd(&path) || self.is_plainly_git(&path) {
                    return true;
                }
                waiting.push(path);
            }
        }
        false
    }

    /// Where its configuration says that its work tree is; itself where it says nothing, as for a bare one.
    fn tree_of(&self, git: &str) -> String {
        let config = self.configuration(&join(git, "config")).unwrap_or_default();
        let mut named = targets(&config).into_iter().filter_map(|target| match target {
            Target::WorkTree(path) => String::from_utf8(path).ok(),
            Target::Hooks(_) | Target::Include(_) => None,
        });
        let Some(path) = named.next() else { return git.to_owned() };
        let outer = || self.outer_path(git, &path).to_string_lossy().into_owned();
        self.follow(git, &path).end.unwrap_or_else(outer)
    }
}

/// Whether a name may stand for one that is no text.
fn is_odd(path: &str) -> bool {
    path.contains(char::REPLACEMENT_CHARACTER)
}

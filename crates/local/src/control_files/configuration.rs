//! What configurations of git lead to in the workspace, wherever they are themselves.
//!
//! HOSTILE: one in the workspace may have been written from inside, by an earlier command. One outside of it is the user's own.

use super::git_config::{Target, targets};
use super::repository::{Leads, MAX_ENTRIES};
use super::users::{at_home, is_nothing, text};
use super::{Nature, Search, is_own, is_repository, join, parent_of};
use cofferdam_core::Result;
use rustix::fs::FileType;
use rustix::io::Errno;
use std::path::{Path, PathBuf};

/// No configuration that people or tools write is longer.
pub(super) const CONFIG_BYTES: usize = 4 << 20;
/// How far inclusions are followed, as git does.
pub(super) const INCLUSIONS: usize = 10;
/// How many configurations are read of one workspace.
const MAX_CONFIGURATIONS: usize = 4096;
/// How many bytes of them, and how many of what they name.
const MAX_CONFIGURATION_BYTES: usize = 64 << 20;
const MAX_TARGETS: usize = 20_000;
/// How git writes a path that is meant from where it is installed.
const WHERE_GIT_IS: &str = "%(prefix)/";

/// A configuration, and where what it names is looked for. A directory that begins with a slash is one of
/// the host, any other one of the workspace.
#[derive(Clone, Copy)]
struct Config<'a> {
    /// Its path, for people.
    who: &'a str,
    /// The directory that it is in.
    base: &'a str,
    /// Work trees in which git runs hooks.
    trees: &'a [String],
    depth: usize,
}

impl Search<'_> {
    /// What the hooks and the configuration of a git directory lead to.
    pub(super) fn followed(&mut self, git: &str, tree: &str) -> Result<()> {
        self.hooks(&join(git, "hooks"))?;
        let files = ["config", "config.worktree"].map(|name| join(git, name));
        let texts = files.map(|file| (self.text_of(&file).unwrap_or_default(), file));
        let mut trees = vec![tree.to_owned()];
        for (text, _) in &texts {
            trees.extend(self.work_trees(git, text));
        }
        for (text, file) in &texts {
            self.config(file, text, (&trees, 0))?;
        }
        trees.iter().try_for_each(|tree| self.of_the_user(tree))?;
        self.of_linked(git)
    }

    /// What linked work trees have of their own in this git directory. They may be outside of the workspace, and have
    /// git run there what lies in it.
    fn of_linked(&mut self, git: &str) -> Result<()> {
        let led = self.follow("", &join(git, "worktrees"));
        let Some(all) = led.end.filter(|end| !end.is_empty()) else { return Ok(()) };
        let entries = self.entries(&all, MAX_ENTRIES, |kind| kind == FileType::Directory);
        if entries.len() >= MAX_ENTRIES {
            self.unprotected(all.clone(), "it has too many work trees to look at each");
        }
        for (name, _) in entries {
            let own = join(&all, &name);
            let file = join(&own, "config.worktree");
            let Some(text) = self.text_of(&file) else { continue };
            let pointer = self.read_text(&join(&own, "gitdir"), CONFIG_BYTES).unwrap_or_default();
            let tree = pointer.trim_end().trim_end_matches(".git");
            let inside = self.follow(&own, tree).end;
            let outer = || self.outer_path(&own, tree).to_string_lossy().into_owned();
            self.config(&file, &text, (&[inside.unwrap_or_else(outer)], 0))?;
        }
        Ok(())
    }

    /// What a git directory outside of the workspace makes git run in the work tree at `tree`.
    pub(super) fn outside(&mut self, git: &Path, tree: &str) -> Result<()> {
        let shared = self.text_outside(&git.join("commondir"));
        let shared = shared.map(|text| String::from_utf8_lossy(&text).trim_end().to_owned());
        let common = shared.map_or_else(|| git.to_owned(), |shared| git.join(shared));
        self.outer_hooks(&common.join("hooks"))?;
        let files = [common.join("config"), git.join("config.worktree")];
        let texts = files.map(|file| (self.text_outside(&file).unwrap_or_default(), file));
        let mut trees = vec![tree.to_owned()];
        for (text, _) in &texts {
            trees.extend(self.work_trees(&git.to_string_lossy(), text));
        }
        for (text, file) in &texts {
            let who = file.to_string_lossy();
            let base = file.parent().unwrap_or(file).to_string_lossy();
            self.targets(text, Config { who: &who, base: &base, trees: &trees, depth: 0 })?;
        }
        trees.iter().try_for_each(|tree| self.of_the_user(tree))
    }

    /// The user's own configuration, and the repository of the host that the workspace is a part of.
    pub(super) fn around(&mut self) -> Result<()> {
        self.users_own()?;
        let Some((git, tree)) = enclosing(&self.root) else { return Ok(()) };
        self.outside(&git, &tree.to_string_lossy())
    }

    /// Hooks outside of the workspace that lead into it.
    pub(super) fn outer_hooks(&mut self, hooks: &Path) -> Result<()> {
        let who = hooks.to_string_lossy().into_owned();
        if self.follow("", &who).end.is_some() {
            return self.hooks_path(&who, "", &who);
        }
        let Ok(entries) = std::fs::read_dir(hooks) else { return Ok(()) };
        for entry in entries.flatten().take(MAX_ENTRIES) {
            let Ok(target) = entry.path().read_link() else { continue };
            let path = hooks.join(target).to_string_lossy().into_owned();
            let who = entry.path().to_string_lossy().into_owned();
            if let Some(inside) = self.inside(&who, "", &path) {
                self.fix_at(&who, &inside, Nature::File)?;
            }
        }
        Ok(())
    }

    /// Further work trees that a configuration names.
    fn work_trees(&self, git: &str, text: &[u8]) -> Vec<String> {
        let mut found = Vec::new();
        for target in targets(text) {
            if let Target::WorkTree(path) = target
                && let Ok(path) = String::from_utf8(path)
            {
                let inside = self.follow(git, &path).end;
                let outer = || self.outer_path(git, &path).to_string_lossy().into_owned();
                found.push(inside.unwrap_or_else(outer));
            }
        }
        found
    }

    /// The text of a configuration in the workspace, also where a link leads to it.
    fn configuration(&self, path: &str) -> Result<Vec<u8>, Errno> {
        match self.read(path, CONFIG_BYTES) {
            Err(Errno::LOOP | Errno::INVAL) => {}
            read => return read,
        }
        let led = self.follow("", path);
        match led.end {
            Some(end) if led.links.is_empty() || end.is_empty() => Err(Errno::INVAL),
            Some(end) => self.read(&end, CONFIG_BYTES),
            None => text(&self.root.join(path)),
        }
    }

    /// The same, and says so where it is there and is not read.
    ///
    /// HOSTILE: whoever holds a lease on a file makes a look at it fail.
    fn text_of(&mut self, path: &str) -> Option<Vec<u8>> {
        let text = self.configuration(path);
        let text = self.had(path, text)?;
        self.spent(path, text)
    }

    /// What was read of a file in the workspace; where it is there and was not, that is said.
    pub(super) fn had<T>(&mut self, path: &str, read: Result<T, Errno>) -> Option<T> {
        match read {
            Ok(text) => Some(text),
            // Closed to this user, it is closed to their git.
            Err(Errno::ACCESS) if !is_own(self.workspace, path.as_bytes()) => None,
            Err(errno) => {
                self.unread(path, errno);
                None
            }
        }
    }

    /// The same of one that is outside.
    fn text_outside(&mut self, file: &Path) -> Option<Vec<u8>> {
        let who = file.to_string_lossy();
        match text(file) {
            Ok(text) => self.spent(&who, text),
            Err(Errno::ACCESS) => None,
            Err(errno) => {
                self.unread(&who, errno);
                None
            }
        }
    }

    /// LIMIT: what is read of configurations in all.
    fn spent(&mut self, path: &str, text: Vec<u8>) -> Option<Vec<u8>> {
        self.configuration_bytes = self.configuration_bytes.saturating_add(text.len());
        if self.configuration_bytes > MAX_CONFIGURATION_BYTES {
            self.unknown(path, "there are too many large configurations to read each");
            return None;
        }
        Some(text)
    }

    /// Says that something is there and could not be read; nothing where it is not there.
    pub(super) fn unread(&mut self, path: &str, errno: Errno) {
        match errno {
            errno if is_nothing(errno) => {}
            Errno::FBIG => self.unknown(path, "it is too large to be read"),
            errno => self.unknown(path, &format!("it cannot be read: {errno}")),
        }
    }

    fn config(
        &mut self,
        path: &str,
        text: &[u8],
        (trees, depth): (&[String], usize),
    ) -> Result<()> {
        // What is included is meant from where the configuration really is.
        let end = self.follow("", path).end;
        let real = self.root.join(path).canonicalize().unwrap_or_default();
        let outer = real.parent().map(|parent| parent.to_string_lossy().into_owned());
        let base = end.map_or(outer, |end| Some(parent_of(&end).to_owned())).unwrap_or_default();
        self.targets(text, Config { who: path, base: &base, trees, depth })
    }

    /// HOSTILE: one that includes itself, or others many times over, is read once for these work trees.
    fn targets(&mut self, text: &[u8], config: Config<'_>) -> Result<()> {
        if !self.read.insert((config.who.to_owned(), config.trees.to_vec())) {
            return Ok(());
        }
        if self.read.len() > MAX_CONFIGURATIONS {
            self.unknown(config.who, "there are too many configurations to read each");
            return Ok(());
        }
        for target in targets(text) {
            // LIMIT: looking for each where it leads takes some ten microseconds.
            self.targets += 1;
            if self.targets > MAX_TARGETS {
                self.unknown(config.who, "there is too much that configurations name");
                return Ok(());
            }
            let (Target::Hooks(path) | Target::Include(path) | Target::WorkTree(path)) = &target;
            let Ok(path) = std::str::from_utf8(path) else {
                self.unknown(config.who, "what it names is not UTF-8");
                continue;
            };
            let path = at_home(path);
            match target {
                Target::Hooks(_) => {
                    for tree in config.trees {
                        self.hooks_path(config.who, tree, &path)?;
                    }
                }
                Target::Include(_) => self.included(config, &path)?,
                Target::WorkTree(_) => {}
            }
        }
        Ok(())
    }

    fn included(&mut self, config: Config<'_>, path: &str) -> Result<()> {
        let Config { who, base, trees, depth } = config;
        if depth >= INCLUSIONS || path.is_empty() || path.starts_with(WHERE_GIT_IS) {
            return Ok(());
        }
        let path = match self.leads(who, base, path) {
            Leads::Inside(path) => path,
            Leads::Outside(file) => {
                let who = file.to_string_lossy();
                if self.was_read(&who, trees) {
                    return Ok(());
                }
                let Some(text) = self.text_outside(&file) else { return Ok(()) };
                let base = file.parent().unwrap_or(&file).to_string_lossy();
                let config = Config { who: &who, base: &base, trees, depth: depth + 1 };
                return self.targets(&text, config);
            }
            Leads::Top => return Ok(()),
        };
        if !self.is_fixed(&path) {
            self.fix_at(who, &path, Nature::GitFile)?;
        }
        if self.was_read(&path, trees) {
            return Ok(());
        }
        match self.text_of(&path) {
            Some(text) => self.config(&path, &text, (trees, depth + 1)),
            None => Ok(()),
        }
    }

    /// HOSTILE: asked before it is read, or one that is included many times over is read as often.
    fn was_read(&self, who: &str, trees: &[String]) -> bool {
        self.read.contains(&(who.to_owned(), trees.to_vec()))
    }

    /// What it leads to is not known, and may be anywhere.
    fn unknown(&mut self, path: &str, why: &str) {
        self.unprotected(path.to_owned(), why);
        self.found.pointed.push(String::new());
    }

    /// Where `who` says that hooks are. For git, an empty path has none.
    pub(super) fn hooks_path(&mut self, who: &str, tree: &str, text: &str) -> Result<()> {
        if text.is_empty() || text.starts_with(WHERE_GIT_IS) {
            return Ok(());
        }
        let Some(path) = self.inside(who, tree, text) else { return Ok(()) };
        if self.kind(&path)?.is_some() {
            self.found.present.insert(path.clone());
        } else if who.starts_with('/') && self.open(parent_of(&path)).is_err() {
            // LIMIT: of all repositories of a user, this one has no such place. It is told of where it comes.
            self.found.pointed.push(path);
            return Ok(());
        }
        if !self.is_fixed(&path) {
            self.fix_at(who, &path, Nature::Directory)?;
        }
        self.hooks(&path)
    }

    /// A path that leads out of the workspace, on the host.
    pub(super) fn outer_path(&self, base: &str, text: &str) -> PathBuf {
        self.root.join(base).join(text)
    }
}

/// The git directory and the work tree of the repository that a directory lies in, as git looks for it.
fn enclosing(root: &Path) -> Option<(PathBuf, PathBuf)> {
    root.ancestors().skip(1).find_map(|above| {
        let dot = above.join(".git");
        let pointer = text(&dot).unwrap_or_default();
        let named = String::from_utf8_lossy(&pointer);
        let named = named.strip_prefix("gitdir:").and_then(|named| named.lines().next());
        let git = named.map_or(dot, |named| above.join(named.trim()));
        [git, above.to_owned()]
            .into_iter()
            .find(|git| is_repository(|sign| git.join(sign).symlink_metadata().is_ok()))
            .map(|git| (git, above.to_owned()))
    })
}

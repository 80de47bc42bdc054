//! The git directory of a linked work tree or a submodule, which lies outside of the workspace and is written from inside.

use super::{ControlFiles, Nature, ScanEnd, Search, join};
use crate::state::io;
use crate::view::{OuterGitDirectory, outer_git_directory};
use cofferdam_core::Result;
use cofferdam_wire::plan::Access;
use rustix::fs::{Mode, OFlags, open};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

/// What is written from inside of the git directory that a work tree shares with others, beside objects, where
/// its names cannot be pinned.
const WRITTEN: [&str; 2] = ["refs", "logs"];

/// Names in a linked work tree's own directory that decide where git looks and what it runs.
const OWN: [(&str, Nature); 4] = [
    ("commondir", Nature::CommonDir),
    ("gitdir", Nature::GitFile),
    ("config.worktree", Nature::GitFile),
    ("modules", Nature::Directory),
];

/// Finds the control files of a git directory outside of the workspace, relative to it, and the sockets in it
/// that somebody listens at. `before` is as for the workspace.
pub(crate) fn find_outer(
    outer: &OuterGitDirectory,
    workspace: &str,
    before: Option<&ControlFiles>,
) -> Result<ControlFiles> {
    let directory = open_outer(&outer.common)?;
    let mut search = Search::new(directory.as_fd(), Path::new(&outer.common).to_owned());
    search.before = before;
    search.users_own()?;
    // Hooks may be named from either work tree.
    let tree = outer.common.rsplit_once('/').map_or("/", |(above, _)| above);
    // Submodules of a linked work tree are in its own directory.
    search.modules.are_of_others = outer.own.is_some();
    search.git_directory("", tree)?;
    search.followed("", workspace)?;
    search.modules.are_of_others = false;
    if let Some(own) = &outer.own {
        let below = own.strip_prefix(&outer.common).unwrap_or(own);
        search.own_directory(below.trim_start_matches('/'), workspace)?;
    }
    let sockets = std::mem::take(&mut search.sockets);
    if before.is_none() {
        search.listening(sockets);
    }
    let mut found = search.finish(ScanEnd::Complete);
    // Both work trees lead to the same hooks.
    found.unprotected.sort_by(|a, b| (&a.path, &a.why).cmp(&(&b.path, &b.why)));
    found.unprotected.dedup();
    Ok(found)
}

/// What appeared there since, by its whole path.
pub(crate) fn appeared_outer(
    before: &ControlFiles,
    outer: &OuterGitDirectory,
    workspace: &str,
) -> Result<Vec<String>> {
    let now = find_outer(outer, workspace, Some(before))?;
    Ok(super::news(before, &now).map(|path| format!("{}/{path}", outer.common)).collect())
}

/// Opens such a git directory, by its true path.
fn open_outer(common: &str) -> Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    open(common, flags, Mode::empty())
        .map_err(|e| io("open the git directory", Path::new(common), e))
}

impl Search<'_> {
    /// A linked work tree's own directory, among those of others, which stay as they are.
    fn own_directory(&mut self, own: &str, workspace: &str) -> Result<()> {
        self.pin(own.to_owned(), Access::ReadWrite);
        self.open.insert(own.to_owned());
        self.modules(own)?;
        OWN.iter().try_for_each(|(name, nature)| self.name(join(own, name), *nature))?;
        self.state_of_git(own);
        self.followed(own, workspace)
    }

    /// Notes what leads git elsewhere there, and how it goes on with what it began.
    pub(super) fn outer_state(&mut self) {
        let Some(root) = self.root.to_str().map(str::to_owned) else { return };
        let Some(OuterGitDirectory { common, own }) = outer_git_directory(&root) else { return };
        match own {
            Some(own) => {
                self.beside(&own, &[""]);
                // How others go on is theirs.
                self.beside(&common, &WRITTEN);
            }
            None => self.beside(&common, &[""]),
        }
    }

    /// Looks at these directories of a directory of the host.
    fn beside(&mut self, outer: &str, below: &[&str]) {
        let Ok(directory) = open_outer(outer) else { return };
        let mut search = Search::new(directory.as_fd(), Path::new(outer).to_owned());
        search.before = self.before;
        search.links_in("", below.iter().map(|name| (*name).to_owned()).collect());
        if below.contains(&"") {
            search.state_of_git("");
        }
        let named = |path: &str| format!("{outer}/{path}");
        let found = search.found;
        self.found.present.extend(found.present.iter().map(|path| named(path)));
        self.found.state.extend(found.state.into_iter().map(|(path, state)| (named(&path), state)));
        for mut closed in found.unprotected {
            closed.path = named(&closed.path);
            self.found.unprotected.push(closed);
        }
    }
}

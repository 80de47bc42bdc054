//! The git directory of a linked work tree, which lies outside of the workspace and is written from inside.

use super::Search;
use crate::view;
use rustix::fs::{Mode, OFlags, open};
use std::os::fd::AsFd;
use std::path::Path;

/// What is written from inside of the git directory that such a work tree shares with others, beside objects.
const WRITTEN: [&str; 2] = ["refs", "logs"];

impl Search<'_> {
    /// Notes what leads git elsewhere there, and how it goes on with what it began.
    pub(super) fn outer_state(&mut self) {
        let Some(root) = self.root.to_str().map(str::to_owned) else { return };
        let Some((common, own)) = view::linked_worktree(&root) else { return };
        self.beside(&own, &[""]);
        // How others go on is theirs.
        self.beside(&common, &WRITTEN);
    }

    /// Looks at these directories of a directory of the host.
    fn beside(&mut self, outer: &str, below: &[&str]) {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let Ok(directory) = open(outer, flags, Mode::empty()) else { return };
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

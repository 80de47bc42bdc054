//! The git directory of a workspace that is a linked work tree or a submodule, whose control files are held as
//! those of the workspace are.

use crate::control_files::{ControlFiles, PinnedName, Unprotected, appeared_outer, find_outer};
use crate::placeholders::Placeholders;
use crate::state::StateDirectory;
use crate::view::OuterGitDirectory;
use cofferdam_core::{Error, Result};
use std::collections::BTreeSet;
use std::path::Path;

/// A git directory outside of the workspace of which a sandbox holds names.
#[derive(Debug)]
pub(super) struct HeldOuter {
    outer: OuterGitDirectory,
    /// The work tree.
    workspace: String,
    placeholders: Placeholders,
    control: ControlFiles,
}

impl HeldOuter {
    /// Makes something stand at every control file that is absent.
    pub(super) fn hold(
        outer: &OuterGitDirectory,
        workspace: &str,
        state: &StateDirectory,
    ) -> Result<Self> {
        // ORDER: as for the workspace.
        let placeholders = Placeholders::hold(state, Path::new(&outer.common))?;
        let found = find_outer(outer, workspace, None)?;
        let unmade = placeholders.make(&found.absent)?;
        let control = found.without(unmade);
        Ok(Self { outer: outer.clone(), workspace: workspace.to_owned(), placeholders, control })
    }

    /// The names by their whole paths, parents first.
    pub(super) fn pins(&self) -> Vec<PinnedName> {
        whole(&self.outer, &self.control)
    }

    /// Sockets in it that somebody listens at, by their whole paths.
    pub(super) fn sockets(&self) -> impl Iterator<Item = String> {
        self.control.sockets.iter().map(|path| self.named(path))
    }

    /// What of it cannot be protected, by its whole path.
    pub(super) fn unprotected(&self) -> impl Iterator<Item = Unprotected> {
        let named =
            |name: &Unprotected| Unprotected { path: self.named(&name.path), ..name.clone() };
        self.control.unprotected.iter().map(named)
    }

    /// Makes a placeholder for every name that has vanished.
    pub(super) fn renew(&self) -> Result<()> {
        let mut now = find_outer(&self.outer, &self.workspace, None)?;
        let pins: BTreeSet<&str> = self.control.pins.iter().map(|pin| pin.path.as_str()).collect();
        now.absent.retain(|name| pins.contains(name.path.as_str()));
        self.placeholders.make(&now.absent).map(drop)
    }

    /// Gives up the names. Answers the control files that appeared, and what could not be removed.
    pub(super) fn leave(self) -> (Result<Vec<String>>, Option<Error>) {
        let Self { outer, workspace, placeholders, control } = self;
        let left = placeholders.remove().err();
        // ORDER: after the placeholders are gone, which are no news.
        (appeared_outer(&control, &outer, &workspace), left)
    }

    fn named(&self, path: &str) -> String {
        format!("{}/{path}", self.outer.common)
    }
}

/// The names of a git directory that are pinned, by their whole paths.
pub(super) fn whole(outer: &OuterGitDirectory, control: &ControlFiles) -> Vec<PinnedName> {
    let pin = |pin: &PinnedName| PinnedName {
        path: format!("{}/{}", outer.common, pin.path),
        ..pin.clone()
    };
    control.pins.iter().map(pin).collect()
}

//! Paths through places that a sandboxed command may have written.
//!
//! HOSTILE: below such a place an earlier run could put a symbolic link where the caller lists a
//! directory, and the next run would show what the link leads to. So no link that lies there is
//! followed. Of a path that the caller listed, a link anywhere else is the caller's own. Of one that nobody
//! listed, as those of `PATH`, it may be one of an earlier run of another workspace; see
//! [`cofferdam_core::way`].

use super::Shown;
use super::lookup::{self, Found, is_within};
use super::secrets::Secrets;
use crate::host::HostFacts;
use cofferdam_core::way::{PassedLink, doubted_link, planted};
use cofferdam_core::{Result, Spec};
use cofferdam_wire::plan::Access;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// The places.
#[derive(Debug, Default)]
pub(super) struct Written {
    roots: Vec<String>,
    /// The caller's, canonical.
    home: Option<PathBuf>,
    is_root: bool,
}

/// Where a path leads.
#[derive(Debug)]
pub(super) enum Way {
    /// Nowhere.
    Missing,
    /// To this, through the link, which a command may have made.
    Planted(PathBuf, Found),
    /// To this.
    Clear(Found),
}

impl Written {
    /// The workspace, whatever this profile may do with it, because an earlier run may have had
    /// another one; and everything that can be written now.
    pub(super) fn of(
        spec: &Spec,
        facts: &HostFacts,
        ground: &super::workspace::Ground,
        secrets: &Secrets,
    ) -> Self {
        let workspace = match &ground.workspace {
            super::WorkspaceView::Directory(directory) => Some(directory.path.clone()),
            super::WorkspaceView::Private => None,
        };
        let is_writable = |shown: &&Shown| shown.access == Access::ReadWrite;
        let shown = ground.shown.iter().filter(is_writable).map(|shown| shown.path.clone());
        let listed = spec.write.iter().filter_map(lookup::find).map(|found| found.path);
        Self {
            roots: workspace.into_iter().chain(shown).chain(listed).collect(),
            home: secrets.home().map(PathBuf::from),
            is_root: facts.is_root(),
        }
    }

    /// Whether a canonical path is one of the places, or lies in one.
    pub(super) fn holds(&self, path: &str) -> bool {
        self.roots.iter().any(|root| is_within(path, root))
    }

    /// Resolves a path that nobody listed. A link to what can be written anyway does no harm.
    pub(super) fn way(&self, path: &Path) -> Way {
        let Some(found) = lookup::find(path) else { return Way::Missing };
        let doubts =
            |link: &PassedLink| self.holds(&link.above.to_string_lossy()) || self.is_doubted(link);
        match doubted(path, &found, doubts).filter(|_| !self.holds(&found.path)) {
            Some(link) => Way::Planted(link, found),
            None => Way::Clear(found),
        }
    }

    /// Resolves a path that the caller listed, or says why not.
    pub(super) fn find_listed(&self, path: &Path, what: &str) -> Result<Found> {
        let found = lookup::find_listed(path, what)?;
        let doubts = |link: &PassedLink| self.holds(&link.above.to_string_lossy());
        match doubted(path, &found, doubts) {
            Some(link) => Err(planted(what, path, &link, Path::new(&found.path))),
            None => Ok(found),
        }
    }

    /// Whether a run of another workspace may have made this link. As root any may have: what a command
    /// makes in root's workspace is root's.
    fn is_doubted(&self, link: &PassedLink) -> bool {
        let is_the_systems = || !self.is_root && link.path.ancestors().all(is_roots);
        !link.stays() && !link.is_out_of_reach(self.home.as_deref()) && !is_the_systems()
    }
}

fn doubted(path: &Path, found: &Found, doubts: impl Fn(&PassedLink) -> bool) -> Option<PathBuf> {
    // ORDER: before the path is made absolute, which costs more.
    if path == Path::new(&found.path) {
        return None;
    }
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let read = |at: &Path| {
        let target = rustix::fs::readlink(at, Vec::new()).ok()?;
        Some(PathBuf::from(OsString::from_vec(target.into_bytes())))
    };
    doubted_link(&path, Path::new(&found.path), read, doubts)
}

/// Whether root alone may change this directory or link. The mode of a link says nothing.
fn is_roots(path: &Path) -> bool {
    let others = 0o022;
    rustix::fs::lstat(path).is_ok_and(|stat| {
        let is_link = rustix::fs::FileType::from_raw_mode(stat.st_mode).is_symlink();
        stat.st_uid == 0 && (is_link || stat.st_mode & others == 0)
    })
}

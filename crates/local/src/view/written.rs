//! Paths through places that a sandboxed command may have written.
//!
//! HOSTILE: below such a place an earlier run could put a symbolic link where the caller lists a
//! directory, and the next run would show what the link leads to. So no link that lies there is
//! followed. A link anywhere else is the caller's own.

use super::Shown;
use super::lookup::{self, Found, is_within};
use cofferdam_core::{Error, ErrorKind, Result, Spec};
use cofferdam_wire::plan::Access;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

/// The kernel follows no more either.
const MAX_LINKS: u32 = 40;

/// The places.
#[derive(Debug, Default)]
pub(super) struct Written {
    roots: Vec<String>,
}

/// Where a path leads.
#[derive(Debug)]
pub(super) enum Way {
    /// Nowhere.
    Missing,
    /// Through this link, which a command may have made.
    Planted(PathBuf),
    /// To this.
    Clear(Found),
}

impl Written {
    /// The workspace, whatever this profile may do with it, because an earlier run may have had
    /// another one; and everything that can be written now.
    pub(super) fn of(spec: &Spec, ground: &super::workspace::Ground) -> Self {
        let workspace = match &ground.workspace {
            super::WorkspaceView::Directory(directory) => Some(directory.path.clone()),
            super::WorkspaceView::Private => None,
        };
        let is_writable = |shown: &&Shown| shown.access == Access::ReadWrite;
        let shown = ground.shown.iter().filter(is_writable).map(|shown| shown.path.clone());
        let listed = spec.write.iter().filter_map(lookup::find).map(|found| found.path);
        Self { roots: workspace.into_iter().chain(shown).chain(listed).collect() }
    }

    /// Whether a canonical path is one of the places, or lies in one.
    pub(super) fn holds(&self, path: &str) -> bool {
        self.roots.iter().any(|root| is_within(path, root))
    }

    /// Resolves a path that nobody listed. A link to what can be seen anyway does no harm.
    pub(super) fn way(&self, path: &Path) -> Way {
        let Some(found) = lookup::find(path) else { return Way::Missing };
        match self.planted(path, &found).filter(|_| !self.holds(&found.path)) {
            Some(link) => Way::Planted(link),
            None => Way::Clear(found),
        }
    }

    /// Resolves a path that the caller listed, or says why not.
    pub(super) fn find_listed(&self, path: &Path, what: &str) -> Result<Found> {
        let found = lookup::find_listed(path, what)?;
        let Some(link) = self.planted(path, &found) else { return Ok(found) };
        let message = format!(
            "{what} {} leads through the symbolic link {}, which an earlier command in a sandbox \
             may have made",
            path.display(),
            link.display()
        );
        Err(Error::new(ErrorKind::Denied, message)
            .hint(format!("Remove the link, or list {} itself if you trust it.", found.path)))
    }

    /// The link of one of the places that leads from `path` to what was found.
    fn planted(&self, path: &Path, found: &Found) -> Option<PathBuf> {
        // The usual case: a canonical path has no link in it.
        if path == Path::new(&found.path) {
            return None;
        }
        let mut at = PathBuf::from("/");
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let mut left = parts(&path);
        let mut links = 0;
        while let Some(part) = left.pop() {
            if part == ".." {
                at.pop();
                continue;
            }
            let next = at.join(&part);
            let Ok(target) = rustix::fs::readlink(&next, Vec::new()) else {
                at = next;
                continue;
            };
            links += 1;
            if links > MAX_LINKS || self.holds(&at.to_string_lossy()) {
                return Some(next);
            }
            let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
            if target.is_absolute() {
                at = PathBuf::from("/");
            }
            left.extend(parts(&target));
        }
        // Something was exchanged between the two looks.
        (at != Path::new(&found.path)).then_some(at)
    }
}

/// The names of a path, the last one first.
fn parts(path: &Path) -> Vec<OsString> {
    let name = |part: Component<'_>| match part {
        Component::Normal(_) | Component::ParentDir => Some(part.as_os_str().to_owned()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    };
    path.components().rev().filter_map(name).collect()
}

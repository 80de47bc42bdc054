//! Which changes are of control files that nobody named.

use super::changes::{Facts, parent};
use super::layer::Layer;
use super::look::{Kind, Seen, look};
use super::repositories::Looking;
use super::walk::Pair;
use crate::control_files::{self, ControlFiles, Named, Read, SIGNS_OF_GIT, is_repository, named};
use crate::kernel_path::through;
use cofferdam_core::{GuestPath, Result, is_at_or_below};
use cofferdam_wire::plan::Access;
use rustix::fd::OwnedFd;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;

/// What has to be known of a layer and its workspace to judge changes.
pub(super) struct Known<'l> {
    layer: &'l Layer,
    /// What repositories protect, of the workspace and of the layer, relative to it.
    pinned: BTreeSet<Vec<u8>>,
    /// Directories of the layer, and what else it has.
    is_directory: BTreeMap<&'l GuestPath, bool>,
    /// Control files that somebody named, and what they are.
    named: Vec<GuestPath>,
    bare: RefCell<BTreeMap<Vec<u8>, bool>>,
}

impl<'l> Known<'l> {
    /// Looks at the workspace: at every repository that a change is in, and at others as far as
    /// `looking` goes. A path of `wanted` frees the control files at and below it if it is one of a control
    /// file itself.
    pub(super) fn new(
        layer: &'l Layer,
        pairs: &'l [Pair],
        wanted: &[GuestPath],
        looking: Looking,
    ) -> Result<Self> {
        let directories = pairs.iter().filter_map(|pair| parent(pair.path.as_bytes()));
        let sides = [&layer.workspace, &layer.upper];
        let (around, unnamed) = control_files::around(&sides, directories)?;
        let all = layer.repositories(looking)?.with(&around);
        let root = Path::new(&layer.base.workspace);
        let pinned = pinned_paths(control_files::find_in(&layer.workspace, root, &all)?);
        let changed = pinned_paths(control_files::find_in(&layer.upper, root, &around)?);
        // Its removal alone says nothing of what is in it.
        let is_removed = |path: &[u8]| {
            let found = look(&layer.upper, path).ok().flatten();
            path.ends_with(b".git") && found.is_some_and(|(seen, _)| seen.kind == Kind::Device)
        };
        let changed = changed.filter(|path| !is_removed(path));
        let directory = |pair: &'l Pair| {
            let top = pair.upper.as_ref();
            (&pair.path, top.is_some_and(|top| top.seen.kind == Kind::Directory))
        };
        let mut known = Self {
            layer,
            // What is in a repository whose path is no text is not known further.
            pinned: pinned.chain(changed).chain(unnamed).collect(),
            is_directory: pairs.iter().map(directory).collect(),
            named: Vec::new(),
            bare: RefCell::default(),
        };
        known.named = wanted.iter().filter(|path| known.is_control(path)).cloned().collect();
        Ok(known)
    }

    fn is_named(&self, path: &GuestPath) -> bool {
        self.named.iter().any(|named| {
            // A directory on the way to what is named comes with it.
            is_at_or_below(path, named)
                || is_at_or_below(named, path) && self.is_directory.get(path) == Some(&true)
        })
    }

    fn is_control(&self, path: &GuestPath) -> bool {
        if self.is_pinned(path.as_bytes()) || self.leads_away(path) {
            return true;
        }
        match named(path) {
            Named::Control => true,
            Named::Ordinary => self.makes_repository(path) || self.leads_bare(path),
            Named::GitDirectory => !self.is_directory(path),
            Named::InGitDirectory(read) => {
                self.is_link(path) || read.is_some_and(|read| self.leads_git(path, read))
            }
            Named::GitState => self.is_there(path),
            Named::IfBare(directory) => self.is_bare(directory),
        }
    }

    /// Whether git would take the directory that a path is in for a repository only with this path, and
    /// find control files there that are in the workspace already.
    fn makes_repository(&self, path: &GuestPath) -> bool {
        let is_sign = |name: &[u8]| {
            let is = |sign: &&str| name.eq_ignore_ascii_case(sign.as_bytes());
            SIGNS_OF_GIT.iter().any(is)
        };
        if !path.names().last().is_some_and(is_sign) {
            return false;
        }
        let directory = parent(path.as_bytes()).unwrap_or_default();
        let below = |name: &str| has(&self.layer.workspace, directory, name);
        self.is_bare(directory.to_vec())
            && !is_repository(below)
            && control_files::in_git_directory().any(below)
    }

    /// Whether the content of a file leads git out of where it should be.
    fn leads_git(&self, path: &GuestPath, read: Read) -> bool {
        let upper = &self.layer.upper;
        let Ok(Some((seen, file))) = look(upper, path.as_bytes()) else { return false };
        if seen.kind != Kind::File {
            return false;
        }
        // What cannot be read may say anything.
        File::open(through(&file)).and_then(|file| read.leads_out(file)).unwrap_or(true)
    }

    /// The same of a reference of a bare repository.
    fn leads_bare(&self, path: &GuestPath) -> bool {
        let names: Vec<&[u8]> = path.names().collect();
        let places = (0..names.len()).filter(|at| names.get(*at) == Some(&&b"refs"[..]));
        let mut directories = places.filter_map(|at| Some(names.get(..at)?.join(&b'/')));
        directories.any(|directory| self.is_bare(directory))
            && self.leads_git(path, Read::Reference)
    }

    /// Whether a link takes the place of a directory in which a repository protects something: what is
    /// protected would be found where it leads.
    fn leads_away(&self, path: &GuestPath) -> bool {
        let below = [path.as_bytes(), b"/"].concat();
        let first = self.pinned.range(below.clone()..).next();
        first.is_some_and(|first| first.starts_with(&below))
            && !self.is_directory(path)
            && self.is_link(path)
    }

    /// Whether a repository protects it, or what it is in.
    fn is_pinned(&self, path: &[u8]) -> bool {
        let mut ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        // The empty path is all of the workspace.
        self.pinned.contains(path)
            || self.pinned.contains(&b""[..])
            || ends.any(|(at, _)| path.get(..at).is_some_and(|path| self.pinned.contains(path)))
    }

    /// Whether the sandbox has a directory there.
    fn is_directory(&self, path: &GuestPath) -> bool {
        match self.is_directory.get(path) {
            Some(is_directory) => *is_directory,
            None => self.is_kind(path.as_bytes(), Kind::Directory),
        }
    }

    /// Whether the sandbox has anything there.
    fn is_there(&self, path: &GuestPath) -> bool {
        look(&self.layer.upper, path.as_bytes())
            .is_ok_and(|found| found.is_some_and(|(seen, _)| seen.kind != Kind::Device))
    }

    fn is_link(&self, path: &GuestPath) -> bool {
        self.is_kind(path.as_bytes(), Kind::Link)
    }

    fn is_kind(&self, path: &[u8], kind: Kind) -> bool {
        [&self.layer.upper, &self.layer.workspace].into_iter().any(|side| {
            look(side, path).is_ok_and(|found| found.is_some_and(|(seen, _)| seen.kind == kind))
        })
    }

    /// Whether git would take a directory for a repository, on either side or both together.
    fn is_bare(&self, directory: Vec<u8>) -> bool {
        if let Some(known) = self.bare.borrow().get(&directory) {
            return *known;
        }
        let has = |name: &str| {
            [&self.layer.upper, &self.layer.workspace]
                .into_iter()
                .any(|side| has(side, &directory, name))
        };
        let is_bare = is_repository(has);
        self.bare.borrow_mut().insert(directory, is_bare);
        is_bare
    }
}

/// What these control files are, and what they lead to.
fn pinned_paths(found: ControlFiles) -> impl Iterator<Item = Vec<u8>> {
    let fixed = found.pins.into_iter().filter(|pin| pin.access == Access::ReadOnly);
    fixed.map(|pin| pin.path).chain(found.pointed).map(String::into_bytes)
}

/// Whether something stands there.
fn has(side: &OwnedFd, directory: &[u8], name: &str) -> bool {
    let lead = if directory.is_empty() { &b""[..] } else { b"/" };
    let path = [directory, lead, name.as_bytes()].concat();
    look(side, &path).is_ok_and(|found| found.is_some())
}

impl Facts for Known<'_> {
    fn since_ns(&self, path: &GuestPath) -> u64 {
        self.layer.since_ns(path.as_bytes())
    }

    fn dropped_ns(&self, path: &GuestPath) -> u64 {
        self.layer.dropped.at_ns(path.as_bytes())
    }

    fn has_landed(&self, path: &GuestPath) -> bool {
        self.layer.landed.has(path.as_bytes())
    }

    fn top_touched_ns(&self) -> Option<u64> {
        // What cannot be told counts as changed.
        let at_ns = Seen::of(&self.layer.workspace).map_or(u64::MAX, |seen| seen.modified_ns);
        (at_ns > self.layer.since_ns(b"")).then_some(at_ns)
    }

    fn is_protected(&self, path: &GuestPath) -> bool {
        self.is_control(path) && !self.is_named(path)
    }

    fn is_freed(&self, path: &GuestPath) -> bool {
        self.is_named(path) && self.is_control(path)
    }

    fn workspace(&self) -> &[u8] {
        self.layer.base.workspace.as_bytes()
    }
}

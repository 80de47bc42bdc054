//! Toolchains that the caller's `PATH` leads to.
//!
//! A program on `PATH` is often a shim that needs the root of its version manager, so known roots
//! are shown as a whole. Another directory on `PATH` is shown alone, with what its programs need beside it
//! where it is known for a toolchain's. All read-only.

mod beside;
mod caches;
mod known;

use super::lookup::{Found, find, is_within, owner_for_root};
use super::secrets::Secrets;
use super::written::{Way, Written};
use super::{Place, Shown, View};
use crate::host::HostFacts;
use cofferdam_core::{Caller, Result, Spec};
use cofferdam_wire::plan::{Access, Owner};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// What toolchains need.
#[derive(Debug, Default)]
pub(super) struct Toolchains {
    pub(super) places: Vec<Place>,
    pub(super) path: Vec<String>,
    pub(super) variables: BTreeMap<String, String>,
    pub(super) git_identity: Option<String>,
    pub(super) notes: Vec<String>,
}

/// Directories of programs that every sandbox has, in the usual order.
const SYSTEM_PATH: &[&str] =
    &["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// What is shown as the system already.
const SYSTEM: &[&str] =
    &["/usr", "/bin", "/sbin", "/nix/store", "/gnu/store", "/run/current-system"];

/// Looks for the toolchains of this caller.
pub(super) fn look(
    spec: &Spec,
    facts: &HostFacts,
    secrets: &Secrets,
    written: &Written,
) -> Result<Toolchains> {
    let mut tools = Toolchains::default();
    if spec.profile.shows_toolchains() {
        let caller = &spec.caller;
        let has_way_out = spec.network_policy()?.is_some();
        let read = &spec.read;
        let mut search =
            Search { caller, read, facts, secrets, written, has_way_out, tools: &mut tools };
        search.path();
        search.caches();
        tools.git_identity = caches::git_identity(&spec.caller);
    }
    for directory in SYSTEM_PATH {
        tools.add_to_path(directory);
    }
    Ok(tools)
}

/// Whether this variable of the caller says where toolchains are.
pub(super) fn reads(variable: &str) -> bool {
    ["PATH", "GOMODCACHE", "GOPATH"].contains(&variable)
        || known::ROOTS.iter().any(|root| root.variable == variable)
}

impl Toolchains {
    /// Those of an image: none of the host's, and the usual directories.
    pub(super) fn beside_an_image(spec: &Spec) -> Self {
        let passes = spec.profile.shows_toolchains();
        Self {
            path: SYSTEM_PATH.iter().map(|path| (*path).to_owned()).collect(),
            git_identity: passes.then(|| caches::git_identity(&spec.caller)).flatten(),
            ..Self::default()
        }
    }

    fn add_to_path(&mut self, directory: &str) {
        if !self.path.iter().any(|known| known == directory) {
            self.path.push(directory.to_owned());
        }
    }
}

/// One look for toolchains.
struct Search<'a> {
    caller: &'a Caller,
    /// What the caller listed.
    read: &'a [PathBuf],
    facts: &'a HostFacts,
    secrets: &'a Secrets,
    written: &'a Written,
    /// Whether something can be fetched.
    has_way_out: bool,
    tools: &'a mut Toolchains,
}

impl Search<'_> {
    fn variable(&self, name: &str) -> Option<&str> {
        self.caller.env.get(OsStr::new(name))?.to_str().filter(|value| value.starts_with('/'))
    }

    /// Follows each entry of `PATH`.
    fn path(&mut self) {
        let Some(path) = self.caller.env.get(OsStr::new("PATH")) else { return };
        let mut seen: Vec<String> = Vec::new();
        for entry in std::env::split_paths(path) {
            let Some(entry) = entry.to_str() else { continue };
            // An empty or relative entry means the working directory: a trap, not a toolchain.
            let entry = entry.trim_end_matches('/');
            if entry.starts_with('/') && !seen.contains(&entry.to_owned()) {
                self.entry(entry);
                seen.push(entry.to_owned());
            }
        }
    }

    fn entry(&mut self, entry: &str) {
        if is_system(entry) && !entry.split('/').any(|part| part == "..") {
            return self.tools.add_to_path(entry);
        }
        let Some(found) = self.find(entry).filter(Found::is_directory) else { return };
        if is_system(&found.path) {
            return self.tools.add_to_path(&found.path);
        }
        if let Some(why) = self.forbids(&found.path) {
            self.tools.notes.push(format!("{entry} of PATH is not shown: {why}"));
            return;
        }
        // What lies in the workspace is there already.
        if !self.known_root(entry, &found.path) && !self.written.holds(&found.path) {
            self.alone(&found);
        }
        self.tools.add_to_path(&found.path);
    }

    /// Resolves a path, and says so where it is left out for a link that a command may have made. One that
    /// leads to what can be seen anyway, or to programs of a known toolchain, does no harm.
    fn find(&mut self, path: &str) -> Option<Found> {
        match self.written.way(Path::new(path)) {
            Way::Missing => None,
            Way::Clear(found) => Some(found),
            Way::Planted(_, found)
                if is_system(&found.path)
                    || self.is_listed(&found.path)
                    || self.is_of_known_root(&found.path) =>
            {
                Some(found)
            }
            Way::Planted(link, found) => {
                let note = format!(
                    "{path} is not shown: it leads through the link {}, which an earlier command \
                     in a sandbox may have made; list {} with --read if you trust it",
                    link.display(),
                    found.path
                );
                if !self.tools.notes.contains(&note) {
                    self.tools.notes.push(note);
                }
                None
            }
        }
    }

    /// Whether the caller wants to have this canonical path shown. Asked of what is doubted only: it looks at
    /// the disk.
    fn is_listed(&self, path: &str) -> bool {
        let listed = |read: &PathBuf| self.written.find_listed(read, "--read").ok();
        self.read.iter().filter_map(listed).any(|read| is_within(path, &read.path))
    }

    /// Whether a canonical path lies in a root that nothing but a toolchain is in. A name such as `~/n` says
    /// too little.
    fn is_of_known_root(&self, path: &str) -> bool {
        let is_sure = |root: &&known::Root| {
            self.variable(root.variable).is_some() || root.default.starts_with(['.', '/'])
        };
        let sure = known::ROOTS.iter().filter(is_sure);
        let mut places = sure.filter_map(|root| self.place_of(root));
        places.any(|place| is_within(path, &place) && self.forbids(&place).is_none())
    }

    /// Why a directory cannot be shown for the sake of `PATH`.
    fn forbids(&self, path: &str) -> Option<&'static str> {
        if path == "/" || self.secrets.home().is_some_and(|home| is_within(home, path)) {
            return Some("it is, or lies above, the home directory");
        }
        if ["/proc", "/sys", "/dev", "/etc", "/run"].iter().any(|kernel| is_within(path, kernel)) {
            return Some("programs do not belong there");
        }
        self.secrets.is(path)
    }

    /// Shows the known root that an entry lies in, and those that go with it. Says whether there is
    /// one.
    fn known_root(&mut self, entry: &str, canonical: &str) -> bool {
        let mut any = false;
        for root in known::ROOTS {
            let Some(literal) = self.place_of(root) else { continue };
            if self.tools.places.iter().any(|place| place.path() == literal) {
                any |= is_within(canonical, &literal);
                continue;
            }
            let starts =
                |path: &str| is_within(path, &literal) || root.goes_with(path, self.caller);
            if !starts(entry) && !starts(canonical) {
                continue;
            }
            let Some(found) = self.find(&literal).filter(Found::is_directory) else { continue };
            if self.forbids(&found.path).is_some() || is_system(&found.path) {
                continue;
            }
            any |= is_within(canonical, &found.path);
            match root.shown {
                known::Show::Whole => self.show(&found, &found.path, root.what),
                known::Show::Cargo => self.cargo_home(&found),
            }
            if !root.variable.is_empty() {
                self.tools.variables.insert(root.variable.to_owned(), found.path);
            }
        }
        any
    }

    /// Where a known root is for this caller.
    fn place_of(&self, root: &known::Root) -> Option<String> {
        if let Some(value) = self.variable(root.variable) {
            return Some(value.trim_end_matches('/').to_owned());
        }
        match root.default {
            "" => None,
            absolute if absolute.starts_with('/') => Some(absolute.to_owned()),
            below => self.caller.home.as_ref()?.join(below).to_str().map(str::to_owned),
        }
    }

    /// A directory that is no known toolchain. What lies in `/opt` comes as a whole: programs there
    /// need their neighbours.
    fn alone(&mut self, found: &Found) {
        let package = found.path.strip_prefix("/opt/").and_then(|rest| rest.split('/').next());
        match package.and_then(|name| self.find(&format!("/opt/{name}"))) {
            Some(package) => self.show(&package, &package.path, "stands on PATH"),
            None => {
                self.show(found, &found.path, "stands on PATH");
                self.beside(found);
            }
        }
    }

    fn show(&mut self, found: &Found, path: &str, what: &str) {
        let place = Place::Shown(self.read_only(found, path, what));
        self.add(place);
    }

    fn read_only(&self, found: &Found, path: &str, what: &str) -> Shown {
        let owner = if self.facts.is_root() { owner_for_root(found) } else { Owner::Same };
        Shown {
            source: found.path.clone(),
            path: path.to_owned(),
            access: Access::ReadOnly,
            owner,
            identity: None,
            why: what.to_owned(),
        }
    }

    /// What is there already stays as it is.
    fn add(&mut self, place: Place) {
        if !self.tools.places.iter().any(|there| there.path() == place.path()) {
            self.tools.places.push(place);
        }
    }
}

fn is_system(path: &str) -> bool {
    SYSTEM.iter().any(|system| is_within(path, system))
}

/// Programs on the shown `PATH` that are links to something that is not shown, as sentences.
///
/// Reads directories, so it is for `explain`, not for every run.
pub fn links_that_lead_outside(view: &View) -> Vec<String> {
    let mut sentences = Vec::new();
    for directory in view.path.iter().filter(|directory| !is_system(directory)) {
        let Ok(entries) = std::fs::read_dir(directory) else { continue };
        for entry in entries.flatten() {
            let Ok(target) = std::fs::read_link(entry.path()) else { continue };
            let lands = find(Path::new(directory).join(&target));
            if lands.is_none_or(|found| !view.shows(&found.path)) {
                sentences.push(format!(
                    "{} leads to {}, which is not shown; list it with --read if you need it",
                    entry.path().display(),
                    target.display()
                ));
            }
        }
    }
    sentences.sort();
    sentences
}

//! What of this host a sandbox is shown: the look at the disk that a plan is made from.
//!
//! [`look`] reads and asks, and decides nothing that a plan could decide: its [`View`] is data. All
//! host paths in it are canonical and UTF-8, because they name mount points inside.

mod home;
mod image;
mod lookup;
mod mounts;
mod nested;
mod requested;
mod secrets;
mod system;
mod toolchains;
mod workspace;
mod worktree;
mod written;

use crate::host::HostFacts;
use cofferdam_core::secret::Trusted;
use cofferdam_core::{Error, ErrorKind, Result, Spec};
use cofferdam_wire::plan::{Access, Owner};
use std::collections::BTreeMap;
use system::System;
use toolchains::Toolchains;

pub(crate) use home::look as look_at_home;
pub use image::{ImageView, Upper as ImageUpper};
pub(crate) use lookup::{Found, find_listed, find_workspace, is_within};
pub use mounts::Mounted;
pub(crate) use mounts::missing_on_the_way;
pub use toolchains::links_that_lead_outside;

/// The shared git directory and its own one, where a workspace is a linked work tree of a repository elsewhere
/// that knows of it.
pub(crate) fn linked_worktree(workspace: &str) -> Option<(String, String)> {
    match worktree::outer_git(workspace) {
        worktree::OuterGit::Proved { common, own } => Some((common, own)),
        worktree::OuterGit::None | worktree::OuterGit::Unproved(_) => None,
    }
}

/// Where the workspace is shown besides its own host path.
pub const WORKSPACE: &str = "/workspace";

/// The private home directory of commands.
pub const HOME: &str = "/home/sandbox";

/// What is shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct View {
    /// The root file system, where it is not made of the host's. Nothing of the system is shown then.
    pub image: Option<ImageView>,
    /// Directories and files of the system, read-only.
    pub system: Vec<Shown>,
    /// Symbolic links of the system.
    pub links: Vec<Link>,
    /// Small text files, copied rather than mounted because that is cheaper.
    pub files: Vec<TextFile>,
    /// Toolchains, what the caller listed, and the workspace; the deeper stands later and wins.
    pub places: Vec<Place>,
    /// The workspace.
    pub workspace: WorkspaceView,
    /// What is mounted in the workspace, from its own place among [`View::places`].
    pub mounts: Vec<Mounted>,
    /// The home directory, where it is one of the host. Otherwise it goes with the sandbox.
    pub home: Option<Shown>,
    /// The directory of the host that holds the layer of a copy-on-write workspace, where that is to
    /// stay. Otherwise it goes with the sandbox.
    pub layer: Option<Shown>,
    /// Paths of a copy-on-write workspace at which another sandbox holds a name: to this one they are nothing.
    pub held_names: Vec<String>,
    /// The copy of a copy-on-write workspace, where it is shown in the place of the workspace and there
    /// is no layer over that.
    pub copy: Option<Shown>,
    /// What stays hidden though something above it is shown.
    pub hidden: Vec<Hidden>,
    /// The directories of `PATH`, in the caller's order.
    pub path: Vec<String>,
    /// Variables that the shown toolchains need.
    pub variables: BTreeMap<String, String>,
    /// The caller's name and address for commits, if it has one.
    pub git_identity: Option<String>,
    /// What programs trust where secrets are put in for them, and what they have in their place.
    pub trusted: Option<Trusted>,
    /// What was left out, and why; sentences for people.
    pub notes: Vec<String>,
}

/// A host file or directory that is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// Its canonical path on the host.
    pub source: String,
    /// Where it is shown.
    pub path: String,
    /// Whether it can be written.
    pub access: Access,
    /// Whose files it shows.
    pub owner: Owner,
    /// Device and inode, where another one in its place has to be refused.
    pub identity: Option<(u64, u64)>,
    /// Why it is shown.
    pub why: String,
}

/// A symbolic link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Where.
    pub path: String,
    /// Where it points.
    pub target: String,
    /// Why it is there.
    pub why: String,
}

/// A small text file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextFile {
    /// Where it is, on the host and inside.
    pub path: String,
    /// What is in it.
    pub content: String,
    /// Why it is there.
    pub why: String,
}

/// A place in the tree that is not of the system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A part of the host.
    Shown(Shown),
    /// A part of the host that is shown read-only, with a layer of the sandbox's own over it where the
    /// kernel makes one: what a tool writes there lands in that.
    Layered {
        /// The part of the host.
        shown: Shown,
        /// Whose files the layer lies on: they have to be those of whoever adds to them.
        owner: Owner,
    },
    /// An empty directory of the sandbox's own, for a tool that insists on writing there.
    Private {
        /// Where.
        path: String,
        /// Why.
        why: String,
    },
}

/// Where commands work.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum WorkspaceView {
    /// In an empty directory that goes with the sandbox.
    #[default]
    Private,
    /// In a directory of the host. It stands among [`View::places`] too.
    Directory(WorkspaceDirectory),
}

/// A workspace on the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceDirectory {
    /// Its canonical host path, which is its path inside too.
    pub path: String,
    /// Whether [`WORKSPACE`] shows it too. Not where that name lies above something shown.
    pub at_workspace: bool,
    /// Its owner on disk.
    pub owner: (u32, u32),
    /// The shared git directory, where the workspace is a linked worktree of a repository elsewhere.
    /// What a commit needs of it stands among [`View::places`].
    pub outer_git: Option<String>,
    /// Where what is written to it lands.
    pub landing: Landing,
}

/// Where what is written to a workspace lands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Landing {
    /// In the directory itself.
    InPlace,
    /// In a layer beside it.
    Beside {
        /// The permission bits of the workspace, which the layer begins with.
        mode: u32,
    },
}

/// Something that is covered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hidden {
    /// Its path inside.
    pub path: String,
    /// Why.
    pub why: String,
}

impl Place {
    /// Where it is inside.
    pub fn path(&self) -> &str {
        match self {
            Self::Shown(shown) | Self::Layered { shown, owner: _ } => &shown.path,
            Self::Private { path, .. } => path,
        }
    }

    /// What of the host it shows.
    pub fn shown(&self) -> Option<&Shown> {
        match self {
            Self::Shown(shown) | Self::Layered { shown, owner: _ } => Some(shown),
            Self::Private { .. } => None,
        }
    }
}

impl WorkspaceView {
    /// The workspace's own place, where what is written to it lands in a layer.
    pub(crate) fn beside(&self) -> Option<(&str, u32)> {
        match self {
            Self::Directory(WorkspaceDirectory {
                path, landing: Landing::Beside { mode }, ..
            }) => Some((path, *mode)),
            Self::Directory(_) | Self::Private => None,
        }
    }
}

impl View {
    /// Whether something at this path inside is a part of the host that is shown.
    pub fn shows(&self, path: &str) -> bool {
        self.holds(path) && !self.hidden.iter().any(|hidden| is_within(path, &hidden.path))
    }

    /// Whether some of the host below or above this path of it is shown at another place.
    pub fn shows_elsewhere(&self, path: &str) -> bool {
        self.places.iter().filter_map(Place::shown).any(|shown| {
            shown.source != shown.path
                && (is_within(path, &shown.source) || is_within(&shown.source, path))
        })
    }

    /// The same before anything is hidden.
    pub fn holds(&self, path: &str) -> bool {
        let places = self.places.iter().filter_map(Place::shown).map(|shown| shown.path.as_str());
        self.system
            .iter()
            .map(|shown| shown.path.as_str())
            .chain(self.links.iter().map(|link| link.path.as_str()))
            .chain(self.files.iter().map(|file| file.path.as_str()))
            .chain(places)
            .any(|shown| is_within(path, shown))
    }
}

/// Looks at what this spec needs to see.
///
/// Fails where a listed path does not exist, is a secret, cannot be a workspace, or leads through a
/// link that an earlier run may have made. What is not there and was not asked for is left out
/// silently.
///
/// LIMIT: a place that can be written is shown with the files in it. For the host's root, a file of
/// the workspace's owner that had a set-id bit before keeps it when a command changes the file
/// through a shared mapping: looking for such files would mean reading the whole tree.
pub fn look(spec: &Spec, facts: &HostFacts) -> Result<View> {
    let secrets = secrets::Secrets::of(&spec.caller);
    let ground = workspace::look(spec, facts, &secrets)?;
    let written = written::Written::of(spec, facts, &ground, &secrets);
    let requested = requested::look(spec, facts, &secrets, &ground, &written)?;
    let (mount_places, mounts) = mounts::look(spec, facts, &secrets, &ground, &written)?;
    let image = spec.image.as_ref();
    let image =
        image.map(|image| image::look(image, spec, facts, &secrets, &written)).transpose()?;
    let (system, tools) = match &image {
        None => (system::look(spec.profile), toolchains::look(spec, facts, &secrets, &written)?),
        Some(_) => (System::default(), Toolchains::beside_an_image(spec)),
    };

    let mut places = Vec::new();
    places.extend(tools.places.into_iter().filter(|place| !covers(&requested, &ground, place)));
    places.extend(requested.into_iter().map(Place::Shown));
    places.extend(ground.shown.into_iter().map(Place::Shown));
    places.extend(mount_places.iter().cloned().map(Place::Shown));
    places.sort_by_key(|place| lookup::depth(place.path()));

    let mut view = View {
        image,
        system: system.shown,
        links: system.links,
        files: system.files,
        places,
        workspace: ground.workspace,
        mounts,
        home: None,
        layer: None,
        held_names: Vec::new(),
        copy: None,
        hidden: Vec::new(),
        path: tools.path,
        variables: tools.variables,
        git_identity: tools.git_identity,
        trusted: None,
        notes: ground.notes,
    };
    view.notes.extend(tools.notes);
    let mut hidden = secrets.below(&view.places);
    hidden.extend(requested::hidden(spec, &view, &written)?);
    hidden.extend(mounts::hidden(&mount_places, &view.mounts, &hidden));
    hidden.sort_by_key(|hidden| lookup::depth(&hidden.path));
    hidden.dedup_by(|a, b| a.path == b.path);
    // A link cannot be covered, and what it says is of the host.
    view.links.retain(|link| !hidden.iter().any(|hidden| is_within(&link.path, &hidden.path)));
    view.hidden = hidden;
    Ok(view)
}

/// Fails where a path that the caller named leads through a link that an earlier command in a sandbox
/// of this workspace may have made. `what` says what it was named as.
pub fn refuse_planted(path: &std::path::Path, what: &str, spec: &Spec) -> Result<()> {
    let secrets = secrets::Secrets::of(&spec.caller);
    let facts = HostFacts::gather();
    let ground = workspace::look(spec, &facts, &secrets)?;
    written::Written::of(spec, &facts, &ground, &secrets).find_listed(path, what).map(drop)
}

/// Whether what is shown depends on this variable of the caller's environment.
pub fn reads_variable(name: &str) -> bool {
    secrets::reads(name) || toolchains::reads(name)
}

/// Whether a toolchain's place lies in what is shown anyway, because the caller listed it or works
/// there.
fn covers(requested: &[Shown], ground: &workspace::Ground, place: &Place) -> bool {
    requested.iter().chain(&ground.shown).any(|shown| lookup::is_within(place.path(), &shown.path))
}

fn usage(message: String, hint: &str) -> Error {
    Error::new(ErrorKind::Usage, message).hint(hint)
}

#[cfg(test)]
mod tests;

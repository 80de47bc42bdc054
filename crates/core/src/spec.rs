//! What somebody wants.

use crate::{EgressRule, GuestPath, Image, Limits, OnUnavailable, Profile};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A sandbox as somebody wants it. Holds wishes only; what the host can do is not in here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// What it may do.
    pub profile: Profile,
    /// Destinations that it may reach, in addition to none.
    pub egress: Vec<EgressRule>,
    /// The root file system that it has instead of the host's.
    pub image: Option<Image>,
    /// The directory that it works in.
    pub workspace: Workspace,
    /// What is to make the layer, where the workspace is copy-on-write.
    pub layer: LayerChoice,
    /// Host paths that are shown read-only, at their own place.
    pub read: Vec<PathBuf>,
    /// Directories of the host that are shown read-only at a place of the workspace.
    pub mounts: Vec<HostMount>,
    /// Host paths that can be written, at their own place.
    pub write: Vec<PathBuf>,
    /// Paths that are hidden whatever shows them.
    pub hide: Vec<PathBuf>,
    /// Variables for every command, over the defaults.
    pub env: BTreeMap<OsString, OsString>,
    /// How much it may use.
    pub limits: Limits,
    /// Who its commands are.
    pub user: User,
    /// Whether control files in the workspace can be written.
    pub sensitive_writes: SensitiveWrites,
    /// What to do where a promise cannot be kept here.
    pub on_unavailable: OnUnavailable,
    /// Who asks, as far as the view depends on it.
    pub caller: Caller,
}

/// A directory of the host that is shown read-only at a place of the workspace. It has to be a
/// workspace that is a directory of the host too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostMount {
    /// Its absolute path on the host.
    pub source: PathBuf,
    /// Where it is shown, relative to the workspace.
    pub path: GuestPath,
    /// Which directory it was when somebody asked for it. Another one in its place is refused.
    pub identity: DirectoryIdentity,
}

/// Tells a directory from another one of the same name, also when its number was used again and
/// after its file system was mounted anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct DirectoryIdentity {
    /// The number of its inode.
    pub inode: u64,
    /// When it was made, in seconds since 1970; 0 where the file system does not know.
    pub born_s: i64,
    /// The nanoseconds of that.
    pub born_ns: u32,
}

/// Where a sandbox works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Workspace {
    /// A directory of the host, shown at `/workspace` and at its own path.
    Directory(PathBuf),
    /// The same, but what is written there lands in a layer beside it and not in the directory. The
    /// layer of a sandbox that is kept is kept with it; any other is gone with the sandbox.
    CopyOnWrite(PathBuf),
    /// An empty directory of its own at `/workspace`, gone with the sandbox.
    Private,
}

impl Workspace {
    /// The directory of the host that is shown, if it is one.
    pub fn directory(&self) -> Option<&Path> {
        match self {
            Self::Directory(path) | Self::CopyOnWrite(path) => Some(path),
            Self::Private => None,
        }
    }

    /// The directory of the host in which writes of the sandbox land, if there is one.
    pub fn written(&self) -> Option<&Path> {
        match self {
            Self::Directory(path) => Some(path),
            Self::CopyOnWrite(_) | Self::Private => None,
        }
    }
}

/// What is to make the layer of a copy-on-write workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LayerChoice {
    /// The kernel's overlay file system, or a copy where it cannot be had.
    #[default]
    Auto,
    /// The kernel's overlay file system, or an error.
    Overlay,
    /// A copy of the workspace.
    Copy,
}

impl LayerChoice {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Overlay, Self::Copy];

    /// Its stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Overlay => "overlay",
            Self::Copy => "copy",
        }
    }
}

/// Who commands are inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum User {
    /// An ordinary user without any capability.
    #[default]
    Ordinary,
    /// User 0 of the sandbox's own user namespace, with the few capabilities there that a package
    /// manager needs. Never user 0 of the host.
    Root,
}

/// Whether control files in the workspace can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SensitiveWrites {
    /// Git hooks and configuration, start files, editor and agent configuration stay as they are.
    #[default]
    Protected,
    /// They are files like others.
    Allowed,
}

/// Facts about the caller that shape the default view. Handed in, because nothing below the doors
/// reads the environment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Caller {
    /// The caller's environment. Only names of an allowlist pass; others serve to find toolchains.
    pub env: BTreeMap<OsString, OsString>,
    /// The caller's home directory, if any.
    pub home: Option<PathBuf>,
}

impl Spec {
    /// A spec with the defaults: profile `no-network`, refuse what cannot be enforced.
    pub fn new(workspace: Workspace, caller: Caller) -> Self {
        Self {
            profile: Profile::default(),
            egress: Vec::new(),
            image: None,
            workspace,
            layer: LayerChoice::default(),
            read: Vec::new(),
            mounts: Vec::new(),
            write: Vec::new(),
            hide: Vec::new(),
            env: BTreeMap::new(),
            limits: Limits::default(),
            user: User::default(),
            sensitive_writes: SensitiveWrites::default(),
            on_unavailable: OnUnavailable::default(),
            caller,
        }
    }
}

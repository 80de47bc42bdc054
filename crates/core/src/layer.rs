//! What a copy-on-write sandbox changed in its workspace, and what becomes of that.
//!
//! The **workspace** is the real tree. The **layer** holds what the sandbox made of it. A change is a
//! difference between the two; what the sandbox wrote and left as it was is none.

use crate::files::EntryKind;
use crate::{ByteString, GuestPath, Progress};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The most bytes that a link out of a layer may name.
pub const MAX_LINK_BYTES: usize = 4095;

/// What makes the layer of a copy-on-write workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LayerTier {
    /// The kernel's overlay file system.
    Overlay,
    /// A copy of the workspace that shares its blocks on disk until they are written.
    Reflink,
    /// A copy of the workspace.
    Copy,
}

/// What is to be said of a layer besides what it holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayerNote {
    /// What makes it.
    pub tier: LayerTier,
    /// Why it is no overlay where nobody asked for a copy; a fragment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// What of the workspace is not in it, or not as of one moment, each with the reason: the first of
    /// them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// How many more there are.
    #[serde(default)]
    pub left_out_more: u64,
}

/// How something under a path differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChangeKind {
    /// It is in the layer, and not in the workspace.
    Added,
    /// It is in both, and differs in content, permissions or type, or in which names are one file.
    Modified,
    /// It is in the workspace, and the sandbox removed it.
    Removed,
}

/// What stands under a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileState {
    /// Its type.
    pub kind: EntryKind,
    /// The permissions that count: without set-id bits, and none of a link.
    pub mode: u32,
    /// Its size in bytes; of a link, the length of where it leads.
    pub size: u64,
    /// Where a link leads, as it says.
    pub target: Option<ByteString>,
}

/// One difference between a workspace and its layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The path in the workspace.
    pub path: GuestPath,
    /// How it differs.
    pub kind: ChangeKind,
    /// What the workspace has.
    pub before: Option<FileState>,
    /// What the sandbox has.
    pub after: Option<FileState>,
    /// A removed file of the same content, which it probably was. For people: it changes nothing.
    pub moved_from: Option<GuestPath>,
    /// Another path of the layer that is the same file, the first of them.
    pub linked_to: Option<GuestPath>,
    /// A link that leads out of the workspace.
    pub leads_out: bool,
    /// It would give its file the rights of another user or group, and lands without.
    pub set_id: bool,
    /// Changes with what the sandbox has there; 0 where it has nothing.
    pub version: u64,
    /// Whether it can land.
    pub standing: Standing,
}

/// Whether a change can land in the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Standing {
    /// It can.
    Lands,
    /// The workspace changed there since the sandbox saw it.
    Conflict(Conflict),
    /// It does not land for another reason.
    Held(Held),
}

/// How the workspace changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Conflict {
    /// What stands there was changed later than the sandbox began.
    Changed,
    /// What the sandbox changed, or gave another name, is not there any more.
    Gone,
    /// A directory on the way is not there any more, or is none.
    DirectoryGone,
    /// A directory on the way was moved, or its permissions were changed.
    DirectoryMoved,
    /// Something that is kept is in the directory that would go.
    NotEmpty,
    /// Something else is mounted there.
    Mounted,
}

/// Why a change does not land though the workspace did not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Held {
    /// It is a control file, or cannot be told from one, and lands only if it is named.
    Protected,
    /// It is a pipe, a socket or a device.
    Special,
    /// It is larger than may land.
    TooLarge,
    /// The directory that it is in does not land.
    Directory,
    /// The sandbox has something else there than what was wanted.
    Another,
    /// The sandbox moved a file, or may have, and the other half of that does not land.
    Move,
    /// It is a difference between two points of a history, and none of the layer.
    History,
}

/// Which side of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The workspace.
    Before,
    /// The layer.
    After,
}

/// What somebody wants to know of the workspace that a layer lies on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkspaceOrder {
    /// What stands under these paths.
    pub at: BTreeSet<GuestPath>,
    /// What stands below these paths, without what is mounted there.
    pub below: BTreeSet<GuestPath>,
    /// The SHA-256 of the content of these, of those that are regular files of this size.
    pub hashed: BTreeMap<GuestPath, u64>,
}

/// What the workspace has under a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceEntry {
    /// What it is.
    pub state: FileState,
    /// Device and inode, which all names of a file share.
    pub identity: (u64, u64),
    /// The SHA-256 of its content, where it was wanted.
    pub sha256: Option<[u8; 32]>,
}

/// Whether control files land.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ControlFiles {
    /// Those that a path of the order names.
    #[default]
    IfNamed,
    /// None, whoever names them.
    Never,
}

/// Changes that are to land.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApplyOrder {
    /// Only these paths and what is below them; all where there is none. A control file lands only if
    /// one of these is a control file's own path at or above it.
    pub paths: Vec<GuestPath>,
    /// Of the paths what they are alone, and nothing below them that is no path itself. Directories that come on
    /// the way to one of them come with it.
    pub exact: bool,
    /// Files that land with this content and the workspace's own permissions, in place of the layer's.
    pub contents: BTreeMap<GuestPath, Vec<u8>>,
    /// Changes that land only in this version, as somebody has seen them. A file that is written to through
    /// a shared mapping may keep its version.
    pub versions: BTreeMap<GuestPath, u64>,
    /// Files that land only with a content of this SHA-256, as somebody has seen it.
    pub sums: BTreeMap<GuestPath, [u8; 32]>,
    /// Whether control files land.
    pub control_files: ControlFiles,
    /// Files and links below the named paths land over what the workspace changed there since.
    pub overwrite: bool,
    /// Nothing is done.
    pub dry_run: bool,
    /// Who is told how many of the changes are made ready; of large files, how many bytes.
    pub progress: Progress,
}

/// What came of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApplyReport {
    /// What landed, or would.
    pub applied: Vec<Change>,
    /// What did not, each with its reason.
    pub kept: Vec<Change>,
    /// Why what it took to land them could not be cleared away, with its causes. Whoever comes next tries again.
    pub not_cleared: Option<String>,
}

/// Changes that are to be dropped from a layer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DiscardOrder {
    /// Only these paths and what is below them; all where there is none.
    pub paths: Vec<GuestPath>,
    /// Nothing is done.
    pub dry_run: bool,
}

impl LayerTier {
    /// Its stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Overlay => "overlay",
            Self::Reflink => "reflink",
            Self::Copy => "copy",
        }
    }
}

impl ChangeKind {
    /// Its stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Modified => "modified",
            Self::Removed => "removed",
        }
    }
}

impl Standing {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::Lands,
        Self::Conflict(Conflict::Changed),
        Self::Conflict(Conflict::Gone),
        Self::Conflict(Conflict::DirectoryGone),
        Self::Conflict(Conflict::DirectoryMoved),
        Self::Conflict(Conflict::NotEmpty),
        Self::Conflict(Conflict::Mounted),
        Self::Held(Held::Protected),
        Self::Held(Held::Special),
        Self::Held(Held::TooLarge),
        Self::Held(Held::Directory),
        Self::Held(Held::Another),
        Self::Held(Held::Move),
        Self::Held(Held::History),
    ];

    /// Its stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lands => "lands",
            Self::Conflict(Conflict::Changed) => "changed",
            Self::Conflict(Conflict::Gone) => "gone",
            Self::Conflict(Conflict::DirectoryGone) => "directory_gone",
            Self::Conflict(Conflict::DirectoryMoved) => "directory_moved",
            Self::Conflict(Conflict::NotEmpty) => "not_empty",
            Self::Conflict(Conflict::Mounted) => "mounted",
            Self::Held(Held::Protected) => "protected",
            Self::Held(Held::Special) => "special",
            Self::Held(Held::TooLarge) => "too_large",
            Self::Held(Held::Directory) => "directory",
            Self::Held(Held::Another) => "another",
            Self::Held(Held::Move) => "move",
            Self::Held(Held::History) => "history",
        }
    }

    /// Why it does not land, as the end of a sentence.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Lands => "it lands",
            Self::Conflict(Conflict::Changed) => "the workspace changed there since",
            Self::Conflict(Conflict::Gone) => {
                "what it was made of is not found in the workspace any more"
            }
            Self::Conflict(Conflict::DirectoryGone) => "its directory is not there any more",
            Self::Conflict(Conflict::DirectoryMoved) => {
                "a directory on the way was moved or got other permissions since"
            }
            Self::Conflict(Conflict::NotEmpty) => "something in the directory is kept",
            Self::Conflict(Conflict::Mounted) => "something else is mounted there",
            Self::Held(Held::Protected) => {
                "it is a control file, or cannot be told from one, and has to be named"
            }
            Self::Held(Held::Special) => "it is a pipe, a socket or a device",
            Self::Held(Held::TooLarge) => "it is too large",
            Self::Held(Held::Directory) => "the directory that it is in does not land",
            Self::Held(Held::Another) => "the session changed it since it was looked at",
            Self::Held(Held::Move) => {
                "it was or may have been moved, and the other half of that does not land"
            }
            Self::Held(Held::History) => "it is between two points of the history",
        }
    }
}

/// Whether a path is one of these or below one, where there are any.
pub fn is_within(path: &GuestPath, scope: &[GuestPath]) -> bool {
    scope.is_empty() || scope.iter().any(|root| is_at_or_below(path, root))
}

/// Whether a path is this one or below it.
pub fn is_at_or_below(path: &GuestPath, root: &GuestPath) -> bool {
    let rest = path.as_bytes().strip_prefix(root.as_bytes());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

/// Whether a link at this path leads out of the workspace, by its text alone. The path of the workspace
/// is given as its links may name it.
pub fn leads_out(path: &GuestPath, target: &[u8], workspace: &[u8]) -> bool {
    let (mut depth, rest) = match target.strip_prefix(workspace) {
        Some(rest) if rest.is_empty() || rest.starts_with(b"/") => (0_usize, rest),
        Some(_) | None if target.starts_with(b"/") => return true,
        Some(_) | None => (path.names().count().saturating_sub(1), target),
    };
    for name in rest.split(|byte| *byte == b'/') {
        match name {
            b"" | b"." => {}
            b".." if depth == 0 => return true,
            b".." => depth -= 1,
            _ => depth += 1,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn below_is_by_whole_names() {
        let path = |text: &str| GuestPath::new(text).unwrap();
        assert!(is_at_or_below(&path("a/b"), &path("a")));
        assert!(is_at_or_below(&path("a"), &path("a")));
        assert!(!is_at_or_below(&path("ab"), &path("a")));
        assert!(!is_at_or_below(&path("a"), &path("a/b")));
        assert!(is_within(&path("x"), &[]));
        assert!(!is_within(&path("x"), &[path("y")]));
    }
}

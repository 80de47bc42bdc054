//! The files that a patch is applied to, and what is to be done to them.

use cofferdam_core::GuestPath;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What stands at the paths that a patch names. Where a path is missing, nothing is there.
pub type Tree = BTreeMap<GuestPath, Node>;

/// What stands at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    /// A regular file.
    File {
        /// All of its bytes.
        content: Arc<[u8]>,
        /// Whether it can be executed.
        executable: Executable,
    },
    /// A symbolic link.
    Link {
        /// Where it leads, as it is written in it.
        target: Arc<[u8]>,
    },
    /// A directory.
    Directory {
        /// Every path below it that is no directory, or an empty one. Asked for only where
        /// [`Patch::directories`](super::Patch::directories) says so.
        below: Option<BTreeSet<GuestPath>>,
    },
    /// A device, a pipe, a socket: nothing that a patch can change.
    Other,
}

/// Whether a file can be executed; git keeps no more of its mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Executable {
    /// Its owner cannot execute it.
    No,
    /// Its owner can execute it.
    Yes,
}

/// The mode of a file in a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileMode {
    File(Executable),
    Link,
}

/// One thing to be done. Changes are carried out in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The file gets another name, and stays as it is. Nothing is at the new name, and the
    /// directories on the way are made if they are missing.
    Rename {
        /// Its name before.
        from: GuestPath,
        /// Its name after.
        to: GuestPath,
    },
    /// The file or link goes. The directory that it was in stays.
    Remove {
        /// Which.
        path: GuestPath,
    },
    /// The directory, which is empty by now, makes room for a file.
    RemoveDirectory {
        /// Which.
        path: GuestPath,
    },
    /// The file has this content from now on, whether it was there or not. The directories on the
    /// way are made if they are missing.
    Write {
        /// Which.
        path: GuestPath,
        /// All of its bytes.
        content: Arc<[u8]>,
        /// Whether it can be executed; other bits of a mode that it has already stay.
        executable: Executable,
    },
    /// A symbolic link stands there from now on.
    Link {
        /// Its name.
        path: GuestPath,
        /// Where it leads: nowhere outside the workspace, by its text.
        target: Arc<[u8]>,
    },
    /// The file can be executed from now on, or no longer.
    SetExecutable {
        /// Which.
        path: GuestPath,
        /// Whether it can be executed.
        executable: Executable,
    },
}

impl Node {
    /// What a patch sees as its content.
    pub(super) fn content(&self) -> Option<&Arc<[u8]>> {
        match self {
            Self::File { content, .. } => Some(content),
            Self::Link { target } => Some(target),
            Self::Directory { .. } | Self::Other => None,
        }
    }

    pub(super) fn mode(&self) -> Option<FileMode> {
        match self {
            Self::File { executable, .. } => Some(FileMode::File(*executable)),
            Self::Link { .. } => Some(FileMode::Link),
            Self::Directory { .. } | Self::Other => None,
        }
    }

    pub(super) fn new(mode: FileMode, content: Arc<[u8]>) -> Self {
        match mode {
            FileMode::File(executable) => Self::File { content, executable },
            FileMode::Link => Self::Link { target: content },
        }
    }
}

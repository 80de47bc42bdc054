//! What happens to names in a workspace, told while it happens.
//!
//! A watch is a request without an end of its own: [`Answer::Events`](super::Answer) comes as often as
//! there is something to tell, beginning with [`FileEvent::Ready`], until the host hangs up. Only a
//! failure is a last word.

use super::Failure;
use crate::bytes::ByteString;
use serde::{Deserialize, Serialize};

/// The most places of one watch.
pub const MAX_WATCHED_PATHS: usize = 64;
/// The most bytes of all paths of one watch. In JSON each takes six at most.
pub const MAX_WATCHED_PATH_BYTES: usize = 10 << 10;
/// The most directories of one watch, those on the way to its places among them.
pub const MAX_WATCHED_DIRECTORIES: u32 = 65_536;
/// The most events that wait for a host that does not read them.
pub const MAX_PENDING_EVENTS: u32 = 16_384;

/// What is to be watched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watch {
    /// The places, at most [`MAX_WATCHED_PATHS`]; the whole workspace where there are none. No link is
    /// followed, and `..` is taken back by the words alone.
    pub paths: Vec<ByteString>,
    /// How many levels below a place: 1 for the entries of a directory alone.
    pub depth: u32,
    /// Watch at most so many directories; see [`MAX_WATCHED_DIRECTORIES`].
    pub max_directories: u32,
    /// Let at most so many events wait; see [`MAX_PENDING_EVENTS`].
    pub max_pending: u32,
}

impl Default for Watch {
    fn default() -> Self {
        Self {
            paths: Vec::new(),
            depth: u32::MAX,
            max_directories: MAX_WATCHED_DIRECTORIES,
            max_pending: MAX_PENDING_EVENTS,
        }
    }
}

/// One thing that happened. Paths begin at the root of the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileEvent {
    /// The watch stands: whatever happens from now on is told. Comes first, and once.
    Ready {
        /// How many directories are watched.
        directories: u64,
    },
    /// A name is there. May be told twice for what is made in a new directory.
    Created {
        /// Which.
        path: ByteString,
        /// Whether it is a directory.
        directory: bool,
    },
    /// A file that was open for writing was closed.
    Modified {
        /// Which.
        path: ByteString,
    },
    /// Permissions, owner, times or extended attributes were set.
    Attributes {
        /// Of what.
        path: ByteString,
        /// Whether it is a directory.
        directory: bool,
    },
    /// A name is gone, with all that was below it: removed, or moved to where nothing is watched.
    Removed {
        /// Which.
        path: ByteString,
        /// Whether it was a directory.
        directory: bool,
    },
    /// Something has another name. What had that name before is gone.
    Renamed {
        /// Its name before.
        from: ByteString,
        /// Its name now.
        to: ByteString,
        /// Whether it is a directory.
        directory: bool,
    },
    /// Something happened that cannot be told any more: look at everything again. Whatever happens
    /// after this is told.
    Overflow,
    /// What happens in this directory and below is not told.
    Unwatched {
        /// Which directory.
        path: ByteString,
        /// Why not.
        failure: Failure,
    },
}

impl FileEvent {
    /// Its stable name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Ready { .. } => "ready",
            Self::Created { .. } => "created",
            Self::Modified { .. } => "modified",
            Self::Attributes { .. } => "attributes",
            Self::Removed { .. } => "removed",
            Self::Renamed { .. } => "renamed",
            Self::Overflow => "overflow",
            Self::Unwatched { .. } => "unwatched",
        }
    }

    /// The paths that it names: of a renaming, the one before first.
    pub fn paths(&self) -> impl Iterator<Item = &ByteString> {
        let (first, second) = match self {
            Self::Ready { .. } | Self::Overflow => (None, None),
            Self::Created { path, .. }
            | Self::Modified { path }
            | Self::Attributes { path, .. }
            | Self::Removed { path, .. }
            | Self::Unwatched { path, .. } => (Some(path), None),
            Self::Renamed { from, to, .. } => (Some(from), Some(to)),
        };
        first.into_iter().chain(second)
    }
}

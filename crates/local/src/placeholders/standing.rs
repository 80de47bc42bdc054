//! Which placeholders stand in a workspace now, for whoever shows or reads it and has made none: to a
//! copy-on-write sandbox they are nothing.
//!
//! Only sockets count. What stands for a name in a git directory is what git takes for none.
//!
//! LIMIT: those of other users, and of sandboxes on a directory above or below, have another ledger.

use super::Parents;
use super::ledger::{Entry, Identity, Kind, Ledger};
use crate::state::StateDirectory;
use cofferdam_core::Result;
use rustix::fd::{AsFd, BorrowedFd};
use std::collections::BTreeMap;

/// The placeholders of a workspace. What is of another one's making is not among them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Standing(BTreeMap<Vec<u8>, Identity>);

impl Standing {
    /// Reads the ledger of the workspace of this device and inode. Costs one open of a file where there
    /// is none.
    pub(crate) fn read(state: &StateDirectory, (device, inode): (u64, u64)) -> Result<Self> {
        let Some(content) = state.workspace_ledger(device, inode)? else {
            return Ok(Self::default());
        };
        let entries = Ledger::parse(&content)?.entries.into_iter();
        let made = |(path, entry): (String, Entry)| {
            let identity = entry.identity.filter(|_| entry.kind == Kind::Socket)?;
            Some((path.into_bytes(), identity))
        };
        Ok(Self(entries.filter_map(made).collect()))
    }

    /// Whether what is open there, found at this path of the workspace, is the placeholder that was made.
    pub(crate) fn has(&self, path: &[u8], file: impl AsFd) -> bool {
        let Some(made) = self.0.get(path) else { return false };
        Identity::of_open(file.as_fd(), Kind::Socket) == Ok(Some(*made))
    }

    /// Whether there is any.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The paths at which one stands still, below the open workspace.
    pub(crate) fn paths(&self, workspace: BorrowedFd<'_>) -> Vec<String> {
        let mut parents = Parents::new(workspace);
        let mut is_there = |path: &str, made: &Identity| {
            let (parent, name) = parents.of(path).ok()?;
            let now = Identity::of(parent, name).ok()??;
            (now == *made).then(|| path.to_owned())
        };
        let found = |(path, made)| is_there(std::str::from_utf8(path).ok()?, made);
        self.0.iter().map(|(path, made)| (path.as_slice(), made)).filter_map(found).collect()
    }
}

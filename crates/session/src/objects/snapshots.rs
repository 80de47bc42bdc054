//! What is told of several snapshots.

use crate::SnapshotReport;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What `snapshot ls --json` prints. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SnapshotList {
    /// The snapshots, oldest first.
    pub snapshots: Vec<SnapshotReport>,
}

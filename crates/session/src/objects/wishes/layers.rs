//! What requests want of what a sandbox changed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is to land.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ApplyWish {
    /// Only these paths of the workspace and what is below them; all without them.
    pub paths: Vec<String>,
    /// Further paths in base64, which are not UTF-8.
    pub paths_base64: Vec<String>,
    /// Only these parts of files, in place of paths.
    pub hunks: Vec<ChosenWish>,
    /// Files and links below `paths` land over what the workspace changed there since, which is lost.
    pub overwrite: bool,
    /// Says what would land, and does nothing.
    pub dry_run: bool,
}

/// Parts of a file's change that are to land, as `diff/hunks` told them.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ChosenWish {
    /// The file.
    pub path: Option<String>,
    /// The file in base64, where its path is not UTF-8.
    pub path_base64: Option<String>,
    /// The `sha256` that was told of the change.
    pub sha256: String,
    /// The parts, by their numbers from 0.
    pub hunks: Vec<usize>,
    /// All of the change in place of parts, also where it has none.
    pub whole: bool,
}

/// What is to be dropped.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DiscardWish {
    /// Only these paths of the workspace and what is below them; all without them.
    pub paths: Vec<String>,
    /// Further paths in base64, which are not UTF-8.
    pub paths_base64: Vec<String>,
    /// Says what would be dropped, and does nothing.
    pub dry_run: bool,
}

/// Where a session goes back to.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct UndoWish {
    /// Takes back so many commands and changes between them. Default: 1.
    pub count: Option<u32>,
    /// Goes to the state of this point instead, earlier or later.
    pub to: Option<u32>,
    /// Says what would change, and changes nothing in the workspace.
    pub dry_run: bool,
    /// Goes although what the session has now cannot be kept as a point, and is lost.
    pub force: bool,
}

/// Another session that is to begin as this one is.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ForkWish {
    /// Its name.
    pub name: String,
    /// The number of a point, or the label of a snapshot, where it begins. Default: as it is now.
    #[serde(default)]
    pub point: Option<String>,
}

/// A snapshot that is to be taken.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SnapshotWish {
    /// What it is called, in place of its number alone.
    pub label: Option<String>,
}

//! What is told of edits, patches and windows.

use crate::edit::EditReport;
use crate::patch::PatchReport;
use crate::window::Window;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Edits that were applied, or were not. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileEdit {
    /// The id of the session.
    pub session: String,
    /// The file.
    pub path: String,
    /// Whether it was changed.
    pub changed: bool,
    /// The SHA-256 of what it holds now.
    pub sha256: String,
    /// What came of each edit.
    pub report: EditReport,
}

/// A patch that was applied, or was not. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FilePatch {
    /// The id of the session.
    pub session: String,
    /// Whether files were changed.
    pub changed: bool,
    /// What came of each hunk.
    pub report: PatchReport,
}

/// A part of a text file. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileWindow {
    /// The id of the session.
    pub session: String,
    /// The file.
    pub path: String,
    /// The lines.
    pub window: Window,
}

//! What is told of the parts of changes.

use super::LayerChange;
use crate::diff::FileDiff;
use crate::text_or_base64;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Changes with their parts, each of which can land by itself. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HunkList {
    /// The id of the session.
    pub session: String,
    /// The changes, in the order of paths.
    pub changes: Vec<LayerHunks>,
}

/// A change with its parts. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LayerHunks {
    /// The change.
    pub change: LayerChange,
    /// The SHA-256 of the change's text, by which its parts are chosen.
    pub sha256: String,
    /// Its parts, numbered from 0; none where it lands as a whole or not at all.
    pub hunks: Vec<HunkText>,
}

/// A part of a change, as a unified diff has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HunkText {
    /// Its lines, where they are UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Its lines in base64, where they are not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
}

impl LayerHunks {
    /// A change and its parts.
    pub fn new(diff: &FileDiff) -> Self {
        let hunk = |text: Vec<u8>| {
            let (text, base64) = text_or_base64(text);
            HunkText { text, base64 }
        };
        Self {
            change: LayerChange::counted(diff),
            sha256: diff.sha256(),
            hunks: diff.hunks().iter().map(|part| hunk(part.text())).collect(),
        }
    }

    /// How many bytes of text it has.
    pub fn bytes(&self) -> usize {
        let of =
            |hunk: &HunkText| hunk.text.as_ref().or(hunk.base64.as_ref()).map_or(0, String::len);
        self.hunks.iter().map(of).sum()
    }
}

//! What is told of the parts of changes.

use super::LayerChange;
use crate::diff::FileDiff;
use crate::text_or_base64;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use cofferdam_core::{Error, ErrorKind, Result};
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
    /// What tells this state of the change, in hexadecimal, by which it or its parts are chosen.
    pub sha256: String,
    /// Its parts, numbered from 0; none where it lands as a whole or not at all.
    pub hunks: Vec<HunkText>,
    /// The text of a change without parts, where that is asked for and has at most 1 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<HunkText>,
}

/// The longest text that is told of a change without parts, in bytes.
pub const MAX_WHOLE_BYTES: usize = 1 << 20;

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

impl HunkText {
    fn new(text: Vec<u8>) -> Self {
        let (text, base64) = text_or_base64(text);
        Self { text, base64 }
    }

    /// Its lines.
    pub fn bytes(&self) -> Result<Vec<u8>> {
        match (&self.text, &self.base64) {
            (Some(text), None) => Ok(text.clone().into_bytes()),
            (None, Some(coded)) => BASE64.decode(coded).map_err(|cause| {
                Error::new(ErrorKind::Protocol, "read the part of a change").source(cause)
            }),
            (Some(_), Some(_)) | (None, None) => {
                Err(Error::new(ErrorKind::Protocol, "the part of a change has no lines, or two"))
            }
        }
    }
}

impl LayerHunks {
    /// A change and its parts.
    pub fn new(diff: &FileDiff) -> Self {
        Self {
            change: LayerChange::counted(diff),
            sha256: diff.sha256(),
            hunks: diff.hunks().iter().map(|part| HunkText::new(part.text())).collect(),
            whole: None,
        }
    }

    /// The same, with the text of a change without parts.
    pub fn with_text(diff: &FileDiff) -> Self {
        let text = (!diff.has_hunks()).then(|| diff.text());
        let whole = text.filter(|text| text.len() <= MAX_WHOLE_BYTES).map(HunkText::new);
        Self { whole, ..Self::new(diff) }
    }

    /// How many bytes of text it has.
    pub fn bytes(&self) -> usize {
        let of =
            |hunk: &HunkText| hunk.text.as_ref().or(hunk.base64.as_ref()).map_or(0, String::len);
        self.hunks.iter().chain(&self.whole).map(of).sum()
    }
}

//! What is told of a watch.

use crate::text_or_base64;
use cofferdam_core::ByteString;
use cofferdam_core::files::FileEvent;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What `file watch --json` prints, a line each. Format 1.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileEventReport {
    /// The id of the session.
    pub session: String,
    /// What happened: `ready`, `created`, `modified`, `attributes`, `removed`, `renamed`, `overflow` or
    /// `unwatched`.
    pub event: String,
    /// The path from the workspace on, where it is UTF-8; of a renaming the new one. The workspace
    /// itself is empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The path in base64, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_base64: Option<String>,
    /// Of a renaming, the path before, where it is UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The path before in base64, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_base64: Option<String>,
    /// Whether it is, or was, a directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<bool>,
    /// With `ready`: how many directories are watched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directories: Option<u64>,
    /// With `unwatched`: why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl FileEventReport {
    /// An event of this session.
    pub fn new(session: &str, event: &FileEvent) -> Self {
        let (session, name) = (session.to_owned(), event.name().to_owned());
        let report = Self { session, event: name, ..Self::default() };
        match event {
            FileEvent::Ready { directories } => Self { directories: Some(*directories), ..report },
            FileEvent::Overflow => report,
            FileEvent::Modified { path } => report.at(path, Some(false)),
            FileEvent::Created { path, directory }
            | FileEvent::Attributes { path, directory }
            | FileEvent::Removed { path, directory } => report.at(path, Some(*directory)),
            FileEvent::Renamed { from, to, directory } => {
                let (from, from_base64) = text_or_base64(from.as_bytes().to_vec());
                Self { from, from_base64, ..report }.at(to, Some(*directory))
            }
            FileEvent::Unwatched { path, failure } => {
                Self { reason: Some(failure.detail.clone()), ..report }.at(path, Some(true))
            }
        }
    }

    fn at(self, path: &ByteString, directory: Option<bool>) -> Self {
        let (path, path_base64) = text_or_base64(path.as_bytes().to_vec());
        Self { path, path_base64, directory, ..self }
    }
}

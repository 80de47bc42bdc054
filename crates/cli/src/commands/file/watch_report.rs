//! What `cofferdam file watch` prints.

use cofferdam_core::ByteString;
use cofferdam_core::files::FileEvent;
use cofferdam_session::text_or_base64;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What `file watch --json` prints, a line each. Format 1.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct FileEventReport {
    /// The id of the session.
    pub(crate) session: String,
    /// What happened: `ready`, `created`, `modified`, `attributes`, `removed`, `renamed`, `overflow` or
    /// `unwatched`.
    pub(crate) event: String,
    /// The path from the workspace on, where it is UTF-8; of a renaming the new one. The workspace
    /// itself is empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path: Option<String>,
    /// The path in base64, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path_base64: Option<String>,
    /// Of a renaming, the path before, where it is UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<String>,
    /// The path before in base64, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) from_base64: Option<String>,
    /// Whether it is, or was, a directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) directory: Option<bool>,
    /// With `ready`: how many directories are watched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) directories: Option<u64>,
    /// With `unwatched`: why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
}

impl FileEventReport {
    pub(super) fn new(session: &str, event: &FileEvent) -> Self {
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

/// An event for people.
pub(super) fn line(event: &FileEvent) -> String {
    let shown = |path: &ByteString, is_directory: bool| match (path.as_bytes(), is_directory) {
        (b"", _) => ".".to_owned(),
        (_, true) => format!("{path}/"),
        (_, false) => path.to_string(),
    };
    let what = match event {
        FileEvent::Ready { directories: 1 } => "1 directory is watched".to_owned(),
        FileEvent::Ready { directories } => format!("{directories} directories are watched"),
        FileEvent::Overflow => "some events were lost; look at everything again".to_owned(),
        FileEvent::Modified { path } => shown(path, false),
        FileEvent::Created { path, directory }
        | FileEvent::Attributes { path, directory }
        | FileEvent::Removed { path, directory } => shown(path, *directory),
        FileEvent::Renamed { from, to, directory } => {
            format!("{} -> {}", shown(from, *directory), shown(to, *directory))
        }
        FileEvent::Unwatched { path, failure } => {
            format!("{}: {}", shown(path, true), failure.detail)
        }
    };
    format!("{:<10}  {what}", event.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_a_line_for_people_and_an_object_for_programs() {
        let check = |event: FileEvent, said: &str, json: &str| {
            assert_eq!(line(&event), said);
            let object = serde_json::to_string(&FileEventReport::new("s", &event)).unwrap();
            assert_eq!(object, format!("{{\"session\":\"s\",{json}}}"));
        };
        check(
            FileEvent::Created { path: "a".into(), directory: true },
            "created     a/",
            r#""event":"created","path":"a","directory":true"#,
        );
        check(
            FileEvent::Renamed { from: vec![0xff].into(), to: "b".into(), directory: false },
            "renamed     \u{fffd} -> b",
            r#""event":"renamed","path":"b","from_base64":"/w==","directory":false"#,
        );
        check(
            FileEvent::Ready { directories: 2 },
            "ready       2 directories are watched",
            r#""event":"ready","directories":2"#,
        );
        check(
            FileEvent::Attributes { path: ByteString::default(), directory: true },
            "attributes  .",
            r#""event":"attributes","path":"","directory":true"#,
        );
    }
}

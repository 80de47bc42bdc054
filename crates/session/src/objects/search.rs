//! What is told of searches, and of several files at once.

use super::{FileContent, FileEntry};
use crate::text_or_base64;
use cofferdam_core::{Error, ErrorBody, ErrorReport};
use cofferdam_search::{FileHits, LeftOut, Line, LineKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;

/// What `file read-many --json` prints. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileContents {
    /// The id of the session.
    pub session: String,
    /// Each file that was asked for, in that order.
    pub files: Vec<OneContent>,
}

/// One file of several: its content or an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OneContent {
    /// The path; bytes that are not UTF-8 are replaced.
    pub path: String,
    /// What was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<FileContent>,
    /// Why nothing was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorBody>,
}

/// What `file glob --json` prints. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileNames {
    /// The id of the session.
    pub session: String,
    /// What was found, in the order of names, each directory before what is in it.
    pub entries: Vec<FileEntry>,
    /// What was not searched or not told.
    pub left_out: Vec<FileLeftOut>,
}

/// What `file grep --json` prints. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileMatches {
    /// The id of the session.
    pub session: String,
    /// The files with matches, in the order of names.
    pub files: Vec<MatchedFile>,
    /// How many lines match in all of them.
    pub matches: u64,
    /// How many files were searched.
    pub files_searched: u64,
    /// What was not searched or not told.
    pub left_out: Vec<FileLeftOut>,
}

/// A file with matches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MatchedFile {
    /// The path, where it is UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The path in base64, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_base64: Option<String>,
    /// Whether it holds a zero byte. Then its lines are not told.
    pub binary: bool,
    /// How many lines match; 1 of a binary file and with `--files-with-matches`.
    pub matches: u64,
    /// Whether there may be more than a limit let through.
    pub cut: bool,
    /// The lines that match, and those around them.
    pub lines: Vec<MatchedLine>,
}

/// A line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MatchedLine {
    /// Its number, from 1 on.
    pub line: u64,
    /// At which of its bytes the first match begins, from 1 on. A line of context has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u64>,
    /// The line without its end, where it is UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The line in base64, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
    /// How many bytes are left out behind these.
    pub left_out_bytes: u64,
}

/// Something that was not searched or not told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileLeftOut {
    /// Why: `too_large`, `unreadable`, `too_deep`, `too_many_names`, `too_many_matches`,
    /// `matches_of_one_file` or `rules`.
    pub why: String,
    /// How often.
    pub count: u64,
    /// Where it was the first time; bytes that are not UTF-8 are replaced.
    pub first: String,
}

impl OneContent {
    /// A file that was read.
    pub fn read(path: &OsStr, content: FileContent) -> Self {
        let path = path.to_string_lossy().into_owned();
        Self { path, content: Some(content), error: None }
    }

    /// A file that was not.
    pub fn failed(path: &OsStr, error: &Error) -> Self {
        let path = path.to_string_lossy().into_owned();
        Self { path, content: None, error: Some(ErrorReport::from(error).error) }
    }
}

impl MatchedFile {
    /// What was found in a file.
    pub fn new(hits: FileHits) -> Self {
        let (path, path_base64) = text_or_base64(hits.path.as_bytes().to_vec());
        Self {
            path,
            path_base64,
            binary: hits.is_binary,
            matches: hits.matches,
            cut: hits.is_cut,
            lines: hits.lines.into_iter().map(MatchedLine::new).collect(),
        }
    }
}

impl MatchedLine {
    fn new(line: Line) -> Self {
        let column = match line.kind {
            LineKind::Match { column } => Some(column),
            LineKind::Context => None,
        };
        let (text, base64) = text_or_base64(line.bytes);
        Self { line: line.number, column, text, base64, left_out_bytes: line.left_out_bytes }
    }
}

impl FileLeftOut {
    /// All that was left out.
    pub fn all(left_out: &[LeftOut]) -> Vec<Self> {
        let one = |left: &LeftOut| Self {
            why: left.reason.name().to_owned(),
            count: left.count,
            first: left.first.to_string(),
        };
        left_out.iter().map(one).collect()
    }
}

//! What `cofferdam file glob`, `grep` and `read-many` print.

use super::report::{FileContent, FileEntry};
use crate::report;
use cofferdam_core::{Error, ErrorBody, ErrorReport};
use cofferdam_search::{FileHits, LeftOut, Line, LineKind, Reason};
use cofferdam_session::text_or_base64;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;

/// What `file read-many --json` prints. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct FileContents {
    /// The id of the session.
    pub(crate) session: String,
    /// Each file that was asked for, in that order.
    pub(crate) files: Vec<OneContent>,
}

/// One file of several: its content or an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct OneContent {
    /// The path; bytes that are not UTF-8 are replaced.
    pub(crate) path: String,
    /// What was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) content: Option<FileContent>,
    /// Why nothing was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<ErrorBody>,
}

/// What `file glob --json` prints. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct FileNames {
    /// The id of the session.
    pub(crate) session: String,
    /// What was found, in the order of names, each directory before what is in it.
    pub(crate) entries: Vec<FileEntry>,
    /// What was not searched or not told.
    pub(crate) left_out: Vec<FileLeftOut>,
}

/// What `file grep --json` prints. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct FileMatches {
    /// The id of the session.
    pub(crate) session: String,
    /// The files with matches, in the order of names.
    pub(crate) files: Vec<MatchedFile>,
    /// How many lines match in all of them.
    pub(crate) matches: u64,
    /// How many files were searched.
    pub(crate) files_searched: u64,
    /// What was not searched or not told.
    pub(crate) left_out: Vec<FileLeftOut>,
}

/// A file with matches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct MatchedFile {
    /// The path, where it is UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path: Option<String>,
    /// The path in base64, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path_base64: Option<String>,
    /// Whether it holds a zero byte. Then its lines are not told.
    pub(crate) binary: bool,
    /// How many lines match; 1 of a binary file and with `--files-with-matches`.
    pub(crate) matches: u64,
    /// Whether there may be more than a limit let through.
    pub(crate) cut: bool,
    /// The lines that match, and those around them.
    pub(crate) lines: Vec<MatchedLine>,
}

/// A line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct MatchedLine {
    /// Its number, from 1 on.
    pub(crate) line: u64,
    /// At which of its bytes the first match begins, from 1 on. A line of context has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) column: Option<u64>,
    /// The line without its end, where it is UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
    /// The line in base64, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) base64: Option<String>,
    /// How many bytes are left out behind these.
    pub(crate) left_out_bytes: u64,
}

/// Something that was not searched or not told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct FileLeftOut {
    /// Why: `too_large`, `unreadable`, `too_deep`, `too_many_names`, `too_many_matches`,
    /// `matches_of_one_file` or `rules`.
    pub(crate) why: String,
    /// How often.
    pub(crate) count: u64,
    /// Where it was the first time; bytes that are not UTF-8 are replaced.
    pub(crate) first: String,
}

impl OneContent {
    pub(super) fn read(path: &OsStr, content: FileContent) -> Self {
        let path = path.to_string_lossy().into_owned();
        Self { path, content: Some(content), error: None }
    }

    pub(super) fn failed(path: &OsStr, error: &Error) -> Self {
        let path = path.to_string_lossy().into_owned();
        Self { path, content: None, error: Some(ErrorReport::from(error).error) }
    }
}

impl MatchedFile {
    pub(super) fn new(hits: FileHits) -> Self {
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
    pub(super) fn all(left_out: &[LeftOut]) -> Vec<Self> {
        let one = |left: &LeftOut| Self {
            why: left.reason.name().to_owned(),
            count: left.count,
            first: left.first.to_string(),
        };
        left_out.iter().map(one).collect()
    }
}

/// Tells people what was left out.
pub(super) fn note(left_out: &[LeftOut]) {
    for left in left_out {
        report::note(&sentence(left));
    }
}

fn sentence(left: &LeftOut) -> String {
    let (count, first) = (left.count, &left.first);
    let (one, several, why) = match left.reason {
        Reason::TooLarge => ("file was", "files were", "not searched, being too large"),
        Reason::Unreadable => ("name was", "names were", "not searched, being unreadable"),
        Reason::TooDeep => ("directory was", "directories were", "not searched, lying too deep"),
        Reason::TooManyNames => {
            return format!("so many names are there that the search ended before {first:?}");
        }
        Reason::TooManyMatches => {
            return format!("so much was found that {count} more were not told, first {first:?}");
        }
        Reason::MatchesOfOneFile => ("file has", "files have", "more matches than are told"),
        Reason::Rules => {
            ("directory has", "directories have", "a .gitignore that was not followed as a whole")
        }
    };
    let number = if count == 1 { one } else { several };
    format!("{count} {number} {why}; the first is {first:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_out_is_a_sentence() {
        let check = |reason, count, expected: &str| {
            assert_eq!(sentence(&LeftOut { reason, count, first: "a".into() }), expected);
        };
        check(Reason::TooLarge, 1, "1 file was not searched, being too large; the first is \"a\"");
        check(
            Reason::Unreadable,
            2,
            "2 names were not searched, being unreadable; the first is \"a\"",
        );
        let ended = "so many names are there that the search ended before \"a\"";
        check(Reason::TooManyNames, 1, ended);
    }
}

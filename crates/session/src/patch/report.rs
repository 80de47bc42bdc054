//! What came of a patch, as an object for every door.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a patch does, or why it does nothing, file by file and hunk by hunk. Format 1.
///
/// Lines count from 1. Bytes that are not text are replaced in what is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PatchReport {
    /// What came of all of it.
    pub outcome: PatchOutcome,
    /// What it was written in.
    pub format: PatchFormat,
    /// Whether it was applied backwards.
    pub reversed: bool,
    /// Each section, in the order in which they are applied.
    pub files: Vec<PatchedFile>,
}

/// What came of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PatchOutcome {
    /// All of it fits.
    Fits,
    /// All of it was applied before; nothing is left to do.
    AlreadyApplied,
    /// Some of it does not fit, so that nothing is done.
    Refused,
}

/// What a patch is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PatchFormat {
    /// Unified diffs, of git or of `diff -u`.
    Unified,
    /// The envelope that begins with `*** Begin Patch`.
    Envelope,
}

/// What came of one section of a patch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PatchedFile {
    /// The file that it is about when it is done.
    pub path: String,
    /// The file that it was, for one that is renamed or copied.
    pub from: Option<String>,
    /// What is done to it.
    pub action: PatchAction,
    /// Where the section begins in the patch.
    pub patch_line: usize,
    /// What came of it.
    pub outcome: PatchOutcome,
    /// Why it is refused, where that is not the fault of a hunk.
    pub refusal: Option<PatchRefusal>,
    /// What was done that the patch does not say word for word.
    pub notes: Vec<PatchNote>,
    /// Lines that come.
    pub added: usize,
    /// Lines that go.
    pub removed: usize,
    /// Each of its hunks.
    pub hunks: Vec<PatchedHunk>,
}

/// What is done to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PatchAction {
    /// It is changed where it stands.
    Modify,
    /// It is made.
    Create,
    /// It is removed.
    Delete,
    /// It gets another name.
    Rename,
    /// Another one like it is made.
    Copy,
}

/// Why a section is refused, where that is not the fault of a hunk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PatchRefusal {
    /// What sort of reason it is.
    pub kind: PatchRefusalKind,
    /// The reason, as a lowercase fragment.
    pub message: String,
}

/// The closed set of reasons. A caller decides by these, never by a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PatchRefusalKind {
    /// The file is not there.
    NotFound,
    /// Something is there already.
    Exists,
    /// What is there is of another kind than the patch says.
    WrongKind,
    /// A link, or something else that is no directory, is on the way.
    NoDirectory,
    /// The file holds something else than what is to be deleted.
    ContentDiffers,
    /// A symbolic link would be empty, or lead out of the workspace.
    BadLink,
    /// Something would be larger than a limit allows.
    TooLarge,
}

/// What was done that the patch does not say word for word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PatchNote {
    /// The patch ends its lines with a line feed, the file with carriage return and line feed, and
    /// the file's way was kept.
    KeptCrlf,
    /// The patch ends its lines with carriage return and line feed, the file with a line feed, and
    /// the file's way was kept.
    KeptLf,
    /// The file's last line has no line feed, the envelope cannot say so, and that was kept.
    KeptMissingFinalNewline,
    /// The file was not there, and was made since the patch takes it for empty.
    Made,
    /// The file had the new mode already.
    HadMode,
}

/// What came of one hunk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PatchedHunk {
    /// Where it begins in the patch.
    pub patch_line: usize,
    /// What came of it.
    pub outcome: HunkOutcome,
    /// The line of the file where it fits, or fits already.
    pub line: Option<usize>,
    /// By how many lines that is further down than the patch says.
    pub offset: Option<i64>,
    /// The lines where it fits alike, at most 16 of them; of one out of order, where it would fit.
    pub candidates: Vec<usize>,
    /// Where it comes nearest to fitting.
    pub nearest: Option<NearestPlace>,
    /// Whether the numbers of lines in its head were wrong, and its lines were counted instead.
    pub recounted: bool,
}

/// What came of a hunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HunkOutcome {
    /// It fits.
    Fits,
    /// What it makes is there already.
    AlreadyApplied,
    /// Its old lines are nowhere.
    NotFound,
    /// A line that it is to stand behind is nowhere.
    AnchorNotFound,
    /// It fits in several places, and in none that the patch says.
    Ambiguous,
    /// It fits only before what it has to follow: the hunk before it, or a line that it names.
    OutOfOrder,
    /// It has neither context nor removed lines, so that nothing says where it belongs.
    NoContext,
    /// The file or the patch is too large for a search.
    TooLarge,
}

/// Where a hunk that fits nowhere comes nearest to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NearestPlace {
    /// The line of the file where the hunk would begin.
    pub line: usize,
    /// The first line of the file that is not as the hunk says.
    pub differs_at: usize,
    /// In what it differs.
    pub differs_in: Difference,
    /// That line as the hunk says, cut at 200 bytes; null where the file has to end.
    pub expected: Option<String>,
    /// That line as it is, cut at 200 bytes; null behind the end of the file.
    pub found: Option<String>,
}

/// In what two lines differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Difference {
    /// In their text.
    Text,
    /// In white space alone.
    WhiteSpace,
    /// In how they end: one has a carriage return.
    LineEnding,
    /// One has no line feed, as only the last line of a file may.
    FinalNewline,
    /// The file ends before it, or goes on where it has to end.
    EndOfFile,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patch::{Executable, Node, Patch, Tree};
    use cofferdam_core::GuestPath;
    use serde_json::json;

    #[test]
    fn a_report_has_stable_names() {
        let text = b"--- a/x\n+++ b/x\n@@ -1,2 +1 @@\n a\n-b\n@@ -9 +9 @@\n-c\n+d\n\
                     diff --git a/y b/z\nrename from y\nrename to z\n";
        let content = b"top\na\nb\n C\n".as_slice().into();
        let node = Node::File { content, executable: Executable::No };
        let files = Tree::from([(GuestPath::new("x").unwrap(), node)]);
        let report = Patch::parse(text).unwrap().plan(&files).report;
        let expected = json!({
            "outcome": "refused",
            "format": "unified",
            "reversed": false,
            "files": [{
                "path": "x", "from": null, "action": "modify", "patch_line": 1,
                "outcome": "refused", "refusal": null, "notes": [], "added": 1, "removed": 2,
                "hunks": [{
                    "patch_line": 3, "outcome": "fits", "line": 2, "offset": 1,
                    "candidates": [], "nearest": null, "recounted": false,
                }, {
                    "patch_line": 6, "outcome": "not_found", "line": null, "offset": null,
                    "candidates": [],
                    "nearest": {
                        "line": 4, "differs_at": 4, "differs_in": "text",
                        "expected": "c", "found": " C",
                    },
                    "recounted": false,
                }],
            }, {
                "path": "z", "from": "y", "action": "rename", "patch_line": 9,
                "outcome": "refused",
                "refusal": { "kind": "not_found", "message": "\"y\" is not there" },
                "notes": [], "added": 0, "removed": 0, "hunks": [],
            }],
        });
        assert_eq!(serde_json::to_value(&report).unwrap(), expected);
        assert_eq!(serde_json::from_value::<PatchReport>(expected).unwrap(), report);
    }
}

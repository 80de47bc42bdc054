//! The tools that change parts of files.

use super::file::PATH;
use crate::param::{Kind, Param};
use crate::scope::Missing;
use crate::text::counted;
use crate::tool::{Conduct, Hints, Row, output_of};
use crate::toolbox::Call;
use crate::{Outcome, ToolError};
use cofferdam_core::{Error, ErrorKind, Result, made_visible};
use cofferdam_session::edit::{Edit, EditOutcome, EditReport, EditedText, Places};
use cofferdam_session::patch::{PatchOutcome, PatchReport, PatchedFile};
use cofferdam_session::{Doing, PatchOptions, Way};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::fmt::Write as _;

/// The most edits of one call.
const MAX_EDITS: usize = 100;
/// The most files of a patch that one answer tells of.
const SHOWN_FILES: usize = 200;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EditArguments {
    path: String,
    edits: Vec<OneEdit>,
    dry_run: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OneEdit {
    old_text: String,
    new_text: String,
    #[serde(default)]
    replace_all: bool,
}

/// What came of edits.
#[derive(Serialize, JsonSchema)]
struct HasEdited {
    /// The file.
    path: String,
    /// Whether it was changed.
    changed: bool,
    /// The SHA-256 of what it holds now, in hexadecimal.
    sha256: String,
    /// Edit by edit.
    report: EditReport,
    /// Why nothing was done; absent where the edits apply.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ToolError>,
}

pub(super) const EDIT: Row = Row {
    name: "file_edit",
    title: "Edit a file",
    about: "Replaces texts in a file of the workspace: all edits, or none. Each old text has to stand there \
            exactly once, unless all its places are meant.",
    params: &[
        PATH,
        Param::required(
            "edits",
            Kind::Objects(
                &[
                    Param::required("old_text", Kind::Word, "What stands there, byte for byte."),
                    Param::required(
                        "new_text",
                        Kind::Text,
                        "What is to stand there; may be empty.",
                    ),
                    Param::flag("replace_all", false, "Whether every place is meant."),
                ],
                MAX_EDITS,
            ),
            "One after the other, each on what those before it have made.",
        ),
        Param::flag("dry_run", false, "Whether it is only said what would be done."),
    ],
    output: output_of::<HasEdited>,
    conduct: Conduct::Of(Hints::CHANGES),
};

pub(super) async fn edit(call: Call<'_>) -> Result<Outcome> {
    let EditArguments { path, edits, dry_run } = call.arguments()?;
    let session = call.sandboxes.needed(call.name(), Missing::MakeOwn).await?;
    let edits: Vec<Edit> = edits
        .into_iter()
        .map(|edit| Edit {
            old: edit.old_text.into_bytes(),
            new: edit.new_text.into_bytes(),
            places: if edit.replace_all { Places::All } else { Places::Only },
        })
        .collect();
    let edited = session.edit_file(&path, &edits, doing(dry_run)).await?;
    let refused = edited.report.edits.last().filter(|_| !edited.report.applies);
    let error =
        refused.map(|last| ToolError::new(&refusal(&path, edited.report.edits.len(), last)));
    let text = match &error {
        Some(error) => error.text(),
        None => {
            let done = if edited.changed { "replaced" } else { "would be replaced" };
            let places = counted(edited.report.replacements, "place", "places");
            format!("{}: {places} {done}", made_visible(&path))
        }
    };
    let is_error = error.is_some();
    let edited = HasEdited {
        path,
        changed: edited.changed,
        sha256: edited.sha256,
        report: edited.report,
        error,
    };
    Ok(Outcome { text, structured: json!(edited), is_error })
}

fn doing(dry_run: bool) -> Doing {
    if dry_run { Doing::DryRun } else { Doing::Real }
}

/// Why an edit does not apply.
pub(crate) fn refusal(path: &str, number: usize, edit: &EditedText) -> Error {
    let path = made_visible(path);
    let lines = |lines: &[usize]| {
        let words: Vec<String> = lines.iter().map(ToString::to_string).collect();
        words.join(", ")
    };
    // Several places may be in one line.
    let at = |all: &[usize]| match all {
        [_] => format!("at line {}", lines(all)),
        _ => format!("at lines {}", lines(all)),
    };
    let conflict = |what: String| Error::new(ErrorKind::Conflict, what);
    match edit.outcome {
        EditOutcome::Ambiguous => conflict(format!(
            "edit {number} of {path}: the old text stands in {}, {}",
            counted(edit.places, "place", "places"),
            at(&edit.lines)
        ))
        .hint("Write more of the lines around it, or set replace_all."),
        EditOutcome::NotFound | EditOutcome::Applies => {
            let error = conflict(format!("edit {number} of {path}: the old text is not there"));
            if !edit.already.is_empty() {
                error.hint(format!("The new text stands there already, {}.", at(&edit.already)))
            } else if !edit.similar.is_empty() {
                let lines = match edit.similar.as_slice() {
                    [line] => format!("Line {line} is"),
                    several => format!("Lines {} are", lines(several)),
                };
                error.hint(format!("{lines} like it but for white space; read the file."))
            } else {
                error.hint("Read the file, and copy the text as it stands there.")
            }
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PatchArguments {
    patch: String,
    dry_run: bool,
    reverse: bool,
}

/// What came of a patch.
#[derive(Serialize, JsonSchema)]
struct HasPatched {
    /// Whether files were changed.
    changed: bool,
    /// How many files it is about.
    total_files: usize,
    /// How many of these the report leaves out, for there are too many; those that do not fit come first.
    files_left_out: usize,
    /// File by file and hunk by hunk.
    report: PatchReport,
    /// Why nothing was done; absent where the patch fits, or was applied before.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ToolError>,
}

pub(super) const PATCH: Row = Row {
    name: "file_patch",
    title: "Apply a patch",
    about: "Applies a unified diff (of git or diff -u), or an envelope that begins with *** Begin Patch, to \
            the workspace: all of it, or nothing. What was applied before is recognised.",
    params: &[
        Param::required("patch", Kind::Word, "The patch."),
        Param::flag("dry_run", false, "Whether it is only said what would be done."),
        Param::flag("reverse", false, "Whether what it does is taken back."),
    ],
    output: output_of::<HasPatched>,
    conduct: Conduct::Of(Hints::CHANGES),
};

pub(super) async fn patch(call: Call<'_>) -> Result<Outcome> {
    let PatchArguments { patch, dry_run, reverse } = call.arguments()?;
    let session = call.sandboxes.needed(call.name(), Missing::MakeOwn).await?;
    let way = if reverse { Way::Reverse } else { Way::Forward };
    let options = PatchOptions { doing: doing(dry_run), way };
    let patched = session.apply_patch(patch.as_bytes(), options).await?;
    let mut report = patched.report;
    // What is to be done about comes first.
    report.files.sort_by_key(|file| file.outcome != PatchOutcome::Refused);
    Ok(Outcome::fitting(SHOWN_FILES, |shown| has_patched(&report, patched.changed, shown)))
}

fn has_patched(report: &PatchReport, changed: bool, shown: usize) -> Outcome {
    let total = report.files.len();
    let error = (report.outcome == PatchOutcome::Refused).then(|| {
        let refused = report.files.iter().filter(|file| file.outcome == PatchOutcome::Refused);
        let (refused, files) = (refused.count(), counted(total, "file", "files"));
        let fit = if refused == 1 { "does not fit" } else { "do not fit" };
        let what = format!("{refused} of {files} {fit}; nothing was changed");
        let error = Error::new(ErrorKind::Conflict, what);
        ToolError::new(&error.hint("Read the places that are named, and make the patch again."))
    });
    let mut text = match (&error, report.outcome) {
        (Some(error), _) => error.text(),
        (None, PatchOutcome::AlreadyApplied) => "all of it was applied before".to_owned(),
        (None, _) if changed => format!("{} changed", counted(total, "file", "files")),
        (None, _) => {
            format!("it fits; {} would be changed", counted(total, "file", "files"))
        }
    };
    let files: Vec<PatchedFile> = report.files.iter().take(shown).cloned().collect();
    for file in report.files.iter().take(shown.max(1)) {
        text.push_str(&line(file));
    }
    let files_left_out = total - files.len();
    if files_left_out > 0 {
        let more = counted(files_left_out, "more file is", "more files are");
        write!(text, "\n[{more} left out of this report]").ok();
    }
    let is_error = error.is_some();
    let report = PatchReport { files, ..report.clone() };
    let patched = HasPatched { changed, total_files: total, files_left_out, report, error };
    Outcome { text, structured: json!(patched), is_error }
}

/// A line of a file in quotes, or its end.
fn line_or_end(line: Option<&str>) -> String {
    line.map_or_else(|| "the end of the file".to_owned(), |line| format!("{line:?}"))
}

/// A file of a patch, and of one that does not fit where.
fn line(file: &PatchedFile) -> String {
    let word = |value: serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let mut text = format!(
        "\n{} {} (+{} -{}): {}",
        word(json!(file.action)),
        made_visible(&file.path),
        file.added,
        file.removed,
        word(json!(file.outcome))
    );
    if let Some(refusal) = &file.refusal {
        write!(text, "; {}", made_visible(&refusal.message)).ok();
    }
    let failed = file.hunks.iter().filter(|hunk| hunk.line.is_none());
    for hunk in failed.take(8) {
        write!(text, "\n  hunk at line {} of the patch: ", hunk.patch_line).ok();
        text.push_str(&word(json!(hunk.outcome)));
        if let Some(near) = &hunk.nearest {
            write!(
                text,
                "; nearest at line {}, which differs at {}: expected {}, found {}",
                near.line,
                near.differs_at,
                line_or_end(near.expected.as_deref()),
                line_or_end(near.found.as_deref())
            )
            .ok();
        }
    }
    text
}

//! The six tools of fluers: names, parameters and limits are theirs.

mod search;

use crate::Outcome;
use crate::native::change::refusal;
use crate::param::{Fault, Kind, Param};
use crate::run::{self, Wanted};
use crate::scope::Missing;
use crate::text::{counted, plain_part, show_bytes};
use crate::tool::{Conduct, Hints, Row, output_of};
use crate::toolbox::Call;
use cofferdam_core::files::{EntryKind, Read};
use cofferdam_core::{Error, ErrorKind, Files, GuestPath, Result, Standard, made_visible};
use cofferdam_session::Doing;
use cofferdam_session::edit::{Edit, Places};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;

/// The most lines of a file.
const MAX_LINES: u64 = 2000;
/// The most bytes of a file or a stream.
const MAX_BYTES: u64 = 50 << 10;
/// How much of a file one command of a hint shows.
const PIECE_BYTES: usize = 24 << 10;
/// The largest file that is edited.
const MAX_EDITED_BYTES: u64 = 256 << 10;
/// What a command may take where nobody said.
const TIMEOUT_MS: u64 = 30_000;
/// The longest that a command may take.
const MAX_TIMEOUT_MS: u64 = 3_600_000;
/// The pack.
pub(crate) const ROWS: &[Row] = &[READ, WRITE, EDIT, BASH, search::GLOB, search::GREP];

/// Calls one of them.
pub(crate) async fn call(name: &str, call: Call<'_>) -> Result<Outcome> {
    match name {
        "read" => read(call).await,
        "write" => write(call).await,
        "edit" => edit(call).await,
        "bash" => bash(call).await,
        "glob" => search::glob(call).await,
        _ => search::grep(call).await,
    }
}

/// Arguments that cannot be taken.
pub(crate) fn refused(fault: Fault) -> Outcome {
    failed(&fault.into())
}

/// An error, in words and as data.
pub(crate) fn failed(error: &Error) -> Outcome {
    Outcome::failed(error)
}

/// A path below the workspace, on which there is no link, and no file of several names at its end. What
/// is missing may be made.
async fn confined(files: &Files, path: &str) -> Result<GuestPath> {
    let path = GuestPath::new(path)?;
    let refuse = |what: &str| {
        Error::new(ErrorKind::PathEscape, format!("the path {path:?} {what}"))
            .hint("Use the path of a file itself.")
    };
    let bytes = path.as_bytes();
    let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    for end in ends.chain([bytes.len()]) {
        let part = OsStr::from_bytes(bytes.get(..end).unwrap_or_default());
        match files.stat(part).await {
            Ok(entry) if entry.kind == EntryKind::Link => {
                return Err(refuse("goes through a link"));
            }
            Ok(entry) if entry.kind == EntryKind::File && entry.links > 1 => {
                return Err(refuse("is a file of several names"));
            }
            Ok(_) => {}
            Err(error) if error.kind == ErrorKind::NotFound => break,
            Err(error) => return Err(error),
        }
    }
    Ok(path)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadArguments {
    path: String,
    max_lines: u64,
    max_bytes: u64,
}

/// The beginning of a file.
#[derive(Serialize, JsonSchema)]
struct HasRead {
    /// Its first lines, as they are; bytes that are no UTF-8 are replaced.
    content: String,
    /// Whether something follows.
    truncated: bool,
    /// How many bytes it has.
    size_bytes: u64,
    /// How to see what follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

const READ: Row = Row {
    name: "read",
    title: "Read a file",
    about: "Reads the beginning of a file of the workspace: at most 2000 lines and 50 KiB.",
    params: &[
        Param::required("path", Kind::Word, "Relative to the workspace."),
        Param::whole("max_lines", (1, MAX_LINES), MAX_LINES, "How many lines at most."),
        Param::whole("max_bytes", (1, MAX_BYTES), MAX_BYTES, "How many bytes at most."),
    ],
    output: output_of::<HasRead>,
    conduct: Conduct::Reads,
};

async fn read(call: Call<'_>) -> Result<Outcome> {
    let ReadArguments { path, max_lines, max_bytes } = call.arguments()?;
    let files = call.sandboxes.needed(call.name(), Missing::Make).await?.files();
    let name = path.clone();
    let path = confined(&files, &path).await?;
    let length = Some(max_bytes);
    let order = Read { path: path.as_bytes().to_vec().into(), length, ..Read::default() };
    let mut bytes = Vec::new();
    let size_bytes = files.read_to(&order, &mut bytes).await?.size;
    let lines = usize::try_from(max_lines).unwrap_or(usize::MAX);
    Ok(Outcome::fitting(bytes.len(), |budget| {
        let part = plain_part(&bytes, lines, budget);
        let (left, truncated) =
            (size_bytes.saturating_sub(part as u64), (part as u64) < size_bytes);
        let shown = bytes.get(..part).unwrap_or_default();
        let hint = truncated.then(|| {
            let show = show_bytes(&name, part as u64, PIECE_BYTES);
            let follow = if left == 1 { "follows" } else { "follow" };
            format!(
                "{left} of {size_bytes} bytes {follow}; see the next of them by bash with {show}"
            )
        });
        let content = String::from_utf8_lossy(shown).into_owned();
        let text = match &hint {
            Some(hint) => format!("{content}\n[{hint}]"),
            None => content.clone(),
        };
        Outcome::said(text, json!(HasRead { content, truncated, size_bytes, hint }))
    }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WriteArguments {
    path: String,
    content: String,
}

/// What was written.
#[derive(Serialize, JsonSchema)]
struct HasWritten {
    /// The file.
    path: String,
    /// How many bytes it has.
    bytes_written: u64,
}

const WRITE: Row = Row {
    name: "write",
    title: "Write a file",
    about: "Writes a whole file of the workspace. Directories on the way are made.",
    params: &[
        Param::required("path", Kind::Word, "Relative to the workspace."),
        Param::required("content", Kind::Text, "What it is to hold."),
    ],
    output: output_of::<HasWritten>,
    conduct: Conduct::Of(Hints::REMOVES),
};

async fn write(call: Call<'_>) -> Result<Outcome> {
    let WriteArguments { path, content } = call.arguments()?;
    let files = call.sandboxes.needed(call.name(), Missing::Make).await?.files();
    let guest = confined(&files, &path).await?;
    let written = files.write(OsStr::from_bytes(guest.as_bytes()), content.as_bytes()).await?;
    let bytes = counted(written.bytes, "byte", "bytes");
    let text = format!("wrote {bytes} to {}", made_visible(&path));
    Ok(Outcome::done(text, json!(HasWritten { path, bytes_written: written.bytes })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EditArguments {
    path: String,
    old_text: String,
    new_text: String,
}

/// What was replaced.
#[derive(Serialize, JsonSchema)]
struct HasEdited {
    /// The file.
    path: String,
    /// How many places were replaced: one.
    replacements: usize,
}

const EDIT: Row = Row {
    name: "edit",
    title: "Edit a file",
    about: "Replaces a text that stands in a file of the workspace exactly once. Files up to 256 KiB.",
    params: &[
        Param::required("path", Kind::Word, "Relative to the workspace."),
        Param::required("old_text", Kind::Word, "What stands there."),
        Param::required("new_text", Kind::Text, "What is to stand there."),
    ],
    output: output_of::<HasEdited>,
    conduct: Conduct::Of(Hints::CHANGES),
};

async fn edit(call: Call<'_>) -> Result<Outcome> {
    let EditArguments { path, old_text, new_text } = call.arguments()?;
    let session = call.sandboxes.needed(call.name(), Missing::Make).await?;
    let files = session.files();
    let guest = confined(&files, &path).await?;
    let guest = OsStr::from_bytes(guest.as_bytes());
    let size = files.stat(guest).await?.size;
    if size > MAX_EDITED_BYTES {
        let what = format!("{path} has {size} bytes, over the limit of {MAX_EDITED_BYTES}");
        return Err(Error::new(ErrorKind::TooLarge, what).hint("Edit it with bash and sed."));
    }
    let one = Edit { old: old_text.into(), new: new_text.into(), places: Places::Only };
    let edited = session.edit_file(guest, &[one], Doing::Real).await?;
    if let Some(refused) = edited.report.edits.last().filter(|_| !edited.report.applies) {
        return Err(refusal(&path, 1, refused).hint("Write more of the lines around it."));
    }
    let text = format!("edited {}", made_visible(&path));
    let replacements = edited.report.replacements;
    Ok(Outcome::done(text, json!(HasEdited { path, replacements })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BashArguments {
    command: String,
    timeout_ms: u64,
}

/// What came of a command.
#[derive(Serialize, JsonSchema)]
struct HasRun {
    /// Its exit code; 124 where its time was over.
    exit_code: i32,
    /// What it wrote to standard output. A mark with a number stands for what is left out.
    stdout: String,
    /// The same of standard error.
    stderr: String,
}

const BASH: Row = Row {
    name: "bash",
    title: "Run a command",
    about: "Runs a shell command in the workspace. Exit code 124 says that its time was over; what it wrote \
            until then is there.",
    params: &[
        Param::required("command", Kind::Word, "The command."),
        Param::whole(
            "timeout_ms",
            (1, MAX_TIMEOUT_MS),
            TIMEOUT_MS,
            "It is killed after so many milliseconds.",
        ),
    ],
    output: output_of::<HasRun>,
    conduct: Conduct::Of(Hints::RUNS),
};

/// Runs bash where there is one.
const SHELL: &str =
    "if command -v bash >/dev/null 2>&1; then exec bash -c \"$0\"; fi; exec sh -c \"$0\"";

async fn bash(call: Call<'_>) -> Result<Outcome> {
    let BashArguments { command, timeout_ms } = call.arguments()?;
    let session = call.sandboxes.needed(call.name(), Missing::Make).await?;
    let argv = vec!["/bin/sh", "-c", SHELL, &command];
    let wanted = Wanted { argv, cwd: None, input: None, timeout_ms };
    let finished = run::run(&session, wanted, call.context).await?;
    let stdout = finished.ends(Standard::Output, MAX_BYTES).await?;
    let stderr = finished.ends(Standard::Error, MAX_BYTES).await?;
    let plain = |ends: &run::Ends, most: usize| ends.plain().middle_cut(most);
    let most = usize::try_from(MAX_BYTES).unwrap_or(usize::MAX);
    Ok(Outcome::fitting(most, |budget| {
        let (stdout, stderr) = (plain(&stdout, budget), plain(&stderr, budget / 2));
        let exit_code = finished.exit_code;
        let mut text = format!("exit code {exit_code}\n{stdout}");
        if !stderr.is_empty() {
            write!(text, "\n--- stderr\n{stderr}").ok();
        }
        if let Some(hint) = finished.hint() {
            write!(text, "\n[{hint}]").ok();
        }
        Outcome::said(text, json!(HasRun { exit_code, stdout, stderr }))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ToolError;

    #[test]
    fn an_error_is_told_with_what_to_do() {
        let outcome = failed(&Error::new(ErrorKind::NotFound, "it is not there").hint("Make it."));
        let error = ToolError {
            kind: "not_found".to_owned(),
            message: "it is not there".to_owned(),
            hint: Some("Make it.".to_owned()),
            retryable: false,
        };
        assert_eq!(outcome.structured, json!({ "error": error }));
    }
}

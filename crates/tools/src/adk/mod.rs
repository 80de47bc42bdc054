//! The tools of adk: five for a workspace, and one that runs code. Names, parameters, results and the
//! codes of errors are theirs.

mod code;
mod path;

use crate::Outcome;
use crate::outcome::ToolError;
use crate::param::{Fault, Kind, Param};
use crate::plain::{left_out, middle_cut};
use crate::run::{self, Ends, Wanted};
use crate::scope::Missing;
use crate::text::{counted, show_bytes};
use crate::tool::{Conduct, Hints, Row, output_of};
use crate::toolbox::Call;
use cofferdam_core::files::{EntryKind, List, MAX_ENTRIES};
use cofferdam_core::{EndingKind, Error, ErrorKind, Files, Result, Standard};
use cofferdam_session::PatchOptions;
use cofferdam_session::patch::{PatchOutcome, PatchReport};
use path::relative;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// What a command may take: two minutes.
const TIMEOUT_MS: u64 = 120_000;
/// The most bytes of each stream, and of a file.
const SHOWN_BYTES: usize = 48 << 10;
/// How much of a file one command of a hint shows.
const PIECE_BYTES: usize = 24 << 10;
/// The largest file that is read.
const MAX_FILE_BYTES: u64 = 64 << 20;
/// How many entries of a directory are looked at.
const MAX_LISTED: usize = 50_000;

/// The pack.
pub(crate) const ROWS: &[Row] = &[EXEC, READ, WRITE, LIST, PATCH, code::ROW];

/// Calls one of them.
pub(crate) async fn call(name: &str, call: Call<'_>) -> Result<Outcome> {
    match name {
        "exec_command" => exec(call).await,
        "read_file" => read(call).await,
        "write_file" => write(call).await,
        "list_dir" => list(call).await,
        "apply_patch" => patch(call).await,
        _ => code::run(call).await,
    }
}

/// Arguments that cannot be taken.
pub(crate) fn refused(tool: &str, fault: Fault) -> Outcome {
    failure(tool, "invalid_arguments", &Error::from(fault))
}

/// An error, by the code that the tool has for it.
pub(crate) fn failed(tool: &str, error: &Error) -> Outcome {
    let code = match (error.kind, tool) {
        (ErrorKind::PathEscape, _) => "path_traversal",
        (ErrorKind::Usage, _) => "invalid_arguments",
        (ErrorKind::NotFound, _) => "not_found",
        (_, "read_file") => "read_error",
        (_, "write_file") => "write_error",
        (_, "list_dir") => "list_error",
        (_, "apply_patch") => "patch_error",
        _ => "execution_error",
    };
    failure(tool, code, error)
}

fn failure(tool: &str, code: &str, error: &Error) -> Outcome {
    let ToolError { kind, message, hint, retryable } = ToolError::new(error);
    let structured = if tool == code::ROW.name {
        let status = if code == "path_traversal" { code } else { "error" };
        let words = match &hint {
            Some(hint) => format!("{message}. {hint}"),
            None => message,
        };
        json!({ "status": status, "stderr": words, "kind": kind, "retryable": retryable })
    } else {
        json!({
            "error": code, "message": message, "hint": hint, "kind": kind, "retryable": retryable,
        })
    };
    Outcome { is_error: true, ..Outcome::json(structured) }
}

/// Both ends of a stream as one text.
fn plain(ends: &Ends, most: usize) -> String {
    ends.plain().middle_cut(most)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExecArguments {
    command: String,
    #[serde(default)]
    working_dir: Option<String>,
}

/// What came of a command.
#[derive(Serialize, JsonSchema)]
struct HasRun {
    /// What it wrote to standard output. A mark with a number stands for what is left out.
    stdout: String,
    /// The same of standard error.
    stderr: String,
    /// Its exit code; -1 where its time was over.
    exit_code: i32,
    /// Whether its time was over.
    timed_out: bool,
}

const EXEC: Row = Row {
    name: "exec_command",
    title: "Run a command",
    about: "Runs a shell command in the workspace, for two minutes at most. Another exit code than 0 is a \
            result, no error. What it leaves running ends with it.",
    params: &[
        Param::required("command", Kind::Word, "The command, for sh."),
        Param::optional("working_dir", Kind::Word, "Where it runs, relative to the workspace."),
    ],
    output: output_of::<HasRun>,
    conduct: Conduct::Of(Hints::RUNS),
};

async fn exec(call: Call<'_>) -> Result<Outcome> {
    let ExecArguments { command, working_dir } = call.arguments()?;
    let working_dir = working_dir.as_deref().map(relative).transpose()?;
    let session = call.sandboxes.needed(call.name(), Missing::Make).await?;
    let mut wanted = Wanted::line(&command, TIMEOUT_MS);
    wanted.cwd = working_dir.as_deref();
    let finished = run::run(&session, wanted, call.context).await?;
    if let Some(why) = &finished.not_started {
        return Err(not_started(&session.files(), working_dir.as_deref(), why).await);
    }
    let stdout = finished.ends(Standard::Output, SHOWN_BYTES as u64).await?;
    let stderr = finished.ends(Standard::Error, SHOWN_BYTES as u64).await?;
    let timed_out = finished.ending == EndingKind::TimedOut;
    Ok(Outcome::fitting(SHOWN_BYTES, |budget| {
        let ran = HasRun {
            stdout: plain(&stdout, budget),
            stderr: plain(&stderr, budget),
            exit_code: if timed_out { -1 } else { finished.exit_code },
            timed_out,
        };
        Outcome::json(json!(ran))
    }))
}

/// Why a command did not begin: most often its directory is none.
async fn not_started(files: &Files, working_dir: Option<&str>, why: &str) -> Error {
    const HINT: &str = "Use a directory that is there; list_dir shows which are.";
    let Some(directory) = working_dir else {
        return Error::new(ErrorKind::Unavailable, format!("start the command: {why}"));
    };
    let what = match files.stat(directory).await {
        Err(error) => {
            return Error::new(error.kind, format!("working_dir {directory:?}"))
                .source(error)
                .hint(HINT);
        }
        Ok(found) if found.kind != EntryKind::Directory => {
            format!("working_dir {directory:?} is no directory")
        }
        Ok(_) => format!("start the command in working_dir {directory:?}: {why}"),
    };
    Error::new(ErrorKind::NotAFile, what).hint(HINT)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PathArgument {
    path: String,
}

const PATH: Param = Param::required("path", Kind::Word, "Relative to the workspace.");

/// A file.
#[derive(Serialize, JsonSchema)]
struct HasRead {
    /// What it holds; bytes that are no UTF-8 are replaced. A mark with a number stands for what is left
    /// out.
    content: String,
    /// How to get what is left out; absent where nothing is.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

const READ: Row = Row {
    name: "read_file",
    title: "Read a file",
    about: "Reads a file of the workspace. Of a long one the middle is left out and counted; exec_command \
            shows any part of it.",
    params: &[PATH],
    output: output_of::<HasRead>,
    conduct: Conduct::Reads,
};

async fn read(call: Call<'_>) -> Result<Outcome> {
    let PathArgument { path } = call.arguments()?;
    let path = relative(&path)?;
    let session = call.sandboxes.needed(call.name(), Missing::Make).await?;
    let content = session.files().read(&path, MAX_FILE_BYTES).await?;
    let text = String::from_utf8_lossy(&content);
    Ok(Outcome::fitting(SHOWN_BYTES, |budget| {
        let hint = left_out(&text, budget).map(|omitted| {
            let lines = counted(text.split_inclusive('\n').count(), "line", "lines");
            let bytes = content.len();
            // Of what is not UTF-8 other bytes are shown than there are: it begins anew.
            let from = if std::str::from_utf8(&content).is_ok() { omitted.start } else { 0 };
            let show = show_bytes(&path, from as u64, PIECE_BYTES);
            format!(
                "the file has {lines}, {bytes} bytes; read on from byte {from} by exec_command with \
                 {show}, and further with larger numbers"
            )
        });
        Outcome::json(json!(HasRead { content: middle_cut(&text, budget), hint }))
    }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WriteArguments {
    path: String,
    content: String,
}

/// It was done.
#[derive(Serialize, JsonSchema)]
struct Done {
    /// Always true: what was not done is an error.
    ok: bool,
}

const WRITE: Row = Row {
    name: "write_file",
    title: "Write a file",
    about: "Writes a whole file of the workspace. Directories on the way are made.",
    params: &[PATH, Param::required("content", Kind::Text, "What it is to hold.")],
    output: output_of::<Done>,
    conduct: Conduct::Of(Hints::REMOVES),
};

async fn write(call: Call<'_>) -> Result<Outcome> {
    let WriteArguments { path, content } = call.arguments()?;
    let path = relative(&path)?;
    let session = call.sandboxes.needed(call.name(), Missing::Make).await?;
    session.files().write(&path, content.as_bytes()).await?;
    Ok(Outcome::json(json!(Done { ok: true })))
}

/// A directory.
#[derive(Serialize, JsonSchema)]
struct HasListed {
    /// Its entries, by their names.
    entries: Vec<Listing>,
    /// How many there are, where not all are listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<usize>,
    /// How to see the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

/// One entry.
#[derive(Clone, Serialize, JsonSchema)]
struct Listing {
    /// Its name; bytes that are no UTF-8 are replaced.
    name: String,
    /// `file` or `directory`; what is neither by its own name: `link`, `fifo`, `socket`, `device`.
    #[serde(rename = "type")]
    kind: &'static str,
}

const LIST: Row = Row {
    name: "list_dir",
    title: "List a directory",
    about: "Lists a directory of the workspace, hidden names too.",
    params: &[PATH],
    output: output_of::<HasListed>,
    conduct: Conduct::Reads,
};

async fn list(call: Call<'_>) -> Result<Outcome> {
    let PathArgument { path } = call.arguments()?;
    let path = relative(&path)?;
    let session = call.sandboxes.needed(call.name(), Missing::Make).await?;
    let (all, more) = entries(&session.files(), &path).await?;
    Ok(Outcome::fitting(all.len(), |budget| {
        let entries: Vec<Listing> = all.iter().take(budget).cloned().collect();
        let is_cut = entries.len() < all.len() || more;
        let total = is_cut.then_some(all.len());
        let hint = is_cut.then(|| {
            let least = if more { "at least " } else { "" };
            let (shown, total) = (entries.len(), all.len());
            format!("{shown} of {least}{total} entries; see others with exec_command, ls and tail")
        });
        Outcome::json(json!(HasListed { entries, total, hint }))
    }))
}

async fn entries(files: &Files, path: &str) -> Result<(Vec<Listing>, bool)> {
    let mut order = List { path: path.into(), depth: 1, after: None, limit: MAX_ENTRIES };
    let mut all = Vec::new();
    loop {
        let page = files.list(&order).await?;
        all.extend(page.entries.iter().map(|entry| Listing {
            name: entry.path.to_string(),
            kind: match entry.kind {
                EntryKind::File => "file",
                EntryKind::Directory => "directory",
                EntryKind::Link | EntryKind::Fifo | EntryKind::Socket | EntryKind::Device => {
                    entry.kind.name()
                }
            },
        }));
        order.after = page.next;
        if order.after.is_none() || all.len() >= MAX_LISTED {
            return Ok((all, order.after.is_some()));
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PatchArguments {
    patch: String,
}

const PATCH: Row = Row {
    name: "apply_patch",
    title: "Apply a patch",
    about: "Applies a unified diff to the workspace: all of it, or nothing.",
    params: &[Param::required("patch", Kind::Word, "The unified diff, with a/ and b/ or without.")],
    output: output_of::<Done>,
    conduct: Conduct::Of(Hints::CHANGES),
};

async fn patch(call: Call<'_>) -> Result<Outcome> {
    let PatchArguments { patch } = call.arguments()?;
    let session = call.sandboxes.needed(call.name(), Missing::Make).await?;
    let patched = session.apply_patch(patch.as_bytes(), PatchOptions::default()).await?;
    match patched.report.outcome {
        PatchOutcome::Fits | PatchOutcome::AlreadyApplied => {
            Ok(Outcome::json(json!(Done { ok: true })))
        }
        PatchOutcome::Refused => Err(refusal(&patched.report)),
    }
}

/// The first place where a patch does not fit, and how many files do not.
fn refusal(report: &PatchReport) -> Error {
    let refused: Vec<_> =
        report.files.iter().filter(|file| file.outcome == PatchOutcome::Refused).collect();
    let places = refused.iter().take(8).map(|file| match &file.refusal {
        Some(refusal) => format!("{}: {}", file.path, refusal.message),
        None => {
            let failed = file.hunks.iter().find(|hunk| hunk.line.is_none());
            let line = failed.map_or(file.patch_line, |hunk| hunk.patch_line);
            let near = failed.and_then(|hunk| hunk.nearest.as_ref());
            let near =
                near.map_or(String::new(), |near| format!(", nearest at line {}", near.line));
            format!("{}: the hunk at line {line} of the patch fits nowhere{near}", file.path)
        }
    });
    let places: Vec<String> = places.collect();
    let files = counted(refused.len(), "file does not fit", "files do not fit");
    let what = format!("{files}; {}", places.join("; "));
    Error::new(ErrorKind::Conflict, what)
        .hint("Nothing was changed. Read the file and make the patch again.")
}

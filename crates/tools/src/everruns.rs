//! The five tools of everruns for the one sandbox of a session: names, parameters, results, budgets and
//! words are theirs.

use crate::Outcome;
use crate::outcome::ToolError;
use crate::param::{Fault, Kind, Param};
use crate::plain::Holed;
use crate::run::{self, Ends, Finished, Wanted};
use crate::scope::Missing;
use crate::tool::{Conduct, Hints, Row, output_of};
use crate::toolbox::Call;
use cofferdam_core::{EndingKind, Error, Result, Standard};
use cofferdam_session::{Phase, SessionReport};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

mod outputs;
mod read;

/// What this calls itself where the name of a provider is told.
const PROVIDER: &str = "cofferdam";
/// The most bytes of standard error.
const STDERR_BYTES: usize = 4096;
/// What a command may take where nobody said: five minutes.
const TIMEOUT_MS: u64 = 300_000;
/// The names of what is shown of output.
const MODES: [&str; 6] = ["auto", "silent", "concise", "normal", "verbose", "full"];

/// The pack.
pub(crate) const ROWS: &[Row] = &[EXEC, read::ROW, WRITE, STATUS, MANAGE];

/// Calls one of them.
pub(crate) async fn call(name: &str, call: Call<'_>) -> Result<Outcome> {
    match name {
        "sandbox_exec" => exec(call).await,
        "sandbox_read_file" => read::read(call).await,
        "sandbox_write_file" => write(call).await,
        "sandbox_status" => status(call).await,
        _ => manage(call).await,
    }
}

/// Arguments that cannot be taken, in their words.
pub(crate) fn refused(fault: Fault) -> Outcome {
    let words = match &fault {
        Fault::Missing { name } => Some(format!("Missing required parameter: {name}")),
        Fault::Wrong { name, .. } if name == "timeout_ms" => {
            Some("timeout_ms must be a positive integer".to_owned())
        }
        Fault::Wrong { name, .. } if name == "action" => {
            Some("Invalid action: must be one of pause, resume, delete".to_owned())
        }
        Fault::Unknown { .. } | Fault::NoObject | Fault::Wrong { .. } => None,
    };
    let mut error = Error::from(fault);
    if let Some(words) = words {
        error.message = words;
    }
    failed(&error)
}

/// An error, as a model sees it there: its message under `error`.
pub(crate) fn failed(error: &Error) -> Outcome {
    let ToolError { kind, message, hint, retryable } = ToolError::new(error);
    let structured =
        json!({ "error": message, "kind": kind, "hint": hint, "retryable": retryable });
    Outcome { is_error: true, ..Outcome::json(structured) }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExecArguments {
    command: String,
    #[serde(default)]
    cwd: Option<String>,
    #[serde(default)]
    timeout_ms: Option<u64>,
    output: String,
}

/// What came of a command.
#[derive(Serialize, JsonSchema)]
struct HasRun {
    /// What it wrote to standard output, within the budget of the mode.
    stdout: String,
    /// The same of standard error, and at most 4096 bytes.
    stderr: String,
    /// The exit code that stands for its ending.
    exit_code: i32,
    /// Whether it is 0.
    success: bool,
    /// Whether anything is left out.
    truncated: bool,
    /// How many lines it wrote to standard output.
    total_lines: u64,
    /// The file with all of its standard output, where not all is here: sandbox_read_file has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    full_output: Option<String>,
    /// The files with the streams of which not all is here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    output_files: Vec<String>,
    /// What the exit code means, and how to get what is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    /// Where it ran, if that was said.
    #[serde(skip_serializing_if = "Option::is_none")]
    cwd: Option<String>,
}

const EXEC: Row = Row {
    name: "sandbox_exec",
    title: "Run a command",
    about: "Runs a shell command in the session's sandbox, which is made or woken first where it has to be. \
            A command that exits with another code than 0 is a result with success false. Output that is left \
            out can be read with sandbox_read_file, from the paths in output_files.",
    params: &[
        Param::required("command", Kind::Word, "The command, for sh."),
        Param::optional("cwd", Kind::Word, "Where it runs. Left out: in the workspace."),
        Param::optional(
            "timeout_ms",
            Kind::Whole(1, u64::MAX),
            "It is killed after so many milliseconds; five minutes where it is left out.",
        ),
        Param::word(
            "output",
            Kind::Wish(&MODES),
            "auto",
            "How much output is shown. auto is little of a command that succeeds and more of one that fails.",
        ),
    ],
    output: output_of::<HasRun>,
    conduct: Conduct::Of(Hints::RUNS),
};

async fn exec(call: Call<'_>) -> Result<Outcome> {
    let ExecArguments { command, cwd, timeout_ms, output } = call.arguments()?;
    let session = call.sandboxes.needed(call.name(), Missing::Make).await?;
    let mut wanted = Wanted::line(&command, timeout_ms.unwrap_or(TIMEOUT_MS));
    wanted.cwd = cwd.as_deref();
    let finished = run::run(&session, wanted, call.context).await?;
    let stdout = finished.ends(Standard::Output, outputs::END_BYTES).await?;
    let stderr = finished.ends(Standard::Error, outputs::END_BYTES).await?;
    let total_lines = finished.lines(Standard::Output).await?;
    let succeeded = finished.exit_code == 0;
    let budget = budget(&output, succeeded).unwrap_or(crate::MAX_RESULT_BYTES);
    let streams = (&Plain::new(&stdout), &Plain::new(&stderr));
    Ok(Outcome::fitting(budget, |budget| {
        let ran = HasRun {
            stdout: streams.0.cut(budget, succeeded),
            stderr: streams.1.cut(budget.min(STDERR_BYTES), succeeded),
            exit_code: finished.exit_code,
            success: succeeded,
            truncated: false,
            total_lines,
            full_output: None,
            output_files: Vec::new(),
            hint: None,
            cwd: cwd.clone(),
        };
        Outcome::json(json!(ran.finish(&finished, streams, &output)))
    }))
}

/// How many bytes of a stream a mode shows; none for all of it. A mode that is not known is the one that
/// shows little.
fn budget(mode: &str, succeeded: bool) -> Option<usize> {
    match mode {
        "silent" => Some(200),
        "auto" if succeeded => Some(1024),
        "auto" | "normal" => Some(8 << 10),
        "verbose" => Some(16 << 10),
        "full" => None,
        _ => Some(2 << 10),
    }
}

/// A stream as plain text, as far as it was taken.
struct Plain {
    holed: Holed,
    is_whole: bool,
}

impl Plain {
    fn new(ends: &Ends) -> Self {
        Self { holed: ends.plain(), is_whole: ends.omitted() == 0 }
    }

    fn cut(&self, most: usize, succeeded: bool) -> String {
        if succeeded { self.holed.middle_cut(most) } else { self.holed.error_cut(most) }
    }
}

impl HasRun {
    fn finish(mut self, finished: &Finished, streams: (&Plain, &Plain), mode: &str) -> Self {
        let (stdout, stderr) = streams;
        let (is_out, is_err) = (self.stdout == stdout.holed.text, self.stderr == stderr.holed.text);
        self.full_output =
            (!is_out || !stdout.is_whole).then(|| outputs::path(finished.id(), Standard::Output));
        self.output_files.extend(self.full_output.clone());
        if !is_err || !stderr.is_whole {
            self.output_files.push(outputs::path(finished.id(), Standard::Error));
        }
        self.truncated = !self.output_files.is_empty();
        let mut hints: Vec<String> = finished.hint().into_iter().collect();
        if finished.ending == EndingKind::TimedOut {
            hints.push("the output so far is in this result".to_owned());
        }
        if self.truncated {
            let files = self.output_files.join(" and ");
            hints.push(format!("output is left out; read {files} with sandbox_read_file"));
        }
        if !stdout.is_whole || !stderr.is_whole {
            hints.push(
                "these have both ends of more than a mebibyte; write it to a file for all of it"
                    .to_owned(),
            );
        }
        if !MODES.contains(&mode) {
            hints.push(format!("there is no output mode {mode:?}; concise was used"));
        }
        self.hint = (!hints.is_empty()).then(|| hints.join(". "));
        self
    }
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
    name: "sandbox_write_file",
    title: "Write a file",
    about: "Writes a whole text file in the session's sandbox. Directories on the way are made.",
    params: &[
        Param::required("path", Kind::Word, "The file, below the workspace."),
        Param::required("content", Kind::Text, "What it is to hold."),
    ],
    output: output_of::<HasWritten>,
    conduct: Conduct::Of(Hints::REMOVES),
};

async fn write(call: Call<'_>) -> Result<Outcome> {
    let WriteArguments { path, content } = call.arguments()?;
    let session = call.sandboxes.needed(call.name(), Missing::Make).await?;
    let written = session.files().write(&path, content.as_bytes()).await?;
    Ok(Outcome::json(json!(HasWritten { path, bytes_written: written.bytes })))
}

/// How the sandbox stands.
#[derive(Serialize, JsonSchema)]
struct Status {
    /// Whether there is one.
    exists: bool,
    /// Who provides it.
    provider: &'static str,
    /// `running`, `paused` or `lost`. Absent where there is none, as all that follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    session_status: Option<&'static str>,
    /// Its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    external_id: Option<String>,
    /// Its name, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    display_name: Option<Value>,
    /// Where the workspace is inside.
    #[serde(skip_serializing_if = "Option::is_none")]
    workspace_path: Option<Value>,
    /// More about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Map<String, Value>>,
}

const STATUS: Row = Row {
    name: "sandbox_status",
    title: "Look at the sandbox",
    about: "Says whether the session has a sandbox and how it stands. Makes none.",
    params: &[],
    output: output_of::<Status>,
    conduct: Conduct::Of(Hints::LOOKS),
};

async fn status(call: Call<'_>) -> Result<Outcome> {
    let mut status = Status {
        exists: false,
        provider: PROVIDER,
        session_status: None,
        external_id: None,
        display_name: None,
        workspace_path: None,
        metadata: None,
    };
    if let Some(session) = call.sandboxes.existing(call.name()).await? {
        let report = call.sandboxes.sessions.status(session.id()).await?;
        status.exists = true;
        status.session_status = Some(session_status(&report));
        status.display_name = Some(json!(report.name));
        status.workspace_path = Some(json!(report.workspace_inside));
        status.metadata = Some(metadata(&report));
        status.external_id = Some(report.id);
    }
    Ok(Outcome::json(json!(status)))
}

fn metadata(report: &SessionReport) -> Map<String, Value> {
    let facts = [
        ("backend", json!(report.backend)),
        ("profile", json!(report.profile)),
        ("phase", json!(report.phase)),
        ("incarnation", json!(report.incarnation)),
        ("copy_on_write", json!(report.copy_on_write)),
        ("enforced", json!(report.enforced)),
    ];
    facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn session_status(report: &SessionReport) -> &'static str {
    match report.phase {
        Phase::Creating | Phase::Running | Phase::Resuming | Phase::Pausing => "running",
        Phase::Paused => "paused",
        Phase::Lost | Phase::Stopping | Phase::Stopped | Phase::Failed | Phase::Deleting => "lost",
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ManageArguments {
    action: String,
}

/// What became of the sandbox.
#[derive(Default, Serialize, JsonSchema)]
struct Managed {
    /// What was asked for.
    action: String,
    /// Whether it was removed; only for `delete`.
    #[serde(skip_serializing_if = "Option::is_none")]
    deleted: Option<bool>,
    /// False where there is none to pause.
    #[serde(skip_serializing_if = "Option::is_none")]
    exists: Option<bool>,
    /// Who provides it.
    #[serde(skip_serializing_if = "Option::is_none")]
    provider: Option<&'static str>,
    /// `running`, `paused` or `lost`.
    #[serde(skip_serializing_if = "Option::is_none")]
    session_status: Option<&'static str>,
    /// Its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    external_id: Option<String>,
}

const MANAGE: Row = Row {
    name: "sandbox_manage",
    title: "Pause, resume or delete the sandbox",
    about: "Pauses the session's sandbox, resumes it (and makes it where there is none), or deletes it.",
    params: &[Param::required(
        "action",
        Kind::Choice(&["pause", "resume", "delete"]),
        "What is to become of it.",
    )],
    output: output_of::<Managed>,
    conduct: Conduct::Of(Hints::REMOVES),
};

async fn manage(call: Call<'_>) -> Result<Outcome> {
    let ManageArguments { action } = call.arguments()?;
    let sessions = &call.sandboxes.sessions;
    let mut managed = Managed { action, ..Managed::default() };
    let existing = call.sandboxes.existing(call.name()).await?;
    let session = match (managed.action.as_str(), existing) {
        ("delete", session) => {
            let deleted = match session {
                Some(session) => sessions.delete(session.id()).await?,
                None => false,
            };
            managed.deleted = Some(deleted);
            return Ok(Outcome::json(json!(managed)));
        }
        ("pause", None) => {
            managed.exists = Some(false);
            return Ok(Outcome::json(json!(managed)));
        }
        ("pause", Some(session)) => {
            sessions.pause(session.id()).await?;
            session
        }
        _ => call.sandboxes.ensure(call.name()).await?.session,
    };
    let report = sessions.status(session.id()).await?;
    managed.provider = Some(PROVIDER);
    managed.session_status = Some(session_status(&report));
    managed.external_id = Some(report.id);
    Ok(Outcome::json(json!(managed)))
}

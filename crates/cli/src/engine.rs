//! The seam to the engine: what the command line asks of it, and what it gets back.

use cofferdam_core::{
    Axis, Command, Ending, Enforced, Enforcement, Error, ErrorKind, Omitted, Result, Spec,
    UsageReport,
};
use cofferdam_local::oneshot::{self, OutputTo};
use cofferdam_local::state::StateDirectory;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// One fresh sandbox, one command, gone.
#[derive(Debug, Clone)]
pub(crate) struct RunRequest {
    /// What the sandbox may do.
    pub(crate) spec: Spec,
    /// What runs in it. `stdin` is `Piped` where the caller's standard input is passed on;
    /// `terminal` is the size of the pty where there is one, and then standard input goes through it.
    pub(crate) command: Command,
    /// What becomes of its output.
    pub(crate) output: Output,
    /// Where records are kept: absolute, perhaps not there yet.
    pub(crate) state_directory: PathBuf,
}

/// What becomes of a command's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output {
    /// It goes to the caller's standard output and standard error as it comes. Where there is a
    /// limit, the command is killed when a stream goes beyond it.
    Stream {
        /// Bytes a stream may hold.
        limit_bytes: Option<u64>,
    },
    /// It is kept. What a stream holds beyond the limit is dropped and counted.
    Capture {
        /// Bytes kept of a stream.
        limit_bytes: u64,
    },
}

/// What came of a run.
#[derive(Debug, Clone)]
pub(crate) struct RunOutcome {
    /// How the command ended.
    pub(crate) ending: Ending,
    /// Its standard output, where it was captured.
    pub(crate) stdout: Vec<u8>,
    /// Its standard error, where it was captured.
    pub(crate) stderr: Vec<u8>,
    /// What was dropped.
    pub(crate) omitted: Omitted,
    /// From start to end.
    pub(crate) duration: Duration,
    /// What it used.
    pub(crate) usage: UsageReport,
    /// How far the policy held.
    pub(crate) enforced: Enforced,
    /// What was denied, as the host saw it.
    pub(crate) denials: Vec<String>,
    /// Control files that appeared in the workspace, relative to it.
    pub(crate) new_control_files: Vec<String>,
}

/// What a probe found. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ProbeReport {
    /// The profile that was attacked.
    pub(crate) profile: String,
    /// The verdict over the axes that count.
    pub(crate) verdict: Enforcement,
    /// How far each axis held.
    pub(crate) enforced: Enforced,
    /// Each attack with its control.
    pub(crate) checks: Vec<ProbeCheck>,
}

/// One promise, attacked and controlled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ProbeCheck {
    /// Its stable name, as in `files.read_outside`.
    pub(crate) name: String,
    /// The promise that it belongs to, as in `P1`.
    pub(crate) promise: String,
    /// The axis that it counts for.
    pub(crate) axis: Axis,
    /// Whether the promise held, as far as can be told.
    pub(crate) verdict: CheckVerdict,
    /// What stopped the attack: the name of an errno, a signal, or what was met instead.
    pub(crate) stopped_by: Option<String>,
    /// Which layer stopped it: `view`, `namespace`, `seccomp`, `landlock`, and so on.
    pub(crate) layer: Option<String>,
    /// What else there is to say.
    pub(crate) detail: Option<String>,
}

/// Whether a promise held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CheckVerdict {
    /// The attack failed, and the same action succeeded where it may.
    Held,
    /// The attack succeeded.
    Broken,
    /// The same action fails where it must succeed, so that the attack proves nothing.
    ControlFailed,
    /// It could not be tried here.
    Skipped,
}

/// What a sandbox would be made of. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Explanation {
    /// The profile.
    pub(crate) profile: String,
    /// How far it can be enforced here.
    pub(crate) enforced: Enforced,
    /// The plan, in groups.
    pub(crate) sections: Vec<ExplainedSection>,
    /// What is not possible here: one sentence each.
    pub(crate) missing: Vec<String>,
}

/// A group of things that a sandbox is made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ExplainedSection {
    /// What they are: mounts, namespaces, rules.
    pub(crate) title: String,
    /// Each of them.
    pub(crate) items: Vec<ExplainedItem>,
}

/// One thing that a sandbox is made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ExplainedItem {
    /// What it is.
    pub(crate) what: String,
    /// Why it is so.
    pub(crate) why: String,
}

/// What this host can do. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct DoctorReport {
    /// Each fact.
    pub(crate) facts: Vec<Fact>,
}

/// One fact of this host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Fact {
    /// What was looked at, as in `user namespaces`.
    pub(crate) name: String,
    /// Whether it serves.
    pub(crate) state: FactState,
    /// What was found.
    pub(crate) found: String,
    /// What follows from it.
    pub(crate) consequence: String,
    /// What to do about it, exactly, where something can be done.
    pub(crate) remedy: Option<String>,
}

/// Whether a fact serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FactState {
    /// It is there and works.
    Ok,
    /// It is not there.
    Missing,
    /// It is there and may not be used.
    Forbidden,
    /// It could not be told.
    Unknown,
}

/// Runs a command in a fresh sandbox. Fails only before the sandbox exists; from then on what
/// happens is an ending.
pub(crate) fn run(request: RunRequest) -> Result<RunOutcome> {
    let state = StateDirectory::open(&request.state_directory)?;
    let output = match request.output {
        Output::Stream { limit_bytes } => {
            OutputTo::Caller { limit_bytes: limit_bytes.unwrap_or(u64::MAX) }
        }
        Output::Capture { limit_bytes } => OutputTo::Memory { limit_bytes },
    };
    let run = oneshot::Run { spec: &request.spec, command: &request.command, output };
    let outcome = oneshot::run(run, &state)?;
    Ok(RunOutcome {
        ending: outcome.ending,
        stdout: outcome.stdout,
        stderr: outcome.stderr,
        omitted: outcome.omitted,
        duration: outcome.duration,
        usage: outcome.usage,
        enforced: outcome.enforced,
        denials: Vec::new(),
        new_control_files: outcome.new_control_files,
    })
}

/// Builds a throw-away sandbox as [`run`] would, attacks it, and says what held.
pub(crate) fn probe(_spec: &Spec, _state_directory: &Path) -> Result<ProbeReport> {
    Err(not_connected())
}

/// Says what a sandbox for this spec would be made of. Runs nothing.
pub(crate) fn explain(_spec: &Spec, _command: &Command) -> Result<Explanation> {
    Err(not_connected())
}

/// Says what this host can do. Changes nothing.
pub(crate) fn doctor() -> Result<DoctorReport> {
    Err(not_connected())
}

fn not_connected() -> Error {
    Error::new(ErrorKind::Unavailable, "the engine is not connected")
}

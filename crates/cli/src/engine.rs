//! The seam to the engine: what the command line asks of it, and what it gets back.

use crate::secrets::Stored;
use cofferdam_core::secret::SecretSource;
use cofferdam_core::{
    Command, Denial, Ending, Enforced, LayerNote, Omitted, Result, Spec, UsageReport,
};
use cofferdam_local::assemble;
use cofferdam_local::gate::{GateProgram, GatedSecrets};
use cofferdam_local::host::HostFacts;
use cofferdam_local::oneshot::{self, OutputTo};
use cofferdam_local::state::StateDirectory;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(crate) use cofferdam_local::doctor::Diagnosis;
pub(crate) use cofferdam_local::explain::Explanation;
pub(crate) use cofferdam_local::verdict::{CheckReport, ProbeReport, Verdict};

/// One fresh sandbox, one command, gone.
#[derive(Debug, Clone)]
pub(crate) struct RunRequest {
    /// What the sandbox may do.
    pub(crate) spec: Spec,
    /// What runs in it. `stdin` is `Piped` where the caller's standard input is passed on, and so
    /// always where there is a `terminal`.
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
    pub(crate) denials: Vec<Denial>,
    /// Control files that appeared in the workspace, relative to it.
    pub(crate) new_control_files: Option<Vec<String>>,
    /// What its layer was, where that went with it.
    pub(crate) layer: Option<LayerNote>,
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
    let needs_gate = request.spec.network_policy()?.is_some();
    let gate = needs_gate.then(GateProgram::own).transpose()?;
    let secrets = granted(&request)?;
    let run = oneshot::Run {
        spec: &request.spec,
        command: &request.command,
        output,
        gate: gate.as_ref(),
        secrets: secrets.as_ref(),
    };
    let outcome = oneshot::run(run, &state)?;
    Ok(RunOutcome {
        ending: outcome.ending,
        stdout: outcome.stdout,
        stderr: outcome.stderr,
        omitted: outcome.omitted,
        duration: outcome.duration,
        usage: outcome.usage,
        enforced: outcome.enforced,
        denials: outcome.denials,
        new_control_files: Some(outcome.new_control_files),
        layer: outcome.layer,
    })
}

/// What its gate is to put in. The values are overwritten before there is a sandbox.
fn granted(request: &RunRequest) -> Result<Option<GatedSecrets>> {
    if request.spec.secrets.is_empty() {
        return Ok(None);
    }
    let source = Stored(request.state_directory.clone());
    let sandbox = format!("run-{}", std::process::id());
    GatedSecrets::new(source.granted("", &sandbox, &request.spec)?).map(Some)
}

/// Builds a throw-away sandbox as [`run`] would, attacks it, and says what held.
pub(crate) fn probe(spec: &Spec, state_directory: &Path) -> Result<ProbeReport> {
    cofferdam_local::probe::probe(spec, &StateDirectory::open(state_directory)?)
}

/// Says what a sandbox for this spec would be made of. Runs nothing and takes nothing.
pub(crate) fn explain(spec: &Spec) -> Result<Explanation> {
    let (planned, enforced) = assemble::foresee(spec)?;
    Ok(Explanation { enforced, ..cofferdam_local::explain::explain(spec, &planned) })
}

/// Says what this host can do. Changes nothing.
pub(crate) fn doctor() -> Diagnosis {
    cofferdam_local::doctor::examine(&HostFacts::gather())
}

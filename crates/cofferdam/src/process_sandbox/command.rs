//! The process sandbox that is the `cofferdam` command.

use super::{ExecSandboxContext, Probed, ProcessSandbox, SandboxProfile, WrappedCommand, program};
use crate::local_backend;
use async_trait::async_trait;
use cofferdam_core::{
    Backend, Caller, EgressRule, Enforcement, Error, ErrorKind, LimitsCount, OnUnavailable, Result,
    Spec, Workspace, admit,
};
use cofferdam_local::assemble::foresee;
use cofferdam_local::environment::carried;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Wraps commands into `cofferdam run`: each runs in a fresh sandbox on the session's workspace.
///
/// Nothing of the process's environment is used but what [`CofferdamSandbox::caller`] hands over,
/// and where the command and the records are.
#[derive(Default)]
pub struct CofferdamSandbox {
    program: Option<PathBuf>,
    caller: Caller,
    on_unavailable: OnUnavailable,
    backend: Option<Arc<dyn Backend>>,
    stage: Mutex<Stage>,
}

/// Where in its life it is.
#[derive(Debug, Default)]
enum Stage {
    #[default]
    New,
    Preparing,
    Prepared(Arc<Prepared>),
    Over,
}

/// What is the same for every command of a session.
#[derive(Debug)]
struct Prepared {
    workspace: PathBuf,
    profile: SandboxProfile,
    egress: Vec<String>,
    /// The argv up to what one call decides.
    words: Vec<String>,
    env: BTreeMap<String, String>,
}

/// The one preparation that is under way. Dropped before it is done, it leaves the sandbox as if nobody
/// had begun.
struct Preparation<'a>(&'a CofferdamSandbox);

impl std::fmt::Debug for CofferdamSandbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Not the caller: its variables may hold secrets.
        let mut shown = f.debug_struct("CofferdamSandbox");
        shown.field("program", &self.program).finish_non_exhaustive()
    }
}

impl CofferdamSandbox {
    /// One that finds the command by itself (`COFFERDAM_BIN`, beside this program, on the `PATH`),
    /// refuses what cannot be enforced in full, and hands nothing of the environment over.
    pub fn new() -> Self {
        Self::default()
    }

    /// Uses this command.
    #[must_use]
    pub fn program(mut self, path: impl Into<PathBuf>) -> Self {
        self.program = Some(path.into());
        self
    }

    /// Whose toolchains are shown and whose language passes; see
    /// [`current_caller`](crate::current_caller).
    #[must_use]
    pub fn caller(mut self, caller: Caller) -> Self {
        self.caller = caller;
        self
    }

    /// What is done where the profile cannot be enforced in full, at [`ProcessSandbox::prepare`] and
    /// at every command.
    #[must_use]
    pub fn on_unavailable(mut self, choice: OnUnavailable) -> Self {
        self.on_unavailable = choice;
        self
    }

    /// Probes with this backend instead of [`local_backend`].
    #[must_use]
    pub fn backend(mut self, backend: Arc<dyn Backend>) -> Self {
        self.backend = Some(backend);
        self
    }

    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self) -> Result<Preparation<'_>> {
        let mut stage = self.stage();
        match *stage {
            Stage::New => {
                *stage = Stage::Preparing;
                Ok(Preparation(self))
            }
            Stage::Preparing | Stage::Prepared(_) => Err(out_of_turn("was prepared before")),
            Stage::Over => Err(out_of_turn("was shut down")),
        }
    }

    fn spec(&self, workspace: PathBuf, profile: SandboxProfile, egress: Vec<EgressRule>) -> Spec {
        let mut spec = Spec::new(Workspace::Directory(workspace), self.caller.clone());
        spec.profile = profile;
        spec.egress = egress;
        spec.on_unavailable = self.on_unavailable;
        spec
    }

    fn words(&self, program: &Path, spec: &Spec, workspace: &Path) -> Result<Vec<String>> {
        let mut words = vec![utf8(program)?, "run".to_owned(), "--no-config".to_owned()];
        words.push(format!("--profile={}", spec.profile));
        words.push(format!("--workspace={}", utf8(workspace)?));
        words.extend(spec.egress.iter().map(|rule| format!("--egress={rule}")));
        let choice = match self.on_unavailable {
            OnUnavailable::Refuse => "refuse",
            OnUnavailable::Degrade => "degrade",
        };
        words.push(format!("--on-unavailable={choice}"));
        words.extend(["-i", "-T"].map(str::to_owned));
        Ok(words)
    }
}

#[async_trait]
impl ProcessSandbox for CofferdamSandbox {
    /// Fails with [`ErrorKind::Unavailable`] where the command is missing, and with
    /// [`ErrorKind::Unenforceable`] where less could be enforced than is accepted. Makes the
    /// workspace if it is not there. A second call is a conflict, unless the first failed or was given up.
    async fn prepare(&self, ctx: &ExecSandboxContext) -> Result<()> {
        let preparation = self.begin()?;
        let program = program::find(self.program.as_deref())?;
        let workspace = workspace(&ctx.workspace_path)?;
        let egress = ctx.egress.iter().map(|rule| rule.parse()).collect::<Result<Vec<_>>>()?;
        let spec = self.spec(workspace.clone(), ctx.profile, egress);
        let prepared = Prepared {
            words: self.words(&program, &spec, &workspace)?,
            workspace,
            profile: ctx.profile,
            egress: ctx.egress.clone(),
            env: carried(&self.caller),
        };
        let foreseen = tokio::task::spawn_blocking(move || would_hold(&spec)).await;
        foreseen.map_err(|error| {
            Error::new(ErrorKind::Unavailable, "the runtime is ending").source(error)
        })??;
        preparation.done(prepared)
    }

    /// Fails for an empty argv, for a context other than the prepared one, and before
    /// [`ProcessSandbox::prepare`] or after [`ProcessSandbox::shutdown`]: it never gives out an argv
    /// that runs without a sandbox.
    fn wrap(&self, argv: &[String], ctx: &ExecSandboxContext) -> Result<WrappedCommand> {
        if argv.first().is_none_or(String::is_empty) {
            return Err(Error::new(ErrorKind::Usage, "the command is empty"));
        }
        let prepared = match &*self.stage() {
            Stage::Prepared(prepared) => Arc::clone(prepared),
            Stage::New | Stage::Preparing => return Err(out_of_turn("was not prepared yet")),
            Stage::Over => return Err(out_of_turn("was shut down")),
        };
        prepared.check(ctx)?;
        let mut words = prepared.words.clone();
        if let Some(cwd) = &ctx.cwd {
            words.push(format!("--cwd={}", utf8(cwd)?));
        }
        words.push("--".to_owned());
        words.extend_from_slice(argv);
        Ok(WrappedCommand { argv: words, env: prepared.env.clone() })
    }

    /// Attacks a throw-away sandbox of this profile. Takes seconds. What cannot be made at all is
    /// [`Enforcement::Unavailable`].
    async fn probe(&self, profile: &SandboxProfile) -> Result<Enforcement> {
        Ok(self.probe_with_reasons(profile).await?.enforcement)
    }

    async fn probe_with_reasons(&self, profile: &SandboxProfile) -> Result<Probed> {
        let backend = match &self.backend {
            Some(backend) => Arc::clone(backend),
            None => local_backend()?,
        };
        // The probe has a workspace of its own in the place of this one.
        let spec = self.spec(std::env::temp_dir(), *profile, Vec::new());
        let counts = match profile.requires_limits() {
            true => LimitsCount::Yes,
            false => LimitsCount::No,
        };
        match backend.probe(&spec).await {
            Ok(enforced) => {
                let enforcement = enforced.overall(counts);
                Ok(Probed { enforcement, reasons: enforced.reasons })
            }
            Err(error) if is_absent(error.kind) => {
                let reasons = vec![error.chain()];
                Ok(Probed { enforcement: Enforcement::Unavailable, reasons })
            }
            Err(error) => Err(error),
        }
    }

    async fn shutdown(&self) -> Result<()> {
        *self.stage() = Stage::Over;
        Ok(())
    }
}

impl Preparation<'_> {
    /// Where it was shut down meanwhile, it stays so.
    fn done(self, prepared: Prepared) -> Result<()> {
        let mut stage = self.0.stage();
        if !matches!(*stage, Stage::Preparing) {
            return Err(out_of_turn("was shut down"));
        }
        *stage = Stage::Prepared(Arc::new(prepared));
        Ok(())
    }
}

impl Drop for Preparation<'_> {
    fn drop(&mut self) {
        let mut stage = self.0.stage();
        if matches!(*stage, Stage::Preparing) {
            *stage = Stage::New;
        }
    }
}

impl Prepared {
    /// HOSTILE: a context comes with every call. It may not widen what was prepared.
    fn check(&self, ctx: &ExecSandboxContext) -> Result<()> {
        let same_place = ctx.workspace_path == self.workspace
            || ctx.workspace_path.canonicalize().is_ok_and(|path| path == self.workspace);
        if same_place && ctx.profile == self.profile && ctx.egress == self.egress {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Usage, "the context is not the one that was prepared")
            .hint("Prepare a sandbox for each session."))
    }
}

/// Decides from host facts whether this would start.
fn would_hold(spec: &Spec) -> Result<()> {
    let (planned, enforced) = foresee(spec)?;
    admit(spec.profile, planned.limits_count, spec.on_unavailable, &enforced).map(|_| ())
}

/// Whether an error of a probe says that there is no such sandbox here.
fn is_absent(kind: ErrorKind) -> bool {
    match kind {
        ErrorKind::Unsupported
        | ErrorKind::Unenforceable
        | ErrorKind::Unavailable
        | ErrorKind::SetupFailed => true,
        ErrorKind::Usage
        | ErrorKind::Config
        | ErrorKind::NotFound
        | ErrorKind::Conflict
        | ErrorKind::PathEscape
        | ErrorKind::NotAFile
        | ErrorKind::TooLarge
        | ErrorKind::Denied
        | ErrorKind::TimedOut
        | ErrorKind::Canceled
        | ErrorKind::Protocol
        | ErrorKind::Io => false,
    }
}

fn workspace(path: &Path) -> Result<PathBuf> {
    std::fs::create_dir_all(path).and_then(|()| path.canonicalize()).map_err(|cause| {
        let what = format!("the workspace {} cannot be used", path.display());
        Error::new(ErrorKind::Io, what).source(cause)
    })
}

fn utf8(path: &Path) -> Result<String> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        let what = format!("{} is not UTF-8, so an argv of text cannot carry it", path.display());
        Error::new(ErrorKind::Usage, what).hint("Rename it.")
    })
}

fn out_of_turn(what: &str) -> Error {
    Error::new(ErrorKind::Conflict, format!("the sandbox {what}"))
}

//! `cofferdam run` with a server: a sandbox of its own there, for one command.

use super::exec::{outcome, told};
use super::run::{CAPTURED_BYTES, connect_streams, report_of, tell_denials, unheld};
use crate::args::RunArgs;
use crate::context::{argv, command_variables};
use crate::door::{Beside, Order, Session, Sessions, StartOf, spec};
use crate::engine::RunOutcome;
use crate::follow::{Left, Memory, Passed, Sink, Streams, follow};
use crate::listen::{ENDING, Listening};
use crate::surroundings::Surroundings;
use crate::{exit, render, report, sessions};
use cofferdam_core::secret::SecretWish;
use cofferdam_core::{
    Cause, Ending, Enforced, Error, ErrorKind, ExecOrder, ExecStatus, Limits, Omitted, ProcessId,
    Profile, Result, Seen, Stdin, UsageReport,
};
use cofferdam_session::objects::SandboxWish;
use cofferdam_session::{OnFailure, SessionId, SessionReport, excerpt};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long the sandbox outlives a caller of whom nothing is heard any more.
const LEASE: Duration = Duration::from_secs(600);
/// How often the lease is renewed.
const RENEWED_EVERY: Duration = Duration::from_secs(200);
/// How long the sandbox of a run that failed is kept.
const PRESERVED: Duration = Duration::from_secs(24 * 3600);
/// How long one pre-flight line may take.
const PREFLIGHT_LIMIT: Duration = Duration::from_secs(600);
/// The least time that a command has.
const SHORTEST: Duration = Duration::from_millis(1);

/// Runs the command, and returns the exit code that stands for its ending.
pub(super) fn perform(args: &RunArgs) -> Result<u8> {
    let order = Order::There(Box::new(sandbox(args)?));
    let (command, start) = command(args)?;
    sessions::with(async |sessions| {
        let mut signals = Listening::to(&ENDING)?;
        let begin = Instant::now();
        let made = tokio::select! {
            made = sessions.create(&order) => made?,
            // What is being made there ends by its lease.
            _ = signals.next() => return Err(given_up()),
        };
        let session = sessions.session(SessionId::new(made.id.clone())?);
        let run = Run { args, made: &made, session: &session, begin, start: start.as_ref() };
        let done = tokio::select! {
            done = run.all(&command, signals) => done,
            never = renew(sessions, session.id()) => never,
        };
        let kept = settle(args, sessions, session.id(), &done).await;
        run.say(done?, kept)
    })
}

/// A sandbox that ends with its caller, or soon after.
fn sandbox(args: &RunArgs) -> Result<SandboxWish> {
    // The variables of `run` are those of its command.
    let spec = spec(&args.policy, &args.command.variables, &args.config)?;
    Ok(SandboxWish {
        stay_awake: true,
        ttl_ms: u64::try_from(LEASE.as_millis()).ok(),
        no_checkpoints: Some(true),
        ..spec.into()
    })
}

/// The command, and the words of an image around it, where those are wanted.
fn command(args: &RunArgs) -> Result<(ExecOrder, Option<StartOf>)> {
    let options = &args.command;
    let surroundings = Surroundings::of_this_process();
    SecretWish::check(&options.secrets())?;
    let start = start(args)?;
    let words = match &start {
        Some(_) => options.argv.clone(),
        None => argv(options, "run")?,
    };
    let mut order = Session::order(words)?;
    let command = &mut order.command;
    command.env = command_variables(&options.variables, &surroundings);
    command.timeout = options.timeout;
    connect_streams(command, options, args.json);
    if command.terminal.is_some() {
        sessions::add_terminal(&mut command.env, &surroundings);
    }
    order.max_output_bytes = options.max_output.filter(|_| !args.json);
    Ok((order, start))
}

/// How the words of the image lead the command, which only the server knows.
fn start(args: &RunArgs) -> Result<Option<StartOf>> {
    if args.command.shell.is_some() {
        // A line is for a shell, whatever else the image starts.
        args.start.refuse("--shell starts a shell, so --entrypoint cannot lead it")?;
        return Ok(None);
    }
    let is_wanted = args.policy.image.is_some() || args.start.entrypoint.is_some();
    is_wanted.then(|| StartOf::new(args.start.entrypoint.as_deref())).transpose()
}

/// A run, and the sandbox that it has.
struct Run<'a> {
    args: &'a RunArgs,
    made: &'a SessionReport,
    session: &'a Session,
    begin: Instant,
    start: Option<&'a StartOf>,
}

impl Run<'_> {
    /// The pre-flight lines and the command, in the time that there is.
    async fn all(&self, command: &ExecOrder, mut signals: Listening) -> Result<RunOutcome> {
        if self.args.scope.preflight.is_empty() {
            // From now on signals are the command's.
            drop(signals);
            return self.work(command).await;
        }
        let limit = self.args.command.timeout;
        let left = || limit.map(|limit| limit.saturating_sub(self.begin.elapsed()));
        let failed = tokio::select! {
            failed = self.prepare() => failed?,
            () = over(left()) => Some(Ending::Killed(Cause::Time)),
            _ = signals.next() => Some(Ending::Canceled),
        };
        if let Some(ending) = failed {
            return Ok(self.came(ending));
        }
        drop(signals);
        let mut command = command.clone();
        command.command.timeout = left().map(|left| left.max(SHORTEST));
        self.work(&command).await
    }

    /// Runs the pre-flight lines, and says how one failed if it did.
    async fn prepare(&self) -> Result<Option<Ending>> {
        for line in &self.args.scope.preflight {
            if let Some(failed) = self.preflight(line).await? {
                return Ok(Some(failed));
            }
        }
        Ok(None)
    }

    /// Runs a line that has to succeed, and says how it failed if it did.
    async fn preflight(&self, line: &std::ffi::OsStr) -> Result<Option<Ending>> {
        let words = ["/bin/sh".as_ref(), "-c".as_ref(), line];
        let mut order = Session::order(words)?;
        order.command.timeout = Some(PREFLIGHT_LIMIT);
        let started = self.session.start(&order).await?;
        let mut sink = Memory::of(CAPTURED_BYTES);
        let passed = Passed { reads: false, has_terminal: false, keys: None, signals: None };
        let status =
            follow((self.session, &started.id), Seen::default(), &mut sink, passed).await?;
        let Left::Ended(status) = status else { return Err(given_up()) };
        let ending = status.ended.map_or(Ending::Lost, |ended| ended.ending);
        if ending == Ending::Exited(0) {
            return Ok(None);
        }
        let said = [excerpt(&sink.stdout), excerpt(&sink.stderr)].concat();
        let how = format!("exited {}", ending.exit_code());
        let detail = match String::from_utf8_lossy(&said).trim_end() {
            "" => how,
            output => format!("{how}: {output}"),
        };
        let stage = format!("pre-flight command {:?}", line.to_string_lossy());
        Ok(Some(Ending::SetupFailed { stage, detail }))
    }

    async fn work(&self, command: &ExecOrder) -> Result<RunOutcome> {
        let args = self.args;
        let mut order = command.clone();
        let inside = self.made.workspace_inside.as_deref().unwrap_or("/workspace");
        order.command.cwd =
            args.command.cwd.as_ref().map(|cwd| PathBuf::from(inside).join(cwd).into_os_string());
        let secrets = args.command.secrets();
        let beside = Beside::new(&secrets).led(self.start);
        let signals = Listening::for_a_command()?;
        let started = self.session.start_with(&order, &beside).await?;
        let passed = Passed {
            reads: order.command.stdin == Stdin::Piped,
            has_terminal: order.command.terminal.is_some(),
            keys: None,
            signals: Some(signals),
        };
        let most = args.command.max_output;
        if args.json {
            let mut sink = Memory::of(most.unwrap_or(CAPTURED_BYTES));
            return match self.follow(&started.id, Seen::default(), &mut sink, passed).await? {
                None => Ok(self.with(self.came(Ending::Killed(Cause::SecretAlarm)), sink)),
                Some(status) => self.outcome(&status, sink),
            };
        }
        let mut sink = Streams {
            only: None,
            ends_with_its_reader: true,
            wants_what_is_left: false,
            limit_bytes: most,
        };
        let stops = passed.has_terminal.then_some(started.stops);
        let from = Seen { stops, ..Seen::default() };
        match self.follow(&started.id, from, &mut sink, passed).await? {
            None => Ok(self.came(Ending::Killed(Cause::SecretAlarm))),
            Some(status) => self.outcome(&status, Memory::default()),
        }
    }

    /// Follows the command to its end; `None` where its sandbox was frozen by an alarm, which ends a run.
    async fn follow(
        &self,
        exec: &ProcessId,
        from: Seen,
        sink: &mut (impl Sink + Send),
        passed: Passed,
    ) -> Result<Option<Box<ExecStatus>>> {
        match follow((self.session, exec), from, sink, passed).await {
            Ok(Left::Ended(status)) => Ok(Some(status)),
            Ok(Left::Running | Left::Abandoned) => Err(given_up()),
            Err(error) => {
                let now = self.session.sessions().status(self.session.id()).await;
                if now.is_ok_and(|now| now.alarm.is_some()) { Ok(None) } else { Err(error) }
            }
        }
    }

    fn outcome(&self, status: &ExecStatus, captured: Memory) -> Result<RunOutcome> {
        let outcome = outcome(status, captured, self.enforced()).ok_or_else(given_up)?;
        // Where nothing but the command was run, it alone took the time.
        match self.args.scope.preflight.is_empty() {
            true => Ok(outcome),
            false => Ok(RunOutcome { duration: self.begin.elapsed(), ..outcome }),
        }
    }

    /// A run that came to this end.
    fn came(&self, ending: Ending) -> RunOutcome {
        RunOutcome {
            ending,
            stdout: Vec::new(),
            stderr: Vec::new(),
            omitted: Omitted::default(),
            duration: self.begin.elapsed(),
            usage: UsageReport::default(),
            enforced: self.enforced(),
            denials: Vec::new(),
            new_control_files: None,
            layer: None,
        }
    }

    /// How far the policy held in the sandbox that was made, whatever has become of it.
    fn enforced(&self) -> Enforced {
        let nowhere = || Enforced::nowhere("the sandbox is gone");
        self.made.enforced.clone().unwrap_or_else(nowhere)
    }

    fn with(&self, outcome: RunOutcome, captured: Memory) -> RunOutcome {
        let Memory { stdout, stderr, omitted, .. } = captured;
        RunOutcome { stdout, stderr, omitted, ..outcome }
    }

    /// Says what came of it, and gives the exit code.
    fn say(&self, outcome: RunOutcome, kept: Option<SessionId>) -> Result<u8> {
        let code = exit::of_ending(&outcome.ending);
        if self.args.json {
            let mut report = report_of(outcome);
            report.session = kept.as_ref().map(ToString::to_string);
            render::print_json(&report)?;
        } else {
            self.tell(&outcome);
        }
        if let Some(kept) = kept {
            report::note(&format!("kept for study as session {kept} of the server"));
        }
        Ok(code)
    }

    fn tell(&self, outcome: &RunOutcome) {
        let profile = Profile::ALL.into_iter().find(|one| one.name() == self.made.profile);
        let profile = profile.unwrap_or_default();
        if let Some(shortfall) = unheld(&outcome.enforced, profile, &Limits::default()) {
            report::note(&shortfall);
        }
        if let Some(cause) = told(&outcome.ending, &self.args.command) {
            report::note(&cause);
        }
        tell_denials(&outcome.denials);
    }
}

/// The end of the time that is left; never, where there is no limit.
async fn over(left: Option<Duration>) {
    match left {
        Some(left) => tokio::time::sleep(left).await,
        None => std::future::pending().await,
    }
}

/// Ends the sandbox, or keeps what is wanted of one whose run failed, and says which.
async fn settle(
    args: &RunArgs,
    sessions: &Sessions,
    id: &SessionId,
    done: &Result<RunOutcome>,
) -> Option<SessionId> {
    let is_failed = match done {
        Ok(outcome) => !matches!(outcome.ending, Ending::Exited(0) | Ending::Canceled),
        Err(error) => error.kind != ErrorKind::Canceled,
    };
    let on_failure = args.scope.on_failure.unwrap_or_default();
    let keeping = match on_failure {
        OnFailure::Stop | OnFailure::Preserve if is_failed => {
            keep(sessions, id, on_failure).await.map(|()| Some(id.clone()))
        }
        OnFailure::Destroy | OnFailure::Stop | OnFailure::Preserve => {
            sessions.delete(id).await.map(|_| None)
        }
    };
    keeping.unwrap_or_else(|error| {
        let chain = error.chain();
        report::note(&format!("the sandbox {id} ends by its lease, not now: {chain}"));
        None
    })
}

async fn keep(sessions: &Sessions, id: &SessionId, on_failure: OnFailure) -> Result<()> {
    match on_failure {
        OnFailure::Preserve => sessions.pause(id).await?,
        OnFailure::Stop | OnFailure::Destroy => sessions.stop(id).await?,
    }
    sessions.extend(id, PRESERVED).await.map(drop)
}

/// Keeps the sandbox as long as somebody is here. A server that is away is asked again.
async fn renew(sessions: &Sessions, id: &SessionId) -> Result<RunOutcome> {
    loop {
        tokio::time::sleep(RENEWED_EVERY).await;
        if let Err(error) = sessions.extend(id, RENEWED_EVERY).await
            && error.kind == ErrorKind::NotFound
        {
            return Err(error);
        }
    }
}

fn given_up() -> Error {
    Error::new(ErrorKind::Canceled, "nobody waited for the command")
}

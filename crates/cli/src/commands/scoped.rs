//! `cofferdam run` with pre-flight lines, a wish for what becomes of a failure, or connections that wait
//! to be allowed: a session of its own for one command.

use super::run::{About, connect_streams, report_of, tell};
use crate::args::RunArgs;
use crate::context::Context;
use crate::door::Session;
use crate::engine::{Output, RunOutcome};
use crate::follow::{Left, Memory, Passed, Sink, Streams, follow};
use crate::listen::{ENDING, Listening};
use crate::{exit, render, report, sessions};
use cofferdam_core::{
    Cause, Command, Denial, Ending, Enforced, Error, ErrorKind, ExecEnded, ExecOrder, Omitted,
    Result, Seen, Stdin, UsageReport,
};
use cofferdam_session::{
    InitCommand, InitFailure, Kept, Ran, RunError, RunFailure, RunOrder, Sessions,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What no run takes: a hundred years.
const NO_LIMIT: Duration = Duration::from_secs(100 * 365 * 86_400);

/// Runs the pre-flight lines and the command, and ends the sandbox.
pub(super) fn perform(args: &RunArgs) -> Result<u8> {
    let mut context = Context::new(&args.policy, Some(&args.command), &args.config)?;
    context.keep_what_shapes_a_sandbox();
    let mut command = context.command(&args.command, &args.start)?;
    connect_streams(&mut command, &args.command, args.json);
    let about = About::new(&context, args.json);
    let label = command.argv.first().map(|word| word.to_string_lossy().into_owned());
    // The limit of all of it holds for the command too.
    command.timeout = None;
    let mut order = RunOrder::new(label.unwrap_or_default(), context.spec);
    order.limit = context.timeout.unwrap_or(NO_LIMIT);
    order.preflight = args.scope.preflight.iter().map(InitCommand::shell).collect();
    order.on_failure = args.scope.on_failure.unwrap_or_default();
    let begin = Instant::now();
    let (came, captured) = sessions::here(async |sessions| match about.output {
        Output::Stream { limit_bytes } => {
            let mut sink = Streams {
                only: None,
                ends_with_its_reader: true,
                wants_what_is_left: false,
                limit_bytes,
            };
            let work = Work { command: &command, max_output_bytes: limit_bytes };
            Ok((run(sessions, &order, work, &mut sink).await?, Memory::default()))
        }
        Output::Capture { limit_bytes } => {
            let mut sink = Memory::of(limit_bytes);
            let work = Work { command: &command, max_output_bytes: None };
            let came = run(sessions, &order, work, &mut sink).await?;
            Ok((came, sink))
        }
    })?;
    say(&about, came, captured, begin.elapsed())
}

/// What is to be done in the sandbox.
#[derive(Clone, Copy)]
struct Work<'a> {
    command: &'a Command,
    max_output_bytes: Option<u64>,
}

/// What came of a run.
struct Came {
    ending: Ending,
    usage: UsageReport,
    denials: Vec<Denial>,
    enforced: Enforced,
    kept: Option<Kept>,
    cleanup: Option<Error>,
    new_control_files: Option<Vec<String>>,
}

/// A command that ended.
struct Done {
    ended: ExecEnded,
    enforced: Enforced,
}

/// Why the work did not succeed.
enum Failure {
    Ended(Box<Done>),
    Own(Error),
}

async fn run(
    sessions: &Sessions,
    order: &RunOrder,
    work: Work<'_>,
    sink: &mut (impl Sink + Send),
) -> Result<Came> {
    let is_at_work = AtomicBool::new(false);
    let mut signals = Listening::to(&ENDING)?;
    let ran = sessions.run(order, |session| {
        is_at_work.store(true, Ordering::Relaxed);
        do_work(Session::Here(session), work, sink)
    });
    let interrupted = async {
        loop {
            signals.next().await;
            // From then on signals are the command's.
            if !is_at_work.load(Ordering::Relaxed) {
                return;
            }
        }
    };
    let outcome = tokio::select! {
        outcome = ran => outcome,
        () = interrupted => return Ok(Came::of(Ending::Canceled, None)),
    };
    match outcome {
        Ok(Ran { value, cleanup, new_control_files }) => {
            Ok(Came { cleanup, new_control_files, ..Came::done(value) })
        }
        Err(RunError { failure, cleanup, kept, enforced, new_control_files }) => {
            let came = match failure {
                RunFailure::Provision(error) | RunFailure::Work(Failure::Own(error)) => {
                    return Err(error);
                }
                RunFailure::Preflight(failed) => Came::of(not_begun(&failed), enforced),
                RunFailure::TimedOut(_) => Came::of(Ending::Killed(Cause::Time), enforced),
                RunFailure::Work(Failure::Ended(done)) => Came::done(*done),
            };
            Ok(Came { cleanup, kept, new_control_files, ..came })
        }
    }
}

async fn do_work(
    session: Session,
    work: Work<'_>,
    sink: &mut (impl Sink + Send),
) -> Result<Done, Failure> {
    let done = follow_to_end(&session, work, sink).await.map_err(Failure::Own)?;
    match done.ended.ending == Ending::Exited(0) {
        true => Ok(done),
        false => Err(Failure::Ended(Box::new(done))),
    }
}

async fn follow_to_end(
    session: &Session,
    work: Work<'_>,
    sink: &mut (impl Sink + Send),
) -> Result<Done> {
    let default = Session::order::<&str>([])?;
    let command = work.command.clone();
    let order = ExecOrder { command, max_output_bytes: work.max_output_bytes, ..default };
    let signals = Listening::for_a_command()?;
    let exec = session.start(&order).await?.id;
    let passed = Passed {
        reads: work.command.stdin == Stdin::Piped,
        has_terminal: work.command.terminal.is_some(),
        keys: None,
        signals: Some(signals),
    };
    let enforced = sessions::enforced(session, &exec).await?;
    match follow((session, &exec), Seen::default(), sink, passed).await? {
        Left::Ended(status) => match status.ended {
            Some(ended) => Ok(Done { ended, enforced }),
            None => Err(given_up()),
        },
        Left::Running | Left::Abandoned => Err(given_up()),
    }
}

fn given_up() -> Error {
    Error::new(ErrorKind::Canceled, "nobody waited for the command")
}

fn not_begun(failed: &InitFailure) -> Ending {
    let how = match failed.exit_code {
        Some(code) => format!("exited {code}"),
        None => "could not be run".to_owned(),
    };
    let detail = match failed.output.trim_end() {
        "" => how,
        output => format!("{how}: {output}"),
    };
    Ending::SetupFailed { stage: format!("pre-flight command {:?}", failed.command), detail }
}

impl Came {
    fn done(done: Done) -> Self {
        let Done { ended, enforced } = done;
        let ExecEnded { ending, usage, denials, .. } = ended;
        Self { usage, denials, ..Self::of(ending, Some(enforced)) }
    }

    fn of(ending: Ending, enforced: Option<Enforced>) -> Self {
        let enforced = enforced.unwrap_or_else(|| Enforced::nowhere("nothing ran in a sandbox"));
        Self {
            ending,
            usage: UsageReport::default(),
            denials: Vec::new(),
            enforced,
            kept: None,
            cleanup: None,
            new_control_files: None,
        }
    }
}

fn say(about: &About, came: Came, captured: Memory, duration: Duration) -> Result<u8> {
    let Came { ending, usage, denials, enforced, kept, cleanup, new_control_files } = came;
    let omitted: Omitted = captured.omitted;
    let outcome = RunOutcome {
        ending,
        stdout: captured.stdout,
        stderr: captured.stderr,
        omitted,
        duration,
        usage,
        enforced,
        denials,
        new_control_files,
        layer: None,
    };
    let code = exit::of_ending(&outcome.ending);
    match about.output {
        Output::Stream { .. } => tell(about, &outcome),
        Output::Capture { .. } => {
            let mut report = report_of(outcome);
            report.session = kept.as_ref().map(|kept| kept.session.to_string());
            render::print_json(&report)?;
        }
    }
    if let Some(kept) = kept {
        let (session, bundle) = (&kept.session, kept.bundle.display());
        report::note(&format!("kept for study as session {session}, with {bundle}"));
    }
    if let Some(error) = cleanup {
        report::note(&format!("not all is removed, the next start goes on: {}", error.chain()));
    }
    Ok(code)
}

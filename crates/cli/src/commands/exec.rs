//! `cofferdam exec`.

use super::run::{CAPTURED_BYTES, connect_streams, report_of, tell_denials};
use crate::args::{CommandOptions, parse_exec_id};
use crate::context::{argv, command_variables};
use crate::door::{Before, Beside, Session};
use crate::engine::RunOutcome;
use crate::follow::{Left, Memory, Passed, Streams, follow};
use crate::listen::Listening;
use crate::surroundings::Surroundings;
use crate::{exit, receipt, render, report, secrets, sessions};
use clap::Args;
use cofferdam_core::{
    Cause, Ending, Enforced, Error, ErrorKind, ExecOrder, ExecStatus, ProcessId, Receipt, Result,
    Seen, Stdin,
};
use cofferdam_session::{Phase, receipt_of_gone};
use std::ffi::OsString;
use std::time::Duration;

/// Runs a command in a session.
///
/// When it ends, what it left in the background ends with it, and is told; what is to go on is started with -d.
///
/// Streams its output and exits with its code, as `run` does; a paused session goes on first. The
/// session's keeper holds the command and its output: when this program is killed the command goes
/// on, and `attach`, `logs` and `wait` find it. What it may do is the session's; no configuration is
/// read.
///
/// Example: cofferdam exec agent-1 -- npm test
#[derive(Debug, Default, Args)]
#[command(override_usage = "cofferdam exec SESSION [OPTIONS] -- ARGV…\n       \
    cofferdam exec SESSION [OPTIONS] --shell LINE")]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ExecArgs {
    /// The session: its name, whole, or its id, or the beginning of that.
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,

    #[command(flatten)]
    pub(crate) command: CommandOptions,

    /// Starts the command and leaves it; prints its id.
    ///
    /// It is frozen while the session is paused, and does not keep the session from being paused. What
    /// it starts goes on when it has ended, until --timeout is over, `signal` ends it, or the session
    /// ends: `ps` counts it and `logs` has what it writes. Without -d all of it ends with the command.
    ///
    /// Example: cofferdam exec agent-1 -d -- npm run dev
    #[arg(short = 'd', long)]
    pub(crate) detach: bool,

    /// Is refused: secrets are granted to a sandbox, and not to one of its commands.
    #[arg(long, value_name = "NAME@HOST", hide = true)]
    pub(crate) secret: Vec<OsString>,

    /// Names this run. The same id again runs nothing, and shows the same run from its beginning.
    ///
    /// 1 to 64 letters, digits, '-', '_' or '.'. With another command it is an error.
    ///
    /// Example: --id build-17
    #[arg(long, value_name = "KEY", value_parser = parse_exec_id)]
    pub(crate) id: Option<ProcessId>,

    /// Keeps the session from being paused while a detached command runs, or what it left.
    ///
    /// Example: cofferdam exec agent-1 -d --keep-awake -- make world
    #[arg(long, requires = "detach")]
    pub(crate) keep_awake: bool,

    /// Tells what the command did: files added, changed and removed, processes left, what was used.
    ///
    /// What the host saw is kept apart from what was said inside. Changes of files are seen in
    /// copy-on-write sessions alone; of others the receipt says that nobody looked. On standard error
    /// when the command has ended, or in the object of --json as `receipt`.
    ///
    /// Example: --receipt
    #[arg(long, help_heading = "Output", conflicts_with = "detach")]
    pub(crate) receipt: bool,

    /// Captures instead of streaming, and prints one JSON object on standard output.
    ///
    /// The object is that of `run --json`, with the ids of session and run, and without new control
    /// files, which `events` tells when the session ends; with -d it is that of `ps`. Errors are
    /// objects too.
    ///
    /// Example: --json
    #[arg(long, help_heading = "Output", conflicts_with = "terminal")]
    pub(crate) json: bool,
}

const EXAMPLES: &str = "\
Exit code:
  the command's own; 124 out of time; 125 Cofferdam could not do its part; 126 not executable; 127
  not found; 128+n killed by signal n. With -d: 0 once it is started, else one of 125 to 127.

Examples:
  cofferdam exec agent-1 -- cargo build
  cofferdam exec agent-1 --id tests-1 --timeout 5m -- npm test
  cofferdam exec agent-1 -d --keep-awake -- python3 -m http.server
  echo 1 + 1 | cofferdam exec agent-1 -i -- bc";

/// Runs the command, and returns the exit code that stands for its ending.
pub(super) fn perform(args: &ExecArgs) -> Result<u8> {
    if !args.secret.is_empty() {
        let what = "--secret is for a sandbox, and this one is made";
        return Err(Error::new(ErrorKind::Usage, what).hint(
            "Give --secret to `create`, `ensure` or `run`; --secret-file gives one to a command.",
        ));
    }
    let surroundings = Surroundings::of_this_process();
    let argv = argv(&args.command, "exec SESSION")?;
    sessions::with(async |sessions| {
        let session = sessions::find_to_change(sessions, &args.session).await?;
        let order = order(args, argv.clone(), &surroundings, &session).await?;
        let before = match args.receipt {
            true => Some(session.before_command().await?),
            false => None,
        };
        let is_new = args.id.is_none() || !is_known(&session, &order.command.id).await?;
        let secrets = args.command.secrets();
        let beside = Beside::new(&secrets).for_receipt(args.receipt);
        if args.detach {
            let started = session.start_with(&order, &beside).await?;
            return left(args, &session, &started).await;
        }
        let (started, signals) = start(&session, &order, &beside).await?;
        let exec = started.id;
        let passed = Passed {
            // What an earlier caller passed on is not passed on twice.
            reads: is_new && order.command.stdin == Stdin::Piped,
            has_terminal: order.command.terminal.is_some(),
            keys: None,
            signals,
        };
        if args.id.is_some() {
            // It may have been started before, in a session that sleeps by now.
            sessions::wake_for(&session, &exec).await?;
        }
        match args.json {
            true => capture(args, &session, &exec, (passed, before)).await,
            false => {
                let status = stream(args, &session, (&exec, started.stops), passed).await?;
                if let Some(before) = before {
                    receipt::tell(&receipt_of(&session, &before, &status).await?);
                }
                Ok(status.ended.map_or(exit::DONE, |ended| exit::of_ending(&ended.ending)))
            }
        }
    })
}

/// Starts a command, for which signals are that come to this program from then on.
async fn start(
    session: &Session,
    order: &ExecOrder,
    beside: &Beside<'_>,
) -> Result<(ExecStatus, Option<Listening>)> {
    let mut signals = Listening::for_a_command()?;
    tokio::select! {
        // Who has started it passes on to it what came meanwhile.
        biased;
        started = session.start_with(order, beside) => Ok((started?, Some(signals))),
        () = signals.impatience() => Err(abandoned(&order.command.id)),
    }
}

/// The command as the session is to run it.
async fn order(
    args: &ExecArgs,
    argv: Vec<OsString>,
    surroundings: &Surroundings,
    session: &Session,
) -> Result<ExecOrder> {
    let options = &args.command;
    let mut order = Session::order(argv)?;
    let command = &mut order.command;
    if let Some(id) = &args.id {
        command.id = id.clone();
    }
    command.env = command_variables(&options.variables, surroundings);
    command.timeout = options.timeout;
    command.secrets = secrets::given(&options.secrets(), &surroundings.state_directory()?)?;
    connect_streams(command, options, args.json || (args.detach && !options.terminal));
    if command.terminal.is_some() {
        sessions::add_terminal(&mut command.env, surroundings);
    }
    command.cwd = sessions::directory_inside(session, options.cwd.as_deref()).await?;
    order.detached = args.detach;
    order.keep_awake = args.keep_awake;
    if !args.json || args.detach {
        order.max_output_bytes = options.max_output;
    }
    Ok(order)
}

async fn is_known(session: &Session, id: &ProcessId) -> Result<bool> {
    Ok(session.execs().await?.iter().any(|exec| exec.id == id.as_str()))
}

/// Says what was started, or why it was not.
async fn left(args: &ExecArgs, session: &Session, started: &ExecStatus) -> Result<u8> {
    match args.json {
        true => render::print_json(&session.status(&started.id).await?)?,
        false => render::print_text(&format!("{}\n", started.id))?,
    }
    let ending = started.ended.as_ref().map(|ended| &ended.ending);
    let Some(ending @ (Ending::NotStarted { .. } | Ending::SetupFailed { .. })) = ending else {
        return Ok(exit::DONE);
    };
    if let Some(cause) = told(ending, &args.command) {
        report::note(&cause);
    }
    Ok(exit::of_ending(ending))
}

async fn stream(
    args: &ExecArgs,
    session: &Session,
    (exec, stops): (&ProcessId, u32),
    passed: Passed,
) -> Result<ExecStatus> {
    let mut sink = Streams {
        only: None,
        ends_with_its_reader: true,
        wants_what_is_left: false,
        limit_bytes: args.command.max_output,
    };
    let stops = passed.has_terminal.then_some(stops);
    let from = Seen { stops, ..Seen::default() };
    let status = match follow((session, exec), from, &mut sink, passed).await? {
        Left::Ended(status) => status,
        Left::Running | Left::Abandoned => return Err(abandoned(exec)),
    };
    let Some(ended) = &status.ended else { return Err(abandoned(exec)) };
    match told_with_session(session, &ended.ending, &args.command).await {
        Some(cause) => report::note(&cause),
        None => tell_left_out(args, &status),
    }
    if let (Some(killed @ 1..), Ending::Exited { .. }, false) =
        (ended.killed_descendants, &ended.ending, args.receipt)
    {
        let processes = if killed == 1 { "process" } else { "processes" };
        report::note(&format!(
            "{killed} {processes} that it left in the background ended with it; -d starts what goes on"
        ));
    }
    tell_denials(&ended.denials);
    tell_unkept(session, exec);
    Ok(*status)
}

/// The receipt of a command that has ended. Where its session went with it, what its end told is left.
async fn receipt_of(session: &Session, before: &Before, status: &ExecStatus) -> Result<Receipt> {
    match session.receipt(before, &status.id).await {
        Err(error) if error.kind == ErrorKind::NotFound => receipt_of_gone(status).ok_or(error),
        receipt => receipt,
    }
}

/// Says what --max-output left out of a command that ended by itself before it was killed for that.
fn tell_left_out(args: &ExecArgs, status: &ExecStatus) {
    for (name, stream) in [("output", &status.stdout), ("error", &status.stderr)] {
        let beyond = args.command.max_output.map_or(0, |most| stream.written.saturating_sub(most));
        if beyond > 0 {
            report::note(&format!("{beyond} bytes of standard {name} were left out: --max-output"));
        }
    }
}

async fn capture(
    args: &ExecArgs,
    session: &Session,
    exec: &ProcessId,
    (passed, before): (Passed, Option<Before>),
) -> Result<u8> {
    let mut sink = Memory::of(args.command.max_output.unwrap_or(CAPTURED_BYTES));
    let enforced = sessions::enforced(session, exec).await?;
    let status = match follow((session, exec), Seen::default(), &mut sink, passed).await? {
        Left::Ended(status) => status,
        Left::Running | Left::Abandoned => return Err(abandoned(exec)),
    };
    let outcome = outcome(&status, sink, enforced).ok_or_else(|| abandoned(exec))?;
    let code = exit::of_ending(&outcome.ending);
    tell_unkept(session, exec);
    let receipt = match before {
        Some(before) => Some(receipt_of(session, &before, &status).await?),
        None => None,
    };
    print_outcome((session, &status), exec, outcome, receipt)?;
    Ok(code)
}

/// Says why nobody can go back to before a command, where nobody can.
fn tell_unkept(session: &Session, exec: &ProcessId) {
    if let Some(why) = session.not_kept(exec) {
        report::note(&format!("no point of the history was kept: {why}"));
    }
}

/// What came of a command of a session, as of any run. `None` where it has not ended.
pub(super) fn outcome(
    status: &ExecStatus,
    captured: Memory,
    enforced: Enforced,
) -> Option<RunOutcome> {
    let ended = status.ended.as_ref()?;
    let duration = Duration::from_millis(ended.at_ms.saturating_sub(status.started_ms));
    Some(RunOutcome {
        ending: ended.ending.clone(),
        stdout: captured.stdout,
        stderr: captured.stderr,
        omitted: captured.omitted,
        duration,
        usage: ended.usage,
        enforced,
        denials: ended.denials.clone(),
        // Nobody looks for them before the session ends.
        new_control_files: None,
        layer: None,
    })
}

/// Prints the outcome with the ids of session and command.
pub(super) fn print_outcome(
    (session, status): (&Session, &ExecStatus),
    exec: &ProcessId,
    outcome: RunOutcome,
    receipt: Option<Receipt>,
) -> Result<()> {
    let mut report = report_of(outcome);
    report.killed_descendants = status.ended.as_ref().and_then(|ended| ended.killed_descendants);
    report.receipt = receipt.map(|mut receipt| {
        receipt.seen_by_host.omitted = Some(report.omitted);
        receipt
    });
    report.session = Some(session.id().to_string());
    report.exec = Some(exec.to_string());
    render::print_json(&report)
}

fn abandoned(exec: &ProcessId) -> Error {
    Error::new(ErrorKind::Canceled, format!("command {exec} was left while it may still run"))
        .hint("See `cofferdam ps`, `cofferdam attach` and `cofferdam signal`.")
}

/// What the exit code alone does not say, with what somebody did to the session where that ended the command.
pub(super) async fn told_with_session(
    session: &Session,
    ending: &Ending,
    options: &CommandOptions,
) -> Option<String> {
    let cause = told(ending, options)?;
    let done = match ending {
        Ending::Canceled => done_to(session).await,
        Ending::Exited(_)
        | Ending::Signaled(_)
        | Ending::Killed(_)
        | Ending::NotStarted { .. }
        | Ending::SetupFailed { .. }
        | Ending::Lost => None,
    };
    Some(match done {
        Some(done) => format!("{cause}: session {} was {done}", session.id()),
        None => cause,
    })
}

/// What somebody did to a session whose sandbox has ended, as far as that can be seen.
async fn done_to(session: &Session) -> Option<&'static str> {
    match session.sessions().status(session.id()).await {
        Ok(report) => match report.phase {
            Phase::Stopping | Phase::Stopped => Some("stopped"),
            Phase::Deleting => Some("removed"),
            Phase::Creating
            | Phase::Running
            | Phase::Pausing
            | Phase::Paused
            | Phase::Resuming
            | Phase::Lost
            | Phase::Failed => None,
        },
        Err(error) if error.kind == ErrorKind::NotFound => Some("removed"),
        Err(_) => None,
    }
}

/// Why a command was not started, as its sandbox said it, and what helps.
pub(super) fn not_started(ending: &Ending, detail: &str) -> String {
    // As a part of the sentence.
    let remedy = ending.hint().and_then(|hint| hint.strip_prefix('N')?.strip_suffix('.'));
    let remedy = remedy.map(|rest| format!("; n{rest}")).unwrap_or_default();
    format!("failed to start: {detail}{remedy}")
}

/// What the exit code alone does not say.
pub(super) fn told(ending: &Ending, options: &CommandOptions) -> Option<String> {
    let with = |text: &str, limit: Option<String>| match limit {
        Some(limit) => format!("{text} (limit {limit})"),
        None => text.to_owned(),
    };
    match ending {
        Ending::Exited(_) | Ending::Signaled(_) => None,
        Ending::Killed(Cause::Time) => {
            Some(with("killed: out of time", options.timeout.map(render::duration)))
        }
        Ending::Killed(Cause::Output) => {
            Some(with("killed: too much output", options.max_output.map(render::bytes)))
        }
        Ending::Killed(Cause::Memory) => Some("killed: out of memory".to_owned()),
        Ending::Killed(Cause::MemoryWithin { .. }) => Some("failed: out of memory".to_owned()),
        Ending::Killed(Cause::Pids { .. }) => Some("failed: out of processes".to_owned()),
        Ending::Killed(Cause::Disk { .. }) => Some("failed: out of private space".to_owned()),
        Ending::Killed(Cause::Lease) => Some("killed: the session's lease is over".to_owned()),
        Ending::Killed(Cause::SecretAlarm) => {
            Some("killed: a secret's placeholder was on its way to another host".to_owned())
        }
        Ending::NotStarted { detail, .. } => Some(not_started(ending, detail)),
        Ending::SetupFailed { stage, detail } => {
            Some(format!("failed to set up the sandbox: {stage}: {detail}"))
        }
        Ending::Canceled => Some("canceled".to_owned()),
        Ending::Lost => Some("lost: its sandbox died".to_owned()),
    }
}

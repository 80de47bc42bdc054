//! `cofferdam run` with a server: a sandbox of its own there, for one command.

use super::exec::{outcome, told};
use super::run::{CAPTURED_BYTES, connect_streams, report_of, unheld};
use crate::args::RunArgs;
use crate::context::{argv, command_variables};
use crate::door::{Order, Session, Sessions, refuse_if, spec};
use crate::follow::{Left, Memory, Passed, Streams, follow};
use crate::listen::{ENDING, Listening};
use crate::surroundings::Surroundings;
use crate::{exit, render, report, sessions};
use cofferdam_core::{
    Error, ErrorKind, ExecOrder, ExecStatus, Limits, LimitsCount, ProcessId, Profile, Result, Seen,
    Stdin,
};
use cofferdam_session::objects::SandboxWish;
use cofferdam_session::{SessionId, SessionReport};
use std::path::PathBuf;
use std::time::Duration;

/// How long the sandbox outlives a caller of whom nothing is heard any more.
const LEASE: Duration = Duration::from_secs(600);
/// How often the lease is renewed.
const RENEWED_EVERY: Duration = Duration::from_secs(200);

/// Runs the command, and returns the exit code that stands for its ending.
pub(super) fn perform(args: &RunArgs) -> Result<u8> {
    let here = "it is for a sandbox of this machine";
    refuse_if(args.scope.is_wanted(), "--preflight and --on-failure", here)?;
    refuse_if(args.start.entrypoint.is_some(), "--entrypoint", "a server has no images")?;
    let order = Order::There(Box::new(sandbox(args)?));
    let command = command(args)?;
    sessions::with(async |sessions| {
        let mut signals = Listening::to(&ENDING)?;
        let made = tokio::select! {
            made = sessions.create(&order) => made?,
            // What is being made there ends by its lease.
            _ = signals.next() => return Err(given_up()),
        };
        let id = SessionId::new(made.id.clone())?;
        let session = sessions.session(id.clone());
        let done = tokio::select! {
            done = work(args, (&session, &made), &command) => done,
            never = renew(sessions, &id) => never,
        };
        if let Err(error) = sessions.delete(&id).await {
            let chain = error.chain();
            report::note(&format!("the sandbox {id} ends by its lease, not now: {chain}"));
        }
        done
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

fn command(args: &RunArgs) -> Result<ExecOrder> {
    let options = &args.command;
    let surroundings = Surroundings::of_this_process()?;
    let mut order = Session::order(argv(options, "run")?)?;
    let command = &mut order.command;
    command.env = command_variables(&options.variables, &surroundings);
    command.timeout = options.timeout;
    connect_streams(command, options, args.json);
    if command.terminal.is_some() {
        sessions::add_terminal(&mut command.env, &surroundings);
    }
    order.max_output_bytes = options.max_output.filter(|_| !args.json);
    Ok(order)
}

async fn work(
    args: &RunArgs,
    (session, made): (&Session, &SessionReport),
    order: &ExecOrder,
) -> Result<u8> {
    let mut order = order.clone();
    let inside = made.workspace_inside.as_deref().unwrap_or("/workspace");
    order.command.cwd =
        args.command.cwd.as_ref().map(|cwd| PathBuf::from(inside).join(cwd).into_os_string());
    let started = session.start(&order).await?;
    let passed = Passed {
        reads: order.command.stdin == Stdin::Piped,
        has_terminal: order.command.terminal.is_some(),
        keys: None,
        signals: true,
    };
    let exec = &started.id;
    match args.json {
        true => capture(args, session, exec, passed).await,
        false => stream(args, (session, made), &started, passed).await,
    }
}

async fn stream(
    args: &RunArgs,
    (session, made): (&Session, &SessionReport),
    started: &ExecStatus,
    passed: Passed,
) -> Result<u8> {
    let mut sink = Streams {
        only: None,
        ends_with_its_reader: true,
        wants_what_is_left: false,
        limit_bytes: args.command.max_output,
    };
    let stops = passed.has_terminal.then_some(started.stops);
    let from = Seen { stops, ..Seen::default() };
    let status = ended(follow((session, &started.id), from, &mut sink, passed).await?)?;
    let Some(ended) = &status.ended else { return Err(given_up()) };
    if let Some(enforced) = &made.enforced {
        let profile = Profile::ALL.into_iter().find(|profile| profile.name() == made.profile);
        let count = LimitsCount::by_wish(profile.unwrap_or_default(), &Limits::default());
        if let Some(shortfall) = unheld(enforced, count) {
            report::note(&shortfall);
        }
    }
    if let Some(cause) = told(&ended.ending, &args.command) {
        report::note(&cause);
    }
    Ok(exit::of_ending(&ended.ending))
}

async fn capture(
    args: &RunArgs,
    session: &Session,
    exec: &ProcessId,
    passed: Passed,
) -> Result<u8> {
    let mut sink = Memory::of(args.command.max_output.unwrap_or(CAPTURED_BYTES));
    let status = ended(follow((session, exec), Seen::default(), &mut sink, passed).await?)?;
    let outcome = outcome(session, &status, sink).await?.ok_or_else(given_up)?;
    let code = exit::of_ending(&outcome.ending);
    render::print_json(&report_of(outcome))?;
    Ok(code)
}

fn ended(left: Left) -> Result<Box<ExecStatus>> {
    match left {
        Left::Ended(status) => Ok(status),
        Left::Running | Left::Abandoned => Err(given_up()),
    }
}

/// Keeps the sandbox as long as somebody is here. A server that is away is asked again.
async fn renew(sessions: &Sessions, id: &SessionId) -> Result<u8> {
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

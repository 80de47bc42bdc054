//! One command in a sandbox of its own.

use super::door::{Deed, Door, Manages, Runs};
use super::error::Answer;
use super::execs::tell_end;
use super::extract::Body;
use super::objects;
use super::once::not_done;
use super::secrets::{given, may_grant};
use super::start::lead;
use super::wish::{MAX_INIT_LINES, OnGround, Wish, lie_on, too_many};
use crate::Server;
use crate::traces::{Fact, Span};
use axum::Json;
use axum::response::{IntoResponse, Response};
use cofferdam_core::{
    Cause, Ending, EndingKind, EndingReport, Enforced, Error, ErrorKind, ExecOrder, Omitted,
    Result, RunReport, UsageReport,
};
pub(crate) use cofferdam_session::objects::{FailureName, RunWish};
use cofferdam_session::{
    ExecOutput, InitCommand, InitFailure, Kept, OnFailure, RUN_LIMIT, Ran, RunError, RunFailure,
    RunOrder, Session, text_or_base64,
};
use std::time::{Duration, Instant};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Where it is.
pub(super) const PATH: &str = "/v1/run";
/// The longest that a run may take, in milliseconds.
pub(crate) const MAX_RUN_MS: u64 = 3_600_000;
/// How much of each stream is in the answer unless a request says otherwise.
const CAPTURED_BYTES: usize = 1 << 20;
/// The most that a request may ask for.
pub(crate) const MAX_CAPTURED_BYTES: usize = 16 << 20;
/// How long making a sandbox may take beside its command.
const SET_UP: Duration = Duration::from_secs(30);

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(run))
}

/// Runs a command in a fresh sandbox, which is ended on every way out, and says what came of it. It ends
/// too when its caller hangs up a connection that was not to be closed anyway.
#[utoipa::path(post, path = "/v1/run", tag = "run", request_body = objects::RunOrder, responses(
    (status = 200, description = "What came of it.", body = objects::RunResult),
))]
async fn run(door: Door<Runs>, Body(wish): Body<RunWish>) -> Answer<Response> {
    let begin = Instant::now();
    may_grant(&door, &wish.sandbox.secrets).await?;
    if wish.on_failure != FailureName::Destroy {
        // What is kept is a sandbox that somebody has made.
        door.caller.may(Manages::SCOPE)?;
    }
    let capture = wish.capture_bytes.unwrap_or(CAPTURED_BYTES);
    let (mut exec, mut order) = orders(&wish, &door, capture)?;
    exec.command.secrets = given(&door, &wish.exec).await?;
    let _held = lie_on(
        &door.ground()?,
        (wish.sandbox.image.as_deref(), wish.sandbox.pull),
        &mut order.spec,
    )
    .await?;
    lead(&wish.exec, &mut exec, order.spec.image.as_ref())?;
    let making = door.span.part("create");
    let ran = door.sessions.run(&order, async |session| {
        work(&session, &exec, capture, Told { request: &door.span, making }).await
    });
    let (done, kept, new_control_files) = match ran.await {
        Ok(Ran { value, new_control_files, .. }) => (value, None, new_control_files),
        Err(RunError { failure, enforced, new_control_files, kept, .. }) => {
            let ending = match failure {
                RunFailure::Work(Failure::Ended(done)) => {
                    return Ok(told(*done, begin, kept, new_control_files));
                }
                RunFailure::Provision(error) | RunFailure::Work(Failure::Own(error)) => {
                    return Err(error.into());
                }
                RunFailure::Preflight(failed) => not_begun(&failed),
                RunFailure::TimedOut(_) => Ending::Killed(Cause::Time),
            };
            let enforced = enforced.unwrap_or_else(nowhere);
            (Done { output: Err(ending), enforced }, kept, new_control_files)
        }
    };
    Ok(told(done, begin, kept, new_control_files))
}

/// The answer.
fn told(
    done: Done,
    begin: Instant,
    kept: Option<Kept>,
    new_control_files: Option<Vec<String>>,
) -> Response {
    let report = RunReport {
        duration_ms: begin.elapsed().as_secs_f64() * 1000.0,
        session: kept.map(|kept| kept.session.to_string()),
        new_control_files,
        ..report_of(done.output, done.enforced)
    };
    // What never ran is no run that was done.
    match report.ending.kind {
        EndingKind::NotStarted | EndingKind::SetupFailed => not_done(Json(report)),
        EndingKind::Exited
        | EndingKind::Signaled
        | EndingKind::TimedOut
        | EndingKind::OutOfMemory
        | EndingKind::Pids
        | EndingKind::Output
        | EndingKind::Canceled
        | EndingKind::Disk
        | EndingKind::Lease
        | EndingKind::SecretAlarm
        | EndingKind::Lost => Json(report).into_response(),
    }
}

/// What a command came to.
struct Done {
    output: Result<ExecOutput, Ending>,
    enforced: Enforced,
}

/// Why the work did not succeed.
enum Failure {
    Ended(Box<Done>),
    Own(Error),
}

fn orders(wish: &RunWish, door: &Door<Runs>, capture: usize) -> Result<(ExecOrder, RunOrder)> {
    if capture > MAX_CAPTURED_BYTES {
        let what = format!("{capture} bytes are more than the {MAX_CAPTURED_BYTES} of an answer");
        return Err(Error::new(ErrorKind::TooLarge, what)
            .hint("Ask for less, or make a sandbox and read the output in parts."));
    }
    if wish.preflight.len() > MAX_INIT_LINES {
        return Err(too_many("pre-flight lines", wish.preflight.len(), MAX_INIT_LINES));
    }
    if wish.exec.receipt {
        let what = "a receipt is for a command of a sandbox that stays";
        return Err(Error::new(ErrorKind::Usage, what).hint("Make a sandbox first."));
    }
    if wish.exec.detached || wish.exec.keep_awake || wish.exec.stdin {
        let what = "a command in a sandbox of its own is in the foreground and reads nothing";
        return Err(Error::new(ErrorKind::Usage, what).hint("Make a sandbox first."));
    }
    let mut exec = wish.exec.order()?;
    let limit = exec.command.timeout.unwrap_or(RUN_LIMIT);
    if limit > Duration::from_millis(MAX_RUN_MS) {
        let what = format!("a run takes {MAX_RUN_MS} ms at most");
        return Err(Error::new(ErrorKind::TooLarge, what).hint("Make a sandbox first."));
    }
    exec.command.timeout = Some(limit);
    let label = exec.command.argv.first().map(|word| word.to_string_lossy().into_owned());
    let spec = wish.sandbox.on(&door.ground()?)?;
    let mut order = RunOrder::new(label.unwrap_or_default(), spec);
    order.limit = limit + SET_UP;
    order.preflight = wish.preflight.iter().map(InitCommand::shell).collect();
    order.on_failure = match wish.on_failure {
        FailureName::Destroy => OnFailure::Destroy,
        FailureName::Stop => OnFailure::Stop,
        FailureName::Preserve => OnFailure::Preserve,
    };
    Ok((exec, order))
}

/// What those who are told of a run are told by.
struct Told<'s> {
    request: &'s Span,
    /// The making of the sandbox, which is over when the command begins.
    making: Span,
}

async fn work(
    session: &Session,
    exec: &ExecOrder,
    capture: usize,
    Told { request, making }: Told<'_>,
) -> Result<Done, Failure> {
    request.tell(Fact::Sandbox(session.id()));
    making.tell(Fact::Sandbox(session.id()));
    drop(making);
    let span = request.part("exec");
    span.tell(Fact::Sandbox(session.id()));
    span.tell(Fact::Exec(&exec.command.id));
    let report = session.sessions().status(session.id()).await.map_err(Failure::Own)?;
    let enforced = report.enforced.unwrap_or_else(nowhere);
    let output = match session.exec(exec, capture).await {
        Ok(output) => output,
        Err(error) => {
            span.failed();
            let report = session.sessions().status(session.id()).await;
            if report.is_ok_and(|report| report.alarm.is_some()) {
                let output = Err(Ending::Killed(Cause::SecretAlarm));
                return Err(Failure::Ended(Box::new(Done { output, enforced })));
            }
            return Err(Failure::Own(error));
        }
    };
    tell_end(&span, &output.status);
    let is_well = output.status.ended.as_ref().is_some_and(|e| e.ending == Ending::Exited(0));
    let done = Done { output: Ok(output), enforced };
    if is_well { Ok(done) } else { Err(Failure::Ended(Box::new(done))) }
}

/// What is claimed of a sandbox that is gone.
fn nowhere() -> Enforced {
    Enforced::nowhere("the sandbox is gone")
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

fn report_of(output: Result<ExecOutput, Ending>, enforced: Enforced) -> RunReport {
    let (ending, usage, denials, stdout, stderr, omitted) = match output {
        Ok(output) => {
            let omitted = Omitted { stdout: output.omitted_stdout, stderr: output.omitted_stderr };
            let (ending, usage, denials) = match output.status.ended {
                Some(ended) => (ended.ending, ended.usage, ended.denials),
                None => (Ending::Lost, UsageReport::default(), Vec::new()),
            };
            (ending, usage, denials, output.stdout, output.stderr, omitted)
        }
        Err(ending) => {
            let usage = UsageReport::default();
            (ending, usage, Vec::new(), Vec::new(), Vec::new(), Omitted::default())
        }
    };
    let (stdout, stdout_base64) = text_or_base64(stdout);
    let (stderr, stderr_base64) = text_or_base64(stderr);
    RunReport {
        ending: EndingReport::from(&ending),
        hint: ending.hint().map(str::to_owned),
        exit_code: ending.exit_code(),
        stdout,
        stderr,
        stdout_base64,
        stderr_base64,
        omitted,
        duration_ms: 0.0,
        usage,
        enforced,
        denials,
        new_control_files: None,
        tier: None,
        tier_why: None,
        session: None,
        exec: None,
        receipt: None,
        killed_descendants: None,
    }
}

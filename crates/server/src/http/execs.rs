//! Commands of a sandbox.

use super::door::{Deed, Door, Looks, Runs};
use super::error::{Answer, Problem};
use super::extract::{Body, Path, Query, Raw};
use super::objects;
use super::once::key_of;
use super::receipts::{may_watch, watch};
use super::secrets::given;
use super::sse::{self, Source};
use super::start::lead;
use super::wish::{Wish, too_many, variables};
use crate::Server;
use crate::traces::{Fact, Span};
use axum::Json;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use axum::response::sse::Event;
use cofferdam_core::{
    Error, ErrorKind, ExecInput, ExecOrder, ExecStatus, Part, ProcessId, Result, Seen, Standard,
    Stdin, Terminal, hexadecimal,
};
pub(crate) use cofferdam_session::objects::{ExecWish, SignalWish, SizeWish};
use cofferdam_session::{ExecList, ExecReport, LogPart, Session};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::time::Duration;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The longest that a request waits for the end of a command.
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(60);
/// The most output of one answer, in bytes.
pub(crate) const MAX_PART_BYTES: u32 = 256 << 10;
/// The most words of a command.
pub(crate) const MAX_WORDS: usize = 4096;
/// How much of a stream an event has at most, so that who reads slowly holds little.
const EVENT_BYTES: u32 = 64 << 10;
/// How long one question for news waits.
const PATIENCE: Duration = Duration::from_secs(20);

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(start, list))
        .routes(routes!(show))
        .routes(routes!(output))
        .routes(routes!(follow))
        .routes(routes!(wait))
        .routes(routes!(stdin))
        .routes(routes!(signal))
        .routes(routes!(resize))
}

/// Which part of the output is wanted.
#[derive(Debug, Clone, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct OutputQuery {
    /// The stream: `stdout` or `stderr`.
    #[param(inline)]
    stream: StreamName,
    /// Where it begins.
    #[serde(default)]
    #[param(minimum = 0)]
    offset: u64,
    /// How long it is at most, in bytes.
    #[param(minimum = 1, maximum = 262144)]
    limit: Option<u32>,
}

#[derive(Debug, Clone, Copy, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
enum StreamName {
    Stdout,
    Stderr,
}

/// From where on output is wanted.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
struct FollowQuery {
    /// From this byte of standard output on.
    #[param(minimum = 0)]
    stdout: u64,
    /// From this byte of standard error on.
    #[param(minimum = 0)]
    stderr: u64,
}

/// How long to wait.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
struct WaitQuery {
    /// So long at most, in milliseconds.
    #[param(minimum = 0, maximum = 60000)]
    timeout_ms: Option<u64>,
}

/// What comes after some input.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
struct StdinQuery {
    /// Whether this is the end of it.
    close: bool,
}

/// Starts a command. The same `Idempotency-Key` again starts nothing and answers with the first one; with
/// another command it is a conflict.
#[utoipa::path(post, path = "/v1/sandboxes/{sandbox}/execs", tag = "execs",
    params(("sandbox" = String, Path, description = "Its name or id."),
        ("idempotency-key" = Option<String>, Header, description = "A text of the caller's, new for \
         each command, of at most 255 bytes.")),
    request_body = objects::ExecOrder, responses(
    (status = 200, description = "It was started before.", body = objects::Exec),
    (status = 201, description = "It is started.", body = objects::Exec),
))]
async fn start(
    door: Door<Runs>,
    Path(sandbox): Path<String>,
    headers: HeaderMap,
    Body(wish): Body<ExecWish>,
) -> Answer<(StatusCode, Json<ExecReport>)> {
    let mut order = wish.order()?;
    let session = door.session(&sandbox).await?;
    order.command.secrets = given(&door, &wish).await?;
    if wish.start.is_some() {
        lead(&wish, &mut order, session.image().await?.as_ref())?;
    }
    let mut status = StatusCode::CREATED;
    let key = key_of(&headers)?;
    if wish.receipt {
        may_watch(&door, &order)?;
    }
    if key.is_some() && wish.id.is_some() {
        let what = "both an Idempotency-Key and an id are given";
        return Err(Error::new(ErrorKind::Usage, what).hint("Give one of them.").into());
    }
    if let Some(key) = key {
        order.command.id = id_of(key)?;
    }
    let is_named = key.is_some() || wish.id.is_some();
    if is_named && session.status(&order.command.id).await.is_ok() {
        status = StatusCode::OK;
    }
    let watching = match wish.receipt && status == StatusCode::CREATED {
        true => watch(&door, &session, &order).await?,
        false => None,
    };
    let span = door.span.part("exec");
    let started = session.start(&order).await.inspect_err(|_| span.failed())?;
    if let Some(end) = session.end_of(&started.id) {
        door.server.beside(end);
    }
    if let Some(watching) = watching {
        door.server.beside(watching.until_its_end(session.clone()));
    }
    door.span.tell(Fact::Exec(&started.id));
    if status == StatusCode::CREATED && span.is_on() {
        door.server.beside(to_its_end(span, session.clone(), started.id.clone()));
    }
    Ok((status, Json(session.status(&started.id).await?)))
}

/// The commands of a sandbox, those of earlier incarnations included, oldest first.
#[utoipa::path(get, path = "/v1/sandboxes/{sandbox}/execs", tag = "execs",
    params(("sandbox" = String, Path, description = "Its name or id.")), responses(
    (status = 200, description = "All of them.", body = objects::Execs),
))]
async fn list(door: Door<Looks>, Path(sandbox): Path<String>) -> Answer<Json<ExecList>> {
    let session = door.session(&sandbox).await?;
    let execs = session.execs().await?;
    Ok(Json(ExecList { session: session.id().to_string(), execs }))
}

/// How a command stands.
#[utoipa::path(get, path = "/v1/sandboxes/{sandbox}/execs/{exec}", tag = "execs",
    params(("sandbox" = String, Path, description = "Its name or id."),
        ("exec" = String, Path, description = "The command's id.")), responses(
    (status = 200, description = "As it stands now.", body = objects::Exec),
))]
async fn show(
    door: Door<Looks>,
    Path((sandbox, exec)): Path<(String, String)>,
) -> Answer<Json<ExecReport>> {
    let (session, id) = command(&door, &sandbox, &exec).await?;
    Ok(Json(session.status(&id).await?))
}

/// A part of what a command wrote, from an offset on; empty where nothing is yet. Works after the command
/// ended and its sandbox is gone.
#[utoipa::path(get, path = "/v1/sandboxes/{sandbox}/execs/{exec}/output", tag = "execs",
    params(("sandbox" = String, Path, description = "Its name or id."),
        ("exec" = String, Path, description = "The command's id."), OutputQuery), responses(
    (status = 200, description = "What is there of it.", body = objects::OutputPart),
))]
async fn output(
    door: Door<Looks>,
    Path((sandbox, exec)): Path<(String, String)>,
    Query(query): Query<OutputQuery>,
) -> Answer<Json<LogPart>> {
    let len = query.limit.unwrap_or(MAX_PART_BYTES);
    if !(1..=MAX_PART_BYTES).contains(&len) {
        let what = format!("a part of {len} bytes is not one of 1 to {MAX_PART_BYTES}");
        let error = Error::new(ErrorKind::Usage, what);
        return Err(error.hint("Read a longer stream in several parts.").into());
    }
    let (session, id) = command(&door, &sandbox, &exec).await?;
    let stream = match query.stream {
        StreamName::Stdout => Standard::Output,
        StreamName::Stderr => Standard::Error,
    };
    let chunk = session.read(&id, Part { stream, offset: query.offset, len }).await?;
    Ok(Json(LogPart::new(stream, chunk.offset, chunk.bytes)))
}

/// What a command writes, as it comes: an event `output` with each part, and at last `end` with the
/// command. The id of each event says how far both streams are told; sent back as `Last-Event-ID` it goes
/// on there.
#[utoipa::path(get, path = "/v1/sandboxes/{sandbox}/execs/{exec}/stream", tag = "execs",
    params(("sandbox" = String, Path, description = "Its name or id."),
        ("exec" = String, Path, description = "The command's id."), FollowQuery,
        ("last-event-id" = Option<String>, Header, description = "The last one seen.")),
    responses((status = 200, description = "The output, to the end of the command.",
        content_type = "text/event-stream", body = String)))]
async fn follow(
    door: Door<Looks>,
    Path((sandbox, exec)): Path<(String, String)>,
    Query(query): Query<FollowQuery>,
    headers: HeaderMap,
) -> Answer<impl IntoResponse> {
    let (session, id) = command(&door, &sandbox, &exec).await?;
    let mut seen = Seen { stdout: query.stdout, stderr: query.stderr, ..Seen::default() };
    let last = sse::last_seen(&headers);
    if let Some(last) = last {
        seen = told_so_far(last)?;
    }
    let counted = door.caller.stream(&door.server)?;
    let followed = Followed { session, id, seen, is_begun: last.is_some(), is_over: false };
    Ok(sse::stream_of(counted, followed))
}

/// Waits until a command has ended, or the time is over, and says how it stands.
#[utoipa::path(get, path = "/v1/sandboxes/{sandbox}/execs/{exec}/wait", tag = "execs",
    params(("sandbox" = String, Path, description = "Its name or id."),
        ("exec" = String, Path, description = "The command's id."), WaitQuery,
        ("cofferdam-goes-on" = Option<String>, Header, description = "`true`: this goes on with an \
            earlier question: a sandbox that was paused meanwhile stays so. One that sleeps is resumed \
            otherwise.")), responses(
    (status = 200, description = "As it stands then.", body = objects::Exec),
))]
async fn wait(
    door: Door<Looks>,
    Path((sandbox, exec)): Path<(String, String)>,
    Query(query): Query<WaitQuery>,
    headers: HeaderMap,
) -> Answer<Json<ExecReport>> {
    let (session, id) = command(&door, &sandbox, &exec).await?;
    let patience = query.timeout_ms.map_or(MAX_WAIT, Duration::from_millis).min(MAX_WAIT);
    let asked = async {
        match goes_on(&headers) {
            true => session.wait_on(&id, Some(patience)).await,
            false => session.wait(&id, Some(patience)).await,
        }
    };
    tokio::select! {
        waited = asked => drop(waited?),
        () = door.server.is_to_end() => {}
    }
    Ok(Json(session.status(&id).await?))
}

/// Whether a question goes on with an earlier one: whoever asked it has woken the sandbox then.
pub(super) fn goes_on(headers: &HeaderMap) -> bool {
    headers.get("cofferdam-goes-on").is_some_and(|value| value == "true")
}

/// Sends input to a command that reads it.
#[utoipa::path(post, path = "/v1/sandboxes/{sandbox}/execs/{exec}/stdin", tag = "execs",
    params(("sandbox" = String, Path, description = "Its name or id."),
        ("exec" = String, Path, description = "The command's id."), StdinQuery),
    request_body(content = inline(objects::Bytes), content_type = "application/octet-stream"), responses(
    (status = 204, description = "The command has all of it."),
))]
async fn stdin(
    door: Door<Runs>,
    Path((sandbox, exec)): Path<(String, String)>,
    Query(query): Query<StdinQuery>,
    Raw(bytes): Raw,
) -> Answer<StatusCode> {
    let (session, id) = command(&door, &sandbox, &exec).await?;
    if !bytes.is_empty() {
        session.input(&id, &ExecInput::Bytes(bytes.to_vec())).await?;
    }
    if query.close {
        session.input(&id, &ExecInput::Close).await?;
    }
    Ok(StatusCode::NO_CONTENT)
}

/// Sends a signal to a command; if it has ended, to all that it left.
#[utoipa::path(post, path = "/v1/sandboxes/{sandbox}/execs/{exec}/signal", tag = "execs",
    params(("sandbox" = String, Path, description = "Its name or id."),
        ("exec" = String, Path, description = "The command's id.")),
    request_body = objects::SignalOrder, responses(
    (status = 204, description = "It is sent."),
))]
async fn signal(
    door: Door<Runs>,
    Path((sandbox, exec)): Path<(String, String)>,
    Body(wish): Body<SignalWish>,
) -> Answer<StatusCode> {
    let (session, id) = command(&door, &sandbox, &exec).await?;
    session.signal(&id, wish.signal.number()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Gives a command's terminal a new size.
#[utoipa::path(post, path = "/v1/sandboxes/{sandbox}/execs/{exec}/resize", tag = "execs",
    params(("sandbox" = String, Path, description = "Its name or id."),
        ("exec" = String, Path, description = "The command's id.")),
    request_body = objects::SizeOrder, responses(
    (status = 204, description = "It has that size."),
))]
async fn resize(
    door: Door<Runs>,
    Path((sandbox, exec)): Path<(String, String)>,
    Body(wish): Body<SizeWish>,
) -> Answer<StatusCode> {
    let (session, id) = command(&door, &sandbox, &exec).await?;
    session.input(&id, &ExecInput::Resize(size(wish))).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Keeps the span of a command until it ends.
async fn to_its_end(span: Span, session: Session, id: ProcessId) {
    span.tell(Fact::Sandbox(session.id()));
    span.tell(Fact::Exec(&id));
    match session.wait(&id, None).await {
        Ok(status) => tell_end(&span, &status),
        Err(_) => span.failed(),
    }
}

/// Tells how a command ended.
pub(super) fn tell_end(span: &Span, status: &ExecStatus) {
    let Some(ended) = &status.ended else { return };
    span.tell(Fact::Ending(ended.ending.kind()));
    span.tell(Fact::ExitCode(ended.ending.exit_code()));
}

/// A command of a caller's sandbox, which is there.
pub(super) async fn command<D: Deed>(
    door: &Door<D>,
    sandbox: &str,
    exec: &str,
) -> Answer<(Session, ProcessId)> {
    let session = door.session(sandbox).await?;
    let missing = || {
        Error::new(ErrorKind::NotFound, format!("there is no command {exec:?}"))
            .hint("List the commands of the sandbox to see their ids.")
    };
    let id = ProcessId::new(exec).map_err(|_| missing())?;
    session.status(&id).await?;
    door.span.tell(Fact::Exec(&id));
    Ok((session, id))
}

/// The id of a command that a caller's key stands for.
fn id_of(key: &[u8]) -> Result<ProcessId> {
    const DIGITS: usize = 40;
    let digits: String = hexadecimal(Sha256::digest(key)).chars().take(DIGITS).collect();
    ProcessId::new(format!("k{digits}"))
}

fn size(wish: SizeWish) -> Terminal {
    Terminal { rows: wish.rows, columns: wish.columns }
}

impl Wish for &ExecWish {
    type Order = ExecOrder;

    /// The order, with a fresh id.
    fn order(self) -> Result<ExecOrder> {
        let argv = match (&self.shell, self.argv.is_empty()) {
            (None, false) => self.argv.clone(),
            // Those of the image are to come.
            (None, true) if self.start.is_some() => Vec::new(),
            (Some(_), _) if self.start.is_some() => {
                let what = "shell starts a shell, so no image's words can lead it";
                return Err(Error::new(ErrorKind::Usage, what).hint("Leave start out."));
            }
            (Some(line), true) => vec!["/bin/sh".to_owned(), "-c".to_owned(), line.clone()],
            (Some(_), false) | (None, true) => {
                return Err(Error::new(ErrorKind::Usage, "a command is argv or shell")
                    .hint("Give one of them."));
            }
        };
        if argv.len() > MAX_WORDS {
            return Err(too_many("words", argv.len(), MAX_WORDS));
        }
        let has_nul = |text: &String| text.contains('\0');
        if argv.iter().chain(&self.cwd).any(has_nul) || argv.first().is_some_and(String::is_empty) {
            return Err(Error::new(ErrorKind::Usage, "a word of the command cannot be one")
                .hint("No word has a NUL, and the first is not empty."));
        }
        if self.cwd.as_ref().is_some_and(|cwd| !cwd.starts_with('/')) {
            return Err(Error::new(ErrorKind::Usage, "cwd is not absolute")
                .hint("Write the path as it is inside, as in /workspace/src."));
        }
        if self.timeout_ms == Some(0) {
            return Err(Error::new(
                ErrorKind::Usage,
                "timeout_ms is 0, in which no command can end",
            )
            .hint("Leave it out for no limit, or give at least 1."));
        }
        let mut order = Session::order(argv)?;
        if let Some(id) = &self.id {
            order.command.id = ProcessId::new(id.clone())?;
        }
        order.command.cwd = self.cwd.clone().map(Into::into);
        order.command.env = variables(&self.env)?;
        if self.stdin {
            order.command.stdin = Stdin::Piped;
        }
        order.command.terminal = self.terminal.map(size);
        order.command.timeout = self.timeout_ms.map(Duration::from_millis);
        order.detached = self.detached;
        order.keep_awake = self.keep_awake;
        order.max_output_bytes = self.max_output_bytes;
        Ok(order)
    }
}

/// How far both streams are told: the id of an event.
fn told(seen: Seen) -> String {
    format!("{}.{}", seen.stdout, seen.stderr)
}

fn told_so_far(id: &str) -> Result<Seen> {
    let read = id.split_once('.').and_then(|(stdout, stderr)| {
        Some(Seen { stdout: stdout.parse().ok()?, stderr: stderr.parse().ok()?, ..Seen::default() })
    });
    read.ok_or_else(|| {
        Error::new(ErrorKind::Usage, format!("{id:?} is not the id of an event"))
            .hint("Give back an id as a stream told it.")
    })
}

struct Followed {
    session: Session,
    id: ProcessId,
    seen: Seen,
    /// Whether it was followed before: then a sandbox that is paused stays so.
    is_begun: bool,
    is_over: bool,
}

impl Source for Followed {
    async fn next(&mut self) -> Option<Vec<Event>> {
        if self.is_over {
            return None;
        }
        loop {
            match self.news().await {
                Ok(events) if events.is_empty() => {}
                Ok(events) => return Some(events),
                Err(error) => {
                    self.is_over = true;
                    return Some(vec![sse::failed(Problem::from(error))]);
                }
            }
        }
    }
}

impl Followed {
    /// What is new: at most one part of each stream, or the end once all is told.
    async fn news(&mut self) -> Result<Vec<Event>> {
        let status = match std::mem::replace(&mut self.is_begun, true) {
            false => self.session.follow(&self.id, self.seen, PATIENCE).await?,
            true => self.session.follow_on(&self.id, self.seen, PATIENCE).await?,
        };
        let mut events = Vec::new();
        for (stream, written) in
            [(Standard::Output, status.stdout.written), (Standard::Error, status.stderr.written)]
        {
            let offset = match stream {
                Standard::Output => self.seen.stdout,
                Standard::Error => self.seen.stderr,
            };
            if written <= offset {
                continue;
            }
            let part = Part { stream, offset, len: EVENT_BYTES };
            let chunk = self.session.read(&self.id, part).await?;
            let part = LogPart::new(stream, chunk.offset, chunk.bytes);
            // What cannot be read any more, because its room was needed, is passed over.
            let next = if part.next_offset > offset { part.next_offset } else { written };
            match stream {
                Standard::Output => self.seen.stdout = next,
                Standard::Error => self.seen.stderr = next,
            }
            if part.next_offset > part.offset {
                events.push(sse::event("output", &told(self.seen), &part));
            }
        }
        let is_all =
            self.seen.stdout >= status.stdout.written && self.seen.stderr >= status.stderr.written;
        if status.ended.is_some() && is_all {
            self.is_over = true;
            let report = self.session.status(&self.id).await?;
            events.push(sse::event("end", &told(self.seen), &report));
        }
        Ok(events)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_stands_for_one_id() {
        assert_eq!(id_of(b"a").unwrap(), id_of(b"a").unwrap());
        assert_ne!(id_of(b"a").unwrap(), id_of(b"b").unwrap());
    }

    #[test]
    fn the_id_of_an_event_says_how_far_it_is() {
        let seen = Seen { stdout: 12, stderr: 3, ..Seen::default() };
        assert_eq!(told_so_far(&told(seen)).unwrap(), seen);
        for bad in ["", "1", "1.", "1.x", "-1.0", "1.2.3"] {
            assert!(told_so_far(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_command_is_words_or_a_line() {
        let wish = |argv: &[&str], shell: Option<&str>| ExecWish {
            argv: argv.iter().map(ToString::to_string).collect(),
            shell: shell.map(str::to_owned),
            ..ExecWish::default()
        };
        assert!(wish(&["ls"], None).order().is_ok());
        assert_eq!(wish(&[], Some("ls|wc")).order().unwrap().command.argv.len(), 3);
        for bad in
            [wish(&[], None), wish(&["ls"], Some("ls")), wish(&[""], None), wish(&["a\0"], None)]
        {
            assert_eq!(bad.order().unwrap_err().kind, ErrorKind::Usage);
        }
        let within = |ms| ExecWish { timeout_ms: ms, ..wish(&["ls"], None) };
        assert_eq!(within(Some(0)).order().unwrap_err().kind, ErrorKind::Usage);
        assert_eq!(within(None).order().unwrap().command.timeout, None);
        let one = Some(Duration::from_millis(1));
        assert_eq!(within(Some(1)).order().unwrap().command.timeout, one);
        let many = vec!["x"; MAX_WORDS + 1];
        assert_eq!(wish(&many, None).order().unwrap_err().kind, ErrorKind::TooLarge);
    }
}

//! A command over a WebSocket, with its terminal if it has one.

use super::socket::{Asked, Hand, Heard, Out, Tape, Told, needs_upgrade, talk};
use crate::Server;
use crate::http::door::{Door, Runs};
use crate::http::error::Answer;
use crate::http::extract::{Path, Query};
use crate::http::objects;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::response::Response;
use cofferdam_core::{
    Error, ErrorKind, ExecInput, Part, ProcessId, Result, Seen, Standard, Terminal,
};
use cofferdam_session::Session;
use serde::Deserialize;
use std::time::Duration;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// How long one question waits for news.
const PATIENCE: Duration = Duration::from_secs(20);
/// How much is read at once.
const PIECE_BYTES: u32 = 64 << 10;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(attach))
}

/// From where on a command is told.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
struct AttachQuery {
    /// The place of the first byte of standard output that is not known yet. Default: the beginning.
    from: u64,
    /// The same of standard error.
    from_stderr: u64,
}

/// Attaches to a command over a WebSocket: its output from any place on, its input, its terminal's size.
///
/// Output comes as binary messages that say their stream and place; whoever comes back gives those of the
/// next bytes. See Asked and Told for the others. The last message is `exited`.
#[utoipa::path(get, path = "/v1/sandboxes/{sandbox}/execs/{exec}/attach", tag = "execs",
    params(("sandbox" = String, Path, description = "Its name or id."),
        ("exec" = String, Path, description = "The id of the command."), AttachQuery), responses(
    (status = 101, description = "The WebSocket stands: Asked comes in, Told goes out.", content(
        (objects::ShellTold = "application/json"), (objects::ShellMessage = "application/vnd.cofferdam.asked+json"))),
    (status = 426, description = "No WebSocket was asked for.", content_type = "application/problem+json", body = objects::ProblemDocument),
))]
async fn attach(
    door: Door<Runs>,
    Path((sandbox, exec)): Path<(String, String)>,
    Query(query): Query<AttachQuery>,
    upgrade: std::result::Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Answer<Response> {
    let session = door.session(&sandbox).await?;
    let exec = ProcessId::new(exec)?;
    let report = session.status(&exec).await?;
    let upgrade = needs_upgrade(upgrade)?;
    let counted = door.caller.stream(&door.server)?;
    let minutes = door.minutes(format!("WS /v1/sandboxes/{sandbox}/execs/{exec}"));
    let terminal = report.terminal;
    let first = Told::Attached { exec: Box::new(report) };
    let hand = Attached { session: session.clone(), exec: exec.clone() };
    let at = [query.from, query.from_stderr];
    let tape = ExecTape { session, exec, terminal, at, is_begun: false };
    Ok(talk(upgrade, (counted, minutes), (first, tape, hand)))
}

/// What a command writes.
struct ExecTape {
    session: Session,
    exec: ProcessId,
    /// Whether it has a terminal: all its output is standard output then.
    terminal: bool,
    /// Where the next read of each stream begins.
    at: [u64; 2],
    /// Whether somebody waits for it already: a sandbox that was paused meanwhile stays so.
    is_begun: bool,
}

impl ExecTape {
    /// What is there of one stream, from where it was read on.
    async fn stream(&mut self, number: u8, stream: Standard) -> Result<Option<Out>> {
        let [stdout, stderr] = &mut self.at;
        let at = if stream == Standard::Output { stdout } else { stderr };
        let part = Part { stream, offset: *at, len: PIECE_BYTES };
        let chunk = self.session.read(&self.exec, part).await?;
        if chunk.bytes.is_empty() {
            return Ok(None);
        }
        if chunk.offset > *at {
            let dropped = Told::Dropped { stream: number, from: *at, to: chunk.offset };
            *at = chunk.offset;
            return Ok(Some(Out::Told(dropped)));
        }
        *at = chunk.offset + chunk.bytes.len() as u64;
        Ok(Some(Out::Bytes(number, chunk.offset, chunk.bytes)))
    }
}

impl Tape for ExecTape {
    async fn next(&mut self) -> Result<Option<Out>> {
        for (number, stream) in [(1, Standard::Output), (2, Standard::Error)] {
            if self.terminal && stream == Standard::Error {
                continue;
            }
            if let Some(out) = self.stream(number, stream).await? {
                return Ok(Some(out));
            }
        }
        let [stdout, stderr] = self.at;
        let seen = Seen { stdout, stderr, ..Seen::default() };
        let status = match std::mem::replace(&mut self.is_begun, true) {
            false => self.session.follow(&self.exec, seen, PATIENCE).await?,
            true => self.session.follow_on(&self.exec, seen, PATIENCE).await?,
        };
        if status.ended.is_none() {
            return Ok(None);
        }
        // All that was kept has been read: the rest was dropped.
        let written = [(1, status.stdout.written), (2, status.stderr.written)];
        for ((number, to), at) in written.into_iter().zip(&mut self.at) {
            let part_of = if number == 1 { status.stdout.dropped } else { status.stderr.dropped };
            if *at < to && part_of > 0 {
                let from = std::mem::replace(at, to);
                return Ok(Some(Out::Told(Told::Dropped { stream: number, from, to })));
            }
        }
        if self.at[0] < status.stdout.written || self.at[1] < status.stderr.written {
            return Ok(None);
        }
        let exec = Box::new(self.session.status(&self.exec).await?);
        Ok(Some(Out::Told(Told::Exited { exec })))
    }
}

/// A command that somebody is attached to.
struct Attached {
    session: Session,
    exec: ProcessId,
}

impl Hand for Attached {
    async fn take(&self, heard: Heard) -> Result<Option<Told>> {
        let (input, told) = match heard {
            Heard::Input(bytes) => {
                let taken = Told::Taken { bytes: bytes.len() };
                (ExecInput::Bytes(bytes), Some(taken))
            }
            Heard::Asked(Asked::Close {}) => (ExecInput::Close, None),
            Heard::Asked(Asked::Signal { signal }) => (ExecInput::Signal(signal.number()), None),
            Heard::Asked(Asked::Resize { rows, columns }) => {
                (ExecInput::Resize(Terminal { rows, columns }), None)
            }
            Heard::Asked(Asked::Run { .. } | Asked::Interrupt {} | Asked::Input { .. }) => {
                let what = "a command takes input, close, signal and resize alone";
                return Err(Error::new(ErrorKind::Usage, what).hint("Send one of those."));
            }
        };
        self.session.input(&self.exec, &input).await.map(|()| told)
    }
}

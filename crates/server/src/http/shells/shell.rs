//! A shell over a WebSocket.

use super::socket::{Asked, Hand, Heard, Out, Tape, Told, needs_upgrade, talk};
use crate::Server;
use crate::http::door::{Door, Runs};
use crate::http::error::Answer;
use crate::http::extract::{Path, Query};
use crate::http::objects;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::response::Response;
use cofferdam_core::{Error, ErrorKind, Result};
use cofferdam_session::{Shell, ShellNews, ShellTape};
use serde::Deserialize;
use std::time::Duration;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// How long one question waits for news.
const PATIENCE: Duration = Duration::from_secs(20);
/// Output of a shell: both streams of its commands in one.
const OUTPUT: u8 = 1;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(attach))
}

/// From where on a shell is told.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
struct ShellQuery {
    /// The place of the first byte that is not known yet. Default: the beginning.
    from: u64,
}

/// Talks to a shell that is open, over a WebSocket.
///
/// Output comes as binary messages that say their place; whoever comes back gives that of the next byte as
/// `from`. See Asked and Told for the others.
#[utoipa::path(get, path = "/v1/sandboxes/{sandbox}/shells/{shell}/attach", tag = "shells",
    params(("sandbox" = String, Path, description = "Its name or id."),
        ("shell" = String, Path, description = "The name of the shell."), ShellQuery), responses(
    (status = 101, description = "The WebSocket stands: Asked comes in, Told goes out.", content(
        (objects::ShellTold = "application/json"), (objects::ShellMessage = "application/vnd.cofferdam.asked+json"))),
    (status = 426, description = "No WebSocket was asked for.", content_type = "application/problem+json", body = objects::ProblemDocument),
))]
async fn attach(
    door: Door<Runs>,
    Path((sandbox, name)): Path<(String, String)>,
    Query(query): Query<ShellQuery>,
    upgrade: std::result::Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Answer<Response> {
    let session = door.session(&sandbox).await?;
    let shell = session.find_shell(&name).await?;
    let report = super::rest::report(&session, &name).await?;
    let upgrade = needs_upgrade(upgrade)?;
    let counted = door.caller.stream(&door.server)?;
    let minutes = door.minutes(format!("WS /v1/sandboxes/{sandbox}/shells/{name}"));
    let first = Told::Open { shell: Box::new(report) };
    let tape = shell.tape(query.from);
    Ok(talk(upgrade, (counted, minutes), (first, tape, shell)))
}

impl Tape for ShellTape {
    async fn next(&mut self) -> Result<Option<Out>> {
        let news = ShellTape::next(self, PATIENCE).await?;
        Ok(news.map(|news| match news {
            ShellNews::Output { offset, bytes } => Out::Bytes(OUTPUT, offset, bytes),
            ShellNews::Dropped { offset: from, next: to } => {
                Out::Told(Told::Dropped { stream: OUTPUT, from, to })
            }
            ShellNews::Ended { seq, exit_code, next } => {
                Out::Told(Told::Ended { seq, exit_code, next })
            }
            ShellNews::Died { ending } => Out::Told(Told::Died { ending }),
        }))
    }
}

impl Hand for Shell {
    async fn take(&self, heard: Heard) -> Result<Option<Told>> {
        match heard {
            Heard::Input(bytes) => {
                self.input(&bytes).await?;
                Ok(Some(Told::Taken { bytes: bytes.len() }))
            }
            Heard::Asked(Asked::Run { text, takes_input }) => {
                let ticket = self.send(text.as_bytes(), takes_input).await?;
                Ok(Some(Told::Began { seq: ticket.seq, offset: ticket.offset }))
            }
            Heard::Asked(Asked::Interrupt {}) => self.interrupt().await.map(|()| None),
            Heard::Asked(
                Asked::Close {} | Asked::Input { .. } | Asked::Signal { .. } | Asked::Resize { .. },
            ) => Err(Error::new(ErrorKind::Usage, "a shell takes run, input and interrupt alone")
                .hint("Send one of those.")),
        }
    }
}

//! Numbers of a server in the text format of Prometheus: how it was asked, and what there is.
//!
//! A caller with a key sees the numbers of its own requests and sandboxes; the local user those of all. No
//! label names an owner, a key, a sandbox or a path that somebody chose.

mod counts;
mod text;

use super::auth::Caller;
use super::door::{Door, Looks};
use super::error::{Answer, Problem};
use crate::Server;
use axum::Extension;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use cofferdam_core::{Error, ErrorKind, Result};
use cofferdam_session::{ConnectionCounts, Phase, Session, SessionId, SessionReport, Sessions};
use counts::{Counting, Counts, Of};
use futures_util::StreamExt;
use std::sync::{Arc, OnceLock};
use std::time::Instant;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The most sandboxes that are asked how many commands run in them, and how many at a time.
pub(crate) const MAX_ASKED: usize = 1000;
const AT_A_TIME: usize = 16;
/// What stands for a path that nothing is at, so that nobody makes labels by asking.
const NO_ROUTE: &str = "none";

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(metrics))
}

/// What is counted.
#[derive(Debug, Clone, Default)]
pub(super) struct Metrics(Arc<Counts>);

/// Whose request it is, once that is known.
#[derive(Debug, Clone, Default)]
struct Asker(Arc<OnceLock<String>>);

/// Counts what is asked within: everything that is answered passes here.
pub(super) fn counted(routes: axum::Router<Server>) -> axum::Router<Server> {
    routes.layer(axum::middleware::from_fn_with_state(Metrics::default(), count))
}

/// Notes whose a request is: what passes here was let in.
pub(super) async fn note(request: Request, next: Next) -> Response {
    let asker = request.extensions().get::<Asker>();
    if let (Some(asker), Some(caller)) = (asker, request.extensions().get::<Caller>()) {
        asker.0.get_or_init(|| caller.owner().to_owned());
    }
    next.run(request).await
}

async fn count(State(metrics): State<Metrics>, mut request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>();
    let route = route.map_or(NO_ROUTE, MatchedPath::as_str).to_owned();
    let of = Of { method: method(request.method()), route };
    let (asker, begun) = (Asker::default(), Instant::now());
    request.extensions_mut().insert(asker.clone());
    request.extensions_mut().insert(metrics.clone());
    let response = next.run(request).await;
    // A caller that was not let in is nobody's.
    let owner = asker.0.get().cloned();
    let status = response.status().as_u16();
    let bytes = metrics.0.add(owner, of, status, begun.elapsed());
    response.map(|body| axum::body::Body::new(Counting { body, bytes }))
}

/// A method that is known; others are one.
pub(crate) fn method(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        Method::PATCH => "PATCH",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

/// Numbers of the server, in the text format of Prometheus.
#[utoipa::path(get, path = "/metrics", tag = "server", responses(
    (status = 200, description = "The numbers.", content_type = "text/plain", body = String),
))]
async fn metrics(door: Door<Looks>, metrics: Option<Extension<Metrics>>) -> Answer<Response> {
    let Some(Extension(metrics)) = metrics else {
        let error = Error::new(ErrorKind::Unavailable, "nothing is counted here");
        return Err(Problem::from(error));
    };
    let owner = door.caller.key.as_ref().map(|_| door.caller.owner().to_owned());
    // The local user is whose server it is.
    let sessions = if owner.is_some() { &door.sessions } else { &door.server.0.sessions };
    let all = sessions.list(&std::collections::BTreeMap::new()).await?;
    let mut text = metrics.0.text(owner.as_deref());
    text::sandboxes(&mut text, &all);
    text::execs(&mut text, running(sessions, &all).await?);
    text::connections(&mut text, connections(sessions, &all).await?);
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}

/// How many commands run in sandboxes that run. One that goes meanwhile has none.
async fn running(sessions: &Sessions, all: &[SessionReport]) -> Result<u64> {
    let run = all.iter().filter(|session| session.phase == Phase::Running);
    let asked = each(sessions, run, async |session| session.execs().await.unwrap_or_default());
    let answers = asked.await?.into_iter().flatten();
    Ok(answers.filter(|exec| exec.ended_ms.is_none()).count() as u64)
}

/// What became of connections of the sandboxes that are there.
async fn connections(sessions: &Sessions, all: &[SessionReport]) -> Result<ConnectionCounts> {
    let counts = each(sessions, all.iter(), async |session| {
        session.connection_counts().await.unwrap_or_default()
    });
    Ok(counts.await?.into_iter().fold(ConnectionCounts::default(), ConnectionCounts::with))
}

/// Asks each of them, but no more than [`MAX_ASKED`].
async fn each<'a, T>(
    sessions: &Sessions,
    of: impl Iterator<Item = &'a SessionReport>,
    ask: impl AsyncFn(Session) -> T,
) -> Result<Vec<T>> {
    let of = of.take(MAX_ASKED);
    let ids: Vec<SessionId> =
        of.map(|session| SessionId::new(session.id.as_str())).collect::<Result<_>>()?;
    let asked = ids.into_iter().map(|id| ask(sessions.session(id)));
    Ok(futures_util::stream::iter(asked).buffer_unordered(AT_A_TIME).collect().await)
}

//! What happened: a page of it, or as it comes.

use super::door::{Door, Looks};
use super::error::{Answer, Problem};
use super::extract::Query;
use super::lookout::{More, Told};
use super::objects;
use super::sse::{self, Source};
use crate::Server;
use axum::Json;
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use axum::response::sse::Event;
use cofferdam_core::{Error, ErrorKind, Result};
pub(crate) use cofferdam_session::objects::AuditList;
use cofferdam_session::{EventList, EventReport, SessionId, Sessions};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// What is to be done about a number that is none.
const AS_TOLD: &str = "Give back a number as an event told it.";

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(follow)).routes(routes!(audit))
}

/// Which events are wanted.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
struct EventsQuery {
    /// Those with a greater number.
    #[param(minimum = 0, maximum = 4611686018427387903_i64)]
    after: Option<u64>,
    /// Those of this sandbox: its name or id.
    sandbox: Option<String>,
}

/// Which entries are wanted.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
struct AuditQuery {
    /// Those with a greater number.
    #[param(minimum = 0, maximum = 4611686018427387903_i64)]
    after: Option<u64>,
}

/// What happened after the event of a number, at most 1000, in order.
#[utoipa::path(get, path = "/v1/events", tag = "events", params(EventsQuery), responses(
    (status = 200, description = "The events.", body = objects::Events),
))]
async fn list(door: Door<Looks>, Query(query): Query<EventsQuery>) -> Answer<Json<EventList>> {
    let (session, after) = wanted(&door, &query).await?;
    Ok(Json(EventList { events: door.sessions.events(session.as_ref(), after).await? }))
}

/// The same as it comes: an event `event` each, whose id is its number. `Last-Event-ID` goes before
/// `after`.
#[utoipa::path(get, path = "/v1/events/stream", tag = "events",
    params(EventsQuery, ("last-event-id" = Option<u64>, Header, description = "The last one seen.")),
    responses((status = 200, description = "The events, without an end.",
        content_type = "text/event-stream", body = String)))]
async fn follow(
    door: Door<Looks>,
    Query(query): Query<EventsQuery>,
    headers: HeaderMap,
) -> Answer<impl IntoResponse> {
    let (session, mut after) = wanted(&door, &query).await?;
    if let Some(seen) = sse::last_seen(&headers) {
        after = number(seen)?;
    }
    let counted = door.caller.stream(&door.server)?;
    let lookout = &door.server.0.lookout;
    let told = lookout.tells(door.caller.owner(), &door.sessions, session.as_ref()).await?;
    let sessions = door.sessions.clone();
    let source = Events { told, sessions, session, after, has_looked: false, is_over: false };
    Ok(sse::stream_of(counted, source))
}

/// What callers did that changed something: who, what, when, and what came of it.
#[utoipa::path(get, path = "/v1/audit", tag = "events", params(AuditQuery), responses(
    (status = 200, description = "The entries.", body = objects::Audit),
))]
async fn audit(door: Door<Looks>, Query(query): Query<AuditQuery>) -> Answer<Json<AuditList>> {
    let after = checked(query.after.unwrap_or(0))?;
    Ok(Json(AuditList { entries: door.sessions.audited(after).await? }))
}

async fn wanted(door: &Door<Looks>, query: &EventsQuery) -> Answer<(Option<SessionId>, u64)> {
    let session = match &query.sandbox {
        Some(text) => Some(sandbox(door, text).await?),
        None => None,
    };
    Ok((session, checked(query.after.unwrap_or(0))?))
}

/// The sandbox of this name or id; one that was removed by its id, as long as an event of it is kept.
async fn sandbox(door: &Door<Looks>, text: &str) -> Answer<SessionId> {
    let missing = match door.session(text).await {
        Ok(session) => return Ok(session.id().clone()),
        Err(missing) => missing,
    };
    let Ok(id) = SessionId::new(text) else { return Err(missing) };
    match door.sessions.written_events(Some(&id), 0).await?.is_empty() {
        true => Err(missing),
        false => Ok(id),
    }
}

fn number(text: &str) -> Answer<u64> {
    let read = text.parse().map_err(|_| {
        Error::new(ErrorKind::Usage, format!("{text:?} is not the number of an event"))
            .hint(AS_TOLD)
    })?;
    checked(read)
}

/// What the database counts to.
fn checked(number: u64) -> Answer<u64> {
    if number > u64::MAX >> 2 {
        let what = format!("{number} is not the number of an event");
        return Err(Error::new(ErrorKind::Usage, what).hint(AS_TOLD).into());
    }
    Ok(number)
}

struct Events {
    told: Told,
    sessions: Sessions,
    session: Option<SessionId>,
    after: u64,
    /// Whether all that was before it began is known.
    has_looked: bool,
    is_over: bool,
}

impl Events {
    /// What happened since: by all accounts at first and where who looks for all could not, and else by what is written
    /// down. Nothing is asked for where there is nothing.
    async fn look(&mut self) -> Result<Vec<EventReport>> {
        let session = self.session.as_ref();
        let has_looked = std::mem::replace(&mut self.has_looked, true);
        match self.told.news(self.after) {
            _ if !has_looked => self.sessions.events(session, self.after).await,
            More::Perhaps => self.sessions.events(session, self.after).await,
            More::Yes => self.sessions.written_events(session, self.after).await,
            More::No => Ok(Vec::new()),
        }
    }
}

impl Source for Events {
    async fn next(&mut self) -> Option<Vec<Event>> {
        if self.is_over {
            return None;
        }
        loop {
            let found = match self.look().await {
                Ok(found) => found,
                Err(error) => {
                    self.is_over = true;
                    return Some(vec![sse::failed(Problem::from(error))]);
                }
            };
            if let Some(last) = found.last() {
                self.after = last.seq;
                let told = |report| sse::event("event", &seq(report), report);
                return Some(found.iter().map(told).collect());
            }
            self.told.changed().await;
        }
    }
}

fn seq(report: &EventReport) -> String {
    report.seq.to_string()
}

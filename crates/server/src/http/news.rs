//! A command, for one who follows it as if it ran on the same machine.

use super::door::{Door, Looks};
use super::error::Answer;
use super::execs::{MAX_WAIT, command, goes_on};
use super::extract::{Path, Query};
use super::objects;
use crate::Server;
use axum::Json;
use axum::http::HeaderMap;
use cofferdam_core::Seen;
use cofferdam_session::objects::ExecNews;
use serde::Deserialize;
use std::time::Duration;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(news))
}

/// What is known already.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
struct NewsQuery {
    /// So many bytes of standard output.
    #[param(minimum = 0)]
    stdout: u64,
    /// So many bytes of standard error.
    #[param(minimum = 0)]
    stderr: u64,
    /// So many stops, where another one is news.
    #[param(minimum = 0)]
    stops: Option<u32>,
    /// That it has ended: what is waited for is the end of all that it left.
    end: bool,
    /// Waits so long at most, in milliseconds.
    #[param(minimum = 0, maximum = 60000)]
    timeout_ms: Option<u64>,
}

/// Waits until there is more of a command than is known, or the time is over, and says how it stands.
#[utoipa::path(get, path = "/v1/sandboxes/{sandbox}/execs/{exec}/news", tag = "execs",
    params(("sandbox" = String, Path, description = "Its name or id."),
        ("exec" = String, Path, description = "The command's id."), NewsQuery,
        ("cofferdam-goes-on" = Option<String>, Header, description = "`true`: this goes on with an \
            earlier question: a sandbox that was paused meanwhile stays so. One that sleeps is resumed \
            otherwise.")), responses(
    (status = 200, description = "As it stands then.", body = objects::ExecNews),
))]
async fn news(
    door: Door<Looks>,
    Path((sandbox, exec)): Path<(String, String)>,
    Query(query): Query<NewsQuery>,
    headers: HeaderMap,
) -> Answer<Json<ExecNews>> {
    let (session, id) = command(&door, &sandbox, &exec).await?;
    let patience = query.timeout_ms.map_or(MAX_WAIT, Duration::from_millis).min(MAX_WAIT);
    let NewsQuery { stdout, stderr, stops, end, .. } = query;
    let seen = Seen { stdout, stderr, stops, end };
    let asked = async {
        match goes_on(&headers) {
            true => session.follow_on(&id, seen, patience).await,
            false => session.follow(&id, seen, patience).await,
        }
    };
    let status = tokio::select! {
        status = asked => status?,
        // What is known now, so that whoever asks comes back to the next server.
        () = door.server.is_to_end() => session.follow_on(&id, seen, Duration::ZERO).await?,
    };
    let not_kept = session.not_kept(&id);
    Ok(Json(ExecNews::new(session.status(&id).await?, &status, not_kept)))
}

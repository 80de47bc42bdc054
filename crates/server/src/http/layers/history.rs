//! Points of a history, gone back to and forked from.

use crate::Server;
use crate::http::door::{Door, Looks, Manages};
use crate::http::error::Answer;
use crate::http::extract::{Body, Path, Query};
use crate::http::objects;
use crate::http::wish::Wish;
use axum::Json;
use axum::http::StatusCode;
use cofferdam_core::{Error, ErrorKind, Result};
pub(crate) use cofferdam_session::objects::{ForkWish, UndoWish};
use cofferdam_session::{HistoryReport, SessionReport, Target, UndoOrder, UndoReport};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// How many points are listed unless somebody asks for others.
const LISTED: usize = 50;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(history)).routes(routes!(undo)).routes(routes!(fork))
}

/// Which points are listed.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
struct HistoryQuery {
    /// The last so many. Default: 50.
    limit: Option<usize>,
}

impl Wish for UndoWish {
    type Order = UndoOrder;

    fn order(self) -> Result<UndoOrder> {
        let usage = |what: &str, hint: &str| Err(Error::new(ErrorKind::Usage, what).hint(hint));
        let target = match (self.count, self.to) {
            (Some(_), Some(_)) => return usage("both count and to are given", "Give one of them."),
            (Some(0), None) => return usage("a count of 0 takes nothing back", "Give 1 at least."),
            (_, Some(point)) => Target::Point(point),
            (count, None) => Target::Back(count.unwrap_or(1)),
        };
        Ok(UndoOrder { target, dry_run: self.dry_run, may_lose: self.force })
    }
}

/// What the commands of a copy-on-write sandbox did, as points that `undo` goes to.
#[utoipa::path(get, path = "/v1/sandboxes/{sandbox}/history", tag = "layers",
    params(("sandbox" = String, Path, description = "Its name or id."), HistoryQuery), responses(
    (status = 200, description = "The points, oldest first.", body = objects::History),
))]
async fn history(
    door: Door<Looks>,
    Path(sandbox): Path<String>,
    Query(query): Query<HistoryQuery>,
) -> Answer<Json<HistoryReport>> {
    let session = door.session(&sandbox).await?;
    Ok(Json(session.history(query.limit.unwrap_or(LISTED)).await?))
}

/// Takes back what the last commands of a copy-on-write sandbox did to its workspace.
///
/// What is in no point yet becomes one first. All processes of the sandbox are ended, unless nothing has
/// to be changed.
#[utoipa::path(post, path = "/v1/sandboxes/{sandbox}/undo", tag = "layers",
    params(("sandbox" = String, Path, description = "Its name or id.")),
    request_body = objects::UndoWish, responses(
    (status = 200, description = "Where it stands, and what changed.", body = objects::Undone),
))]
async fn undo(
    door: Door<Manages>,
    Path(sandbox): Path<String>,
    Body(wish): Body<UndoWish>,
) -> Answer<Json<UndoReport>> {
    let order = wish.order()?;
    Ok(Json(door.session(&sandbox).await?.undo(&order).await?))
}

/// Makes another sandbox whose workspace begins as that of a copy-on-write sandbox is now, or was at a
/// point. Processes and the home directory are not copied.
#[utoipa::path(post, path = "/v1/sandboxes/{sandbox}/fork", tag = "layers",
    params(("sandbox" = String, Path, description = "Its name or id.")),
    request_body = objects::ForkWish, responses(
    (status = 201, description = "The new sandbox.", body = objects::Sandbox),
))]
async fn fork(
    door: Door<Manages>,
    Path(sandbox): Path<String>,
    Body(wish): Body<ForkWish>,
) -> Answer<(StatusCode, Json<SessionReport>)> {
    let session = door.session(&sandbox).await?;
    let forked = door.sessions.fork(session.id(), wish.point.as_deref(), &wish.name).await?;
    Ok((StatusCode::CREATED, Json(door.sessions.status(forked.id()).await?)))
}

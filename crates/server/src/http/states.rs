//! What becomes of a sandbox: paused, resumed, stopped, extended.

use super::door::{Door, Manages};
use super::error::Answer;
use super::extract::{Body, Path};
use super::objects;
use crate::Server;
use axum::Json;
pub(crate) use cofferdam_session::objects::ExtendWish;
use cofferdam_session::{KeyScope, SessionReport};
use std::time::Duration;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(pause))
        .routes(routes!(resume))
        .routes(routes!(stop))
        .routes(routes!(extend))
}

/// Stops everything in a sandbox where it stands. Pausing what is paused succeeds.
#[utoipa::path(post, path = "/v1/sandboxes/{sandbox}/pause", tag = "sandboxes",
    params(("sandbox" = String, Path, description = "Its name or id.")), responses(
    (status = 200, description = "It is paused.", body = objects::Sandbox),
))]
async fn pause(door: Door<Manages>, Path(sandbox): Path<String>) -> Answer<Json<SessionReport>> {
    let session = door.session(&sandbox).await?;
    door.sessions.pause(session.id()).await?;
    Ok(Json(door.sessions.status(session.id()).await?))
}

/// Lets everything go on. A sandbox that was lost or stopped is recovered. One that is frozen by an alarm
/// about a secret goes on for a key with the scope `approve` alone; for others it is a conflict.
#[utoipa::path(post, path = "/v1/sandboxes/{sandbox}/resume", tag = "sandboxes",
    params(("sandbox" = String, Path, description = "Its name or id.")), responses(
    (status = 200, description = "It runs.", body = objects::Sandbox),
))]
async fn resume(door: Door<Manages>, Path(sandbox): Path<String>) -> Answer<Json<SessionReport>> {
    let session = door.session(&sandbox).await?;
    match door.caller.may(KeyScope::Approve) {
        Ok(()) => door.sessions.resume(session.id()).await?,
        Err(_) => door.sessions.wake(session.id()).await?,
    }
    Ok(Json(door.sessions.status(session.id()).await?))
}

/// Ends all processes of a sandbox, and keeps its home directory, its output and its events.
#[utoipa::path(post, path = "/v1/sandboxes/{sandbox}/stop", tag = "sandboxes",
    params(("sandbox" = String, Path, description = "Its name or id.")), responses(
    (status = 200, description = "It is stopped.", body = objects::Sandbox),
))]
async fn stop(door: Door<Manages>, Path(sandbox): Path<String>) -> Answer<Json<SessionReport>> {
    let session = door.session(&sandbox).await?;
    door.sessions.stop(session.id()).await?;
    Ok(Json(door.sessions.status(session.id()).await?))
}

/// Gives a sandbox a longer lease. One without a lease is a conflict.
#[utoipa::path(post, path = "/v1/sandboxes/{sandbox}/extend", tag = "sandboxes",
    params(("sandbox" = String, Path, description = "Its name or id.")),
    request_body = objects::Extend, responses(
    (status = 200, description = "It stays longer.", body = objects::Sandbox),
))]
async fn extend(
    door: Door<Manages>,
    Path(sandbox): Path<String>,
    Body(wish): Body<ExtendWish>,
) -> Answer<Json<SessionReport>> {
    let session = door.session(&sandbox).await?;
    door.sessions.extend(session.id(), Duration::from_millis(wish.by_ms)).await?;
    Ok(Json(door.sessions.status(session.id()).await?))
}

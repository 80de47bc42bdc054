//! What a sandbox uses, and what would stop an attack from inside it.

use super::door::{Door, Looks, Runs};
use super::error::Answer;
use super::extract::Path;
use super::objects;
use crate::Server;
use axum::Json;
use cofferdam_core::ProbeReport;
use cofferdam_session::MetricsReport;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(metrics)).routes(routes!(proof))
}

/// What a sandbox uses now, as the host sees it: processor time, memory, processes, connections. Wakes
/// nothing.
#[utoipa::path(get, path = "/v1/sandboxes/{sandbox}/metrics", tag = "sandboxes",
    operation_id = "sandbox_metrics",
    params(("sandbox" = String, Path, description = "Its name or id.")), responses(
    (status = 200, description = "What it uses.", body = objects::SandboxMetrics),
))]
async fn metrics(door: Door<Looks>, Path(sandbox): Path<String>) -> Answer<Json<MetricsReport>> {
    Ok(Json(door.session(&sandbox).await?.metrics().await?))
}

/// Attacks a sandbox from inside that is made as this one is, in a workspace of its own, and says what came
/// of each attack, beside a control that shows what the same action does where it must succeed. The
/// sandbox itself is left alone. Takes some seconds; few are made at once, further ones are told to come
/// again.
#[utoipa::path(get, path = "/v1/sandboxes/{sandbox}/proof", tag = "sandboxes",
    operation_id = "sandbox_proof",
    params(("sandbox" = String, Path, description = "Its name or id.")), responses(
    (status = 200, description = "What held and what did not.", body = objects::Proof),
))]
async fn proof(door: Door<Runs>, Path(sandbox): Path<String>) -> Answer<Json<ProbeReport>> {
    Ok(Json(door.session(&sandbox).await?.prove().await?))
}

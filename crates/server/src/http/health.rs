//! Whether the server lives and can work.

use super::error::Answer;
use super::objects;
use crate::Server;
use axum::Json;
use axum::extract::State;
pub(crate) use cofferdam_session::objects::HealthReport;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(alive)).routes(routes!(ready))
}

fn ok() -> Json<HealthReport> {
    Json(HealthReport { status: "ok".to_owned() })
}

/// Whether the server lives. Asks nothing of anybody.
#[utoipa::path(get, path = "/healthz", tag = "server", security(()), responses(
    (status = 200, description = "It does.", body = objects::Health),
))]
async fn alive() -> Json<HealthReport> {
    ok()
}

/// Whether the server can work: its database answers.
#[utoipa::path(get, path = "/readyz", tag = "server", security(()), responses(
    (status = 200, description = "It can.", body = objects::Health),
))]
async fn ready(State(server): State<Server>) -> Answer<Json<HealthReport>> {
    server.0.sessions.has_keys().await?;
    Ok(ok())
}

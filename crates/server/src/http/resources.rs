//! All resources: the one list of them.

use super::error::Problem;
use super::extract::{MAX_JSON_BYTES, MAX_SANDBOX_JSON_BYTES};
use super::{
    allow, approvals, document, events, examine, execs, files, guard, head, health, layers,
    metrics, network, news, once, ports, receipts, run, sandboxes, secrets, shells, states, tools,
    unasked,
};
use crate::Server;
use crate::traces::traced;
use axum::Extension;
use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::routing::get;
use cofferdam_core::{Error, ErrorKind};
use utoipa_axum::router::OpenApiRouter;

/// The routes that the document describes. A line a resource.
pub(super) fn resources() -> OpenApiRouter<Server> {
    let with_manifests = || DefaultBodyLimit::max(MAX_SANDBOX_JSON_BYTES);
    OpenApiRouter::new()
        .merge(health::routes())
        .merge(sandboxes::routes().layer(with_manifests()))
        .merge(states::routes())
        .merge(execs::routes())
        .merge(news::routes())
        .merge(receipts::routes())
        .merge(run::routes().layer(with_manifests()))
        .merge(events::routes())
        .merge(tools::routes())
        .merge(files::routes())
        .merge(layers::routes())
        .merge(metrics::routes())
        .merge(shells::routes())
        .merge(ports::routes())
        .merge(network::routes())
        .merge(examine::routes())
        .merge(approvals::routes())
        .merge(secrets::routes())
}

/// Everything that a server answers, for a program that takes connections in by itself. As long as there
/// is no key, whoever it lets ask is the user whose server it is.
pub fn router(server: Server) -> axum::Router {
    let (routes, _) = resources().split_for_parts();
    #[cfg(feature = "mcp")]
    let routes = routes.merge(super::mcp::routes());
    let routes = routes
        .route("/openapi.json", get(document::openapi))
        .route("/docs", get(document::page))
        .fallback(async || nothing(StatusCode::NOT_FOUND, "there is nothing at this path"))
        .method_not_allowed_fallback(async || {
            let what = "this path does not take this method";
            (Extension(allow::TellsMethods), nothing(StatusCode::METHOD_NOT_ALLOWED, what))
        })
        .layer(axum::middleware::from_fn_with_state(server.clone(), once::once))
        .layer(DefaultBodyLimit::max(MAX_JSON_BYTES))
        .layer(axum::middleware::from_fn(unasked::refuse))
        .layer(axum::middleware::from_fn(metrics::note))
        .layer(axum::middleware::from_fn_with_state(server.clone(), guard::guard))
        .layer(axum::middleware::from_fn_with_state(server.clone(), ports::divert))
        .layer(axum::middleware::from_fn(head::checked));
    let routes = traced(metrics::counted(routes), &server.0.traces)
        .layer(axum::middleware::from_fn(allow::mark))
        .with_state(server);
    // Around the routing, which adds to what comes out of all layers above.
    axum::Router::new().fallback_service(routes).layer(axum::middleware::from_fn(allow::bounded))
}

fn nothing(status: StatusCode, what: &str) -> Problem {
    let kind = if status == StatusCode::NOT_FOUND { ErrorKind::NotFound } else { ErrorKind::Usage };
    Problem::with_status(
        status,
        Error::new(kind, what).hint("See /openapi.json for what there is."),
    )
}

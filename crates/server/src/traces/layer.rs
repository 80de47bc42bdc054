//! The span of each request: from its head to the end of its answer.

use super::{Fact, Traces};
use crate::holding::holding;
use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;

/// The routes with a span around each request; as they are where traces go nowhere.
pub(crate) fn traced<S: Clone + Send + Sync + 'static>(
    routes: Router<S>,
    traces: &Traces,
) -> Router<S> {
    if !traces.are_on() {
        return routes;
    }
    routes.layer(axum::middleware::from_fn_with_state(traces.clone(), trace))
}

async fn trace(State(traces): State<Traces>, mut request: Request, next: Next) -> Response {
    let method = crate::http::known_method(request.method());
    // What nothing is at has no name, for anybody could write one there.
    let route = request.extensions().get::<MatchedPath>().map(|route| route.as_str().to_owned());
    let name = route.as_ref().map_or(method.to_owned(), |route| format!("{method} {route}"));
    let span = traces.request(name, request.headers());
    span.tell(Fact::Method(method));
    if let Some(route) = &route {
        span.tell(Fact::Route(route));
    }
    request.extensions_mut().insert(span.clone());
    let response = next.run(request).await;
    span.tell(Fact::Status(response.status().as_u16()));
    holding(response, span)
}

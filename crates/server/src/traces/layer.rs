//! The span of each request: from its head to the end of its answer.

use super::{Fact, Span, Traces};
use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll};

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
    response.map(|body| Body::new(Traced { body, _span: span }))
}

/// A body whose span lasts as long as it does.
struct Traced {
    body: Body,
    _span: Span,
}

impl HttpBody for Traced {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

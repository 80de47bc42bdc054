//! The field `allow`, which tells the methods of a path to whoever asked with another one.
//!
//! Routing puts it on each answer to such a request, whoever gave it: also where the host, the key or the page was
//! refused before the path counted, and where a program inside answered.

use axum::extract::Request;
use axum::http::header;
use axum::middleware::Next;
use axum::response::Response;

/// An answer that tells the methods of its path.
#[derive(Debug, Clone, Copy)]
pub(super) struct TellsMethods;

/// An answer that does not.
#[derive(Debug, Clone, Copy)]
struct TellsNone;

/// Marks what is answered before routing adds anything.
pub(super) async fn mark(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let tells = response.extensions().get::<TellsMethods>().is_some();
    // What somebody wrote there is theirs.
    if !tells && !response.headers().contains_key(header::ALLOW) {
        response.extensions_mut().insert(TellsNone);
    }
    response
}

/// Takes out what routing added to an answer that tells no methods.
pub(super) async fn bounded(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    if response.extensions().get::<TellsNone>().is_some() {
        response.headers_mut().remove(header::ALLOW);
    }
    response
}

//! Parameters of a query that nobody asked for, at routes that have none of their own.

use super::document::document;
use super::error::Problem;
use axum::extract::{MatchedPath, Request};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use cofferdam_core::{Error, ErrorKind};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// The operations that take no parameters in a query: method and route. Those that do look at all of them
/// themselves.
static TAKE_NONE: LazyLock<BTreeSet<(String, String)>> = LazyLock::new(|| {
    let paths = document().get("paths").and_then(Value::as_object).into_iter().flatten();
    let operations = paths.flat_map(|(path, item)| {
        let item = item.as_object().into_iter().flatten();
        item.map(move |(method, operation)| (method, path, operation))
    });
    let takes_none = operations.filter(|(_, _, operation)| {
        let parameters = operation.get("parameters").and_then(Value::as_array);
        let is_in_query = |parameter: &Value| parameter.get("in").is_some_and(|at| at == "query");
        !parameters.into_iter().flatten().any(is_in_query)
    });
    takes_none.map(|(method, path, _)| (method.to_uppercase(), path.clone())).collect()
});

/// Refuses a request with parameters where there are none: somebody means something by them.
pub(super) async fn refuse(request: Request, next: Next) -> Response {
    match unasked(&request) {
        Some(name) => {
            let what = format!("this request takes no parameter {name:?}");
            let error = Error::new(ErrorKind::Usage, what)
                .hint("See /openapi.json for what this request takes.");
            Problem::from(error).into_response()
        }
        None => next.run(request).await,
    }
}

/// The first parameter of a request whose route has none.
fn unasked(request: &Request) -> Option<String> {
    let query = request.uri().query().filter(|query| !query.is_empty())?;
    let route = request.extensions().get::<MatchedPath>()?.as_str().to_owned();
    // What is asked for its head alone is the same operation.
    let method = match *request.method() {
        Method::HEAD => Method::GET.to_string(),
        ref other => other.to_string(),
    };
    let first = query.split('&').next()?.split('=').next()?;
    // As it was written: nobody needs it decoded.
    let shown: String = first.chars().take(64).collect();
    TAKE_NONE.contains(&(method, route)).then_some(shown)
}

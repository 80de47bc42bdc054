//! Problems that come with what was found out.

use super::error::{Problem, ProblemReport};
use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use cofferdam_core::Error;
pub(crate) use cofferdam_session::objects::ProblemWith;
use serde::Serialize;

/// A conflict, with what was found out.
pub(crate) fn conflict<T: Serialize>(error: Error, result: T) -> Response {
    let problem = Problem::with_status(StatusCode::CONFLICT, error);
    let ProblemReport { about, title, status, kind, message, hint, retryable } = problem.report();
    let result = Some(result);
    let document = ProblemWith { about, title, status, kind, message, hint, retryable, result };
    let mut response = (StatusCode::CONFLICT, Json(document)).into_response();
    let kind = HeaderValue::from_static("application/problem+json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

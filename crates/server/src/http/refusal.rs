//! Problems that come with what was found out.

use super::error::{Problem, ProblemReport};
use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use cofferdam_core::Error;
use schemars::JsonSchema;
use serde::Serialize;

/// An error as a problem document, with what was found out. Format 1.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ProblemWith{T}")]
pub(crate) struct ProblemWith<T> {
    /// What the kind is described by; `about:blank`, for the kind says all of it.
    #[serde(rename = "type")]
    about: String,
    /// The kind in words.
    title: String,
    /// The status of the answer.
    status: u16,
    /// The kind's stable name.
    kind: String,
    /// What happened.
    message: String,
    /// What to do.
    hint: Option<String>,
    /// Whether the same request may succeed later without any change.
    retryable: bool,
    /// What was found out, and what was done.
    result: T,
}

/// A conflict, with what was found out.
pub(crate) fn conflict<T: Serialize>(error: Error, result: T) -> Response {
    let problem = Problem::with_status(StatusCode::CONFLICT, error);
    let ProblemReport { about, title, status, kind, message, hint, retryable } = problem.report();
    let document = ProblemWith { about, title, status, kind, message, hint, retryable, result };
    let mut response = (StatusCode::CONFLICT, Json(document)).into_response();
    let kind = HeaderValue::from_static("application/problem+json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

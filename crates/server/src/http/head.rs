//! The length of the head of a request.
//!
//! Whoever reads a connection takes more than that at once, so that what came is measured again.

use super::error::Problem;
use crate::serve::MAX_HEAD_BYTES;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use cofferdam_core::{Error, ErrorKind};

/// Refuses a request whose head is too long.
pub(super) async fn bounded(request: Request, next: Next) -> Response {
    if length(&request) <= MAX_HEAD_BYTES {
        return next.run(request).await;
    }
    let what = format!("the head of the request has more than {MAX_HEAD_BYTES} bytes");
    let error = Error::new(ErrorKind::TooLarge, what).hint("Send less in its path and headers.");
    let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
    let mut response = Problem::with_status(status, error).into_response();
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// How many bytes a head has as it is written: the line of the request, a line for each header, an empty one.
fn length(request: &Request) -> usize {
    let method = request.method().as_str().len();
    let line = method + request.uri().to_string().len() + "  HTTP/1.1\r\n".len();
    line + fields_length(request.headers()) + "\r\n".len()
}

/// How many bytes the fields of a head have, with their ends of lines.
pub(super) fn fields_length(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len()).sum()
}

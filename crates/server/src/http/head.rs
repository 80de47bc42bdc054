//! The head of a request: its length, and how it says that its body comes.
//!
//! Whoever reads a connection takes more than the longest head at once, so that what came is measured again; and takes a
//! body that is packed on its way for a plain one.

use super::error::Problem;
use crate::serve::MAX_HEAD_BYTES;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use cofferdam_core::{Error, ErrorKind};

/// Refuses a request whose head is too long, or whose body comes in a coding that nobody here undoes.
pub(super) async fn checked(request: Request, next: Next) -> Response {
    let Err(problem) = check(&request) else { return next.run(request).await };
    let mut response = problem.into_response();
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

fn check(request: &Request) -> Result<(), Problem> {
    if length(request) > MAX_HEAD_BYTES {
        let what = format!("the head of the request has more than {MAX_HEAD_BYTES} bytes");
        let error =
            Error::new(ErrorKind::TooLarge, what).hint("Send less in its path and headers.");
        return Err(Problem::with_status(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, error));
    }
    let mut codings = request.headers().get_all(header::TRANSFER_ENCODING).iter();
    if codings.any(|coding| !coding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked")) {
        let what = "a transfer coding other than chunked is not understood";
        let error = Error::new(ErrorKind::Unsupported, what)
            .hint("Send the body as it is, with Content-Length or in chunks.");
        return Err(Problem::with_status(StatusCode::NOT_IMPLEMENTED, error));
    }
    Ok(())
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

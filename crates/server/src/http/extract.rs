//! Parts of a request. What is wrong with one is told as a problem.

use super::error::Problem;
use super::keyed;
use axum::body::Bytes;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use cofferdam_core::{Error, ErrorKind};
use serde::de::DeserializeOwned;
use std::time::Duration;

/// The longest JSON body, in bytes.
pub(crate) const MAX_JSON_BYTES: usize = 1 << 20;
/// The same of a sandbox or a run, which a manifest may come with.
pub(crate) const MAX_SANDBOX_JSON_BYTES: usize = 4 << 20;
/// How long a caller may take to send one.
pub(crate) const JSON_BODY_TIME: Duration = Duration::from_secs(30);

/// A body in JSON.
#[derive(Debug)]
pub(crate) struct Body<T>(pub(crate) T);

/// What stands after the `?`.
#[derive(Debug)]
pub(crate) struct Query<T>(pub(crate) T);

/// The variable parts of the path.
#[derive(Debug)]
pub(crate) struct Path<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        if !is_json(request.headers()) {
            let error = Error::new(ErrorKind::Usage, "the body is not marked as JSON")
                .hint("Send it with content-type: application/json.");
            return Err(Problem::with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE, error));
        }
        let Raw(bytes) = Raw::from_request(request, state).await?;
        // A list would be taken for an object whose fields are in order.
        if bytes.trim_ascii_start().first().is_some_and(|first| *first != b'{') {
            return Err(wrong("the body is not an object"));
        }
        let read = axum::Json::<T>::from_bytes(&bytes);
        let axum::Json(value) = read.map_err(|rejection| wrong(&rejection.body_text()))?;
        Ok(Self(value))
    }
}

/// Whether a body is said to be JSON. What a page sends without asking first is not.
fn is_json(headers: &HeaderMap) -> bool {
    let named = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = named.and_then(|named| named.split(';').next()).unwrap_or_default();
    kind.trim().eq_ignore_ascii_case("application/json")
}

fn wrong(text: &str) -> Problem {
    Error::new(ErrorKind::Usage, said(text))
        .hint("See /openapi.json for what this request takes.")
        .into()
}

/// A body as it is.
#[derive(Debug)]
pub(crate) struct Raw(pub(crate) Bytes);

impl<S: Send + Sync> FromRequest<S> for Raw {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        match tokio::time::timeout(JSON_BODY_TIME, Bytes::from_request(request, state)).await {
            Ok(Ok(bytes)) => Ok(Self(bytes)),
            Ok(Err(rejection)) if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE => {
                Err(too_long().into())
            }
            Ok(Err(rejection)) if keyed::revoked(&rejection).is_some() => Err(unkeyed()),
            Ok(Err(rejection)) => Err(Error::new(ErrorKind::Usage, said(&rejection.body_text()))
                .hint("Send the whole body, as long as its head says.")
                .into()),
            Err(_) => Err(too_slow()),
        }
    }
}

/// The refusal of a body whose key was revoked while it came.
pub(super) fn unkeyed() -> Problem {
    Problem::with_status(StatusCode::UNAUTHORIZED, keyed::no_key())
}

fn too_long() -> Error {
    let what = format!(
        "the body is longer than {MAX_JSON_BYTES} bytes, or {MAX_SANDBOX_JSON_BYTES} where a sandbox is made"
    );
    Error::new(ErrorKind::TooLarge, what).hint("Send less at once.")
}

pub(super) fn too_slow() -> Problem {
    let what = format!("the body took longer than {} s", JSON_BODY_TIME.as_secs());
    Problem::with_status(StatusCode::REQUEST_TIMEOUT, Error::new(ErrorKind::TimedOut, what))
}

/// How axum 0.8 begins what it says of a value that does not fit, and how that is told here.
const BEGINNINGS: [(&str, &str); 2] = [
    ("Failed to deserialize the JSON body into the target type: ", "the body does not fit: "),
    ("Failed to deserialize query string: ", "the query does not fit: "),
];

/// One line of what a parser says.
fn said(text: &str) -> String {
    let begun =
        BEGINNINGS.iter().find_map(|(theirs, ours)| Some((ours, text.strip_prefix(theirs)?)));
    let text = begun.map_or_else(|| text.to_owned(), |(ours, rest)| format!("{ours}{rest}"));
    let mut text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let most = (0..=400).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    text.truncate(most.min(text.len()));
    text
}

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        // The parser would put a mark in the place of what is no text, and mean another name.
        if !parts.uri.query().is_none_or(is_text) {
            return Err(Error::new(ErrorKind::Usage, "the query is not UTF-8")
                .hint("Give a path that is not UTF-8 in base64, as path_base64.")
                .into());
        }
        let read = axum::extract::Query::<T>::from_request_parts(parts, state).await;
        let axum::extract::Query(value) = read.map_err(|rejection: QueryRejection| {
            Error::new(ErrorKind::Usage, said(&rejection.body_text()))
                .hint("See /openapi.json for what this request takes.")
        })?;
        Ok(Self(value))
    }
}

/// Whether what is behind the `%` of a query is UTF-8.
fn is_text(query: &str) -> bool {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (mut bytes, mut rest) = (Vec::with_capacity(query.len()), query.as_bytes());
    while let [first, after @ ..] = rest {
        let coded = match rest {
            [b'%', high, low, ..] => digit(*high).zip(digit(*low)),
            _ => None,
        };
        bytes.push(coded.map_or(*first, |(high, low)| high << 4 | low));
        rest = coded.and_then(|_| rest.get(3..)).unwrap_or(after);
    }
    std::str::from_utf8(&bytes).is_ok()
}

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let read = axum::extract::Path::<T>::from_request_parts(parts, state).await;
        let axum::extract::Path(value) = read.map_err(|rejection: PathRejection| {
            Error::new(ErrorKind::Usage, said(&rejection.body_text()))
                .hint("See /openapi.json for what stands in this path, and write it in UTF-8.")
        })?;
        Ok(Self(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_parser_says_is_one_short_line() {
        assert_eq!(said("a\nb\u{1b}[0m"), "a b [0m");
        assert!(said(&"é".repeat(1000)).len() <= 400);
    }
}

//! Writing files from the bodies of requests.

use crate::Server;
use crate::http::door::{Door, WritesFiles};
use crate::http::error::{Answer, Problem};
use crate::http::extract::{Path, Query};
use crate::http::stream::Upload;
use crate::http::{digest, objects, place};
use axum::Json;
use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use cofferdam_core::files::{Append, ByteString, List, Only, Write, Written};
use cofferdam_core::{Error, ErrorKind, Files, Result};
use cofferdam_session::Session;
use cofferdam_session::objects::FileDone;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The most bytes of a file in the body of one request: 64 GiB.
pub(crate) const MAX_WRITTEN_BYTES: u64 = 64 << 30;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(write)).routes(routes!(append))
}

/// Where a file is written, and how.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
struct WriteQuery {
    /// The path in the workspace.
    path: Option<String>,
    /// The path in base64, where it is not UTF-8.
    path_base64: Option<String>,
    /// The permissions, in octal. Default: those that it had, or 644.
    mode: Option<String>,
    /// Whether directories above it are made. Unless this is false.
    parents: Option<bool>,
}

/// What is added to.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
struct AppendQuery {
    /// The path in the workspace.
    path: Option<String>,
    /// The path in base64, where it is not UTF-8.
    path_base64: Option<String>,
    /// The permissions of a file that is made, in octal. Default: 644.
    mode: Option<String>,
}

/// Writes a file, whole or not at all.
///
/// `If-Match` with an ETag writes only where the file has that SHA-256, `If-Match: *` only where it is
/// there, `If-None-Match: *` only where it is not. With a Content-Digest (or Repr-Digest) of sha-256 the
/// bytes are compared before the file is there. A body that breaks off leaves everything as it was.
#[utoipa::path(put, path = "/v1/sandboxes/{sandbox}/files", tag = "files",
    params(("sandbox" = String, Path, description = "Its name or id."), WriteQuery,
        ("if-match" = Option<String>, Header, description = "Only if it has this ETag, or 412."),
        ("if-none-match" = Option<String>, Header, description = "`*`: only if nothing is there."),
        ("content-digest" = Option<String>, Header, description = "`sha-256=:BASE64:`, which the \
         body must have.")),
    request_body(content = inline(objects::Bytes), content_type = "application/octet-stream"),
    responses(
    (status = 200, description = "It is replaced.", body = objects::FileDone),
    (status = 201, description = "It is made.", body = objects::FileDone),
))]
async fn write(
    door: Door<WritesFiles>,
    Path(sandbox): Path<String>,
    Query(query): Query<WriteQuery>,
    headers: HeaderMap,
    body: Body,
) -> Answer<Response> {
    let path = place::required("path", query.path.as_deref(), query.path_base64.as_deref())?;
    let mode = query.mode.as_deref().map(place::mode).transpose()?;
    let only = digest::only(&headers)?;
    let mut upload = upload(&headers, body)?;
    let session = door.session(&sandbox).await?;
    let Some(only) = only else { return Err(unmet()) };
    let files = session.files();
    if query.parents == Some(false) {
        check_parent(&files, &path).await?;
    }
    let order = Write { path, only, mode };
    match files.write_from(&order, &mut upload).await {
        Ok(written) => Ok(done(&session, &order.path, &written)),
        Err(error) if order.only != Only::Always && is_unmet(&error) => {
            Err(Problem::with_status(StatusCode::PRECONDITION_FAILED, error))
        }
        Err(error) => Err(upload.problem(error)),
    }
}

/// Adds the body at the end of a file, which is made where it is missing. One that breaks off may have been
/// added in part.
#[utoipa::path(post, path = "/v1/sandboxes/{sandbox}/files/append", tag = "files",
    params(("sandbox" = String, Path, description = "Its name or id."), AppendQuery),
    request_body(content = inline(objects::Bytes), content_type = "application/octet-stream"),
    responses(
    (status = 200, description = "It is added.", body = objects::FileDone),
    (status = 201, description = "The file is made.", body = objects::FileDone),
))]
async fn append(
    door: Door<WritesFiles>,
    Path(sandbox): Path<String>,
    Query(query): Query<AppendQuery>,
    headers: HeaderMap,
    body: Body,
) -> Answer<Response> {
    let path = place::required("path", query.path.as_deref(), query.path_base64.as_deref())?;
    let mode = query.mode.as_deref().map(place::mode).transpose()?;
    if digest::said(&headers)?.is_some() {
        let what = "what is added cannot be compared before";
        return Err(Error::new(ErrorKind::Usage, what).hint("Write the whole file.").into());
    }
    let mut upload = upload(&headers, body)?;
    let session = door.session(&sandbox).await?;
    let order = Append { path, mode };
    match session.files().append_from(&order, &mut upload).await {
        Ok(written) => {
            let done = FileDone::written(&session, order.path.as_os_str(), &written);
            Ok((status(&written), Json(done)).into_response())
        }
        Err(error) => Err(upload.problem(error)),
    }
}

/// The body of a request, as it is read.
fn upload(headers: &HeaderMap, body: Body) -> Answer<Upload> {
    // The body would be taken for the whole file (RFC 9110, 14.5).
    if headers.contains_key(header::CONTENT_RANGE) {
        let what = "a part of a file cannot be written in its place";
        return Err(Error::new(ErrorKind::Usage, what)
            .hint("Send the whole file without Content-Range, or add to its end.")
            .into());
    }
    if let Some(coding) =
        headers.get_all(header::CONTENT_ENCODING).iter().find(|c| *c != "identity")
    {
        let what = format!("the body is packed: {coding:?}");
        let error = Error::new(ErrorKind::Usage, what)
            .hint("Send the bytes as they are, without Content-Encoding.");
        return Err(Problem::with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE, error));
    }
    let length = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    let length: Option<u64> = length.and_then(|text| text.parse().ok());
    if length.is_some_and(|length| length > MAX_WRITTEN_BYTES) {
        let what = format!("the body has more than {MAX_WRITTEN_BYTES} bytes");
        return Err(Error::new(ErrorKind::TooLarge, what).into());
    }
    Ok(Upload::new(body, MAX_WRITTEN_BYTES, digest::said(headers)?))
}

/// Refuses to write where an ETag is wanted that no file has.
fn unmet() -> Problem {
    let error = Error::new(ErrorKind::Conflict, "no file has an ETag as If-Match says")
        .hint("Read the file for its ETag, or leave the header out.");
    Problem::with_status(StatusCode::PRECONDITION_FAILED, error)
}

/// Whether what had to be so is not.
fn is_unmet(error: &Error) -> bool {
    matches!(error.kind, ErrorKind::Conflict | ErrorKind::NotFound)
}

/// Refuses a path whose directory is not there.
async fn check_parent(files: &Files, path: &ByteString) -> Result<()> {
    let path = path.as_bytes();
    let above = path.iter().rposition(|byte| *byte == b'/').and_then(|at| path.get(..at));
    let Some(above) = above.filter(|above| !above.is_empty()) else { return Ok(()) };
    let list = List { path: above.to_vec().into(), depth: 1, after: None, limit: 1 };
    files.list(&list).await.map(drop)
}

fn status(written: &Written) -> StatusCode {
    if written.created { StatusCode::CREATED } else { StatusCode::OK }
}

fn done(session: &Session, path: &ByteString, written: &Written) -> Response {
    let done = FileDone::written(session, path.as_os_str(), written);
    let mut response = (status(written), Json(done)).into_response();
    digest::tell(response.headers_mut(), &written.sha256);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_file_that_says_to_be_too_long_is_refused_before_it_comes() {
        let of = |length: u64| {
            let headers = [(header::CONTENT_LENGTH, length.into())].into_iter().collect();
            upload(&headers, Body::empty()).map(drop)
        };
        assert!(of(MAX_WRITTEN_BYTES).is_ok());
        assert_eq!(of(MAX_WRITTEN_BYTES + 1).unwrap_err().report().status, 413);
    }
}

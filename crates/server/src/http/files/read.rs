//! Reading files: raw, a part as an object, lines of a text, several at once.

use crate::Server;
use crate::http::door::{Door, ReadsFiles};
use crate::http::error::{Answer, Problem};
use crate::http::extract::{Body, Path, Query};
use crate::http::guard::Counted;
use crate::http::range::{Wanted, wanted};
use crate::http::{digest, objects, place, stream};
use axum::Json;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use cofferdam_core::files::{HasRead, Read};
use cofferdam_core::{Error, ErrorKind, Files, Result, hexadecimal};
use cofferdam_session::MAX_TOLD_BYTES;
pub(crate) use cofferdam_session::objects::ReadManyWish;
use cofferdam_session::objects::{FileContent, FileContents, FileWindow};
use cofferdam_session::window::{DEFAULT_WINDOW_LINES, WindowOrder};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::AsyncWrite;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// How much of a file is read at first, before anything is answered: a smaller one is read at once, and
/// nothing can change between its hash and its bytes.
const FIRST_BYTES: u64 = 256 << 10;
/// Permissions of a file.
const MODE: HeaderName = HeaderName::from_static("cofferdam-mode");
/// When a file was changed last, in milliseconds since 1970.
const MODIFIED: HeaderName = HeaderName::from_static("cofferdam-modified-ms");

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(read))
        .routes(routes!(content))
        .routes(routes!(window))
        .routes(routes!(read_many))
}

/// Which file is read raw.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
struct ReadQuery {
    /// The path in the workspace.
    path: Option<String>,
    /// The path in base64, where it is not UTF-8.
    path_base64: Option<String>,
    /// Whether the SHA-256 is told, for which all of the file is read first. Unless this is false.
    hash: Option<bool>,
}

/// Which part of a file is read as an object.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
struct ContentQuery {
    /// The path in the workspace.
    path: Option<String>,
    /// The path in base64, where it is not UTF-8.
    path_base64: Option<String>,
    /// Begins at this byte.
    offset: u64,
    /// At most so many bytes; all of at most 16 MiB without it.
    length: Option<u64>,
}

/// Which lines of a text are read.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
struct WindowQuery {
    /// The path in the workspace.
    path: Option<String>,
    /// The path in base64, where it is not UTF-8.
    path_base64: Option<String>,
    /// How many lines come before.
    offset: usize,
    /// How many lines at most. Default: 2000.
    #[param(minimum = 1)]
    limit: Option<usize>,
}

/// Reads a file, byte for byte.
///
/// The SHA-256 of the whole file is the ETag and the Repr-Digest. One range can be asked for. A file that
/// changes while it is sent breaks the answer off. What is in it is never shown by a browser.
#[utoipa::path(get, path = "/v1/sandboxes/{sandbox}/files", tag = "files",
    params(("sandbox" = String, Path, description = "Its name or id."), ReadQuery,
        ("range" = Option<String>, Header, description = "A part of it, as in `bytes=0-99`."),
        ("if-range" = Option<String>, Header, description = "The part only if it has this ETag."),
        ("if-match" = Option<String>, Header, description = "Only if it has this ETag, or 412."),
        ("if-none-match" = Option<String>, Header, description = "Only if it has not, or 304.")),
    responses(
    (status = 200, description = "The file.", content_type = "application/octet-stream", body = inline(objects::Bytes)),
    (status = 206, description = "The part that was asked for.", content_type = "application/octet-stream", body = inline(objects::Bytes)),
    (status = 304, description = "It is as If-None-Match says."),
))]
async fn read(
    door: Door<ReadsFiles>,
    Path(sandbox): Path<String>,
    Query(query): Query<ReadQuery>,
    headers: HeaderMap,
) -> Answer<Response> {
    let path = place::required("path", query.path.as_deref(), query.path_base64.as_deref())?;
    let only = digest::listed(&headers, &header::IF_MATCH)?;
    let unless = digest::listed(&headers, &header::IF_NONE_MATCH)?;
    let files = door.session(&sandbox).await?.files();
    let count = || door.caller.stream(&door.server);
    let conditions = [header::IF_MATCH, header::IF_NONE_MATCH, header::IF_RANGE];
    let hash = query.hash.unwrap_or(true) || conditions.iter().any(|c| headers.contains_key(c));
    let order = Read { path, length: Some(FIRST_BYTES), hash, ..Read::default() };
    let mut first = Vec::new();
    let about = files.read_to(&order, &mut first).await?;
    if let Some(sha256) = &about.sha256 {
        if only.is_some_and(|tags| !tags.names(sha256)) {
            let error = Error::new(ErrorKind::Conflict, "the file is not as If-Match says")
                .hint("Read it without that header.");
            return Err(Problem::with_status(StatusCode::PRECONDITION_FAILED, error));
        }
        if unless.is_some_and(|tags| tags.names_weakly(sha256)) {
            let mut response = StatusCode::NOT_MODIFIED.into_response();
            digest::tell(response.headers_mut(), sha256);
            return Ok(response);
        }
        if !digest::is_in_range_of(&headers, sha256) {
            return send(count, (files, order), first, about, Wanted::Whole);
        }
    }
    match wanted(&headers, about.size) {
        Wanted::Outside => Ok(outside(about.size)),
        part @ (Wanted::Whole | Wanted::Part(..)) => {
            send(count, (files, order), first, about, part)
        }
    }
}

fn outside(size: u64) -> Response {
    let what = format!("the range lies outside of the {size} bytes of the file");
    let error = Error::new(ErrorKind::Usage, what).hint("Ask for bytes that it has.");
    let problem = Problem::with_status(StatusCode::RANGE_NOT_SATISFIABLE, error);
    let mut response = problem.into_response();
    if let Ok(value) = HeaderValue::try_from(format!("bytes */{size}")) {
        response.headers_mut().insert(header::CONTENT_RANGE, value);
    }
    response
}

/// Sends a file or a part of it, of which the beginning was read already. What is not sent at once is a
/// stream of its caller.
fn send(
    count: impl FnOnce() -> Answer<Counted>,
    (files, order): (Files, Read),
    mut first: Vec<u8>,
    about: HasRead,
    wanted: Wanted,
) -> Answer<Response> {
    let size = about.size;
    let (from, to) = match wanted {
        Wanted::Part(from, to) => (from, to),
        Wanted::Whole | Wanted::Outside => (0, size),
    };
    let known = first.len() as u64;
    let at = |offset: u64| usize::try_from(offset.min(known)).unwrap_or(usize::MAX);
    first.truncate(at(to));
    first.drain(..at(from));
    let rest = Rest { files, order, about: about.clone(), from: from.max(known), to, whole: None };
    let is_rest = rest.from < to;
    let body = if is_rest {
        let hashed = (from == 0 && to == size).then(|| Sha256::new_with_prefix(&first));
        let rest = Rest { whole: hashed, ..rest };
        stream::answered(count()?, first, move |out| rest.send(out))
    } else {
        first.into()
    };
    let mut response = (raw(&about, to - from), body).into_response();
    if let Wanted::Part(..) = wanted {
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
        if let Ok(value) = HeaderValue::try_from(format!("bytes {from}-{}/{size}", to - 1)) {
            response.headers_mut().insert(header::CONTENT_RANGE, value);
        }
    }
    Ok(response)
}

/// The headers of a file.
fn raw(about: &HasRead, length: u64) -> HeaderMap {
    let mut headers = untrusted();
    headers.insert(header::CONTENT_LENGTH, length.into());
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(MODIFIED, about.modified_ms.into());
    if let Ok(mode) = HeaderValue::try_from(format!("{:03o}", about.mode)) {
        headers.insert(MODE, mode);
    }
    if let Some(sha256) = &about.sha256 {
        digest::tell(&mut headers, sha256);
    }
    headers
}

/// HOSTILE: a browser that is led here is not to show what comes from inside as a page of this server.
pub(super) fn untrusted() -> HeaderMap {
    [
        (header::CONTENT_TYPE, "application/octet-stream"),
        (header::CONTENT_DISPOSITION, "attachment"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CONTENT_SECURITY_POLICY, "sandbox; default-src 'none'"),
        (header::CACHE_CONTROL, "no-store"),
    ]
    .map(|(name, value)| (name, HeaderValue::from_static(value)))
    .into_iter()
    .collect()
}

/// What is left of a file to be sent.
struct Rest {
    files: Files,
    order: Read,
    about: HasRead,
    from: u64,
    to: u64,
    /// The hash of what is before, where all of it is sent.
    whole: Option<Sha256>,
}

impl Rest {
    async fn send(self, out: stream::Outgoing) -> Result<()> {
        let Self { files, order, about, from, to, whole } = self;
        let mut sink = Hashing { out, hash: whole };
        let rest = Read { offset: from, length: Some(to - from), hash: false, ..order.clone() };
        let read = files.read_to(&rest, &mut sink).await?;
        let changed = || {
            Error::new(ErrorKind::Conflict, format!("{:?} changed while it was read", order.path))
        };
        let now = match (sink.hash, &about.sha256) {
            (Some(hash), Some(sha256)) => {
                return match hexadecimal(hash.finalize()) == *sha256 {
                    true => Ok(()),
                    false => Err(changed()),
                };
            }
            (_, _) => {
                let look = Read { length: Some(0), hash: false, ..order.clone() };
                files.read_to(&look, &mut tokio::io::sink()).await?
            }
        };
        let is_same = now.size == about.size && now.modified_ms == about.modified_ms;
        if is_same && read.bytes == to - from { Ok(()) } else { Err(changed()) }
    }
}

/// Bytes that are passed on, and their hash if it is wanted.
struct Hashing {
    out: stream::Outgoing,
    hash: Option<Sha256>,
}

impl AsyncWrite for Hashing {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let count = ready!(Pin::new(&mut self.out).poll_write(context, bytes))?;
        if let Some(hash) = &mut self.hash {
            hash.update(bytes.get(..count).unwrap_or_default());
        }
        Poll::Ready(Ok(count))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.out).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.out).poll_shutdown(context)
    }
}

/// Reads a file or a part of it as an object.
#[utoipa::path(get, path = "/v1/sandboxes/{sandbox}/files/content", tag = "files",
    params(("sandbox" = String, Path, description = "Its name or id."), ContentQuery), responses(
    (status = 200, description = "What was read.", body = objects::FileContent),
))]
async fn content(
    door: Door<ReadsFiles>,
    Path(sandbox): Path<String>,
    Query(query): Query<ContentQuery>,
) -> Answer<Json<FileContent>> {
    let path = place::required("path", query.path.as_deref(), query.path_base64.as_deref())?;
    let session = door.session(&sandbox).await?;
    let order = Read {
        path: path.clone(),
        offset: query.offset,
        length: query.length,
        hash: true,
        max_bytes: Some(MAX_TOLD_BYTES),
    };
    let mut bytes = Vec::new();
    let read = session.files().read_to(&order, &mut bytes).await?;
    Ok(Json(FileContent::new(&session, path.as_os_str(), query.offset, &read, bytes)))
}

/// Reads lines of a text, with their numbers and where to go on: at most 50 KiB.
#[utoipa::path(get, path = "/v1/sandboxes/{sandbox}/files/window", tag = "files",
    params(("sandbox" = String, Path, description = "Its name or id."), WindowQuery), responses(
    (status = 200, description = "The lines.", body = objects::FileWindow),
))]
async fn window(
    door: Door<ReadsFiles>,
    Path(sandbox): Path<String>,
    Query(query): Query<WindowQuery>,
) -> Answer<Json<FileWindow>> {
    let path = place::required("path", query.path.as_deref(), query.path_base64.as_deref())?;
    let session = door.session(&sandbox).await?;
    let limit = query.limit.unwrap_or(DEFAULT_WINDOW_LINES);
    let order = WindowOrder { offset: query.offset, limit };
    let window = session.read_window(path.as_os_str(), order).await?;
    Ok(Json(FileWindow { session: session.id().to_string(), path: path.to_string(), window }))
}

/// Reads several files at once: each comes with its content or an error.
#[utoipa::path(post, path = "/v1/sandboxes/{sandbox}/files/read-many", tag = "files",
    params(("sandbox" = String, Path, description = "Its name or id.")),
    request_body = objects::ReadManyWish, responses(
    (status = 200, description = "Each of them.", body = objects::FileContents),
))]
async fn read_many(
    door: Door<ReadsFiles>,
    Path(sandbox): Path<String>,
    Body(wish): Body<ReadManyWish>,
) -> Answer<Json<FileContents>> {
    let paths = place::several("paths", &wish.paths, &wish.paths_base64)?;
    let session = door.session(&sandbox).await?;
    Ok(Json(session.read_many(&paths, wish.max_bytes).await?))
}

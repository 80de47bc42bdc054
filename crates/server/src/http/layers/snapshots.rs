//! Points that somebody named, which stay until somebody removes them.

use crate::Server;
use crate::http::door::{Door, Looks, Manages, ReadsFiles};
use crate::http::error::Answer;
use crate::http::extract::{Body, Path, Query};
use crate::http::stream::{Upload, answered};
use crate::http::{digest, objects, pipe};
use axum::Json;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cofferdam_archive::unpacked;
use cofferdam_core::{Error, ErrorKind, Result};
use cofferdam_session::objects::SnapshotList;
pub(crate) use cofferdam_session::objects::SnapshotWish;
use cofferdam_session::{
    MAX_EXPORTED_BYTES, MAX_EXPORTED_LIST_BYTES, SnapshotImported, SnapshotReport, UndoReport,
    check_export,
};
use serde::Deserialize;
use std::fs::File;
use std::io::{self, BufReader, Seek};
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The most bytes of an exported snapshot that comes in: all contents and the list, and what tells one
/// piece from another.
pub(crate) const MAX_SNAPSHOT_BYTES: u64 = MAX_EXPORTED_BYTES + MAX_EXPORTED_LIST_BYTES + (1 << 30);
/// The number of the snapshot that an answer holds.
const SNAPSHOT: HeaderName = HeaderName::from_static("cofferdam-snapshot");
/// What is in the file and what was left out, as an object in base64.
const EXPORTED: HeaderName = HeaderName::from_static("cofferdam-exported");

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(create, list))
        .routes(routes!(remove))
        .routes(routes!(restore))
        .routes(routes!(export))
        .routes(routes!(import))
}

/// What an imported snapshot is called.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
struct ImportQuery {
    /// What it is called, in place of the label that it had.
    label: Option<String>,
}

/// Keeps what a copy-on-write sandbox changed in its workspace as it is now.
#[utoipa::path(post, path = "/v1/sandboxes/{sandbox}/snapshots", tag = "snapshots",
    params(("sandbox" = String, Path, description = "Its name or id.")),
    request_body = objects::SnapshotWish, responses(
    (status = 201, description = "It is taken.", body = objects::Snapshot),
))]
async fn create(
    door: Door<Manages>,
    Path(sandbox): Path<String>,
    Body(wish): Body<SnapshotWish>,
) -> Answer<(StatusCode, Json<SnapshotReport>)> {
    let session = door.session(&sandbox).await?;
    let taken = door.sessions.snapshot(session.id(), wish.label).await?;
    Ok((StatusCode::CREATED, Json(taken)))
}

/// The snapshots of a sandbox, oldest first: 64 at most.
#[utoipa::path(get, path = "/v1/sandboxes/{sandbox}/snapshots", tag = "snapshots",
    params(("sandbox" = String, Path, description = "Its name or id.")), responses(
    (status = 200, description = "All of them.", body = objects::SnapshotList),
))]
async fn list(door: Door<Looks>, Path(sandbox): Path<String>) -> Answer<Json<SnapshotList>> {
    let session = door.session(&sandbox).await?;
    let snapshots = door.sessions.snapshots(session.id()).await?;
    Ok(Json(SnapshotList { snapshots }))
}

/// Removes a snapshot.
#[utoipa::path(delete, path = "/v1/sandboxes/{sandbox}/snapshots/{snapshot}", tag = "snapshots",
    params(("sandbox" = String, Path, description = "Its name or id."),
        ("snapshot" = String, Path, description = "Its number or label.")), responses(
    (status = 200, description = "What is gone.", body = objects::Snapshot),
))]
async fn remove(
    door: Door<Manages>,
    Path((sandbox, snapshot)): Path<(String, String)>,
) -> Answer<Json<SnapshotReport>> {
    let session = door.session(&sandbox).await?;
    Ok(Json(door.sessions.remove_snapshot(session.id(), &snapshot).await?))
}

/// Puts the workspace of a sandbox back to a snapshot, or to any point by its number. All its processes are
/// ended.
#[utoipa::path(post, path = "/v1/sandboxes/{sandbox}/snapshots/{snapshot}/restore", tag = "snapshots",
    params(("sandbox" = String, Path, description = "Its name or id."),
        ("snapshot" = String, Path, description = "Its number or label.")), responses(
    (status = 200, description = "Where it stands, and what changed.", body = objects::Undone),
))]
async fn restore(
    door: Door<Manages>,
    Path((sandbox, snapshot)): Path<(String, String)>,
) -> Answer<Json<UndoReport>> {
    let session = door.session(&sandbox).await?;
    Ok(Json(door.sessions.restore(session.id(), &snapshot).await?))
}

/// A snapshot as one file, for another sandbox, owner or machine. One that breaks off is none.
#[utoipa::path(get, path = "/v1/sandboxes/{sandbox}/snapshots/{snapshot}/export", tag = "snapshots",
    params(("sandbox" = String, Path, description = "Its name or id."),
        ("snapshot" = String, Path, description = "Its number or label.")), responses(
    (status = 200, description = "The file.", content_type = "application/octet-stream", body = inline(objects::Bytes)),
))]
async fn export(
    door: Door<ReadsFiles>,
    Path((sandbox, snapshot)): Path<(String, String)>,
) -> Answer<Response> {
    let session = door.session(&sandbox).await?;
    let counted = door.caller.stream(&door.server)?;
    let export = door.sessions.export_snapshot(session.id(), &snapshot).await?;
    let report = export.report();
    let number = report.snapshot;
    let body = answered(counted, Vec::new(), move |out| {
        pipe::write(out, async move |pieces| {
            let mut pieces = export.write(pieces).await?;
            let flushed = tokio::task::spawn_blocking(move || io::Write::flush(&mut pieces)).await;
            let flushed = flushed.map_err(io::Error::other).and_then(|flushed| flushed);
            flushed.map_err(|error| Error::new(ErrorKind::Io, "send the snapshot").source(error))
        })
    });
    let mut headers = HeaderMap::new();
    let kind = HeaderValue::from_static("application/octet-stream");
    headers.insert(header::CONTENT_TYPE, kind);
    headers.insert(SNAPSHOT, number.into());
    // In base64, for a label may be anything.
    let told = serde_json::to_vec(&report).map(|report| URL_SAFE_NO_PAD.encode(report));
    if let Some(Ok(told)) = told.ok().map(HeaderValue::try_from) {
        headers.insert(EXPORTED, told);
    }
    Ok((headers, body).into_response())
}

/// Makes a snapshot of an exported one, all of it or nothing. What gzip, xz or Zstandard compressed is
/// unpacked.
///
/// All of it is read and every SHA-256 compared before there is a snapshot. The sandbox goes on where it is
/// until somebody restores it or forks from it.
#[utoipa::path(post, path = "/v1/sandboxes/{sandbox}/snapshots/import", tag = "snapshots",
    params(("sandbox" = String, Path, description = "Its name or id."), ImportQuery),
    request_body(content = inline(objects::Bytes), content_type = "application/octet-stream"), responses(
    (status = 201, description = "The snapshot that it is now.", body = objects::SnapshotImported),
))]
async fn import(
    door: Door<Manages>,
    Path(sandbox): Path<String>,
    Query(query): Query<ImportQuery>,
    headers: HeaderMap,
    body: axum::body::Body,
) -> Answer<(StatusCode, Json<SnapshotImported>)> {
    let session = door.session(&sandbox).await?;
    let mut spool = door.sessions.unnamed_file()?;
    let upload = Upload::new(body, MAX_SNAPSHOT_BYTES, digest::said(&headers)?);
    let failed = |error| Error::new(ErrorKind::Io, "keep what comes of the snapshot").source(error);
    // The session waits for what is read, so that it is read from the disk.
    let file = pipe::read(upload, move |mut source| {
        io::copy(&mut source, &mut spool).and_then(|_| spool.rewind()).map_err(failed)?;
        check(&spool)?;
        spool.rewind().map_err(failed)?;
        Ok(spool)
    })
    .await?;
    let input = tokio::task::spawn_blocking(move || unpacked(BufReader::new(file))).await;
    let input = input.map_err(io::Error::other).and_then(|input| input).map_err(not_unpacked)?;
    let imported = door.sessions.import_snapshot(session.id(), input, query.label).await?;
    Ok((StatusCode::CREATED, Json(imported)))
}

fn not_unpacked(cause: io::Error) -> Error {
    Error::new(ErrorKind::Usage, "the snapshot cannot be unpacked")
        .hint("Send it as it was exported.")
        .source(cause)
}

/// Reads an exported snapshot to its end. What is wrong with it is the caller's mistake.
fn check(spool: &File) -> Result<()> {
    let unpacked = unpacked(spool).map_err(not_unpacked)?;
    check_export(unpacked).map(drop).map_err(|error| match error.kind {
        ErrorKind::Io => Error { kind: ErrorKind::Usage, ..error },
        ErrorKind::Usage
        | ErrorKind::Config
        | ErrorKind::NotFound
        | ErrorKind::Conflict
        | ErrorKind::PathEscape
        | ErrorKind::NotAFile
        | ErrorKind::TooLarge
        | ErrorKind::Unsupported
        | ErrorKind::Denied
        | ErrorKind::Unenforceable
        | ErrorKind::Unavailable
        | ErrorKind::SetupFailed
        | ErrorKind::TimedOut
        | ErrorKind::Canceled
        | ErrorKind::Protocol => error,
    })
}

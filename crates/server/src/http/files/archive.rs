//! Archives of a workspace: out of it, and into it.

use super::read::untrusted;
use crate::Server;
use crate::http::door::{Door, ReadsFiles, WritesFiles};
use crate::http::error::Answer;
use crate::http::extract::{Path, Query};
use crate::http::stream::{Outgoing, Upload, begun};
use crate::http::{digest, objects, pipe, place};
use axum::Json;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use cofferdam_archive::{Checked, Export, Import, Over, unpacked};
use cofferdam_core::{Error, ErrorKind};
use cofferdam_session::objects::FileImported;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// How many bytes of files an archive has at most, unless that is said.
const MAX_EXPORTED_FILES_BYTES: u64 = 64 << 30;
/// The most bytes of an archive that comes in, packed.
pub(crate) const MAX_PACKED_BYTES: u64 = cofferdam_archive::MAX_ARCHIVE_BYTES + (64 << 20);

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(export, import))
}

/// What is exported.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
struct ExportQuery {
    /// The directory or file. Default: the workspace.
    path: Option<String>,
    /// The same in base64, where it is not UTF-8.
    path_base64: Option<String>,
    /// Refuses more bytes of files. Default: 64 GiB.
    #[param(minimum = 1)]
    max_bytes: Option<u64>,
}

/// Where an archive goes.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
struct ImportQuery {
    /// The directory, which is made where it is missing. Default: the workspace.
    path: Option<String>,
    /// The same in base64, where it is not UTF-8.
    path_base64: Option<String>,
    /// Replaces files and links that are there. A directory never is.
    replace: bool,
}

/// A tar archive of a directory or a file.
///
/// What cannot be read, or changes meanwhile, is cut, filled up with zeros or left out: an archive that is
/// not as the workspace was breaks off behind its end. More bytes than `max_bytes` are refused with 413 where that
/// is known within the first 64 KiB of the archive, and else the archive breaks off.
#[utoipa::path(get, path = "/v1/sandboxes/{sandbox}/files/archive", tag = "files",
    params(("sandbox" = String, Path, description = "Its name or id."), ExportQuery), responses(
    (status = 200, description = "The archive.", content_type = "application/x-tar", body = inline(objects::Bytes)),
))]
async fn export(
    door: Door<ReadsFiles>,
    Path(sandbox): Path<String>,
    Query(query): Query<ExportQuery>,
) -> Answer<Response> {
    let path = place::or_top("path", query.path.as_deref(), query.path_base64.as_deref())?;
    let max_bytes = query.max_bytes.unwrap_or(MAX_EXPORTED_FILES_BYTES);
    if max_bytes == 0 {
        let what = "max_bytes is 0, and an archive without bytes of files is none";
        let error = Error::new(ErrorKind::Usage, what);
        return Err(error.hint("Leave it out for 64 GiB, or give at least 1.").into());
    }
    let files = door.session(&sandbox).await?.files();
    // What is not there is told before an answer begins.
    files.stat(path.as_os_str()).await?;
    let counted = door.caller.stream(&door.server)?;
    let order = Export { path, max_bytes };
    let is_refusal = |error: &Error| error.kind == ErrorKind::TooLarge;
    let body = begun(counted, is_refusal, async move |mut out: Outgoing| {
        let exported = cofferdam_archive::export(&files, &order, &mut out).await?;
        match exported.notes.losses {
            0 => Ok(()),
            losses => {
                let what = format!("{losses} files changed meanwhile or were unreadable");
                Err(Error::new(ErrorKind::Conflict, what))
            }
        }
    })
    .await?;
    let mut headers = untrusted();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-tar"));
    Ok((headers, body).into_response())
}

/// Unpacks a tar archive in the workspace, whole or not at all. One that gzip, xz or Zstandard compressed
/// is unpacked first.
///
/// All of it is read and looked at first: at most 50000 things with 2 GiB of files. Refused, by their
/// names, are absolute paths and those with `..`, what lies below a link or a file, devices and pipes.
#[utoipa::path(put, path = "/v1/sandboxes/{sandbox}/files/archive", tag = "files",
    params(("sandbox" = String, Path, description = "Its name or id."), ImportQuery),
    request_body(content = inline(objects::Bytes), content_type = "application/x-tar"), responses(
    (status = 200, description = "It is unpacked.", body = objects::FileImported),
))]
async fn import(
    door: Door<WritesFiles>,
    Path(sandbox): Path<String>,
    Query(query): Query<ImportQuery>,
    headers: HeaderMap,
    body: Body,
) -> Answer<Json<FileImported>> {
    let path = place::or_top("path", query.path.as_deref(), query.path_base64.as_deref())?;
    let session = door.session(&sandbox).await?;
    let spool = door.sessions.unnamed_file()?;
    let upload = Upload::new(body, MAX_PACKED_BYTES, digest::said(&headers)?);
    let archive = pipe::read(upload, move |source| {
        let mut source = unpacked(source).map_err(|error| {
            Error::new(ErrorKind::Usage, "the archive cannot be unpacked")
                .hint("Send a tar archive, as it is or packed with gzip, xz or zstd.")
                .source(error)
        })?;
        let checked = Checked::read(&mut source, spool)?;
        Ok(checked)
    })
    .await?;
    let over = if query.replace { Over::Replace } else { Over::Refuse };
    let order = Import { path, over };
    let imported = cofferdam_archive::import(&session.files(), &order, archive).await?;
    Ok(Json(FileImported::new(&session, order.path.as_os_str(), &imported)))
}

//! What is changed without bytes from outside.

use crate::Server;
use crate::http::door::{Door, WritesFiles};
use crate::http::error::Answer;
use crate::http::extract::{Body, Path, Query};
use crate::http::{objects, place};
use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use cofferdam_core::files::{ByteString, CopyTree, MAX_COPY_ENTRIES, Move, Remove};
use cofferdam_core::{Error, ErrorKind};
pub(crate) use cofferdam_session::objects::{ChmodWish, CopyWish, MkdirWish, MoveWish};
use cofferdam_session::objects::{FileCopied, FileDone};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(remove))
        .routes(routes!(mkdir))
        .routes(routes!(rename))
        .routes(routes!(copy))
        .routes(routes!(chmod))
}

/// What is removed.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
struct RemoveQuery {
    /// The path in the workspace.
    path: Option<String>,
    /// The path in base64, where it is not UTF-8.
    path_base64: Option<String>,
    /// Removes a directory with all that is in it. Links in it are not followed.
    recursive: bool,
}

/// Removes a file, a link or an empty directory.
#[utoipa::path(delete, path = "/v1/sandboxes/{sandbox}/files", tag = "files",
    params(("sandbox" = String, Path, description = "Its name or id."), RemoveQuery), responses(
    (status = 200, description = "It is gone.", body = objects::FileDone),
))]
async fn remove(
    door: Door<WritesFiles>,
    Path(sandbox): Path<String>,
    Query(query): Query<RemoveQuery>,
) -> Answer<Json<FileDone>> {
    let path = place::required("path", query.path.as_deref(), query.path_base64.as_deref())?;
    let session = door.session(&sandbox).await?;
    let order = Remove { path, recursive: query.recursive };
    session.files().remove(&order).await?;
    Ok(Json(FileDone::of(&session, order.path.as_os_str())))
}

/// Makes a directory and those above it. One that is there is what was asked for.
#[utoipa::path(post, path = "/v1/sandboxes/{sandbox}/files/mkdir", tag = "files",
    params(("sandbox" = String, Path, description = "Its name or id.")),
    request_body = objects::MkdirWish, responses(
    (status = 200, description = "It was there.", body = objects::FileDone),
    (status = 201, description = "It is made.", body = objects::FileDone),
))]
async fn mkdir(
    door: Door<WritesFiles>,
    Path(sandbox): Path<String>,
    Body(wish): Body<MkdirWish>,
) -> Answer<(StatusCode, Json<FileDone>)> {
    let path = place::required("path", wish.path.as_deref(), wish.path_base64.as_deref())?;
    let session = door.session(&sandbox).await?;
    let created = session.files().make_directory(path.as_os_str()).await?;
    let status = if created { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(FileDone::made(&session, path.as_os_str(), created))))
}

/// Gives a file, directory or link another name. What is there is not replaced unless that is said.
#[utoipa::path(post, path = "/v1/sandboxes/{sandbox}/files/move", tag = "files", operation_id = "move",
    params(("sandbox" = String, Path, description = "Its name or id.")),
    request_body = objects::MoveWish, responses(
    (status = 200, description = "It has its new name.", body = objects::FileDone),
))]
async fn rename(
    door: Door<WritesFiles>,
    Path(sandbox): Path<String>,
    Body(wish): Body<MoveWish>,
) -> Answer<Json<FileDone>> {
    let from = place::required("from", wish.from.as_deref(), wish.from_base64.as_deref())?;
    let to = place::required("to", wish.to.as_deref(), wish.to_base64.as_deref())?;
    let session = door.session(&sandbox).await?;
    let order = Move { from, to, replace: wish.replace };
    session.files().rename(&order).await?;
    Ok(Json(FileDone::of(&session, order.to.as_os_str())))
}

/// Copies a file, whole or not at all; with `recursive` a directory with all that is in it.
///
/// Links of a directory are copied as they are; pipes, sockets and devices are skipped and told.
#[utoipa::path(post, path = "/v1/sandboxes/{sandbox}/files/copy", tag = "files",
    params(("sandbox" = String, Path, description = "Its name or id.")),
    request_body = objects::CopyWish, responses(
    (status = 200, description = "The file is copied.", body = objects::FileDone),
    (status = 201, description = "The directory is copied.", body = objects::FileCopied),
))]
async fn copy(
    door: Door<WritesFiles>,
    Path(sandbox): Path<String>,
    Body(wish): Body<CopyWish>,
) -> Answer<Response> {
    let from = place::required("from", wish.from.as_deref(), wish.from_base64.as_deref())?;
    let to = place::required("to", wish.to.as_deref(), wish.to_base64.as_deref())?;
    if wish.recursive && wish.replace {
        let what = "a directory replaces nothing: both recursive and replace are given";
        return Err(Error::new(ErrorKind::Usage, what).hint("Give one of them.").into());
    }
    let session = door.session(&sandbox).await?;
    let files = session.files();
    if wish.recursive {
        let order = CopyTree { from, to, max_entries: MAX_COPY_ENTRIES };
        let copied = files.copy_tree(&order).await?;
        let copied = FileCopied::new(&session, order.to.as_os_str(), &copied);
        return Ok((StatusCode::CREATED, Json(copied)).into_response());
    }
    let order = Move { from, to, replace: wish.replace };
    let written = files.copy(&order).await?;
    Ok(Json(FileDone::written(&session, order.to.as_os_str(), &written)).into_response())
}

/// Sets the permissions of a file or a directory.
#[utoipa::path(post, path = "/v1/sandboxes/{sandbox}/files/chmod", tag = "files",
    params(("sandbox" = String, Path, description = "Its name or id.")),
    request_body = objects::ChmodWish, responses(
    (status = 200, description = "It has them.", body = objects::FileDone),
))]
async fn chmod(
    door: Door<WritesFiles>,
    Path(sandbox): Path<String>,
    Body(wish): Body<ChmodWish>,
) -> Answer<Json<FileDone>> {
    let path: ByteString =
        place::required("path", wish.path.as_deref(), wish.path_base64.as_deref())?;
    let mode = place::mode(&wish.mode)?;
    let session = door.session(&sandbox).await?;
    session.files().set_mode(path.as_os_str(), mode).await?;
    Ok(Json(FileDone::of(&session, path.as_os_str())))
}

//! Edits and patches: all of one, or nothing.

use crate::Server;
use crate::http::door::{Door, WritesFiles};
use crate::http::error::Answer;
use crate::http::extract::{Body, Path, Query};
use crate::http::refusal::conflict;
use crate::http::stream::Upload;
use crate::http::{digest, objects, place};
use axum::Json;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use cofferdam_core::{Error, ErrorKind};
use cofferdam_session::edit::{Edit, Places};
pub(crate) use cofferdam_session::objects::{EditWish, EditsWish};
use cofferdam_session::objects::{FileEdit, FilePatch};
use cofferdam_session::patch::PatchOutcome;
use cofferdam_session::{Doing, MAX_PATCH_TEXT, PatchOptions, Way};
use serde::Deserialize;
use tokio::io::AsyncReadExt;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(edit)).routes(routes!(patch))
}

/// How a patch is applied.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
struct PatchQuery {
    /// Says what would be done, and changes nothing.
    dry_run: bool,
    /// Takes back what the patch does.
    reverse: bool,
}

fn doing(dry_run: bool) -> Doing {
    if dry_run { Doing::DryRun } else { Doing::Real }
}

/// Replaces text in a file: all edits, or none.
///
/// The old text has to stand in exactly one place, unless all are meant. An edit that is refused is a
/// conflict, whose document says where the text stands.
#[utoipa::path(post, path = "/v1/sandboxes/{sandbox}/files/edit", tag = "files",
    params(("sandbox" = String, Path, description = "Its name or id.")),
    request_body = objects::EditsWish, responses(
    (status = 200, description = "All of them apply.", body = objects::FileEdit),
    (status = 409, description = "One of them does not, and nothing was changed.", content_type = "application/problem+json", body = objects::EditRefused),
))]
async fn edit(
    door: Door<WritesFiles>,
    Path(sandbox): Path<String>,
    Body(wish): Body<EditsWish>,
) -> Answer<Response> {
    let path = place::required("path", wish.path.as_deref(), wish.path_base64.as_deref())?;
    if wish.edits.is_empty() {
        return Err(Error::new(ErrorKind::Usage, "edits are missing")
            .hint("Give one at least, with old and new.")
            .into());
    }
    let edit = |wish: &EditWish| Edit {
        old: wish.old.as_bytes().to_vec(),
        new: wish.new.as_bytes().to_vec(),
        places: if wish.all { Places::All } else { Places::Only },
    };
    let edits: Vec<Edit> = wish.edits.iter().map(edit).collect();
    let session = door.session(&sandbox).await?;
    let edited = session.edit_file(path.as_os_str(), &edits, doing(wish.dry_run)).await?;
    let applies = edited.report.applies;
    let done = FileEdit {
        session: session.id().to_string(),
        path: path.to_string(),
        changed: edited.changed,
        sha256: edited.sha256,
        report: edited.report,
    };
    if applies {
        return Ok(Json(done).into_response());
    }
    let what = format!("the edits of {path:?} do not apply; nothing was changed");
    let error = Error::new(ErrorKind::Conflict, what).hint(
        "Look at the outcome of the last edit that is told, then write more of the old text.",
    );
    Ok(conflict(error, done))
}

/// Applies a patch to the workspace, whole or not at all: a unified diff, or an envelope that begins with
/// `*** Begin Patch`.
///
/// A patch that was applied before changes nothing. One that does not fit is a conflict, whose document
/// says hunk by hunk why.
#[utoipa::path(post, path = "/v1/sandboxes/{sandbox}/files/patch", tag = "files",
    params(("sandbox" = String, Path, description = "Its name or id."), PatchQuery),
    request_body(content = inline(objects::Bytes), content_type = "text/x-diff"), responses(
    (status = 200, description = "It fits, or was applied before.", body = objects::FilePatch),
    (status = 409, description = "It does not fit, and nothing was changed.", content_type = "application/problem+json", body = objects::PatchRefused),
))]
async fn patch(
    door: Door<WritesFiles>,
    Path(sandbox): Path<String>,
    Query(query): Query<PatchQuery>,
    headers: HeaderMap,
    body: axum::body::Body,
) -> Answer<Response> {
    let session = door.session(&sandbox).await?;
    let mut upload = Upload::new(body, MAX_PATCH_TEXT as u64, digest::said(&headers)?);
    let mut text = Vec::new();
    if let Err(error) = upload.read_to_end(&mut text).await {
        let error = Error::new(ErrorKind::Io, "read the patch").source(error);
        return Err(upload.problem(error));
    }
    let way = if query.reverse { Way::Reverse } else { Way::Forward };
    let options = PatchOptions { doing: doing(query.dry_run), way };
    let patched = session.apply_patch(&text, options).await?;
    let is_refused = patched.report.outcome == PatchOutcome::Refused;
    let done = FilePatch {
        session: session.id().to_string(),
        changed: patched.changed,
        report: patched.report,
    };
    if !is_refused {
        return Ok(Json(done).into_response());
    }
    let error = Error::new(ErrorKind::Conflict, "the patch does not fit; nothing was changed")
        .hint("Look at the hunks that are told, then make the patch anew.");
    Ok(conflict(error, done))
}

//! What a session changed, landed in its workspace or dropped.

use crate::Server;
use crate::http::door::{Door, WritesFiles};
use crate::http::error::Answer;
use crate::http::extract::{Body, Path};
use crate::http::refusal::conflict;
use crate::http::{objects, place};
use axum::Json;
use axum::response::{IntoResponse, Response};
use cofferdam_core::{ApplyOrder, DiscardOrder, Error, ErrorKind, GuestPath, Result};
use cofferdam_session::objects::{AppliedChanges, DiscardedChanges, LayerChange};
pub(crate) use cofferdam_session::objects::{ApplyWish, ChosenWish, DiscardWish};
use cofferdam_session::{ChosenHunks, ChosenParts};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(apply)).routes(routes!(discard))
}

fn chosen(wish: &ChosenWish) -> Result<ChosenHunks> {
    let path = place::required("path", wish.path.as_deref(), wish.path_base64.as_deref())?;
    let parts = match (wish.whole, wish.hunks.is_empty()) {
        (false, _) => ChosenParts::These(wish.hunks.iter().copied().collect()),
        (true, true) => ChosenParts::Whole,
        (true, false) => {
            let what = format!("both parts and all of {path:?} are chosen");
            return Err(Error::new(ErrorKind::Usage, what).hint("Leave out whole or hunks."));
        }
    };
    Ok(ChosenHunks { path: GuestPath::new(path.as_bytes())?, sha256: wish.sha256.clone(), parts })
}

/// Lands what a copy-on-write sandbox changed in the real workspace.
///
/// All that can land does, or with an error nothing. What changed in the workspace meanwhile, and what
/// lands only if it is named, stays as it is there: then the answer is a conflict, whose document lists
/// what landed and what did not, each with its `standing`.
#[utoipa::path(post, path = "/v1/sandboxes/{sandbox}/apply", tag = "layers",
    params(("sandbox" = String, Path, description = "Its name or id.")),
    request_body = objects::ApplyWish, responses(
    (status = 200, description = "All of it landed, or this was a dry run.", body = objects::AppliedChanges),
    (status = 409, description = "Some of it did not land.", content_type = "application/problem+json", body = objects::ApplyConflict),
))]
async fn apply(
    door: Door<WritesFiles>,
    Path(sandbox): Path<String>,
    Body(wish): Body<ApplyWish>,
) -> Answer<Response> {
    let paths = place::several_os("paths", &wish.paths, &wish.paths_base64)?;
    let hunks: Vec<ChosenHunks> = wish.hunks.iter().map(chosen).collect::<Result<_>>()?;
    if !paths.is_empty() && !hunks.is_empty() {
        return Err(Error::new(ErrorKind::Usage, "both paths and hunks are given")
            .hint("Give one of them.")
            .into());
    }
    let session = door.session(&sandbox).await?;
    let mut order = if hunks.is_empty() {
        let paths = session.scope(&paths).await?;
        session.check_named(&paths).await?;
        ApplyOrder { paths, ..ApplyOrder::default() }
    } else {
        session.chosen(&hunks).await?
    };
    order.dry_run = wish.dry_run;
    order.overwrite = wish.overwrite;
    let report = session.apply(&order).await?;
    let done = AppliedChanges {
        session: session.id().to_string(),
        dry_run: wish.dry_run,
        applied: report.applied.iter().map(LayerChange::new).collect(),
        kept: report.kept.iter().map(LayerChange::new).collect(),
    };
    if wish.dry_run || done.kept.is_empty() {
        return Ok(Json(done).into_response());
    }
    let (kept, all) = (done.kept.len(), done.kept.len() + done.applied.len());
    let error = Error::new(ErrorKind::Conflict, format!("{kept} of {all} changes did not land"))
        .hint("See the standing of each in result.kept; what is in result.applied has landed.");
    Ok(conflict(error, done))
}

/// Drops what a copy-on-write sandbox changed: its workspace is as the real one again.
///
/// What runs in it ends first. Nothing is ended where there is nothing to drop.
#[utoipa::path(post, path = "/v1/sandboxes/{sandbox}/discard", tag = "layers",
    params(("sandbox" = String, Path, description = "Its name or id.")),
    request_body = objects::DiscardWish, responses(
    (status = 200, description = "What was dropped.", body = objects::DiscardedChanges),
))]
async fn discard(
    door: Door<WritesFiles>,
    Path(sandbox): Path<String>,
    Body(wish): Body<DiscardWish>,
) -> Answer<Json<DiscardedChanges>> {
    let paths = place::several_os("paths", &wish.paths, &wish.paths_base64)?;
    let session = door.session(&sandbox).await?;
    let paths = session.scope(&paths).await?;
    session.check_named(&paths).await?;
    let order = DiscardOrder { paths, dry_run: wish.dry_run };
    let discarded = session.discard(&order).await?;
    Ok(Json(DiscardedChanges::new(session.id().to_string(), wish.dry_run, &discarded)))
}

//! What is there.

use crate::Server;
use crate::http::door::{Door, ReadsFiles};
use crate::http::error::Answer;
use crate::http::extract::{Path, Query};
use crate::http::{objects, place};
use axum::Json;
use cofferdam_core::files::{List, MAX_DEPTH, MAX_ENTRIES};
use cofferdam_core::{Error, ErrorKind};
use cofferdam_session::objects::{FileEntry, FileList};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(stat)).routes(routes!(list))
}

/// What is looked at.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
struct StatQuery {
    /// The path in the workspace.
    path: Option<String>,
    /// The path in base64, where it is not UTF-8.
    path_base64: Option<String>,
}

/// What is listed.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
struct ListQuery {
    /// The directory. Default: the workspace.
    path: Option<String>,
    /// The directory in base64, where it is not UTF-8.
    path_base64: Option<String>,
    /// How many levels. Links are not followed. Default: 1.
    #[param(minimum = 1, maximum = 128)]
    depth: Option<u32>,
    /// At most so many entries. Default: 1000.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// Begins behind this entry: the `next` of the page before.
    cursor: Option<String>,
    /// The same, where that was `next_base64`.
    cursor_base64: Option<String>,
}

/// Says what is there: type, size, time, permissions and where a link leads.
#[utoipa::path(get, path = "/v1/sandboxes/{sandbox}/files/stat", tag = "files",
    params(("sandbox" = String, Path, description = "Its name or id."), StatQuery), responses(
    (status = 200, description = "What is there.", body = objects::FileEntry),
))]
async fn stat(
    door: Door<ReadsFiles>,
    Path(sandbox): Path<String>,
    Query(query): Query<StatQuery>,
) -> Answer<Json<FileEntry>> {
    let path = place::or_top("path", query.path.as_deref(), query.path_base64.as_deref())?;
    let entry = door.session(&sandbox).await?.files().stat(path.as_os_str()).await?;
    Ok(Json(FileEntry::of_path(path.as_os_str(), &entry)))
}

/// Lists a page of a directory, in the order of names, each directory before what is in it.
#[utoipa::path(get, path = "/v1/sandboxes/{sandbox}/files/list", tag = "files",
    params(("sandbox" = String, Path, description = "Its name or id."), ListQuery), responses(
    (status = 200, description = "The page.", body = objects::FileList),
))]
async fn list(
    door: Door<ReadsFiles>,
    Path(sandbox): Path<String>,
    Query(query): Query<ListQuery>,
) -> Answer<Json<FileList>> {
    let path = place::or_top("path", query.path.as_deref(), query.path_base64.as_deref())?;
    let after = place::named("cursor", query.cursor.as_deref(), query.cursor_base64.as_deref())?;
    let depth = within("depth", query.depth, 1, u32::try_from(MAX_DEPTH).unwrap_or(u32::MAX))?;
    let limit = within("limit", query.limit, MAX_ENTRIES, MAX_ENTRIES)?;
    let session = door.session(&sandbox).await?;
    let order = List { path, depth, after, limit };
    let page = session.files().list(&order).await?;
    Ok(Json(FileList::new(&session, order.path.as_os_str(), &page)))
}

/// A number of a request, from 1 to the most that it may be.
pub(super) fn within(
    field: &str,
    said: Option<u32>,
    default: u32,
    most: u32,
) -> Result<u32, Error> {
    let number = said.unwrap_or(default);
    if (1..=most).contains(&number) {
        return Ok(number);
    }
    let what = format!("{field} is {number}, and not from 1 to {most}");
    Err(Error::new(ErrorKind::Usage, what).hint("Read more in several pages."))
}

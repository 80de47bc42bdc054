//! What a session changed.

use crate::Server;
use crate::http::door::{Door, ReadsFiles};
use crate::http::error::{Answer, Problem};
use crate::http::extract::{Path, Query};
use crate::http::guard::Counted;
use crate::http::stream::{Outgoing, answered};
use crate::http::{objects, place};
use axum::Json;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use cofferdam_core::{Error, ErrorKind, GuestPath, Result};
use cofferdam_session::diff::FileDiff;
use cofferdam_session::objects::{ChangeList, HunkList, LayerChange, LayerHunks};
use cofferdam_session::{PointRange, PointSpan, Session};
use serde::Deserialize;
use std::fs::File;
use std::io::{Seek, Write};
use tokio::io::AsyncWriteExt;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The most bytes of the texts of parts in one object.
pub(crate) const MAX_HUNK_BYTES: usize = 16 << 20;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(diff)).routes(routes!(hunks))
}

/// What is compared, and what is told of it.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
struct DiffQuery {
    /// Two points of the history, as in `3..7`, `3..` or `..tests pass`: what commands 4 to 7 changed.
    range: Option<String>,
    /// Only this path of the workspace and what is below it.
    path: Option<String>,
    /// The same in base64, where it is not UTF-8.
    path_base64: Option<String>,
    /// What is told in JSON. Default: stat.
    #[param(inline)]
    view: Option<View>,
}

/// What is told of changes in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum View {
    /// The changes, with how many lines come and go.
    Stat,
    /// The changes, without looking into files.
    Names,
}

/// What a copy-on-write sandbox changed, or what changed between two points of its history.
///
/// With `Accept: text/x-diff` it is a unified diff that `git apply` takes, otherwise an object as `view`
/// says. The sandbox stands still while it is looked at.
#[utoipa::path(get, path = "/v1/sandboxes/{sandbox}/diff", tag = "layers",
    params(("sandbox" = String, Path, description = "Its name or id."), DiffQuery), responses(
    (status = 200, description = "The changes.", content(
        (objects::Changes = "application/json"),
        (inline(objects::Bytes) = "text/x-diff"),
    )),
))]
async fn diff(
    door: Door<ReadsFiles>,
    Path(sandbox): Path<String>,
    Query(query): Query<DiffQuery>,
    headers: HeaderMap,
) -> Answer<Response> {
    let range = query.range.as_deref().map(range).transpose()?;
    let path = place::named("path", query.path.as_deref(), query.path_base64.as_deref())?;
    let form = form(&headers)?;
    if form == Form::Text && query.view.is_some() {
        let what = "view is what is told in JSON, and a text is asked for";
        return Err(Error::new(ErrorKind::Usage, what).hint("Leave it out.").into());
    }
    let session = door.session(&sandbox).await?;
    let paths: Vec<_> = path.iter().map(|path| path.as_os_str().to_owned()).collect();
    let asked = Asked { scope: session.scope(&paths).await?, session, range };
    match (form, query.view.unwrap_or(View::Stat)) {
        (Form::Text, _) => {
            let counted = door.caller.stream(&door.server)?;
            text(&asked, counted, door.sessions.unnamed_file()?).await
        }
        (Form::Json, View::Names) => Ok(Json(asked.names().await?).into_response()),
        (Form::Json, View::Stat) => Ok(Json(asked.counted().await?).into_response()),
    }
}

/// Whose parts are told.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
struct HunksQuery {
    /// Only this path of the workspace and what is below it.
    path: Option<String>,
    /// The same in base64, where it is not UTF-8.
    path_base64: Option<String>,
    /// Whether changes without parts have their text, too.
    texts: bool,
}

/// What a copy-on-write sandbox changed, part by part: `apply` lands those that are chosen. At most 16 MiB
/// of them.
#[utoipa::path(get, path = "/v1/sandboxes/{sandbox}/diff/hunks", tag = "layers",
    params(("sandbox" = String, Path, description = "Its name or id."), HunksQuery), responses(
    (status = 200, description = "The changes with their parts.", body = objects::Hunks),
))]
async fn hunks(
    door: Door<ReadsFiles>,
    Path(sandbox): Path<String>,
    Query(query): Query<HunksQuery>,
) -> Answer<Json<HunkList>> {
    let path = place::named("path", query.path.as_deref(), query.path_base64.as_deref())?;
    let session = door.session(&sandbox).await?;
    let paths: Vec<_> = path.iter().map(|path| path.as_os_str().to_owned()).collect();
    let asked = Asked { scope: session.scope(&paths).await?, session, range: None };
    Ok(Json(asked.hunks(Parts { texts: query.texts, ..Parts::default() }).await?))
}

fn range(text: &str) -> Result<PointRange> {
    PointRange::parse(text).ok_or_else(|| {
        Error::new(ErrorKind::Usage, format!("{text:?} is no range of points"))
            .hint("Write two points with .. between, as in 3..7.")
    })
}

/// In which form it is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Json,
    Text,
}

fn form(headers: &HeaderMap) -> Answer<Form> {
    let values = headers.get_all(header::ACCEPT).iter();
    let texts: Vec<&str> = values.filter_map(|value| value.to_str().ok()).collect();
    let mut kinds = texts.iter().flat_map(|text| text.split(',')).map(|kind| {
        let kind = kind.split(';').next().unwrap_or_default().trim();
        kind.to_ascii_lowercase()
    });
    // The first that is known wins; nobody sends weights for this.
    let found = kinds.find_map(|kind| match kind.as_str() {
        "text/x-diff" | "text/x-patch" => Some(Form::Text),
        "application/json" | "application/*" | "*/*" => Some(Form::Json),
        _ => None,
    });
    if texts.is_empty() {
        return Ok(Form::Json);
    }
    found.ok_or_else(|| {
        let error = Error::new(ErrorKind::Usage, "nothing of that kind is told here")
            .hint("Accept application/json or text/x-diff.");
        Problem::with_status(StatusCode::NOT_ACCEPTABLE, error)
    })
}

/// What is compared.
struct Asked {
    session: Session,
    range: Option<PointRange>,
    scope: Vec<GuestPath>,
}

impl Asked {
    async fn diff(&self, each: impl FnMut(FileDiff) -> Result<()>) -> Result<Option<PointSpan>> {
        match &self.range {
            Some(range) => self.session.diff_between(range, &self.scope, each).await.map(Some),
            None => self.session.diff(&self.scope, each).await.map(|()| None),
        }
    }

    fn list(&self, span: Option<PointSpan>, changes: Vec<LayerChange>) -> ChangeList {
        ChangeList {
            session: self.session.id().to_string(),
            from: span.map(|span| span.from),
            to: span.map(|span| span.to),
            changes,
        }
    }

    async fn names(&self) -> Result<ChangeList> {
        let (span, changes) = match &self.range {
            Some(range) => {
                let (span, changes) = self.session.changes_between(range, &self.scope).await?;
                (Some(span), changes)
            }
            None => (None, self.session.changes(&self.scope).await?),
        };
        Ok(self.list(span, changes.iter().map(LayerChange::new).collect()))
    }

    async fn counted(&self) -> Result<ChangeList> {
        let mut changes = Vec::new();
        let each = |diff: FileDiff| {
            changes.push(LayerChange::counted(&diff));
            Ok(())
        };
        let span = self.diff(each).await?;
        Ok(self.list(span, changes))
    }

    async fn hunks(&self, mut parts: Parts) -> Result<HunkList> {
        self.diff(|diff| parts.add(&diff)).await?;
        Ok(HunkList { session: self.session.id().to_string(), changes: parts.changes })
    }
}

/// The parts of changes, as many as one object holds.
#[derive(Default)]
struct Parts {
    changes: Vec<LayerHunks>,
    bytes: usize,
    /// Whether what has no parts is told, too.
    texts: bool,
}

impl Parts {
    fn add(&mut self, diff: &FileDiff) -> Result<()> {
        let change = match self.texts {
            true => LayerHunks::with_text(diff),
            false => LayerHunks::new(diff),
        };
        self.bytes += change.bytes();
        if self.bytes > MAX_HUNK_BYTES {
            let what = format!("the parts have more than {MAX_HUNK_BYTES} bytes");
            return Err(Error::new(ErrorKind::TooLarge, what).hint("Ask for fewer paths."));
        }
        self.changes.push(change);
        Ok(())
    }
}

/// The unified diff. It is kept on disk first: the session stands still for no reader.
async fn text(asked: &Asked, counted: Counted, mut spool: File) -> Answer<Response> {
    let failed = |cause| Error::new(ErrorKind::Io, "keep the diff before it is sent").source(cause);
    let each = |diff: FileDiff| spool.write_all(&diff.text()).map_err(failed);
    asked.diff(each).await?;
    let length = spool.stream_position().map_err(failed)?;
    spool.rewind().map_err(failed)?;
    let body = answered(counted, Vec::new(), move |out| send(spool, out));
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/x-diff")),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (header::CONTENT_LENGTH, HeaderValue::from(length)),
    ];
    Ok((headers, body).into_response())
}

async fn send(spool: File, mut out: Outgoing) -> Result<()> {
    let failed = |cause| Error::new(ErrorKind::Io, "send the diff").source(cause);
    let mut spool = tokio::fs::File::from_std(spool);
    tokio::io::copy(&mut spool, &mut out).await.map_err(failed)?;
    out.flush().await.map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_core::files::EntryKind;
    use cofferdam_core::{Change, ChangeKind, FileState, Standing};
    use cofferdam_session::diff::Contents;

    /// A file of one line of so many bytes, its end among them, instead of another line.
    fn changed(bytes: usize) -> FileDiff {
        let content = format!("{}\n", "x".repeat(bytes - 1));
        let after =
            FileState { kind: EntryKind::File, mode: 0o644, size: bytes as u64, target: None };
        let change = Change {
            path: GuestPath::new("a").unwrap(),
            kind: ChangeKind::Modified,
            before: Some(after.clone()),
            after: Some(after),
            moved_from: None,
            linked_to: None,
            leads_out: false,
            set_id: false,
            version: 1,
            standing: Standing::Lands,
        };
        FileDiff::new(change, Contents { before: Some(b"y\n"), after: Some(content.as_bytes()) })
    }

    #[test]
    fn the_parts_of_one_object_have_a_limit() {
        let mut parts = Parts::default();
        // As long as a line may be that is told.
        let one = changed(500_000);
        let fit = MAX_HUNK_BYTES / LayerHunks::new(&one).bytes();
        assert!((2..100).contains(&fit), "{fit}");
        for _ in 0..fit {
            parts.add(&one).unwrap();
        }
        assert_eq!(parts.add(&one).unwrap_err().kind, ErrorKind::TooLarge);
        assert_eq!(parts.changes.len(), fit);
    }

    fn asked(accept: &str) -> Option<Form> {
        let headers = [(header::ACCEPT, accept.parse().unwrap())].into_iter().collect();
        form(&headers).ok()
    }

    #[test]
    fn the_first_form_that_is_known_is_told() {
        assert_eq!(form(&HeaderMap::new()).ok(), Some(Form::Json));
        assert_eq!(asked("*/*"), Some(Form::Json));
        assert_eq!(asked("text/x-diff"), Some(Form::Text));
        assert_eq!(asked("image/png, text/x-diff;q=0.5, application/json"), Some(Form::Text));
        assert_eq!(asked("text/html"), None);
    }
}

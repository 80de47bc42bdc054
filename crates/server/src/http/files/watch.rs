//! What happens to files, told while it happens.

use super::list::within;
use crate::Server;
use crate::http::door::{Door, ReadsFiles};
use crate::http::error::Answer;
use crate::http::extract::{Path, Query};
use crate::http::place;
use crate::http::sse::{Source, event, failed, stream_of};
use axum::response::sse::Event;
use axum::response::{IntoResponse, Response};
use cofferdam_core::files::{
    FileWatch, MAX_DEPTH, MAX_PENDING_EVENTS, MAX_WATCHED_DIRECTORIES, Watch,
};
use cofferdam_search::EventFilter;
use cofferdam_session::objects::FileEventReport;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(watch))
}

/// What is watched.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
struct WatchQuery {
    /// The file, or the directory with all below. Default: the workspace.
    path: Option<String>,
    /// The same in base64, where it is not UTF-8.
    path_base64: Option<String>,
    /// So many levels of a directory. Default: all.
    #[param(minimum = 1, maximum = 128)]
    depth: Option<u32>,
    /// Tells only of paths that this matches, from the workspace on.
    glob: Option<String>,
    /// Refuses to watch more directories.
    #[param(minimum = 1, maximum = 65536)]
    max_directories: Option<u32>,
    /// Lets so many events wait for a reader before they are lost.
    #[param(minimum = 1, maximum = 16384)]
    max_pending: Option<u32>,
}

/// Tells what happens to files, by server-sent events.
///
/// The first event is `ready`: whatever happens from then on is told. Where events come faster than they
/// are read, `overflow` says that some were lost: look at everything again. The sandbox does not fall
/// asleep meanwhile. There is no replay; an event `problem` with a problem document is the last.
#[utoipa::path(get, path = "/v1/sandboxes/{sandbox}/files/watch", tag = "files",
    params(("sandbox" = String, Path, description = "Its name or id."), WatchQuery), responses(
    (status = 200, description = "Events, until somebody hangs up.", content_type = "text/event-stream", body = String),
))]
async fn watch(
    door: Door<ReadsFiles>,
    Path(sandbox): Path<String>,
    Query(query): Query<WatchQuery>,
) -> Answer<Response> {
    let path = place::named("path", query.path.as_deref(), query.path_base64.as_deref())?;
    let levels = u32::try_from(MAX_DEPTH).unwrap_or(u32::MAX);
    let most = MAX_WATCHED_DIRECTORIES;
    let order = Watch {
        paths: path.into_iter().filter(|path| path.as_bytes() != b".").collect(),
        depth: query.depth.map_or(Ok(u32::MAX), |depth| within("depth", Some(depth), 1, levels))?,
        max_directories: within("max_directories", query.max_directories, most, most)?,
        max_pending: within(
            "max_pending",
            query.max_pending,
            MAX_PENDING_EVENTS,
            MAX_PENDING_EVENTS,
        )?,
    };
    let filter = query.glob.map(|glob| EventFilter::new(&[glob], false)).transpose()?;
    let session = door.session(&sandbox).await?;
    let watch = session.files().watch(&order).await?;
    let counted = door.caller.stream(&door.server)?;
    let told = Told { session: session.id().to_string(), watch: Some(watch), filter };
    Ok(stream_of(counted, told).into_response())
}

/// What is told, and of whom.
struct Told {
    session: String,
    /// Until it fails.
    watch: Option<FileWatch>,
    filter: Option<EventFilter>,
}

impl Source for Told {
    async fn next(&mut self) -> Option<Vec<Event>> {
        loop {
            let happened = match self.watch.as_mut()?.next().await {
                Ok(happened) => happened,
                Err(error) => {
                    self.watch = None;
                    return Some(vec![failed(error.into())]);
                }
            };
            if self.filter.as_ref().is_none_or(|filter| filter.wants(&happened)) {
                let object = FileEventReport::new(&self.session, &happened);
                return Some(vec![event(happened.name(), "", &object)]);
            }
        }
    }
}

//! Files of a sandbox's workspace.
//!
//! A path is a parameter of the query or a field of the body, never a part of the URL's path: so names
//! with slashes, line ends and bytes that are not UTF-8 can be said, and nobody on the way takes a `..`
//! back. It is opened inside the sandbox, under its rules.

mod archive;
mod change;
mod list;
mod patch;
mod read;
mod search;
mod watch;
mod write;

pub(crate) use change::{ChmodWish, CopyWish, MkdirWish, MoveWish};
pub(crate) use patch::EditsWish;
pub(crate) use read::ReadManyWish;
pub(crate) use search::{GlobWish, GrepWish};

use crate::Server;
use utoipa_axum::router::OpenApiRouter;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .merge(read::routes())
        .merge(write::routes())
        .merge(list::routes())
        .merge(change::routes())
        .merge(search::routes())
        .merge(patch::routes())
        .merge(archive::routes())
        .merge(watch::routes())
}

//! What a copy-on-write sandbox changed: looked at, landed, dropped, taken back, kept, copied.

mod apply;
mod diff;
mod history;
mod snapshots;

pub(crate) use apply::{ApplyWish, DiscardWish};
pub(crate) use history::{ForkWish, UndoWish};
pub(crate) use snapshots::SnapshotWish;

use crate::Server;
use utoipa_axum::router::OpenApiRouter;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .merge(diff::routes())
        .merge(apply::routes())
        .merge(history::routes())
        .merge(snapshots::routes())
}

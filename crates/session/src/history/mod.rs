//! The history of a copy-on-write session: every command that ended is a point, and so is what changed
//! between commands. A point is the state of the layer at one moment, or says why it could not be kept.
//!
//! What a point costs goes by what changed and by the number of files in the layer, never by the size of
//! the workspace below it: files that were not touched are not read, and their contents are shared.
//! Processes, the home directory and what was written to an image are not part of it.

mod between;
mod blobs;
mod checkpoint;
mod compare;
mod content;
mod encode;
mod evict;
pub(crate) mod exported;
mod forks;
mod gather;
mod going;
mod grain;
mod linked;
mod live;
mod mapped;
mod named;
mod pack;
mod point;
mod restore;
mod span;
mod state;
mod store;
mod take;
mod taking;
mod tree;
mod walk;
mod widened;

#[cfg(test)]
mod pack_tests;
#[cfg(test)]
mod tests;

pub use checkpoint::HistoryReport;
pub use evict::{MAX_HISTORY_BYTES, MAX_POINTS};
pub use going::{Target, UndoOrder, UndoReport};
pub use point::{
    MAX_POINT_PATHS, PointCommand, PointDeed, PointEffects, PointImport, PointKind, PointOrigin,
    PointPath, PointReport,
};
pub use span::{PointRange, PointSpan};
pub use take::MAX_POINT_BYTES;

pub(crate) use checkpoint::{Awaited, layered, to_its_end};
pub(crate) use forks::{fork, present};
pub(crate) use store::History;
pub(crate) use taking::{AtWork, at_work, go_on, hold};

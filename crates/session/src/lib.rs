//! Sessions that outlive everything: one managed computer each.
//!
//! A session owns one sandbox that is there when it is needed, asleep when it is not, and gone when
//! it should be, whatever crashes in between. What is made is written down before it is made, and
//! every start of Cofferdam compares what exists with what is written down. The sandboxes are made
//! and kept by any [`DurableBackend`](cofferdam_core::DurableBackend); this crate knows none by name.
//!
//! [`Sessions`] is the book of all of them, [`Session`] the door to one. Command line, HTTP and MCP
//! call these and nothing below.

mod answer;
mod apply;
mod audit;
mod bundle;
mod carries;
mod chosen;
mod desk;
pub mod diff;
pub mod edit;
mod ensure;
mod events;
mod excerpt;
mod files;
mod follow;
mod history;
mod home;
mod id;
mod init;
mod keys;
mod layer;
mod lifecycle;
mod lock;
mod making;
pub mod manifest;
mod metrics;
mod network;
pub mod objects;
mod occurrences;
mod order;
mod outside;
mod owned;
pub mod patch;
mod permission_id;
mod permissions;
mod places;
mod ports;
mod prepare;
mod provision;
mod ready;
mod reaper;
mod receipt;
mod report;
mod run;
mod scope;
mod searched;
mod secrets;
mod session;
mod sessions;
mod shell;
mod snapshot;
mod spool;
mod staging;
mod store;
mod time;
mod unnamed;
mod watch;
pub mod window;

pub use apply::{
    Doing, Edited, MAX_PATCH_TEXT, PatchOptions, Patched, Way, apply_patch, edit_file, read_window,
};
pub use audit::{AuditEntry, AuditReport};
pub use chosen::{ChosenHunks, ChosenParts};
pub use cofferdam_core::LayerTier;
pub use cofferdam_core::StreamReport;
pub use ensure::{Ensured, EnsuredHow};
pub use excerpt::excerpt;
pub use history::exported::{
    ExportManifest, ExportedWorkspace, MAX_EXPORTED_BYTES, MAX_EXPORTED_ENTRIES,
    MAX_EXPORTED_FILE_BYTES, MAX_EXPORTED_LIST_BYTES, check_export,
};
pub use history::{
    HistoryReport, MAX_HISTORY_BYTES, MAX_POINT_BYTES, MAX_POINT_PATHS, MAX_POINTS, PointCommand,
    PointDeed, PointEffects, PointImport, PointKind, PointOrigin, PointPath, PointRange,
    PointReport, PointSpan, Target, UndoOrder, UndoReport,
};
pub use id::SessionId;
pub(crate) use id::random_text;
pub use init::{InitCommand, InitFailure, InitState};
pub use keys::{KEY_MARK, KeyReport, KeyRights, KeyScope, lie_in_each_other};
pub use layer::Discarded;
pub use lifecycle::{Action, Event, Phase, Step, next};
pub use metrics::{ConnectionCounts, MAX_PROOFS, MetricsReport};
pub use network::{ConnectionList, NetworkChange, NetworkReport};
pub use order::{IDLE_PAUSE, MIN_LEASE, SessionOrder, Unsaid};
pub use owned::OWNED_LEASE;
pub use permission_id::{PermissionId, PermissionTarget};
pub use permissions::{
    MAX_REASON_BYTES, MAX_REQUESTS, PermissionAnswer, PermissionKind, PermissionList,
    PermissionReport, PermissionState, REQUEST_LASTS, Requested,
};
pub use provision::ManifestState;
pub use reaper::{GcAction, GcFailure, GcKind, GcReport};
pub use receipt::{
    BeforeCommand, MAX_HASHED_BYTES, MAX_HASHED_FILE_BYTES, MAX_RECEIPT_PATHS, receipt_of_gone,
};
pub use report::{
    EventList, EventReport, ExecList, ExecReport, LogPart, SessionReport, text_or_base64,
    text_or_quoted,
};
pub use run::{Kept, OnFailure, RUN_LIMIT, Ran, RunError, RunFailure, RunOrder};
pub use searched::{MAX_TOLD_BYTES, MAX_TOLD_MATCHES, MAX_TOLD_NAMES};
pub use secrets::{SecretList, SecretReport};
pub use session::{ExecOutput, SOON, SPOOL_BYTES, Session};
pub use sessions::{MAX_EVENTS, Sessions};
pub use shell::{
    MAX_SHELL_TEXT, Shell, ShellNews, ShellOutput, ShellReport, ShellTape, ShellTicket,
};
pub use snapshot::{
    MAX_SNAPSHOTS, SnapshotExport, SnapshotExported, SnapshotImported, SnapshotReport,
};
pub use spool::unnamed_file;
pub use store::Quota;
pub(crate) use time::now_ms;

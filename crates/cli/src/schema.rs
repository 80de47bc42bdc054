//! The published JSON Schemas: one for each object that is read or printed.

use crate::choice::Choice;
use crate::commands::config::CheckedConfig;
use crate::commands::events::EventList;
use crate::commands::image::{ImageEvent, ImageList, ImageShown, ImagesRemoved};
#[cfg(feature = "serve")]
use crate::commands::key::{KeyCreated, KeyList};
use crate::commands::logs::{Log, LogPart};
use crate::commands::ls::SessionList;
#[cfg(feature = "mcp")]
use crate::commands::mcp_install::McpInstalled;
use crate::commands::policy::Tested;
use crate::commands::policy_learn::Learned;
use crate::commands::port::Forwarded;
use crate::commands::ps::ExecList;
use crate::commands::rm::Removal;
use crate::commands::secret::SecretKey;
use crate::commands::wrap::Wrapped;
use crate::config;
use crate::engine::{Diagnosis, Explanation, ProbeReport};
use crate::meter::ProgressEvent;
use cofferdam_core::{Error, ErrorKind, ErrorReport, Result, RunReport};
use cofferdam_session::manifest::Manifest;
use cofferdam_session::objects::{
    AppliedChanges, ChangeList, DiscardedChanges, FileContent, FileContents, FileCopied, FileDone,
    FileEdit, FileEntry, FileEventReport, FileImported, FileList, FileMatches, FileNames,
    FilePatch, FileWindow, SnapshotList,
};
use cofferdam_session::{
    ConnectionList, MetricsReport, NetworkReport, PermissionList, PermissionReport,
};
use cofferdam_session::{
    EventReport, ExecReport, GcReport, HistoryReport, SessionReport, SnapshotExported,
    SnapshotImported, SnapshotReport, UndoReport,
};
use schemars::{Schema, schema_for};

/// An object with a published schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Object {
    /// A configuration file.
    Config,
    /// What `config check --json` prints.
    Check,
    /// What `run`, `exec` and `attach` print with `--json`.
    Result,
    /// An error with `--json`.
    Error,
    /// What `probe --json` prints.
    Probe,
    /// What `explain --json` prints.
    Explain,
    /// What `doctor --json` prints.
    Doctor,
    /// What `wrap` prints.
    Wrap,
    /// What `create`, `ensure`, `show`, `fork`, `pause`, `resume`, `stop` and `extend` print with `--json`.
    Session,
    /// What `ls --json` prints.
    Sessions,
    /// What `exec -d`, `wait`, `signal` and `shell` print with `--json`.
    Exec,
    /// What `ps --json` prints.
    Execs,
    /// What `logs --json` prints.
    Log,
    /// What `logs -f --json` prints, a line each.
    LogPart,
    /// What `events -f --json` prints, a line each.
    Event,
    /// What `events --json` prints.
    Events,
    /// What `rm --json` prints.
    Removal,
    /// What `gc --json` prints.
    Gc,
    /// What `history --json` prints.
    History,
    /// What `undo` and `snapshot restore` print with `--json`.
    Undo,
    Port,
    Network,
    Connections,
    /// What `show --metrics --json` prints.
    Metrics,
    /// What `approve --json` prints.
    Permission,
    /// What `approve --list --json` prints.
    Permissions,
    PolicyTested,
    PolicyLearned,
    /// What `snapshot create` and `rm` print with `--json`.
    Snapshot,
    /// What `snapshot ls --json` prints.
    Snapshots,
    /// What `snapshot export --json` prints.
    SnapshotExported,
    /// What `snapshot import --json` prints.
    SnapshotImported,
    /// What `image inspect --json` prints, and `image import --json` at last.
    Image,
    /// What `image ls --json` prints.
    Images,
    /// What `image rm` and `image gc` print with `--json`.
    ImagesRemoved,
    /// What `image pull` and `image import` tell with `--json` on the way, a line each.
    ImageEvent,
    /// What `file read --json` prints.
    FileContent,
    /// What `file stat --json` prints.
    FileEntry,
    /// What `file list --json` prints.
    FileList,
    /// What the other verbs of `file` print with `--json`.
    FileDone,
    /// What `file patch --json` prints.
    FilePatch,
    /// What `file edit --json` prints.
    FileEdit,
    /// What `file read --lines` and `--window` print with `--json`.
    FileWindow,
    /// What `create --manifest` reads.
    Manifest,
    /// What `diff --json` prints.
    Changes,
    /// What `apply --json` prints.
    Applied,
    /// What `discard --json` prints.
    Discarded,
    /// What `file read-many --json` prints.
    FileContents,
    /// What `file cp --recursive --json` prints.
    FileCopied,
    /// What `file import --json` prints.
    FileImported,
    /// What `file glob --json` prints.
    FileNames,
    /// What `file grep --json` prints.
    FileMatches,
    /// What `key revoke --json` prints.
    #[cfg(feature = "serve")]
    Key,
    /// What `key create --json` prints.
    #[cfg(feature = "serve")]
    KeyCreated,
    /// What `key ls --json` prints.
    #[cfg(feature = "serve")]
    Keys,
    /// What `secret add --json` prints.
    Secret,
    /// What `secret ls --json` prints.
    Secrets,
    /// What `secret key --json` prints.
    SecretKey,
    /// What work that takes its time writes to standard error with `--json`, a line each.
    Progress,
    /// What `file watch --json` prints, a line each.
    FileEvent,
    /// What `mcp install --json` prints.
    #[cfg(feature = "mcp")]
    McpInstalled,
}

impl Choice for Object {
    const WHAT: &'static str = "object";
    const ALL: &'static [Self] = &[
        Self::Config,
        Self::Check,
        Self::Result,
        Self::Error,
        Self::Probe,
        Self::Explain,
        Self::Doctor,
        Self::Wrap,
        Self::Session,
        Self::Sessions,
        Self::Exec,
        Self::Execs,
        Self::Log,
        Self::LogPart,
        Self::Event,
        Self::Events,
        Self::Removal,
        Self::Gc,
        Self::History,
        Self::Undo,
        Self::Port,
        Self::Network,
        Self::Connections,
        Self::Metrics,
        Self::Permission,
        Self::Permissions,
        Self::PolicyTested,
        Self::PolicyLearned,
        Self::Snapshot,
        Self::Snapshots,
        Self::SnapshotExported,
        Self::SnapshotImported,
        Self::Image,
        Self::Images,
        Self::ImagesRemoved,
        Self::ImageEvent,
        Self::FileContent,
        Self::FileEntry,
        Self::FileList,
        Self::FileDone,
        Self::FilePatch,
        Self::FileEdit,
        Self::FileWindow,
        Self::Manifest,
        Self::Changes,
        Self::Applied,
        Self::Discarded,
        Self::FileContents,
        Self::FileCopied,
        Self::FileImported,
        Self::FileNames,
        Self::FileMatches,
        #[cfg(feature = "serve")]
        Self::Key,
        #[cfg(feature = "serve")]
        Self::KeyCreated,
        #[cfg(feature = "serve")]
        Self::Keys,
        Self::Secret,
        Self::Secrets,
        Self::SecretKey,
        Self::Progress,
        Self::FileEvent,
        #[cfg(feature = "mcp")]
        Self::McpInstalled,
    ];

    #[expect(clippy::too_many_lines, reason = "a line an object")]
    fn named(self) -> &'static str {
        match self {
            Self::Config => "config",
            Self::Check => "check",
            Self::Result => "result",
            Self::Error => "error",
            Self::Probe => "probe",
            Self::Explain => "explain",
            Self::Doctor => "doctor",
            Self::Wrap => "wrap",
            Self::Session => "session",
            Self::Sessions => "sessions",
            Self::Exec => "exec",
            Self::Execs => "execs",
            Self::Log => "log",
            Self::LogPart => "log-part",
            Self::Event => "event",
            Self::Events => "events",
            Self::Removal => "removal",
            Self::Gc => "gc",
            Self::History => "history",
            Self::Undo => "undo",
            Self::Port => "port",
            Self::Network => "network",
            Self::Connections => "connections",
            Self::Metrics => "metrics",
            Self::Permission => "permission",
            Self::Permissions => "permissions",
            Self::PolicyTested => "policy-tested",
            Self::PolicyLearned => "policy-learned",
            Self::Snapshot => "snapshot",
            Self::Snapshots => "snapshots",
            Self::SnapshotExported => "snapshot-exported",
            Self::SnapshotImported => "snapshot-imported",
            Self::Image => "image",
            Self::Images => "images",
            Self::ImagesRemoved => "images-removed",
            Self::ImageEvent => "image-event",
            Self::FileContent => "file-content",
            Self::FileEntry => "file-entry",
            Self::FileList => "file-list",
            Self::FileDone => "file-done",
            Self::FilePatch => "file-patch",
            Self::FileEdit => "file-edit",
            Self::FileWindow => "file-window",
            Self::Manifest => "manifest",
            Self::Changes => "changes",
            Self::Applied => "applied",
            Self::Discarded => "discarded",
            Self::FileContents => "file-contents",
            Self::FileCopied => "file-copied",
            Self::FileImported => "file-imported",
            Self::FileNames => "file-names",
            Self::FileMatches => "file-matches",
            #[cfg(feature = "serve")]
            Self::Key => "key",
            #[cfg(feature = "serve")]
            Self::KeyCreated => "key-created",
            #[cfg(feature = "serve")]
            Self::Keys => "keys",
            Self::Secret => "secret",
            Self::Secrets => "secrets",
            Self::SecretKey => "secret-key",
            Self::Progress => "progress",
            Self::FileEvent => "file-event",
            #[cfg(feature = "mcp")]
            Self::McpInstalled => "mcp-installed",
        }
    }
}

impl Object {
    /// Its schema.
    #[expect(clippy::too_many_lines, reason = "a line an object")]
    fn schema(self) -> Schema {
        match self {
            Self::Config => config::schema(),
            Self::Check => schema_for!(CheckedConfig),
            Self::Result => schema_for!(RunReport),
            Self::Error => schema_for!(ErrorReport),
            Self::Probe => schema_for!(ProbeReport),
            Self::Explain => schema_for!(Explanation),
            Self::Doctor => schema_for!(Diagnosis),
            Self::Wrap => schema_for!(Wrapped),
            Self::Session => schema_for!(SessionReport),
            Self::Sessions => schema_for!(SessionList),
            Self::Exec => schema_for!(ExecReport),
            Self::Execs => schema_for!(ExecList),
            Self::Log => schema_for!(Log),
            Self::LogPart => schema_for!(LogPart),
            Self::Event => schema_for!(EventReport),
            Self::Events => schema_for!(EventList),
            Self::Removal => schema_for!(Removal),
            Self::Gc => schema_for!(GcReport),
            Self::History => schema_for!(HistoryReport),
            Self::Undo => schema_for!(UndoReport),
            Self::Port => schema_for!(Forwarded),
            Self::Network => schema_for!(NetworkReport),
            Self::Connections => schema_for!(ConnectionList),
            Self::Metrics => schema_for!(MetricsReport),
            Self::Permission => schema_for!(PermissionReport),
            Self::Permissions => schema_for!(PermissionList),
            Self::PolicyTested => schema_for!(Tested),
            Self::PolicyLearned => schema_for!(Learned),
            Self::Snapshot => schema_for!(SnapshotReport),
            Self::Snapshots => schema_for!(SnapshotList),
            Self::SnapshotExported => schema_for!(SnapshotExported),
            Self::SnapshotImported => schema_for!(SnapshotImported),
            Self::Image => schema_for!(ImageShown),
            Self::Images => schema_for!(ImageList),
            Self::ImagesRemoved => schema_for!(ImagesRemoved),
            Self::ImageEvent => schema_for!(ImageEvent),
            Self::FileContent => schema_for!(FileContent),
            Self::FileEntry => schema_for!(FileEntry),
            Self::FileList => schema_for!(FileList),
            Self::FileDone => schema_for!(FileDone),
            Self::FilePatch => schema_for!(FilePatch),
            Self::FileEdit => schema_for!(FileEdit),
            Self::FileWindow => schema_for!(FileWindow),
            Self::Manifest => schema_for!(Manifest),
            Self::Changes => schema_for!(ChangeList),
            Self::Applied => schema_for!(AppliedChanges),
            Self::Discarded => schema_for!(DiscardedChanges),
            Self::FileContents => schema_for!(FileContents),
            Self::FileCopied => schema_for!(FileCopied),
            Self::FileImported => schema_for!(FileImported),
            Self::FileNames => schema_for!(FileNames),
            Self::FileMatches => schema_for!(FileMatches),
            #[cfg(feature = "serve")]
            Self::Key => schema_for!(cofferdam_session::KeyReport),
            #[cfg(feature = "serve")]
            Self::KeyCreated => schema_for!(KeyCreated),
            #[cfg(feature = "serve")]
            Self::Keys => schema_for!(KeyList),
            Self::Secret => schema_for!(cofferdam_secrets::SecretReport),
            Self::Secrets => schema_for!(cofferdam_session::SecretList),
            Self::SecretKey => schema_for!(SecretKey),
            Self::Progress => schema_for!(ProgressEvent),
            Self::FileEvent => schema_for!(FileEventReport),
            #[cfg(feature = "mcp")]
            Self::McpInstalled => schema_for!(McpInstalled),
        }
    }

    /// Its schema as text, as it is published.
    pub(crate) fn text(self) -> Result<String> {
        let text = serde_json::to_string_pretty(&self.schema()).map_err(|cause| {
            Error::new(ErrorKind::Io, "the schema cannot be written as JSON").source(cause)
        })?;
        Ok(text + "\n")
    }
}

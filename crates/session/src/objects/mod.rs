//! The objects that every door shows of files and layers, as JSON: the command line with `--json`, HTTP and
//! MCP. Format 1 each. Their schemas are published.

pub mod advice;
mod files;
mod hunks;
mod layer;
mod news;
mod search;
mod shells;
mod snapshots;
mod texts;
mod watch;
mod wishes;

pub use files::{
    FileContent, FileCopied, FileDone, FileEntry, FileImported, FileList, FileSkipped,
};
pub use hunks::{HunkList, HunkText, LayerHunks, MAX_WHOLE_BYTES};
pub use layer::{AppliedChanges, ChangeList, DiscardedChanges, LayerChange, LayerFile};
pub use news::ExecNews;
pub use search::{
    FileContents, FileLeftOut, FileMatches, FileNames, MatchedFile, MatchedLine, OneContent,
};
pub use shells::{ShellList, ShellRan};
pub use snapshots::SnapshotList;
pub use texts::{FileEdit, FilePatch, FileWindow};
pub use watch::FileEventReport;
pub use wishes::{
    ApplyWish, AuditList, CaseWish, ChmodWish, ChosenWish, CopyWish, DiscardWish, EditWish,
    EditsWish, ExecWish, ExtendWish, FailureName, ForkWish, GlobWish, GrepWish, HealthReport,
    KindWish, LimitsWish, MkdirWish, MoveWish, ProblemReport, ProblemWith, ProfileName, PullName,
    ReadManyWish, RunWish, SandboxPage, SandboxWish, ScopeWish, ShellCheckWish, ShellRunWish,
    SignalWish, SizeWish, SnapshotWish, SocketAsked, SocketTold, SpecWish, StartWish, TellWish,
    ToolArguments, ToolList, ToolOutcome, ToolReport, UndoWish,
};

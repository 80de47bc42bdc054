//! The objects that every door shows of files and layers, as JSON: the command line with `--json`, HTTP and
//! MCP. Format 1 each. Their schemas are published.

mod files;
mod hunks;
mod layer;
mod search;
mod shells;
mod snapshots;
mod texts;
mod watch;

pub use files::{
    FileContent, FileCopied, FileDone, FileEntry, FileImported, FileList, FileSkipped,
};
pub use hunks::{HunkList, HunkText, LayerHunks};
pub use layer::{AppliedChanges, ChangeList, DiscardedChanges, LayerChange, LayerFile};
pub use search::{
    FileContents, FileLeftOut, FileMatches, FileNames, MatchedFile, MatchedLine, OneContent,
};
pub use shells::{ShellList, ShellRan};
pub use snapshots::SnapshotList;
pub use texts::{FileEdit, FilePatch, FileWindow};
pub use watch::FileEventReport;

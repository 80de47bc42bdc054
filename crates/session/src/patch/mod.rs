//! Patches: what a text says is to be changed, and what that makes of files. Pure, without any I/O.
//!
//! [`Patch::parse`] understands a text; [`Patch::paths`] says what has to be looked up; and
//! [`Patch::plan`] says what is to be done, or why nothing is, hunk by hunk. Whoever carries a plan
//! out decides nothing any more, so everything is checked before the first byte is written.
//!
//! **What is understood.** Unified diffs of `diff -u`, `git diff` and `git format-patch` with any text
//! around them, with `a/` and `b/`, other prefixes or none; files created, deleted, renamed, copied;
//! symbolic links; whether a file can be executed. Names as git quotes them. The envelope
//! `*** Begin Patch` with its own hunks. Contents are bytes and need not be text.
//!
//! **What is refused by name.** Binary patches, submodules, combined and context diffs; paths that are
//! absolute, go up, or lie in `.git`; links that would lead out of the workspace; what passes a limit.
//!
//! **Where a hunk goes.** At its line, moved as the hunk before it was, or at the only place where all of
//! its old lines stand, with the offset in the report; several places are ambiguous, and refused. No
//! context is dropped to make a hunk fit. What was applied before is recognised.
//!
//! **Wrong numbers.** Where the numbers of lines in a hunk's head are not those of its lines, the
//! lines are counted instead if it is clear which belong to it, and the report says so.
//!
//! **Line endings.** Where all lines of a section end one way and all lines of the file the other, the
//! file's way is kept, and the report says so. Anything else is taken as it stands. A diff says whether
//! the last line has a line feed; an envelope cannot, so the file keeps what it has.
//!
//! **Several sections.** Those of one diff all see the files as they were before it, so that names can
//! be swapped and a copy is one of the content before. A second section on the same file, and the next
//! mail of a series, see what was made before them.
//!
//! **Left open.** Empty directories stay. Modes other than that of execution are not kept by git and
//! not changed here. A diff without any context (`-U0`) can change and remove lines, not insert them.

mod envelope;
mod hunk_report;
mod hunk_text;
mod hunks;
mod lines;
mod make;
mod names;
mod parse;
mod place;
mod plan;
mod report;
mod section;
mod settle;
mod text;
mod tree;
mod unified;

pub use hunks::{MAX_PATCHED_BYTES, MAX_PATCHED_FILE_BYTES, MAX_PATCHED_FILE_LINES};
pub(crate) use lines::{Ending, common_ending, split};
pub use names::MAX_PATCH_DEPTH;
pub(crate) use names::is_git_directory;
pub use parse::MAX_PATCH_PATH_BYTES;
pub use place::MAX_SEARCHED_LINES;
pub use plan::PatchPlan;
pub use report::{
    Difference, HunkOutcome, NearestPlace, PatchAction, PatchFormat, PatchNote, PatchOutcome,
    PatchRefusal, PatchRefusalKind, PatchReport, PatchedFile, PatchedHunk,
};
pub use section::Patch;
pub(crate) use settle::good_link;
pub use text::{MAX_PATCH_BYTES, MAX_PATCH_LINE_BYTES, MAX_PATCH_LINES};
pub use tree::{Change, Executable, Node, Tree};
pub use unified::{MAX_PATCH_FILES, MAX_PATCH_HUNKS};

//! Names and lines in the files of a workspace: glob and grep.
//!
//! [`Search`] works over [`Files`]: names and bytes come from inside the sandbox,
//! as every answer about files does, and are matched here. Nothing of the workspace is opened on the
//! host, so no link and no rename leads a search out. What comes is hostile: every amount has a limit,
//! and what a limit leaves out is told.

mod events;
mod glob;
mod grep;
mod hits;
mod left_out;
mod rules;
mod scope;
#[cfg(test)]
mod tests;
mod walk;

pub use events::EventFilter;
pub use glob::{Found, Glob};
pub use grep::{Case, Grep, MAX_CONTEXT_LINES, MAX_FILE_BYTES, Want};
pub use hits::{FileHits, Line, LineKind, MAX_HITS_BYTES, MAX_LINE_BYTES};
pub use left_out::{LeftOut, Reason};
pub use rules::{MAX_RULE_BYTES, MAX_RULE_FILES};
pub use scope::{MAX_PATTERNS, Scope};
pub use walk::MAX_VISITED;

use cofferdam_core::Files;

/// Searches the files of one workspace.
///
/// Directories are gone through in the order of names. Links in them are named and never followed;
/// pipes, sockets and devices are named and never opened; what is called `.git` is passed over.
#[derive(Debug, Clone)]
pub struct Search {
    files: Files,
}

impl Search {
    /// A search of these files.
    pub fn new(files: Files) -> Self {
        Self { files }
    }
}

/// What a search has done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Searched {
    /// How many names were found, or how many lines matched.
    pub matches: u64,
    /// How many files were read for it.
    pub files: u64,
    /// What was not searched or not told, by its reason.
    pub left_out: Vec<LeftOut>,
}

//! Where is searched, and what is passed over there.

use crate::MAX_VISITED;
use cofferdam_core::files::ByteString;
use cofferdam_core::{Error, ErrorKind, Result};
use ignore::overrides::{Override, OverrideBuilder};

/// The most patterns of one sort.
pub const MAX_PATTERNS: usize = 1000;

/// Where is searched, and what is passed over there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    /// Files and directories; the whole workspace where there are none. A file that is named here is
    /// searched whatever rules say.
    pub paths: Vec<ByteString>,
    /// Whether names that begin with a dot are searched too.
    pub hidden: bool,
    /// Whether names that a `.gitignore` excludes are searched too.
    pub ignored: bool,
    /// Only files that one of these patterns matches, as a line of a `.gitignore` would; they are
    /// searched even where such a line excludes them.
    pub include: Vec<String>,
    /// No file or directory that one of these matches.
    pub exclude: Vec<String>,
    /// How many names are looked at, at most [`MAX_VISITED`].
    pub max_visited: u64,
}

impl Default for Scope {
    fn default() -> Self {
        Self {
            paths: Vec::new(),
            hidden: false,
            ignored: false,
            include: Vec::new(),
            exclude: Vec::new(),
            max_visited: MAX_VISITED,
        }
    }
}

impl Scope {
    /// What decides by the patterns of the caller.
    pub(crate) fn patterns(&self) -> Result<Override> {
        few(self.include.len() + self.exclude.len())?;
        let mut builder = OverrideBuilder::new(".");
        let all = self.include.iter().map(|pattern| ("", pattern));
        for (sign, pattern) in all.chain(self.exclude.iter().map(|pattern| ("!", pattern))) {
            let added = builder.add(&format!("{sign}{pattern}")).map(drop);
            added.map_err(|cause| wrong(pattern, cause))?;
        }
        builder.build().map_err(|cause| wrong("the patterns together", cause))
    }
}

/// Refuses more patterns than are taken.
pub(crate) fn few(count: usize) -> Result<()> {
    match count {
        0..=MAX_PATTERNS => Ok(()),
        _ => {
            let what = format!("{count} patterns are over the limit of {MAX_PATTERNS}");
            Err(Error::new(ErrorKind::Usage, what).hint("Write fewer, or join them."))
        }
    }
}

/// A pattern makes no sense.
pub(crate) fn wrong(pattern: &str, cause: impl std::error::Error + Send + Sync + 'static) -> Error {
    let what = format!("the pattern {pattern:?} makes no sense: {cause}");
    Error::new(ErrorKind::Usage, what).hint("Correct it, or search for it as fixed text.")
}

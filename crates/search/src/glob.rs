//! Names that match a pattern.

use crate::left_out::{Reason, leave_out};
use crate::scope::{Scope, few, wrong};
use crate::walk::{Met, Walk};
use crate::{Search, Searched};
use cofferdam_core::files::{ByteString, Entry, EntryKind};
use cofferdam_core::{Error, ErrorKind, Result};
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use std::ffi::OsStr;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Which names are wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Glob {
    /// One of these has to match the path below the place that is searched: `*` and `?` stay within a
    /// directory, `**` goes through any number of them, and there are `[ab]` and `{one,other}`.
    pub patterns: Vec<String>,
    /// Whether capital letters and small ones are the same.
    pub ignore_case: bool,
    /// Only what is one of these; anything where there are none.
    pub kinds: Vec<EntryKind>,
    /// How many names are told; all without it.
    pub max_matches: Option<u64>,
    /// Where.
    pub scope: Scope,
}

/// A name that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Its path from the workspace on.
    pub path: ByteString,
    /// What it is; its own path is empty.
    pub entry: Entry,
}

impl Search {
    /// Tells the names that match, in their order, until all are told or `each` breaks off.
    pub async fn glob(
        &self,
        order: &Glob,
        each: &mut (dyn FnMut(Found) -> ControlFlow<()> + Send),
    ) -> Result<Searched> {
        let set = set(&order.patterns, order.ignore_case)?;
        let mut walk = Walk::new(&self.files, &order.scope)?;
        let mut matches = 0;
        while let Some(met) = walk.next().await? {
            let is_wanted = order.kinds.is_empty() || order.kinds.contains(&met.entry.kind);
            if !is_wanted || !set.is_match(below(&met)) {
                continue;
            }
            if order.max_matches.is_some_and(|most| matches >= most) {
                leave_out(&mut walk.left_out, Reason::TooManyMatches, &met.path);
                break;
            }
            matches += 1;
            let entry = Entry { path: ByteString::default(), ..met.entry };
            if each(Found { path: met.path.into(), entry }).is_break() {
                break;
            }
        }
        Ok(Searched { matches, files: 0, left_out: walk.left_out })
    }
}

/// The part of the path that a pattern is about.
fn below(met: &Met) -> &Path {
    let below = met.path.get(met.start..).unwrap_or_default();
    Path::new(OsStr::from_bytes(below.strip_prefix(b"/").unwrap_or(below)))
}

/// What matches where one of the patterns does.
pub(crate) fn set(patterns: &[String], ignore_case: bool) -> Result<GlobSet> {
    if patterns.is_empty() {
        return Err(Error::new(ErrorKind::Usage, "no pattern was given").hint("Give at least one."));
    }
    few(patterns.len())?;
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let glob = GlobBuilder::new(pattern)
            .literal_separator(true)
            .backslash_escape(true)
            .case_insensitive(ignore_case)
            .build();
        set.add(glob.map_err(|cause| wrong(pattern, cause))?);
    }
    set.build().map_err(|cause| wrong("the patterns together", cause))
}

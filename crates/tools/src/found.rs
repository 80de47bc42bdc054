//! Searches that every pack may use: what they find within a limit, and how much there is beyond.

use crate::context::Watched;
use cofferdam_core::{Files, Result, made_visible};
use cofferdam_search::{FileHits, Found, Glob, Grep, LineKind, Reason, Search, Searched};
use schemars::JsonSchema;
use serde::Serialize;
use std::ops::ControlFlow;
use std::time::Duration;

/// The longest line that is shown, in bytes.
pub(crate) const MAX_LINE_BYTES: usize = 500;
/// How long a search goes on.
const SEARCH_WITHIN: Duration = Duration::from_secs(30);

/// Which of all that is found is wanted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    pub(crate) skip: usize,
    pub(crate) limit: usize,
}

/// What was found.
#[derive(Debug, Clone, Default)]
pub(crate) struct Finds {
    /// Those that are wanted, in order.
    pub(crate) finds: Vec<Find>,
    /// How many there are in all.
    pub(crate) total: usize,
    /// Whether all was counted.
    pub(crate) complete: bool,
    /// What was not searched, and why.
    pub(crate) left_out: Vec<NotSearched>,
}

/// A name or a line that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Find {
    /// The file, from the workspace on; bytes that are no UTF-8 are replaced.
    pub(crate) path: String,
    /// The number of the line, from 1; null for a name, and for a file that is not text.
    pub(crate) line: Option<u64>,
    /// The line, cut at 500 bytes; null for a name, and for a file that is not text.
    pub(crate) text: Option<String>,
    /// Whether it is beside a line that matches, and does not match itself.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    pub(crate) context: bool,
}

/// Something that was not searched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct NotSearched {
    /// Why: `too_large`, `unreadable`, `too_deep`, `too_many_names`, `too_many_matches`,
    /// `matches_of_one_file` or `rules`.
    reason: &'static str,
    /// How often.
    count: u64,
    /// What it was the first time.
    first: String,
}

impl Finds {
    /// Names that match, those of directories too where no kind is asked for.
    pub(crate) async fn names(
        files: &Files,
        order: &Glob,
        window: Window,
        context: &Watched,
    ) -> Result<Self> {
        let mut all = Self::default();
        let search = Search::new(files.clone());
        let mut each = |found: Found| {
            let path = found.path.to_string();
            all.add(window, Find { path, line: None, text: None, context: false });
            ControlFlow::Continue(())
        };
        let searched = within(search.glob(order, &mut each), context).await;
        all.searched(searched)
    }

    /// Lines that match.
    pub(crate) async fn lines(
        files: &Files,
        order: &Grep,
        window: Window,
        context: &Watched,
    ) -> Result<Self> {
        let mut all = Self::default();
        let search = Search::new(files.clone());
        let mut each = |hits: FileHits| {
            all.add_hits(window, &hits);
            ControlFlow::Continue(())
        };
        let searched = within(search.grep(order, &mut each), context).await;
        all.searched(searched)
    }

    /// Why not all was counted, and what to do about it; none where it was.
    pub(crate) fn why_not_complete(&self) -> Option<&'static str> {
        if self.complete {
            return None;
        }
        let is_of_one_file = |left: &NotSearched| left.reason == Reason::MatchesOfOneFile.name();
        Some(match self.left_out.iter().any(is_of_one_file) {
            true => "a file has more matches than are looked at; narrow the pattern",
            false => "the search was ended before it was through; search a smaller place",
        })
    }

    fn add_hits(&mut self, window: Window, hits: &FileHits) {
        let path = hits.path.to_string();
        if hits.is_binary {
            return self.add(window, Find { path, line: None, text: None, context: false });
        }
        for line in &hits.lines {
            let told = line.bytes.get(..MAX_LINE_BYTES).unwrap_or(&line.bytes);
            let find = Find {
                path: path.clone(),
                line: Some(line.number),
                text: Some(String::from_utf8_lossy(told).into_owned()),
                context: line.kind == LineKind::Context,
            };
            self.add(window, find);
        }
    }

    fn add(&mut self, window: Window, find: Find) {
        let end = window.skip.saturating_add(window.limit);
        let beside = find.context && self.total >= window.skip && self.total <= end;
        if beside || !find.context && (window.skip..end).contains(&self.total) {
            self.finds.push(find.clone());
        }
        self.total += usize::from(!find.context);
    }

    fn searched(mut self, searched: Option<Result<Searched>>) -> Result<Self> {
        let Some(searched) = searched else { return Ok(self) };
        let left_out = searched?.left_out;
        self.complete = !left_out.iter().any(|left| is_uncounted(left.reason));
        let left_out = left_out.into_iter().map(|left| NotSearched {
            reason: left.reason.name(),
            count: left.count,
            first: left.first.to_string(),
        });
        self.left_out = left_out.collect();
        Ok(self)
    }
}

/// Whether matches were met that are not in the count.
fn is_uncounted(reason: Reason) -> bool {
    match reason {
        Reason::TooManyMatches | Reason::MatchesOfOneFile => true,
        Reason::TooLarge
        | Reason::Unreadable
        | Reason::TooDeep
        | Reason::TooManyNames
        | Reason::Rules => false,
    }
}

/// Nothing, if the time is over or the call is given up.
async fn within<T>(search: impl Future<Output = T>, context: &Watched) -> Option<T> {
    tokio::select! {
        done = tokio::time::timeout(SEARCH_WITHIN, search) => done.ok(),
        () = context.canceled() => None,
    }
}

impl std::fmt::Display for NotSearched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {}", self.reason.replace('_', " "), made_visible(&self.first))?;
        if self.count > 1 {
            write!(f, " and {} others", self.count - 1)?;
        }
        Ok(())
    }
}

//! Lines that match a pattern.

use crate::hits::{FileHits, Keep, Taker};
use crate::left_out::{Reason, leave_out};
use crate::scope::{Scope, few, wrong};
use crate::walk::{Walk, shown};
use crate::{Search, Searched};
use cofferdam_core::files::{EntryKind, MAX_READ_FILES, ReadMany, is_of_the_file};
use cofferdam_core::{Error, ErrorKind, Files, Result};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use std::ops::ControlFlow;

/// The largest file that is searched. It is held in memory as a whole.
pub const MAX_FILE_BYTES: u64 = 64 << 20;

/// The most lines of context on one side of a match.
pub const MAX_CONTEXT_LINES: u32 = 1000;

/// How many bytes of files are asked for at once. A larger file is asked for alone.
const BATCH_BYTES: u64 = 4 << 20;

/// The most memory of a compiled pattern, and of what is kept while it is matched.
const PATTERN_BYTES: usize = 10 << 20;

/// Which lines are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grep {
    /// One of these has to match: regular expressions, which match in linear time.
    pub patterns: Vec<String>,
    /// Whether the patterns are text as it stands.
    pub fixed: bool,
    /// Whether a match has to be a word of its own.
    pub word: bool,
    /// What capital letters mean.
    pub case: Case,
    /// How many lines before each match are told, at most [`MAX_CONTEXT_LINES`].
    pub before: u32,
    /// The same behind it.
    pub after: u32,
    /// What is told of a file.
    pub want: Want,
    /// Whether a file with zero bytes is searched as if it were text.
    pub binary_as_text: bool,
    /// At most so many matching lines of one file.
    pub max_matches_of_one: Option<u64>,
    /// At most so many matching lines in all.
    pub max_matches: Option<u64>,
    /// Leave out files that are larger, which are those over [`MAX_FILE_BYTES`] in any case.
    pub max_file_bytes: u64,
    /// Where.
    pub scope: Scope,
}

/// What capital letters mean.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Case {
    /// They are other letters.
    #[default]
    Sensitive,
    /// They are the same letters.
    Insensitive,
    /// They are other letters where the pattern holds one, and the same otherwise.
    Smart,
}

/// What is told of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Want {
    /// Its lines that match.
    #[default]
    Lines,
    /// How many match.
    Count,
    /// That one matches.
    Name,
}

impl Default for Grep {
    fn default() -> Self {
        Self {
            patterns: Vec::new(),
            fixed: false,
            word: false,
            case: Case::default(),
            before: 0,
            after: 0,
            want: Want::default(),
            binary_as_text: false,
            max_matches_of_one: None,
            max_matches: None,
            max_file_bytes: MAX_FILE_BYTES,
            scope: Scope::default(),
        }
    }
}

impl Search {
    /// Tells the files with lines that match, in the order of their names, until all are told or
    /// `each` breaks off. At most one file and [`MAX_HITS_BYTES`](crate::MAX_HITS_BYTES) of its lines
    /// are held, beside what is asked for at once.
    pub async fn grep(
        &self,
        order: &Grep,
        each: &mut (dyn FnMut(FileHits) -> ControlFlow<()> + Send),
    ) -> Result<Searched> {
        let matcher = matcher(order)?;
        let mut walk = Walk::new(&self.files, &order.scope)?;
        let mut run = Run {
            files: &self.files,
            order,
            matcher,
            each,
            batch: Vec::new(),
            batch_bytes: 0,
            searched: Searched::default(),
        };
        let mut flow = ControlFlow::Continue(());
        while flow.is_continue()
            && let Some(met) = walk.next().await?
        {
            flow = match met.entry.kind {
                EntryKind::File => run.add(met.path, met.entry.size).await?,
                // Its own size says nothing of what it leads to.
                EntryKind::Link if met.is_named => run.search_alone(met.path).await?,
                EntryKind::Link
                | EntryKind::Directory
                | EntryKind::Fifo
                | EntryKind::Socket
                | EntryKind::Device => flow,
            };
        }
        if flow.is_continue() {
            let _ = run.search_batch().await?;
        }
        let mut searched = run.searched;
        searched.left_out.append(&mut walk.left_out);
        searched.left_out.sort_by_key(|left| left.reason);
        Ok(searched)
    }
}

/// A search that is under way.
struct Run<'a> {
    files: &'a Files,
    order: &'a Grep,
    matcher: RegexMatcher,
    each: &'a mut (dyn FnMut(FileHits) -> ControlFlow<()> + Send),
    batch: Vec<Vec<u8>>,
    batch_bytes: u64,
    searched: Searched,
}

impl Run<'_> {
    /// Takes a file that seems to be so large.
    async fn add(&mut self, path: Vec<u8>, size: u64) -> Result<ControlFlow<()>> {
        if self.left() == 0 {
            self.leave_out(Reason::TooManyMatches, &path);
            return Ok(ControlFlow::Continue(()));
        }
        if size > self.most() {
            self.leave_out(Reason::TooLarge, &path);
            return Ok(ControlFlow::Continue(()));
        }
        if size > BATCH_BYTES {
            return self.search_alone(path).await;
        }
        let is_full = self.batch.len() >= MAX_READ_FILES || self.batch_bytes + size > BATCH_BYTES;
        if is_full && self.search_batch().await?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        self.batch.push(path);
        self.batch_bytes += size;
        Ok(ControlFlow::Continue(()))
    }

    /// The largest file that is searched.
    fn most(&self) -> u64 {
        self.order.max_file_bytes.min(MAX_FILE_BYTES)
    }

    /// How many more matches may be told.
    fn left(&self) -> u64 {
        self.order.max_matches.unwrap_or(u64::MAX).saturating_sub(self.searched.matches)
    }

    fn leave_out(&mut self, reason: Reason, path: &[u8]) {
        leave_out(&mut self.searched.left_out, reason, path);
    }

    /// Reads what was taken and searches it.
    async fn search_batch(&mut self) -> Result<ControlFlow<()>> {
        let paths = std::mem::take(&mut self.batch);
        self.batch_bytes = 0;
        let asked = paths.iter().map(|path| path.clone().into()).collect();
        let order = ReadMany { paths: asked, max_bytes: self.most(), total_bytes: BATCH_BYTES };
        for (path, read) in paths.iter().zip(self.files.read_many(&order).await?) {
            if self.search(path, read.map(|content| content.bytes))?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Reads a file that fits in no batch and searches it, behind what was taken before.
    async fn search_alone(&mut self, path: Vec<u8>) -> Result<ControlFlow<()>> {
        if self.search_batch().await?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        let read = self.files.read(shown(&path), self.most()).await;
        self.search(&path, read)
    }

    fn search(&mut self, path: &[u8], read: Result<Vec<u8>>) -> Result<ControlFlow<()>> {
        match read {
            Ok(_) if self.left() == 0 => self.leave_out(Reason::TooManyMatches, path),
            Ok(bytes) => return self.search_bytes(path, &bytes),
            // It is gone since it was listed.
            Err(error) if error.kind == ErrorKind::NotFound => {}
            Err(error) if error.kind == ErrorKind::TooLarge => {
                self.leave_out(Reason::TooLarge, path);
            }
            Err(error) if is_of_the_file(&error) => self.leave_out(Reason::Unreadable, path),
            Err(error) => return Err(error),
        }
        Ok(ControlFlow::Continue(()))
    }

    fn search_bytes(&mut self, path: &[u8], bytes: &[u8]) -> Result<ControlFlow<()>> {
        self.searched.files += 1;
        let is_binary = !self.order.binary_as_text && bytes.contains(&0);
        let most_of_one = self.order.max_matches_of_one.unwrap_or(u64::MAX);
        let most = most_of_one.min(self.left());
        let keep = match self.order.want {
            Want::Name => Keep::First,
            Want::Lines | Want::Count if is_binary => Keep::First,
            Want::Lines => Keep::Lines(most),
            Want::Count => Keep::Count(most),
        };
        let mut taker = Taker::new(path, &self.matcher, keep);
        let done = self.searcher().search_slice(&self.matcher, bytes, &mut taker);
        done.map_err(|cause| Error::new(ErrorKind::Io, "search a file").source(cause))?;
        let mut hits = taker.hits;
        hits.is_binary = is_binary;
        self.searched.matches += hits.matches;
        if hits.is_cut {
            let is_all = hits.matches < most_of_one && self.left() == 0;
            let reason = if is_all { Reason::TooManyMatches } else { Reason::MatchesOfOneFile };
            self.leave_out(reason, path);
        }
        if hits.matches == 0 { Ok(ControlFlow::Continue(())) } else { Ok((self.each)(hits)) }
    }

    fn searcher(&self) -> Searcher {
        let context = |lines: u32| usize::try_from(lines.min(MAX_CONTEXT_LINES)).unwrap_or(0);
        SearcherBuilder::new()
            .line_number(true)
            .before_context(context(self.order.before))
            .after_context(context(self.order.after))
            .binary_detection(BinaryDetection::none())
            .bom_sniffing(false)
            .build()
    }
}

fn matcher(order: &Grep) -> Result<RegexMatcher> {
    if order.patterns.is_empty() {
        return Err(Error::new(ErrorKind::Usage, "no pattern was given").hint("Give at least one."));
    }
    few(order.patterns.len())?;
    let (insensitive, smart) = match order.case {
        Case::Sensitive => (false, false),
        Case::Insensitive => (true, false),
        Case::Smart => (false, true),
    };
    RegexMatcherBuilder::new()
        .multi_line(true)
        .fixed_strings(order.fixed)
        .word(order.word)
        .case_insensitive(insensitive)
        .case_smart(smart)
        .line_terminator(Some(b'\n'))
        .size_limit(PATTERN_BYTES)
        .dfa_size_limit(PATTERN_BYTES)
        .build_many(&order.patterns)
        .map_err(|cause| wrong(&order.patterns.join("|"), cause))
}

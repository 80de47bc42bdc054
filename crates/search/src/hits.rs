//! Lines of one file that match, with those around them.

use cofferdam_core::files::ByteString;
use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkContextKind, SinkMatch};
use std::io;

/// The most bytes of one line that are told.
pub const MAX_LINE_BYTES: usize = 4096;

/// The most bytes of lines of one file that are told, each counted with some more for itself.
pub const MAX_HITS_BYTES: usize = 16 << 20;

/// What a line takes beside its bytes.
const LINE_BYTES: usize = 64;

/// What was found in one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileHits {
    /// Its path from the workspace on.
    pub path: ByteString,
    /// Whether it holds a zero byte. Of such a file no line is told, and its first match is counted.
    pub is_binary: bool,
    /// How many lines match; where a limit ended the search, how many of these are told.
    pub matches: u64,
    /// These lines and those around them, in their order.
    pub lines: Vec<Line>,
    /// Whether a limit ended the search in this file, so that there may be more.
    pub is_cut: bool,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Its number, from 1 on.
    pub number: u64,
    /// Whether it matches, or stands beside one that does.
    pub kind: LineKind,
    /// Its bytes without the line end, at most [`MAX_LINE_BYTES`].
    pub bytes: Vec<u8>,
    /// How many bytes of it are left out behind these.
    pub left_out_bytes: u64,
}

/// What a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineKind {
    /// It matches.
    Match {
        /// At which of its bytes the first match begins, from 1 on.
        column: u64,
    },
    /// It stands before or behind one that matches.
    Context,
}

/// What is wanted of the lines that match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// They themselves, at most so many.
    Lines(u64),
    /// Their number, up to this one.
    Count(u64),
    /// Whether there is one.
    First,
}

/// Takes the lines of one file.
pub(crate) struct Taker<'a> {
    matcher: &'a RegexMatcher,
    keep: Keep,
    bytes: usize,
    pub(crate) hits: FileHits,
}

impl<'a> Taker<'a> {
    pub(crate) fn new(path: &[u8], matcher: &'a RegexMatcher, keep: Keep) -> Self {
        let hits = FileHits { path: path.to_vec().into(), ..FileHits::default() };
        Self { matcher, keep, bytes: 0, hits }
    }

    /// Keeps a line. Answers whether there is room for more.
    fn take(&mut self, number: Option<u64>, bytes: &[u8], kind: LineKind) -> bool {
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let told = bytes.get(..MAX_LINE_BYTES).unwrap_or(bytes);
        self.bytes += told.len() + LINE_BYTES;
        if self.bytes > MAX_HITS_BYTES {
            self.hits.is_cut = true;
            return false;
        }
        self.hits.lines.push(Line {
            number: number.unwrap_or(0),
            kind,
            bytes: told.to_vec(),
            left_out_bytes: (bytes.len() - told.len()) as u64,
        });
        true
    }
}

impl Sink for Taker<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        match self.keep {
            Keep::Lines(most) | Keep::Count(most) if self.hits.matches >= most => {
                self.hits.is_cut = true;
                return Ok(false);
            }
            Keep::First | Keep::Count(_) => {
                self.hits.matches += 1;
                return Ok(self.keep != Keep::First);
            }
            Keep::Lines(_) => {}
        }
        let place = self.matcher.find(found.bytes()).ok().flatten();
        let column = place.map_or(1, |place| place.start() as u64 + 1);
        let is_told = self.take(found.line_number(), found.bytes(), LineKind::Match { column });
        self.hits.matches += u64::from(is_told);
        Ok(is_told)
    }

    fn context(&mut self, _: &Searcher, line: &SinkContext<'_>) -> io::Result<bool> {
        let is_told = match (line.kind(), self.keep) {
            (SinkContextKind::After, Keep::Lines(_)) => true,
            // What stands before a match that is not told itself is not told either.
            (SinkContextKind::Before, Keep::Lines(most)) => self.hits.matches < most,
            (_, Keep::Count(_) | Keep::First) | (SinkContextKind::Other, Keep::Lines(_)) => false,
        };
        Ok(!is_told || self.take(line.line_number(), line.bytes(), LineKind::Context))
    }
}

//! What came of a hunk, told so that its author can mend it.

use super::hunks::signed;
use super::lines::{Ending, Lines, Words, split};
use super::place::{Before, Found, Searches, moved};
use super::section::{Hunk, Place, Side};
use super::{Difference, HunkOutcome, NearestPlace, PatchedHunk};

/// The most places that are told of an ambiguous hunk.
const SHOWN_CANDIDATES: usize = 16;
/// The longest line that is told, in bytes.
const SHOWN_BYTES: usize = 200;
/// How many lines of a hunk are compared to find where it comes nearest.
const COMPARED_LINES: usize = 32;

/// A hunk, the file in which it was looked for, and what was known then.
pub(super) struct Looked<'l> {
    pub(super) words: &'l Words<'l>,
    pub(super) hunk: &'l Hunk,
    pub(super) lines: &'l Lines<'l>,
    pub(super) before: Before,
}

pub(super) fn report(looked: &Looked<'_>, found: &Found, searches: &mut Searches) -> PatchedHunk {
    let mut report = PatchedHunk {
        patch_line: looked.hunk.line,
        outcome: HunkOutcome::Fits,
        line: None,
        offset: None,
        candidates: Vec::new(),
        nearest: None,
        recounted: looked.hunk.recounted,
    };
    if let Found::At(at) | Found::Already(at) = found {
        report.line = Some(at + 1);
        report.offset = match looked.hunk.place {
            Place::Line { old, .. } => Some(signed(*at) - signed(old)),
            Place::After(_) => None,
        };
    }
    report.outcome = match found {
        Found::At(_) => HunkOutcome::Fits,
        Found::Already(_) => HunkOutcome::AlreadyApplied,
        Found::Ambiguous(places) => {
            report.candidates = places.iter().take(SHOWN_CANDIDATES).map(|at| at + 1).collect();
            HunkOutcome::Ambiguous
        }
        Found::Earlier(at) => {
            report.candidates = vec![at + 1];
            HunkOutcome::OutOfOrder
        }
        Found::Nowhere => {
            report.nearest = looked.nearest(searches);
            HunkOutcome::NotFound
        }
        Found::NoAnchor => HunkOutcome::AnchorNotFound,
        Found::NoContext => HunkOutcome::NoContext,
        Found::TooLong => HunkOutcome::TooLarge,
    };
    report
}

impl Looked<'_> {
    /// Where most of a hunk's first lines stand, and there the first line that is otherwise.
    fn nearest(&self, searches: &mut Searches) -> Option<NearestPlace> {
        let old = self.words.side(self.hunk, Side::Old);
        let compared = old.get(..COMPARED_LINES).unwrap_or(&old);
        searches.compare(self.lines.count().saturating_mul(compared.len()))?;
        let alike = |at: usize| {
            let there = self.lines.numbers.get(at..).unwrap_or_default();
            compared.iter().zip(there).filter(|(one, other)| one == other).count()
        };
        let expected = match self.hunk.place {
            Place::Line { old, .. } => moved(old, self.before.drift),
            Place::After(_) => self.before.floor,
        };
        let last = self.lines.count().saturating_sub(1);
        let at = (self.before.floor.min(last)..=last)
            .max_by_key(|at| (alike(*at), std::cmp::Reverse(at.abs_diff(expected))))?;
        let there = self.lines.numbers.get(at..).unwrap_or_default();
        // If all of them stand there, the file goes on where it has to end.
        let same = old.iter().zip(there).take_while(|(one, other)| one == other).count();
        let mut said = self.hunk.lines.iter().filter(|line| line.side != Side::New);
        let said = said.nth(same).map(|line| self.words.line(line));
        let found = self.lines.line(at + same).map(split);
        Some(NearestPlace {
            line: at + 1,
            differs_at: at + same + 1,
            differs_in: difference(said, found),
            expected: said.map(|line| shown(line.0)),
            found: found.map(|line| shown(line.0)),
        })
    }
}

type Line<'l> = Option<(&'l [u8], Ending)>;

fn difference(expected: Line<'_>, found: Line<'_>) -> Difference {
    let (Some(expected), Some(found)) = (expected, found) else { return Difference::EndOfFile };
    let ink = |line: &[u8]| -> Vec<u8> {
        line.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect()
    };
    if expected.0 == found.0 {
        let ends = expected.1 != Ending::None && found.1 != Ending::None;
        if ends { Difference::LineEnding } else { Difference::FinalNewline }
    } else if ink(expected.0) == ink(found.0) {
        Difference::WhiteSpace
    } else {
        Difference::Text
    }
}

fn shown(line: &[u8]) -> String {
    String::from_utf8_lossy(line.get(..SHOWN_BYTES).unwrap_or(line)).into_owned()
}

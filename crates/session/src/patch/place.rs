//! Where a hunk belongs. Pure, and linear in the file for each search.
//!
//! A hunk with a line number belongs there, moved by as much as the hunk before it was. If its old
//! lines do not stand there, it belongs to the only place behind the hunk before it where they do;
//! several are ambiguous, however near one of them is. `git apply` and `patch` take the nearest, which
//! is a guess: the number was wrong already.
//!
//! A hunk without a number belongs to the only place where its old lines stand, or to the first behind
//! the lines that it names, if the first of these stands only once. No line of context is ever dropped.
//!
//! A hunk whose new lines stand at its place is taken for applied, rather than looked for elsewhere.

use super::lines::Lines;
use super::section::{Hunk, Place};
use crate::occurrences::occurrences;

/// How many lines all searches of one patch may pass over.
pub const MAX_SEARCHED_LINES: usize = 200_000_000;

/// A hunk and both of its sides, as numbers.
pub(super) struct Wanted<'h> {
    pub(super) hunk: &'h Hunk,
    pub(super) old: Vec<u32>,
    pub(super) new: Vec<u32>,
    /// Nothing may follow in the file.
    pub(super) at_end: bool,
    /// What the hunk is to stand behind: for each line that it names, where that stands.
    pub(super) anchors: Vec<Vec<usize>>,
}

/// What is known when a hunk's turn comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Before {
    /// The first line that no hunk before has changed.
    pub(super) floor: usize,
    /// How much further down than it says the hunk before was.
    pub(super) drift: i64,
}

/// Where a hunk belongs, in lines from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    At(usize),
    Already(usize),
    Ambiguous(Vec<usize>),
    /// Only before what is changed already.
    Earlier(usize),
    Nowhere,
    NoAnchor,
    NoContext,
    /// All searches together are too long.
    TooLong,
}

/// How many lines are compared to tell where hunks that fit nowhere come nearest.
const MAX_COMPARED_LINES: usize = 20_000_000;

/// What of [`MAX_SEARCHED_LINES`] and [`MAX_COMPARED_LINES`] is left.
pub(super) struct Searches {
    left: usize,
    compared: usize,
}

impl Searches {
    pub(super) fn new() -> Self {
        Self { left: MAX_SEARCHED_LINES, compared: MAX_COMPARED_LINES }
    }

    /// None if that would be too much.
    pub(super) fn spend(&mut self, lines: usize) -> Option<()> {
        self.left = self.left.checked_sub(lines)?;
        Some(())
    }

    /// None if that would be too much for what is only told.
    pub(super) fn compare(&mut self, lines: usize) -> Option<()> {
        self.compared = self.compared.checked_sub(lines)?;
        Some(())
    }
}

pub(super) fn place(
    lines: &Lines<'_>,
    w: &Wanted<'_>,
    b: Before,
    searches: &mut Searches,
) -> Found {
    if w.old.is_empty() && w.new.is_empty() {
        return Found::NoContext;
    }
    let found = match &w.hunk.place {
        Place::Line { old, new } => near(lines, w, b, (*old, *new), searches),
        Place::After(_) => behind(lines, w, b, searches),
    };
    found.unwrap_or(Found::TooLong)
}

/// The line moved by so much; never above the first.
pub(super) fn moved(line: usize, drift: i64) -> usize {
    line.saturating_add_signed(isize::try_from(drift).unwrap_or(0))
}

/// Whether the old or new lines stand there, and at the end of the file if they have to.
fn stands(lines: &Lines<'_>, side: &[u32], at_end: bool, at: usize) -> bool {
    lines.has(side, at) && (!at_end || at + side.len() == lines.count())
}

/// Every place where a side stands.
fn all(
    lines: &Lines<'_>,
    w: &Wanted<'_>,
    side: &[u32],
    from: usize,
    searches: &mut Searches,
) -> Option<Vec<usize>> {
    if w.at_end {
        let at = lines.count().checked_sub(side.len()).filter(|at| *at >= from);
        return Some(at.into_iter().filter(|at| stands(lines, side, true, *at)).collect());
    }
    searches.spend(lines.count().saturating_sub(from))?;
    Some(occurrences(side, &lines.numbers, from).collect())
}

fn near(
    lines: &Lines<'_>,
    w: &Wanted<'_>,
    b: Before,
    said: (usize, usize),
    searches: &mut Searches,
) -> Option<Found> {
    if w.old.is_empty() {
        return Some(into_nothing(lines, w));
    }
    let expected = moved(said.0, b.drift);
    let is_new = |at: usize| !w.new.is_empty() && stands(lines, &w.new, w.at_end, at);
    if expected >= b.floor && stands(lines, &w.old, w.at_end, expected) {
        // The old lines can be the beginning of the new ones, where a hunk has nothing behind it.
        let applied = w.new.len() > w.old.len() && is_new(expected);
        return Some(if applied { Found::Already(expected) } else { Found::At(expected) });
    }
    if let Some(at) = [expected, said.1].into_iter().find(|at| *at >= b.floor && is_new(*at)) {
        return Some(Found::Already(at));
    }
    let found = all(lines, w, &w.old, b.floor, searches)?;
    match found.as_slice() {
        [] => elsewhere(lines, w, b, expected, searches),
        [at] => Some(Found::At(*at)),
        _ => Some(Found::Ambiguous(found)),
    }
}

/// Without old lines, a hunk belongs only into a file without lines.
fn into_nothing(lines: &Lines<'_>, w: &Wanted<'_>) -> Found {
    let end = lines.count().checked_sub(w.new.len());
    match end.filter(|at| lines.has(&w.new, *at)) {
        Some(at) if at == 0 || w.hunk.at_end => Found::Already(at),
        _ if lines.count() == 0 || w.hunk.at_end => Found::At(lines.count()),
        _ => Found::NoContext,
    }
}

/// The old lines stand nowhere behind the hunk before: perhaps the new ones do, or the old ones do
/// further up.
fn elsewhere(
    lines: &Lines<'_>,
    w: &Wanted<'_>,
    b: Before,
    expected: usize,
    searches: &mut Searches,
) -> Option<Found> {
    let applied = all(lines, w, &w.new, b.floor, searches)?;
    if let Some(at) = applied.into_iter().min_by_key(|at| at.abs_diff(expected)) {
        return Some(Found::Already(at));
    }
    if b.floor > 0
        && let Some(at) = all(lines, w, &w.old, 0, searches)?.last()
    {
        return Some(Found::Earlier(*at));
    }
    Some(Found::Nowhere)
}

fn behind(lines: &Lines<'_>, w: &Wanted<'_>, b: Before, searches: &mut Searches) -> Option<Found> {
    let Some((first, rest)) = w.anchors.split_first() else {
        if w.old.is_empty() {
            return Some(into_nothing(lines, w));
        }
        let found = all(lines, w, &w.old, b.floor, searches)?;
        return match found.as_slice() {
            [at] => Some(only(lines, w, *at)),
            [] => elsewhere(lines, w, b, b.floor, searches),
            _ => Some(Found::Ambiguous(found)),
        };
    };
    let firsts: Vec<usize> = first.iter().copied().filter(|at| *at >= b.floor).collect();
    let Some(mut from) = firsts.first().map(|at| at + 1) else { return Some(Found::NoAnchor) };
    for anchor in rest {
        let Some(at) = anchor.iter().find(|at| **at >= from) else { return Some(Found::NoAnchor) };
        from = at + 1;
    }
    if w.old.is_empty() {
        let there = if w.hunk.at_end { lines.count() } else { from };
        return Some(match firsts.as_slice() {
            [_] if lines.has(&w.new, there) => Found::Already(there),
            [_] => Found::At(there),
            _ => Found::Ambiguous(firsts),
        });
    }
    let found = all(lines, w, &w.old, from, searches)?;
    match (firsts.as_slice(), found.as_slice()) {
        (_, [at]) | ([_], [at, ..]) => Some(only(lines, w, *at)),
        (_, []) => elsewhere(lines, w, Before { floor: from, ..b }, from, searches),
        _ => Some(Found::Ambiguous(found)),
    }
}

/// Old lines that are the beginning of the new ones stand there too when the hunk was applied.
fn only(lines: &Lines<'_>, w: &Wanted<'_>, at: usize) -> Found {
    let applied = w.new.len() > w.old.len() && stands(lines, &w.new, w.at_end, at);
    if applied { Found::Already(at) } else { Found::At(at) }
}

#[cfg(test)]
mod tests {
    use super::super::lines::Words;
    use super::super::section::{HunkLine, Side};
    use super::*;

    #[test]
    fn searches_have_a_limit_together() {
        let line = HunkLine { side: Side::Old, start: 0, end: 2 };
        let place_of = Place::Line { old: 0, new: 0 };
        let hunk =
            Hunk { line: 1, place: place_of, at_end: false, recounted: false, lines: vec![line] };
        let words = Words::new(b"x\n", std::slice::from_ref(&hunk), None);
        let lines = Lines::new(b"a\nb\nx\n", &words);
        let wanted = Wanted {
            hunk: &hunk,
            old: vec![1],
            new: Vec::new(),
            at_end: false,
            anchors: Vec::new(),
        };
        let before = Before { floor: 0, drift: 0 };
        let mut searches = Searches { left: 5, ..Searches::new() };
        assert_eq!(place(&lines, &wanted, before, &mut searches), Found::At(2));
        assert_eq!(place(&lines, &wanted, before, &mut searches), Found::TooLong);
        assert_eq!(Searches::new().left, MAX_SEARCHED_LINES);
    }
}

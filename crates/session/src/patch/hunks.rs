//! The hunks of one section, applied to the content of one file.
//!
//! **Line endings.** Where all lines of a section end one way and all lines of the file the other,
//! the section's lines get the file's ending. Anything else is taken as it stands, so that a file's
//! endings are never mixed but where the patch does it line by line.
//!
//! **The last line.** A diff says whether it has a line feed, and is believed. An envelope cannot say
//! it, so the file keeps what it has.

use super::hunk_report::{Looked, report};
use super::lines::{Ending, Lines, Words, common_ending};
use super::place::{Before, Found, Searches, Wanted, place};
use super::section::{Hunk, HunkLine, Place, Side};
use super::{PatchFormat, PatchNote, PatchedHunk};

/// The largest file that hunks are applied to, in bytes.
pub const MAX_PATCHED_FILE_BYTES: usize = 64 << 20;
/// The most lines of a file that hunks are applied to.
pub const MAX_PATCHED_FILE_LINES: usize = 4_000_000;
/// How many bytes all files of one patch may have that hunks are applied to, before and after.
pub const MAX_PATCHED_BYTES: usize = 512 << 20;

/// What hunks make of a content.
pub(super) struct Hunked {
    /// None if a hunk does not fit.
    pub(super) content: Option<Vec<u8>>,
    pub(super) hunks: Vec<PatchedHunk>,
    pub(super) notes: Vec<PatchNote>,
}

/// What one patch may still use up.
pub(super) struct Work {
    searches: Searches,
    bytes: usize,
}

impl Work {
    pub(super) fn new() -> Self {
        Self { searches: Searches::new(), bytes: MAX_PATCHED_BYTES }
    }

    /// Takes a file and what its hunks add into account. An error says which limit is passed.
    fn take(&mut self, source: &[u8], hunks: &[Hunk]) -> Result<(), String> {
        let lines = source.iter().filter(|byte| **byte == b'\n').count();
        if source.len() > MAX_PATCHED_FILE_BYTES || lines > MAX_PATCHED_FILE_LINES {
            return Err(format!(
                "the file has {} bytes in {lines} lines, and {MAX_PATCHED_FILE_BYTES} in \
                 {MAX_PATCHED_FILE_LINES} are the limit",
                source.len()
            ));
        }
        let lines = hunks.iter().flat_map(|hunk| &hunk.lines);
        let added: usize = lines.map(|line| (line.end - line.start) as usize + 1).sum();
        let Some(left) = self.bytes.checked_sub(2 * source.len() + added) else {
            return Err(format!(
                "the files of the patch have more bytes than {MAX_PATCHED_BYTES}, the limit for all"
            ));
        };
        self.bytes = left;
        Ok(())
    }
}

/// Applies hunks to a file's content. An error says which limit is passed.
pub(super) fn apply(
    text: &[u8],
    format: PatchFormat,
    hunks: &[Hunk],
    source: &[u8],
    work: &mut Work,
) -> Result<Hunked, String> {
    work.take(source, hunks)?;
    let said = hunks.iter().flat_map(|hunk| &hunk.lines).map(|line| line.bytes(text));
    let of_patch = common_ending(said);
    let of_file = common_ending(source.split_inclusive(|byte| *byte == b'\n'));
    let ending = of_file.filter(|file| of_patch.is_some_and(|patch| patch != *file));
    let mut notes = Vec::new();
    match ending {
        Some(Ending::CrLf) => notes.push(PatchNote::KeptCrlf),
        Some(Ending::Lf) => notes.push(PatchNote::KeptLf),
        Some(Ending::None) | None => {}
    }
    let words = Words::new(text, hunks, ending);
    if format == PatchFormat::Unified || source.is_empty() || source.ends_with(b"\n") {
        let (content, hunks) = applied(&words, hunks, source, &mut work.searches);
        return Ok(Hunked { content, hunks, notes });
    }
    let last = of_file.or(of_patch).unwrap_or(Ending::Lf).bytes();
    let (mut content, hunks) = applied(&words, hunks, &[source, last].concat(), &mut work.searches);
    if let Some(content) = &mut content
        && content.ends_with(last)
    {
        content.truncate(content.len() - last.len());
    }
    notes.push(PatchNote::KeptMissingFinalNewline);
    Ok(Hunked { content, hunks, notes })
}

/// The content with all hunks applied, if all fit, and a report of each.
fn applied(
    words: &Words<'_>,
    hunks: &[Hunk],
    source: &[u8],
    searches: &mut Searches,
) -> (Option<Vec<u8>>, Vec<PatchedHunk>) {
    let lines = Lines::new(source, words);
    let mut made = Vec::with_capacity(source.len());
    let mut copied = 0;
    let mut fit = true;
    let mut reports = Vec::with_capacity(hunks.len());
    let mut before = Before { floor: 0, drift: 0 };
    for hunk in hunks {
        let found = match wanted(words, hunk, &lines, searches) {
            Some(wanted) => place(&lines, &wanted, before, searches),
            None => Found::TooLong,
        };
        let looked = Looked { words, hunk, lines: &lines, before };
        reports.push(report(&looked, &found, searches));
        match found {
            Found::At(at) => {
                made.extend_from_slice(lines.slice(copied, at));
                copied = write(words, hunk, &lines, at, &mut made);
                before = Before { floor: copied, drift: drift(hunk, at, before) };
            }
            Found::Already(at) => {
                let there = hunk.lines.len() - hunk.count(Side::Old) - hunk.trail();
                before = Before { floor: at + there, drift: drift(hunk, at, before) };
                fit = false;
            }
            Found::Ambiguous(_)
            | Found::Earlier(_)
            | Found::Nowhere
            | Found::NoAnchor
            | Found::NoContext
            | Found::TooLong => fit = false,
        }
    }
    made.extend_from_slice(lines.slice(copied, lines.count()));
    (fit.then_some(made), reports)
}

/// What a hunk looks for; None if it names too many lines to look for them all.
fn wanted<'h>(
    words: &Words<'_>,
    hunk: &'h Hunk,
    lines: &Lines<'_>,
    searches: &mut Searches,
) -> Option<Wanted<'h>> {
    // What has no line feed can only be the end of a file.
    let ends = |line: &HunkLine| !line.bytes(words.text()).ends_with(b"\n");
    let at_end = hunk.at_end || hunk.lines.iter().any(ends);
    let mut anchors = Vec::new();
    if let Place::After(named) = &hunk.place {
        searches.spend(lines.count().saturating_mul(named.len()))?;
        anchors.extend(named.iter().map(|anchor| {
            let anchor = words.text().get(anchor.clone()).unwrap_or_default();
            let is_it =
                |at: &usize| lines.line(*at).is_some_and(|line| line.trim_ascii() == anchor);
            (0..lines.count()).filter(is_it).collect()
        }));
    }
    let (old, new) = (words.side(hunk, Side::Old), words.side(hunk, Side::New));
    Some(Wanted { hunk, old, new, at_end, anchors })
}

/// Writes what a hunk makes of the lines from `at` on, and says which line is the first that it
/// leaves alone.
fn write(
    words: &Words<'_>,
    hunk: &Hunk,
    lines: &Lines<'_>,
    mut at: usize,
    made: &mut Vec<u8>,
) -> usize {
    let count = hunk.lines.len() - hunk.trail();
    for line in hunk.lines.iter().take(count) {
        match line.side {
            Side::Both => made.extend_from_slice(lines.slice(at, at + 1)),
            Side::Old => {}
            Side::New => {
                let (line, ending) = words.line(line);
                made.extend_from_slice(line);
                made.extend_from_slice(ending.bytes());
            }
        }
        at += usize::from(line.side != Side::New);
    }
    at
}

/// How much further down than it says a hunk is.
fn drift(hunk: &Hunk, at: usize, before: Before) -> i64 {
    match hunk.place {
        Place::Line { old, .. } => signed(at) - signed(old),
        Place::After(_) => before.drift,
    }
}

pub(super) fn signed(line: usize) -> i64 {
    i64::try_from(line).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_a_patch_have_a_limit_together() {
        let lines = vec![HunkLine { side: Side::New, start: 0, end: 4 }];
        let place = Place::Line { old: 0, new: 0 };
        let hunk = Hunk { line: 1, place, at_end: false, recounted: false, lines };
        let hunks = [hunk];
        let mut work = Work { bytes: 250, ..Work::new() };
        assert_eq!(work.take(&[b'x'; 60], &hunks), Ok(()));
        assert_eq!(work.take(&[b'x'; 60], &hunks), Ok(()));
        assert!(work.take(b"", &hunks).unwrap_err().contains("the limit for all"));
        assert_eq!(Work::new().bytes, MAX_PATCHED_BYTES);
    }

    #[test]
    fn a_file_beyond_the_largest_is_refused() {
        let take = |bytes: usize| Work::new().take(&vec![b'x'; bytes], &[]);
        assert_eq!(take(MAX_PATCHED_FILE_BYTES), Ok(()));
        assert!(take(MAX_PATCHED_FILE_BYTES + 1).is_err());
    }
}

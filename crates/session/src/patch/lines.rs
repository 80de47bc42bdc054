//! Lines of files and hunks as numbers, equal where the lines are.

use super::section::{Hunk, HunkLine, Side};
use std::collections::HashMap;

/// How a line ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Ending {
    Lf,
    CrLf,
    /// Not at all, as only the last line of a file may.
    None,
}

impl Ending {
    pub(crate) fn bytes(self) -> &'static [u8] {
        match self {
            Self::Lf => b"\n",
            Self::CrLf => b"\r\n",
            Self::None => b"",
        }
    }
}

/// The text of a line, and how it ends.
pub(crate) fn split(line: &[u8]) -> (&[u8], Ending) {
    if let Some(text) = line.strip_suffix(b"\r\n") {
        (text, Ending::CrLf)
    } else if let Some(text) = line.strip_suffix(b"\n") {
        (text, Ending::Lf)
    } else {
        (line, Ending::None)
    }
}

/// How all lines end that do end, if they all end alike.
pub(crate) fn common_ending<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Option<Ending> {
    let mut endings = lines.map(|line| split(line).1).filter(|ending| *ending != Ending::None);
    let first = endings.next()?;
    endings.all(|ending| ending == first).then_some(first)
}

/// The lines of all hunks of a section, each under a number from 1.
pub(super) struct Words<'t> {
    numbers: HashMap<(&'t [u8], Ending), u32>,
    text: &'t [u8],
    /// What the hunks' lines end with in place of what they end with in the patch.
    ending: Option<Ending>,
}

impl<'t> Words<'t> {
    pub(super) fn new(text: &'t [u8], hunks: &[Hunk], ending: Option<Ending>) -> Self {
        let mut words = Self { numbers: HashMap::new(), text, ending };
        for line in hunks.iter().flat_map(|hunk| &hunk.lines) {
            let word = words.line(line);
            let next = u32::try_from(words.numbers.len() + 1).unwrap_or(u32::MAX);
            words.numbers.entry(word).or_insert(next);
        }
        words
    }

    /// What lines are ranges of.
    pub(super) fn text(&self) -> &'t [u8] {
        self.text
    }

    /// The text of a hunk's line, and how it ends in the file.
    pub(super) fn line(&self, line: &HunkLine) -> (&'t [u8], Ending) {
        let (text, ending) = split(line.bytes(self.text));
        match self.ending {
            Some(other) if ending != Ending::None => (text, other),
            _ => (text, ending),
        }
    }

    /// The lines of one of the two sides of a hunk.
    pub(super) fn side(&self, hunk: &Hunk, side: Side) -> Vec<u32> {
        let lines = hunk.lines.iter().filter(|line| line.side != side.reversed());
        lines.map(|line| self.number(self.line(line))).collect()
    }

    fn number(&self, word: (&[u8], Ending)) -> u32 {
        self.numbers.get(&word).copied().unwrap_or(0)
    }
}

/// The lines of a file: where each ends, and its number, 0 for one that is in no hunk.
pub(super) struct Lines<'f> {
    pub(super) bytes: &'f [u8],
    ends: Vec<u32>,
    pub(super) numbers: Vec<u32>,
}

impl<'f> Lines<'f> {
    /// LIMIT: the caller has made sure that 32 bits count the bytes.
    pub(super) fn new(bytes: &'f [u8], words: &Words<'_>) -> Self {
        let (mut ends, mut numbers, mut end) = (Vec::new(), Vec::new(), 0_usize);
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            end += line.len();
            ends.push(u32::try_from(end).unwrap_or(u32::MAX));
            numbers.push(words.number(split(line)));
        }
        Self { bytes, ends, numbers }
    }

    pub(super) fn count(&self) -> usize {
        self.ends.len()
    }

    /// Where a line begins; behind the last one for every line beyond.
    fn begin(&self, line: usize) -> usize {
        let end = line.checked_sub(1).and_then(|before| self.ends.get(before).or(self.ends.last()));
        end.map_or(0, |end| *end as usize)
    }

    /// The bytes of these lines.
    pub(super) fn slice(&self, from: usize, to: usize) -> &'f [u8] {
        self.bytes.get(self.begin(from)..self.begin(to)).unwrap_or_default()
    }

    pub(super) fn line(&self, line: usize) -> Option<&'f [u8]> {
        (line < self.count()).then(|| self.slice(line, line + 1))
    }

    /// Whether these numbers stand at this line.
    pub(super) fn has(&self, wanted: &[u32], at: usize) -> bool {
        self.numbers.get(at..at.saturating_add(wanted.len())) == Some(wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_are_common_only_if_all_are_alike() {
        let check = |text: &[u8], expected: Option<Ending>| {
            let lines = text.split_inclusive(|byte| *byte == b'\n');
            assert_eq!(common_ending(lines), expected, "{text:?}");
        };
        check(b"", None);
        check(b"a", None);
        check(b"a\nb", Some(Ending::Lf));
        check(b"a\r\nb\r\nc", Some(Ending::CrLf));
        check(b"a\r\nb\n", None);
    }
}

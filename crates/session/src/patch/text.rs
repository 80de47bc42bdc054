//! The text of a patch, line by line, within its limits.

use cofferdam_core::{Error, ErrorKind, Result};
use std::ops::Range;

/// The largest patch, in bytes.
pub const MAX_PATCH_BYTES: usize = 16 << 20;
/// The most lines of a patch.
pub const MAX_PATCH_LINES: usize = 1_000_000;
/// The longest line of a patch, in bytes.
pub const MAX_PATCH_LINE_BYTES: usize = 1 << 20;

/// A patch with the places where its lines begin. Every line ends with a line feed.
pub(super) struct PatchText {
    pub(super) bytes: Vec<u8>,
    /// Where each line begins, and where the last one ends.
    bounds: Vec<u32>,
}

impl PatchText {
    /// Takes the carriage returns away that were added to every line on the way here.
    pub(super) fn new(text: &[u8]) -> Result<Self> {
        if text.len() > MAX_PATCH_BYTES {
            return Err(too_large(format!("the patch has {} bytes", text.len()), MAX_PATCH_BYTES));
        }
        // Some editors put a mark of the byte order before everything.
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        let mut bytes = if every_line_has_carriage_return(text) {
            without_carriage_returns(text)
        } else {
            text.to_vec()
        };
        if bytes.last().is_some_and(|last| *last != b'\n') {
            bytes.push(b'\n');
        }
        let mut bounds = vec![0];
        let mut begin = 0;
        for (at, _) in bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n') {
            let end = at + 1;
            if end - begin > MAX_PATCH_LINE_BYTES {
                let what = format!("line {} of the patch has {} bytes", bounds.len(), end - begin);
                return Err(too_large(what, MAX_PATCH_LINE_BYTES));
            }
            begin = end;
            // LIMIT: a patch is far smaller than what 32 bits count.
            bounds.push(u32::try_from(end).unwrap_or(u32::MAX));
            if bounds.len() > MAX_PATCH_LINES + 1 {
                let what = format!("the patch has more than {MAX_PATCH_LINES} lines");
                return Err(Error::new(ErrorKind::Usage, what).hint("Split the patch."));
            }
        }
        Ok(Self { bytes, bounds })
    }

    /// The range of a line, from 0, with its line feed.
    pub(super) fn range(&self, line: usize) -> Option<Range<usize>> {
        let begin = *self.bounds.get(line)?;
        let end = *self.bounds.get(line + 1)?;
        Some(begin as usize..end as usize)
    }

    /// A line as the patch's own syntax sees it: without what ends it.
    pub(super) fn line(&self, line: usize) -> Option<&[u8]> {
        let bytes = self.bytes.get(self.range(line)?)?;
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        Some(bytes.strip_suffix(b"\r").unwrap_or(bytes))
    }

    pub(super) fn starts_with(&self, line: usize, start: &[u8]) -> bool {
        self.line(line).is_some_and(|text| text.starts_with(start))
    }

    /// Whether there is such a line, and nothing on it.
    pub(super) fn is_blank(&self, line: usize) -> bool {
        self.line(line).is_some_and(<[u8]>::is_empty)
    }
}

/// An error about a line, from 0.
pub(super) fn wrong(kind: ErrorKind, line: usize, what: &str) -> Error {
    Error::new(kind, format!("line {} of the patch: {what}", line + 1))
}

fn too_large(what: String, limit: usize) -> Error {
    Error::new(ErrorKind::Usage, format!("{what}, and {limit} are the limit"))
        .hint("Split the patch, or write the file as a whole.")
}

fn every_line_has_carriage_return(text: &[u8]) -> bool {
    let mut ended =
        text.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"));
    let first = ended.next();
    first.is_some_and(|line| line.ends_with(b"\r\n")) && ended.all(|line| line.ends_with(b"\r\n"))
}

fn without_carriage_returns(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        match line.strip_suffix(b"\r\n") {
            Some(line) => {
                bytes.extend_from_slice(line);
                bytes.push(b'\n');
            }
            None => bytes.extend_from_slice(line),
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_beyond_a_limit_is_refused_and_one_at_it_is_not() {
        let bytes = |count: usize| PatchText::new(&vec![b'\n'; count]).map(|_| ());
        assert!(bytes(MAX_PATCH_LINES).is_ok());
        assert!(bytes(MAX_PATCH_LINES + 1).is_err());
        let line = |count: usize| PatchText::new(&vec![b'x'; count]).map(|_| ());
        assert!(line(MAX_PATCH_LINE_BYTES - 1).is_ok());
        assert!(line(MAX_PATCH_LINE_BYTES).is_err());
        let lines = |count: usize| {
            let mut text = b"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n".repeat(MAX_PATCH_BYTES / 32);
            text.extend(std::iter::repeat_n(b'x', count));
            PatchText::new(&text).map(|_| ())
        };
        assert!(lines(0).is_ok());
        assert!(lines(1).is_err());
    }

    #[test]
    fn carriage_returns_of_every_line_are_the_ways_and_of_some_the_files() {
        let first = |text: &[u8]| PatchText::new(text).unwrap().bytes;
        assert_eq!(first(b"a\r\nb\r\nc"), b"a\nb\nc\n");
        assert_eq!(first(b"a\nb\r\n"), b"a\nb\r\n");
        assert_eq!(first(b"a\r\r\n"), b"a\r\n");
        assert_eq!(first(b""), b"");
    }
}

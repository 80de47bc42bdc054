//! What is written to a shell's driver, and what is read from it. Pure.

use std::fmt::Write as _;

/// Stands around the marks between outputs.
const MARK: u8 = 0x1e;

/// A command as one line for the driver.
///
/// It begins with a line end, so that a frame before it that was cut off is a line of its own.
pub(super) fn frame(seq: u64, takes_input: bool, text: &[u8]) -> Vec<u8> {
    let mut plain = String::with_capacity(text.len());
    for byte in text {
        if byte.is_ascii_graphic() && *byte != b'\\' {
            plain.push(char::from(*byte));
        } else {
            // Writing to a string cannot fail.
            write!(plain, "\\0{byte:03o}").ok();
        }
    }
    let mode = if takes_input { 'i' } else { 'n' };
    format!("\n{seq} {mode} {} {plain}\n", plain.len()).into_bytes()
}

/// What the driver says on its own channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    /// A command began.
    Began(u64),
    /// A command ended with this code.
    Ended(u64, i32),
}

/// The words in a part of the channel. A line that is cut off is left out.
pub(super) fn words(channel: &[u8]) -> Vec<Word> {
    let whole = channel.iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
    let text = String::from_utf8_lossy(channel.get(..whole).unwrap_or_default());
    let word = |line: &str| {
        let mut parts = line.split(' ');
        match (parts.next()?, parts.next()?.parse().ok()?, parts.next()) {
            ("B", seq, None) => Some(Word::Began(seq)),
            ("E", seq, Some(code)) => Some(Word::Ended(seq, code.parse().ok()?)),
            _ => None,
        }
    };
    text.lines().filter_map(word).collect()
}

/// The mark after the output of a command.
pub(super) fn mark(key: &str, seq: u64) -> Vec<u8> {
    let mut mark = vec![MARK];
    mark.extend(format!("{key} {seq}").into_bytes());
    mark.push(MARK);
    mark
}

/// The output of one command in what was read from where it began: without the rest of the one
/// before, and up to its own mark. Whether that mark was there.
pub(super) fn cut(read: &[u8], key: &str, seq: u64) -> (Vec<u8>, bool) {
    let own = mark(key, seq);
    let end = find(read, &own);
    let mut output = read.get(..end.unwrap_or(read.len())).unwrap_or_default();
    let mut lead = vec![MARK];
    lead.extend(format!("{key} ").into_bytes());
    while let Some(at) = find(output, &lead) {
        let after = output.get(at + lead.len()..).unwrap_or_default();
        let Some(close) = after.iter().position(|byte| *byte == MARK) else { break };
        output = after.get(close + 1..).unwrap_or_default();
    }
    (output.to_vec(), end.is_some())
}

fn find(within: &[u8], what: &[u8]) -> Option<usize> {
    within.windows(what.len()).position(|window| window == what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_one_line_whatever_the_text() {
        assert_eq!(frame(7, false, b"a b\\\n"), b"\n7 n 17 a\\0040b\\0134\\0012\n");
        let every: Vec<u8> = (0..=u8::MAX).collect();
        let framed = frame(1, true, &every);
        assert_eq!(framed.iter().filter(|byte| **byte == b'\n').count(), 2);
        assert!(framed.is_ascii());
    }

    #[test]
    fn words_are_whole_lines() {
        let heard = words(b"B 1\nE 1 0\nodd\nB 2 x\nE 2\nB 2\nE 2 13");
        assert_eq!(heard, [Word::Began(1), Word::Ended(1, 0), Word::Began(2)]);
        assert_eq!(words(b""), []);
    }

    #[test]
    fn output_is_cut_at_marks_and_at_nothing_else() {
        let text = b"rest\x1ekey 1\x1enew \x1eother 2\x1e$ fake\x1ekey 2\x1elater";
        let (output, whole) = cut(text, "key", 2);
        assert_eq!((output.as_slice(), whole), (&b"new \x1eother 2\x1e$ fake"[..], true));
        assert_eq!(cut(b"so far", "key", 2), (b"so far".to_vec(), false));
    }
}

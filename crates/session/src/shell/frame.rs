//! What is written to a shell's driver, and what is read from it. Pure.

use std::fmt::Write as _;

/// Stands around the marks between outputs.
const MARK: u8 = 0x1e;

/// How long the number of a command is at most.
const MAX_SEQ_DIGITS: usize = 20;

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

/// Where the command of this number began, if that is in a part of the channel.
pub(super) fn directory(channel: &[u8], seq: u64) -> Option<String> {
    let lead = format!("D {seq} ");
    let mut lines = channel.split_inclusive(|byte| *byte == b'\n');
    let place = lines.find_map(|line| line.strip_prefix(lead.as_bytes())?.strip_suffix(b"\n"))?;
    (!place.is_empty()).then(|| String::from_utf8_lossy(place).into_owned())
}

/// The mark after the output of a command.
pub(super) fn mark(key: &str, seq: u64) -> Vec<u8> {
    let mut mark = vec![MARK];
    mark.extend(format!("{key} {seq}").into_bytes());
    mark.push(MARK);
    mark
}

/// How long a mark is at most.
pub(super) fn longest_mark(key: &str) -> u64 {
    (key.len() + MAX_SEQ_DIGITS + "\x1e \x1e".len()) as u64
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

/// A piece of what a shell wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    /// Output.
    Output(Vec<u8>),
    /// The mark after the output of a command.
    Mark {
        /// The command's number.
        seq: u64,
        /// How long the mark is.
        len: usize,
    },
}

/// Parts output from marks. What may be the beginning of a mark is left over.
pub(super) fn pieces(read: &[u8], key: &str) -> (Vec<Piece>, Vec<u8>) {
    let lead = [&[MARK], key.as_bytes(), b" "].concat();
    let (mut found, mut output, mut rest) = (Vec::new(), Vec::new(), read);
    while let Some(at) = rest.iter().position(|byte| *byte == MARK) {
        let (before, from) = rest.split_at(at);
        output.extend_from_slice(before);
        match begins(from, &lead) {
            Begins::Mark(seq, len) => {
                if !output.is_empty() {
                    found.push(Piece::Output(std::mem::take(&mut output)));
                }
                found.push(Piece::Mark { seq, len });
                rest = from.get(len..).unwrap_or_default();
            }
            Begins::Perhaps => {
                rest = from;
                break;
            }
            Begins::Output => {
                output.push(MARK);
                rest = from.get(1..).unwrap_or_default();
            }
        }
    }
    if rest.first() != Some(&MARK) {
        output.extend_from_slice(rest);
        rest = &[];
    }
    if !output.is_empty() {
        found.push(Piece::Output(output));
    }
    (found, rest.to_vec())
}

/// What some bytes begin with.
enum Begins {
    Mark(u64, usize),
    Perhaps,
    Output,
}

fn begins(bytes: &[u8], lead: &[u8]) -> Begins {
    let Some(after) = bytes.strip_prefix(lead) else {
        return if lead.starts_with(bytes) { Begins::Perhaps } else { Begins::Output };
    };
    let digits = after.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = after.get(..digits).unwrap_or_default();
    let seq = std::str::from_utf8(number).ok().and_then(|text| text.parse().ok());
    match (after.get(digits), seq) {
        (Some(&MARK), Some(seq)) => Begins::Mark(seq, lead.len() + digits + 1),
        // No number is longer.
        (None, _) if digits <= MAX_SEQ_DIGITS => Begins::Perhaps,
        (_, _) => Begins::Output,
    }
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
    fn the_directory_of_a_command_is_a_whole_line_of_its_number() {
        let channel = b"D 1 /a b\nB 1\nE 1 0\nD 12 /c\nB 12\nD 13 \nD 14 /cut";
        let found = [1, 12, 13, 14, 2].map(|seq| directory(channel, seq));
        assert_eq!(found, [Some("/a b".to_owned()), Some("/c".to_owned()), None, None, None]);
        assert_eq!(words(channel), [Word::Began(1), Word::Ended(1, 0), Word::Began(12)]);
    }

    #[test]
    fn output_and_marks_are_parted_wherever_a_read_ends() {
        let text = b"one\x1ekey 1\x1e\x1ekey 22\x1etw\x1eo\x1ekeys 3\x1e\x1ekey 99999999999999999999999\x1e";
        let whole = pieces(text, "key").0;
        let mark = |seq, len| Piece::Mark { seq, len };
        let output = |text: &[u8]| Piece::Output(text.to_vec());
        let rest = output(b"tw\x1eo\x1ekeys 3\x1e\x1ekey 99999999999999999999999");
        let (expected, left) =
            (vec![output(b"one"), mark(1, 7), mark(22, 8), rest], pieces(text, "key").1);
        assert_eq!((whole, left.as_slice()), (expected, &b"\x1e"[..]));
        for cut in 0..text.len() {
            let (mut found, held) = pieces(&text[..cut], "key");
            let (more, _) = pieces(&[held.as_slice(), &text[cut..]].concat(), "key");
            found.extend(more);
            let marks: Vec<Piece> =
                found.iter().filter(|p| matches!(p, Piece::Mark { .. })).cloned().collect();
            assert_eq!(marks, [mark(1, 7), mark(22, 8)], "cut at {cut}");
        }
    }

    #[test]
    fn output_is_cut_at_marks_and_at_nothing_else() {
        let text = b"rest\x1ekey 1\x1enew \x1eother 2\x1e$ fake\x1ekey 2\x1elater";
        let (output, whole) = cut(text, "key", 2);
        assert_eq!((output.as_slice(), whole), (&b"new \x1eother 2\x1e$ fake"[..], true));
        assert_eq!(cut(b"so far", "key", 2), (b"so far".to_vec(), false));
    }
}

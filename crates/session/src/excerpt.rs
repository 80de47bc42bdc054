//! What a command that failed said: the beginning, where many programs name the cause, and the end.

/// How much is kept of the beginning of a stream, in bytes.
pub(crate) const HEAD_BYTES: u32 = 512;
/// How much is kept of its end, in bytes.
pub(crate) const TAIL_BYTES: u32 = 1536;
/// How much of a stream is kept whole, in bytes.
pub(crate) const WHOLE_BYTES: u32 = HEAD_BYTES + TAIL_BYTES;

/// All of a stream's bytes, or whole lines of its beginning and its end around one that says how many were left out.
#[must_use]
pub fn excerpt(all: &[u8]) -> Vec<u8> {
    let (head, tail) = (HEAD_BYTES as usize, TAIL_BYTES as usize);
    match (all.get(..head), all.len().checked_sub(tail)) {
        (Some(head), Some(from)) if all.len() > WHOLE_BYTES as usize => {
            joined(head, all.get(from..).unwrap_or_default(), all.len() as u64)
        }
        _ => all.to_vec(),
    }
}

/// The same of a stream that wrote so many bytes, of which these are the first and the last.
pub(crate) fn joined(head: &[u8], tail: &[u8], written: u64) -> Vec<u8> {
    let whole = head.iter().rposition(|byte| *byte == b'\n').map_or(head.len(), |at| at + 1);
    let from = tail.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    // A line that is longer than all this is cut.
    let from = if from == tail.len() { 0 } else { from };
    let (head, tail) = (head.get(..whole).unwrap_or(head), tail.get(from..).unwrap_or(tail));
    let left_out = written.saturating_sub((head.len() + tail.len()) as u64);
    let between = if head.ends_with(b"\n") { "" } else { "\n" };
    let mut said = head.to_vec();
    said.extend(format!("{between}… {left_out} bytes …\n").into_bytes());
    said.extend_from_slice(tail);
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_short_is_kept_whole_and_of_the_rest_whole_lines() {
        let whole = vec![b'x'; WHOLE_BYTES as usize];
        assert_eq!(excerpt(&whole), whole);
        let lines: String = (0..1000).map(|n| format!("line {n}\n")).collect();
        let said = String::from_utf8(excerpt(lines.as_bytes())).unwrap();
        let said: Vec<&str> = said.lines().collect();
        assert_eq!((said[0], said[said.len() - 1]), ("line 0", "line 999"));
        let left_out = said.iter().position(|line| line.starts_with('…')).unwrap();
        let around = [said[left_out - 1], said[left_out + 1]];
        for line in around {
            assert!(lines.contains(&format!("\n{line}\n")), "{line}");
        }
        let kept: usize = said.iter().map(|line| line.len() + 1).sum();
        let told = said[left_out];
        assert_eq!(told, format!("… {} bytes …", lines.len() - (kept - told.len() - 1)));
    }

    #[test]
    fn a_line_without_an_end_is_cut() {
        let all = vec![b'x'; 10_000];
        let said = String::from_utf8(excerpt(&all)).unwrap();
        let expected = [&"x".repeat(512), "… 7952 bytes …", &"x".repeat(1536)].join("\n");
        assert_eq!(said, expected);
        let mut ends = all;
        ends.push(b'\n');
        assert!(String::from_utf8(excerpt(&ends)).unwrap().ends_with("xx\n"));
    }
}

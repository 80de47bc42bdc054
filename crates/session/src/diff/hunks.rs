//! Hunks: what differs between two contents, with some lines around it.

use imara_diff::sources::byte_lines;
use imara_diff::{Algorithm, Diff, InternedInput};

/// How many lines are shown around what differs.
const CONTEXT: usize = 3;

/// Lines that differ, and some around them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffHunk {
    /// How many lines of the workspace's file stand before it.
    pub before: usize,
    /// How many lines of the layer's file stand before it.
    pub after: usize,
    /// Its lines, in order.
    pub lines: Vec<DiffLine>,
}

/// One line, with its end if it has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffLine {
    /// Which file has it.
    pub side: LineSide,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Which file has a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineSide {
    /// Both.
    Both,
    /// The workspace's.
    Before,
    /// The layer's.
    After,
}

impl DiffHunk {
    /// How many of its lines are in the workspace's file, and how many in the layer's.
    pub fn lengths(&self) -> (usize, usize) {
        let without = |side| self.lines.iter().filter(|line| line.side != side).count();
        (without(LineSide::After), without(LineSide::Before))
    }
}

fn split(content: &[u8]) -> Vec<&[u8]> {
    content.split_inclusive(|byte| *byte == b'\n').collect()
}

/// What differs, as hunks that do not touch each other.
pub(super) fn compare(before: &[u8], after: &[u8]) -> Vec<DiffHunk> {
    let input = InternedInput::new(byte_lines(before), byte_lines(after));
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_lines(&input);
    let (old, new) = (split(before), split(after));
    let mut hunks: Vec<DiffHunk> = Vec::new();
    // How far the last hunk reaches in the old lines, without what follows it.
    let mut reached = 0;
    for change in diff.hunks() {
        let (from, to) = (change.before.start as usize, change.before.end as usize);
        let lead = from.saturating_sub(CONTEXT);
        let joins = !hunks.is_empty() && lead <= reached + CONTEXT;
        let begin = if joins { reached } else { lead };
        if !joins {
            finish(&mut hunks, &old, reached);
            let after = (change.after.start as usize).saturating_sub(from - begin);
            hunks.push(DiffHunk { before: begin, after, lines: Vec::new() });
        }
        if let Some(hunk) = hunks.last_mut() {
            let new_lines = change.after.start as usize..change.after.end as usize;
            hunk.add(LineSide::Both, old.get(begin..from));
            hunk.add(LineSide::Before, old.get(from..to));
            hunk.add(LineSide::After, new.get(new_lines));
        }
        reached = to;
    }
    finish(&mut hunks, &old, reached);
    hunks
}

/// Adds the lines that follow the last hunk.
fn finish(hunks: &mut [DiffHunk], old: &[&[u8]], reached: usize) {
    if let Some(hunk) = hunks.last_mut() {
        let end = old.len().min(reached + CONTEXT);
        hunk.add(LineSide::Both, old.get(reached..end));
    }
}

impl DiffHunk {
    fn add(&mut self, side: LineSide, lines: Option<&[&[u8]]>) {
        let lines = lines.unwrap_or_default().iter();
        self.lines.extend(lines.map(|bytes| DiffLine { side, bytes: bytes.to_vec() }));
    }
}

/// A content with those hunks that are wanted.
pub(super) fn merged(before: &[u8], hunks: &[DiffHunk], wanted: impl Fn(usize) -> bool) -> Vec<u8> {
    let old = split(before);
    let mut content = Vec::with_capacity(before.len());
    let mut at = 0;
    for (_, hunk) in hunks.iter().enumerate().filter(|(number, _)| wanted(*number)) {
        content.extend(old.get(at..hunk.before).unwrap_or_default().concat());
        let lines = hunk.lines.iter().filter(|line| line.side != LineSide::Before);
        lines.for_each(|line| content.extend_from_slice(&line.bytes));
        at = hunk.before + hunk.lengths().0;
    }
    content.extend(old.get(at..).unwrap_or_default().concat());
    content
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(lines: &[u8]) -> Vec<u8> {
        lines.iter().flat_map(|line| [b'a' + line % 4, b'\n']).collect()
    }

    #[test]
    fn changes_that_are_near_are_one_hunk() {
        let lines = |changed: &[usize]| -> Vec<u8> {
            (0..40)
                .flat_map(|n| {
                    let mark = if changed.contains(&n) { "!" } else { "" };
                    format!("{n}{mark}\n").into_bytes()
                })
                .collect()
        };
        let spans = |changed: &[usize]| -> Vec<(usize, usize)> {
            let hunks = compare(&lines(&[]), &lines(changed));
            hunks.iter().map(|hunk| (hunk.before, hunk.lengths().0)).collect()
        };
        assert_eq!(spans(&[]), []);
        assert_eq!(spans(&[10]), [(7, 7)]);
        assert_eq!(spans(&[10, 17]), [(7, 14)]);
        assert_eq!(spans(&[10, 18]), [(7, 7), (15, 7)]);
        assert_eq!(spans(&[0, 39]), [(0, 4), (36, 4)]);
    }

    proptest! {
        #[test]
        fn all_hunks_make_the_new_content_and_none_the_old(
            before in proptest::collection::vec(any::<u8>(), 0..60),
            after in proptest::collection::vec(any::<u8>(), 0..60),
            ends in any::<(bool, bool)>(),
        ) {
            let cut = |lines: &[u8], ends: bool| {
                let mut text = text(lines);
                if !ends { text.pop(); }
                text
            };
            let (before, after) = (cut(&before, ends.0), cut(&after, ends.1));
            let hunks = compare(&before, &after);
            prop_assert_eq!(merged(&before, &hunks, |_| true), after);
            prop_assert_eq!(merged(&before, &hunks, |_| false), before);
        }
    }
}

//! Windows: a part of a text, by lines, with their numbers and a way to go on. Pure, without any I/O.
//!
//! A window is what a reader with little room gets of a file: at most so many lines and so many bytes,
//! and where to ask next. Nothing is cut in silence: what is left out is counted, and a line that is
//! cut says so. A content that is not UTF-8 text has no lines; who asks gets bytes instead.

use cofferdam_core::{Error, ErrorKind, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How many lines a window has unless it is said.
pub const DEFAULT_WINDOW_LINES: usize = 2000;
/// The most bytes of a window, the numbers of its lines among them.
pub const MAX_WINDOW_BYTES: usize = 50 << 10;

/// Which part is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowOrder {
    /// How many lines come before it.
    pub offset: usize,
    /// How many lines it has at most; at least 1.
    pub limit: usize,
}

impl Default for WindowOrder {
    fn default() -> Self {
        Self { offset: 0, limit: DEFAULT_WINDOW_LINES }
    }
}

/// A part of a text. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Window {
    /// The lines, each with its number from 1 and a bar before it, as `7|text`.
    pub content: String,
    /// How many lines the text has.
    pub total_lines: usize,
    /// Which of them these are; null if there are none.
    pub lines_shown: Option<LinesShown>,
    /// Whether a line is missing before, behind, or at the end of the last one.
    pub truncated: bool,
    /// How many bytes the text has.
    pub size_bytes: usize,
    /// Why the window ends before the text, and where to go on; null if it does not.
    pub truncation: Option<Truncation>,
}

/// Lines from 1, the last among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LinesShown {
    /// The first.
    pub start: usize,
    /// The last.
    pub end: usize,
}

/// Why a window ends before the text does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Truncation {
    /// Which limit ended it.
    pub reason: TruncationReason,
    /// Whether the last line is cut; its rest is in no window.
    pub line_cut: bool,
    /// How many bytes of the text it has.
    pub bytes_returned: usize,
    /// How many bytes the text has.
    pub bytes_total: usize,
    /// The offset of the next window; null if no line follows.
    pub next_offset: Option<usize>,
    /// What to ask for next, in words; null if no line follows.
    pub resume_hint: Option<String>,
}

/// Which limit ended a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TruncationReason {
    /// It has as many lines as were asked for.
    LineCap,
    /// It has as many bytes as a window may have.
    SizeCap,
}

/// What to do about a file that has no lines.
pub const NO_TEXT_HINT: &str = "Read its bytes instead.";
/// What to do about a file that is too large for a look at its lines.
pub const LARGE_HINT: &str = "Read a range of its bytes instead, or search it.";

/// The part of a content that is wanted; None for a content that is not UTF-8 text.
///
/// An offset behind the last line is refused, but for the beginning of an empty text.
pub fn window(content: &[u8], order: WindowOrder) -> Result<Option<Window>> {
    if order.limit == 0 {
        return Err(Error::new(ErrorKind::Usage, "a window of 0 lines shows nothing")
            .hint("Ask for at least 1 line."));
    }
    // A zero byte is UTF-8, and in no text.
    let Some(text) = std::str::from_utf8(content).ok().filter(|text| !text.contains('\0')) else {
        return Ok(None);
    };
    let total = text.split_inclusive('\n').count();
    if order.offset > 0 && order.offset >= total {
        let lines = if total == 1 { "line" } else { "lines" };
        let from = order.offset.saturating_add(1);
        let what = format!(
            "the text has {total} {lines}, and none from line {from} on (an offset of {})",
            order.offset
        );
        return Err(Error::new(ErrorKind::Usage, what).hint("Ask for earlier lines."));
    }
    let wanted = text.split_inclusive('\n').enumerate().skip(order.offset).take(order.limit);
    let mut shown = Shown::default();
    for (at, line) in wanted {
        if shown.take(at + 1, line).is_break() {
            break;
        }
    }
    Ok(Some(shown.window(text, order, total)))
}

/// What is in a window so far.
#[derive(Default)]
struct Shown {
    content: String,
    lines: usize,
    /// Bytes of the text.
    bytes: usize,
    /// The room was too small for the next line.
    full: bool,
    /// The room was too small for all of the last line.
    cut: bool,
}

impl Shown {
    fn take(&mut self, number: usize, line: &str) -> std::ops::ControlFlow<()> {
        let text = line.strip_suffix('\n').unwrap_or(line);
        let text = text.strip_suffix('\r').unwrap_or(text);
        let head = format!("{number}|");
        let room = MAX_WINDOW_BYTES.saturating_sub(self.content.len() + head.len() + 1);
        let fits = text.len() <= room;
        if !fits && self.lines > 0 {
            self.full = true;
            return std::ops::ControlFlow::Break(());
        }
        let part = text.get(..text.floor_char_boundary(room)).unwrap_or(text);
        self.content.push_str(&head);
        self.content.push_str(part);
        self.content.push('\n');
        self.lines += 1;
        self.bytes += if fits { line.len() } else { part.len() };
        self.cut = !fits;
        if fits { std::ops::ControlFlow::Continue(()) } else { std::ops::ControlFlow::Break(()) }
    }

    fn window(mut self, text: &str, order: WindowOrder, total: usize) -> Window {
        // The lines are parted by line feeds; none follows the last.
        self.content.pop();
        let end = order.offset + self.lines;
        let left = total.saturating_sub(end);
        let full = self.full || self.cut;
        let reason = if full { TruncationReason::SizeCap } else { TruncationReason::LineCap };
        let truncation = (left > 0 || self.cut).then(|| Truncation {
            reason,
            line_cut: self.cut,
            bytes_returned: self.bytes,
            bytes_total: text.len(),
            next_offset: (left > 0).then_some(end),
            resume_hint: (left > 0).then(|| {
                let follow = if left == 1 { "line follows" } else { "lines follow" };
                format!("{left} {follow}; ask for offset {end}")
            }),
        });
        Window {
            content: self.content,
            total_lines: total,
            lines_shown: (self.lines > 0).then_some(LinesShown { start: order.offset + 1, end }),
            truncated: truncation.is_some() || order.offset > 0,
            size_bytes: text.len(),
            truncation,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(text: &str, offset: usize, limit: usize) -> Window {
        window(text.as_bytes(), WindowOrder { offset, limit }).unwrap().unwrap()
    }

    #[test]
    fn a_window_has_numbered_lines_and_says_where_to_go_on() {
        let whole = window(b"a\nb\nc\n", WindowOrder::default()).unwrap().unwrap();
        assert_eq!((whole.content.as_str(), whole.total_lines), ("1|a\n2|b\n3|c", 3));
        assert_eq!(whole.lines_shown, Some(LinesShown { start: 1, end: 3 }));
        assert_eq!((whole.truncated, whole.truncation, whole.size_bytes), (false, None, 6));
        let first = shown("a\nb\nc\n", 0, 2);
        let truncation = first.truncation.unwrap();
        assert_eq!((first.content.as_str(), first.truncated), ("1|a\n2|b", true));
        assert_eq!(
            (truncation.reason, truncation.next_offset),
            (TruncationReason::LineCap, Some(2))
        );
        assert_eq!(truncation.resume_hint.as_deref(), Some("1 line follows; ask for offset 2"));
        assert_eq!((truncation.bytes_returned, truncation.bytes_total), (4, 6));
        let last = shown("a\nb\nc", 2, 2);
        assert_eq!((last.content.as_str(), last.truncated, last.truncation), ("3|c", true, None));
        assert_eq!(last.lines_shown, Some(LinesShown { start: 3, end: 3 }));
    }

    #[test]
    fn a_window_has_so_many_lines_unless_it_is_said() {
        let text = "a\n".repeat(DEFAULT_WINDOW_LINES + 1);
        let first = window(text.as_bytes(), WindowOrder::default()).unwrap().unwrap();
        assert_eq!(first.lines_shown.map(|lines| lines.end), Some(DEFAULT_WINDOW_LINES));
        assert_eq!(first.truncation.and_then(|end| end.next_offset), Some(DEFAULT_WINDOW_LINES));
    }

    #[test]
    fn an_empty_text_has_no_lines_and_an_empty_line_is_one() {
        let empty = shown("", 0, 5);
        assert_eq!((empty.content.as_str(), empty.total_lines, empty.lines_shown), ("", 0, None));
        assert!(!empty.truncated);
        assert_eq!(shown("\n\n", 0, 5).content, "1|\n2|");
        assert_eq!(shown("a\r\nb\r\n", 0, 5).content, "1|a\n2|b");
    }

    #[test]
    fn a_window_has_a_largest_size_and_cuts_no_character() {
        let text = "line\n".repeat(20_000);
        let first = shown(&text, 0, 20_000);
        assert!(first.content.len() <= MAX_WINDOW_BYTES);
        let truncation = first.truncation.unwrap();
        assert_eq!((truncation.reason, truncation.line_cut), (TruncationReason::SizeCap, false));
        assert_eq!(truncation.next_offset, first.lines_shown.map(|lines| lines.end));
        let long = format!("a\n{}\nb\n", "\u{20ac}".repeat(MAX_WINDOW_BYTES));
        let second = shown(&long, 1, 5);
        assert!(second.content.len() <= MAX_WINDOW_BYTES);
        assert!(second.content.len() > MAX_WINDOW_BYTES - 8);
        let truncation = second.truncation.unwrap();
        assert_eq!(
            (truncation.reason, truncation.next_offset),
            (TruncationReason::SizeCap, Some(2))
        );
        let alone = shown(&"x".repeat(MAX_WINDOW_BYTES), 0, 1);
        let truncation = alone.truncation.unwrap();
        assert!(truncation.line_cut);
        assert_eq!((truncation.next_offset, truncation.resume_hint), (None, None));
        assert!(truncation.bytes_returned < truncation.bytes_total);
    }

    #[test]
    fn what_is_no_text_has_no_window() {
        for bytes in [&b"\xff"[..], b"a\0b", b"caf\xc3"] {
            assert_eq!(window(bytes, WindowOrder::default()).unwrap(), None);
        }
    }

    #[test]
    fn an_offset_behind_the_end_and_a_window_of_nothing_are_refused() {
        let error =
            |text: &[u8], offset, limit| window(text, WindowOrder { offset, limit }).unwrap_err();
        assert!(error(b"a\nb\n", 2, 1).message.contains("2 lines"));
        assert!(error(b"", 1, 1).message.contains("0 lines"));
        assert_eq!(error(b"a", 0, 0).kind, ErrorKind::Usage);
        assert_eq!(shown("a\nb\n", 1, 1).content, "2|b");
    }

    proptest! {
        #[test]
        fn windows_one_after_the_other_are_the_whole_text(
            lines in proptest::collection::vec("[a\u{20ac} ]{0,6}", 1..40), limit in 1_usize..9,
        ) {
            let text = lines.iter().map(|line| format!("{line}\n")).collect::<String>();
            let mut seen = Vec::new();
            let mut next = Some(0);
            while let Some(offset) = next {
                let part = shown(&text, offset, limit);
                prop_assert!(part.content.split('\n').count() <= limit);
                seen.extend(part.content.split('\n').map(str::to_owned));
                next = part.truncation.and_then(|truncation| truncation.next_offset);
            }
            let numbered = lines.iter().enumerate().map(|(at, line)| format!("{}|{line}", at + 1));
            prop_assert_eq!(seen, numbered.collect::<Vec<_>>());
        }
    }
}

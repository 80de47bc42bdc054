//! Hunks, as diffs write them.
//!
//! The numbers of lines in a hunk's head are believed where they fit. Where they do not, the lines
//! are counted instead, if it is clear which ones belong to the hunk, and the report says so.

use super::section::{Hunk, HunkLine, Place, Side};
use super::text::{PatchText, wrong};
use cofferdam_core::{Error, ErrorKind, Result};

/// The numbers in the head of a hunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Numbers {
    old_start: usize,
    old_count: usize,
    new_start: usize,
    new_count: usize,
}

/// Reads the hunk whose head is this line, from 0, and says which line follows it.
pub(super) fn hunk(text: &PatchText, head: usize) -> Result<(Hunk, usize)> {
    let line = text.line(head).unwrap_or_default();
    if line.starts_with(b"@@@") {
        return Err(combined(head));
    }
    let numbers = numbers(line);
    let strict = numbers.and_then(|numbers| counted(text, head + 1, numbers));
    let recounted = numbers.is_some() && strict.is_none();
    let (lines, next) = match strict {
        Some(found) => found,
        None => run(text, head + 1),
    };
    let place = match numbers {
        Some(numbers) => Place::Line {
            old: index(numbers.old_start, &lines, Side::New),
            new: index(numbers.new_start, &lines, Side::Old),
        },
        None => Place::After(anchor(text, head).into_iter().collect()),
    };
    let hunk = Hunk { line: head + 1, place, at_end: false, recounted, lines };
    checked(text, &hunk)?;
    if recounted || numbers.is_none() {
        nothing_is_left(text, next)?;
    }
    Ok((hunk, next))
}

/// A combined diff has several old files.
pub(super) fn combined(line: usize) -> Error {
    wrong(ErrorKind::Unsupported, line, "combined diffs of merges cannot be applied")
        .hint("Make a diff against one parent.")
}

/// Where a hunk begins, from 0. Without a line on its side, the number is that of the line before.
fn index(start: usize, lines: &[HunkLine], other: Side) -> usize {
    if lines.iter().all(|line| line.side == other) { start } else { start.saturating_sub(1) }
}

fn numbers(line: &[u8]) -> Option<Numbers> {
    let text =
        std::str::from_utf8(line.strip_prefix(b"@@ -")?.split(|b| *b == b'@').next()?).ok()?;
    let (old, new) = text.trim_end().split_once(" +")?;
    let (old_start, old_count) = pair(old)?;
    let (new_start, new_count) = pair(new)?;
    Some(Numbers { old_start, old_count, new_start, new_count })
}

fn pair(text: &str) -> Option<(usize, usize)> {
    let number = |digits: &str| {
        let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
        // LIMIT: no file has more lines than 32 bits count.
        digits.parse::<u32>().ok().filter(|_| plain).map(|number| number as usize)
    };
    match text.split_once(',') {
        Some((start, count)) => Some((number(start)?, number(count)?)),
        None => Some((number(text)?, 1)),
    }
}

/// The text behind `@@` that a hunk without numbers is to stand behind.
pub(super) fn anchor(text: &PatchText, head: usize) -> Option<std::ops::Range<usize>> {
    let line = text.line(head)?.strip_prefix(b"@@")?;
    let line = line.trim_ascii();
    let line = line.strip_suffix(b"@@").unwrap_or(line).trim_ascii();
    let range = text.range(head)?;
    let whole = text.bytes.get(range.clone())?;
    if line.is_empty() || line == b"..." || numbers(whole).is_some() {
        return None;
    }
    let at = whole.windows(line.len()).position(|window| window == line)?;
    let begin = range.start + at;
    Some(begin..begin + line.len())
}

/// The side of a line of a hunk. An empty line is one of context whose space was lost.
pub(super) fn side(line: &[u8]) -> Option<Side> {
    match line.first() {
        None | Some(b' ') => Some(Side::Both),
        Some(b'-') => Some(Side::Old),
        Some(b'+') => Some(Side::New),
        Some(_) => None,
    }
}

/// A line of a hunk without its mark.
pub(super) fn body(text: &PatchText, at: usize, side: Side) -> Option<HunkLine> {
    let range = text.range(at)?;
    let mark = usize::from(!text.is_blank(at));
    let start = u32::try_from(range.start + mark).ok()?;
    Some(HunkLine { side, start, end: u32::try_from(range.end).ok()? })
}

/// The line before `\ No newline at end of file` loses its own.
fn without_newline(text: &PatchText, lines: &mut [HunkLine]) {
    if let Some(last) = lines.last_mut()
        && last.bytes(&text.bytes).ends_with(b"\n")
    {
        last.end -= 1;
    }
}

fn is_newline_mark(text: &PatchText, at: usize) -> bool {
    text.starts_with(at, b"\\")
}

/// The lines that the numbers say, if they are there and none stands behind them.
fn counted(text: &PatchText, mut at: usize, numbers: Numbers) -> Option<(Vec<HunkLine>, usize)> {
    let (mut old, mut new) = (numbers.old_count, numbers.new_count);
    let mut lines = Vec::new();
    while old > 0 || new > 0 {
        if is_newline_mark(text, at) {
            without_newline(text, &mut lines);
        } else {
            let side = side(text.line(at)?)?;
            if side != Side::New {
                old = old.checked_sub(1)?;
            }
            if side != Side::Old {
                new = new.checked_sub(1)?;
            }
            lines.push(body(text, at, side)?);
        }
        at += 1;
    }
    if is_newline_mark(text, at) {
        without_newline(text, &mut lines);
        at += 1;
    }
    let next = behind_blank(text, at);
    let signature = matches!(text.line(next), Some(b"-- " | b"--"));
    let goes_on = is_body(text, next) && !signature;
    (!goes_on).then_some((lines, at))
}

/// All lines from here on that look like those of a hunk.
fn run(text: &PatchText, mut at: usize) -> (Vec<HunkLine>, usize) {
    let mut lines: Vec<HunkLine> = Vec::new();
    loop {
        if is_newline_mark(text, at) {
            without_newline(text, &mut lines);
            at += 1;
            continue;
        }
        let marked = behind_blank(text, at);
        if !is_body(text, marked) || is_signature(text, marked) {
            return (lines, at);
        }
        let found = (at..=marked).filter_map(|at| body(text, at, side(text.line(at)?)?));
        lines.extend(found);
        at = marked + 1;
    }
}

fn behind_blank(text: &PatchText, mut at: usize) -> usize {
    while text.is_blank(at) {
        at += 1;
    }
    at
}

/// Whether the line can be one of a hunk, and does not begin another file.
fn is_body(text: &PatchText, at: usize) -> bool {
    let marked = matches!(text.line(at).and_then(<[u8]>::first), Some(b' ' | b'+' | b'-'));
    marked && !is_file_head(text, at)
}

/// Whether the line begins another file: `---`, `+++`, and a hunk behind them.
pub(super) fn is_file_head(text: &PatchText, at: usize) -> bool {
    text.starts_with(at, b"--- ")
        && text.starts_with(at + 1, b"+++ ")
        && text.starts_with(behind_blank(text, at + 2), b"@@")
}

/// Whether git's signature of a mail stands here: two hyphens, a version, and nothing more.
fn is_signature(text: &PatchText, at: usize) -> bool {
    let version = text.line(at + 1).and_then(<[u8]>::first).is_some_and(u8::is_ascii_digit);
    let over = text.line(at + 2).is_none_or(<[u8]>::is_empty);
    text.line(at) == Some(b"-- ") && version && over
}

/// What no hunk can be: without a change, or with a line behind one that ends the file.
fn checked(text: &PatchText, hunk: &Hunk) -> Result<()> {
    let at = hunk.line - 1;
    if hunk.lines.iter().all(|line| line.side == Side::Both) {
        let what = "the hunk neither adds nor removes a line";
        return Err(wrong(ErrorKind::Usage, at, what)
            .hint("Begin each line of a hunk with a space, + or -."));
    }
    for side in [Side::Old, Side::New] {
        let mut lines = hunk.lines.iter().filter(|line| line.side != side.reversed()).rev();
        lines.next();
        if lines.any(|line| !line.bytes(&text.bytes).ends_with(b"\n")) {
            let what = "a line follows on one that is said to have no newline at end of file";
            return Err(wrong(ErrorKind::Usage, at, what));
        }
    }
    Ok(())
}

/// After lines that were counted here, none may stand that could be one of them: it would be lost.
fn nothing_is_left(text: &PatchText, next: usize) -> Result<()> {
    let lost = |at: usize| {
        Err(wrong(ErrorKind::Usage, at, "this belongs to no hunk").hint(
            "Begin each line of a hunk with a space, + or -, and count the lines in its head.",
        ))
    };
    let begins = |at: usize| {
        let heads: [&[u8]; 6] = [b"@@", b"diff ", b"Index: ", b"From ", b"*** ", b"```"];
        heads.iter().any(|head| text.starts_with(at, head))
            || is_file_head(text, at)
            || is_signature(text, at)
    };
    if text.line(next).is_some_and(|line| !line.is_empty()) && !begins(next) {
        return lost(next);
    }
    let rest = (next..).take_while(|at| text.line(*at).is_some() && !begins(*at));
    for at in rest {
        if is_body(text, at) {
            return lost(at);
        }
    }
    Ok(())
}

//! The envelope that begins with `*** Begin Patch`.
//!
//! Its hunks have no numbers: a hunk belongs where its old lines stand, behind the lines that its
//! `@@` name, and behind the hunk before it. A blank line at the end of a hunk parts it from what
//! follows and belongs to neither.

use super::hunk_text::{anchor, body, side};
use super::names;
use super::section::{Action, Content, Hunk, HunkLine, Modes, Place, Section, Side};
use super::text::{PatchText, wrong};
use super::unified::{MAX_PATCH_FILES, MAX_PATCH_HUNKS, too_many};
use cofferdam_core::{Error, ErrorKind, GuestPath, Result};

const BEGIN: &[u8] = b"*** Begin Patch";
const END: &[u8] = b"*** End Patch";
const END_OF_FILE: &[u8] = b"*** End of File";
const MOVE_TO: &[u8] = b"*** Move to: ";

/// A line of the envelope's own.
fn mark(text: &PatchText, at: usize) -> Option<&[u8]> {
    Some(text.line(at)?.trim_ascii_end()).filter(|line| line.starts_with(b"***"))
}

pub(super) fn begins(text: &PatchText, at: usize) -> bool {
    mark(text, at) == Some(BEGIN)
}

/// Every section of the envelope that begins at this line, and of those behind it.
pub(super) fn sections(text: &PatchText, begin: usize) -> Result<Vec<Section>> {
    let mut sections = Vec::new();
    let mut hunks = 0;
    let mut at = begin;
    while text.line(at).is_some() {
        if !begins(text, at) {
            at += 1;
            continue;
        }
        at += 1;
        while mark(text, at) != Some(END) {
            if text.is_blank(at) {
                at += 1;
                continue;
            }
            let (section, next) = section(text, at)?;
            hunks += section.hunks.len();
            sections.push(section);
            if sections.len() > MAX_PATCH_FILES || hunks > MAX_PATCH_HUNKS {
                return Err(too_many());
            }
            at = next;
        }
        at += 1;
    }
    Ok(sections)
}

fn section(text: &PatchText, at: usize) -> Result<(Section, usize)> {
    let Some(line) = text.line(at) else {
        return Err(wrong(ErrorKind::Usage, at, "the patch ends before *** End Patch")
            .hint("Send the whole patch; none of it was applied."));
    };
    let named = |line: &[u8], head: &[u8]| line.strip_prefix(head).map(|name| path(name, at));
    let new = |action, hunks| Section {
        line: at + 1,
        action,
        modes: Modes::default(),
        hunks,
        begins_step: false,
    };
    if let Some(path) = named(line, b"*** Add File: ") {
        let (hunk, next) = added(text, at);
        return Ok((new(Action::Create(path?), hunk.into_iter().collect()), next));
    }
    if let Some(path) = named(line, b"*** Delete File: ") {
        return Ok((new(Action::Delete(path?, Content::Unsaid), Vec::new()), at + 1));
    }
    if let Some(from) = named(line, b"*** Update File: ") {
        let from = from?;
        let moved = text.line(at + 1).and_then(|line| line.strip_prefix(MOVE_TO));
        let to = moved.map(|name| path(name, at + 1)).transpose()?;
        let (hunks, next) = updates(text, at + 1 + usize::from(to.is_some()))?;
        let action = match to.filter(|to| *to != from) {
            Some(to) => Action::Rename { from, to },
            None if hunks.is_empty() => {
                let what = "nothing is said about what changes in the file";
                return Err(wrong(ErrorKind::Usage, at, what));
            }
            None => Action::Modify(from),
        };
        return Ok((new(action, hunks), next));
    }
    Err(wrong(ErrorKind::Usage, at, "this is no line of an envelope").hint(
        "Write *** Add File:, *** Update File: or *** Delete File:, and begin other lines with \
         a space, + or -.",
    ))
}

fn path(name: &[u8], at: usize) -> Result<GuestPath> {
    names::path(name.trim_ascii()).map_err(|mut error: Error| {
        error.message = format!("line {} of the patch: {}", at + 1, error.message);
        error
    })
}

/// The lines of a new file: one hunk, unless it is empty.
fn added(text: &PatchText, head: usize) -> (Option<Hunk>, usize) {
    let mut lines = Vec::new();
    let mut at = head + 1;
    while text.starts_with(at, b"+") {
        lines.extend(body(text, at, Side::New));
        at += 1;
    }
    let place = Place::Line { old: 0, new: 0 };
    let hunk = Hunk { line: head + 2, place, at_end: false, recounted: false, lines };
    ((at > head + 1).then_some(hunk), at)
}

fn updates(text: &PatchText, mut at: usize) -> Result<(Vec<Hunk>, usize)> {
    let mut hunks = Vec::new();
    loop {
        at = (at..).find(|at| !text.is_blank(*at)).unwrap_or(at);
        let over = match mark(text, at) {
            Some(mark) => mark != END_OF_FILE,
            None => text.line(at).is_none(),
        };
        if over {
            return Ok((hunks, at));
        }
        let (hunk, next) = update(text, at)?;
        hunks.push(hunk);
        at = next;
    }
}

/// One hunk: the lines that it stands behind, its own, and whether the file ends there.
fn update(text: &PatchText, begin: usize) -> Result<(Hunk, usize)> {
    let mut at = begin;
    let mut anchors = Vec::new();
    while text.starts_with(at, b"@@") {
        anchors.extend(anchor(text, at));
        at += 1;
    }
    let mut lines: Vec<HunkLine> = Vec::new();
    while let Some(line) = text.line(at)
        && let Some(side) = side(line)
    {
        lines.extend(body(text, at, side));
        at += 1;
    }
    let over =
        text.starts_with(at, b"@@") || text.starts_with(at, b"***") || text.line(at).is_none();
    if !over {
        return Err(wrong(ErrorKind::Usage, at, "this belongs to no hunk")
            .hint("Begin each line of a hunk with a space, + or -."));
    }
    let blank = (begin..at).rev().take_while(|at| text.is_blank(*at)).count();
    lines.truncate(lines.len().saturating_sub(blank));
    let at_end = mark(text, at) == Some(END_OF_FILE);
    if lines.iter().all(|line| line.side == Side::Both) {
        let what = "the hunk neither adds nor removes a line";
        return Err(wrong(ErrorKind::Usage, begin, what)
            .hint("Begin each line of a hunk with a space, + or -."));
    }
    let place = Place::After(anchors);
    let hunk = Hunk { line: begin + 1, place, at_end, recounted: false, lines };
    Ok((hunk, at + usize::from(at_end)))
}

//! Changes of a layer as text: unified diffs as git writes them. Pure, without any I/O.
//!
//! [`FileDiff::new`] compares two contents; [`FileDiff::text`] writes what `git apply` and
//! `cofferdam file patch` read; [`FileDiff::with_hunks`] is the content of the workspace with some of
//! the hunks.
//!
//! **What git cannot say** stands in a line that begins with `#`, which both pass over: contents that
//! are binary or too large to be shown, with their sizes; permissions other than that of execution;
//! directories by themselves; pipes, sockets and devices; and line by line what is in a repository's
//! own directory, which no patch may touch.

mod hunks;
mod names;
mod text;

pub use hunks::{DiffHunk, DiffLine, LineSide};
pub use names::quoted;

use cofferdam_core::files::EntryKind;
use cofferdam_core::{Change, ChangeKind, FileState};
use hunks::{compare, merged};
use sha2::{Digest, Sha256};

/// The largest file that is compared line by line, in bytes.
pub const MAX_DIFFED_FILE_BYTES: u64 = 8 << 20;
/// The longest line that is shown, its end included; one that can be patched is no longer.
pub const MAX_DIFFED_LINE_BYTES: usize = 1_000_000;

/// One change, line by line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileDiff {
    /// The change.
    pub change: Change,
    /// How its contents differ.
    pub body: DiffBody,
    /// The SHA-256 of what the session has, where that is a file whose content was given.
    pub content: Option<[u8; 32]>,
}

/// How contents differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DiffBody {
    /// Line by line; empty where they do not.
    Text(Vec<DiffHunk>),
    /// Another type of file has taken its place: all lines go, and others come.
    Replaced {
        /// What goes.
        before: Vec<DiffHunk>,
        /// What comes.
        after: Vec<DiffHunk>,
    },
    /// One of them is no text.
    Binary,
    /// One of them is too large to be compared, or has too long a line.
    TooLarge,
    /// Nothing that could be shown has a content.
    None,
}

/// The contents of both sides, of those that are files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Contents<'c> {
    /// In the workspace.
    pub before: Option<&'c [u8]>,
    /// In the layer.
    pub after: Option<&'c [u8]>,
}

impl FileDiff {
    /// Compares two contents. A file whose content is not given is too large.
    pub fn new(change: Change, contents: Contents<'_>) -> Self {
        let body = body(&change, contents);
        let after = change.after.as_ref().filter(|after| after.kind == EntryKind::File);
        let content = after.and(contents.after).map(|after| Sha256::digest(after).into());
        Self { change, body, content }
    }

    /// How many lines come and how many go; `None` where that is not known.
    pub fn counts(&self) -> Option<(usize, usize)> {
        let count = |hunks: &[DiffHunk], side| {
            let lines = hunks.iter().flat_map(|hunk| &hunk.lines);
            lines.filter(|line| line.side == side).count()
        };
        match &self.body {
            DiffBody::Text(hunks) => {
                Some((count(hunks, LineSide::After), count(hunks, LineSide::Before)))
            }
            DiffBody::Replaced { before, after } => {
                Some((count(after, LineSide::After), count(before, LineSide::Before)))
            }
            DiffBody::Binary | DiffBody::TooLarge => None,
            DiffBody::None => Some((0, 0)),
        }
    }

    /// The parts that can land each by itself; none where the change lands as a whole or not at all.
    pub fn hunks(&self) -> &[DiffHunk] {
        match &self.body {
            DiffBody::Text(hunks) if self.has_hunks() => hunks,
            DiffBody::Text(_)
            | DiffBody::Replaced { .. }
            | DiffBody::Binary
            | DiffBody::TooLarge
            | DiffBody::None => &[],
        }
    }

    /// Whether each of its hunks can land by itself: it changes a file that stays one.
    pub fn has_hunks(&self) -> bool {
        let is_file = |state: &Option<FileState>| {
            state.as_ref().is_some_and(|state| state.kind == EntryKind::File)
        };
        self.change.kind == ChangeKind::Modified
            && is_file(&self.change.before)
            && is_file(&self.change.after)
            && matches!(&self.body, DiffBody::Text(hunks) if !hunks.is_empty())
    }

    /// The content of the workspace with those of the hunks that are wanted, by their numbers from 0.
    pub fn with_hunks(&self, before: &[u8], wanted: impl Fn(usize) -> bool) -> Vec<u8> {
        match &self.body {
            DiffBody::Text(hunks) => merged(before, hunks, wanted),
            DiffBody::Replaced { .. } | DiffBody::Binary | DiffBody::TooLarge | DiffBody::None => {
                before.to_vec()
            }
        }
    }
}

/// What a file or a link is made of, line by line.
enum Lines<'c> {
    Known(&'c [u8]),
    TooLarge,
    /// Neither file nor link.
    None,
}

fn lines<'c>(state: Option<&'c FileState>, content: Option<&'c [u8]>) -> Lines<'c> {
    match state.map(|state| (state.kind, state)) {
        Some((EntryKind::File, _)) => content.map_or(Lines::TooLarge, Lines::Known),
        Some((EntryKind::Link, state)) => {
            Lines::Known(state.target.as_ref().map_or(b"", |target| target.as_bytes()))
        }
        Some((
            EntryKind::Directory | EntryKind::Fifo | EntryKind::Socket | EntryKind::Device,
            _,
        ))
        | None => Lines::None,
    }
}

fn body(change: &Change, contents: Contents<'_>) -> DiffBody {
    let before = lines(change.before.as_ref(), contents.before);
    let after = lines(change.after.as_ref(), contents.after);
    let (before, after) = match (before, after) {
        (Lines::None, Lines::None) => return DiffBody::None,
        (Lines::TooLarge, _) | (_, Lines::TooLarge) => return DiffBody::TooLarge,
        (Lines::Known(before), Lines::Known(after)) => (Some(before), Some(after)),
        (Lines::Known(before), Lines::None) => (Some(before), None),
        (Lines::None, Lines::Known(after)) => (None, Some(after)),
    };
    let all = || [before, after].into_iter().flatten();
    if all().any(|content| content.contains(&0)) {
        return DiffBody::Binary;
    }
    let is_long = |content: &[u8]| {
        let mut lines = content.split(|byte| *byte == b'\n');
        content.len() as u64 > MAX_DIFFED_FILE_BYTES
            || lines.any(|line| line.len() >= MAX_DIFFED_LINE_BYTES)
    };
    if all().any(is_long) {
        return DiffBody::TooLarge;
    }
    let kind = |state: &Option<FileState>| state.as_ref().map(|state| state.kind);
    match (before, after) {
        (Some(before), Some(after)) if kind(&change.before) != kind(&change.after) => {
            DiffBody::Replaced { before: compare(before, b""), after: compare(b"", after) }
        }
        (before, after) => {
            DiffBody::Text(compare(before.unwrap_or_default(), after.unwrap_or_default()))
        }
    }
}

//! What a patch says, as it is understood: sections, hunks and lines.

use super::PatchFormat;
use super::tree::FileMode;
use cofferdam_core::GuestPath;
use std::ops::Range;

/// A patch that was understood: what it says of which file, in order.
///
/// Paths obey [`GuestPath`] and name nothing in a repository's `.git`.
#[derive(Debug, Clone)]
pub struct Patch {
    /// What it was read from; lines are ranges of it.
    pub(super) text: Vec<u8>,
    pub(super) format: PatchFormat,
    pub(super) direction: Direction,
    pub(super) sections: Vec<Section>,
}

/// Which way a patch is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Forward,
    Reverse,
}

/// What a patch says of one file.
#[derive(Debug, Clone)]
pub(super) struct Section {
    /// Where it begins in the patch, from 1.
    pub(super) line: usize,
    pub(super) action: Action,
    pub(super) modes: Modes,
    pub(super) hunks: Vec<Hunk>,
    /// A new diff begins here: it sees what the sections before it have made.
    pub(super) begins_step: bool,
}

/// What is done to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    Modify(GuestPath),
    Create(GuestPath),
    /// `content` says whether the hunks hold the whole content.
    Delete(GuestPath, Content),
    Rename {
        from: GuestPath,
        to: GuestPath,
    },
    Copy {
        from: GuestPath,
        to: GuestPath,
    },
    /// A copy taken back: `to` is removed if it is still what was copied from `from`.
    Uncopy {
        from: GuestPath,
        to: GuestPath,
    },
}

/// Whether a deletion says what it deletes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    Said,
    Unsaid,
}

/// The modes before and after, as far as the patch says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Modes {
    pub(super) old: Option<FileMode>,
    pub(super) new: Option<FileMode>,
}

/// A run of lines that are changed, with what stands around them.
#[derive(Debug, Clone)]
pub(super) struct Hunk {
    /// Where its head stands in the patch, from 1.
    pub(super) line: usize,
    pub(super) place: Place,
    /// Nothing follows it in the file.
    pub(super) at_end: bool,
    /// The numbers of lines in its head are not those of its lines.
    pub(super) recounted: bool,
    pub(super) lines: Vec<HunkLine>,
}

/// Where a hunk belongs.
#[derive(Debug, Clone)]
pub(super) enum Place {
    /// At this line, from 0, of the old and of the new file, or near it.
    Line { old: usize, new: usize },
    /// Behind these lines, one after the other; wherever it fits if there are none.
    After(Vec<Range<usize>>),
}

/// In which of the two files a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Both,
    Old,
    New,
}

/// A line of a hunk, as a range of the patch's text: without its mark, with its line feed if it has
/// one.
#[derive(Debug, Clone)]
pub(super) struct HunkLine {
    pub(super) side: Side,
    pub(super) start: u32,
    pub(super) end: u32,
}

impl Side {
    pub(super) fn reversed(self) -> Self {
        match self {
            Self::Both => Self::Both,
            Self::Old => Self::New,
            Self::New => Self::Old,
        }
    }
}

impl HunkLine {
    pub(super) fn bytes<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        text.get(self.start as usize..self.end as usize).unwrap_or_default()
    }
}

impl Hunk {
    /// How many lines without a change stand at its end.
    pub(super) fn trail(&self) -> usize {
        self.lines.iter().rev().take_while(|line| line.side == Side::Both).count()
    }

    /// How many of its lines are on this side alone.
    pub(super) fn count(&self, side: Side) -> usize {
        self.lines.iter().filter(|line| line.side == side).count()
    }
}

impl Section {
    /// The file that is looked at.
    pub(super) fn source(&self) -> &GuestPath {
        match &self.action {
            Action::Modify(path) | Action::Create(path) | Action::Delete(path, _) => path,
            Action::Rename { from, .. } | Action::Copy { from, .. } => from,
            Action::Uncopy { to, .. } => to,
        }
    }

    /// The file that the section is about when it is done.
    pub(super) fn target(&self) -> &GuestPath {
        match &self.action {
            Action::Modify(path) | Action::Create(path) | Action::Delete(path, _) => path,
            Action::Rename { to, .. } | Action::Copy { to, .. } | Action::Uncopy { to, .. } => to,
        }
    }

    /// Every file that it names.
    pub(super) fn paths(&self) -> Vec<&GuestPath> {
        match &self.action {
            Action::Modify(path) | Action::Create(path) | Action::Delete(path, _) => vec![path],
            Action::Rename { from, to }
            | Action::Copy { from, to }
            | Action::Uncopy { from, to } => vec![from, to],
        }
    }
}

impl Direction {
    pub(super) fn reversed(self) -> Self {
        match self {
            Self::Forward => Self::Reverse,
            Self::Reverse => Self::Forward,
        }
    }
}

impl Action {
    /// What takes it back, if enough is said for that.
    pub(super) fn reversed(self) -> Option<Self> {
        match self {
            Self::Modify(path) => Some(Self::Modify(path)),
            Self::Create(path) => Some(Self::Delete(path, Content::Said)),
            Self::Delete(path, Content::Said) => Some(Self::Create(path)),
            Self::Delete(_, Content::Unsaid) => None,
            Self::Rename { from, to } => Some(Self::Rename { from: to, to: from }),
            Self::Copy { from, to } => Some(Self::Uncopy { from, to }),
            Self::Uncopy { from, to } => Some(Self::Copy { from, to }),
        }
    }
}

impl Hunk {
    pub(super) fn reverse(&mut self) {
        if let Place::Line { old, new } = &mut self.place {
            std::mem::swap(old, new);
        }
        for line in &mut self.lines {
            line.side = line.side.reversed();
        }
    }
}

//! What a patch makes of a tree. Nothing is touched: the outcome is a list of changes, or the reasons
//! why there is none.
//!
//! Sections of one diff all see the tree as it was before that diff, as git means them: names can be
//! swapped, and a copy is one of the content before. A new diff begins with a mail of a series, and
//! with a section that can only be meant after one before it, such as the second one on the same
//! file; it sees what was made before it.

use super::hunks::Work;
use super::make::{Made, Refused, make};
use super::section::{Action, Direction, Patch, Section, Side};
use super::settle::settle;
use super::tree::{Change, Node, Tree};
use super::{PatchAction, PatchOutcome, PatchRefusal, PatchRefusalKind, PatchReport, PatchedFile};
use cofferdam_core::GuestPath;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// What a patch makes of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchPlan {
    /// What is to be done, in this order; nothing, unless all of the patch fits.
    pub changes: Vec<Change>,
    /// What came of each hunk.
    pub report: PatchReport,
}

/// What is said of what is neither a file nor a link.
pub(super) const OTHER: &str =
    "is there already, neither a file nor a link: a device, a socket, or a name that is protected";

/// The tree while sections are applied to it.
pub(super) struct State<'t> {
    pub(super) tree: &'t Tree,
    /// What was touched, and what stands there now.
    pub(super) now: BTreeMap<GuestPath, Touched>,
}

/// A path that a section touched.
pub(super) struct Touched {
    /// The last section that did.
    pub(super) section: usize,
    pub(super) node: Option<Node>,
}

impl State<'_> {
    pub(super) fn node(&self, path: &GuestPath) -> Option<&Node> {
        match self.now.get(path) {
            Some(touched) => touched.node.as_ref(),
            None => self.tree.get(path),
        }
    }

    /// Whether a file can be reached: nothing above it is a link or another thing without names.
    pub(super) fn open_way(&self, path: &GuestPath) -> Result<(), Refused> {
        let closed = |above: &GuestPath| match self.node(above) {
            Some(Node::File { .. } | Node::Link { .. } | Node::Other) => true,
            Some(Node::Directory { .. }) | None => false,
        };
        match path.ancestors().find(closed) {
            Some(above) => {
                Err((PatchRefusalKind::NoDirectory, format!("{above:?} is no directory")))
            }
            None => Ok(()),
        }
    }
}

impl Patch {
    /// What the patch makes of these files, which are all that stands at its [`paths`](Self::paths).
    /// A dry run is a plan that nobody carries out.
    pub fn plan(&self, files: &Tree) -> PatchPlan {
        let mut state = State { tree: files, now: BTreeMap::new() };
        let mut reports: Vec<PatchedFile> = self.sections.iter().map(report).collect();
        let mut work = Work::new();
        let mut begin = 0;
        while begin < self.sections.len() {
            let rest = self.sections.get(begin..).unwrap_or_default();
            let end = begin + step(rest, &state).max(1);
            let made = self.made(begin..end, &state, &mut reports, &mut work);
            put(made, &mut state, &mut reports);
            begin = end;
        }
        let mut changes = Vec::new();
        if reports.iter().all(|report| report.outcome == PatchOutcome::Fits) {
            match settle(&state, &self.sections) {
                Ok(settled) => changes = settled,
                Err(refused) => {
                    refused.into_iter().for_each(|(at, reason)| refuse(&mut reports, at, reason));
                }
            }
        }
        let every = |outcome| reports.iter().all(|report| report.outcome == outcome);
        let outcomes = [PatchOutcome::Fits, PatchOutcome::AlreadyApplied];
        let outcome = outcomes.into_iter().find(|outcome| every(*outcome));
        let report = PatchReport {
            outcome: outcome.unwrap_or(PatchOutcome::Refused),
            format: self.format,
            reversed: self.direction == Direction::Reverse,
            files: reports,
        };
        PatchPlan { changes, report }
    }

    /// What the sections of one diff make, each by itself of the same state.
    fn made(
        &self,
        sections: Range<usize>,
        state: &State<'_>,
        reports: &mut [PatchedFile],
        work: &mut Work,
    ) -> Vec<(usize, Made)> {
        let mut all = Vec::new();
        for at in sections {
            let (Some(section), Some(report)) = (self.sections.get(at), reports.get_mut(at)) else {
                continue;
            };
            match make(self, section, state, report, work) {
                Ok(made) => all.extend(made.map(|made| (at, made))),
                Err(reason) => refuse(reports, at, reason),
            }
        }
        all
    }
}

/// Puts what the sections of one diff made into the state: first all that goes, then all that comes.
fn put(all: Vec<(usize, Made)>, state: &mut State<'_>, reports: &mut [PatchedFile]) {
    let gone: BTreeSet<GuestPath> = all.iter().filter_map(|(_, made)| made.gone.clone()).collect();
    for (at, made) in &all {
        let Some((path, _)) = made.put.as_ref().filter(|(path, _)| !gone.contains(path)) else {
            continue;
        };
        let in_the_way = match state.node(path) {
            Some(Node::File { .. } | Node::Link { .. } | Node::Other) => !made.replaces,
            // One that is emptied by the patch can make room.
            Some(Node::Directory { .. }) | None => false,
        };
        if in_the_way {
            let what = match state.node(path) {
                Some(Node::Other) => format!("{path:?} {OTHER}"),
                _ => format!("{path:?} is there already"),
            };
            refuse(reports, *at, (PatchRefusalKind::Exists, what));
        }
    }
    for (section, path) in all.iter().filter_map(|(at, made)| Some((*at, made.gone.clone()?))) {
        state.now.insert(path, Touched { section, node: None });
    }
    let mut likes = Vec::new();
    for (section, made) in all {
        if let Some((path, node)) = made.put {
            state.now.insert(path, Touched { section, node: Some(node) });
        }
        likes.extend(made.like.map(|like| (section, like)));
    }
    for (section, (from, node)) in likes {
        if state.node(&from).and_then(Node::content) != node.content() {
            let what = format!("it is no longer what was copied from {from:?}");
            refuse(reports, section, (PatchRefusalKind::ContentDiffers, what));
        }
    }
}

/// How many of the sections are of one diff.
fn step(sections: &[Section], state: &State<'_>) -> usize {
    let mut placed = BTreeSet::new();
    let mut vacated = BTreeSet::new();
    let mut modified = BTreeSet::new();
    for (count, section) in sections.iter().enumerate() {
        let made_here = |path| placed.contains(path) && state.node(path).is_none();
        let later = match &section.action {
            Action::Create(path) => placed.contains(path),
            Action::Modify(path) | Action::Delete(path, _) | Action::Uncopy { to: path, .. } => {
                placed.contains(path) || vacated.contains(path)
            }
            Action::Rename { from, to } => {
                let changed = vacated.contains(from) || modified.contains(from);
                placed.contains(to) || changed || made_here(from)
            }
            Action::Copy { from, to } => placed.contains(to) || made_here(from),
        };
        if count > 0 && (later || section.begins_step) {
            return count;
        }
        match &section.action {
            Action::Create(path) | Action::Copy { to: path, .. } => {
                placed.insert(path);
            }
            Action::Modify(path) => {
                placed.insert(path);
                modified.insert(path);
            }
            Action::Delete(path, _) | Action::Uncopy { to: path, .. } => {
                vacated.insert(path);
            }
            Action::Rename { from, to } => {
                vacated.insert(from);
                placed.insert(to);
            }
        }
    }
    sections.len()
}

fn refuse(reports: &mut [PatchedFile], section: usize, (kind, message): Refused) {
    if let Some(report) = reports.get_mut(section) {
        report.outcome = PatchOutcome::Refused;
        report.refusal = Some(PatchRefusal { kind, message });
    }
}

/// The report of a section before anything is known.
fn report(section: &Section) -> PatchedFile {
    let (action, from) = match &section.action {
        Action::Modify(_) => (PatchAction::Modify, None),
        Action::Create(_) => (PatchAction::Create, None),
        Action::Delete(..) | Action::Uncopy { .. } => (PatchAction::Delete, None),
        Action::Rename { from, .. } => (PatchAction::Rename, Some(from)),
        Action::Copy { from, .. } => (PatchAction::Copy, Some(from)),
    };
    PatchedFile {
        path: section.target().to_string(),
        from: from.map(ToString::to_string),
        action,
        patch_line: section.line,
        outcome: PatchOutcome::Fits,
        refusal: None,
        notes: Vec::new(),
        added: section.hunks.iter().map(|hunk| hunk.count(Side::New)).sum(),
        removed: section.hunks.iter().map(|hunk| hunk.count(Side::Old)).sum(),
        hunks: Vec::new(),
    }
}

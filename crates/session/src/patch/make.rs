//! What one section makes of a tree, while the others are not looked at.

use super::hunks::{Work, apply};
use super::plan::State;
use super::section::{Action, Content, Patch, Place, Section, Side};
use super::tree::{Executable, FileMode, Node};
use super::{HunkOutcome, PatchNote, PatchOutcome, PatchRefusalKind, PatchedFile};
use cofferdam_core::GuestPath;
use std::sync::Arc;

/// Why a section is refused, where that is not the fault of a hunk.
pub(super) type Refused = (PatchRefusalKind, String);

/// What a section makes.
#[derive(Default)]
pub(super) struct Made {
    /// A file to be put somewhere.
    pub(super) put: Option<(GuestPath, Node)>,
    /// It may be put where a file is.
    pub(super) replaces: bool,
    /// A file that goes.
    pub(super) gone: Option<GuestPath>,
    /// Another file that has to have this content when its diff is done.
    pub(super) like: Option<(GuestPath, Node)>,
}

/// What the section makes of the state; None where its hunks do not fit, or nothing is left to do.
/// The report says which.
pub(super) fn make(
    patch: &Patch,
    section: &Section,
    state: &State<'_>,
    report: &mut PatchedFile,
    work: &mut Work,
) -> Result<Option<Made>, Refused> {
    let mut maker = Maker { patch, section, state, report, work };
    if let Action::Create(path) = &section.action {
        return maker.create(path);
    }
    state.open_way(section.source())?;
    match &section.action {
        Action::Create(path) => maker.create(path),
        Action::Modify(path) => maker.modify(path),
        Action::Rename { from, to } => maker.rename(from, to),
        Action::Copy { from, to } => maker.copy(from, to),
        Action::Delete(path, content) => maker.delete(path, *content),
        Action::Uncopy { from, to } => maker.uncopy(from, to),
    }
}

struct Maker<'m, 't> {
    patch: &'m Patch,
    section: &'m Section,
    state: &'m State<'t>,
    report: &'m mut PatchedFile,
    work: &'m mut Work,
}

impl Maker<'_, '_> {
    fn create(&mut self, path: &GuestPath) -> Result<Option<Made>, Refused> {
        let mode = self.section.modes.new.unwrap_or(FileMode::File(Executable::No));
        let Some(node) = self.changed(&Node::new(mode, Arc::from([])))? else { return Ok(None) };
        if self.state.node(path) == Some(&node) {
            return Ok(self.already());
        }
        Ok(Some(Made { put: Some((path.clone(), node)), ..Made::default() }))
    }

    fn modify(&mut self, path: &GuestPath) -> Result<Option<Made>, Refused> {
        let node = match self.source(path)? {
            Some(node) => node,
            None if self.takes_for_empty() => {
                self.report.notes.push(PatchNote::Made);
                Node::new(FileMode::File(Executable::No), Arc::from([]))
            }
            None => return Err(missing(path)),
        };
        let Some(changed) = self.changed(&node)? else { return Ok(None) };
        if self.section.hunks.is_empty() && changed == node {
            return Ok(self.already());
        }
        let put = Some((path.clone(), changed));
        Ok(Some(Made { put, replaces: true, ..Made::default() }))
    }

    fn rename(&mut self, from: &GuestPath, to: &GuestPath) -> Result<Option<Made>, Refused> {
        let Some(node) = self.source(from)? else {
            // It may have its new name, and its new content, already.
            let Some(node) = self.state.node(to).filter(|node| node.content().is_some()) else {
                return Err(missing(from));
            };
            let node = node.clone();
            let changed = self.changed(&node)?;
            if self.section.hunks.is_empty() && changed.as_ref() == Some(&node) {
                return Ok(self.already());
            }
            return match self.report.outcome {
                PatchOutcome::AlreadyApplied => Ok(None),
                PatchOutcome::Fits | PatchOutcome::Refused => Err(missing(from)),
            };
        };
        let Some(changed) = self.changed(&node)? else { return Ok(None) };
        let (put, gone) = (Some((to.clone(), changed)), Some(from.clone()));
        Ok(Some(Made { put, gone, ..Made::default() }))
    }

    fn copy(&mut self, from: &GuestPath, to: &GuestPath) -> Result<Option<Made>, Refused> {
        let node = self.source(from)?.ok_or_else(|| missing(from))?;
        let Some(changed) = self.changed(&node)? else { return Ok(None) };
        if self.state.node(to) == Some(&changed) {
            return Ok(self.already());
        }
        Ok(Some(Made { put: Some((to.clone(), changed)), ..Made::default() }))
    }

    fn delete(&mut self, path: &GuestPath, content: Content) -> Result<Option<Made>, Refused> {
        let Some(node) = self.source(path)? else { return Ok(self.already()) };
        if content == Content::Said {
            let Some(rest) = self.changed(&node)? else { return Ok(None) };
            if rest.content().is_some_and(|rest| !rest.is_empty()) {
                let what = format!("{path:?} holds more than what is to be deleted");
                return Err((PatchRefusalKind::ContentDiffers, what));
            }
        }
        Ok(Some(Made { gone: Some(path.clone()), ..Made::default() }))
    }

    fn uncopy(&mut self, from: &GuestPath, to: &GuestPath) -> Result<Option<Made>, Refused> {
        let Some(node) = self.source(to)? else { return Ok(self.already()) };
        let Some(before) = self.changed(&node)? else { return Ok(None) };
        let like = Some((from.clone(), before));
        Ok(Some(Made { gone: Some(to.clone()), like, ..Made::default() }))
    }

    fn already(&mut self) -> Option<Made> {
        self.report.outcome = PatchOutcome::AlreadyApplied;
        None
    }

    /// The file that is there, if it is of the kind that the section means.
    fn source(&self, path: &GuestPath) -> Result<Option<Node>, Refused> {
        let Some(node) = self.state.node(path) else { return Ok(None) };
        let said = self.section.modes.old.or(self.section.modes.new);
        let (fits, what) = match node {
            Node::File { .. } => (said != Some(FileMode::Link), "a file"),
            Node::Link { .. } => {
                let unsaid = said.is_none() && self.section.hunks.is_empty();
                (unsaid || said == Some(FileMode::Link), "a symbolic link")
            }
            Node::Directory { .. } => (false, "a directory"),
            Node::Other => (false, "neither a file nor a link"),
        };
        if fits {
            return Ok(Some(node.clone()));
        }
        let what = format!("{path:?} is {what}, and the patch means another kind");
        Err((PatchRefusalKind::WrongKind, what))
    }

    /// The node with the section's hunks applied, and its mode set.
    fn changed(&mut self, node: &Node) -> Result<Option<Node>, Refused> {
        let (Some(content), Some(present)) = (node.content(), node.mode()) else { return Ok(None) };
        let mode = self.mode(present);
        if self.section.hunks.is_empty() {
            return Ok(Some(Node::new(mode, content.clone())));
        }
        let Patch { text, format, .. } = self.patch;
        let hunked = apply(text, *format, &self.section.hunks, content, self.work)
            .map_err(|what| (PatchRefusalKind::TooLarge, what))?;
        self.report.notes.extend(hunked.notes);
        self.report.hunks = hunked.hunks;
        if let Some(content) = hunked.content {
            return Ok(Some(Node::new(mode, Arc::from(content))));
        }
        let applied = |outcome| outcome == HunkOutcome::AlreadyApplied;
        let all = mode == present && self.report.hunks.iter().all(|hunk| applied(hunk.outcome));
        self.report.outcome =
            if all { PatchOutcome::AlreadyApplied } else { PatchOutcome::Refused };
        Ok(None)
    }

    /// The mode after the section, which may say nothing of it, or what it is already.
    fn mode(&mut self, present: FileMode) -> FileMode {
        let modes = self.section.modes;
        match modes.new {
            Some(new) if modes.old.is_some() && modes.old != Some(new) => {
                if new == present {
                    self.report.notes.push(PatchNote::HadMode);
                }
                new
            }
            Some(_) | None => present,
        }
    }

    /// A diff of one hunk that puts lines before all others of an empty file means one that may not
    /// be there.
    fn takes_for_empty(&self) -> bool {
        let [hunk] = self.section.hunks.as_slice() else { return false };
        let at_top = matches!(hunk.place, Place::Line { old: 0, .. });
        let unsaid = self.section.modes.old.is_none();
        at_top && unsaid && hunk.lines.iter().all(|line| line.side == Side::New)
    }
}

fn missing(path: &GuestPath) -> Refused {
    (PatchRefusalKind::NotFound, format!("{path:?} is not there"))
}

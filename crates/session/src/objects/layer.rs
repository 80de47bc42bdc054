//! What is told of changes of a layer.

use crate::diff::FileDiff;
use crate::layer::Discarded;
use crate::text_or_base64;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use cofferdam_core::files::EntryKind;
use cofferdam_core::{
    Change, ChangeKind, Error, ErrorKind, FileState, GuestPath, Result, Standing,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What `diff --json` prints. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangeList {
    /// The id of the session.
    pub session: String,
    /// The point of the history that is `before`, where two points were compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<u32>,
    /// The point of the history that is `after`, where two points were compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<u32>,
    /// The changes, in the order of paths.
    pub changes: Vec<LayerChange>,
}

/// What `apply --json` prints. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AppliedChanges {
    /// The id of the session.
    pub session: String,
    /// Whether nothing was done.
    pub dry_run: bool,
    /// What landed in the workspace, or would.
    pub applied: Vec<LayerChange>,
    /// What did not, each with its `standing`.
    pub kept: Vec<LayerChange>,
}

/// What `discard --json` prints. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DiscardedChanges {
    /// The id of the session.
    pub session: String,
    /// Whether nothing was done.
    pub dry_run: bool,
    /// What the session had changed and has not any more, or would not.
    pub discarded: Vec<LayerChange>,
    /// Whether all processes of the session were ended for it.
    pub processes_ended: bool,
    /// How many commands ran in it.
    pub commands: u64,
    /// How many processes went on in it that commands had left.
    pub left: u64,
}

impl DiscardedChanges {
    /// What was dropped, and what ended.
    pub fn new(session: String, dry_run: bool, done: &Discarded) -> Self {
        let Discarded { changes, processes_ended, commands, left } = done;
        let discarded = changes.iter().map(LayerChange::new).collect();
        let (processes_ended, commands, left) = (*processes_ended, *commands, *left);
        Self { session, dry_run, discarded, processes_ended, commands, left }
    }
}

/// A change of a copy-on-write session. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LayerChange {
    /// The path in the workspace, where it is UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The path in base64, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_base64: Option<String>,
    /// `added`, `modified` or `removed`.
    pub kind: String,
    /// What the workspace has, or the session had at the point `from`.
    pub before: Option<LayerFile>,
    /// What the session has, or had at the point `to`.
    pub after: Option<LayerFile>,
    /// The path of a removed file with this content; bytes that are not UTF-8 are replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved_from: Option<String>,
    /// Another path that is the same file; bytes that are not UTF-8 are replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub linked_to: Option<String>,
    /// Whether it is a link out of the workspace.
    pub leads_out: bool,
    /// Whether it has set-id bits, which do not land.
    pub set_id: bool,
    /// Changes with what the session has there; 0 between two points.
    pub version: u64,
    /// `lands`; a conflict: `changed`, `gone`, `directory_gone`, `directory_moved`, `not_empty`,
    /// `mounted`; or held back: `protected`, `special`, `too_large`, `directory`, `another`, `move`;
    /// `history` between two points.
    pub standing: String,
    /// What a unified diff does not say of it, where its lines were counted or could not be.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// How many lines come, where they were counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines_added: Option<usize>,
    /// How many lines go, where they were counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines_removed: Option<usize>,
}

/// One side of a change. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LayerFile {
    /// `file`, `directory`, `link`, `fifo`, `socket` or `device`.
    pub kind: String,
    /// The permissions, in octal.
    pub mode: String,
    /// Its size in bytes.
    pub size: u64,
    /// Where a link leads, as it says; bytes that are not UTF-8 are replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

impl LayerChange {
    /// A change, without its lines.
    pub fn new(change: &Change) -> Self {
        let (path, path_base64) = text_or_base64(change.path.as_bytes().to_vec());
        Self {
            path,
            path_base64,
            kind: change.kind.name().to_owned(),
            before: change.before.as_ref().map(LayerFile::new),
            after: change.after.as_ref().map(LayerFile::new),
            moved_from: change.moved_from.as_ref().map(ToString::to_string),
            linked_to: change.linked_to.as_ref().map(ToString::to_string),
            leads_out: change.leads_out,
            set_id: change.set_id,
            version: change.version,
            standing: change.standing.name().to_owned(),
            remarks: Vec::new(),
            lines_added: None,
            lines_removed: None,
        }
    }

    /// The change as whoever looks at a layer of this machine has it.
    pub fn change(&self) -> Result<Change> {
        let path = match (&self.path, &self.path_base64) {
            (Some(text), None) => text.clone().into_bytes(),
            (None, Some(base64)) => BASE64.decode(base64).map_err(|_| unknown("path"))?,
            (_, _) => return Err(unknown("path")),
        };
        let kinds = [ChangeKind::Added, ChangeKind::Modified, ChangeKind::Removed];
        let kind = kinds.into_iter().find(|kind| kind.name() == self.kind);
        let standing = Standing::ALL.into_iter().find(|one| one.name() == self.standing);
        let state = |file: &Option<LayerFile>| file.as_ref().map(LayerFile::state).transpose();
        let other = |path: &Option<String>| path.as_deref().map(GuestPath::new).transpose();
        Ok(Change {
            path: GuestPath::new(path)?,
            kind: kind.ok_or_else(|| unknown("kind"))?,
            before: state(&self.before)?,
            after: state(&self.after)?,
            moved_from: other(&self.moved_from)?,
            linked_to: other(&self.linked_to)?,
            leads_out: self.leads_out,
            set_id: self.set_id,
            version: self.version,
            standing: standing.ok_or_else(|| unknown("standing"))?,
        })
    }

    /// A change with how many lines come and go.
    pub fn counted(diff: &FileDiff) -> Self {
        let counts = diff.counts();
        Self {
            remarks: diff.remarks(),
            lines_added: counts.map(|(added, _)| added),
            lines_removed: counts.map(|(_, removed)| removed),
            ..Self::new(&diff.change)
        }
    }
}

fn unknown(what: &str) -> Error {
    Error::new(ErrorKind::Protocol, format!("a change comes with an unknown {what}"))
        .hint("Use the same version of Cofferdam on both sides.")
}

impl LayerFile {
    fn state(&self) -> Result<FileState> {
        let kind = EntryKind::ALL.into_iter().find(|kind| kind.name() == self.kind);
        Ok(FileState {
            kind: kind.ok_or_else(|| unknown("kind of file"))?,
            mode: u32::from_str_radix(&self.mode, 8).map_err(|_| unknown("permission"))?,
            size: self.size,
            target: self.target.as_deref().map(Into::into),
        })
    }

    fn new(state: &FileState) -> Self {
        Self {
            kind: state.kind.name().to_owned(),
            mode: format!("{:03o}", state.mode),
            size: state.size,
            target: state.target.as_ref().map(ToString::to_string),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_comes_back_as_it_went() {
        let state = |kind| FileState { kind, mode: 0o640, size: 7, target: Some("t".into()) };
        for standing in Standing::ALL {
            for kind in EntryKind::ALL {
                let change = Change {
                    path: GuestPath::new(b"a/\xff".as_slice()).unwrap(),
                    kind: ChangeKind::Modified,
                    before: None,
                    after: Some(state(kind)),
                    moved_from: Some(GuestPath::new("b").unwrap()),
                    linked_to: None,
                    leads_out: true,
                    set_id: false,
                    version: 3,
                    standing,
                };
                assert_eq!(LayerChange::new(&change).change().unwrap(), change);
            }
        }
    }
}

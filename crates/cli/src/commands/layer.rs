//! What `diff`, `apply` and `discard` share: paths, and how changes are shown.

use crate::render;
use cofferdam_core::files::EntryKind;
use cofferdam_core::{
    Change, Error, ErrorKind, FileState, GuestPath, Result, Standing, is_at_or_below,
};
use cofferdam_session::diff::{FileDiff, quoted};
use cofferdam_session::{Session, SessionReport, text_or_base64};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What `diff --json` prints. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ChangeList {
    /// The id of the session.
    pub(crate) session: String,
    /// The point of the history that is `before`, where two points were compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<u32>,
    /// The point of the history that is `after`, where two points were compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) to: Option<u32>,
    /// The changes, in the order of paths.
    pub(crate) changes: Vec<LayerChange>,
}

/// What `apply --json` prints. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct AppliedChanges {
    /// The id of the session.
    pub(crate) session: String,
    /// Whether nothing was done.
    pub(crate) dry_run: bool,
    /// What landed in the workspace, or would.
    pub(crate) applied: Vec<LayerChange>,
    /// What did not, each with its `standing`.
    pub(crate) kept: Vec<LayerChange>,
}

/// What `discard --json` prints. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct DiscardedChanges {
    /// The id of the session.
    pub(crate) session: String,
    /// Whether nothing was done.
    pub(crate) dry_run: bool,
    /// What the session had changed and has not any more, or would not.
    pub(crate) discarded: Vec<LayerChange>,
}

/// A change of a copy-on-write session. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct LayerChange {
    /// The path in the workspace, where it is UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path: Option<String>,
    /// The path in base64, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path_base64: Option<String>,
    /// `added`, `modified` or `removed`.
    pub(crate) kind: String,
    /// What the workspace has, or the session had at the point `from`.
    pub(crate) before: Option<LayerFile>,
    /// What the session has, or had at the point `to`.
    pub(crate) after: Option<LayerFile>,
    /// The path of a removed file with this content; bytes that are not UTF-8 are replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) moved_from: Option<String>,
    /// Another path that is the same file; bytes that are not UTF-8 are replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) linked_to: Option<String>,
    /// Whether it is a link out of the workspace.
    pub(crate) leads_out: bool,
    /// Whether it has set-id bits, which do not land.
    pub(crate) set_id: bool,
    /// Changes with what the session has there; 0 between two points.
    pub(crate) version: u64,
    /// `lands`; a conflict: `changed`, `gone`, `directory_gone`, `directory_moved`, `not_empty`,
    /// `mounted`; or held back: `protected`, `special`, `too_large`, `directory`, `another`; `history`
    /// between two points.
    pub(crate) standing: String,
    /// How many lines come, where they were counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) lines_added: Option<usize>,
    /// How many lines go, where they were counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) lines_removed: Option<usize>,
}

/// One side of a change. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct LayerFile {
    /// `file`, `directory`, `link`, `fifo`, `socket` or `device`.
    pub(crate) kind: String,
    /// The permissions, in octal.
    pub(crate) mode: String,
    /// Its size in bytes.
    pub(crate) size: u64,
    /// Where a link leads, as it says; bytes that are not UTF-8 are replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) target: Option<String>,
}

impl LayerChange {
    pub(super) fn new(change: &Change) -> Self {
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
            lines_added: None,
            lines_removed: None,
        }
    }

    pub(super) fn counted(diff: &FileDiff) -> Self {
        let counts = diff.counts();
        Self {
            lines_added: counts.map(|(added, _)| added),
            lines_removed: counts.map(|(_, removed)| removed),
            ..Self::new(&diff.change)
        }
    }
}

impl LayerFile {
    fn new(state: &FileState) -> Self {
        Self {
            kind: state.kind.name().to_owned(),
            mode: format!("{:03o}", state.mode),
            size: state.size,
            target: state.target.as_ref().map(ToString::to_string),
        }
    }
}

/// The paths that somebody named: below the workspace, by its own path, by `/workspace`, or relative.
/// None is left where one of them is the workspace itself.
pub(super) async fn scope(session: &Session, paths: &[OsString]) -> Result<Vec<GuestPath>> {
    if paths.is_empty() {
        return Ok(Vec::new());
    }
    let report = session.sessions().status(session.id()).await?;
    let mut scope = Vec::new();
    for path in paths {
        match below(&report, Path::new(path)).as_os_str().as_bytes() {
            b"" | b"." | b"./" => return Ok(Vec::new()),
            path => scope.push(GuestPath::new(path)?),
        }
    }
    Ok(scope)
}

fn below<'p>(report: &SessionReport, path: &'p Path) -> &'p Path {
    let roots = ["/workspace", report.workspace.as_deref().unwrap_or("/workspace")];
    roots.into_iter().find_map(|root| path.strip_prefix(root).ok()).unwrap_or(path)
}

/// Fails where a path that was named has no change at or below it.
pub(super) fn check_named(scope: &[GuestPath], changes: &[Change]) -> Result<()> {
    let has = |root: &&GuestPath| changes.iter().any(|c| is_at_or_below(&c.path, root));
    match scope.iter().find(|root| !has(root)) {
        None => Ok(()),
        Some(path) => {
            let what = format!("the session changed nothing at {path:?}");
            Err(Error::new(ErrorKind::NotFound, what)
                .hint("See what it changed with `cofferdam diff --stat`."))
        }
    }
}

/// A change in words, its columns separate.
pub(super) fn row(change: &Change) -> Vec<String> {
    let mut name = quoted(change.path.as_bytes());
    let is_directory = |state: &Option<FileState>| {
        state.as_ref().is_some_and(|state| state.kind == EntryKind::Directory)
    };
    let stands = if change.after.is_some() { &change.after } else { &change.before };
    if is_directory(stands) {
        name.push('/');
    }
    if let Some(target) = change.after.as_ref().and_then(|after| after.target.as_ref()) {
        name.push_str(" -> ");
        name.push_str(&quoted(target.as_bytes()));
    }
    let mut notes = Vec::new();
    notes.extend(change.moved_from.as_ref().map(|p| format!("was {}", quoted(p.as_bytes()))));
    notes.extend(change.linked_to.as_ref().map(|p| format!("same as {}", quoted(p.as_bytes()))));
    notes.extend(change.leads_out.then(|| "leads out of the workspace".to_owned()));
    notes.extend(change.set_id.then(|| "without its set-id bits".to_owned()));
    if !notes.is_empty() {
        name = format!("{name} ({})", notes.join(", "));
    }
    vec![change.kind.name().to_owned(), name]
}

/// Prints what was done with changes, a line each.
pub(super) fn print_changes(changes: &[Change]) -> Result<()> {
    let rows: Vec<Vec<String>> = changes.iter().map(row).collect();
    render::print_lines_if_any(&render::table(&rows))
}

/// Prints what does not land, each with its reason.
pub(super) fn print_kept(kept: &[Change]) -> Result<()> {
    let word = |standing| match standing {
        Standing::Conflict(_) => "conflict",
        Standing::Held(_) | Standing::Lands => "kept back",
    };
    let rows: Vec<Vec<String>> = kept
        .iter()
        .map(|change| {
            let name = quoted(change.path.as_bytes());
            let reason = change.standing.reason();
            vec![word(change.standing).to_owned(), format!("{name}: {reason}")]
        })
        .collect();
    render::print_lines_if_any(&render::table(&rows))
}

//! What `diff`, `apply` and `discard` share: how changes are shown.

use crate::render;
use cofferdam_core::files::EntryKind;
use cofferdam_core::{Change, FileState, Result, Standing};
use cofferdam_session::diff::quoted;

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

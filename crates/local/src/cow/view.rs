//! A copy in the view of a sandbox.

use super::tier::{Making, choose};
use crate::host::HostFacts;
use crate::view::{Found, Place, Shown, View};
use cofferdam_core::{LayerNote, Result, Spec};
use cofferdam_wire::plan::{Access, Owner};
use std::path::Path;

/// Why there is a copy where nothing else is said.
const ASKED: &str = "a copy was asked for";

/// The copy that a sandbox sees in the place of its workspace.
pub(crate) fn shown(copy: &Found, view: &View, owner: (u32, u32), facts: &HostFacts) -> Shown {
    let (uid, gid) = owner;
    Shown {
        source: copy.path.clone(),
        path: view.workspace.beside().map_or_else(String::new, |(path, _)| path.to_owned()),
        access: Access::ReadWrite,
        owner: if facts.is_root() { Owner::Mapped { uid, gid } } else { Owner::Same },
        identity: Some(copy.identity()),
        why: "the workspace, copied: what is written lands in the copy and not in the directory"
            .to_owned(),
    }
}

/// Says what is to be said of a copy.
pub(crate) fn note_copy(view: &mut View, note: &LayerNote) {
    let how = note.tier.name();
    let why = note.why.as_deref().unwrap_or(ASKED);
    view.notes.push(format!("the workspace is a copy ({how}), because {why}"));
    for what in &note.left_out {
        view.notes.push(format!("not in the copy of the workspace: {what}"));
    }
    if note.left_out_more > 0 {
        view.notes.push(format!("{} more are not in the copy", note.left_out_more));
    }
}

/// Puts into a view what would be copied.
pub(crate) fn foreseen(
    view: &mut View,
    spec: &Spec,
    facts: &HostFacts,
    state: Option<&Path>,
) -> Result<()> {
    let Some((path, _)) = view.workspace.beside() else { return Ok(()) };
    let Making::Copy(why) = choose(spec, facts, Path::new(path), state)? else { return Ok(()) };
    let place =
        view.places.iter().filter_map(Place::shown).find(|shown| shown.path == path).cloned();
    let source = format!("a copy of {path}");
    let why = why.as_deref().unwrap_or(ASKED);
    view.notes.push(format!("the workspace is copied first, because {why}"));
    view.copy = place.map(|place| Shown {
        source,
        identity: None,
        why: "what is written lands in the copy and not in the directory".to_owned(),
        ..place
    });
    Ok(())
}

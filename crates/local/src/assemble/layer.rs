//! The layer of a copy-on-write workspace, while a sandbox is assembled.

use super::{Drafting, Stay};
use crate::backend::keep_records_out;
use crate::cow;
use crate::cow::layer::Kept;
use crate::cow::passing::PassingCopy;
use crate::cow::tier::{Making, choose};
use crate::layers::open_workspace;
use crate::placeholders::Standing;
use crate::view::{Place, View, find_workspace, look};
use cofferdam_core::{LayerNote, Result, Workspace};
use rustix::fd::AsFd;
use std::path::Path;

impl Drafting<'_> {
    /// Copies the workspace for a passing sandbox, where the kernel makes no overlay.
    ///
    /// ORDER: before anything else is taken, because it may take long.
    pub(super) fn copy(&self) -> Result<()> {
        let Self { spec, stay, state, id, facts, copy } = self;
        let (
            Workspace::CopyOnWrite(workspace),
            Stay::Passing { no_overlay, has_secrets: _, trusted: _ },
        ) = (&spec.workspace, stay)
        else {
            return Ok(());
        };
        let why = match (no_overlay, choose(spec, facts, workspace, None)?) {
            // Without namespaces the copy could not be shown. Whoever plans says so.
            _ if facts.obstacle().is_some() => return Ok(()),
            (Some(why), _) => Some((*why).to_owned()),
            (None, Making::Copy(why)) => why,
            (None, Making::Overlay) => return Ok(()),
        };
        keep_records_out(spec, state.path())?;
        // What is no workspace is not copied first.
        look(spec, facts)?;
        let found = find_workspace(workspace)?;
        *copy.borrow_mut() = Some(PassingCopy::make(state, id, &found, why)?);
        Ok(())
    }

    /// Puts what the sandbox sees in the place of its workspace into the view.
    pub(super) fn look_at_layer(
        &self,
        view: &mut View,
        kept: Option<&Path>,
    ) -> Result<Option<LayerNote>> {
        let overlay = || cow::base::overlay_note();
        let is_layered = view.workspace.beside().is_some();
        if let Some(copy) = &*self.copy.borrow() {
            view.copy = Some(cow::shown(&copy.found, view, copy.owner, self.facts));
            cow::note_copy(view, &copy.note);
            return Ok(Some(copy.note.clone()));
        }
        let seen = cow::layer::look(view, kept, self.facts)?;
        if is_layered && !matches!(seen, Some(Kept::Copy(..))) {
            view.held_names = self.held_names(view)?;
        }
        Ok(match seen {
            None => is_layered.then(overlay),
            Some(Kept::Overlay(layer)) => {
                view.layer = Some(layer);
                Some(overlay())
            }
            Some(Kept::Copy(copy, note)) => {
                view.copy = Some(copy);
                cow::note_copy(view, &note);
                Some(note)
            }
        })
    }

    /// What others hold in the workspace.
    fn held_names(&self, view: &View) -> Result<Vec<String>> {
        let path = view.workspace.beside().map(|(path, _)| path);
        let mut shown = view.places.iter().filter_map(Place::shown);
        let shown = shown.find(|shown| Some(shown.path.as_str()) == path);
        let Some((shown, identity)) = shown.and_then(|shown| Some((shown, shown.identity?))) else {
            return Ok(Vec::new());
        };
        let placeholders = Standing::read(self.state, identity)?;
        if placeholders.is_empty() {
            return Ok(Vec::new());
        }
        let workspace = open_workspace(&shown.source, identity.0, identity.1)?;
        Ok(placeholders.paths(workspace.as_fd()))
    }
}

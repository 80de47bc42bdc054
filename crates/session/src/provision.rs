//! What the manifest of a session wants, brought to its workspace once.

use crate::desk::Desk;
use crate::manifest::Provisions;
use crate::store::NewEvent;
use cofferdam_core::{DestroyReason, Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// How far the manifest of a session is carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Provided {
    /// Which manifest it is.
    fingerprint: String,
    /// Whether all of it is there, or was.
    done: bool,
}

/// How far a workspace holds what its manifest wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ManifestState {
    /// All of it was brought.
    Done,
    /// Nothing of it was brought yet.
    Pending,
}

impl Provided {
    /// Nothing of it is there yet.
    pub(crate) fn owed(provisions: &Provisions) -> Self {
        Self { fingerprint: provisions.fingerprint.clone(), done: false }
    }

    pub(crate) fn state(&self) -> ManifestState {
        if self.done { ManifestState::Done } else { ManifestState::Pending }
    }
}

impl Desk {
    /// Brings what is wanted to the workspace of a session that was just made. Where that fails, nothing
    /// was brought, and nothing of the session is kept.
    pub(crate) async fn provide_first(&mut self, wanted: Option<&Provisions>) -> Result<()> {
        let Err(error) = self.provide(wanted).await else { return Ok(()) };
        self.row.facts.reason = Some(DestroyReason::Error);
        // The error that caused it is the one to tell; what could not be removed stays recorded.
        self.drive(crate::Event::Delete).await.ok();
        Err(error)
    }

    /// Brings what is wanted, unless that was done before. A session has one manifest.
    pub(crate) async fn provide(&mut self, wanted: Option<&Provisions>) -> Result<()> {
        let Some(wanted) = wanted else { return Ok(()) };
        match &self.row.facts.manifest {
            Some(has) if has.fingerprint != wanted.fingerprint => return Err(self.other("another")),
            None => return Err(self.other("no")),
            Some(has) if has.done => return Ok(()),
            Some(_) => {}
        }
        let files = self.backend().files(self.record()?).await?;
        let steps = wanted.provide(&files).await?;
        if let Some(has) = &mut self.row.facts.manifest {
            has.done = true;
        }
        let data = json!({
            "incarnation": self.row.incarnation,
            "entries": wanted.count(),
            "steps": steps,
        });
        self.amend(Some(NewEvent::now("files_provided", data))).await
    }

    fn other(&self, which: &str) -> Error {
        let name = self.row.name.as_deref().unwrap_or(self.row.id.as_str());
        Error::new(ErrorKind::Conflict, format!("session {name} was made with {which} manifest"))
            .hint("Leave the manifest out, use another name, or remove the session first.")
    }
}

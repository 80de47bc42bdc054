//! What the manifest of a session wants, brought to its workspace once.

use crate::desk::Desk;
use crate::manifest::Provisions;
use crate::staging::Staging;
use crate::store::{NewEvent, blocking};
use cofferdam_core::{DestroyReason, Error, ErrorKind, Files, GuestPath, Result};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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

    /// Whether it is this one, by its text.
    pub(crate) fn is_of(&self, provisions: &Provisions) -> bool {
        self.fingerprint == provisions.fingerprint
    }

    pub(crate) fn state(&self) -> ManifestState {
        if self.done { ManifestState::Done } else { ManifestState::Pending }
    }
}

/// Tells what runs beside that nobody waits for it any more.
#[derive(Debug, Default)]
struct Stop(Arc<AtomicBool>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Desk {
    /// Brings what is wanted to the workspace of a session that was just made. Where that fails, nothing
    /// was brought, and nothing of the session is kept.
    pub(crate) async fn provide_first(&mut self, wanted: Option<&Provisions>) -> Result<()> {
        let Err(error) = self.provide(wanted).await else { return Ok(()) };
        self.row.facts.reason = Some(DestroyReason::Error);
        let _room = self.inner.store.while_room_is_made();
        // The error that caused it is the one to tell; what could not be removed stays recorded.
        self.drive(crate::Event::Delete).await.ok();
        Err(error)
    }

    /// Brings what is wanted, unless that was done before. A session has one manifest.
    pub(crate) async fn provide(&mut self, wanted: Option<&Provisions>) -> Result<()> {
        let Some(wanted) = wanted else { return Ok(()) };
        match &self.row.facts.manifest {
            Some(has) if !has.is_of(wanted) => return Err(self.other("another")),
            None => return Err(self.other("no")),
            Some(has) if has.done => return Ok(()),
            Some(_) => {}
        }
        let files = self.backend().files(self.record()?).await?;
        let missing = wanted.missing(&files).await?;
        let steps = match wanted.is_at_hand(&missing) {
            true => wanted.provide(&files).await?,
            false => self.fetch(wanted, missing, &files).await?,
        };
        drop(files);
        // What came may be repositories and control files, which a sandbox protects as it finds them. No command
        // has run in this one.
        // ORDER: it ends before it is written down that all is there, so that none is kept that found nothing.
        let is_found_anew = wanted.brings()
            && self.row.spec.is_in_place()
            && self.backend().protects_what_it_finds();
        if is_found_anew {
            self.drive(crate::Event::Stop).await?;
        }
        if let Some(has) = &mut self.row.facts.manifest {
            has.done = true;
        }
        let data = json!({
            "incarnation": self.row.incarnation,
            "entries": wanted.count(),
            "steps": steps,
        });
        self.amend(Some(NewEvent::now("files_provided", data))).await?;
        match is_found_anew {
            true => self.drive(crate::Event::Ensure).await,
            false => Ok(()),
        }
    }

    /// The same with what has to be fetched first. Nobody who stops waiting leaves anything running.
    async fn fetch(
        &self,
        wanted: &Provisions,
        missing: Vec<GuestPath>,
        files: &Files,
    ) -> Result<u64> {
        let (places, locks) = (self.inner.places.clone(), self.inner.locks.clone());
        let (wanted, stop) = (wanted.clone(), Stop::default());
        let stopped = Arc::clone(&stop.0);
        let (fetched, staging) = blocking(move || {
            let staging = Staging::make(&places, &locks)?;
            let fetched = wanted.fetch(&missing, &staging.path(), &stopped)?;
            Ok((fetched, staging))
        })
        .await?;
        let provided = fetched.provide(files).await;
        // What cannot be removed now is a leftover, which the next start removes.
        blocking(move || staging.remove()).await.ok();
        provided
    }

    fn other(&self, which: &str) -> Error {
        let name = self.row.name.as_deref().unwrap_or(self.row.id.as_str());
        Error::new(ErrorKind::Conflict, format!("session {name} was made with {which} manifest"))
            .hint("Leave the manifest out, use another name, or remove the session first.")
    }
}

//! What is put to the suite.

use crate::fixture::Fixture;
use cofferdam_core::Backend;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A backend and what the suite must know of it.
#[derive(Clone)]
pub struct Subject {
    /// Its name, with what makes it special, as in `local-as-root`.
    pub name: String,
    /// The backend.
    pub backend: Arc<dyn Backend>,
    /// How its sandboxes do things.
    pub fixture: Arc<dyn Fixture>,
    /// A check that takes longer has failed.
    pub patience: Duration,
    /// The directory with the list of skips, if it is compared.
    pub skips: Option<PathBuf>,
}

impl Subject {
    /// A subject whose checks may take a minute each, and whose skips are not compared.
    pub fn new(
        name: impl Into<String>,
        backend: Arc<dyn Backend>,
        fixture: Arc<dyn Fixture>,
    ) -> Self {
        let patience = Duration::from_secs(60);
        Self { name: name.into(), backend, fixture, patience, skips: None }
    }

    /// Compares the list of skips with the file of its name in this directory.
    #[must_use]
    pub fn skips_in(mut self, directory: impl Into<PathBuf>) -> Self {
        self.skips = Some(directory.into());
        self
    }

    /// Changes how long a check may take.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }
}

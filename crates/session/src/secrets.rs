//! The secrets of the owner of sessions: their names, and changes of them. A value comes out for a command
//! that is given it, and for nobody else.

use crate::store::blocking;
use crate::{Sessions, now_ms};
use cofferdam_core::secret::{GivenSecret, SecretName, SecretValue, SecretWish};
use cofferdam_core::{Error, ErrorKind, Result};
pub use cofferdam_secrets::SecretReport;
use cofferdam_secrets::SecretStore;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What `secret ls --json` prints. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SecretList {
    /// The secrets, by name.
    pub secrets: Vec<SecretReport>,
}

impl Sessions {
    /// The secrets of this owner, by name. Those of others do not exist in here.
    pub async fn secrets(&self) -> Result<Vec<SecretReport>> {
        self.in_store(SecretStore::list).await
    }

    /// Whether this owner has such a secret.
    pub async fn has_secret(&self, name: SecretName) -> Result<bool> {
        self.in_store(move |store, owner| store.has(owner, &name)).await
    }

    /// Adds a secret of this owner, or gives one that is there another value.
    pub async fn put_secret(&self, name: SecretName, value: SecretValue) -> Result<SecretReport> {
        self.in_store(move |store, owner| store.put(owner, &name, &value, now_ms())).await
    }

    /// What a command of this owner is to be given.
    pub async fn given_secrets(&self, wishes: Vec<SecretWish>) -> Result<Vec<GivenSecret>> {
        SecretWish::check(&wishes)?;
        if wishes.is_empty() {
            return Ok(Vec::new());
        }
        self.in_store(move |store, owner| store.given(owner, &wishes)).await
    }

    /// Removes a secret of this owner.
    pub async fn remove_secret(&self, name: SecretName) -> Result<()> {
        self.in_store(move |store, owner| store.remove(owner, &name)).await
    }

    /// Removes all secrets of a key. Where the store was never used none is made.
    pub(crate) async fn forget_secrets(&self, owner: &str) -> Result<()> {
        let (state, owner) = (self.0.places.state().to_owned(), owner.to_owned());
        let forgotten = blocking(move || match SecretStore::is_at(&state) {
            true => SecretStore::open(&state)?.remove_all(&owner).map(drop),
            false => Ok(()),
        });
        forgotten.await.map_err(|error| {
            Error::new(ErrorKind::Io, "remove the secrets of the key")
                .hint("See that the state directory can be written, and revoke the key again.")
                .source(error)
        })
    }

    async fn in_store<T: Send + 'static>(
        &self,
        deed: impl FnOnce(&SecretStore, &str) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let state = self.0.places.state().to_owned();
        let owner = self.0.store.view().map(|view| view.owner.clone()).unwrap_or_default();
        blocking(move || deed(&SecretStore::open(&state)?, &owner)).await
    }
}

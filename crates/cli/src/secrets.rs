//! The seam to the store of secrets.

use crate::surroundings::Surroundings;
use cofferdam_core::secret::{GivenSecret, Granted, SecretGrant, SecretSource, SecretWish};
use cofferdam_core::{Error, ErrorKind, Result, Spec};
use cofferdam_secrets::{KeyPlace, SecretStore};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The open store of this user.
pub(crate) struct Secrets(SecretStore);

impl Secrets {
    /// Opens it. From then on nobody of the same user can read this process' memory, and a crash writes
    /// none of it down.
    pub(crate) fn open() -> Result<Self> {
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
        let state = Surroundings::of_this_process().state_directory()?;
        store(&state).map(Self)
    }

    /// What secrets are asked of.
    pub(crate) fn store(&self) -> &SecretStore {
        &self.0
    }
}

/// The names of all secrets, for completion. Makes nothing.
pub(crate) fn names() -> Result<Vec<String>> {
    let state = Surroundings::of_this_process().state_directory()?;
    if !state.join("secrets").is_dir() {
        return Ok(Vec::new());
    }
    Ok(store(&state)?.look("")?.secrets.into_iter().map(|secret| secret.name).collect())
}

/// Where the key of all secrets is. Makes nothing, and asks no keyring.
pub(crate) fn key_place() -> Result<Option<KeyPlace>> {
    let state = Surroundings::of_this_process().state_directory()?;
    match state.join("secrets").is_dir() {
        true => store(&state)?.key_place(),
        false => Ok(None),
    }
}

/// What a command is to be given. A server gives its commands those of its own store.
pub(crate) fn given(wishes: &[SecretWish], state: &Path) -> Result<Vec<GivenSecret>> {
    SecretWish::check(wishes)?;
    if wishes.is_empty() || crate::door::is_chosen() {
        return Ok(Vec::new());
    }
    store(state)?.given("", wishes)
}

/// Fails where one of these is not in the store.
pub(crate) fn must_exist(grants: &[SecretGrant], state: &Path) -> Result<()> {
    if grants.is_empty() {
        return Ok(());
    }
    let store = store(state)?;
    for name in SecretGrant::names(grants) {
        if !store.has("", name)? {
            return Err(Error::new(ErrorKind::NotFound, format!("there is no secret {name}"))
                .hint(format!("Add it with `cofferdam secret add {name}`.")));
        }
    }
    Ok(())
}

/// The store of a state directory, for the secrets that gates put in.
#[derive(Debug)]
#[cfg_attr(
    not(feature = "gate"),
    expect(dead_code, reason = "nothing puts them in without a gate")
)]
pub(crate) struct Stored(pub(crate) PathBuf);

impl SecretSource for Stored {
    #[cfg(feature = "gate")]
    fn granted(&self, owner: &str, sandbox: &str, spec: &Spec) -> Result<Granted> {
        let store = store(&self.0)?;
        cofferdam_terminate::granted(spec, sandbox, |name| store.value(owner, name))
    }

    #[cfg(not(feature = "gate"))]
    fn granted(&self, _owner: &str, _sandbox: &str, _spec: &Spec) -> Result<Granted> {
        Err(Error::new(ErrorKind::Unsupported, "this build of cofferdam has no gate for secrets")
            .hint("Build it with the feature `gate`."))
    }
}

/// Opens the store of a state directory. From then on a crash writes no value down.
fn store(state: &Path) -> Result<SecretStore> {
    cofferdam_local::write_no_core();
    DirBuilder::new().recursive(true).mode(0o700).create(state).map_err(|cause| {
        Error::new(ErrorKind::Io, format!("make the directory {}", state.display()))
            .hint("Give yourself the right to write there, or set COFFERDAM_HOME.")
            .source(cause)
    })?;
    SecretStore::open(state)
}

//! Secrets on their way to a gate: the values in a file in memory, everything else as words.

use super::failed;
use crate::conversation::sealed;
use cofferdam_core::secret::{
    GateGrant, Granted, MAX_VAULT_BYTES, Mask, SecretValue, Trusted, Vault,
};
use cofferdam_core::{Error, ErrorKind, Result};
use rustix::fd::OwnedFd;

/// What the gate of one sandbox puts in, with the values in a sealed file in memory.
#[derive(Debug)]
pub struct GatedSecrets {
    grants: Vec<GateGrant>,
    trusted: Trusted,
    vault: OwnedFd,
}

impl GatedSecrets {
    /// Takes the values over; they are in this process' own memory no more.
    pub fn new(granted: Granted) -> Result<Self> {
        let Granted { grants, vault, trusted } = granted;
        // ORDER: what cannot be masked is refused before there is a sandbox.
        Mask::new(&distinct(vault.values.clone()))?;
        let bytes = vault.to_bytes();
        if bytes.len() > MAX_VAULT_BYTES {
            let what = format!("the secrets are longer than {MAX_VAULT_BYTES} bytes together");
            return Err(Error::new(ErrorKind::TooLarge, what)
                .hint("Grant fewer of them, or trust fewer authorities outside."));
        }
        let vault = sealed("cofferdam-secrets", &bytes);
        Ok(Self { grants, trusted, vault: vault.map_err(failed("pass on secrets"))? })
    }

    /// What a keeper was handed.
    pub(crate) fn handed(grants: Vec<GateGrant>, trusted: Trusted, vault: OwnedFd) -> Self {
        Self { grants, trusted, vault }
    }

    /// What the inside has of it.
    pub(crate) fn trusted(&self) -> &Trusted {
        &self.trusted
    }

    /// The grants.
    pub(crate) fn grants(&self) -> &[GateGrant] {
        &self.grants
    }

    /// The file with the values.
    pub(crate) fn vault(&self) -> &OwnedFd {
        &self.vault
    }

    /// The values, to mask them.
    pub(crate) fn values(&self) -> Result<Vec<SecretValue>> {
        let vault = Vault::read(&self.copy()?.into(), self.grants.len())?;
        Ok(distinct(vault.values))
    }

    /// What a gate is started with.
    pub(crate) fn for_gate(&self) -> Result<(Vec<GateGrant>, OwnedFd)> {
        Ok((self.grants.clone(), self.copy()?))
    }

    fn copy(&self) -> Result<OwnedFd> {
        let copy = self.vault.try_clone();
        copy.map_err(|e| Error::new(ErrorKind::Io, "pass on secrets").source(e))
    }
}

/// Each value once.
fn distinct(mut values: Vec<SecretValue>) -> Vec<SecretValue> {
    values.sort_unstable_by(|a, b| a.expose().cmp(b.expose()));
    values.dedup();
    values
}

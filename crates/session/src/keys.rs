//! Keys: who may ask a server, for what, and how much.
//!
//! A key is `cfd_`, 16 hexadecimal digits by which it is listed, `_`, and 64 that are secret. What is
//! written down is the SHA-256 of the whole: it has 256 random bits, so a slow hash would add nothing.

use crate::store::{Quota, StoredKey};
use crate::{Sessions, now_ms, random_text};
use cofferdam_core::{Error, ErrorKind, Result, SandboxId, hexadecimal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use subtle::ConstantTimeEq;

/// Begins every key, so that it is known for one where it should not be.
pub const KEY_MARK: &str = "cfd_";
/// How many digits are shown.
const ID_DIGITS: usize = 16;
/// How many random bytes are secret.
const SECRET_BYTES: usize = 32;

/// What a key allows.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum KeyScope {
    /// To look at sandboxes, commands, their output and events.
    Look,
    /// To make, change and remove sandboxes.
    Manage,
    /// To run commands and talk to them.
    Run,
    /// To read files.
    FilesRead,
    /// To write files.
    FilesWrite,
    /// To let sandboxes reach more: by answers to what waits, and by rules.
    Approve,
    /// To add, change, remove and grant secrets.
    Secrets,
}

impl KeyScope {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Look,
        Self::Manage,
        Self::Run,
        Self::FilesRead,
        Self::FilesWrite,
        Self::Secrets,
        Self::Approve,
    ];

    /// Those that a key has unless somebody says otherwise: all that an agent needs, and not what it asks
    /// others for.
    pub const USUAL: [Self; 6] =
        [Self::Look, Self::Manage, Self::Run, Self::FilesRead, Self::FilesWrite, Self::Secrets];

    /// Its stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Look => "look",
            Self::Manage => "manage",
            Self::Run => "run",
            Self::FilesRead => "files-read",
            Self::FilesWrite => "files-write",
            Self::Approve => "approve",
            Self::Secrets => "secrets",
        }
    }
}

/// What somebody with a key may do, and how much. Format 1.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeyRights {
    /// For what it is good.
    pub scopes: Vec<KeyScope>,
    /// How many sandboxes there may be, and how much memory they may use.
    pub quota: Quota,
    /// How many requests a second are answered.
    pub max_rate: Option<u32>,
    /// The directories that a request may name as its workspace.
    pub workspaces: Vec<PathBuf>,
}

/// A key, without what is secret. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeyReport {
    /// How it begins: by that it is listed and revoked.
    pub prefix: String,
    /// Its name, which is the owner of what is made with it.
    pub name: String,
    /// What it allows.
    pub rights: KeyRights,
    /// When it was made, in milliseconds since 1970.
    pub created_ms: u64,
    /// When it was revoked, in milliseconds since 1970; null while it is good.
    pub revoked_ms: Option<u64>,
}

/// Whether one of two directories is the other one, or lies in it.
pub fn lie_in_each_other(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// Refuses workspaces that lie in each other, or in those of another key or around them: whoever works in the outer one
/// could put a link in the place of the inner one, and that leads anywhere. The same one for several keys is shared.
fn refuse_nested<'k>(wanted: &[PathBuf], known: impl Iterator<Item = &'k StoredKey>) -> Result<()> {
    let refused = |one: &Path, other: &Path, whose: &str| {
        let what = format!("{} and {}{whose} lie in each other", one.display(), other.display());
        Err(Error::new(ErrorKind::Usage, what).hint(
            "Name workspaces of which none lies in another: who works in the outer one could lead the \
             inner one elsewhere.",
        ))
    };
    for (at, one) in wanted.iter().enumerate() {
        let mut others = wanted.iter().skip(at + 1);
        if let Some(other) = others.find(|other| lie_in_each_other(one, other)) {
            return refused(one, other, "");
        }
    }
    for key in known {
        for other in &key.rights.workspaces {
            let nested = |one: &&PathBuf| *one != other && lie_in_each_other(one, other);
            if let Some(one) = wanted.iter().find(nested) {
                return refused(one, other, &format!(" of key {}", key.name));
            }
        }
    }
    Ok(())
}

impl Sessions {
    /// Makes a key, and says what it is: that is told once and kept nowhere.
    ///
    /// A name belongs to one key at a time. One whose key was revoked may be used again; the new key
    /// then has the sandboxes that were made with the old one, as they are, and none of its secrets.
    pub async fn create_key(&self, name: &str, rights: KeyRights) -> Result<(KeyReport, String)> {
        self.refuse_a_part("making a key")?;
        SandboxId::new(name).map_err(|_| {
            Error::new(ErrorKind::Usage, format!("{name:?} cannot be the name of a key")).hint(
                "Use 1 to 64 letters, digits, '-', '_' or '.', and begin with none of '-' and '.'.",
            )
        })?;
        if rights.scopes.is_empty() {
            return Err(Error::new(ErrorKind::Usage, "a key without any scope opens nothing")
                .hint("Give it at least one scope."));
        }
        let known = self.0.store.keys().await?;
        refuse_nested(&rights.workspaces, known.iter().filter(|key| key.revoked_ms.is_none()))?;
        let id: String = random_text()?.chars().take(ID_DIGITS).collect();
        let secret = format!("{KEY_MARK}{id}_{}", secret()?);
        let key = StoredKey {
            id,
            name: name.to_owned(),
            hash: hash(&secret),
            rights,
            created_ms: now_ms(),
            revoked_ms: None,
        };
        if !self.0.store.insert_key(key.clone()).await? {
            return Err(Error::new(
                ErrorKind::Conflict,
                format!("there is a key {name:?} already"),
            )
            .hint("Use another name, or revoke that one first."));
        }
        // ORDER: before anybody has the key. What an earlier one left that could not be removed goes here.
        if let Err(error) = self.forget_secrets(&key.name).await {
            self.0.store.revoke_key(&key.id, now_ms()).await?;
            return Err(error);
        }
        Ok((report(key), secret))
    }

    /// All keys, those that were revoked included, oldest first.
    pub async fn keys(&self) -> Result<Vec<KeyReport>> {
        self.refuse_a_part("listing keys")?;
        Ok(self.0.store.keys().await?.into_iter().map(report).collect())
    }

    /// Whether there ever was a key.
    pub async fn has_keys(&self) -> Result<bool> {
        self.0.store.has_keys().await
    }

    /// Makes the key of this prefix, or of this name, no good any more. What was made with it stays, but
    /// for its secrets, which are removed: whoever has a key of this name later is perhaps somebody else.
    /// Revoking it again removes what could not be removed before.
    pub async fn revoke_key(&self, text: &str) -> Result<KeyReport> {
        self.refuse_a_part("revoking a key")?;
        let is_meant = |key: &StoredKey| {
            shown(&key.id) == text || key.revoked_ms.is_none() && key.name == text
        };
        let Some(key) = self.0.store.keys().await?.into_iter().find(is_meant) else {
            return Err(Error::new(ErrorKind::NotFound, format!("there is no key {text:?}"))
                .hint("List the keys with `cofferdam key ls`."));
        };
        // ORDER: first, so that nobody adds one with it afterwards.
        self.0.store.revoke_key(&key.id, now_ms()).await?;
        let is_used = |other: &StoredKey| other.name == key.name && other.revoked_ms.is_none();
        if !self.0.store.keys().await?.iter().any(is_used) {
            self.forget_secrets(&key.name).await?;
        }
        let key = self.0.store.key(&key.id).await?.unwrap_or(key);
        Ok(report(key))
    }

    /// The key that this is, if it is one and good. Takes as long whatever a secret begins with.
    pub async fn key_of(&self, secret: &str) -> Result<Option<KeyReport>> {
        let parts = secret.strip_prefix(KEY_MARK).and_then(|rest| rest.split_once('_'));
        let Some((id, _)) = parts else { return Ok(None) };
        let Some(key) = self.0.store.key(id).await? else { return Ok(None) };
        let is_it = bool::from(hash(secret).as_slice().ct_eq(&key.hash));
        Ok((is_it && key.revoked_ms.is_none()).then(|| report(key)))
    }

    /// Whether the key with this prefix opens still.
    pub async fn key_is_good(&self, prefix: &str) -> Result<bool> {
        let Some(id) = prefix.strip_prefix(KEY_MARK) else { return Ok(false) };
        Ok(self.0.store.key(id).await?.is_some_and(|key| key.revoked_ms.is_none()))
    }
}

fn report(key: StoredKey) -> KeyReport {
    let StoredKey { id, name, hash: _, rights, created_ms, revoked_ms } = key;
    KeyReport { prefix: shown(&id), name, rights, created_ms, revoked_ms }
}

fn shown(id: &str) -> String {
    format!("{KEY_MARK}{id}")
}

fn hash(secret: &str) -> Vec<u8> {
    Sha256::digest(secret.as_bytes()).to_vec()
}

fn secret() -> Result<String> {
    let mut bytes = [0; SECRET_BYTES];
    let filled = rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty());
    match filled {
        Ok(SECRET_BYTES) => Ok(hexadecimal(bytes)),
        Ok(_) => Err(Error::new(ErrorKind::Io, "get random bytes")),
        Err(e) => Err(Error::new(ErrorKind::Io, "get random bytes").source(e)),
    }
}

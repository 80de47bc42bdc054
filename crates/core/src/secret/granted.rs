//! Secrets that never enter: what their sandbox has in their place, and what its gate is given.

use super::grant::SecretGrant;
use super::name::SecretName;
use super::value::SecretValue;
use crate::{ByteString, Error, ErrorKind, Result, Spec};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::os::unix::fs::FileExt;
use zeroize::Zeroizing;

/// How many grants a sandbox may have.
pub const MAX_GRANTS: usize = 32;
/// How long all that a gate is handed of them may be, in bytes.
pub const MAX_VAULT_BYTES: usize = 8 << 20;

/// A grant as a gate is told of it: no value is in here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GateGrant {
    /// Which secret, toward which host, and where in a request.
    pub grant: SecretGrant,
    /// What stands for it inside.
    pub placeholder: String,
}

/// What a gate is handed beside its grants, in a file in memory, and what is written down nowhere.
#[derive(Clone, PartialEq, Eq)]
pub struct Vault {
    /// How the session's own authority is called.
    pub authority: String,
    /// Its certificate.
    pub certificate: Vec<u8>,
    /// Its key.
    pub key: Zeroizing<Vec<u8>>,
    /// A value for each grant, in their order.
    pub values: Vec<SecretValue>,
    /// Certificates of the authorities by which hosts are verified.
    pub roots: Vec<Vec<u8>>,
}

/// What programs inside need for the hosts that have a secret. Nothing in here is secret.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trusted {
    /// Files that are made in memory, read-only, by their paths.
    pub files: Vec<(String, ByteString)>,
    /// Files of the system in whose place one of those is shown.
    pub covers: Vec<Cover>,
    /// Variables of every command: placeholders, and where authorities are.
    pub variables: Vec<(String, String)>,
}

/// A file in whose place another one is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cover {
    /// The one that is shown.
    pub from: String,
    /// Where.
    pub path: String,
}

/// The secrets that one sandbox is granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Granted {
    /// Toward whom.
    pub grants: Vec<GateGrant>,
    /// For the gate alone.
    pub vault: Vault,
    /// For the inside.
    pub trusted: Trusted,
}

/// Where the values come from of the secrets that a sandbox is granted.
pub trait SecretSource: fmt::Debug + Send + Sync {
    /// All that a sandbox of this owner needs for the grants of this spec. `sandbox` names the authority
    /// that is made for it. Fails where a secret is not there any more.
    fn granted(&self, owner: &str, sandbox: &str, spec: &Spec) -> Result<Granted>;
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vault").field("values", &self.values.len()).finish_non_exhaustive()
    }
}

impl Vault {
    /// As bytes: pieces, each after its length.
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        let values = self.values.iter().map(SecretValue::expose);
        let roots = self.roots.iter().map(Vec::as_slice);
        let first = [self.authority.as_bytes(), &self.certificate, &self.key];
        let pieces = first.into_iter().chain(values).chain(roots);
        // All the room at once: what moved would stay where it was.
        let room = pieces.clone().map(|piece| piece.len() + size_of::<u32>()).sum();
        let mut out = Zeroizing::new(Vec::with_capacity(room));
        for piece in pieces {
            out.extend(u32::try_from(piece.len()).unwrap_or(u32::MAX).to_be_bytes());
            out.extend_from_slice(piece);
        }
        out
    }

    /// What is in such a file, for so many grants.
    pub fn read(file: &File, grants: usize) -> Result<Self> {
        let failed =
            |e| Error::new(ErrorKind::Io, "read what was handed over for secrets").source(e);
        let length = file.metadata().map_err(failed)?.len();
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if length > MAX_VAULT_BYTES {
            return Err(Error::new(
                ErrorKind::TooLarge,
                "what was handed over for secrets is too long",
            ));
        }
        let mut bytes = Zeroizing::new(vec![0; length]);
        file.read_exact_at(&mut bytes, 0).map_err(failed)?;
        Self::from_bytes(&bytes, grants)
    }

    /// From such bytes, for so many grants.
    pub fn from_bytes(mut bytes: &[u8], grants: usize) -> Result<Self> {
        let mut next = || {
            let (length, rest) = bytes.split_first_chunk().ok_or_else(torn)?;
            let length = usize::try_from(u32::from_be_bytes(*length)).map_err(|_| torn())?;
            let (piece, rest) = rest.split_at_checked(length).ok_or_else(torn)?;
            bytes = rest;
            Ok::<_, Error>((piece, rest.is_empty()))
        };
        let authority = String::from_utf8(next()?.0.to_vec()).map_err(|_| torn())?;
        let certificate = next()?.0.to_vec();
        let (key, mut is_over) = next()?;
        let key = Zeroizing::new(key.to_vec());
        let (mut values, mut roots) = (Vec::new(), Vec::new());
        for _ in 0..grants {
            let (value, last) = next()?;
            values.push(SecretValue::new(value.to_vec())?);
            is_over = last;
        }
        while !is_over {
            let (root, last) = next()?;
            roots.push(root.to_vec());
            is_over = last;
        }
        Ok(Self { authority, certificate, key, values, roots })
    }
}

fn torn() -> Error {
    Error::new(ErrorKind::Protocol, "read what the gate was handed for secrets: it is cut off")
}

impl SecretGrant {
    /// The names of the secrets of these grants, each once.
    pub fn names(grants: &[Self]) -> BTreeSet<&SecretName> {
        grants.iter().map(|grant| &grant.name).collect()
    }

    /// Fails where there are too many, or one secret is granted twice toward one host.
    pub fn check(grants: &[Self]) -> Result<()> {
        if grants.len() > MAX_GRANTS {
            let what = format!("a sandbox cannot have more than {MAX_GRANTS} grants of secrets");
            return Err(Error::new(ErrorKind::Usage, what).hint("Leave some of them out."));
        }
        for (at, grant) in grants.iter().enumerate() {
            let is_same = |other: &&Self| other.name == grant.name && other.host == grant.host;
            if grants.iter().take(at).any(|other| is_same(&other)) {
                let what = format!("secret {} is granted twice toward {}", grant.name, grant.host);
                return Err(Error::new(ErrorKind::Usage, what).hint("Write it once."));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vault(roots: Vec<Vec<u8>>) -> Vault {
        let value = |text: &str| SecretValue::new(text.as_bytes().to_vec()).unwrap();
        Vault {
            authority: "s".to_owned(),
            certificate: b"cert".to_vec(),
            key: Zeroizing::new(b"key!".to_vec()),
            values: vec![value("hunter22"), value("hunter33")],
            roots,
        }
    }

    #[test]
    fn a_vault_is_read_as_it_was_written() {
        for roots in [Vec::new(), vec![b"one".to_vec(), Vec::new(), b"two".to_vec()]] {
            let vault = vault(roots);
            let bytes = vault.to_bytes();
            assert_eq!(Vault::from_bytes(&bytes, 2).unwrap(), vault);
            for end in 0..bytes.len() {
                let cut = Vault::from_bytes(&bytes[..end], 2);
                assert!(cut.as_ref().ok() != Some(&vault), "{end}");
            }
            assert!(Vault::from_bytes(&[], 0).is_err());
        }
        assert!(!format!("{:?}", vault(Vec::new())).contains("hunter"));
    }

    #[test]
    fn a_secret_is_granted_once_toward_a_host() {
        let all = |texts: &[&str]| -> Vec<SecretGrant> {
            texts.iter().map(|text| text.parse().unwrap()).collect()
        };
        assert!(SecretGrant::check(&all(&["T@a.test", "T@b.test", "U@a.test"])).is_ok());
        assert!(SecretGrant::check(&all(&["T@a.test", "T@A.test:query=k"])).is_err());
        let many: Vec<String> = (0..=MAX_GRANTS).map(|n| format!("T@h{n}.test")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(SecretGrant::check(&all(&many[1..])).is_ok());
        assert!(SecretGrant::check(&all(&many)).is_err());
    }
}

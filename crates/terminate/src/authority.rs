//! A certificate authority of one session, which is nowhere but in memory.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cofferdam_core::{Error, ErrorKind, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use zeroize::Zeroizing;

/// For how many hosts certificates are kept. The one that was made first goes first.
pub const MAX_LEAVES: usize = 64;

/// Signs certificates of hosts for one session. Its keys go with it.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    leaves: Mutex<VecDeque<(String, Arc<ServerConfig>)>>,
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority").finish_non_exhaustive()
    }
}

impl Authority {
    /// A new one. `name` tells people which session it is of.
    pub fn new(name: &str) -> Result<Self> {
        let key = KeyPair::generate().map_err(not_made)?;
        let params = params(name);
        let certificate = params.self_signed(&key).map_err(not_made)?.der().clone();
        Ok(Self { issuer: Issuer::new(params, key), certificate, leaves: Mutex::default() })
    }

    /// The same one in another process, from what [`Authority::key`] gave, and with the same name.
    pub fn restore(name: &str, certificate: Vec<u8>, key: &[u8]) -> Result<Self> {
        let key = KeyPair::try_from(key).map_err(not_made)?;
        let issuer = Issuer::new(params(name), key);
        Ok(Self { issuer, certificate: certificate.into(), leaves: Mutex::default() })
    }

    /// Its key. Whoever takes it answers for where it goes.
    pub fn key(&self) -> Zeroizing<Vec<u8>> {
        Zeroizing::new(self.issuer.key().serialize_der())
    }

    /// Its certificate, without its key.
    pub fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    /// The same as text.
    pub fn pem(&self) -> String {
        pem(&self.certificate)
    }

    /// How to be this host. Offers HTTP/1.1.
    pub fn serve_as(&self, host: &str) -> Result<Arc<ServerConfig>> {
        let mut leaves = self.leaves.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, leaf)) = leaves.iter().find(|(of, _)| of == host) {
            return Ok(Arc::clone(leaf));
        }
        let leaf = Arc::new(self.leaf(host)?);
        if leaves.len() >= MAX_LEAVES {
            leaves.pop_front();
        }
        leaves.push_back((host.to_owned(), Arc::clone(&leaf)));
        Ok(leaf)
    }

    fn leaf(&self, host: &str) -> Result<ServerConfig> {
        let what = || format!("make a certificate for {host}");
        let failed = |e: rcgen::Error| Error::new(ErrorKind::Io, what()).source(e);
        let key = KeyPair::generate().map_err(failed)?;
        let mut params = CertificateParams::new([host.to_owned()]).map_err(failed)?;
        params.distinguished_name = named(host);
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let leaf = params.signed_by(&key, &self.issuer).map_err(failed)?;
        let failed = |e: rustls::Error| Error::new(ErrorKind::Io, what()).source(e);
        let key = PrivateKeyDer::try_from(key.serialize_der())
            .map_err(|e| Error::new(ErrorKind::Io, what()).source(e))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(failed)?
            .with_no_client_auth()
            .with_single_cert(vec![leaf.der().clone(), self.certificate.clone()], key)
            .map_err(failed)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }

    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.leaves.lock().unwrap().len()
    }
}

/// What is said of an authority.
fn params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = named(&format!("Cofferdam session {name}"));
    // It signs hosts, and no other authority.
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    params
}

fn not_made(error: rcgen::Error) -> Error {
    Error::new(ErrorKind::Io, "make the session's certificate authority").source(error)
}

fn named(name: &str) -> DistinguishedName {
    let mut named = DistinguishedName::new();
    // The longest that a certificate may have.
    named.push(DnType::CommonName, name.get(..name.floor_char_boundary(64)).unwrap_or_default());
    named
}

/// A certificate as text.
pub(crate) fn pem(der: &[u8]) -> String {
    let mut text = "-----BEGIN CERTIFICATE-----\n".to_owned();
    for line in STANDARD.encode(der).as_bytes().chunks(64) {
        text.extend(line.iter().copied().map(char::from));
        text.push('\n');
    }
    text + "-----END CERTIFICATE-----\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_are_kept_for_so_many_hosts() {
        let authority = Authority::new("s").unwrap();
        let first = authority.serve_as("a.example").unwrap();
        assert!(Arc::ptr_eq(&first, &authority.serve_as("a.example").unwrap()));
        for number in 0..MAX_LEAVES {
            authority.serve_as(&format!("h{number}.example")).unwrap();
        }
        assert_eq!(authority.count(), MAX_LEAVES);
        assert!(!Arc::ptr_eq(&first, &authority.serve_as("a.example").unwrap()));
    }

    #[test]
    fn an_authority_is_the_same_in_another_process() {
        let one = Authority::new("s").unwrap();
        let other = Authority::restore("s", one.certificate().to_vec(), &one.key()).unwrap();
        assert_eq!(one.pem(), other.pem());
        other.serve_as("a.example").unwrap();
        assert!(Authority::restore("s", Vec::new(), b"no key").is_err());
    }

    #[test]
    fn an_authority_prints_no_key_and_is_like_no_other() {
        let (one, other) = (Authority::new("s").unwrap(), Authority::new("s").unwrap());
        assert_ne!(one.pem(), other.pem());
        assert!(one.pem().starts_with("-----BEGIN CERTIFICATE-----\n"));
        // One block and no second: a search for `KEY` would meet it by chance in the base64.
        assert_eq!(one.pem().matches("-----BEGIN ").count(), 1);
        assert_eq!(format!("{one:?}"), "Authority { .. }");
    }
}

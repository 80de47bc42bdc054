//! How the other side is verified.

use cofferdam_core::{Error, ErrorKind, Result};
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;

/// Authorities by which hosts are verified, and the way to speak to them.
#[derive(Debug, Clone)]
pub struct Upstream(pub(crate) Arc<ClientConfig>);

impl Upstream {
    /// The system's authorities, and more of the caller's.
    pub fn system(more: &[CertificateDer<'static>]) -> Result<Self> {
        Self::new(Self::of_system().into_iter().chain(more.iter().cloned()))
    }

    /// The certificates of the system's authorities. `SSL_CERT_FILE` and `SSL_CERT_DIR` of this process
    /// name others in their place, as with other programs.
    pub fn of_system() -> Vec<CertificateDer<'static>> {
        rustls_native_certs::load_native_certs().certs
    }

    /// These authorities and no others.
    pub fn new(authorities: impl IntoIterator<Item = CertificateDer<'static>>) -> Result<Self> {
        let failed = |e| Error::new(ErrorKind::Io, "prepare TLS to the outside").source(e);
        let mut roots = RootCertStore::empty();
        // What this library does not understand verifies nothing, and keeps nobody else from it.
        roots.add_parsable_certificates(authorities);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|e: rustls::Error| failed(e))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(Arc::new(config)))
    }
}

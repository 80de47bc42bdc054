//! The one who asks.

use crate::address::{Address, Way};
use crate::key::Key;
use cofferdam_core::{Error, ErrorKind, Result};
use reqwest::header::HeaderValue;
use reqwest::{ClientBuilder, Url, redirect};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Who we are to a server.
const AGENT: &str = concat!("cofferdam/", env!("CARGO_PKG_VERSION"));
/// How long the way to a server may take.
const CONNECT: Duration = Duration::from_secs(10);
/// After how long without a word the other end of a connection is asked whether it is there.
const KEEPALIVE: Duration = Duration::from_secs(20);
/// The most headers of an answer.
const MAX_HEADERS: usize = 100;
/// What stands for the host where there is none.
const NO_HOST: &str = "http://localhost/";

/// One who asks a server. Clones share their connections.
#[derive(Debug, Clone)]
pub struct Client(pub(crate) Arc<Inner>);

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) http: reqwest::Client,
    pub(crate) base: Url,
    pub(crate) address: Address,
    pub(crate) authorization: Option<HeaderValue>,
    /// Whether the server has answered once: from then on it is one that comes back.
    pub(crate) has_answered: AtomicBool,
}

impl Client {
    /// One who asks this server. Nothing is sent yet.
    ///
    /// A key is told to nobody who cannot be sure of: over plain `http` only to this machine.
    pub fn new(address: Address, key: Option<&Key>) -> Result<Self> {
        if key.is_some() && !address.is_private() {
            let what = format!("the key would go to {address} for everybody on the way to read");
            return Err(Error::new(ErrorKind::Denied, what)
                .hint("Use https, or a tunnel to a port of this machine."));
        }
        let builder = ClientBuilder::new()
            .tls_backend_preconfigured(tls(&address)?)
            .user_agent(AGENT)
            .redirect(redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .http1_only()
            .http1_max_headers(MAX_HEADERS)
            .tcp_keepalive(KEEPALIVE)
            .connect_timeout(CONNECT);
        // What is on this machine is reached without a proxy.
        let builder = if address.is_near() { builder.no_proxy() } else { builder };
        let (builder, base) = match &address.0 {
            Way::Tcp(url) => (builder, Ok(url.clone())),
            Way::Unix(path) => (builder.unix_socket(path.clone()), Url::parse(NO_HOST)),
        };
        let base = base.map_err(|cause| Error::new(ErrorKind::Usage, NO_HOST).source(cause))?;
        let http = builder.build().map_err(|cause| {
            Error::new(ErrorKind::Unavailable, "prepare requests to a server")
                .hint("Check HTTPS_PROXY, HTTP_PROXY and NO_PROXY.")
                .source(cause.without_url())
        })?;
        let authorization = key.map(Key::header).transpose()?;
        let has_answered = AtomicBool::new(false);
        Ok(Self(Arc::new(Inner { http, base, address, authorization, has_answered })))
    }

    /// Where the server is.
    pub fn address(&self) -> &Address {
        &self.0.address
    }

    pub(crate) fn has_answered(&self) -> bool {
        self.0.has_answered.load(Ordering::Relaxed)
    }
}

/// TLS with the authorities of the system, and one provider of ciphers whatever else a program has.
fn tls(address: &Address) -> Result<rustls::ClientConfig> {
    let mut authorities = rustls::RootCertStore::empty();
    if matches!(&address.0, Way::Tcp(url) if url.scheme() == "https") {
        // Some of them may be odd; without any, no certificate is trusted, and the error says that.
        authorities.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::new(ErrorKind::Unavailable, "prepare TLS").source(error))?;
    Ok(config.with_root_certificates(authorities).with_no_client_auth())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_goes_nowhere_in_the_clear() {
        let key = Key::new("canary", "it").unwrap();
        let client = |text: &str| Client::new(Address::parse(text).unwrap(), Some(&key));
        for good in ["http://127.0.0.1:1", "https://a.example", "unix:///x"] {
            let client = client(good).unwrap();
            assert!(!format!("{client:?}").contains("canary"), "{good}");
        }
        let error = client("http://a.example").unwrap_err();
        assert_eq!(error.kind, ErrorKind::Denied);
        assert!(!format!("{error:?}").contains("canary"));
    }
}

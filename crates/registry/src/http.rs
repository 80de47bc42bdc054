//! Requests: which way they go, where they may lead, and who is told credentials on the way.

use crate::failure::{Failure, of_way};
use crate::limits::{Limits, MAX_HEADERS, MAX_REDIRECTS};
use crate::repository::Trust;
use cofferdam_core::{Error, ErrorKind, Result};
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue, LOCATION};
use reqwest::{Client, ClientBuilder, Method, Response, Url, redirect};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

/// The name that every machine has for itself. It is not looked up.
const LOCALHOST: &str = "localhost";

/// Who we are to a registry.
const AGENT: &str = concat!("cofferdam/", env!("CARGO_PKG_VERSION"));

/// Two ways out: by whatever proxy the environment names, and straight to this machine.
#[derive(Debug)]
pub(crate) struct Http {
    far: Client,
    near: Client,
    insecure: Vec<String>,
}

/// A request.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    /// Said to the host of the address alone.
    pub(crate) authorization: Option<HeaderValue>,
    /// Sent along, as a form.
    pub(crate) form: Option<String>,
}

impl Request {
    pub(crate) fn get(url: Url) -> Self {
        Self { url, headers: HeaderMap::new(), authorization: None, form: None }
    }
}

impl Http {
    pub(crate) fn new(limits: &Limits, trust: &Trust) -> Result<Self> {
        let broken = |error: reqwest::Error| {
            let what = "prepare requests to a registry";
            Error::new(ErrorKind::Unavailable, what)
                .hint("Check HTTPS_PROXY, HTTP_PROXY and NO_PROXY.")
                .source(error.without_url())
        };
        let here = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
        let here = here.map(|address| SocketAddr::new(address, 0));
        let tls = tls()?;
        let near = builder(limits, tls.clone()).no_proxy().resolve_to_addrs(LOCALHOST, &here);
        Ok(Self {
            far: builder(limits, tls).build().map_err(broken)?,
            near: near.build().map_err(broken)?,
            insecure: trust.insecure.clone(),
        })
    }

    /// Whether nothing but this machine, or what the caller trusts without encryption, is reached.
    pub(crate) fn may_be_plain(&self, url: &Url) -> bool {
        is_near(url)
            || self
                .insecure
                .iter()
                .any(|known| *known == host(url) || Some(known.as_str()) == url.host_str())
    }

    /// Sends it and follows redirects. The answer's status is not looked at beyond that.
    pub(crate) async fn send(&self, request: Request) -> Result<Response, Failure> {
        let home = request.url.clone();
        let mut url = home.clone();
        for _ in 0..=MAX_REDIRECTS {
            let client = if is_near(&url) { &self.near } else { &self.far };
            let method = if request.form.is_some() { Method::POST } else { Method::GET };
            let mut sent = client.request(method, url.clone()).headers(request.headers.clone());
            // HOSTILE: a registry may send us anywhere. Nobody else is told who we are.
            if let Some(authorization) = &request.authorization
                && is_same_place(&home, &url)
            {
                sent = sent.header(AUTHORIZATION, authorization.clone());
            }
            if let Some(form) = &request.form {
                sent = sent
                    .header("content-type", "application/x-www-form-urlencoded")
                    .body(form.clone());
            }
            let answer = sent.send().await.map_err(|error| of_way(&host(&url), &error))?;
            if !matches!(answer.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
                return Ok(answer);
            }
            if request.form.is_some() {
                // A form holds a secret, and belongs to one host.
                return Err(lasting(format!("{} sends on who wants a token", host(&url))));
            }
            url = self.next(&home, &url, answer.headers().get(LOCATION))?;
        }
        Err(lasting(format!("{} redirects more than {MAX_REDIRECTS} times", host(&home))))
    }

    /// Where a redirect leads.
    fn next(&self, home: &Url, from: &Url, to: Option<&HeaderValue>) -> Result<Url, Failure> {
        let to = to.and_then(|to| to.to_str().ok()).and_then(|to| from.join(to).ok());
        let Some(mut to) = to else {
            return Err(lasting(format!("{} redirects to nowhere", host(from))));
        };
        to.set_fragment(None);
        // What is written before an @ would be sent along as who we are.
        if !to.username().is_empty() || to.password().is_some() {
            return Err(lasting(format!("{} redirects with a name and a password", host(from))));
        }
        self.check_scheme(home, &to)?;
        Ok(to)
    }

    /// Fails where something would be asked without encryption, or by another protocol, that the
    /// caller did not allow. Only a registry that is near itself leads to what is near.
    pub(crate) fn check_scheme(&self, home: &Url, to: &Url) -> Result<(), Failure> {
        let is_trusted = self.may_be_plain(to) && (!is_near(to) || is_near(home));
        if to.scheme() == "https" || to.scheme() == "http" && is_trusted {
            return Ok(());
        }
        let lead = format!("{} leads to {}://{}", host(home), to.scheme(), host(to));
        if to.scheme() != "http" {
            let what = format!("{lead}, where no registry can be");
            return Err(Failure::Lasting(Error::new(ErrorKind::Denied, what).hint(
                "Ask whoever runs the registry: it answers with an address that is none of the web's.",
            )));
        }
        let what = format!("{lead}, which is not encrypted");
        Err(Failure::Lasting(
            Error::new(ErrorKind::Denied, what)
                .hint("Name the host in --insecure-registry if you trust all on the way to it."),
        ))
    }
}

/// Host and port as people write them.
pub(crate) fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// Whether an address is this machine's, by its digits and not by what a name is resolved to.
pub(crate) fn is_near(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let digits = host.trim_start_matches('[').trim_end_matches(']');
    host == LOCALHOST || digits.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn is_same_place(one: &Url, other: &Url) -> bool {
    one.origin() == other.origin()
}

fn builder(limits: &Limits, tls: rustls::ClientConfig) -> ClientBuilder {
    ClientBuilder::new()
        .tls_backend_preconfigured(tls)
        .user_agent(AGENT)
        .redirect(redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .http1_only()
        .http1_max_headers(MAX_HEADERS)
        .connect_timeout(limits.connect)
        .read_timeout(limits.idle)
}

/// TLS with the authorities of the system, and one provider of ciphers whatever else a program has.
fn tls() -> Result<rustls::ClientConfig> {
    let mut authorities = rustls::RootCertStore::empty();
    // Some of them may be odd; without any, no certificate is trusted, and the error says that.
    authorities.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::new(ErrorKind::Unavailable, "prepare TLS").source(error))?;
    Ok(config.with_root_certificates(authorities).with_no_client_auth())
}

fn lasting(what: String) -> Failure {
    let error = Error::new(ErrorKind::Protocol, what);
    Failure::Lasting(error.hint("Check the name of the registry, and whether it is healthy."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn http(insecure: &[&str]) -> Http {
        let insecure = insecure.iter().map(|&host| host.to_owned()).collect();
        Http::new(&Limits::default(), &Trust { insecure }).unwrap()
    }

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn only_this_machine_and_what_is_named_is_asked_without_encryption() {
        let http = http(&["plain.example:5000", "all.example"]);
        for (text, plain) in [
            ("http://localhost:5000/", true),
            ("http://127.0.0.1:1/", true),
            ("http://127.8.8.8/", true),
            ("http://[::1]:5000/", true),
            ("http://0x7f000001/", true),
            ("http://localhost.example/", false),
            ("http://127.0.0.1.example/", false),
            ("http://10.0.0.1/", false),
            ("http://plain.example:5000/", true),
            ("http://plain.example:5001/", false),
            ("http://all.example:1/", true),
            ("http://a.all.example/", false),
        ] {
            assert_eq!(http.may_be_plain(&url(text)), plain, "{text}");
        }
    }

    #[test]
    fn a_redirect_leads_to_encrypted_hosts_and_not_from_afar_to_this_machine() {
        let http = http(&["plain.example"]);
        let (far, near) = (url("https://a.example/v2/"), url("http://127.0.0.1:5000/v2/"));
        let next = |home: &Url, to: &str| {
            http.next(home, home, Some(&HeaderValue::from_str(to).unwrap())).is_ok()
        };
        for (to, from_far, from_near) in [
            ("https://b.example/x", true, true),
            ("/x", true, true),
            ("http://b.example/x", false, false),
            ("http://plain.example/x", true, true),
            ("http://127.0.0.1:9/x", false, true),
            ("http://localhost/x", false, true),
            ("file:///etc/passwd", false, false),
            ("ftp://b.example/x", false, false),
            ("https://u:p@b.example/x", false, false),
        ] {
            assert_eq!((next(&far, to), next(&near, to)), (from_far, from_near), "{to}");
        }
    }
}

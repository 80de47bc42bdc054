//! The way to the collector.

use async_trait::async_trait;
use axum::body::Bytes;
use cofferdam_core::{Error, ErrorKind, Result};
use opentelemetry_http::{HttpClient, HttpError, Request, Response};
use reqwest::{Client, redirect};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::runtime::Handle;

/// How long one sending may take, unless the environment says otherwise.
const SEND_TIME: Duration = Duration::from_secs(10);
const SEND_TIME_NAMES: [&str; 2] =
    ["OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT"];
/// The longest answer of a collector that is read, in bytes.
const MAX_ANSWER_BYTES: usize = 64 << 10;

/// Sends spans, and says once that they do not arrive.
#[derive(Debug)]
pub(super) struct Sender {
    client: Client,
    /// What asks for it has no runtime of its own.
    runtime: Handle,
    log: fn(&str),
    is_failing: Arc<AtomicBool>,
}

impl Sender {
    pub(super) fn new(log: fn(&str)) -> Result<Self> {
        let broken = |what: &str| Error::new(ErrorKind::Unavailable, what.to_owned());
        let runtime = Handle::try_current().map_err(|e| broken("send traces").source(e))?;
        let client = Client::builder()
            .tls_backend_preconfigured(tls()?)
            .redirect(redirect::Policy::none())
            .timeout(send_time())
            .build()
            .map_err(|e| broken("prepare to send traces").source(e.without_url()))?;
        Ok(Self { client, runtime, log, is_failing: Arc::new(AtomicBool::new(false)) })
    }

    /// Says that it does not work from now on, or works again.
    fn note(&self, trouble: Option<&str>) {
        let was = self.is_failing.swap(trouble.is_some(), Ordering::Relaxed);
        match trouble {
            Some(trouble) if !was => (self.log)(&format!("traces do not arrive: {trouble}")),
            None if was => (self.log)("traces arrive again"),
            Some(_) | None => {}
        }
    }
}

#[async_trait]
impl HttpClient for Sender {
    async fn send_bytes(
        &self,
        request: Request<Bytes>,
    ) -> std::result::Result<Response<Bytes>, HttpError> {
        let client = self.client.clone();
        let sent = self.runtime.spawn(async move { send(&client, request).await }).await;
        let sent = sent.map_err(HttpError::from).and_then(|sent| sent);
        match &sent {
            Ok(answer) if answer.status().is_success() => self.note(None),
            Ok(answer) => self.note(Some(&format!("the collector answers {}", answer.status()))),
            // The address may hold a password, and is not in these words.
            Err(error) => self.note(Some(&error.to_string())),
        }
        sent
    }
}

async fn send(
    client: &Client,
    request: Request<Bytes>,
) -> std::result::Result<Response<Bytes>, HttpError> {
    let request = reqwest::Request::try_from(request).map_err(reqwest::Error::without_url)?;
    let mut answer = client.execute(request).await.map_err(reqwest::Error::without_url)?;
    let mut told = Response::builder().status(answer.status());
    if let Some(headers) = told.headers_mut() {
        *headers = answer.headers().clone();
    }
    let mut body = Vec::new();
    while let Some(piece) = answer.chunk().await.map_err(reqwest::Error::without_url)? {
        if body.len() + piece.len() > MAX_ANSWER_BYTES {
            return Err("the collector answers at too great a length".into());
        }
        body.extend_from_slice(&piece);
    }
    Ok(told.body(Bytes::from(body))?)
}

fn send_time() -> Duration {
    let said = SEND_TIME_NAMES.iter().find_map(|name| std::env::var(name).ok()?.parse().ok());
    said.map_or(SEND_TIME, Duration::from_millis)
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

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn of_a_collector_no_more_is_read_than_may_be() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = format!("http://{}/v1/traces", listener.local_addr().unwrap());
        tokio::spawn(async move {
            for bytes in [MAX_ANSWER_BYTES, MAX_ANSWER_BYTES + 1] {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut head = [0; 4096];
                assert!(stream.read(&mut head).await.unwrap() > 0);
                let answer = format!(
                    "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {bytes}\r\n\r\n{}",
                    "x".repeat(bytes)
                );
                stream.write_all(answer.as_bytes()).await.ok();
                stream.shutdown().await.ok();
            }
        });
        let sender = Sender::new(|_| {}).unwrap();
        let send = || Request::post(&at).body(Bytes::new()).unwrap();
        assert_eq!(sender.send_bytes(send()).await.unwrap().body().len(), MAX_ANSWER_BYTES);
        assert!(!sender.is_failing.load(Ordering::Relaxed));
        let refused = sender.send_bytes(send()).await.unwrap_err();
        assert!(refused.to_string().contains("length"), "{refused}");
        assert!(sender.is_failing.load(Ordering::Relaxed));
    }
}

//! Nobody keeps a connection waiting, or makes it hold much.

use crate::stage::{HOST, Set, Stage, text};
use cofferdam_core::ErrorKind;
use cofferdam_terminate::{
    Authority, HANDSHAKE_WITHIN, HEAD_WITHIN, Injector, MAX_HEAD_BYTES, MAX_HEADERS, Terminator,
    Upstream,
};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::time::Instant;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

#[tokio::test(flavor = "multi_thread")]
async fn a_head_has_a_greatest_length_and_number_of_headers() {
    let stage = Stage::new("head").await;
    let long = |length: usize| format!("X-Long: {}", "x".repeat(length));
    let ask = async |file: &str| {
        let said = stage.curl(&["-H", &format!("@{file}"), &stage.url("/")]).await;
        text(&said).get(..12).unwrap_or_default().to_owned()
    };
    let many =
        |count: usize| (0..count).map(|n| format!("X-{n}: y")).collect::<Vec<_>>().join("\n");
    let check = async |name: &str, headers: String, expected: &str| {
        let file = stage.file(name, headers.as_bytes());
        assert_eq!(ask(&file).await, expected, "{name}");
    };
    check("fits", long(MAX_HEAD_BYTES / 2), "HTTP/1.1 200").await;
    check("long", long(MAX_HEAD_BYTES + 1), "HTTP/1.1 431").await;
    check("few", many(MAX_HEADERS - 8), "HTTP/1.1 200").await;
    check("many", many(MAX_HEADERS + 1), "HTTP/1.1 431").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_cannot_be_passed_on_is_told_for_what_it_is() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n";
    let most = format!("a head of more than {MAX_HEAD_BYTES} bytes or {MAX_HEADERS} headers");
    let many: String = (0..=MAX_HEADERS).map(|n| format!("X-{n}: y\r\n")).collect();
    let coded = "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip";
    let coding = "answered in a transfer coding that is not chunked";
    for (says, why) in [
        (String::new(), "hung up before it answered"),
        (head.to_owned(), "hung up before it answered"),
        (format!("{head}no colon\r\n\r\nhello"), "answered with what is no HTTP"),
        ("SSH-2.0-x\r\n".to_owned(), "answered with what is no HTTP"),
        (format!("{head}X: {}\r\n\r\nhello", "x".repeat(4 * MAX_HEAD_BYTES)), &*most),
        (format!("{head}{many}\r\nhello"), &*most),
        (format!("{coded}\r\n\r\nhello"), coding),
        (format!("{coded}, chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"), coding),
    ] {
        let begin: String = says.chars().take(60).collect();
        let stage = Stage::set("unanswered", Set { says: Some(says), ..Set::default() }).await;
        let said = text(&stage.curl(&[&stage.url("/")]).await);
        assert!(said.starts_with("HTTP/1.1 502") && said.contains(why), "{begin}: {said:.200}");
        let failures = stage.heard.failures();
        assert!(matches!(&*failures, [one] if one.contains(why)), "{begin}: {failures:?}");
        assert!(stage.heard.refusals().is_empty(), "it is no fault of the request's");
    }
    // The control: what can be passed on is.
    for says in [
        format!("{head}\r\nhello"),
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n".to_owned(),
    ] {
        let stage = Stage::set("answered", Set { says: Some(says), ..Set::default() }).await;
        let said = text(&stage.curl(&[&stage.url("/")]).await);
        assert!(said.ends_with("hello") && stage.heard.failures().is_empty(), "{said}");
    }
}

fn terminator() -> (Terminator, Arc<Authority>) {
    let authority = Arc::new(Authority::new("limits").unwrap());
    let upstream = Upstream::new([]).unwrap();
    let injector = Arc::new(Injector::default());
    (Terminator::new(Arc::clone(&authority), injector, upstream), authority)
}

async fn no_host() -> std::io::Result<DuplexStream> {
    Err(std::io::ErrorKind::ConnectionRefused.into())
}

#[tokio::test(start_paused = true)]
async fn a_client_that_says_nothing_is_not_waited_for() {
    let (terminator, _) = terminator();
    let (_silent, ours) = duplex(1024);
    let begin = Instant::now();
    let error = terminator.serve(ours, (HOST, 443), no_host, |_| {}).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::TimedOut);
    assert!(begin.elapsed() >= HANDSHAKE_WITHIN);
}

#[tokio::test(start_paused = true)]
async fn a_head_that_does_not_end_is_not_waited_for() {
    let (terminator, authority) = terminator();
    let (theirs, ours) = duplex(64 * 1024);
    let served =
        tokio::spawn(async move { terminator.serve(ours, (HOST, 443), no_host, |_| {}).await });
    let mut roots = RootCertStore::empty();
    roots.add(authority.certificate().clone()).unwrap();
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(HOST).unwrap();
    let mut client = TlsConnector::from(Arc::new(config)).connect(name, theirs).await.unwrap();
    client.write_all(b"GET / HTTP/1.1\r\nHost: api.exam").await.unwrap();
    client.flush().await.unwrap();
    let begin = Instant::now();
    let mut rest = Vec::new();
    let _ = client.read_to_end(&mut rest).await;
    assert!(begin.elapsed() >= HEAD_WITHIN);
    assert_eq!(served.await.unwrap().unwrap().requests, 0);
}

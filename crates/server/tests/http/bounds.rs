//! What bounds a request, and who may send one.

use crate::stage::{Stage, request, rights};
use axum::body::{Body, Bytes};
use axum::http::Request;
use cofferdam_session::KeyScope;
use std::convert::Infallible;

fn of(host: Option<&str>, origin: Option<&str>, line: &str) -> Request<Body> {
    let (method, path) = line.split_once(' ').unwrap();
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in [("host", host), ("origin", origin)] {
        if let Some(value) = value {
            request = request.header(name, value);
        }
    }
    request.body(Body::empty()).unwrap()
}

#[tokio::test]
async fn a_name_that_somebody_bent_here_is_refused_everywhere() {
    let stage = Stage::with(|options| options.hosts.push("box.example".to_owned())).await;
    for path in ["/v1/sandboxes", "/v1/events/stream", "/healthz", "/openapi.json", "/docs", "/x"] {
        for host in [Some("evil.test"), Some("evil.test:7070"), Some("127.0.0.1.evil.test"), None] {
            let answer = stage.send(of(host, None, &format!("GET {path}"))).await;
            assert_eq!((answer.status.as_u16(), answer.kind().as_str()), (421, "denied"), "{path}");
        }
        let named = stage.send(of(Some("127.0.0.1"), None, &format!("GET http://evil.test{path}")));
        assert_eq!(named.await.status, 421, "{path}");
    }
    for host in ["127.0.0.1:7070", "[::1]:7070", "localhost", "box.example"] {
        let answer = stage.send(of(Some(host), None, "GET /v1/sandboxes")).await;
        assert_eq!(answer.status, 200, "{host}");
    }
}

#[tokio::test]
async fn methods_are_told_to_whoever_asked_with_another_one_and_to_nobody_else() {
    let stage = Stage::new().await;
    stage.key("a").await;
    let asked = async |host: &str, line: &str| {
        let answer = stage.send(of(Some(host), None, line)).await;
        let allow = answer.headers.get("allow").map(|allow| allow.to_str().unwrap().to_owned());
        (answer.status.as_u16(), allow)
    };
    for line in ["GET /healthz", "POST /healthz", "DELETE /docs", "PATCH /v1/sandboxes"] {
        assert_eq!(asked("evil.test", line).await, (421, None), "{line}");
    }
    assert_eq!(asked("localhost", "PATCH /v1/events").await, (401, None), "without a key");
    assert_eq!(asked("localhost", "GET /healthz").await, (200, None));
    // The control.
    assert_eq!(asked("localhost", "POST /healthz").await, (405, Some("GET,HEAD".to_owned())));
}

#[tokio::test]
async fn a_request_for_two_hosts_is_for_no_port() {
    let stage = Stage::with(|options| options.port_domain = Some("boxes.test".to_owned())).await;
    let (one, other) = ("a".repeat(32) + ".boxes.test", "b".repeat(32) + ".boxes.test");
    let asked = async |hosts: &[&str]| {
        let mut request = of(None, None, "GET /");
        for host in hosts {
            request.headers_mut().append("host", host.parse().unwrap());
        }
        stage.send(request).await.status.as_u16()
    };
    assert_eq!(asked(&[&one]).await, 404, "the control: an address that is nobody's");
    for two in [[one.as_str(), &other], [&one, &one], [&one, "127.0.0.1"], ["127.0.0.1", &one]] {
        assert_eq!(asked(&two).await, 421, "{two:?}");
    }
    let whole = async |address: &str| {
        let line = format!("GET http://{address}/");
        stage.send(of(Some(&one), None, &line)).await.status.as_u16()
    };
    assert_eq!(whole(&one).await, 404, "the control: the same address twice");
    assert_eq!(whole(&other).await, 421, "a line for another one than the header");
}

#[tokio::test]
async fn a_page_may_ask_only_if_its_origin_may() {
    let stage = Stage::new().await;
    let host = Some("127.0.0.1");
    for origin in
        ["http://evil.test", "null", "https://board.example.evil.test", "http://board.example"]
    {
        for line in ["GET /v1/sandboxes", "OPTIONS /v1/sandboxes", "GET /healthz"] {
            let answer = stage.send(of(host, Some(origin), line)).await;
            assert_eq!(answer.status, 403, "{origin} {line}");
            assert!(!answer.headers.contains_key("access-control-allow-origin"));
        }
    }
    let good = Some("https://board.example");
    let answer = stage.send(of(host, good, "GET /v1/sandboxes")).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.headers["access-control-allow-origin"], "https://board.example");
    let mut asks = of(host, good, "OPTIONS /v1/sandboxes");
    asks.headers_mut().insert("access-control-request-method", "PUT".parse().unwrap());
    let answer = stage.send(asks).await;
    assert_eq!(answer.status, 204);
    assert!(answer.headers["access-control-allow-methods"].to_str().unwrap().contains("PUT"));
    let may_send = answer.headers["access-control-allow-headers"].to_str().unwrap().to_owned();
    for name in ["authorization", "mcp-protocol-version", "mcp-session-id"] {
        assert!(may_send.split(", ").any(|header| header == name), "{name}: {may_send}");
    }
    let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",
        "capabilities":{},"clientInfo":{"name":"test","version":"1"}}}"#;
    let mut begins = of(host, good, "POST /mcp").map(|_| Body::from(hello));
    let accepts = "application/json, text/event-stream".parse().unwrap();
    begins.headers_mut().insert("accept", accepts);
    begins.headers_mut().insert("content-type", "application/json".parse().unwrap());
    let answer = stage.send(begins).await;
    assert!(answer.headers.contains_key("mcp-session-id"), "{}", answer.text);
    assert_eq!(answer.headers["access-control-expose-headers"], "mcp-session-id");
    // Nobody is told anything who asks without a page.
    let plain = stage.send(of(host, None, "GET /v1/sandboxes")).await;
    assert!(!plain.headers.contains_key("access-control-allow-origin"));
    assert!(!plain.headers.contains_key("access-control-expose-headers"));
}

#[tokio::test]
async fn a_body_is_json_and_not_too_long() {
    let stage = Stage::new().await;
    let long = format!(r#"{{"name":"{}"}}"#, "x".repeat(4 << 20));
    let answer = stage.ask("", "POST /v1/sandboxes", &long).await;
    assert_eq!((answer.status.as_u16(), answer.kind().as_str()), (413, "too_large"));
    let plain = Request::builder().method("POST").uri("/v1/sandboxes").header("host", "127.0.0.1");
    let plain = plain.header("content-type", "text/plain").body(Body::from("{}")).unwrap();
    let answer = stage.send(plain).await;
    assert_eq!((answer.status.as_u16(), answer.kind().as_str()), (415, "usage"));
}

#[tokio::test(start_paused = true)]
async fn a_body_that_never_comes_is_given_up() {
    let stage = Stage::new().await;
    let never = futures_util::stream::pending::<Result<Bytes, Infallible>>();
    let request = request("", "POST /v1/sandboxes").body(Body::from_stream(never)).unwrap();
    let answer = stage.send(request).await;
    assert_eq!((answer.status.as_u16(), answer.kind().as_str()), (408, "timed_out"));
}

#[tokio::test]
async fn a_request_has_a_number_that_the_audit_knows() {
    let stage = Stage::new().await;
    let answer = stage.ask("", "PUT /v1/sandboxes/a", "{}").await;
    let number = answer.headers["x-request-id"].to_str().unwrap().to_owned();
    let audit = stage.ask("", "GET /v1/audit", "").await.json();
    assert_eq!(audit["entries"][0]["request"], number);
    assert_eq!(answer.headers["x-content-type-options"], "nosniff");
}

#[tokio::test]
async fn a_rule_that_opens_nothing_or_too_much_is_refused_as_everywhere() {
    let stage = Stage::new().await;
    let key = stage.key_with("a", rights(&[KeyScope::Approve, KeyScope::Manage])).await;
    let own = "host.cofferdam.internal:5432";
    for (rule, why) in [(own, "--allow-host-port 5432"), ("*.co.uk", "a registry")] {
        for (line, field) in [
            ("PUT /v1/sandboxes/s/network", "allow"),
            ("POST /v1/sandboxes/s/network/allow", "rules"),
        ] {
            let answer = stage.ask(&key, line, &format!(r#"{{"{field}":["{rule}"]}}"#)).await;
            assert_eq!((answer.status.as_u16(), answer.kind().as_str()), (400, "usage"), "{line}");
            assert!(answer.text.contains(why), "{}", answer.text);
        }
    }
    // Controls: a rule that could open something is the operator's matter, and one that denies is a rule.
    let allow = "POST /v1/sandboxes/s/network/allow";
    assert_eq!(stage.ask(&key, allow, r#"{"rules":["a.test:443"]}"#).await.status, 403);
    let body = format!(r#"{{"rules":["{own}"]}}"#);
    let denied = stage.ask(&key, "POST /v1/sandboxes/s/network/deny", &body).await;
    assert_eq!(denied.status, 404, "there is no such sandbox: {}", denied.text);
}

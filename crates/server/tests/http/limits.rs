//! Limits of requests, each with a request at it and one beyond.

use crate::stage::{Stage, request, rights};
use axum::body::Body;
use axum::http::{Request, Response};
use cofferdam_core::{Caller, Error, ErrorKind, Image, ImageRun, Result, Spec, Workspace};
use cofferdam_server::{Ground, HeldImage, Images, Pull};
use cofferdam_session::{KeyScope, SessionId};
use futures_util::StreamExt;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use tower::ServiceExt;

/// The most sandboxes that are asked for numbers.
const MAX_ASKED: usize = 1000;
/// The most streams of one owner.
const MAX_STREAMS: usize = 256;

async fn begin(stage: &Stage, request: Request<Body>) -> Response<Body> {
    stage.router.clone().oneshot(request).await.unwrap()
}

#[tokio::test]
async fn a_stream_ends_when_its_key_is_revoked() {
    let stage = Stage::new().await;
    let (alice, bob) = (stage.key("alice").await, stage.key("bob").await);
    let open = async |key: &str| {
        let line = request(key, "GET /v1/events/stream").body(Body::empty()).unwrap();
        begin(&stage, line).await.into_body()
    };
    let (hers, his) = (open(&alice).await, open(&bob).await);
    stage.sessions.revoke_key("alice").await.unwrap();
    let soon = std::time::Duration::from_secs(20);
    tokio::time::timeout(soon, axum::body::to_bytes(hers, usize::MAX)).await.unwrap().unwrap();
    let moment = std::time::Duration::from_millis(1500);
    let goes_on = tokio::time::timeout(moment, axum::body::to_bytes(his, usize::MAX)).await;
    assert!(goes_on.is_err(), "the control");
}

/// Reads a body until it ends, or for this long. Whether it ended, and how much came.
async fn drained(body: Body, within: std::time::Duration) -> (bool, usize) {
    let mut pieces = body.into_data_stream();
    let (mut bytes, until) = (0, tokio::time::Instant::now() + within);
    loop {
        match tokio::time::timeout_at(until, pieces.next()).await {
            Ok(Some(Ok(piece))) => bytes += piece.len(),
            Ok(Some(Err(_)) | None) => return (true, bytes),
            Err(_) => return (false, bytes),
        }
    }
}

#[tokio::test]
async fn a_stream_on_which_there_is_always_more_ends_with_its_key_too() {
    let stage = Stage::new().await;
    let alice = stage.key("alice").await;
    let made = stage.ask(&alice, "PUT /v1/sandboxes/s", "{}").await;
    let made: Value = serde_json::from_str(&made.text).unwrap();
    let session = SessionId::new(made["id"].as_str().unwrap()).unwrap();
    let open = async |line: &str| {
        begin(&stage, request(&alice, line).body(Body::empty()).unwrap()).await.into_body()
    };
    let events = open("GET /v1/events/stream").await;
    let control = open("GET /v1/events/stream").await;
    let moment = std::time::Duration::from_secs(3);
    let busy = async {
        // One event after another, the last of them long after the key is gone.
        loop {
            stage.sessions.pause(&session).await.ok();
            stage.sessions.resume(&session).await.ok();
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    let both = async {
        let (goes_on, told) = drained(control, moment).await;
        assert!(!goes_on && told > 0, "the control");
        stage.sessions.revoke_key("alice").await.unwrap();
        drained(events, 4 * moment).await
    };
    let (is_over, _) = tokio::select! {
        over = both => over,
        () = busy => unreachable!(),
    };
    assert!(is_over, "it goes on without its key");
}

#[tokio::test]
async fn a_request_gets_no_more_than_a_server_gives_by_itself() {
    let stage = Stage::new().await;
    let alice = stage.key("alice").await;
    for (limit, more) in [("memory_bytes", 1_u64 << 50), ("disk_bytes", 1 << 50), ("pids", 1 << 21)]
    {
        let body = json!({ "limits": { limit: more } }).to_string();
        let refused = stage.ask(&alice, "POST /v1/sandboxes", &body).await;
        assert_eq!(refused.status, 403, "{}", refused.text);
        assert!(refused.text.contains(limit), "{}", refused.text);
    }
    let less = json!({ "limits": { "memory_bytes": 64 << 20, "pids": 20 } }).to_string();
    assert_eq!(stage.ask(&alice, "POST /v1/sandboxes", &less).await.status, 201);
}

#[tokio::test]
async fn lines_that_prepare_a_sandbox_take_the_scope_to_run() {
    let stage = Stage::new().await;
    let scopes = [KeyScope::Manage, KeyScope::Look];
    let key = stage.key_with("manager", rights(&scopes)).await;
    for line in ["POST /v1/sandboxes", "PUT /v1/sandboxes/s"] {
        let refused = stage.ask(&key, line, r#"{"init":["id"]}"#).await;
        assert_eq!(refused.status, 403, "{}", refused.text);
        assert!(refused.text.contains("no scope run"), "{}", refused.text);
    }
    let made = stage.ask(&key, "POST /v1/sandboxes", r#"{"init":[]}"#).await;
    assert_eq!(made.status, 201, "{}", made.text);
    // What was made is in the audit, though the request did not name it.
    let audit = stage.ask(&key, "GET /v1/audit", "").await.text;
    let id = made.json()["id"].as_str().unwrap().to_owned();
    assert!(audit.contains(&format!("POST /v1/sandboxes made {id}")), "{audit}");
}

#[tokio::test]
async fn a_tool_that_changes_something_is_in_the_audit_with_its_sandbox() {
    let stage = Stage::new().await;
    let key = stage.key("alice").await;
    stage.sandbox(&key, "s").await;
    for tool in ["sandbox_pause", "sandbox_status"] {
        let line = format!("POST /v1/tools/cofferdam/{tool}");
        let called = stage.ask(&key, &line, r#"{"sandbox":"s"}"#).await;
        assert_eq!(called.status, 200, "{}", called.text);
    }
    let audit = stage.ask(&key, "GET /v1/audit", "").await.text;
    assert!(audit.contains("tool cofferdam sandbox_pause s"), "{audit}");
    assert!(!audit.contains("tool cofferdam sandbox_status"), "{audit}");
}

#[tokio::test]
async fn downloads_and_archives_are_streams_of_their_caller() {
    let stage = Stage::new().await;
    let (alice, bob) = (stage.key("alice").await, stage.key("bob").await);
    // More than is read before anything is answered.
    let large = "x".repeat(300 << 10);
    for key in [&alice, &bob] {
        stage.sandbox(key, "s").await;
        for (name, content) in [("large", large.as_str()), ("small", "x")] {
            let line = format!("PUT /v1/sandboxes/s/files?path={name}");
            let written = request(key, &line).body(Body::from(content.to_owned())).unwrap();
            let written = stage.send(written).await;
            assert_eq!(written.status, 201, "{}", written.text);
        }
    }
    let of = |key: &str, line: &str| request(key, line).body(Body::empty()).unwrap();
    let mut held = Vec::new();
    for _ in 0..MAX_STREAMS {
        let stream = begin(&stage, of(&alice, "GET /v1/events/stream")).await;
        assert_eq!(stream.status(), 200);
        held.push(stream);
    }
    let downloads = [
        "GET /v1/sandboxes/s/files?path=large",
        "GET /v1/sandboxes/s/files/archive",
        "GET /v1/events/stream",
    ];
    for line in downloads {
        let refused = stage.ask(&alice, line, "").await;
        assert_eq!(
            (refused.status.as_u16(), refused.headers["retry-after"].as_bytes()),
            (429, &b"1"[..]),
            "{line}"
        );
        assert_eq!(begin(&stage, of(&bob, line)).await.status(), 200, "{line}");
    }
    // What is answered at once is none.
    assert_eq!(stage.ask(&alice, "GET /v1/sandboxes/s/files?path=small", "").await.status, 200);
    for line in downloads {
        held.pop();
        // One that is not read to its end counts until it is dropped.
        let one = begin(&stage, of(&alice, line)).await;
        assert_eq!(one.status(), 200, "{line}");
        assert_eq!(stage.ask(&alice, line, "").await.status, 429, "{line}");
        held.push(one);
    }
}

#[tokio::test]
async fn variables_words_and_lines_of_a_request_have_limits() {
    let stage = Stage::new().await;
    let variables = |many: usize| -> BTreeMap<String, String> {
        (0..many).map(|n| (format!("V{n}"), String::new())).collect()
    };
    for (most, wish) in [
        (256, &(|many| json!({ "env": variables(many) })) as &dyn Fn(usize) -> Value),
        (64, &|many| json!({ "init": vec!["exit=0"; many] })),
        (64, &|many| json!({ "labels": variables(many) })),
    ] {
        let good = stage.ask("", "POST /v1/sandboxes", &wish(most).to_string()).await;
        assert_eq!(good.status, 201, "{}", good.text);
        let bad = stage.ask("", "POST /v1/sandboxes", &wish(most + 1).to_string()).await;
        assert!([400, 413].contains(&bad.status.as_u16()), "{}: {}", wish(1), bad.text);
    }
    stage.sandbox("", "s").await;
    let start = async |many: usize| {
        let wish = json!({ "argv": ["out=x"], "env": variables(many) }).to_string();
        stage.ask("", "POST /v1/sandboxes/s/execs", &wish).await
    };
    assert_eq!(start(256).await.status, 201);
    assert_eq!(start(257).await.kind(), "too_large");
}

#[tokio::test(start_paused = true)]
async fn a_request_waits_for_a_command_at_most_a_minute() {
    let stage = Stage::new().await;
    stage.sandbox("", "s").await;
    let exec = stage.exec("", "s", &["hang"]).await;
    for (asked_ms, waits_s) in [("", 60), ("?timeout_ms=600000", 60), ("?timeout_ms=5000", 5)] {
        let begun = tokio::time::Instant::now();
        let line = format!("GET /v1/sandboxes/s/execs/{exec}/wait{asked_ms}");
        assert_eq!(stage.ask("", &line, "").await.json()["ended_ms"], Value::Null);
        assert_eq!(begun.elapsed().as_secs(), waits_s, "{asked_ms}");
    }
}

#[tokio::test]
async fn at_most_so_many_sandboxes_are_asked_for_their_commands() {
    // Of each that runs one question is asked; beyond the most there is none.
    let stage = Stage::new().await;
    let asked = |stage: &Stage| {
        let calls = stage.backend.calls();
        calls.iter().filter(|call| **call == cofferdam_core::fake::Call::Execs).count()
    };
    for n in 0..MAX_ASKED + 2 {
        stage.sandbox("", &format!("s{n}")).await;
        if n == 2 {
            let before = asked(&stage);
            assert_eq!(stage.ask("", "GET /metrics", "").await.status, 200);
            assert_eq!(asked(&stage) - before, 3);
        }
    }
    let before = asked(&stage);
    assert_eq!(stage.ask("", "GET /metrics", "").await.status, 200);
    assert_eq!(asked(&stage) - before, MAX_ASKED);
}

/// Images in memory that say what they were asked for.
#[derive(Debug)]
struct Shelf;

impl Images for Shelf {
    fn open(&self, named: &str, pull: Option<Pull>) -> Result<(Image, HeldImage)> {
        if pull == Some(Pull::Never) {
            let what = format!("image {named} was not pulled yet");
            return Err(Error::new(ErrorKind::NotFound, what).hint("Pull it."));
        }
        let image = Image {
            id: format!("sha256:{named}"),
            name: named.to_owned(),
            layers: Vec::new(),
            hold: None,
            run: ImageRun { user: Some("root".to_owned()), ..ImageRun::default() },
        };
        Ok((image, Box::new(())))
    }
}

#[tokio::test]
async fn a_request_lies_on_an_image_that_it_may_name_and_on_no_other() {
    let template = Spec::new(Workspace::Private, Caller::default());
    let ground = Ground::new(template, Vec::new()).unwrap();
    let ground = ground.with_images(vec!["debian:12".to_owned()], Arc::new(Shelf));
    let stage = Stage::with(|options| options.ground = ground).await;
    let key = stage.key("a").await;
    let wish = |image: &str| json!({ "image": image }).to_string();
    let made = stage.ask(&key, "POST /v1/sandboxes", &wish("debian:12")).await;
    assert_eq!((made.status.as_u16(), &made.json()["image"]), (201, &json!("debian:12")));
    // A path of the host is no name of an image, in whatever way it is written.
    for other in [
        "debian:13",
        "/etc",
        "./",
        "..",
        "dir:/",
        "dir:/root",
        "tar:/etc/shadow",
        "oci:/var/lib",
        "docker://debian:12",
        "debian:12 ",
        "DEBIAN:12",
        "",
        "sha256:00",
        "debian",
    ] {
        for line in ["POST /v1/sandboxes", "PUT /v1/sandboxes/other"] {
            let refused = stage.ask(&key, line, &wish(other)).await;
            assert_eq!(
                (refused.status.as_u16(), refused.kind().as_str()),
                (403, "denied"),
                "{other}"
            );
        }
        let run = json!({ "sandbox": { "image": other }, "exec": { "argv": ["out=x"] } });
        let refused = stage.ask(&key, "POST /v1/run", &run.to_string()).await;
        assert_eq!(refused.status, 403, "{other}: {}", refused.text);
    }
    let run = json!({ "sandbox": { "image": "debian:12" }, "exec": { "argv": ["out=x"] } });
    assert_eq!(stage.ask(&key, "POST /v1/run", &run.to_string()).await.status, 200);
    for (body, kind) in [
        (json!({ "image": "debian:12", "pull": "never" }), "not_found"),
        (json!({ "image": "debian:12", "pull": "often" }), "usage"),
        (json!({ "pull": "always" }), "usage"),
    ] {
        let refused = stage.ask(&key, "POST /v1/sandboxes", &body.to_string()).await;
        assert_eq!(refused.kind(), kind, "{body}");
    }
}

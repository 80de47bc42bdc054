//! Keys that are revoked while something is sent by them.

use crate::stage::{Answer, Stage, request};
use axum::body::{Body, Bytes};
use cofferdam_session::Sessions;
use futures_util::{StreamExt, stream};
use std::io;
use std::time::{Duration, Instant};

/// More than the time between two looks at a key.
const LATER: Duration = Duration::from_secs(3);

/// When a key is revoked: in the middle of a body, or right before its end.
#[derive(Debug, Clone, Copy, PartialEq)]
enum When {
    Never,
    InTheMiddle,
    AtTheEnd,
}

/// A body in two pieces, between which the key of this name may be revoked.
fn body(sessions: &Sessions, name: &'static str, pieces: [Vec<u8>; 2], when: When) -> Body {
    let [first, second] = pieces.map(Bytes::from);
    let sessions = sessions.clone();
    let rest = async move {
        // A body that is sent on the way takes a moment.
        tokio::task::yield_now().await;
        if when != When::Never {
            sessions.revoke_key(name).await.unwrap();
        }
        if when == When::InTheMiddle {
            tokio::time::sleep(LATER).await;
        }
        Ok::<_, io::Error>(second)
    };
    Body::from_stream(stream::once(async { Ok(first) }).chain(stream::once(rest)))
}

/// What is told of a request with such a body, by a key that is revoked then.
async fn sent(stage: &Stage, key: &str, line: &str, (text, when): (&[u8], When)) -> Answer {
    let (first, second) = text.split_at(text.len() / 2);
    let body = body(&stage.sessions, "alice", [first.to_vec(), second.to_vec()], when);
    stage.send(request(key, line).body(body).unwrap()).await
}

/// An archive with one file.
fn archive() -> Vec<u8> {
    let mut head = [0_u8; 512];
    head[..3].copy_from_slice(b"new");
    head[100..108].copy_from_slice(b"0000644\0");
    head[108..116].copy_from_slice(b"0000000\0");
    head[116..124].copy_from_slice(b"0000000\0");
    head[124..136].copy_from_slice(b"00000000003\0");
    head[136..148].copy_from_slice(b"00000000000\0");
    head[148..156].copy_from_slice(b"        ");
    head[156] = b'0';
    head[257..265].copy_from_slice(b"ustar\x0000");
    let sum: u32 = head.iter().map(|byte| u32::from(*byte)).sum();
    head[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let mut archive = head.to_vec();
    archive.extend_from_slice(b"new");
    archive.resize(4 * 512, 0);
    archive
}

#[tokio::test]
async fn what_is_sent_by_a_key_that_is_revoked_meanwhile_changes_nothing() {
    let stage = Stage::new().await;
    stage.sandbox("", "own").await;
    let (archive, files) = (archive(), "/v1/sandboxes/a/files");
    let patch = b"--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+new\n";
    let lines: [(String, &[u8]); 6] = [
        (format!("PUT {files}?path=new"), b"new"),
        (format!("PUT {files}?path=old"), b"new"),
        (format!("PUT {files}/archive"), &archive),
        (format!("POST {files}/patch"), patch),
        ("PUT /v1/secrets/NEW".to_owned(), b"correct-horse"),
        ("PUT /v1/sandboxes/new".to_owned(), b"{}"),
    ];
    for (line, text) in &lines {
        for when in [When::InTheMiddle, When::AtTheEnd, When::Never] {
            let what = format!("{line} {when:?}");
            let key = stage.key("alice").await;
            stage.sandbox_again(&key, "a").await;
            let whole = stage.ask(&key, &format!("PUT {files}?path=old"), "whole").await;
            assert!(whole.status.is_success(), "{what}: {}", whole.text);
            let told = sent(&stage, &key, line, (text, when)).await;
            let next = if when == When::Never {
                assert!(told.status.is_success(), "{what}: {}", told.text);
                key
            } else {
                let kind = (told.status.as_u16(), told.kind());
                assert_eq!(kind, (401, "denied".to_owned()), "{what}: {}", told.text);
                assert!(told.text.contains("revoked"), "{what}: {}", told.text);
                stage.key("alice").await
            };
            let looks = async |path: &str| stage.ask(&next, &format!("GET {path}"), "").await;
            let old = looks(&format!("{files}?path=old")).await.text;
            let new = looks(&format!("{files}?path=new")).await.status == 200;
            let secret = looks("/v1/secrets").await.text.contains("NEW");
            let sandbox = looks("/v1/sandboxes/new").await.status == 200;
            let changed = old != "whole" || new || secret || sandbox;
            assert_eq!(changed, when == When::Never, "{what}: {old} {new} {secret} {sandbox}");
            stage.sessions.revoke_key("alice").await.unwrap();
        }
        let key = stage.key("alice").await;
        stage.ask(&key, "DELETE /v1/sandboxes/a", "").await;
        stage.ask(&key, "DELETE /v1/sandboxes/new", "").await;
        stage.sessions.revoke_key("alice").await.unwrap();
    }
}

#[tokio::test]
async fn what_is_added_to_a_file_ends_with_its_key() {
    let stage = Stage::new().await;
    let key = stage.key("alice").await;
    stage.sandbox(&key, "a").await;
    let line = "POST /v1/sandboxes/a/files/append?path=x";
    let told = sent(&stage, &key, line, (b"firstlater", When::InTheMiddle)).await;
    assert_eq!(told.status, 401, "{}", told.text);
    let next = stage.key("alice").await;
    let read = stage.ask(&next, "GET /v1/sandboxes/a/files?path=x", "").await;
    assert!(!read.text.contains("later"), "{}", read.text);
    // The control: a key that is good adds all of it.
    let told = sent(&stage, &next, line, (b"firstlater", When::Never)).await;
    assert!(told.status.is_success(), "{}", told.text);
    let read = stage.ask(&next, "GET /v1/sandboxes/a/files?path=x", "").await;
    assert!(read.text.ends_with("firstlater"), "{}", read.text);
}

#[tokio::test]
async fn a_request_that_says_twice_who_asks_is_refused() {
    let stage = Stage::new().await;
    let (alice, bob) = (stage.key("alice").await, stage.key("bob").await);
    for second in [&alice, &bob] {
        let asked = request(&alice, "GET /v1/sandboxes");
        let asked = asked.header("authorization", format!("Bearer {second}"));
        let told = stage.send(asked.body(Body::empty()).unwrap()).await;
        assert_eq!((told.status.as_u16(), told.kind()), (400, "usage".to_owned()));
    }
    assert_eq!(stage.ask(&alice, "GET /v1/sandboxes", "").await.status, 200, "the control");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_stays_of_a_key_that_is_revoked_while_it_is_added() {
    let stage = Stage::new().await;
    let store = cofferdam_secrets::SecretStore::open(&stage.state).unwrap();
    // One after the other at every moment of it.
    for round in 0..100 {
        let key = stage.key("alice").await;
        let revoking = async {
            let begun = Instant::now();
            while begun.elapsed() < Duration::from_micros(25 * round) {
                tokio::task::yield_now().await;
            }
            stage.sessions.revoke_key("alice").await.unwrap();
        };
        let put = stage.ask(&key, "PUT /v1/secrets/TOKEN", "correct-horse");
        let (told, ()) = tokio::join!(put, revoking);
        assert!(matches!(told.status.as_u16(), 200 | 401), "{}", told.text);
        assert_eq!(store.list("alice").unwrap(), [], "round {round}: {}", told.text);
    }
}

//! What is done once for an `Idempotency-Key`.

use crate::document::operations;
use crate::stage::{Answer, Stage, request};
use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};

fn keyed(key: &str, line: &str, once: &str, body: &Value) -> Request<Body> {
    let request = request(key, line).header("idempotency-key", once);
    request.body(Body::from(body.to_string())).unwrap()
}

async fn post(stage: &Stage, path: &str, once: &str, body: &Value) -> Answer {
    stage.send(keyed("", &format!("POST {path}"), once, body)).await
}

/// How many sandboxes there are.
async fn count(stage: &Stage) -> usize {
    stage.ask("", "GET /v1/sandboxes", "").await.json()["sessions"].as_array().unwrap().len()
}

#[tokio::test]
async fn a_sandbox_is_made_once_for_a_key() {
    let stage = Stage::new().await;
    let body = json!({ "labels": { "a": "b" } });
    let first = post(&stage, "/v1/sandboxes", "one", &body).await;
    let again = post(&stage, "/v1/sandboxes", "one", &body).await;
    assert_eq!((first.status.as_u16(), again.status.as_u16()), (201, 201));
    assert_eq!(first.text, again.text);
    assert_eq!(again.headers["content-type"], first.headers["content-type"]);
    assert_eq!(again.headers["idempotent-replayed"], "true");
    assert!(!first.headers.contains_key("idempotent-replayed"));
    let other = post(&stage, "/v1/sandboxes", "one", &json!({})).await;
    assert_eq!((other.status.as_u16(), other.kind().as_str()), (409, "conflict"));
    assert_eq!(count(&stage).await, 1);
    // Controls: another key, none, and the key of another caller make one each.
    assert_ne!(post(&stage, "/v1/sandboxes", "two", &body).await.text, first.text);
    assert_eq!(stage.ask("", "POST /v1/sandboxes", &body.to_string()).await.status, 201);
    assert_eq!(count(&stage).await, 3);
    let (alice, bob) = (stage.key("alice").await, stage.key("bob").await);
    let mut ids = Vec::new();
    for key in [&alice, &bob] {
        let made = stage.send(keyed(key, "POST /v1/sandboxes", "one", &body)).await;
        assert_eq!(made.status, 201, "{}", made.text);
        ids.push(made.json()["id"].clone());
    }
    assert_ne!(ids[0], ids[1]);
}

#[tokio::test]
async fn who_asks_the_same_meanwhile_has_the_same_answer() {
    let stage = Stage::new().await;
    let body = json!({ "exec": { "argv": ["out=hello"] } });
    let ask = || post(&stage, "/v1/run", "one", &body);
    let (a, b, c) = tokio::join!(ask(), ask(), ask());
    assert_eq!(a.json()["stdout"], "hello", "{}", a.text);
    // Each of them would tell another time if it had run.
    assert!(a.text == b.text && b.text == c.text, "{}{}{}", a.text, b.text, c.text);
    let repeated = [&a, &b, &c].map(|one| one.headers.contains_key("idempotent-replayed"));
    assert_eq!(repeated.iter().filter(|repeated| **repeated).count(), 2);
}

#[tokio::test]
async fn what_did_not_succeed_may_be_tried_again_with_its_key() {
    let stage = Stage::new().await;
    for _ in 0..2 {
        let refused = post(&stage, "/v1/sandboxes", "one", &json!({ "nmae": "x" })).await;
        assert_eq!(refused.kind(), "usage");
    }
    assert_eq!(post(&stage, "/v1/sandboxes", "one", &json!({ "name": "x" })).await.status, 201);
    let taken = post(&stage, "/v1/sandboxes", "two", &json!({ "name": "x" })).await;
    assert_eq!(taken.kind(), "conflict");
    assert_eq!(stage.ask("", "DELETE /v1/sandboxes/x", "").await.status, 204);
    assert_eq!(post(&stage, "/v1/sandboxes", "two", &json!({ "name": "x" })).await.status, 201);
}

#[tokio::test]
async fn what_failed_within_a_good_answer_may_be_tried_again_with_its_key() {
    let stage = Stage::new().await;
    stage.sandbox("", "a").await;
    let read = json!({ "sandbox": "a", "path": "later" });
    let (tool, file) = ("/v1/tools/cofferdam/file_read", "/v1/sandboxes/a/files?path=later");
    let failed = post(&stage, tool, "one", &read).await;
    assert!(failed.status == 200 && failed.json()["is_error"] == true, "{}", failed.text);
    assert_eq!(stage.ask("", &format!("PUT {file}"), "text").await.status, 201);
    let done = post(&stage, tool, "one", &read).await;
    assert_eq!(done.json()["is_error"], false, "{}", done.text);
    // The control: what was done is told again.
    assert!(stage.ask("", &format!("DELETE {file}"), "").await.status.is_success());
    let again = post(&stage, tool, "one", &read).await;
    assert!(again.text == done.text && again.headers.contains_key("idempotent-replayed"));
    // Of a run the same holds: of one that never began, and not of one that failed.
    for (run, kind, is_kept) in [
        (json!({ "exec": { "argv": ["dance"] } }), "not_started", false),
        (json!({ "exec": { "argv": ["out=x"] }, "preflight": ["exit=3"] }), "setup_failed", false),
        (json!({ "exec": { "argv": ["exit=3"] } }), "exited", true),
    ] {
        let first = post(&stage, "/v1/run", kind, &run).await;
        assert_eq!(first.json()["ending"]["kind"], kind, "{}", first.text);
        let again = post(&stage, "/v1/run", kind, &run).await;
        assert_eq!(again.headers.contains_key("idempotent-replayed"), is_kept, "{kind}");
    }
}

#[tokio::test]
async fn a_key_is_never_passed_over() {
    let stage = Stage::new().await;
    let (mut taken, mut refused) = (0, 0);
    for (method, path, operation) in operations() {
        if method != "POST" {
            continue;
        }
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        let takes = parameters.into_iter().any(|one| one["name"] == "idempotency-key");
        let real = path.replace("{pack}", "cofferdam").replace("{sandbox}", "none");
        let told = post(&stage, &real, &"k".repeat(256), &json!({})).await;
        assert!(
            told.status == 400 && told.text.contains("Idempotency-Key"),
            "{path}: {}",
            told.text
        );
        let told = post(&stage, &real, "one", &json!({})).await;
        assert_eq!(told.text.contains("takes no Idempotency-Key"), !takes, "{path}: {}", told.text);
        if takes { taken += 1 } else { refused += 1 }
    }
    assert!(taken >= 8 && refused >= 10, "{taken} {refused}");
    // What does the same twice as once is not asked for one.
    let ensured = keyed("", "PUT /v1/sandboxes/a", "one", &json!({}));
    assert_eq!(stage.send(ensured).await.status, 201);
}

#[tokio::test]
async fn a_body_with_a_key_may_be_as_long_as_without_one() {
    let stage = Stage::new().await;
    let manifest = |bytes: usize| {
        let entry = json!({ "type": "file", "path": "long", "text": "x".repeat(bytes) });
        json!({ "manifest": { "version": 1, "entries": [entry] } })
    };
    // It is read, and refused for what it says.
    let read = post(&stage, "/v1/sandboxes", "one", &manifest(2 << 20)).await;
    assert!(read.text.contains("a manifest is for a workspace"), "{}", read.text);
    let refused = post(&stage, "/v1/sandboxes", "two", &manifest(4 << 20)).await;
    assert_eq!(refused.kind(), "too_large");
    // Control: what makes no sandbox takes no more than it does without a key.
    let long = json!({ "name": "x".repeat(2 << 20) });
    let refused = post(&stage, "/v1/sandboxes/none/snapshots", "three", &long).await;
    assert_eq!(refused.kind(), "too_large");
}

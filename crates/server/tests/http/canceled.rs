//! Requests by the Model Context Protocol that their own client cancels.

use crate::stage::{Answer, Stage, request};
use axum::body::Body;
use axum::http::StatusCode;
use serde_json::{Value, json};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tower::ServiceExt;

/// How many cancellations of one owner are answered beside as many requests as may be.
const MAX_CANCELS: usize = 8;
/// How long what has to happen may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// A client: its key, and the session that it was given, if any.
#[derive(Clone, Default)]
struct Client {
    key: String,
    session: Option<String>,
}

impl Client {
    fn new(key: &str) -> Self {
        Self { key: key.to_owned(), session: None }
    }

    /// One that begins as the protocol of 2025 does.
    async fn begin(stage: &Stage, key: &str) -> Self {
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        });
        let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
        let answer = Self::new(key).send(stage, hello).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        let session = answer.headers["mcp-session-id"].to_str().unwrap();
        assert!(session.len() >= 32, "{session}");
        Self { session: Some(session.to_owned()), ..Self::new(key) }
    }

    async fn send(&self, stage: &Stage, message: Value) -> Answer {
        let mut request = request(&self.key, "POST /mcp")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2025-11-25");
        if let Some(session) = &self.session {
            request = request.header("mcp-session-id", session);
        }
        stage.send(request.body(Body::from(message.to_string())).unwrap()).await
    }

    /// Calls a tool whose command never ends, and waits until that runs.
    async fn hang(&self, stage: &Arc<Stage>, sandbox: &str, id: Value) -> JoinHandle<Answer> {
        let arguments = json!({ "sandbox": sandbox, "command": "hang" });
        let message = json!({
            "jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": { "name": "shell_exec", "arguments": arguments },
        });
        let before = running(stage, &self.key, sandbox).await;
        let (client, there) = (self.clone(), Arc::clone(stage));
        let call = tokio::spawn(async move { client.send(&there, message).await });
        tokio::time::timeout(PATIENCE, async {
            while running(stage, &self.key, sandbox).await == before {
                tokio::task::yield_now().await;
            }
        })
        .await
        .unwrap();
        call
    }

    async fn cancel(&self, stage: &Stage, id: Value) {
        let answer = self.send(stage, cancellation(id)).await;
        assert_eq!((answer.status.as_u16(), answer.text.as_str()), (202, ""));
    }

    /// Takes up all places that cancellations have of their own, by some that do not come.
    async fn hold_cancellations(&self, stage: &Stage) -> Vec<JoinHandle<StatusCode>> {
        let (say, mut heard) = mpsc::unbounded_channel();
        let one_more = async || self.send(stage, cancellation(json!("nobody's"))).await.status;
        let mut held = Vec::new();
        for _ in 0..MAX_CANCELS {
            // The control.
            assert_eq!(one_more().await, 202, "beside {}", held.len());
            let mut say = Some(say.clone());
            let never = futures_util::stream::poll_fn(move |_| {
                // It has its place.
                say.take().map(|say| say.send(()));
                Poll::<Option<Result<Vec<u8>, std::io::Error>>>::Pending
            });
            let asked = request(&self.key, "POST /mcp").body(Body::from_stream(never));
            let answer = stage.router.clone().oneshot(asked.unwrap());
            held.push(tokio::spawn(async move { answer.await.unwrap().status() }));
            heard.recv().await.unwrap();
        }
        assert_eq!(one_more().await, 429);
        held
    }
}

fn cancellation(id: Value) -> Value {
    json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": { "requestId": id, "reason": "no longer wanted" },
    })
}

/// How many commands of a sandbox run.
async fn running(stage: &Stage, key: &str, sandbox: &str) -> usize {
    let listed = stage.ask(key, &format!("GET /v1/sandboxes/{sandbox}/execs"), "").await.json();
    let all = listed["execs"].as_array().unwrap_or_else(|| panic!("{listed}"));
    all.iter().filter(|exec| exec["ended_ms"].is_null()).count()
}

/// What is answered to a call that was canceled.
async fn ended(call: JoinHandle<Answer>) -> Value {
    let answer = tokio::time::timeout(PATIENCE, call).await.unwrap().unwrap();
    answer.json()["result"]["structuredContent"].clone()
}

#[tokio::test]
async fn what_a_client_cancels_over_http_is_ended_and_nothing_of_anybody_else() {
    let stage = Arc::new(Stage::new().await);
    let (alice, bob) = (stage.key("alice").await, stage.key("bob").await);
    let client = Client::begin(&stage, &alice).await;
    let same_key = Client::begin(&stage, &alice).await;
    let other = Client::begin(&stage, &bob).await;
    assert_ne!(client.session, same_key.session);
    stage.sandbox(&alice, "s").await;
    let call = client.hang(&stage, "s", json!(7)).await;
    let beside = client.hang(&stage, "s", json!("7")).await;
    for (whose, id) in [
        (&other, json!(7)),
        // A stranger that knows the word of another's session.
        (&Client { session: client.session.clone(), ..other.clone() }, json!(7)),
        (&same_key, json!(7)),
        (&Client::new(&alice), json!(7)),
        (&client, json!(8)),
        (&client, json!({ "no": "id" })),
    ] {
        whose.cancel(&stage, id).await;
    }
    assert_eq!(running(&stage, &alice, "s").await, 2);
    client.cancel(&stage, json!(7)).await;
    assert_eq!(ended(call).await["ending"], "canceled");
    assert_eq!(running(&stage, &alice, "s").await, 1);
    client.cancel(&stage, json!("7")).await;
    assert_eq!(ended(beside).await["ending"], "canceled");
    // What has ended is nothing to cancel, nor what never began.
    client.cancel(&stage, json!(7)).await;
}

#[tokio::test]
async fn what_is_canceled_needs_no_place_among_the_requests_at_work() {
    let stage = Arc::new(Stage::new().await);
    let key = stage.key("alice").await;
    let client = Client::begin(&stage, &key).await;
    stage.sandbox(&key, "s").await;
    let call = client.hang(&stage, "s", json!(0)).await;
    let listed = stage.ask(&key, "GET /v1/sandboxes/s/execs", "").await.json();
    let exec = listed["execs"][0]["id"].as_str().unwrap();
    // As many as may be at work, with the call.
    let line = format!("GET /v1/sandboxes/s/execs/{exec}/wait?timeout_ms=60000");
    let waits: Vec<_> = (1..64)
        .map(|_| {
            let (stage, key, line) = (Arc::clone(&stage), key.clone(), line.clone());
            tokio::spawn(async move { stage.ask(&key, &line, "").await.status })
        })
        .collect();
    tokio::time::timeout(PATIENCE, async {
        while stage.ask(&key, "GET /v1/sandboxes", "").await.status != 429 {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
    // The control: whatever else is asked has to wait.
    let ping = |id: usize, method: &str| json!({ "jsonrpc": "2.0", "id": id, "method": method });
    for message in [ping(1, "ping"), ping(2, &"x".repeat(10_000))] {
        assert_eq!(client.send(&stage, message).await.status, 429);
    }
    // Nor are cancellations without a limit.
    let held = client.hold_cancellations(&stage);
    for one in tokio::time::timeout(PATIENCE, held).await.unwrap() {
        one.abort();
        drop(one.await);
    }
    client.cancel(&stage, json!(0)).await;
    assert_eq!(ended(call).await["ending"], "canceled");
    for wait in waits {
        assert_eq!(wait.await.unwrap(), 200);
    }
}

#[tokio::test]
async fn without_a_session_an_id_stands_for_a_request_where_it_stands_for_one_alone() {
    let stage = Arc::new(Stage::new().await);
    let key = stage.key("alice").await;
    stage.sandbox(&key, "s").await;
    let client = Client::new(&key);
    let call = client.hang(&stage, "s", json!(1)).await;
    client.cancel(&stage, json!(1)).await;
    assert_eq!(ended(call).await["ending"], "canceled");
    let two = [client.hang(&stage, "s", json!(2)).await, client.hang(&stage, "s", json!(2)).await];
    client.cancel(&stage, json!(2)).await;
    assert_eq!(running(&stage, &key, "s").await, 2);
    // To hang up ends one's own all the same.
    for call in two {
        call.abort();
    }
    tokio::time::timeout(PATIENCE, async {
        while running(&stage, &key, "s").await > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
}

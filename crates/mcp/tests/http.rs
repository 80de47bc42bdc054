//! The service over HTTP, as a server mounts it, without any socket.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use bytes::Bytes;
use cofferdam_core::fake::FakeDurable;
use cofferdam_core::{Caller, ErrorKind, Profile, Spec, Workspace};
use cofferdam_mcp::http::{Owner, Service, Settings, service};
use cofferdam_mcp::{MAX_MESSAGE_BYTES, MAX_RESOURCE_BYTES};
use cofferdam_session::{SessionOrder, Sessions};
use cofferdam_tools::{PackName, Scope, Toolbox};
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The sessions of two owners, which know nothing of each other.
struct Stage {
    states: Vec<PathBuf>,
    sessions: BTreeMap<String, Sessions>,
}

static COUNT: AtomicU32 = AtomicU32::new(0);

impl Stage {
    async fn new() -> Self {
        let (mut states, mut sessions) = (Vec::new(), BTreeMap::new());
        for owner in ["one", "two"] {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let name = format!("cofferdam-mcp-test-{}-{count}", std::process::id());
            let state = std::env::temp_dir().join(name);
            let backend = Arc::new(FakeDurable::new());
            sessions.insert(owner.to_owned(), Sessions::open(&state, vec![backend]).await.unwrap());
            states.push(state);
        }
        Self { states, sessions }
    }

    async fn service(&self, settings: Settings) -> Service {
        let sessions = self.sessions.clone();
        let told = toolbox(&sessions["one"], Scope::Named);
        let of = move |owner: &Owner| Ok(toolbox(&sessions[&owner.0], Scope::Named));
        service(&told, of, settings).await.unwrap()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        for state in &self.states {
            std::fs::remove_dir_all(state).ok();
        }
    }
}

fn toolbox(sessions: &Sessions, scope: Scope) -> Arc<Toolbox> {
    let order = SessionOrder::new(Spec::new(Workspace::Private, Caller::default()));
    Arc::new(Toolbox::new(PackName::Cofferdam, sessions.clone(), scope, order))
}

/// What a client sends, and what came back.
struct Asked {
    owner: Option<&'static str>,
    host: &'static str,
    origin: Option<&'static str>,
    is_stateless: bool,
}

impl Default for Asked {
    fn default() -> Self {
        Self { owner: Some("one"), host: "localhost", origin: None, is_stateless: true }
    }
}

impl Asked {
    async fn of(self, service: &Service, method: &str, mut params: Value) -> (StatusCode, Value) {
        let mut request = Request::post("/mcp")
            .header("host", self.host)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        if let Some(origin) = self.origin {
            request = request.header("origin", origin);
        }
        if self.is_stateless {
            request = request.header("mcp-protocol-version", "2026-07-28");
            request = request.header("mcp-method", method);
            for name in ["name", "uri"] {
                if let Some(name) = params[name].as_str() {
                    request = request.header("mcp-name", name);
                }
            }
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
                "io.modelcontextprotocol/clientCapabilities": {},
            });
        } else if method != "initialize" {
            request = request.header("mcp-protocol-version", "2025-11-25");
        }
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let mut request = request.body(Bytes::from(message.to_string())).unwrap();
        if let Some(owner) = self.owner {
            request.extensions_mut().insert(Owner(owner.to_owned()));
        }
        let (parts, body) = service.handle(request).await.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        (parts.status, serde_json::from_slice(&bytes).unwrap_or_default())
    }
}

async fn call(service: &Service, asked: Asked, tool: &str, arguments: Value) -> Value {
    let params = json!({ "name": tool, "arguments": arguments });
    let (status, answer) = asked.of(service, "tools/call", params).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    answer["result"].clone()
}

#[tokio::test]
async fn both_generations_are_served_and_nothing_is_kept_between_requests() {
    let stage = Stage::new().await;
    let service = stage.service(Settings::default()).await;
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" },
    });
    let old = || Asked { is_stateless: false, ..Asked::default() };
    let (status, hello) = old().of(&service, "initialize", params).await;
    assert_eq!(
        (status, &hello["result"]["protocolVersion"]),
        (StatusCode::OK, &json!("2025-11-25"))
    );
    let (_, tools) = old().of(&service, "tools/list", json!({})).await;
    let (_, same) = Asked::default().of(&service, "tools/list", json!({})).await;
    assert!(tools["result"]["tools"].as_array().unwrap().len() >= 20, "{tools}");
    assert_eq!(tools["result"]["tools"], same["result"]["tools"]);
    let (_, found) = Asked::default().of(&service, "server/discover", json!({})).await;
    assert!(found["result"]["instructions"].is_string(), "{found}");
    for (asked, name) in [(old(), "a"), (Asked::default(), "b")] {
        let made = call(&service, asked, "sandbox_ensure", json!({ "sandbox": name })).await;
        assert_eq!(made["isError"], false, "{made}");
    }
    let (_, listed) = Asked::default().of(&service, "resources/list", json!({})).await;
    let all = listed["result"]["resources"].as_array().unwrap();
    let uris: Vec<&str> = all.iter().map(|one| one["uri"].as_str().unwrap()).collect();
    assert_eq!(uris, ["cofferdam://sandboxes/a", "cofferdam://sandboxes/b"]);
    let uri = json!({ "uri": "cofferdam://sandboxes/a" });
    let (_, read) = Asked::default().of(&service, "resources/read", uri).await;
    assert!(read["result"]["contents"][0]["text"].as_str().unwrap().contains("running"), "{read}");
    let uri = json!({ "uri": "cofferdam://own" });
    let (_, read) = Asked::default().of(&service, "resources/read", uri).await;
    assert!(read["error"]["message"].as_str().unwrap().contains("names no sandbox"), "{read}");
}

#[tokio::test]
async fn every_call_names_its_sandbox() {
    let stage = Stage::new().await;
    let service = stage.service(Settings::default()).await;
    let refused = call(&service, Asked::default(), "sandbox_status", json!({})).await;
    assert_eq!(refused["isError"], true);
    assert!(refused["content"][0]["text"].as_str().unwrap().contains("sandbox"), "{refused}");
    let own = toolbox(&stage.sessions["one"], Scope::Implicit);
    let error = cofferdam_mcp::http::service(&own, move |_| unreachable!(), Settings::default());
    assert_eq!(error.await.map(drop).unwrap_err().kind, ErrorKind::Usage);
}

#[tokio::test]
async fn an_owner_sees_nothing_of_another_and_nobody_sees_nothing() {
    let stage = Stage::new().await;
    let service = stage.service(Settings::default()).await;
    let name = || json!({ "sandbox": "mine" });
    let made = call(&service, Asked::default(), "sandbox_ensure", name()).await;
    assert_eq!(made["isError"], false, "{made}");
    let of_one = call(&service, Asked::default(), "sandbox_status", name()).await;
    assert_eq!(of_one["structuredContent"]["exists"], true, "{of_one}");
    let other = || Asked { owner: Some("two"), ..Asked::default() };
    let of_two = call(&service, other(), "sandbox_status", name()).await;
    assert_eq!(of_two["structuredContent"]["exists"], false, "{of_two}");
    let (_, listed) = other().of(&service, "resources/list", json!({})).await;
    assert_eq!(listed["result"]["resources"], json!([]));
    let nobody = || Asked { owner: None, ..Asked::default() };
    for (method, params) in [
        ("tools/call", json!({ "name": "sandbox_status", "arguments": name() })),
        ("resources/list", json!({})),
        ("resources/read", json!({ "uri": "cofferdam://sandboxes/mine" })),
    ] {
        let (_, answer) = nobody().of(&service, method, params).await;
        assert_eq!(answer["error"]["data"]["kind"], "denied", "{method}: {answer}");
    }
}

#[tokio::test]
async fn a_sandbox_of_another_policy_is_not_listed_and_not_read() {
    let stage = Stage::new().await;
    let service = stage.service(Settings::default()).await;
    let mut order = SessionOrder::new(Spec::new(Workspace::Private, Caller::default()));
    order.spec.profile = Profile::ReadOnly;
    stage.sessions["one"].create(&order.named("agent")).await.unwrap();
    call(&service, Asked::default(), "sandbox_ensure", json!({ "sandbox": "mine" })).await;
    let (_, listed) = Asked::default().of(&service, "resources/list", json!({})).await;
    let all = listed["result"]["resources"].as_array().unwrap();
    assert_eq!((all.len(), &all[0]["name"]), (1, &json!("mine")), "{listed}");
    for (name, is_read) in [("mine", true), ("agent", false)] {
        let uri = json!({ "uri": format!("cofferdam://sandboxes/{name}") });
        let (_, read) = Asked::default().of(&service, "resources/read", uri).await;
        assert_eq!(read["result"].is_object(), is_read, "{read}");
    }
}

#[tokio::test]
async fn a_call_without_what_it_needs_is_told_what_that_is() {
    let stage = Stage::new().await;
    let service = stage.service(Settings::default()).await;
    let old = || Asked { is_stateless: false, ..Asked::default() };
    for (method, params, code, word) in [
        ("tools/call", json!({}), -32602, "`name`"),
        ("tools/call", Value::Null, -32602, "`name`"),
        ("tools/call", json!({ "name": 5 }), -32602, "string"),
        ("tools/call", json!({ "name": "sandbox_status", "arguments": [] }), -32602, "map"),
        ("resources/read", json!({ "url": "x" }), -32602, "`uri`"),
        ("nobody/knows", json!({}), -32601, "nobody/knows is not a method of this server"),
    ] {
        let (_, answer) = old().of(&service, method, params).await;
        assert_eq!(answer["error"]["code"], code, "{method}: {answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(word), "{answer}");
    }
}

#[tokio::test]
async fn a_foreign_host_or_page_is_refused_where_the_service_looks_itself() {
    let stage = Stage::new().await;
    let settings = Settings { hosts: vec!["localhost".to_owned()], ..Settings::default() };
    let service = stage.service(settings).await;
    let list = async |asked: Asked| asked.of(&service, "tools/list", json!({})).await.0;
    assert_eq!(list(Asked::default()).await, StatusCode::OK);
    let foreign = Asked { host: "attacker.example", ..Asked::default() };
    assert_eq!(list(foreign).await, StatusCode::FORBIDDEN);
    let page = Asked { origin: Some("http://attacker.example"), ..Asked::default() };
    assert_eq!(list(page).await, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn a_message_over_the_limit_is_refused() {
    let stage = Stage::new().await;
    let service = stage.service(Settings::default()).await;
    let arguments =
        json!({ "sandbox": "a", "path": "p", "content": "x".repeat(MAX_MESSAGE_BYTES) });
    let params = json!({ "name": "file_write", "arguments": arguments });
    let (status, _) = Asked::default().of(&service, "tools/call", params).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test]
async fn a_file_over_the_limit_is_no_resource() {
    let stage = Stage::new().await;
    let service = stage.service(Settings::default()).await;
    call(&service, Asked::default(), "sandbox_ensure", json!({ "sandbox": "a" })).await;
    let sessions = &stage.sessions["one"];
    let files = sessions.session(sessions.find("a").await.unwrap()).files();
    let most = usize::try_from(MAX_RESOURCE_BYTES).unwrap();
    for (name, bytes) in [("most", most), ("more", most + 1)] {
        files.write(name, &vec![b'x'; bytes]).await.unwrap();
    }
    let read = async |name: &str| {
        let uri = json!({ "uri": format!("cofferdam://sandboxes/a/files/{name}") });
        Asked::default().of(&service, "resources/read", uri).await.1
    };
    let whole = read("most").await;
    assert_eq!(whole["result"]["contents"][0]["text"].as_str().unwrap().len(), most);
    let refused = read("more").await;
    assert_eq!(refused["error"]["data"]["kind"], "too_large", "{}", refused["error"]);
}

//! A server over a backend in memory, asked without any socket.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request, StatusCode};
use cofferdam_core::fake::FakeDurable;
use cofferdam_core::{Caller, DurableBackend, Spec, Workspace};
use cofferdam_server::{Ground, MAX_CONNECTIONS, Options, Server, router};
use cofferdam_session::{KeyRights, KeyScope, Quota, Sessions};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tower::ServiceExt;

/// A state directory, a backend in memory, and a server over both.
pub(crate) struct Stage {
    pub(crate) state: PathBuf,
    pub(crate) backend: Arc<FakeDurable>,
    pub(crate) sessions: Sessions,
    pub(crate) server: Server,
    options: Options,
    pub(crate) router: Router,
}

/// What somebody was answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    /// What its caller did wrong says what to do about it, whoever asks: no test has to remember.
    fn says_what_helps(&self) {
        let is_problem =
            self.headers.get("content-type").is_some_and(|kind| kind == "application/problem+json");
        if is_problem && matches!(self.status.as_u16(), 400 | 404 | 409 | 422) {
            let hint = &self.json()["hint"];
            assert!(hint.as_str().is_some_and(|hint| !hint.is_empty()), "{}", self.text);
        }
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|e| panic!("{e}: {}", self.text))
    }

    /// The kind of the problem that this is.
    pub(crate) fn kind(&self) -> String {
        assert_eq!(self.headers["content-type"], "application/problem+json", "{}", self.text);
        let problem = self.json();
        assert_eq!(problem["status"], self.status.as_u16());
        problem["kind"].as_str().unwrap().to_owned()
    }
}

static COUNT: AtomicU64 = AtomicU64::new(0);

impl Stage {
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut Options)) -> Self {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("cofferdam-server-test-{}-{count}", std::process::id());
        let memory = PathBuf::from("/dev/shm");
        let place = if memory.is_dir() { memory } else { std::env::temp_dir() };
        let state = place.join(name);
        let backend = Arc::new(FakeDurable::new());
        let backends: Vec<Arc<dyn DurableBackend>> = vec![backend.clone()];
        let sessions = Sessions::open(&state, backends).await.unwrap();
        let template = Spec::new(Workspace::Private, Caller::default());
        let mut options = Options {
            ground: Ground::new(template, vec![PathBuf::from("/srv/allowed")]).unwrap(),
            keys_only: false,
            hosts: Vec::new(),
            origins: vec!["https://board.example".to_owned()],
            port_domain: None,
            max_connections: MAX_CONNECTIONS,
            log: |_| {},
        };
        change(&mut options);
        let server = Server::new(sessions.clone(), options.clone());
        Self { state, backend, sessions, router: router(server.clone()), server, options }
    }

    /// The server that comes after this one has ended.
    pub(crate) fn next_server(&self) -> Server {
        Server::new(self.sessions.clone(), self.options.clone())
    }

    /// A key with these rights.
    pub(crate) async fn key_with(&self, name: &str, rights: KeyRights) -> String {
        self.sessions.create_key(name, rights).await.unwrap().1
    }

    /// A key that opens everything.
    pub(crate) async fn key(&self, name: &str) -> String {
        self.key_with(name, rights(&KeyScope::ALL)).await
    }

    /// Asks with a key, or without one if it is empty.
    pub(crate) async fn ask(&self, key: &str, line: &str, body: &str) -> Answer {
        let request = request(key, line).body(Body::from(body.to_owned())).unwrap();
        self.send(request).await
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Answer {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, 64 << 20).await.unwrap();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let answer = Answer { status: parts.status, headers: parts.headers, text };
        answer.says_what_helps();
        answer
    }

    /// Makes a sandbox and gives its id.
    pub(crate) async fn sandbox(&self, key: &str, name: &str) -> String {
        let made = self.ask(key, &format!("PUT /v1/sandboxes/{name}"), "{}").await;
        assert_eq!(made.status, 201, "{}", made.text);
        made.json()["id"].as_str().unwrap().to_owned()
    }

    /// Makes a sandbox, or finds the one of this name, running.
    pub(crate) async fn sandbox_again(&self, key: &str, name: &str) {
        let made = self.ask(key, &format!("PUT /v1/sandboxes/{name}"), "{}").await;
        assert!(made.status.is_success(), "{}", made.text);
    }

    /// Starts a command and gives its id.
    pub(crate) async fn exec(&self, key: &str, sandbox: &str, words: &[&str]) -> String {
        let body = json!({ "argv": words }).to_string();
        let line = format!("POST /v1/sandboxes/{sandbox}/execs");
        let started = self.ask(key, &line, &body).await;
        assert_eq!(started.status, 201, "{}", started.text);
        started.json()["id"].as_str().unwrap().to_owned()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.state).ok();
    }
}

pub(crate) fn rights(scopes: &[KeyScope]) -> KeyRights {
    KeyRights {
        scopes: scopes.to_vec(),
        quota: Quota::default(),
        max_rate: None,
        workspaces: Vec::new(),
    }
}

/// A request of this line with JSON to come.
pub(crate) fn request(key: &str, line: &str) -> axum::http::request::Builder {
    let (method, path) = line.split_once(' ').unwrap();
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", "127.0.0.1")
        .header("content-type", "application/json");
    match key {
        "" => request,
        key => request.header("authorization", format!("Bearer {key}")),
    }
}

//! Calls that are dropped while their sandbox is made, over a backend in memory that takes its time.

use cofferdam_core::fake::{Call, FakeDurable, Mishap};
use cofferdam_core::{Caller, Spec, Workspace};
use cofferdam_session::{Phase, SessionOrder, Sessions};
use cofferdam_tools::{CallContext, PackName, Scope, Toolbox};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// How long a sandbox takes to be made.
const MAKING: Duration = Duration::from_secs(30);

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A place of its own, and who makes sandboxes there.
struct Place {
    state: PathBuf,
    backend: FakeDurable,
    sessions: Sessions,
}

impl Place {
    async fn new() -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("cofferdam-dropped-{}-{number}", std::process::id());
        let state = std::env::temp_dir().join(name);
        let backend = FakeDurable::new();
        let sessions = Sessions::open(&state, vec![Arc::new(backend.clone())]).await.unwrap();
        Self { state, backend, sessions }
    }

    fn tools(&self, scope: Scope) -> Toolbox {
        let order = SessionOrder::new(Spec::new(Workspace::Private, Caller::default()));
        Toolbox::new(PackName::Cofferdam, self.sessions.clone(), scope, order)
    }

    /// Drops a call while the sandbox that it needs is made.
    async fn drop_call(&self, tools: &Toolbox, name: &str, arguments: serde_json::Value) {
        self.backend.mishap(Call::Create, 1, Mishap::Late(MAKING));
        let call = tools.call(name, arguments, CallContext::new());
        timeout(Duration::from_secs(5), call).await.unwrap_err();
        assert_eq!(self.phases().await, [Phase::Creating], "the control");
    }

    async fn phases(&self) -> Vec<Phase> {
        let listed = self.sessions.list(&BTreeMap::new()).await.unwrap();
        listed.iter().map(|session| session.phase).collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.state).ok();
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_dropped_call_was_making_is_removed_with_its_toolbox() {
    let place = Place::new().await;
    let tools = place.tools(Scope::Implicit);
    let begun = Instant::now();
    place.drop_call(&tools, "shell_exec", json!({ "command": "out=x" })).await;
    assert!(tools.close().await.unwrap());
    assert_eq!(begun.elapsed().as_secs(), MAKING.as_secs());
    tokio::time::sleep(MAKING).await;
    assert_eq!((place.phases().await, place.backend.traces()), (Vec::new(), Vec::new()));
}

#[tokio::test(start_paused = true)]
async fn what_a_dropped_call_was_making_is_used_by_the_next_one() {
    let place = Place::new().await;
    let tools = place.tools(Scope::Implicit);
    place.drop_call(&tools, "shell_exec", json!({ "command": "out=x" })).await;
    for _ in 0..2 {
        let asked = json!({ "command": "out=x" });
        let outcome = tools.call("shell_exec", asked, CallContext::new()).await;
        assert_eq!(outcome.structured["stdout"]["text"], "x", "{}", outcome.text);
    }
    let creates = place.backend.calls().iter().filter(|call| **call == Call::Create).count();
    assert_eq!((creates, place.phases().await), (1, vec![Phase::Running]));
    assert!(tools.close().await.unwrap());
    assert_eq!(place.backend.traces(), []);
}

#[tokio::test(start_paused = true)]
async fn a_named_sandbox_is_made_to_the_end_though_its_call_was_dropped() {
    let place = Place::new().await;
    let tools = place.tools(Scope::Named);
    place.drop_call(&tools, "sandbox_ensure", json!({ "sandbox": "build" })).await;
    tokio::time::sleep(MAKING).await;
    assert_eq!(place.phases().await, [Phase::Running]);
}

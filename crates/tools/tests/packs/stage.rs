//! Sessions of this machine in a place of their own, and tools on them.

use crate::shape::misfit;
use async_trait::async_trait;
use cofferdam::{Result, Sandbox, Spec, kept_backend};
use cofferdam_session::{Session, SessionOrder, Sessions};
use cofferdam_tools::{CallContext, Expose, MAX_RESULT_BYTES, Outcome, PackName, Scope, Toolbox};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// How long a sandbox of a test lives at most.
const LEASE: Duration = Duration::from_secs(300);

static NEXT: AtomicU32 = AtomicU32::new(0);

/// What the workspace of a toolbox is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A directory.
    Direct,
    /// One below a layer.
    Layered,
}

pub(crate) struct Stage {
    pub(crate) place: PathBuf,
    pub(crate) sessions: Sessions,
}

/// Shows ports to nobody, by addresses that are none.
struct Shown;

#[async_trait]
impl Expose for Shown {
    async fn expose(&self, _session: &Session, port: u16) -> Result<String> {
        Ok(format!("shown:{port}"))
    }
}

impl Stage {
    pub(crate) async fn new() -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("cofferdam-packs-{}-{number}", std::process::id());
        let place = std::env::temp_dir().join(name);
        std::fs::create_dir_all(place.join("workspace")).unwrap();
        let state = place.join("state");
        let backend = Arc::new(kept_backend(state.clone()));
        let sessions = Sessions::open(&state, vec![backend]).await.unwrap();
        Self { place, sessions }
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.place.join("workspace")
    }

    pub(crate) fn order(&self, kind: Kind) -> SessionOrder {
        let builder = Sandbox::builder();
        let spec: Spec = match kind {
            Kind::Direct => builder.workspace(self.workspace()).spec().unwrap(),
            Kind::Layered => builder.copy_on_write_workspace(self.workspace()).spec().unwrap(),
        };
        // One that a test leaves behind when it fails is over by itself.
        let mut order = SessionOrder::new(spec);
        order.ttl = Some(LEASE);
        order
    }

    pub(crate) fn tools(&self, pack: PackName, scope: Scope, kind: Kind) -> Toolbox {
        let tools = Toolbox::new(pack, self.sessions.clone(), scope, self.order(kind));
        tools.exposing(Arc::new(Shown))
    }

    /// Removes every sandbox and the place.
    pub(crate) async fn end(self) {
        for session in self.sessions.list(&BTreeMap::new()).await.unwrap() {
            self.sessions.delete(&self.sessions.find(&session.id).await.unwrap()).await.unwrap();
        }
        std::fs::remove_dir_all(&self.place).unwrap();
    }
}

/// Calls a tool, whose result is within the limit whatever it is, and of one that did not fail what its
/// schema says.
pub(crate) async fn call(tools: &Toolbox, name: &str, arguments: Value) -> Outcome {
    let outcome = tools.call(name, arguments, CallContext::new()).await;
    assert!(outcome.bytes() <= MAX_RESULT_BYTES, "{name}: {} bytes", outcome.bytes());
    if let Some(tool) = tools.tools().iter().find(|tool| tool.name == name && !outcome.is_error) {
        let misfit = tool.output.as_ref().and_then(|is| misfit(is, &outcome.structured, name));
        assert_eq!(misfit, None);
    }
    follows(tools, &outcome);
    outcome
}

/// Looks that a hint leads to nothing that whoever has these tools has not: what is typed is the user's,
/// and a tool is one of the pack.
fn follows(tools: &Toolbox, outcome: &Outcome) {
    let error = &outcome.structured["error"];
    let hint = error["hint"].as_str().or(outcome.structured["hint"].as_str()).unwrap_or_default();
    let is_the_users = hint.starts_with("For the user, on the command line: ");
    let is_typed = hint.contains("`cofferdam ") || hint.contains(" --");
    assert!(is_the_users || !is_typed, "{hint}");
    for other in PackName::ALL {
        let order = tools_of(other);
        let has = |name: &str| tools.tools().iter().any(|tool| tool.name == name);
        let strange = order.iter().find(|name| hint.contains(**name) && !has(name));
        assert_eq!(strange, None, "{hint}");
    }
}

/// Names that no other word is, and that one pack alone has.
fn tools_of(pack: PackName) -> &'static [&'static str] {
    match pack {
        PackName::Cofferdam => &[
            "shell_exec",
            "shell_start",
            "shell_poll",
            "file_read",
            "sandbox_ensure",
            "sandbox_undo",
            "sandbox_diff",
            "permission_request",
        ],
        PackName::Everruns => &["sandbox_read_file", "sandbox_manage"],
        PackName::Adk => &["exec_command", "list_dir"],
        PackName::Openmanus => &["sandbox_shell", "sandbox_files"],
        PackName::Fluers => &[],
    }
}

/// The same where it must not fail.
pub(crate) async fn done(tools: &Toolbox, name: &str, arguments: Value) -> Value {
    let outcome = call(tools, name, arguments).await;
    assert!(!outcome.is_error, "{name}: {}", outcome.text);
    outcome.structured
}

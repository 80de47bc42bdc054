//! A state directory and a backend in memory, which outlive the sessions that a test opens.

use cofferdam_core::fake::FakeDurable;
use cofferdam_core::{Caller, DurableBackend, ExecOrder, Result, Spec, Workspace};
use cofferdam_session::{Session, SessionId, SessionOrder, Sessions};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A state directory and a backend in memory.
pub(crate) struct Stage {
    pub(crate) state: PathBuf,
    pub(crate) backend: FakeDurable,
}

static COUNT: AtomicU64 = AtomicU64::new(0);

impl Stage {
    pub(crate) fn new() -> Self {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("cofferdam-session-test-{}-{count}", std::process::id());
        // In memory where that is possible: thousands of databases are made here.
        let memory = PathBuf::from("/dev/shm");
        let place = if memory.is_dir() { memory } else { std::env::temp_dir() };
        Self { state: place.join(name), backend: FakeDurable::new() }
    }

    pub(crate) fn backends(&self) -> Vec<Arc<dyn DurableBackend>> {
        vec![Arc::new(self.backend.clone())]
    }

    /// Opens the sessions, as each start of a program does.
    pub(crate) async fn open(&self) -> Sessions {
        self.try_open().await.unwrap()
    }

    pub(crate) async fn try_open(&self) -> Result<Sessions> {
        Sessions::open(&self.state, self.backends()).await
    }

    /// The kinds of events of a session, in order.
    pub(crate) async fn kinds(&self, sessions: &Sessions, id: &SessionId) -> Vec<String> {
        let events = sessions.events(Some(id), 0).await.unwrap();
        assert!(events.windows(2).all(|pair| pair[0].seq < pair[1].seq), "A13");
        events.into_iter().map(|event| event.kind).collect()
    }

    pub(crate) fn home(&self, id: &SessionId) -> PathBuf {
        self.state.join("homes").join(id.as_str())
    }

    /// Nothing lives and nothing is left, in the world or on disk.
    pub(crate) fn assert_empty(&self) {
        assert_eq!(self.backend.alive(), [], "something lives");
        assert_eq!(self.backend.traces(), [], "a journal is left");
        for place in ["homes", "locks"] {
            let left: Vec<_> = std::fs::read_dir(self.state.join(place)).unwrap().collect();
            assert!(left.is_empty(), "{place}: {left:?}");
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.state).ok();
    }
}

pub(crate) fn spec() -> Spec {
    Spec::new(Workspace::Private, Caller::default())
}

pub(crate) fn order(name: &str) -> SessionOrder {
    SessionOrder::new(spec()).named(name)
}

pub(crate) fn words(words: &[&str]) -> ExecOrder {
    Session::order(words).unwrap()
}

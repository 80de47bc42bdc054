//! What goes with a call: somebody who wants to know how far it is, and who may give it up.

use std::fmt;
use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::watch;

/// How far a call is.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// Grows with every report of one call.
    pub done: f64,
    /// What [`Progress::done`] will be at the end, where that is known.
    pub total: Option<f64>,
    /// What is going on, in a few words.
    pub message: String,
}

type Sink = Arc<dyn Fn(Progress) + Send + Sync>;

/// What goes with a call.
pub struct CallContext {
    progress: Option<Sink>,
    canceled: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl CallContext {
    /// Nobody listens, nobody gives up.
    pub fn new() -> Self {
        Self { progress: None, canceled: Box::pin(pending()) }
    }

    /// Reports go there. It is called from within the call and must return at once.
    #[must_use]
    pub fn with_progress(mut self, sink: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        self.progress = Some(Arc::new(sink));
        self
    }

    /// The call is given up when this future ends: a command that it waits for is killed, and what
    /// came of it so far is answered. What does not wait for a command ends as it would have.
    ///
    /// To drop the future of a call gives up the answer alone: a command goes on to its time limit, and a sandbox
    /// that is being made is that of the next call.
    #[must_use]
    pub fn canceled_by(mut self, canceled: impl Future<Output = ()> + Send + 'static) -> Self {
        self.canceled = Box::pin(canceled);
        self
    }

    /// Does some work that may look whether it was given up.
    pub(crate) async fn watch<T>(self, work: impl AsyncFnOnce(&Watched) -> T) -> T {
        let (say, said) = watch::channel(false);
        let watched = Watched { progress: self.progress, canceled: said };
        let mut canceled = self.canceled;
        let working = work(&watched);
        tokio::pin!(working);
        tokio::select! {
            done = &mut working => done,
            () = &mut canceled => {
                say.send_replace(true);
                working.await
            }
        }
    }
}

impl Default for CallContext {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for CallContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallContext").finish_non_exhaustive()
    }
}

/// A context as a call sees it.
pub(crate) struct Watched {
    progress: Option<Sink>,
    canceled: watch::Receiver<bool>,
}

impl Watched {
    /// Ends when the call is given up.
    pub(crate) async fn canceled(&self) {
        let mut canceled = self.canceled.clone();
        if canceled.wait_for(|canceled| *canceled).await.is_err() {
            pending::<()>().await;
        }
    }

    /// Whether somebody listens.
    pub(crate) fn is_heard(&self) -> bool {
        self.progress.is_some()
    }

    pub(crate) fn report(&self, progress: Progress) {
        if let Some(sink) = &self.progress {
            sink(progress);
        }
    }
}

//! How far something is that takes its time.

use std::sync::Arc;

/// How far something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// How much of it is done.
    pub done: u64,
    /// How much there is in all, where that is known.
    pub total: Option<u64>,
    /// What is counted.
    pub unit: Unit,
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Bytes of content.
    Bytes,
    /// Files, directories and links.
    Entries,
    /// Repositories.
    Repositories,
}

impl Unit {
    /// Its name in an event.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Entries => "entries",
            Self::Repositories => "repositories",
        }
    }
}

/// Who is told how far something is; by default nobody. It is told often, from any thread, and is not
/// to wait.
#[derive(Clone, Default)]
pub struct Progress(Option<Arc<dyn Fn(Step) + Send + Sync>>);

impl Progress {
    /// Somebody who is told.
    pub fn new(listener: impl Fn(Step) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(listener)))
    }

    /// Tells it.
    pub fn tell(&self, step: Step) {
        if let Some(listener) = &self.0 {
            listener(step);
        }
    }
}

impl std::fmt::Debug for Progress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Progress").field(&self.0.is_some()).finish()
    }
}

/// Who listens makes no order another one.
impl PartialEq for Progress {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Eq for Progress {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn a_listener_hears_each_step_and_nobody_is_fine_too() {
        let heard = Arc::new(AtomicU64::new(0));
        let hears = Arc::clone(&heard);
        let progress = Progress::new(move |step| {
            hears.fetch_add(step.done, Ordering::Relaxed);
        });
        for done in 1..=3 {
            progress.clone().tell(Step { done, total: Some(3), unit: Unit::Entries });
            Progress::default().tell(Step { done, total: None, unit: Unit::Bytes });
        }
        assert_eq!(heard.load(Ordering::Relaxed), 6);
    }
}

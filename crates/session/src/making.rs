//! Sandboxes that this process is making.
//!
//! Who gives up waiting for one does not stop it: a backend goes on, and the sandbox stands some time
//! later. Whoever is to end it has to know when that is.

use crate::SessionId;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::watch;

/// The sessions whose sandboxes are being made, and how many times.
#[derive(Debug, Clone, Default)]
pub(crate) struct Making(Arc<watch::Sender<BTreeMap<SessionId, u32>>>);

/// One that is being made until this is dropped.
#[derive(Debug)]
pub(crate) struct Made {
    making: Making,
    id: SessionId,
}

impl Making {
    /// Begins one.
    pub(crate) fn begin(&self, id: &SessionId) -> Made {
        self.0.send_modify(|all| *all.entry(id.clone()).or_default() += 1);
        Made { making: self.clone(), id: id.clone() }
    }

    /// Whether none of this session is being made.
    pub(crate) fn is_over(&self, id: &SessionId) -> bool {
        !self.0.borrow().contains_key(id)
    }

    /// Waits until none is.
    pub(crate) async fn over(&self, id: &SessionId) {
        let mut seen = self.0.subscribe();
        // The sender lives as long as this.
        drop(seen.wait_for(|all| !all.contains_key(id)).await);
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        self.making.0.send_modify(|all| {
            if let Some(count) = all.get_mut(&self.id) {
                *count = count.saturating_sub(1);
                if *count == 0 {
                    all.remove(&self.id);
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_is_over_when_the_last_one_is_made() {
        let making = Making::default();
        let (one, other) = (SessionId::fresh().unwrap(), SessionId::fresh().unwrap());
        let (first, second) = (making.begin(&one), making.begin(&one));
        assert!(making.is_over(&other) && !making.is_over(&one));
        let waits = tokio::spawn({
            let (making, one) = (making.clone(), one.clone());
            async move { making.over(&one).await }
        });
        drop(first);
        tokio::task::yield_now().await;
        assert!(!waits.is_finished());
        drop(second);
        waits.await.unwrap();
        assert!(making.is_over(&one));
    }
}

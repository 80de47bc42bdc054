//! Sandboxes that somebody began to make and did not wait for.

use super::Desk;
use crate::answer::{CALL_LIMIT, CREATE_LIMIT, within};
use cofferdam_core::{Found, Result, SandboxId, SandboxStatus};
use std::time::Duration;
use tokio::time::{Instant, sleep_until, timeout_at};

/// How long after a look that found it unfinished the next one comes: twice as long each time, up to the last.
const FIRST_WAIT: Duration = Duration::from_millis(10);
const LAST_WAIT: Duration = Duration::from_millis(80);

impl Desk {
    /// Waits from now on for what somebody began to make, in all so long and at most as long as a creation may
    /// take. Who repairs many sessions does not: one that hangs would hold up the others.
    pub(crate) fn be_patient(&mut self, patience: Duration) {
        self.waits_until = Some(Instant::now() + patience.min(CREATE_LIMIT));
    }

    /// A sandbox of this session as the backend lists it, finished as far as there is patience.
    pub(super) async fn found(&self, id: &SandboxId) -> Result<Option<Found>> {
        let (making, session) = (&self.inner.making, &self.row.id);
        let mut wait = FIRST_WAIT;
        loop {
            // ORDER: before the backend is asked. What is made in between would be taken for gone otherwise, because
            // a backend need not list what it has just begun.
            let is_over = making.is_over(session);
            let find = self.backend.find(id);
            let found = within(CALL_LIMIT, "find a sandbox", find).await?;
            let waits = found.as_ref().is_some_and(is_unfinished) || !is_over && !stands(&found);
            let now = Instant::now();
            let Some(until) = self.waits_until.filter(|until| waits && now < *until) else {
                return Ok(found);
            };
            if is_over {
                // It is another process that makes it, which tells nobody.
                sleep_until(until.min(now + wait)).await;
                wait = (wait * 2).min(LAST_WAIT);
            } else {
                // What is not over by then is answered as it is.
                timeout_at(until, making.over(session)).await.ok();
            }
        }
    }
}

/// Whether it is still being made.
pub(super) fn is_unfinished(found: &Found) -> bool {
    found.record.is_none() && found.status != SandboxStatus::Gone
}

fn stands(found: &Option<Found>) -> bool {
    found
        .as_ref()
        .is_some_and(|found| found.record.is_some() && found.status != SandboxStatus::Gone)
}

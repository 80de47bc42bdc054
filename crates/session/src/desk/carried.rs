//! What carries left in the workspace whose caller or worker was killed.

use super::Desk;
use crate::answer::{CALL_LIMIT, within};
use crate::carries::{self, Which};
use crate::{Event, Phase};
use cofferdam_core::{Error, ErrorKind, Result};

/// How often a sandbox is asked for: one that is found lost is made anew by the second.
const ROUNDS: usize = 2;

impl Desk {
    /// Puts right what is left, as long as there is a sandbox, or else in one that is made for it. It is tried alone:
    /// what a session is stopped or removed for is not kept from it.
    pub(crate) async fn put_carries_right(&mut self, goal: Event) {
        // A layer goes with its session.
        let goes = goal == Event::Delete && self.row.spec.is_copy_on_write();
        if goes || !carries::any(&self.inner.places, &self.row.id, Which::Every) {
            return;
        }
        // It stays noted, and a collection tells why it cannot be put right.
        self.try_carries(Which::Every).await.ok();
    }

    /// The same for what nobody is at work on any more. A session that had no sandbox has none after it. Fails
    /// where something is left.
    pub(crate) async fn put_abandoned_right(&mut self) -> Result<()> {
        let stood = matches!(self.row.phase, Phase::Running | Phase::Paused);
        let tried = self.try_carries(Which::Abandoned).await;
        if !stood {
            self.drive(Event::Stop).await?;
        }
        tried?;
        if carries::any(&self.inner.places, &self.row.id, Which::Abandoned) {
            let what = "put right changes that were begun in its workspace";
            return Err(Error::new(ErrorKind::Unavailable, what).hint("Try again."));
        }
        Ok(())
    }

    async fn try_carries(&mut self, which: Which) -> Result<()> {
        match self.row.phase {
            // Somebody is ending it, or nobody ever had it.
            Phase::Creating | Phase::Stopping | Phase::Deleting => return Ok(()),
            Phase::Running
            | Phase::Pausing
            | Phase::Paused
            | Phase::Resuming
            | Phase::Lost
            | Phase::Stopped
            | Phase::Failed => {}
        }
        for _ in 0..ROUNDS {
            self.follow(Event::Ensure).await?;
            if self.row.phase == Phase::Running {
                break;
            }
        }
        if let Some(error) = self.trouble.take() {
            return Err(error);
        }
        let files = self.backend.files(self.record()?);
        let files = within(CALL_LIMIT, "find the files of a sandbox", files).await?;
        carries::put_right(&self.inner.places, &self.row.id, files.service().as_ref(), which).await;
        Ok(())
    }
}

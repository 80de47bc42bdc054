//! The end of sandboxes and sessions, and of what they left behind.

use super::Desk;
use super::unfinished::is_unfinished;
use crate::answer::{CALL_LIMIT, within};
use crate::store::{NewEvent, Written, blocking};
use crate::{Event, Phase, SessionId, carries, home};
use cofferdam_core::{DestroyReason, Error, ErrorKind, Found, Result, SandboxStatus};
use serde_json::json;

impl Desk {
    pub(super) async fn end(&mut self) -> Result<Event> {
        match self.try_end().await {
            Ok(()) => {
                self.row.record = None;
                self.dirty |= self.row.cleanup_failed.take().is_some();
                self.dirty = true;
                Ok(Event::Ended)
            }
            Err(error) => {
                self.owe_cleanup(&error);
                // A loss is a loss, whatever it left behind: recovery goes on, the reaper cleans.
                if self.row.phase != Phase::Lost {
                    self.trouble = Some(error);
                }
                Ok(Event::EndFailed)
            }
        }
    }

    pub(super) fn owe_cleanup(&mut self, error: &Error) {
        let text = error.chain();
        if self.row.cleanup_failed.is_none() {
            let data = json!({ "incarnation": self.row.incarnation, "error": text });
            self.said.push(NewEvent::now("cleanup_failed", data));
        }
        self.row.cleanup_failed = Some(text);
        self.dirty = true;
    }

    async fn try_end(&mut self) -> Result<()> {
        let record = match self.row.record.clone() {
            Some(record) => Some(record),
            None => match self.listed().await? {
                Some(found) if is_unfinished(&found) => return Err(still_being_made(&found)),
                Some(Found { record: Some(record), .. }) => Some(record),
                Some(_) | None => {
                    self.inner.store.record(&self.row.id, self.row.incarnation).await?
                }
            },
        };
        if let Some(record) = record {
            let end = self.backend.destroy(&record, self.reason());
            within(CALL_LIMIT, "end a sandbox", end).await?;
        }
        self.close().await
    }

    fn reason(&self) -> DestroyReason {
        if self.row.phase == Phase::Lost {
            DestroyReason::Lost
        } else if self.row.phase == Phase::Creating {
            DestroyReason::Error
        } else {
            self.row.facts.reason.unwrap_or(DestroyReason::Success)
        }
    }

    /// Folds what is left of the journal of an incarnation that ended, or never was.
    pub(super) async fn close(&self) -> Result<()> {
        self.fold(Some(self.reason())).await?;
        self.inner.store.never_was(&self.row.id, self.row.incarnation).await
    }

    /// Tries again to remove what earlier incarnations left behind.
    pub(crate) async fn clean(&mut self) -> Result<()> {
        let id = self.row.id.clone();
        for (_, incarnation) in self.inner.store.incarnations(Some(&id)).await? {
            let present = incarnation == self.row.incarnation && self.row.phase.owes_an_end();
            let record = self.inner.store.record(&id, incarnation).await?;
            let Some(record) = record.filter(|_| !present) else { continue };
            let end = self.backend.destroy(&record, DestroyReason::Lost);
            within(CALL_LIMIT, "end a sandbox", end).await?;
            self.inner.fold(&self.row, incarnation, Some(DestroyReason::Lost)).await?;
        }
        if self.row.phase == Phase::Lost {
            self.row.record = None;
        }
        self.row.cleanup_failed = None;
        self.dirty = true;
        self.save(false).await
    }

    /// Removes all that is left of a session whose sandbox has ended.
    pub(super) async fn remove(&mut self) -> Result<()> {
        match self.try_remove().await {
            Ok(()) => Ok(()),
            Err(error) => {
                self.owe_cleanup(&error);
                self.save(true).await?;
                self.trouble = Some(error);
                Ok(())
            }
        }
    }

    async fn try_remove(&mut self) -> Result<()> {
        let id = self.row.id.clone();
        // Others are not asked, so that what a removal costs hardly grows with the sessions there are.
        for one in within(CALL_LIMIT, "list its sandboxes", self.backend.ids()).await? {
            if SessionId::of(&one).is_none_or(|(of, _)| of != id) {
                continue;
            }
            let Some(found) = self.found(&one).await? else { continue };
            if found.status != SandboxStatus::Gone {
                let Some(record) = found.record else { return Err(still_being_made(&found)) };
                let end = self.backend.destroy(&record, self.reason());
                within(CALL_LIMIT, "end a sandbox", end).await?;
            }
            within(CALL_LIMIT, "forget a sandbox", self.backend.forget(&found.id)).await?;
        }
        for (_, incarnation) in self.inner.store.incarnations(Some(&id)).await? {
            let sandbox = id.sandbox(incarnation)?;
            within(CALL_LIMIT, "forget a sandbox", self.backend.forget(&sandbox)).await?;
        }
        let places = self.inner.places.clone();
        let name = id.to_string();
        blocking(move || {
            home::remove(&places.homes(), &name)?;
            home::remove(&places.kept(), &name)?;
            home::remove(&places.bundles(), &name)?;
            carries::forget(&places, &name)
        })
        .await?;
        if self.inner.store.remove(&self.row).await? == Written::Moved {
            let what = format!("session {id} was changed while it was removed");
            return Err(Error::new(ErrorKind::Conflict, what).hint("Try again."));
        }
        self.removed = true;
        if let Some(lock) = self.lock.take() {
            lock.retire();
        }
        Ok(())
    }
}

fn still_being_made(found: &Found) -> Error {
    let what = format!("sandbox {} is still being made", found.id);
    Error::new(ErrorKind::Unavailable, what).hint("Try again.")
}

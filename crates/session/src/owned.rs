//! Sessions that end with the process that made them.
//!
//! Their maker holds the same lock as the owner of a run. When it dies, however it dies, the kernel
//! lets go of it, and the next start of Cofferdam removes the session. Where there is no next start,
//! the keeper ends it with its lease, which its maker renews as long as it lives.

use crate::lock::Lock;
use crate::order::millis;
use crate::{SessionId, Sessions, now_ms};
use cofferdam_core::{ErrorKind, Result};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The lease of a session that ends with its maker, where its order has none: longer than a machine
/// sleeps with its lid closed.
pub const OWNED_LEASE: Duration = Duration::from_secs(7 * 86_400);

/// The owner's locks that this process holds.
#[derive(Debug, Default)]
pub(crate) struct Owned(Mutex<BTreeMap<SessionId, Lock>>);

impl Owned {
    /// Holds a lock until the session is removed, or this process ends.
    pub(crate) fn hold(&self, id: &SessionId, lock: Lock) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), lock);
    }

    /// Lets go of the lock of a session that is no more.
    pub(crate) fn let_go(&self, id: &SessionId) {
        let lock = self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
        if let Some(lock) = lock {
            lock.retire();
        }
    }
}

impl Owned {
    fn ids(&self) -> Vec<SessionId> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }
}

impl Sessions {
    /// Gives the sessions that end with this process their whole [`OWNED_LEASE`] again, if no order
    /// gave them another. Whoever makes such sessions calls this several times a lease.
    pub async fn renew_owned(&self) -> Result<()> {
        for id in self.0.owned.ids() {
            let mut desk = match self.0.desk(&id).await {
                Ok(desk) => desk,
                Err(error) if error.kind == ErrorKind::NotFound => {
                    self.0.owned.let_go(&id);
                    continue;
                }
                Err(error) => return Err(error),
            };
            let times = &mut desk.row.facts.times;
            if times.ttl_ms.is_none() {
                times.lease_until_ms = Some(now_ms().saturating_add(millis(OWNED_LEASE)));
                desk.row.facts.deadlines_owed = true;
                desk.amend(None).await?;
                desk.pay_deadlines().await?;
            }
        }
        Ok(())
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        let locks = std::mem::take(self.0.get_mut().unwrap_or_else(PoisonError::into_inner));
        locks.into_values().for_each(Lock::retire);
    }
}

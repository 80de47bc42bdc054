//! Sessions that end with the process that made them.
//!
//! Their maker holds the same lock as the owner of a run. When it dies, however it dies, the kernel
//! lets go of it, and the next start of Cofferdam removes the session.

use crate::SessionId;
use crate::lock::Lock;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

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

impl Drop for Owned {
    fn drop(&mut self) {
        let locks = std::mem::take(self.0.get_mut().unwrap_or_else(PoisonError::into_inner));
        locks.into_values().for_each(Lock::retire);
    }
}

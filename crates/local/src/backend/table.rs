//! The sandboxes of one backend, by id.

use super::Inner;
use super::living::Living;
use cofferdam_core::{Error, ErrorKind, Result, SandboxId, SandboxRecord};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// All sandboxes, and those in the making.
#[derive(Debug, Default)]
pub(super) struct Table(Mutex<Slots>);

#[derive(Debug, Default)]
struct Slots {
    by_id: BTreeMap<SandboxId, Slot>,
    last: u64,
    closed: bool,
}

#[derive(Debug)]
enum Slot {
    /// Being made for the claim of this number.
    Making(u64),
    /// Made for a claim that may still give up.
    Made(u64, Arc<Living>),
    /// Made and kept.
    Kept(Arc<Living>),
}

impl Slot {
    fn living(&self) -> Option<&Arc<Living>> {
        match self {
            Self::Making(_) => None,
            Self::Made(_, living) | Self::Kept(living) => Some(living),
        }
    }
}

/// An id that somebody asked a sandbox for. Dropping it, unless it is kept, gives the sandbox up.
#[derive(Debug)]
pub(super) struct Claim {
    inner: Arc<Inner>,
    id: SandboxId,
    number: u64,
}

impl Claim {
    /// Claims an id. One that is in use is a conflict. A sandbox that died by itself does not use
    /// its id; it comes back, to be ended before its successor is made.
    pub(super) fn new(inner: Arc<Inner>, id: &SandboxId) -> Result<(Self, Option<Arc<Living>>)> {
        let (number, dead) = inner.table.claim(id)?;
        Ok((Self { inner, id: id.clone(), number }, dead))
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// The caller has the answer: what was made is the caller's.
    pub(super) fn keep(self) {
        let mut slots = self.inner.table.slots();
        if let Some(slot) = slots.by_id.get_mut(&self.id)
            && let Slot::Made(number, living) = slot
            && *number == self.number
        {
            *slot = Slot::Kept(Arc::clone(living));
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let given_up = {
            let mut slots = self.inner.table.slots();
            match slots.by_id.get(&self.id) {
                Some(Slot::Making(number) | Slot::Made(number, _)) if *number == self.number => {
                    slots.by_id.remove(&self.id)
                }
                Some(_) | None => None,
            }
        };
        if let Some(Slot::Made(_, living)) = given_up {
            // Ending it waits for a process, which the caller's thread must not.
            std::thread::spawn(move || drop(living));
        }
    }
}

impl Table {
    fn slots(&self) -> MutexGuard<'_, Slots> {
        // Every change is complete before anything can panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn claim(&self, id: &SandboxId) -> Result<(u64, Option<Arc<Living>>)> {
        let mut slots = self.slots();
        let in_use = match slots.by_id.get(id) {
            Some(Slot::Making(_)) => true,
            Some(Slot::Made(_, living) | Slot::Kept(living)) => living.is_there(),
            None => false,
        };
        if in_use {
            return Err(Error::new(ErrorKind::Conflict, format!("sandbox id {id} is in use")));
        }
        slots.last += 1;
        let number = slots.last;
        let dead = slots.by_id.insert(id.clone(), Slot::Making(number));
        Ok((number, dead.and_then(|slot| slot.living().cloned())))
    }

    /// Enters what came of a claim. A sandbox that nobody waits for any more is ended.
    pub(super) fn settle(
        &self,
        id: &SandboxId,
        number: u64,
        made: Result<Living>,
    ) -> Result<SandboxRecord> {
        let mut slots = self.slots();
        let is_wanted = matches!(slots.by_id.get(id), Some(Slot::Making(n)) if *n == number);
        match made {
            Ok(living) if is_wanted && !slots.closed => {
                let record = living.record().clone();
                slots.by_id.insert(id.clone(), Slot::Made(number, Arc::new(living)));
                Ok(record)
            }
            Ok(living) => {
                drop(slots);
                drop(living);
                Err(Error::new(ErrorKind::Canceled, "nobody waits for the sandbox any more"))
            }
            Err(error) => {
                if is_wanted {
                    slots.by_id.remove(id);
                }
                Err(error)
            }
        }
    }

    pub(super) fn find(&self, id: &SandboxId) -> Option<Arc<Living>> {
        self.slots().by_id.get(id).and_then(Slot::living).cloned()
    }

    /// Those that live.
    pub(super) fn records(&self) -> Vec<SandboxRecord> {
        let slots = self.slots();
        let living = slots.by_id.values().filter_map(Slot::living);
        living.filter(|living| living.is_there()).map(|living| living.record().clone()).collect()
    }

    /// Forgets one that has ended.
    pub(super) fn forget(&self, record: &SandboxRecord) {
        let mut slots = self.slots();
        let slot = slots.by_id.get(&record.id).and_then(Slot::living);
        if slot.is_some_and(|living| living.is(record)) {
            slots.by_id.remove(&record.id);
        }
    }

    /// Takes all out, and keeps what is being made from coming in.
    pub(super) fn take_all(&self) -> Vec<Arc<Living>> {
        let mut slots = self.slots();
        slots.closed = true;
        let all = std::mem::take(&mut slots.by_id);
        all.into_values().filter_map(|slot| slot.living().cloned()).collect()
    }
}

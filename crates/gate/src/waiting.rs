//! The connections that wait to be allowed: who is told of them, and how they are answered.

use crate::gate::Gate;
use crate::limits::Limits;
use crate::teller::Teller;
use cofferdam_core::{FromGate, GateOrder, Settlement, Verdict, WaitingConnection};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::{Semaphore, SemaphorePermit, oneshot};

/// All that wait at one gate.
pub(crate) struct Waiting {
    /// The id of the sandbox.
    sandbox: String,
    /// One permit for each that may wait.
    permits: Semaphore,
    teller: Teller,
    all: Mutex<All>,
}

struct All {
    last: u64,
    waiting: BTreeMap<u64, Waiter>,
}

struct Waiter {
    what: WaitingConnection,
    /// Gone once it was answered.
    answer: Option<oneshot::Sender<Verdict>>,
}

impl Waiting {
    /// Nobody waits yet.
    pub(crate) fn new(order: &GateOrder, limits: &Limits, teller: Teller) -> Self {
        Self {
            sandbox: order.sandbox.clone(),
            permits: Semaphore::new(limits.waiting),
            teller,
            all: Mutex::new(All { last: order.last_waiting, waiting: BTreeMap::new() }),
        }
    }

    /// Answers one, and with it those that wait for the same. One that waits no more has its answer.
    pub(crate) fn answer(&self, number: u64, verdict: Verdict) {
        let mut all = self.all();
        let Some(what) = all.waiting.get(&number).map(|waiter| waiter.what.clone()) else { return };
        let alike = all.waiting.values_mut().filter(|waiter| waiter.what.is_like(&what));
        for answer in alike.filter_map(|waiter| waiter.answer.take()) {
            // One that gives up at this moment needs none.
            let _ = answer.send(verdict);
        }
    }

    fn all(&self) -> MutexGuard<'_, All> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One that waits. Dropping it ends that, and tells how.
pub(crate) struct Wait<'a> {
    waiting: &'a Waiting,
    number: u64,
    answer: oneshot::Receiver<Verdict>,
    settled: Settlement,
    _permit: SemaphorePermit<'a>,
}

impl<'a> Wait<'a> {
    /// Begins to wait and tells so, unless too many do already. Its number is given here.
    pub(crate) fn begin(gate: &'a Gate, mut what: WaitingConnection) -> Option<Self> {
        let waiting = &gate.waiting;
        let permit = waiting.permits.try_acquire().ok()?;
        let (answer, answered) = oneshot::channel();
        let mut all = waiting.all();
        all.last = all.last.saturating_add(1);
        what.number = all.last;
        let number = what.number;
        all.waiting.insert(number, Waiter { what: what.clone(), answer: Some(answer) });
        // ORDER: told under the lock, so that numbers are told in their order.
        waiting.teller.tell(FromGate::Waits(what));
        drop(all);
        Some(Self { waiting, number, answer: answered, settled: Settlement::Gone, _permit: permit })
    }

    /// What it waits by, for people.
    pub(crate) fn request(&self) -> String {
        format!("{}.{}", self.waiting.sandbox, self.number)
    }

    /// What somebody says to it. To be asked for once.
    pub(crate) async fn answered(&mut self) -> Verdict {
        match (&mut self.answer).await {
            Ok(verdict) => verdict,
            Err(_) => std::future::pending().await,
        }
    }

    /// It waits no more, for this reason.
    pub(crate) fn settle(mut self, settled: Settlement) {
        self.settled = settled;
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        self.waiting.all().waiting.remove(&self.number);
        self.waiting.teller.tell(FromGate::Settled(self.number, self.settled));
    }
}

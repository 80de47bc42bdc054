//! The connections that a server has at once, and which of them makes room for another one.

use crate::stalling::Flow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// After how long somebody who waits for room looks again, for a connection that has written its last answer says
/// nothing of it.
const LOOKS_AGAIN: Duration = Duration::from_millis(100);

/// How long a connection on which nobody is known has for its answers, where there is no room for another one.
const STRANGERS_TIME: Duration = Duration::from_secs(3);

/// So many connections as there may be.
#[derive(Debug, Clone)]
pub(crate) struct Room(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    most: usize,
    places: Mutex<Places>,
    /// A connection ended, was answered, or stays though it was asked to leave.
    changed: Notify,
}

#[derive(Debug, Default)]
struct Places {
    next: u64,
    taken: HashMap<u64, Taken>,
}

#[derive(Debug)]
struct Taken {
    begun: Instant,
    /// Whether what it asked is still to be answered.
    works: bool,
    /// Since when it has no request in flight: from its beginning, or from the end of its last answer. `None` as long as
    /// it has one.
    idle_since: Option<Instant>,
    is_asked: bool,
    leaves: Arc<Notify>,
    flow: Arc<Flow>,
}

/// A connection's place, until this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    room: Room,
    number: u64,
    leaves: Arc<Notify>,
}

/// A request of a connection, from its head to the end of its answer.
#[derive(Debug)]
pub(crate) struct InFlight {
    room: Room,
    number: u64,
}

impl Taken {
    /// Whether nothing is broken off when it ends.
    fn is_idle(&self) -> bool {
        self.idle_since.is_some() && !self.flow.is_unwritten()
    }

    /// Whether it is one of a stranger who had time enough to read what anybody is told. Where that takes long, all
    /// places would be held by those who do not read it.
    fn is_strangers(&self) -> bool {
        !self.flow.is_known() && !self.works && self.begun.elapsed() >= STRANGERS_TIME
    }
}

impl Room {
    /// Room for so many.
    pub(crate) fn new(most: usize) -> Self {
        let places = Mutex::new(Places::default());
        Self(Arc::new(Inner { most, places, changed: Notify::new() }))
    }

    /// A place for a connection that came in. Where there is none, whoever waits longest without a request in flight
    /// makes room, or else the oldest stranger; as long as all that are known have a request, this waits.
    pub(crate) async fn take(&self, flow: &Arc<Flow>) -> Place {
        loop {
            if let Some(place) = self.try_take(flow) {
                return place;
            }
            self.make_room().await;
        }
    }

    /// Asks whoever is to make room to leave, and waits until there may be some.
    pub(crate) async fn make_room(&self) {
        self.ask_one_to_leave();
        tokio::select! {
            () = self.0.changed.notified() => {}
            () = tokio::time::sleep(LOOKS_AGAIN) => {}
        }
    }

    fn try_take(&self, flow: &Arc<Flow>) -> Option<Place> {
        let mut places = self.places();
        if places.taken.len() >= self.0.most {
            return None;
        }
        let (number, leaves) = (places.next, Arc::new(Notify::new()));
        places.next += 1;
        let taken = Taken {
            begun: Instant::now(),
            works: false,
            idle_since: Some(Instant::now()),
            is_asked: false,
            leaves: leaves.clone(),
            flow: flow.clone(),
        };
        places.taken.insert(number, taken);
        Some(Place { room: self.clone(), number, leaves })
    }

    fn ask_one_to_leave(&self) {
        let mut places = self.places();
        // One is enough for one that waits.
        if places.taken.values().any(|taken| taken.is_asked) {
            return;
        }
        let all = || places.taken.iter();
        let idle = all().filter(|(_, taken)| taken.is_idle()).min_by_key(|(_, t)| t.idle_since);
        let strangers = || all().filter(|(_, t)| t.is_strangers()).min_by_key(|(_, t)| t.begun);
        let number = idle.or_else(strangers).map(|(number, _)| *number);
        if let Some(longest) = number.and_then(|number| places.taken.get_mut(&number)) {
            longest.is_asked = true;
            longest.leaves.notify_one();
        }
    }

    fn change(&self, number: u64, change: impl FnOnce(&mut Taken)) {
        if let Some(taken) = self.places().taken.get_mut(&number) {
            change(taken);
        }
        self.0.changed.notify_one();
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.0.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Waits until somebody else needs the place, and nothing is broken off when it is given up that somebody was told
    /// who is known.
    pub(crate) async fn is_to_leave(&self) {
        loop {
            self.leaves.notified().await;
            let may_leave = |taken: &Taken| taken.is_idle() || taken.is_strangers();
            let taken = self.room.places().taken.get(&self.number).map(may_leave);
            // ORDER: looked at again here, where the connection does nothing meanwhile: it may have been asked while it
            // began with a request.
            if taken != Some(false) {
                return;
            }
            self.room.change(self.number, |taken| taken.is_asked = false);
        }
    }

    /// What makes requests of this connection.
    pub(crate) fn begins(&self) -> impl Fn() -> InFlight + Clone + use<> {
        let (room, number) = (self.room.clone(), self.number);
        move || {
            room.change(number, |taken| (taken.idle_since, taken.works) = (None, true));
            InFlight { room: room.clone(), number }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.room.places().taken.remove(&self.number);
        self.room.0.changed.notify_one();
    }
}

impl InFlight {
    /// Says that there is an answer, which is still to be taken.
    pub(crate) fn is_answered(&self) {
        self.room.change(self.number, |taken| taken.works = false);
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let idle_since = Some(Instant::now());
        self.room
            .change(self.number, |taken| (taken.idle_since, taken.works) = (idle_since, false));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::timeout;

    const MOMENT: Duration = Duration::from_secs(5);

    async fn next(room: &Room) -> (Place, Arc<Flow>) {
        let flow = Arc::new(Flow::default());
        (room.take(&flow).await, flow)
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_longest_without_a_request_makes_room_and_nobody_else() {
        let room = Room::new(3);
        let (silent, _) = next(&room).await;
        let (answered, _) = next(&room).await;
        let (busy, _) = next(&room).await;
        let request = busy.begins()();
        tokio::time::sleep(MOMENT).await;
        drop(answered.begins()());
        // Whoever comes later has waited for less.
        tokio::time::sleep(MOMENT).await;
        let (waits, _) = tokio::join!(next(&room), async {
            silent.is_to_leave().await;
            drop(silent);
        });
        let (waits_too, _) = tokio::join!(next(&room), async {
            answered.is_to_leave().await;
            drop(answered);
        });
        let (one, two) = (waits.0.begins()(), waits_too.0.begins()());
        // All have requests now.
        assert!(timeout(MOMENT, next(&room)).await.is_err());
        assert!(timeout(MOMENT, busy.is_to_leave()).await.is_err());
        drop(request);
        tokio::join!(next(&room), async {
            busy.is_to_leave().await;
            drop(busy);
        });
        drop((one, two));
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_something_to_write_or_begins_meanwhile_stays() {
        let room = Room::new(1);
        let (writes, flow) = next(&room).await;
        flow.tell_known();
        flow.tell_unwritten(true);
        let asked = async {
            tokio::select! {
                _ = next(&room) => panic!("there was no room"),
                () = writes.is_to_leave() => panic!("it has something to write"),
                () = tokio::time::sleep(MOMENT) => {}
            }
        };
        asked.await;
        flow.tell_unwritten(false);
        // It is asked to leave, and begins before it hears of it.
        assert!(timeout(MOMENT, next(&room)).await.is_err());
        let request = writes.begins()();
        assert!(timeout(MOMENT, writes.is_to_leave()).await.is_err());
        drop(request);
        let came = tokio::join!(next(&room), async {
            writes.is_to_leave().await;
            drop(writes);
        });
        drop(came);
        assert!(room.places().taken.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_stranger_who_does_not_read_makes_room_and_nobody_who_is_known() {
        let room = Room::new(2);
        let (known, flow) = next(&room).await;
        flow.tell_known();
        let (stranger, _) = next(&room).await;
        let (asks, reads_nothing) = (known.begins()(), stranger.begins()());
        // What is still to be answered may become known by that.
        assert!(timeout(MOMENT, next(&room)).await.is_err());
        asks.is_answered();
        reads_nothing.is_answered();
        let leaves = async {
            tokio::select! {
                () = stranger.is_to_leave() => {}
                () = known.is_to_leave() => panic!("somebody is known there"),
            }
            drop((reads_nothing, stranger));
        };
        let moved = timeout(MOMENT, async { tokio::join!(next(&room), leaves) });
        let (next_one, ()) = moved.await.unwrap();
        // One that came just now has some time.
        let another = next_one.0.begins()();
        another.is_answered();
        assert!(timeout(STRANGERS_TIME / 2, next(&room)).await.is_err());
        assert!(timeout(MOMENT, known.is_to_leave()).await.is_err());
    }
}

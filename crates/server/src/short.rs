//! Connections that the kernel does not give, for this process or machine can have no more descriptors.

use crate::room::Room;
use rustix::io::Errno;
use std::io;
use std::time::Duration;
use tokio::time::Instant;

/// After how long it is said again that there is no room.
const SAID_AGAIN: Duration = Duration::from_secs(60);
/// How long nothing is taken in after an error that is about nobody's room.
const REFUSED: Duration = Duration::from_millis(100);

/// What was said of connections that could not be taken in.
#[derive(Debug)]
pub(crate) struct Short {
    log: fn(&str),
    said: Option<Instant>,
}

impl Short {
    /// Nothing yet; what is said goes there.
    pub(crate) fn new(log: fn(&str)) -> Self {
        Self { log, said: None }
    }

    /// Waits after a connection could not be taken in, as long as it takes whoever waited longest without a request to
    /// make room: nobody is shut out by those who ask for nothing, whoever has the descriptors.
    pub(crate) async fn make_room(&mut self, room: &Room, error: &io::Error) {
        if self.said.is_none_or(|said| said.elapsed() >= SAID_AGAIN) {
            self.said = Some(Instant::now());
            (self.log)(&format!("take in a connection: {error}"));
        }
        match is_for_want_of_room(error) {
            true => room.make_room().await,
            false => tokio::time::sleep(REFUSED).await,
        }
    }
}

fn is_for_want_of_room(error: &io::Error) -> bool {
    let wanting = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM];
    error.raw_os_error().is_some_and(|raw| wanting.contains(&Errno::from_raw_os_error(raw)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stalling::Flow;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use tokio::time::timeout;

    static SAID: AtomicU32 = AtomicU32::new(0);

    #[tokio::test(start_paused = true)]
    async fn where_the_kernel_has_no_more_room_one_that_waits_makes_some() {
        let room = Room::new(8);
        let place = room.take(&Arc::<Flow>::default()).await;
        let mut short = Short::new(|_| {
            SAID.fetch_add(1, Ordering::Relaxed);
        });
        let error = |errno: Errno| io::Error::from(errno);
        let moment = Duration::from_secs(1);
        // The control: what is about one connection alone closes no other.
        short.make_room(&room, &error(Errno::CONNABORTED)).await;
        assert!(timeout(moment, place.is_to_leave()).await.is_err());
        let begun = Instant::now();
        let full = error(Errno::MFILE);
        tokio::join!(short.make_room(&room, &full), async {
            place.is_to_leave().await;
            drop(place);
        });
        // Where nobody can make room, it is not asked for without a pause, nor told each time.
        for _ in 0..5 {
            short.make_room(&room, &error(Errno::NFILE)).await;
        }
        assert!(begun.elapsed() >= 4 * REFUSED, "{:?}", begun.elapsed());
        assert_eq!(SAID.load(Ordering::Relaxed), 1);
        tokio::time::sleep(SAID_AGAIN).await;
        short.make_room(&room, &error(Errno::MFILE)).await;
        assert_eq!(SAID.load(Ordering::Relaxed), 2);
    }
}

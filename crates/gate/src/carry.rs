//! Carries bytes both ways until both sides have ended, or nothing moves any more.

use crate::attempt::Counts;
use crate::limits::Limits;
use crate::request::Bad;
use crate::unread::Unread;
use cofferdam_core::policy::Asked;
use cofferdam_terminate::{Sighting, Watch};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// How much is carried at once.
const PIECE_BYTES: usize = 32 * 1024;

/// How the bytes of one connection move.
pub(crate) struct Carrier<'a> {
    counts: &'a Counts,
    limits: Limits,
    began: Instant,
    /// When something moved last, in milliseconds after the beginning.
    moved_ms: AtomicU64,
    /// Looks at what comes from inside before it goes on.
    watch: Option<Mutex<Watch>>,
    seen: Mutex<Option<Sighting>>,
    /// Looks at what is carried as no request, until it is known to be none.
    unread: Mutex<Option<Unread>>,
    bad: Mutex<Option<Bad>>,
}

/// Which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// From inside.
    Up,
    /// From outside.
    Down,
}

/// Why a connection was ended by the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Silent for too long.
    Idle,
    /// Open for too long.
    Total,
}

/// Which end of one way broke.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Broken {
    /// The one that bytes came from.
    From,
    /// The one that they went to.
    To,
    /// Neither: something must not go further.
    Watched,
}

fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Cut {
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::Idle => "nothing moved for too long",
            Self::Total => "it lasted too long",
        }
    }
}

impl<'a> Carrier<'a> {
    pub(crate) fn over(counts: &'a Counts, limits: Limits) -> Self {
        Self {
            counts,
            limits,
            began: Instant::now(),
            moved_ms: AtomicU64::new(0),
            watch: None,
            seen: Mutex::default(),
            unread: Mutex::default(),
            bad: Mutex::default(),
        }
    }

    /// The same, and looks at what comes from inside.
    pub(crate) fn watching(self, watch: Option<Watch>) -> Self {
        Self { watch: watch.map(Mutex::new), ..self }
    }

    /// What was seen that must not go where it was going. It did not.
    pub(crate) fn seen(&self) -> Option<Sighting> {
        locked(&self.seen).take()
    }

    /// From now on also looks for a request, in what was found to be none. Where the server has spoken first
    /// it is none.
    pub(crate) fn takes_for_no_request(&self, asked: &Asked) {
        if self.counts.down.load(Ordering::Relaxed) == 0 {
            *locked(&self.unread) = Some(Unread::of(asked));
        }
    }

    /// Why it turned out to be one, where it did. That did not go on.
    pub(crate) fn bad(&self) -> Option<Bad> {
        locked(&self.bad).take()
    }

    fn judge(&self, way: Way, bytes: &[u8]) -> Result<(), Broken> {
        let mut unread = locked(&self.unread);
        let Some(unread) = unread.as_mut() else { return Ok(()) };
        let judged = match way {
            Way::Up => unread.up(bytes),
            Way::Down => unread.down(bytes),
        };
        judged.map_err(|bad| {
            *locked(&self.bad) = Some(bad);
            Broken::Watched
        })
    }

    fn look(&self, look: impl FnOnce(&mut Watch) -> Option<Sighting>) -> Result<(), Broken> {
        let Some(watch) = &self.watch else { return Ok(()) };
        let Some(sighting) = look(&mut locked(watch)) else { return Ok(()) };
        *locked(&self.seen) = Some(sighting);
        Err(Broken::Watched)
    }

    fn lasted_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn counter(&self, way: Way) -> &AtomicU64 {
        match way {
            Way::Up => &self.counts.up,
            Way::Down => &self.counts.down,
        }
    }

    /// Writes these bytes, counted.
    pub(crate) async fn send(
        &self,
        way: Way,
        to: &mut (impl AsyncWrite + Unpin),
        bytes: &[u8],
    ) -> Result<(), Broken> {
        if way == Way::Up {
            self.look(|watch| watch.look(bytes))?;
        }
        self.judge(way, bytes)?;
        to.write_all(bytes).await.map_err(|_| Broken::To)?;
        self.moved_ms.store(self.lasted_ms(), Ordering::Relaxed);
        self.counter(way).fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Carries one way until it ends, and says so to the other side: that one may go on.
    pub(crate) async fn carry(
        &self,
        way: Way,
        from: &mut (impl AsyncRead + Unpin),
        to: &mut (impl AsyncWrite + Unpin),
    ) -> Result<(), Broken> {
        self.carry_some(way, from, to, u64::MAX).await?;
        if way == Way::Up {
            self.look(Watch::finish)?;
        }
        to.shutdown().await.map_err(|_| Broken::To)
    }

    /// Carries at most so many bytes, and returns how many are missing.
    pub(crate) async fn carry_some(
        &self,
        way: Way,
        from: &mut (impl AsyncRead + Unpin),
        to: &mut (impl AsyncWrite + Unpin),
        bytes: u64,
    ) -> Result<u64, Broken> {
        let mut left = bytes;
        let mut piece = vec![0; PIECE_BYTES];
        while left > 0 {
            let most = usize::try_from(left).unwrap_or(usize::MAX).min(PIECE_BYTES);
            let space = piece.get_mut(..most).unwrap_or_default();
            let read = from.read(space).await.map_err(|_| Broken::From)?;
            if read == 0 {
                break;
            }
            self.send(way, to, piece.get(..read).unwrap_or_default()).await?;
            left = left.saturating_sub(read as u64);
        }
        Ok(left)
    }

    /// Returns when nothing moved for too long, or all took too long.
    pub(crate) async fn cut(&self) -> Cut {
        loop {
            let moved = Duration::from_millis(self.moved_ms.load(Ordering::Relaxed));
            let lasted = self.began.elapsed();
            let idle = self.limits.idle_time.saturating_sub(lasted.saturating_sub(moved));
            let total = self.limits.total_time.saturating_sub(lasted);
            if total.is_zero() {
                return Cut::Total;
            }
            if idle.is_zero() {
                return Cut::Idle;
            }
            tokio::time::sleep(idle.min(total)).await;
        }
    }
}

//! When a sandbox is paused or ended without anybody asking.

use cofferdam_core::{Error, ErrorKind, Result};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use std::time::Duration;

/// Two alarms. They go by clocks that count while the machine sleeps.
#[derive(Debug)]
pub(super) struct Clock {
    /// By the time of day. Wakes also when somebody sets that.
    calendar: OwnedFd,
    idle: OwnedFd,
}

const OFF: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

impl Clock {
    pub(super) fn new() -> Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let make = |clock| timerfd_create(clock, flags).map_err(failed);
        Ok(Self {
            calendar: make(TimerfdClockId::Realtime)?,
            idle: make(TimerfdClockId::Boottime)?,
        })
    }

    /// Sets the alarm to a moment in milliseconds since 1970.
    pub(super) fn wake_at(&self, moment_ms: Option<u64>) -> Result<()> {
        // A moment of zero would switch it off; one in the past rings at once.
        let at = moment_ms.map(|moment| Duration::from_millis(moment.max(1)));
        let flags = TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET;
        set(&self.calendar, flags, at)
    }

    /// Sets the other alarm to so long from now.
    pub(super) fn wake_after(&self, pause: Option<Duration>) -> Result<()> {
        let pause = pause.map(|pause| pause.max(Duration::from_millis(1)));
        set(&self.idle, TimerfdTimerFlags::empty(), pause)
    }

    /// What to wait on.
    pub(super) fn alarms(&self) -> [BorrowedFd<'_>; 2] {
        [self.calendar.as_fd(), self.idle.as_fd()]
    }

    /// Whether the time of idleness is over. Says so once.
    pub(super) fn is_idle(&self) -> bool {
        rustix::io::read(&self.idle, &mut [0; 8]).is_ok()
    }
}

fn set(timer: &OwnedFd, flags: TimerfdTimerFlags, at: Option<Duration>) -> Result<()> {
    let it_value = at.map_or(OFF, |at| Timespec {
        tv_sec: i64::try_from(at.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(at.subsec_nanos()),
    });
    timerfd_settime(timer, flags, &Itimerspec { it_interval: OFF, it_value })
        .map(drop)
        .map_err(failed)
}

fn failed(errno: Errno) -> Error {
    Error::new(ErrorKind::Io, "set an alarm").source(std::io::Error::from(errno))
}

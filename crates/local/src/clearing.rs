//! The end of a sandbox whose first process gets no processor.
//!
//! A killed first process ends all that lives below it, in its own time. HOSTILE: commands can leave it little of
//! that. Whoever waits for its end kills them from here then, until it gets some.

use crate::keeper::descendants;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// How long a first process may take by itself. It takes milliseconds, and longer only to give gigabytes back.
pub(crate) const BY_ITSELF: Duration = Duration::from_millis(250);
/// The pause between two rounds of killing.
pub(crate) const AGAIN: Duration = Duration::from_millis(50);

/// Whether a first process that was killed is gone, and with it all that is in its process namespace, after at
/// most so long.
pub(crate) fn is_gone(first: i32, pidfd: &OwnedFd, within: Duration) -> Result<bool, Errno> {
    let until = Instant::now() + within;
    let mut pause = BY_ITSELF;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if has_ended(pidfd, left.min(pause))? {
            return Ok(true);
        }
        if left <= pause {
            return Ok(false);
        }
        kill_below(first);
        pause = AGAIN;
    }
}

/// Whether a process ends within so long, or has ended.
pub(crate) fn has_ended(pidfd: &OwnedFd, within: Duration) -> Result<bool, Errno> {
    let until = Instant::now() + within;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let timeout = Timespec {
            tv_sec: left.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        match poll(&mut [PollFd::new(pidfd, PollFlags::IN)], Some(&timeout)) {
            Err(Errno::INTR) => {}
            ready => return ready.map(|ready| ready > 0),
        }
    }
}

/// Kills what lives below a first process.
pub(crate) fn kill_below(first: i32) {
    let open = |pid: i32| {
        let number = Pid::from_raw(pid)?;
        Some((pid, pidfd_open(number, PidfdFlags::empty()).ok()?))
    };
    let opened: Vec<(i32, OwnedFd)> = descendants(first).into_iter().filter_map(open).collect();
    // ORDER: after the descriptors. A number that came to be another's in between is not below it any more.
    let still: BTreeSet<i32> = descendants(first).into_iter().collect();
    for (pid, process) in opened {
        if still.contains(&pid) {
            let _ = pidfd_send_signal(&process, Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn what_lives_below_a_first_process_that_gets_no_processor_is_killed() {
        let script = "sleep 100 & sh -c 'sleep 100 & echo up; wait' & wait";
        let mut shell =
            Command::new("sh").args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap();
        let mut word = [0; 2];
        std::io::Read::read_exact(shell.stdout.as_mut().unwrap(), &mut word).unwrap();
        let first = shell.id().cast_signed();
        let pidfd = pidfd_open(Pid::from_raw(first).unwrap(), PidfdFlags::empty()).unwrap();
        assert!(!is_gone(first, &pidfd, Duration::ZERO).unwrap(), "the control");
        assert!(is_gone(first, &pidfd, Duration::from_secs(20)).unwrap());
        shell.wait().unwrap();
    }
}

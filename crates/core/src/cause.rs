//! Which limit a command died of, told from what the host counted.

use crate::{Cause, Ending};

/// How often limits of a sandbox were hit since it was made, as the host's kernel counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LimitHits {
    /// Processes that were killed because the memory was used up.
    pub memory: u64,
    /// Processes that were refused because there were too many.
    pub pids: u64,
}

/// Reads [`LimitHits`] of one sandbox. Never asks the guest, which may lie.
pub trait LimitWatch: Send + Sync {
    /// The counts up to now. Zeros where they cannot be known.
    fn hits(&self) -> LimitHits;
}

/// The watch where no limit is counted: all endings stay as they were reported.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoWatch;

impl LimitWatch for NoWatch {
    fn hits(&self) -> LimitHits {
        LimitHits::default()
    }
}

impl LimitHits {
    /// The ending with its cause, from the counts before the command started and after it ended.
    ///
    /// Only a command that failed can have failed by a limit: one that survived the death of a
    /// child, or a refused fork, ended by itself.
    pub fn explain(self, after: Self, ending: Ending) -> Ending {
        let code = ending.exit_code();
        match ending {
            Ending::Exited(0)
            | Ending::Killed(_)
            | Ending::NotStarted { .. }
            | Ending::SetupFailed { .. }
            | Ending::Canceled
            | Ending::Lost => ending,
            Ending::Exited(_) | Ending::Signaled(_) if after.memory > self.memory => {
                Ending::Killed(Cause::memory(&ending))
            }
            Ending::Exited(_) | Ending::Signaled(_) if after.pids > self.pids => {
                Ending::Killed(Cause::Pids { code })
            }
            Ending::Exited(_) | Ending::Signaled(_) => ending,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(memory: u64, pids: u64, ending: Ending, expected: &Ending) {
        let before = LimitHits { memory: 1, pids: 1 };
        assert_eq!(&before.explain(LimitHits { memory, pids }, ending), expected);
    }

    #[test]
    fn a_limit_is_the_cause_only_of_a_failure() {
        check(1, 1, Ending::Signaled(9), &Ending::Signaled(9));
        check(2, 1, Ending::Signaled(9), &Ending::Killed(Cause::Memory));
        let exited = |code| Ending::Killed(Cause::MemoryWithin { code });
        check(2, 2, Ending::Exited(137), &exited(137));
        check(2, 1, Ending::Exited(5), &exited(5));
        check(2, 1, Ending::Signaled(6), &exited(134));
        check(1, 2, Ending::Exited(2), &Ending::Killed(Cause::Pids { code: 2 }));
        check(2, 2, Ending::Exited(0), &Ending::Exited(0));
        check(2, 2, Ending::Killed(Cause::Time), &Ending::Killed(Cause::Time));
    }
}

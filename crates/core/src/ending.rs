//! How a command ended.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a command ended, with its causes told apart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    /// It exited with this code.
    Exited(i32),
    /// A signal ended it, and none of the causes below sent it.
    Signaled(i32),
    /// It was killed for one of these.
    Killed(Cause),
    /// The program never ran: no such program (127), not executable (126), or a bad working directory
    /// (125).
    NotStarted {
        /// The exit code that stands for it: 126 or 127 as a shell's, or 125.
        code: i32,
        /// What could not be done.
        detail: String,
    },
    /// The sandbox was not set up. Nothing ran.
    SetupFailed {
        /// The step that failed.
        stage: String,
        /// Why.
        detail: String,
    },
    /// The caller gave up and the command was killed.
    Canceled,
    /// Its sandbox died and nobody saw how it ended.
    Lost,
}

/// Why Cofferdam or the kernel killed a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cause {
    /// Its time was over.
    Time,
    /// It used more memory than it may, and was killed.
    Memory,
    /// A process of it used more memory than it may, and it failed by that; `code` is how it ended itself.
    MemoryWithin {
        /// Its own exit code, or 128 and its signal.
        code: i32,
    },
    /// It made more processes than it may, and failed by that; `code` is how it ended itself.
    Pids {
        /// Its own exit code, or 128 and its signal.
        code: i32,
    },
    /// It wrote more output than it may.
    Output,
    /// It failed, and the private space came to be full while it ran; `code` is how it ended itself.
    Disk {
        /// Its own exit code, or 128 and its signal.
        code: i32,
    },
    /// Its session's lease was over.
    Lease,
    /// The placeholder of a secret was on its way to a host that the secret is not for.
    SecretAlarm,
}

/// The stable names of endings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EndingKind {
    /// By `exit`.
    Exited,
    /// By a signal.
    Signaled,
    /// Out of time.
    TimedOut,
    /// Out of memory.
    OutOfMemory,
    /// Out of processes.
    Pids,
    /// Too much output.
    Output,
    /// The program never ran.
    NotStarted,
    /// The sandbox was not set up.
    SetupFailed,
    /// The caller gave up.
    Canceled,
    /// The private space was full.
    Disk,
    /// The session's lease was over.
    Lease,
    /// The placeholder of a secret was on its way to a host that the secret is not for.
    SecretAlarm,
    /// The sandbox died and nobody saw how it ended.
    Lost,
}

/// What ends a process for which there is no memory.
const SIGKILL: i32 = 9;

impl Cause {
    /// Out of memory, of a command that ended in this way while one of its processes was killed for that.
    pub fn memory(own: &Ending) -> Self {
        match own {
            Ending::Exited(_) => Self::MemoryWithin { code: own.exit_code() },
            Ending::Signaled(signal) if *signal != SIGKILL => {
                Self::MemoryWithin { code: own.exit_code() }
            }
            Ending::Signaled(_)
            | Ending::Killed(_)
            | Ending::NotStarted { .. }
            | Ending::SetupFailed { .. }
            | Ending::Canceled
            | Ending::Lost => Self::Memory,
        }
    }
}

impl Ending {
    /// Its stable name.
    pub fn kind(&self) -> EndingKind {
        match self {
            Self::Exited(_) => EndingKind::Exited,
            Self::Signaled(_) => EndingKind::Signaled,
            Self::Killed(Cause::Time) => EndingKind::TimedOut,
            Self::Killed(Cause::Memory | Cause::MemoryWithin { .. }) => EndingKind::OutOfMemory,
            Self::Killed(Cause::Pids { .. }) => EndingKind::Pids,
            Self::Killed(Cause::Output) => EndingKind::Output,
            Self::NotStarted { .. } => EndingKind::NotStarted,
            Self::SetupFailed { .. } => EndingKind::SetupFailed,
            Self::Killed(Cause::Disk { .. }) => EndingKind::Disk,
            Self::Killed(Cause::Lease) => EndingKind::Lease,
            Self::Killed(Cause::SecretAlarm) => EndingKind::SecretAlarm,
            Self::Canceled => EndingKind::Canceled,
            Self::Lost => EndingKind::Lost,
        }
    }

    /// What to do about it, where it never ran and that is known.
    pub fn hint(&self) -> Option<&'static str> {
        let Self::NotStarted { detail, .. } = self else { return None };
        if detail.starts_with("the working directory ") {
            Some("Name one that is there inside with --cwd.")
        } else if detail.starts_with("the command is empty") {
            Some("Name a program behind --.")
        } else {
            None
        }
    }

    /// The exit code that stands for it: the command's own, 124 for time, 125 for set-up, 126 and
    /// 127 as a shell, 128 and the signal otherwise (137 for memory, output,
    /// lease, an alarm about a secret and lost, 130 for canceled).
    pub fn exit_code(&self) -> i32 {
        match self {
            Self::Exited(code) => *code,
            Self::Signaled(signal) => 128 + signal,
            Self::Killed(Cause::Time) => 124,
            Self::Killed(
                Cause::Memory
                | Cause::MemoryWithin { .. }
                | Cause::Output
                | Cause::Lease
                | Cause::SecretAlarm,
            )
            | Self::Lost => 137,
            Self::Killed(Cause::Pids { code } | Cause::Disk { code })
            | Self::NotStarted { code, .. } => *code,
            Self::SetupFailed { .. } => 125,
            Self::Canceled => 130,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_earlier_version_wrote_down_is_read() {
        let old: Ending = serde_json::from_str(r#"{"Killed":"Memory"}"#).unwrap();
        assert_eq!(old, Ending::Killed(Cause::Memory));
        let new = Ending::Killed(Cause::MemoryWithin { code: 5 });
        let text = serde_json::to_string(&new).unwrap();
        assert_eq!(serde_json::from_str::<Ending>(&text).unwrap(), new);
    }
}

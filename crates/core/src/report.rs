//! The objects that every door shows, as JSON.

use crate::ending::{Cause, Ending, EndingKind};
use crate::{Denial, Enforced, Error, LayerTier, Receipt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What came of one command. Format 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunReport {
    /// How it ended.
    pub ending: EndingReport,
    /// What to do, where it never ran and that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The exit code that stands for it.
    pub exit_code: i32,
    /// Standard output, where it is UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdout: Option<String>,
    /// Standard error, where it is UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr: Option<String>,
    /// Standard output in base64, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdout_base64: Option<String>,
    /// Standard error in base64, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr_base64: Option<String>,
    /// How many bytes were dropped over the limit of output.
    pub omitted: Omitted,
    /// From start to end, in milliseconds.
    pub duration_ms: f64,
    /// What it used.
    pub usage: UsageReport,
    /// How far the policy held.
    pub enforced: Enforced,
    /// What was denied, as the host saw it.
    pub denials: Vec<Denial>,
    /// Control files that appeared in the workspace, relative to it. They are looked for when the
    /// sandbox ends: absent for a command of a session, whose event of this name tells them then, and
    /// where the sandbox was kept or lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_control_files: Option<Vec<String>>,
    /// What made the layer of its workspace, where that was copy-on-write and went with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<LayerTier>,
    /// Why that was no overlay, where nobody asked for a copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier_why: Option<String>,
    /// The session that it ran in, where it ran in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Its id in that session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exec: Option<String>,
    /// What it did, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt: Option<Receipt>,
    /// How many processes that a command of a session left in the background were ended with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub killed_descendants: Option<u32>,
}

/// How much of a stream there is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StreamReport {
    /// Bytes that were written.
    pub written: u64,
    /// Bytes at the beginning that were dropped for want of room.
    pub dropped: u64,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EndingReport {
    /// Its stable name.
    pub kind: EndingKind,
    /// Its exit code, where it exited.
    pub code: Option<i32>,
    /// The signal that ended it, where one did.
    pub signal: Option<i32>,
    /// What could not be done, where it never ran.
    pub stage: Option<String>,
    /// Why it never ran, where it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// Bytes dropped over the limit of output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Omitted {
    /// Of standard output.
    pub stdout: u64,
    /// Of standard error.
    pub stderr: u64,
}

/// What a command used; null where it cannot be known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UsageReport {
    /// Processor time in milliseconds. Of `run` it is that of all its processes where a control group
    /// counts them. Elsewhere, and of a command of a session, it is that of the command and of those of its
    /// processes that were waited for: what it left in the background is not in it.
    pub cpu_ms: Option<f64>,
    /// The most memory it held, in bytes.
    pub peak_memory_bytes: Option<u64>,
}

/// An error as an object: `{"error":{"kind","message","hint"}}`. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorReport {
    /// The error.
    pub error: ErrorBody,
}

/// What an error object holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorBody {
    /// Its kind's stable name.
    pub kind: String,
    /// What happened, with its causes.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
}

/// What ends a command that is killed for a cause.
const SIGKILL: i32 = 9;

impl From<&Ending> for EndingReport {
    fn from(ending: &Ending) -> Self {
        let said =
            Self { kind: ending.kind(), code: None, signal: None, stage: None, detail: None };
        match ending {
            Ending::Exited(code)
            | Ending::Killed(
                Cause::MemoryWithin { code } | Cause::Pids { code } | Cause::Disk { code },
            ) => Self { code: Some(*code), ..said },
            Ending::Signaled(signal) => Self { signal: Some(*signal), ..said },
            Ending::Killed(
                Cause::Time | Cause::Memory | Cause::Output | Cause::Lease | Cause::SecretAlarm,
            ) => Self { signal: Some(SIGKILL), ..said },
            Ending::NotStarted { code: _, detail } => {
                Self { stage: Some(detail.clone()), detail: Some(detail.clone()), ..said }
            }
            Ending::SetupFailed { stage, detail } => {
                let stage = Some(format!("{stage}: {detail}"));
                Self { stage, detail: Some(detail.clone()), ..said }
            }
            Ending::Canceled | Ending::Lost => said,
        }
    }
}

impl From<&Error> for ErrorReport {
    fn from(error: &Error) -> Self {
        Self {
            error: ErrorBody {
                kind: error.kind.name().to_owned(),
                message: error.chain(),
                hint: error.hint.clone(),
            },
        }
    }
}

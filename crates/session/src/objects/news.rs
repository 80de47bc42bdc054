//! What is told of a command to one who follows it from elsewhere.

use crate::ExecReport;
use cofferdam_core::{
    Cause, Ending, EndingKind, Error, ErrorKind, ExecEnded, ExecStatus, ProcessId, Result, Spooled,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a command stands, for one who follows it. Format 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExecNews {
    /// The command.
    pub exec: ExecReport,
    /// How often a signal of job control stopped it; counted where it has a terminal.
    pub stops: u32,
    /// How many processes of it go on though it has ended; null once it can leave nothing any more.
    pub left: Option<u32>,
    /// The step that failed, where the sandbox was not set up for it, as the command has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
    /// Why it never ran, where it did not, as the command has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Why its end is no point of the history, told once, where it was to be one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_kept: Option<String>,
}

impl ExecNews {
    /// What is known of a command.
    pub fn new(exec: ExecReport, status: &ExecStatus, not_kept: Option<String>) -> Self {
        let (stage, detail) = (exec.stage.clone(), exec.detail.clone());
        Self { exec, stops: status.stops, left: status.left, stage, detail, not_kept }
    }

    /// The same as whoever follows a command of this machine has it.
    pub fn status(&self) -> Result<ExecStatus> {
        let exec = &self.exec;
        let ended = match (exec.ended_ms, exec.ending) {
            (Some(at_ms), Some(kind)) => {
                let denials = exec.denials.clone();
                let (usage, killed_descendants) = (exec.usage, exec.killed_descendants);
                let ending = self.ending(kind)?;
                Some(ExecEnded { ending, at_ms, usage, killed_descendants, denials })
            }
            (_, _) => None,
        };
        let spooled = |stream: cofferdam_core::StreamReport| Spooled {
            written: stream.written,
            dropped: stream.dropped,
        };
        Ok(ExecStatus {
            id: ProcessId::new(exec.id.clone())?,
            argv: exec.argv.clone(),
            detached: exec.detached,
            terminal: exec.terminal,
            stops: self.stops,
            started_ms: exec.started_ms,
            ended,
            left: self.left,
            stdout: spooled(exec.stdout),
            stderr: spooled(exec.stderr),
        })
    }

    fn ending(&self, kind: EndingKind) -> Result<Ending> {
        let code = || self.exec.exit_code.ok_or_else(|| incomplete("exit_code"));
        let detail = || self.detail.clone().unwrap_or_default();
        Ok(match kind {
            EndingKind::Exited => Ending::Exited(code()?),
            EndingKind::Signaled => {
                Ending::Signaled(self.exec.signal.ok_or_else(|| incomplete("signal"))?)
            }
            EndingKind::TimedOut => Ending::Killed(Cause::Time),
            EndingKind::OutOfMemory => Ending::Killed(match self.exec.code {
                Some(code) => Cause::MemoryWithin { code },
                None => Cause::Memory,
            }),
            EndingKind::Pids => Ending::Killed(Cause::Pids { code: code()? }),
            EndingKind::Output => Ending::Killed(Cause::Output),
            EndingKind::Disk => Ending::Killed(Cause::Disk { code: code()? }),
            EndingKind::Lease => Ending::Killed(Cause::Lease),
            EndingKind::SecretAlarm => Ending::Killed(Cause::SecretAlarm),
            EndingKind::NotStarted => Ending::NotStarted { code: code()?, detail: detail() },
            EndingKind::SetupFailed => Ending::SetupFailed {
                stage: self.stage.clone().unwrap_or_default(),
                detail: detail(),
            },
            EndingKind::Canceled => Ending::Canceled,
            EndingKind::Lost => Ending::Lost,
        })
    }
}

fn incomplete(field: &str) -> Error {
    Error::new(ErrorKind::Protocol, format!("the end of a command comes without {field}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_core::UsageReport;

    #[test]
    fn a_command_comes_back_as_it_went() {
        let endings = [
            Ending::Exited(3),
            Ending::Signaled(9),
            Ending::Killed(Cause::Time),
            Ending::Killed(Cause::Memory),
            Ending::Killed(Cause::MemoryWithin { code: 5 }),
            Ending::Killed(Cause::Output),
            Ending::Killed(Cause::Lease),
            Ending::Killed(Cause::SecretAlarm),
            Ending::Killed(Cause::Pids { code: 2 }),
            Ending::Killed(Cause::Disk { code: 1 }),
            Ending::NotStarted { code: 127, detail: "no such program".to_owned() },
            Ending::SetupFailed { stage: "mount".to_owned(), detail: "denied".to_owned() },
            Ending::Canceled,
            Ending::Lost,
        ];
        for ending in endings.map(Some).into_iter().chain([None]) {
            let ended = ending.map(|ending| ExecEnded {
                ending,
                at_ms: 7,
                usage: UsageReport { cpu_ms: Some(1.5), peak_memory_bytes: None },
                killed_descendants: Some(2),
                denials: Vec::new(),
            });
            let status = ExecStatus {
                id: ProcessId::new("x1").unwrap(),
                argv: vec!["a".to_owned()],
                detached: true,
                terminal: true,
                stops: 2,
                started_ms: 5,
                ended,
                left: Some(1),
                stdout: Spooled { written: 9, dropped: 1 },
                stderr: Spooled::default(),
            };
            let news = ExecNews::new(ExecReport::new(1, &status), &status, None);
            assert_eq!((&news.exec.stage, &news.exec.detail), (&news.stage, &news.detail));
            let text = serde_json::to_string(&news).unwrap();
            let read: ExecNews = serde_json::from_str(&text).unwrap();
            assert_eq!(read.status().unwrap(), status);
        }
    }
}

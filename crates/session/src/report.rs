//! The objects that every door shows, as JSON. Format 1 each. Values of variables are in none.

use crate::diff::quoted;
use crate::init::{InitFailure, InitState};
use crate::provision::{ManifestState, Provided};
use crate::store::{Row, StoredEvent};
use crate::{Event, Phase, SessionId, next};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use cofferdam_core::{
    Cause, Denial, Ending, EndingKind, Enforced, ExecStatus, LayerTier, SandboxStatus, SecretAlarm,
    Standard, StreamReport, UsageReport,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Bytes as every object has them: as text where they are UTF-8, otherwise in base64.
pub fn text_or_base64(bytes: Vec<u8>) -> (Option<String>, Option<String>) {
    match String::from_utf8(bytes) {
        Ok(text) => (Some(text), None),
        Err(error) => (None, Some(BASE64.encode(error.as_bytes()))),
    }
}

/// What [`text_or_base64`] made of the bytes of a name, for people: what is not text as git writes it.
pub fn text_or_quoted(text: Option<&str>, base64: Option<&str>) -> String {
    match (text, base64) {
        (Some(text), _) => text.to_owned(),
        (None, Some(base64)) => match BASE64.decode(base64) {
            Ok(bytes) => quoted(&bytes),
            Err(_) => base64.to_owned(),
        },
        (None, None) => String::new(),
    }
}

/// A session. Format 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionReport {
    /// Its id.
    pub id: String,
    /// Its name, if it has one.
    pub name: Option<String>,
    /// Whose it is: the name of a key; absent where it is the local user's.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub owner: String,
    /// The backend that keeps it.
    pub backend: String,
    /// How it stands.
    pub phase: Phase,
    /// Which of its sandboxes is the present one, from 1.
    pub incarnation: u32,
    /// What it may do, by the name of a profile.
    pub profile: String,
    /// The host's directory that it works in; null for one of its own.
    pub workspace: Option<String>,
    /// Whether what is written to the workspace lands in a layer beside that directory.
    #[serde(default)]
    pub copy_on_write: bool,
    /// What makes such a layer; null where there is none.
    #[serde(default)]
    pub tier: Option<LayerTier>,
    /// Why that is no overlay; null where it is one, or a copy was asked for, or there is no layer.
    #[serde(default)]
    pub tier_why: Option<String>,
    /// What of the workspace is not in the layer, or not as of one moment, each with the reason: the
    /// first of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layer_left_out: Vec<String>,
    /// The image that it lies on, as it was named; null on the host's root.
    #[serde(default)]
    pub image: Option<String>,
    /// What tells that image from all others.
    #[serde(default)]
    pub image_id: Option<String>,
    /// The secrets that it is granted, as they are written: by name, host and place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
    /// Why nothing runs in it until somebody resumes it: a secret that was used toward another host. Stays
    /// over a stop, and over the loss of its sandbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alarm: Option<SecretAlarm>,
    /// Where the workspace is inside, while there is a sandbox.
    pub workspace_inside: Option<String>,
    /// What it is found by.
    pub labels: BTreeMap<String, String>,
    /// How far it is prepared.
    pub init: InitState,
    /// What failed last while it was prepared.
    pub init_error: Option<InitFailure>,
    /// How far its manifest is carried out; absent where it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest: Option<ManifestState>,
    /// It is paused after it was not in use for so long, in milliseconds.
    pub idle_pause_ms: Option<u64>,
    /// It is removed at this moment, in milliseconds since 1970.
    pub lease_until_ms: Option<u64>,
    /// What could not be removed and is tried again at every start.
    pub cleanup_failed: Option<String>,
    /// Why its sandbox could not be asked how it stands; absent where it answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreachable: Option<String>,
    /// How far its policy holds, while there is a sandbox.
    pub enforced: Option<Enforced>,
    /// When it was made, in milliseconds since 1970.
    pub created_ms: u64,
    /// When it was written last, in milliseconds since 1970.
    pub updated_ms: u64,
}

/// A command of a session. Format 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExecReport {
    /// Its id.
    pub id: String,
    /// The sandbox that it runs in, by the number of the incarnation.
    pub incarnation: u32,
    /// Its words; bytes that are not text are replaced.
    pub argv: Vec<String>,
    /// Whether it was detached.
    pub detached: bool,
    /// Whether it has a terminal; all its output is then standard output.
    pub terminal: bool,
    /// When it was started, in milliseconds since 1970.
    pub started_ms: u64,
    /// When it ended, in milliseconds since 1970; null while it runs.
    pub ended_ms: Option<u64>,
    /// How it ended.
    pub ending: Option<EndingKind>,
    /// The signal that ended it, where one did.
    pub signal: Option<i32>,
    /// The exit code that stands for its ending.
    pub exit_code: Option<i32>,
    /// Its own exit code, where that is another one: it exited when a process of it was killed for want of
    /// memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// The step that failed, where the sandbox was not set up for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
    /// Why it never ran, where it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// How many processes of it go on though it has ended. It was detached; they end with the session,
    /// or by a signal to it.
    pub left: u32,
    /// What it used.
    pub usage: UsageReport,
    /// How many of its descendants still ran when it ended, and were killed, as was said inside; absent
    /// where nobody said it, and while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub killed_descendants: Option<u32>,
    /// What the sandbox was denied while it ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denials: Vec<Denial>,
    /// Its standard output.
    pub stdout: StreamReport,
    /// Its standard error.
    pub stderr: StreamReport,
}

/// Something that happened. Format 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EventReport {
    /// Its number, growing over all sessions.
    pub seq: u64,
    /// The session.
    pub session: String,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// What.
    pub kind: String,
    /// More about it.
    pub data: Map<String, Value>,
}

/// The commands of a session. Format 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExecList {
    /// The id of the session.
    pub session: String,
    /// Its commands, oldest first.
    pub execs: Vec<ExecReport>,
}

/// Events. Format 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EventList {
    /// The events, in order.
    pub events: Vec<EventReport>,
}

/// A part of what a command wrote. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogPart {
    /// The stream: `stdout` or `stderr`.
    pub stream: String,
    /// Where it begins; later than asked for where the beginning was dropped.
    pub offset: u64,
    /// Where the next part begins.
    pub next_offset: u64,
    /// What was written, where it is UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// What was written in base64, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
}

impl LogPart {
    /// These bytes of a stream, which begin there.
    pub fn new(stream: Standard, offset: u64, bytes: Vec<u8>) -> Self {
        let next_offset = offset.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        let (text, base64) = text_or_base64(bytes);
        let stream = match stream {
            Standard::Output => "stdout",
            Standard::Error => "stderr",
        };
        Self { stream: stream.to_owned(), offset, next_offset, text, base64 }
    }
}

/// How a sandbox stands, or why it could not be asked.
pub(crate) type Seen = std::result::Result<SandboxStatus, String>;

impl SessionReport {
    pub(crate) fn new(row: &Row, seen: Option<&Seen>) -> Self {
        let record = row.record.as_ref();
        let layer = record.and_then(|record| record.layer.as_ref()).or(row.facts.layer.as_ref());
        Self {
            id: row.id.to_string(),
            name: row.name.clone(),
            owner: row.owner.clone(),
            backend: row.backend.clone(),
            phase: shown(row.phase, seen.and_then(|seen| seen.as_ref().ok()).copied()),
            incarnation: row.incarnation,
            profile: row.spec.profile().to_owned(),
            workspace: row.spec.workspace(),
            copy_on_write: row.spec.is_copy_on_write(),
            tier: layer.map(|layer| layer.tier),
            tier_why: layer.and_then(|layer| layer.why.clone()),
            layer_left_out: layer.map(|layer| layer.left_out.clone()).unwrap_or_default(),
            image: row.spec.image().map(|image| image.name.clone()),
            image_id: row.spec.image().map(|image| image.id.clone()),
            secrets: row.spec.secrets(),
            alarm: None,
            workspace_inside: record.map(|record| record.workspace.clone()),
            labels: row.labels.clone(),
            init: row.facts.init.state(),
            init_error: row.facts.init.last_error.clone(),
            manifest: row.facts.manifest.as_ref().map(Provided::state),
            idle_pause_ms: row.facts.times.idle_pause_ms,
            lease_until_ms: row.facts.times.lease_until_ms,
            cleanup_failed: row.cleanup_failed.clone(),
            unreachable: seen.and_then(|seen| seen.as_ref().err()).cloned(),
            enforced: record.map(|record| record.enforced.clone()),
            created_ms: row.created_ms,
            updated_ms: row.updated_ms,
        }
    }
}

/// The phase as it would be written if somebody took in what is seen. Somebody may be at work on a
/// passing phase, so that is shown as it is.
fn shown(phase: Phase, seen: Option<SandboxStatus>) -> Phase {
    let event = match seen {
        _ if phase.is_passing() => return phase,
        None => return phase,
        Some(SandboxStatus::Running) => Event::FoundRunning,
        Some(SandboxStatus::Paused) => Event::FoundPaused,
        Some(SandboxStatus::Gone) => Event::FoundGone,
    };
    next(phase, event).phase
}

impl ExecReport {
    pub(crate) fn new(incarnation: u32, status: &ExecStatus) -> Self {
        let ended = status.ended.as_ref();
        let ending = ended.map(|ended| &ended.ending);
        let (stage, detail) = ending.map(why_not_run).unwrap_or_default();
        let stream =
            |s: cofferdam_core::Spooled| StreamReport { written: s.written, dropped: s.dropped };
        Self {
            id: status.id.to_string(),
            incarnation,
            argv: status.argv.clone(),
            detached: status.detached,
            terminal: status.terminal,
            started_ms: status.started_ms,
            ended_ms: ended.map(|ended| ended.at_ms),
            ending: ending.map(Ending::kind),
            signal: ending.and_then(signal),
            exit_code: ending.map(Ending::exit_code),
            code: ending.and_then(other_code),
            stage,
            detail,
            left: status.left.unwrap_or(0),
            usage: ended.map(|ended| ended.usage).unwrap_or_default(),
            killed_descendants: ended.and_then(|ended| ended.killed_descendants),
            denials: ended.map(|ended| ended.denials.clone()).unwrap_or_default(),
            stdout: stream(status.stdout),
            stderr: stream(status.stderr),
        }
    }
}

/// The step that failed and why a command never ran, where it did not.
fn why_not_run(ending: &Ending) -> (Option<String>, Option<String>) {
    match ending {
        Ending::NotStarted { code: _, detail } => (None, Some(detail.clone())),
        Ending::SetupFailed { stage, detail } => (Some(stage.clone()), Some(detail.clone())),
        Ending::Exited(_)
        | Ending::Signaled(_)
        | Ending::Killed(_)
        | Ending::Canceled
        | Ending::Lost => (None, None),
    }
}

/// The code that a command exited with, where another one stands for its ending.
fn other_code(ending: &Ending) -> Option<i32> {
    match ending {
        Ending::Killed(Cause::MemoryWithin { code }) => Some(*code),
        Ending::Exited(_)
        | Ending::Signaled(_)
        | Ending::Killed(
            Cause::Time
            | Cause::Memory
            | Cause::Output
            | Cause::Pids { .. }
            | Cause::Disk { .. }
            | Cause::Lease
            | Cause::SecretAlarm,
        )
        | Ending::NotStarted { .. }
        | Ending::SetupFailed { .. }
        | Ending::Canceled
        | Ending::Lost => None,
    }
}

/// The signal that a command died of.
fn signal(ending: &Ending) -> Option<i32> {
    match ending {
        Ending::Signaled(signal) => Some(*signal),
        Ending::Killed(
            Cause::Time | Cause::Memory | Cause::Output | Cause::Lease | Cause::SecretAlarm,
        ) => Some(9),
        Ending::Exited(_)
        | Ending::Killed(Cause::MemoryWithin { .. } | Cause::Pids { .. } | Cause::Disk { .. })
        | Ending::NotStarted { .. }
        | Ending::SetupFailed { .. }
        | Ending::Canceled
        | Ending::Lost => None,
    }
}

impl From<StoredEvent> for EventReport {
    fn from(event: StoredEvent) -> Self {
        Self {
            seq: event.seq,
            session: event.session.to_string(),
            at_ms: event.at_ms,
            kind: event.kind,
            data: event.data,
        }
    }
}

impl EventReport {
    /// The session that it is about.
    pub fn session_id(&self) -> cofferdam_core::Result<SessionId> {
        SessionId::new(self.session.clone())
    }
}

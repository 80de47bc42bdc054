//! Waiting for commands.

use crate::answer::{CALL_LIMIT, within};
use crate::time::bounded;
use cofferdam_core::{
    DurableBackend, ErrorKind, ExecStatus, ProcessId, Result, SandboxRecord, Seen,
};
use std::sync::Arc;
use std::time::Duration;

/// How long one question waits for news.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often in a row a question may go unanswered.
const RETRIES: usize = 3;
/// The wait before a question that was not answered is asked again.
const PAUSE: Duration = Duration::from_millis(100);

/// Waits until a command has ended.
pub(crate) async fn to_end(
    backend: &Arc<dyn DurableBackend>,
    record: &SandboxRecord,
    id: &ProcessId,
) -> Result<ExecStatus> {
    // Output is no news here.
    let seen = Seen { stdout: u64::MAX, stderr: u64::MAX, ..Seen::default() };
    loop {
        let status = news(backend, record, (id, seen), PATIENCE).await?;
        if status.ended.is_some() {
            return Ok(status);
        }
    }
}

/// Waits until there is news of a command, or `patience` is over. A question may be repeated, so one
/// that goes unanswered is.
pub(crate) async fn news(
    backend: &Arc<dyn DurableBackend>,
    record: &SandboxRecord,
    (id, seen): (&ProcessId, Seen),
    patience: Duration,
) -> Result<ExecStatus> {
    // A backend may count to its end with a clock of its own.
    let patience = bounded(patience);
    let mut failures = 0;
    loop {
        let watch = backend.watch(record, id, seen, patience);
        match within(patience + CALL_LIMIT, "watch a command", watch).await {
            Err(e)
                if matches!(e.kind, ErrorKind::Unavailable | ErrorKind::TimedOut)
                    && failures < RETRIES =>
            {
                failures += 1;
                tokio::time::sleep(PAUSE).await;
            }
            answer => return answer,
        }
    }
}

//! The log of a gate: a line of JSON a connection.

use super::failed;
use cofferdam_core::{ConnectionReport, Connections, Denial, Result, denials};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{MemfdFlags, OFlags};
use rustix::io::Errno;

/// Its name in the directory of a sandbox that is kept.
pub(crate) const LOG_NAME: &str = "egress.jsonl";

/// How much of it is read at a time.
const PIECE_BYTES: usize = 64 * 1024;
/// How much of it one look takes.
const LOOK_BYTES: usize = 1 << 20;

/// A log that is gone with the last who has it open.
pub(crate) fn in_memory() -> Result<OwnedFd> {
    let log = rustix::fs::memfd_create("cofferdam-egress", MemfdFlags::CLOEXEC);
    let log = log.map_err(failed("make the gate's log"))?;
    rustix::fs::fcntl_setfl(&log, OFlags::APPEND).map_err(failed("make the gate's log"))?;
    Ok(log)
}

/// What was denied from this byte on, as far as one look takes.
pub(crate) fn read_denials(log: impl AsFd, from: u64) -> Result<Vec<Denial>> {
    Ok(denials(&read(log, from)?.reports))
}

/// The entries from this byte on, as many as one look takes.
pub(crate) fn read(log: impl AsFd, from: u64) -> Result<Connections> {
    let mut text = Vec::new();
    while text.len() < LOOK_BYTES {
        let mut piece = vec![0; PIECE_BYTES];
        let at = from.saturating_add(text.len() as u64);
        match rustix::io::pread(&log, &mut piece[..], at) {
            Ok(0) => break,
            Ok(count) => text.extend_from_slice(piece.get(..count).unwrap_or_default()),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(failed("read the gate's log")(errno)),
        }
    }
    // A line that has no end yet is left for the next look.
    let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let lines = text.get(..whole).unwrap_or_default().split(|byte| *byte == b'\n');
    // What is no entry was torn by a crash.
    let reports = lines.filter_map(|line| serde_json::from_slice::<ConnectionReport>(line).ok());
    Ok(Connections { reports: reports.collect(), next: from.saturating_add(whole as u64) })
}

//! The log of a gate: a line of JSON a connection.

use super::failed;
use cofferdam_core::{ConnectionReport, Connections, Denial, Denials, Result};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{MemfdFlags, OFlags, SeekFrom};
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

/// What was denied from this byte on.
// LIMIT: the log holds [`super::LOG_BYTES`] at most.
pub(crate) fn read_denials(log: impl AsFd, from: u64) -> Result<Vec<Denial>> {
    let (mut found, mut from) = (Denials::default(), from);
    loop {
        let look = read(&log, from)?;
        look.reports.iter().for_each(|report| found.look_at(report));
        if look.next == from {
            return Ok(found.told());
        }
        from = look.next;
    }
}

/// The entries from this byte on, as many as one look takes. What was dropped meanwhile is passed over.
pub(crate) fn read(log: impl AsFd, from: u64) -> Result<Connections> {
    let Some(begins) = data(&log, from)? else {
        return Ok(Connections { next: from, ..Connections::default() });
    };
    let mut text = Vec::new();
    while text.len() < LOOK_BYTES {
        let mut piece = vec![0; PIECE_BYTES];
        let at = begins.saturating_add(text.len() as u64);
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
    // A hole ends where a line begins, and the file system tells of the block around it.
    let zeros = |line: &[u8]| line.iter().take_while(|byte| **byte == 0).count();
    let lines = lines.map(|line| line.get(zeros(line)..).unwrap_or_default());
    // What is no entry was torn by a crash.
    let reports = lines.filter_map(|line| serde_json::from_slice::<ConnectionReport>(line).ok());
    Ok(Connections { reports: reports.collect(), next: begins.saturating_add(whole as u64) })
}

/// Where something stands from this byte on. None where nothing does.
fn data(log: impl AsFd, from: u64) -> Result<Option<u64>> {
    match rustix::fs::seek(&log, SeekFrom::Data(from)) {
        Ok(begins) => Ok(Some(begins)),
        // What is shorter than it was has begun again.
        Err(Errno::NXIO) if from > size(&log)? => data(log, 0),
        Err(Errno::NXIO) => Ok(None),
        // A file system that does not say it has no holes.
        Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(Some(from)),
        Err(errno) => Err(failed("read the gate's log")(errno)),
    }
}

fn size(log: impl AsFd) -> Result<u64> {
    let stat = rustix::fs::fstat(log).map_err(failed("read the gate's log"))?;
    Ok(u64::try_from(stat.st_size).unwrap_or(0))
}

//! What a command writes, carried to the caller.

use super::input::stop_too;
use crate::door::Session;
use crate::report;
use cofferdam_core::{
    Ending, Error, ErrorKind, ExecEnded, ExecInput, ExecStatus, Omitted, Part, ProcessId, Result,
    Seen, Standard, UsageReport,
};
use std::io::Write;
use std::time::{Duration, SystemTime};

/// How long one question waits for news.
const PATIENCE: Duration = Duration::from_secs(20);
/// How much is read at once.
const PIECE_BYTES: u32 = 256 << 10;

/// Where the output of a command goes.
pub(crate) trait Sink {
    /// Takes what was written to a stream at an offset. `false`: nothing more is wanted.
    fn take(&mut self, stream: Standard, offset: u64, bytes: &[u8]) -> Result<bool>;

    /// So many bytes of a stream are not there any more.
    fn miss(&mut self, stream: Standard, bytes: u64);

    /// Whether this stream is wanted at all.
    fn wants(&self, _stream: Standard) -> bool {
        true
    }

    /// Whether a command that nobody reads any more is told so, as by a broken pipe.
    fn ends_with_its_reader(&self) -> bool {
        false
    }

    /// Whether what a command left is wanted too, beyond its end.
    fn wants_what_is_left(&self) -> bool {
        false
    }
}

/// Carries output until the command has ended and all is carried, or nothing more is wanted.
pub(super) async fn pump(
    whom: (&Session, &ProcessId),
    from: Seen,
    sink: &mut (impl Sink + Send),
) -> Result<ExecStatus> {
    let mut last = None;
    match carry(whom, from, sink, &mut last).await {
        // Nobody can ask any more how it ended. It is gone with its session, as it is for one who heard of that in time.
        Err(error) if error.kind == ErrorKind::NotFound => {
            last.map(ended_with_its_session).ok_or(error)
        }
        carried => carried,
    }
}

fn ended_with_its_session(last: ExecStatus) -> ExecStatus {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let ended = ExecEnded {
        ending: Ending::Canceled,
        at_ms: u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
        usage: UsageReport::default(),
        killed_descendants: None,
        denials: Vec::new(),
    };
    ExecStatus { ended: last.ended.or(Some(ended)), left: None, ..last }
}

/// The same, as long as there is somebody to ask. What was told of it last is in `last`.
async fn carry(
    (session, exec): (&Session, &ProcessId),
    from: Seen,
    sink: &mut (impl Sink + Send),
    last: &mut Option<ExecStatus>,
) -> Result<ExecStatus> {
    let mut seen = from;
    let [mut out_is_unread, mut err_is_unread] = [false; 2];
    let mut is_followed = false;
    loop {
        // Whoever begins to follow wakes the session. Who pauses it then means it.
        let status = match is_followed {
            false => session.follow(exec, seen, PATIENCE).await?,
            true => session.follow_on(exec, seen, PATIENCE).await?,
        };
        is_followed = true;
        *last = Some(status.clone());
        let [stdout, stderr] = written(&status);
        let streams = [
            (Standard::Output, &mut seen.stdout, stdout, &mut out_is_unread),
            (Standard::Error, &mut seen.stderr, stderr, &mut err_is_unread),
        ];
        for (stream, seen, written, is_unread) in streams {
            if *is_unread || !sink.wants(stream) {
                *seen = (*seen).max(written);
            }
            let carried = match drain((session, exec), sink, (stream, &mut *seen), written).await {
                // The session went with the command: how that ended is known, and no more of this stream.
                Err(error) if status.ended.is_some() && error.kind == ErrorKind::NotFound => {
                    if written != u64::MAX {
                        sink.miss(stream, written.saturating_sub(*seen));
                    }
                    true
                }
                carried => carried?,
            };
            if !*is_unread && !carried {
                *is_unread = true;
                if !sink.ends_with_its_reader() {
                    return Ok(status);
                }
                // It may have ended meanwhile. A keeper of an earlier version knows of signals alone.
                if session.input(exec, &ExecInput::Unread(stream)).await.is_err() {
                    let _ = session.input(exec, &ExecInput::Signal(SIGPIPE)).await;
                }
            }
        }
        if status.ended.is_some() {
            if status.left.is_none() || !sink.wants_what_is_left() {
                return Ok(status);
            }
            seen.end = true;
        }
        if seen.stops.is_some_and(|known| status.stops > known) {
            seen.stops = Some(status.stops);
            stop_too();
        }
    }
}

/// How far the streams go. Nobody counted for a command that was lost: as far as anything is there.
fn written(status: &ExecStatus) -> [u64; 2] {
    match status.ended.as_ref().map(|ended| &ended.ending) {
        Some(Ending::Lost) => [u64::MAX; 2],
        _ => [status.stdout.written, status.stderr.written],
    }
}

/// What a program gets that writes where nobody reads.
const SIGPIPE: i32 = 13;

async fn drain(
    (session, exec): (&Session, &ProcessId),
    sink: &mut (impl Sink + Send),
    (stream, seen): (Standard, &mut u64),
    written: u64,
) -> Result<bool> {
    while *seen < written {
        let chunk = session.read(exec, Part { stream, offset: *seen, len: PIECE_BYTES }).await?;
        if chunk.offset > *seen {
            sink.miss(stream, chunk.offset - *seen);
        }
        if chunk.bytes.is_empty() {
            // What was written last and found no room. Of a lost command nobody knows how much that is.
            if written != u64::MAX {
                sink.miss(stream, written - (*seen).max(chunk.offset).min(written));
            }
            *seen = written;
            break;
        }
        let len = u64::try_from(chunk.bytes.len()).unwrap_or(u64::MAX);
        *seen = chunk.offset.saturating_add(len);
        if !sink.take(stream, chunk.offset, &chunk.bytes)? {
            *seen = (*seen).max(written);
            return Ok(false);
        }
    }
    Ok(true)
}

/// The caller's own streams.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Streams {
    /// One of them alone.
    pub(crate) only: Option<Standard>,
    /// See [`Sink::ends_with_its_reader`].
    pub(crate) ends_with_its_reader: bool,
    /// See [`Sink::wants_what_is_left`].
    pub(crate) wants_what_is_left: bool,
    /// The command is killed for more than so many bytes; what it wrote until then is not shown.
    pub(crate) limit_bytes: Option<u64>,
}

impl Sink for Streams {
    fn take(&mut self, stream: Standard, offset: u64, bytes: &[u8]) -> Result<bool> {
        let bytes = below(self.limit_bytes, offset, bytes);
        let written = match stream {
            Standard::Output => whole(&mut std::io::stdout().lock(), bytes),
            Standard::Error => whole(&mut std::io::stderr().lock(), bytes),
        };
        match written {
            Ok(()) => Ok(true),
            Err(cause) if cause.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
            Err(cause) => {
                let what = format!("write to standard {}", name(stream));
                Err(Error::new(ErrorKind::Io, what).source(cause))
            }
        }
    }

    fn miss(&mut self, stream: Standard, bytes: u64) {
        let name = name(stream);
        report::note(&format!("{bytes} bytes of standard {name} were dropped for want of room"));
    }

    fn wants(&self, stream: Standard) -> bool {
        self.only.is_none_or(|only| only == stream)
    }

    fn ends_with_its_reader(&self) -> bool {
        self.ends_with_its_reader
    }

    fn wants_what_is_left(&self) -> bool {
        self.wants_what_is_left
    }
}

/// What of these bytes, which begin at an offset, is below a limit.
fn below(limit_bytes: Option<u64>, offset: u64, bytes: &[u8]) -> &[u8] {
    let room = limit_bytes.map_or(u64::MAX, |limit| limit.saturating_sub(offset));
    let room = usize::try_from(room).unwrap_or(usize::MAX);
    bytes.get(..room).unwrap_or(bytes)
}

fn whole(to: &mut impl Write, bytes: &[u8]) -> std::io::Result<()> {
    to.write_all(bytes)?;
    to.flush()
}

fn name(stream: Standard) -> &'static str {
    match stream {
        Standard::Output => "output",
        Standard::Error => "error",
    }
}

/// The beginning of both streams.
#[derive(Debug, Clone, Default)]
pub(crate) struct Memory {
    /// The most that is kept of each.
    pub(crate) limit_bytes: u64,
    /// Standard output.
    pub(crate) stdout: Vec<u8>,
    /// Standard error.
    pub(crate) stderr: Vec<u8>,
    /// What is not kept.
    pub(crate) omitted: Omitted,
}

impl Memory {
    /// Keeps at most so much of each.
    pub(crate) fn of(limit_bytes: u64) -> Self {
        Self { limit_bytes, ..Self::default() }
    }
}

impl Sink for Memory {
    fn take(&mut self, stream: Standard, _offset: u64, bytes: &[u8]) -> Result<bool> {
        let (kept, omitted) = match stream {
            Standard::Output => (&mut self.stdout, &mut self.omitted.stdout),
            Standard::Error => (&mut self.stderr, &mut self.omitted.stderr),
        };
        let limit = usize::try_from(self.limit_bytes).unwrap_or(usize::MAX);
        // What comes after a gap is no beginning any more.
        let room = if *omitted > 0 { 0 } else { limit.saturating_sub(kept.len()) };
        let (taken, rest) = bytes.split_at(room.min(bytes.len()));
        kept.extend_from_slice(taken);
        *omitted = omitted.saturating_add(u64::try_from(rest.len()).unwrap_or(u64::MAX));
        Ok(true)
    }

    fn miss(&mut self, stream: Standard, bytes: u64) {
        let omitted = match stream {
            Standard::Output => &mut self.omitted.stdout,
            Standard::Error => &mut self.omitted.stderr,
        };
        *omitted = omitted.saturating_add(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beyond_a_limit_is_not_shown() {
        assert_eq!(below(None, 9, b"abc"), b"abc");
        assert_eq!(below(Some(4), 2, b"abc"), b"ab");
        assert_eq!(below(Some(4), 5, b"abc"), b"");
        assert_eq!(below(Some(4), 1, b"abc"), b"abc");
    }

    #[test]
    fn memory_keeps_a_beginning_and_counts_the_rest() {
        let mut memory = Memory::of(4);
        assert!(memory.take(Standard::Output, 0, b"ab").unwrap());
        assert!(memory.take(Standard::Output, 2, b"cdef").unwrap());
        assert!(memory.take(Standard::Error, 0, b"x").unwrap());
        memory.miss(Standard::Error, 5);
        assert!(memory.take(Standard::Error, 6, b"y").unwrap());
        assert_eq!(memory.stdout, b"abcd");
        assert_eq!(memory.stderr, b"x");
        assert_eq!(memory.omitted, Omitted { stdout: 2, stderr: 6 });
    }
}

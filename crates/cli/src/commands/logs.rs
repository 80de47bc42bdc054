//! `cofferdam logs`.

use super::attach::told_end;
use super::run::CAPTURED_BYTES;
use crate::args::choice;
use crate::door::Session;
use crate::follow::{Left, Memory, Passed, Sink, Streams, follow};
use crate::{exit, render, sessions};
use clap::Args;
use cofferdam_core::{EndingKind, Part, ProcessId, Result, Seen, Standard};
use cofferdam_session::ExecReport;
pub(crate) use cofferdam_session::LogPart;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Prints what a command of a session wrote.
///
/// Standard output goes to standard output and standard error to standard error. Works while the
/// command runs, after it ended, and after its sandbox was lost. What a detached command left running
/// writes here too. What was dropped for want of room is said on standard error, and with --follow that the
/// session was stopped or removed meanwhile, or its sandbox died.
///
/// Example: cofferdam logs agent-1 server -f
#[derive(Debug, Args)]
#[command(after_long_help = super::ORDINARY_EXIT_CODES)]
pub(crate) struct LogsArgs {
    /// The session: its name or id, or the beginning of one.
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,

    /// The command's id, or the beginning of it.
    #[arg(value_name = "EXEC")]
    pub(crate) exec: String,

    /// Begins at this byte of each stream. Default: 0.
    ///
    /// Example: --offset 4096
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    #[arg(allow_negative_numbers = true)]
    pub(crate) offset: u64,

    /// Begins so many lines before the end of each stream.
    ///
    /// Example: --tail 20
    #[arg(long, value_name = "LINES", conflicts_with = "offset")]
    pub(crate) tail: Option<u64>,

    /// Goes on until the command has ended, and all that it left.
    ///
    /// Example: -f
    #[arg(short = 'f', long)]
    pub(crate) follow: bool,

    /// Prints one stream alone: stdout or stderr.
    ///
    /// Example: --stream stderr
    #[arg(long, value_name = "STREAM", value_parser = choice::<Standard>())]
    pub(crate) stream: Option<Standard>,

    /// Prints one JSON object on standard output; with -f one object a line, as output comes.
    ///
    /// Example: --json
    #[arg(long)]
    pub(crate) json: bool,
}

/// How much is read at once.
const PIECE_BYTES: u32 = 256 << 10;

/// What `logs --json` prints. Format 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Log {
    /// The id of the session.
    pub(crate) session: String,
    /// The command.
    pub(crate) exec: ExecReport,
    /// What it wrote, at most one part of each stream.
    pub(crate) parts: Vec<LogPart>,
}

/// Prints what the command wrote.
pub(super) fn perform(args: &LogsArgs) -> Result<u8> {
    sessions::with(async |sessions| {
        let session = sessions::find(sessions, &args.session).await?;
        let exec = sessions::find_exec(&session, &args.exec, sessions::Written::Cut).await?;
        match (args.follow, args.json) {
            (true, true) => {
                goes_on(args, &session, &exec, &mut Lines { only: args.stream }).await?
            }
            (true, false) => goes_on(args, &session, &exec, &mut own_streams(args)).await?,
            (false, false) => so_far(args, &session, &exec, &mut own_streams(args)).await?,
            (false, true) => print_object(args, &session, &exec).await?,
        }
        Ok(exit::DONE)
    })
}

fn own_streams(args: &LogsArgs) -> Streams {
    Streams {
        only: args.stream,
        ends_with_its_reader: false,
        wants_what_is_left: true,
        limit_bytes: None,
    }
}

async fn goes_on(
    args: &LogsArgs,
    session: &Session,
    exec: &ProcessId,
    sink: &mut (impl Sink + Send),
) -> Result<()> {
    sessions::wake_for(session, exec).await?;
    let [stdout, stderr] = begins(args, session, exec).await?;
    let from = Seen { stdout, stderr, ..Seen::default() };
    let is_running = session.status(exec).await?.ending.is_none();
    match follow((session, exec), from, sink, Passed::nothing()).await? {
        Left::Ended(status) if is_running => {
            // The exit code is that of showing it, which was done.
            told_end(session, Some(&status)).await;
            Ok(())
        }
        Left::Ended(_) | Left::Running | Left::Abandoned => Ok(()),
    }
}

/// Carries what is there now. A session that sleeps goes on sleeping.
async fn so_far(
    args: &LogsArgs,
    session: &Session,
    exec: &ProcessId,
    sink: &mut (impl Sink + Send),
) -> Result<()> {
    let status = session.status(exec).await?;
    let [stdout, stderr] = begins(args, session, exec).await?;
    // Nobody counted for a command that was lost: as far as anything is there.
    let is_lost = status.ending == Some(EndingKind::Lost);
    for (stream, begins, counted) in [
        (Standard::Output, stdout, status.stdout.written),
        (Standard::Error, stderr, status.stderr.written),
    ] {
        let end = if is_lost { u64::MAX } else { counted };
        let mut offset = begins;
        while sink.wants(stream) && offset < end {
            let chunk = session.read(exec, Part { stream, offset, len: PIECE_BYTES }).await?;
            if chunk.offset > offset {
                sink.miss(stream, chunk.offset - offset);
            }
            let len = u64::try_from(chunk.bytes.len()).unwrap_or(u64::MAX);
            if len == 0 || !sink.take(stream, chunk.offset, &chunk.bytes)? {
                break;
            }
            offset = chunk.offset.saturating_add(len);
        }
    }
    Ok(())
}

/// Where each stream is printed from.
async fn begins(args: &LogsArgs, session: &Session, exec: &ProcessId) -> Result<[u64; 2]> {
    let Some(lines) = args.tail else { return Ok([args.offset; 2]) };
    let status = session.status(exec).await?;
    let mut begins = [0; 2];
    let wants = |stream| args.stream.is_none_or(|only| only == stream);
    for (begin, stream) in begins.iter_mut().zip([Standard::Output, Standard::Error]) {
        if wants(stream) {
            let end = end_of(session, (exec, stream), &status).await?;
            *begin = before_last_lines(session, (exec, stream), (end, lines)).await?;
        }
    }
    Ok(begins)
}

/// Where the last lines of a stream that ends there begin, as far as they are kept.
async fn before_last_lines(
    session: &Session,
    of: (&ProcessId, Standard),
    (end, lines): (u64, u64),
) -> Result<u64> {
    let (mut from, mut left) = (end, lines);
    while from > 0 && left > 0 {
        let window = from.saturating_sub(u64::from(PIECE_BYTES))..from;
        let LinesWithin { begins, kept_from } = lines_within(session, of, window.clone()).await?;
        // What lies at the very end ends the last line, and begins none.
        for begin in begins.into_iter().rev().filter(|begin| *begin < end) {
            left -= 1;
            if left == 0 {
                return Ok(begin);
            }
        }
        if kept_from > window.start {
            return Ok(kept_from);
        }
        from = window.start;
    }
    Ok(if lines == 0 { end } else { 0 })
}

/// What a part of a stream holds.
struct LinesWithin {
    /// Behind each end of a line.
    begins: Vec<u64>,
    /// Where what is kept in one piece to its end begins.
    kept_from: u64,
}

async fn lines_within(
    session: &Session,
    (exec, stream): (&ProcessId, Standard),
    window: Range<u64>,
) -> Result<LinesWithin> {
    let mut found = LinesWithin { begins: Vec::new(), kept_from: window.start };
    let mut offset = window.start;
    while offset < window.end {
        let len = u32::try_from(window.end - offset).unwrap_or(PIECE_BYTES);
        let chunk = session.read(exec, Part { stream, offset, len }).await?;
        if chunk.offset > offset {
            found = LinesWithin { begins: Vec::new(), kept_from: chunk.offset };
        }
        if chunk.bytes.is_empty() {
            break;
        }
        offset = chunk.offset;
        for byte in chunk.bytes {
            offset += 1;
            if byte == b'\n' {
                found.begins.push(offset);
            }
        }
    }
    Ok(found)
}

/// How far a stream was written. Nobody counted for a command that was lost.
async fn end_of(
    session: &Session,
    (exec, stream): (&ProcessId, Standard),
    status: &ExecReport,
) -> Result<u64> {
    let mut end = match stream {
        Standard::Output => status.stdout.written,
        Standard::Error => status.stderr.written,
    };
    while status.ending == Some(EndingKind::Lost) {
        let chunk = session.read(exec, Part { stream, offset: end, len: PIECE_BYTES }).await?;
        let len = u64::try_from(chunk.bytes.len()).unwrap_or(u64::MAX);
        if len == 0 {
            break;
        }
        end = chunk.offset.saturating_add(len);
    }
    Ok(end)
}

async fn print_object(args: &LogsArgs, session: &Session, exec: &ProcessId) -> Result<()> {
    let mut parts =
        Parts { kept: Memory::of(CAPTURED_BYTES), only: args.stream, begins: [None; 2] };
    so_far(args, session, exec, &mut parts).await?;
    let Parts { kept, only, begins: [stdout, stderr] } = parts;
    let streams = [(Standard::Output, stdout, kept.stdout), (Standard::Error, stderr, kept.stderr)];
    let parts = streams
        .into_iter()
        .filter(|(stream, ..)| only.is_none_or(|only| only == *stream))
        .map(|(stream, begins, bytes)| LogPart::new(stream, begins.unwrap_or(args.offset), bytes))
        .collect();
    let session_id = session.id().to_string();
    render::print_json(&Log { session: session_id, exec: session.status(exec).await?, parts })
}

/// Memory that knows where it begins.
struct Parts {
    kept: Memory,
    only: Option<Standard>,
    begins: [Option<u64>; 2],
}

impl Sink for Parts {
    fn take(&mut self, stream: Standard, offset: u64, bytes: &[u8]) -> Result<bool> {
        let [stdout, stderr] = &mut self.begins;
        let begins = match stream {
            Standard::Output => stdout,
            Standard::Error => stderr,
        };
        begins.get_or_insert(offset);
        self.kept.take(stream, offset, bytes)
    }

    fn miss(&mut self, _stream: Standard, _bytes: u64) {
        // Where the part begins says it.
    }

    fn wants(&self, stream: Standard) -> bool {
        self.only.is_none_or(|only| only == stream)
    }
}

/// An object a line on standard output.
struct Lines {
    only: Option<Standard>,
}

impl Sink for Lines {
    fn take(&mut self, stream: Standard, offset: u64, bytes: &[u8]) -> Result<bool> {
        render::print_json(&LogPart::new(stream, offset, bytes.to_vec())).map(|()| true)
    }

    fn miss(&mut self, _stream: Standard, _bytes: u64) {
        // The offset of the next line says it.
    }

    fn wants_what_is_left(&self) -> bool {
        true
    }

    fn wants(&self, stream: Standard) -> bool {
        self.only.is_none_or(|only| only == stream)
    }
}

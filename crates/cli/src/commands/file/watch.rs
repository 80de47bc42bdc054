//! `cofferdam file watch`.

use super::AnswerOptions;
use crate::blocking::Outgoing;
use crate::door::Session;
use crate::listen::{ENDING, Listening};
use crate::render;
use clap::Args;
use cofferdam_core::files::{
    FileEvent, FileWatch, MAX_DEPTH, MAX_PENDING_EVENTS, MAX_WATCHED_DIRECTORIES, Watch,
};
use cofferdam_core::{Error, ErrorKind, Files, Result, parse_duration};
use cofferdam_search::EventFilter;
use cofferdam_session::objects::FileEventReport;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::ffi::OsString;
use std::io::{self, Write};
use std::time::Duration;

/// Tells what happens to files, a line for each event, while it happens.
///
/// The first line says ready: whatever happens from then on is told. The others say created, modified
/// (a file was closed after writing), attributes, removed or renamed, with paths from the workspace on;
/// what is made in a new directory may be told twice. No link is followed. Where events come faster than
/// they are read, overflow says that some were lost: look at everything again; unwatched names a
/// directory that cannot be watched. It ends by Ctrl-C, and while it runs the session does not fall
/// asleep. What the host changes below a copy-on-write workspace is not seen.
///
/// Example: cofferdam file watch agent-1 src --glob '**/*.rs'
#[derive(Debug, Args)]
#[command(after_long_help = crate::commands::ORDINARY_EXIT_CODES)]
pub(crate) struct WatchArgs {
    /// The session: its name or id, or the beginning of one.
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,

    /// The files and directories, which are there; directories with all below. Default: the workspace.
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<OsString>,

    /// Watches so many levels of a directory, at most 128. Default: all of these.
    ///
    /// Example: --depth 2
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MAX_DEPTH as i64))]
    pub(crate) depth: Option<u32>,

    /// Watches the entries of a directory alone, as --depth 1 does.
    ///
    /// Example: --no-recursive
    #[arg(long, conflicts_with = "depth")]
    pub(crate) no_recursive: bool,

    /// Tells only of paths that this matches, as in `file glob`, from the workspace on. Can be repeated.
    ///
    /// Example: --glob '**/*.rs'
    #[arg(long, value_name = "PATTERN")]
    pub(crate) glob: Vec<String>,

    /// Ends after so many events; ready and unwatched do not count.
    ///
    /// Example: --count 10
    #[arg(short = 'n', long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,

    /// Ends after one event, as --count 1 does.
    ///
    /// Example: --once
    #[arg(long, conflicts_with = "count")]
    pub(crate) once: bool,

    /// Ends after this time, which is an error where the events of --count did not come. Default: never.
    ///
    /// Example: --timeout 30s
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) timeout: Option<Duration>,

    /// Refuses to watch more directories than this. Default, and at most: 65536.
    ///
    /// Example: --max-directories 1000
    #[arg(long, value_name = "N", default_value_t = MAX_WATCHED_DIRECTORIES, hide_default_value = true,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_WATCHED_DIRECTORIES)))]
    pub(crate) max_directories: u32,

    /// Lets so many events wait for a reader before they are lost. Default, and at most: 16384.
    ///
    /// Example: --max-pending 1000
    #[arg(long, value_name = "N", default_value_t = MAX_PENDING_EVENTS, hide_default_value = true,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_PENDING_EVENTS)))]
    pub(crate) max_pending: u32,

    #[command(flatten)]
    pub(crate) answer: AnswerOptions,
}

/// How many bytes of lines are printed together.
const TOGETHER_BYTES: usize = 32 << 10;

/// Why nothing more is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// All events that were asked for came.
    Counted,
    /// Nobody reads any more.
    Unread,
    /// The time is over.
    TimeOver,
    /// Somebody asked for it.
    Asked,
}

impl WatchArgs {
    fn order(&self) -> Watch {
        let depth = if self.no_recursive { Some(1) } else { self.depth };
        Watch {
            paths: self.paths.iter().map(super::path).collect(),
            depth: depth.unwrap_or(u32::MAX),
            max_directories: self.max_directories,
            max_pending: self.max_pending,
        }
    }

    fn count(&self) -> Option<u64> {
        if self.once { Some(1) } else { self.count }
    }
}

/// Tells what happens until somebody or something ends it.
pub(super) async fn perform(args: &WatchArgs, session: &Session, files: &Files) -> Result<()> {
    let filter = match args.glob.as_slice() {
        [] => None,
        patterns => Some(EventFilter::new(patterns, false)?),
    };
    let mut signals = Listening::to(&ENDING)?;
    let order = args.order();
    let begun = tokio::select! {
        begun = files.watch(&order) => begun?,
        _ = signals.next() => return over(args, End::Asked),
    };
    let mut told = Told { args, session: session.id().to_string(), filter, left: args.count() };
    let time_over = async {
        match args.timeout {
            Some(timeout) => tokio::time::sleep(timeout).await,
            None => std::future::pending().await,
        }
    };
    let end = tokio::select! {
        end = told.tell(begun) => end?,
        () = unread() => End::Unread,
        () = time_over => End::TimeOver,
        _ = signals.next() => End::Asked,
    };
    over(args, end)
}

fn over(args: &WatchArgs, end: End) -> Result<()> {
    let kind = match end {
        End::Counted | End::Unread => return Ok(()),
        End::TimeOver => ErrorKind::TimedOut,
        End::Asked => ErrorKind::Canceled,
    };
    match args.count() {
        Some(count) => {
            Err(Error::new(kind, format!("the watch ended before {count} events had come")))
        }
        None => Ok(()),
    }
}

/// What is told, and of whom.
struct Told<'a> {
    args: &'a WatchArgs,
    session: String,
    filter: Option<EventFilter>,
    /// How many events are to be told still; all without it.
    left: Option<u64>,
}

impl Told<'_> {
    async fn tell(&mut self, mut watch: FileWatch) -> Result<End> {
        while self.left != Some(0) {
            let mut lines = Vec::new();
            self.add(&watch.next().await?, &mut lines)?;
            // What is there already goes with it.
            while self.left != Some(0)
                && lines.len() < TOGETHER_BYTES
                && let Ok(event) = tokio::time::timeout(Duration::ZERO, watch.next()).await
            {
                match event {
                    Ok(event) => self.add(&event, &mut lines)?,
                    // ORDER: what was told before it ended is printed before that is said.
                    Err(error) => return print(lines).await.and(Err(error)),
                }
            }
            if print(lines).await? == Reader::Gone {
                return Ok(End::Unread);
            }
        }
        Ok(End::Counted)
    }

    fn add(&mut self, event: &FileEvent, lines: &mut Vec<u8>) -> Result<()> {
        if self.filter.as_ref().is_some_and(|filter| !filter.wants(event)) {
            return Ok(());
        }
        if !matches!(event, FileEvent::Ready { .. } | FileEvent::Unwatched { .. }) {
            self.left = self.left.map(|left| left.saturating_sub(1));
        }
        match self.args.answer.json {
            true => serde_json::to_writer(&mut *lines, &FileEventReport::new(&self.session, event))
                .map_err(|e| Error::new(ErrorKind::Io, "write an event as JSON").source(e))?,
            false => lines.extend(render::plain(&super::watch_report::line(event)).bytes()),
        }
        lines.push(b'\n');
        Ok(())
    }
}

/// Whether somebody reads what is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reader {
    There,
    Gone,
}

/// Prints beside whatever else is waited for: a reader may be slow, and Ctrl-C is heard all the same.
async fn print(lines: Vec<u8>) -> Result<Reader> {
    let print = move || {
        let mut out = Outgoing::to_stdout(io::stdout().lock());
        out.write_all(&lines).and_then(|()| out.flush())
    };
    match tokio::task::spawn_blocking(print).await {
        Ok(Ok(())) => Ok(Reader::There),
        // Whoever read it has read enough, as `head` does.
        Ok(Err(cause)) if cause.kind() == io::ErrorKind::BrokenPipe => Ok(Reader::Gone),
        Ok(Err(cause)) => Err(Error::new(ErrorKind::Io, "print what happened").source(cause)),
        Err(cause) => Err(Error::new(ErrorKind::Io, "write to standard output").source(cause)),
    }
}

/// Ends when nobody can read standard output any more. A file is read at any time.
async fn unread() {
    let wait = || {
        let out = io::stdout();
        let mut fds = [PollFd::new(&out, PollFlags::empty())];
        // That its reader is gone is said unasked.
        while poll(&mut fds, None) == Err(Errno::INTR) {}
    };
    let _ = tokio::task::spawn_blocking(wait).await;
}

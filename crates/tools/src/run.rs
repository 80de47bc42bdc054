//! Commands that a call waits for.

use crate::context::{Progress, Watched};
use crate::plain::{Holed, clean};
use cofferdam_core::{
    Ending, EndingKind, Error, ErrorKind, ExecInput, ExecStatus, Part, ProcessId, Result, Seen,
    Standard, Stdin,
};
use cofferdam_session::{SOON, Session};
use std::time::Duration;

/// How long one question waits where nobody wants to know how far it is.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often somebody who listens is told how far it is.
const TELL_EVERY: Duration = Duration::from_secs(1);
/// How long a command that was killed may take to end.
const ENDS_WITHIN: Duration = Duration::from_secs(20);
/// The longest time that any command is waited for, whatever a call says: a day.
const MAX_TIMEOUT: Duration = Duration::from_hours(24);
/// How much is read at once.
const PIECE_BYTES: u64 = 256 << 10;

/// A command that somebody wants to have run.
pub(crate) struct Wanted<'w> {
    /// Its words.
    pub(crate) argv: Vec<&'w str>,
    /// Where, relative to the workspace or absolute inside.
    pub(crate) cwd: Option<&'w str>,
    /// What it reads, and then nothing more.
    pub(crate) input: Option<&'w [u8]>,
    /// When it is killed.
    pub(crate) timeout_ms: u64,
}

/// A command that ended.
pub(crate) struct Finished {
    session: Session,
    pub(crate) status: ExecStatus,
    pub(crate) ending: EndingKind,
    pub(crate) exit_code: i32,
    pub(crate) duration_ms: u64,
    /// Why nothing of it ran, where nothing did.
    pub(crate) not_started: Option<String>,
}

/// The beginning and the end of a stream; the beginning is all of it where the end is empty, and there is none
/// where it was dropped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Ends {
    pub(crate) head: Vec<u8>,
    pub(crate) tail: Vec<u8>,
    /// How many bytes were written.
    pub(crate) written: u64,
    /// How many of these were dropped for want of room before anything that is still there.
    pub(crate) dropped: u64,
}

impl Ends {
    /// How many bytes are between the two.
    pub(crate) fn omitted(&self) -> u64 {
        self.written.saturating_sub((self.head.len() + self.tail.len()) as u64)
    }

    /// Both as plain text, with what is between them.
    pub(crate) fn plain(&self) -> Holed {
        let text = |bytes: &[u8]| clean(&String::from_utf8_lossy(bytes));
        match self.omitted() {
            0 => Holed::whole(text(&self.head)),
            omitted => Holed::new(&text(&self.head), omitted, &text(&self.tail)),
        }
    }
}

impl<'w> Wanted<'w> {
    /// A line for a shell.
    pub(crate) fn line(command: &'w str, timeout_ms: u64) -> Self {
        Self { argv: vec!["/bin/sh", "-c", command], cwd: None, input: None, timeout_ms }
    }
}

/// Where a command starts: nowhere but in the workspace unless somebody says an absolute path.
pub(crate) async fn directory(session: &Session, cwd: Option<&str>) -> Result<Option<String>> {
    let Some(cwd) = cwd else { return Ok(None) };
    if cwd.starts_with('/') {
        return Ok(Some(cwd.to_owned()));
    }
    let report = session.sessions().status(session.id()).await?;
    let workspace = report.workspace_inside.unwrap_or_else(|| "/workspace".to_owned());
    Ok(Some(format!("{}/{cwd}", workspace.trim_end_matches('/'))))
}

/// Refuses a command that cannot be handed over: no word of one holds a NUL.
pub(crate) fn refuse_nul(name: &str, text: &str) -> Result<()> {
    match text.find('\0') {
        None => Ok(()),
        Some(at) => Err(Error::new(
            ErrorKind::Usage,
            format!("{name} has a NUL character at byte {at}, which no command can have"),
        )
        .hint("Leave it out; printf '\\0' makes one where it is needed.")),
    }
}

/// Runs a command to its end. It is killed when the call is given up.
pub(crate) async fn run(
    session: &Session,
    wanted: Wanted<'_>,
    context: &Watched,
) -> Result<Finished> {
    for word in &wanted.argv {
        refuse_nul("the command", word)?;
    }
    refuse_nul("the working directory", wanted.cwd.unwrap_or_default())?;
    let mut order = Session::order(wanted.argv)?;
    order.command.cwd = directory(session, wanted.cwd).await?.map(Into::into);
    order.command.timeout = Some(Duration::from_millis(wanted.timeout_ms).min(MAX_TIMEOUT));
    let status = match wanted.input {
        None => {
            let started = session.start_and_wait(&order, SOON).await?;
            match started.ended {
                Some(_) => started,
                None => to_its_end(session, &started.id, context).await?,
            }
        }
        Some(input) => {
            order.command.stdin = Stdin::Piped;
            let id = session.start(&order).await?.id;
            // One that is given up is killed, however much it has read.
            tokio::select! {
                fed = feed(session, &id, input) => fed?,
                () = context.canceled() => {}
            }
            to_its_end(session, &id, context).await?
        }
    };
    Finished::new(session.clone(), status)
}

/// A command that ends before it has read all is no fault.
async fn feed(session: &Session, id: &ProcessId, input: &[u8]) -> Result<()> {
    let given = async {
        session.input(id, &ExecInput::Bytes(input.to_vec())).await?;
        session.input(id, &ExecInput::Close).await
    };
    match given.await {
        Ok(()) => Ok(()),
        Err(error) if matches!(error.kind, ErrorKind::Conflict | ErrorKind::NotFound) => Ok(()),
        Err(error) => match session.wait(id, Some(Duration::ZERO)).await {
            Ok(status) if status.ended.is_some() => Ok(()),
            Ok(_) | Err(_) => Err(error),
        },
    }
}

/// Waits for the end of a command, which is brought about when the call is given up.
async fn to_its_end(session: &Session, id: &ProcessId, context: &Watched) -> Result<ExecStatus> {
    tokio::select! {
        ended = told(session, id, context) => ended,
        () = context.canceled() => {
            session.input(id, &ExecInput::Kill).await?;
            session.wait(id, Some(ENDS_WITHIN)).await
        }
    }
}

async fn told(session: &Session, id: &ProcessId, context: &Watched) -> Result<ExecStatus> {
    if !context.is_heard() {
        return session.wait(id, None).await;
    }
    let seen = Seen { stdout: u64::MAX, stderr: u64::MAX, ..Seen::default() };
    let mut seconds = 0.0;
    let mut status = session.follow(id, seen, TELL_EVERY.min(PATIENCE)).await?;
    loop {
        if status.ended.is_some() {
            return Ok(status);
        }
        seconds += TELL_EVERY.as_secs_f64();
        let written = status.stdout.written + status.stderr.written;
        let message = format!("running, {written} bytes of output so far");
        context.report(Progress { done: seconds, total: None, message });
        status = session.follow_on(id, seen, TELL_EVERY.min(PATIENCE)).await?;
    }
}

/// Why nothing of a command ran, where nothing did.
pub(crate) fn not_started(ending: &Ending) -> Option<String> {
    match ending {
        Ending::NotStarted { detail, .. } | Ending::SetupFailed { detail, .. } => {
            Some(detail.clone())
        }
        Ending::Exited(_)
        | Ending::Signaled(_)
        | Ending::Killed(_)
        | Ending::Canceled
        | Ending::Lost => None,
    }
}

impl Finished {
    fn new(session: Session, status: ExecStatus) -> Result<Self> {
        let Some(ended) = &status.ended else {
            let what = format!("command {} does not end", status.id);
            return Err(Error::new(ErrorKind::Unavailable, what).hint("Kill it again."));
        };
        let (ending, exit_code) = (ended.ending.kind(), ended.ending.exit_code());
        let duration_ms = ended.at_ms.saturating_sub(status.started_ms);
        let not_started = not_started(&ended.ending);
        Ok(Self { session, ending, exit_code, duration_ms, not_started, status })
    }

    pub(crate) fn id(&self) -> &ProcessId {
        &self.status.id
    }

    /// The beginning and the end of a stream, at most so many bytes of each.
    pub(crate) async fn ends(&self, stream: Standard, most: u64) -> Result<Ends> {
        let written = match stream {
            Standard::Output => self.status.stdout.written,
            Standard::Error => self.status.stderr.written,
        };
        ends(&self.session, self.id(), (stream, written), most).await
    }

    /// How many lines a stream has, as far as it was kept.
    pub(crate) async fn lines(&self, stream: Standard) -> Result<u64> {
        let (mut offset, mut lines, mut last) = (0, 0, b'\n');
        loop {
            let len = u32::try_from(PIECE_BYTES).unwrap_or(u32::MAX);
            let part = Part { stream, offset, len };
            let chunk = self.session.read(self.id(), part).await?;
            let Some(end) = chunk.bytes.last() else {
                return Ok(lines + u64::from(last != b'\n'));
            };
            last = *end;
            lines += chunk.bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
            offset = chunk.offset + chunk.bytes.len() as u64;
        }
    }

    /// What an exit code means that is not the command's own, and what to do.
    pub(crate) fn hint(&self) -> Option<String> {
        if let Some(why) = &self.not_started {
            return Some(format!("it could not be started: {why}"));
        }
        let hint = match self.ending {
            EndingKind::TimedOut => {
                "the time limit was reached and the command was killed; \
                                     allow more time, or run it in the background"
            }
            EndingKind::OutOfMemory => "it was killed for using more memory than the sandbox has",
            EndingKind::Pids => "it made more processes than the sandbox may have",
            EndingKind::Disk => {
                "the sandbox's private space is full; remove files from /tmp or $HOME"
            }
            EndingKind::Canceled => "the call was given up and the command was killed",
            EndingKind::Lost => "the sandbox was lost while it ran; run it again",
            EndingKind::Lease => "the sandbox's lease was over",
            EndingKind::SecretAlarm => "a secret's placeholder was on its way to another host",
            EndingKind::Output => "it wrote more output than it may",
            EndingKind::NotStarted | EndingKind::SetupFailed => {
                "it could not be started; look at the working directory"
            }
            EndingKind::Signaled => "a signal ended it",
            EndingKind::Exited => match self.exit_code {
                126 => "the program cannot be executed; look at its permissions",
                127 => "command not found; look at its name and at the PATH",
                137 => "something in it was killed (SIGKILL)",
                139 => "something in it crashed (SIGSEGV)",
                143 => "something in it was ended (SIGTERM)",
                _ => return None,
            },
        };
        Some(hint.to_owned())
    }
}

/// The beginning and the end of what was written to a stream, at most so many bytes of each.
pub(crate) async fn ends(
    session: &Session,
    id: &ProcessId,
    (stream, written): (Standard, u64),
    most: u64,
) -> Result<Ends> {
    if written <= most.saturating_mul(2) {
        let (dropped, all) = part(session, id, stream, (0, written)).await?;
        let (head, tail) = if dropped == 0 { (all, Vec::new()) } else { (Vec::new(), all) };
        return Ok(Ends { head, tail, written, dropped });
    }
    let (dropped, head) = part(session, id, stream, (0, most)).await?;
    let tail = piece(session, id, stream, (written - most, most)).await?;
    // What begins later is no beginning.
    let head = if dropped == 0 { head } else { Vec::new() };
    Ok(Ends { head, tail, written, dropped })
}

/// A part of a stream, as far as it was kept: what was dropped is missing at the beginning.
pub(crate) async fn piece(
    session: &Session,
    id: &ProcessId,
    stream: Standard,
    span: (u64, u64),
) -> Result<Vec<u8>> {
    Ok(part(session, id, stream, span).await?.1)
}

/// The same, and where what is still there begins: later than the part does, where that was dropped.
async fn part(
    session: &Session,
    id: &ProcessId,
    stream: Standard,
    (from, length): (u64, u64),
) -> Result<(u64, Vec<u8>)> {
    let mut begin = None;
    let (mut offset, mut bytes) = (from, Vec::new());
    let end = from.saturating_add(length);
    while offset < end {
        let len = u32::try_from((end - offset).min(PIECE_BYTES)).unwrap_or(u32::MAX);
        let chunk = session.read(id, Part { stream, offset, len }).await?;
        begin.get_or_insert(chunk.offset);
        if chunk.bytes.is_empty() || chunk.offset >= end {
            break;
        }
        let room = usize::try_from(end - chunk.offset).unwrap_or(usize::MAX);
        offset = chunk.offset + chunk.bytes.len() as u64;
        bytes.extend(chunk.bytes.into_iter().take(room));
    }
    Ok((begin.unwrap_or(from), bytes))
}

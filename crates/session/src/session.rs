//! The door to one session.

use crate::answer::{CALL_LIMIT, within};
use crate::follow;
use crate::ready::Ready;
use crate::store::KnownExec;
use crate::time::after;
use crate::{ExecReport, Phase, SessionId, Sessions, random_text};
use cofferdam_core::{
    Chunk, Command, Error, ErrorKind, ExecInput, ExecOrder, ExecStatus, Image, Part, ProcessId,
    Result, SandboxStatus, Seen, Signal, Standard, Stdin, check_terminal,
};
use std::ffi::OsString;
use std::time::Duration;
use tokio::time::Instant;

/// How much of each stream is kept on disk unless an order says otherwise: 64 MiB.
pub const SPOOL_BYTES: u64 = 64 << 20;
/// How long one question waits for news.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long a command is waited for before its session is asked whether it sleeps.
const SLEEPS_AFTER: Duration = Duration::from_millis(250);
/// How long the answer to a start may wait for the command's end, where nobody asks for anything before.
pub const SOON: Duration = Duration::from_millis(50);
/// How long a command may take for its input; a backend gives up before.
const INPUT_LIMIT: Duration = Duration::from_secs(60);
/// How much is read at once.
const PIECE_BYTES: u32 = 256 << 10;

/// The door to one session. It holds nothing: dropping it ends nothing, and it stays good when the
/// sandbox behind it is paused, resumed or replaced.
#[derive(Debug, Clone)]
pub struct Session {
    pub(crate) sessions: Sessions,
    pub(crate) id: SessionId,
}

/// A command that ended, with the beginning of what it wrote.
#[derive(Debug, Clone, PartialEq)]
pub struct ExecOutput {
    /// How it stands; it has ended.
    pub status: ExecStatus,
    /// The beginning of its standard output.
    pub stdout: Vec<u8>,
    /// The beginning of its standard error.
    pub stderr: Vec<u8>,
    /// How many bytes of standard output are not in here.
    pub omitted_stdout: u64,
    /// How many bytes of standard error are not in here.
    pub omitted_stderr: u64,
}

/// Where a command is, or what is left of it.
enum Place {
    /// In the present sandbox, if it is known at all.
    Present(Ready),
    /// In one that is gone.
    Past(KnownExec),
}

/// Whether a question about a command resumes a session that sleeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sleeping {
    /// It is resumed, for the command cannot go on otherwise.
    Wakes,
    /// It stays so: whoever asks has waited before, and somebody has paused it since.
    Stays,
}

/// What somebody wants of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// Itself: one that has ended is past.
    ItsEnd,
    /// What it left, too.
    WhatIsLeft,
}

impl AsRef<SessionId> for Session {
    fn as_ref(&self) -> &SessionId {
        &self.id
    }
}

impl Session {
    pub(crate) fn new(sessions: Sessions, id: SessionId) -> Self {
        Self { sessions, id }
    }

    /// Its id.
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// The sessions that it is one of.
    pub fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    /// The image that it lies on, if it does.
    pub async fn image(&self) -> Result<Option<Image>> {
        Ok(self.sessions.0.row(&self.id).await?.spec.image().cloned())
    }

    /// An order with a fresh id and the defaults: in the foreground, empty standard input.
    pub fn order<S: Into<OsString>>(argv: impl IntoIterator<Item = S>) -> Result<ExecOrder> {
        Ok(ExecOrder {
            command: Command::new(ProcessId::new(format!("x{}", random_text()?))?, argv),
            detached: false,
            keep_awake: false,
            spool_bytes: SPOOL_BYTES,
            max_output_bytes: None,
        })
    }

    /// Runs a command to its end and collects at most so many bytes of each stream; more is left out
    /// and counted. It goes on if this future is dropped.
    pub async fn exec(&self, order: &ExecOrder, max_bytes: usize) -> Result<ExecOutput> {
        if order.command.stdin == Stdin::Piped {
            let started = self.start(order).await?;
            // Nobody is there to write.
            self.input(&started.id, &ExecInput::Close).await?;
            return self.collect(&started.id, max_bytes).await;
        }
        let status = self.start_and_wait(order, SOON).await?;
        let id = status.id.clone();
        self.collect_from(&id, Some(status), max_bytes).await
    }

    /// Waits for the end of a command and collects what it wrote, from the beginning.
    pub async fn collect(&self, id: &ProcessId, max_bytes: usize) -> Result<ExecOutput> {
        self.collect_from(id, None, max_bytes).await
    }

    /// The same where it is known already how the command stood a moment ago.
    async fn collect_from(
        &self,
        id: &ProcessId,
        mut known: Option<ExecStatus>,
        max_bytes: usize,
    ) -> Result<ExecOutput> {
        let (mut seen, mut stdout, mut stderr) = (Seen::default(), Vec::new(), Vec::new());
        let mut sleeping = Sleeping::Wakes;
        loop {
            let status = match known.take().filter(|status| status.ended.is_some()) {
                Some(ended) => ended,
                None => self.look(id, seen, (PATIENCE, sleeping)).await?,
            };
            sleeping = Sleeping::Stays;
            let news = Seen {
                stdout: status.stdout.written,
                stderr: status.stderr.written,
                ..Seen::default()
            };
            for (stream, kept, written) in [
                (Standard::Output, &mut stdout, news.stdout),
                (Standard::Error, &mut stderr, news.stderr),
            ] {
                self.fill(id, (stream, kept), written, max_bytes).await?;
            }
            seen = news;
            if status.ended.is_some() {
                let omitted =
                    |written: u64, kept: &Vec<u8>| written.saturating_sub(kept.len() as u64);
                return Ok(ExecOutput {
                    omitted_stdout: omitted(status.stdout.written, &stdout),
                    omitted_stderr: omitted(status.stderr.written, &stderr),
                    status,
                    stdout,
                    stderr,
                });
            }
        }
    }

    /// Reads what is new of a stream, up to the most that is wanted.
    async fn fill(
        &self,
        id: &ProcessId,
        (stream, kept): (Standard, &mut Vec<u8>),
        written: u64,
        max_bytes: usize,
    ) -> Result<()> {
        while kept.len() < max_bytes && (kept.len() as u64) < written {
            let room = u32::try_from(max_bytes - kept.len()).unwrap_or(PIECE_BYTES);
            let offset = kept.len() as u64;
            let part = Part { stream, offset, len: PIECE_BYTES.min(room) };
            let chunk = self.read(id, part).await?;
            if chunk.offset != offset || chunk.bytes.is_empty() {
                // Its beginning was dropped before it was read: what is kept stays the beginning.
                break;
            }
            kept.extend(chunk.bytes);
        }
        Ok(())
    }

    /// Waits until there is news of a command beyond `seen`, or `patience` is over. While somebody
    /// waits so the session is in use, and one that sleeps is resumed. Whoever goes on waiting then
    /// asks by [`Session::follow_on`].
    ///
    /// Where the command has ended that was started by way of these [`Sessions`], its end is a point of
    /// the session's history when this returns, or [`Session::not_kept`] says why not.
    pub async fn follow(
        &self,
        id: &ProcessId,
        seen: Seen,
        patience: Duration,
    ) -> Result<ExecStatus> {
        self.look(id, seen, (patience, Sleeping::Wakes)).await
    }

    /// The same for who has followed it until now: a session that was paused meanwhile stays so.
    pub async fn follow_on(
        &self,
        id: &ProcessId,
        seen: Seen,
        patience: Duration,
    ) -> Result<ExecStatus> {
        self.look(id, seen, (patience, Sleeping::Stays)).await
    }

    async fn look(
        &self,
        id: &ProcessId,
        seen: Seen,
        (patience, sleeping): (Duration, Sleeping),
    ) -> Result<ExecStatus> {
        let wanted = if seen.end { Wanted::WhatIsLeft } else { Wanted::ItsEnd };
        let status = match self.place(id, wanted, sleeping).await? {
            Place::Past(known) => known.status,
            Place::Present(ready) => {
                let watched = follow::news(&ready.backend, &ready.record, (id, seen), patience);
                match watched.await {
                    Err(e) if e.kind == ErrorKind::NotFound => self.lost(id, &ready, e).await?,
                    answer => answer?,
                }
            }
        };
        if status.ended.is_some() {
            self.has_ended(&status).await;
        }
        Ok(status)
    }

    /// Waits until a command has ended, or `patience` is over, and says how it stands. Whoever begins to
    /// wait uses the session: one that sleeps is resumed. One that is paused meanwhile stays so.
    pub async fn wait(&self, id: &ProcessId, patience: Option<Duration>) -> Result<ExecStatus> {
        self.wait_for(id, patience, Sleeping::Wakes).await
    }

    /// The same for who has waited until now: a session that was paused meanwhile stays so.
    pub async fn wait_on(&self, id: &ProcessId, patience: Option<Duration>) -> Result<ExecStatus> {
        self.wait_for(id, patience, Sleeping::Stays).await
    }

    async fn wait_for(
        &self,
        id: &ProcessId,
        patience: Option<Duration>,
        mut sleeping: Sleeping,
    ) -> Result<ExecStatus> {
        let deadline = patience.map(after);
        let seen = Seen { stdout: u64::MAX, stderr: u64::MAX, ..Seen::default() };
        // One that ends soon is not asked whether it sleeps.
        let mut at_once = Some(SLEEPS_AFTER)
            .filter(|_| sleeping == Sleeping::Wakes && patience != Some(Duration::ZERO));
        loop {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let most = at_once.unwrap_or(PATIENCE);
            let this_time = left.unwrap_or(most).min(most);
            let status = self.look(id, seen, (this_time, sleeping)).await?;
            if status.ended.is_some() {
                return Ok(status);
            }
            sleeping = Sleeping::Stays;
            if at_once.take().is_some() {
                self.wake_for(id).await?;
            } else if left.is_some_and(|left| left.is_zero()) {
                return Ok(status);
            }
        }
    }

    /// How a command stands. Wakes nothing, and costs the same however many there are.
    pub async fn status(&self, id: &ProcessId) -> Result<ExecReport> {
        let inner = &self.sessions.0;
        let row = inner.row(&self.id).await?;
        if let Some(record) = &row.record {
            let backend = inner.backend(&row.backend)?;
            // Nobody waits for it, so it is no use of the sandbox.
            let asked = backend.watch(record, id, Seen::default(), Duration::ZERO);
            match within(CALL_LIMIT, "say how a command is", asked).await {
                Ok(status) => return Ok(ExecReport::new(row.incarnation, &status)),
                Err(e) if e.kind == ErrorKind::NotFound => {}
                Err(e) => return Err(e),
            }
            let is_there = backend.status(record);
            if within(CALL_LIMIT, "say how a sandbox is", is_there).await? == SandboxStatus::Gone {
                self.settle().await?;
            }
        }
        // An earlier one, or one whose sandbox has forgotten it.
        inner.fold(&row, row.incarnation, None).await?;
        let known = inner.store.exec(&self.id, id).await?;
        let report = |known: KnownExec| ExecReport::new(known.incarnation, &known.status);
        known.map(report).ok_or_else(|| unknown(id))
    }

    /// The commands of this session, those of earlier sandboxes included, oldest first. Wakes
    /// nothing.
    pub async fn execs(&self) -> Result<Vec<ExecReport>> {
        let inner = &self.sessions.0;
        let row = inner.row(&self.id).await?;
        let mut present = Vec::new();
        if let Some(record) = &row.record {
            let backend = inner.backend(&row.backend)?;
            match within(CALL_LIMIT, "list commands", backend.execs(record)).await {
                Ok(all) => present = all,
                Err(e) if e.kind == ErrorKind::NotFound => self.settle().await?,
                Err(e) => return Err(e),
            }
        }
        inner.fold(&row, row.incarnation, None).await?;
        let folded = inner.store.execs(&self.id).await?;
        let fresh = |known: &&KnownExec| {
            known.incarnation != row.incarnation
                || !present.iter().any(|status| status.id == known.status.id)
        };
        let past = folded.iter().filter(fresh);
        let mut all: Vec<ExecReport> =
            past.map(|known| ExecReport::new(known.incarnation, &known.status)).collect();
        all.extend(present.iter().map(|status| ExecReport::new(row.incarnation, status)));
        Ok(all)
    }

    /// What a command wrote. Wakes nothing, and works when the sandbox is gone.
    pub async fn read(&self, id: &ProcessId, part: Part) -> Result<Chunk> {
        let inner = &self.sessions.0;
        let row = inner.row(&self.id).await?;
        let mut incarnation = row.incarnation;
        if incarnation > 1 {
            let known = inner.store.exec(&self.id, id).await?;
            incarnation = known.map_or(incarnation, |known| known.incarnation);
        }
        let backend = inner.backend(&row.backend)?;
        let sandbox = self.id.sandbox(incarnation)?;
        within(CALL_LIMIT, "read output", backend.read(&sandbox, id, part)).await
    }

    /// Does something to a command. One that has ended takes nothing, but what it left takes signals.
    /// A signal that there is not is an error, and so is a terminal without a row or a column.
    pub async fn input(&self, id: &ProcessId, input: &ExecInput) -> Result<()> {
        match input {
            ExecInput::Signal(number) => Signal::numbered(*number).map(drop)?,
            ExecInput::Resize(size) => check_terminal(*size)?,
            ExecInput::Bytes(_) | ExecInput::Close | ExecInput::Unread(_) | ExecInput::Kill => {}
        }
        let wanted = match input {
            ExecInput::Signal(_) | ExecInput::Kill => Wanted::WhatIsLeft,
            ExecInput::Bytes(_)
            | ExecInput::Close
            | ExecInput::Resize(_)
            | ExecInput::Unread(_) => Wanted::ItsEnd,
        };
        match self.place(id, wanted, Sleeping::Wakes).await? {
            Place::Past(_) if matches!(input, ExecInput::Kill | ExecInput::Close) => Ok(()),
            Place::Past(_) => {
                Err(Error::new(ErrorKind::Conflict, format!("command {id} has ended"))
                    .hint("See with `cofferdam ps` how it ended."))
            }
            Place::Present(ready) => {
                let done = ready.backend.input(&ready.record, id, input);
                match within(INPUT_LIMIT, "take input", done).await {
                    Err(e) if e.kind == ErrorKind::NotFound => {
                        self.lost(id, &ready, e).await.map(|_| ())
                    }
                    answer => answer,
                }
            }
        }
    }

    /// Sends a signal to the process group of a command; if it has ended, to all that it left.
    pub async fn signal(&self, id: &ProcessId, signal: i32) -> Result<()> {
        self.input(id, &ExecInput::Signal(signal)).await
    }

    /// Resumes a session that sleeps, where a command of it has not ended: for whoever begins to watch it.
    pub async fn wake_for(&self, id: &ProcessId) -> Result<()> {
        let place = self.place(id, Wanted::ItsEnd, Sleeping::Wakes).await?;
        let Place::Present(ready) = place else { return Ok(()) };
        match self.status_of(&ready).await {
            Ok(SandboxStatus::Paused) => {
                self.settle().await?;
                self.ready().await.map(drop)
            }
            Ok(SandboxStatus::Running | SandboxStatus::Gone) => Ok(()),
            // It may be ended by somebody just now, who is waited for.
            Err(error) if error.kind == ErrorKind::Unavailable => self.settle().await,
            Err(error) => Err(error),
        }
    }

    /// Where a command is.
    async fn place(&self, id: &ProcessId, wanted: Wanted, sleeping: Sleeping) -> Result<Place> {
        let inner = &self.sessions.0;
        let row = inner.row(&self.id).await?;
        let is_over = |status: &ExecStatus| match wanted {
            Wanted::ItsEnd => status.ended.is_some(),
            Wanted::WhatIsLeft => status.ended.is_some() && status.left.is_none(),
        };
        if let Some(known) = inner.store.exec(&self.id, id).await?
            && (known.incarnation < row.incarnation
                || is_over(&known.status)
                || known.status.ended.is_some() && !row.phase.owes_an_end())
        {
            return Ok(Place::Past(known));
        }
        if !row.phase.owes_an_end() {
            return Err(unknown(id));
        }
        if row.phase == Phase::Stopping {
            // Its commands go with it, and to ask for one of them makes no other sandbox.
            self.settle().await?;
            let known = inner.store.exec(&self.id, id).await?;
            return known.map(Place::Past).ok_or_else(|| unknown(id));
        }
        if let (Sleeping::Stays, Phase::Pausing | Phase::Paused, Some(record)) =
            (sleeping, row.phase, &row.record)
            // After an alarm nothing goes on, which is an error of whoever gets it ready.
            && inner.store.frozen(&self.id).await?.is_none()
        {
            let (backend, record) = (inner.backend(&row.backend)?, record.clone());
            return Ok(Place::Present(Ready { backend, record, incarnation: row.incarnation }));
        }
        let ready = self.ready().await?;
        if ready.incarnation != row.incarnation {
            // The present one was lost meanwhile; its journal says what became of the command.
            let known = inner.store.exec(&self.id, id).await?;
            return known.map(Place::Past).ok_or_else(|| unknown(id));
        }
        Ok(Place::Present(ready))
    }

    /// A command that its sandbox does not know any more: the sandbox is gone, or there is no such
    /// command.
    async fn lost(&self, id: &ProcessId, ready: &Ready, error: Error) -> Result<ExecStatus> {
        let status = ready.backend.status(&ready.record);
        if within(CALL_LIMIT, "say how a sandbox is", status).await? != SandboxStatus::Gone {
            return Err(error);
        }
        self.settle().await?;
        let known = self.sessions.0.store.exec(&self.id, id).await?;
        known.map(|known| known.status).ok_or_else(|| {
            let what = format!("the sandbox of session {} was lost, and {id} with it", self.id);
            Error::new(ErrorKind::Unavailable, what).hint("Start the command again.")
        })
    }
}

fn unknown(id: &ProcessId) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no command {id}"))
        .hint("List the commands of the session to see their ids.")
}

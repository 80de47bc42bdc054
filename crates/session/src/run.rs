//! One piece of work in a sandbox of its own, ended on every way out.

use crate::answer::{CALL_LIMIT, CREATE_LIMIT, within};
use crate::desk::LOCK_PATIENCE;
use crate::init::InitFailure;
use crate::lock::Lock;
use crate::order::{SessionOrder, millis};
use crate::reaper::{self, owner_key};
use crate::store::{NewEvent, Row, Scope};
use crate::time::after;
use crate::{Event, InitCommand, Session, SessionId, Sessions, bundle, now_ms};
use cofferdam_core::{DestroyReason, Enforced, Error, ErrorKind, Result, Spec};
use serde_json::json;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::pin::pin;
use std::sync::OnceLock;
use std::task::Poll;
use std::time::Duration;
use tokio::time::Instant;

/// How long a run may take in all, unless it says otherwise.
pub const RUN_LIMIT: Duration = Duration::from_secs(300);
/// How long a sandbox that was preserved is kept.
const PRESERVED: Duration = Duration::from_secs(24 * 3600);
/// The keeper ends the sandbox itself so long after the limit, if nobody did.
const GRACE: Duration = Duration::from_secs(60);

/// What is run, and how.
#[derive(Debug, Clone)]
pub struct RunOrder {
    /// How somebody calls the work; it is in its events.
    pub label: String,
    /// The backend; `None` is the first.
    pub backend: Option<String>,
    /// What it may do.
    pub spec: Spec,
    /// How long all of it may take: making the sandbox, preparing it, the work.
    pub limit: Duration,
    /// Commands that must succeed before the work begins.
    pub preflight: Vec<InitCommand>,
    /// What becomes of the sandbox of a run that failed.
    pub on_failure: OnFailure,
}

/// What becomes of the sandbox of a run that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnFailure {
    /// Nothing is kept.
    #[default]
    Destroy,
    /// The sandbox is ended; its home directory and output are kept, and a bundle is written.
    Stop,
    /// The sandbox is paused and kept for a day, and a bundle is written.
    Preserve,
}

/// What came of work that succeeded.
#[derive(Debug)]
pub struct Ran<T> {
    /// Its result.
    pub value: T,
    /// What could not be removed; every start of Cofferdam tries again.
    pub cleanup: Option<Error>,
    /// Control files that appeared in the workspace; `None` where nobody looked.
    pub new_control_files: Option<Vec<String>>,
}

/// Why a run failed, and what could not be removed.
#[derive(Debug)]
pub struct RunError<E> {
    /// Why it failed.
    pub failure: RunFailure<E>,
    /// What could not be removed; every start of Cofferdam tries again.
    pub cleanup: Option<Error>,
    /// The session, where something of it was kept for study.
    pub kept: Option<Kept>,
    /// How far the policy of its sandbox held; `None` where there was none.
    pub enforced: Option<Enforced>,
    /// Control files that appeared in the workspace; `None` where nobody looked, as where there was no
    /// sandbox, or it is kept.
    pub new_control_files: Option<Vec<String>>,
}

/// What was kept of a run that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The session.
    pub session: SessionId,
    /// A directory that tells what happened. It is removed with the session.
    pub bundle: PathBuf,
}

/// Why a run failed.
#[derive(Debug)]
pub enum RunFailure<E> {
    /// There was no sandbox. This is the backend's error as it was.
    Provision(Error),
    /// A command that must succeed before the work did not.
    Preflight(InitFailure),
    /// It took longer than this in all.
    TimedOut(Duration),
    /// The work failed.
    Work(E),
}

impl RunOrder {
    /// An order with the defaults: 300 seconds, no pre-flight commands, nothing kept.
    pub fn new(label: impl Into<String>, spec: Spec) -> Self {
        Self {
            label: label.into(),
            backend: None,
            spec,
            limit: RUN_LIMIT,
            preflight: Vec::new(),
            on_failure: OnFailure::default(),
        }
    }
}

impl Sessions {
    /// Does some work in a sandbox of its own, which is ended exactly once on every way out: result,
    /// error, panic, end of time, and when this future is dropped.
    ///
    /// The limit covers making the sandbox and the pre-flight commands too. Work that is not done in
    /// time is dropped before the sandbox is ended. A panic goes on after the sandbox was ended. The
    /// result of the work is returned as it is.
    pub async fn run<T, E, W>(
        &self,
        order: &RunOrder,
        work: impl FnOnce(Session) -> W + Send,
    ) -> Result<Ran<T>, RunError<E>>
    where
        W: Future<Output = Result<T, E>> + Send,
        T: Send,
        E: Send,
    {
        let guard = match self.begin_run(order).await {
            Ok(guard) => guard,
            Err(error) => {
                return Err(RunError {
                    failure: RunFailure::Provision(error),
                    cleanup: None,
                    kept: None,
                    enforced: None,
                    new_control_files: None,
                });
            }
        };
        let held = OnceLock::new();
        let all = async {
            self.provision(&guard.row, &held).await?;
            let work = work(self.session(guard.row.id.clone()));
            caught(work).await.map_err(Interrupted::Panic)?.map_err(Interrupted::Work)
        };
        let outcome = tokio::time::timeout_at(guard.deadline, all).await;
        let reason = match &outcome {
            Ok(Ok(_)) => DestroyReason::Success,
            Ok(Err(_)) => DestroyReason::Error,
            Err(_) => DestroyReason::Timeout,
        };
        let failure = match outcome {
            Ok(Ok(value)) => {
                let Settled { cleanup, new_control_files, .. } = guard.finish(reason, None).await;
                return Ok(Ran { value, cleanup, new_control_files });
            }
            Err(_) => RunFailure::TimedOut(order.limit),
            Ok(Err(Interrupted::Panic(panic))) => {
                guard.finish(reason, Some(("the work panicked".to_owned(), order))).await;
                resume_unwind(panic)
            }
            Ok(Err(Interrupted::Provision(error))) => RunFailure::Provision(error),
            Ok(Err(Interrupted::Preflight(failed))) => RunFailure::Preflight(failed),
            Ok(Err(Interrupted::Work(error))) => RunFailure::Work(error),
        };
        let Settled { cleanup, kept, new_control_files } =
            guard.finish(reason, Some((failure.told(), order))).await;
        Err(RunError { failure, cleanup, kept, enforced: held.into_inner(), new_control_files })
    }

    async fn begin_run(&self, order: &RunOrder) -> Result<RunGuard> {
        if order.limit.is_zero() {
            return Err(Error::new(ErrorKind::Usage, "a limit of zero leaves no time")
                .hint("Give it at least a millisecond, or no limit."));
        }
        let id = SessionId::fresh()?;
        // ORDER: the owner's lock before the row, or a reaper could think that nobody owns it.
        let owner = self.0.locks.take(&owner_key(&id), LOCK_PATIENCE).await?;
        let mut session = SessionOrder::new(order.spec.clone());
        session.backend.clone_from(&order.backend);
        session.init.clone_from(&order.preflight);
        session.idle_pause = None;
        session.check()?;
        let first = self.0.backends.first().map(|backend| backend.name());
        let name = order.backend.as_deref().or(first).unwrap_or_default();
        let mut row = session.row(id, self.0.backend(name)?.name())?;
        row.facts.scope = Scope::Run;
        row.facts.label = Some(order.label.clone());
        row.facts.times.run_until_ms =
            Some(now_ms().saturating_add(millis(order.limit.saturating_add(GRACE))));
        Ok(RunGuard {
            sessions: self.clone(),
            row,
            owner: Some(owner),
            deadline: after(order.limit),
        })
    }

    async fn provision<E>(
        &self,
        row: &Row,
        held: &OnceLock<Enforced>,
    ) -> Result<(), Interrupted<E>> {
        let made = async {
            // ORDER: noted before, so that nobody who gives up now ends it before its row is written, which
            // is not given up.
            let (inner, row, written) = (self.0.clone(), row.clone(), self.0.making.begin(&row.id));
            let begun = tokio::spawn(async move {
                let begun = inner.begin_with(row).await;
                drop(written);
                begun
            });
            let broke_off = |e| Error::new(ErrorKind::Io, "the begin of a run broke off").source(e);
            let desk = begun.await.map_err(broke_off)??;
            let mut desk = desk.ok_or_else(|| {
                Error::new(ErrorKind::Conflict, "a fresh session is there already")
                    .hint("Run it again.")
            })?;
            desk.make().await?;
            Ok(desk)
        };
        let mut desk = made.await.map_err(Interrupted::Provision)?;
        if let Some(record) = &desk.row.record {
            held.get_or_init(|| record.enforced.clone());
        }
        match desk.prepare().await {
            Ok(()) => Ok(()),
            Err(error) => Err(match desk.row.facts.init.last_error.clone() {
                Some(failed) => Interrupted::Preflight(failed),
                None => Interrupted::Provision(error),
            }),
        }
    }
}

impl Sessions {
    /// The control files that appeared while the sandbox of a run stood; `None` where it did not end
    /// or its keeper could not look.
    async fn new_control_files(&self, id: &SessionId) -> Result<Option<Vec<String>>> {
        let (mut ended, mut told, mut after) = (None, None, 0);
        loop {
            let page = self.events(Some(id), after).await?;
            let Some(last) = page.last() else { break };
            after = last.seq;
            for event in page {
                match event.kind.as_str() {
                    "destroyed" => ended = Some(event),
                    "new_control_files" => told = Some(event),
                    _ => {}
                }
            }
        }
        if ended.is_none_or(|event| event.data.get("reason") == Some(&json!(DestroyReason::Lost))) {
            return Ok(None);
        }
        let paths = told.as_ref().and_then(|event| event.data.get("paths")?.as_array());
        let paths = paths.into_iter().flatten().filter_map(|path| path.as_str());
        Ok(Some(paths.map(str::to_owned).collect()))
    }
}

/// Why the work has no result.
enum Interrupted<E> {
    Provision(Error),
    Preflight(InitFailure),
    Work(E),
    Panic(Box<dyn std::any::Any + Send>),
}

/// How a run was settled.
#[derive(Default)]
struct Settled {
    cleanup: Option<Error>,
    kept: Option<Kept>,
    new_control_files: Option<Vec<String>>,
}

/// What a run owes: dropped before it is settled, it settles itself as canceled.
struct RunGuard {
    sessions: Sessions,
    row: Row,
    /// Held until the end of the run is settled. When this process dies, the next one sees it.
    owner: Option<Lock>,
    deadline: Instant,
}

impl RunGuard {
    /// Ends the run, even if the caller stops waiting.
    async fn finish(
        mut self,
        reason: DestroyReason,
        failed: Option<(String, &RunOrder)>,
    ) -> Settled {
        let Some(owner) = self.owner.take() else { return Settled::default() };
        let failed = failed.map(|(why, order)| (why, order.on_failure));
        let end = end(self.sessions.clone(), self.row.id.clone(), reason, failed, owner);
        match tokio::spawn(end).await {
            Ok(result) => result,
            Err(e) => {
                let error = Error::new(ErrorKind::Io, "the end of a run broke off").source(e);
                Settled { cleanup: Some(error), ..Settled::default() }
            }
        }
    }
}

impl Drop for RunGuard {
    fn drop(&mut self) {
        let Some(owner) = self.owner.take() else { return };
        // Without a runtime the lock falls, and the next start of Cofferdam ends the run.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let (sessions, id) = (self.sessions.clone(), self.row.id.clone());
            runtime.spawn(async move {
                // What is still being made goes on, and can be ended once it stands.
                let made = sessions.0.making.over(&id);
                tokio::time::timeout(CREATE_LIMIT, made).await.ok();
                end(sessions, id, DestroyReason::Canceled, None, owner).await
            });
        }
    }
}

async fn end(
    sessions: Sessions,
    id: SessionId,
    reason: DestroyReason,
    failed: Option<(String, OnFailure)>,
    owner: Lock,
) -> Settled {
    let keep = failed.filter(|(_, on_failure)| *on_failure != OnFailure::Destroy);
    let result = match keep {
        Some((why, on_failure)) => preserve(&sessions, &id, reason, (&why, on_failure)).await,
        None => sessions.0.delete(&id, reason, Duration::ZERO).await.map(|_| None),
    };
    owner.retire();
    if !sessions.0.making.is_over(&id) {
        // Its caller did not wait for it, and is not kept waiting for its end.
        tokio::spawn(chase(sessions.clone(), id.clone(), reason));
    }
    let new_control_files = sessions.new_control_files(&id).await.unwrap_or_default();
    match result {
        Ok(kept) => Settled { cleanup: None, kept, new_control_files },
        Err(error) => Settled { cleanup: Some(error), kept: None, new_control_files },
    }
}

/// Ends a sandbox that was still being made when its session was to be removed.
pub(crate) async fn chase(sessions: Sessions, id: SessionId, reason: DestroyReason) {
    sessions.0.making.over(&id).await;
    // What fails here is recorded or listed, and tried again by every start.
    if sessions.0.delete(&id, reason, Duration::ZERO).await.is_ok_and(|was_there| !was_there) {
        reaper::end_strays(&sessions, &id, reason).await.ok();
    }
}

/// Keeps what a failed run left, as far as there is anything.
async fn preserve(
    sessions: &Sessions,
    id: &SessionId,
    reason: DestroyReason,
    (why, on_failure): (&str, OnFailure),
) -> Result<Option<Kept>> {
    let mut desk = match sessions.0.desk(id).await {
        Ok(desk) => desk,
        Err(e) if e.kind == ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e),
    };
    if desk.row.record.is_none() {
        drop(desk);
        return sessions.0.delete(id, reason, Duration::ZERO).await.map(|_| None);
    }
    let until = now_ms().saturating_add(millis(PRESERVED));
    desk.row.facts.scope = Scope::Kept;
    desk.row.facts.reason = Some(reason);
    desk.row.facts.times.run_until_ms = None;
    desk.row.facts.times.lease_until_ms = Some(until);
    desk.row.facts.deadlines_owed = true;
    let data = json!({ "incarnation": desk.row.incarnation, "lease_until_ms": until });
    desk.amend(Some(NewEvent::now("preserved", data))).await?;
    match on_failure {
        OnFailure::Preserve => desk.drive(Event::Pause).await?,
        OnFailure::Stop | OnFailure::Destroy => desk.drive(Event::Stop).await?,
    }
    drop(desk);
    let bundle = bundle::write(sessions, id, (reason, why));
    let bundle = within(2 * CALL_LIMIT, "write a bundle", bundle).await?;
    Ok(Some(Kept { session: id.clone(), bundle }))
}

/// Polls a future and catches its panic.
async fn caught<F: Future>(future: F) -> Result<F::Output, Box<dyn std::any::Any + Send>> {
    let mut future = pin!(future);
    std::future::poll_fn(|context| {
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(value)) => Poll::Ready(Ok(value)),
            Err(panic) => Poll::Ready(Err(panic)),
        }
    })
    .await
}

impl<E> RunFailure<E> {
    /// The failure for a bundle. What the work says about itself is its own.
    fn told(&self) -> String {
        match self {
            Self::Provision(error) => error.chain(),
            Self::Preflight(failed) => failed.error().chain(),
            Self::TimedOut(limit) => format!("it took longer than {limit:?}"),
            Self::Work(_) => "the work failed".to_owned(),
        }
    }
}

impl<E: fmt::Display> fmt::Display for RunError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.failure.fmt(f)
    }
}

impl<E: std::error::Error + 'static> std::error::Error for RunError<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.failure.source()
    }
}

impl<E: fmt::Display> fmt::Display for RunFailure<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Provision(error) => error.fmt(f),
            Self::Preflight(failed) => failed.error().fmt(f),
            Self::TimedOut(limit) => write!(f, "the run took longer than {limit:?} in all"),
            Self::Work(error) => error.fmt(f),
        }
    }
}

impl<E: std::error::Error + 'static> std::error::Error for RunFailure<E> {
    /// What lies behind what is shown, which is the error of the work or the backend itself.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Provision(error) => error.source(),
            Self::Preflight(_) | Self::TimedOut(_) => None,
            Self::Work(error) => error.source(),
        }
    }
}

impl<E: Into<Error>> From<RunError<E>> for Error {
    fn from(error: RunError<E>) -> Self {
        match error.failure {
            RunFailure::Provision(error) => error,
            RunFailure::Preflight(failed) => {
                let how = match failed.exit_code {
                    Some(code) => format!("exited {code}"),
                    None => "could not be run".to_owned(),
                };
                let (command, output) = (&failed.command, failed.output.trim_end());
                let what = format!("pre-flight command {command:?} {how}: {output}");
                Self::new(ErrorKind::SetupFailed, what).hint("The work was not begun.")
            }
            RunFailure::TimedOut(limit) => {
                let what = format!("the run took longer than {} s in all", limit.as_secs_f64());
                Self::new(ErrorKind::TimedOut, what).hint("Give it more time.")
            }
            RunFailure::Work(error) => error.into(),
        }
    }
}

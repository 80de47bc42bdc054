//! A sandbox to work in: awake, and the present one.

use crate::answer::{CALL_LIMIT, within};
use crate::{Event, Phase, Session};
use cofferdam_core::{
    DurableBackend, Error, ErrorKind, ExecOrder, ExecStatus, ProcessId, Result, SandboxRecord,
    SandboxStatus,
};
use std::sync::Arc;
use std::time::Duration;

/// How often a start is tried: the sandbox may fall asleep or be lost each time.
pub(crate) const ATTEMPTS: usize = 4;

/// A sandbox as it stood a moment ago.
pub(crate) struct Ready {
    pub(crate) backend: Arc<dyn DurableBackend>,
    pub(crate) record: SandboxRecord,
    pub(crate) incarnation: u32,
}

impl Session {
    /// The present sandbox, resumed or recovered if it has to be.
    pub(crate) async fn ready(&self) -> Result<Ready> {
        let inner = &self.sessions.0;
        let row = inner.row(&self.id).await?;
        if let (Phase::Running, Some(record)) = (row.phase, row.record) {
            let backend = inner.backend(&row.backend)?;
            return Ok(Ready { backend, record, incarnation: row.incarnation });
        }
        let mut desk = inner.desk(&self.id).await?;
        desk.refuse_what_is_over().await?;
        let before = desk.row.incarnation;
        desk.drive(Event::Ensure).await?;
        if desk.row.incarnation != before {
            desk.prepare().await?;
        }
        Ok(Ready {
            backend: Arc::clone(desk.backend()),
            record: desk.record()?.clone(),
            incarnation: desk.row.incarnation,
        })
    }

    /// Starts a command. The same id again, with the same words, starts nothing and is answered with
    /// the status of the first, even if that was in a sandbox that is lost.
    ///
    /// A sandbox that sleeps is resumed, one that is lost is recovered. Where a sandbox is lost while
    /// the command is being started, its journal says whether the command ran: one that did is
    /// answered as lost, one that did not is started in the next sandbox.
    pub async fn start(&self, order: &ExecOrder) -> Result<ExecStatus> {
        self.start_and_wait(order, Duration::ZERO).await
    }

    /// The same for one who waits for its end: the answer says how it stands once it has ended or
    /// `patience` is over, where the backend can wait with it; else at once.
    pub async fn start_and_wait(
        &self,
        order: &ExecOrder,
        patience: Duration,
    ) -> Result<ExecStatus> {
        order.command.check()?;
        let begun = self.before_start(order).await;
        let status = self.try_start(order, patience).await?;
        self.begun(order, begun);
        if status.ended.is_some() && !patience.is_zero() {
            self.has_ended(&status).await;
        }
        Ok(status)
    }

    /// What makes the end of a command that was started here a point of the history, for one who may not
    /// wait for it: it is to be driven as long as that lasts. Nothing where it is to be no point.
    pub fn end_of(
        &self,
        id: &ProcessId,
    ) -> Option<impl Future<Output = ()> + Send + 'static + use<>> {
        if !self.is_awaited(id) {
            return None;
        }
        let (session, id) = (self.clone(), id.clone());
        // What goes wrong here is told by whoever asks for the command.
        Some(async move { drop(session.wait(&id, None).await) })
    }

    async fn try_start(&self, order: &ExecOrder, patience: Duration) -> Result<ExecStatus> {
        let mut perhaps_in = None;
        let mut last = None;
        for _ in 0..ATTEMPTS {
            let ready = self.ready().await?;
            if let Some(known) = self.known_before(order, ready.incarnation).await? {
                return Ok(known);
            }
            if perhaps_in.is_some_and(|incarnation| incarnation != ready.incarnation)
                && self.sessions.0.row(&self.id).await?.cleanup_failed.is_some()
            {
                return Err(self.perhaps(order));
            }
            let start = ready.backend.start_and_wait(&ready.record, order, patience);
            let error =
                match within(CALL_LIMIT.saturating_add(patience), "start a command", start).await {
                    Ok(status) => return Ok(status),
                    Err(error) => error,
                };
            // Nothing was started: it sleeps, or is gone, or the error means what it says.
            let refused = matches!(error.kind, ErrorKind::NotFound | ErrorKind::Conflict);
            // It may have been started. The id makes a repetition harmless in the same sandbox.
            let unknown = matches!(error.kind, ErrorKind::Unavailable | ErrorKind::TimedOut);
            if unknown {
                perhaps_in = Some(ready.incarnation);
            } else if !refused
                || last.is_some() && self.status_of(&ready).await? == SandboxStatus::Running
            {
                return Err(error);
            }
            self.settle().await?;
            last = Some(error);
        }
        Err(last.unwrap_or_else(|| self.perhaps(order)))
    }

    pub(crate) async fn status_of(&self, ready: &Ready) -> Result<SandboxStatus> {
        let status = ready.backend.status(&ready.record);
        within(CALL_LIMIT, "say how a sandbox is", status).await
    }

    /// Takes in what has become of the sandbox.
    pub(crate) async fn settle(&self) -> Result<()> {
        self.sessions.0.desk(&self.id).await?.settle().await
    }

    /// A command of this id in an earlier sandbox.
    async fn known_before(
        &self,
        order: &ExecOrder,
        incarnation: u32,
    ) -> Result<Option<ExecStatus>> {
        if incarnation == 1 {
            return Ok(None);
        }
        let known = self.sessions.0.store.exec(&self.id, &order.command.id).await?;
        let Some(known) = known.filter(|known| known.incarnation < incarnation) else {
            return Ok(None);
        };
        let words = order.command.argv.iter().map(|word| word.to_string_lossy());
        if !words.eq(known.status.argv.iter().map(String::as_str)) {
            let what = format!("command {} is another one", order.command.id);
            return Err(Error::new(ErrorKind::Conflict, what).hint("Use another id."));
        }
        Ok(Some(known.status))
    }

    fn perhaps(&self, order: &ExecOrder) -> Error {
        let what = format!(
            "the sandbox of session {} was lost while command {} was started, which may have run",
            self.id, order.command.id
        );
        Error::new(ErrorKind::Unavailable, what)
            .hint("Look what it did, then start it under another id.")
    }
}

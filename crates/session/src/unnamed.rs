//! Sessions without a name: nobody but whoever makes one has its id.

use crate::answer::CREATE_LIMIT;
use crate::desk::Desk;
use crate::order::SessionOrder;
use crate::store::{Apart, broken_off};
use crate::{Phase, Session, SessionId, Sessions, run};
use cofferdam_core::{DestroyReason, Error, ErrorKind, Result};
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

impl Sessions {
    /// Makes a session without a name, and ends it where nobody waits for it any more.
    pub(crate) async fn create_unnamed(&self, order: &SessionOrder) -> Result<Session> {
        self.made(order).await?.named_if_kept().await
    }

    /// Makes a session like [`Sessions::create`], and where one without a name cannot be prepared nothing is left
    /// of it when this returns: for callers who have no use for a part of one, and nobody else has its id.
    pub async fn create_whole(&self, order: &SessionOrder) -> Result<Session> {
        match order.name {
            Some(_) => self.create(order).await,
            None => {
                order.check()?;
                self.made(order).await?.whole().await
            }
        }
    }

    async fn made(&self, order: &SessionOrder) -> Result<Unclaimed> {
        let (waits, given_up) = oneshot::channel();
        let creation = self.creation_unless(order, given_up);
        let made = cofferdam_core::to_its_end(creation).await.map_err(broken_off)?;
        drop(waits);
        made
    }

    /// Whether a session is there that nobody removes. One that cannot be looked for may be.
    async fn is_kept(&self, id: &SessionId) -> bool {
        match self.0.store.get(id).await {
            Ok(row) => row.is_some_and(|row| row.phase != Phase::Deleting),
            Err(_) => true,
        }
    }

    /// ORDER: the row is written whether or not somebody waits, so that it is known what there is to end.
    fn creation_unless(
        &self,
        order: &SessionOrder,
        given_up: oneshot::Receiver<()>,
    ) -> Apart<Unclaimed> {
        let (sessions, order) = (self.clone(), order.clone());
        Box::pin(async move {
            let desk = sessions.0.begin(&order).await?.ok_or_else(|| {
                Error::new(ErrorKind::Conflict, "a session without a name is there already")
                    .hint("Make it again.")
            })?;
            let mut unclaimed = Unclaimed::new(&sessions, &desk.row.id);
            unclaimed.outcome = unless(given_up, sessions.finish(desk, &order)).await;
            Ok(unclaimed)
        })
    }

    /// Makes and prepares a session whose row was just written.
    pub(crate) async fn finish(&self, mut desk: Desk, order: &SessionOrder) -> Result<Session> {
        self.0.establish(&mut desk).await?;
        desk.provide_first(order.manifest.as_deref()).await?;
        desk.prepare().await?;
        Session::first_point(&mut desk).await?;
        Ok(self.session(desk.row.id.clone()))
    }
}

/// What comes of some work, unless it is given up first; then it is dropped.
async fn unless<T>(given_up: oneshot::Receiver<()>, work: impl Future<Output = T>) -> Option<T> {
    let (mut given_up, mut work) = (pin!(given_up), pin!(work));
    poll_fn(|context| match given_up.as_mut().poll(context) {
        Poll::Ready(_) => Poll::Ready(None),
        Poll::Pending => work.as_mut().poll(context).map(Some),
    })
    .await
}

/// What came of a session, which is ended where this is dropped before somebody took it.
struct Unclaimed {
    sessions: Sessions,
    id: Option<SessionId>,
    outcome: Option<Result<Session>>,
    // An answer that nobody takes may be dropped where there is no runtime.
    runtime: Handle,
}

impl Unclaimed {
    fn new(sessions: &Sessions, id: &SessionId) -> Self {
        let (sessions, id) = (sessions.clone(), Some(id.clone()));
        Self { sessions, id, outcome: None, runtime: Handle::current() }
    }

    /// The session, which is claimed, or why there is none; then it is removed before this returns.
    async fn whole(mut self) -> Result<Session> {
        let failed = match self.outcome.take() {
            Some(Err(error)) => error,
            made => {
                self.outcome = made;
                return self.claimed();
            }
        };
        if let Some(id) = self.id.take() {
            cofferdam_core::to_its_end(end(self.sessions.clone(), id)).await.map_err(broken_off)?;
        }
        if failed.kind == ErrorKind::SetupFailed {
            return Err(failed.hint("Repair what failed; nothing is left of the session."));
        }
        Err(failed)
    }

    /// The session, which is claimed, or why there is none. What is kept of it is named, for nobody has its id
    /// otherwise.
    async fn named_if_kept(self) -> Result<Session> {
        let Some(Err(_)) = &self.outcome else { return self.claimed() };
        // ORDER: claimed afterwards, so that it is ended where nobody waits for the error.
        let kept = match self.id.clone() {
            Some(id) if self.sessions.is_kept(&id).await => id,
            Some(_) | None => return self.claimed(),
        };
        self.claimed().map_err(|failed| {
            let message =
                format!("session {kept} is kept as far as it was made: {}", failed.message);
            let hint = "Remove it, or repair what failed and resume it; it goes on there.";
            Error { message, ..failed }.hint(hint)
        })
    }

    fn claimed(mut self) -> Result<Session> {
        self.id = None;
        let none = || Err(Error::new(ErrorKind::Io, "the making of a session broke off"));
        self.outcome.take().unwrap_or_else(none)
    }
}

impl Drop for Unclaimed {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            self.runtime.spawn(end(self.sessions.clone(), id));
        }
    }
}

/// What fails here is recorded, and tried again by every start.
async fn end(sessions: Sessions, id: SessionId) {
    let reason = DestroyReason::Canceled;
    sessions.0.delete(&id, reason, CREATE_LIMIT).await.ok();
    sessions.0.owned.let_go(&id);
    if !sessions.0.making.is_over(&id) {
        run::chase(sessions, id, reason).await;
    }
}

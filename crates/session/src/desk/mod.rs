//! One session under its lock: what [`next`] decides is stored, then done.
//!
//! ORDER: the phase is written before anything is done in it, and what was done is asked for again
//! after a crash. So dropping a future here at any point leaves a row that says what may exist.

mod carried;
mod end;
mod unfinished;

use crate::answer::{CALL_LIMIT, COPY_LIMIT, CREATE_LIMIT, within};
use crate::lock::Lock;
use crate::sessions::{Inner, missing};
use crate::store::{NewEvent, Row, Written, blocking, broken_off};
use crate::{Action, Event, Phase, SessionId, events, home, next, now_ms};
use cofferdam_core::NetworkPolicy;
use cofferdam_core::{
    DestroyReason, DurableBackend, Error, ErrorKind, Found, Result, SandboxOrder, SandboxRecord,
    SandboxStatus,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use unfinished::is_unfinished;

/// How long somebody else may be at work on a session before a caller gives up.
pub(crate) const LOCK_PATIENCE: Duration = Duration::from_secs(300);
/// How often a goal is gone for: recovery of a loss takes two.
const ROUNDS: usize = 5;

/// One session under its lock.
pub(crate) struct Desk {
    pub(crate) inner: Arc<Inner>,
    pub(crate) row: Row,
    backend: Arc<dyn DurableBackend>,
    /// What went wrong on the way, to be told if the goal is not reached.
    trouble: Option<Error>,
    dirty: bool,
    said: Vec<NewEvent>,
    removed: bool,
    /// It was resumed on the way.
    pub(crate) resumed: bool,
    /// Whoever wants it running knows of an alarm, should there be one.
    pub(crate) on_purpose: bool,
    /// Until when it waits for a sandbox that somebody began to make; `None` is not at all.
    waits_until: Option<Instant>,
    folding: Folding,
    lock: Option<Lock>,
}

/// When what a sandbox noted is written into the session's events.
#[derive(Debug)]
enum Folding {
    /// Before whoever looks goes on.
    Before,
    /// Meanwhile.
    Beside,
    Begun(JoinHandle<Result<()>>),
}

impl Desk {
    /// Takes the lock of a session and reads its row; `None` where there is no such session.
    pub(crate) async fn open(inner: &Arc<Inner>, id: &SessionId) -> Result<Option<Self>> {
        Self::open_within(inner, id, LOCK_PATIENCE).await
    }

    /// The same for one who waits so long for others at work on it.
    pub(crate) async fn open_within(
        inner: &Arc<Inner>,
        id: &SessionId,
        patience: Duration,
    ) -> Result<Option<Self>> {
        let lock = inner.locks.take(id.as_str(), patience).await?;
        let mut desk = Self::behind(inner, id, lock).await?;
        if let Some(desk) = &mut desk {
            desk.be_patient(patience);
        }
        Ok(desk)
    }

    /// The same, if nobody is at work on it.
    pub(crate) async fn try_open(inner: &Arc<Inner>, id: &SessionId) -> Result<Option<Self>> {
        match inner.locks.try_take(id.as_str())? {
            Some(lock) => Self::behind(inner, id, lock).await,
            None => Ok(None),
        }
    }

    async fn behind(inner: &Arc<Inner>, id: &SessionId, lock: Lock) -> Result<Option<Self>> {
        match inner.store.get(id).await? {
            Some(row) => Ok(Some(Self::over(inner, row, lock)?)),
            None => {
                lock.retire();
                Ok(None)
            }
        }
    }

    /// A row that was just written under this lock.
    pub(crate) fn over(inner: &Arc<Inner>, row: Row, lock: Lock) -> Result<Self> {
        Ok(Self {
            backend: inner.backend(&row.backend)?,
            inner: Arc::clone(inner),
            row,
            trouble: None,
            dirty: false,
            said: Vec::new(),
            removed: false,
            resumed: false,
            on_purpose: false,
            waits_until: None,
            folding: Folding::Before,
            lock: Some(lock),
        })
    }

    pub(crate) fn backend(&self) -> &Arc<dyn DurableBackend> {
        &self.backend
    }

    /// The present sandbox. Missing in a phase without one.
    pub(crate) fn record(&self) -> Result<&SandboxRecord> {
        self.row.record.as_ref().ok_or_else(|| {
            let what = format!("session {} is {}", self.row.id, self.row.phase.name());
            Error::new(ErrorKind::NotFound, what).hint("See how it stands with `cofferdam show`.")
        })
    }

    /// Makes the sandbox of a row that was just written.
    pub(crate) async fn make(&mut self) -> Result<()> {
        let event = self.perform(Action::Create).await?;
        self.follow(event).await?;
        if self.reached(Event::Ensure) {
            return Ok(());
        }
        match self.trouble.take() {
            Some(error) => Err(error),
            None => self.drive(Event::Ensure).await,
        }
    }

    /// Brings the session to where it is wanted.
    pub(crate) async fn drive(&mut self, goal: Event) -> Result<()> {
        self.bury().await?;
        if goal == Event::Delete {
            self.put_carries_right(goal).await;
        }
        for _ in 0..ROUNDS {
            self.follow(goal).await?;
            if self.reached(goal) {
                self.pay_deadlines().await?;
                return self.pay_network().await;
            }
            let recovers = goal == Event::Ensure && self.row.phase == Phase::Lost;
            if let Some(error) = self.trouble.take().filter(|_| !recovers) {
                return Err(error);
            }
        }
        let what = format!("session {} stays {}", self.row.id, self.row.phase.name());
        Err(Error::new(ErrorKind::Unavailable, what).hint("Try again."))
    }

    /// Takes in what has become of the sandbox, and finishes what somebody began.
    pub(crate) async fn settle(&mut self) -> Result<()> {
        match self.row.phase {
            Phase::Deleting => return self.drive(Event::Delete).await,
            Phase::Stopping => return self.drive(Event::Stop).await,
            Phase::Failed if self.row.incarnation == 1 => {
                return self.remove_what_never_was().await;
            }
            Phase::Lost | Phase::Stopped | Phase::Failed => return self.bury().await,
            Phase::Creating | Phase::Running | Phase::Pausing | Phase::Paused | Phase::Resuming => {
            }
        }
        let event = self.look().await?;
        self.follow(event).await?;
        if self.row.phase == Phase::Failed && self.row.incarnation == 1 {
            // Nobody ever had it: its creator died before there was anything.
            return self.remove_what_never_was().await;
        }
        match self.trouble.take() {
            Some(error) => Err(error),
            None => self.pay_deadlines().await,
        }
    }

    /// Removes one that nobody ever had.
    async fn remove_what_never_was(&mut self) -> Result<()> {
        self.row.facts.reason = Some(DestroyReason::Canceled);
        let _room = self.inner.store.while_room_is_made();
        self.drive(Event::Delete).await
    }

    /// Whether it is a fork that was not made to its end, or its lease has ended, and it is gone now. For who wants it
    /// to run.
    pub(crate) async fn is_over(&mut self) -> Result<bool> {
        if self.row.facts.unfilled {
            self.remove_what_never_was().await?;
        } else if self.row.facts.times.lease_until_ms.is_some_and(|until| until <= now_ms()) {
            self.row.facts.reason = Some(DestroyReason::Lease);
            self.drive(Event::Delete).await?;
        }
        Ok(self.removed)
    }

    /// The same for who has no use for a new one.
    pub(crate) async fn refuse_what_is_over(&mut self) -> Result<()> {
        if !self.is_over().await? {
            return Ok(());
        }
        let name = self.row.name.as_deref().unwrap_or(self.row.id.as_str());
        let why = match self.row.facts.unfilled {
            true => "was never made to its end",
            false => "has reached the end of its time (ttl)",
        };
        let what = format!("session {name} {why}, and is removed");
        Err(Error::new(ErrorKind::NotFound, what).hint("Make it again."))
    }

    /// [`Desk::settle`] for who says something about the session later, and waits for [`Desk::folded`] in any case:
    /// what the sandbox noted until now is written meanwhile.
    pub(crate) async fn settle_beside(&mut self) -> Result<()> {
        self.folding = Folding::Beside;
        self.settle().await
    }

    /// Waits until what the sandbox noted is written.
    pub(crate) async fn folded(&mut self) -> Result<()> {
        match std::mem::replace(&mut self.folding, Folding::Before) {
            Folding::Before | Folding::Beside => Ok(()),
            Folding::Begun(folding) => folding.await.map_err(broken_off)?,
        }
    }

    /// Refuses one that somebody had begun to remove, which is over by now. For who goes on with what it held, and would
    /// make some of that again.
    pub(crate) fn refuse_removed(&self) -> Result<()> {
        match self.removed {
            true => Err(missing(self.row.id.as_str())),
            false => Ok(()),
        }
    }

    /// Ends what is left of a sandbox that somebody found lost, who died before that was done.
    async fn bury(&mut self) -> Result<()> {
        if !self.row.owes_a_burial() {
            return Ok(());
        }
        let event = self.end().await?;
        self.follow(event).await
    }

    /// Fails while it is frozen by an alarm, unless whoever asks lets it go on on purpose.
    ///
    /// ORDER: asked for anew, because what became of a sandbox may have been taken in since the row was
    /// read.
    pub(crate) async fn refuse_while_frozen(&self) -> Result<()> {
        if self.on_purpose {
            return Ok(());
        }
        let Some(frozen) = self.inner.store.frozen(&self.row.id).await? else { return Ok(()) };
        let name = self.row.name.as_deref().unwrap_or(self.row.id.as_str());
        Err(frozen.alarm.freezes(&format!("session {name}")))
    }

    fn reached(&self, goal: Event) -> bool {
        match goal {
            Event::Ensure => self.row.phase == Phase::Running,
            Event::Pause => self.row.phase == Phase::Paused,
            Event::Stop => !self.row.phase.owes_an_end() && self.row.cleanup_failed.is_none(),
            Event::Delete => self.removed,
            // A finding is reached by having been taken in.
            Event::FoundRunning
            | Event::FoundPaused
            | Event::FoundUnfinished
            | Event::FoundGone
            | Event::Made
            | Event::NotMade
            | Event::PauseDone
            | Event::PauseFailed
            | Event::ResumeDone
            | Event::ResumeFailed
            | Event::Ended
            | Event::EndFailed => self.trouble.is_none(),
        }
    }

    /// Follows an event to the end of what it entails.
    async fn follow(&mut self, mut event: Event) -> Result<()> {
        loop {
            let step = next(self.row.phase, event);
            if matches!(step.action, Action::Create | Action::Resume) {
                self.refuse_while_frozen().await?;
            }
            let before = std::mem::replace(&mut self.row.phase, step.phase);
            if step.action == Action::Create {
                self.row.incarnation += 1;
                self.row.record = None;
                self.row.facts.init.enter(self.row.incarnation);
                self.row.facts.deadlines_owed = false;
                self.row.facts.network_owed = false;
                self.dirty = true;
            }
            self.note(before);
            self.save(event == Event::Delete || step.phase == Phase::Deleting).await?;
            if before == Phase::Creating && self.row.phase == Phase::Failed {
                self.close().await?;
            }
            event = match step.action {
                Action::Nothing => return Ok(()),
                Action::Refuse => return Err(self.refusal()),
                Action::Remove => return self.remove().await,
                action @ (Action::Create
                | Action::Pause
                | Action::Resume
                | Action::Look
                | Action::End) => self.perform(action).await?,
            };
        }
    }

    /// What a change of phase means to those who watch.
    fn note(&mut self, before: Phase) {
        let now = self.row.phase;
        let row = &mut self.row;
        if before == now {
            return;
        }
        self.dirty = true;
        if now == Phase::Lost {
            row.facts.recovering = true;
            self.said.push(say(events::instance_lost(row.incarnation)));
        }
        let stands = matches!(now, Phase::Running | Phase::Paused);
        if before == Phase::Creating && stands && std::mem::take(&mut row.facts.recovering) {
            self.said.push(say(events::recovered(row.incarnation)));
        }
    }

    /// Writes the row if it changed. Where somebody wrote it meanwhile, the session is being
    /// removed: nobody else writes without the lock.
    pub(crate) async fn save(&mut self, deleting: bool) -> Result<()> {
        if !self.dirty && self.said.is_empty() {
            return Ok(());
        }
        // ORDER: what happened before is said before.
        self.folded().await?;
        let said = std::mem::take(&mut self.said);
        match self.inner.store.save(&mut self.row, said).await? {
            Written::Yes => {
                self.dirty = false;
                Ok(())
            }
            Written::Moved => {
                let now = self.inner.store.get(&self.row.id).await?;
                match now {
                    Some(now) if deleting && now.phase == Phase::Deleting => {
                        // What this side knows of the sandbox is not older than what was written.
                        let record = self.row.record.take();
                        self.row = Row { record: record.or_else(|| now.record.clone()), ..now };
                        self.dirty = false;
                        Ok(())
                    }
                    _ => {
                        let what = format!("session {} was removed meanwhile", self.row.id);
                        Err(Error::new(ErrorKind::Conflict, what).hint("Make another session."))
                    }
                }
            }
        }
    }

    /// Changes what is written down, with something to say about it.
    pub(crate) async fn amend(&mut self, said: Option<NewEvent>) -> Result<()> {
        self.dirty = true;
        self.said.extend(said);
        self.save(false).await
    }

    /// Says what was done. Where that cannot be written down, the error says that it was: whoever tries again does it
    /// twice.
    pub(crate) async fn tell(&mut self, said: NewEvent, done: &str) -> Result<()> {
        self.amend(Some(said)).await.map_err(|error| {
            let what = format!("{done}, but that could not be written down among the events");
            Error { hint: error.hint.clone(), ..Error::new(error.kind, what) }.source(error)
        })
    }

    fn refusal(&self) -> Error {
        let row = &self.row;
        let what = format!("session {} is {}", row.id, row.phase.name());
        let error = Error::new(ErrorKind::Conflict, what);
        error.hint(if row.phase == Phase::Deleting {
            "Use another session; this one is being removed."
        } else {
            "Ensure the session first."
        })
    }

    async fn perform(&mut self, action: Action) -> Result<Event> {
        match action {
            Action::Look => self.look().await,
            Action::Create => Ok(self.create().await),
            Action::End => self.end().await,
            Action::Pause => Ok(match self.pause().await {
                Ok(()) => Event::PauseDone,
                Err(error) => self.failed(error, Event::PauseFailed),
            }),
            Action::Resume => Ok(match self.resume().await {
                Ok(()) => Event::ResumeDone,
                Err(error) => self.failed(error, Event::ResumeFailed),
            }),
            Action::Nothing | Action::Remove | Action::Refuse => Ok(Event::EndFailed),
        }
    }

    fn failed(&mut self, error: Error, event: Event) -> Event {
        // What is gone is no trouble: it is found gone, and that decides.
        if error.kind != ErrorKind::NotFound {
            self.trouble = Some(error);
        }
        event
    }

    async fn look(&mut self) -> Result<Event> {
        let known = self.row.record.clone();
        let status = match known {
            Some(record) => {
                within(CALL_LIMIT, "say how a sandbox is", self.backend.status(&record)).await?
            }
            None => match self.listed().await? {
                Some(found) if is_unfinished(&found) => return Ok(Event::FoundUnfinished),
                Some(found) => {
                    self.dirty |= found.record.is_some();
                    self.row.record = found.record;
                    found.status
                }
                None => SandboxStatus::Gone,
            },
        };
        if matches!(self.folding, Folding::Beside) {
            let (inner, row) = (Arc::clone(&self.inner), self.row.clone());
            let fold = async move { inner.fold(&row, row.incarnation, None).await };
            self.folding = Folding::Begun(tokio::spawn(fold));
        } else {
            self.fold(None).await?;
        }
        Ok(match status {
            SandboxStatus::Running => Event::FoundRunning,
            SandboxStatus::Paused => Event::FoundPaused,
            SandboxStatus::Gone => Event::FoundGone,
        })
    }

    /// The present incarnation as the backend lists it.
    async fn listed(&self) -> Result<Option<Found>> {
        self.found(&self.row.id.sandbox(self.row.incarnation)?).await
    }

    async fn create(&mut self) -> Event {
        let made = self.try_create().await;
        // What is not made by now was waited for.
        self.waits_until = None;
        match made {
            Ok(record) => {
                self.row.facts.layer.clone_from(&record.layer);
                self.row.record = Some(record);
                self.fold(None).await.ok();
                Event::Made
            }
            Err(error) => {
                self.trouble = Some(error);
                Event::NotMade
            }
        }
    }

    async fn try_create(&self) -> Result<SandboxRecord> {
        let row = &self.row;
        let (homes, kept) = (self.inner.places.homes(), self.inner.places.kept());
        let name = row.id.to_string();
        let home = homes.join(&name);
        let layered = row.spec.is_copy_on_write() || row.spec.image().is_some();
        let layer = layered.then(|| kept.join(&name));
        blocking(move || {
            home::make(&homes, &name)?;
            if layered { home::make(&kept, &name) } else { Ok(()) }
        })
        .await?;
        let order = SandboxOrder {
            spec: row.spec.spec()?,
            owner: row.owner.clone(),
            deadlines: row.facts.times.deadlines(),
            home: Some(home),
            kept: layer,
        };
        let id = row.id.sandbox(row.incarnation)?;
        // A layer may have to be a copy of the workspace.
        let limit = if row.spec.is_copy_on_write() { COPY_LIMIT } else { CREATE_LIMIT };
        // ORDER: noted here, so that whoever ends this session waits for it though nobody else does.
        let (backend, made) = (Arc::clone(&self.backend), self.inner.making.begin(&row.id));
        let making = tokio::spawn(async move {
            let answer = backend.create(&id, &order).await;
            drop(made);
            answer
        });
        let broke_off =
            |e| Error::new(ErrorKind::Io, "the making of a sandbox broke off").source(e);
        within(limit, "make a sandbox", async { making.await.map_err(broke_off)? }).await
    }

    async fn pause(&mut self) -> Result<()> {
        let record = self.record()?.clone();
        within(CALL_LIMIT, "pause a sandbox", self.backend.pause(&record)).await?;
        self.fold(None).await
    }

    async fn resume(&mut self) -> Result<()> {
        let record = self.record()?.clone();
        let resume = match self.on_purpose {
            true => self.backend.resume_on_purpose(&record),
            false => self.backend.resume(&record),
        };
        within(CALL_LIMIT, "resume a sandbox", resume).await?;
        self.resumed = true;
        self.fold(None).await
    }

    /// Folds the journal of the present incarnation.
    pub(crate) async fn fold(&self, ended: Option<DestroyReason>) -> Result<()> {
        self.inner.fold(&self.row, self.row.incarnation, ended).await
    }

    /// Tells the keeper of deadlines that it does not know yet.
    pub(crate) async fn pay_deadlines(&mut self) -> Result<()> {
        if !self.row.facts.deadlines_owed || self.removed {
            return Ok(());
        }
        if let Some(record) = self.row.record.clone() {
            let deadlines = self.row.facts.times.deadlines();
            let set = self.backend.set_deadlines(&record, &deadlines);
            if let Err(error) = within(CALL_LIMIT, "take new deadlines", set).await {
                let status = self.backend.status(&record);
                let status = within(CALL_LIMIT, "say how a sandbox is", status).await?;
                // The sandbox that comes after one that is gone is made with them.
                if status != SandboxStatus::Gone {
                    return Err(error);
                }
            }
        }
        self.row.facts.deadlines_owed = false;
        self.dirty = true;
        self.save(false).await
    }

    /// Tells the keeper of rules of the way out that it does not know yet.
    pub(crate) async fn pay_network(&mut self) -> Result<()> {
        if !self.row.facts.network_owed || self.removed {
            return Ok(());
        }
        if let Some(record) = self.row.record.clone()
            && let Err(error) = self.tell_network(&record).await
        {
            let status = self.backend.status(&record);
            let status = within(CALL_LIMIT, "say how a sandbox is", status).await?;
            // The sandbox that comes after one that is gone is made with them.
            if status != SandboxStatus::Gone {
                return Err(error);
            }
        }
        self.row.facts.network_owed = false;
        self.dirty = true;
        self.save(false).await
    }

    async fn tell_network(&self, record: &SandboxRecord) -> Result<()> {
        let now = self.backend.network(record);
        let now = within(CALL_LIMIT, "say what a sandbox may reach", now).await?;
        let spec = self.row.spec.spec()?;
        let Some(wanted) = spec.network_policy()? else { return Ok(()) };
        let version = now.map_or(0, |now| now.version).saturating_add(1);
        let policy = NetworkPolicy { version, ..wanted };
        let set = self.backend.set_network(record, &policy);
        within(CALL_LIMIT, "take new rules", set).await
    }
}

fn say((kind, data): events::Word) -> NewEvent {
    NewEvent::now(kind, data)
}

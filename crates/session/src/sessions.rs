//! All sessions of one state directory.

use crate::answer::{CALL_LIMIT, CREATE_LIMIT, within};
use crate::carries::{self, Which};
use crate::desk::{Desk, LOCK_PATIENCE};
use crate::history::Awaited;
use crate::lock::Locks;
use crate::making::Making;
use crate::order::{SessionOrder, millis};
use crate::owned::Owned;
use crate::places::Places;
use crate::reaper::{self, GcReport, Thoroughness, owner_key};
use crate::report::Seen;
use crate::store::{
    Apart, EventFilter, Fold, Inserted, NewEvent, Quota, Room, Row, Store, View, Written, apart,
    wants_room,
};
use crate::{Event, EventReport, Phase, Session, SessionId, SessionReport, now_ms};
use cofferdam_core::{
    DestroyReason, DurableBackend, Error, ErrorKind, Result, SandboxId, SandboxRecord,
};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// The most events of one answer.
pub const MAX_EVENTS: u32 = 1000;
/// How often a row that others write is read again before a change of it is given up.
const ATTEMPTS: usize = 16;

/// All sessions of one state directory. Clones are the same sessions.
#[derive(Clone)]
pub struct Sessions(pub(crate) Arc<Inner>);

/// What all clones share.
#[derive(Clone)]
pub(crate) struct Inner {
    pub(crate) places: Places,
    pub(crate) store: Store,
    pub(crate) locks: Locks,
    pub(crate) backends: Vec<Arc<dyn DurableBackend>>,
    pub(crate) awaited: Arc<Awaited>,
    pub(crate) owned: Arc<Owned>,
    pub(crate) making: Making,
}

impl std::fmt::Debug for Sessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sessions").field("places", &self.0.places).finish_non_exhaustive()
    }
}

impl Sessions {
    /// Opens the sessions of a state directory, and repairs what a crash left behind: what was being
    /// made is adopted or given up, what was being ended is ended, what is over is removed.
    ///
    /// A backend belongs to the sessions of one state directory, in any number of processes: what it has
    /// of a session that is not known here is ended.
    ///
    /// The first backend is that of orders which name none. A database that is damaged or of a newer
    /// version is an error. What cannot be repaired now is not: it stays recorded.
    pub async fn open(state: &Path, backends: Vec<Arc<dyn DurableBackend>>) -> Result<Self> {
        Self::open_with(state, backends, Room::Ordinary).await
    }

    /// The same for one who only looks, ends or removes, which works on a full disk too, as long as
    /// there is the reserve that others keep there.
    pub async fn open_on_reserve(
        state: &Path,
        backends: Vec<Arc<dyn DurableBackend>>,
    ) -> Result<Self> {
        Self::open_with(state, backends, Room::Reserve).await
    }

    async fn open_with(
        state: &Path,
        backends: Vec<Arc<dyn DurableBackend>>,
        room: Room,
    ) -> Result<Self> {
        let sessions = Self::assemble(state, backends, room).await?;
        reaper::reap(&sessions, Thoroughness::Quick).await?;
        Ok(sessions)
    }

    /// The same without any repair.
    pub async fn open_as_is(state: &Path, backends: Vec<Arc<dyn DurableBackend>>) -> Result<Self> {
        Self::assemble(state, backends, Room::Reserve).await
    }

    async fn assemble(
        state: &Path,
        backends: Vec<Arc<dyn DurableBackend>>,
        room: Room,
    ) -> Result<Self> {
        if backends.is_empty() {
            return Err(Error::new(ErrorKind::Unavailable, "no backend keeps sessions here"));
        }
        let places = match room {
            Room::Ordinary => Places::open(state)?,
            Room::Reserve => Places::open_to_look(state)?,
        };
        let store = Store::open(places.database(), room).await?;
        let locks = Locks::new(places.locks());
        let (awaited, owned) = (Arc::new(Awaited::default()), Arc::new(Owned::default()));
        Ok(Self(Arc::new(Inner {
            places,
            store,
            locks,
            backends,
            awaited,
            owned,
            making: Making::default(),
        })))
    }

    /// The sessions of one owner, empty for the local user: those of others do not exist in here, and
    /// neither do their commands, events and snapshots. What is made here is this owner's, as far as the
    /// quota allows. Names are unique per owner.
    #[must_use]
    pub fn for_owner(&self, owner: &str, quota: Quota) -> Self {
        let store = self.0.store.seen_by(View { owner: owner.to_owned(), quota });
        Self(Arc::new(Inner { store, ..Inner::clone(&self.0) }))
    }

    /// Finishes what was begun and ends what is over, as every start does. A program that runs for long
    /// asks for it now and then.
    pub async fn repair(&self) -> Result<()> {
        self.refuse_a_part("repair")?;
        reaper::reap(self, Thoroughness::Quick).await.map(drop)
    }

    /// Refuses what concerns all sessions where only those of one owner are seen.
    pub(crate) fn refuse_a_part(&self, what: &str) -> Result<()> {
        match self.0.store.view() {
            None => Ok(()),
            Some(_) => {
                Err(Error::new(ErrorKind::Denied, format!("{what} is for all sessions together")))
            }
        }
    }

    /// Makes a session and prepares it. A name that is taken is a conflict.
    ///
    /// A session whose sandbox cannot be made is removed again; one whose preparation fails is kept,
    /// and where it has no name its error says its id. Where this future is dropped, a session without a name
    /// is ended, because nobody has its id; one with a name stays, and `ensure` goes on with it.
    pub async fn create(&self, order: &SessionOrder) -> Result<Session> {
        order.check()?;
        match order.name {
            Some(_) => apart(self.creation(order)).await,
            None => self.create_unnamed(order).await,
        }
    }

    fn creation(&self, order: &SessionOrder) -> Apart<Session> {
        let (sessions, order) = (self.clone(), order.clone());
        Box::pin(async move { sessions.create_here(&order).await })
    }

    async fn create_here(&self, order: &SessionOrder) -> Result<Session> {
        match self.0.begin(order).await? {
            Some(desk) => self.finish(desk, order).await,
            None => {
                let name = order.name.as_deref().unwrap_or_default();
                Err(Error::new(ErrorKind::Conflict, format!("there is a session {name:?} already"))
                    .hint("Use another name, or ensure the session."))
            }
        }
    }

    /// The session that a text names: its id, its name, or the beginning of one of them.
    ///
    /// A beginning that fits several is a conflict that lists them.
    pub async fn find(&self, text: &str) -> Result<SessionId> {
        // Whole ones are looked up, so that what they cost does not grow with the sessions there are.
        match self.find_whole(text).await {
            Err(error) if error.kind == ErrorKind::NotFound => {}
            found => return found,
        }
        let rows = self.0.store.all().await?;
        let fits = |row: &&Row| {
            let name = row.name.as_deref().filter(|_| row.phase != Phase::Deleting);
            row.id.as_str().starts_with(text) || name.is_some_and(|name| name.starts_with(text))
        };
        let found: Vec<&Row> = rows.iter().filter(fits).collect();
        match found.as_slice() {
            [row] if !text.is_empty() => Ok(row.id.clone()),
            [] | [_] => Err(missing(text)),
            several => {
                let shown: Vec<String> = several.iter().map(|row| shown(row)).collect();
                let what = format!("{text:?} begins several sessions: {}", shown.join(", "));
                Err(Error::new(ErrorKind::Conflict, what).hint("Write more of the id or name."))
            }
        }
    }

    /// The session of this id or name, written out in full.
    pub async fn find_whole(&self, text: &str) -> Result<SessionId> {
        if let Ok(id) = SessionId::new(text)
            && let Some(row) = self.0.store.get(&id).await?
        {
            return Ok(row.id);
        }
        let named = self.0.store.named(text).await?;
        named.map(|row| row.id).ok_or_else(|| missing(text))
    }

    /// The door to a session. Whether it is there is seen at first use.
    pub fn session(&self, id: SessionId) -> Session {
        Session::new(self.clone(), id)
    }

    /// The sessions that have all these labels, oldest first, as they stand now.
    pub async fn list(&self, labels: &BTreeMap<String, String>) -> Result<Vec<SessionReport>> {
        let seen = self.0.seen().await;
        let rows = self.0.store.all().await?;
        let wanted = |row: &Row| labels.iter().all(|(k, v)| row.labels.get(k) == Some(v));
        let mut reports = Vec::new();
        for row in rows.iter().filter(|row| wanted(row)) {
            reports.push(self.0.report_with_alarm(row, &seen).await?);
        }
        Ok(reports)
    }

    /// How a session stands now. Repairs nothing and waits for nobody.
    pub async fn status(&self, id: &SessionId) -> Result<SessionReport> {
        let row = self.0.row(id).await?;
        let mut seen = BTreeMap::new();
        if let (Some(record), Ok(backend)) = (&row.record, self.0.backend(&row.backend)) {
            let status = within(CALL_LIMIT, "say how a sandbox is", backend.status(record)).await;
            seen.insert(record.id.clone(), status.map_err(|error| error.chain()));
        }
        self.0.fold(&row, row.incarnation, None).await?;
        self.0.report_with_alarm(&row, &seen).await
    }

    /// Stops everything in a session where it stands. Pausing what is paused succeeds.
    pub async fn pause(&self, id: &SessionId) -> Result<()> {
        let _room = self.0.store.while_room_is_made();
        if let Some((backend, record)) = self.0.what_may_fill(id).await? {
            // What cannot be stopped is tried again below, where the error is told.
            within(CALL_LIMIT, "pause a sandbox", backend.pause(&record)).await.ok();
        }
        let mut desk = self.0.desk(id).await?;
        match desk.drive(Event::Pause).await {
            Err(e) if matches!(e.kind, ErrorKind::Unavailable | ErrorKind::NotFound) => {
                // It may have ended meanwhile, by its lease for one.
                desk.settle().await?;
                desk.drive(Event::Pause).await
            }
            done => done,
        }
    }

    /// Lets everything go on, also after an alarm about a secret, which nothing else does. One that was
    /// lost is recovered, as by `ensure`. For people: who works for a model asks by [`Sessions::wake`].
    pub async fn resume(&self, id: &SessionId) -> Result<()> {
        self.go_on(id, true).await
    }

    /// The same, but after an alarm about a secret it is a conflict: who caused that does not end it.
    pub async fn wake(&self, id: &SessionId) -> Result<()> {
        self.go_on(id, false).await
    }

    async fn go_on(&self, id: &SessionId, on_purpose: bool) -> Result<()> {
        let mut desk = self.0.desk(id).await?;
        desk.on_purpose = on_purpose;
        desk.refuse_what_is_over().await?;
        desk.drive(Event::Ensure).await?;
        if on_purpose {
            // ORDER: before what prepares it, which may raise another alarm.
            self.0.store.thaw_before(id, desk.row.incarnation).await?;
        }
        desk.prepare().await
    }

    /// Ends the sandbox of a session and keeps the session: home directory, output, events.
    pub async fn stop(&self, id: &SessionId) -> Result<()> {
        let _room = self.0.store.while_room_is_made();
        let mut desk = self.0.desk(id).await?;
        desk.put_carries_right(Event::Stop).await;
        desk.drive(Event::Stop).await
    }

    /// Removes a session with all that it has. Says whether there was one.
    ///
    /// Does not wait for those who use it: they are told that it is being removed. A sandbox that is still being
    /// made is waited for as long as a creation may take. Where something cannot be removed now, the error says so
    /// and every start of Cofferdam tries again.
    pub async fn delete(&self, id: &SessionId) -> Result<bool> {
        let was_there = apart(self.deletion(id)).await?;
        self.0.owned.let_go(id);
        Ok(was_there)
    }

    fn deletion(&self, id: &SessionId) -> Apart<bool> {
        let (sessions, id) = (self.clone(), id.clone());
        Box::pin(async move { sessions.0.delete(&id, DestroyReason::Success, CREATE_LIMIT).await })
    }

    /// Gives a session a longer lease, and says when it is over in milliseconds since 1970.
    pub async fn extend(&self, id: &SessionId, by: Duration) -> Result<u64> {
        let mut desk = self.0.desk(id).await?;
        let times = &mut desk.row.facts.times;
        let Some(until) = times.lease_until_ms else {
            let what = format!("session {id} has no lease to extend");
            return Err(Error::new(ErrorKind::Conflict, what)
                .hint("Nothing ends it by itself; leave it, or ensure it with a lease."));
        };
        let until = until.max(now_ms()).saturating_add(millis(by));
        times.lease_until_ms = Some(until);
        desk.row.facts.deadlines_owed = true;
        let said = NewEvent::now("extended", json!({ "lease_until_ms": until }));
        desk.amend(Some(said)).await?;
        desk.pay_deadlines().await?;
        Ok(until)
    }

    /// What happened after the event of this number, at most [`MAX_EVENTS`], of one session or all.
    pub async fn events(
        &self,
        session: Option<&SessionId>,
        after: u64,
    ) -> Result<Vec<EventReport>> {
        let rows = match session {
            Some(id) => self.0.store.get(id).await?.into_iter().collect(),
            None => self.0.store.all().await?,
        };
        for row in rows.iter().filter(|row| row.record.is_some()) {
            self.0.fold(row, row.incarnation, None).await?;
        }
        self.written_events(session, after).await
    }

    /// The same of what is written down already: keepers are not asked. That is what to look at when
    /// [`Sessions::written`] tells, and costs little.
    pub async fn written_events(
        &self,
        session: Option<&SessionId>,
        after: u64,
    ) -> Result<Vec<EventReport>> {
        let filter = EventFilter { session: session.cloned(), after, limit: MAX_EVENTS };
        let found = self.0.store.events(filter).await?;
        Ok(found.into_iter().map(EventReport::from).collect())
    }

    /// The number of the last event that was written down, whosever it is; 0 where there is none.
    pub async fn newest_event(&self) -> Result<u64> {
        self.0.store.newest_event().await
    }

    /// Told whenever this process wrote something down, events among it. What others write is not told.
    pub fn written(&self) -> watch::Receiver<u64> {
        self.0.store.written()
    }

    /// Compares all that exists with all that is recorded, repairs, and says what it did. A dry run
    /// says what it would do.
    pub async fn gc(&self, dry_run: bool) -> Result<GcReport> {
        self.refuse_a_part("cleaning up")?;
        let _room = (!dry_run).then(|| self.0.store.while_room_is_made());
        let how = if dry_run { Thoroughness::DryRun } else { Thoroughness::Full };
        reaper::reap(self, how).await
    }
}

impl Inner {
    /// The backend of this name.
    pub(crate) fn backend(&self, name: &str) -> Result<Arc<dyn DurableBackend>> {
        let found = self.backends.iter().find(|backend| backend.name() == name);
        found.cloned().ok_or_else(|| {
            let names: Vec<&str> = self.backends.iter().map(|backend| backend.name()).collect();
            let what =
                format!("no backend {name:?} keeps sessions here, only {}", names.join(", "));
            Error::new(ErrorKind::Unavailable, what).hint("Use a Cofferdam that has this backend.")
        })
    }

    pub(crate) async fn row(&self, id: &SessionId) -> Result<Row> {
        self.store.get(id).await?.ok_or_else(|| missing(id.as_str()))
    }

    pub(crate) async fn desk(self: &Arc<Self>, id: &SessionId) -> Result<Desk> {
        Desk::open(self, id).await?.ok_or_else(|| missing(id.as_str()))
    }

    /// Writes the row of a new session under its lock; `None` where the name is taken.
    pub(crate) async fn begin(self: &Arc<Self>, order: &SessionOrder) -> Result<Option<Desk>> {
        let first = self.backends.first().map(|backend| backend.name());
        let name = order.backend.as_deref().or(first).unwrap_or_default();
        let backend = self.backend(name)?;
        let row = order.row(SessionId::fresh()?, backend.name())?;
        if !order.owned {
            return self.begin_with(row).await;
        }
        // ORDER: the owner's lock before the row, or a reaper could think that nobody owns it.
        let id = row.id.clone();
        self.owned.hold(&id, self.locks.take(&owner_key(&id), LOCK_PATIENCE).await?);
        let begun = self.begin_with(row).await;
        if !matches!(begun, Ok(Some(_))) {
            self.owned.let_go(&id);
        }
        begun
    }

    pub(crate) async fn begin_with(self: &Arc<Self>, mut row: Row) -> Result<Option<Desk>> {
        if let Some(view) = self.store.view() {
            row.owner.clone_from(&view.owner);
        }
        let lock = self.locks.take(row.id.as_str(), LOCK_PATIENCE).await?;
        match self.store.insert(&row, Vec::new()).await? {
            Inserted::Yes => Ok(Some(Desk::over(self, row, lock)?)),
            Inserted::NameTaken => {
                lock.retire();
                Ok(None)
            }
            Inserted::TooMany(most) => {
                lock.retire();
                Err(over_quota(format!("there are {most} sandboxes already, as many as there may")))
            }
            Inserted::TooMuchMemory(most) => {
                lock.retire();
                Err(over_quota(format!("its memory limit and those of others exceed {most} bytes")))
            }
        }
    }

    /// Makes the sandbox of a new session. Where that fails nothing of the session is kept.
    pub(crate) async fn establish(&self, desk: &mut Desk) -> Result<()> {
        let Err(error) = desk.make().await else { return Ok(()) };
        desk.row.facts.reason = Some(DestroyReason::Error);
        let _room = self.store.while_room_is_made();
        // The error that caused it is the one to tell; what could not be removed stays recorded.
        desk.drive(Event::Delete).await.ok();
        self.owned.let_go(&desk.row.id);
        Err(error)
    }

    /// See [`Sessions::delete`]. What is still being made is waited for with this patience.
    pub(crate) async fn delete(
        self: &Arc<Self>,
        id: &SessionId,
        reason: DestroyReason,
        patience: Duration,
    ) -> Result<bool> {
        let _room = self.store.while_room_is_made();
        if let Some((backend, record)) = self.what_may_fill(id).await? {
            // ORDER: its end before the room, because one that was only paused runs on for a moment
            // while it is ended. The end is asked for again below, where there is room to write it.
            let end = backend.destroy(&record, reason);
            within(CALL_LIMIT, "end a sandbox", end).await.ok();
        }
        // ORDER: before it is condemned, for no sandbox is made for one that is.
        if carries::any(&self.places, id, Which::Every)
            && let Some(mut desk) = Desk::try_open(self, id).await?
        {
            desk.put_carries_right(Event::Delete).await;
        }
        let condemned = match self.condemn(id, reason).await {
            Err(error) if wants_room(&error) => {
                // Without any room nothing can be removed, but nothing of it runs on.
                if let Some(record) = self.store.get(id).await?.and_then(|row| row.record) {
                    let backend = self.backend(&record.backend)?;
                    let end = backend.destroy(&record, reason);
                    within(CALL_LIMIT, "end a sandbox", end).await.ok();
                }
                return Err(error);
            }
            other => other?,
        };
        let Some(row) = condemned else { return Ok(false) };
        if let Some(mut desk) = Desk::try_open(self, id).await? {
            desk.be_patient(patience);
            return desk.drive(Event::Delete).await.map(|()| true);
        }
        // Somebody is at work on it. With its sandbox gone that is over soon.
        if let Some(record) = &row.record {
            let backend = self.backend(&row.backend)?;
            within(CALL_LIMIT, "end a sandbox", backend.destroy(record, reason)).await?;
        }
        let Some(mut desk) = Desk::open(self, id).await? else { return Ok(true) };
        desk.be_patient(patience);
        desk.drive(Event::Delete).await.map(|()| true)
    }

    /// The sandbox of a session on a full disk. It may be what fills that, so it is stopped before the
    /// room is let go of for what is written.
    pub(crate) async fn what_may_fill(
        &self,
        id: &SessionId,
    ) -> Result<Option<(Arc<dyn DurableBackend>, SandboxRecord)>> {
        if !self.store.is_on_reserve() {
            return Ok(None);
        }
        let Some(row) = self.store.get(id).await? else { return Ok(None) };
        let backend = self.backend(&row.backend)?;
        Ok(row.record.map(|record| (backend, record)))
    }

    /// Writes down that a session is being removed. Needs no lock: nothing leads back.
    async fn condemn(&self, id: &SessionId, reason: DestroyReason) -> Result<Option<Row>> {
        for _ in 0..ATTEMPTS {
            let Some(mut row) = self.store.get(id).await? else { return Ok(None) };
            if row.phase == Phase::Deleting {
                return Ok(Some(row));
            }
            row.phase = Phase::Deleting;
            row.facts.reason = Some(reason);
            if self.store.save(&mut row, Vec::new()).await? == Written::Yes {
                return Ok(Some(row));
            }
        }
        let what = format!("session {id} changes too fast to be removed");
        Err(Error::new(ErrorKind::Unavailable, what).hint("Try again."))
    }

    /// Folds the journal of an incarnation. One that cannot be read now, or written down on a full
    /// disk, is folded later, unless it is to be closed.
    pub(crate) async fn fold(
        &self,
        row: &Row,
        incarnation: u32,
        ended: Option<DestroyReason>,
    ) -> Result<()> {
        let Some(after) = self.store.folded(&row.id, incarnation).await? else { return Ok(()) };
        let id = row.id.sandbox(incarnation)?;
        let backend = self.backend(&row.backend)?;
        let entries = within(CALL_LIMIT, "read a journal", backend.journal(&id, after)).await;
        let entries = match entries {
            Ok(entries) => entries,
            Err(e) if e.kind == ErrorKind::NotFound => Vec::new(),
            Err(_) if ended.is_none() => return Ok(()),
            Err(e) => return Err(e),
        };
        if entries.is_empty() && ended.is_none() {
            return Ok(());
        }
        let (session, label) = (row.id.clone(), row.facts.label.clone());
        let last = ended.is_some();
        match self.store.fold(Fold { session, incarnation, label, entries, ended }).await {
            Err(error) if !last && wants_room(&error) => Ok(()),
            other => other,
        }
    }

    /// What the backends say of their sandboxes. One that does not answer says nothing.
    async fn seen(&self) -> BTreeMap<SandboxId, Seen> {
        let mut seen = BTreeMap::new();
        for backend in &self.backends {
            if let Ok(all) = within(CALL_LIMIT, "list its sandboxes", backend.list()).await {
                seen.extend(all.into_iter().map(|found| {
                    let seen = found.unreachable.map_or(Ok(found.status), Err);
                    (found.id, seen)
                }));
            }
        }
        seen
    }

    /// The same, with why it is frozen, if it is.
    async fn report_with_alarm(
        &self,
        row: &Row,
        seen: &BTreeMap<SandboxId, Seen>,
    ) -> Result<SessionReport> {
        let mut report = self.report(row, seen);
        let may_be = matches!(report.phase, Phase::Paused | Phase::Lost);
        if may_be && !report.secrets.is_empty() {
            self.fold(row, row.incarnation, None).await?;
        }
        report.alarm = self.store.frozen(&row.id).await?.map(|frozen| frozen.alarm);
        Ok(report)
    }

    fn report(&self, row: &Row, seen: &BTreeMap<SandboxId, Seen>) -> SessionReport {
        let sandbox = row.record.as_ref().map(|record| &record.id);
        SessionReport::new(row, sandbox.and_then(|id| seen.get(id)))
    }
}

fn over_quota(what: String) -> Error {
    Error::new(ErrorKind::Denied, what).hint("Remove a sandbox, or ask for a smaller limit.")
}

fn shown(row: &Row) -> String {
    row.name.as_ref().map_or_else(|| row.id.to_string(), |name| format!("{} ({name})", row.id))
}

pub(crate) fn missing(text: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no session {text:?}"))
        .hint("List the sessions with `cofferdam ls`.")
}

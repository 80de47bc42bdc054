//! When points are taken: before a command starts, where something changed since the last one, and when
//! a command ends that somebody waits for.
//!
//! ORDER: under the session's lock, so that no two are taken at once. A command that is started
//! meanwhile asks for no lock. So where others run everything is frozen while it is looked at; and where
//! nobody is known to run, a look that found something is repeated, and one that saw two moments is
//! taken again while everything is frozen.

use super::evict::{LIMITS, evict};
use super::point::{PointCommand, PointKind, PointReport, words};
use super::store::{History, NewTree, State};
use super::take::{Look, MAX_ASKED_BYTES, MAX_POINT_BYTES, Order};
use super::walk::{Bounds, Stillness, is_moved};
use crate::answer::{CALL_LIMIT, within};
use crate::desk::Desk;
use crate::sessions::missing;
use crate::store::{Row, Scope, blocking};
use crate::{Session, SessionId, now_ms};
use cofferdam_core::{Error, ErrorKind, ExecOrder, ExecStatus, ProcessId, Result, SandboxStatus};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How long a command waits before its start for others who are at work on the session: then nobody
/// looks.
const BEGINS_WITHIN: Duration = Duration::from_secs(5);
/// How long the end of a command waits for them: then it is no point.
const ENDS_WITHIN: Duration = Duration::from_secs(30);
/// The most commands that somebody started and nobody waited for, which are remembered.
const MOST_BEGUN: usize = 4096;

/// The history of a session. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryReport {
    /// The session.
    pub session: String,
    /// Whether its commands are points.
    pub checkpoints: bool,
    /// The point that it stands at.
    pub at: Option<u32>,
    /// The points, oldest first.
    pub points: Vec<PointReport>,
    /// How many older ones are not in here.
    pub omitted: u64,
}

/// A command that was started here, whose end is to be a point.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Begun {
    /// Whether nothing from before its start can be in that point.
    looked_before: bool,
}

/// What is remembered of the commands of sessions as long as this process lives.
#[derive(Debug, Default)]
pub(crate) struct Unkept {
    begun: Mutex<BTreeMap<(SessionId, ProcessId), Begun>>,
    /// Why there is no point of a command that ended.
    why: Mutex<BTreeMap<(SessionId, ProcessId), String>>,
}

impl Unkept {
    fn begin(&self, key: (SessionId, ProcessId), begun: Begun) {
        let mut all = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        // LIMIT: what nobody waits for is in the next point between commands.
        if all.len() >= MOST_BEGUN {
            all.pop_first();
        }
        all.insert(key, begun);
    }

    fn end(&self, key: &(SessionId, ProcessId)) -> Option<Begun> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner).remove(key)
    }

    fn say(&self, key: (SessionId, ProcessId), why: String) {
        let mut all = self.why.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MOST_BEGUN {
            all.pop_first();
        }
        all.insert(key, why);
    }
}

impl Session {
    /// Its history, of which the last so many points are told. Wakes nothing.
    ///
    /// A session that is not copy-on-write is a conflict.
    pub async fn history(&self, most: usize) -> Result<HistoryReport> {
        let row = self.sessions.0.row(&self.id).await?;
        layered(&row)?;
        let history = self.points();
        let (state, mut points) = blocking(move || {
            let state = history.state()?;
            Ok((state, history.reports()?))
        })
        .await?;
        let at = state.and_then(|state| state.at);
        mark_undone(&mut points, at);
        let omitted = points.len().saturating_sub(most);
        Ok(HistoryReport {
            session: self.id.to_string(),
            checkpoints: row.facts.has_checkpoints(),
            at,
            points: points.split_off(omitted),
            omitted: omitted as u64,
        })
    }

    /// Why the end of a command that was waited for here is no point of the history, told once; nothing
    /// where it is one, or where none was to be.
    pub fn not_kept(&self, exec: &ProcessId) -> Option<String> {
        let all = &self.sessions.0.unkept.why;
        let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
        all.remove(&(self.id.clone(), exec.clone()))
    }

    pub(crate) fn points(&self) -> History {
        History::new(self.sessions.0.places.kept().join(self.id.as_str()))
    }

    /// Takes the point of what changed since the last one, before a command begins. What goes wrong here
    /// is no reason not to start it.
    pub(crate) async fn before_start(&self, order: &ExecOrder) -> Option<Begun> {
        let row = self.sessions.0.row(&self.id).await.ok()?;
        if !row.spec.is_copy_on_write() || !row.facts.has_checkpoints() {
            return None;
        }
        let session = self.clone();
        let id = order.command.id.clone();
        let looked = to_its_end(async move { session.look_before(&id).await }).await;
        match looked {
            Ok(Before::Looked) => Some(Begun { looked_before: true }),
            Ok(Before::OthersRun) | Err(_) => Some(Begun { looked_before: false }),
            Ok(Before::HasEnded) => None,
        }
    }

    async fn look_before(&self, id: &ProcessId) -> Result<Before> {
        let mut desk = self.desk_within(BEGINS_WITHIN).await?;
        let execs = execs(&desk).await?;
        if execs.iter().any(|exec| exec.id == *id && exec.ended.is_some()) {
            return Ok(Before::HasEnded);
        }
        if execs.iter().any(runs) {
            return Ok(Before::OthersRun);
        }
        take(&mut desk, &Taking::between(&execs, MAX_POINT_BYTES), Stillness::Perhaps).await?;
        Ok(Before::Looked)
    }

    /// Remembers a command that was started.
    pub(crate) fn begun(&self, order: &ExecOrder, begun: Option<Begun>) {
        if let Some(begun) = begun.filter(|_| !order.detached) {
            let key = (self.id.clone(), order.command.id.clone());
            self.sessions.0.unkept.begin(key, begun);
        }
    }

    /// Takes the point of a command that was started here and has ended. What goes wrong is remembered
    /// for who asks, and spoils nothing.
    pub(crate) async fn has_ended(&self, status: &ExecStatus) {
        let key = (self.id.clone(), status.id.clone());
        let Some(begun) = self.sessions.0.unkept.end(&key) else { return };
        let (session, status) = (self.clone(), status.clone());
        let taken = to_its_end(async move { session.take_end(&status, begun).await }).await;
        let why = match taken {
            Ok(point) => point.and_then(|point| point.not_kept),
            Err(error) => Some(error.chain()),
        };
        if let Some(why) = why {
            self.sessions.0.unkept.say(key, why);
        }
    }

    async fn take_end(&self, status: &ExecStatus, begun: Begun) -> Result<Option<PointReport>> {
        let mut desk = self.desk_within(ENDS_WITHIN).await?;
        let Some(ended) = &status.ended else { return Ok(None) };
        let execs = execs(&desk).await?;
        let mut taking = Taking::between(&execs, MAX_POINT_BYTES);
        taking.said.kind = PointKind::Command;
        taking.said.command = Some(PointCommand {
            id: status.id.to_string(),
            argv: words(&status.argv),
            ending: ended.ending.kind(),
            exit_code: ended.ending.exit_code(),
        });
        taking.said.looked_before = begun.looked_before;
        taking.said.shared_with = beside(status, &execs);
        taking.own = Some((status.id.to_string(), ended.at_ms));
        let others = execs.iter().any(|exec| exec.id != status.id && runs(exec));
        let stillness = if others { Stillness::Still } else { Stillness::Perhaps };
        take(&mut desk, &taking, stillness).await
    }

    async fn desk_within(&self, patience: Duration) -> Result<Desk> {
        let desk = Desk::open_within(&self.sessions.0, &self.id, patience).await?;
        desk.ok_or_else(|| missing(self.id.as_str()))
    }

    /// Makes the session's first point, if it has none.
    pub(crate) async fn first_point(desk: &mut Desk) -> Result<()> {
        let is_wanted = desk.row.spec.is_copy_on_write() && desk.row.facts.has_checkpoints();
        let history = history_of(desk);
        if !is_wanted || blocking(move || history.state()).await?.is_some() {
            return Ok(());
        }
        let mut taking = Taking::between(&[], MAX_POINT_BYTES);
        taking.said.kind = PointKind::Start;
        // What cannot be kept now is tried again at the first command.
        take(desk, &taking, Stillness::Perhaps).await.ok();
        Ok(())
    }
}

/// What came of a look before a command.
enum Before {
    Looked,
    OthersRun,
    /// It is no new command.
    HasEnded,
}

/// A point that is to be taken.
#[derive(Debug, Clone)]
pub(super) struct Taking {
    pub(super) said: PointReport,
    /// The command whose point it is, and when it ended.
    own: Option<(String, u64)>,
    /// Commands that ended, and when.
    ended: Vec<(String, u64)>,
    most_bytes: u64,
}

impl Taking {
    /// One that is taken only if something changed.
    pub(super) fn between(execs: &[ExecStatus], most_bytes: u64) -> Self {
        let ended = execs.iter().filter_map(|exec| {
            Some((exec.id.to_string(), exec.ended.as_ref().map(|ended| ended.at_ms)?))
        });
        Self {
            said: PointReport::new(PointKind::Between, now_ms()),
            own: None,
            ended: ended.collect(),
            most_bytes,
        }
    }

    /// The same where somebody asked for it.
    pub(super) fn asked(execs: &[ExecStatus]) -> Self {
        Self::between(execs, MAX_ASKED_BYTES)
    }

    /// What is said of it, in a history that stands here.
    fn said(&self, state: &State) -> PointReport {
        let is_own = |id: &str| self.own.as_ref().is_some_and(|(own, _)| own == id);
        let is_news = |(id, at_ms): &&(String, u64)| *at_ms >= state.looked_ms && !is_own(id);
        let ended = self.ended.iter().filter(is_news).map(|(id, _)| id.clone());
        let mut said = self.said.clone();
        // The first point has nothing before it.
        if state.at.is_some() {
            said.ended = ended.collect();
        }
        said
    }
}

/// Takes a point, if one is to be taken, and says what it is.
pub(super) async fn take(
    desk: &mut Desk,
    taking: &Taking,
    stillness: Stillness,
) -> Result<Option<PointReport>> {
    if stillness == Stillness::Perhaps {
        match attempt(desk, taking, stillness).await {
            Err(error) if is_moved(&error) => {}
            other => return other,
        }
    }
    let held = hold(desk).await?;
    let taken = attempt(desk, taking, Stillness::Still).await;
    // A session that cannot be let go on now is resumed by its next command.
    let gone_on = go_on(desk, held).await;
    let taken = taken?;
    gone_on?;
    Ok(taken)
}

async fn attempt(
    desk: &Desk,
    taking: &Taking,
    stillness: Stillness,
) -> Result<Option<PointReport>> {
    let (history, taking) = (history_of(desk), taking.clone());
    let workspace = desk.row.spec.workspace().map(Into::into);
    let bounds = Bounds::of(taking.most_bytes);
    let order = Order { stillness, bounds, workspace };
    blocking(move || attempt_here(&history, &taking, &order)).await
}

fn attempt_here(history: &History, taking: &Taking, order: &Order) -> Result<Option<PointReport>> {
    let mut work = history.work()?;
    let said = taking.said(&work.state);
    if let Some((own, at_ms)) = &taking.own
        && *at_ms < work.state.looked_ms
    {
        return already_seen(history, &work.state, own).map_or(Ok(None), |ended| {
            work.add(PointReport { ended, ..said }, NewTree::Same).map(Some)
        });
    }
    let looked = work.look(order);
    let is_wanted = said.kind != PointKind::Between;
    let taken = match looked {
        Ok(Look::Same(live)) if !is_wanted => {
            if let Some(live) = live {
                work.write_live(&live)?;
            }
            work.commit()?;
            None
        }
        Ok(look) => Some(work.add_look(said, look)?),
        // A point that was wanted says why it is none; but one that moved is tried again.
        Err(error) if is_wanted && !is_moved(&error) => {
            drop(work);
            work = history.work()?;
            let why = Some(error.chain());
            Some(work.add(PointReport { not_kept: why, ..said }, NewTree::Unknown)?)
        }
        Err(error) => return Err(error),
    };
    evict(&mut work, LIMITS)?;
    Ok(taken)
}

/// The commands that are still to get a point of their own, where what this one did is in the point that
/// the session stands at: another one's, which ended later and was looked at before.
fn already_seen(history: &History, state: &State, own: &str) -> Option<Vec<String>> {
    let at = history.header(state.at?).ok()?.said;
    let is_named = at.kind == PointKind::Command && at.ended.iter().any(|id| id == own);
    is_named.then(|| at.ended.into_iter().filter(|id| id != own).collect())
}

/// Whether something of a command may change files now.
pub(super) fn runs(exec: &ExecStatus) -> bool {
    exec.ended.is_none() || exec.left.is_some_and(|left| left > 0)
}

/// The commands that ran while this one did.
fn beside(own: &ExecStatus, all: &[ExecStatus]) -> Vec<String> {
    let until = own.ended.as_ref().map_or(u64::MAX, |ended| ended.at_ms);
    let ran = |other: &&ExecStatus| {
        let ended = other.ended.as_ref().map(|ended| ended.at_ms);
        other.id != own.id
            && other.started_ms <= until
            && (runs(other) || ended.is_some_and(|ended| ended >= own.started_ms))
    };
    all.iter().filter(ran).map(|other| other.id.to_string()).collect()
}

/// The commands of the present sandbox; of the last one, where there is none.
pub(super) async fn execs(desk: &Desk) -> Result<Vec<ExecStatus>> {
    if let Some(record) = &desk.row.record {
        match within(CALL_LIMIT, "list commands", desk.backend().execs(record)).await {
            Err(error) if error.kind == ErrorKind::NotFound => {}
            other => return other,
        }
    }
    let known = desk.inner.store.execs(&desk.row.id).await?;
    Ok(known.into_iter().map(|known| known.status).collect())
}

/// Stops all that runs in a session. Says whether something ran.
pub(super) async fn hold(desk: &Desk) -> Result<bool> {
    let Some(record) = desk.row.record.clone() else { return Ok(false) };
    let status = desk.backend().status(&record);
    match within(CALL_LIMIT, "say how a sandbox is", status).await? {
        SandboxStatus::Running => {}
        SandboxStatus::Paused | SandboxStatus::Gone => return Ok(false),
    }
    match within(CALL_LIMIT, "hold a sandbox", desk.backend().hold(&record)).await {
        Ok(()) => Ok(true),
        // It has just ended.
        Err(error) if error.kind == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Lets a session go on that was stopped so.
pub(super) async fn go_on(desk: &Desk, was_held: bool) -> Result<()> {
    let Some(record) = desk.row.record.clone().filter(|_| was_held) else { return Ok(()) };
    match within(CALL_LIMIT, "resume a sandbox", desk.backend().resume(&record)).await {
        Err(error) if error.kind != ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// The history of the session at a desk.
pub(super) fn history_of(desk: &Desk) -> History {
    History::new(desk.inner.places.kept().join(desk.row.id.as_str()))
}

/// Refuses a session that has no layer.
pub(crate) fn layered(row: &Row) -> Result<()> {
    if row.spec.is_copy_on_write() {
        return Ok(());
    }
    let what = format!("session {} has no layer: it is not copy-on-write", row.id);
    Err(Error::new(ErrorKind::Conflict, what).hint("Make sessions with --cow for this."))
}

/// Does something to its end, whether anybody waits for that or not: nothing stays frozen, and the lock
/// is held for as long as there is work.
pub(crate) async fn to_its_end<T: Send + 'static>(
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    match tokio::spawn(work).await {
        Ok(done) => done,
        Err(e) => Err(Error::new(ErrorKind::Canceled, "the program is ending").source(e)),
    }
}

/// Marks the points that do not lead to where the session stands. Of those older than one on the way that
/// is not there any more nobody knows.
fn mark_undone(points: &mut [PointReport], at: Option<u32>) {
    let mut next = at;
    for point in points.iter_mut().rev() {
        // What came from a file was never on the way.
        let is_own = point.imported.is_none();
        point.undone = is_own && next.is_some_and(|next| point.point > next);
        if next == Some(point.point) {
            next = point.parent;
        }
    }
}

impl crate::store::Facts {
    /// Whether the commands of the session are points. What a run leaves behind is nobody's to undo.
    pub(crate) fn has_checkpoints(&self) -> bool {
        !self.no_checkpoints && self.scope == Scope::Kept
    }
}

impl History {
    /// What is said of all points, oldest first. Of one that is damaged nothing but that is known.
    pub(super) fn reports(&self) -> Result<Vec<PointReport>> {
        let read = |number| match self.header(number) {
            Ok(header) => Some(header.said),
            Err(error) if error.kind == ErrorKind::NotFound => None,
            Err(error) => {
                let said = PointReport::new(PointKind::Between, 0);
                Some(PointReport { point: number, not_kept: Some(error.chain()), ..said })
            }
        };
        Ok(self.numbers()?.into_iter().filter_map(read).collect())
    }
}

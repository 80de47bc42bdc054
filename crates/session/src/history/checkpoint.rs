//! When points are taken: before a command starts, where something changed since the last one, and when
//! a command ends that somebody waits for.
//!
//! ORDER: under the session's lock, so that no two are taken at once. A command that is started
//! meanwhile asks for no lock. So where others run everything is frozen while it is looked at; and where
//! nobody is known to run, a look that found something is repeated, and one that saw two moments is
//! taken again while everything is frozen.

use super::point::{PointCommand, PointKind, PointReport, words};
use super::store::History;
use super::take::MAX_POINT_BYTES;
use super::taking::{Taking, beside, execs, execs_beside, history_of, runs, take};
use super::walk::Stillness;
use crate::desk::Desk;
use crate::sessions::missing;
use crate::store::{Row, Scope, blocking, broken_off};
use crate::{Session, SessionId};
use cofferdam_core::{Error, ErrorKind, ExecOrder, ExecStatus, ProcessId, Result};
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
    /// How much others had noted that they changed the layer.
    outside: u64,
}

/// What is remembered of the commands of sessions as long as this process lives.
#[derive(Debug, Default)]
pub(crate) struct Awaited {
    begun: Mutex<BTreeMap<(SessionId, ProcessId), Begun>>,
    /// Why there is no point of a command that ended.
    why: Mutex<BTreeMap<(SessionId, ProcessId), String>>,
}

impl Awaited {
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
            // What was made since, or is being made, is not told.
            let until = state.as_ref().map_or(0, |state| state.next_point);
            Ok((state, history.reports(until)?))
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
        let all = &self.sessions.0.awaited.why;
        let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
        all.remove(&(self.id.clone(), exec.clone()))
    }

    /// Whether the end of a command that was started here is to be a point.
    pub(crate) fn is_awaited(&self, exec: &ProcessId) -> bool {
        let all = &self.sessions.0.awaited.begun;
        let all = all.lock().unwrap_or_else(PoisonError::into_inner);
        all.contains_key(&(self.id.clone(), exec.clone()))
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
        // ORDER: before the look, or what others do during it would be the command's.
        let outside = self.noted_outside();
        let looked = to_its_end(async move { session.look_before(&id).await }).await;
        match looked {
            Ok(Before::Looked) => Some(Begun { looked_before: true, outside }),
            Ok(Before::OthersRun) | Err(_) => Some(Begun { looked_before: false, outside }),
            Ok(Before::HasEnded) => None,
        }
    }

    async fn look_before(&self, id: &ProcessId) -> Result<Before> {
        let mut desk = self.desk_within(BEGINS_WITHIN).await?;
        let listed = execs(&desk).await?;
        if listed.execs.iter().any(|exec| exec.id == *id && exec.ended.is_some()) {
            return Ok(Before::HasEnded);
        }
        if listed.execs.iter().any(runs) {
            // What somebody left who was killed is not for a command to see.
            let history = history_of(&desk);
            blocking(move || history.tidy()).await?;
            return Ok(Before::OthersRun);
        }
        take(&mut desk, &Taking::between(&listed, MAX_POINT_BYTES), Stillness::Perhaps).await?;
        Ok(Before::Looked)
    }

    /// Remembers a command that was started.
    pub(crate) fn begun(&self, order: &ExecOrder, begun: Option<Begun>) {
        if let Some(begun) = begun.filter(|_| !order.detached) {
            let key = (self.id.clone(), order.command.id.clone());
            self.sessions.0.awaited.begin(key, begun);
        }
    }

    /// Takes the point of a command that was started here and has ended. What goes wrong is remembered
    /// for who asks, and spoils nothing.
    pub(crate) async fn has_ended(&self, status: &ExecStatus) {
        let key = (self.id.clone(), status.id.clone());
        let Some(begun) = self.sessions.0.awaited.end(&key) else { return };
        let (session, status) = (self.clone(), status.clone());
        let taken = to_its_end(async move { session.take_end(&status, begun).await }).await;
        let why = match taken {
            Ok(point) => point.and_then(|point| point.not_kept),
            // The session was removed meanwhile.
            Err(error) if error.kind == ErrorKind::NotFound => None,
            Err(error) => Some(error.chain()),
        };
        if let Some(why) = why {
            self.sessions.0.awaited.say(key, why);
        }
    }

    async fn take_end(&self, status: &ExecStatus, begun: Begun) -> Result<Option<PointReport>> {
        let mut desk = self.desk_within(ENDS_WITHIN).await?;
        let Some(ended) = &status.ended else { return Ok(None) };
        let listed = execs_beside(&desk, status).await?;
        let mut taking = Taking::between(&listed, MAX_POINT_BYTES);
        taking.said.kind = PointKind::Command;
        taking.said.command = Some(PointCommand {
            id: status.id.to_string(),
            argv: words(&status.argv),
            ending: ended.ending.kind(),
            exit_code: ended.ending.exit_code(),
        });
        // What the host changed meanwhile is in here, too.
        let is_alone = self.changed_outside(begun.outside).is_none();
        taking.said.looked_before = begun.looked_before && is_alone;
        taking.said.shared_with = beside(status, &listed.execs);
        taking.own = Some((status.id.to_string(), ended.at_ms));
        let others = listed.execs.iter().any(|exec| exec.id != status.id && runs(exec));
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
        let mut taking = Taking::between(&execs(desk).await?, MAX_POINT_BYTES);
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
    cofferdam_core::to_its_end(work).await.map_err(broken_off)?
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
        !self.no_checkpoints && self.scope != Scope::Run
    }
}

impl History {
    /// What is said of all points before that one, oldest first. Of one that is damaged nothing but that is known.
    pub(super) fn reports(&self, until: u32) -> Result<Vec<PointReport>> {
        let read = |number| match self.header(number) {
            Ok(header) => Some(header.said),
            Err(error) if error.kind == ErrorKind::NotFound => None,
            Err(error) => {
                let said = PointReport::new(PointKind::Between, 0);
                Some(PointReport { point: number, not_kept: Some(error.chain()), ..said })
            }
        };
        let numbers = self.numbers()?.into_iter().filter(|number| *number < until);
        Ok(numbers.filter_map(read).collect())
    }
}

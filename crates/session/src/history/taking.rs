//! The taking of one point: the look, and what is made of it.

use super::evict::{LIMITS, evict};
use super::mapped::Mapped;
use super::point::{PointKind, PointReport};
use super::state::State;
use super::store::{History, NewTree, Work};
use super::take::{Look, MAX_ASKED_BYTES, Order};
use super::walk::{Bounds, Stillness, is_moved, moved};
use crate::answer::{CALL_LIMIT, within};
use crate::desk::Desk;
use crate::now_ms;
use crate::store::blocking;
use cofferdam_core::{ErrorKind, ExecStatus, MappedFiles, Result, SandboxStatus};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// The most commands whose own points are waited for.
const MOST_OWED: usize = 1000;

/// A point that is to be taken.
#[derive(Debug, Clone)]
pub(super) struct Taking {
    pub(super) said: PointReport,
    /// The command whose point it is, and when it ended.
    pub(super) own: Option<(String, u64)>,
    /// Commands that ended, and when.
    ended: Vec<(String, u64)>,
    /// All commands that there were when it was planned, and when that was.
    known: BTreeSet<String>,
    listed_ms: u64,
    most_bytes: u64,
}

impl Taking {
    /// One that is taken only if something changed.
    pub(super) fn between(listed: &Listed, most_bytes: u64) -> Self {
        let Listed { ms, execs } = listed;
        let ended = execs.iter().filter_map(|exec| {
            Some((exec.id.to_string(), exec.ended.as_ref().map(|ended| ended.at_ms)?))
        });
        Self {
            said: PointReport::new(PointKind::Between, now_ms()),
            own: None,
            ended: ended.collect(),
            known: execs.iter().map(|exec| exec.id.to_string()).collect(),
            listed_ms: *ms,
            most_bytes,
        }
    }

    /// The same where somebody asked for it.
    pub(super) fn asked(listed: &Listed) -> Self {
        Self::between(listed, MAX_ASKED_BYTES)
    }

    /// What is said of it, in a history that stands here.
    fn said(&self, state: &State) -> PointReport {
        let is_own = |id: &str| self.own.as_ref().is_some_and(|(own, _)| own == id);
        let is_news = |(id, at_ms): &&(String, u64)| !is_told(state, id, *at_ms) && !is_own(id);
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
    let mut taking = taking.clone();
    if stillness == Stillness::Perhaps {
        match attempt(desk, &taking, stillness).await {
            Err(error) if is_moved(&error) => {}
            other => return other,
        }
    }
    let held = hold(desk).await?;
    let taken = match taking.newcomers(desk).await {
        Ok(newcomers) => {
            taking.said.shared_with.extend(newcomers);
            attempt(desk, &taking, Stillness::Still).await
        }
        Err(error) => Err(error),
    };
    // A session that cannot be let go on now is resumed by its next command.
    let gone_on = go_on(desk, held).await;
    let taken = taken?;
    gone_on?;
    Ok(taken)
}

/// The same where everything stands still since before the commands were listed.
pub(super) async fn take_still(desk: &Desk, taking: &Taking) -> Result<Option<PointReport>> {
    attempt(desk, taking, Stillness::Still).await
}

async fn attempt(
    desk: &Desk,
    taking: &Taking,
    stillness: Stillness,
) -> Result<Option<PointReport>> {
    let (history, looking) = (history_of(desk), taking.clone());
    let workspace: Option<PathBuf> = desk.row.spec.workspace().map(Into::into);
    let mapped = match stillness {
        Stillness::Still => mapped(desk, workspace.clone()).await,
        // Nobody lives who could have mapped anything before.
        Stillness::Perhaps => Mapped::none(),
    };
    let order = Order { stillness, bounds: Bounds::of(taking.most_bytes), workspace, mapped };
    if stillness == Stillness::Still {
        let taken = blocking(move || match looking.look(&history, &order)? {
            Some((work, look)) => looking.keep(work, look),
            None => Ok(None),
        });
        return taken.await;
    }
    let seen = blocking(move || looking.look(&history, &order)).await?;
    let Some((work, look)) = seen else { return Ok(None) };
    // ORDER: after the look. Whoever began before it ended may have changed what was being read.
    if matches!(look, Found::Look(Look::Other(..))) && !taking.newcomers(desk).await?.is_empty() {
        return Err(moved());
    }
    let taking = taking.clone();
    blocking(move || taking.keep(work, look)).await
}

/// What processes that stand still have mapped.
async fn mapped(desk: &Desk, workspace: Option<PathBuf>) -> Mapped {
    let Some(record) = &desk.row.record else { return Mapped::none() };
    let asked = desk.backend().mapped_files(record);
    match within(CALL_LIMIT, "say what is mapped", asked).await {
        Ok(files) => Mapped::of(files, workspace),
        // They have ended, or it is not known.
        Err(error) if error.kind == ErrorKind::NotFound => Mapped::none(),
        Err(_) => Mapped::of(MappedFiles::Any, workspace),
    }
}

/// What there is to make a point of.
enum Found {
    /// The state that the session stands at.
    Known,
    Look(Look),
    /// A state that cannot be kept.
    NotKept(String),
}

impl Taking {
    /// The commands that began since it was planned.
    async fn newcomers(&self, desk: &Desk) -> Result<Vec<String>> {
        let all = execs(desk).await?;
        let is_new = |exec: &&ExecStatus| !self.known.contains(exec.id.as_str());
        Ok(all.execs.iter().filter(is_new).map(|exec| exec.id.to_string()).collect())
    }

    /// Looks, and says what there is to make a point of, if there is anything.
    fn look(&self, history: &History, order: &Order) -> Result<Option<(Work, Found)>> {
        let mut work = history.perhaps_work()?;
        if let Some((own, at_ms)) = &self.own
            && is_told(&work.state, own, *at_ms)
        {
            let is_owed = work.state.owed.contains(own);
            return Ok(is_owed.then_some((work, Found::Known)));
        }
        let is_wanted = self.said.kind != PointKind::Between;
        match work.look(order) {
            Ok(look) => Ok(Some((work, Found::Look(look)))),
            // A point that was wanted says why it is none; but one that moved is tried again.
            Err(error) if is_wanted && !is_moved(&error) => {
                drop(work);
                Ok(Some((history.work()?, Found::NotKept(error.chain()))))
            }
            Err(error) => Err(error),
        }
    }

    /// Notes of which commands the history tells from now on.
    fn note(&self, state: &mut State, said: &PointReport, found: &Found) {
        let own = self.own.as_ref().map(|(own, _)| own.clone());
        state.owed.retain(|owed| own.as_ref() != Some(owed));
        match found {
            // What another look saw.
            Found::Known => return state.told.extend(own),
            Found::Look(Look::Other(..)) if self.said.kind != PointKind::Command => {
                state.owed.clear();
            }
            Found::Look(_) | Found::NotKept(_) => {}
        }
        if self.listed_ms > state.looked_ms {
            state.told.clear();
        }
        state.looked_ms = state.looked_ms.max(self.listed_ms);
        state.told.extend(said.ended.iter().cloned().chain(own));
        if self.said.kind == PointKind::Command {
            state.owed.extend(said.ended.iter().cloned());
            // LIMIT: who is not remembered has died, or is told of in that other point alone.
            let left = state.owed.len().saturating_sub(MOST_OWED);
            state.owed.drain(..left);
        }
    }

    /// Makes a point of what there is.
    fn keep(&self, mut work: Work, found: Found) -> Result<Option<PointReport>> {
        let said = self.said(&work.state);
        self.note(&mut work.state, &said, &found);
        let taken = match found {
            Found::Known => {
                Some(work.add_look(PointReport { ended: Vec::new(), ..said }, Look::Same(None))?)
            }
            Found::Look(Look::Same(live)) if self.said.kind == PointKind::Between => {
                let is_news = live.is_some() || !said.ended.is_empty();
                if let Some(live) = live {
                    work.write_live(&live)?;
                }
                // What was listed after an older look is told by the next one as well.
                if is_news {
                    work.commit()?;
                }
                return Ok(None);
            }
            Found::Look(look) => Some(work.add_look(said, look)?),
            Found::NotKept(why) => {
                let said = PointReport { not_kept: Some(why), ..said };
                Some(work.add(said, NewTree::Unknown)?)
            }
        };
        evict(&mut work, LIMITS)?;
        Ok(taken)
    }
}

/// Whether a command that ended at this moment is in some point already.
fn is_told(state: &State, id: &str, at_ms: u64) -> bool {
    at_ms < state.looked_ms || state.told.iter().any(|told| told == id)
}

/// Whether something of a command may change files now.
pub(super) fn runs(exec: &ExecStatus) -> bool {
    exec.ended.is_none() || exec.left.is_some_and(|left| left > 0)
}

/// The commands that ran while this one did.
pub(super) fn beside(own: &ExecStatus, all: &[ExecStatus]) -> Vec<String> {
    let until = own.ended.as_ref().map_or(u64::MAX, |ended| ended.at_ms);
    let ran = |other: &&ExecStatus| {
        let ended = other.ended.as_ref().map(|ended| ended.at_ms);
        other.id != own.id
            && other.started_ms <= until
            && (runs(other) || ended.is_some_and(|ended| ended >= own.started_ms))
    };
    all.iter().filter(ran).map(|other| other.id.to_string()).collect()
}

/// The commands of a session at one moment, but for those that ended before the last look.
pub(super) struct Listed {
    /// Just before they were listed, in milliseconds since 1970.
    ms: u64,
    pub(super) execs: Vec<ExecStatus>,
}

/// The commands of the present sandbox. Where it is gone nothing runs: those of all that ended.
pub(super) async fn execs(desk: &Desk) -> Result<Listed> {
    // ORDER: first. What ends while they are listed is news the next time.
    let ms = now_ms();
    let execs = present_execs(desk, u64::MAX).await?;
    Ok(Listed { ms, execs })
}

/// What ends where the processes of a sandbox are ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct AtWork {
    /// How many commands run.
    pub(crate) commands: u64,
    /// How many processes go on that other commands left.
    pub(crate) left: u64,
}

impl AtWork {
    pub(super) fn of(execs: &[ExecStatus]) -> Self {
        let commands = execs.iter().filter(|exec| exec.ended.is_none()).count() as u64;
        let left = execs.iter().filter_map(|exec| exec.left).map(u64::from).sum();
        Self { commands, left }
    }
}

/// What is at work in the present sandbox.
pub(crate) async fn at_work(desk: &Desk) -> Result<AtWork> {
    Ok(AtWork::of(&execs(desk).await?.execs))
}

/// The same, with those among them that ended while or after this one ran.
pub(super) async fn execs_beside(desk: &Desk, own: &ExecStatus) -> Result<Listed> {
    let ms = now_ms();
    let execs = present_execs(desk, own.started_ms).await?;
    Ok(Listed { ms, execs })
}

/// Those that ended before the last look are in some point: they are asked for no more, unless they ended
/// after this moment.
async fn present_execs(desk: &Desk, since_ms: u64) -> Result<Vec<ExecStatus>> {
    if let Some(record) = &desk.row.record {
        let since_ms = since_ms.min(history_of(desk).looked_ms());
        let listed = desk.backend().execs_since(record, since_ms);
        match within(CALL_LIMIT, "list commands", listed).await {
            Err(error) if error.kind == ErrorKind::NotFound => {}
            other => return other,
        }
    }
    let known = desk.inner.store.execs(&desk.row.id).await?;
    let ended = known.into_iter().filter(|known| known.status.ended.is_some());
    Ok(ended.map(|known| ExecStatus { left: None, ..known.status }).collect())
}

/// Stops all that runs in a session. Says whether something ran.
pub(crate) async fn hold(desk: &Desk) -> Result<bool> {
    let Some(record) = desk.row.record.clone() else { return Ok(false) };
    let status = desk.backend().status(&record);
    match within(CALL_LIMIT, "say how a sandbox is", status).await? {
        SandboxStatus::Running => hold_running(desk).await,
        SandboxStatus::Paused | SandboxStatus::Gone => Ok(false),
    }
}

/// The same where it is known to run, unless it has ended by itself.
pub(super) async fn hold_running(desk: &Desk) -> Result<bool> {
    let Some(record) = desk.row.record.clone() else { return Ok(false) };
    match within(CALL_LIMIT, "hold a sandbox", desk.backend().hold(&record)).await {
        Ok(()) => Ok(true),
        // It has just ended.
        Err(error) if error.kind == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Lets a session go on that was stopped so.
pub(crate) async fn go_on(desk: &Desk, was_held: bool) -> Result<()> {
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

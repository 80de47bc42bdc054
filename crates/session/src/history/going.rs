//! Undo: a session goes to another point of its history.

use super::checkpoint::{layered, to_its_end};
use super::compare::{Lower, compare};
use super::point::{PointEffects, PointKind, PointReport};
use super::state::State;
use super::store::{History, Work, not_kept};
use super::take::Ready;
use super::taking::{
    AtWork, Listed, Taking, execs, go_on, history_of, hold, hold_running, runs, take_still,
};
use crate::desk::Desk;
use crate::outside::Outside;
use crate::store::{NewEvent, blocking, broken_off};
use crate::{Event, Phase, Session};
use cofferdam_core::{Error, ErrorKind, Exchanged, LayerExchange, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::oneshot;

/// Where a session is to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// Before so many of the last commands and changes between commands.
    Back(u32),
    /// To a point.
    Point(u32),
}

/// An undo that is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UndoOrder {
    /// Where to.
    pub target: Target,
    /// Nothing is done, and only said what would be.
    pub dry_run: bool,
    /// Goes although what is there now cannot be kept, and is lost.
    pub may_lose: bool,
}

/// What an undo did, or would do. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UndoReport {
    /// The session.
    pub session: String,
    /// The point that it stood at.
    pub from: Option<u32>,
    /// The point that it stands at now.
    pub to: u32,
    /// Whether nothing was done.
    pub dry_run: bool,
    /// What changed, from what was there to what is there now.
    pub effects: PointEffects,
    /// Whether all processes of the session were ended. They are not where nothing is to be changed.
    pub processes_ended: bool,
    /// How many commands ran in it.
    pub commands: u64,
    /// How many processes went on in it that commands had left.
    pub left: u64,
    /// Why what was there before could not be kept.
    pub lost: Option<String>,
    /// How many changes `apply` has landed since the point was made. They are in the workspace itself and stay there,
    /// so that the session sees them still, unless it works in a copy.
    #[serde(default)]
    pub landed: u64,
    /// Whether the session works in a copy of the workspace. Of what landed it sees what the point has, and its next
    /// `apply` would take the rest back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_copy: bool,
}

impl Session {
    /// Makes the workspace of a copy-on-write session what it was at an earlier point, or a later one.
    ///
    /// What is in no point yet becomes one first, so that nothing is lost. All processes of the session
    /// are ended where anything changes. The sandbox lives on where the backend can exchange the layer under
    /// it; otherwise the next command gets a new one, and what was in its memory is gone. The home directory and
    /// what was written to an image stay as they are.
    pub async fn undo(&self, order: &UndoOrder) -> Result<UndoReport> {
        let (session, order) = (self.clone(), *order);
        to_its_end(async move { session.undo_here(&order).await }).await
    }

    async fn undo_here(&self, order: &UndoOrder) -> Result<UndoReport> {
        let mut desk = self.sessions.0.desk(&self.id).await?;
        let undone = self.undo_at(&mut desk, order).await;
        // ORDER: before somebody else is at work on the session.
        let folded = desk.folded().await;
        let report = undone?;
        folded?;
        Ok(report)
    }

    async fn undo_at(&self, desk: &mut Desk, order: &UndoOrder) -> Result<UndoReport> {
        layered(&desk.row)?;
        let history = history_of(desk);
        let state = tokio::task::spawn_blocking(move || history.state());
        if let Target::Point(number) = order.target {
            // ORDER: nothing is stopped for a point that is not there.
            let history = history_of(desk);
            blocking(move || history.tree(number).map(drop)).await?;
        }
        desk.settle_beside().await?;
        desk.refuse_removed()?;
        // Meanwhile that was read.
        let state = state.await.map_err(broken_off)??;
        has_any(desk, state.as_ref())?;
        // Whether it runs was asked just now.
        let held = if desk.row.phase == Phase::Running {
            hold_running(desk).await?
        } else {
            hold(desk).await?
        };
        let planned = plan(desk, order).await;
        match planned {
            Ok(Planned { report, made: Some(made), .. }) => {
                self.go(desk, report, (made, held)).await
            }
            Ok(Planned { report, made: None, .. }) => {
                go_on(desk, held).await?;
                self.stand(desk, report).await
            }
            // ORDER: nothing is ended for what cannot be made.
            Err(error) => {
                go_on(desk, held).await.ok();
                Err(error)
            }
        }
    }

    /// Ends all processes and exchanges the layer for the one that was made.
    async fn go(
        &self,
        desk: &mut Desk,
        report: UndoReport,
        ((ready, mut work), held): ((Ready, Work), bool),
    ) -> Result<UndoReport> {
        let _underway = self.begin_outside(Outside::Undo);
        let (pass, gone) = oneshot::channel();
        // While the new layer is mounted: what was there may be large.
        let removed = tokio::spawn(async move {
            let Ok(gone) = gone.await else { return false };
            // What stays is removed by the next one at work here.
            let _ = blocking(move || {
                drop::<(Ready, Work)>(gone);
                Ok(())
            })
            .await;
            true
        });
        let exchanged = exchange(
            desk,
            held,
            Box::new(move || {
                work.go(&ready)?;
                // Where nobody waits for them any more they are dropped here.
                let _ = pass.send((ready, work));
                Ok(())
            }),
        );
        let exchanged = exchanged.await;
        // ORDER: before anybody else is at work on the history.
        let has_arrived = removed.await.unwrap_or(false);
        let told = match exchanged {
            Ok(()) => self.say(desk, &report).await,
            Err(error) => Err(error),
        };
        told.map_err(|error| if has_arrived { arrived(report.to, error) } else { error })?;
        Ok(UndoReport { processes_ended: true, ..report })
    }

    /// Stands at another point of the same state.
    async fn stand(&self, desk: &mut Desk, report: UndoReport) -> Result<UndoReport> {
        if report.dry_run || report.from == Some(report.to) {
            return Ok(report);
        }
        let (history, to) = (history_of(desk), report.to);
        blocking(move || {
            let mut work = history.work()?;
            work.state.at = Some(to);
            work.commit()
        })
        .await?;
        self.say(desk, &report).await.map_err(|error| arrived(report.to, error))?;
        Ok(UndoReport { commands: 0, left: 0, ..report })
    }

    async fn say(&self, desk: &mut Desk, report: &UndoReport) -> Result<()> {
        let UndoReport { from, to, effects, .. } = report;
        let data = json!({
            "from": from,
            "to": to,
            "added": effects.added,
            "changed": effects.changed,
            "removed": effects.removed,
        });
        desk.amend(Some(NewEvent::now("undone", data))).await
    }
}

/// What failed when the session stood where it was to go: whoever tries again from there goes further.
fn arrived(to: u32, error: Error) -> Error {
    let what = format!("the session stands at point {to} now, but not all that follows was done");
    Error { hint: error.hint.clone(), ..Error::new(error.kind, what) }.source(error)
}

/// Puts the other layer in its place, under a sandbox that lives on where it can, and ends all processes in
/// any case.
async fn exchange(desk: &mut Desk, is_held: bool, exchange: LayerExchange) -> Result<()> {
    let exchanged = match desk.row.record.clone().filter(|_| is_held) {
        Some(record) => desk.backend().exchange_layer(&record, exchange).await,
        None => Ok(Exchanged::Refused(exchange)),
    };
    match exchanged {
        Ok(Exchanged::Lives) => Ok(()),
        Ok(Exchanged::Ends) => desk.drive(Event::Stop).await,
        Ok(Exchanged::Refused(exchange)) => {
            desk.drive(Event::Stop).await?;
            blocking(exchange).await
        }
        Err(error) => {
            // It ends by itself, too; what failed is what there is to say.
            desk.drive(Event::Stop).await.ok();
            Err(error)
        }
    }
}

struct Planned {
    report: UndoReport,
    /// When the point was made, where anything of the layer has ever landed.
    landed_from_ms: Option<u64>,
    /// The other layer, where there has to be one and something is to be done. It goes first.
    made: Option<(Ready, Work)>,
}

/// What is to be done, and what it takes made ready, while everything stands still.
async fn plan(desk: &mut Desk, order: &UndoOrder) -> Result<Planned> {
    let listed = execs(desk).await?;
    let lost = keep_present(desk, &listed, order).await?;
    let execs = listed.execs;
    let history = history_of(desk);
    let workspace = desk.row.spec.workspace();
    let (order, session) = (*order, desk.row.id.to_string());
    let mut planned = blocking(move || {
        let state = history.state()?.unwrap_or_default();
        let to = match order.target {
            Target::Point(number) => number,
            Target::Back(steps) => back(&history, state.at, steps)?,
        };
        let wanted = history.tree(to)?;
        let present = state.tree.as_ref().map(|file| history.read_tree(file)).transpose()?;
        let blobs = history.blobs()?;
        let workspace = workspace.as_deref().map(std::path::Path::new);
        let lower = Lower { workspace, is_copy: history.is_copy() };
        let effects = match &present {
            Some(present) => compare((present, &wanted), &blobs, lower)?.told(),
            None => PointEffects { more: true, ..PointEffects::default() },
        };
        let is_same = present.is_some_and(|present| present.is_as(&wanted));
        let AtWork { commands, left } = AtWork::of(&execs);
        let report = UndoReport {
            session,
            from: state.at,
            to,
            dry_run: order.dry_run,
            effects,
            processes_ended: false,
            commands,
            left,
            lost: lost.clone(),
            landed: 0,
            in_copy: history.is_copy(),
        };
        let made = history.has_landed().then(|| history.header(to)).transpose()?;
        let landed_from_ms = made.map(|point| point.said.made_ms);
        if order.dry_run || (is_same && lost.is_none()) {
            return Ok(Planned { report, landed_from_ms, made: None });
        }
        let mut work = history.work()?;
        let ready = work.make_ready(to)?;
        Ok(Planned { report, landed_from_ms, made: Some((ready, work)) })
    })
    .await?;
    if let Some(from_ms) = planned.landed_from_ms {
        planned.report.landed = desk.inner.store.landed(&desk.row.id, from_ms).await?;
    }
    Ok(planned)
}

/// Makes a point of what is in none yet. Says why it could not be kept, where it may be lost.
async fn keep_present(
    desk: &mut Desk,
    listed: &Listed,
    order: &UndoOrder,
) -> Result<Option<String>> {
    let mut taking = Taking::asked(listed);
    // Those that run are ended by this, and what they did until now is theirs.
    let running = listed.execs.iter().filter(|exec| runs(exec));
    taking.said.shared_with = running.map(|exec| exec.id.to_string()).collect();
    match take_still(desk, &taking).await {
        Ok(_) => Ok(None),
        Err(error) if order.may_lose => Ok(Some(error.chain())),
        Err(error) => {
            let what = "what the session has now cannot be kept, and would be lost";
            Err(Error::new(error.kind, what)
                .hint("Go back all the same with --force.")
                .source(error))
        }
    }
}

/// The point before so many commands and changes between commands.
fn back(history: &History, at: Option<u32>, steps: u32) -> Result<u32> {
    let mut next = at;
    let mut left = steps;
    while let Some(number) = next {
        let said = match history.header(number) {
            Ok(header) => header.said,
            Err(error) if error.kind == ErrorKind::NotFound => return Err(dropped(number)),
            Err(error) => return Err(error),
        };
        if left == 0 {
            return whole(&said);
        }
        match said.kind {
            PointKind::Start => break,
            PointKind::Command | PointKind::Between => left -= 1,
            PointKind::Snapshot => {}
        }
        next = said.parent;
    }
    let what = format!("there are only {} commands and changes to undo", steps - left);
    Err(Error::new(ErrorKind::Conflict, what).hint("List the points with `cofferdam history`."))
}

fn whole(said: &PointReport) -> Result<u32> {
    match &said.not_kept {
        Some(why) => Err(not_kept(said.point, Some(why))),
        None => Ok(said.point),
    }
}

pub(super) fn dropped(number: u32) -> Error {
    Error::new(ErrorKind::NotFound, format!("point {number} is not kept any more"))
        .hint("See with `cofferdam history` which points there are.")
}

/// Refuses a session that has no history.
pub(super) async fn has_points(desk: &Desk) -> Result<()> {
    let history = history_of(desk);
    has_any(desk, blocking(move || history.state()).await?.as_ref())
}

fn has_any(desk: &Desk, state: Option<&State>) -> Result<()> {
    if state.is_some() {
        return Ok(());
    }
    let (what, hint) = match desk.row.facts.has_checkpoints() {
        true => ("has no history yet", "Run a command in it first."),
        false => ("keeps no history", "Make sessions without --no-checkpoints for this."),
    };
    let what = format!("session {} {what}", desk.row.id);
    Err(Error::new(ErrorKind::Conflict, what).hint(hint))
}

//! What exists, compared with what is recorded, and repaired.
//!
//! ORDER: what exists is listed before the rows are read. A row is written before its sandbox is
//! made, so a listed sandbox without a row was made by nobody who is still at work.

use crate::answer::{CALL_LIMIT, within};
use crate::carries::{self, Which};
use crate::desk::Desk;
use crate::places::Places;
use crate::sessions::Inner;
use crate::staging::{self, Changes};
use crate::store::{Row, Scope, blocking, briefly};
use crate::{Event, Phase, SessionId, Sessions, home, now_ms, snapshot};
use cofferdam_core::{
    DestroyReason, DurableBackend, Error, ErrorKind, Found, Result, SandboxId, SandboxStatus,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

/// How much is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Thoroughness {
    /// Rows that are due, and ids without a row: one query and one look where nothing is.
    Quick,
    /// Everything.
    Full,
    /// Everything, and nothing is changed.
    DryRun,
}

/// What a collection did, or would do. Format 1.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GcReport {
    /// Whether nothing was changed.
    pub dry_run: bool,
    /// What was done, or would be tried.
    pub done: Vec<GcAction>,
    /// What could not be done; the next start tries again.
    pub failed: Vec<GcFailure>,
}

/// One repair.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GcAction {
    /// The session or sandbox.
    pub subject: String,
    /// What was done to it.
    pub action: GcKind,
}

/// One repair that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GcFailure {
    /// The session, sandbox or backend.
    pub subject: String,
    /// Why, with its causes.
    pub error: String,
}

/// What a repair does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GcKind {
    /// A session whose lease is over is removed.
    Expired,
    /// A session whose owner is gone is removed: that of a run, or one that ends with its maker.
    Abandoned,
    /// A removal that was begun is finished.
    Removed,
    /// A change that was begun is finished or undone, or the loss of a sandbox is written down.
    Settled,
    /// What could not be removed before is removed.
    Cleaned,
    /// A keeper is told of new deadlines.
    Told,
    /// A sandbox without a session is ended.
    OrphanEnded,
    /// A sandbox of an earlier incarnation is ended.
    StaleEnded,
    /// What a process that was killed, or a session that is not there, left on the machine is removed.
    Swept,
}

/// Compares and repairs. Fails only where the database does.
pub(crate) async fn reap(sessions: &Sessions, how: Thoroughness) -> Result<GcReport> {
    let inner = &sessions.0;
    let mut report = GcReport { dry_run: how == Thoroughness::DryRun, ..GcReport::default() };
    let mut found = Vec::new();
    for backend in &inner.backends {
        match exists(backend, how).await {
            Ok(all) => found.push((Arc::clone(backend), all)),
            Err(error) => report.fail(backend.name(), &error),
        }
    }
    let told = repaired(inner, how, &mut report).await?;
    if how != Thoroughness::Quick {
        tidy(inner, how, &mut report).await?;
        put_carries_right(inner, how, &mut report).await?;
    }
    let changes = match how {
        Thoroughness::DryRun => Changes::None,
        Thoroughness::Quick | Thoroughness::Full => Changes::Remove,
    };
    let (places, locks) = (inner.places.clone(), inner.locks.clone());
    let looking = places.clone();
    if briefly(move || staging::has_any(&looking)).await? {
        for (name, swept) in blocking(move || staging::sweep(&places, &locks, changes)).await? {
            report.take(&name, swept.map(|()| Some(GcKind::Swept)));
        }
    }
    for (backend, all) in found {
        let known: Vec<SandboxId> = match how {
            // Whoever ends a sandbox that is listed pays what it owed.
            Thoroughness::Quick => all.iter().map(|listed| listed.id().clone()).collect(),
            Thoroughness::DryRun => told.clone(),
            Thoroughness::Full => Vec::new(),
        };
        orphans(inner, (&backend, all), how, &mut report).await?;
        sweep((&backend, &known), how, &mut report).await;
    }
    if how != Thoroughness::Quick {
        sweep_places(inner, how, &mut report).await?;
    }
    if how == Thoroughness::Full {
        retire_locks(inner).await?;
    }
    Ok(report)
}

/// Repairs sessions. The sandboxes of those of which it is told alone: whoever ends one pays what it left, so that it is
/// told with its session.
async fn repaired(
    inner: &Arc<Inner>,
    how: Thoroughness,
    report: &mut GcReport,
) -> Result<Vec<SandboxId>> {
    let now = now_ms();
    let rows = match how {
        Thoroughness::Quick => inner.store.due(now).await?,
        Thoroughness::Full | Thoroughness::DryRun => inner.store.all().await?,
    };
    let mut told = Vec::new();
    for row in rows {
        let Some(kind) = due(inner, &row, (now, how))? else { continue };
        let result = match how {
            Thoroughness::DryRun => would_repair(inner, &row, kind).await,
            Thoroughness::Quick | Thoroughness::Full => repair(inner, &row, kind).await,
        };
        if how == Thoroughness::DryRun && matches!(result, Ok(Some(_))) {
            told.push(row.id.sandbox(row.incarnation)?);
        }
        report.take(row.id.as_str(), result);
    }
    Ok(told)
}

/// Removes what is left of snapshots that were being made or removed.
async fn tidy(inner: &Arc<Inner>, how: Thoroughness, report: &mut GcReport) -> Result<()> {
    for row in inner.store.all().await?.iter().filter(|row| row.spec.is_copy_on_write()) {
        // Nobody is at work on it as long as this is held.
        let Some(desk) = Desk::try_open(inner, &row.id).await? else { continue };
        let tidied = match how {
            Thoroughness::DryRun => snapshot::is_untidy(inner, &row.id).await,
            Thoroughness::Quick | Thoroughness::Full => snapshot::tidy(inner, &row.id).await,
        };
        report.take(row.id.as_str(), tidied.map(|was_there| was_there.then_some(GcKind::Swept)));
        drop(desk);
    }
    Ok(())
}

/// Puts right what carries left in workspaces whose caller or worker was killed.
async fn put_carries_right(
    inner: &Arc<Inner>,
    how: Thoroughness,
    report: &mut GcReport,
) -> Result<()> {
    for row in inner.store.all().await? {
        if !carries::any(&inner.places, &row.id, Which::Abandoned) {
            continue;
        }
        let Some(mut desk) = Desk::try_open(inner, &row.id).await? else { continue };
        let done = match how {
            Thoroughness::DryRun => Ok(()),
            Thoroughness::Quick | Thoroughness::Full => desk.put_abandoned_right().await,
        };
        report.take(row.id.as_str(), done.map(|()| Some(GcKind::Swept)));
    }
    Ok(())
}

impl GcReport {
    fn fail(&mut self, subject: &str, error: &Error) {
        self.failed.push(GcFailure { subject: subject.to_owned(), error: error.chain() });
    }

    fn take(&mut self, subject: &str, result: Result<Option<GcKind>>) {
        match result {
            Ok(Some(action)) => {
                self.done.push(GcAction { subject: subject.to_owned(), action });
            }
            Ok(None) => {}
            Err(error) => self.fail(subject, &error),
        }
    }
}

/// Removes what belongs to no process any more, of whichever kind.
async fn sweep(
    (backend, known): (&Arc<dyn DurableBackend>, &[SandboxId]),
    how: Thoroughness,
    report: &mut GcReport,
) {
    let debts = match within(CALL_LIMIT, "say what is left", backend.debts(known)).await {
        Ok(debts) => debts,
        Err(error) => return report.fail(backend.name(), &error),
    };
    for debt in debts {
        let paid = match how {
            Thoroughness::DryRun => Ok(true),
            Thoroughness::Quick | Thoroughness::Full => {
                within(CALL_LIMIT, "remove what is left", backend.pay(&debt)).await
            }
        };
        report.take(&debt, paid.map(|paid| paid.then_some(GcKind::Swept)));
    }
}

/// What a backend has, by id; asked one by one only where that is wanted.
async fn exists(backend: &Arc<dyn DurableBackend>, how: Thoroughness) -> Result<Vec<Listed>> {
    let what = "list its sandboxes";
    if how == Thoroughness::Quick {
        let ids = within(CALL_LIMIT, what, backend.ids()).await?;
        return Ok(ids.into_iter().map(Listed::Id).collect());
    }
    let all = within(CALL_LIMIT, what, backend.list()).await?;
    Ok(all.into_iter().map(|found| Listed::Found(Box::new(found))).collect())
}

/// A sandbox as far as it was asked for.
enum Listed {
    Id(SandboxId),
    Found(Box<Found>),
}

impl Listed {
    fn id(&self) -> &SandboxId {
        match self {
            Self::Id(id) => id,
            Self::Found(found) => &found.id,
        }
    }
}

/// What a row needs, as far as it can be seen from outside.
fn due(inner: &Inner, row: &Row, (now, how): (u64, Thoroughness)) -> Result<Option<GcKind>> {
    if row.phase == Phase::Deleting {
        return Ok(Some(GcKind::Removed));
    }
    if row.facts.times.lease_until_ms.is_some_and(|until| until <= now) {
        return Ok(Some(GcKind::Expired));
    }
    if row.facts.scope.has_owner() {
        // Whoever wants it holds this lock until it is removed.
        if let Some(lock) = inner.locks.try_take(&owner_key(&row.id))? {
            lock.retire();
            return Ok(Some(GcKind::Abandoned));
        }
        if row.facts.scope == Scope::Run {
            return Ok(None);
        }
    }
    Ok(if row.phase.is_passing() || row.owes_a_burial() {
        Some(GcKind::Settled)
    } else if row.cleanup_failed.is_some() {
        Some(GcKind::Cleaned)
    } else if row.facts.deadlines_owed || row.facts.network_owed {
        Some(GcKind::Told)
    } else {
        (stands(row.phase) && how != Thoroughness::Quick).then_some(GcKind::Settled)
    })
}

/// Whether a session has a sandbox and nobody is at work on it.
fn stands(phase: Phase) -> bool {
    matches!(phase, Phase::Running | Phase::Paused)
}

/// What [`repair`] would say that it changed.
async fn would_repair(inner: &Inner, row: &Row, kind: GcKind) -> Result<Option<GcKind>> {
    if kind != GcKind::Settled || !stands(row.phase) {
        return Ok(Some(kind));
    }
    let Some(record) = &row.record else { return Ok(None) };
    let backend = inner.backend(&row.backend)?;
    let status = within(CALL_LIMIT, "say how a sandbox is", backend.status(record)).await?;
    Ok((status == SandboxStatus::Gone).then_some(kind))
}

/// The lock of the owner of a scoped run, or of a session that ends with its maker.
pub(crate) fn owner_key(id: &SessionId) -> String {
    format!("{id}.owner")
}

/// Does what a row needs, unless somebody is at work on it. Says what changed.
async fn repair(inner: &Arc<Inner>, row: &Row, kind: GcKind) -> Result<Option<GcKind>> {
    let Some(mut desk) = Desk::try_open(inner, &row.id).await? else { return Ok(None) };
    let before = (desk.row.phase, desk.row.revision);
    match kind {
        GcKind::Removed => {
            desk.drive(Event::Delete).await?;
            return Ok(Some(kind));
        }
        GcKind::Expired | GcKind::Abandoned => {
            let expired = kind == GcKind::Expired;
            let reason = if expired { DestroyReason::Lease } else { DestroyReason::Canceled };
            // It may have been extended while this waited.
            let until = desk.row.facts.times.lease_until_ms;
            if expired && until.is_none_or(|until| until > now_ms()) {
                return Ok(None);
            }
            desk.row.facts.reason = Some(reason);
            desk.drive(Event::Delete).await?;
            return Ok(Some(kind));
        }
        GcKind::Settled => desk.settle().await?,
        GcKind::Cleaned => desk.clean().await?,
        GcKind::Told => {
            desk.pay_deadlines().await?;
            desk.pay_network().await?;
        }
        GcKind::OrphanEnded | GcKind::StaleEnded | GcKind::Swept => {}
    }
    // One that fell asleep or woke since it was written down is as it should be.
    let only_sleeps = stands(before.0) && stands(desk.row.phase) && kind == GcKind::Settled;
    Ok((before != (desk.row.phase, desk.row.revision) && !only_sleeps).then_some(kind))
}

/// Ends what belongs to no session, or to an incarnation that is over.
async fn orphans(
    inner: &Arc<Inner>,
    (backend, all): (&Arc<dyn DurableBackend>, Vec<Listed>),
    how: Thoroughness,
    report: &mut GcReport,
) -> Result<()> {
    let known: BTreeSet<(String, u32)> =
        inner.store.incarnations(None).await?.into_iter().collect();
    let mut suspects = Vec::new();
    for listed in all {
        // What does not look like a sandbox of a session was not made here.
        let Some((id, incarnation)) = SessionId::of(listed.id()) else { continue };
        if !known.contains(&(id.to_string(), incarnation)) {
            suspects.push((listed.id().clone(), GcKind::OrphanEnded));
        } else if let Listed::Found(found) = &listed
            && found.status != SandboxStatus::Gone
            && is_stale(inner, &id, incarnation).await?
        {
            suspects.push((found.id.clone(), GcKind::StaleEnded));
        }
    }
    if suspects.is_empty() {
        return Ok(());
    }
    if how == Thoroughness::DryRun {
        for (id, kind) in suspects {
            report.take(id.as_str(), Ok(Some(kind)));
        }
        return Ok(());
    }
    let found = match within(CALL_LIMIT, "list its sandboxes", backend.list()).await {
        Ok(found) => found,
        Err(error) => {
            report.fail(backend.name(), &error);
            return Ok(());
        }
    };
    for (id, kind) in suspects {
        let Some(found) = found.iter().find(|found| found.id == id) else { continue };
        let result = end(backend, found, kind).await;
        report.take(id.as_str(), result);
    }
    Ok(())
}

/// Ends the sandboxes of a session that is not there any more.
pub(crate) async fn end_strays(
    sessions: &Sessions,
    session: &SessionId,
    reason: DestroyReason,
) -> Result<()> {
    for backend in &sessions.0.backends {
        for id in within(CALL_LIMIT, "list its sandboxes", backend.ids()).await? {
            if SessionId::of(&id).is_none_or(|(of, _)| of != *session) {
                continue;
            }
            let found = within(CALL_LIMIT, "find a sandbox", backend.find(&id)).await?;
            if let Some(record) = found.and_then(|found| found.record) {
                let end = backend.destroy(&record, reason);
                within(CALL_LIMIT, "end a sandbox", end).await?;
            }
            within(CALL_LIMIT, "forget a sandbox", backend.forget(&id)).await?;
        }
    }
    Ok(())
}

/// Removes the homes and layers of sessions that are not there any more.
async fn sweep_places(inner: &Arc<Inner>, how: Thoroughness, report: &mut GcReport) -> Result<()> {
    let places = inner.places.clone();
    for id in blocking(move || have_places(&places)).await? {
        if inner.store.get(&id).await?.is_some() {
            continue;
        }
        // ORDER: taken first. Whoever begins a session holds its lock before there is a row.
        let Some(lock) = inner.locks.try_take(id.as_str())? else { continue };
        if inner.store.get(&id).await?.is_some() {
            continue;
        }
        let swept = match how {
            Thoroughness::DryRun => Ok(Some(GcKind::Swept)),
            Thoroughness::Quick | Thoroughness::Full => sweep_place(inner, &id).await,
        };
        report.take(id.as_str(), swept);
        lock.retire();
    }
    Ok(())
}

/// The sessions of which there is a home or a layer.
fn have_places(places: &Places) -> Result<BTreeSet<SessionId>> {
    let mut all = BTreeSet::new();
    for parent in [places.homes(), places.kept()] {
        let failed = |e: io::Error| {
            Error::new(ErrorKind::Io, format!("list {}", parent.display())).source(e)
        };
        let entries = match std::fs::read_dir(&parent) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            entries => entries.map_err(failed)?,
        };
        for entry in entries {
            let name = entry.map_err(failed)?.file_name().into_string().ok();
            all.extend(name.and_then(|name| SessionId::new(name).ok()));
        }
    }
    Ok(all)
}

/// Removes the home and the layer of a session, unless a sandbox that could not be ended uses them.
async fn sweep_place(inner: &Arc<Inner>, id: &SessionId) -> Result<Option<GcKind>> {
    for backend in &inner.backends {
        let all = within(CALL_LIMIT, "list its sandboxes", backend.ids()).await?;
        if all.iter().filter_map(SessionId::of).any(|(of, _)| of == *id) {
            return Ok(None);
        }
    }
    let (places, name) = (inner.places.clone(), id.to_string());
    blocking(move || {
        home::remove(&places.homes(), &name)?;
        home::remove(&places.kept(), &name)
    })
    .await?;
    Ok(Some(GcKind::Swept))
}

/// Removes the files of locks that belong to no session any more.
async fn retire_locks(inner: &Arc<Inner>) -> Result<()> {
    for key in inner.locks.keys()? {
        let id = key.split('.').next().unwrap_or_default();
        let Ok(id) = SessionId::new(id) else { continue };
        // ORDER: taken first. Whoever begins a session holds its lock before there is a row.
        let Some(lock) = inner.locks.try_take(&key)? else { continue };
        if inner.store.get(&id).await?.is_none() {
            lock.retire();
        }
    }
    Ok(())
}

async fn is_stale(inner: &Inner, id: &SessionId, incarnation: u32) -> Result<bool> {
    let row = inner.store.get(id).await?;
    Ok(row.is_none_or(|row| row.incarnation != incarnation || !row.phase.owes_an_end()))
}

async fn end(
    backend: &Arc<dyn DurableBackend>,
    found: &Found,
    kind: GcKind,
) -> Result<Option<GcKind>> {
    if found.status != SandboxStatus::Gone {
        // One that is still being made is ended when it is made.
        let Some(record) = &found.record else { return Ok(None) };
        let end = backend.destroy(record, DestroyReason::Canceled);
        within(CALL_LIMIT, "end a sandbox", end).await?;
    }
    if kind == GcKind::OrphanEnded {
        within(CALL_LIMIT, "forget a sandbox", backend.forget(&found.id)).await?;
    }
    Ok(Some(kind))
}

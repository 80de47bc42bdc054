//! One session per name, running and prepared, whoever asks and however often.

use crate::desk::Desk;
use crate::order::{SessionOrder, Unsaid, millis};
use crate::store::{NewEvent, Row, Times};
use crate::{Event, Phase, Session, SessionId, Sessions, now_ms};
use cofferdam_core::StoredSpec;
use cofferdam_core::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// How often a name is looked up anew because its session came or went meanwhile.
const ATTEMPTS: usize = 64;
/// A lease that would move by less is left as it is, so that to ensure often costs little.
const LEAST_RENEWAL_MS: u64 = 1000;
/// The same for short leases: what part of one.
const LEAST_RENEWAL_PART: u64 = 4;

/// A session that runs, and what it took.
#[derive(Debug, Clone)]
pub struct Ensured {
    /// The session.
    pub session: Session,
    /// What it took.
    pub how: EnsuredHow,
}

/// What it took to have a session run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EnsuredHow {
    /// There was none of this name.
    Created,
    /// It ran.
    Running,
    /// It was paused.
    Resumed,
    /// Its sandbox was gone or had been ended: it has a new one. Processes are lost, the home
    /// directory is kept.
    Recovered,
}

impl Sessions {
    /// The session of this name, running and prepared: made, resumed or recovered if it has to be.
    ///
    /// Asked at once by any number of callers and processes it makes one. An order that differs from
    /// the session's is a conflict that names what differs; only labels, deadlines, the init list
    /// and checkpoints may differ, and are then those of the order, as far as it says them. A lease that is
    /// said begins anew, and is no shorter for it where it is of the same length. Another backend
    /// than the session's is a conflict that names both. An init list runs once in each sandbox; one that failed goes on at the
    /// command that failed.
    ///
    /// Where this future is dropped while a sandbox is made, that goes on; whoever asks next waits for it, as long
    /// as a creation may take.
    pub async fn ensure(&self, order: &SessionOrder) -> Result<Ensured> {
        order.check()?;
        let Some(name) = &order.name else {
            return Err(Error::new(ErrorKind::Usage, "a session to ensure needs a name")
                .hint("Name it, or create one without a name."));
        };
        for _ in 0..ATTEMPTS {
            match self.try_ensure(name, order).await {
                Ok(Some(ensured)) => return Ok(ensured),
                Ok(None) => {}
                // Somebody removed it while it was worked on.
                Err(error)
                    if error.kind == ErrorKind::Conflict
                        && self.0.store.named(name).await?.is_none() => {}
                Err(error) => return Err(error),
            }
        }
        let what = format!("session {name:?} comes and goes too fast");
        Err(Error::new(ErrorKind::Unavailable, what).hint("Try again."))
    }
}

impl Sessions {
    /// The session of this name as the order says; `None` where one came or went meanwhile.
    async fn try_ensure(&self, name: &str, order: &SessionOrder) -> Result<Option<Ensured>> {
        let (mut desk, how) = match self.0.store.named(name).await? {
            None => {
                let Some(mut desk) = self.0.begin(order).await? else { return Ok(None) };
                self.0.establish(&mut desk).await?;
                desk.provide_first(order.manifest.as_deref()).await?;
                (desk, EnsuredHow::Created)
            }
            Some(row) => {
                refuse_other_backend(&row, order)?;
                let Some(mut desk) = Desk::open(&self.0, &row.id).await? else { return Ok(None) };
                if desk.row.phase == Phase::Deleting || desk.is_over().await? {
                    return Ok(None);
                }
                refuse_other_spec(&desk.row, order)?;
                refuse_other_mounts(&desk.row, order)?;
                desk.refuse_while_frozen().await?;
                update(&mut desk, order).await?;
                let how = wake(&mut desk).await?;
                desk.provide(order.manifest.as_deref()).await?;
                (desk, how)
            }
        };
        desk.prepare().await?;
        Session::first_point(&mut desk).await?;
        Ok(Some(Ensured { session: self.session(desk.row.id.clone()), how }))
    }

    /// What the session may do otherwise than this order says: names of fields, never values.
    pub async fn differences(&self, id: &SessionId, order: &SessionOrder) -> Result<Vec<String>> {
        Ok(self.0.row(id).await?.spec.differences(&StoredSpec::new(&order.spec)))
    }

    /// Whether the session ends with the process that made it, or belongs to a run.
    pub async fn ends_with_process(&self, id: &SessionId) -> Result<bool> {
        Ok(self.0.row(id).await?.facts.scope.has_owner())
    }
}

/// Brings a session to run, and says what it took.
async fn wake(desk: &mut Desk) -> Result<EnsuredHow> {
    let incarnation = desk.row.incarnation;
    let created = desk.row.phase == Phase::Creating;
    desk.drive(Event::Ensure).await?;
    Ok(if desk.row.incarnation != incarnation {
        EnsuredHow::Recovered
    } else if created {
        EnsuredHow::Created
    } else if desk.resumed {
        EnsuredHow::Resumed
    } else {
        EnsuredHow::Running
    })
}

fn refuse_other_backend(row: &Row, order: &SessionOrder) -> Result<()> {
    match &order.backend {
        Some(asked) if *asked != row.backend => {
            let what = format!(
                "session {} is kept by backend {:?}, and {asked:?} is asked for",
                row.name.as_deref().unwrap_or(row.id.as_str()),
                row.backend
            );
            Err(Error::new(ErrorKind::Conflict, what)
                .hint("Remove the session first, or ask for the backend that it has."))
        }
        _ => Ok(()),
    }
}

fn refuse_other_spec(row: &Row, order: &SessionOrder) -> Result<()> {
    let fields = row.spec.differences(&StoredSpec::new(&order.spec));
    if fields.is_empty() {
        return Ok(());
    }
    let name = row.name.as_deref().unwrap_or(row.id.as_str());
    let what = format!("session {name} differs from what is asked for in {}", fields.join(", "));
    Err(Error::new(ErrorKind::Conflict, what)
        .hint("Ask for what it is, use another name, or remove it first."))
}

/// The same manifest may mean other directories by now. Another manifest is refused as such later.
fn refuse_other_mounts(row: &Row, order: &SessionOrder) -> Result<()> {
    let (Some(wanted), Some(has)) = (&order.manifest, &row.facts.manifest) else { return Ok(()) };
    let has_mounts = row.spec.mounts()?;
    let added: Vec<_> = order.spec.mounts.iter().chain(&wanted.mounts).collect();
    if !has.is_of(wanted) || has_mounts.iter().eq(added.iter().copied()) {
        return Ok(());
    }
    let other = added.into_iter().find(|mount| !has_mounts.contains(mount));
    let shown = other.map(|mount| mount.source.display().to_string()).unwrap_or_default();
    let name = row.name.as_deref().unwrap_or(row.id.as_str());
    let what =
        format!("{shown} is another directory than the one that session {name} was made with");
    Err(Error::new(ErrorKind::Conflict, what)
        .hint("Put that one back, use another name, or remove the session first."))
}

/// Takes over what may differ and is said.
async fn update(desk: &mut Desk, order: &SessionOrder) -> Result<()> {
    let says = |what| !order.unsaid.contains(&what);
    let row = &mut desk.row;
    let mut changed = Vec::new();
    if says(Unsaid::Labels) && row.labels != order.labels {
        row.labels.clone_from(&order.labels);
        changed.push(Unsaid::Labels);
    }
    let (idle, ttl) = (order.idle_pause.map(millis), order.ttl.map(millis));
    let times = &mut row.facts.times;
    if says(Unsaid::IdlePause) && times.idle_pause_ms != idle {
        times.idle_pause_ms = idle;
        changed.push(Unsaid::IdlePause);
    }
    if says(Unsaid::Ttl) && lease(times, ttl, now_ms()) {
        changed.push(Unsaid::Ttl);
    }
    row.facts.deadlines_owed |=
        changed.iter().any(|what| matches!(what, Unsaid::IdlePause | Unsaid::Ttl));
    if says(Unsaid::Checkpoints) && row.facts.no_checkpoints == order.checkpoints {
        row.facts.no_checkpoints = !order.checkpoints;
        changed.push(Unsaid::Checkpoints);
    }
    if says(Unsaid::Init) && row.facts.init.replace(order.init.clone()) {
        changed.push(Unsaid::Init);
    }
    if changed.is_empty() {
        return Ok(());
    }
    let fields: Vec<&str> = changed.into_iter().map(Unsaid::name).collect();
    desk.amend(Some(NewEvent::now("updated", json!({ "fields": fields })))).await
}

/// Takes over a lease that is said. Says whether there is something to write.
///
/// One of the same length is renewed, and stays where it was where somebody extended it beyond that.
fn lease(times: &mut Times, ttl_ms: Option<u64>, now_ms: u64) -> bool {
    let until = ttl_ms.map(|ttl| now_ms.saturating_add(ttl));
    if times.ttl_ms == ttl_ms {
        let (Some(until), Some(ttl)) = (until, ttl_ms) else { return false };
        let least = LEAST_RENEWAL_MS.min(ttl / LEAST_RENEWAL_PART);
        let has = times.lease_until_ms.unwrap_or_default();
        if until < has.saturating_add(least) {
            return false;
        }
    }
    (times.ttl_ms, times.lease_until_ms) = (ttl_ms, until);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A lease of `ttl_ms` that was said at 0, and what comes of it with another word at `now_ms`.
    fn check(ttl_ms: u64, said: Option<u64>, now_ms: u64, expected: Option<Option<u64>>) {
        let lease_until_ms = Some(ttl_ms);
        let mut times = Times { ttl_ms: Some(ttl_ms), lease_until_ms, ..Times::default() };
        let is_written = lease(&mut times, said, now_ms);
        assert_eq!(is_written.then_some(times.lease_until_ms), expected, "{said:?} at {now_ms}");
        if !is_written {
            assert_eq!((times.ttl_ms, times.lease_until_ms), (Some(ttl_ms), lease_until_ms));
        }
    }

    #[test]
    fn a_lease_that_is_said_again_begins_anew() {
        check(60_000, Some(60_000), 1000, Some(Some(61_000)));
        check(60_000, Some(60_000), 70_000, Some(Some(130_000)));
        check(60_000, Some(60_000), 999, None);
        // A short one too, before it is over.
        check(100, Some(100), 24, None);
        check(100, Some(100), 25, Some(Some(125)));
        // Another one is taken as it is said.
        check(60_000, Some(10), 1, Some(Some(11)));
        check(60_000, None, 1, Some(None));
    }

    #[test]
    fn a_lease_that_was_extended_is_not_shortened_by_its_own_length() {
        let mut times =
            Times { ttl_ms: Some(60_000), lease_until_ms: Some(600_000), ..Times::default() };
        assert!(!lease(&mut times, Some(60_000), 30_000));
        assert_eq!(times.lease_until_ms, Some(600_000));
        // One that no order gave stays too.
        let mut owned = Times { lease_until_ms: Some(5), ..Times::default() };
        assert!(!lease(&mut owned, None, 3));
        assert_eq!(owned.lease_until_ms, Some(5));
    }
}

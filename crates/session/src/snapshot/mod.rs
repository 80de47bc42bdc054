//! Snapshots of copy-on-write sessions: points of the history that somebody named, and that stay until
//! somebody removes them. Forks: other sessions that begin at a point.

mod carry;

pub use carry::{SnapshotExport, SnapshotExported, SnapshotImported};

use crate::desk::Desk;
use crate::history::{History, PointReport, Target, UndoOrder, UndoReport, fork, layered, present};
use crate::sessions::Inner;
use crate::store::{Apart, NewEvent, Row, apart, beside, blocking};
use crate::{Event, Session, SessionId, SessionOrder, Sessions};
use cofferdam_core::{Error, ErrorKind, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// The most snapshots of one session.
pub const MAX_SNAPSHOTS: usize = 64;
/// The longest label, in bytes.
const MAX_LABEL_BYTES: usize = 256;

/// A snapshot of a session. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SnapshotReport {
    /// Its number: that of a point in the history of its session.
    pub snapshot: u32,
    /// What somebody called it.
    pub label: Option<String>,
    /// When it was taken, in milliseconds since 1970.
    pub made_ms: u64,
    /// Files and directories in it.
    pub files: u64,
    /// Bytes of content in it.
    pub bytes: u64,
}

impl Sessions {
    /// Keeps what a session changed in its copy-on-write workspace as it is now. Its processes stand
    /// still meanwhile, and go on afterwards. The home directory is not part of it.
    pub async fn snapshot(&self, id: &SessionId, label: Option<String>) -> Result<SnapshotReport> {
        check_label(label.as_deref())?;
        apart(self.taking(id, label)).await
    }

    fn taking(&self, id: &SessionId, label: Option<String>) -> Apart<SnapshotReport> {
        let (sessions, id) = (self.clone(), id.clone());
        Box::pin(async move { sessions.snapshot_here(&id, label).await })
    }

    async fn snapshot_here(&self, id: &SessionId, label: Option<String>) -> Result<SnapshotReport> {
        let mut desk = self.layered(id).await?;
        let history = self.history(id);
        check_room(&history).await?;
        present(&mut desk).await?;
        let taken = SnapshotReport::of(blocking(move || history.name_present(label)).await?);
        let SnapshotReport { snapshot, label, files, bytes, .. } = &taken;
        let data = json!({ "snapshot": snapshot, "label": label, "files": files, "bytes": bytes });
        let done = format!("it was taken as snapshot {snapshot}");
        desk.tell(NewEvent::now("snapshot_made", data), &done).await?;
        Ok(taken)
    }

    /// The snapshots of a session, oldest first.
    pub async fn snapshots(&self, id: &SessionId) -> Result<Vec<SnapshotReport>> {
        self.0.row(id).await?;
        let history = self.history(id);
        let all = blocking(move || history.snapshots()).await?;
        Ok(all.into_iter().map(SnapshotReport::of).collect())
    }

    /// Ends all processes of a session and puts its workspace back to a snapshot, named by its number or
    /// what it is called: an undo to it. Another point is a conflict.
    pub async fn restore(&self, id: &SessionId, name: &str) -> Result<UndoReport> {
        let (history, name) = (self.history(id), name.to_owned());
        layered(&self.0.row(id).await?)?;
        let number = blocking(move || history.named_snapshot(&name)).await?;
        let target = Target::Point(number);
        let order = UndoOrder { target, dry_run: false, may_lose: false };
        let report = self.session(id.clone()).undo(&order).await?;
        let said = NewEvent::now("snapshot_restored", json!({ "snapshot": number }));
        let done = format!("the session stands at snapshot {number} now");
        self.0.desk(id).await?.tell(said, &done).await?;
        Ok(report)
    }

    /// Removes a snapshot, and says what it was. One that is not there is an error.
    pub async fn remove_snapshot(&self, id: &SessionId, name: &str) -> Result<SnapshotReport> {
        let room = self.0.store.while_room_is_made();
        let mut desk = self.layered(id).await?;
        room.let_go().await?;
        let (history, name) = (self.history(id), name.to_owned());
        let removed = blocking(move || history.remove_snapshot(history.named(&name)?)).await?;
        let said = NewEvent::now("snapshot_removed", json!({ "snapshot": removed.point }));
        let done = format!("snapshot {} is gone", removed.point);
        desk.tell(said, &done).await?;
        Ok(SnapshotReport::of(removed))
    }

    /// Makes another session of the same spec, whose workspace begins as this one's is now, or was at a
    /// point: one of a number, or a snapshot that is called so. Processes, the home directory and what was
    /// written to an image are not copied; the new one is prepared as any other. A session that an alarm
    /// froze has none: the new one would go on with its secrets.
    pub async fn fork(&self, id: &SessionId, point: Option<&str>, name: &str) -> Result<Session> {
        apart(self.forking(id, point, name)).await
    }

    fn forking(&self, id: &SessionId, point: Option<&str>, name: &str) -> Apart<Session> {
        let (sessions, id) = (self.clone(), id.clone());
        let (point, name) = (point.map(str::to_owned), name.to_owned());
        Box::pin(async move { sessions.fork_here(&id, point, &name).await })
    }

    async fn fork_here(
        &self,
        id: &SessionId,
        point: Option<String>,
        name: &str,
    ) -> Result<Session> {
        let mut desk = self.layered(id).await?;
        desk.refuse_while_frozen().await?;
        let history = self.history(id);
        let number = match point {
            Some(point) => {
                // ORDER: nothing is begun from a point that is not there.
                let history = history.clone();
                let find = move || history.named(&point).and_then(|n| history.tree(n).map(|_| n));
                Some(blocking(find).await?)
            }
            None => None,
        };
        let order = like(&desk.row, name)?;
        order.check()?;
        let inner = Arc::clone(&self.0);
        let begun = beside(async move { begin(&inner, &order).await });
        let looked = match number {
            Some(_) => Ok(()),
            None => present(&mut desk).await,
        };
        let Some(mut other) = begun.await? else {
            let what = format!("there is a session {name:?} already");
            return Err(Error::new(ErrorKind::Conflict, what).hint("Use another name."));
        };
        let forked = match looked {
            Ok(()) => fork(&desk, &other, number).await,
            Err(error) => Err(error),
        };
        let number = match forked {
            Ok(number) => number,
            Err(error) => return Err(given_up(other, error).await),
        };
        let said = NewEvent::now("forked", json!({ "into": other.row.id, "point": number }));
        let told = beside(async move { desk.amend(Some(said)).await });
        // Written with the sandbox that is made now.
        other.row.facts.unfilled = false;
        let made = self.0.establish(&mut other).await;
        let told = told.await;
        made?;
        if let Err(error) = told {
            return Err(given_up(other, error).await);
        }
        other.prepare().await?;
        Ok(self.session(other.row.id.clone()))
    }

    fn history(&self, id: &SessionId) -> History {
        self.session(id.clone()).points()
    }

    /// A session under its lock, which must have a layer.
    async fn layered(&self, id: &SessionId) -> Result<Desk> {
        let desk = self.0.desk(id).await?;
        layered(&desk.row)?;
        Ok(desk)
    }
}

impl SnapshotReport {
    fn of(point: PointReport) -> Self {
        let PointReport { point: snapshot, label, made_ms, files, bytes, .. } = point;
        Self { snapshot, label, made_ms, files, bytes }
    }
}

/// Writes down a session that others cannot use until all is there that it begins with. `None` where its name is taken.
async fn begin(inner: &Arc<Inner>, order: &SessionOrder) -> Result<Option<Desk>> {
    let backend = inner.backend(order.backend.as_deref().unwrap_or_default())?;
    let mut row = order.row(SessionId::fresh()?, backend.name())?;
    row.facts.unfilled = true;
    inner.begin_with(row).await
}

/// Removes a session that is not to be after all. The error that caused it is the one to tell; what could not be
/// removed stays recorded.
async fn given_up(mut begun: Desk, error: Error) -> Error {
    let _room = begun.inner.store.while_room_is_made();
    begun.drive(Event::Delete).await.ok();
    error
}

/// Refuses more snapshots than a session may have.
async fn check_room(history: &History) -> Result<()> {
    let history = history.clone();
    room_beside(blocking(move || history.snapshots()).await?.len())
}

/// The same beside so many.
fn room_beside(count: usize) -> Result<()> {
    if count < MAX_SNAPSHOTS {
        return Ok(());
    }
    let what = format!("the session has {MAX_SNAPSHOTS} snapshots already");
    Err(Error::new(ErrorKind::TooLarge, what).hint("Remove one with `cofferdam snapshot rm`."))
}

/// Refuses a label that nobody could name a snapshot by.
fn check_label(label: Option<&str>) -> Result<()> {
    let Some(label) = label else { return Ok(()) };
    let usage = |what: String, hint: &str| Err(Error::new(ErrorKind::Usage, what).hint(hint));
    if label.len() > MAX_LABEL_BYTES {
        return usage(
            format!("the label is longer than {MAX_LABEL_BYTES} bytes"),
            "Use a shorter one.",
        );
    }
    if label.is_empty() || label.bytes().all(|byte| byte.is_ascii_digit()) {
        return usage(format!("the label {label:?} would be taken for a number"), "Use a word.");
    }
    if label.contains("..") {
        return usage(
            format!("the label {label:?} has \"..\" in it, which stands between two points"),
            "Use one without it.",
        );
    }
    Ok(())
}

/// Removes what somebody left who died while at work on a history. Says whether there was something.
pub(crate) async fn tidy(inner: &Inner, id: &SessionId) -> Result<bool> {
    let history = History::new(inner.places.kept().join(id.as_str()));
    blocking(move || history.tidy_all()).await
}

/// Whether [`tidy`] would find something. Changes nothing.
pub(crate) async fn is_untidy(inner: &Inner, id: &SessionId) -> Result<bool> {
    let history = History::new(inner.places.kept().join(id.as_str()));
    blocking(move || history.is_untidy()).await
}

/// An order for a session that is as another one was ordered.
fn like(row: &Row, name: &str) -> Result<SessionOrder> {
    let times = &row.facts.times;
    Ok(SessionOrder {
        name: Some(name.to_owned()),
        owner: row.owner.clone(),
        backend: Some(row.backend.clone()),
        spec: row.spec.spec()?,
        labels: row.labels.clone(),
        init: row.facts.init.commands.clone(),
        // What it brought is in the layer.
        manifest: None,
        idle_pause: times.idle_pause_ms.map(Duration::from_millis),
        ttl: times.ttl_ms.map(Duration::from_millis),
        checkpoints: !row.facts.no_checkpoints,
        unsaid: std::collections::BTreeSet::new(),
        owned: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_can_be_named_later() {
        let check = |label: &str, expected: Option<&str>| {
            let refused = check_label(Some(label)).err();
            let message = refused.as_ref().map(|error| error.message.as_str());
            match expected {
                None => assert_eq!(message, None, "{label}"),
                Some(why) => assert!(message.unwrap().contains(why), "{label}: {message:?}"),
            }
        };
        for label in ["tests pass", "feat/x", "v1.2", "7a"] {
            check(label, None);
        }
        check("7", Some("a number"));
        check("", Some("a number"));
        check("a..b", Some("the label \"a..b\" has \"..\""));
        check("..", Some("stands between two points"));
        check(&"x".repeat(MAX_LABEL_BYTES + 1), Some("longer"));
    }

    #[test]
    fn a_session_has_so_many_snapshots_at_most() {
        assert!(room_beside(MAX_SNAPSHOTS - 1).is_ok());
        assert_eq!(room_beside(MAX_SNAPSHOTS).unwrap_err().kind, ErrorKind::TooLarge);
    }
}

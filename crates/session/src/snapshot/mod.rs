//! Snapshots of copy-on-write sessions: exact copies of the layer, taken while everything stands still.

mod copy;
mod shelf;
mod widened;

use crate::desk::Desk;
use crate::sessions::Inner;
use crate::store::{NewEvent, Row, blocking};
use crate::{Event, Phase, Session, SessionId, SessionOrder, Sessions, now_ms};
use cofferdam_core::{Error, ErrorKind, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use shelf::Shelf;
use std::time::Duration;

/// The most snapshots of one session.
pub const MAX_SNAPSHOTS: usize = 64;
/// The longest label, in bytes.
const MAX_LABEL_BYTES: usize = 256;

/// A snapshot of a session. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SnapshotReport {
    /// Its number in its session, from 1.
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
    /// Copies what a session changed in its copy-on-write workspace. Its processes stand still
    /// meanwhile, and go on afterwards. The home directory is not part of it.
    pub async fn snapshot(&self, id: &SessionId, label: Option<String>) -> Result<SnapshotReport> {
        if label.as_ref().is_some_and(|label| label.len() > MAX_LABEL_BYTES) {
            let what = format!("the label is longer than {MAX_LABEL_BYTES} bytes");
            return Err(Error::new(ErrorKind::Usage, what).hint("Use a shorter one."));
        }
        let mut desk = self.layered(id).await?;
        let shelf = self.shelf(id);
        let taken = while_still(&mut desk, move || shelf.take(label, now_ms())).await?;
        let SnapshotReport { snapshot, label, files, bytes, .. } = &taken;
        let data = json!({ "snapshot": snapshot, "label": label, "files": files, "bytes": bytes });
        desk.amend(Some(NewEvent::now("snapshot_made", data))).await?;
        Ok(taken)
    }

    /// The snapshots of a session, oldest first.
    pub async fn snapshots(&self, id: &SessionId) -> Result<Vec<SnapshotReport>> {
        self.0.row(id).await?;
        let shelf = self.shelf(id);
        blocking(move || shelf.all()).await
    }

    /// Ends all processes of a session and puts its workspace back to a snapshot. The next command gets
    /// a new sandbox. The snapshot stays.
    pub async fn restore(&self, id: &SessionId, number: u32) -> Result<SnapshotReport> {
        let mut desk = self.layered(id).await?;
        let shelf = self.shelf(id);
        // ORDER: nothing is ended for a snapshot that is not there.
        let looking = shelf.clone();
        blocking(move || looking.report(number)).await?;
        desk.settle().await?;
        desk.drive(Event::Stop).await?;
        let restored = blocking(move || shelf.restore(number)).await?;
        let said = NewEvent::now("snapshot_restored", json!({ "snapshot": number }));
        desk.amend(Some(said)).await?;
        Ok(restored)
    }

    /// Removes a snapshot, and says what it was. One that is not there is an error.
    pub async fn remove_snapshot(&self, id: &SessionId, number: u32) -> Result<SnapshotReport> {
        let mut desk = self.layered(id).await?;
        let shelf = self.shelf(id);
        let removed = blocking(move || shelf.remove(number)).await?;
        let said = NewEvent::now("snapshot_removed", json!({ "snapshot": number }));
        desk.amend(Some(said)).await?;
        Ok(removed)
    }

    /// Makes another session of the same spec, whose workspace begins as this one's is now, or was in a
    /// snapshot. Processes, the home directory and what was written to an image are not copied; the new
    /// one is prepared as any other.
    pub async fn fork(&self, id: &SessionId, snapshot: Option<u32>, name: &str) -> Result<Session> {
        let mut desk = self.layered(id).await?;
        if let Some(number) = snapshot {
            // ORDER: nothing is begun from a snapshot that is not there.
            let shelf = self.shelf(id);
            blocking(move || shelf.report(number)).await?;
        }
        let order = like(&desk.row, name)?;
        order.check()?;
        let Some(mut other) = self.0.begin(&order).await? else {
            let what = format!("there is a session {name:?} already");
            return Err(Error::new(ErrorKind::Conflict, what).hint("Use another name."));
        };
        let (from, to) = (self.shelf(id), self.shelf(&other.row.id));
        if let Err(error) = while_still(&mut desk, move || from.fork(&to, snapshot)).await {
            // The error that caused it is the one to tell; what could not be removed stays recorded.
            other.drive(Event::Delete).await.ok();
            return Err(error);
        }
        let said = NewEvent::now("forked", json!({ "into": other.row.id, "snapshot": snapshot }));
        desk.amend(Some(said)).await?;
        drop(desk);
        self.0.establish(&mut other).await?;
        other.prepare().await?;
        Ok(self.session(other.row.id.clone()))
    }

    fn shelf(&self, id: &SessionId) -> Shelf {
        Shelf::new(self.0.places.kept().join(id.as_str()))
    }

    /// A session under its lock, which must have a layer.
    async fn layered(&self, id: &SessionId) -> Result<Desk> {
        let desk = self.0.desk(id).await?;
        if desk.row.spec.is_copy_on_write() {
            return Ok(desk);
        }
        let what = format!("session {id} has no layer: it is not copy-on-write");
        Err(Error::new(ErrorKind::Conflict, what).hint("Make sessions with --cow for this."))
    }
}

/// Removes what somebody left who died while at work on snapshots. Says whether there was something.
pub(crate) async fn tidy(inner: &Inner, id: &SessionId) -> Result<bool> {
    let shelf = Shelf::new(inner.places.kept().join(id.as_str()));
    blocking(move || shelf.tidy()).await
}

/// An order for a session that is as another one was ordered.
fn like(row: &Row, name: &str) -> Result<SessionOrder> {
    let times = &row.facts.times;
    Ok(SessionOrder {
        name: Some(name.to_owned()),
        backend: Some(row.backend.clone()),
        spec: row.spec.spec()?,
        labels: row.labels.clone(),
        init: row.facts.init.commands.clone(),
        // What it brought is in the layer.
        manifest: None,
        idle_pause: times.idle_pause_ms.map(Duration::from_millis),
        ttl: times.ttl_ms.map(Duration::from_millis),
    })
}

/// Does something while no process of the session runs. Those that ran go on afterwards, whatever came
/// of it.
async fn while_still<T: Send + 'static>(
    desk: &mut Desk,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    desk.settle().await?;
    let runs = desk.row.phase == Phase::Running;
    if runs {
        desk.drive(Event::Pause).await?;
    }
    let done = blocking(work).await;
    if runs {
        desk.drive(Event::Ensure).await?;
    }
    done
}

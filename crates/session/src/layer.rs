//! What a copy-on-write session changed: looked at, applied to its workspace, discarded.

use crate::answer::{CALL_LIMIT, within};
use crate::desk::Desk;
use crate::diff::{Contents, FileDiff, MAX_DIFFED_FILE_BYTES};
use crate::history::{AtWork, at_work, go_on, hold};
use crate::outside::Outside;
use crate::session::Session;
use crate::store::{NewEvent, Row};
use crate::{Event, events};
use cofferdam_core::files::EntryKind;
use cofferdam_core::{
    ApplyOrder, ApplyReport, Change, DiscardOrder, DurableBackend, Error, ErrorKind, FileState,
    GuestPath, KeptLayer, Result, Side,
};
use std::time::Duration;

/// How long a backend may take for all of a layer.
const LAYER_LIMIT: Duration = Duration::from_secs(3600);

/// What was dropped, or would be, and what ended for it.
#[derive(Debug, Clone, Default)]
pub struct Discarded {
    /// The changes.
    pub changes: Vec<Change>,
    /// Whether all processes of the session were ended.
    pub processes_ended: bool,
    /// How many commands ran in it.
    pub commands: u64,
    /// How many processes went on in it that commands had left.
    pub left: u64,
}

/// A session whose layer is looked at: nothing in it moves.
struct Held {
    desk: Desk,
    layer: KeptLayer,
}

impl Session {
    /// What it changed at these paths and below them, or everywhere where there is none, in the order
    /// of paths. A session that runs stands still meanwhile; one that sleeps, or is lost, stays so.
    ///
    /// A session that is not copy-on-write is a conflict.
    pub async fn changes(&self, scope: &[GuestPath]) -> Result<Vec<Change>> {
        self.held(async |held| {
            let changes = held.backend().changes(&held.layer, scope);
            within(LAYER_LIMIT, "compare a layer", changes).await
        })
        .await
    }

    /// The same line by line, all of one moment: `each` is called in the order of paths.
    pub async fn diff(
        &self,
        scope: &[GuestPath],
        mut each: impl FnMut(FileDiff) -> Result<()>,
    ) -> Result<()> {
        self.held(async |held| {
            let changes = held.backend().changes(&held.layer, scope);
            for change in within(LAYER_LIMIT, "compare a layer", changes).await? {
                let before = held.content(Side::Before, &change, change.before.as_ref()).await?;
                let after = held.content(Side::After, &change, change.after.as_ref()).await?;
                let contents = Contents { before: before.as_deref(), after: after.as_deref() };
                each(FileDiff::new(change, contents))?;
            }
            Ok(())
        })
        .await
    }

    /// The content of a file in the workspace, as its layer lies on it.
    pub async fn workspace_file(&self, path: &GuestPath) -> Result<Vec<u8>> {
        self.held(async |held| {
            let read =
                held.backend().layer_file(&held.layer, Side::Before, path, MAX_DIFFED_FILE_BYTES);
            within(CALL_LIMIT, "read a file", read).await
        })
        .await
    }

    /// Makes the workspace what the session has, at the paths of the order: all that can land, or, with
    /// an error, nothing. The session stands still meanwhile and goes on as it was; what landed is no
    /// change any more. Where what it took to land them cannot be cleared away, the error says that they did.
    pub async fn apply(&self, order: &ApplyOrder) -> Result<ApplyReport> {
        self.held(async |held| {
            let _underway = (!order.dry_run).then(|| self.begin_outside(Outside::Apply));
            let applied = held.backend().apply(&held.layer, order);
            let report = within(LAYER_LIMIT, "apply changes", applied).await?;
            if !order.dry_run && !report.applied.is_empty() {
                let incarnation = held.desk.row.incarnation;
                let (kind, data) = events::applied(incarnation, &report);
                let done = format!("what was to land has landed ({})", report.applied.len());
                held.desk.tell(NewEvent::now(kind, data), &done).await?;
                if let Some(why) = &report.not_cleared {
                    let what = format!("{done}, but what that took is not cleared away: {why}");
                    return Err(Error::new(ErrorKind::Io, what)
                        .hint("Whoever uses Cofferdam next tries again; `cofferdam gc` says what it could not do."));
                }
            }
            Ok(report)
        })
        .await
    }

    /// Drops changes of the session, and says which, and what ended for that. Its sandbox is ended first, with all that runs in
    /// it, because nobody can change a layer below those who see it; the next command makes another
    /// one. Where there is nothing to drop it is not ended.
    pub async fn discard(&self, order: &DiscardOrder) -> Result<Discarded> {
        let found = self.changes(&order.paths).await?;
        if order.dry_run || found.is_empty() {
            return Ok(Discarded { changes: found, ..Discarded::default() });
        }
        let room = self.sessions.0.store.while_room_is_made();
        let mut desk = self.sessions.0.desk(&self.id).await?;
        let layer = self.layer(&desk)?;
        let AtWork { commands, left } = at_work(&desk).await?;
        if let Some((backend, record)) = self.sessions.0.what_may_fill(&self.id).await? {
            // It is ended below, where an error is told.
            within(CALL_LIMIT, "pause a sandbox", backend.pause(&record)).await.ok();
        }
        room.let_go().await?;
        let _underway = self.begin_outside(Outside::Discard);
        desk.drive(Event::Stop).await?;
        let discarded = desk.backend().discard(&layer, order);
        let discarded = within(LAYER_LIMIT, "discard changes", discarded).await?;
        let (kind, data) = events::discarded(desk.row.incarnation, &discarded);
        let done = format!("what was to be dropped is dropped ({})", discarded.len());
        desk.tell(NewEvent::now(kind, data), &done).await?;
        Ok(Discarded { changes: discarded, processes_ended: true, commands, left })
    }

    fn layer(&self, desk: &Desk) -> Result<KeptLayer> {
        self.layer_of(&desk.row)?.ok_or_else(|| {
            let what = format!("session {} is not copy-on-write", self.id);
            Error::new(ErrorKind::Conflict, what).hint(
                "What it did is in the workspace already. Make a session with --cow to look first.",
            )
        })
    }

    /// Its layer, where it has one.
    pub(crate) fn layer_of(&self, row: &Row) -> Result<Option<KeptLayer>> {
        if !row.spec.is_copy_on_write() {
            return Ok(None);
        }
        let sandbox = self.id.sandbox(row.incarnation)?;
        let kept = self.sessions.0.places.kept().join(self.id.as_str());
        Ok(Some(KeptLayer { sandbox, kept }))
    }

    /// Does something while the session stands still and nobody else is at work on it.
    async fn held<T>(&self, work: impl AsyncFnOnce(&mut Held) -> Result<T>) -> Result<T> {
        let desk = self.sessions.0.desk(&self.id).await?;
        let layer = self.layer(&desk)?;
        let was_running = hold(&desk).await?;
        let mut held = Held { desk, layer };
        let done = work(&mut held).await;
        // A session that cannot be let go on now is resumed by its next command.
        let resumed = go_on(&held.desk, was_running).await;
        let done = done?;
        resumed?;
        Ok(done)
    }
}

impl Held {
    fn backend(&self) -> &dyn DurableBackend {
        self.desk.backend().as_ref()
    }

    /// The content of a file, if it is one and can be shown.
    async fn content(
        &self,
        side: Side,
        change: &Change,
        state: Option<&FileState>,
    ) -> Result<Option<Vec<u8>>> {
        let Some(state) = state.filter(|state| state.kind == EntryKind::File) else {
            return Ok(None);
        };
        if state.size > MAX_DIFFED_FILE_BYTES {
            return Ok(None);
        }
        let read =
            self.backend().layer_file(&self.layer, side, &change.path, MAX_DIFFED_FILE_BYTES);
        match within(CALL_LIMIT, "read a file", read).await {
            Ok(content) => Ok(Some(content)),
            Err(error) if error.kind == ErrorKind::TooLarge => Ok(None),
            Err(error) => Err(error),
        }
    }
}

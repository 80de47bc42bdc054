//! What a session behind a server changed: shown, landed, dropped.

use super::super::{Counted, wish};
use super::{Session, lines};
use cofferdam_client::{Applied, Sandbox, View};
use cofferdam_core::{ApplyReport, Change, Result};
use cofferdam_session::objects::{
    ApplyWish, ChangeList, ChosenWish, DiscardedChanges, LayerChange,
};
use cofferdam_session::{Discarded, PointRange, PointSpan};
use std::ffi::OsString;

impl Session {
    pub(in crate::door) async fn changes(
        &self,
        range: Option<&PointRange>,
        paths: &[OsString],
    ) -> Result<Vec<Change>> {
        let told = self.list(range, paths, View::Names).await?;
        told.changes.iter().map(LayerChange::change).collect()
    }

    pub(in crate::door) async fn counted(
        &self,
        range: Option<&PointRange>,
        paths: &[OsString],
    ) -> Result<(Option<PointSpan>, Vec<Counted>)> {
        let told = self.list(range, paths, View::Stat).await?;
        let span = told.from.zip(told.to).map(|(from, to)| PointSpan { from, to });
        let counted = |told: LayerChange| Ok(Counted { change: told.change()?, told });
        Ok((span, told.changes.into_iter().map(counted).collect::<Result<_>>()?))
    }

    /// The changes at these paths, in the order of paths. A server is asked for one path at a time.
    async fn list(
        &self,
        range: Option<&PointRange>,
        paths: &[OsString],
        view: View,
    ) -> Result<ChangeList> {
        let range = range.map(wish::range);
        let outermost = wish::outermost(paths);
        let [first, rest @ ..] = outermost.as_slice() else {
            return self.sandbox.changes(range.as_deref(), None, view).await;
        };
        let mut all = self.sandbox.changes(range.as_deref(), Some(first), view).await?;
        for path in rest {
            let more = self.sandbox.changes(range.as_deref(), Some(path), view).await?;
            all.changes.extend(more.changes);
        }
        Ok(all)
    }

    pub(in crate::door) async fn diff_text(
        &self,
        range: Option<&PointRange>,
        paths: &[OsString],
        each: &mut (dyn FnMut(&[u8]) -> Result<()> + Send),
    ) -> Result<()> {
        let range = range.map(wish::range);
        let mut lines = lines::Lines::new(each);
        let outermost = wish::outermost(paths);
        if outermost.is_empty() {
            self.sandbox.diff_text(range.as_deref(), None, &mut lines).await?;
        }
        for path in outermost {
            self.sandbox.diff_text(range.as_deref(), Some(path), &mut lines).await?;
        }
        lines.end()
    }

    pub(in crate::door) async fn apply(
        &self,
        paths: &[OsString],
        (dry_run, overwrite): (bool, bool),
    ) -> Result<ApplyReport> {
        self.land(&ApplyWish { overwrite, ..Sandbox::apply_wish(paths, dry_run) }).await
    }

    pub(in crate::door) async fn apply_chosen(
        &self,
        hunks: Vec<ChosenWish>,
        dry_run: bool,
    ) -> Result<ApplyReport> {
        self.land(&Sandbox::apply_chosen_wish(hunks, dry_run)).await
    }

    async fn land(&self, wish: &ApplyWish) -> Result<ApplyReport> {
        let Applied { changes, .. } = self.sandbox.apply(wish).await?;
        let changed = |all: &[LayerChange]| all.iter().map(LayerChange::change).collect();
        let (applied, kept): (Result<_>, Result<_>) =
            (changed(&changes.applied), changed(&changes.kept));
        Ok(ApplyReport { applied: applied?, kept: kept?, not_cleared: None })
    }

    pub(in crate::door) async fn discard(
        &self,
        paths: &[OsString],
        dry_run: bool,
    ) -> Result<Discarded> {
        let done = self.sandbox.discard(&Sandbox::discard_wish(paths, dry_run)).await?;
        let changes = done.discarded.iter().map(LayerChange::change).collect::<Result<_>>()?;
        let DiscardedChanges { processes_ended, commands, left, .. } = done;
        Ok(Discarded { changes, processes_ended, commands, left })
    }
}

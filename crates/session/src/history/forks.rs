//! Other sessions that begin at a point of this one's history.

use super::point::{PointKind, PointOrigin, PointReport};
use super::store::not_kept;
use super::taking::{Taking, execs, history_of, runs, take};
use super::walk::Stillness;
use crate::desk::Desk;
use crate::now_ms;
use crate::store::blocking;
use cofferdam_core::Result;

/// Makes a point of what a session has now, unless it is one already. Everything stands still meanwhile.
pub(crate) async fn present(desk: &mut Desk) -> Result<()> {
    desk.settle().await?;
    desk.refuse_removed()?;
    let listed = execs(desk).await?;
    let mut taking = Taking::asked(&listed);
    let running = listed.execs.iter().filter(|exec| runs(exec));
    taking.said.shared_with = running.map(|exec| exec.id.to_string()).collect();
    take(desk, &taking, Stillness::Still).await.map(drop)
}

/// Makes the layer of a new session what this one's is, as it is [`present`], or was at a point. Says at which.
pub(crate) async fn fork(desk: &Desk, other: &Desk, point: Option<u32>) -> Result<u32> {
    let (from, to) = (history_of(desk), history_of(other));
    let session = desk.row.id.to_string();
    blocking(move || {
        let state = from.state()?.unwrap_or_default();
        let number = point.or(state.at).unwrap_or_default();
        let tree = match (point, &state.tree) {
            (Some(number), _) => from.tree(number)?,
            // What it has now, though the last point that was wanted may not have been kept.
            (None, Some(file)) => from.read_tree(file)?,
            (None, None) => return Err(not_kept(number, None)),
        };
        let said = PointReport::new(PointKind::Start, now_ms());
        let said = PointReport { from: Some(PointOrigin { session, point: number }), ..said };
        to.work()?.fork(&from, &tree, said)?;
        Ok(number)
    })
    .await
}

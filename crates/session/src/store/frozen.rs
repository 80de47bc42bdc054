//! Why a session is frozen: a fact of its row, whatever became of the sandbox in which it happened.
//!
//! It is no part of what [`Store::save`] writes: a journal is folded without the session's lock, and a row
//! that was read before must not take the alarm away.

use super::{Store, from_json, to_json};
use crate::SessionId;
use cofferdam_core::{Result, SecretAlarm};
use rusqlite::{Connection, OptionalExtension, params};
use serde::{Deserialize, Serialize};

/// An alarm after which nobody resumed the session. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Frozen {
    /// The sandbox in which it was raised, by the number of the incarnation.
    pub(crate) incarnation: u32,
    /// What it is about.
    pub(crate) alarm: SecretAlarm,
}

impl Store {
    /// What a session is frozen for, if it is.
    pub(crate) async fn frozen(&self, id: &SessionId) -> Result<Option<Frozen>> {
        let id = id.clone();
        self.read(move |db| {
            let mut query = db.prepare_cached("SELECT alarm FROM sessions WHERE id=?1")?;
            let found = query.query_row([id.as_str()], |row| row.get::<_, Option<String>>(0));
            found.optional()?.flatten().map(|json| from_json(0, &json)).transpose()
        })
        .await
    }

    /// Somebody let the session go on, knowing why it was frozen: an alarm of a sandbox before this one is
    /// over. One that this one raised meanwhile stays.
    pub(crate) async fn thaw_before(&self, id: &SessionId, incarnation: u32) -> Result<()> {
        let id = id.clone();
        self.write(move |db| {
            db.execute(
                "UPDATE sessions SET alarm=NULL \
                 WHERE id=?1 AND json_extract(alarm, '$.incarnation') < ?2",
                params![id.as_str(), incarnation],
            )
            .map(|_| ())
        })
        .await
    }
}

/// Notes an alarm that a journal tells of.
pub(super) fn freeze(db: &Connection, id: &SessionId, frozen: &Frozen) -> rusqlite::Result<()> {
    let alarm = to_json(frozen)?;
    db.execute("UPDATE sessions SET alarm=?2 WHERE id=?1", params![id.as_str(), alarm]).map(|_| ())
}

/// Notes that a sandbox went on: where it was frozen, somebody who knew why let it.
pub(super) fn resumed(db: &Connection, id: &SessionId, incarnation: u32) -> rusqlite::Result<()> {
    db.execute(
        "UPDATE sessions SET alarm=NULL \
         WHERE id=?1 AND json_extract(alarm, '$.incarnation') = ?2",
        params![id.as_str(), incarnation],
    )
    .map(|_| ())
}

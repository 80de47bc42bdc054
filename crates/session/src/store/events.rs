//! What happened, in one order over all sessions.

use super::{Store, from_json, id_at, to_json};
use crate::SessionId;
use cofferdam_core::Result;
use rusqlite::{Connection, params};
use serde_json::{Map, Value};

/// How many events are kept; the oldest go first.
pub(crate) const EVENTS_KEPT: i64 = 100_000;
/// How often the oldest are removed: at each event whose number is a multiple of this.
const PRUNED_EVERY: i64 = 1000;

/// Something that happened and is not written down yet.
#[derive(Debug, Clone)]
pub(crate) struct NewEvent {
    pub(crate) at_ms: u64,
    pub(crate) kind: &'static str,
    pub(crate) data: Value,
}

/// Something that happened.
#[derive(Debug, Clone)]
pub(crate) struct StoredEvent {
    pub(crate) seq: u64,
    pub(crate) session: SessionId,
    pub(crate) at_ms: u64,
    pub(crate) kind: String,
    pub(crate) data: Map<String, Value>,
}

/// Which events somebody wants.
#[derive(Debug, Clone, Default)]
pub(crate) struct EventFilter {
    pub(crate) session: Option<SessionId>,
    /// Those with a greater number.
    pub(crate) after: u64,
    pub(crate) limit: u32,
}

impl NewEvent {
    /// Something that happens now.
    pub(crate) fn now(kind: &'static str, data: Value) -> Self {
        Self { at_ms: crate::now_ms(), kind, data }
    }

    pub(super) fn write(&self, db: &Connection, session: &SessionId) -> rusqlite::Result<()> {
        db.prepare_cached(
            "INSERT INTO events (session, at_ms, kind, data, owner) VALUES (?1,?2,?3,?4, \
             COALESCE((SELECT owner FROM sessions WHERE id=?1), ''))",
        )?
        .execute(params![
            session.as_str(),
            self.at_ms,
            self.kind,
            to_json(&self.data)?
        ])?;
        let seq = db.last_insert_rowid();
        if seq % PRUNED_EVERY == 0 {
            // Per owner: nobody can drive the events of another out.
            db.execute(
                "DELETE FROM events WHERE owner=(SELECT owner FROM events WHERE seq=?1) AND seq <= \
                 (SELECT seq FROM events WHERE owner=(SELECT owner FROM events WHERE seq=?1) \
                 ORDER BY seq DESC LIMIT 1 OFFSET ?2)",
                [seq, EVENTS_KEPT],
            )?;
        }
        Ok(())
    }

    pub(super) fn write_all(
        db: &Connection,
        session: &SessionId,
        events: &[Self],
    ) -> rusqlite::Result<()> {
        events.iter().try_for_each(|event| event.write(db, session))
    }
}

impl Store {
    /// How many changes of this session have landed since then.
    pub(crate) async fn landed(&self, session: &SessionId, since_ms: u64) -> Result<u64> {
        let session = session.clone();
        self.read(move |db| {
            db.query_row(
                "SELECT coalesce(sum(json_extract(data, '$.applied')), 0) FROM events \
                 WHERE session = ?1 AND kind = 'applied' AND at_ms >= ?2",
                params![session.as_str(), since_ms],
                |row| row.get(0),
            )
        })
        .await
    }

    pub(crate) async fn newest_event(&self) -> Result<u64> {
        self.read(|db| {
            let mut query = db.prepare_cached("SELECT coalesce(max(seq), 0) FROM events")?;
            query.query_row([], |row| row.get(0))
        })
        .await
    }

    pub(crate) async fn events(&self, filter: EventFilter) -> Result<Vec<StoredEvent>> {
        let owner = self.owner();
        self.read(move |db| {
            let session = filter.session.as_ref().map(SessionId::as_str);
            let mut query = db.prepare_cached(
                "SELECT seq, session, at_ms, kind, data FROM events \
                 WHERE seq > ?1 AND (?2 IS NULL OR session = ?2) \
                 AND (?4 IS NULL OR owner = ?4) ORDER BY seq LIMIT ?3",
            )?;
            let found =
                query.query_map(params![filter.after, session, filter.limit, owner], |row| {
                    Ok(StoredEvent {
                        seq: row.get(0)?,
                        session: id_at(row, 1)?,
                        at_ms: row.get(2)?,
                        kind: row.get(3)?,
                        data: from_json(4, &row.get::<_, String>(4)?)?,
                    })
                })?;
            found.collect()
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_one_owner_drive_out_none_of_another() {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch(
            "CREATE TABLE sessions (id TEXT, owner TEXT); \
             INSERT INTO sessions VALUES ('00000000000000000000','bob'); \
             CREATE TABLE events (seq INTEGER PRIMARY KEY AUTOINCREMENT, session TEXT, at_ms INTEGER, \
             kind TEXT, data TEXT, owner TEXT); \
             CREATE INDEX events_for ON events (owner, seq); \
             INSERT INTO events (session, at_ms, kind, data, owner) VALUES ('x',1,'k','{}','alice'); \
             WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i+1 FROM n WHERE i < 100999) \
             INSERT INTO events (session, at_ms, kind, data, owner) SELECT 'y',1,'k','{}','bob' FROM n;",
        )
        .unwrap();
        let id = SessionId::new("00000000000000000000").unwrap();
        NewEvent::now("k", serde_json::json!({})).write(&db, &id).unwrap();
        let count = |owner: &str| -> i64 {
            db.query_row("SELECT count(*) FROM events WHERE owner=?1", [owner], |row| row.get(0))
                .unwrap()
        };
        assert_eq!((count("alice"), count("bob")), (1, EVENTS_KEPT));
    }
}

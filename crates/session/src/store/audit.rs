//! What callers of a server did, an entry each.

use super::{Store, from_json, to_json};
use crate::audit::AuditEntry;
use cofferdam_core::Result;
use rusqlite::params;

/// How many entries of an owner are kept; the oldest go first.
pub(crate) const AUDIT_KEPT: u32 = 10_000;
/// How often the oldest are removed: at each entry whose number is a multiple of this.
const PRUNED_EVERY: i64 = 100;

/// An entry with its number.
#[derive(Debug, Clone)]
pub(crate) struct StoredAudit {
    pub(crate) seq: u64,
    pub(crate) at_ms: u64,
    pub(crate) entry: AuditEntry,
}

impl Store {
    /// Writes an entry down.
    pub(crate) async fn audit(&self, owner: &str, at_ms: u64, entry: AuditEntry) -> Result<()> {
        let owner = owner.to_owned();
        self.write(move |db| {
            db.prepare_cached("INSERT INTO audit (owner, at_ms, entry) VALUES (?1,?2,?3)")?
                .execute(params![owner, at_ms, to_json(&entry)?])?;
            if db.last_insert_rowid() % PRUNED_EVERY == 0 {
                // Per owner: nobody can drive the entries of another out.
                db.execute(
                    "DELETE FROM audit WHERE owner=?1 AND seq <= (SELECT seq FROM audit \
                     WHERE owner=?1 ORDER BY seq DESC LIMIT 1 OFFSET ?2)",
                    params![owner, AUDIT_KEPT],
                )?;
            }
            Ok(())
        })
        .await
    }

    /// The entries of those who are seen, after the one of this number, oldest first.
    pub(crate) async fn audited(&self, after: u64, limit: u32) -> Result<Vec<StoredAudit>> {
        let owner = self.owner();
        self.read(move |db| {
            let mut query = db.prepare_cached(
                "SELECT seq, at_ms, entry FROM audit \
                 WHERE seq > ?1 AND (?2 IS NULL OR owner = ?2) ORDER BY seq LIMIT ?3",
            )?;
            let found = query.query_map(params![after, owner, limit], |row| {
                Ok(StoredAudit {
                    seq: row.get(0)?,
                    at_ms: row.get(1)?,
                    entry: from_json(2, &row.get::<_, String>(2)?)?,
                })
            })?;
            found.collect()
        })
        .await
    }
}

//! Keys as rows. What a secret is known by is its hash; the secret itself is nowhere.

use super::{Store, from_json, to_json};
use crate::keys::KeyRights;
use cofferdam_core::Result;
use rusqlite::{OptionalExtension, params};

/// A key as it is written down.
#[derive(Debug, Clone)]
pub(crate) struct StoredKey {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) hash: Vec<u8>,
    pub(crate) rights: KeyRights,
    pub(crate) created_ms: u64,
    pub(crate) revoked_ms: Option<u64>,
}

const COLUMNS: &str = "id, name, hash, rights, created_ms, revoked_ms";

impl Store {
    /// Writes a new key; `false` where one of its name is in use.
    pub(crate) async fn insert_key(&self, key: StoredKey) -> Result<bool> {
        self.write(move |db| {
            let mut taken =
                db.prepare_cached("SELECT 1 FROM keys WHERE name=?1 AND revoked_ms IS NULL")?;
            if taken.exists([&key.name])? {
                return Ok(false);
            }
            db.execute(
                "INSERT INTO keys (id, name, hash, rights, created_ms) VALUES (?1,?2,?3,?4,?5)",
                params![key.id, key.name, key.hash, to_json(&key.rights)?, key.created_ms],
            )?;
            Ok(true)
        })
        .await
    }

    /// The key of this id.
    pub(crate) async fn key(&self, id: &str) -> Result<Option<StoredKey>> {
        let id = id.to_owned();
        self.read(move |db| {
            let query = format!("SELECT {COLUMNS} FROM keys WHERE id=?1");
            db.prepare_cached(&query)?.query_row([id], read).optional()
        })
        .await
    }

    /// All keys, those that were revoked included, oldest first.
    pub(crate) async fn keys(&self) -> Result<Vec<StoredKey>> {
        self.read(move |db| {
            let query = format!("SELECT {COLUMNS} FROM keys ORDER BY created_ms, id");
            db.prepare_cached(&query)?.query_map([], read)?.collect()
        })
        .await
    }

    /// Whether there ever was a key.
    pub(crate) async fn has_keys(&self) -> Result<bool> {
        self.read(|db| db.prepare_cached("SELECT 1 FROM keys LIMIT 1")?.exists([])).await
    }

    /// Writes down that a key is no good any more. What was revoked stays as it was.
    pub(crate) async fn revoke_key(&self, id: &str, now_ms: u64) -> Result<()> {
        let id = id.to_owned();
        self.write(move |db| {
            db.execute(
                "UPDATE keys SET revoked_ms=?2 WHERE id=?1 AND revoked_ms IS NULL",
                params![id, now_ms],
            )
            .map(|_| ())
        })
        .await
    }
}

fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<StoredKey> {
    Ok(StoredKey {
        id: row.get(0)?,
        name: row.get(1)?,
        hash: row.get(2)?,
        rights: from_json(3, &row.get::<_, String>(3)?)?,
        created_ms: row.get(4)?,
        revoked_ms: row.get(5)?,
    })
}

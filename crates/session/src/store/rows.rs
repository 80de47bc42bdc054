//! Sessions as rows.

use super::{Inserted, NewEvent, Quota, Store, Written, bad, from_json, id_at, to_json};
use crate::init::Init;
use crate::permissions::Requests;
use crate::provision::Provided;
use crate::{Phase, SessionId};
use cofferdam_core::{Deadlines, DestroyReason, LayerNote, Result, SandboxRecord, StoredSpec};
use rusqlite::{Connection, OptionalExtension, params};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A session as it is written down.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) id: SessionId,
    pub(crate) name: Option<String>,
    /// Whose it is; empty is the local user.
    pub(crate) owner: String,
    pub(crate) backend: String,
    pub(crate) phase: Phase,
    /// Which of its sandboxes is the present one, from 1.
    pub(crate) incarnation: u32,
    /// How often it was written.
    pub(crate) revision: i64,
    /// What could not be removed, if something could not.
    pub(crate) cleanup_failed: Option<String>,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) spec: StoredSpec,
    /// The present sandbox, from when it is known until it ended.
    pub(crate) record: Option<SandboxRecord>,
    pub(crate) facts: Facts,
    pub(crate) created_ms: u64,
    pub(crate) updated_ms: u64,
}

/// What nothing is searched by.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Facts {
    pub(crate) scope: Scope,
    pub(crate) init: Init,
    pub(crate) times: Times,
    /// The keeper was not told of the times yet.
    pub(crate) deadlines_owed: bool,
    /// The keeper was not told of the rules of the way out yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) network_owed: bool,
    /// Why it is being ended.
    pub(crate) reason: Option<DestroyReason>,
    /// The incarnation before was lost, and the next one is a recovery.
    pub(crate) recovering: bool,
    /// How somebody called the work of a scoped run.
    pub(crate) label: Option<String>,
    /// What its workspace was to hold from the beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) manifest: Option<Provided>,
    /// What it is to begin with, as a fork, is not all there: nobody has it yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) unfilled: bool,
    /// Its commands are no points of its history.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) no_checkpoints: bool,
    /// What its layer was said to be last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) layer: Option<LayerNote>,
    /// What was asked for inside before there was a connection.
    #[serde(default, skip_serializing_if = "Requests::is_empty")]
    pub(crate) requests: Requests,
}

/// Whose a session is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Scope {
    /// It stays until somebody removes it or its lease is over.
    #[default]
    Kept,
    /// It belongs to one run, and ends with the process that asked for it.
    Run,
    /// It is as one that is kept, and ends with the process that made it.
    Owned,
}

impl Scope {
    /// Whether somebody holds the owner's lock as long as it is wanted.
    pub(crate) fn has_owner(self) -> bool {
        match self {
            Self::Kept => false,
            Self::Run | Self::Owned => true,
        }
    }
}

/// When it is paused or ended without anybody asking.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Times {
    pub(crate) idle_pause_ms: Option<u64>,
    /// As it was asked for.
    pub(crate) ttl_ms: Option<u64>,
    pub(crate) lease_until_ms: Option<u64>,
    pub(crate) run_until_ms: Option<u64>,
}

impl Times {
    pub(crate) fn deadlines(&self) -> Deadlines {
        Deadlines {
            idle_pause_ms: self.idle_pause_ms,
            lease_until_ms: self.lease_until_ms,
            run_until_ms: self.run_until_ms,
        }
    }
}

impl Row {
    /// Whether a sandbox that was found lost still has to be ended: its record stays until then.
    pub(crate) fn owes_a_burial(&self) -> bool {
        self.phase == Phase::Lost && self.record.is_some()
    }

    /// Whether a start of Cofferdam has to look after it.
    fn is_due(&self) -> bool {
        self.phase.is_passing()
            || self.owes_a_burial()
            || self.cleanup_failed.is_some()
            || self.facts.deadlines_owed
            || self.facts.network_owed
            || self.facts.scope.has_owner()
    }
}

const COLUMNS: &str = "id, name, backend, phase, incarnation, revision, cleanup_failed, labels, \
     spec, record, facts, created_ms, updated_ms, owner";

impl Store {
    /// Writes a new row, with the incarnation that it begins with.
    pub(crate) async fn insert(&self, row: &Row, events: Vec<NewEvent>) -> Result<Inserted> {
        let row = row.clone();
        let quota = self.view().map(|view| view.quota).unwrap_or_default();
        self.write(move |db| {
            if let Some(refused) = refusal(db, &row, quota)? {
                return Ok(refused);
            }
            db.execute(
                "INSERT INTO sessions (id, name, backend, phase, incarnation, revision, due, \
                 lease_until_ms, cleanup_failed, labels, spec, record, facts, created_ms, \
                 updated_ms, owner) VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16)",
                params![
                    row.id.as_str(),
                    row.name,
                    row.backend,
                    row.phase.name(),
                    row.incarnation,
                    row.revision,
                    row.is_due(),
                    row.facts.times.lease_until_ms,
                    row.cleanup_failed,
                    to_json(&row.labels)?,
                    to_json(&row.spec)?,
                    row.record.as_ref().map(to_json).transpose()?,
                    to_json(&row.facts)?,
                    row.created_ms,
                    row.updated_ms,
                    row.owner,
                ],
            )?;
            begin(db, &row)?;
            NewEvent::write_all(db, &row.id, &events)?;
            Ok(Inserted::Yes)
        })
        .await
    }

    /// Writes a row over the revision that it was read at.
    pub(crate) async fn save(&self, row: &mut Row, events: Vec<NewEvent>) -> Result<Written> {
        row.updated_ms = crate::now_ms();
        let wanted = row.clone();
        let written = self
            .write(move |db| {
                let row = &wanted;
                let mut update = db.prepare_cached(
                    "UPDATE sessions SET phase=?3, incarnation=?4, revision=?2+1, due=?5, \
                     lease_until_ms=?6, cleanup_failed=?7, labels=?8, spec=?9, record=?10, \
                     facts=?11, updated_ms=?12 WHERE id=?1 AND revision=?2",
                )?;
                let changed = update.execute(params![
                    row.id.as_str(),
                    row.revision,
                    row.phase.name(),
                    row.incarnation,
                    row.is_due(),
                    row.facts.times.lease_until_ms,
                    row.cleanup_failed,
                    to_json(&row.labels)?,
                    to_json(&row.spec)?,
                    row.record.as_ref().map(to_json).transpose()?,
                    to_json(&row.facts)?,
                    row.updated_ms,
                ])?;
                if changed == 0 {
                    return Ok(Written::Moved);
                }
                if row.phase == Phase::Creating {
                    begin(db, row)?;
                }
                NewEvent::write_all(db, &row.id, &events)?;
                Ok(Written::Yes)
            })
            .await?;
        if written == Written::Yes {
            row.revision += 1;
        }
        Ok(written)
    }

    /// Removes a row and all that hangs on it but its events.
    pub(crate) async fn remove(&self, row: &Row) -> Result<Written> {
        let (id, revision) = (row.id.clone(), row.revision);
        self.write(move |db| {
            let id = id.as_str();
            let gone = db.execute(
                "DELETE FROM sessions WHERE id=?1 AND revision=?2",
                params![id, revision],
            )?;
            if gone == 0 {
                return Ok(Written::Moved);
            }
            db.execute("DELETE FROM incarnations WHERE session=?1", [id])?;
            db.execute("DELETE FROM execs WHERE session=?1", [id])?;
            Ok(Written::Yes)
        })
        .await
    }

    pub(crate) async fn get(&self, id: &SessionId) -> Result<Option<Row>> {
        let (id, owner, inner) = (id.clone(), self.owner(), Arc::clone(&self.inner));
        self.read(move |db| {
            let mine = "id=?1 AND (?2 IS NULL OR owner=?2)";
            let asked = params![id.as_str(), owner];
            let mut query =
                db.prepare_cached(&format!("SELECT revision FROM sessions WHERE {mine}"))?;
            let revision = query.query_row(asked, |row| row.get(0)).optional()?;
            let Some(revision) = revision else { return Ok(None) };
            if let Some(row) = inner.read_before.get(&id, revision) {
                return Ok(Some(row));
            }
            let mut query =
                db.prepare_cached(&format!("SELECT {COLUMNS} FROM sessions WHERE {mine}"))?;
            let row = query.query_row(asked, read).optional()?;
            if let Some(row) = &row {
                inner.read_before.put(row);
            }
            Ok(row)
        })
        .await
    }

    /// The session of this name that is not being removed. Where all is seen, the local user's.
    pub(crate) async fn named(&self, name: &str) -> Result<Option<Row>> {
        let (name, owner) = (name.to_owned(), self.owner().unwrap_or_default());
        self.read(move |db| {
            let query = format!(
                "SELECT {COLUMNS} FROM sessions \
                 WHERE name=?1 AND owner=?2 AND phase <> 'deleting'"
            );
            db.prepare_cached(&query)?.query_row([name, owner], read).optional()
        })
        .await
    }

    /// All rows, oldest first.
    pub(crate) async fn all(&self) -> Result<Vec<Row>> {
        let owner = self.owner();
        self.read(move |db| {
            let query = format!(
                "SELECT {COLUMNS} FROM sessions WHERE ?1 IS NULL OR owner=?1 \
                 ORDER BY created_ms, id"
            );
            db.prepare_cached(&query)?.query_map([owner], read)?.collect()
        })
        .await
    }

    /// What a start has to look after.
    pub(crate) async fn due(&self, now_ms: u64) -> Result<Vec<Row>> {
        self.read(move |db| {
            let query =
                format!("SELECT {COLUMNS} FROM sessions WHERE due = 1 OR lease_until_ms <= ?1");
            db.prepare_cached(&query)?.query_map([now_ms], read)?.collect()
        })
        .await
    }
}

/// Why a new row cannot be written, if it cannot.
fn refusal(db: &Connection, row: &Row, quota: Quota) -> rusqlite::Result<Option<Inserted>> {
    if let Some(name) = &row.name {
        let mut taken = db.prepare_cached(
            "SELECT 1 FROM sessions WHERE name = ?1 AND owner = ?2 AND phase <> 'deleting'",
        )?;
        if taken.exists([name, &row.owner])? {
            return Ok(Some(Inserted::NameTaken));
        }
    }
    if let Some(most) = quota.max_sandboxes {
        let mut count = db.prepare_cached("SELECT COUNT(*) FROM sessions WHERE owner = ?1")?;
        if count.query_row([&row.owner], |row| row.get::<_, u32>(0))? >= most {
            return Ok(Some(Inserted::TooMany(most)));
        }
    }
    if let Some(most) = quota.max_memory_bytes {
        let mut sum = row.spec.memory_bytes();
        let mut specs = db.prepare_cached("SELECT spec FROM sessions WHERE owner = ?1")?;
        let specs = specs.query_map([&row.owner], |row| row.get::<_, String>(0))?;
        for spec in specs {
            sum = sum.saturating_add(from_json::<StoredSpec>(0, &spec?)?.memory_bytes());
        }
        if sum > most {
            return Ok(Some(Inserted::TooMuchMemory(most)));
        }
    }
    Ok(None)
}

/// Writes down that an incarnation may come to be.
fn begin(db: &Connection, row: &Row) -> rusqlite::Result<()> {
    db.prepare_cached("INSERT OR IGNORE INTO incarnations (session, incarnation) VALUES (?1, ?2)")?
        .execute(params![row.id.as_str(), row.incarnation])
        .map(|_| ())
}

fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Row> {
    let text = |column: usize| row.get::<_, String>(column);
    let phase = text(3)?;
    Ok(Row {
        id: id_at(row, 0)?,
        name: row.get(1)?,
        backend: row.get(2)?,
        phase: Phase::from_name(&phase)
            .ok_or_else(|| bad(3, format!("there is no phase {phase:?}")))?,
        incarnation: row.get(4)?,
        revision: row.get(5)?,
        cleanup_failed: row.get(6)?,
        labels: from_json(7, &text(7)?)?,
        spec: from_json(8, &text(8)?)?,
        record: row.get::<_, Option<String>>(9)?.map(|json| from_json(9, &json)).transpose()?,
        facts: from_json(10, &text(10)?)?,
        created_ms: row.get(11)?,
        updated_ms: row.get(12)?,
        owner: row.get(13)?,
    })
}

//! Journals, folded into the database.

use super::{Frozen, NewEvent, Store, from_json, frozen, to_json};
use crate::SessionId;
use crate::events;
use cofferdam_core::{
    DestroyReason, Ending, ExecEnded, ExecStatus, Happened, JournalEntry, ProcessId, Result,
    SandboxRecord, UsageReport,
};
use rusqlite::{Connection, OptionalExtension, params};

/// What became known of one incarnation.
#[derive(Debug, Clone)]
pub(crate) struct Fold {
    pub(crate) session: SessionId,
    pub(crate) incarnation: u32,
    pub(crate) label: Option<String>,
    pub(crate) entries: Vec<JournalEntry>,
    /// It ended: commands without an ending are lost, and no more will come.
    pub(crate) ended: Option<DestroyReason>,
}

/// A command of some incarnation.
#[derive(Debug, Clone)]
pub(crate) struct KnownExec {
    pub(crate) incarnation: u32,
    pub(crate) status: ExecStatus,
}

struct Incarnation {
    folded_seq: u64,
    provisioned: bool,
    ended: bool,
}

impl Store {
    /// Up to which entry the journal of an incarnation is folded; `None` where there is none.
    pub(crate) async fn folded(&self, id: &SessionId, incarnation: u32) -> Result<Option<u64>> {
        let id = id.clone();
        self.read(move |db| Ok(find(db, &id, incarnation)?.map(|found| found.folded_seq))).await
    }

    /// Writes down what became known, each entry once.
    pub(crate) async fn fold(&self, fold: Fold) -> Result<()> {
        self.write(move |db| {
            let Some(mut state) = find(db, &fold.session, fold.incarnation)? else {
                return Ok(());
            };
            let folded = state.folded_seq;
            for entry in fold.entries.iter().filter(|entry| entry.seq > folded) {
                fold.apply(db, &mut state, entry)?;
            }
            state.folded_seq =
                fold.entries.last().map_or(0, |entry| entry.seq).max(state.folded_seq);
            if let Some(reason) = fold.ended {
                fold.close(db)?;
                fold.destroyed(db, &mut state, (crate::now_ms(), reason))?;
            }
            db.execute(
                "UPDATE incarnations SET folded_seq=?3, provisioned=?4, ended=?5 \
                 WHERE session=?1 AND incarnation=?2",
                params![
                    fold.session.as_str(),
                    fold.incarnation,
                    state.folded_seq,
                    state.provisioned,
                    state.ended
                ],
            )
            .map(|_| ())
        })
        .await
    }

    /// Drops an incarnation that never came to be: what appears under its id later is nobody's.
    pub(crate) async fn never_was(&self, id: &SessionId, incarnation: u32) -> Result<()> {
        let id = id.clone();
        self.write(move |db| {
            db.execute(
                "DELETE FROM incarnations WHERE session=?1 AND incarnation=?2 AND provisioned=0",
                params![id.as_str(), incarnation],
            )
            .map(|_| ())
        })
        .await
    }

    /// The sandbox of an incarnation, if it ever came to be.
    pub(crate) async fn record(
        &self,
        id: &SessionId,
        incarnation: u32,
    ) -> Result<Option<SandboxRecord>> {
        let id = id.clone();
        self.read(move |db| {
            let mut query = db.prepare_cached(
                "SELECT record FROM incarnations WHERE session=?1 AND incarnation=?2",
            )?;
            let found = query
                .query_row(params![id.as_str(), incarnation], |row| row.get::<_, Option<String>>(0))
                .optional()?
                .flatten();
            found.map(|json| from_json(0, &json)).transpose()
        })
        .await
    }

    /// The incarnations that may have left something, oldest first.
    pub(crate) async fn incarnations(&self, id: Option<&SessionId>) -> Result<Vec<(String, u32)>> {
        let id = id.map(|id| id.as_str().to_owned());
        self.read(move |db| {
            let mut query = db.prepare_cached(
                "SELECT session, incarnation FROM incarnations \
                 WHERE ?1 IS NULL OR session = ?1 ORDER BY session, incarnation",
            )?;
            query.query_map([id], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
        })
        .await
    }

    /// The commands of a session that are known from journals, oldest first.
    pub(crate) async fn execs(&self, id: &SessionId) -> Result<Vec<KnownExec>> {
        let id = id.clone();
        self.read(move |db| {
            let mut query = db.prepare_cached(
                "SELECT incarnation, status FROM execs WHERE session=?1 \
                 ORDER BY incarnation, started_ms, exec",
            )?;
            query.query_map([id.as_str()], known)?.collect()
        })
        .await
    }

    /// The latest command of this id.
    pub(crate) async fn exec(&self, id: &SessionId, exec: &ProcessId) -> Result<Option<KnownExec>> {
        let (id, exec) = (id.clone(), exec.clone());
        self.read(move |db| latest(db, &id, &exec)).await
    }
}

/// Of the incarnations of a session with commands the last one before another.
const INCARNATION_BEFORE: &str =
    "SELECT MAX(incarnation) FROM execs WHERE session=?1 AND incarnation<?2";
/// A command of an incarnation.
const EXEC_OF: &str =
    "SELECT incarnation, status FROM execs WHERE session=?1 AND incarnation=?2 AND exec=?3";

/// Asks one incarnation after the other: what that costs does not grow with how many commands there were.
fn latest(
    db: &Connection,
    id: &SessionId,
    exec: &ProcessId,
) -> rusqlite::Result<Option<KnownExec>> {
    let mut before = i64::MAX;
    let mut incarnations = db.prepare_cached(INCARNATION_BEFORE)?;
    let mut execs = db.prepare_cached(EXEC_OF)?;
    while let Some(incarnation) =
        incarnations.query_row(params![id.as_str(), before], |row| row.get(0))?
    {
        let found = execs.query_row(params![id.as_str(), incarnation, exec.as_str()], known);
        if let Some(found) = found.optional()? {
            return Ok(Some(found));
        }
        before = incarnation;
    }
    Ok(None)
}

impl Fold {
    fn apply(
        &self,
        db: &Connection,
        state: &mut Incarnation,
        entry: &JournalEntry,
    ) -> rusqlite::Result<()> {
        let say =
            |(kind, data)| NewEvent { at_ms: entry.at_ms, kind, data }.write(db, &self.session);
        match &entry.happened {
            Happened::Provisioned(record) => {
                state.provisioned = true;
                db.execute(
                    "UPDATE incarnations SET record=?3 WHERE session=?1 AND incarnation=?2",
                    params![self.session.as_str(), self.incarnation, to_json(record)?],
                )?;
                say(events::provisioned(self.incarnation, record, self.label.as_deref()))
            }
            Happened::NotProvisioned(error) => {
                say(events::not_provisioned(self.incarnation, error))
            }
            Happened::ExecStarted(status) => {
                self.keep(db, status)?;
                say(events::exec_started(self.incarnation, status))
            }
            Happened::ExecEnded(status) => {
                self.keep(db, status)?;
                say(events::exec_ended(self.incarnation, status))
            }
            Happened::ExecEmptied(status) => {
                self.keep(db, status)?;
                say(events::exec_emptied(self.incarnation, status))
            }
            Happened::Paused { idle, how } => say(events::paused(self.incarnation, *idle, *how)),
            Happened::SecretAlarm(alarm) => {
                let incarnation = self.incarnation;
                let known = Frozen { incarnation, alarm: alarm.clone() };
                frozen::freeze(db, &self.session, &known)?;
                say(events::secret_alarm(incarnation, alarm))
            }
            Happened::Resumed => {
                frozen::resumed(db, &self.session, self.incarnation)?;
                say(events::resumed(self.incarnation))
            }
            Happened::Deadlines(_) => Ok(()),
            Happened::Destroyed(reason) => self.destroyed(db, state, (entry.at_ms, *reason)),
            Happened::Leftover(what) => say(events::leftover(self.incarnation, what)),
            Happened::ControlFiles(paths) => {
                say(events::new_control_files(self.incarnation, paths))
            }
            Happened::PermissionRequested(waiting) => {
                say(events::permission_requested(&self.session, self.incarnation, waiting))
            }
            Happened::ConnectionDenied { denial, execs } => {
                say(events::connection_denied(self.incarnation, denial, execs))
            }
            Happened::PermissionDropped(why) => {
                say(events::permission_dropped(self.incarnation, why))
            }
            Happened::PermissionSettled { number, settled } => {
                say(events::permission_settled(&self.session, self.incarnation, *number, *settled))
            }
        }
    }

    /// Says once that the sandbox ended, if it ever was.
    fn destroyed(
        &self,
        db: &Connection,
        state: &mut Incarnation,
        (at_ms, reason): (u64, DestroyReason),
    ) -> rusqlite::Result<()> {
        if state.ended || !state.provisioned {
            return Ok(());
        }
        // ORDER: what it takes with it first, so that this is the last word about it.
        self.close(db)?;
        state.ended = true;
        let (kind, data) =
            events::destroyed(&self.session, self.incarnation, reason, self.label.as_deref());
        NewEvent { at_ms, kind, data }.write(db, &self.session)
    }

    /// Commands without an ending are lost, and so is what others left.
    fn close(&self, db: &Connection) -> rusqlite::Result<()> {
        let mut query =
            db.prepare_cached("SELECT status FROM execs WHERE session=?1 AND incarnation=?2")?;
        let open: Vec<String> = query
            .query_map(params![self.session.as_str(), self.incarnation], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        for json in open {
            let mut status: ExecStatus = from_json(0, &json)?;
            if status.ended.is_none() {
                let at_ms = crate::now_ms();
                status.ended = Some(ExecEnded {
                    ending: Ending::Lost,
                    at_ms,
                    usage: UsageReport::default(),
                    killed_descendants: None,
                    denials: Vec::new(),
                });
                self.keep(db, &status)?;
                let (kind, data) = events::exec_ended(self.incarnation, &status);
                NewEvent { at_ms, kind, data }.write(db, &self.session)?;
            } else if status.left.take().is_some() {
                self.keep(db, &status)?;
                let (kind, data) = events::exec_emptied(self.incarnation, &status);
                NewEvent { at_ms: crate::now_ms(), kind, data }.write(db, &self.session)?;
            }
        }
        Ok(())
    }

    fn keep(&self, db: &Connection, status: &ExecStatus) -> rusqlite::Result<()> {
        db.prepare_cached(
            "INSERT INTO execs (session, incarnation, exec, started_ms, status) \
             VALUES (?1,?2,?3,?4,?5) ON CONFLICT DO UPDATE SET status=excluded.status",
        )?
        .execute(params![
            self.session.as_str(),
            self.incarnation,
            status.id.as_str(),
            status.started_ms,
            to_json(status)?
        ])
        .map(|_| ())
    }
}

fn find(
    db: &Connection,
    id: &SessionId,
    incarnation: u32,
) -> rusqlite::Result<Option<Incarnation>> {
    let mut query = db.prepare_cached(
        "SELECT folded_seq, provisioned, ended FROM incarnations \
         WHERE session=?1 AND incarnation=?2",
    )?;
    let found = query.query_row(params![id.as_str(), incarnation], |row| {
        Ok(Incarnation { folded_seq: row.get(0)?, provisioned: row.get(1)?, ended: row.get(2)? })
    });
    found.optional()
}

fn known(row: &rusqlite::Row<'_>) -> rusqlite::Result<KnownExec> {
    Ok(KnownExec { incarnation: row.get(0)?, status: from_json(1, &row.get::<_, String>(1)?)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::schema;
    use cofferdam_core::Spooled;

    fn database() -> Connection {
        let db = Connection::open_in_memory().unwrap();
        schema::migrate(&db).unwrap();
        db
    }

    fn plan(db: &Connection, query: &str) -> String {
        let mut explained = db.prepare(&format!("EXPLAIN QUERY PLAN {query}")).unwrap();
        let values = vec![""; explained.parameter_count()];
        let steps = explained.query_map(rusqlite::params_from_iter(values), |row| row.get(3));
        steps.unwrap().collect::<rusqlite::Result<Vec<String>>>().unwrap().join("; ")
    }

    #[test]
    fn the_latest_command_of_an_id_is_found_among_many_incarnations() {
        let db = database();
        let id = SessionId::new("0123456789abcdef0123").unwrap();
        let of = |incarnation| Fold {
            session: id.clone(),
            incarnation,
            label: None,
            entries: Vec::new(),
            ended: None,
        };
        let status = |exec: &str| ExecStatus {
            id: ProcessId::new(exec).unwrap(),
            argv: vec!["true".to_owned()],
            detached: false,
            terminal: false,
            stops: 0,
            started_ms: 1,
            ended: None,
            left: None,
            stdout: Spooled::default(),
            stderr: Spooled::default(),
        };
        for (incarnation, exec) in [(1, "a"), (1, "b"), (3, "a"), (7, "c")] {
            of(incarnation).keep(&db, &status(exec)).unwrap();
        }
        let found = |exec: &str| {
            latest(&db, &id, &ProcessId::new(exec).unwrap()).unwrap().map(|it| it.incarnation)
        };
        assert_eq!(
            [found("a"), found("b"), found("c"), found("d")],
            [Some(3), Some(1), Some(7), None]
        );
    }

    #[test]
    fn no_command_is_looked_for_among_all() {
        let db = database();
        let plan = |query| plan(&db, query);
        assert_eq!(
            plan(INCARNATION_BEFORE),
            "SEARCH execs USING PRIMARY KEY (session=? AND incarnation<?)"
        );
        assert_eq!(
            plan(EXEC_OF),
            "SEARCH execs USING PRIMARY KEY (session=? AND incarnation=? AND exec=?)"
        );
    }
}

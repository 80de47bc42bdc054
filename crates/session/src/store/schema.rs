//! The tables, and how a database comes to be.

use super::{damaged, explain, sys};
use cofferdam_core::{Error, ErrorKind, Result};
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Marks a file as one of ours: "CDam".
const APPLICATION_ID: i32 = 0x4344_616d;
/// The schema that this program writes.
const VERSION: i32 = 3;
/// How long a writer waits for another one.
const BUSY: Duration = Duration::from_secs(10);

/// What leads from each version to the next; the first makes an empty database one of version 1.
const MIGRATIONS: [&str; VERSION as usize] = [
    "
    CREATE TABLE sessions (
        id TEXT PRIMARY KEY,
        name TEXT,
        backend TEXT NOT NULL,
        phase TEXT NOT NULL,
        incarnation INTEGER NOT NULL,
        revision INTEGER NOT NULL,
        due INTEGER NOT NULL,
        lease_until_ms INTEGER,
        cleanup_failed TEXT,
        labels TEXT NOT NULL,
        spec TEXT NOT NULL,
        record TEXT,
        facts TEXT NOT NULL,
        created_ms INTEGER NOT NULL,
        updated_ms INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE UNIQUE INDEX live_names ON sessions (name)
        WHERE name IS NOT NULL AND phase <> 'deleting';
    CREATE INDEX due_sessions ON sessions (due) WHERE due = 1;
    CREATE INDEX leases ON sessions (lease_until_ms) WHERE lease_until_ms IS NOT NULL;
    CREATE TABLE incarnations (
        session TEXT NOT NULL,
        incarnation INTEGER NOT NULL,
        record TEXT,
        folded_seq INTEGER NOT NULL DEFAULT 0,
        provisioned INTEGER NOT NULL DEFAULT 0,
        ended INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (session, incarnation)
    ) WITHOUT ROWID;
    CREATE TABLE execs (
        session TEXT NOT NULL,
        incarnation INTEGER NOT NULL,
        exec TEXT NOT NULL,
        started_ms INTEGER NOT NULL,
        status TEXT NOT NULL,
        PRIMARY KEY (session, incarnation, exec)
    ) WITHOUT ROWID;
    CREATE TABLE events (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        session TEXT NOT NULL,
        at_ms INTEGER NOT NULL,
        kind TEXT NOT NULL,
        data TEXT NOT NULL
    );
    CREATE INDEX events_of ON events (session, seq);
",
    "
    ALTER TABLE sessions ADD COLUMN owner TEXT NOT NULL DEFAULT '';
    DROP INDEX live_names;
    CREATE UNIQUE INDEX live_names ON sessions (owner, name)
        WHERE name IS NOT NULL AND phase <> 'deleting';
    ALTER TABLE events ADD COLUMN owner TEXT NOT NULL DEFAULT '';
    CREATE INDEX events_for ON events (owner, seq);
    CREATE TABLE keys (
        id TEXT PRIMARY KEY,
        name TEXT NOT NULL,
        hash BLOB NOT NULL,
        rights TEXT NOT NULL,
        created_ms INTEGER NOT NULL,
        revoked_ms INTEGER
    ) WITHOUT ROWID;
    CREATE UNIQUE INDEX live_keys ON keys (name) WHERE revoked_ms IS NULL;
    CREATE TABLE audit (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        owner TEXT NOT NULL,
        at_ms INTEGER NOT NULL,
        entry TEXT NOT NULL
    );
    CREATE INDEX audit_for ON audit (owner, seq);
",
    "
    ALTER TABLE sessions ADD COLUMN alarm TEXT;
    UPDATE sessions SET alarm = (
        SELECT json_object('incarnation', json_extract(raised.data, '$.incarnation'),
            'alarm', json(json_remove(raised.data, '$.incarnation')))
        FROM events AS raised WHERE raised.session = sessions.id AND raised.kind = 'secret_alarm'
        AND NOT EXISTS (SELECT 1 FROM events AS later WHERE later.session = raised.session
            AND later.seq > raised.seq AND later.kind IN ('resumed', 'provisioned'))
        ORDER BY raised.seq DESC LIMIT 1);
",
];

/// Beside whom a database is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Beside others, by a file that all of them share in memory.
    Shared,
    /// While nobody else does, who waits: needs no such file, and so no room on a full disk.
    Alone,
}

/// Opens the database, making it first where there is none.
pub(super) fn open(path: &Path, access: Access) -> Result<Connection> {
    sys::take_whole_pages();
    if !path.try_exists().map_err(|e| io(path, "look for", e))? {
        make(path)?;
    }
    refuse_strangers(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let connection = Connection::open_with_flags(path, flags).map_err(|e| explain(path, e))?;
    connection.busy_timeout(BUSY).map_err(|e| explain(path, e))?;
    if access == Access::Alone {
        let alone = connection.pragma_update(None, "locking_mode", "exclusive");
        alone.map_err(|e| explain(path, e))?;
    }
    // ORDER: nothing is set in a file that is not known to be ours.
    check(path, &connection)?;
    prepare(&connection).map_err(|e| explain(path, e))?;
    migrate(&connection).map_err(|e| explain(path, e))?;
    Ok(connection)
}

/// An empty one in memory, in the place of one that is not there.
pub(super) fn of_nothing(path: &Path) -> Result<Connection> {
    let fill = || {
        let connection = Connection::open_in_memory()?;
        MIGRATIONS.iter().try_for_each(|migration| connection.execute_batch(migration))?;
        Ok(connection)
    };
    fill().map_err(|e| explain(path, e))
}

/// Makes a database beside its place and gives it its name when it is whole, so that a file of that
/// name which is no database is damage and never a beginning.
fn make(path: &Path) -> Result<()> {
    let guard = path.with_extension("lock");
    let guard = private(&guard).map_err(|e| io(&guard, "open", e))?;
    guard.lock().map_err(|e| io(path, "lock", e))?;
    if path.try_exists().map_err(|e| io(path, "look for", e))? {
        return Ok(());
    }
    let new: PathBuf = path.with_extension("new");
    for leftover in [new.clone(), path.with_extension("new-wal"), path.with_extension("new-shm")] {
        match std::fs::remove_file(&leftover) {
            Ok(()) => {}
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => return Err(io(&leftover, "remove", e)),
        }
    }
    private(&new).map_err(|e| io(&new, "make", e))?;
    let fill = || {
        let connection = Connection::open(&new)?;
        prepare(&connection)?;
        connection.execute_batch("BEGIN IMMEDIATE")?;
        for migration in MIGRATIONS {
            connection.execute_batch(migration)?;
        }
        connection.pragma_update(None, "application_id", APPLICATION_ID)?;
        connection.pragma_update(None, "user_version", VERSION)?;
        connection.execute_batch("COMMIT; PRAGMA wal_checkpoint(TRUNCATE)")?;
        connection.close().map_err(|(_, e)| e)
    };
    fill().map_err(|e| explain(&new, e))?;
    std::fs::rename(&new, path).map_err(|e| io(path, "make", e))
}

/// Leads a database of an earlier version to the present one, all at once or not at all.
pub(super) fn migrate(connection: &Connection) -> rusqlite::Result<()> {
    if version(connection)? == VERSION {
        return Ok(());
    }
    let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    // Somebody else may have led it there meanwhile.
    let from = usize::try_from(version(&transaction)?).unwrap_or(usize::MAX);
    for migration in MIGRATIONS.iter().skip(from) {
        transaction.execute_batch(migration)?;
    }
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()
}

fn version(connection: &Connection) -> rusqlite::Result<i32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "journal_mode", "wal")?;
    // With a log ahead this survives the end of our process; the end of the machine may take the
    // last writes, and takes the sandboxes too.
    connection.pragma_update(None, "synchronous", "normal")?;
    // Specs hold values of variables: what a removed session had must not stay in free pages.
    connection.pragma_update(None, "secure_delete", true)?;
    connection.pragma_update(None, "trusted_schema", false)
}

fn check(path: &Path, connection: &Connection) -> Result<()> {
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    let found = pragma("application_id").map_err(|e| explain(path, e))?;
    let version = version(connection).map_err(|e| explain(path, e))?;
    if found != APPLICATION_ID || version < 1 {
        return Err(damaged(path));
    }
    if version > VERSION {
        let what = format!(
            "{} is of schema {version}, and this program knows schemas up to {VERSION}",
            path.display()
        );
        return Err(Error::new(ErrorKind::Unsupported, what).hint(
            "Use the newer Cofferdam that wrote it, or set COFFERDAM_HOME to another directory.",
        ));
    }
    Ok(())
}

/// The file is ours and nobody else reads it.
fn refuse_strangers(path: &Path) -> Result<()> {
    let found = std::fs::symlink_metadata(path).map_err(|e| io(path, "look at", e))?;
    if !found.is_file() || found.uid() != rustix::process::geteuid().as_raw() {
        let what = format!("{} is not a file of yours", path.display());
        return Err(Error::new(ErrorKind::Denied, what)
            .hint("Move it away, or set COFFERDAM_HOME to another directory."));
    }
    if found.permissions().mode() & 0o077 != 0 {
        let private = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(path, private).map_err(|e| io(path, "close", e))?;
    }
    Ok(())
}

fn private(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)
}

fn io(path: &Path, what: &str, error: std::io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("{what} {}", path.display())).source(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A database as version 1 left it, with a session and an event in it.
    fn of_version_1(path: &Path) {
        private(path).unwrap();
        let connection = Connection::open(path).unwrap();
        connection.execute_batch(MIGRATIONS[0]).unwrap();
        connection
            .execute_batch(
                "INSERT INTO sessions VALUES ('a','n','local','running',1,1,0,NULL,NULL,'{}','{}',
                 NULL,'{}',1,1); INSERT INTO events (session, at_ms, kind, data)
                 VALUES ('a', 1, 'provisioned', '{}');",
            )
            .unwrap();
        connection.pragma_update(None, "application_id", APPLICATION_ID).unwrap();
        connection.pragma_update(None, "user_version", 1).unwrap();
    }

    #[test]
    fn a_session_that_an_earlier_database_says_is_frozen_stays_so() {
        let directory = std::env::temp_dir().join(format!("cofferdam-v2-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("sessions.db");
        of_version_1(&path);
        let alarm = r#"{"incarnation":2,"secret":"T","host":"a.test","port":80}"#;
        let say = |kind: &str, data: &str| {
            let connection = Connection::open(&path).unwrap();
            let insert = "INSERT INTO events (session, at_ms, kind, data) VALUES ('a',2,?1,?2)";
            connection.execute(insert, [kind, data]).unwrap();
        };
        let alarm_of = || {
            let connection = open(&path, Access::Shared).unwrap();
            let alarm = connection.query_row("SELECT alarm FROM sessions", [], |row| row.get(0));
            alarm.unwrap()
        };
        say("secret_alarm", alarm);
        say("paused", "{}");
        say("destroyed", "{}");
        let known: Option<String> = alarm_of();
        let frozen: crate::store::Frozen = serde_json::from_str(&known.unwrap()).unwrap();
        assert_eq!((frozen.incarnation, &*frozen.alarm.host), (2, "a.test"));
        // The control: one that went on is not frozen.
        std::fs::remove_file(&path).unwrap();
        of_version_1(&path);
        say("secret_alarm", alarm);
        say("resumed", "{}");
        let known: Option<String> = alarm_of();
        assert_eq!(known, None);
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn an_earlier_database_is_led_here_and_what_it_holds_is_the_local_users() {
        let directory = std::env::temp_dir().join(format!("cofferdam-v1-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("sessions.db");
        of_version_1(&path);
        for _ in 0..2 {
            let connection = open(&path, Access::Shared).unwrap();
            assert_eq!(version(&connection).unwrap(), VERSION);
            for table in ["sessions", "events"] {
                let owner = format!("SELECT owner FROM {table}");
                let owner: String = connection.query_row(&owner, [], |row| row.get(0)).unwrap();
                assert_eq!(owner, "", "{table}");
            }
        }
        // A newer one is left as it is.
        let connection = Connection::open(&path).unwrap();
        connection.pragma_update(None, "user_version", VERSION + 1).unwrap();
        drop(connection);
        assert_eq!(open(&path, Access::Shared).unwrap_err().kind, ErrorKind::Unsupported);
        std::fs::remove_dir_all(&directory).unwrap();
    }
}

//! What is remembered: one database, written by any number of processes.
//!
//! Every write of a row names the revision that it was read at, so two writers never mix. Calls run
//! in a blocking section; a caller that goes away lets its write happen or not, and both are fine.

mod audit;
mod events;
mod fold;
mod frozen;
mod keys;
mod read_before;
mod reserve;
mod rows;
mod schema;
mod sys;

use crate::SessionId;
use cofferdam_core::{Error, ErrorKind, Result};
use read_before::ReadBefore;
use reserve::{Reserve, is_without_files, is_without_room};
use rusqlite::{Connection, ErrorCode, TransactionBehavior, ffi};
use schema::Access;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

pub(crate) use audit::StoredAudit;
pub(crate) use events::{EventFilter, NewEvent, StoredEvent};
pub(crate) use fold::{Fold, KnownExec};
pub(crate) use frozen::Frozen;
pub(crate) use keys::StoredKey;
pub(crate) use reserve::Room;
pub(crate) use rows::{Facts, Row, Scope, Times};

/// The database, as somebody sees it.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    inner: Arc<Inner>,
    view: Option<Arc<View>>,
}

/// What one owner sees of the database, and may add to it. Rows of others do not exist in here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct View {
    /// Whose rows are seen; empty is the local user.
    pub(crate) owner: String,
    /// How much there may be of them.
    pub(crate) quota: Quota,
}

/// How much an owner may have.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, serde::Deserialize, schemars::JsonSchema,
)]
pub struct Quota {
    /// Sessions, those of one-shot runs included.
    pub max_sandboxes: Option<u32>,
    /// Memory of all of them together, by their limits, in bytes.
    pub max_memory_bytes: Option<u64>,
}

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    /// Whether this knows nothing, because there was no database.
    stands_in: bool,
    connection: Mutex<Connection>,
    read_before: ReadBefore,
    /// How often this process wrote.
    written: watch::Sender<u64>,
    /// ORDER: dropped after the connection, which leaves room when it closes.
    reserve: Reserve,
}

/// What is written makes room while this lives.
#[derive(Debug)]
#[must_use]
pub(crate) struct MakingRoom(Arc<Inner>);

impl MakingRoom {
    /// Lets go of the reserve now if the disk is full, for what is written beside the database. What may fill the
    /// disk is to be stopped before.
    pub(crate) async fn let_go(&self) -> Result<()> {
        let inner = Arc::clone(&self.0);
        briefly(move || {
            inner.reserve.let_go_if_needed();
            Ok(())
        })
        .await
    }
}

impl Drop for MakingRoom {
    fn drop(&mut self) {
        self.0.reserve.made_room();
    }
}

/// What came of writing a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    /// It is written.
    Yes,
    /// Somebody else wrote it since it was read, or removed it.
    Moved,
}

/// What came of writing a new row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Inserted {
    /// It is written.
    Yes,
    /// Its name is taken by another session.
    NameTaken,
    /// Its owner has as many sessions as it may.
    TooMany(u32),
    /// With it, its owner's sessions could use more memory than they may.
    TooMuchMemory(u64),
}

impl Store {
    /// Opens the database, and makes it if there is none; who may use the reserve makes none, and sees an
    /// empty one.
    ///
    /// A file that cannot be understood is an error, never an absence.
    pub(crate) async fn open(path: PathBuf, room: Room) -> Result<Self> {
        // Where that cannot be seen, opening says why.
        let is_there = path.try_exists().unwrap_or(true);
        let open = move || {
            let reserve = Reserve::of(&path, room);
            let stands_in = room == Room::Reserve && !is_there;
            let opened = match stands_in {
                true => schema::of_nothing(&path),
                false => schema::open(&path, Access::Shared),
            };
            let connection = match opened {
                Err(error) if room == Room::Reserve && wants_room(&error) => {
                    reserve.let_go_to_open();
                    schema::open(&path, Access::Alone)
                }
                other => other,
            };
            let connection = Mutex::new(connection?);
            if !stands_in {
                reserve.make();
            }
            let read_before = ReadBefore::default();
            let written = watch::Sender::default();
            let inner =
                Arc::new(Inner { path, stands_in, connection, read_before, written, reserve });
            Ok(Self { inner, view: None })
        };
        // Whoever makes it waits for others who do.
        if is_there { briefly(open).await } else { blocking(open).await }
    }

    /// The same as this owner sees it.
    pub(crate) fn seen_by(&self, view: View) -> Self {
        Self { inner: Arc::clone(&self.inner), view: Some(Arc::new(view)) }
    }

    /// Who sees it so, if it is not seen as a whole.
    pub(crate) fn view(&self) -> Option<&View> {
        self.view.as_deref()
    }

    /// Whose rows are seen; `None` is all of them.
    fn owner(&self) -> Option<String> {
        self.view().map(|view| view.owner.clone())
    }

    /// Whether the disk is full, and this store may write all the same.
    pub(crate) fn is_on_reserve(&self) -> bool {
        self.inner.reserve.is_needed()
    }

    /// What is written makes room until what is returned is dropped, so that it may use the reserve, whoever writes.
    pub(crate) fn while_room_is_made(&self) -> MakingRoom {
        self.inner.reserve.begin_making_room();
        MakingRoom(Arc::clone(&self.inner))
    }

    /// Does something in one transaction that holds the write lock from the beginning.
    async fn write<T: Send + 'static>(
        &self,
        deed: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T> {
        let inner = Arc::clone(&self.inner);
        blocking(move || {
            inner.refuse_a_new_one()?;
            let mut connection = inner.connection.lock().unwrap_or_else(PoisonError::into_inner);
            inner.reserve.let_go_if_needed();
            let run = || {
                let transaction =
                    connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
                let done = deed(&transaction)?;
                transaction.commit()?;
                Ok(done)
            };
            let done = run();
            inner.written.send_modify(|count| *count += 1);
            done.map_err(|e| explain(&inner.path, e))
        })
        .await
    }

    /// Told of each write of this process, whatever it was.
    pub(crate) fn written(&self) -> watch::Receiver<u64> {
        self.inner.written.subscribe()
    }

    /// Asks for something. Where nobody else of this process is at work on the database it is done at
    /// once: what is asked for is in memory, and another thread would take longer to wake than this takes.
    async fn read<T: Send + 'static>(
        &self,
        deed: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T> {
        self.inner.refuse_a_new_one()?;
        if let Ok(connection) = self.inner.connection.try_lock() {
            return deed(&connection).map_err(|e| explain(&self.inner.path, e));
        }
        let inner = Arc::clone(&self.inner);
        blocking(move || {
            let connection = inner.connection.lock().unwrap_or_else(PoisonError::into_inner);
            deed(&connection).map_err(|e| explain(&inner.path, e))
        })
        .await
    }
}

impl Inner {
    /// Fails where this stands in for a database that somebody has made by now: sessions of it would be taken for
    /// unknown, and their sandboxes for nobody's.
    fn refuse_a_new_one(&self) -> Result<()> {
        if !self.stands_in || self.path.try_exists().is_ok_and(|is_there| !is_there) {
            return Ok(());
        }
        let what = format!("{} was just made", self.path.display());
        Err(Error::new(ErrorKind::Unavailable, what).hint("Try again."))
    }
}

/// Runs what may wait for a disk where it stops nobody.
pub(crate) async fn blocking<T: Send + 'static>(
    deed: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    cofferdam_core::blocking(deed).await.map_err(broken_off)?
}

/// The same for what is nearly always over at once.
pub(crate) async fn briefly<T: Send + 'static>(
    deed: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    cofferdam_core::briefly(deed).await.map_err(broken_off)?
}

/// Work that is done apart. It is made by a function that is not asynchronous: whoever polls would have all of it
/// on the stack otherwise.
pub(crate) type Apart<T> = Pin<Box<dyn Future<Output = Result<T>> + Send>>;

/// Does something in a task of our own, in which blocking sections cost less. Whoever drops this gives it up.
pub(crate) async fn apart<T: Send + 'static>(work: Apart<T>) -> Result<T> {
    cofferdam_core::apart(work).await.map_err(broken_off)?
}

/// Begins something that goes on beside what the caller does next, where there are several threads.
pub(crate) fn beside<T: Send + 'static>(
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> Apart<T> {
    let begun = cofferdam_core::beside(work);
    Box::pin(async move { begun.await.map_err(broken_off)? })
}

/// The error for a blocking section that has no result.
pub(crate) fn broken_off(error: tokio::task::JoinError) -> Error {
    match error.is_cancelled() {
        true => Error::new(ErrorKind::Canceled, "the program is ending"),
        false => Error::new(ErrorKind::Io, "a blocking section broke off"),
    }
    .source(error)
}

/// What helps where the disk takes nothing more.
const ROOM: &str = "Free some space on its disk, or remove sessions, snapshots or images: `cofferdam rm`, \
                    `snapshot rm`, `discard` and `image gc` work all the same.";

/// What helps where the disk fails, or may.
const DISK: &str = "See what the kernel says of its disk (`dmesg`), and whether a quota there is used up (`quota`).";

/// An error of the database in words that name the file and the remedy.
fn explain(path: &Path, error: rusqlite::Error) -> Error {
    let shown = path.display();
    let code = error.sqlite_error().map(|error| error.extended_code);
    let is_full = matches!(code, Some(ffi::SQLITE_FULL | ffi::SQLITE_IOERR_SHMSIZE))
        || (error.sqlite_error_code() == Some(ErrorCode::CannotOpen) && is_without_files(path));
    let told = match error.sqlite_error_code() {
        _ if is_full => {
            let what = match is_without_files(path) {
                true => format!("{shown} cannot be used, its disk has no room for another file"),
                false => format!("{shown} cannot grow, its disk is full"),
            };
            Error::new(ErrorKind::Io, what).hint(ROOM)
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => damaged(path),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            Error::new(ErrorKind::Unavailable, format!("{shown} is busy"))
                .hint("Try again when other commands of Cofferdam are done.")
        }
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            Error::new(ErrorKind::Io, format!("{shown} cannot be written"))
                .hint("Make it and its directory yours to write, or set COFFERDAM_HOME.")
        }
        Some(ErrorCode::SystemIoFailure) => {
            // The kernel says that of a disk that fails, and of a quota that is used up.
            let hint = if is_without_room(path) { ROOM } else { DISK };
            Error::new(ErrorKind::Io, format!("use {shown}")).hint(hint)
        }
        _ if matches!(error, rusqlite::Error::FromSqlConversionFailure(..)) => damaged(path),
        _ => Error::new(ErrorKind::Io, format!("use {shown}")),
    };
    match code {
        // Its errors say the same again as their own cause, with a number.
        Some(code) => told.source(Said { text: format!("{error} ({code})"), is_full }),
        None => told.source(error),
    }
}

/// What SQLite says, once.
#[derive(Debug)]
struct Said {
    text: String,
    is_full: bool,
}

/// Whether the disk took no more.
pub(crate) fn wants_room(error: &Error) -> bool {
    let said = error.source.as_ref().and_then(|source| source.downcast_ref::<Said>());
    said.is_some_and(|said| said.is_full)
}

impl std::fmt::Display for Said {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Said {}

fn damaged(path: &Path) -> Error {
    Error::new(ErrorKind::Io, format!("{} is damaged", path.display())).hint(
        "Put a good copy in its place, or move it away: the sessions that it held are then ended, and `cofferdam gc` removes \
         what they had.",
    )
}

/// A value in a column.
fn to_json<T: Serialize>(value: &T) -> rusqlite::Result<String> {
    serde_json::to_string(value).map_err(|e| rusqlite::Error::ToSqlConversionFailure(e.into()))
}

/// A value from a column. One that cannot be read means damage.
fn from_json<T: DeserializeOwned>(column: usize, text: &str) -> rusqlite::Result<T> {
    serde_json::from_str(text).map_err(|e| bad(column, e))
}

fn bad(
    column: usize,
    error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, error.into())
}

/// An id from a column.
fn id_at(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<SessionId> {
    SessionId::new(row.get::<_, String>(column)?).map_err(|e| bad(column, e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_fails_is_not_told_as_a_full_one() {
        let place = std::env::temp_dir().join(format!("cofferdam-ioerr-{}", std::process::id()));
        std::fs::create_dir_all(&place).unwrap();
        let told = |code| {
            let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
            explain(&place.join("sessions.db"), error)
        };
        for code in [ffi::SQLITE_IOERR_READ, ffi::SQLITE_IOERR_WRITE, ffi::SQLITE_IOERR_FSYNC] {
            let error = told(code);
            assert_eq!(error.hint.as_deref(), Some(DISK), "{code}: {error:?}");
            assert!(error.chain().contains("disk I/O error"), "{error:?}");
            assert!(!wants_room(&error), "{error:?}");
        }
        // The control: a full one is told as that.
        let error = told(ffi::SQLITE_FULL);
        assert_eq!(error.hint.as_deref(), Some(ROOM), "{error:?}");
        assert!(wants_room(&error), "{error:?}");
        std::fs::remove_dir_all(&place).unwrap();
    }
}

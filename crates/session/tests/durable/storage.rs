//! The database: private, versioned, and never taken for absent.

use crate::stage::{Stage, order};
use cofferdam_core::{Error, ErrorKind};
use cofferdam_session::Sessions;
use rusqlite::Connection;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

fn database(stage: &Stage) -> PathBuf {
    stage.state.join("sessions.db")
}

/// Opening fails with an error that names the file and a remedy, and ends nothing.
async fn refused(stage: &Stage) -> Error {
    let error = stage.try_open().await.unwrap_err();
    assert!(error.message.contains("sessions.db"), "{error}");
    assert!(error.hint.is_some(), "{error}");
    assert_eq!(stage.backend.alive().len(), 1, "what is alive is not taken for an orphan");
    error
}

async fn with_one() -> Stage {
    let stage = Stage::new();
    stage.open().await.create(&order("a")).await.unwrap();
    // The log goes with the last connection.
    assert!(!stage.state.join("sessions.db-wal").exists());
    stage
}

#[tokio::test]
async fn a_damaged_database_is_an_error() {
    // A10.
    let stage = with_one().await;
    for content in [&b""[..], b"not a database", &[0; 8192]] {
        std::fs::write(database(&stage), content).unwrap();
        assert_eq!(refused(&stage).await.kind, ErrorKind::Io, "{content:?}");
        assert_eq!(std::fs::read(database(&stage)).unwrap().len(), content.len());
    }
}

#[tokio::test]
async fn a_database_of_a_newer_version_is_an_error() {
    let stage = with_one().await;
    let db = Connection::open(database(&stage)).unwrap();
    db.pragma_update(None, "user_version", 99).unwrap();
    drop(db);
    let error = refused(&stage).await;
    assert_eq!(error.kind, ErrorKind::Unsupported);
    assert!(error.message.contains("99"), "{error}");
}

#[tokio::test]
async fn a_damaged_row_is_an_error_and_no_absence() {
    for damage in ["spec = '{}'", "phase = 'odd'", "facts = 'x'", "record = '[]'"] {
        let stage = with_one().await;
        let sessions = stage.open().await;
        let db = Connection::open(database(&stage)).unwrap();
        db.execute(&format!("UPDATE sessions SET {damage}"), []).unwrap();
        let error = sessions.ensure(&order("a")).await.unwrap_err();
        assert!(error.message.contains("sessions.db is damaged"), "{damage}: {error:?}");
        assert_eq!(stage.backend.alive().len(), 1);
    }
}

#[tokio::test]
async fn files_are_private_and_strangers_are_refused() {
    let stage = with_one().await;
    let mode = |path: PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(database(&stage)), 0o600);
    for place in ["", "homes", "locks", "bundles"] {
        assert_eq!(mode(stage.state.join(place)), 0o700, "{place}");
    }
    std::fs::set_permissions(&stage.state, std::fs::Permissions::from_mode(0o777)).unwrap();
    assert_eq!(stage.try_open().await.unwrap_err().kind, ErrorKind::Denied);
}

#[tokio::test]
async fn values_of_variables_are_in_the_database_alone() {
    let stage = Stage::new();
    let sessions = stage.open().await;
    let mut wanted = order("a");
    wanted.spec.env.insert("TOKEN".into(), "hunter2".into());
    let session = sessions.create(&wanted).await.unwrap();
    let report = sessions.status(session.id()).await.unwrap();
    let events = sessions.events(None, 0).await.unwrap();
    let shown = format!("{report:?} {events:?} {sessions:?} {session:?}");
    assert!(!shown.contains("hunter2"), "{shown}");
    let record = stage.backend.order(&stage.backend.alive()[0]).unwrap();
    assert_eq!(record.spec, wanted.spec);
}

#[tokio::test]
async fn many_openings_at_once_make_one_database() {
    let stage = Stage::new();
    let opens: Vec<_> = (0..16)
        .map(|_| {
            let (state, backends) = (stage.state.clone(), stage.backends());
            tokio::spawn(async move {
                cofferdam_session::Sessions::open(&state, backends).await.unwrap();
            })
        })
        .collect();
    for open in opens {
        open.await.unwrap();
    }
    assert!(!stage.state.join("sessions.new").exists());
}

#[tokio::test]
async fn nothing_of_a_removed_session_stays_in_free_pages() {
    let stage = Stage::new();
    let sessions = stage.open().await;
    let mut order = order("a");
    let secret = "a-value-that-is-nobodys-business";
    order.spec.env.insert("TOKEN".into(), secret.into());
    let session = sessions.create(&order).await.unwrap();
    let is_there = || {
        let bytes = std::fs::read(database(&stage)).unwrap();
        bytes.windows(secret.len()).any(|window| window == secret.as_bytes())
    };
    drop(sessions);
    let id = session.id().clone();
    drop(session);
    assert!(is_there(), "the control: as long as there is a session, its variables are kept");
    let sessions = stage.open().await;
    sessions.delete(&id).await.unwrap();
    drop(sessions);
    assert!(!stage.state.join("sessions.db-wal").exists());
    assert!(!is_there());
}

#[tokio::test]
async fn who_only_looks_makes_nothing_and_takes_no_new_session_for_unknown() {
    let stage = Stage::new();
    let made = || std::fs::read_dir(&stage.state).map_or(0, Iterator::count);
    let before = made();
    let looking = Sessions::open_as_is(&stage.state, stage.backends()).await.unwrap();
    let reserve = Sessions::open_on_reserve(&stage.state, stage.backends()).await.unwrap();
    for sessions in [&looking, &reserve] {
        assert!(sessions.list(&Default::default()).await.unwrap().is_empty());
        assert!(sessions.gc(false).await.unwrap().done.is_empty());
    }
    assert_eq!(made(), before);
    // Whoever knows nothing ends nothing of what somebody else began meanwhile.
    stage.open().await.create(&order("a")).await.unwrap();
    for sessions in [&looking, &reserve] {
        assert_eq!(sessions.gc(false).await.unwrap_err().kind, ErrorKind::Unavailable);
        assert_eq!(stage.backend.alive().len(), 1);
    }
    let again = Sessions::open_as_is(&stage.state, stage.backends()).await.unwrap();
    assert_eq!(again.list(&Default::default()).await.unwrap().len(), 1);
    assert!(again.gc(false).await.unwrap().done.is_empty() && stage.backend.alive().len() == 1);
}

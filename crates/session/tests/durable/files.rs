//! Files of a session, whichever sandbox it has.

use crate::stage::{Stage, order};
use cofferdam_core::ErrorKind;
use cofferdam_core::fake::{Call, Mishap};
use cofferdam_core::files::{Before, Content, Load, Step};
use cofferdam_session::{Phase, SessionId};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[tokio::test]
async fn files_wake_a_session_and_recover_one_that_is_lost() {
    let stage = Stage::new();
    let sessions = stage.open().await;
    let session = sessions.create(&order("a")).await.unwrap();
    let files = session.files();
    files.write("a", b"one").await.unwrap();
    sessions.pause(session.id()).await.unwrap();
    assert_eq!(files.read("a", 9).await.unwrap(), b"one");
    assert_eq!(sessions.status(session.id()).await.unwrap().phase, Phase::Running);
    // Paused behind the back of the store.
    let sandbox = stage.backend.alive()[0].clone();
    stage.backend.fall_asleep(&sandbox);
    assert_eq!(files.read("a", 9).await.unwrap(), b"one");
    stage.backend.vanish(&sandbox);
    files.write("b", b"two").await.unwrap();
    assert_eq!(sessions.status(session.id()).await.unwrap().incarnation, 2);
    assert_eq!(files.read("b", 9).await.unwrap(), b"two");
    assert!(sessions.delete(session.id()).await.unwrap());
    assert_eq!(files.read("b", 9).await.unwrap_err().kind, ErrorKind::NotFound);
}

#[tokio::test]
async fn a_request_that_fails_is_not_tried_again() {
    let stage = Stage::new();
    let sessions = stage.open().await;
    let session = sessions.create(&order("a")).await.unwrap();
    let files = session.files();
    assert_eq!(files.read("none", 9).await.unwrap_err().kind, ErrorKind::NotFound);
    assert_eq!(files.read("../a", 9).await.unwrap_err().kind, ErrorKind::PathEscape);
    stage.backend.mishap(Call::Files, 1, Mishap::FailBefore);
    let fresh = session.files();
    assert!(fresh.write("a", b"x").await.is_err());
    fresh.write("a", b"x").await.unwrap();
}

/// What a client that was killed leaves: the note of a carry, which nobody holds.
fn leave_a_note(stage: &Stage, id: &SessionId) -> PathBuf {
    let directory = stage.state.join("carries").join(id.as_str());
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::set_permissions(&directory, Permissions::from_mode(0o700)).unwrap();
    let note = directory.join("a1");
    std::fs::write(&note, b"").unwrap();
    note
}

#[tokio::test]
async fn what_a_killed_carry_left_is_put_right_by_the_next_files_stop_gc_and_removal() {
    let stage = Stage::new();
    let sessions = stage.open().await;
    let session = sessions.create(&order("a")).await.unwrap();
    let id = session.id().clone();
    let asked = || stage.backend.calls().iter().filter(|call| **call == Call::Files).count();
    // The first files of whoever comes next.
    let note = leave_a_note(&stage, &id);
    session.files().write("a", b"one").await.unwrap();
    assert!(!note.exists());
    // The end of the sandbox.
    leave_a_note(&stage, &id);
    sessions.stop(&id).await.unwrap();
    assert!(!note.exists());
    assert_eq!(sessions.status(&id).await.unwrap().phase, Phase::Stopped);
    // A collection, which wakes it for that and lets it be stopped again.
    leave_a_note(&stage, &id);
    let would = sessions.gc(true).await.unwrap();
    assert!(would.done.iter().any(|action| action.subject == id.as_str()), "{would:?}");
    assert!(note.exists(), "control");
    let did = sessions.gc(false).await.unwrap();
    assert_eq!(did.done, would.done);
    assert!(!note.exists());
    assert_eq!(sessions.status(&id).await.unwrap().phase, Phase::Stopped);
    assert_eq!(sessions.gc(true).await.unwrap().done, [], "control");
    // A removal, of one that is stopped.
    leave_a_note(&stage, &id);
    let before = asked();
    assert!(sessions.delete(&id).await.unwrap());
    assert_eq!(asked(), before + 1);
    assert!(!note.exists());
    stage.assert_empty();
}

#[tokio::test]
async fn a_carry_is_noted_while_its_end_is_not_known() {
    let stage = Stage::new();
    let sessions = stage.open().await;
    let session = sessions.create(&order("a")).await.unwrap();
    let files = session.files();
    let directory = stage.state.join("carries").join(session.id().as_str());
    let notes = move || std::fs::read_dir(&directory).map_or(0, Iterator::count);
    let put = |path: &str| {
        let step = Step::File { path: path.into(), mode: 0o644, bytes: 0 };
        Load { step, content: Content::Bytes(b"x".as_slice().into()) }
    };
    let (meanwhile, seen) = (Arc::new(AtomicUsize::new(0)), notes.clone());
    let told = Arc::clone(&meanwhile);
    let open = move || {
        told.store(seen(), Ordering::Relaxed);
        std::fs::File::open("/dev/zero")
    };
    let mut later = put("b");
    later.content = Content::Later { open: Box::new(open), bytes: 1 };
    files.carry(vec![put("a"), later]).await.unwrap();
    assert_eq!((meanwhile.load(Ordering::Relaxed), notes()), (1, 0));
    let nothing = Step::Expect { path: "a".into(), is: Before::Nothing };
    assert_eq!(files.carry(vec![nothing.into()]).await.unwrap_err().kind, ErrorKind::Conflict);
    assert_eq!(notes(), 0);
}

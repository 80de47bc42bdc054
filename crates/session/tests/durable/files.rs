//! Files of a session, whichever sandbox it has.

use crate::stage::{Stage, order};
use cofferdam_core::ErrorKind;
use cofferdam_core::fake::{Call, Mishap};
use cofferdam_session::Phase;

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

//! What a collection says that it did, or would do.

use crate::stage::{Stage, order};
use cofferdam_core::SandboxId;
use cofferdam_session::{GcKind, Phase, Session};

#[tokio::test]
async fn a_collection_tells_of_no_session_that_only_sleeps() {
    let stage = Stage::new();
    let sessions = stage.open().await;
    let sandbox = |session: &Session| {
        let is_of = |id: &&SandboxId| id.as_str().starts_with(session.id().as_str());
        stage.backend.alive().iter().find(is_of).cloned().unwrap()
    };
    let sleeps = sessions.create(&order("sleeps")).await.unwrap();
    let gone = sessions.create(&order("gone")).await.unwrap();
    stage.backend.fall_asleep(&sandbox(&sleeps));
    let would = sessions.gc(true).await.unwrap();
    assert_eq!((would.done, would.failed), (vec![], vec![]));
    // One whose sandbox is gone is told, before and when it is written down.
    stage.backend.vanish(&sandbox(&gone));
    let would = sessions.gc(true).await.unwrap();
    let did = sessions.gc(false).await.unwrap();
    let told: Vec<_> = did.done.iter().map(|done| (done.subject.as_str(), done.action)).collect();
    assert_eq!(told, [(gone.id().as_str(), GcKind::Settled)]);
    assert_eq!((would.done, would.failed), (did.done, did.failed));
    assert_eq!(sessions.status(sleeps.id()).await.unwrap().phase, Phase::Paused);
}

#[tokio::test]
async fn a_collection_removes_the_homes_and_layers_of_sessions_that_are_not_there() {
    let stage = Stage::new();
    let sessions = stage.open().await;
    let there = sessions.create(&order("there")).await.unwrap();
    // As where the database was moved away, or an earlier one came back.
    let gone = sessions.create(&order("gone")).await.unwrap();
    let gone_id = gone.id().to_string();
    sessions.delete(gone.id()).await.unwrap();
    let place = |parent: &str, name: &str| stage.state.join(parent).join(name);
    for parent in ["homes", "kept"] {
        std::fs::create_dir_all(place(parent, &gone_id).join("upper")).unwrap();
        std::fs::create_dir(place(parent, "of somebody else")).unwrap();
    }
    let would = sessions.gc(true).await.unwrap();
    assert!(place("kept", &gone_id).exists(), "a dry run removes nothing");
    let did = sessions.gc(false).await.unwrap();
    let told: Vec<_> = did.done.iter().map(|done| (done.subject.as_str(), done.action)).collect();
    assert_eq!(told, [(gone_id.as_str(), GcKind::Swept)]);
    assert_eq!((would.done, would.failed), (did.done, did.failed));
    for parent in ["homes", "kept"] {
        assert!(!place(parent, &gone_id).exists(), "{parent}");
        assert!(place(parent, "of somebody else").exists(), "{parent}");
    }
    assert!(place("homes", there.id().as_str()).exists(), "the control");
}

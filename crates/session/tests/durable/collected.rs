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

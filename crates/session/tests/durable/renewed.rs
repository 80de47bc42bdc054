//! Whoever goes on waiting for a command.

use crate::stage::{Stage, order, words};
use cofferdam_core::{Ending, Seen};
use cofferdam_session::Phase;
use std::time::Duration;

#[tokio::test]
async fn whoever_goes_on_waiting_leaves_a_session_paused() {
    let stage = Stage::new();
    let sessions = stage.open().await;
    let session = sessions.create(&order("a")).await.unwrap();
    let mut job = words(&["hang"]);
    job.detached = true;
    let job = session.start(&job).await.unwrap().id;
    let phase = async || sessions.status(session.id()).await.unwrap().phase;
    let (soon, rest) = (Duration::from_millis(10), Seen::default());
    // Who begins wakes it, and who goes on does not.
    sessions.pause(session.id()).await.unwrap();
    assert!(session.follow_on(&job, rest, soon).await.unwrap().ended.is_none());
    assert!(session.wait_on(&job, Some(soon)).await.unwrap().ended.is_none());
    assert_eq!(phase().await, Phase::Paused);
    session.follow(&job, rest, soon).await.unwrap();
    assert_eq!(phase().await, Phase::Running);
    // The same of one wait, which asks several times: what follows the pause is its last question.
    let pause = async {
        tokio::time::sleep(Duration::from_millis(600)).await;
        sessions.pause(session.id()).await.unwrap();
    };
    let (waited, ()) = tokio::join!(session.wait(&job, Some(Duration::from_secs(1))), pause);
    assert!(waited.unwrap().ended.is_none());
    assert_eq!(phase().await, Phase::Paused);
    session.wait(&job, Some(soon)).await.unwrap();
    assert_eq!(phase().await, Phase::Running);
    // The end is heard all the same.
    sessions.pause(session.id()).await.unwrap();
    let (ended, stopped) = tokio::join!(session.wait_on(&job, None), sessions.stop(session.id()));
    stopped.unwrap();
    assert_eq!(ended.unwrap().ended.unwrap().ending, Ending::Canceled);
}

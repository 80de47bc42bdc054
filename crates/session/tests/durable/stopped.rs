//! Sessions that somebody stops while others look at their commands.

use crate::stage::{Stage, order, words};
use cofferdam_core::fake::{Call, Mishap};
use cofferdam_core::{Ending, Seen};
use cofferdam_session::Phase;
use std::time::Duration;

/// How long the end of a sandbox takes.
const ENDING: Duration = Duration::from_secs(5);

#[tokio::test(start_paused = true)]
async fn who_looks_at_a_command_of_a_session_that_is_being_stopped_starts_nothing() {
    let stage = Stage::new();
    let sessions = stage.open().await;
    let session = sessions.create(&order("a")).await.unwrap();
    let exec = session.start(&words(&["hang"])).await.unwrap().id;
    stage.backend.mishap(Call::Destroy, 1, Mishap::Late(ENDING));
    let stops = {
        let (sessions, id) = (sessions.clone(), session.id().clone());
        tokio::spawn(async move { sessions.stop(&id).await })
    };
    let phase = async || sessions.status(session.id()).await.unwrap().phase;
    while phase().await != Phase::Stopping {
        tokio::task::yield_now().await;
    }
    session.wake_for(&exec).await.unwrap();
    assert_eq!(phase().await, Phase::Stopped);
    let status = session.follow(&exec, Seen::default(), ENDING).await.unwrap();
    assert_eq!(status.ended.unwrap().ending, Ending::Canceled);
    stops.await.unwrap().unwrap();
    let made = || stage.backend.calls().iter().filter(|call| **call == Call::Create).count();
    assert_eq!((made(), phase().await), (1, Phase::Stopped));
    // The control: whoever has something to do there starts it again.
    session.start(&words(&["out=x"])).await.unwrap();
    assert_eq!((made(), phase().await), (2, Phase::Running));
}

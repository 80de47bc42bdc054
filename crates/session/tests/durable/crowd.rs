//! Many at once: tasks of one process, and processes.

use crate::stage::{Stage, order};
use cofferdam_core::fake::Call;
use cofferdam_session::Sessions;

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_ensures_of_one_name_make_one_sandbox() {
    // A1. Some through one door, some each through a door of their own, as processes are.
    let stage = Stage::new();
    let shared = stage.open().await;
    let mut tasks = Vec::new();
    for n in 0..200 {
        let shared = shared.clone();
        let (state, backends) = (stage.state.clone(), stage.backends());
        tasks.push(tokio::spawn(async move {
            let sessions = match n % 4 {
                0 => Sessions::open(&state, backends).await.unwrap(),
                _ => shared,
            };
            sessions.ensure(&order("crowd")).await.unwrap().session.id().clone()
        }));
    }
    let mut ids = Vec::new();
    for task in tasks {
        ids.push(task.await.unwrap());
    }
    ids.dedup();
    assert_eq!(ids.len(), 1);
    let creates = stage.backend.calls().iter().filter(|call| **call == Call::Create).count();
    assert_eq!(creates, 1);
    assert_eq!(stage.backend.alive().len(), 1);
}

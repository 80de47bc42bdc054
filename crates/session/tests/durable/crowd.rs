//! Many at once: tasks of one process, and processes.

use crate::filed::Filed;
use crate::stage::{Stage, order};
use cofferdam_core::fake::Call;
use cofferdam_session::Sessions;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

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

/// Set in the children of the test below: the state directory that all of them use.
const STATE: &str = "SESSION_TEST_CROWD_STATE";

/// What one process of the crowd does. Without the variable there is no crowd, and nothing to do.
#[tokio::test]
async fn one_of_a_crowd_of_processes_gets_the_session() {
    let Some(state) = std::env::var_os(STATE).map(PathBuf::from) else { return };
    let sessions = Sessions::open(&state, vec![Arc::new(Filed { state: state.clone() })]);
    let session = sessions.await.unwrap().ensure(&order("crowd")).await.unwrap().session;
    println!("session {}", session.id());
}

#[test]
fn processes_at_once_make_one_sandbox() {
    // A1, with a process for each.
    let stage = Stage::new();
    let children: Vec<_> = (0..24)
        .map(|_| {
            let mut child = std::process::Command::new(std::env::current_exe().unwrap());
            child
                .args(["--exact", "--nocapture"])
                .arg("crowd::one_of_a_crowd_of_processes_gets_the_session")
                .env(STATE, &stage.state)
                .stdout(std::process::Stdio::piped());
            child.spawn().unwrap()
        })
        .collect();
    let mut ids = BTreeSet::new();
    for child in children {
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let id = text.split_once("session ").unwrap_or_else(|| panic!("{text}")).1;
        ids.insert(id.lines().next().unwrap().to_owned());
    }
    assert_eq!(ids.len(), 1, "{ids:?}");
    assert_eq!(std::fs::read(stage.state.join("made")).unwrap(), b"x");
}

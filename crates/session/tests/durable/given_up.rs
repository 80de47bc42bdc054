//! Callers that give up while a sandbox is made, and those who come next.

use crate::filed::Filed;
use crate::stage::{Stage, order, spec};
use cofferdam_core::fake::{Call, Mishap};
use cofferdam_core::{DurableBackend, ErrorKind};
use cofferdam_session::{
    EnsuredHow, InitCommand, InitState, Phase, Quota, SessionId, SessionOrder, Sessions,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// How long a sandbox takes to be made.
const MAKING: Duration = Duration::from_secs(30);
/// How long a caller waits for it.
const PATIENCE: Duration = Duration::from_secs(5);

fn creates(stage: &Stage) -> usize {
    stage.backend.calls().iter().filter(|call| **call == Call::Create).count()
}

/// Gives up an `ensure` while its sandbox is made, and says which session that is.
async fn given_up(stage: &Stage, sessions: &Sessions, mishap: Mishap) -> SessionId {
    stage.backend.mishap(Call::Create, 1, mishap);
    timeout(PATIENCE, sessions.ensure(&order("a"))).await.unwrap_err();
    let id = sessions.find("a").await.unwrap();
    assert_eq!(sessions.status(&id).await.unwrap().phase, Phase::Creating);
    id
}

#[tokio::test(start_paused = true)]
async fn who_ensures_after_one_who_gave_up_waits_for_the_same_sandbox() {
    let stage = Stage::new();
    let sessions = stage.open().await;
    let begun = Instant::now();
    let id = given_up(&stage, &sessions, Mishap::Late(MAKING)).await;
    let ensured = sessions.ensure(&order("a")).await.unwrap();
    assert_eq!((ensured.session.id(), ensured.how), (&id, EnsuredHow::Created));
    assert_eq!(begun.elapsed().as_secs(), MAKING.as_secs());
    assert_eq!((creates(&stage), stage.backend.alive().len()), (1, 1));
    assert!(sessions.delete(&id).await.unwrap());
    stage.assert_empty();
}

#[tokio::test(start_paused = true)]
async fn what_is_removed_while_it_is_made_is_ended_once_it_stands() {
    let stage = Stage::new();
    let sessions = stage.open().await;
    let begun = Instant::now();
    let id = given_up(&stage, &sessions, Mishap::Late(MAKING)).await;
    assert!(sessions.delete(&id).await.unwrap());
    assert_eq!(begun.elapsed().as_secs(), MAKING.as_secs());
    tokio::time::sleep(MAKING).await;
    stage.assert_empty();
}

#[tokio::test(start_paused = true)]
async fn what_is_never_made_is_waited_for_as_long_as_a_creation_may_take() {
    let stage = Stage::new();
    let sessions = stage.open().await;
    let id = given_up(&stage, &sessions, Mishap::HangBefore).await;
    let begun = Instant::now();
    let ensured = sessions.ensure(&order("a")).await.unwrap();
    assert_eq!((ensured.session.id(), begun.elapsed().as_secs()), (&id, 120));
    assert_eq!((creates(&stage), stage.backend.alive().len()), (2, 1));
}

fn filed(stage: &Stage) -> Vec<Arc<dyn DurableBackend>> {
    vec![Arc::new(Filed { state: stage.state.clone() })]
}

/// Gives up an `ensure` in what is another process to whoever comes next, and opens the sessions there.
async fn given_up_elsewhere(stage: &Stage) -> (Sessions, SessionId) {
    let there = Sessions::open(&stage.state, filed(stage)).await.unwrap();
    timeout(Duration::from_millis(20), there.ensure(&order("a"))).await.unwrap_err();
    let begun = Instant::now();
    let here = Sessions::open(&stage.state, filed(stage)).await.unwrap();
    assert_eq!(begun.elapsed(), Duration::ZERO, "a start waits for nothing");
    let id = here.find("a").await.unwrap();
    assert_eq!(here.status(&id).await.unwrap().phase, Phase::Creating);
    (here, id)
}

#[tokio::test(start_paused = true)]
async fn what_another_process_makes_is_waited_for() {
    let stage = Stage::new();
    let (here, id) = given_up_elsewhere(&stage).await;
    let ensured = here.ensure(&order("a")).await.unwrap();
    assert_eq!((ensured.session.id(), ensured.how), (&id, EnsuredHow::Created));
    assert_eq!(std::fs::read(stage.state.join("made")).unwrap(), b"x");

    let stage = Stage::new();
    let (here, id) = given_up_elsewhere(&stage).await;
    assert!(here.delete(&id).await.unwrap());
    assert_eq!(here.list(&BTreeMap::new()).await.unwrap(), []);
    assert_eq!(filed(&stage)[0].ids().await.unwrap(), []);
}

#[tokio::test(start_paused = true)]
async fn what_another_process_never_finishes_is_an_error_in_the_end() {
    let stage = Stage::new();
    let (here, id) = given_up_elsewhere(&stage).await;
    // Once it stands it is taken back to where its making hung.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let sandbox = filed(&stage)[0].ids().await.unwrap().remove(0);
    let path = |what: &str| stage.state.join(format!("{what}-{sandbox}"));
    std::fs::rename(path("sandbox"), path("making")).unwrap();
    for _ in 0..2 {
        let begun = Instant::now();
        let late = here.ensure(&order("a")).await.unwrap_err();
        assert_eq!((late.kind, begun.elapsed().as_secs()), (ErrorKind::Unavailable, 120));
        assert!(late.message.contains("stays creating"), "{late}");
    }
    let begun = Instant::now();
    let late = here.delete(&id).await.unwrap_err();
    assert_eq!((late.kind, begun.elapsed().as_secs()), (ErrorKind::Unavailable, 120));
    assert!(late.message.contains("still being made"), "{late}");
}

#[tokio::test(start_paused = true)]
async fn a_session_without_a_name_that_nobody_waits_for_is_ended() {
    for mishap in [Mishap::Late(MAKING), Mishap::HangAfter, Mishap::Late(Duration::from_secs(200))]
    {
        let stage = Stage::new();
        let sessions = stage.open().await;
        stage.backend.mishap(Call::Create, 1, mishap);
        let mut order = SessionOrder::new(spec());
        order.owned = true;
        timeout(PATIENCE, sessions.create(&order)).await.unwrap_err();
        tokio::time::sleep(Duration::from_secs(300)).await;
        assert_eq!(sessions.list(&BTreeMap::new()).await.unwrap(), [], "{mishap:?}");
        stage.assert_empty();
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_without_a_name_is_ended_wherever_its_creation_is_dropped() {
    for calls in 0.. {
        let stage = Stage::new();
        let sessions = stage.open().await;
        let before = stage.backend.calls().len();
        let mut order = SessionOrder::new(spec());
        order.init = vec![InitCommand::shell("out=x")];
        let creator = sessions.clone();
        let task = tokio::spawn(async move { creator.create(&order).await.is_ok() });
        while stage.backend.calls().len() < before + calls && !task.is_finished() {
            tokio::task::yield_now().await;
        }
        let ended = task.is_finished();
        task.abort();
        tokio::time::sleep(Duration::from_secs(1)).await;
        let left = sessions.list(&BTreeMap::new()).await.unwrap().len();
        assert_eq!((left, stage.backend.alive().len()), (usize::from(ended), usize::from(ended)));
        if ended {
            // The making, the command, and how both are found written down.
            assert!(calls > 4, "{calls}");
            break;
        }
        stage.assert_empty();
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_without_a_name_is_ended_while_a_command_prepares_it() {
    let mut order = SessionOrder::new(spec());
    order.init = vec![InitCommand::shell("hang")];
    let stage = Stage::new();
    let sessions = stage.open().await;
    timeout(PATIENCE, sessions.create(&order)).await.unwrap_err();
    tokio::time::sleep(Duration::from_secs(1)).await;
    stage.assert_empty();
}

#[tokio::test(start_paused = true)]
async fn a_preparation_that_was_broken_off_is_brought_to_its_end_by_the_next_program() {
    let stage = Stage::new();
    let sessions = stage.open().await;
    let mut wanted = order("a");
    wanted.init = vec![InitCommand::shell("tick=one sleep=60000"), InitCommand::shell("tick=two")];
    timeout(PATIENCE, sessions.ensure(&wanted)).await.unwrap_err();
    let id = sessions.find("a").await.unwrap();
    let init = async |of: &Sessions| of.status(&id).await.unwrap().init;
    let next = stage.open().await;
    assert_eq!(init(&next).await, InitState::Pending, "to open it is not enough");
    let part = next.for_owner("", Quota::default());
    assert_eq!(part.prepare_what_was_left().await.unwrap_err().kind, ErrorKind::Denied);
    assert!(next.prepare_what_was_left().await.unwrap().is_empty());
    assert_eq!(init(&next).await, InitState::Done);
    // Each ran once, the one that ran when its caller went too.
    assert_eq!((stage.backend.ticks("one"), stage.backend.ticks("two")), (1, 1));
    assert!(next.delete(&id).await.unwrap());
    stage.assert_empty();
}

#[tokio::test(start_paused = true)]
async fn only_a_preparation_that_was_broken_off_is_gone_on_with() {
    let stage = Stage::new();
    let sessions = stage.open().await;
    let mut wanted = order("a");
    wanted.init = vec![InitCommand::shell("tick=a sleep=1000")];
    // Somebody is at it.
    let (made, left) = tokio::join!(sessions.ensure(&wanted), async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        sessions.prepare_what_was_left().await.unwrap()
    });
    assert!(left.is_empty() && made.is_ok());
    assert_eq!(stage.backend.ticks("a"), 1);
    // It failed, and is for whoever repairs it.
    let mut failing = order("b");
    failing.init = vec![InitCommand::shell("tick=b exit=3")];
    sessions.ensure(&failing).await.unwrap_err();
    assert!(sessions.prepare_what_was_left().await.unwrap().is_empty());
    assert_eq!(stage.backend.ticks("b"), 1);
    // Somebody paused it, or it fell asleep by itself.
    for (name, is_paused) in [("c", true), ("d", false)] {
        let mut hanging = order(name);
        hanging.init = vec![InitCommand::shell(format!("sleep=60000 tick={name}"))];
        timeout(PATIENCE, sessions.ensure(&hanging)).await.unwrap_err();
        let id = sessions.find(name).await.unwrap();
        match is_paused {
            true => sessions.pause(&id).await.unwrap(),
            false => stage.backend.fall_asleep(stage.backend.alive().last().unwrap()),
        }
        assert!(sessions.prepare_what_was_left().await.unwrap().is_empty());
        let init = sessions.status(&id).await.unwrap().init;
        let expected = if is_paused { InitState::Pending } else { InitState::Done };
        assert_eq!(init, expected, "{name}");
    }
}

#[tokio::test]
async fn what_is_kept_of_a_session_without_a_name_is_named_in_the_error() {
    let stage = Stage::new();
    let sessions = stage.open().await;
    let mut wanted = order("a");
    wanted.name = None;
    wanted.init = vec![InitCommand::shell("err=broken fail-until=one:1")];
    let error = sessions.create(&wanted).await.unwrap_err();
    let all = sessions.list(&BTreeMap::new()).await.unwrap();
    let [kept] = all.as_slice() else { panic!("{all:?}") };
    let id = sessions.find(&kept.id).await.unwrap();
    assert_eq!((error.kind, kept.init), (ErrorKind::SetupFailed, InitState::Failed));
    assert!(error.message.starts_with(&format!("session {} is kept", kept.id)), "{error}");
    assert!(error.message.ends_with("exited 1: broken"), "{error}");
    // What the hint says can be done.
    sessions.resume(&id).await.unwrap();
    assert_eq!(sessions.status(&id).await.unwrap().init, InitState::Done);
    assert!(sessions.delete(&id).await.unwrap());
    // The control: where nothing is kept there is nothing to name.
    stage.backend.mishap(Call::Create, 1, Mishap::FailBefore);
    let error = sessions.create(&wanted).await.unwrap_err();
    assert_eq!(error.message, "the request was lost");
    stage.assert_empty();
}

//! A session that an alarm froze: whatever becomes of its sandbox, nothing runs until a person says so.

use crate::stage::{Stage, order, words};
use cofferdam_core::{Error, ErrorKind, SecretAlarm};
use cofferdam_session::{EnsuredHow, Phase, Session, Sessions};
use std::collections::BTreeMap;

fn alarm() -> SecretAlarm {
    SecretAlarm { secret: "T".parse().unwrap(), host: "elsewhere.test".to_owned(), port: 80 }
}

/// A session that was just frozen, and another one, which is the control.
async fn frozen(stage: &Stage, sessions: &Sessions) -> (Session, Session) {
    let session = sessions.create(&order("a")).await.unwrap();
    stage.backend.raise(&stage.backend.alive()[0], alarm());
    (session, sessions.create(&order("control")).await.unwrap())
}

fn assert_frozen(error: &Error) {
    assert_eq!(error.kind, ErrorKind::Conflict, "{error:?}");
    assert!(error.message.contains("is frozen: the placeholder of secret T"), "{error:?}");
    assert!(error.hint.as_deref().unwrap_or_default().contains("cofferdam resume"), "{error:?}");
}

/// Every way but the purposeful one is refused, and nothing is made.
async fn nothing_wakes(stage: &Stage, sessions: &Sessions, session: &Session) {
    let alive = stage.backend.alive();
    assert_frozen(&sessions.ensure(&order("a")).await.unwrap_err());
    assert_frozen(&session.start(&words(&["tick=ran"])).await.unwrap_err());
    assert_frozen(&sessions.wake(session.id()).await.unwrap_err());
    sessions.gc(false).await.unwrap();
    assert_eq!((stage.backend.alive(), stage.backend.ticks("ran")), (alive, 0));
    let report = sessions.status(session.id()).await.unwrap();
    assert_eq!(report.alarm, Some(alarm()), "{report:?}");
    let listed = sessions.list(&BTreeMap::new()).await.unwrap();
    let alarms: Vec<_> = listed.iter().map(|report| report.alarm.is_some()).collect();
    assert_eq!(alarms, [true, false]);
}

async fn goes_on(stage: &Stage, sessions: &Sessions, session: &Session) {
    sessions.resume(session.id()).await.unwrap();
    let report = sessions.status(session.id()).await.unwrap();
    assert_eq!((report.phase, report.alarm), (Phase::Running, None));
    session.exec(&words(&["tick=ran"]), 100).await.unwrap();
    assert_eq!(stage.backend.ticks("ran"), 1);
    assert_eq!(sessions.ensure(&order("a")).await.unwrap().how, EnsuredHow::Running);
    // A later sandbox is not frozen either.
    sessions.stop(session.id()).await.unwrap();
    assert_eq!(sessions.ensure(&order("a")).await.unwrap().how, EnsuredHow::Recovered);
}

#[tokio::test]
async fn what_an_alarm_froze_goes_on_by_resume_alone() {
    let stage = Stage::new();
    let sessions = stage.open().await;
    let (session, _control) = frozen(&stage, &sessions).await;
    nothing_wakes(&stage, &sessions, &session).await;
    goes_on(&stage, &sessions, &session).await;
}

#[tokio::test]
async fn what_an_alarm_froze_stays_so_over_a_stop() {
    let stage = Stage::new();
    let sessions = stage.open().await;
    let (session, control) = frozen(&stage, &sessions).await;
    for session in [&session, &control] {
        sessions.stop(session.id()).await.unwrap();
    }
    nothing_wakes(&stage, &sessions, &session).await;
    let how = sessions.ensure(&order("control")).await.unwrap().how;
    assert_eq!(how, EnsuredHow::Recovered, "control");
    goes_on(&stage, &sessions, &session).await;
}

#[tokio::test]
async fn what_an_alarm_froze_stays_so_over_the_loss_of_its_keeper_and_of_this_process() {
    let stage = Stage::new();
    let sessions = stage.open().await;
    let (session, control) = frozen(&stage, &sessions).await;
    for sandbox in stage.backend.alive() {
        stage.backend.vanish(&sandbox);
    }
    let ids = (session.id().clone(), control.id().clone());
    drop((sessions, session, control));
    let sessions = stage.open().await;
    let session = sessions.session(ids.0);
    nothing_wakes(&stage, &sessions, &session).await;
    let how = sessions.ensure(&order("control")).await.unwrap().how;
    assert_eq!(how, EnsuredHow::Recovered, "control");
    goes_on(&stage, &sessions, &session).await;
}

#[tokio::test]
async fn an_alarm_of_the_sandbox_that_a_person_let_go_on_freezes_anew_and_rm_ends_it() {
    let stage = Stage::new();
    let sessions = stage.open().await;
    let (session, control) = frozen(&stage, &sessions).await;
    sessions.delete(control.id()).await.unwrap();
    sessions.stop(session.id()).await.unwrap();
    sessions.resume(session.id()).await.unwrap();
    stage.backend.raise(&stage.backend.alive()[0], alarm());
    sessions.stop(session.id()).await.unwrap();
    assert_frozen(&sessions.ensure(&order("a")).await.unwrap_err());
    assert!(sessions.delete(session.id()).await.unwrap());
    stage.assert_empty();
    // The name is free, and who has it next is not frozen.
    assert_eq!(sessions.ensure(&order("a")).await.unwrap().how, EnsuredHow::Created);
}

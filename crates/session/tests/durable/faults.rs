//! Everything that can go wrong, at every place where it can.
//!
//! Each operation is done once to count its calls; then once for each call and each way in which
//! that can go wrong, and once for each point at which its future can be dropped. After each the
//! program starts again, and then: nothing lives without a row that owes its end, nothing is half
//! done, no session and no home directory is lost, and the name can be used as if nothing had been.

use crate::stage::{Stage, order, spec, words};
use cofferdam_core::fake::{Call, Mishap};
use cofferdam_session::{InitCommand, Phase, RunOrder, SessionId, SessionOrder, Sessions};
use std::collections::{BTreeMap, BTreeSet};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

/// What is there before an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    Nothing,
    Running,
    Paused,
    Asleep,
    Lost,
    Stopped,
}

/// An operation of a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Ensure,
    Pause,
    Resume,
    Stop,
    Delete,
    Extend,
    Exec,
    Run,
    Collect,
}

const CASES: [(Before, Operation); 18] = [
    (Before::Nothing, Operation::Ensure),
    (Before::Running, Operation::Ensure),
    (Before::Paused, Operation::Ensure),
    (Before::Asleep, Operation::Ensure),
    (Before::Lost, Operation::Ensure),
    (Before::Stopped, Operation::Ensure),
    (Before::Running, Operation::Pause),
    (Before::Lost, Operation::Pause),
    (Before::Paused, Operation::Resume),
    (Before::Running, Operation::Stop),
    (Before::Running, Operation::Delete),
    (Before::Paused, Operation::Delete),
    (Before::Lost, Operation::Delete),
    (Before::Running, Operation::Extend),
    (Before::Running, Operation::Exec),
    (Before::Asleep, Operation::Exec),
    (Before::Nothing, Operation::Run),
    (Before::Lost, Operation::Collect),
];

fn wanted() -> SessionOrder {
    let mut order = order("a");
    order.init = vec![InitCommand::shell("tick=init"), InitCommand::shell("out=x")];
    order.ttl = Some(Duration::from_secs(3600 * 24 * 365));
    order
}

async fn prepare(stage: &Stage, before: Before) -> (Sessions, Option<SessionId>) {
    let sessions = stage.open().await;
    if before == Before::Nothing {
        return (sessions, None);
    }
    let session = sessions.ensure(&wanted()).await.unwrap().session;
    let id = session.id().clone();
    std::fs::write(stage.home(&id).join("kept"), "x").unwrap();
    let sandbox = stage.backend.alive().remove(0);
    match before {
        Before::Nothing | Before::Running => {}
        Before::Paused => sessions.pause(&id).await.unwrap(),
        Before::Asleep => stage.backend.fall_asleep(&sandbox),
        Before::Lost => stage.backend.vanish(&sandbox),
        Before::Stopped => sessions.stop(&id).await.unwrap(),
    }
    (sessions, Some(id))
}

/// Does it. Whether it succeeds is not the question here.
async fn operate(sessions: Sessions, id: Option<SessionId>, operation: Operation) -> bool {
    let named = || id.clone().unwrap();
    match operation {
        Operation::Ensure => sessions.ensure(&wanted()).await.is_ok(),
        Operation::Pause => sessions.pause(&named()).await.is_ok(),
        Operation::Resume => sessions.resume(&named()).await.is_ok(),
        Operation::Stop => sessions.stop(&named()).await.is_ok(),
        Operation::Delete => sessions.delete(&named()).await.is_ok(),
        Operation::Extend => sessions.extend(&named(), Duration::from_secs(60)).await.is_ok(),
        Operation::Exec => {
            let session = sessions.session(named());
            session.exec(&words(&["tick=exec", "out=x"]), 10).await.is_ok()
        }
        Operation::Run => {
            let mut order = RunOrder::new("task", spec());
            order.preflight = vec![InitCommand::shell("tick=preflight")];
            let work = |session: cofferdam_session::Session| async move {
                session.exec(&words(&["tick=exec"]), 10).await
            };
            sessions.run(&order, work).await.is_ok()
        }
        Operation::Collect => sessions.gc(false).await.is_ok(),
    }
}

/// What lives, against what is written down.
fn nothing_lives_unrecorded(stage: &Stage, what: &str) {
    let alive = stage.backend.alive();
    let db = rusqlite::Connection::open(stage.state.join("sessions.db")).unwrap();
    let mut query = db.prepare("SELECT id, incarnation, phase FROM sessions").unwrap();
    let rows: BTreeMap<String, String> = query
        .query_map([], |row| {
            let id = format!("{}.{}", row.get::<_, String>(0)?, row.get::<_, u32>(1)?);
            Ok((id, row.get(2)?))
        })
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    for sandbox in alive {
        let phase = rows.get(sandbox.as_str()).and_then(|name| Phase::from_name(name));
        assert!(
            phase.is_some_and(Phase::owes_an_end),
            "{what}: {sandbox} lives and its row says {phase:?}; {rows:?}"
        );
    }
}

/// What is dead has its end written down, and nothing of it is owed.
fn nothing_dead_is_unended(stage: &Stage, what: &str) {
    let alive = stage.backend.alive();
    let db = rusqlite::Connection::open(stage.state.join("sessions.db")).unwrap();
    let unended = "SELECT session || '.' || incarnation FROM incarnations \
                   WHERE provisioned=1 AND ended=0";
    let owed = "SELECT id || '.' || incarnation FROM sessions WHERE record IS NOT NULL";
    for question in [unended, owed] {
        let mut query = db.prepare(question).unwrap();
        let found = query.query_map([], |row| row.get::<_, String>(0)).unwrap();
        for sandbox in found.map(Result::unwrap) {
            let lives = alive.iter().any(|one| one.as_str() == sandbox);
            assert!(lives, "{what}: {sandbox} is dead, and its end is owed");
        }
    }
}

/// Starts again, and checks that all is well.
async fn recover(stage: &Stage, id: Option<&SessionId>, operation: Operation, what: &str) {
    stage.backend.calm();
    let sessions = stage.open().await;
    sessions.gc(false).await.unwrap();
    let collected = sessions.gc(false).await.unwrap();
    assert_eq!(collected.failed, [], "{what}");
    nothing_lives_unrecorded(stage, what);
    nothing_dead_is_unended(stage, what);
    for report in sessions.list(&BTreeMap::new()).await.unwrap() {
        assert!(!report.phase.is_passing(), "{what}: {report:?}");
        assert_eq!(report.cleanup_failed, None, "{what}");
    }
    let found = sessions.find("a").await.ok();
    if let Some(id) = id.filter(|_| operation != Operation::Delete) {
        assert_eq!(found.as_ref(), Some(id), "{what}: the session is lost");
        assert!(stage.home(id).join("kept").exists(), "{what}: the home directory is lost");
    }
    let again = sessions.ensure(&wanted()).await.unwrap_or_else(|e| panic!("{what}: {e:?}"));
    let output = again.session.exec(&words(&["out=well"]), 10).await;
    assert_eq!(output.unwrap_or_else(|e| panic!("{what}: {e:?}")).stdout, b"well");
    assert_eq!(stage.backend.alive().len(), 1, "{what}");
    let events = sessions.events(None, 0).await.unwrap();
    assert!(events.windows(2).all(|pair| pair[0].seq < pair[1].seq), "{what}: A13");
    sessions.delete(again.session.id()).await.unwrap_or_else(|e| panic!("{what}: {e:?}"));
    stage.assert_empty();
    each_end_is_said_once(&sessions, what).await;
    let most = if operation == Operation::Exec { 1 } else { 2 };
    assert!(stage.backend.ticks("exec") <= most, "{what}: it ran twice");
}

/// A3: each incarnation was said to end once, if it ever was.
async fn each_end_is_said_once(sessions: &Sessions, what: &str) {
    let mut ends = BTreeMap::new();
    let mut begun = BTreeSet::new();
    for event in sessions.events(None, 0).await.unwrap() {
        let of = (
            event.session.clone(),
            event.data.get("incarnation").and_then(serde_json::Value::as_u64),
        );
        if event.kind == "destroyed" {
            *ends.entry(of).or_insert(0) += 1;
        } else if event.kind == "provisioned" {
            begun.insert(of);
        }
    }
    assert!(ends.values().all(|count| *count == 1), "{what}: {ends:?}");
    assert!(begun.iter().all(|one| ends.contains_key(one)), "{what}: {begun:?}, {ends:?}");
}

async fn every_mishap(mishaps: &[Mishap]) {
    for (before, operation) in CASES {
        let stage = Stage::new();
        let (sessions, id) = prepare(&stage, before).await;
        let begun = stage.backend.calls().len();
        operate(sessions, id, operation).await;
        let calls = stage.backend.calls().split_off(begun);
        for call in Call::ALL {
            let count = calls.iter().filter(|made| **made == call).count();
            for nth in 1..=count {
                for mishap in mishaps {
                    one_mishap((before, operation), (call, nth, *mishap)).await;
                }
            }
        }
    }
}

async fn one_mishap(
    (before, operation): (Before, Operation),
    (call, nth, mishap): (Call, usize, Mishap),
) {
    let what = format!("{operation:?} of {before:?}, {mishap:?} at {call:?} {nth}");
    let stage = Stage::new();
    let (sessions, id) = prepare(&stage, before).await;
    stage.backend.mishap(call, nth, mishap);
    let done = operate(sessions, id.clone(), operation);
    // A run ends itself when it is dropped; here the process dies with it.
    let died = tokio::select! {
        _ = done => false,
        () = stage.backend.crashed() => true,
        () = tokio::time::sleep(Duration::from_secs(3600)) => panic!("{what}: it hangs"),
    };
    assert_eq!(died, mishap.is_crash(), "{what}");
    if !matches!(mishap, Mishap::Late(_)) {
        nothing_lives_unrecorded(&stage, &what);
    }
    // What comes late has come.
    tokio::time::sleep(Duration::from_secs(600)).await;
    recover(&stage, id.as_ref(), operation, &what).await;
}

#[tokio::test(start_paused = true)]
async fn failures_and_lost_replies_leave_nothing_behind() {
    every_mishap(&[Mishap::FailBefore, Mishap::FailAfter, Mishap::Vanish]).await;
}

#[tokio::test(start_paused = true)]
async fn answers_that_come_late_or_never_leave_nothing_behind() {
    let late = [Duration::from_secs(1), Duration::from_secs(200)].map(Mishap::Late);
    every_mishap(&[Mishap::HangBefore, Mishap::HangAfter, late[0], late[1]]).await;
}

#[tokio::test(start_paused = true)]
async fn crashes_at_every_call_leave_nothing_behind() {
    // A2.
    every_mishap(&[Mishap::CrashBefore, Mishap::CrashAfter]).await;
}

/// Polls a future at most so often; whether it ended.
async fn polled<F: Future>(mut future: Pin<&mut F>, mut polls: usize) -> bool {
    std::future::poll_fn(move |context| {
        if polls == 0 {
            return Poll::Ready(false);
        }
        polls -= 1;
        match future.as_mut().poll(context) {
            Poll::Ready(_) => Poll::Ready(true),
            Poll::Pending => {
                // The last poll is followed by a look that drops it.
                if polls == 0 {
                    context.waker().wake_by_ref();
                }
                Poll::Pending
            }
        }
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn a_future_dropped_at_any_point_leaves_nothing_behind() {
    // A2, between any two writes too.
    for (before, operation) in CASES {
        for polls in 1.. {
            let what = format!("{operation:?} of {before:?}, dropped after {polls} polls");
            let stage = Stage::new();
            let (sessions, id) = prepare(&stage, before).await;
            let ended = {
                let done = pin!(operate(sessions, id.clone(), operation));
                polled(done, polls).await
            };
            nothing_lives_unrecorded(&stage, &what);
            // A run ends itself in the background.
            tokio::time::sleep(Duration::from_secs(1)).await;
            recover(&stage, id.as_ref(), operation, &what).await;
            if ended {
                break;
            }
            assert!(polls < 500, "{what}");
        }
    }
}

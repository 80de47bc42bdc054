//! The contract of a scoped run: its sandbox is ended exactly once on every way out.

use crate::stage::{Stage, spec, words};
use cofferdam_core::fake::{Call, Mishap};
use cofferdam_core::{Error, ErrorKind};
use cofferdam_session::{
    InitCommand, MAX_EVENTS, OnFailure, Phase, RunError, RunFailure, RunOrder, Session, Sessions,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::Notify;

fn order() -> RunOrder {
    RunOrder::new("task 7", spec())
}

/// The events of the only session: kind, and reason where there is one.
async fn events(sessions: &Sessions) -> Vec<String> {
    let events = sessions.events(None, 0).await.unwrap();
    let told =
        events.iter().filter(|event| ["provisioned", "destroyed"].contains(&event.kind.as_str()));
    told.map(|event| {
        assert_eq!(event.data["label"], "task 7");
        assert_eq!(event.data["id"], event.session);
        match event.data.get("reason").and_then(|reason| reason.as_str()) {
            Some(reason) => format!("{} {reason}", event.kind),
            None => event.kind.clone(),
        }
    })
    .collect()
}

fn destroys(stage: &Stage) -> usize {
    stage.backend.calls().iter().filter(|call| **call == Call::Destroy).count()
}

async fn run_words(session: Session, text: &[&str]) -> Result<i32, Error> {
    let output = session.exec(&words(text), 1000).await?;
    Ok(output.status.ended.map_or(-1, |ended| ended.ending.exit_code()))
}

// A3, one test for each way out.

#[tokio::test]
async fn a_result_is_returned_as_it_is_and_the_sandbox_is_ended_once() {
    let stage = Stage::new();
    let sessions = stage.open().await;
    let work = |session| async move { run_words(session, &["exit=5"]).await };
    let ran = sessions.run(&order(), work).await.unwrap();
    assert_eq!(ran.value, 5);
    assert!(ran.cleanup.is_none());
    assert_eq!(destroys(&stage), 1);
    assert_eq!(events(&sessions).await, ["provisioned", "destroyed success"]);
    stage.assert_empty();
}

#[tokio::test]
async fn a_run_may_take_for_ever() {
    let stage = Stage::new();
    let sessions = stage.open().await;
    let order = RunOrder { limit: Duration::MAX, ..order() };
    let work = |session| async move { run_words(session, &["exit=5"]).await };
    assert_eq!(sessions.run(&order, work).await.unwrap().value, 5);
    stage.assert_empty();
}

#[tokio::test]
async fn control_files_are_told_however_much_was_done() {
    let stage = Stage::new();
    let sessions = stage.open().await;
    // More events than are told at once.
    let work = |session: Session| async move {
        for _ in 0..=MAX_EVENTS / 2 {
            run_words(session.clone(), &["exit=0"]).await?;
        }
        Ok::<_, Error>(())
    };
    let ran = sessions.run(&order(), work).await.unwrap();
    assert_eq!(ran.new_control_files, Some(Vec::new()));
}

#[tokio::test]
async fn an_error_of_the_work_is_returned_as_it_is() {
    let stage = Stage::new();
    let sessions = stage.open().await;
    let ran = sessions.run(&order(), |_| async { Err::<(), _>("mine") }).await;
    assert!(matches!(ran, Err(RunError { failure: RunFailure::Work("mine"), .. })));
    assert_eq!(destroys(&stage), 1);
    assert_eq!(events(&sessions).await, ["provisioned", "destroyed error"]);
    stage.assert_empty();
}

#[tokio::test]
async fn a_panic_goes_on_after_the_sandbox_was_ended() {
    let stage = Stage::new();
    let sessions = stage.open().await;
    let inner = sessions.clone();
    let task = tokio::spawn(async move {
        let work = |_| async { panic!("by the work") };
        inner.run::<(), (), _>(&order(), work).await.is_ok()
    });
    assert!(task.await.unwrap_err().is_panic());
    assert_eq!(destroys(&stage), 1);
    assert_eq!(events(&sessions).await, ["provisioned", "destroyed error"]);
    stage.assert_empty();
}

struct Dropped(Arc<AtomicBool>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[tokio::test(start_paused = true)]
async fn work_that_takes_too_long_is_dropped_before_the_sandbox_is_ended() {
    // A7.
    let stage = Stage::new();
    let sessions = stage.open().await;
    let dropped = Arc::new(AtomicBool::new(false));
    let flag = Dropped(Arc::clone(&dropped));
    let work = |_| async move {
        let _flag = flag;
        std::future::pending::<Result<(), ()>>().await
    };
    let ran = sessions.run(&order(), work).await.unwrap_err();
    assert!(matches!(ran.failure, RunFailure::TimedOut(limit) if limit.as_secs() == 300));
    assert!(dropped.load(Ordering::SeqCst));
    assert_eq!(destroys(&stage), 1);
    assert_eq!(events(&sessions).await, ["provisioned", "destroyed timeout"]);
    stage.assert_empty();
}

#[tokio::test]
async fn a_run_that_failed_says_why_as_any_error_does() {
    let stage = Stage::new();
    let sessions = stage.open().await;
    let work = |_| async { Err::<(), _>(Error::new(ErrorKind::Io, "mine").source("cause")) };
    let failed: Box<dyn std::error::Error> =
        Box::new(sessions.run(&order(), work).await.unwrap_err());
    assert_eq!(failed.to_string(), "mine");
    assert_eq!(failed.source().unwrap().to_string(), "cause");
}

#[tokio::test(start_paused = true)]
async fn the_limit_covers_the_making_and_the_pre_flight_commands() {
    for (call, mishap) in [(Call::Create, Mishap::HangAfter), (Call::Start, Mishap::HangBefore)] {
        let stage = Stage::new();
        let sessions = stage.open().await;
        stage.backend.mishap(call, 1, mishap);
        let mut order = order();
        order.limit = Duration::from_secs(10);
        order.preflight = vec![InitCommand::shell("exit=0")];
        let begun = tokio::time::Instant::now();
        let ran = sessions.run(&order, |_| async { Ok::<_, ()>(()) }).await.unwrap_err();
        assert!(matches!(ran.failure, RunFailure::TimedOut(_)), "{:?}", ran.failure);
        // What held is said where a sandbox stood, and nothing is claimed where none did.
        assert_eq!(ran.enforced.is_some(), call == Call::Start);
        assert!(begun.elapsed() < Duration::from_secs(12));
        stage.assert_empty();
    }
}

#[tokio::test]
async fn a_future_that_is_dropped_ends_its_sandbox() {
    let stage = Stage::new();
    let sessions = stage.open().await;
    let begun = Arc::new(Notify::new());
    let signal = Arc::clone(&begun);
    let inner = sessions.clone();
    let task = tokio::spawn(async move {
        let work = |_| async move {
            signal.notify_one();
            std::future::pending::<Result<(), ()>>().await
        };
        inner.run(&order(), work).await.is_ok()
    });
    begun.notified().await;
    task.abort();
    task.await.unwrap_err();
    let deadline = tokio::time::Instant::now() + Duration::from_secs(10);
    while !sessions.list(&BTreeMap::new()).await.unwrap().is_empty() {
        assert!(tokio::time::Instant::now() < deadline, "it is not ended");
        tokio::task::yield_now().await;
    }
    assert_eq!(destroys(&stage), 1);
    assert_eq!(events(&sessions).await, ["provisioned", "destroyed canceled"]);
}

#[tokio::test(start_paused = true)]
async fn a_future_that_is_dropped_while_its_sandbox_is_made_ends_that() {
    for call in [Mishap::Late(Duration::from_secs(30)), Mishap::HangAfter] {
        let stage = Stage::new();
        let sessions = stage.open().await;
        stage.backend.mishap(Call::Create, 1, call);
        let inner = sessions.clone();
        let task = tokio::spawn(async move {
            inner.run(&order(), |_| async { Ok::<_, ()>(()) }).await.is_ok()
        });
        tokio::time::sleep(Duration::from_secs(5)).await;
        // The control: it is being made.
        let listed = sessions.list(&BTreeMap::new()).await.unwrap();
        assert_eq!(listed.iter().map(|one| one.phase).collect::<Vec<_>>(), [Phase::Creating]);
        task.abort();
        task.await.unwrap_err();
        // Longer than anybody waits for one whose end nobody hears of.
        tokio::time::sleep(Duration::from_secs(130)).await;
        assert_eq!(stage.backend.alive(), [], "{call:?}");
        assert_eq!(sessions.list(&BTreeMap::new()).await.unwrap().len(), 0, "{call:?}");
        assert_eq!(destroys(&stage), 1);
        stage.assert_empty();
    }
}

#[tokio::test(start_paused = true)]
async fn a_sandbox_that_stands_after_its_run_was_over_is_ended() {
    let stage = Stage::new();
    let sessions = stage.open().await;
    stage.backend.mishap(Call::Create, 1, Mishap::Late(Duration::from_secs(30)));
    let order = RunOrder { limit: Duration::from_secs(10), ..order() };
    let ran = sessions.run(&order, |_| async { Ok::<_, ()>(()) }).await.unwrap_err();
    assert!(matches!(ran.failure, RunFailure::TimedOut(_)), "{:?}", ran.failure);
    tokio::time::sleep(Duration::from_secs(40)).await;
    assert_eq!(destroys(&stage), 1);
    stage.assert_empty();
}

#[tokio::test]
async fn a_run_whose_process_died_is_ended_by_the_next_start() {
    let stage = Stage::new();
    let sessions = stage.open().await;
    let begun = Arc::new(Notify::new());
    let signal = Arc::clone(&begun);
    // A runtime that is shut down has nobody left who could end anything.
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.spawn(async move {
        let work = |_| async move {
            signal.notify_one();
            std::future::pending::<Result<(), ()>>().await
        };
        sessions.run(&order(), work).await.is_ok()
    });
    begun.notified().await;
    // One that lives is left alone.
    let sessions = stage.open().await;
    assert_eq!(stage.backend.alive().len(), 1);
    runtime.shutdown_background();
    let deadline = tokio::time::Instant::now() + Duration::from_secs(10);
    while !stage.backend.alive().is_empty() {
        assert!(tokio::time::Instant::now() < deadline, "it is not ended");
        tokio::time::sleep(Duration::from_millis(2)).await;
        stage.open().await;
    }
    assert_eq!(events(&sessions).await, ["provisioned", "destroyed canceled"]);
}

#[tokio::test]
async fn a_sandbox_that_cannot_be_made_is_an_error_without_an_event() {
    // A5.
    let stage = Stage::new();
    let sessions = stage.open().await;
    stage.backend.mishap(Call::Create, 1, Mishap::FailBefore);
    let called = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&called);
    let work = move |_| async move {
        flag.store(true, Ordering::SeqCst);
        Ok::<_, ()>(())
    };
    let failed = sessions.run(&order(), work).await.unwrap_err();
    let RunFailure::Provision(error) = failed.failure else { panic!("{:?}", failed.failure) };
    assert_eq!(error.message, "the request was lost");
    assert!(!called.load(Ordering::SeqCst));
    assert_eq!(events(&sessions).await, [""; 0]);
    assert_eq!(destroys(&stage), 0);
    stage.assert_empty();
}

#[tokio::test]
async fn a_pre_flight_command_that_fails_is_named_with_its_code_and_output() {
    // A6.
    let stage = Stage::new();
    let sessions = stage.open().await;
    let mut order = order();
    order.preflight =
        vec![InitCommand::shell("tick=first"), InitCommand::shell("err=no-network exit=7")];
    let work = |_| async { panic!("the work is not begun") };
    let failed = sessions.run::<(), Error, _>(&order, work).await.unwrap_err();
    let RunFailure::Preflight(how) = &failed.failure else { panic!("{:?}", failed.failure) };
    assert_eq!((how.exit_code, how.output.as_str()), (Some(7), "no-network"));
    let error = Error::from(failed);
    assert_eq!(error.kind, ErrorKind::SetupFailed);
    for part in ["err=no-network exit=7", "exited 7", "no-network"] {
        assert!(error.message.contains(part), "{error}");
    }
    assert_eq!(stage.backend.ticks("first"), 1);
    assert_eq!(events(&sessions).await, ["provisioned", "destroyed error"]);
    stage.assert_empty();
}

#[tokio::test]
async fn an_error_of_the_clean_up_travels_beside_the_first_and_is_retried() {
    let stage = Stage::new();
    let sessions = stage.open().await;
    stage.backend.mishap(Call::Destroy, 1, Mishap::FailBefore);
    let failed = sessions.run(&order(), |_| async { Err::<(), _>("mine") }).await.unwrap_err();
    assert!(matches!(failed.failure, RunFailure::Work("mine")));
    assert!(failed.cleanup.is_some());
    let left = sessions.list(&BTreeMap::new()).await.unwrap();
    assert_eq!(left[0].phase, Phase::Deleting);
    assert!(left[0].cleanup_failed.as_ref().unwrap().contains("the request was lost"));
    assert_eq!(stage.backend.alive().len(), 1);
    stage.open().await;
    stage.assert_empty();
    assert_eq!(events(&sessions).await, ["provisioned", "destroyed error"]);
}

#[tokio::test]
async fn a_failed_run_is_kept_where_that_is_wanted() {
    for (on_failure, phase) in
        [(OnFailure::Stop, Phase::Stopped), (OnFailure::Preserve, Phase::Paused)]
    {
        let stage = Stage::new();
        let sessions = stage.open().await;
        let mut order = order();
        order.on_failure = on_failure;
        order.spec.env.insert("TOKEN".into(), "hunter2".into());
        let work = |session: Session| async move {
            session.exec(&words(&["out=evidence", "exit=1"]), 100).await?;
            Err::<(), _>(Error::new(ErrorKind::Io, "mine"))
        };
        let kept = sessions.run(&order, work).await.unwrap_err().kept.unwrap();
        let report = sessions.status(&kept.session).await.unwrap();
        assert_eq!(report.phase, phase);
        assert!(report.lease_until_ms.is_some());
        let files: Vec<_> = std::fs::read_dir(&kept.bundle).unwrap().flatten().collect();
        assert_eq!(files.len(), 4, "{files:?}");
        for file in &files {
            let text = std::fs::read_to_string(file.path()).unwrap();
            assert!(!text.contains("hunter2"), "{file:?}");
        }
        // The next start does not take it for abandoned.
        let sessions = stage.open().await;
        assert!(sessions.delete(&kept.session).await.unwrap());
        assert!(!kept.bundle.exists());
        stage.assert_empty();
        let ran = sessions.run(&order, |_| async { Ok::<_, Error>(()) }).await;
        assert!(ran.is_ok());
        stage.assert_empty();
    }
}

#[tokio::test]
async fn a_bundle_holds_the_output_of_the_latest_commands() {
    let stage = Stage::new();
    let sessions = stage.open().await;
    let mut order = order();
    order.on_failure = OnFailure::Stop;
    let work = |session: Session| async move {
        for number in 0..66 {
            session.exec(&words(&[&format!("out=number-{number}.")]), 100).await?;
            // Which one is later is known by the millisecond.
            tokio::time::sleep(std::time::Duration::from_millis(3)).await;
        }
        Err::<(), _>(Error::new(ErrorKind::Io, "mine"))
    };
    let kept = sessions.run(&order, work).await.unwrap_err().kept.unwrap();
    let read = |path| std::fs::read_to_string(path).unwrap();
    let files = std::fs::read_dir(&kept.bundle).unwrap().map(|entry| entry.unwrap().path());
    let outputs: Vec<String> =
        files.filter(|path| path.extension().is_some_and(|it| it == "stdout")).map(read).collect();
    assert_eq!(outputs.len(), 64);
    for (number, is_there) in [(0, false), (1, false), (2, true), (65, true)] {
        let text = format!("number-{number}.");
        assert_eq!(outputs.iter().any(|output| output.contains(&text)), is_there, "{text}");
    }
    // All of them are in the list.
    let listed: Vec<serde_json::Value> =
        serde_json::from_str(&read(kept.bundle.join("execs.json"))).unwrap();
    assert_eq!(listed.len(), 66);
    assert!(sessions.delete(&kept.session).await.unwrap());
    stage.assert_empty();
}

#[tokio::test]
async fn runs_at_once_share_nothing() {
    let stage = Stage::new();
    let sessions = stage.open().await;
    let runs = (0..20).map(|n| {
        let sessions = sessions.clone();
        tokio::spawn(async move {
            let exit = format!("exit={n}");
            let work = |session| async move { run_words(session, &[&exit]).await };
            sessions.run(&order(), work).await.unwrap().value
        })
    });
    for (n, run) in runs.collect::<Vec<_>>().into_iter().enumerate() {
        assert_eq!(run.await.unwrap(), i32::try_from(n).unwrap());
    }
    let creates = stage.backend.calls().iter().filter(|call| **call == Call::Create).count();
    assert_eq!((creates, destroys(&stage)), (20, 20));
    stage.assert_empty();
}

//! Asleep and awake.

use crate::stage::{Stage, detached, exec, id};
use cofferdam::{
    Cause, Deadlines, DestroyReason, DurableBackend, Ending, ErrorKind, ExecInput, ExecOrder,
    Happened, SandboxRecord, SandboxStatus, Seen, Stdin,
};
use std::time::{Duration, Instant};

/// Counts by the length of a file of the workspace, as fast as it can.
const COUNTS: &str = "while :; do echo >>counter; done";

pub(crate) fn idle_after(ms: u64) -> Deadlines {
    Deadlines { idle_pause_ms: Some(ms), ..Deadlines::default() }
}

fn counter(stage: &Stage) -> u64 {
    std::fs::metadata(stage.ground.workspace().join("counter")).map_or(0, |file| file.len())
}

async fn counts_on(stage: &Stage, from: u64) {
    crate::ground::until("it counts", || counter(stage) > from);
}

/// Waits until it is paused.
pub(crate) async fn asleep(stage: &Stage, record: &SandboxRecord) {
    let end = Instant::now() + crate::stage::PATIENCE;
    while stage.backend.status(record).await.unwrap() != SandboxStatus::Paused {
        assert!(Instant::now() < end, "it does not go to sleep");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn paused_nothing_moves_and_resumed_everything_goes_on() {
    let stage = Stage::new("kept-pause");
    let record = stage.make("kept-pause").await;
    stage.backend.start(&record, &detached("counts", COUNTS)).await.unwrap();
    counts_on(&stage, 0).await;
    let mut reads = detached("reads", "read x; echo $x");
    reads.command.stdin = Stdin::Piped;
    stage.backend.start(&record, &reads).await.unwrap();
    for _ in 0..3 {
        for _ in 0..2 {
            stage.backend.pause(&record).await.unwrap();
        }
        assert_eq!(stage.backend.status(&record).await.unwrap(), SandboxStatus::Paused);
        let before = counter(&stage);
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(counter(&stage), before);
        let start = stage.backend.start(&record, &exec("no", "true")).await.unwrap_err();
        assert_eq!(start.kind, ErrorKind::Conflict);
        assert!(start.message.contains("paused"), "{start:?}");
        let bytes = ExecInput::Bytes(b"x\n".to_vec());
        let input = stage.backend.input(&record, &id("reads"), &bytes).await.unwrap_err();
        assert_eq!(input.kind, ErrorKind::Conflict);
        // What it did before can be asked for.
        assert_eq!(stage.backend.execs(&record).await.unwrap().len(), 2);
        for _ in 0..2 {
            stage.backend.resume(&record).await.unwrap();
        }
        counts_on(&stage, before).await;
    }
    let bytes = ExecInput::Bytes(b"x\n".to_vec());
    stage.backend.input(&record, &id("reads"), &bytes).await.unwrap();
    assert_eq!(stage.wait(&record, "reads").await.ended.unwrap().ending, Ending::Exited(0));
    // A paused one can be destroyed.
    stage.backend.pause(&record).await.unwrap();
    stage.backend.destroy(&record, DestroyReason::Success).await.unwrap();
    let happened = stage.happened(&record.id).await;
    let pauses = happened.iter().filter(|h| matches!(h, Happened::Paused { idle: false, .. }));
    assert_eq!(pauses.count(), 4);
    assert_eq!(happened.iter().filter(|h| **h == Happened::Resumed).count(), 3);
    stage.end(&record).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_time_of_a_command_stands_still_while_paused() {
    let stage = Stage::new("kept-clock");
    let record = stage.make("kept-clock").await;
    let mut order = exec("timed", "sleep 300");
    order.command.timeout = Some(Duration::from_millis(600));
    stage.backend.start(&record, &order).await.unwrap();
    stage.backend.pause(&record).await.unwrap();
    tokio::time::sleep(Duration::from_millis(1000)).await;
    stage.backend.resume(&record).await.unwrap();
    let status = stage.backend.watch(&record, &id("timed"), Seen::default(), Duration::ZERO).await;
    assert_eq!(status.unwrap().ended, None);
    let ended = stage.wait(&record, "timed").await.ended.unwrap();
    assert_eq!(ended.ending, Ending::Killed(Cause::Time));
    stage.end(&record).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_it_is_paused_and_in_use_never() {
    let stage = Stage::new("kept-idle");
    let record = stage.make_with("kept-idle", idle_after(150)).await;
    stage.backend.start(&record, &detached("counts", COUNTS)).await.unwrap();
    // A detached command is no use.
    asleep(&stage, &record).await;
    stage.backend.resume(&record).await.unwrap();
    // A command in the foreground is one, however long it takes.
    assert_eq!(stage.run(&record, &exec("slow", "sleep 0.7")).await, Ending::Exited(0));
    let slept = |happened: &[Happened]| {
        happened.iter().filter(|h| matches!(h, Happened::Paused { idle: true, .. })).count()
    };
    assert_eq!(slept(&stage.happened(&record.id).await), 1);
    asleep(&stage, &record).await;
    stage.backend.resume(&record).await.unwrap();
    // So is one that keeps awake, until it ends.
    let awake = ExecOrder { keep_awake: true, ..detached("awake", "sleep 0.7") };
    stage.backend.start(&record, &awake).await.unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(stage.backend.status(&record).await.unwrap(), SandboxStatus::Running);
    asleep(&stage, &record).await;
    stage.backend.resume(&record).await.unwrap();
    // So is somebody who waits for news.
    stage.backend.start(&record, &detached("quiet", "sleep 300")).await.unwrap();
    let (quiet, long) = (id("quiet"), Duration::from_millis(700));
    let watch = stage.backend.watch(&record, &quiet, Seen::default(), long);
    let look = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        stage.backend.status(&record).await.unwrap()
    };
    let (_, status) = tokio::join!(watch, look);
    assert_eq!(status, SandboxStatus::Running);
    asleep(&stage, &record).await;
    assert_eq!(slept(&stage.happened(&record.id).await), 4);
    // Without the deadline it stays awake.
    stage.backend.resume(&record).await.unwrap();
    stage.backend.set_deadlines(&record, &Deadlines::default()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert_eq!(stage.backend.status(&record).await.unwrap(), SandboxStatus::Running);
    stage.end(&record).await;
}

/// The pins of a workspace hold after a pause during which the host took a name away.
#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_the_host_changed_meanwhile_is_pinned_again() {
    let stage = Stage::new("kept-pins");
    let config = stage.ground.workspace().join(".git/config");
    std::fs::write(&config, "[core]\n").unwrap();
    let record = stage.make("kept-pins").await;
    let tries = |name: &str| exec(name, "echo hostile >>.git/config");
    assert_ne!(stage.run(&record, &tries("before")).await, Ending::Exited(0));
    stage.backend.pause(&record).await.unwrap();
    std::fs::write(config.with_extension("new"), "[core]\n").unwrap();
    std::fs::rename(config.with_extension("new"), &config).unwrap();
    stage.backend.resume(&record).await.unwrap();
    assert_ne!(stage.run(&record, &tries("after")).await, Ending::Exited(0));
    assert_eq!(std::fs::read_to_string(&config).unwrap(), "[core]\n");
    stage.end(&record).await;
}

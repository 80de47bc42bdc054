//! What counts on the whole machine.

use crate::ground::until;
use crate::stage::{PATIENCE, Stage, detached, exec, id};
use cofferdam::{
    DestroyReason, DurableBackend, Ending, ErrorKind, SandboxStatus, Seen, kept_backend,
};
use std::sync::Arc;
use std::time::Duration;

/// The most memory that a keeper has for itself.
const MOST_PRIVATE_KIB: u64 = 1024;
/// The most that the first process of its sandbox has, when nothing happens.
const MOST_OF_FIRST_KIB: u64 = 160;

/// The memory that is a process's own: what it wrote and shares with no copy of it. Pages of the
/// program belong to all that run it, so those that one alone has used so far are not counted.
///
/// `None` where nobody lets us look: one that is not dumpable is root's to weigh.
fn own_kib(pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps")).ok()?;
    let values = |name: &str| -> Vec<u64> {
        let lines = text.lines().filter_map(|line| line.strip_prefix(name));
        lines.map(|line| line.trim().trim_end_matches(" kB").parse().unwrap()).collect()
    };
    let (dirty, anonymous) = (values("Private_Dirty:"), values("Anonymous:"));
    assert_eq!(dirty.len(), anonymous.len());
    Some(dirty.into_iter().zip(anonymous).map(|(dirty, written)| dirty.min(written)).sum())
}

#[tokio::test(flavor = "multi_thread")]
async fn many_at_once_leave_nothing_and_a_keeper_is_small() {
    let stage = Arc::new(Stage::new("kept-many"));
    let first = stage.make("kept-many-0").await;
    assert_eq!(stage.run(&first, &exec("a", "true")).await, Ending::Exited(0));
    let (keeper, inside, _) = stage.processes();
    until("it gives back memory", || own_kib(keeper).unwrap() <= MOST_PRIVATE_KIB);
    match own_kib(inside) {
        Some(_) => until("the first process gives back memory", || {
            own_kib(inside).unwrap() <= MOST_OF_FIRST_KIB
        }),
        None => println!("skipped: root: nobody else may weigh a first process"),
    }
    stage.end(&first).await;
    let before = stage.ground.left("kept-many");
    let tasks = (1..=12).map(|number| {
        let stage = Arc::clone(&stage);
        tokio::spawn(async move {
            let record = stage.make(&format!("kept-many-{number}")).await;
            stage.backend.start(&record, &detached("d", "setsid sleep 300 & wait")).await.unwrap();
            stage.run(&record, &exec("a", "seq 100000")).await;
            if number % 2 == 0 {
                stage.backend.pause(&record).await.unwrap();
            }
            record
        })
    });
    let mut records = Vec::new();
    for task in tasks.collect::<Vec<_>>() {
        records.push(task.await.unwrap());
    }
    until("each has a keeper", || stage.keepers().len() == 12);
    assert_eq!(stage.backend.list().await.unwrap().len(), 12);
    assert_ne!(stage.ground.left("kept-many"), before, "there must be something to count");
    for record in &records {
        stage.backend.destroy(record, DestroyReason::Success).await.unwrap();
        stage.backend.forget(&record.id).await.unwrap();
    }
    assert_eq!(stage.ground.left("kept-many"), before);
    stage.await_no_keeper();
    assert_eq!(stage.directories(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_say_nothing_keep_nobody_out() {
    let stage = Stage::new("kept-strangers");
    let record = stage.make("kept-strangers").await;
    let socket = stage.state().join("sessions").join(record.id.as_str()).join("sock");
    let connect = || std::os::unix::net::UnixStream::connect(&socket).unwrap();
    let held: Vec<_> = (0..600).map(|_| connect()).collect();
    assert_eq!(stage.run(&record, &exec("a", "true")).await, Ending::Exited(0));
    stage.end(&record).await;
    drop(held);
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_beyond_the_limit_are_told_and_take_nothing_for_gone() {
    let stage = Stage::new("kept-clients");
    let record = stage.make("kept-clients").await;
    stage.backend.start(&record, &detached("w", "sleep 300")).await.unwrap();
    // More than may be, and each tries until it may.
    let watchers = (0..520).map(|_| {
        let (backend, record) = (stage.backend.clone(), record.clone());
        tokio::spawn(async move {
            let long = Duration::from_secs(100);
            loop {
                match backend.watch(&record, &id("w"), Seen::default(), long).await {
                    // There is no news of it.
                    Ok(status) => return status,
                    Err(error) => assert_eq!(error.kind, ErrorKind::TimedOut, "{error:?}"),
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
    });
    let watchers: Vec<_> = watchers.collect();
    // One whose connections are not used again: an old one would be one of the many.
    let another = || kept_backend(stage.state());
    let end = std::time::Instant::now() + PATIENCE;
    let error = loop {
        let over = || watchers.iter().filter(|watcher| watcher.is_finished()).count();
        assert!(std::time::Instant::now() < end, "it is never full, and {} went", over());
        match another().status(&record).await {
            Ok(status) => assert_eq!(status, SandboxStatus::Running),
            Err(error) => break error,
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    assert_eq!(error.kind, ErrorKind::TimedOut, "{error:?}");
    let error = another().destroy(&record, DestroyReason::Success).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::TimedOut, "what lives is not said to be gone: {error:?}");
    for watcher in watchers {
        watcher.abort();
        match watcher.await {
            Err(error) if error.is_cancelled() => {}
            ended => panic!("it was said to be over: {ended:?}"),
        }
    }
    assert_eq!(stage.run(&record, &exec("a", "true")).await, Ending::Exited(0));
    stage.end(&record).await;
}

//! Files of a kept sandbox.

use crate::pause::{asleep, idle_after};
use crate::stage::{Stage, exec};
use cofferdam::files::{FileEvent, Move, Remove, Watch};
use cofferdam::{DestroyReason, DurableBackend, Ending, ErrorKind, SandboxStatus};

#[tokio::test(flavor = "multi_thread")]
async fn files_are_read_and_written_through_the_keeper() {
    let stage = Stage::new("kept-files");
    let record = stage.make("kept-files").await;
    let files = stage.backend.files(&record).await.unwrap();
    files.write("out/a", b"one").await.unwrap();
    let ended =
        stage.run(&record, &exec("see", "test $(cat out/a) = one && echo two >out/b")).await;
    assert_eq!(ended, Ending::Exited(0));
    assert_eq!(files.read("/workspace/out/b", 10).await.unwrap(), b"two\n");
    // Any number of callers at once.
    let all = (0..8).map(|number| {
        let files = files.clone();
        tokio::spawn(async move {
            let path = format!("out/n{number}");
            files.write(&path, path.as_bytes()).await.unwrap();
            assert_eq!(files.read(&path, 100).await.unwrap(), path.as_bytes());
        })
    });
    for one in all.collect::<Vec<_>>() {
        one.await.unwrap();
    }
    stage.backend.destroy(&record, DestroyReason::Success).await.unwrap();
    assert!(files.read("out/a", 10).await.is_err());
    assert_eq!(std::fs::read(stage.ground.workspace().join("out/n7")).unwrap(), b"out/n7");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_holds_files_keeps_the_sandbox_awake_and_nobody_else() {
    let stage = Stage::new("kept-files-awake");
    let record = stage.make_with("kept-files-a", idle_after(200)).await;
    let other = stage.make_with("kept-files-b", idle_after(200)).await;
    let files = stage.backend.files(&record).await.unwrap();
    files.write("a", b"one").await.unwrap();
    asleep(&stage, &other).await;
    assert_eq!(stage.backend.status(&record).await.unwrap(), SandboxStatus::Running);
    drop(files);
    asleep(&stage, &record).await;
    let files = stage.backend.files(&record).await.unwrap();
    let refused = files.read("a", 10).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Conflict);
    assert!(refused.message.contains("paused"), "{refused:?}");
    stage.backend.resume(&record).await.unwrap();
    assert_eq!(files.read("a", 10).await.unwrap(), b"one");
    // A pause that somebody asks for ends the hold, and not the files.
    stage.backend.pause(&record).await.unwrap();
    assert_eq!(files.read("a", 10).await.unwrap_err().kind, ErrorKind::Conflict);
    stage.backend.resume(&record).await.unwrap();
    assert_eq!(files.read("a", 10).await.unwrap(), b"one");
    for record in [&record, &other] {
        stage.backend.destroy(record, DestroyReason::Success).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_watches_keeps_the_sandbox_awake_also_after_a_pause() {
    let stage = Stage::new("kept-files-watch");
    let record = stage.make_with("kept-files-watch", idle_after(200)).await;
    let other = stage.make_with("kept-files-idle", idle_after(200)).await;
    let watch = stage.backend.files(&record).await.unwrap().watch(&Watch::default()).await;
    let mut watch = watch.unwrap();
    assert!(matches!(watch.next().await.unwrap(), FileEvent::Ready { .. }));
    asleep(&stage, &other).await;
    assert_eq!(stage.backend.status(&record).await.unwrap(), SandboxStatus::Running);
    // A pause that somebody asks for is one, and ends neither the watch nor the hold.
    stage.backend.pause(&record).await.unwrap();
    std::fs::write(stage.ground.workspace().join("meanwhile"), "x").unwrap();
    assert_eq!(stage.backend.status(&record).await.unwrap(), SandboxStatus::Paused);
    stage.backend.resume(&record).await.unwrap();
    let seen = FileEvent::Modified { path: "meanwhile".into() };
    while watch.next().await.unwrap() != seen {}
    stage.backend.resume(&other).await.unwrap();
    asleep(&stage, &other).await;
    assert_eq!(stage.backend.status(&record).await.unwrap(), SandboxStatus::Running);
    drop(watch);
    asleep(&stage, &record).await;
    for record in [&record, &other] {
        stage.backend.destroy(record, DestroyReason::Success).await.unwrap();
    }
}

/// How many watches one sandbox has at a time.
const MAX_WATCHES: usize = 6;

#[tokio::test(flavor = "multi_thread")]
async fn the_bounds_on_connections_are_the_sandboxs_whoever_asks_for_its_files() {
    let stage = Stage::new("kept-files-bounds");
    let record = stage.make("kept-files-bounds").await;
    let files = async || stage.backend.files(&record).await.unwrap();
    let mut watches = Vec::new();
    for _ in 0..MAX_WATCHES {
        watches.push((files().await, files().await.watch(&Watch::default()).await.unwrap()));
    }
    let refused = files().await.watch(&Watch::default()).await.unwrap_err();
    assert!(refused.message.contains("6 watches of the sandbox's files stand"), "{refused:?}");
    // More calls than connections wait for each other, though each has files of its own, and none is refused.
    let all: Vec<_> = (0..40)
        .map(|number| {
            let (backend, record) = (stage.backend.clone(), record.clone());
            tokio::spawn(async move {
                let files = backend.files(&record).await?;
                files.write(&format!("n{number}"), b"x").await
            })
        })
        .collect();
    for one in all {
        one.await.unwrap().unwrap();
    }
    // One that ends makes room, and another sandbox has its own.
    watches.pop();
    files().await.watch(&Watch::default()).await.unwrap();
    let other = stage.make("kept-files-other").await;
    stage.backend.files(&other).await.unwrap().watch(&Watch::default()).await.unwrap();
    for record in [&record, &other] {
        stage.backend.destroy(record, DestroyReason::Success).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn protected_names_stay_protected_and_their_neighbours_do_not() {
    let stage = Stage::new("kept-files-pins");
    let hook = stage.ground.workspace().join(".git/hooks/pre-commit");
    std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
    std::fs::write(&hook, "old").unwrap();
    let record = stage.make("kept-files-pins").await;
    let files = stage.backend.files(&record).await.unwrap();
    assert_eq!(files.read(".git/hooks/pre-commit", 10).await.unwrap(), b"old");
    let denied = |error: cofferdam::Error| assert_eq!(error.kind, ErrorKind::Denied, "{error:?}");
    denied(files.write(".git/hooks/pre-commit", b"new").await.unwrap_err());
    denied(files.write(".git/hooks/post-commit", b"new").await.unwrap_err());
    denied(files.append(".git/hooks/pre-commit", b"new").await.unwrap_err());
    denied(files.set_mode(".git/hooks/pre-commit", 0o777).await.unwrap_err());
    denied(files.make_directory(".git/hooks/a").await.unwrap_err());
    let away = Move { from: ".git/hooks".into(), to: "hooks".into(), replace: false };
    denied(files.rename(&away).await.unwrap_err());
    files.write("evil", b"new").await.unwrap();
    let onto = |to: &str| Move { from: "evil".into(), to: to.into(), replace: true };
    denied(files.rename(&onto(".git/hooks/pre-commit")).await.unwrap_err());
    denied(files.copy(&onto(".git/hooks/pre-commit")).await.unwrap_err());
    denied(files.write(".git/config", b"[core]\n").await.unwrap_err());
    let all = Remove { path: ".git/hooks".into(), recursive: true };
    denied(files.remove(&all).await.unwrap_err());
    assert_eq!(std::fs::read(&hook).unwrap(), b"old");
    // The control: what lies beside them is written.
    files.write(".git/description", b"new").await.unwrap();
    files.rename(&onto("plain")).await.unwrap();
    stage.backend.destroy(&record, DestroyReason::Success).await.unwrap();
}

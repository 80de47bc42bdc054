//! From create to forget.

use crate::ground::until;
use crate::stage::{Stage, detached, exec, id, in_ms, sandbox_id};
use cofferdam::{
    Cause, Deadlines, DestroyReason, DurableBackend, Ending, ErrorKind, Found, Happened, Pause,
    SandboxOrder, SandboxStatus, kept_backend,
};
use std::os::unix::fs::MetadataExt;

#[tokio::test(flavor = "multi_thread")]
async fn it_lives_from_create_to_destroy_and_its_journal_until_it_is_forgotten() {
    let stage = Stage::new("kept-life");
    assert_eq!(stage.backend.capabilities().pause, Pause::MemoryKept);
    let record = stage.make("kept-life").await;
    assert_eq!(stage.backend.status(&record).await.unwrap(), SandboxStatus::Running);
    let found = Found {
        id: record.id.clone(),
        record: Some(record.clone()),
        status: SandboxStatus::Running,
        unreachable: None,
    };
    assert_eq!(stage.backend.list().await.unwrap(), [found]);
    assert_eq!(
        stage.run(&record, &exec("a", "echo out; echo err >&2; exit 3")).await,
        Ending::Exited(3)
    );
    assert_eq!(stage.output(&record, "a").await, "out\n");
    stage.backend.destroy(&record, DestroyReason::Error).await.unwrap();
    stage.backend.destroy(&record, DestroyReason::Error).await.unwrap();
    assert_eq!(stage.backend.status(&record).await.unwrap(), SandboxStatus::Gone);
    // What it wrote, and what became of it, can be read until it is forgotten.
    assert_eq!(stage.output(&record, "a").await, "out\n");
    assert_eq!(stage.wait(&record, "a").await.ended.unwrap().ending, Ending::Exited(3));
    assert_eq!(stage.backend.execs(&record).await.unwrap().len(), 1);
    let happened = stage.happened(&record.id).await;
    assert!(
        matches!(
            &happened[..],
            [
                Happened::Provisioned(_),
                Happened::ExecStarted(_),
                Happened::ExecEnded(_),
                Happened::Destroyed(DestroyReason::Error)
            ]
        ),
        "{happened:?}"
    );
    let after = stage.backend.journal(&record.id, 3).await.unwrap();
    assert_eq!(after.len(), 1);
    let found = Found {
        id: record.id.clone(),
        record: None,
        status: SandboxStatus::Gone,
        unreachable: None,
    };
    assert_eq!(stage.backend.list().await.unwrap(), [found]);
    let started = stage.backend.start(&record, &exec("b", "true")).await.unwrap_err();
    assert_eq!(started.kind, ErrorKind::Unavailable);
    stage.backend.forget(&record.id).await.unwrap();
    stage.backend.forget(&record.id).await.unwrap();
    assert_eq!(stage.backend.list().await.unwrap(), []);
    assert_eq!(stage.backend.journal(&record.id, 0).await.unwrap_err().kind, ErrorKind::NotFound);
    stage.backend.destroy(&record, DestroyReason::Error).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_is_in_use_is_a_conflict_and_a_failure_leaves_nothing() {
    let stage = Stage::new("kept-conflict");
    let record = stage.make("kept-conflict").await;
    let order = SandboxOrder {
        spec: stage.spec(),
        owner: String::new(),
        deadlines: Deadlines::default(),
        home: None,
        kept: None,
    };
    let again = stage.backend.create(&record.id, &order).await.unwrap_err();
    assert_eq!(again.kind, ErrorKind::Conflict);
    assert!(again.hint.is_some());
    assert_eq!(stage.backend.status(&record).await.unwrap(), SandboxStatus::Running);
    let impossible = SandboxOrder { home: Some("/nothing/here".into()), ..order };
    let failed = stage.backend.create(&sandbox_id("impossible"), &impossible).await.unwrap_err();
    assert_eq!(failed.kind, ErrorKind::NotFound);
    assert_eq!(stage.directories(), [record.id.as_str()]);
    until("one keeper is there", || stage.keepers().len() == 1);
    stage.end(&record).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_id_runs_once_and_other_words_are_a_conflict() {
    let stage = Stage::new("kept-once");
    let record = stage.make("kept-once").await;
    let order = exec("once", "echo x >>$HOME/runs; cat $HOME/runs");
    assert_eq!(stage.run(&record, &order).await, Ending::Exited(0));
    // Also after it ended, and by another client.
    let other = kept_backend(stage.state());
    let again = other.start(&record, &order).await.unwrap();
    assert_eq!(again.ended.unwrap().ending, Ending::Exited(0));
    let twice = futures_of_two(&stage, &record).await;
    assert_eq!(twice.0, twice.1);
    assert_eq!(stage.run(&record, &exec("see", "wc -l <$HOME/runs")).await, Ending::Exited(0));
    assert_eq!(stage.output(&record, "see").await.trim(), "2");
    let conflict = other.start(&record, &exec("once", "true")).await.unwrap_err();
    assert_eq!(conflict.kind, ErrorKind::Conflict);
    stage.end(&record).await;
}

async fn futures_of_two(stage: &Stage, record: &cofferdam::SandboxRecord) -> (u64, u64) {
    let order = exec("both", "echo x >>$HOME/runs");
    let (one, two) =
        tokio::join!(stage.backend.start(record, &order), stage.backend.start(record, &order));
    stage.wait(record, "both").await;
    (one.unwrap().started_ms, two.unwrap().started_ms)
}

#[tokio::test(flavor = "multi_thread")]
async fn lease_and_run_limit_end_it_without_anybody_asking() {
    let stage = Stage::new("kept-lease");
    let lease = Deadlines { lease_until_ms: Some(in_ms(60_000)), ..Deadlines::default() };
    let record = stage.make_with("kept-lease", lease).await;
    stage.backend.start(&record, &detached("sleeps", "sleep 300")).await.unwrap();
    let now = Deadlines { lease_until_ms: Some(in_ms(50)), ..Deadlines::default() };
    stage.backend.set_deadlines(&record, &now).await.unwrap();
    assert_eq!(stage.destroyed(&record).await, DestroyReason::Lease);
    stage.await_no_keeper();
    let ended = stage.wait(&record, "sleeps").await.ended.unwrap();
    assert_eq!(ended.ending, Ending::Killed(Cause::Lease));
    stage.backend.forget(&record.id).await.unwrap();

    let limit = Deadlines { run_until_ms: Some(in_ms(1500)), ..Deadlines::default() };
    let record = stage.make_with("kept-limit", limit).await;
    stage.backend.start(&record, &detached("sleeps", "sleep 300")).await.unwrap();
    // It holds while paused too.
    stage.backend.pause(&record).await.unwrap();
    assert_eq!(stage.destroyed(&record).await, DestroyReason::Timeout);
    stage.await_no_keeper();
    let ended = stage.wait(&record, "sleeps").await.ended.unwrap();
    assert_eq!(ended.ending, Ending::Killed(Cause::Time));
    stage.end(&record).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn its_home_directory_outlives_it_and_its_files_stay_their_owners() {
    let stage = Stage::new("kept-home");
    let home = stage.state().join("homes/one");
    std::fs::create_dir_all(&home).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(stage.state(), mode).unwrap();
    let home = home.canonicalize().unwrap();
    for (turn, script) in ["echo kept >$HOME/file; pwd", "cat $HOME/file; echo more >>$HOME/file"]
        .into_iter()
        .enumerate()
    {
        let order = SandboxOrder {
            spec: stage.spec(),
            owner: String::new(),
            deadlines: Deadlines::default(),
            home: Some(home.clone()),
            kept: None,
        };
        let record = stage.backend.create(&sandbox_id("kept-home"), &order).await.unwrap();
        assert_eq!(stage.run(&record, &exec("a", script)).await, Ending::Exited(0), "{turn}");
        let out = stage.output(&record, "a").await;
        assert_eq!(out == "kept\n", turn == 1, "{out:?}");
        // Set-id bits cannot be planted there, nor can anything else of the state be seen.
        let bits = exec("b", "touch $HOME/s; chmod u+s $HOME/s; test ! -u $HOME/s");
        assert_eq!(stage.run(&record, &bits).await, Ending::Exited(0));
        let state = exec("c", &format!("test ! -e {}", stage.state().join("owed").display()));
        assert_eq!(stage.run(&record, &state).await, Ending::Exited(0));
        stage.end(&record).await;
    }
    let file = std::fs::metadata(home.join("file")).unwrap();
    assert_eq!(file.uid(), std::fs::metadata(&home).unwrap().uid());
    assert_eq!(std::fs::read_to_string(home.join("file")).unwrap(), "kept\nmore\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_is_said() {
    let stage = Stage::new("kept-missing");
    let record = stage.make("kept-missing").await;
    let missing = |kind| assert_eq!(kind, ErrorKind::NotFound);
    let seen = cofferdam::Seen::default();
    let watched = stage.backend.watch(&record, &id("x"), seen, std::time::Duration::ZERO).await;
    missing(watched.unwrap_err().kind);
    let input = stage.backend.input(&record, &id("x"), &cofferdam::ExecInput::Kill).await;
    missing(input.unwrap_err().kind);
    let part = cofferdam::Part { stream: cofferdam::Standard::Output, offset: 0, len: 1 };
    missing(stage.backend.read(&record.id, &id("x"), part).await.unwrap_err().kind);
    let ending = stage.run(&record, &exec("a", "exec /no/such/program")).await;
    assert_eq!(ending, Ending::Exited(127));
    let mut order = exec("b", "");
    order.command.argv = vec!["/no/such/program".into()];
    let status = stage.backend.start(&record, &order).await.unwrap();
    assert!(matches!(status.ended.unwrap().ending, Ending::NotStarted { code: 127, .. }));
    // A record of another incarnation names nothing.
    let old = cofferdam::SandboxRecord { external_id: "keeper-0".into(), ..record.clone() };
    assert_eq!(stage.backend.status(&old).await.unwrap(), SandboxStatus::Gone);
    assert_eq!(stage.backend.pause(&old).await.unwrap_err().kind, ErrorKind::Unavailable);
    stage.backend.destroy(&old, DestroyReason::Success).await.unwrap();
    assert_eq!(stage.backend.status(&record).await.unwrap(), SandboxStatus::Running);
    stage.end(&record).await;
}

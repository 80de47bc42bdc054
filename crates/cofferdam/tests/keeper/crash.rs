//! Whoever is killed, at whatever moment: nothing is left, and nothing that ended is forgotten.

use crate::ground::{Ground, await_ends, hold, until};
use crate::stage::{Stage, detached, exec, kill, sandbox_id};
use cofferdam::{DestroyReason, DurableBackend, Ending, ErrorKind, Happened, SandboxStatus};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Set for the process that is to be killed: where its ground is.
const CLIENT: &str = "KEEPER_CLIENT";
/// Set for it too: the id of its sandbox.
const SANDBOX: &str = "KEEPER_CLIENT_SANDBOX";

/// Not a test of its own: the client that others kill. Makes a sandbox of the id that it is told,
/// starts a command, and says each step.
#[tokio::test(flavor = "multi_thread")]
async fn client() {
    let Some(place) = std::env::var_os(CLIENT) else { return };
    let stage = std::mem::ManuallyDrop::new(Stage::on(Ground { place: place.into() }));
    println!("\nbegins");
    let order = cofferdam::SandboxOrder {
        spec: stage.spec(),
        owner: String::new(),
        deadlines: cofferdam::Deadlines::default(),
        home: None,
        kept: None,
    };
    let name = cofferdam::SandboxId::new(std::env::var(SANDBOX).unwrap()).unwrap();
    let record = stage.backend.create(&name, &order).await.unwrap();
    println!("\nmade");
    let works = exec("works", "echo begun; while [ ! -e go ]; do sleep 0.01; done; exit 42");
    stage.backend.start(&record, &works).await.unwrap();
    println!("\nstarted");
    stage
        .backend
        .watch(&record, &works.command.id, cofferdam::Seen::default(), Duration::from_secs(100))
        .await
        .unwrap();
    std::future::pending::<()>().await;
}

fn start_client(stage: &Stage, name: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::client", "--nocapture"])
        .env(CLIENT, &stage.ground.place)
        .env(SANDBOX, sandbox_id(name).as_str())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn await_word(client: &mut Child, word: &str) {
    // ORDER: the pipe stays open, or the client would end by it.
    let said = BufReader::new(client.stdout.as_mut().unwrap()).lines();
    assert!(said.map_while(Result::ok).any(|line| line == word), "it must get as far as {word:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_exit_status_survives_the_client() {
    let stage = Stage::new("kept-status");
    let mut client = start_client(&stage, "kept-status");
    await_word(&mut client, "started");
    client.kill().unwrap();
    client.wait().unwrap();
    // A new client finds the sandbox and its command.
    let found = stage.backend.list().await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].status, SandboxStatus::Running);
    let record = found[0].record.clone().unwrap();
    stage.says(&record, "works", "begun").await;
    std::fs::write(stage.ground.workspace().join("go"), "").unwrap();
    let status = stage.wait(&record, "works").await;
    assert_eq!(status.ended.unwrap().ending, Ending::Exited(42));
    stage.end(&record).await;
    stage.await_no_keeper();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_is_killed_at_any_moment_leaves_what_can_be_found() {
    let stage = Stage::new("kept-moment");
    let before = stage.ground.left("kept-moment");
    let mut found_some = 0;
    for step in 0..24_u64 {
        let mut client = start_client(&stage, &format!("kept-moment-{step}"));
        await_word(&mut client, "begins");
        std::thread::sleep(Duration::from_micros(1500 * step));
        client.kill().unwrap();
        client.wait().unwrap();
        found_some += end_all(&stage).await;
    }
    assert!(found_some > 0, "the client was always faster");
    // What a client had only just begun may come to be later; it can be found all the same.
    let quiet = Duration::from_millis(500);
    let mut since = Instant::now();
    while since.elapsed() < quiet {
        if end_all(&stage).await > 0 || !stage.keepers().is_empty() {
            since = Instant::now();
        }
    }
    assert_eq!(stage.directories(), [""; 0]);
    assert_eq!(stage.ground.left("kept-moment"), before);
}

/// Ends all that is found, and says how many that were. What is being made is left to itself.
async fn end_all(stage: &Stage) -> usize {
    let mut count = 0;
    for found in stage.backend.list().await.unwrap() {
        if let Some(record) = &found.record {
            stage.backend.destroy(record, DestroyReason::Canceled).await.unwrap();
        }
        match stage.backend.forget(&found.id).await {
            Ok(()) => count += 1,
            Err(error) => assert_eq!(error.kind, ErrorKind::Conflict, "{error:?}"),
        }
    }
    count
}

#[tokio::test(flavor = "multi_thread")]
async fn a_keeper_that_is_killed_takes_its_sandbox_with_it_and_that_is_written_down() {
    let stage = Stage::new("kept-keeper");
    let before = stage.ground.left("kept-keeper");
    let record = stage.make("kept-keeper").await;
    assert_eq!(stage.run(&record, &exec("ended", "exit 5")).await, Ending::Exited(5));
    stage
        .backend
        .start(&record, &detached("runs", "sleep 0.2; echo x; setsid sleep 300 & wait"))
        .await
        .unwrap();
    stage.says(&record, "runs", "x").await;
    let (keeper, first, others) = stage.processes();
    assert!(others.len() >= 2);
    let held = hold(&[vec![keeper, first], others].concat());
    kill(keeper);
    await_ends(&held);
    assert_eq!(stage.backend.status(&record).await.unwrap(), SandboxStatus::Gone);
    let start = stage.backend.start(&record, &exec("no", "true")).await.unwrap_err();
    assert_eq!(start.kind, ErrorKind::Unavailable);
    let found = stage.backend.list().await.unwrap();
    assert_eq!(found[0].record.as_ref(), Some(&record));
    assert_eq!(found[0].status, SandboxStatus::Gone);
    // What ended had ended; what ran is lost.
    assert_eq!(stage.wait(&record, "ended").await.ended.unwrap().ending, Ending::Exited(5));
    let lost = stage.wait(&record, "runs").await;
    let ended = lost.ended.as_ref().unwrap();
    assert_eq!((&ended.ending, lost.stdout.written), (&Ending::Lost, 2));
    // It still wrote then. The kernel's clock of files is a few milliseconds late.
    assert!(ended.at_ms >= lost.started_ms + 150, "{lost:?}");
    assert_eq!(stage.output(&record, "runs").await, "x\n");
    stage.backend.destroy(&record, DestroyReason::Success).await.unwrap();
    stage.backend.destroy(&record, DestroyReason::Success).await.unwrap();
    let happened = stage.happened(&record.id).await;
    assert_eq!(happened.last(), Some(&Happened::Destroyed(DestroyReason::Lost)));
    assert_eq!(stage.wait(&record, "runs").await, lost);
    assert_eq!(stage.ground.left("kept-keeper"), before);
    stage.backend.forget(&record.id).await.unwrap();
    // The id is free again.
    let next = stage.make("kept-keeper").await;
    stage.end(&next).await;
    assert_eq!(stage.ground.left("kept-keeper"), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_process_that_is_killed_ends_its_sandbox_and_its_keeper() {
    let stage = Stage::new("kept-first");
    let before = stage.ground.left("kept-first");
    let record = stage.make("kept-first").await;
    stage.backend.start(&record, &exec("runs", "sleep 300")).await.unwrap();
    let (keeper, first, others) = stage.processes();
    let held = hold(&[vec![keeper], others].concat());
    let watch = stage.wait(&record, "runs");
    let end = async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        kill(first);
    };
    let (status, ()) = tokio::join!(watch, end);
    assert_eq!(status.ended.unwrap().ending, Ending::Lost);
    await_ends(&held);
    assert_eq!(stage.backend.status(&record).await.unwrap(), SandboxStatus::Gone);
    let happened = stage.happened(&record.id).await;
    assert_eq!(happened.last(), Some(&Happened::Destroyed(DestroyReason::Lost)));
    assert_eq!(stage.ground.left("kept-first"), before);
    stage.end(&record).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keeper_and_first_process_killed_at_once_leave_nothing_that_is_not_swept() {
    let stage = Stage::new("kept-both");
    let before = stage.ground.left("kept-both");
    for round in 0..6 {
        let record = stage.make("kept-both").await;
        stage.backend.start(&record, &detached("runs", "sleep 300 & wait")).await.unwrap();
        if round % 3 == 2 {
            stage.backend.pause(&record).await.unwrap();
        }
        let (keeper, first, others) = stage.processes();
        let held = hold(&[vec![keeper, first], others].concat());
        for pid in if round % 2 == 0 { [first, keeper] } else { [keeper, first] } {
            kill(pid);
        }
        // Any next start pays what the dead owe; nobody has to know of them.
        await_ends(&held);
        stage.backend.destroy(&record, DestroyReason::Success).await.unwrap();
        assert_eq!(stage.ground.left("kept-both"), before);
        let happened = stage.happened(&record.id).await;
        assert_eq!(happened.last(), Some(&Happened::Destroyed(DestroyReason::Lost)));
        stage.backend.forget(&record.id).await.unwrap();
    }
    assert_eq!(stage.directories(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_sandbox_of_a_client_pays_what_the_dead_owe() {
    let stage = Stage::new("kept-owed");
    let record = stage.make("kept-owed-dead").await;
    let owed = stage.state().join("owed").join(format!("sandbox-{}", record.id));
    let (keeper, first, others) = stage.processes();
    let held = hold(&[vec![keeper, first], others].concat());
    kill(keeper);
    await_ends(&held);
    assert!(owed.exists(), "there must be something to pay");
    // Another client, which knows nothing of the dead one and asks nothing of it.
    let client = cofferdam::kept_backend(stage.state());
    let order = cofferdam::SandboxOrder {
        spec: stage.spec(),
        owner: String::new(),
        deadlines: cofferdam::Deadlines::default(),
        home: None,
        kept: None,
    };
    let next = client.create(&sandbox_id("kept-owed-next"), &order).await.unwrap();
    assert!(!owed.exists());
    stage.end(&next).await;
    stage.backend.destroy(&record, DestroyReason::Success).await.unwrap();
    stage.backend.forget(&record.id).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_keeper_that_is_killed_while_it_makes_its_sandbox_leaves_nothing() {
    let stage = Stage::new("kept-making");
    let record = stage.make("kept-making-0").await;
    stage.end(&record).await;
    let before = stage.ground.left("kept-making");
    // So much to show that the keeper can be found while it is at work.
    let shown = std::env::temp_dir().join(format!("kept-making-{}", std::process::id()));
    let read: Vec<_> = (0..400).map(|number| shown.join(number.to_string())).collect();
    read.iter().for_each(|path| std::fs::create_dir_all(path).unwrap());
    let mut killed = 0;
    for step in 0..16_u32 {
        let order = cofferdam::SandboxOrder {
            spec: cofferdam::Spec { read: read.clone(), ..stage.spec() },
            owner: String::new(),
            deadlines: cofferdam::Deadlines::default(),
            home: None,
            kept: None,
        };
        let name = sandbox_id(&format!("kept-making-{step}"));
        let (backend, of) = (stage.backend.clone(), name.clone());
        let made = tokio::spawn(async move { backend.create(&of, &order).await });
        until("it begins", || !stage.keepers().is_empty() || made.is_finished());
        std::thread::sleep(Duration::from_micros(400) * step);
        let keepers = stage.keepers();
        let held = hold(&keepers);
        for keeper in keepers {
            kill(keeper);
        }
        match made.await.unwrap() {
            Ok(record) => {
                await_ends(&held);
                stage.backend.destroy(&record, DestroyReason::Success).await.unwrap();
                stage.backend.forget(&name).await.unwrap();
            }
            Err(error) => {
                killed += 1;
                assert_eq!(error.kind, ErrorKind::SetupFailed, "{error:?}");
            }
        }
        assert_eq!(stage.ground.left("kept-making"), before, "{step}");
        // A directory that had no name yet is swept by the next start.
        assert!(stage.directories().iter().all(|name| name.starts_with('.')));
    }
    std::fs::remove_dir_all(&shown).unwrap();
    assert!(killed > 0, "the keeper was always faster");
    println!("killed {killed} of 16 at work");
    let record = stage.make("kept-making-last").await;
    assert_eq!(stage.directories(), [record.id.as_str()]);
    stage.end(&record).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_keeper_that_was_stopped_is_said_not_to_answer() {
    let stage = Stage::new("kept-stopped");
    let record = stage.make("kept-stopped").await;
    let (keeper, ..) = stage.processes();
    let pid = rustix::process::Pid::from_raw(keeper.cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    let began = Instant::now();
    // The second question is not waited for again, whatever it is.
    let error = stage.backend.status(&record).await.unwrap_err();
    let again = stage.backend.start(&record, &exec("no", "true")).await.unwrap_err();
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    for error in [error, again] {
        assert_eq!(error.kind, ErrorKind::TimedOut);
        assert!(error.message.contains(&format!("process {keeper}, is stopped")), "{error}");
        assert!(error.hint.unwrap().contains(&format!("kill -CONT {keeper}")));
    }
    rustix::process::kill_process(pid, rustix::process::Signal::CONT).unwrap();
    assert_eq!(stage.run(&record, &exec("yes", "exit 3")).await, Ending::Exited(3));
    stage.end(&record).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_keeper_that_was_stopped_is_killed_where_its_sandbox_is_to_end() {
    let stage = Stage::new("kept-stopped-end");
    let before = stage.ground.left("kept-stopped-end");
    for paused in [false, true] {
        let record = stage.make("kept-stopped-end").await;
        let runs = detached("runs", "echo x; setsid sleep 300 & wait");
        stage.backend.start(&record, &runs).await.unwrap();
        stage.says(&record, "runs", "x").await;
        if paused {
            stage.backend.pause(&record).await.unwrap();
        }
        let (keeper, first, others) = stage.processes();
        let held = hold(&[vec![keeper, first], others].concat());
        let pid = rustix::process::Pid::from_raw(keeper.cast_signed()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
        let began = Instant::now();
        stage.backend.destroy(&record, DestroyReason::Success).await.unwrap();
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
        await_ends(&held);
        let happened = stage.happened(&record.id).await;
        assert_eq!(happened.last(), Some(&Happened::Destroyed(DestroyReason::Lost)));
        stage.backend.forget(&record.id).await.unwrap();
        assert_eq!(stage.ground.left("kept-stopped-end"), before);
        assert_eq!(stage.directories(), [""; 0]);
    }
}

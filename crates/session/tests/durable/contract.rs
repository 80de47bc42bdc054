//! The contract of a session: what `ensure` and its kin promise.

use crate::stage::{Stage, order, words};
use cofferdam_core::fake::{Call, FakeDurable, Mishap};
use cofferdam_core::{
    Cause, Ending, ErrorKind, Part, Profile, SandboxStatus, Seen, Standard, Stdin,
};
use cofferdam_core::{DurableBackend, ExecInput};
use cofferdam_session::{EnsuredHow, InitCommand, InitState, MIN_LEASE, Phase, Sessions, Unsaid};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

#[tokio::test]
async fn ensure_makes_one_and_finds_it_again() {
    let stage = Stage::new();
    let sessions = stage.open().await;
    let made = sessions.ensure(&order("a")).await.unwrap();
    assert_eq!(made.how, EnsuredHow::Created);
    let again = sessions.ensure(&order("a")).await.unwrap();
    assert_eq!((again.how, again.session.id()), (EnsuredHow::Running, made.session.id()));
    drop(sessions);
    let sessions = stage.open().await;
    let later = sessions.ensure(&order("a")).await.unwrap();
    assert_eq!((later.how, later.session.id()), (EnsuredHow::Running, made.session.id()));
    assert_eq!(stage.backend.alive().len(), 1);
    assert!(sessions.delete(made.session.id()).await.unwrap());
    assert!(!sessions.delete(made.session.id()).await.unwrap());
    assert_eq!(stage.kinds(&sessions, made.session.id()).await, ["provisioned", "destroyed"]);
    stage.assert_empty();
}

#[tokio::test]
async fn pause_and_resume_may_be_repeated_and_keep_what_runs() {
    let stage = Stage::new();
    let sessions = stage.open().await;
    let session = sessions.create(&order("a")).await.unwrap();
    let mut cat = words(&["cat"]);
    cat.command.stdin = Stdin::Piped;
    cat.detached = true;
    let cat = session.start(&cat).await.unwrap().id;
    for _ in 0..2 {
        sessions.pause(session.id()).await.unwrap();
    }
    assert_eq!(sessions.status(session.id()).await.unwrap().phase, Phase::Paused);
    let how = sessions.ensure(&order("a")).await.unwrap().how;
    assert_eq!(how, EnsuredHow::Resumed);
    sessions.resume(session.id()).await.unwrap();
    session.input(&cat, &ExecInput::Bytes(b"still here".to_vec())).await.unwrap();
    session.input(&cat, &ExecInput::Close).await.unwrap();
    let output = session.collect(&cat, 100).await.unwrap();
    assert_eq!(output.stdout, b"still here");
    let kinds = stage.kinds(&sessions, session.id()).await;
    assert_eq!(kinds, ["provisioned", "exec_started", "paused", "resumed", "exec_ended"]);
}

#[tokio::test]
async fn a_command_wakes_what_fell_asleep() {
    let stage = Stage::new();
    let sessions = stage.open().await;
    let session = sessions.create(&order("a")).await.unwrap();
    stage.backend.fall_asleep(&stage.backend.alive()[0]);
    let list = sessions.list(&BTreeMap::new()).await.unwrap();
    assert_eq!(list[0].phase, Phase::Paused);
    let output = session.exec(&words(&["out=hi", "exit=3"]), 100).await.unwrap();
    assert_eq!(output.stdout, b"hi");
    assert_eq!(output.status.ended.unwrap().ending, Ending::Exited(3));
    // Also where it falls asleep while a command runs that nobody counts as use.
    let mut job = words(&["sleep=20", "out=done"]);
    job.detached = true;
    let job = session.start(&job).await.unwrap().id;
    sessions.pause(session.id()).await.unwrap();
    assert_eq!(session.collect(&job, 100).await.unwrap().stdout, b"done");
}

#[tokio::test]
async fn a_signal_or_a_variable_that_cannot_be_is_refused() {
    let stage = Stage::new();
    let sessions = stage.open().await;
    let session = sessions.create(&order("a")).await.unwrap();
    let job = session.start(&words(&["hang"])).await.unwrap().id;
    for bad in [9999, -1, 0] {
        assert_eq!(session.signal(&job, bad).await.unwrap_err().kind, ErrorKind::Usage, "{bad}");
    }
    session.signal(&job, 15).await.unwrap();
    let mut wrong = words(&["exit=0"]);
    wrong.command.env.insert("A=B".into(), "c".into());
    assert_eq!(session.start(&wrong).await.unwrap_err().kind, ErrorKind::Usage);
    assert_eq!(session.start(&words(&[])).await.unwrap_err().kind, ErrorKind::Usage);
}

#[tokio::test]
async fn who_waits_for_ever_hears_of_the_end() {
    let stage = Stage::new();
    let sessions = stage.open().await;
    let session = sessions.create(&order("a")).await.unwrap();
    let mut job = words(&["sleep=20", "exit=3"]);
    job.detached = true;
    let job = session.start(&job).await.unwrap().id;
    let seen = Seen { stdout: u64::MAX, stderr: u64::MAX, ..Seen::default() };
    let (waited, followed) = tokio::join!(
        session.wait(&job, Some(Duration::MAX)),
        session.follow(&job, seen, Duration::MAX),
    );
    for status in [waited.unwrap(), followed.unwrap()] {
        assert_eq!(status.ended.unwrap().ending, Ending::Exited(3));
    }
}

#[tokio::test]
async fn a_loss_is_noticed_and_recovered_with_the_home_kept() {
    let stage = Stage::new();
    let sessions = stage.open().await;
    let init = |text: &str| vec![InitCommand::shell(text)];
    let mut wanted = order("a");
    wanted.init = init("tick=init");
    let session = sessions.ensure(&wanted).await.unwrap().session;
    std::fs::write(stage.home(session.id()).join("kept"), "x").unwrap();
    let job = session.start(&words(&["out=before", "hang"])).await.unwrap().id;
    let first = stage.backend.alive()[0].clone();
    session.follow(&job, Seen::default(), Duration::from_secs(5)).await.unwrap();
    stage.backend.vanish(&first);
    assert_eq!(sessions.status(session.id()).await.unwrap().phase, Phase::Lost);
    let ended = session.wait(&job, None).await.unwrap().ended.unwrap();
    assert_eq!(ended.ending, Ending::Lost);
    let again = sessions.ensure(&wanted).await.unwrap();
    assert_eq!(again.how, EnsuredHow::Recovered);
    assert_eq!(stage.backend.ticks("init"), 2, "init runs in each sandbox");
    assert!(stage.home(session.id()).join("kept").exists());
    let report = sessions.status(session.id()).await.unwrap();
    assert_eq!((report.incarnation, report.phase), (2, Phase::Running));
    // What it wrote, and how it ended, outlives its sandbox; its id is used for nothing else.
    let part = Part { stream: Standard::Output, offset: 0, len: 100 };
    assert_eq!(session.read(&job, part).await.unwrap().bytes, b"before");
    let mut twice = words(&["out=before", "hang"]);
    twice.command.id = job.clone();
    assert_eq!(session.start(&twice).await.unwrap().ended.unwrap().ending, Ending::Lost);
    twice.command.argv = vec!["other".into()];
    assert_eq!(session.start(&twice).await.unwrap_err().kind, ErrorKind::Conflict);
    let kinds = stage.kinds(&sessions, session.id()).await;
    let of = |kind: &str| kinds.iter().position(|found| found == kind).unwrap();
    assert!(of("instance_lost") < of("destroyed") && of("destroyed") < of("recovered"));
}

#[tokio::test]
async fn a_command_recovers_what_was_lost_and_runs_once() {
    let stage = Stage::new();
    let sessions = stage.open().await;
    let session = sessions.create(&order("a")).await.unwrap();
    stage.backend.vanish(&stage.backend.alive()[0]);
    session.exec(&words(&["tick=ran"]), 100).await.unwrap();
    assert_eq!(stage.backend.ticks("ran"), 1);
    // The reply is lost and the sandbox too: the journal says that it ran, so it is not run again.
    stage.backend.mishap(Call::Start, 1, Mishap::FailAfter);
    stage.backend.mishap(Call::Status, 1, Mishap::Vanish);
    let output = session.exec(&words(&["tick=perhaps", "hang"]), 100).await.unwrap();
    assert_eq!(output.status.ended.unwrap().ending, Ending::Lost);
    assert!(stage.backend.ticks("perhaps") <= 1);
    // The request is lost and the sandbox too: the journal says that it did not run.
    stage.backend.mishap(Call::Start, 1, Mishap::FailBefore);
    stage.backend.mishap(Call::Status, 1, Mishap::Vanish);
    session.exec(&words(&["tick=surely"]), 100).await.unwrap();
    assert_eq!(stage.backend.ticks("surely"), 1);
    // Only the reply is lost: the repetition finds it.
    stage.backend.mishap(Call::Start, 1, Mishap::FailAfter);
    session.exec(&words(&["tick=once"]), 100).await.unwrap();
    assert_eq!(stage.backend.ticks("once"), 1);
}

#[tokio::test]
async fn drift_is_a_conflict_that_names_what_differs() {
    let stage = Stage::new();
    let sessions = stage.open().await;
    let session = sessions.ensure(&order("a")).await.unwrap().session;
    let mut other = order("a");
    other.spec.profile = Profile::ReadOnly;
    other.spec.env.insert("TOKEN".into(), "hunter2".into());
    let error = sessions.ensure(&other).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Conflict);
    assert!(error.message.contains("profile, env TOKEN"), "{error}");
    assert!(!error.chain().contains("hunter2"));
    let mut later = order("a");
    later.labels.insert("team".into(), "x".into());
    later.idle_pause = Some(Duration::from_secs(7));
    later.ttl = Some(Duration::from_secs(3600));
    sessions.ensure(&later).await.unwrap();
    let report = sessions.status(session.id()).await.unwrap();
    assert_eq!((report.labels["team"].as_str(), report.idle_pause_ms), ("x", Some(7000)));
    let deadlines = stage.backend.order(&stage.backend.alive()[0]).unwrap().deadlines;
    assert_eq!(deadlines.idle_pause_ms, Some(7000));
    assert_eq!(deadlines.lease_until_ms, report.lease_until_ms);
    let until = sessions.extend(session.id(), Duration::from_secs(1800)).await.unwrap();
    assert_eq!(until, report.lease_until_ms.unwrap() + 1_800_000);
    let told = stage.backend.order(&stage.backend.alive()[0]).unwrap().deadlines;
    assert_eq!(told.lease_until_ms, Some(until));
    let kinds = stage.kinds(&sessions, session.id()).await;
    assert_eq!(kinds, ["provisioned", "updated", "extended"]);
}

#[tokio::test]
async fn another_backend_is_a_conflict_that_names_both_and_deletion_stays_possible() {
    // A11.
    let stage = Stage::new();
    let other = FakeDurable::named("other");
    let mut backends = stage.backends();
    backends.push(Arc::new(other.clone()));
    let sessions = Sessions::open(&stage.state, backends).await.unwrap();
    let session = sessions.ensure(&order("a")).await.unwrap().session;
    let mut wanted = order("a");
    wanted.backend = Some("other".into());
    let error = sessions.ensure(&wanted).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Conflict);
    assert!(error.message.contains("fake") && error.message.contains("other"), "{error}");
    sessions.delete(session.id()).await.unwrap();
    sessions.ensure(&wanted).await.unwrap();
    assert_eq!((stage.backend.alive().len(), other.alive().len()), (0, 1));
    wanted.name = Some("b".into());
    wanted.backend = Some("none".into());
    assert_eq!(sessions.ensure(&wanted).await.unwrap_err().kind, ErrorKind::Unavailable);
}

#[tokio::test]
async fn init_runs_once_goes_on_where_it_failed_and_runs_again_when_it_changes() {
    // A8.
    let stage = Stage::new();
    let sessions = stage.open().await;
    let mut wanted = order("a");
    wanted.init = vec![
        InitCommand::shell("tick=one"),
        InitCommand::shell("err=broken fail-until=two:1"),
        InitCommand::new(["tick=three"]),
    ];
    let error = sessions.ensure(&wanted).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::SetupFailed);
    assert!(error.message.contains("fail-until=two:1"), "{error}");
    assert!(error.message.contains("exited 1: broken"), "{error}");
    let id = sessions.find("a").await.unwrap();
    let report = sessions.status(&id).await.unwrap();
    assert_eq!((report.phase, report.init), (Phase::Running, InitState::Failed));
    assert_eq!(report.init_error.unwrap().exit_code, Some(1));
    sessions.ensure(&wanted).await.unwrap();
    let ticks = |name: &str| stage.backend.ticks(name);
    assert_eq!((ticks("one"), ticks("two"), ticks("three")), (1, 2, 1));
    sessions.ensure(&wanted).await.unwrap();
    assert_eq!((ticks("one"), ticks("two"), ticks("three")), (1, 2, 1));
    wanted.init = vec![InitCommand::shell("tick=four")];
    sessions.ensure(&wanted).await.unwrap();
    sessions.ensure(&wanted).await.unwrap();
    assert_eq!((ticks("one"), ticks("four")), (1, 1));
    let kinds = stage.kinds(&sessions, &id).await;
    assert_eq!(kinds.iter().filter(|kind| *kind == "init_failed").count(), 1);
    assert_eq!(kinds.iter().filter(|kind| *kind == "init_completed").count(), 2);
    let told: Vec<&str> = kinds.iter().map(String::as_str).collect();
    assert_eq!(
        told[..6],
        ["provisioned", "exec_started", "exec_ended", "exec_started", "exec_ended", "init_failed",]
    );
}

#[tokio::test]
async fn an_init_command_that_takes_too_long_is_killed_and_recorded() {
    let stage = Stage::new();
    let sessions = stage.open().await;
    let mut wanted = order("a");
    wanted.init = vec![InitCommand::new(["hang"]).limit(Duration::from_millis(10))];
    sessions.ensure(&wanted).await.unwrap_err();
    let id = sessions.find("a").await.unwrap();
    let report = sessions.status(&id).await.unwrap();
    assert_eq!(report.init_error.unwrap().exit_code, Some(124));
}

#[tokio::test]
async fn what_cannot_be_made_leaves_nothing_behind() {
    // A5: the error is the backend's own, and nothing was provisioned or destroyed.
    let stage = Stage::new();
    let sessions = stage.open().await;
    stage.backend.mishap(Call::Create, 1, Mishap::FailBefore);
    let error = sessions.ensure(&order("a")).await.unwrap_err();
    assert_eq!(error.message, "the request was lost");
    assert_eq!(sessions.events(None, 0).await.unwrap(), []);
    assert!(!stage.backend.calls().contains(&Call::Destroy));
    stage.assert_empty();
    stage.backend.mishap(Call::Create, 1, Mishap::FailAfter);
    sessions.ensure(&order("a")).await.unwrap_err();
    stage.assert_empty();
    sessions.ensure(&order("a")).await.unwrap();
}

#[tokio::test]
async fn names_and_beginnings_find_a_session() {
    let stage = Stage::new();
    let sessions = stage.open().await;
    let one = sessions.create(&order("alpha")).await.unwrap();
    let two = sessions.create(&order("alpine")).await.unwrap();
    assert_eq!(sessions.create(&order("alpha")).await.unwrap_err().kind, ErrorKind::Conflict);
    assert_eq!(sessions.find("alpha").await.unwrap(), *one.id());
    assert_eq!(sessions.find("alpi").await.unwrap(), *two.id());
    assert_eq!(sessions.find(one.id().as_str()).await.unwrap(), *one.id());
    assert_eq!(sessions.find(&one.id().as_str()[..19]).await.unwrap(), *one.id());
    let several = sessions.find("alp").await.unwrap_err();
    assert_eq!(several.kind, ErrorKind::Conflict);
    assert!(several.message.contains("alpha") && several.message.contains("alpine"));
    for none in ["", "beta", "alphabet"] {
        assert_ne!(sessions.find(none).await.map(|_| ()).unwrap_err().message, "", "{none}");
    }
    for bad in ["", "-a", "a/b", "0123456789abcdef0123"] {
        assert_eq!(sessions.ensure(&order(bad)).await.unwrap_err().kind, ErrorKind::Usage);
    }
}

#[tokio::test]
async fn list_filters_by_labels() {
    let stage = Stage::new();
    let sessions = stage.open().await;
    for (name, team) in [("a", "x"), ("b", "y")] {
        let mut wanted = order(name);
        wanted.labels.insert("team".into(), team.into());
        sessions.create(&wanted).await.unwrap();
    }
    let filter = [("team".to_owned(), "y".to_owned())].into();
    let found = sessions.list(&filter).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].name.as_deref(), Some("b"));
    assert_eq!(sessions.list(&BTreeMap::new()).await.unwrap().len(), 2);
}

#[tokio::test]
async fn the_same_command_id_runs_once_and_other_words_are_a_conflict() {
    let stage = Stage::new();
    let sessions = stage.open().await;
    let session = sessions.create(&order("a")).await.unwrap();
    let mut order = words(&["tick=ran", "out=x"]);
    for _ in 0..3 {
        assert_eq!(session.exec(&order, 10).await.unwrap().stdout, b"x");
    }
    assert_eq!(stage.backend.ticks("ran"), 1);
    order.command.argv.push("exit=1".into());
    assert_eq!(session.start(&order).await.unwrap_err().kind, ErrorKind::Conflict);
}

#[tokio::test]
async fn output_is_collected_up_to_a_limit_and_the_rest_is_counted() {
    let stage = Stage::new();
    let sessions = stage.open().await;
    let session = sessions.create(&order("a")).await.unwrap();
    let output = session.exec(&words(&["bytes=700000", "err=e"]), 600_000).await.unwrap();
    assert_eq!((output.stdout.len(), output.omitted_stdout), (600_000, 100_000));
    assert_eq!((output.stderr.as_slice(), output.omitted_stderr), (&b"e"[..], 0));
    let mut order = words(&["bytes=100", "hang"]);
    order.max_output_bytes = Some(50);
    let ended = session.exec(&order, 10).await.unwrap().status.ended.unwrap();
    assert_eq!(ended.ending, Ending::Killed(Cause::Output));
}

#[tokio::test]
async fn a_stopped_session_keeps_its_home_and_starts_again() {
    let stage = Stage::new();
    let sessions = stage.open().await;
    let session = sessions.create(&order("a")).await.unwrap();
    let job = session.start(&words(&["hang"])).await.unwrap().id;
    sessions.stop(session.id()).await.unwrap();
    sessions.stop(session.id()).await.unwrap();
    assert_eq!(sessions.status(session.id()).await.unwrap().phase, Phase::Stopped);
    assert_eq!(session.wait(&job, None).await.unwrap().ended.unwrap().ending, Ending::Canceled);
    assert_eq!(sessions.pause(session.id()).await.unwrap_err().kind, ErrorKind::Conflict);
    assert!(stage.home(session.id()).is_dir());
    let again = sessions.ensure(&order("a")).await.unwrap();
    assert_eq!(again.how, EnsuredHow::Recovered);
    let kinds = stage.kinds(&sessions, session.id()).await;
    assert!(!kinds.contains(&"instance_lost".to_owned()), "{kinds:?}");
}

#[tokio::test]
async fn a_lease_that_is_over_at_once_is_refused() {
    let stage = Stage::new();
    let sessions = stage.open().await;
    let mut wanted = order("a");
    for ttl in [Duration::ZERO, Duration::from_millis(1), MIN_LEASE - Duration::from_millis(1)] {
        wanted.ttl = Some(ttl);
        let refused = sessions.ensure(&wanted).await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Usage, "{ttl:?}");
        assert!(refused.hint.unwrap().contains("1000 ms"), "{ttl:?}");
    }
    assert!(
        sessions.list(&Default::default()).await.unwrap().is_empty()
            && stage.backend.alive().is_empty()
    );
    wanted.ttl = Some(MIN_LEASE);
    sessions.ensure(&wanted).await.unwrap();
}

#[tokio::test]
async fn a_lease_that_is_over_removes_the_session_at_the_next_start() {
    let stage = Stage::new();
    let sessions = stage.open().await;
    let mut wanted = order("a");
    wanted.ttl = Some(MIN_LEASE);
    let session = sessions.create(&wanted).await.unwrap();
    let kept = sessions.create(&order("b")).await.unwrap();
    tokio::time::sleep(MIN_LEASE).await;
    let would = sessions.gc(true).await.unwrap();
    assert_eq!((would.done.len(), stage.backend.alive().len()), (1, 2));
    // Its keeper ended it meanwhile, or not: it goes away all the same.
    stage.backend.pass_time(u64::MAX);
    let sessions = stage.open().await;
    assert!(sessions.status(session.id()).await.is_err());
    assert!(sessions.status(kept.id()).await.is_ok());
    assert!(!stage.home(session.id()).exists());
    let events = sessions.events(Some(session.id()), 0).await.unwrap();
    assert_eq!(events.last().unwrap().data["reason"], "lease");
}

#[tokio::test]
async fn a_quiet_start_asks_for_ids_and_nothing_else() {
    let stage = Stage::new();
    let sessions = stage.open().await;
    sessions.create(&order("a")).await.unwrap();
    let before = stage.backend.calls().len();
    stage.open().await;
    assert_eq!(&stage.backend.calls()[before..], [Call::Ids]);
}

#[tokio::test]
async fn a_sandbox_without_a_session_is_ended_and_a_stranger_is_left_alone() {
    let stage = Stage::new();
    let sessions = stage.open().await;
    let kept = sessions.create(&order("a")).await.unwrap();
    let record = |id: &str| {
        let order = stage.backend.order(&stage.backend.alive()[0]).unwrap();
        let (backend, id) = (stage.backend.clone(), cofferdam_core::SandboxId::new(id).unwrap());
        async move { backend.create(&id, &order).await.unwrap() }
    };
    let orphan = record("00000000000000000000.1").await;
    let stranger = record("somebody-else").await;
    stage.open().await;
    let status = |record| {
        let backend = stage.backend.clone();
        async move { backend.status(&record).await.unwrap() }
    };
    assert_eq!(status(orphan).await, SandboxStatus::Gone);
    assert_eq!(status(stranger).await, SandboxStatus::Running);
    assert_eq!(sessions.status(kept.id()).await.unwrap().phase, Phase::Running);
}

#[tokio::test]
async fn what_a_detached_command_leaves_takes_signals_until_it_is_gone() {
    let stage = Stage::new();
    let sessions = stage.open().await;
    let session = sessions.create(&order("a")).await.unwrap();
    // In the foreground nothing is left.
    let control = words(&["child=x", "exit=3"]);
    assert_eq!(session.exec(&control, 9).await.unwrap().status.left, None);
    let mut leaves = words(&["child=x", "child=y", "out=up", "exit=3"]);
    leaves.detached = true;
    for end in [ExecInput::Signal(15), ExecInput::Kill] {
        leaves.command.id = words(&["id"]).command.id;
        let id = session.exec(&leaves, 9).await.unwrap().status.id;
        let ended = |report: cofferdam_session::ExecReport| (report.exit_code, report.left);
        assert_eq!(ended(session.status(&id).await.unwrap()), (Some(3), 2));
        // Its end is known, though it was folded, and what it left is not over.
        let status = session.wait(&id, None).await.unwrap();
        assert_eq!(status.ended.unwrap().ending, Ending::Exited(3));
        let rest = Seen { stdout: 9, end: true, ..Seen::default() };
        let soon = Duration::from_millis(20);
        assert_eq!(session.follow(&id, rest, soon).await.unwrap().left, Some(2));
        let bytes = ExecInput::Bytes(b"x".to_vec());
        assert_eq!(session.input(&id, &bytes).await.unwrap_err().kind, ErrorKind::Conflict);
        session.input(&id, &end).await.unwrap();
        let status = session.follow(&id, rest, Duration::from_secs(5)).await.unwrap();
        assert_eq!(status.left, None);
        assert_eq!(ended(session.status(&id).await.unwrap()), (Some(3), 0));
        assert_eq!(session.signal(&id, 15).await.unwrap_err().kind, ErrorKind::Conflict);
        session.input(&id, &ExecInput::Kill).await.unwrap();
    }
    let kinds = stage.kinds(&sessions, session.id()).await;
    assert_eq!(kinds.iter().filter(|kind| *kind == "exec_emptied").count(), 2);
}

#[tokio::test]
async fn what_was_left_is_gone_with_its_sandbox_and_wakes_nothing() {
    let stage = Stage::new();
    let sessions = stage.open().await;
    let session = sessions.create(&order("a")).await.unwrap();
    let mut leaves = words(&["child=x", "exit=3"]);
    leaves.detached = true;
    let id = session.exec(&leaves, 9).await.unwrap().status.id;
    session.status(&id).await.unwrap();
    sessions.pause(session.id()).await.unwrap();
    // To ask for the end of what has ended is no reason to go on.
    session.wait(&id, None).await.unwrap();
    assert_eq!(sessions.status(session.id()).await.unwrap().phase, Phase::Paused);
    stage.backend.vanish(&stage.backend.alive()[0]);
    sessions.ensure(&order("a")).await.unwrap();
    let report = session.status(&id).await.unwrap();
    assert_eq!((report.exit_code, report.left), (Some(3), 0));
    let kinds = stage.kinds(&sessions, session.id()).await;
    let of = |kind: &str| kinds.iter().position(|found| found == kind).unwrap();
    assert!(of("exec_ended") < of("exec_emptied") && of("exec_emptied") < of("destroyed"));
}

#[tokio::test]
async fn a_session_that_ends_with_its_maker_is_removed_when_the_maker_is_gone() {
    let stage = Stage::new();
    let maker = stage.open().await;
    let mut wanted = order("mine");
    wanted.owned = true;
    let mine = maker.create(&wanted).await.unwrap().id().clone();
    let kept = maker.create(&order("kept")).await.unwrap().id().clone();
    let lease = maker.status(&mine).await.unwrap().lease_until_ms.unwrap();
    tokio::time::sleep(Duration::from_millis(2)).await;
    maker.renew_owned().await.unwrap();
    assert!(maker.status(&mine).await.unwrap().lease_until_ms.unwrap() > lease);
    assert_eq!(maker.status(&kept).await.unwrap().lease_until_ms, None);
    // Others leave it alone as long as its maker is there, and its maker finds it again.
    let other = stage.open().await;
    other.gc(false).await.unwrap();
    assert_eq!(other.status(&mine).await.unwrap().phase, Phase::Running);
    assert_eq!(maker.ensure(&wanted).await.unwrap().session.id(), &mine);
    drop((maker, other));
    let next = stage.open().await;
    assert_eq!(next.status(&mine).await.unwrap_err().kind, ErrorKind::NotFound);
    assert_eq!(next.status(&kept).await.unwrap().phase, Phase::Running);
    assert!(next.delete(&kept).await.unwrap());
    stage.assert_empty();
}

#[tokio::test]
async fn a_session_that_ends_with_its_maker_leaves_no_lock_when_it_is_removed() {
    let stage = Stage::new();
    let sessions = stage.open().await;
    let mut wanted = order("mine");
    wanted.owned = true;
    let mine = sessions.create(&wanted).await.unwrap();
    assert!(sessions.delete(mine.id()).await.unwrap());
    stage.assert_empty();
    sessions.create(&wanted).await.unwrap();
    let taken = sessions.create(&wanted).await.unwrap_err();
    assert_eq!(taken.kind, ErrorKind::Conflict);
    assert!(sessions.delete(&sessions.find("mine").await.unwrap()).await.unwrap());
    stage.assert_empty();
}

#[tokio::test]
async fn what_an_order_does_not_say_stays_as_it_is() {
    let stage = Stage::new();
    let sessions = stage.open().await;
    let mut said = order("a");
    said.labels.insert("team".into(), "x".into());
    said.init = vec![InitCommand::shell("tick=init")];
    said.idle_pause = Some(Duration::from_secs(7));
    said.ttl = Some(Duration::from_secs(3600));
    let session = sessions.ensure(&said).await.unwrap().session;
    let before = sessions.status(session.id()).await.unwrap();
    let all = [Unsaid::Labels, Unsaid::Init, Unsaid::IdlePause, Unsaid::Ttl, Unsaid::Checkpoints];
    let mut silent = order("a");
    silent.unsaid = all.into();
    silent.checkpoints = false;
    sessions.ensure(&silent).await.unwrap();
    assert_eq!(sessions.status(session.id()).await.unwrap(), before);
    let kinds = stage.kinds(&sessions, session.id()).await;
    assert!(!kinds.iter().any(|kind| kind == "updated"), "{kinds:?}");
    // What is said counts, even where it says that there is none.
    for said in all {
        let mut other = silent.clone();
        other.unsaid.remove(&said);
        sessions.ensure(&other).await.unwrap();
    }
    let after = sessions.status(session.id()).await.unwrap();
    assert!(after.labels.is_empty() && after.lease_until_ms.is_none());
    assert_ne!(after.idle_pause_ms, before.idle_pause_ms);
    let kinds = stage.kinds(&sessions, session.id()).await;
    assert_eq!(kinds.iter().filter(|kind| *kind == "updated").count(), all.len());
}

#[tokio::test]
async fn how_a_command_stands_costs_the_same_however_many_there_are() {
    let stage = Stage::new();
    let sessions = stage.open().await;
    let session = sessions.create(&order("a")).await.unwrap();
    let mut last = None;
    for _ in 0..20 {
        last = Some(session.exec(&words(&["true"]), 100).await.unwrap().status.id);
    }
    let last = last.unwrap();
    let before = stage.backend.calls().len();
    let report = session.status(&last).await.unwrap();
    assert_eq!((report.id.as_str(), report.ending.is_some()), (last.as_str(), true));
    // One question, about one command.
    assert_eq!(stage.backend.calls()[before..], [Call::Watch]);
    let none = cofferdam_core::ProcessId::new("none").unwrap();
    assert_eq!(session.status(&none).await.unwrap_err().kind, ErrorKind::NotFound);
    assert!(!stage.backend.calls()[before..].contains(&Call::Execs));
}

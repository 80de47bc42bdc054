//! What a command leaves running when it has ended.

use crate::ground::{await_ends, hold, until};
use crate::stage::{PATIENCE, Stage, detached, exec, id, kill};
use cofferdam::{
    Cause, Deadlines, DestroyReason, DurableBackend, Ending, ErrorKind, ExecInput, ExecOrder,
    ExecStatus, Happened, Limit, SandboxOrder, SandboxRecord, SandboxStatus, Seen, Stdin, Terminal,
};
use std::time::{Duration, Instant};

/// Three children: in the group of their parent, in a session of their own, and of a parent that went
/// away. The first says when all are there, whether or not anybody listens to hang-ups.
const LEAVES_THREE: &str = "setsid sh -c 'touch /tmp/one; exec sleep 300' & \
     (nohup sh -c 'touch /tmp/two; exec sleep 300' >/dev/null 2>&1 &) & \
     sh -c 'touch /tmp/three; exec sleep 300' & \
     while ! test -e /tmp/one || ! test -e /tmp/two || ! test -e /tmp/three; do :; done; \
     rm /tmp/one /tmp/two /tmp/three; ";

/// Says so each time it is asked to go, and goes on.
const STUBBORN: &str = "setsid sh -c 'trap \"echo stays\" TERM; echo up; \
     while :; do sleep 0.01; done' & ";

/// How a command stands now.
async fn now(stage: &Stage, of: &SandboxRecord, name: &str) -> ExecStatus {
    stage.backend.watch(of, &id(name), Seen::default(), Duration::ZERO).await.unwrap()
}

/// Waits until nothing is left of what a command left.
async fn emptied(stage: &Stage, of: &SandboxRecord, name: &str) -> ExecStatus {
    let end = Instant::now() + PATIENCE;
    let mut seen = Seen { end: true, ..Seen::default() };
    loop {
        let status = stage.backend.watch(of, &id(name), seen, PATIENCE).await.unwrap();
        if status.ended.is_some() && status.left.is_none() {
            return status;
        }
        assert!(Instant::now() < end, "{status:?}");
        (seen.stdout, seen.stderr) = (status.stdout.written, status.stderr.written);
    }
}

/// Waits until what a command left has written this too.
async fn hears(stage: &Stage, of: &SandboxRecord, name: &str, text: &str) {
    let end = Instant::now() + PATIENCE;
    while !stage.output(of, name).await.contains(text) {
        let status = now(stage, of, name).await;
        assert!(Instant::now() < end, "{status:?}");
        let seen = Seen { stdout: status.stdout.written, end: true, ..Seen::default() };
        stage.backend.watch(of, &id(name), seen, Duration::from_millis(500)).await.unwrap();
    }
}

async fn starts(stage: &Stage, of: &SandboxRecord, order: &ExecOrder) -> Ending {
    let begun = Instant::now();
    let ending = stage.run(of, order).await;
    assert!(begun.elapsed() < Duration::from_secs(20));
    ending
}

fn at_terminal(order: ExecOrder) -> ExecOrder {
    let mut order = order;
    order.command.terminal = Some(Terminal { rows: 30, columns: 100 });
    order
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_detached_command_leaves_goes_on_and_its_end_is_told_at_once() {
    let stage = Stage::new("kept-left");
    let record = stage.make("kept-left").await;
    let script = format!("{LEAVES_THREE} echo started; exit 3");
    // A foreground command is the control, before and after.
    for number in 0..3 {
        let control = exec(&format!("fore-{number}"), &script);
        assert_eq!(starts(&stage, &record, &control).await, Ending::Exited(3));
        assert_eq!(now(&stage, &record, control.command.id.as_str()).await.left, None);
    }
    assert_eq!(stage.processes().2, [0; 0]);
    assert_eq!(starts(&stage, &record, &detached("left", &script)).await, Ending::Exited(3));
    let status = now(&stage, &record, "left").await;
    assert_eq!((status.left, status.stdout.written), (Some(3), 8));
    assert_eq!(starts(&stage, &record, &exec("fore", &script)).await, Ending::Exited(3));
    assert_eq!(now(&stage, &record, "left").await.left, Some(3));
    // Two of them do not mix, and one that leaves nothing has nothing left.
    assert_eq!(
        starts(&stage, &record, &detached("more", "sleep 300 & exit 4")).await,
        Ending::Exited(4)
    );
    assert_eq!(starts(&stage, &record, &detached("none", "true")).await, Ending::Exited(0));
    let left = stage.backend.execs(&record).await.unwrap();
    let left: Vec<_> = left.iter().filter_map(|status| status.left).collect();
    assert_eq!(left, [3, 1]);
    // It takes nothing but signals.
    for input in
        [ExecInput::Bytes(b"x".to_vec()), ExecInput::Resize(Terminal { rows: 9, columns: 9 })]
    {
        let refused = stage.backend.input(&record, &id("left"), &input).await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Conflict);
    }
    stage.backend.input(&record, &id("left"), &ExecInput::Close).await.unwrap();
    let (_, first, others) = stage.processes();
    let held = hold(&[vec![first], others].concat());
    stage.backend.destroy(&record, DestroyReason::Success).await.unwrap();
    await_ends(&held);
    assert_eq!(now(&stage, &record, "left").await.left, None);
    stage.end(&record).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_left_still_writes_with_true_offsets_up_to_the_bound() {
    let stage = Stage::new("kept-left-output");
    let record = stage.make("kept-left-output").await;
    let writes = "sh -c 'while ! test -e go; do sleep 0.01; done; seq -w 1 1000000; \
         echo done >&2; sleep 300' & echo started";
    let order = ExecOrder { spool_bytes: 256 << 10, ..detached("writes", writes) };
    assert_eq!(starts(&stage, &record, &order).await, Ending::Exited(0));
    assert_eq!(now(&stage, &record, "writes").await.stdout.written, 8);
    std::fs::write(stage.ground.workspace().join("go"), "").unwrap();
    hears(&stage, &record, "writes", "1000000\n").await;
    let out = now(&stage, &record, "writes").await.stdout;
    assert_eq!(out.written, 8_000_008);
    assert!(out.written - out.dropped <= 256 << 10 && out.written - out.dropped >= 128 << 10);
    assert!(stage.output(&record, "writes").await.ends_with("0999999\n1000000\n"));
    // What was counted when it ended is not the last word, also where nobody could say it.
    let (keeper, first, others) = stage.processes();
    let held = hold(&[vec![keeper, first], others].concat());
    kill(keeper);
    await_ends(&held);
    for _ in 0..2 {
        let status = now(&stage, &record, "writes").await;
        assert_eq!((status.left, status.stdout.written), (None, 8_000_008));
        assert_eq!(status.ended.unwrap().ending, Ending::Exited(0));
        stage.backend.destroy(&record, DestroyReason::Success).await.unwrap();
    }
    let happened = stage.happened(&record.id).await;
    let [.., Happened::ExecEmptied(status), Happened::Destroyed(DestroyReason::Lost)] =
        &happened[..]
    else {
        panic!("{happened:?}")
    };
    assert_eq!(status.stdout.written, 8_000_008);
    stage.end(&record).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_of_time_output_and_processes_hold_for_what_is_left() {
    let stage = Stage::new("kept-left-limits");
    let record = stage.make("kept-left-limits").await;
    // While it runs, a kill takes all, and its end is told when none is left.
    let mut timed = detached("timed", &format!("{LEAVES_THREE} sleep 300"));
    timed.command.timeout = Some(Duration::from_millis(700));
    assert_eq!(starts(&stage, &record, &timed).await, Ending::Killed(Cause::Time));
    assert_eq!(stage.processes().2, [0; 0]);
    let much = format!("{LEAVES_THREE} yes");
    let much = ExecOrder { max_output_bytes: Some(100_000), ..detached("much", &much) };
    assert_eq!(starts(&stage, &record, &much).await, Ending::Killed(Cause::Output));
    assert_eq!(stage.processes().2, [0; 0]);
    for (name, input, ending) in [
        ("canceled", ExecInput::Kill, Ending::Canceled),
        ("killed", ExecInput::Signal(9), Ending::Signaled(9)),
    ] {
        let order = detached(name, &format!("{LEAVES_THREE} echo up; sleep 300"));
        for order in [order.clone(), at_terminal(order)] {
            let mut order = order;
            let name = format!("{name}-{}", order.command.terminal.is_some());
            order.command.id = id(&name);
            stage.backend.start(&record, &order).await.unwrap();
            stage.says(&record, &name, "up").await;
            stage.backend.input(&record, &id(&name), &input).await.unwrap();
            assert_eq!(stage.wait(&record, &name).await.ended.unwrap().ending, ending);
            assert_eq!(stage.processes().2, [0; 0]);
        }
    }
    // When it has ended its time goes on, and so does the count of what is written.
    let mut timed = detached("late", &format!("{LEAVES_THREE} exit 5"));
    timed.command.timeout = Some(Duration::from_millis(700));
    assert_eq!(starts(&stage, &record, &timed).await, Ending::Exited(5));
    let writes = "sh -c 'while ! test -e go; do sleep 0.01; done; yes' & exit 6";
    let writes = ExecOrder { max_output_bytes: Some(100_000), ..detached("writes", writes) };
    assert_eq!(starts(&stage, &record, &writes).await, Ending::Exited(6));
    std::fs::write(stage.ground.workspace().join("go"), "").unwrap();
    for (name, code) in [("late", 5), ("writes", 6)] {
        let status = emptied(&stage, &record, name).await;
        assert_eq!(status.ended.unwrap().ending, Ending::Exited(code));
    }
    assert_eq!(stage.processes().2, [0; 0]);
    stage.end(&record).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_left_counts_against_the_limit_of_processes() {
    let stage = Stage::new("kept-left-pids");
    let mut spec = stage.spec();
    spec.limits.pids = Limit::Asked(20);
    let order = SandboxOrder {
        spec,
        owner: String::new(),
        deadlines: Deadlines::default(),
        home: None,
        kept: None,
    };
    let name = crate::stage::sandbox_id("kept-left-pids");
    let record = match stage.backend.create(&name, &order).await {
        Ok(record) => record,
        Err(error) if error.kind == ErrorKind::Unenforceable => {
            return println!("skipped: cgroup: {}", error.message);
        }
        Err(error) => panic!("{error:?}"),
    };
    let ten = "for i in $(seq 10); do sleep 300 & done; exit 0";
    assert_eq!(starts(&stage, &record, &exec("ten", ten)).await, Ending::Exited(0));
    assert_eq!(starts(&stage, &record, &detached("left", ten)).await, Ending::Exited(0));
    // Named as the cause where it is counted.
    assert_ne!(starts(&stage, &record, &exec("again", ten)).await, Ending::Exited(0));
    stage.backend.input(&record, &id("left"), &ExecInput::Kill).await.unwrap();
    emptied(&stage, &record, "left").await;
    assert_eq!(starts(&stage, &record, &exec("third", ten)).await, Ending::Exited(0));
    stage.end(&record).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_left_ends_by_a_signal_to_its_command() {
    let stage = Stage::new("kept-left-signal");
    let record = stage.make("kept-left-signal").await;
    let script = format!("{LEAVES_THREE} {STUBBORN} exit 3");
    for order in [detached("streams", &script), at_terminal(detached("terminal", &script))] {
        let name = order.command.id.clone();
        let name = name.as_str();
        assert_eq!(starts(&stage, &record, &order).await, Ending::Exited(3));
        hears(&stage, &record, name, "up").await;
        stage.backend.input(&record, &id(name), &ExecInput::Signal(15)).await.unwrap();
        hears(&stage, &record, name, "stays").await;
        // It and what it waits for.
        let end = Instant::now() + PATIENCE;
        while now(&stage, &record, name).await.left.is_none_or(|left| left > 2) {
            assert!(Instant::now() < end, "the others go");
        }
        stage.backend.input(&record, &id(name), &ExecInput::Signal(9)).await.unwrap();
        let status = emptied(&stage, &record, name).await;
        assert_eq!(status.ended.unwrap().ending, Ending::Exited(3));
        assert_eq!(stage.processes().2, [0; 0]);
        let late = stage.backend.input(&record, &id(name), &ExecInput::Signal(9)).await;
        assert_eq!(late.unwrap_err().kind, ErrorKind::Conflict);
        stage.backend.input(&record, &id(name), &ExecInput::Kill).await.unwrap();
        let happened = stage.happened(&record.id).await;
        assert!(matches!(happened.last(), Some(Happened::ExecEmptied(_))), "{happened:?}");
    }
    // By itself, too.
    assert_eq!(
        starts(&stage, &record, &detached("short", "sleep 0.2 & exit 0")).await,
        Ending::Exited(0)
    );
    emptied(&stage, &record, "short").await;
    stage.end(&record).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_left_dies_with_the_keeper_and_with_the_first_process() {
    let stage = Stage::new("kept-left-dies");
    let before = stage.ground.left("kept-left-dies");
    for number in 0..4 {
        let record = stage.make("kept-left-dies").await;
        let order = detached("left", &format!("{LEAVES_THREE} exit 3"));
        let order = if number < 2 { order } else { at_terminal(order) };
        assert_eq!(starts(&stage, &record, &order).await, Ending::Exited(3));
        let (keeper, first, others) = stage.processes();
        // A monitor is among them.
        assert_eq!(others.len(), 4);
        let held = hold(&[vec![keeper, first], others].concat());
        kill([keeper, first][number % 2]);
        await_ends(&held);
        stage.backend.destroy(&record, DestroyReason::Success).await.unwrap();
        assert_eq!(now(&stage, &record, "left").await.ended.unwrap().ending, Ending::Exited(3));
        assert_eq!(stage.ground.left("kept-left-dies"), before);
        stage.backend.forget(&record.id).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_kills_or_stops_a_monitor_keeps_nothing_by_it() {
    let stage = Stage::new("kept-left-monitor");
    let record = stage.make("kept-left-monitor").await;
    let parent = "cut -d' ' -f4 /proc/$(cat /tmp/child)/stat";
    let leaves = "setsid sh -c 'echo $$ >/tmp/child; exec sleep 300' & \
         while ! test -s /tmp/child; do :; done; sleep 300 & exit 3";
    for (name, signal) in [("killed", "KILL"), ("stopped", "STOP")] {
        assert_eq!(
            starts(&stage, &record, &detached(name, leaves)).await,
            Ending::Exited(3),
            "{name}"
        );
        let attack = exec(&format!("{name}-by"), &format!("kill -{signal} $({parent})"));
        assert_eq!(starts(&stage, &record, &attack).await, Ending::Exited(0));
        if signal == "STOP" {
            assert_eq!(now(&stage, &record, name).await.left, Some(2));
            stage.backend.input(&record, &id(name), &ExecInput::Signal(9)).await.unwrap();
        }
        emptied(&stage, &record, name).await;
        assert_eq!(stage.processes().2, [0; 0]);
        assert_eq!(
            stage.run(&record, &exec(&format!("{name}-rm"), "rm /tmp/child")).await,
            Ending::Exited(0)
        );
    }
    // While the command runs, too.
    let runs = "setsid sleep 300 & kill -STOP $PPID; echo up; sleep 300";
    let mut runs = detached("runs", runs);
    runs.command.stdin = Stdin::Piped;
    stage.backend.start(&record, &runs).await.unwrap();
    stage.says(&record, "runs", "up").await;
    stage.backend.input(&record, &id("runs"), &ExecInput::Kill).await.unwrap();
    assert_eq!(stage.wait(&record, "runs").await.ended.unwrap().ending, Ending::Canceled);
    assert_eq!(stage.processes().2, [0; 0]);
    let dies = detached("dies", "setsid sleep 300 & kill -KILL $PPID; sleep 300");
    assert_eq!(starts(&stage, &record, &dies).await, Ending::Signaled(9));
    assert_eq!(stage.processes().2, [0; 0]);
    stage.end(&record).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_left_is_frozen_and_counts_as_use_where_its_command_does() {
    let stage = Stage::new("kept-left-pause");
    let idle = Deadlines { idle_pause_ms: Some(150), ..Deadlines::default() };
    let record = stage.make_with("kept-left-pause", idle).await;
    let asleep = || async {
        let status = stage.backend.status(&record).await.unwrap();
        status == SandboxStatus::Paused
    };
    let counts = "sh -c 'while :; do echo >>counter; done' & exit 0";
    stage.backend.start(&record, &detached("counts", counts)).await.unwrap();
    let end = Instant::now() + PATIENCE;
    while !asleep().await {
        assert!(Instant::now() < end, "it does not go to sleep");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let counter = stage.ground.workspace().join("counter");
    let count = || std::fs::metadata(&counter).map_or(0, |file| file.len());
    let before = count();
    assert!(before > 0);
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(count(), before);
    // What it left can be counted while nothing of it moves, and told nothing.
    assert_eq!(now(&stage, &record, "counts").await.left, Some(1));
    let signal = ExecInput::Signal(15);
    let refused = stage.backend.input(&record, &id("counts"), &signal).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Conflict);
    stage.backend.resume(&record).await.unwrap();
    until("it goes on", || count() > before);
    stage.backend.input(&record, &id("counts"), &ExecInput::Kill).await.unwrap();
    emptied(&stage, &record, "counts").await;
    let awake = ExecOrder { keep_awake: true, ..detached("awake", "sleep 0.8 & exit 0") };
    assert_eq!(starts(&stage, &record, &awake).await, Ending::Exited(0));
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(!asleep().await);
    while !asleep().await {
        assert!(Instant::now() < end, "it does not go to sleep");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    stage.end(&record).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_shell_at_a_terminal_leaves_goes_on_and_writes_there() {
    let stage = Stage::new("kept-left-shell");
    let record = stage.make("kept-left-shell").await;
    let mut order = at_terminal(detached("shell", "exec sh -i"));
    order.command.stdin = Stdin::Piped;
    stage.backend.start(&record, &order).await.unwrap();
    let keys = "(while ! test -e go; do sleep 0.01; done; echo la''ter; sleep 300) &\nexit 4\n";
    stage.backend.input(&record, &id("shell"), &ExecInput::Bytes(keys.into())).await.unwrap();
    assert_eq!(stage.wait(&record, "shell").await.ended.unwrap().ending, Ending::Exited(4));
    std::fs::write(stage.ground.workspace().join("go"), "").unwrap();
    hears(&stage, &record, "shell", "later").await;
    assert!(now(&stage, &record, "shell").await.left.is_some_and(|left| left > 0));
    stage.backend.input(&record, &id("shell"), &ExecInput::Signal(9)).await.unwrap();
    emptied(&stage, &record, "shell").await;
    assert_eq!(stage.processes().2, [0; 0]);
    stage.end(&record).await;
}

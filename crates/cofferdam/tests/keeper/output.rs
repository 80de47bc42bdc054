//! What commands read and write, and what ends them.

use crate::stage::{Stage, detached, exec, id};
use cofferdam::{
    Cause, DestroyReason, DurableBackend, Ending, ErrorKind, ExecInput, ExecOrder, Limit, Part,
    Sandbox, SandboxOrder, Standard, Stdin, Terminal,
};
use std::time::{Duration, Instant};

#[tokio::test(flavor = "multi_thread")]
async fn output_beyond_what_is_kept_loses_its_beginning_and_keeps_its_offsets() {
    let stage = Stage::new("kept-spool");
    let record = stage.make("kept-spool").await;
    let order = ExecOrder { spool_bytes: 256 << 10, ..exec("long", "seq -w 1 1000000") };
    assert_eq!(stage.run(&record, &order).await, Ending::Exited(0));
    let out = stage.wait(&record, "long").await.stdout;
    assert_eq!(out.written, 8_000_000);
    assert!(out.written - out.dropped <= 256 << 10 && out.written - out.dropped >= 128 << 10);
    for _ in 0..2 {
        let part = Part { stream: Standard::Output, offset: 0, len: 1 << 20 };
        let chunk = stage.backend.read(&record.id, &id("long"), part).await.unwrap();
        assert_eq!(
            (chunk.offset, chunk.bytes.len() as u64),
            (out.dropped, out.written - out.dropped)
        );
        assert!(chunk.bytes.ends_with(b"0999999\n1000000\n"));
        let part = Part { stream: Standard::Output, offset: 7_999_992, len: 8 };
        let chunk = stage.backend.read(&record.id, &id("long"), part).await.unwrap();
        assert_eq!(chunk.bytes, b"1000000\n");
        // It can be read again after the end.
        stage.backend.destroy(&record, DestroyReason::Success).await.unwrap();
    }
    stage.end(&record).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_reads_what_it_is_given_and_sees_the_end_of_it() {
    let stage = Stage::new("kept-stdin");
    let record = stage.make("kept-stdin").await;
    let mut order = exec("cat", "cat; echo end");
    order.command.stdin = Stdin::Piped;
    stage.backend.start(&record, &order).await.unwrap();
    let big = vec![b'x'; 3 << 20];
    for bytes in [b"one\n".to_vec(), vec![0xff, 0, b'\n'], big] {
        stage.backend.input(&record, &id("cat"), &ExecInput::Bytes(bytes)).await.unwrap();
    }
    for _ in 0..2 {
        stage.backend.input(&record, &id("cat"), &ExecInput::Close).await.unwrap();
    }
    let more = ExecInput::Bytes(b"more".to_vec());
    let refused = stage.backend.input(&record, &id("cat"), &more).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Conflict);
    let status = stage.wait(&record, "cat").await;
    assert_eq!(status.ended.unwrap().ending, Ending::Exited(0));
    assert_eq!(status.stdout.written, 4 + 3 + (3 << 20) + 4);
    for input in [ExecInput::Kill, ExecInput::Close] {
        stage.backend.input(&record, &id("cat"), &input).await.unwrap();
    }
    let late = stage.backend.input(&record, &id("cat"), &ExecInput::Signal(15)).await;
    assert_eq!(late.unwrap_err().kind, ErrorKind::Conflict);
    // One that was given no input has none to give.
    stage.backend.start(&record, &exec("none", "sleep 300")).await.unwrap();
    let refused = stage.backend.input(&record, &id("none"), &more).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Conflict);
    stage.end(&record).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_can_be_typed_into_resized_and_interrupted() {
    let stage = Stage::new("kept-tty");
    let record = stage.make("kept-tty").await;
    let mut order = exec(
        "tty",
        "stty size; trap 'stty size; exit 7' WINCH; read x; echo got $x; sleep 300 & wait",
    );
    order.command.terminal = Some(Terminal { rows: 30, columns: 100 });
    order.command.stdin = Stdin::Piped;
    let status = stage.backend.start(&record, &order).await.unwrap();
    assert!(status.terminal);
    stage.says(&record, "tty", "30 100").await;
    let tty = id("tty");
    stage.backend.input(&record, &tty, &ExecInput::Bytes(b"word\n".to_vec())).await.unwrap();
    stage.says(&record, "tty", "got word").await;
    let size = ExecInput::Resize(Terminal { rows: 20, columns: 50 });
    stage.backend.input(&record, &tty, &size).await.unwrap();
    stage.says(&record, "tty", "20 50").await;
    assert_eq!(stage.wait(&record, "tty").await.ended.unwrap().ending, Ending::Exited(7));

    let mut order = exec("int", "cat");
    order.command.terminal = Some(Terminal { rows: 30, columns: 100 });
    order.command.stdin = Stdin::Piped;
    stage.backend.start(&record, &order).await.unwrap();
    // Said once by the terminal, and once by the program that is to be interrupted.
    let word = ExecInput::Bytes(b"word\n".to_vec());
    stage.backend.input(&record, &id("int"), &word).await.unwrap();
    stage.says(&record, "int", "word\r\nword").await;
    let key = ExecInput::Bytes(vec![3]);
    stage.backend.input(&record, &id("int"), &key).await.unwrap();
    let ending = stage.wait(&record, "int").await.ended.unwrap().ending;
    assert!(matches!(ending, Ending::Signaled(2) | Ending::Exited(130)), "{ending:?}");
    stage.end(&record).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn causes_of_an_end_are_told_apart() {
    let stage = Stage::new("kept-causes");
    let mut spec = stage.spec();
    spec.limits.disk_bytes = Limit::Asked(16 << 20);
    let order = SandboxOrder {
        spec,
        owner: String::new(),
        deadlines: cofferdam::Deadlines::default(),
        home: None,
        kept: None,
    };
    let record =
        stage.backend.create(&crate::stage::sandbox_id("kept-causes"), &order).await.unwrap();
    let mut timed = exec("time", "setsid sleep 300 & sleep 300");
    timed.command.timeout = Some(Duration::from_millis(100));
    assert_eq!(stage.run(&record, &timed).await, Ending::Killed(Cause::Time));
    let much = ExecOrder { max_output_bytes: Some(100_000), ..exec("output", "yes") };
    assert_eq!(stage.run(&record, &much).await, Ending::Killed(Cause::Output));
    let full = exec("disk", "cat /dev/zero >/tmp/full");
    assert_eq!(stage.run(&record, &full).await, Ending::Killed(Cause::Disk { code: 1 }));
    assert_eq!(stage.run(&record, &exec("fine", "true")).await, Ending::Exited(0));
    // Who finds no room fails by that or by anything else, and tells of it by itself.
    assert_eq!(stage.run(&record, &exec("other", "false")).await, Ending::Exited(1));
    assert_eq!(stage.run(&record, &exec("room", "rm /tmp/full; false")).await, Ending::Exited(1));
    let full = exec("again", "cat /dev/zero >/tmp/full");
    assert_eq!(stage.run(&record, &full).await, Ending::Killed(Cause::Disk { code: 1 }));
    assert_eq!(stage.run(&record, &exec("self", "kill -9 $$")).await, Ending::Signaled(9));
    stage.backend.start(&record, &exec("killed", "setsid sleep 300 & sleep 300")).await.unwrap();
    stage.backend.input(&record, &id("killed"), &ExecInput::Kill).await.unwrap();
    assert_eq!(stage.wait(&record, "killed").await.ended.unwrap().ending, Ending::Canceled);
    stage.backend.start(&record, &exec("term", "sleep 300")).await.unwrap();
    stage.backend.input(&record, &id("term"), &ExecInput::Signal(15)).await.unwrap();
    assert_eq!(stage.wait(&record, "term").await.ended.unwrap().ending, Ending::Signaled(15));
    // Nothing of them is left.
    assert_eq!(stage.processes().2, [0; 0]);
    stage.backend.start(&record, &detached("last", "sleep 300")).await.unwrap();
    stage.backend.destroy(&record, DestroyReason::Canceled).await.unwrap();
    assert_eq!(stage.wait(&record, "last").await.ended.unwrap().ending, Ending::Canceled);
    stage.end(&record).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_and_processes_are_named_as_causes_where_they_are_counted() {
    let stage = Stage::new("kept-limits");
    let spec = Sandbox::builder().workspace(stage.ground.workspace());
    let mut spec = spec.spec().unwrap();
    spec.limits.memory_bytes = Limit::Asked(64 << 20);
    spec.limits.pids = Limit::Asked(20);
    let order = SandboxOrder {
        spec,
        owner: String::new(),
        deadlines: cofferdam::Deadlines::default(),
        home: None,
        kept: None,
    };
    let name = crate::stage::sandbox_id("kept-limits");
    let record = match stage.backend.create(&name, &order).await {
        Ok(record) => record,
        Err(error) if error.kind == ErrorKind::Unenforceable => {
            return println!("skipped: cgroup: {}", error.message);
        }
        Err(error) => panic!("{error:?}"),
    };
    let mut hog = exec("memory", "");
    hog.command.argv = ["bash", "-c", "x=$(head -c 200M /dev/zero | tr '\\0' x); echo ${#x}"]
        .map(Into::into)
        .into();
    assert_eq!(stage.run(&record, &hog).await, Ending::Killed(Cause::Memory));
    let bomb = exec("pids", "for i in $(seq 100); do sleep 60 & done; exit 5");
    let ending = stage.run(&record, &bomb).await;
    assert!(matches!(ending, Ending::Killed(Cause::Pids { .. })), "{ending:?}");
    stage.end(&record).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_that_holds_the_output_does_not_delay_the_end() {
    let stage = Stage::new("kept-holds");
    let record = stage.make("kept-holds").await;
    let begun = Instant::now();
    let order = exec("holds", "setsid sleep 300 & echo up");
    assert_eq!(stage.run(&record, &order).await, Ending::Exited(0));
    assert!(begun.elapsed() < Duration::from_secs(20));
    assert_eq!(stage.output(&record, "holds").await, "up\n");
    // A kill that races with the end harms nobody.
    for number in 0..50 {
        let name = format!("race-{number}");
        stage.backend.start(&record, &exec(&name, "exit 3")).await.unwrap();
        let _ = stage.backend.input(&record, &id(&name), &ExecInput::Signal(15)).await;
        stage.backend.input(&record, &id(&name), &ExecInput::Kill).await.unwrap();
        let ending = stage.wait(&record, &name).await.ended.unwrap().ending;
        let known = [Ending::Exited(3), Ending::Canceled, Ending::Signaled(15)];
        assert!(known.contains(&ending), "{ending:?}");
    }
    assert_eq!(stage.run(&record, &exec("after", "true")).await, Ending::Exited(0));
    stage.end(&record).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_a_command_at_a_terminal_is_left_when_its_end_is_told() {
    let stage = Stage::new("kept-tty-left");
    let record = stage.make("kept-tty-left").await;
    for number in 0..10 {
        let leaves = "setsid sh -c 'touch /tmp/up; exec sleep 300' & \
            while ! test -e /tmp/up; do :; done; rm /tmp/up; exit 3";
        let mut order = exec(&format!("tty-{number}"), leaves);
        order.command.terminal = Some(Terminal { rows: 30, columns: 100 });
        assert_eq!(stage.run(&record, &order).await, Ending::Exited(3));
        assert_eq!(stage.processes().2, [0; 0], "{number}");
    }
    stage.end(&record).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_waits_for_the_end_as_long_as_it_is_given_and_not_longer() {
    let stage = Stage::new("patient");
    let sandbox = stage.make("patient").await;
    let started = async |order: ExecOrder| {
        let answer = stage.backend.start_and_wait(&sandbox, &order, Duration::from_secs(1));
        answer.await.unwrap()
    };
    // A machine that is busy may take longer than that, but not each time.
    let ended = async |name: &str, argv: &[&str]| {
        for number in 0..20 {
            let mut order = exec(&format!("{name}{number}"), "");
            order.command.argv = argv.iter().map(Into::into).collect();
            let status = started(order).await;
            if let Some(ended) = status.ended {
                return (status.id, ended.ending, status.stdout.written, status.stderr.written);
            }
        }
        panic!("{name} never ended within a second");
    };
    let (says, ending, ..) = ended("says", &["sh", "-c", "echo x; exit 3"]).await;
    assert_eq!(ending, Ending::Exited(3));
    assert_eq!(stage.output(&sandbox, says.as_str()).await, "x\n");
    // More than a pipe of Cofferdam's holds, so that it does not end before it is read.
    let much = "head -c 3000000 /dev/zero; head -c 2000000 /dev/zero >&2";
    let (_, ending, stdout, stderr) = ended("much", &["sh", "-c", much]).await;
    assert_eq!((ending, stdout, stderr), (Ending::Exited(0), 3_000_000, 2_000_000));
    let (_, ending, ..) = ended("missing", &["/no/such"]).await;
    assert!(matches!(ending, Ending::NotStarted { .. }));
    // The same again starts nothing, and is answered at once.
    let again = started(exec(says.as_str(), "echo x; exit 3")).await;
    assert_eq!(again.ended.unwrap().ending, Ending::Exited(3));
    assert_eq!(started(exec("long", "echo up; sleep 60")).await.ended, None);
    stage.says(&sandbox, "long", "up").await;
    stage.backend.input(&sandbox, &id("long"), &ExecInput::Signal(15)).await.unwrap();
    assert_eq!(stage.wait(&sandbox, "long").await.ended.unwrap().ending, Ending::Signaled(15));
    // One that leaves something is told of as ever.
    assert_eq!(started(detached("left", "sleep 60")).await.ended, None);
    stage.end(&sandbox).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_whose_output_is_bounded_is_told_of_and_read_at_once() {
    let stage = Stage::new("bounded");
    let sandbox = stage.make("bounded").await;
    let most = Duration::from_secs(1);
    // A machine that is busy may take longer than half of that, but not each time. Neither ends by itself.
    let soonest = async |name: &str, bytes: Option<u64>| {
        let mut soonest = Duration::MAX;
        for number in 0..5 {
            let order = exec(&format!("{name}{number}"), "sleep 60");
            let order = ExecOrder { max_output_bytes: bytes, ..order };
            let began = Instant::now();
            let status = stage.backend.start_and_wait(&sandbox, &order, most).await.unwrap();
            assert_eq!(status.ended, None);
            soonest = soonest.min(began.elapsed());
            stage.backend.input(&sandbox, &order.command.id, &ExecInput::Kill).await.unwrap();
        }
        soonest
    };
    assert!(soonest("bounded", Some(1000)).await < most / 2);
    // The control: it may write what it likes, and its end is waited for.
    assert!(soonest("unbounded", None).await >= most);
    let ending = async |name: String, script: &str| {
        let order = ExecOrder { max_output_bytes: Some(1000), ..exec(&name, script) };
        stage.backend.start_and_wait(&sandbox, &order, most).await.unwrap();
        stage.wait(&sandbox, &name).await.ended.unwrap().ending
    };
    let output = Ending::Killed(Cause::Output);
    assert_eq!(ending("forever".to_owned(), "exec yes").await, output);
    // One that ends by itself a moment after it wrote too much: it is read before.
    let short = "printf %02000d 0; i=0; while [ $i -lt 500 ]; do i=$((i+1)); done";
    let mut killed = 0;
    for number in 0..20 {
        killed += usize::from(ending(format!("short{number}"), short).await == output);
    }
    assert!(killed > 0, "none of them was told as ended for its output");
    stage.end(&sandbox).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_to_which_nothing_was_written_is_empty_and_has_no_file() {
    let stage = Stage::new("silent");
    let sandbox = stage.make("silent").await;
    stage.run(&sandbox, &exec("silent", "true")).await;
    stage.run(&sandbox, &exec("loud", "echo x >&2")).await;
    let files = || {
        let directory = stage.state().join("sessions").join(sandbox.id.as_str());
        let names = std::fs::read_dir(directory).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.filter(|name| name.starts_with("exec-")).collect();
        names.sort();
        names
    };
    assert_eq!(files(), ["exec-loud.err"]);
    let mut terminal = exec("terminal", "true");
    terminal.command.terminal = Some(Terminal { rows: 24, columns: 80 });
    stage.run(&sandbox, &terminal).await;
    let check = async || {
        for stream in [Standard::Output, Standard::Error] {
            assert_eq!(stage.stream(&sandbox, "silent", stream).await, "");
        }
        for (name, stream) in [("other", Standard::Output), ("terminal", Standard::Error)] {
            let part = Part { stream, offset: 0, len: 9 };
            let error = stage.backend.read(&sandbox.id, &id(name), part).await.unwrap_err();
            assert_eq!(error.kind, ErrorKind::NotFound);
        }
    };
    check().await;
    stage.backend.destroy(&sandbox, DestroyReason::Success).await.unwrap();
    check().await;
    stage.end(&sandbox).await;
}

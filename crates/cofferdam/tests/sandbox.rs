//! What a program does with sandboxes.
#![expect(clippy::unwrap_used, reason = "the functions beside the tests are of tests too")]

use cofferdam::process_sandbox::{
    CofferdamSandbox, ExecSandboxContext, ProcessSandbox, SandboxProfile,
};
use cofferdam::{
    Basis, Caller, Cause, Ending, ErrorKind, OnUnavailable, Output, Process, ProcessEvent,
    ProcessInput, Profile, Sandbox, SensitiveWrites, Terminal, own_backend,
};
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A directory for one test. Gone in the end.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("cofferdam-use-{name}-{}", std::process::id()));
        std::fs::create_dir_all(path.join("workspace/inner")).unwrap();
        Self(path)
    }

    fn builder(&self) -> cofferdam::Builder {
        Sandbox::builder()
            .workspace(self.0.join("workspace"))
            .backend(Arc::new(own_backend(self.0.join("state"))))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn text(output: &Output) -> (&str, &str, &Ending) {
    let utf8 = |bytes| std::str::from_utf8(bytes).unwrap();
    (utf8(&output.stdout), utf8(&output.stderr), &output.ending)
}

#[tokio::test]
async fn a_command_gets_what_its_caller_says() {
    let place = Place::new("says");
    let sandbox = place.builder().env("A", "1").env("B", "1").create().await.unwrap();
    assert_eq!(sandbox.enforced().basis, Basis::Applied);
    let line = "cat; echo $A$B; basename $PWD; echo err >&2; exit 3";
    let command = sandbox.exec(["sh", "-c", line]).stdin("in ").env("B", "2").cwd("inner");
    let output = command.run().await.unwrap();
    assert_eq!(text(&output), ("in 12\ninner\n", "err\n", &Ending::Exited(3)));
    let output = sandbox.exec(["cat"]).await.unwrap();
    assert_eq!(text(&output), ("", "", &Ending::Exited(0)));
    let output = sandbox.exec(["no-such-program"]).await.unwrap();
    assert_eq!(output.ending.exit_code(), 127);
    let output = sandbox.exec(["true"]).cwd("missing").await.unwrap();
    assert_eq!(output.ending.exit_code(), 125);
    sandbox.destroy().await.unwrap();
}

#[tokio::test]
async fn control_files_that_appear_are_told_when_it_ends() {
    let place = Place::new("appear");
    let sandbox = place.builder().create().await.unwrap();
    let line = "git init -q inner/new && echo > inner/usual";
    let output = sandbox.exec(["sh", "-c", line]).await.unwrap();
    assert_eq!(output.ending, Ending::Exited(0), "{output:?}");
    let told = sandbox.destroy().await.unwrap().new_control_files;
    assert!(told.iter().any(|path| path == "inner/new/.git/hooks"), "{told:?}");
    assert!(told.iter().all(|path| path.starts_with("inner/new/.git")), "{told:?}");
    let next = place.builder().create().await.unwrap();
    assert_eq!(
        next.destroy().await.unwrap().new_control_files,
        [""; 0],
        "what is known is no news"
    );
}

#[tokio::test]
async fn large_input_and_output_pass_whole() {
    let place = Place::new("large");
    let sandbox = place.builder().create().await.unwrap();
    let bytes: Vec<u8> = (0..5_000_000_u32).map(|n| n.to_le_bytes()[0] ^ 0x5a).collect();
    let output = sandbox.exec(["cat"]).stdin(bytes.clone()).await.unwrap();
    assert!(output.stdout == bytes, "{} of {} bytes", output.stdout.len(), bytes.len());
    // A command that reads nothing does not keep its caller.
    let output = sandbox.exec(["true"]).stdin(bytes).await.unwrap();
    assert_eq!(output.ending, Ending::Exited(0));
    let output = sandbox.exec(["head", "-c", "1000", "/dev/zero"]).max_output(10).await.unwrap();
    assert_eq!((output.stdout.len(), output.omitted.stdout), (10, 990));
}

#[tokio::test]
async fn time_ends_a_command_and_so_does_giving_up() {
    let place = Place::new("time");
    let sandbox = place.builder().create().await.unwrap();
    let slow = || sandbox.exec(["sh", "-c", "echo first; sleep 300"]);
    let output = slow().timeout(Duration::from_millis(200)).await.unwrap();
    assert_eq!(text(&output), ("first\n", "", &Ending::Killed(Cause::Time)));
    let given_up = tokio::time::timeout(Duration::from_millis(200), slow().run()).await;
    assert!(given_up.is_err());
    let guest = sandbox.guest().unwrap();
    while !guest.processes().await.unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
}

/// It stops all but itself, again and again.
const STOPS_ALL: &str = "echo; while :; do kill -STOP -1; done";

#[tokio::test]
async fn who_stops_everything_inside_delays_only_what_runs_inside() {
    let place = Place::new("stops");
    let sandbox = place.builder().create().await.unwrap();
    let mut stopper = sandbox.exec(["sh", "-c", STOPS_ALL]).spawn().await.unwrap();
    stopper.events.recv().await.unwrap();
    let soon = Duration::from_secs(30);
    for _ in 0..40 {
        // It may be stopped before its program runs, or after; then its time ends it.
        let patience = Duration::from_millis(20);
        let stopped = sandbox.exec(["true"]).timeout(patience).run();
        let output = tokio::time::timeout(soon, stopped).await.unwrap().unwrap();
        assert!(matches!(output.ending, Ending::Exited(0) | Ending::Killed(Cause::Time)));
        let started = sandbox.exec(["true"]).timeout(patience).spawn();
        let mut started = tokio::time::timeout(soon, started).await.unwrap().unwrap();
        while started.events.recv().await.is_some() {}
    }
    stopper.killer.kill();
    while stopper.events.recv().await.is_some() {}
    let output = tokio::time::timeout(soon, sandbox.exec(["true"]).run()).await.unwrap().unwrap();
    assert_eq!(output.ending, Ending::Exited(0));
    sandbox.destroy().await.unwrap();
}

#[tokio::test]
async fn output_that_is_told_together_is_whole_whoever_writes_it() {
    let place = Place::new("together");
    let sandbox = place.builder().create().await.unwrap();
    for (line, out, err) in [
        ("printf one; printf two >&2", "one", "two"),
        // Longer than a command is left alone.
        ("printf one; sleep 0.05; printf two", "onetwo", ""),
        // A child that outlives its command, and holds its output.
        ("(printf late; sleep 1000) & sleep 0.01; printf one", "lateone", ""),
    ] {
        let begin = std::time::Instant::now();
        let output = sandbox.exec(["sh", "-c", line]).await.unwrap();
        assert_eq!(text(&output), (out, err, &Ending::Exited(0)), "{line}");
        assert!(begin.elapsed() < Duration::from_secs(100));
    }
    // More than a pipe, than what waits, and than the first credit.
    let line = "head -c 3000000 /dev/zero; head -c 70000 /dev/zero >&2";
    let output = sandbox.exec(["sh", "-c", line]).max_output(2_500_000).await.unwrap();
    assert_eq!((output.stdout.len(), output.omitted.stdout), (2_500_000, 500_000));
    assert_eq!((output.stderr.len(), output.omitted.stderr), (70_000, 0));
    sandbox.destroy().await.unwrap();
}

#[tokio::test]
async fn a_spawned_command_is_talked_to() {
    let place = Place::new("talk");
    let sandbox = place.builder().create().await.unwrap();
    let mut process = sandbox.exec(["cat"]).open_stdin().spawn().await.unwrap();
    process.input.send(ProcessInput::Bytes(b"hello".to_vec())).await.unwrap();
    let first = process.events.recv().await.unwrap();
    assert!(matches!(first, ProcessEvent::Output { ref bytes, .. } if bytes == b"hello"));
    drop(process.input);
    let last = process.events.recv().await.unwrap();
    assert!(matches!(last, ProcessEvent::Ended { ending: Ending::Exited(0), .. }), "{last:?}");
    let size = Terminal { rows: 33, columns: 77 };
    let output = sandbox.exec(["sh", "-c", "tty; stty size"]).terminal(size).await.unwrap();
    let (said, _, ending) = text(&output);
    assert!(said.starts_with("/dev/pts/") && said.ends_with("33 77\r\n"), "{said:?}");
    assert_eq!(ending, &Ending::Exited(0));
}

async fn written(mut process: Process) -> Vec<u8> {
    let mut all = Vec::new();
    let reading = async {
        while let Some(event) = process.events.recv().await {
            match event {
                ProcessEvent::Output { bytes, .. } => all.extend(bytes),
                ProcessEvent::Ended { ending, .. } => assert_eq!(ending, Ending::Exited(0)),
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), reading).await.unwrap();
    all
}

#[tokio::test]
async fn prepared_input_comes_first_and_ends_unless_more_was_asked_for() {
    let place = Place::new("prepared");
    let sandbox = place.builder().create().await.unwrap();
    let alone = sandbox.exec(["cat"]).stdin("first").spawn().await.unwrap();
    // The sender stays, and it ends all the same.
    let _sender = alone.input.clone();
    assert_eq!(written(alone).await, b"first");
    let large = vec![b'x'; 3 << 20];
    let either = [
        sandbox.exec(["cat"]).stdin(large.clone()).open_stdin(),
        sandbox.exec(["cat"]).open_stdin().stdin(large.clone()),
    ];
    for command in either {
        let process = command.spawn().await.unwrap();
        process.input.send(ProcessInput::Bytes(b"more".to_vec())).await.unwrap();
        process.input.send(ProcessInput::Close).await.unwrap();
        let all = written(process).await;
        assert_eq!(all.len(), large.len() + 4);
        assert!(all.ends_with(b"xmore"));
    }
    sandbox.destroy().await.unwrap();
}

#[tokio::test]
async fn what_no_command_can_be_given_is_refused() {
    let place = Place::new("refused");
    let sandbox = place.builder().create().await.unwrap();
    for (name, value) in [("A=B", "c"), ("", "c"), ("A\0", "c"), ("A", "\0")] {
        let ran = sandbox.exec(["true"]).env(name, value).await;
        assert_eq!(ran.unwrap_err().kind, ErrorKind::Usage, "{name:?}");
    }
    sandbox.destroy().await.unwrap();
    let many = place.builder().pids(u32::MAX).create().await;
    assert_eq!(many.unwrap_err().kind, ErrorKind::Usage);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_piped_command_writes_to_its_callers_pipe() {
    let place = Place::new("piped");
    let sandbox = place.builder().create().await.unwrap();
    let line = "cat; head -c 3000000 /dev/zero; echo err >&2; exit 4";
    let command = sandbox.exec(["sh", "-c", line]).open_stdin();
    let mut piped = command.piped().await.unwrap();
    let mut stdout = File::from(piped.stdout.take().unwrap());
    let mut stderr = File::from(piped.stderr.take().unwrap());
    let stdin = piped.stdin.take().unwrap();
    let reading = tokio::task::spawn_blocking(move || {
        std::io::Write::write_all(&mut File::from(stdin), b"abc").unwrap();
        let (mut out, mut err) = (Vec::new(), String::new());
        stdout.read_to_end(&mut out).unwrap();
        stderr.read_to_string(&mut err).unwrap();
        (out, err)
    });
    for _ in 0..2 {
        assert_eq!(piped.wait().await.unwrap(), Ending::Exited(4), "and it stays so");
    }
    let (out, err) = reading.await.unwrap();
    assert_eq!((&out[..3], out.len(), err.as_str()), (&b"abc"[..], 3_000_003, "err\n"));
    // Nobody reads: what writes meets a broken pipe.
    let mut piped = sandbox.exec(["yes"]).piped().await.unwrap();
    assert_eq!(piped.signal(9999).await.unwrap_err().kind, ErrorKind::Usage);
    piped.stdout = None;
    assert_eq!(piped.wait().await.unwrap(), Ending::Signaled(13));
    let piped = sandbox.exec(["cat"]).stdin("x").piped().await;
    assert_eq!(piped.unwrap_err().kind, ErrorKind::Usage);
    sandbox.destroy().await.unwrap();
}

#[tokio::test]
async fn the_workspace_is_held_as_the_builder_says() {
    let place = Place::new("held");
    let inside = place.0.join("workspace");
    let try_it = "echo x > made; mkdir -p .git/hooks && echo x > .git/hooks/pre-commit";
    for (builder, made, hook) in [
        (place.builder(), true, false),
        (place.builder().profile(Profile::ReadOnly), false, false),
        (place.builder().sensitive_writes(SensitiveWrites::Allowed), true, true),
    ] {
        std::fs::create_dir_all(inside.join(".git/hooks")).unwrap();
        let sandbox = builder.create().await.unwrap();
        sandbox.exec(["sh", "-c", try_it]).await.unwrap();
        sandbox.destroy().await.unwrap();
        assert_eq!(inside.join("made").exists(), made);
        assert_eq!(inside.join(".git/hooks/pre-commit").exists(), hook);
        let _ = std::fs::remove_file(inside.join("made"));
        let _ = std::fs::remove_dir_all(inside.join(".git"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_control_file_that_the_host_replaces_stays_protected() {
    let place = Place::new("replaced");
    let inside = place.0.join("workspace/.git");
    for name in ["refs", "objects"] {
        std::fs::create_dir_all(inside.join(name)).unwrap();
    }
    std::fs::write(inside.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    std::fs::write(inside.join("config"), "[core]\n").unwrap();
    let sandbox = place.builder().create().await.unwrap();
    for round in 0..3 {
        // As `git config` does it.
        std::fs::write(inside.join("config.lock"), format!("[round{round}]\n")).unwrap();
        std::fs::rename(inside.join("config.lock"), inside.join("config")).unwrap();
        let look =
            format!("until grep -q round{round} .git/config && ! test -w .git/config; do :; done");
        let command = sandbox.exec(["sh", "-c", &look]).timeout(Duration::from_secs(20));
        assert_eq!(command.await.unwrap().ending, Ending::Exited(0), "round {round}");
    }
    sandbox.destroy().await.unwrap();
}

#[tokio::test]
async fn nothing_of_the_environment_passes_unasked() {
    let place = Place::new("clean");
    let secret = [("SECRET".into(), "1".into()), ("LANG".into(), "C".into())].into();
    let bare = place.builder().create().await.unwrap();
    let caller = Caller { env: secret, home: None };
    let given = place.builder().caller(caller).create().await.unwrap();
    for (sandbox, expected) in [(&bare, "."), (&given, ".C")] {
        let output = sandbox.exec(["sh", "-c", "printf '%s' $SECRET.$LANG"]).await.unwrap();
        assert_eq!(text(&output).0, expected);
    }
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_before_anything_is_made() {
    let place = Place::new("refused");
    let kind = |made: cofferdam::Result<Sandbox>| made.unwrap_err().kind;
    assert_eq!(kind(place.builder().pids(0).create().await), ErrorKind::Usage);
    let missing = place.builder().workspace("/no/such/directory");
    assert_eq!(kind(missing.create().await), ErrorKind::NotFound);
    let rule = place.builder().egress("example.com:443").unwrap();
    assert_eq!(kind(rule.create().await), ErrorKind::Usage);
    assert_eq!(place.builder().egress("*.com").unwrap_err().kind, ErrorKind::Usage);
    let way_out = place.builder().profile(Profile::FullDev);
    assert_eq!(kind(way_out.create().await), ErrorKind::Unsupported);
    let own_records = place.builder().workspace(&place.0);
    assert_eq!(kind(own_records.create().await), ErrorKind::Denied);
    let sandbox = place.builder().create().await.unwrap();
    let empty = sandbox.exec([""; 0]).await;
    assert_eq!(empty.unwrap_err().kind, ErrorKind::Usage);
}

#[tokio::test]
async fn a_copy_on_write_workspace_is_seen_and_not_written() {
    let place = Place::new("beside");
    let workspace = place.0.join("workspace");
    std::fs::write(workspace.join("f"), "real").unwrap();
    let line =
        "cat f; echo new > f; rmdir inner; mkdir .vscode && echo > .vscode/tasks.json; ls -A";
    let beside = place.builder().copy_on_write_workspace(&workspace);
    let sandbox = beside.create().await.unwrap();
    assert_eq!(sandbox.enforced().basis, Basis::Applied);
    let output = sandbox.exec(["sh", "-c", line]).await.unwrap();
    assert_eq!(text(&output), ("real.vscode\nf\n", "", &Ending::Exited(0)));
    let output = sandbox.exec(["cat", "f"]).await.unwrap();
    assert_eq!(output.stdout, b"new\n", "the layer stays as long as the sandbox does");
    assert_eq!(sandbox.destroy().await.unwrap().new_control_files, [""; 0]);
    assert_eq!(std::fs::read(workspace.join("f")).unwrap(), b"real");
    assert!(workspace.join("inner").exists() && !workspace.join(".vscode").exists());
    let again = place.builder().copy_on_write_workspace(&workspace).create().await.unwrap();
    assert_eq!(again.exec(["cat", "f"]).await.unwrap().stdout, b"real");
    let control = place.builder().create().await.unwrap();
    control.exec(["sh", "-c", "echo new > f"]).await.unwrap();
    assert_eq!(std::fs::read(workspace.join("f")).unwrap(), b"new\n", "the control");
}

#[tokio::test]
async fn a_sandbox_lies_on_an_image_and_shows_nothing_of_the_host() {
    let busybox = ["/bin/busybox", "/usr/bin/busybox"];
    let Some(busybox) = busybox.into_iter().find(|path| std::path::Path::new(path).exists()) else {
        return println!("skipped: busybox: no static busybox is installed");
    };
    let place = Place::new("image");
    let root = place.0.join("root");
    std::fs::create_dir_all(root.join("bin")).unwrap();
    std::fs::copy(busybox, root.join("bin/busybox")).unwrap();
    let tree = cofferdam::ImageLayer { tree: root.clone(), hold: None };
    let (id, name) = (format!("dir:{}", root.display()), "root".to_owned());
    let run = cofferdam::ImageRun::default();
    let image = cofferdam::Image { id, name, layers: vec![tree], hold: None, run };
    let sandbox = place.builder().image(image).create().await.unwrap();
    let inside = |line: &str| ["/bin/busybox", "sh", "-c", line].map(str::to_owned);
    let output = sandbox.exec(inside("busybox ls /bin; echo x >/bin/new")).await.unwrap();
    assert_eq!(text(&output), ("busybox\n", "", &Ending::Exited(0)));
    assert_eq!(sandbox.exec(inside("test -e /usr")).await.unwrap().ending, Ending::Exited(1));
    sandbox.destroy().await.unwrap();
    assert!(!root.join("bin/new").exists() && !root.join("dev").exists());
    let control = place.builder().create().await.unwrap();
    assert_eq!(control.exec(["test", "-e", "/usr"]).await.unwrap().ending, Ending::Exited(0));
}

#[tokio::test]
async fn a_wrapped_command_is_an_argv_of_the_command_line() {
    let place = Place::new("wrap");
    let context = ExecSandboxContext {
        workspace_path: place.0.join("made/by/prepare"),
        cwd: Some("inner".into()),
        profile: SandboxProfile::NoNetwork,
        egress: Vec::new(),
    };
    let argv = ["echo".to_owned(), "--profile=full-dev".to_owned()];
    let missing = CofferdamSandbox::new().program("/no/such/cofferdam");
    assert_eq!(missing.prepare(&context).await.unwrap_err().kind, ErrorKind::Unavailable);
    let caller = Caller {
        env: [("PATH", "/bin"), ("X", "y")].map(|(n, v)| (n.into(), v.into())).into(),
        home: None,
    };
    let sandbox = CofferdamSandbox::new()
        .program("/bin/sh")
        .caller(caller)
        .on_unavailable(OnUnavailable::Degrade);
    assert_eq!(sandbox.wrap(&argv, &context).unwrap_err().kind, ErrorKind::Conflict);
    sandbox.prepare(&context).await.unwrap();
    let wrapped = sandbox.wrap(&argv, &context).unwrap();
    let workspace = format!("--workspace={}", context.workspace_path.display());
    let expected = ["/bin/sh", "run", "--no-config", "--profile=no-network", &workspace];
    let rest = ["--on-unavailable=degrade", "-i", "-T", "--cwd=inner", "--", "echo", &argv[1]];
    assert_eq!(wrapped.argv, [&expected[..], &rest[..]].concat());
    assert_eq!(wrapped.env, [("PATH".to_owned(), "/bin".to_owned())].into());
    assert_eq!(sandbox.wrap(&[], &context).unwrap_err().kind, ErrorKind::Usage);
    let wider = ExecSandboxContext { profile: SandboxProfile::FullDev, ..context.clone() };
    assert_eq!(sandbox.wrap(&argv, &wider).unwrap_err().kind, ErrorKind::Usage);
    let elsewhere = ExecSandboxContext { workspace_path: "/".into(), ..context.clone() };
    assert_eq!(sandbox.wrap(&argv, &elsewhere).unwrap_err().kind, ErrorKind::Usage);
    assert_eq!(sandbox.prepare(&context).await.unwrap_err().kind, ErrorKind::Conflict);
    sandbox.shutdown().await.unwrap();
    assert_eq!(sandbox.wrap(&argv, &context).unwrap_err().kind, ErrorKind::Conflict);
}

/// Nobody looks at the host until what is returned is dropped.
fn nobody_looks() -> std::sync::mpsc::Sender<()> {
    let (go, wait) = std::sync::mpsc::channel();
    tokio::task::spawn_blocking(move || wait.recv());
    go
}

#[test]
fn one_preparation_counts_and_a_shutdown_counts_more() {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().max_blocking_threads(1).build().unwrap();
    runtime.block_on(prepare_out_of_turn());
}

async fn prepare_out_of_turn() {
    let place = Place::new("prepare");
    let context = ExecSandboxContext {
        workspace_path: place.0.join("workspace"),
        cwd: None,
        profile: SandboxProfile::NoNetwork,
        egress: Vec::new(),
    };
    let argv = ["true".to_owned()];
    let fresh =
        || CofferdamSandbox::new().program("/bin/sh").on_unavailable(OnUnavailable::Degrade);
    let kind = |done: cofferdam::Result<()>| done.unwrap_err().kind;
    // Two at once.
    let (sandbox, go) = (fresh(), nobody_looks());
    let (first, second) = tokio::join!(sandbox.prepare(&context), async {
        let second = sandbox.prepare(&context).await;
        drop(go);
        second
    });
    first.unwrap();
    assert_eq!(kind(second), ErrorKind::Conflict);
    // Shut down meanwhile: nothing can be wrapped after it.
    let (sandbox, go) = (fresh(), nobody_looks());
    let (prepared, shut) = tokio::join!(sandbox.prepare(&context), async {
        let shut = sandbox.shutdown().await;
        drop(go);
        shut
    });
    shut.unwrap();
    assert_eq!(kind(prepared), ErrorKind::Conflict);
    assert_eq!(sandbox.wrap(&argv, &context).unwrap_err().kind, ErrorKind::Conflict);
    assert_eq!(kind(sandbox.prepare(&context).await), ErrorKind::Conflict);
    // Given up, and failed: it can be prepared again.
    let (sandbox, go) = (fresh(), nobody_looks());
    tokio::select! {
        biased;
        done = sandbox.prepare(&context) => panic!("nobody looked, and yet {done:?}"),
        () = std::future::ready(()) => drop(go),
    }
    let wrong = ExecSandboxContext { egress: vec!["::".to_owned()], ..context.clone() };
    assert_eq!(kind(sandbox.prepare(&wrong).await), ErrorKind::Usage);
    sandbox.prepare(&context).await.unwrap();
    sandbox.wrap(&argv, &context).unwrap();
}

#[tokio::test]
async fn so_many_connections_to_ports_and_no_more() {
    let place = Place::new("ports");
    let sandbox = place.builder().create().await.unwrap();
    let argv = ["perl", "-MIO::Socket::INET", "-e", LISTENER];
    let mut listener = sandbox.exec(argv).spawn().await.unwrap();
    // It writes once it listens.
    assert!(matches!(listener.events.recv().await, Some(ProcessEvent::Output { .. })));
    let mut open = Vec::new();
    for _ in 0..MAX_PORT_CONNECTIONS {
        open.push(sandbox.connect(28_212).await.unwrap());
    }
    let refused = sandbox.connect(28_212).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Unavailable);
    assert!(refused.message.contains("64 connections"), "{refused}");
    drop(open);
    // Workers end when they see that nobody is there.
    let mut is_given_back = false;
    for _ in 0..500 {
        is_given_back |= sandbox.connect(28_212).await.is_ok();
        if is_given_back {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(is_given_back, "no connection was given back");
    sandbox.destroy().await.unwrap();
}

/// The most connections to ports of a sandbox, as SPECIFICATION says.
const MAX_PORT_CONNECTIONS: usize = 64;

/// Takes connections and says nothing.
const LISTENER: &str = "$| = 1; alarm 90; \
    my $l = IO::Socket::INET->new(LocalAddr => '127.0.0.1:28212', Listen => 128) or die; \
    print 'ready'; my @all; while (my $c = $l->accept) { push @all, $c }";

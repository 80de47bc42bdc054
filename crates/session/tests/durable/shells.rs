//! Shells that stay, driven by a real shell.

use crate::real::Real;
use crate::stage::{Stage, order};
use cofferdam_core::{EndingKind, ErrorKind};
use cofferdam_session::{MAX_SHELL_TEXT, Session, Sessions, Shell, ShellOutput};
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(30);

async fn begin(stage: &Stage) -> Session {
    let home = stage.state.join("outside");
    std::fs::create_dir_all(&home).unwrap();
    std::fs::set_permissions(&stage.state, std::fs::Permissions::from_mode(0o700)).unwrap();
    let backend = Real { fake: stage.backend.clone(), home, commands: Mutex::default() };
    let sessions = Sessions::open(&stage.state, vec![Arc::new(backend)]).await.unwrap();
    sessions.create(&order("a")).await.unwrap()
}

async fn run(shell: &Shell, text: &str) -> ShellOutput {
    shell.run(text.as_bytes(), LONG, 1 << 20).await.unwrap().1
}

async fn check(shell: &Shell, text: &str, code: i32, output: &str) {
    let ran = run(shell, text).await;
    let shown = String::from_utf8_lossy(&ran.output);
    assert_eq!((ran.exit_code, &*shown, ran.died), (Some(code), output, None), "{text}");
}

#[tokio::test]
async fn directory_variables_and_functions_stay() {
    // J1.
    let stage = Stage::new();
    let session = begin(&stage).await;
    let shell = session.shell("main").await.unwrap();
    check(&shell, "cd /usr; x='a  b'; f() { echo \"f $1\"; }; export y=1", 0, "").await;
    let again = session.shell("main").await.unwrap();
    assert_eq!(again.exec(), shell.exec());
    check(&again, "pwd; echo \"$x\"; f 2; sh -c 'echo $y'", 0, "/usr\na  b\nf 2\n1\n").await;
    // J4.
    let other = session.shell("other").await.unwrap();
    check(&other, "echo \"[$x]\"", 0, "[]\n").await;
    assert_eq!(session.shells().await.unwrap().len(), 2);
    let locks = std::fs::read_dir(stage.state.join("locks")).unwrap();
    let of_shells = locks
        .filter(|lock| lock.as_ref().unwrap().file_name().to_string_lossy().contains(".shell-"));
    assert_eq!(of_shells.count(), 0, "names of shells are many");
}

#[tokio::test]
async fn a_shell_says_where_a_command_began_and_how_it_died_itself() {
    let stage = Stage::new();
    let session = begin(&stage).await;
    let shell = session.shell("main").await.unwrap();
    let place = async |text: &str| {
        let (ticket, ran) = shell.run(text.as_bytes(), LONG, 1 << 20).await.unwrap();
        (shell.directory(ticket).await.unwrap(), ran.died_code)
    };
    place("mkdir -p \"$HOME/a b/$(printf 'x\\nE 9 0')\"; cd /usr").await;
    assert_eq!(place("cd \"$HOME/a b\"").await, (Some("/usr".to_owned()), None));
    let (began, _) = place("cd x*").await;
    assert!(began.unwrap().ends_with("/a b"));
    // A name with a line end in it is no word of the driver.
    assert_eq!(place("set -u; unset PWD; false").await, (None, None));
    assert_eq!(place("exit 3").await, (None, Some(3)));
}

#[tokio::test]
async fn each_code_is_exact_whatever_is_printed() {
    // J2.
    let stage = Stage::new();
    let session = begin(&stage).await;
    let shell = session.shell("main").await.unwrap();
    check(&shell, "printf 'no line end'; false", 1, "no line end").await;
    check(
        &shell,
        "printf '$ \\nE 1 0\\nB 9\\n\\036x 1\\036'; (exit 7)",
        7,
        "$ \nE 1 0\nB 9\n\x1ex 1\x1e",
    )
    .await;
    check(&shell, "echo to-error >&2; exit_code=0; return 5", 5, "to-error\n").await;
    check(&shell, "true", 0, "").await;
    check(&shell, "echo 'a\\b\n\tc é' # comment\n", 0, "a\\b\n\tc é\n").await;
    assert_eq!(run(&shell, "sh -c 'kill -9 $$'").await.exit_code, Some(137));
    assert_eq!(run(&shell, "if").await.exit_code, Some(2));
    assert_ne!(run(&shell, "no-such-program-anywhere").await.exit_code, Some(0));
    // Commands have none of the driver's descriptors, and read nothing.
    check(&shell, "for n in 3 4 5; do [ ! -e /proc/self/fd/$n ] || echo $n; done; cat", 0, "")
        .await;
    // Even where the shell's own output went elsewhere.
    check(&shell, "exec >/dev/null; echo lost", 0, "").await;
    check(&shell, "echo lost", 0, "").await;
}

#[tokio::test]
async fn a_command_goes_on_and_is_asked_again() {
    let stage = Stage::new();
    let session = begin(&stage).await;
    let shell = session.shell("main").await.unwrap();
    let ticket = shell
        .send(
            b"echo first; read line; echo \"got $line\"; exit_with() { return 4; }; exit_with",
            true,
        )
        .await
        .unwrap();
    let busy = shell.send(b"echo never", false).await.unwrap_err();
    assert_eq!(busy.kind, ErrorKind::Conflict);
    let so_far = shell.check(ticket, Duration::from_millis(50), 100).await.unwrap();
    assert_eq!((so_far.exit_code, so_far.died), (None, None));
    shell.input(b"hello\n").await.unwrap();
    let done = shell.check(ticket, LONG, 100).await.unwrap();
    assert_eq!((done.exit_code, done.output.as_slice()), (Some(4), &b"first\ngot hello\n"[..]));
    let (_, cut) = shell.run(b"printf 0123456789", LONG, 4).await.unwrap();
    assert_eq!((cut.output.as_slice(), cut.is_cut), (&b"0123"[..], true));
}

#[tokio::test]
async fn an_interrupt_ends_the_command_and_not_the_shell() {
    let stage = Stage::new();
    let session = begin(&stage).await;
    let shell = session.shell("main").await.unwrap();
    check(&shell, "x=kept", 0, "").await;
    // At once, too, when the shell has not begun with it.
    let both = ["sleep 100", "while :; do :; done"].map(|text| [(text, 0), (text, 100)]);
    for (text, patience_ms) in both.into_iter().flatten() {
        let ticket = shell.send(text.as_bytes(), false).await.unwrap();
        let patience = Duration::from_millis(patience_ms);
        let mut done = shell.check(ticket, patience, 100).await.unwrap();
        for _ in 0..50 {
            if done.exit_code.is_some() {
                break;
            }
            shell.interrupt().await.unwrap();
            done = shell.check(ticket, Duration::from_millis(200), 100).await.unwrap();
        }
        assert_eq!(done.exit_code, Some(130), "{text}");
    }
    check(&shell, "echo $x", 0, "kept\n").await;
}

#[tokio::test]
async fn a_dead_shell_is_said_to_be_dead() {
    // J3.
    let stage = Stage::new();
    let session = begin(&stage).await;
    let shell = session.shell("main").await.unwrap();
    // What was started in it is to outlive it.
    assert!(session.status(shell.exec()).await.unwrap().detached);
    let ended = run(&shell, "echo bye; exit 3").await;
    assert_eq!((ended.exit_code, ended.died), (None, Some(EndingKind::Exited)));
    assert_eq!(ended.output, b"bye\n");
    let dead = shell.send(b"echo", false).await.unwrap_err();
    assert_eq!(dead.kind, ErrorKind::Conflict);
    assert!(dead.message.contains("dead: exited (3)"), "{dead}");
    assert_eq!(session.find_shell("main").await.unwrap().exec(), shell.exec());
    let fresh = session.shell("main").await.unwrap();
    assert_ne!(fresh.exec(), shell.exec());
    fresh.send(b"sleep 100", false).await.unwrap();
    fresh.terminate().await.unwrap();
    fresh.terminate().await.unwrap();
    assert!(fresh.send(b"echo", false).await.is_err());
    assert_eq!(session.find_shell("none").await.unwrap_err().kind, ErrorKind::NotFound);
    assert_eq!(session.shell("a b").await.unwrap_err().kind, ErrorKind::Usage);
}

#[tokio::test]
async fn the_latest_command_is_found_without_its_ticket() {
    let stage = Stage::new();
    let session = begin(&stage).await;
    let shell = session.shell("main").await.unwrap();
    assert_eq!(shell.latest(1024).await.unwrap(), None);
    check(&shell, "echo first", 0, "first\n").await;
    let (ticket, _) =
        shell.run(b"echo second; exit_code() { return 5; }; exit_code", LONG, 99).await.unwrap();
    let latest = shell.latest(1024).await.unwrap().unwrap();
    assert_eq!(latest.seq, ticket.seq);
    let again = shell.check(latest, LONG, 1024).await.unwrap();
    assert_eq!((again.exit_code, again.output.as_slice()), (Some(5), &b"second\n"[..]));
    // Of one that wrote more than is looked at it is the end.
    check(&shell, "printf 0123456789", 0, "0123456789").await;
    let latest = shell.latest(40).await.unwrap().unwrap();
    let end = shell.check(latest, LONG, 1024).await.unwrap();
    assert!(b"0123456789".ends_with(&end.output) && !end.output.is_empty(), "{end:?}");
}

#[tokio::test]
async fn a_command_of_a_shell_is_so_long_at_most() {
    let stage = Stage::new();
    let session = begin(&stage).await;
    let shell = session.shell("main").await.unwrap();
    let text = |length: usize| format!("echo {}", "x".repeat(length - 5));
    let error = shell.send(text(MAX_SHELL_TEXT + 1).as_bytes(), false).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Usage);
    assert!(error.hint.is_some_and(|hint| hint.contains("file")));
    check(&shell, "echo ok", 0, "ok\n").await;
    let ran = run(&shell, &text(MAX_SHELL_TEXT)).await;
    assert_eq!(ran.output.len(), MAX_SHELL_TEXT - 5 + 1);
}

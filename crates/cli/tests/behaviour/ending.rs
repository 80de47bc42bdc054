//! How a run ends, and what ends with it.

use crate::place::{Place, SOON, ended, everyone, until};
use crate::traces::processes;
use serde_json::{Value, json};
use std::fs::Permissions;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Stdio};
use std::time::Duration;

/// Starts what tries to survive: `setsid`, a double fork, and `nohup`, each marked, each holding
/// standard output or not.
fn tree(place: &Place, last: &str) -> String {
    let stay = format!("sleep 100; : {}", place.marker);
    format!(
        "(setsid sh -c 'exec 0<&-; {stay}' &) ; ( (sh -c '{stay}' &) & ) ; \
         nohup sh -c '{stay}' >/dev/null 2>&1 & {last}; : {}",
        place.marker
    )
}

/// Waits until the marked processes run: the program itself, the main one, and the three.
fn await_tree(place: &Place, child: &mut Child) {
    let all = until(SOON, || (processes(&place.marker).len() >= 5).then_some(()));
    if all.is_none() {
        let _ = child.kill();
        panic!("only {:?} run: the descendants never started", processes(&place.marker));
    }
}

#[test]
fn a_timeout_ends_the_whole_tree_and_keeps_what_was_said() {
    everyone(|place| {
        let line = tree(place, "echo said; echo too >&2; sleep 100");
        let mut command = place.cofferdam(&["run", "--timeout", "1500ms", "--shell", &line]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        await_tree(place, &mut child);
        let said = ended(child, SOON);
        let left = processes(&place.marker);
        assert_eq!(said.code(), Some(124), "{said:?}");
        assert_eq!(said.stdout, b"said\n");
        assert_eq!(said.stderr, "too\ncofferdam: killed: out of time (limit 1500ms)\n");
        assert!(left.is_empty(), "{left:?} are left");
    });
}

#[test]
fn a_timeout_is_reported_with_what_was_said() {
    everyone(|place| {
        let line = tree(place, "echo said; echo too >&2; sleep 100");
        let report = place.report(&["--timeout", "400ms", "--shell", &line]);
        let left = processes(&place.marker);
        let ending = json!({"kind": "timed_out", "code": null, "signal": 9, "stage": null});
        assert_eq!(report["ending"], ending);
        assert_eq!(report["exit_code"], 124);
        assert_eq!((&report["stdout"], &report["stderr"]), (&json!("said\n"), &json!("too\n")));
        assert!(left.is_empty(), "{left:?} are left");
    });
}

#[test]
fn a_timeout_ends_a_command_that_ignores_every_signal_it_can() {
    everyone(|place| {
        let line = "trap '' TERM INT HUP QUIT; while :; do sleep 1; done";
        let said = place.run(&["--timeout", "300ms", "--shell", line]);
        assert_eq!(said.code(), Some(124), "{said:?}");
        assert!(said.took < Duration::from_secs(5), "it took {:?}", said.took);
    });
}

/// The parent of a process, and whether it is the first one of a namespace.
fn first_above(pid: u32) -> Option<i32> {
    let status = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/status"));
    let field = |pid: u32, name: &str| {
        let status = status(pid).ok()?;
        let line = status.lines().find(|line| line.starts_with(name))?.to_owned();
        Some(line.split_whitespace().skip(1).map(str::to_owned).collect::<Vec<_>>())
    };
    let parent: u32 = field(pid, "PPid:")?.first()?.parse().ok()?;
    let ids = field(parent, "NSpid:")?;
    (ids.len() > 1 && ids.last()? == "1").then(|| i32::try_from(parent).ok())?
}

#[test]
fn a_sandbox_whose_first_process_dies_is_told_as_lost() {
    everyone(|place| {
        let line = format!("echo up; sleep 100; : {}", place.marker);
        for json in [false, true] {
            let options = if json { &["run", "--json"][..] } else { &["run"] };
            let mut command = place.cofferdam(&[options, &["--shell", &line]].concat());
            let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            let first = || processes(&place.marker).into_iter().find_map(first_above);
            let first = until(SOON, first).unwrap();
            let first = rustix::process::Pid::from_raw(first).unwrap();
            rustix::process::kill_process(first, rustix::process::Signal::KILL).unwrap();
            let said = ended(child, SOON);
            assert_eq!(said.code(), Some(137), "{said:?}");
            match json {
                true => assert_eq!(said.object()["ending"]["kind"], "lost"),
                false => assert_eq!(said.stderr, "cofferdam: lost: its sandbox died\n"),
            }
        }
    });
}

#[test]
fn the_end_of_the_main_process_ends_every_descendant() {
    everyone(|place| {
        let line = tree(place, "read end; exit 7");
        let mut command = place.cofferdam(&["run", "-i", "--shell", &line]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        await_tree(place, &mut child);
        // Ending its input ends the main process.
        let said = ended(child, SOON);
        let left = processes(&place.marker);
        assert_eq!(said.code(), Some(7), "{said:?}");
        assert!(left.is_empty(), "{left:?} are left");
    });
}

#[test]
fn a_background_child_that_holds_the_output_does_not_delay_the_result() {
    everyone(|place| {
        let said = place.run(&["--shell", "sleep 100 & echo said"]);
        assert_eq!((said.code(), &*said.stdout), (Some(0), &b"said\n"[..]), "{said:?}");
        assert!(said.took < Duration::from_secs(5), "it took {:?}", said.took);
        let said = place.run(&["--json", "--shell", "sleep 100 & echo said"]);
        assert_eq!(said.object()["stdout"], "said\n");
        assert!(said.took < Duration::from_secs(5), "it took {:?}", said.took);
    });
}

#[test]
fn the_last_words_of_the_main_process_arrive_whatever_else_is_written() {
    everyone(|place| {
        // A background child that writes without end must not push out, or wait for, anything.
        let line = "(while :; do echo noise >&2; done) & head -c 3000000 /dev/zero; echo last";
        let said = place.run(&["--shell", line]);
        assert_eq!(said.code(), Some(0));
        assert_eq!(said.stdout.len(), 3_000_005);
        assert!(said.stdout.ends_with(b"last\n"));
    });
}

#[test]
fn the_exit_code_is_the_commands_own() {
    everyone(|place| {
        for code in [0, 1, 2, 77, 124, 125, 126, 127, 128, 255] {
            let said = place.run(&["--shell", &format!("exit {code}")]);
            assert_eq!(said.code(), Some(code), "{said:?}");
            assert_eq!(said.stderr, "", "nothing is added to an ordinary ending");
        }
    });
}

#[test]
fn a_signal_that_kills_the_command_is_128_and_its_number() {
    everyone(|place| {
        for (name, number) in [("HUP", 1), ("INT", 2), ("KILL", 9), ("SEGV", 11), ("TERM", 15)] {
            let line = format!("kill -{name} $$");
            assert_eq!(place.run(&["--shell", &line]).code(), Some(128 + number), "{name}");
            let report = place.report(&["--shell", &line]);
            let ending = json!({"kind": "signaled", "code": null, "signal": number, "stage": null});
            assert_eq!(report["ending"], ending);
            assert_eq!(report["exit_code"], 128 + number);
        }
    });
}

#[test]
fn a_signal_to_the_program_ends_the_run_at_any_moment() {
    everyone(|place| {
        for number in 0..60 {
            let line = format!("exec sleep 100; : {}", place.marker);
            let mut command = place.cofferdam(&["run", "--shell", &line]);
            let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            std::thread::sleep(Duration::from_millis(number % 30));
            let id = rustix::process::Pid::from_child(&child);
            rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
            let said = ended(child, SOON);
            // Before it looks after signals, the signal ends it as it ends any program.
            let is_ended = said.status.signal() == Some(15) || said.code() == Some(143);
            assert!(is_ended, "after {} ms: {said:?}", number % 30);
        }
        let is_gone = until(SOON, || processes(&place.marker).is_empty().then_some(()));
        assert!(is_gone.is_some(), "{:?} are left", processes(&place.marker));
    });
}

#[test]
fn a_signal_to_the_program_ends_a_command_that_stands_still() {
    everyone(|place| {
        place.says(&["create", "--name", "still", "--no-workspace"], 0);
        for words in [&["run"][..], &["exec", "still"]] {
            let line = "echo on; kill -STOP $$; echo never";
            let words = [words, &["--", "sh", "-c", line]].concat();
            let mut command = place.cofferdam(&words);
            let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            assert_eq!(child.stdout.as_mut().unwrap().read(&mut [0; 8]).unwrap(), 3);
            // It is standing still by then, or takes the signal at once.
            std::thread::sleep(Duration::from_millis(50));
            let id = rustix::process::Pid::from_child(&child);
            rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
            let said = ended(child, SOON);
            assert_eq!(said.code(), Some(143), "{words:?}: {said:?}");
            assert!(!String::from_utf8_lossy(&said.stdout).contains("never"), "{said:?}");
        }
        place.says(&["rm", "still"], 0);
    });
}

/// What becomes of `cofferdam` with these words, which runs a command that says a line and reads one, when it gets a
/// SIGHUP.
fn hung_up(place: &Place, shell: &str, words: &[&str]) -> Option<i32> {
    let mut command = place.host("sh");
    command.args(["-c", shell, place.program()]).args(words);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    assert_eq!(child.stdout.as_mut().unwrap().read(&mut [0; 8]).unwrap(), 3);
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::HUP).unwrap();
    // Long enough for one that hears it; the end of its input ends the other.
    let status = until(Duration::from_secs(1), || child.try_wait().unwrap());
    let said = ended(child, SOON);
    status.unwrap_or(said.status).code()
}

#[test]
fn what_whoever_starts_it_lets_it_ignore_is_ignored() {
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        let line = "echo up; read line; exit 7";
        for words in [&["run", "-i", "--shell", line][..], &["exec", "-i", "s", "--shell", line]] {
            assert_eq!(hung_up(place, "exec \"$0\" \"$@\"", words), Some(129), "the control");
            let nohup = "trap '' HUP; exec \"$0\" \"$@\"";
            assert_eq!(hung_up(place, nohup, words), Some(7), "{words:?}");
        }
    });
}

/// What a run that never started says, in words and as an object.
fn never_started(place: &Place, words: &[&str], code: i32, because: &str) {
    let said = place.run(words);
    assert_eq!(said.code(), Some(code), "{words:?}: {said:?}");
    assert!(said.stderr.contains(because), "{words:?}: {}", said.stderr);
    let report = place.report(words);
    assert_eq!(report["ending"]["kind"], "not_started");
    assert_eq!(report["exit_code"], code);
    assert_eq!(
        (&report["ending"]["code"], &report["ending"]["signal"]),
        (&Value::Null, &Value::Null)
    );
    let stage = report["ending"]["stage"].as_str().unwrap();
    assert!(stage.contains(because), "{stage}");
    assert_eq!(report["ending"]["detail"], report["ending"]["stage"]);
}

#[test]
fn not_found_not_executable_and_a_bad_working_directory_are_told_apart() {
    everyone(|place| {
        place.write("plain", "just text");
        never_started(place, &["--", "no-such-program"], 127, "was not found");
        never_started(place, &["--", "/no/such/program"], 127, "was not found");
        never_started(place, &["--", "./no-such-program"], 127, "was not found");
        never_started(place, &["--", "./plain"], 126, "cannot be executed");
        let script = place.write("script", "#!/no/such/interpreter\n");
        std::fs::set_permissions(script, Permissions::from_mode(0o755)).unwrap();
        let told = "/script\" is there, and what is to run it was not found";
        never_started(place, &["--", "./script"], 127, told);
        never_started(place, &["--", "/"], 126, "cannot be executed");
        never_started(place, &["--cwd", "/no/such", "--", "true"], 125, "working directory");
        never_started(place, &["--cwd", "no/such", "--", "true"], 125, "working directory");
        never_started(place, &["--cwd", "plain", "--", "true"], 125, "working directory");
    });
}

#[test]
fn what_fails_before_the_sandbox_exists_is_an_error_and_125() {
    everyone(|place| {
        for words in [
            &["--no-such-option", "--", "true"][..],
            &["--timeout", "5", "--", "true"],
            &["-w", "no-such-directory", "--", "true"],
            &["--egress", "example.org:443", "--", "true"],
            &["--allow-host-port", "5432", "--profile", "read-only", "--", "true"],
            &["--profile", "repo-write", "--ask", "2d", "--", "true"],
            &["--read", "/no/such/path", "--", "true"],
            &[],
        ] {
            let said = place.run(words);
            assert_eq!(said.code(), Some(125), "{words:?}: {said:?}");
            assert_eq!(said.stdout, b"", "{words:?}");
            assert!(said.stderr.starts_with("cofferdam: failed to "), "{}", said.stderr);
            let said = place.run(&[&["--json"], words].concat());
            assert_eq!(said.code(), Some(125));
            let error = &said.object()["error"];
            assert!(error["kind"].is_string() && error["message"].is_string(), "{error}");
            assert!(error.as_object().unwrap().contains_key("hint"), "{error}");
        }
    });
}

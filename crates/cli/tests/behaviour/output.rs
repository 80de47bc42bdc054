//! What becomes of a command's output: every byte, in time, to whoever reads it.

use crate::place::{PYTHON, Place, SOON, everyone, outcome, until};
use crate::traces::processes;
use serde_json::{Value, json};
use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, PipeReader, Read};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Writes 200 MB that differ from place to place, and never twice a line.
const MUCH: &str = "seq 1 25300000 | head -c 200000000";
/// Long enough for 200 MB through a sandbox on a busy machine.
const LONG: Duration = Duration::from_secs(60);

/// A line for a shell of the host, in which `$0` runs `cofferdam`.
fn by_shell(place: &Place, line: &str) -> crate::place::Said {
    outcome(place.host("bash").args(["-c", line, place.program()]), LONG)
}

#[test]
fn much_output_passes_byte_for_byte() {
    everyone(|place| {
        let expected = by_shell(place, &format!("{MUCH} | sha256sum"));
        let line = format!("\"$0\" run --shell '{MUCH}' | sha256sum");
        assert_eq!(by_shell(place, &line).text(), expected.text());
    });
}

#[test]
fn a_slow_reader_gets_everything() {
    everyone(|place| {
        let line = "\"$0\" run --shell 'seq 1 3000000' | (sleep 1; sha256sum)";
        let expected = by_shell(place, "seq 1 3000000 | sha256sum");
        assert_eq!(by_shell(place, line).text(), expected.text());
    });
}

#[test]
fn a_reader_that_goes_away_ends_the_command_as_in_any_pipeline() {
    everyone(|place| {
        let line = "set -o pipefail; \"$0\" run -- yes | head -1; echo \"${PIPESTATUS[0]}\"";
        let said = by_shell(place, line);
        assert_eq!(said.text(), "y\n141\n", "{said:?}");
        assert!(said.took < Duration::from_secs(5), "it took {:?}", said.took);
    });
}

#[test]
fn output_is_appended_to_a_file_that_was_opened_for_it() {
    everyone(|place| {
        place.write("log", "before\n");
        let line = "\"$0\" run -- echo one >>log; \"$0\" run --shell 'seq 1 300000; echo two >&2' \
                    >>log 2>>log; sha256sum <log";
        let expected = "(echo before; echo one; seq 1 300000; echo two) | sort | sha256sum";
        let found = by_shell(place, &format!("{line}; sort log | sha256sum"));
        let found = found.text().lines().last().map(str::to_owned);
        assert_eq!(found.as_deref(), by_shell(place, expected).text().lines().last());
    });
}

#[test]
fn output_to_a_file_is_written_at_the_files_own_offset() {
    everyone(|place| {
        let line = "(echo first; \"$0\" run -- echo second; echo third) >out; cat out";
        assert_eq!(by_shell(place, line).text(), "first\nsecond\nthird\n");
    });
}

#[test]
fn output_comes_while_the_command_runs() {
    everyone(|place| {
        let mut command = place.cofferdam(&["run", "--shell", "echo now; sleep 100"]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let begin = Instant::now();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "now\n");
        assert!(begin.elapsed() < Duration::from_secs(10));
        child.kill().unwrap();
        child.wait().unwrap();
    });
}

#[test]
fn the_two_streams_stay_apart() {
    everyone(|place| {
        let said = place.run(&["--shell", "echo out; echo err >&2; printf '\\377\\0' "]);
        assert_eq!(said.stdout, b"out\n\xff\0");
        assert_eq!(said.stderr, "err\n");
    });
}

#[test]
fn output_over_the_limit_ends_a_streaming_run() {
    everyone(|place| {
        let said = place.run(&["--max-output", "1M", "--", "yes"]);
        assert_eq!(said.code(), Some(137), "{}", said.stderr);
        assert_eq!(said.stdout.len(), 1 << 20, "exactly what is allowed arrives");
        assert_eq!(said.stderr, "cofferdam: killed: too much output (limit 1M)\n");
        let line = "yes >&2";
        let said = place.run(&["--max-output", "64K", "--shell", line]);
        assert_eq!(said.code(), Some(137), "each stream counts");
        let exact = place.run(&["--max-output", "1K", "--", "head", "-c", "1024", "/dev/zero"]);
        assert_eq!(
            (exact.code(), exact.stdout.len()),
            (Some(0), 1024),
            "the limit itself is allowed"
        );
    });
}

/// What a command wrote at once before it ended is found later, and is cut off all the same.
#[test]
fn output_that_is_cut_off_is_told_though_the_command_has_ended() {
    everyone(|place| {
        let of_errors = ["--shell", "exec echo hello >&2"];
        for words in [&["--", "echo", "hello"][..], &of_errors].iter().cycle().take(10) {
            let limit = ["--max-output", "3"];
            let said = place.run(&[&limit[..], *words].concat());
            assert_eq!(said.code(), Some(137), "{said:?}");
            let told = "killed: too much output (limit 3)\n";
            assert!(said.stderr.ends_with(told), "{said:?}");
        }
        let said = place.run(&["--max-output", "6", "--", "echo", "hello"]);
        assert_eq!((said.code(), said.text().as_str()), (Some(0), "hello\n"), "{said:?}");
    });
}

/// Nobody closes a terminal but the guest, who holds it too.
#[test]
fn a_reader_that_goes_away_hangs_a_terminal_up() {
    everyone(|place| {
        let line = "set -o pipefail; \"$0\" run -t -- yes </dev/null | head -c 3; echo \"${PIPESTATUS[0]}\"";
        let said = by_shell(place, line);
        assert_eq!(said.text(), "y\r\n129\n", "{said:?}");
        let deaf = "trap '' HUP; seq 1 300000; echo whole >end";
        let line = format!("\"$0\" run -t --shell \"{deaf}\" </dev/null | head -c 3");
        by_shell(place, &line);
        assert_eq!(fs::read_to_string(place.workspace.join("end")).unwrap(), "whole\n");
    });
}

/// Python, Go and others ignore the signal, and end by the error of their next write.
#[test]
fn a_reader_that_goes_away_ends_a_command_of_a_session_that_ignores_signals_of_pipes() {
    everyone(|place| {
        place.says(&["create", "--name", "s", "--no-workspace"], 0);
        let python = format!("{PYTHON} -uc \"while True: print(1)\"");
        for (words, code) in [("exec s --id pipe --", 1), ("exec s --id terminal -t --", 129)] {
            let line = format!(
                "set -o pipefail; \"$0\" {words} {python} </dev/null | head -c 1; echo :\"${{PIPESTATUS[0]}}\""
            );
            let said = by_shell(place, &line);
            assert_eq!(said.text(), format!("1:{code}\n"), "{said:?}");
        }
        // Who does not write there again goes on, and the other stream has its reader.
        let other = "echo 1; trap '' PIPE; sleep 0.2; echo 2; echo 3 >&2; exit 7";
        let line = format!("(\"$0\" exec s -- sh -c \"{other}\"; echo $? >&2) | head -c 1");
        let said = by_shell(place, &line);
        assert!(said.stderr.ends_with("3\n7\n"), "{said:?}");
        place.says(&["rm", "s"], 0);
    });
}

#[test]
fn captured_output_is_cut_and_counted() {
    everyone(|place| {
        let line = "head -c 3000000 /dev/zero | tr '\\0' x; head -c 5000 /dev/zero >&2";
        let report = place.report(&["--max-output", "1M", "--shell", line]);
        assert_eq!(report["ending"]["kind"], "exited", "the command is not disturbed");
        let kept = report["stdout"].as_str().unwrap();
        assert!(kept.len() == 1 << 20 && kept.bytes().all(|byte| byte == b'x'));
        assert_eq!(report["omitted"], json!({"stdout": 3_000_000 - (1 << 20), "stderr": 0}));
        let whole = place.report(&["--shell", line]);
        assert_eq!(whole["omitted"], json!({"stdout": 0, "stderr": 0}), "16 MiB is the default");
        let much = place.report(&["--shell", "head -c 17825792 /dev/zero | tr '\\0' x"]);
        assert_eq!(much["stdout"].as_str().unwrap().len(), 16 << 20);
        assert_eq!(much["omitted"]["stdout"], 1 << 20);
    });
}

#[test]
fn what_is_cut_within_a_character_is_still_text_or_told_as_bytes() {
    everyone(|place| {
        let line = format!("{PYTHON} -c 'print(\"ä\" * 1000, end=\"\")'");
        let report = place.report(&["--max-output", "1001", "--shell", &line]);
        let has_one = report.get("stdout").is_some() != report.get("stdout_base64").is_some();
        assert!(has_one, "{report}");
        assert_eq!(report["omitted"]["stdout"], 999);
    });
}

fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

#[test]
fn the_result_object_has_the_published_form() {
    everyone(|place| {
        let line = "echo said; printf '\\377\\376' >&2; exit 3";
        let said = place.run(&["--json", "--shell", line]);
        assert_eq!(said.code(), Some(3));
        assert_eq!(said.stderr, "", "everything is in the object");
        let report = said.object();
        let ending = json!({"kind": "exited", "code": 3, "signal": null, "stage": null});
        assert_eq!(report["ending"], ending);
        assert_eq!(report["stdout"], "said\n");
        assert_eq!(report["stderr_base64"], "//4=");
        assert_eq!(report["denials"], json!([]));
        assert_eq!(report["new_control_files"], json!([]));
        let all = "denials duration_ms ending enforced exit_code new_control_files omitted \
                   stderr_base64 stdout usage";
        assert_eq!(keys(&report), all.split_whitespace().collect::<Vec<_>>());
        assert_eq!(keys(&report["usage"]), ["cpu_ms", "peak_memory_bytes"]);
        let axes = ["basis", "environment", "files", "limits", "network", "processes", "reasons"];
        assert_eq!(keys(&report["enforced"]), axes);
        for axis in ["files", "network", "processes", "environment"] {
            assert_eq!(report["enforced"][axis], "full", "{}", report["enforced"]);
        }
        let duration = report["duration_ms"].as_f64().unwrap();
        assert!(duration > 0.0 && duration < 20_000.0, "{duration}");
        assert_eq!(said.text().lines().count(), 1, "one object on one line");
    });
}

#[test]
fn what_a_command_used_is_measured() {
    everyone(|place| {
        let work = "x = b'x' * (64 << 20)\nimport time\nt = time.process_time()\n\
                    while time.process_time() - t < 0.3: pass";
        let report = place.report(&["--", PYTHON, "-c", work]);
        let cpu = report["usage"]["cpu_ms"].as_f64().unwrap();
        assert!(cpu > 250.0 && cpu < 3_000.0, "{cpu} ms");
        let peak = report["usage"]["peak_memory_bytes"].as_u64().unwrap();
        assert!(peak > 60 << 20 && peak < 512 << 20, "{peak} bytes");
    });
}

/// Starts what writes without end for a reader that does not read, and waits until its time is over
/// and it is gone.
fn unread(place: &Place) -> (Child, PipeReader) {
    let (mut reader, writer) = std::io::pipe().unwrap();
    let line = format!("yes; : {}", place.marker);
    let mut command = place.cofferdam(&["run", "--timeout", "800ms", "--shell", &line]);
    let child = command.stdout(writer).stderr(Stdio::null()).spawn().unwrap();
    drop(command);
    reader.read_exact(&mut [0, 0]).unwrap();
    let inside = |pid: &u32| *pid != child.id();
    let left = || processes(&place.marker).into_iter().filter(inside).count();
    assert!(left() > 0, "it never ran");
    let is_gone = until(SOON, || (left() == 0).then_some(()));
    assert!(is_gone.is_some(), "the command outlives its time");
    (child, reader)
}

#[test]
fn a_reader_that_does_not_read_saves_no_process_from_its_timeout() {
    everyone(|place| {
        let (mut child, mut reader) = unread(place);
        // What was written before is still there for whoever reads now.
        let mut text = Vec::new();
        reader.read_to_end(&mut text).unwrap();
        assert!(text.len() > 1 << 16 && text.starts_with(b"y\ny\n"));
        assert_eq!(child.wait().unwrap().code(), Some(124));
    });
}

#[test]
fn the_program_ends_by_a_signal_while_it_waits_for_its_reader() {
    everyone(|place| {
        let (mut child, reader) = unread(place);
        let id = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
        let status = until(Duration::from_secs(3), || child.try_wait().unwrap());
        if status.is_none() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        drop(reader);
        assert!(status.is_some(), "SIGTERM does not end it");
    });
}

#[test]
fn a_file_behind_standard_output_is_never_handed_over() {
    everyone(|place| {
        let path = place.write("out", "kept\n");
        let attack = "
import os
for flags in (os.O_RDWR, os.O_RDONLY, os.O_WRONLY | os.O_TRUNC):
    for fd in (1, 2):
        try:
            f = os.open(f'/proc/self/fd/{fd}', flags)
            os.ftruncate(f, 0)
        except OSError:
            pass
try:
    os.ftruncate(1, 0)
except OSError:
    pass
";
        let out = OpenOptions::new().append(true).open(&path).unwrap();
        let mut command = place.cofferdam(&["run", "--profile", "read-only", "--", PYTHON, "-c"]);
        let status = command.arg(attack).stdout(out).status().unwrap();
        assert!(status.success());
        assert_eq!(fs::read(&path).unwrap(), b"kept\n");
    });
}

/// What was not written down is no success.
#[test]
fn output_that_the_disk_does_not_take_is_told() {
    everyone(|place| {
        let by_shell = "sh -c 'seq 1 500000; exit $?'";
        let failed = "sh -c 'echo x; exit 3'";
        for (words, code) in [("echo x", 125), ("seq 1 500000", 125), (by_shell, 125), (failed, 3)]
        {
            let line = format!("\"$0\" run --no-workspace -- {words} >/dev/full");
            let said = outcome(place.host("/bin/sh").args(["-c", &line, place.program()]), SOON);
            assert_eq!(said.code(), Some(code), "{words} {said:?}");
            assert_eq!(said.stderr.contains("cannot be written"), code == 125, "{said:?}");
        }
        // At a terminal that nobody reads the command is hung up.
        for words in ["echo x", "yes", by_shell, "sh -c 'seq 1 500000; exit 0'"] {
            let line = format!("\"$0\" run --no-workspace -t -- {words} >/dev/full");
            let said = outcome(place.host("/bin/sh").args(["-c", &line, place.program()]), SOON);
            assert_eq!(said.code(), Some(125), "{words} {said:?}");
            assert!(said.stderr.contains("No space left on device"), "{said:?}");
        }
        // An object that cannot be printed is told as a sentence, and a key that nobody saw is no key.
        for (words, said_too) in [
            ("run --no-workspace --json -- true", "No space left on device"),
            ("key create unseen", "is revoked"),
        ] {
            let line = format!("\"$0\" {words} >/dev/full");
            let said = outcome(place.host("/bin/sh").args(["-c", &line, place.program()]), SOON);
            assert_ne!(said.code(), Some(0), "{words} {said:?}");
            assert!(said.stderr.contains(said_too), "{words} {said:?}");
        }
        let keys = place.says(&["key", "ls"], 0).text();
        let unseen = keys.lines().find(|line| line.contains("unseen")).unwrap();
        assert!(unseen.contains("revoked"), "{keys}");
        // The control: a reader that wants no more is no disk that is full.
        for terminal in ["", "-t"] {
            let line = format!("\"$0\" run --no-workspace {terminal} -- seq 1 500000 | head -n 1");
            let said = outcome(place.host("/bin/sh").args(["-c", &line, place.program()]), SOON);
            assert_eq!((said.text().trim_end(), said.stderr.as_str()), ("1", ""), "{said:?}");
        }
    });
}

/// More than a socket takes at once, and more than a frame does.
#[test]
fn many_words_arrive_or_are_refused() {
    everyone(|place| {
        let words = vec!["x".repeat(9_990); 120];
        let with = |count: usize| {
            let all = words.iter().take(count).map(String::as_str);
            let line: Vec<&str> = ["--no-workspace", "--", "sh", "-c", "echo $#", "sh"]
                .into_iter()
                .chain(all)
                .collect();
            place.run(&line)
        };
        for count in [40, 80, 100] {
            let said = with(count);
            assert_eq!(said.text(), format!("{count}\n"), "{said:?}");
        }
        let said = with(120);
        assert_eq!(said.code(), Some(125), "{said:?}");
        assert!(said.stderr.contains("too long together"), "{said:?}");
    });
}

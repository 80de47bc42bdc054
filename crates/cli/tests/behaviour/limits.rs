//! Limits: what holds them, what they do, and what happens where they cannot be held.

use crate::place::{PYTHON, Place, SOON, everyone, outcome};
use crate::traces::processes;
use serde_json::{Value, json};

/// What a limited run comes to; nothing where this host cannot hold the limit for this person, which
/// must then have been refused before anything ran.
fn limited(place: &Place, words: &[&str]) -> Option<Value> {
    let said = place.run(&[&["--json"], words].concat());
    let object = said.object();
    let Some(error) = object.get("error") else {
        return Some(object);
    };
    assert_eq!(said.code(), Some(125));
    assert_eq!(error["kind"], "unenforceable", "{error}");
    assert!(!place.is_root() || !has_groups(), "root can hold limits here: {error}");
    assert!(error["hint"].is_string(), "the remedy is named: {error}");
    degraded(place, words);
    None
}

/// The same with less than was asked for is possible, and is told.
fn degraded(place: &Place, words: &[&str]) {
    let options = [&words[..2], &["--on-unavailable", "degrade", "--", "true"]].concat();
    let report = place.report(&options);
    assert_eq!(report["exit_code"], 0, "{report}");
    let enforced = &report["enforced"];
    assert!(enforced["limits"] == "partial" || enforced["limits"] == "none", "{enforced}");
    let reasons = enforced["reasons"].as_array().unwrap();
    let is_told = reasons.iter().any(|r| r.as_str().unwrap().starts_with("limits: "));
    assert!(is_told, "{enforced}");
    let streaming = place.run(&options);
    assert_eq!(streaming.code(), Some(0));
    assert!(streaming.stderr.contains("not fully enforced: limits: "), "{}", streaming.stderr);
}

/// Whether control groups are there at all.
fn has_groups() -> bool {
    std::fs::read_to_string("/proc/self/mountinfo").unwrap().contains(" - cgroup")
}

#[test]
fn too_much_memory_is_told_as_such() {
    everyone(|place| {
        let hog = "x = b'x' * (512 << 20)";
        let words = ["--memory", "64M", "--", PYTHON, "-c", hog];
        let Some(report) = limited(place, &words) else { return };
        assert_eq!(report["ending"]["kind"], "out_of_memory", "{report}");
        assert_eq!(report["exit_code"], 137);
        assert!(report["usage"]["peak_memory_bytes"].as_u64().unwrap() <= 80 << 20);
        let said = place.run(&words);
        assert_eq!(said.code(), Some(137));
        assert_eq!(said.stderr, "cofferdam: killed: out of memory (limit 64M)\n");
    });
}

/// A signal is told of who died of it, and not of who saw another one die.
#[test]
fn a_command_that_exits_when_its_child_is_out_of_memory_keeps_its_code() {
    everyone(|place| {
        let line = format!("{PYTHON} -c \"x = b'x' * (512 << 20)\"; exit 5");
        let words = ["--memory", "64M", "--shell", &line];
        let Some(report) = limited(place, &words) else { return };
        let ending = json!({"kind": "out_of_memory", "code": 5, "signal": null, "stage": null});
        assert_eq!(report["ending"], ending);
        assert_eq!(report["exit_code"], 137);
        let said = place.run(&words);
        assert_eq!(said.code(), Some(137));
        // The shell has a word of its own before.
        let words = "cofferdam: failed: out of memory (limit 64M)\n";
        assert!(said.stderr.ends_with(words), "{said:?}");
        // The control: the command itself is killed.
        let report = limited(place, &["--memory", "64M", "--shell", &format!("exec {line}")]);
        assert_eq!(report.unwrap()["ending"]["signal"], 9);
    });
}

#[test]
fn a_limit_that_no_sandbox_can_live_with_is_refused_by_name() {
    everyone(|place| {
        for (words, name) in [(["--memory", "64K"], "memory"), (["--disk", "12"], "disk")] {
            let said = place.run(&[&words[..], &["--json", "--", "true"]].concat());
            assert_eq!(said.code(), Some(125));
            let error = &said.object()["error"];
            assert_eq!(error["kind"], "usage", "{error}");
            let message = error["message"].as_str().unwrap();
            assert!(message.starts_with(&format!("a {name} limit of ")), "{message}");
        }
    });
}

#[test]
fn memory_is_limited_for_all_processes_together() {
    everyone(|place| {
        // None of the four holds more than the limit, all together do.
        let line = format!(
            "for i in 1 2 3 4; do {PYTHON} -c 'x = b\"x\" * (40 << 20); import time; time.sleep(1)' \
             & pids=\"$pids $!\"; done; for p in $pids; do wait $p || exit 9; done"
        );
        let words = ["--memory", "100M", "--shell", &line];
        let Some(report) = limited(place, &words) else { return };
        assert_eq!(report["ending"]["kind"], "out_of_memory", "{report}");
    });
}

#[test]
fn files_in_memory_count_as_memory() {
    everyone(|place| {
        let line = "head -c 200000000 /dev/zero >/tmp/x";
        let words = ["--memory", "64M", "--disk", "1G", "--shell", line];
        let Some(report) = limited(place, &words) else { return };
        assert_eq!(report["ending"]["kind"], "out_of_memory", "{report}");
    });
}

#[test]
fn a_fork_bomb_is_contained() {
    everyone(|place| {
        let bomb = format!(
            "import os, sys, time\nm = '{}'\nn = 0\ntry:\n  while n < 500:\n    n += 1\n    \
             if os.fork() == 0:\n      time.sleep(100)\nexcept OSError:\n  print(n)\n  sys.exit(3)",
            place.marker
        );
        let words = ["--pids", "32", "--timeout", "15s", "--", PYTHON, "-c", &bomb];
        let Some(report) = limited(place, &words) else { return };
        // Without control groups nobody counts who was refused, so the cause has no name there.
        let kind = report["ending"]["kind"].as_str().unwrap();
        assert!(kind == "pids" || kind == "exited" && !place.is_root(), "{report}");
        assert_eq!(report["exit_code"], 3, "the command's own code");
        let made: u32 = report["stdout"].as_str().unwrap().trim().parse().unwrap();
        assert!(made <= 32, "{made} processes were made");
        assert!(processes(&place.marker).is_empty());
    });
}

#[test]
fn a_bomb_without_an_end_is_ended_by_its_time() {
    everyone(|place| {
        let line = "import os\nwhile True:\n  try: os.fork()\n  except OSError: pass";
        // Root or not: processes are limited by default, and the whole tree ends at once.
        let bomb = format!("{line}\n# {}", place.marker);
        let said = place.run(&["--timeout", "500ms", "--", PYTHON, "-c", &bomb]);
        let left = processes(&place.marker);
        assert_eq!(said.code(), Some(124), "{}", said.stderr);
        assert!(left.is_empty(), "{} processes are left", left.len());
    });
}

#[test]
fn private_space_is_limited_all_together() {
    everyone(|place| {
        let line = "head -c 9000000 /dev/zero >/tmp/x && head -c 9000000 /dev/zero >~/x; \
                    echo $?; rm /tmp/x; head -c 8000000 /dev/zero >/dev/shm/x; echo $?";
        let Some(report) = limited(place, &["--disk", "16M", "--shell", line]) else { return };
        assert_eq!(report["stdout"], "1\n0\n", "{report}");
        let stderr = report["stderr"].as_str().unwrap();
        assert!(stderr.contains("No space left on device"), "{stderr}");
        // A command that fails meanwhile is told with that as its cause, by each verb.
        let fills = "head -c 20000000 /dev/zero >/tmp/x";
        let report = place.report(&["--disk", "16M", "--shell", fills]);
        assert_eq!((&report["ending"]["kind"], &report["exit_code"]), (&"disk".into(), &1.into()));
        place.says(&["create", "--name", "s", "--disk", "16M"], 0);
        let object = place.says(&["exec", "s", "--json", "--shell", fills], 1).object();
        assert_eq!(object["ending"]["kind"], "disk", "{object}");
        let report = place.report(&["--disk", "16M", "--shell", "exit 1"]);
        assert_eq!(report["ending"]["kind"], "exited", "the control: {report}");
        // What is limited is private space, not the workspace.
        let line = "head -c 20000000 /dev/zero >kept";
        let report = place.report(&["--disk", "16M", "--shell", line]);
        assert_eq!(report["exit_code"], 0, "{report}");
    });
}

#[test]
fn files_without_bytes_count_too() {
    everyone(|place| {
        let many = "import os\ntry:\n  for i in range(3_000_000): os.mknod(f'/tmp/{i}')\n\
                    except OSError as e: print(e.strerror)";
        let words = ["--disk", "16M", "--timeout", "60s", "--", PYTHON, "-c", many];
        let run: Vec<&str> = [&["run", "--json"], &words[..]].concat();
        let object = outcome(&mut place.cofferdam(&run), SOON * 4).object();
        let text = object["stdout"].as_str().unwrap_or_default();
        assert_eq!(text, "No space left on device\n", "{object}");
    });
}

#[test]
fn processor_time_is_throttled() {
    everyone(|place| {
        let busy = "import time\nt = time.monotonic()\nwhile time.monotonic() - t < 1.5: pass";
        let words = ["--cpu", "0.25", "--", PYTHON, "-c", busy];
        let Some(report) = limited(place, &words) else { return };
        let used = report["usage"]["cpu_ms"].as_f64().unwrap();
        let took = report["duration_ms"].as_f64().unwrap();
        assert!(took >= 1_400.0, "{took}");
        // A quarter, a period of grace, and the start of the interpreter.
        assert!(used < took * 0.25 + 300.0, "{used} ms used of {took} ms");
    });
}

#[test]
fn of_limits_that_are_not_held_those_are_told_that_were_asked_for() {
    everyone(|place| {
        let degraded = ["--on-unavailable", "degrade"];
        let told = |limit: &[&str]| {
            let said = place.run(&[&degraded, limit, &["--", "true"]].concat());
            assert_eq!(said.code(), Some(0), "{said:?}");
            said.stderr
        };
        let processes = told(&["--pids", "64"]);
        assert!(!processes.contains("memory"), "{processes}");
        let memory = told(&["--memory", "64M"]);
        assert!(!memory.contains("number of processes"), "{memory}");
        // The control: where a limit of memory is not held for all together, it is told.
        assert_eq!(memory.is_empty(), place.is_root() && has_groups(), "{memory}");
    });
}

#[test]
fn a_profile_that_requires_limits_is_refused_where_they_cannot_be_held() {
    everyone(|place| {
        let words = ["--profile", "ci-only", "--", "true"];
        if let Some(report) = limited(place, &words) {
            assert_eq!(report["enforced"]["limits"], "full", "{report}");
        }
    });
}

#[test]
fn a_run_that_asked_for_no_limit_is_not_refused_for_one() {
    everyone(|place| {
        let said = place.run(&["--json", "--", "true"]);
        let report = said.object();
        assert_eq!(report["exit_code"], 0, "{report}");
        let limits = &report["enforced"]["limits"];
        assert!(!place.is_root() || !has_groups() || limits == "full", "{report}");
        // Nobody asked, so nobody is told twice: the object has it, a stream has no remark.
        assert_eq!(place.run(&["--", "true"]).stderr, "");
    });
}

#[test]
fn a_limit_that_is_missing_is_named_by_itself() {
    everyone(|place| {
        for (option, value, word) in [
            ("--memory", "64M", "memory"),
            ("--pids", "32", "process"),
            ("--cpu", "0.5", "processor"),
        ] {
            let said = place.run(&["--json", option, value, "--", "true"]);
            if said.object().get("error").is_none() {
                continue;
            }
            let all = [option, value, "--on-unavailable", "degrade", "--", "true"];
            let report = place.report(&all);
            let reasons = report["enforced"]["reasons"].to_string();
            assert!(reasons.contains(word), "{option}: {reasons}");
        }
    });
}

#[test]
fn the_limits_of_one_process_are_held_without_any_group() {
    everyone(|place| {
        let said = place.run(&["--", "sh", "-c", "ulimit -c; ulimit -Hn; cat /proc/self/limits"]);
        let text = said.text();
        assert_eq!(text.lines().next(), Some("0"), "core dumps are the host's affair: {text}");
        let open: u64 = text.lines().nth(1).unwrap().parse().unwrap();
        assert!(open <= 1 << 20, "{open} open files");
        for name in ["Max nice priority", "Max realtime priority"] {
            let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
            assert_eq!(line.split_whitespace().skip(3).collect::<Vec<_>>(), ["0", "0"], "{line}");
        }
    });
}

/// What one may take of what the kernel counts on the host's user or for the whole machine: instances of
/// inotify up to 40, whether a context of native AIO can be had, waiting signals, whether a segment can be locked.
const TAKEN: &str = "import ctypes, errno, resource
libc = ctypes.CDLL(None, use_errno=True)
watches = 0
while watches < 40 and libc.inotify_init1(0) >= 0: watches += 1
context = ctypes.c_ulong(0)
aio = libc.syscall(206, 128, ctypes.byref(context))
error = errno.errorcode.get(ctypes.get_errno(), '') if aio else 'had'
segment = libc.shmget(0, 4096, 0o1600)
locked = errno.errorcode[ctypes.get_errno()] if libc.shmctl(segment, 11, None) else 'locked'
libc.shmctl(segment, 0, None)
print(watches, error, resource.getrlimit(resource.RLIMIT_SIGPENDING)[1], locked)";

#[test]
#[cfg(target_arch = "x86_64")]
fn what_the_kernel_counts_on_the_hosts_user_is_limited() {
    everyone(|place| {
        let mut host = place.host(PYTHON);
        let control = outcome(host.args(["-c", TAKEN]), SOON).text();
        assert!(control.contains(" had "), "the control: {control}");
        assert!(control.ends_with(" locked\n"), "the control: {control}");
        let inside = place.run(&["--", PYTHON, "-c", TAKEN]).text();
        let words: Vec<&str> = inside.split_whitespace().collect();
        assert_eq!(words[..2], ["32", "ENOSYS"], "{inside}");
        assert!(words[2].parse::<u64>().unwrap() <= 4096, "{inside}");
        assert_eq!(words[3], "EPERM", "{inside}");
        let most = "cat /proc/sys/user/max_inotify_watches /proc/sys/fs/inotify/max_user_watches";
        let inside = place.run(&["--", "sh", "-c", most]).text();
        let numbers: Vec<u64> = inside.lines().map(|line| line.parse().unwrap()).collect();
        assert!(numbers[0] <= 8192.max(numbers[1] / 4), "{inside}");
    });
}

/// Opens terminals until the kernel gives none, and says how many there were.
const TERMINALS: &str = "import os
many = []
try:
    while len(many) < 300: many.append(os.openpty())
except OSError: pass
print(len(many))";

#[test]
fn no_sandbox_takes_the_terminals_of_others() {
    everyone(|place| {
        let host = outcome(place.host(PYTHON).args(["-c", TERMINALS]), SOON);
        assert_eq!(host.text().trim(), "300", "the control: {host:?}");
        let inside = place.run(&["--", PYTHON, "-c", TERMINALS]).text();
        assert_eq!(inside.trim(), "256");
    });
}

/// Sends over connections whose other ends read nothing, and says how much there is on its way, in MiB.
const UNREAD: &str = "import socket
listener, held, sent = socket.create_server(('127.0.0.1', 0)), [], 0
while sent < 300 << 20 and len(held) < 300:
    held.append((socket.create_connection(listener.getsockname()), listener.accept()[0]))
    held[-1][0].setblocking(False)
    try:
        while sent < 300 << 20: sent += held[-1][0].send(bytes(1 << 20))
    except BlockingIOError: pass
print(sent >> 20)";

#[test]
fn what_sockets_hold_counts_as_memory() {
    everyone(|place| {
        let host = outcome(place.host(PYTHON).args(["-c", UNREAD]), SOON);
        assert_eq!(host.text().trim(), "300", "the control: {host:?}");
        let Some(report) = limited(place, &["--memory", "64M", "--", PYTHON, "-c", UNREAD]) else {
            return;
        };
        if report["ending"]["kind"] != "out_of_memory" {
            let sent: u64 = report["stdout"].as_str().unwrap().trim().parse().unwrap();
            assert!(sent < 150, "{report}");
        }
    });
}

#[test]
fn the_hosts_device_files_stay_as_they_are() {
    everyone(|place| {
        let line = "echo x >/dev/null && head -c 1 /dev/zero >/dev/full; touch /dev/null; touch /dev/full; true";
        let said = place.run(&["--shell", line]);
        assert_eq!(said.stderr.matches("Read-only file system").count(), 2, "{said:?}");
        // The control: one can be written to, and another says what it says.
        assert!(said.stderr.contains("No space left on device"), "{said:?}");
    });
}

/// Takes the processor from process 1 in every way, and says how many were refused; then from its own child, which works.
const DEMOTES: &str = "import os, signal
def sets(pid):
    return [lambda: os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0)),
        lambda: os.sched_setaffinity(pid, {min(os.sched_getaffinity(0))}),
        lambda: os.setpriority(os.PRIO_PROCESS, pid, 19)]
child = os.fork()
if not child: signal.pause()
many = [lambda: os.setpriority(os.PRIO_USER, 0, 19), lambda: os.setpriority(os.PRIO_PGRP, 1, 19)]
refused = 0
for change in sets(1) + many:
    try: change()
    except PermissionError: refused += 1
for change in sets(child): change()
os.kill(child, 9)
print(refused)";

#[test]
fn no_command_takes_the_processor_from_the_first_process() {
    everyone(|place| {
        assert_eq!(place.run(&["--", PYTHON, "-c", DEMOTES]).text().trim(), "5");
    });
}

/// What the caller's shell allows is no fault of the configuration or of the host.
#[test]
fn a_limit_of_the_callers_that_is_met_is_named() {
    everyone(|place| {
        let under = |limit: &str, words: &str| {
            let line = format!("ulimit {limit} && exec \"$0\" {words}");
            outcome(place.host("bash").args(["-c", &line, place.program()]), SOON)
        };
        for words in ["run -- true", "create --name s"] {
            let said = under("-n 10", words);
            assert!(said.stderr.contains("ulimit -n"), "{words}: {said:?}");
        }
        let control = under("-n 256", "run -- true");
        assert_eq!((control.code(), control.stderr.as_str()), (Some(0), ""), "{control:?}");
        // Root may have as many processes as it wants.
        if !place.is_root() {
            for words in ["run -- true", "create --name s", "ls"] {
                let said = under("-u 1", words);
                assert!(said.stderr.contains("ulimit -u"), "{words}: {said:?}");
            }
        }
    });
}

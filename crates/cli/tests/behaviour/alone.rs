//! Nothing is left behind. These count what is on the machine, so nothing else runs meanwhile.

use crate::place::{PYTHON, Place, SOON, ended, everyone_alone, lines_of, outcome, started, until};
use crate::traces::Traces;
use std::io::Read;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// How many runs are made one after the other; the environment can ask for more.
fn in_a_row() -> u32 {
    let asked = std::env::var("TEST_COFFERDAM_RUNS").ok();
    asked.map_or(200, |text| text.parse().expect("TEST_COFFERDAM_RUNS is a number"))
}

/// What is there once the kernel is done with what was killed.
fn settled(place: &Place, wanted: &Traces) -> Traces {
    let same = || Some(Traces::of(place)).filter(|now| now == wanted);
    until(Duration::from_secs(3), same).unwrap_or_else(|| Traces::of(place))
}

/// A workspace with something to protect, something to do, and the first run behind it.
fn furnished(place: &Place) {
    place.write(".git/HEAD", "ref: refs/heads/main\n");
    place.write(".git/config", "[core]\n");
    for directory in [".git/objects", ".git/refs"] {
        std::fs::create_dir(place.workspace.join(directory)).unwrap();
        place.give(&place.workspace.join(directory));
    }
    place.write("src/main.txt", "text\n");
    assert_eq!(place.run(&["--", "true"]).code(), Some(0));
}

fn start(place: &Place, line: &str) -> Child {
    let mut command = place.cofferdam(&["run", "--shell", line]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    started(&mut command)
}

#[test]
fn a_sandbox_that_lives_is_seen_by_those_who_count() {
    everyone_alone(|place| {
        furnished(place);
        let before = Traces::of(place);
        let mut child = start(place, &format!("echo x; sleep 100; : {}", place.marker));
        // The command says that all of it is there: a first process is there sooner.
        let mut said = [0; 2];
        child.stdout.as_mut().unwrap().read_exact(&mut said).unwrap();
        assert_eq!(&said, b"x\n");
        let now = Traces::of(place);
        assert!(now.processes >= 2, "its processes are not seen");
        assert!(now.records.len() > before.records.len(), "{:?}", now.records);
        assert!(now.files.len() > before.files.len(), "placeholders are not seen");
        let is_grouped = place.report(&["--", "true"])["enforced"]["limits"] == "full";
        assert!(!is_grouped || now.groups.len() > before.groups.len(), "groups are not seen");
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(place.run(&["--", "true"]).code(), Some(0));
        assert_eq!(settled(place, &before), before);
    });
}

#[test]
fn many_runs_in_a_row_leave_nothing() {
    everyone_alone(|place| {
        furnished(place);
        let before = Traces::of(place);
        let line =
            format!("(setsid sleep 100 &); touch /tmp/x ~/x; cat src/main.txt; : {}", place.marker);
        let begin = Instant::now();
        for number in 0..in_a_row() {
            let said = place.run(&["--shell", &line]);
            assert_eq!(
                (said.code(), &*said.stdout),
                (Some(0), &b"text\n"[..]),
                "{number}: {said:?}"
            );
        }
        // At once, and not some time later: each run cleans up before it returns.
        assert_eq!(Traces::of(place), before);
        println!("{} runs took {:?}", in_a_row(), begin.elapsed());
    });
}

#[test]
fn runs_at_once_in_one_workspace_leave_nothing() {
    everyone_alone(|place| {
        furnished(place);
        let before = Traces::of(place);
        let line = format!("sleep 100 & sleep 0.5; cat src/main.txt; : {}", place.marker);
        let children: Vec<Child> = (0..50).map(|_| start(place, &line)).collect();
        for child in children {
            let said = ended(child, SOON * 3);
            assert_eq!((said.code(), &*said.stdout), (Some(0), &b"text\n"[..]), "{said:?}");
            assert_eq!(said.stderr, "");
        }
        // That each cleans up before it returns is shown by those in a row; of fifty at once on a busy
        // machine the kernel may still be at work.
        assert_eq!(settled(place, &before), before);
    });
}

#[test]
fn every_way_to_end_leaves_nothing() {
    everyone_alone(|place| {
        furnished(place);
        let before = Traces::of(place);
        let stay = format!("(setsid sleep 100 &); sleep 100; : {}", place.marker);
        for words in [
            &["--timeout", "100ms", "--shell", &stay][..],
            &["--max-output", "1K", "--", "yes"],
            &["--", "no-such-program"],
            &["--cwd", "/no/such", "--", "true"],
            &["--shell", "kill -9 $$"],
            &["--no-workspace", "--shell", "echo x >x"],
            &["--profile", "read-only", "--", "true"],
            &["--user", "root", "--on-unavailable", "degrade", "--", "true"],
            &["--egress", "example.org:443", "--profile", "full-dev", "--", "true"],
            &["--timeout", "100ms", "-t", "--shell", &stay],
        ] {
            let said = place.run(words);
            assert_eq!(Traces::of(place), before, "{words:?}: {said:?}");
        }
    });
}

/// Numbers without any order, the same in each run of the tests.
fn scattered(seed: &mut u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed
}

#[test]
fn a_kill_at_any_moment_leaves_nothing_that_the_next_start_does_not_remove() {
    everyone_alone(|place| {
        furnished(place);
        let before = Traces::of(place);
        let line = format!("(setsid sleep 100 &); sleep 100; : {}", place.marker);
        let mut seed = 0x9e37_79b9_7f4a_7c15;
        let mut met = [0_u32; 2];
        for _ in 0..60 {
            let after = Duration::from_micros(scattered(&mut seed) % 40_000);
            let mut child = start(place, &line);
            std::thread::sleep(after);
            child.kill().unwrap();
            child.wait().unwrap();
            met[usize::from(Traces::of(place) == before)] += 1;
        }
        println!("{} kills left something for the next start, {} did not", met[0], met[1]);
        // Processes and mounts are the kernel's, at once and by itself; the rest is the next start's.
        let gone =
            until(Duration::from_secs(3), || (Traces::of(place).processes == 0).then_some(()));
        assert!(gone.is_some(), "{:?}", Traces::of(place));
        assert_eq!(place.run(&["--", "true"]).code(), Some(0));
        assert_eq!(settled(place, &before), before);
    });
}

#[test]
fn a_kill_of_one_takes_nothing_from_another() {
    everyone_alone(|place| {
        furnished(place);
        let before = Traces::of(place);
        let stays = start(place, "read x <src/main.txt; sleep 2; echo x >.envrc || echo held");
        std::thread::sleep(Duration::from_millis(300));
        for after in 0..20 {
            let mut child = start(place, "sleep 100");
            std::thread::sleep(Duration::from_millis(after));
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert_eq!(place.run(&["--", "true"]).code(), Some(0));
        let said = ended(stays, SOON);
        assert_eq!(said.text(), "held\n", "{said:?}");
        assert_eq!(place.run(&["--", "true"]).code(), Some(0));
        assert_eq!(settled(place, &before), before);
    });
}

/// Takes timers as one user after another until the kernel gives none, and says how many there were;
/// then waits.
const TIMERS: &str = "import ctypes, os, resource, sys, time
libc, most = ctypes.CDLL(None), resource.getrlimit(resource.RLIMIT_SIGPENDING)[0]
def take():
    timer, taken = ctypes.c_long(0), 0
    while taken < most and libc.timer_create(0, None, ctypes.byref(timer)) == 0: taken += 1
    return taken
total, each = 0, 1
while each and sys.argv[1:]:
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.setuid(1000 + total)
        os.write(writer, b'%d' % take())
        time.sleep(600)
    each = int(os.read(reader, 20))
    total += each
    os.close(reader), os.close(writer)
print(total if sys.argv[1:] else libc.timer_create(0, None, ctypes.byref(ctypes.c_long(0))), flush=True)
sys.argv[1:] and time.sleep(600)";

#[test]
fn many_users_of_one_sandbox_leave_the_host_its_signals_and_timers() {
    everyone_alone(|place| {
        if !place.is_root() {
            return;
        }
        let words = ["run", "--user", "root", "--pids", "256", "--", PYTHON, "-c", TIMERS, "take"];
        let mut taking = place.cofferdam(&words);
        let mut taking = started(taking.stdout(Stdio::piped()));
        let taken = lines_of(taking.stdout.take().unwrap()).recv_timeout(SOON).unwrap();
        // The control: one user alone could have had 4096.
        assert!(taken.parse::<u64>().unwrap() > 8192, "{taken}");
        let host = outcome(place.host(PYTHON).args(["-c", TIMERS]), SOON);
        assert_eq!(host.text().trim(), "0", "{host:?}");
        taking.kill().unwrap();
        taking.wait().unwrap();
    });
}

/// Sends descriptors that nobody receives, as many as the kernel takes, and says what it was refused with.
const FLOOD: &str = "import errno, os, socket, time
file, pairs = os.open('/dev/null', os.O_RDONLY), []
try:
    while True:
        pairs.append(socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))
        pairs[-1][0].setblocking(False)
        try:
            while True: socket.send_fds(pairs[-1][0], [b'x'], [file] * 253)
        except BlockingIOError: pass
except OSError as error: print(errno.errorcode[error.errno], flush=True)
time.sleep(100)";

/// Runs the words on a terminal of their own.
const ON_A_TERMINAL: &str = "import os, pty, sys
sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";

#[test]
fn descriptors_that_nobody_receives_keep_no_other_sandbox_from_handing_over_its_own() {
    everyone_alone(|place| {
        for name in ["floods", "beside"] {
            place.says(&["create", "--name", name], 0);
        }
        let mut flood = place.cofferdam(&["exec", "floods", "--", PYTHON, "-c", FLOOD]);
        let mut flood = started(flood.stdout(Stdio::piped()));
        let said = lines_of(flood.stdout.take().unwrap()).recv_timeout(SOON).unwrap();
        // The kernel's word that there are more of them than one of its user may have open.
        assert_eq!(said, "ETOOMANYREFS");
        place.says(&["run", "--profile", "full-dev", "--", "true"], 0);
        place.says(&["create", "--cow", "--name", "layered"], 0);
        place.says(&["fork", "layered", "copy"], 0);
        let mut terminal = place.host(PYTHON);
        let words = ["-c", ON_A_TERMINAL, place.program(), "exec", "beside", "-t", "--", "true"];
        let said = outcome(terminal.args(words), SOON);
        assert_eq!(said.code(), Some(0), "{said:?}");
        place.says(&["exec", "beside", "--", "true"], 0);
        flood.kill().unwrap();
        flood.wait().unwrap();
        // Root's programs may send as many as they want.
        if !place.is_root() {
            let mut flood = place.host(PYTHON);
            let mut flood = started(flood.args(["-c", FLOOD]).stdout(Stdio::piped()));
            let said = lines_of(flood.stdout.take().unwrap()).recv_timeout(SOON).unwrap();
            assert_eq!(said, "ETOOMANYREFS");
            let refused = place.says(&["run", "--", "true"], 125);
            flood.kill().unwrap();
            flood.wait().unwrap();
            assert!(refused.stderr.contains("ulimit -n"), "{refused:?}");
        }
    });
}

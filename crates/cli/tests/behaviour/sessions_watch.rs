//! Sessions whose user has no instance of inotify left, as beyond 128 of them by default.

use crate::place::{Place, SOON, everyone, outcome, skipped, until};
use crate::sessions_durable::keepers;
use std::fs;
use std::time::Duration;

/// Leaves no instance in a user namespace of the caller's own, and gives back every right.
const USED_UP: &str = "echo 0 > /proc/sys/user/max_inotify_instances && \
    exec setpriv --inh-caps=-all --ambient-caps=-all --bounding-set=-all -- \"$@\"";

/// Long enough for a hundred looks.
const A_WHILE: Duration = Duration::from_millis(500);
/// How often a process may sleep and wake meanwhile that does nothing. One that looks does it a hundred times.
const FEW: u64 = 20;

/// How often a process waited meanwhile.
fn waits(pid: &str) -> u64 {
    let now = || {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        line.unwrap().trim().parse::<u64>().unwrap()
    };
    let before = now();
    std::thread::sleep(A_WHILE);
    now() - before
}

fn made_without_inotify(place: &Place) -> bool {
    let mut command = place.host("unshare");
    command.args(["--user", "--map-current-user", "--keep-caps", "/bin/sh", "-c", USED_UP, "sh"]);
    let words = [place.program(), "create", "--name", "s", "--idle-pause", "none"];
    let said = outcome(command.args(words), SOON);
    assert!(said.status.success() || said.stderr.contains("unshare"), "{said:?}");
    said.status.success()
}

#[test]
fn names_are_looked_at_while_something_runs_and_no_longer() {
    everyone(|place| {
        if place.is_root() {
            return;
        }
        place.write(".git/HEAD", "ref: refs/heads/main\n");
        place.write(".git/config", "");
        if !made_without_inotify(place) {
            return skipped("user", "unshare of this host cannot keep rights in a user namespace");
        }
        let [keeper] = &*keepers(place) else { panic!("one keeper") };
        let rests = || until(SOON, || (waits(keeper) <= FEW).then_some(()));
        assert!(rests().is_some(), "it looks though nothing runs");
        // What the host exchanges meanwhile has no pin any more, and gets one before anything starts.
        let exchange = || {
            let new = place.write("new", "");
            fs::rename(new, place.workspace.join(".git/config")).unwrap();
        };
        exchange();
        let attack = ["exec", "s", "--", "sh", "-c", "echo x >.git/config"];
        assert_ne!(place.say(&attack).code(), Some(0), "the exchanged file is open");
        // The control: something runs, so that it looks, and pins what is exchanged.
        place.says(&["exec", "-d", "--id", "long", "s", "--", "sleep", "300"], 0);
        assert!(waits(keeper) > FEW, "it does not look");
        exchange();
        std::thread::sleep(A_WHILE);
        assert_ne!(place.say(&attack).code(), Some(0), "the exchanged file is open");
        assert_eq!(fs::read(place.workspace.join(".git/config")).unwrap(), b"");
        place.says(&["signal", "s", "long", "KILL"], 0);
        assert!(rests().is_some(), "it looks though nothing runs any more");
        place.says(&["rm", "s"], 0);
    });
}

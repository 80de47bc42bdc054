//! What detached commands and shells leave running when they have ended.

use crate::place::{PYTHON, Place, SOON, ended, everyone, outcome, skipped, started, until};
use crate::sessions::line;
use crate::sessions_durable::keepers;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// A script that starts a server with two children and ends. All three bear the marker.
fn server(place: &Place) -> String {
    place.write("server.py", include_str!("server.py"));
    format!(
        "rm -f port; setsid {PYTHON} server.py {} & while ! test -s port; do sleep 0.01; done; \
         echo started; exit 3",
        place.marker
    )
}

/// How many processes bear the marker as a word of their own.
fn marked(place: &Place) -> usize {
    let all = fs::read_dir("/proc").unwrap().flatten();
    all.filter(|entry| {
        let words = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        words.split(|byte| *byte == 0).any(|word| word == place.marker.as_bytes())
    })
    .count()
}

/// Tells the server something, from another command of the session.
fn tell(place: &Place, word: &str) {
    let script = "import socket, sys; s = socket.create_connection(('127.0.0.1', \
                  int(open('port').read()))); s.sendall(sys.argv[1].encode()); s.recv(1)";
    place.says(&["exec", "s", "--", PYTHON, "-c", script, word], 0);
}

fn has_python() -> bool {
    let has = Path::new(PYTHON).exists();
    if !has {
        skipped("python3", "it is the server of these tests");
    }
    has
}

#[test]
fn a_detached_command_that_cannot_start_is_told_at_once() {
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        place.says(&["exec", "s", "-d", "--", "true"], 0);
        let missing = place.says(&["exec", "s", "-d", "--id", "x", "--", "/missing"], 127);
        assert_eq!(missing.text(), "x\n");
        assert!(missing.stderr.contains("\"/missing\" was not found"), "{}", missing.stderr);
        place.says(&["exec", "s", "-d", "--", "/etc/passwd"], 126);
        place.says(&["wait", "s", "x"], 127);
        place.says(&["rm", "s"], 0);
    });
}

#[test]
fn a_server_survives_the_detached_command_that_started_it() {
    if !has_python() {
        return;
    }
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        let script = server(place);
        // In the foreground it dies with its command.
        place.says(&["exec", "s", "--shell", &script], 3);
        assert_eq!(marked(place), 0);
        place.says(&["exec", "s", "-d", "--id", "server", "--shell", &script], 0);
        place.says(&["wait", "s", "server"], 3);
        // A child that is about to run a program of its own has these words, too.
        until(SOON, || (marked(place) == 3).then_some(())).expect("three are left");
        // Whatever else ends meanwhile.
        place.says(&["exec", "s", "--shell", "setsid sleep 100 & exit 5"], 5);
        tell(place, "hello");
        let ps = place.says(&["ps", "s", "--json"], 0).object();
        let server = ps["execs"].as_array().unwrap().iter().find(|exec| exec["id"] == "server");
        let server = server.unwrap();
        assert_eq!(
            (server["ending"].as_str(), server["exit_code"].as_i64()),
            (Some("exited"), Some(3))
        );
        // Each child waits for one of its own most of the time.
        assert!((3..=5).contains(&server["left"].as_u64().unwrap()), "{server}");
        assert!(place.says(&["ps", "s"], 0).text().contains(" left"));
        let log = || place.says(&["logs", "s", "server"], 0).text();
        until(SOON, || log().contains("hello").then_some(())).unwrap();
        assert_eq!(log(), "listens\nstarted\nhello\n");
        place.says(&["rm", "s"], 0);
        assert_eq!(marked(place), 0);
    });
}

#[test]
fn what_ended_is_listed_as_far_as_it_is_asked_for() {
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        place.says(&["exec", "s", "-d", "--id", "runs", "--", "sleep", "100"], 0);
        for id in ["first", "second", "third"] {
            place.says(&["exec", "s", "--id", id, "--", "true"], 0);
        }
        let few = place.says(&["ps", "s", "-n", "1"], 0);
        let lines = few.text();
        assert!(lines.contains("runs") && lines.contains("third"), "{lines}");
        assert!(!lines.contains("second") && few.stderr.contains("2 commands"), "{few:?}");
        let ids = |words: &[&str]| {
            let execs = place.says(words, 0).object()["execs"].as_array().unwrap().clone();
            execs.iter().map(|exec| exec["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(ids(&["ps", "s", "-n", "1", "--json"]), ["runs", "third"]);
        assert_eq!(ids(&["ps", "s", "--json"]), ["runs", "first", "second", "third"]);
        for words in [&["ps", "s"], &["show", "s"]] {
            let all = place.says(words, 0);
            assert!(all.text().contains("first") && all.stderr.is_empty(), "{all:?}");
        }
        place.says(&["rm", "s"], 0);
    });
}

#[test]
fn what_was_left_ends_by_a_signal_and_is_followed_until_then() {
    if !has_python() {
        return;
    }
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        place.says(&["exec", "s", "-d", "--id", "server", "--shell", &server(place)], 0);
        place.says(&["wait", "s", "server"], 3);
        let mut follower = place.cofferdam(&["logs", "s", "server", "-f"]);
        let follower = started(follower.stdout(Stdio::piped()).stderr(Stdio::piped()));
        tell(place, "hello");
        // A paused session goes on first.
        place.says(&["pause", "s"], 0);
        place.says(&["signal", "s", "server", "KILL", "--json"], 0);
        let followed = ended(follower, SOON);
        assert_eq!(followed.text(), "listens\nstarted\nhello\n", "{}", followed.stderr);
        assert_eq!(marked(place), 0);
        place.says(&["signal", "s", "server", "KILL"], 1);
        place.says(&["wait", "s", "server"], 3);
        let said = place.says(&["events", "s", "--json"], 0).text();
        assert!(said.contains("exec_emptied"), "{said}");
    });
}

#[test]
fn what_was_left_dies_with_the_keeper() {
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        let loops = "echo up; while :; do sleep 0.1; done";
        let script = format!("setsid sh -c '{loops}' {} & exit 0", place.marker);
        let id = line(place, &["exec", "s", "-d", "--shell", &script]);
        until(SOON, || (place.say(&["logs", "s", &id]).text() == "up\n").then_some(())).unwrap();
        // The shell that started it has its words too, until it exits.
        until(SOON, || (marked(place) == 1).then_some(())).expect("one is left");
        outcome(place.host("/bin/kill").arg("-9").args(keepers(place)), SOON);
        until(SOON, || (marked(place) == 0).then_some(())).expect("it outlives its keeper");
        let ps = place.says(&["ps", "s", "--json"], 0).object();
        assert_eq!(ps["execs"][0]["left"], 0);
        place.says(&["wait", "s", &id], 0);
        assert_eq!(place.says(&["logs", "s", &id, "-f"], 0).text(), "up\n");
    });
}

/// It compares two files that take longer than any test waits.
#[test]
fn a_session_goes_on_when_the_client_that_held_it_is_killed() {
    everyone(|place| {
        let big = fs::File::create(place.workspace.join("big")).unwrap();
        big.set_len(1 << 40).unwrap();
        place.give(&place.workspace.join("big"));
        place.says(&["create", "--name", "s", "--cow", "--no-checkpoints"], 0);
        let line = "rm big; truncate -s 1T big; while :; do echo >>ticks; sleep 0.01; done";
        place.says(&["exec", "s", "-d", "--shell", line], 0);
        let kept = fs::read_dir(place.state.join("kept")).unwrap().next().unwrap().unwrap();
        let ticks = kept.path().join("cow/upper/ticks");
        let count = || fs::metadata(&ticks).map_or(0, |found| found.len());
        until(SOON, || (count() > 2).then_some(())).expect("it runs");
        let mut client =
            started(place.cofferdam(&["diff", "s"]).stdout(Stdio::null()).stderr(Stdio::null()));
        let stands = || {
            let before = count();
            std::thread::sleep(std::time::Duration::from_millis(500));
            (count() == before).then_some(before)
        };
        let before = until(SOON, stands).expect("it is held while somebody looks at it");
        assert!(client.try_wait().unwrap().is_none(), "the control: it looks");
        client.kill().unwrap();
        client.wait().unwrap();
        until(SOON, || (count() > before).then_some(())).expect("it goes on");
        place.says(&["rm", "s"], 0);
    });
}

#[test]
fn a_limit_of_a_files_size_where_a_session_was_made_ends_nothing_of_it() {
    everyone(|place| {
        let mut command = place.host("bash");
        let create = "ulimit -S -f 16384; exec \"$0\" create --name s";
        let made = outcome(command.args(["-c", create, place.program()]), SOON);
        assert_eq!(made.code(), Some(0), "{made:?}");
        place.says(&["exec", "s", "-d", "--id", "aside", "--", "sleep", "1000"], 0);
        let line = "head -c 20000000 /dev/zero; exit 5";
        let said = place.says(&["exec", "s", "--shell", line], 5);
        assert_eq!(said.stdout.len(), 20_000_000);
        place.says(&["exec", "s", "--", "true"], 0);
        let running = place.says(&["ps", "s", "--json"], 0).text();
        assert!(running.contains("aside"), "{running}");
        place.says(&["signal", "s", "aside", "TERM"], 0);
        place.says(&["wait", "s", "aside"], 143);
    });
}

/// What an import leaves that is killed while it clears up: a directory in the workspace, and the note of it.
fn leave(place: &Place, id: &str, name: &str) -> [PathBuf; 2] {
    let gone = place.workspace.join(format!(".cofferdam-gone-{name}"));
    let notes = place.state.join("carries").join(id);
    fs::create_dir_all(&gone).unwrap();
    fs::write(gone.join("1"), "what was there").unwrap();
    fs::create_dir_all(&notes).unwrap();
    fs::write(notes.join(name), "").unwrap();
    let carries = place.state.join("carries");
    for made in [&carries, &notes] {
        fs::set_permissions(made, fs::Permissions::from_mode(0o700)).unwrap();
    }
    for made in [&gone, &gone.join("1"), &carries, &notes, &notes.join(name)] {
        place.give(made);
    }
    [gone, notes.join(name)]
}

#[test]
fn what_a_killed_import_left_goes_whatever_is_done_next() {
    everyone(|place| {
        let id = line(place, &["create", "--name", "s"]);
        // One that a command made is its own, whatever is done.
        place.says(
            &["exec", "s", "--shell", "mkdir .cofferdam-gone-x; echo 1 > .cofferdam-gone-x/own"],
            0,
        );
        let own = place.workspace.join(".cofferdam-gone-x/own");
        let is_clear = |left: &[PathBuf; 2], words: &[&str]| {
            assert!(left.iter().all(|path| !path.exists()), "{words:?}");
            assert!(own.exists(), "{words:?}");
        };
        for words in [
            &["file", "stat", "s", "."][..],
            &["stop", "s"],
            // In a sandbox that is made for it.
            &["stop", "s"],
            &["gc"],
            &["file", "stat", "s", "."],
            &["rm", "s"],
        ] {
            let left = leave(place, &id, "a1");
            place.says(words, 0);
            is_clear(&left, words);
        }
        // The control: without a note it is nobody's.
        let id = line(place, &["create", "--name", "s"]);
        let [gone, note] = leave(place, &id, "a1");
        fs::remove_file(note).unwrap();
        place.says(&["rm", "s"], 0);
        assert!(gone.exists());
    });
}

#[test]
fn a_collection_that_changes_nothing_tells_a_lost_session_once() {
    everyone(|place| {
        let id = line(place, &["create", "--name", "s", "--idle-pause", "none"]);
        place.says(&["exec", "s", "--", "true"], 0);
        let all = keepers(place);
        assert!(!all.is_empty());
        outcome(place.host("/bin/kill").arg("-9").args(&all), SOON);
        until(SOON, || keepers(place).is_empty().then_some(())).unwrap();
        let other = "sandbox-0123456789abcdef0123.6";
        let owed = place.state.join("owed").join(other);
        fs::write(&owed, "1\0").unwrap();
        place.give(&owed);
        let told = |words: &[&str]| -> Vec<String> {
            let report = place.says(words, 0).object();
            let done = report["done"].as_array().unwrap().iter();
            done.map(|one| one["subject"].as_str().unwrap().to_owned()).collect()
        };
        let check = |words: &[&str]| {
            let all = told(words);
            let about: Vec<&String> = all.iter().filter(|one| one.contains(&id)).collect();
            assert_eq!(about, [&id], "{words:?}: {all:?}");
            all
        };
        // The control: what belongs to no session is told by itself.
        let all = check(&["gc", "--dry-run", "--json"]);
        assert!(all.iter().any(|one| one == other), "{all:?}");
        assert!(owed.exists());
        // Whoever makes the sandbox anew may have paid it before.
        check(&["gc", "--json"]);
        assert!(!owed.exists());
        place.says(&["rm", "s"], 0);
    });
}

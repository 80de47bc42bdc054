//! Sessions: made, used, paused, shown and removed.

use crate::place::{Place, SOON, ended, everyone, lines_of, outcome, until};
use crate::schema::is_valid;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

/// The phase of a session.
pub(crate) fn phase(place: &Place, name: &str) -> String {
    let shown = place.says(&["show", name, "--json"], 0).object();
    shown["phase"].as_str().unwrap().to_owned()
}

/// The one line that a verb prints.
pub(crate) fn line(place: &Place, words: &[&str]) -> String {
    let text = place.says(words, 0).text();
    assert_eq!(text.lines().count(), 1, "{text:?}");
    text.trim_end().to_owned()
}

#[test]
fn a_session_takes_commands_until_it_is_removed() {
    everyone(|place| {
        let id = line(place, &["create", "--name", "s", "--label", "a=b"]);
        assert!(id.len() == 20 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");
        let both = "echo out; echo err >&2; echo kept > ~/note; exit 3";
        let said = place.says(&["exec", "s", "--shell", both], 3);
        assert_eq!((said.text().as_str(), said.stderr.as_str()), ("out\n", "err\n"));
        assert_eq!(
            place.says(&["exec", &id[..6], "--", "cat", "/home/sandbox/note"], 0).text(),
            "kept\n"
        );
        assert_eq!(place.says(&["exec", "s", "--", "sh", "-c", "kill -9 $$"], 137).text(), "");
        let missing = place.says(&["exec", "s", "--", "no-such-program"], 127);
        assert!(missing.stderr.contains("failed to start"), "{}", missing.stderr);
        assert_eq!(place.says(&["create", "--name", "s"], 1).text(), "");
        assert_eq!(
            place.says(&["ls", "--label", "a=c", "--json"], 0).object()["sessions"],
            Value::Array(vec![])
        );
        let listed = place.says(&["ls", "--label", "a=b", "--json"], 0).object();
        assert_eq!(listed["sessions"][0]["id"], Value::from(id.clone()));
        place.says(&["rm", "s"], 0);
        place.says(&["show", "s"], 1);
        place.says(&["exec", &id, "--", "true"], 125);
        assert!(!place.state.join("homes").join(&id).exists());
    });
}

#[test]
fn a_command_of_a_session_has_its_place_variables_and_limits() {
    everyone(|place| {
        fs::create_dir(place.workspace.join("sub")).unwrap();
        place.give(&place.workspace.join("sub"));
        place.says(&["create", "--name", "s", "--env", "OF=session"], 0);
        let words = ["exec", "s", "--cwd", "sub", "--env", "X=y", "--shell", "pwd; echo $OF $X"];
        let said = place.says(&words, 0).text();
        assert!(said.ends_with("/sub\nsession y\n"), "{said}");
        let mut command =
            place.cofferdam(&["exec", "s", "--env-from", "MINE", "--shell", "echo $MINE"]);
        assert_eq!(outcome(command.env("MINE", "m"), SOON).text(), "m\n");
        let late = place.says(&["exec", "s", "--timeout", "100ms", "--", "sleep", "60"], 124);
        assert!(late.stderr.contains("out of time (limit 100ms)"), "{}", late.stderr);
        let much = place.says(&["exec", "s", "--max-output", "1K", "--", "yes"], 137);
        assert!(much.stderr.contains("too much output (limit 1K)"), "{}", much.stderr);
        let capped = ["exec", "s", "--json", "--max-output", "4", "--", "printf", "123456"];
        let object = place.says(&capped, 0).object();
        assert_eq!(
            (object["stdout"].as_str(), object["omitted"]["stdout"].as_u64()),
            (Some("1234"), Some(2))
        );
    });
}

#[test]
fn input_reaches_a_command_byte_for_byte_and_ends() {
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        let bytes: Vec<u8> = (0..300_000_u32).map(|n| (n % 251) as u8).collect();
        let file = place.write("input", "");
        fs::write(&file, &bytes).unwrap();
        let mut command = place.cofferdam(&["exec", "s", "-i", "--", "cat"]);
        let said = outcome(command.stdin(fs::File::open(&file).unwrap()), SOON);
        assert!(said.stdout == bytes, "{} bytes of {}", said.stdout.len(), bytes.len());
        assert_eq!(place.says(&["exec", "s", "--", "cat"], 0).text(), "");
    });
}

#[test]
fn a_command_whose_reader_goes_ends_as_by_a_broken_pipe() {
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        let line = format!("{} exec s --id y -- yes | head -1; wait", place.program());
        let said = outcome(place.host("/bin/sh").args(["-c", &line]), SOON);
        assert_eq!(said.text(), "y\n");
        place.says(&["wait", "s", "y"], 141);
    });
}

#[test]
fn a_paused_session_stands_still_and_goes_on_with_the_next_command() {
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        let counts = "i=0; while :; do i=$((i+1)); echo $i; sleep 0.02; done";
        place.says(&["exec", "s", "-d", "--id", "counter", "--shell", counts], 0);
        let written = || place.says(&["logs", "s", "counter"], 0).text().lines().count();
        until(SOON, || (written() > 3).then_some(())).unwrap();
        place.says(&["pause", "s"], 0);
        place.says(&["pause", "s"], 0);
        assert_eq!(phase(place, "s"), "paused");
        let before = written();
        std::thread::sleep(std::time::Duration::from_millis(200));
        assert_eq!(written(), before);
        assert_eq!(place.says(&["exec", "s", "--", "echo", "awake"], 0).text(), "awake\n");
        assert_eq!(phase(place, "s"), "running");
        until(SOON, || (written() > before).then_some(())).unwrap();
        place.says(&["pause", "s"], 0);
        let resumed = place.says(&["resume", "s", "--json"], 0).object();
        assert_eq!(resumed["phase"], "running");
        place.says(&["signal", "s", "counter", "SIGTERM"], 0);
        place.says(&["wait", "s", "counter"], 143);
        let late = place.says(&["signal", "s", "counter", "SIGTERM"], 1);
        assert!(late.stderr.contains("hint: See with `cofferdam ps`"), "{late:?}");
    });
}

#[test]
fn a_stopped_session_has_all_but_what_ran() {
    everyone(|place| {
        place.says(&["create", "--name", "s", "--cow"], 0);
        place.says(&["exec", "s", "--shell", "echo kept | tee ~/home work; echo gone > /tmp/t"], 0);
        place.says(&["exec", "s", "-d", "--id", "server", "--", "sleep", "1000"], 0);
        for _ in 0..2 {
            let stopped = place.says(&["stop", "s", "--json"], 0).object();
            assert_eq!(stopped["phase"], "stopped");
        }
        // It was canceled.
        place.says(&["wait", "s", "server"], 130);
        let look = "cat ~/home work; ls /tmp/t";
        let said = place.says(&["exec", "s", "--shell", look], 2);
        assert_eq!(said.text(), "kept\nkept\n");
        assert_eq!(phase(place, "s"), "running");
        let none = place.says(&["stop", "nobody"], 1);
        assert!(none.stderr.contains("no session \"nobody\""), "{none:?}");
    });
}

#[test]
fn an_idle_session_is_paused_and_a_leased_one_ends_though_nobody_runs() {
    everyone(|place| {
        place.says(&["create", "--name", "idle", "--idle-pause", "100ms"], 0);
        let leased = line(place, &["create", "--name", "leased", "--ttl", "1s"]);
        until(SOON, || (phase(place, "idle") == "paused").then_some(())).unwrap();
        until(SOON, || (place.say(&["show", &leased]).code() == Some(1)).then_some(())).unwrap();
        place.says(&["ensure", "longer", "--ttl", "10m"], 0);
        let until_ms = |object: Value| object["lease_until_ms"].as_u64().unwrap();
        let before = until_ms(place.says(&["show", "longer", "--json"], 0).object());
        let after = until_ms(place.says(&["extend", "longer", "30m", "--json"], 0).object());
        assert_eq!(after - before, 30 * 60_000);
        place.says(&["extend", "idle", "30m"], 1);
    });
}

#[test]
fn preparation_runs_once_and_goes_on_where_it_failed() {
    everyone(|place| {
        let first = "echo one >> log";
        let second = "test -f ready && echo two >> log";
        let words = ["ensure", "s", "--init", first, "--init", second];
        let failed = place.says(&words, 1);
        assert!(failed.stderr.contains("test -f ready"), "{}", failed.stderr);
        let shown = place.says(&["show", "s", "--json"], 0).object();
        assert_eq!(
            (shown["init"].as_str(), shown["init_error"]["exit_code"].as_i64()),
            (Some("failed"), Some(1))
        );
        let listed = || place.says(&["ls"], 0).text();
        assert!(listed().contains("running, init failed"), "{}", listed());
        place.write("ready", "");
        place.says(&words, 0);
        place.says(&words, 0);
        assert!(!listed().contains("init failed"), "{}", listed());
        assert_eq!(fs::read_to_string(place.workspace.join("log")).unwrap(), "one\ntwo\n");
    });
}

#[test]
fn what_is_asked_for_otherwise_is_refused_by_name() {
    everyone(|place| {
        place.says(&["ensure", "s", "--env", "TOKEN=one"], 0);
        let other = place.says(&["ensure", "s", "--profile", "read-only", "--env", "TOKEN=two"], 1);
        assert!(other.stderr.contains("profile, env TOKEN"), "{}", other.stderr);
        assert!(!other.stderr.contains("two"), "{}", other.stderr);
    });
}

#[test]
fn every_object_is_what_its_schema_says() {
    everyone(|place| {
        let valid = |schema: &str, words: &[&str]| {
            let object = place.says(words, 0).object();
            is_valid(place, schema, &object);
            object
        };
        valid("session", &["create", "--json", "--name", "s", "--ttl", "1h", "--label", "a=b"]);
        valid("session", &["ensure", "s", "--json", "--ttl", "1h", "--label", "a=b"]);
        valid("result", &["exec", "s", "--json", "--id", "e", "--shell", "printf '\\377'; ls >&2"]);
        valid("exec", &["exec", "s", "-d", "--json", "--id", "d", "--", "sleep", "60"]);
        valid("execs", &["ps", "s", "--json"]);
        let log = valid("log", &["logs", "s", "e", "--json"]);
        assert_eq!(log["parts"][0]["base64"], "/w==");
        let part =
            place.says(&["logs", "s", "e", "-f", "--json", "--stream", "stdout"], 0).object();
        is_valid(place, "log-part", &part);
        valid("result", &["attach", "s", "e", "--json"]);
        valid("exec", &["wait", "s", "e", "--json"]);
        valid("exec", &["signal", "s", "d", "KILL", "--json"]);
        valid("session", &["pause", "s", "--json"]);
        valid("session", &["show", "s", "--json"]);
        valid("session", &["resume", "s", "--json"]);
        valid("session", &["extend", "s", "1h", "--json"]);
        valid("session", &["stop", "s", "--json"]);
        valid("sessions", &["ls", "--json"]);
        let events = valid("events", &["events", "--json"]);
        for event in events["events"].as_array().unwrap() {
            is_valid(place, "event", event);
        }
        valid("wrap", &["wrap", "--session", "s", "--", "true"]);
        valid("gc", &["gc", "--json"]);
        valid("gc", &["gc", "--dry-run", "--json"]);
        valid("removal", &["rm", "s", "--json"]);
        let error = place.says(&["show", "s", "--json"], 1).object();
        is_valid(place, "error", &error);
    });
}

#[test]
fn who_follows_events_ends_when_nobody_reads_them() {
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        let mut follower = place.cofferdam(&["events", "s", "-f"]);
        let mut follower = crate::place::started(follower.stdout(Stdio::piped()));
        let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines();
        assert!(lines.next().unwrap().unwrap().contains("provisioned") || lines.next().is_some());
        assert!(follower.try_wait().unwrap().is_none(), "the control: it is read");
        drop(lines);
        assert_eq!(ended(follower, SOON).code(), Some(0));
        place.says(&["rm", "s"], 0);
    });
}

#[test]
fn events_are_told_in_order_and_beyond_the_end() {
    everyone(|place| {
        let id = line(place, &["create", "--name", "s"]);
        let mut follower = place.cofferdam(&["events", "s", "-f", "--json"]);
        let mut follower = crate::place::started(follower.stdout(Stdio::piped()));
        let followed = lines_of(follower.stdout.take().unwrap());
        let hears = |kind: &str| {
            let mut lines = std::iter::from_fn(|| followed.recv_timeout(SOON).ok());
            lines.any(|line| line.contains(&format!("\"{kind}\"")))
        };
        // It has found the session before that goes.
        assert!(hears("provisioned"));
        place.says(&["exec", "s", "--id", "e", "--", "true"], 0);
        place.says(&["pause", "s"], 0);
        place.says(&["rm", "s"], 0);
        let events = place.says(&["events", &id, "--json"], 0).object();
        let kinds: Vec<&str> = events["events"]
            .as_array()
            .unwrap()
            .iter()
            .map(|e| e["kind"].as_str().unwrap())
            .collect();
        let order = ["provisioned", "exec_started", "exec_ended", "paused", "destroyed"];
        let told: Vec<&str> = kinds.iter().copied().filter(|kind| order.contains(kind)).collect();
        assert_eq!(told, order);
        let since = events["events"][0]["seq"].to_string();
        let rest = place.says(&["events", &id, "--since", &since, "--json"], 0).object();
        assert_eq!(rest["events"].as_array().unwrap().len(), kinds.len() - 1);
        // What follows sees the end as it comes.
        assert!(hears("destroyed"));
        follower.kill().unwrap();
        follower.wait().unwrap();
    });
}

#[test]
fn a_wrapped_command_enters_the_session() {
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        place.says(&["exec", "s", "--shell", "echo there > ~/note"], 0);
        let words = ["wrap", "--session", "s", "--env", "A=b", "--shell", "cat ~/note; echo $A"];
        let object = place.says(&words, 0).object();
        let argv: Vec<&str> =
            object["argv"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
        let mut wrapped = place.host(argv[0]);
        for (name, value) in object["env"].as_object().unwrap() {
            wrapped.env(name, value.as_str().unwrap());
        }
        assert_eq!(outcome(wrapped.args(&argv[1..]), SOON).text(), "there\nb\n");
    });
}

#[test]
fn what_is_ended_is_named_whole() {
    everyone(|place| {
        let id = line(place, &["create", "--name", "agent-10"]);
        place.says(&["exec", "agent-10", "-d", "--id", "r10", "--", "true"], 0);
        let refused = place.says(&["rm", "agent-1"], 1);
        assert!(refused.stderr.contains("Did you mean agent-10?"), "{}", refused.stderr);
        place.says(&["wait", "agent-10", "r1"], 125);
        place.says(&["signal", "agent-10", "r1", "TERM"], 1);
        place.says(&["rm", &id[..8]], 0);
    });
}

#[test]
fn names_and_ids_are_completed() {
    everyone(|place| {
        place.says(&["create", "--name", "alpha"], 0);
        let id = line(place, &["create"]);
        place.says(&["exec", "alpha", "-d", "--id", "build", "--", "true"], 0);
        assert_eq!(place.says(&["__complete", "--", "exec", "al"], 0).text(), "alpha\n");
        assert_eq!(
            place.says(&["__complete", "--", "rm", "alpha", &id[..3]], 0).text(),
            format!("{id}\n")
        );
        assert_eq!(place.says(&["__complete", "--", "logs", "alpha", ""], 0).text(), "build\n");
        place.says(&["create", "--name", "layered", "--cow"], 0);
        place.says(&["snapshot", "create", "layered", "--label", "good"], 0);
        place.says(&["snapshot", "create", "layered", "--label", "not one word"], 0);
        place.says(&["key", "create", "ci"], 0);
        let completed = |words: &[&str]| {
            place.says(&[&["__complete", "--"], words].concat(), 0).text().replace('\n', " ")
        };
        assert_eq!(completed(&["fork", "lay"]), "layered ");
        assert_eq!(completed(&["undo", "layered", "--to", "g"]), "good ");
        assert_eq!(completed(&["snapshot", "restore", "layered", ""]), "1 good 2 ");
        assert_eq!(completed(&["key", "revoke", ""]), "ci ");
        assert_eq!(completed(&["image", "rm", ""]), "");
        let script = format!(
            "source <({program} completions bash); \
             ask() {{ COMPREPLY=(); COMP_WORDS=({program} \"$@\"); COMP_CWORD=$#; \
             _cofferdam_names {program} \"${{!#}}\" x; echo \"${{COMPREPLY[@]}}\"; }}; \
             ask exec al; ask logs alpha b; ask logs --off; ask signal alpha build KI",
            program = place.program()
        );
        let asked = outcome(place.host("/bin/bash").args(["-c", &script]), SOON);
        assert_eq!(asked.text(), "alpha\nbuild\n--offset\nKILL\n", "{}", asked.stderr);
        place.says(&["exec", "alpha", "--", "true"], 0);
        place.says(&["logs", "al", "bui"], 0);
        place.says(&["wait", "alpha", "build"], 0);
    });
}

#[test]
fn the_configuration_says_how_sessions_are_kept_and_options_say_it_later() {
    everyone(|place| {
        let text = "[session]\nidle_pause = \"10m\"\nttl = \"1h\"\ninit = [\"echo 1 >> ~/log\"]\n";
        place.write("cofferdam.toml", text);
        let own = ["--config", "cofferdam.toml"];
        line(place, &["create", "--name", "s", own[0], own[1], "--init", "echo 2 >> ~/log"]);
        let shown = place.says(&["show", "s", "--json"], 0).object();
        assert_eq!(shown["idle_pause_ms"], 600_000);
        assert!(shown["lease_until_ms"].as_u64() > shown["created_ms"].as_u64(), "{shown}");
        assert_eq!(place.says(&["exec", "s", "--shell", "cat ~/log"], 0).text(), "1\n2\n");
        let later = ["create", "--name", "t", own[0], own[1], "--idle-pause", "none"];
        line(place, &later);
        assert_eq!(place.says(&["show", "t", "--json"], 0).object()["idle_pause_ms"], Value::Null);
        line(place, &["create", "--name", "u", "--no-config"]);
        let shown = place.says(&["show", "u", "--json"], 0).object();
        assert_eq!(
            (&shown["idle_pause_ms"], &shown["lease_until_ms"]),
            (&180_000.into(), &Value::Null)
        );
        place.says(&["rm", "s", "t", "u"], 0);
    });
}

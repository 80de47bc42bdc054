//! `run` with pre-flight lines, and with a wish for what becomes of a failure.

use crate::place::{SOON, ended, everyone, outcome, started, until};
use crate::schema::is_valid;
use crate::workspace::has_git;
use std::fs;
use std::process::Stdio;

#[test]
fn a_pre_flight_line_that_fails_keeps_the_command_from_running() {
    everyone(|place| {
        let good =
            place.run(&["--preflight", "echo before > order", "--shell", "cat order; exit 3"]);
        assert_eq!((good.code(), good.text().as_str()), (Some(3), "before\n"), "{}", good.stderr);
        let bad = place.run(&["--preflight", "echo why; exit 4", "--", "touch", "ran"]);
        assert_eq!(bad.code(), Some(125));
        assert!(bad.stderr.contains("exited 4: why"), "{}", bad.stderr);
        assert!(!place.workspace.join("ran").exists());
        let object = place.report(&["--preflight", "exit 4", "--", "true"]);
        assert_eq!(object["ending"]["kind"], "setup_failed");
        is_valid(place, "result", &object);
        let none = place.says(&["ls", "--json"], 0).object();
        assert_eq!(none["sessions"], serde_json::json!([]));
    });
}

#[test]
fn control_files_that_appear_are_told_as_by_any_run() {
    if !has_git() {
        return;
    }
    everyone(|place| {
        let words = ["--preflight", "true", "--", "git", "init", "-q", "new"];
        let report = place.report(&words);
        assert_eq!(report["exit_code"], 0, "{report}");
        assert!(report["new_control_files"].to_string().contains("new/.git"), "{report}");
        let said = place.run(&["--preflight", "true", "--shell", "git init -q other; exit 3"]);
        assert_eq!(said.code(), Some(3));
        assert!(said.stderr.contains("new control files in the workspace"), "{said:?}");
        assert!(said.stderr.contains("other/.git"), "{said:?}");
        let none = place.report(&["--preflight", "true", "--", "true"]);
        assert_eq!(none["new_control_files"], serde_json::json!([]));
    });
}

#[test]
fn a_run_without_them_knows_nothing_of_sessions() {
    everyone(|place| {
        assert_eq!(place.run(&["--timeout", "10s", "--", "true"]).code(), Some(0));
        assert!(!place.state.join("sessions.db").exists());
    });
}

#[test]
fn what_failed_is_kept_where_that_is_asked_for() {
    everyone(|place| {
        let kept = place.run(&[
            "--json",
            "--on-failure",
            "preserve",
            "--shell",
            "echo x > ~/note; exit 3",
        ]);
        assert_eq!(kept.code(), Some(3));
        let object = kept.object();
        is_valid(place, "result", &object);
        let id = object["session"].as_str().unwrap();
        let shown = place.says(&["show", id, "--json"], 0).object();
        assert_eq!(shown["phase"], "paused");
        assert!(place.state.join("bundles").join(id).is_dir());
        assert_eq!(place.says(&["exec", id, "--shell", "cat ~/note"], 0).text(), "x\n");
        let good = place.run(&["--json", "--on-failure", "preserve", "--", "true"]).object();
        assert_eq!(good.get("session"), None);
        let stopped = place.run(&["--on-failure", "stop", "--", "false"]);
        assert_eq!(stopped.code(), Some(1));
        assert!(stopped.stderr.contains("kept for study as session"), "{}", stopped.stderr);
    });
}

#[test]
fn the_time_of_such_a_run_counts_from_its_beginning_and_ends_it() {
    everyone(|place| {
        let late = place.run(&["--timeout", "1s", "--preflight", "sleep 60", "--", "true"]);
        assert_eq!(late.code(), Some(124), "{}", late.stderr);
        let late =
            place.run(&["--timeout", "1s", "--preflight", "true", "--shell", "echo x; sleep 60"]);
        assert_eq!((late.code(), late.text().as_str()), (Some(124), "x\n"), "{}", late.stderr);
        let events = place.says(&["events", "--json"], 0).object();
        let ends: Vec<&str> = events["events"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|event| event["kind"] == "destroyed")
            .filter_map(|event| event["data"]["reason"].as_str())
            .collect();
        assert_eq!(ends, ["timeout", "timeout"]);
    });
}

#[test]
fn a_run_that_is_interrupted_leaves_nothing() {
    everyone(|place| {
        let words = ["run", "--preflight", "touch begun; sleep 60", "--", "true"];
        let run = started(place.cofferdam(&words).stdout(Stdio::piped()).stderr(Stdio::piped()));
        until(SOON, || place.workspace.join("begun").exists().then_some(())).unwrap();
        outcome(place.host("/bin/kill").args(["-INT", &run.id().to_string()]), SOON);
        assert_eq!(ended(run, SOON).code(), Some(130));
        let none = place.says(&["ls", "--json"], 0).object();
        assert_eq!(none["sessions"], serde_json::json!([]));
        assert_eq!(fs::read_dir(place.state.join("homes")).unwrap().count(), 0);
        let swept = place.says(&["gc", "--json"], 0).object();
        assert_eq!(swept["done"], serde_json::json!([]));
    });
}

#[test]
fn control_files_that_appear_are_told_where_somebody_looks_for_them() {
    everyone(|place| {
        // A directory that was not there when the sandbox began cannot be guarded.
        let makes = |name: &str| {
            format!(
                "mkdir -p {name}/.git/objects {name}/.git/refs; \
                 echo ref: refs/heads/main > {name}/.git/HEAD"
            )
        };
        let told = |words: &[&str]| place.run(words).object()["new_control_files"].clone();
        let named = told(&["--json", "--preflight", &makes("first"), "--shell", &makes("second")]);
        let named = named.to_string();
        assert!(named.contains("first/.git") && named.contains("second/.git"), "{named}");
        assert_eq!(told(&["--json", "--preflight", "true", "--", "true"]), serde_json::json!([]));
        let failed = ["--json", "--preflight", "true", "--shell"];
        let failed = told(&[&failed[..], &[&format!("{}; exit 3", makes("third"))]].concat());
        assert!(failed.to_string().contains("third/.git"), "{failed}");
        let said = place.run(&["--preflight", "true", "--shell", &makes("fourth")]);
        assert!(said.stderr.contains("fourth/.git"), "{}", said.stderr);
        // Of a session that goes on nobody can say yet.
        place.says(&["create", "--name", "s"], 0);
        let object = place.says(&["exec", "s", "--json", "--shell", &makes("fifth")], 0).object();
        assert_eq!(object.get("new_control_files"), None);
    });
}

#[test]
fn commits_have_the_callers_name_in_a_session_whatever_git_it_finds() {
    everyone(|place| {
        let home = place.base.join("home");
        let config = home.join(".gitconfig");
        fs::write(&config, "[user]\n\tname = Somebody\n\temail = s@host.test\n").unwrap();
        place.give(&config);
        let mut create = place.cofferdam(&["create", "--name", "named"]);
        let said = outcome(create.env("HOME", &home), SOON);
        assert_eq!(said.code(), Some(0), "{said:?}");
        let line = "git config user.name; echo $GIT_CONFIG_SYSTEM";
        let said = place.says(&["exec", "named", "--", "/bin/sh", "-c", line], 0);
        assert_eq!(said.text(), "Somebody\n/etc/gitconfig\n", "as {}: {said:?}", place.uid());
    });
}

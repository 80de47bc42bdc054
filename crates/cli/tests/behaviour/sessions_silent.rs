//! Sessions whose keeper was stopped.

use crate::place::{Place, everyone, until};
use crate::sessions_durable::keepers;
use serde_json::json;
use std::time::Duration;

/// How long a verb may take that is told nothing: a keeper is asked for two seconds, and not again.
const TOLD_WITHIN: Duration = Duration::from_secs(9);

/// Sends a signal to the keeper of the only session, and gives its number.
fn signal(place: &Place, signal: &str) -> String {
    let [keeper] = <[String; 1]>::try_from(keepers(place)).unwrap();
    assert!(place.host("kill").args(["-s", signal, &keeper]).status().unwrap().success());
    keeper
}

#[test]
fn a_keeper_that_was_stopped_is_told_soon_and_by_its_number() {
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        place.write("f", "x\n");
        let keeper = signal(place, "STOP");
        for words in [
            &["exec", "s", "--", "true"][..],
            &["exec", "s", "-d", "--", "true"],
            &["pause", "s"],
            &["file", "read", "s", "f"],
            &["file", "list", "s"],
            &["ps", "s"],
            &["show", "s"],
        ] {
            let said = place.say(words);
            assert_ne!(said.code(), Some(0), "{words:?}");
            assert!(said.took < TOLD_WITHIN, "{words:?}: {:?}", said.took);
            let is_told = said.stderr.contains(&format!("process {keeper}, is stopped"));
            assert!(is_told && said.stderr.contains("kill -CONT"), "{words:?}: {}", said.stderr);
        }
        // It was asked to pause, and may do so yet.
        let said = place.says(&["ls"], 0);
        assert!(said.took < TOLD_WITHIN && said.text().contains("pausing"), "{said:?}");
        // The control: it goes on as if nothing had been.
        signal(place, "CONT");
        assert_eq!(place.says(&["exec", "s", "--", "cat", "f"], 0).text(), "x\n");
        place.says(&["rm", "s"], 0);
    });
}

#[test]
fn a_keeper_that_was_stopped_keeps_no_other_session_from_being_listed() {
    everyone(|place| {
        place.says(&["create", "--name", "silent"], 0);
        let keeper = signal(place, "STOP");
        place.says(&["create", "--name", "other"], 0);
        let other = keepers(place).into_iter().find(|other| *other != keeper).unwrap();
        assert!(place.host("kill").args(["-s", "KILL", &other]).status().unwrap().success());
        until(TOLD_WITHIN, || (keepers(place).len() == 1).then_some(())).unwrap();
        let said = place.says(&["ls"], 0);
        assert!(said.took < TOLD_WITHIN, "{said:?}");
        let state = |name: &str, state: &str| {
            let text = said.text();
            let line = text.lines().find(|line| line.contains(name)).unwrap();
            assert!(line.contains(state), "{text}");
        };
        state("silent", "running, unreachable");
        // What it is by now, and not what was written last of it.
        state("other", "lost ");
        let is_told = said.stderr.contains(&format!("process {keeper}, is stopped"));
        assert!(is_told && said.stderr.lines().count() == 1, "{said:?}");
        let all = place.says(&["ls", "--json"], 0).object();
        let [silent, other] = [0, 1].map(|place| &all["sessions"][place]);
        assert_eq!((&silent["phase"], &other["phase"]), (&json!("running"), &json!("lost")));
        assert!(silent["unreachable"].as_str().unwrap().contains("is stopped"), "{all}");
        assert_eq!(other.get("unreachable"), None);
        let kill = place.host("kill").args(["-s", "CONT", &keeper]).status();
        assert!(kill.unwrap().success());
        let said = place.says(&["ls"], 0);
        assert!(said.stderr.is_empty() && !said.text().contains("unreachable"), "{said:?}");
        place.says(&["rm", "silent"], 0);
        place.says(&["rm", "other"], 0);
    });
}

#[test]
fn keepers_that_were_stopped_are_waited_for_together() {
    // One after the other they would take longer.
    const SILENT: usize = 6;
    everyone(|place| {
        let names: Vec<String> = (0..SILENT).map(|number| format!("s{number}")).collect();
        for name in &names {
            place.says(&["create", "--name", name], 0);
        }
        let kill = |signal| {
            let sent = place.host("kill").args(["-s", signal]).args(keepers(place)).status();
            assert!(sent.unwrap().success());
        };
        kill("STOP");
        let said = place.says(&["ls"], 0);
        assert_eq!(said.text().matches("running, unreachable").count(), SILENT, "{said:?}");
        assert!(said.took < TOLD_WITHIN, "{said:?}");
        kill("CONT");
        for name in &names {
            place.says(&["rm", name], 0);
        }
    });
}

#[test]
fn a_session_whose_keeper_was_stopped_is_stopped_and_removed_all_the_same() {
    everyone(|place| {
        for verb in ["stop", "rm"] {
            place.says(&["create", "--name", "s", "--cow"], 0);
            let runs = format!("echo {}; sleep 300 & sleep 300", place.marker);
            place.says(&["exec", "s", "-d", "--shell", &runs], 0);
            signal(place, "STOP");
            let said = place.says(&[verb, "s"], 0);
            assert!(said.took < TOLD_WITHIN, "{verb}: {:?}", said.took);
            until(TOLD_WITHIN, || keepers(place).is_empty().then_some(())).unwrap();
            if verb == "stop" {
                place.says(&["rm", "s"], 0);
            }
            let left = place.state.join("sessions");
            let left: Vec<_> = std::fs::read_dir(left).unwrap().flatten().collect();
            assert!(left.is_empty(), "{verb}: {left:?}");
            let told = place.says(&["gc", "--json"], 0).object();
            assert_eq!(told["done"], json!([]), "{verb}: nothing is owed: {told}");
        }
    });
}

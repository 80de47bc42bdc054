//! Which session a verb means, and that it needs no directory for that.

use crate::place::{Place, SOON, everyone, outcome};
use crate::remote::{Server, Way, socket};
use crate::sessions::{line, phase};

/// Verbs that change something, with a name that is another's beginning, and how they fail.
const CHANGES: [(&[&str], i32); 16] = [
    (&["discard", "pre-1"], 1),
    (&["apply", "pre-1"], 1),
    (&["undo", "pre-1"], 1),
    (&["stop", "pre-1"], 1),
    (&["pause", "pre-1"], 1),
    (&["rm", "pre-1"], 1),
    (&["snapshot", "create", "pre-1"], 1),
    (&["snapshot", "restore", "pre-1", "1"], 1),
    (&["snapshot", "rm", "pre-1", "1"], 1),
    (&["snapshot", "import", "pre-1", "empty"], 1),
    (&["signal", "pre-1", "server", "KILL"], 1),
    (&["wait", "pre-1", "server"], 125),
    (&["exec", "pre-1", "--", "rm", "made"], 125),
    (&["file", "write", "pre-1", "made"], 1),
    (&["file", "rm", "pre-1", "made"], 1),
    (&["file", "mkdir", "pre-1", "more"], 1),
];

#[test]
fn what_is_changed_is_named_whole() {
    everyone(|place| {
        place.write("empty", "");
        line(place, &["create", "--name", "pre-1"]);
        let id = line(place, &["create", "--cow", "--name", "pre-10"]);
        place.says(&["exec", "pre-10", "--shell", "echo kept > made"], 0);
        place.says(&["exec", "pre-10", "-d", "--id", "server", "--", "sleep", "1000"], 0);
        place.says(&["rm", "pre-1"], 0);
        for (words, code) in CHANGES {
            let refused = place.says(words, code);
            is_refused(words, &refused.stderr);
        }
        // Whoever only looks may go on with a beginning, and sees that nothing happened.
        let shown = place.says(&["show", "pre-1", "--json"], 0).object();
        assert_eq!(shown["id"], id.as_str());
        assert_eq!(phase(place, "pre-1"), "running");
        assert_eq!(place.says(&["file", "read", "pre-1", "made"], 0).text(), "kept\n");
        assert_eq!(changed(place), "made\n");
        // What begins several names has to be written out, and that is what the hint says.
        line(place, &["create", "--name", "pre-2"]);
        for words in [&["rm", "pre-"][..], &["stop", "pre-"], &["exec", "pre-", "--", "true"]] {
            let refused = place.say(words);
            let hint = "hint: Name one of them whole, or write more of its id.";
            assert!(refused.stderr.contains(hint), "{words:?}: {refused:?}");
        }
        let refused = place.says(&["show", "pre-"], 1);
        assert!(refused.stderr.contains("Write more of the id or name."), "control: {refused:?}");
        place.says(&["rm", "pre-2"], 0);
        // An id may be cut, as nobody chose it.
        assert_eq!(place.says(&["exec", &id[..8], "--", "cat", "made"], 0).text(), "kept\n");
        place.says(&["discard", &id[..8]], 0);
        assert_eq!(changed(place), "");
    });
}

#[test]
fn what_is_changed_at_a_server_is_named_whole() {
    everyone(|place| {
        place.write("empty", "");
        let server = Server::start(place, &socket(place));
        let way = Way::There(place, &server.url, None);
        let id = way.says(&["create", "--name", "pre-10"], 0).text().trim().to_owned();
        for (words, code) in CHANGES {
            let refused = way.says(words, code);
            is_refused(words, &refused.stderr);
        }
        assert_eq!(way.says(&["show", "pre-1", "--json"], 0).object()["id"], id.as_str());
        way.says(&["exec", &id[..8], "--", "true"], 0);
        way.says(&["exec", "pre-10", "--", "true"], 0);
    });
}

#[test]
fn sessions_are_reached_from_a_directory_that_was_removed() {
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        let there = |words: &str, code: i32| {
            let line = format!("mkdir d && cd d && rmdir ../d && \"$C\" {words}");
            let mut command = place.host("/bin/sh");
            let said = outcome(command.args(["-c", &line]).env("C", place.program()), SOON);
            assert_eq!(said.code(), Some(code), "as {}: {words}: {said:?}", place.uid());
            said
        };
        assert_eq!(there("ls", 0).text().lines().count(), 2);
        assert_eq!(there("exec s -- echo there", 0).text(), "there\n");
        for words in ["ps s", "gc", "secret ls", "stop s", "rm s"] {
            there(words, 0);
        }
        place.says(&["show", "s"], 1);
        // The control: what is made lies on the current directory, and there is none.
        let refused = there("create", 1);
        assert!(refused.stderr.contains("the current directory cannot be found"), "{refused:?}");
        assert!(refused.stderr.contains("hint: Change to"), "{refused:?}");
    });
}

fn is_refused(words: &[&str], stderr: &str) {
    let hint = "Did you mean pre-10? Name it whole, so that no other one is meant.";
    let is_told = stderr.contains("there is no session \"pre-1\"") && stderr.contains(hint);
    assert!(is_told, "{words:?}: {stderr}");
}

/// The paths that the session has of its own.
fn changed(place: &Place) -> String {
    place.says(&["diff", "pre-10", "--name-only"], 0).text()
}

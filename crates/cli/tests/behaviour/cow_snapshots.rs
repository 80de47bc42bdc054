//! Snapshots and forks of copy-on-write sessions.

use crate::cow_tree::tree;
use crate::place::{Place, SOON, ended, everyone, outcome, started, until};
use crate::schema::is_valid;
use crate::sessions::{line, phase};
use crate::sessions_durable::keepers;
use std::fs;
use std::process::Stdio;

/// Changes of every sort, and what they look like inside.
const CHANGES: &str = "echo one > f; rm gone; mkdir -p d/closed; echo x > d/closed/g; \
    chmod 0 d/closed; ln f linked; ln -s /etc link; rm -r replaced; mkdir replaced; echo n > replaced/n";
const LOOK: &str = "cat f; ls; ls replaced; stat -c '%a %h %s' f d/closed link";

fn prepared(place: &Place) -> String {
    for (name, text) in [("f", "real\n"), ("gone", "g"), ("replaced/old", "o"), ("kept", "k")] {
        place.write(name, text);
    }
    place.says(&["create", "--cow", "--name", "s"], 0);
    place.says(&["exec", "s", "--shell", CHANGES], 0);
    look(place, "s")
}

fn look(place: &Place, session: &str) -> String {
    place.says(&["exec", session, "--shell", LOOK], 0).text()
}

#[test]
fn a_session_goes_back_to_a_snapshot_and_the_real_tree_stays() {
    everyone(|place| {
        let first = prepared(place);
        let before = tree(&place.workspace);
        // Points are numbered in one line: the start, two commands, and this.
        assert_eq!(line(place, &["snapshot", "create", "s", "--label", "one \u{1b}[1m"]), "3");
        place.says(&["exec", "s", "--shell", "echo two > f; rm kept; rm link; echo y > gone"], 0);
        let second = place.says(&["snapshot", "create", "s", "--json"], 0).object();
        assert_eq!(second["snapshot"], 5);
        is_valid(place, "snapshot", &second);
        let listed = place.says(&["snapshot", "ls", "s", "--json"], 0).object();
        assert_eq!(listed["snapshots"].as_array().unwrap().len(), 2);
        is_valid(place, "snapshots", &listed);
        assert!(!place.says(&["snapshot", "ls", "s"], 0).text().contains('\u{1b}'));
        place.says(&["exec", "s", "-d", "--id", "server", "--", "sleep", "1000"], 0);
        let said = place.says(&["snapshot", "restore", "s", "3"], 0);
        assert!(said.stderr.contains("all processes of the session were ended"), "{said:?}");
        place.says(&["wait", "s", "server"], 130);
        assert_eq!(look(place, "s"), first);
        let back = place.says(&["snapshot", "restore", "s", "5", "--json"], 0).object();
        is_valid(place, "undo", &back);
        let now = place.says(&["exec", "s", "--shell", "cat f gone; ls"], 0).text();
        assert_eq!(now, "two\ny\nd\nf\ngone\nlinked\nreplaced\n");
        // A point that nobody named is for undo, so that a number means one thing.
        let refused = place.says(&["snapshot", "restore", "s", "4"], 1);
        assert!(refused.stderr.contains("point 4 is no snapshot"), "{refused:?}");
        assert!(refused.stderr.contains("cofferdam undo"), "{refused:?}");
        // Any number of times: the snapshot stays.
        place.says(&["snapshot", "restore", "s", "one \u{1b}[1m"], 0);
        assert_eq!(look(place, "s"), first);
        place.says(&["snapshot", "rm", "s", "3"], 0);
        let refused = place.says(&["snapshot", "restore", "s", "3"], 1);
        assert!(refused.stderr.contains("there is no point 3"), "{refused:?}");
        place.says(&["snapshot", "restore", "s", "one"], 1);
        assert_eq!(
            phase(place, "s"),
            "running",
            "nothing is ended for a snapshot that is not there"
        );
        let events = place.says(&["events", "s", "--json"], 0).text();
        for kind in ["snapshot_made", "snapshot_restored", "snapshot_removed"] {
            assert!(events.contains(kind), "{kind}: {events}");
        }
        place.says(&["rm", "s"], 0);
        assert_eq!(fs::read_dir(place.state.join("kept")).unwrap().count(), 0);
        assert_eq!(tree(&place.workspace), before);
    });
}

#[test]
fn a_snapshot_is_of_one_moment_and_what_runs_goes_on() {
    everyone(|place| {
        place.says(&["create", "--cow", "--name", "s"], 0);
        // The second file never has less than the first, but between two moments.
        let count = "i=0; while test -e go; do i=$((i+1)); echo $i > b.new; mv b.new b; \
                     echo $i > a.new; mv a.new a; done; echo done";
        let begin = "touch go; echo 0 > a; echo 0 > b";
        place.says(&["exec", "s", "--shell", begin], 0);
        let words = ["exec", "s", "--id", "counter", "--shell", count];
        let mut command = place.cofferdam(&words);
        let counter = started(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
        let counts = || {
            let text = place.says(&["exec", "s", "--", "cat", "a"], 0).text();
            (text.trim() != "0").then_some(())
        };
        until(SOON, counts).unwrap();
        for number in 1..=5 {
            let taken = line(place, &["snapshot", "create", "s"]);
            let (from, name) = (format!("s@{taken}"), format!("t{number}"));
            place.says(&["fork", &from, &name], 0);
            let text = place.says(&["exec", &name, "--", "cat", "a", "b"], 0).text();
            let counts: Vec<u64> = text.lines().map(|line| line.parse().unwrap()).collect();
            let [a, b] = counts[..] else { panic!("{text}") };
            assert!(b == a || b == a + 1, "{a} {b}");
            place.says(&["rm", &name], 0);
        }
        assert_eq!(phase(place, "s"), "running");
        place.says(&["exec", "s", "--", "rm", "go"], 0);
        assert_eq!(ended(counter, SOON).text(), "done\n");
    });
}

#[test]
fn a_fork_begins_as_the_session_is_and_neither_sees_the_other() {
    everyone(|place| {
        let first = prepared(place);
        let before = tree(&place.workspace);
        place.says(&["exec", "s", "--shell", "echo mine > ~/note"], 0);
        let forked = place.says(&["fork", "s", "t", "--json"], 0).object();
        is_valid(place, "session", &forked);
        assert_eq!((&forked["name"], &forked["copy_on_write"]), (&"t".into(), &true.into()));
        assert_eq!(look(place, "t"), first);
        place.says(&["exec", "t", "--shell", "test ! -e ~/note && echo theirs > f"], 0);
        place.says(&["exec", "s", "--shell", "echo ours > f"], 0);
        assert_eq!(place.says(&["exec", "t", "--", "cat", "f"], 0).text(), "theirs\n");
        assert_eq!(place.says(&["exec", "s", "--", "cat", "f"], 0).text(), "ours\n");
        let taken = place.says(&["fork", "s", "t"], 1);
        assert!(taken.stderr.contains("already"), "{taken:?}");
        place.says(&["rm", "s"], 0);
        assert_eq!(place.says(&["exec", "t", "--", "cat", "f"], 0).text(), "theirs\n");
        assert_eq!(tree(&place.workspace), before);
    });
}

#[test]
fn forks_begin_at_a_snapshot_and_come_in_numbers_or_not_at_all() {
    everyone(|place| {
        let first = prepared(place);
        place.says(&["snapshot", "create", "s", "--label", "early"], 0);
        place.says(&["exec", "s", "--shell", "echo later >f"], 0);
        let ids = place.says(&["fork", "s@early", "t", "-n", "2"], 0);
        assert_eq!(ids.text().lines().count(), 2);
        assert!(ids.stderr.contains("processes and $HOME are not copied"), "{}", ids.stderr);
        assert_eq!((look(place, "t-1"), look(place, "t-2")), (first.clone(), first));
        assert_eq!(place.says(&["exec", "s", "--", "cat", "f"], 0).text(), "later\n");
        let list = place.says(&["fork", "s", "u", "-n", "2", "--json"], 0).object();
        is_valid(place, "sessions", &list);
        assert_eq!(list["sessions"][1]["name"], "u-2");
        // One name is taken, so none of the three is made.
        place.says(&["fork", "s", "x-2"], 0);
        place.says(&["fork", "s", "x", "-n", "3"], 1);
        let listed = place.says(&["ls", "--json"], 0).text();
        assert!(!listed.contains("\"x-1\"") && !listed.contains("\"x-3\""), "{listed}");
        let none = place.says(&["fork", "s@99", "y"], 1);
        assert!(none.stderr.contains("there is no point 99"), "{}", none.stderr);
        place.says(&["fork", "s@x", "y"], 1);
        place.says(&["fork", "s@", "y"], 2);
        // From any point, and what a fork is says from where.
        place.says(&["fork", "s@0", "z"], 0);
        assert_eq!(place.says(&["exec", "z", "--", "cat", "f"], 0).text(), "real\n");
        let told = place.says(&["history", "z", "--json"], 0).object();
        assert_eq!(
            (&told["points"][0]["kind"], &told["points"][0]["from"]["point"]),
            (&"start".into(), &0.into())
        );
        place.says(&["show", "y"], 1);
    });
}

#[test]
fn forks_that_are_interrupted_are_none() {
    everyone(|place| {
        prepared(place);
        let mut forking = place.cofferdam(&["fork", "s", "i", "-n", "64"]);
        let forking = started(forking.stdout(Stdio::null()).stderr(Stdio::piped()));
        let listed = || place.says(&["ls", "--json"], 0).text();
        until(SOON, || listed().contains("\"i-1\"").then_some(())).unwrap();
        let killed =
            outcome(place.host("/bin/kill").args(["-INT", &forking.id().to_string()]), SOON);
        assert_eq!(killed.code(), Some(0), "{killed:?}");
        let said = ended(forking, SOON);
        assert_eq!(said.code(), Some(1), "{said:?}");
        assert!(said.stderr.contains("a signal ended the forking"), "{said:?}");
        assert!(!listed().contains("\"i-"), "{}", listed());
    });
}

#[test]
fn snapshots_survive_the_death_of_everything_and_of_whoever_takes_them() {
    everyone(|place| {
        let first = prepared(place);
        place.says(&["snapshot", "create", "s"], 0);
        for _ in 0..5 {
            let words = ["snapshot", "create", "s"];
            let mut command = place.cofferdam(&words);
            let mut taker = started(command.stdout(Stdio::null()).stderr(Stdio::null()));
            std::thread::sleep(std::time::Duration::from_millis(15));
            taker.kill().unwrap();
            taker.wait().unwrap();
        }
        outcome(place.host("/bin/kill").arg("-9").args(keepers(place)), SOON);
        until(SOON, || (phase(place, "s") == "lost").then_some(())).unwrap();
        // As if one had died at its work.
        let kept = fs::read_dir(place.state.join("kept")).unwrap().next().unwrap().unwrap().path();
        let left =
            [kept.join("history/working"), kept.join("history/blobs/999"), kept.join("cow/.fresh")];
        fs::create_dir_all(left[2].join("upper/closed")).unwrap();
        fs::write(&left[0], "").unwrap();
        fs::write(&left[1], "half").unwrap();
        for path in
            [&left[0], &left[1], &left[2], &left[2].join("upper"), &left[2].join("upper/closed")]
        {
            place.give(path);
        }
        let would = place.says(&["gc", "--dry-run", "--json"], 0).object();
        assert!(left.iter().all(|path| path.exists()));
        let swept = place.says(&["gc", "--json"], 0).object();
        assert!(swept["done"].to_string().contains("swept"), "{swept}");
        // What the sandbox itself left is paid by the end of it, and told for its session.
        let would = would["done"].as_array().unwrap();
        assert!(swept["done"].as_array().unwrap().iter().all(|done| would.contains(done)));
        assert!(left.iter().all(|path| !path.exists()));
        // Of a session without a sandbox too.
        place.says(&["snapshot", "create", "s"], 0);
        assert_eq!(look(place, "s"), first, "the layer itself was not harmed");
        place.says(&["exec", "s", "--shell", "chmod 700 d/closed; rm -rf d f"], 0);
        for snapshot in place.says(&["snapshot", "ls", "s", "--json"], 0).object()["snapshots"]
            .as_array()
            .unwrap()
        {
            place.says(&["snapshot", "restore", "s", &snapshot["snapshot"].to_string()], 0);
            assert_eq!(look(place, "s"), first, "{snapshot}");
        }
        place.says(&["rm", "s"], 0);
        assert_eq!(fs::read_dir(place.state.join("kept")).unwrap().count(), 0);
    });
}

#[test]
fn a_session_that_is_not_copy_on_write_has_no_snapshots() {
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        let verbs: [&[&str]; 5] = [
            &["snapshot", "create", "s"],
            &["snapshot", "restore", "s", "1"],
            &["fork", "s", "t"],
            &["history", "s"],
            &["undo", "s"],
        ];
        for words in verbs {
            let refused = place.says(words, 1);
            assert!(refused.stderr.contains("--cow"), "{refused:?}");
        }
        assert_eq!(phase(place, "s"), "running");
    });
}

#[test]
fn a_session_has_a_bounded_number_of_snapshots() {
    everyone(|place| {
        place.says(&["create", "--cow", "--name", "s"], 0);
        for number in 1..=64 {
            // 0 is the start.
            assert_eq!(line(place, &["snapshot", "create", "s"]), number.to_string());
        }
        let refused = place.says(&["snapshot", "create", "s"], 1);
        assert!(refused.stderr.contains("64 snapshots already"), "{refused:?}");
        place.says(&["snapshot", "rm", "s", "3"], 0);
        assert_eq!(line(place, &["snapshot", "create", "s"]), "65");
        for bad in [&"x".repeat(257), "", "12"] {
            place.says(&["snapshot", "create", "s", "--label", bad], 2);
        }
    });
}

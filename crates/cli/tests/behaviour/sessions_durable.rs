//! What outlives whom: commands their callers, sessions everything, and nothing its removal.

use crate::place::{Place, SOON, ended, everyone, outcome, started, until};
use crate::sessions::{line, phase};
use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::process::{Child, Stdio};
use std::time::Duration;

/// Starts the program and leaves it to itself.
fn begin(place: &Place, words: &[&str]) -> Child {
    started(place.cofferdam(words).stdout(Stdio::piped()).stderr(Stdio::piped()))
}

#[test]
fn a_detached_command_is_followed_and_waited_for() {
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        let work = "for i in 1 2 3; do echo $i; sleep 0.1; done; echo e >&2; exit 7";
        let id = line(place, &["exec", "s", "-d", "--shell", work]);
        let followed = place.says(&["logs", "s", &id, "-f"], 0);
        assert_eq!((followed.text().as_str(), followed.stderr.as_str()), ("1\n2\n3\n", "e\n"));
        place.says(&["wait", "s", &id], 7);
        place.says(&["wait", "s", &id], 7);
        assert_eq!(place.says(&["logs", "s", &id, "--offset", "4"], 0).text(), "3\n");
        let alone = place.says(&["logs", "s", &id, "--stream", "stderr"], 0);
        assert_eq!((alone.text().as_str(), alone.stderr.as_str()), ("", "e\n"));
        let attached = place.says(&["attach", "s", &id, "--offset", "2"], 0);
        assert_eq!(attached.text(), "2\n3\n");
    });
}

#[test]
fn whoever_looks_at_a_command_is_told_that_its_session_was_stopped() {
    everyone(|place| {
        let up = |words: &[&str]| {
            let mut child = begin(place, words);
            let mut line = [0; 3];
            child.stdout.as_mut().unwrap().read_exact(&mut line).unwrap();
            assert_eq!(&line, b"up\n");
            child
        };
        for (verb, done) in [("stop", "stopped"), ("rm", "removed")] {
            let id = line(place, &["create", "--name", verb]);
            let runs = "echo up; exec sleep 1000";
            place.says(&["exec", verb, "-d", "--id", "x", "--shell", runs], 0);
            let lookers = [
                (up(&["attach", verb, "x"]), 130),
                (up(&["exec", verb, "--shell", runs]), 130),
                (up(&["logs", verb, "x", "-f"]), 0),
            ];
            let waits = begin(place, &["attach", verb, "x", "--json"]);
            place.says(&[verb, verb], 0);
            for (looker, code) in lookers {
                let said = ended(looker, SOON);
                let words = format!("cofferdam: canceled: session {id} was {done}\n");
                assert_eq!((said.code(), said.stderr), (Some(code), words), "{verb}");
            }
            let said = ended(waits, SOON);
            // It may have come too late for one that was removed.
            assert!(said.code() == Some(130) || verb == "rm", "{said:?}");
        }
        // The control: what becomes of the command itself is for others to tell.
        place.says(&["create", "--name", "s"], 0);
        place.says(&["exec", "s", "-d", "--id", "x", "--shell", "sleep 0.2; exit 3"], 0);
        assert_eq!(place.says(&["attach", "s", "x"], 0).stderr, "");
        // Nor is one told again of what was there before.
        assert_eq!(place.says(&["logs", "stop", "x", "-f"], 0).stderr, "");
    });
}

#[test]
fn the_last_lines_of_a_command_are_printed_whatever_was_dropped_before_them() {
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        let tail = |exec: &str, lines: &str, more: &[&str]| {
            place.says(&[&["logs", "s", exec, "--tail", lines], more].concat(), 0)
        };
        let both = "printf 'a\\nb\\n\\nlast'; printf '1\\n2\\n' >&2";
        place.says(&["exec", "s", "--id", "few", "--shell", both], 0);
        for (lines, stdout, stderr) in [
            ("0", "", ""),
            ("1", "last", "2\n"),
            ("2", "\nlast", "1\n2\n"),
            ("3", "b\n\nlast", "1\n2\n"),
            ("9", "a\nb\n\nlast", "1\n2\n"),
        ] {
            for follow in [&[][..], &["-f"]] {
                let said = tail("few", lines, follow);
                assert_eq!(
                    (said.text().as_str(), said.stderr.as_str()),
                    (stdout, stderr),
                    "{lines}"
                );
            }
        }
        assert_eq!(tail("few", "1", &["--stream", "stderr"]).text(), "");
        let log = tail("few", "1", &["--json"]).object();
        assert_eq!(log["parts"][0]["offset"], 5, "{log}");
        // Longer than what is read at once, and than what is kept.
        let much = "yes 0123456789abcde | head -c 70000000; seq -f %015g 1 50000";
        place.says(&["exec", "s", "-d", "--id", "much", "--shell", much], 0);
        place.says(&["wait", "s", "much"], 0);
        let said = tail("much", "40000", &[]);
        assert_eq!(said.text().lines().count(), 40000);
        assert!(said.text().starts_with("000000000010001\n"), "{:.40}", said.text());
        let all = tail("much", "10000000", &[]);
        assert!(all.stdout.len() > 1 << 20 && all.stdout.len() < 70_000_000);
        place.says(&["logs", "s", "few", "--tail", "1", "--offset", "2"], 2);
        // Waiting has an end where one is named, and the command has none of it.
        place.says(&["exec", "s", "-d", "--id", "long", "--shell", "read x; exit 3"], 0);
        place.says(&["exec", "s", "-d", "--id", "slow", "--shell", "sleep 2; exit 3"], 0);
        let said = place.says(&["wait", "s", "slow", "--timeout", "100ms"], 124);
        assert!(said.stderr.contains("slow has not ended yet, and goes on"), "{}", said.stderr);
        place.says(&["wait", "s", "slow", "--timeout", "1m"], 3);
    });
}

/// It fell asleep by itself, which nobody took in before.
#[test]
fn whoever_waits_for_a_command_wakes_a_session_that_sleeps() {
    everyone(|place| {
        let work = "sleep 2; echo done";
        let again = ["exec", "s", "--id", "w", "--shell", work];
        let all =
            [&["wait", "s", "w"][..], &["attach", "s", "w"], &["logs", "s", "w", "-f"], &again];
        for words in all {
            place.says(&["create", "--name", "s", "--idle-pause", "300ms"], 0);
            place.says(&["exec", "s", "-d", "--id", "w", "--shell", work], 0);
            let sleeps = || (phase(place, "s") == "paused").then_some(());
            assert!(until(SOON, sleeps).is_some());
            let said = place.says(words, 0);
            assert!(words[0] == "wait" || said.text() == "done\n", "{said:?}");
            place.says(&["rm", "s"], 0);
        }
    });
}

/// A question for news ends after 20 s, and the next one is asked.
#[test]
fn a_pause_lasts_however_long_somebody_waits() {
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        let work = "echo up; until [ -e go ]; do sleep 0.1; done; exit 7";
        let mut follows = begin(place, &["exec", "s", "--id", "w", "--shell", work]);
        let mut line = [0; 3];
        follows.stdout.as_mut().unwrap().read_exact(&mut line).unwrap();
        let waits = begin(place, &["wait", "s", "w", "--timeout", "22s"]);
        // It has woken the session by then, as whoever begins to wait does.
        std::thread::sleep(Duration::from_secs(1));
        place.says(&["pause", "s"], 0);
        assert_eq!(ended(waits, SOON * 3).code(), Some(124));
        assert_eq!(phase(place, "s"), "paused");
        place.write("go", "");
        place.says(&["resume", "s"], 0);
        assert_eq!(ended(follows, SOON).code(), Some(7));
    });
}

#[test]
fn the_end_of_a_session_under_a_command_is_told_with_what_held() {
    everyone(|place| {
        for verb in ["stop", "discard", "rm"] {
            place.says(&["create", "--cow", "--name", "s"], 0);
            let held = place.says(&["show", "s", "--json"], 0).object()["enforced"].clone();
            let exec = ["exec", "s", "--json", "--receipt", "--id", "x", "--shell"];
            let child =
                begin(place, &[&exec[..], &["echo said; touch up; exec sleep 1000"]].concat());
            let is_up = || {
                let said = outcome(&mut place.cofferdam(&["logs", "s", "x"]), SOON);
                (said.text() == "said\n").then_some(())
            };
            assert!(until(SOON, is_up).is_some());
            place.says(&[verb, "s"], 0);
            let said = ended(child, SOON);
            assert_eq!(said.code(), Some(130), "{verb}: {said:?}");
            let told = said.object();
            assert_eq!(told["ending"]["kind"], "canceled", "{verb}: {told}");
            assert_eq!(told["enforced"], held, "{verb}");
            let host = &told["receipt"]["seen_by_host"];
            assert_eq!(host["cause"], "canceled", "{verb}: {told}");
            if verb == "rm" {
                assert_eq!(host["files"]["not_seen"], "the session was removed");
            } else {
                place.says(&["rm", "s"], 0);
            }
        }
    });
}

#[test]
fn what_is_beyond_the_limit_of_output_is_not_shown() {
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        let said = place.says(&["exec", "s", "--max-output", "1K", "--", "yes"], 137);
        assert_eq!(said.text().len(), 1024);
    });
}

#[test]
fn the_end_of_a_session_tells_which_control_files_appeared() {
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        // A directory that was not there when the sandbox began cannot be guarded.
        place.says(&["exec", "s", "--shell", "mkdir -p new/.git/hooks; echo ref: refs/heads/main > new/.git/HEAD; mkdir new/.git/objects new/.git/refs; echo x > new/.envrc"], 0);
        let said = place.says(&["rm", "s"], 0);
        assert!(said.stderr.contains("new control files in the workspace"), "{said:?}");
        assert!(said.stderr.contains("new/.git"), "{said:?}");
        let events = place.says(&["events", "--json"], 0).object();
        let appeared = events["events"]
            .as_array()
            .unwrap()
            .iter()
            .find(|event| event["kind"] == "new_control_files");
        let paths = appeared.unwrap_or(&events)["data"]["paths"].to_string();
        assert!(paths.contains("new/.git"), "{events}");
    });
}

#[test]
fn the_same_id_runs_once() {
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        let words =
            ["exec", "s", "--id", "k", "--shell", "echo ran | tee -a runs; sleep 0.3; exit 4"];
        let several: Vec<Child> = (0..5).map(|_| begin(place, &words)).collect();
        for one in several {
            let said = ended(one, SOON);
            assert_eq!((said.code(), said.text().as_str()), (Some(4), "ran\n"), "{}", said.stderr);
        }
        assert_eq!(place.says(&words, 4).text(), "ran\n");
        assert_eq!(fs::read_to_string(place.workspace.join("runs")).unwrap(), "ran\n");
        place.says(&["exec", "s", "--id", "k", "--", "true"], 125);
    });
}

#[test]
fn however_many_ensure_a_name_there_is_one_session() {
    everyone(|place| {
        let words = ["ensure", "s", "--init", "echo once >> inits"];
        let several: Vec<Child> = (0..20).map(|_| begin(place, &words)).collect();
        let ids: BTreeSet<String> = several
            .into_iter()
            .map(|one| {
                let said = ended(one, SOON * 3);
                assert_eq!(said.code(), Some(0), "{}", said.stderr);
                said.text()
            })
            .collect();
        assert_eq!(ids.len(), 1, "{ids:?}");
        let listed = place.says(&["ls", "--json"], 0).object();
        assert_eq!(listed["sessions"].as_array().unwrap().len(), 1);
        assert_eq!(fs::read_to_string(place.workspace.join("inits")).unwrap(), "once\n");
        assert_eq!(place.says(&words, 0).text(), *ids.first().unwrap());
    });
}

#[test]
fn a_command_goes_on_when_its_caller_is_killed() {
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        let work = "echo begun; while ! test -f go; do sleep 0.02; done; echo done; exit 6";
        let mut caller = begin(place, &["exec", "s", "--id", "k", "--shell", work]);
        let begun = || place.say(&["logs", "s", "k"]).text() == "begun\n";
        until(SOON, || begun().then_some(())).unwrap();
        caller.kill().unwrap();
        caller.wait().unwrap();
        let attached = begin(place, &["attach", "s", "k"]);
        place.write("go", "");
        assert_eq!(ended(attached, SOON).text(), "begun\ndone\n");
        place.says(&["wait", "s", "k"], 6);
        assert_eq!(
            place.says(&["exec", "s", "--id", "k", "--shell", work], 6).text(),
            "begun\ndone\n"
        );
    });
}

#[test]
fn a_signal_to_the_caller_reaches_the_command() {
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        let work = "trap 'echo caught; exit 9' TERM; echo ready; while :; do sleep 0.02; done";
        let caller = begin(place, &["exec", "s", "--id", "k", "--shell", work]);
        until(SOON, || (place.say(&["logs", "s", "k"]).text() == "ready\n").then_some(())).unwrap();
        let id = caller.id().to_string();
        outcome(place.host("/bin/kill").args(["-TERM", &id]), SOON);
        let said = ended(caller, SOON);
        assert_eq!((said.code(), said.text().as_str()), (Some(9), "ready\ncaught\n"));
    });
}

#[test]
fn a_signal_to_the_caller_while_its_command_starts_is_for_the_command() {
    const TERM: u64 = 1 << 14;
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        place.says(&["exec", "s", "--", "true"], 0);
        let keepers = keepers(place);
        assert_eq!(keepers.len(), 1);
        let kill = |signal: &str, id: &str| {
            assert!(outcome(place.host("/bin/kill").args([signal, id]), SOON).status.success());
        };
        let waits_with_its_start = |id: &str| {
            let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap();
            let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
            u64::from_str_radix(caught.trim(), 16).unwrap() & TERM != 0
        };
        for is_impatient in [false, true] {
            kill("-STOP", &keepers[0]);
            let caller = begin(place, &["exec", "s", "--", "/bin/sleep", "1000"]);
            let id = caller.id().to_string();
            until(SOON, || waits_with_its_start(&id).then_some(())).unwrap();
            kill("-TERM", &id);
            if is_impatient {
                kill("-INT", &id);
                let said = ended(caller, SOON);
                assert_eq!(said.code(), Some(125), "{said:?}");
                assert!(said.stderr.contains("was left while it may still run"), "{said:?}");
                kill("-CONT", &keepers[0]);
                break;
            }
            kill("-CONT", &keepers[0]);
            let said = ended(caller, SOON);
            assert_eq!(said.code(), Some(143), "{said:?}");
            assert!(!place.says(&["ps", "s"], 0).text().contains("running"));
            place.says(&["exec", "s", "--", "true"], 0);
        }
    });
}

/// The processes that keep sandboxes of this place.
pub(crate) fn keepers(place: &Place) -> Vec<String> {
    let id = |entry: &fs::DirEntry| entry.file_name().into_string().ok();
    let is_of_place = |id: &String| {
        let fds = fs::read_dir(format!("/proc/{id}/fd")).into_iter().flatten().flatten();
        let mut targets = fds.filter_map(|fd| fs::read_link(fd.path()).ok());
        targets.any(|target| target.starts_with(&place.state) && target.ends_with("journal"))
    };
    let all = fs::read_dir("/proc").unwrap().flatten();
    all.filter_map(|entry| id(&entry)).filter(is_of_place).collect()
}

#[test]
fn what_was_on_disk_is_there_again_when_everything_was_killed() {
    everyone(|place| {
        place.says(&["create", "--name", "s", "--idle-pause", "none"], 0);
        place.says(
            &["exec", "s", "--shell", "echo kept > ~/note; echo gone > /tmp/note; echo w > w"],
            0,
        );
        let server = "echo listening; while :; do sleep 1; done";
        place.says(&["exec", "s", "-d", "--id", "server", "--shell", server], 0);
        until(SOON, || (place.say(&["logs", "s", "server"]).text() == "listening\n").then_some(()))
            .unwrap();
        place.says(&["pause", "s"], 0);
        let keepers = keepers(place);
        assert!(!keepers.is_empty());
        outcome(place.host("/bin/kill").arg("-9").args(&keepers), SOON);
        until(SOON, || (phase(place, "s") == "lost").then_some(())).unwrap();
        assert_eq!(place.says(&["logs", "s", "server"], 0).text(), "listening\n");
        place.says(&["wait", "s", "server"], 137);
        place.says(&["resume", "s"], 0);
        assert_eq!(
            place
                .says(&["exec", "s", "--shell", "cat ~/note w; test -e /tmp/note || echo fresh"], 0)
                .text(),
            "kept\nw\nfresh\n"
        );
        assert_eq!(place.says(&["logs", "s", "server"], 0).text(), "listening\n");
        let events = place.says(&["events", "s", "--json"], 0).text();
        assert!(events.contains("instance_lost") && events.contains("recovered"), "{events}");
    });
}

#[test]
fn nothing_is_left_of_what_is_removed() {
    everyone(|place| {
        for name in ["a", "b", "c"] {
            place.says(&["create", "--name", name], 0);
            place.says(&["exec", name, "-d", "--", "sleep", "1000"], 0);
        }
        place.says(&["pause", "b"], 0);
        let partly = place.says(&["rm", "a", "nosuch", "b", "--json"], 1).object();
        assert_eq!(partly["removed"].as_array().unwrap().len(), 2);
        assert_eq!(partly["failed"][0]["session"], "nosuch");
        place.says(&["rm", "c"], 0);
        assert_eq!(keepers(place), Vec::<String>::new());
        let swept = place.says(&["gc", "--json"], 0).object();
        assert_eq!(swept["done"], serde_json::json!([]));
        for left in ["homes", "bundles", "owed"] {
            let mut there = fs::read_dir(place.state.join(left)).into_iter().flatten().flatten();
            assert!(there.next().is_none(), "{left}");
        }
    });
}

#[test]
fn gc_removes_what_a_killed_run_left() {
    everyone(|place| {
        let owed = || -> Vec<_> {
            let there = fs::read_dir(place.state.join("owed")).into_iter().flatten().flatten();
            there.map(|record| record.file_name().into_string().unwrap()).collect()
        };
        let swept = |words: &[&str]| {
            let report = place.says(words, 0).object();
            let done = report["done"].as_array().unwrap().clone();
            done.into_iter().filter(|one| one["action"] == "swept").count()
        };
        place.says(&["gc"], 0);
        let words = ["run", "--shell", "echo up; sleep 1000"];
        let mut run = started(place.cofferdam(&words).stdout(Stdio::piped()));
        let mut up = [0; 3];
        std::io::Read::read_exact(run.stdout.as_mut().unwrap(), &mut up).unwrap();
        let envrc = place.workspace.join(".envrc");
        assert!(!owed().is_empty() && envrc.exists());
        assert_eq!(swept(&["gc", "--json"]), 0, "the control: its owner lives");
        run.kill().unwrap();
        run.wait().unwrap();
        // Its sandbox dies a moment after it, and may hold copies of its locks until then.
        let all = owed().len();
        until(SOON, || (swept(&["gc", "--dry-run", "--json"]) == all).then_some(())).unwrap();
        assert!(!owed().is_empty(), "a dry run removes nothing");
        assert_eq!(swept(&["gc", "--json"]), all);
        assert_eq!(owed(), Vec::<String>::new());
        assert!(!envrc.exists(), "what stood for it is gone too");
        // And so does any other start, whatever it is for.
        fs::write(place.state.join("owed/sandbox-0123456789abcdef0123.6"), "1\0").unwrap();
        place.give(&place.state.join("owed/sandbox-0123456789abcdef0123.6"));
        place.says(&["ls"], 0);
        assert_eq!(owed(), Vec::<String>::new());
    });
}

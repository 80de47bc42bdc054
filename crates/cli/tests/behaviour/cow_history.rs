//! Every command of a copy-on-write session is a point of its history, and the session goes to any of them.

use crate::cow_tree::tree;
use crate::place::{Place, SOON, ended, everyone, started, until};
use crate::schema::is_valid;
use crate::sessions::phase;
use crate::sessions_durable::keepers;
use serde_json::Value;
use std::fs;
use std::process::Stdio;
use std::time::Duration;

/// All that a command inside can see of the workspace. Times of access are left out.
const LOOK: &str = "find . -mindepth 1 -printf '%p %y %m %n %s %T@ %l\\n' | sort; \
    find . -type f -exec md5sum {} + | sort";

pub(crate) fn exec(place: &Place, line: &str) -> String {
    place.says(&["exec", "s", "--shell", line], 0).text()
}

/// The points of session `s`.
fn points(place: &Place) -> Vec<Value> {
    let told = place.says(&["history", "s", "-n", "1000", "--json"], 0).object();
    told["points"].as_array().unwrap().clone()
}

fn last(place: &Place) -> Value {
    points(place).pop().unwrap()
}

pub(crate) fn at(place: &Place) -> u64 {
    place.says(&["history", "s", "--json"], 0).object()["at"].as_u64().unwrap()
}

fn counts(point: &Value) -> [u64; 3] {
    ["added", "changed", "removed"].map(|what| point["effects"][what].as_u64().unwrap())
}

fn prepared(place: &Place) {
    for (name, text) in [("f", "real\n"), ("gone", "g"), ("d/old", "o"), ("d/deep/er", "e")] {
        place.write(name, text);
    }
    place.says(&["create", "--cow", "--name", "s"], 0);
}

#[test]
fn commands_and_what_is_between_them_are_points() {
    everyone(|place| {
        prepared(place);
        exec(place, "echo one > f; rm gone; mkdir n; echo x > n/x; touch d/old");
        place.says(&["exec", "s", "--id", "bad", "--", "sh", "-c", "exit 3"], 3);
        place.says(&["exec", "s", "--", "no-such-program"], 127);
        // By nobody's command.
        let words = ["file", "write", "s", "by-file"];
        let mut command = place.cofferdam(&words);
        assert!(command.stdin(Stdio::null()).status().unwrap().success());
        place.says(&["exec", "s", "-d", "--id", "aside", "--shell", "rm -r d"], 0);
        place.says(&["wait", "s", "aside"], 0);
        exec(place, "ln -s f link");
        let all = points(place);
        let told = place.says(&["history", "s", "--json"], 0).object();
        is_valid(place, "history", &told);
        let kinds: Vec<&str> = all.iter().map(|point| point["kind"].as_str().unwrap()).collect();
        let expected = ["start", "command", "command", "command", "between", "between", "command"];
        assert_eq!(kinds, expected);
        assert_eq!(counts(&all[1]), [2, 1, 1], "{}", all[1]);
        assert_eq!(
            (&all[2]["command"]["id"], &all[2]["command"]["exit_code"]),
            (&"bad".into(), &3.into())
        );
        assert_eq!(all[3]["command"]["ending"], "not_started");
        assert_eq!((counts(&all[2]), counts(&all[3])), ([0; 3], [0; 3]));
        assert_eq!((counts(&all[4]), &all[4]["ended"]), ([1, 0, 0], &Value::Array(Vec::new())));
        // The directory, what was in it, and a directory in it with one file.
        assert_eq!((counts(&all[5]), &all[5]["ended"][0]), ([0, 0, 4], &"aside".into()));
        assert_eq!(counts(&all[6]), [1, 0, 0]);
        assert_eq!(told["at"], 6);
        assert!(all.iter().all(|point| point["shared_with"] == Value::Array(Vec::new())));
        assert!(all.iter().all(|point| point["undone"] == false));
        let shown = place.says(&["history", "s"], 0).text();
        assert!(shown.contains("here") && shown.contains("changes between commands"), "{shown}");
        assert_eq!(place.says(&["history", "s", "-n", "2"], 0).text().lines().count(), 3);
    });
}

#[test]
fn undo_takes_back_and_can_be_taken_back() {
    everyone(|place| {
        prepared(place);
        let real = tree(&place.workspace);
        let start = exec(place, LOOK);
        exec(place, "echo one > f; rm -r d; ln f g; chmod 600 g");
        let one = exec(place, LOOK);
        exec(place, "mkdir d; echo new > d/new; chmod 0 d/new; mkfifo p");
        let two = exec(place, LOOK);
        assert_ne!(one, two);
        place.says(&["exec", "s", "-d", "--id", "server", "--", "sleep", "1000"], 0);
        let dry = place.says(&["undo", "s", "2", "--dry-run", "--json"], 0).object();
        is_valid(place, "undo", &dry);
        assert_eq!(
            (&dry["to"], &dry["dry_run"], counts(&dry)),
            (&3.into(), &true.into(), [0, 0, 3])
        );
        assert_eq!(at(place), 5);
        // The look and what was done before it.
        let said = place.says(&["undo", "s", "2"], 0);
        assert!(
            said.stderr.contains("all processes of the session were ended (commands that ran: 1,"),
            "{said:?}"
        );
        assert!(said.text().contains("- d/new\n"), "{said:?}");
        place.says(&["wait", "s", "server"], 130);
        assert_eq!(at(place), 3);
        assert_eq!(exec(place, LOOK), one);
        // Where nothing changes nothing is ended.
        place.says(&["exec", "s", "-d", "--id", "next", "--", "sleep", "1000"], 0);
        let said = place.says(&["undo", "s"], 0);
        assert!(said.stderr.contains("what runs goes on"), "{said:?}");
        assert!(place.says(&["ps", "s"], 0).text().contains("running, detached"));
        place.says(&["undo", "s", "--to", "0"], 0);
        assert_eq!(exec(place, LOOK), start);
        place.says(&["undo", "s", "--to", "5"], 0);
        assert_eq!(exec(place, LOOK), two);
        let undone: Vec<bool> = points(place).iter().map(|p| p["undone"] == true).collect();
        assert_eq!(undone[..6], [false; 6]);
        assert!(undone[6..8].iter().all(|undone| *undone), "{undone:?}");
        for (words, why) in [
            (&["undo", "s", "99"][..], "there are only"),
            (&["undo", "s", "--to", "99"], "there is no point 99"),
        ] {
            let refused = place.says(words, 1);
            assert!(refused.stderr.contains(why), "{refused:?}");
        }
        place.says(&["undo", "s", "0"], 2);
        assert!(place.says(&["events", "s", "--json"], 0).text().contains("\"undone\""));
        assert_eq!(tree(&place.workspace), real);
        place.says(&["rm", "s"], 0);
        assert_eq!(fs::read_dir(place.state.join("kept")).unwrap().count(), 0);
    });
}

#[test]
fn an_undo_leaves_the_sandbox_where_its_layer_can_be_exchanged() {
    everyone(|place| {
        let hidden = place.workspace.join("d/old");
        for (hides, stays) in [(false, true), (true, false)] {
            for (name, text) in [("f", "real\n"), ("d/old", "o")] {
                place.write(name, text);
            }
            let mut words = vec!["create", "--cow", "--name", "s"];
            if hides {
                words.extend(["--hide", hidden.to_str().unwrap()]);
            }
            place.says(&words, 0);
            exec(place, "echo one >f; mkdir n; touch /tmp/mark");
            exec(place, "echo two >f; echo x >n/x");
            place.says(&["exec", "s", "-d", "--id", "server", "--", "sleep", "1000"], 0);
            let keeper = keepers(place);
            for to in ["1", "2", "1", "0"] {
                place.says(&["undo", "s", "--to", to], 0);
                let look = "cat f /workspace/f; echo more >>f; ls /workspace; test -e /tmp/mark";
                let marked = place.say(&["exec", "s", "--shell", look]);
                let expected = match to {
                    "0" => "real\nreal\nd\nf\n",
                    "1" => "one\none\nd\nf\nn\n",
                    _ => "two\ntwo\nd\nf\nn\n",
                };
                assert_eq!(marked.text(), expected, "{to}");
                assert_eq!(marked.code() == Some(0), stays, "{marked:?}");
                assert_eq!(keepers(place) == keeper, stays);
            }
            assert_eq!(fs::read_to_string(place.workspace.join("f")).unwrap(), "real\n");
            place.says(&["rm", "s"], 0);
            assert!(until(SOON, || keepers(place).is_empty().then_some(())).is_some());
        }
    });
}

#[test]
fn threads_of_our_own_do_not_count_as_processes_of_the_command() {
    everyone(|place| {
        place.write("f", "real\n");
        for cow in [&["--cow"][..], &[]] {
            place.says(&[&["create", "--name", "s", "--pids", "1"][..], cow].concat(), 0);
            let says = || {
                place.says(&["exec", "s", "--", "/bin/true"], 0);
                let two = place.say(&["exec", "s", "--shell", "/bin/true; exit 7"]);
                assert!(two.stderr.contains("fork"), "{two:?}");
            };
            says();
            if !cow.is_empty() {
                place.says(&["exec", "s", "--", "/bin/rm", "f"], 0);
                place.says(&["undo", "s", "--to", "0"], 0);
                says();
            }
            place.says(&["rm", "s"], 0);
        }
    });
}

#[test]
fn an_undo_goes_to_a_snapshot_by_its_label() {
    everyone(|place| {
        prepared(place);
        exec(place, "echo one >f");
        place.says(&["snapshot", "create", "s", "--label", "tests pass"], 0);
        exec(place, "echo two >f");
        place.says(&["undo", "s", "--to", "tests pass"], 0);
        assert_eq!(exec(place, "cat f"), "one\n");
        let unknown = place.says(&["undo", "s", "--to", "nothing"], 1).stderr;
        assert!(unknown.contains("there is no point \"nothing\""), "{unknown}");
        let made = ["snapshot", "create", "s", "--label", "tests pass"];
        let taken = place.says(&made, 1).stderr;
        assert!(taken.contains("is called \"tests pass\" already"), "{taken}");
        // One that is brought is called otherwise than the others.
        let carried = place.base.join("carried").to_string_lossy().into_owned();
        place.says(&["snapshot", "export", "s", "tests pass", &carried], 0);
        let taken = place.says(&["snapshot", "import", "s", &carried], 1).stderr;
        assert!(taken.contains("is called \"tests pass\" already"), "{taken}");
        place.says(&["snapshot", "import", "s", &carried, "--label", "brought"], 0);
        let snapshots = place.says(&["snapshot", "ls", "s", "--json"], 0).object();
        let first = snapshots["snapshots"][0]["snapshot"].to_string();
        place.says(&["undo", "s", "--to", &first], 0);
    });
}

#[test]
fn the_times_of_the_workspace_itself_go_back_too() {
    everyone(|place| {
        let date = |path: &std::path::Path| {
            let then = std::time::UNIX_EPOCH + std::time::Duration::from_nanos(1_577_836_800_123);
            std::fs::File::open(path).unwrap().set_modified(then).unwrap();
        };
        place.write("d/old", "o");
        place.write("f", "f");
        [place.workspace.join("d"), place.workspace.clone()].iter().for_each(|path| date(path));
        let mut stat = place.host("stat");
        let stat = stat.args(["-c", "%y", ".", "d"]).current_dir(&place.workspace);
        let on_host = String::from_utf8(stat.output().unwrap().stdout).unwrap();
        place.says(&["create", "--cow", "--name", "s"], 0);
        let times = || exec(place, "stat -c '%y' . d");
        let before = times();
        assert_eq!(before, on_host);
        exec(place, "sleep 0.02; echo x >new; echo y >d/new; rm f");
        assert_ne!(times(), before, "the control: they change");
        place.says(&["undo", "s", "--to", "1"], 0);
        assert_eq!(times(), before);
        place.says(&["undo", "s", "--to", "0"], 0);
        assert_eq!(times(), before);
    });
}

#[test]
fn an_undo_loses_nothing_that_is_in_no_point_yet() {
    everyone(|place| {
        prepared(place);
        exec(place, "echo one > f");
        let words = ["exec", "s", "-d", "--id", "late", "--shell", "echo late > late; sleep 1000"];
        place.says(&words, 0);
        until(SOON, || {
            let read = place.cofferdam(&["file", "read", "s", "late"]).output().unwrap();
            read.status.success().then_some(())
        })
        .unwrap();
        let before = at(place);
        place.says(&["undo", "s", "2"], 0);
        let all = points(place);
        let between = all.last().unwrap();
        assert_eq!((&between["kind"], &between["parent"]), (&"between".into(), &before.into()));
        assert_eq!(between["shared_with"][0], "late");
        assert_eq!(exec(place, "cat f; ls"), "real\nd\nf\ngone\n");
        place.says(&["undo", "s", "--to", &between["point"].to_string()], 0);
        assert_eq!(exec(place, "cat f late"), "one\nlate\n");
    });
}

/// The steps that sequences are made of. Each works whatever came before.
const STEPS: [&str; 16] = [
    "echo $RANDOM $N >f$((N%3)); :",
    "rm -rf d; mkdir d; echo $N >d/n",
    "rm -rf d",
    "mkdir -p d/deep/er; echo $N >>d/deep/er/x",
    "mv f0 moved$N; :",
    "ln -f f1 hard$N; :",
    "ln -sfn /nowhere/$N link",
    "chmod $((N%8))00 f1; :",
    "chmod 700 f1 old/sub; :",
    "rm -f moved* hard*",
    "touch -d @$N f2; :",
    "mkfifo p$N",
    "rm -rf old; ln -s f1 old",
    "rm -rf old; mkdir old; echo z >old/z",
    "truncate -s 1G sparse; echo $N >>sparse",
    "mv d e$N; mkdir -p d; echo again >d/again; chmod 500 e$N; :",
];

#[test]
fn any_sequence_of_changes_is_gone_back_through_exactly() {
    everyone(|place| {
        for (name, text) in
            [("f0", "0"), ("f1", "1"), ("f2", "2"), ("old/sub/x", "x"), ("old/y", "y")]
        {
            place.write(name, text);
        }
        place.says(&["create", "--cow", "--name", "s"], 0);
        let look = "find . -mindepth 1 -printf '%p %y %m %n %s %T@ %l\\n' | sort; \
            find . -type f -size -1M -readable -exec md5sum {} + | sort; true";
        let mut seed = u64::from(std::process::id()) | 1;
        println!("seed {seed}");
        // So much that what stays the same is taken over and not made again.
        let much = "for i in 1 2 3; do head -c 300000 /dev/zero >much$i; done";
        place.says(&["exec", "s", "--shell", much], 0);
        let mut states = vec![(at(place), exec(place, look))];
        for number in 0..24_u64 {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            let step = STEPS[usize::try_from(seed % STEPS.len() as u64).unwrap()];
            place
                .cofferdam(&["exec", "s", "--shell", &format!("N={number}; {step}")])
                .output()
                .unwrap();
            states.push((at(place), exec(place, look)));
        }
        for _ in 0..12 {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            let (point, state) = &states[usize::try_from(seed % states.len() as u64).unwrap()];
            place.says(&["undo", "s", "--to", &point.to_string()], 0);
            assert_eq!(&exec(place, look), state, "point {point}");
        }
    });
}

#[test]
fn commands_at_once_are_all_points_and_say_with_whom_they_are_shared() {
    everyone(|place| {
        place.says(&["create", "--cow", "--name", "s"], 0);
        let ids: Vec<String> = (0..4).map(|number| format!("c{number}")).collect();
        let lines: Vec<String> =
            ids.iter().map(|id| format!("echo {id} >{id}; sleep 1; echo more >>{id}")).collect();
        let children: Vec<_> = ids
            .iter()
            .zip(&lines)
            .map(|(id, line)| {
                let words = ["exec", "s", "--id", id, "--shell", line];
                let mut command = place.cofferdam(&words);
                started(command.stdout(Stdio::piped()).stderr(Stdio::piped()))
            })
            .collect();
        for child in children {
            let said = ended(child, SOON);
            assert!(said.status.success(), "{said:?}");
        }
        let all = points(place);
        for id in &ids {
            let named = |point: &&Value| {
                point["command"]["id"] == id.as_str()
                    || point["kind"] == "between"
                        && point["ended"].to_string().contains(id.as_str())
            };
            assert!(all.iter().any(|point| named(&point)), "{id}: {all:?}");
        }
        // Whatever holds what another one did says so.
        for point in all.iter().filter(|point| point["kind"] == "command") {
            let own = point["command"]["id"].as_str().unwrap();
            let shared = point["shared_with"].to_string();
            for path in point["effects"]["paths"].as_array().unwrap() {
                let path = path["path"].as_str().unwrap();
                assert!(path == own || shared.contains(path), "{point}");
            }
        }
        assert!(
            all.iter().any(|point| point["shared_with"] != Value::Array(Vec::new())),
            "{all:?}"
        );
        // What stood still for a look was not paused for anybody.
        let events = place.says(&["events", "s", "--json"], 0).text();
        assert!(!events.contains("\"paused\"") && !events.contains("\"resumed\""), "{events}");
        let state = exec(place, "cat c0 c1 c2 c3");
        place.says(&["undo", "s", "--to", "0"], 0);
        assert_eq!(exec(place, "ls"), "");
        let before = points(place).into_iter().rfind(|point| point["undone"] == true).unwrap();
        place.says(&["undo", "s", "--to", &before["point"].to_string()], 0);
        assert_eq!(exec(place, "cat c0 c1 c2 c3"), state);
    });
}

#[test]
fn a_client_that_died_leaves_its_command_to_the_next_point() {
    everyone(|place| {
        place.says(&["create", "--cow", "--name", "s"], 0);
        let words =
            ["exec", "s", "--id", "left", "--shell", "echo 1 >left; sleep 0.5; echo 2 >>left"];
        let mut command = place.cofferdam(&words);
        let mut client = started(command.stdout(Stdio::null()).stderr(Stdio::null()));
        until(SOON, || place.says(&["ps", "s"], 0).text().contains("left").then_some(())).unwrap();
        client.kill().unwrap();
        client.wait().unwrap();
        place.says(&["wait", "s", "left"], 0);
        exec(place, "true");
        let all = points(place);
        let between = &all[all.len() - 2];
        assert_eq!((&between["kind"], &between["ended"][0]), (&"between".into(), &"left".into()));
        assert_eq!(counts(between), [1, 0, 0]);
        assert_eq!(counts(all.last().unwrap()), [0; 3]);
    });
}

#[test]
fn what_is_killed_at_its_work_loses_nothing_and_leaves_nothing() {
    everyone(|place| {
        prepared(place);
        exec(place, "for i in $(seq 300); do echo $i >n$i; done");
        let full = exec(place, LOOK);
        let (here, start) = (at(place), 0);
        let before: Vec<u64> = (0..6).map(|number| 3 + number * 11).collect();
        for delay in before {
            let line =
                format!("echo {delay} >killed; for i in $(seq 200); do echo {delay} >k$i; done");
            let (to, fork) = (here.to_string(), format!("fork-{delay}"));
            for words in [
                &["exec", "s", "--shell", &line][..],
                &["undo", "s", "--to", "0"],
                &["fork", "s", &fork],
                &["undo", "s", "--to", &to],
            ] {
                let mut command = place.cofferdam(words);
                let mut client = started(command.stdout(Stdio::null()).stderr(Stdio::null()));
                std::thread::sleep(Duration::from_millis(delay));
                client.kill().unwrap();
                client.wait().unwrap();
            }
            place.says(&["undo", "s", "--to", &to], 0);
            assert_eq!(exec(place, LOOK), full, "{delay}");
        }
        place.says(&["undo", "s", "--to", &start.to_string()], 0);
        assert_eq!(exec(place, "cat f; ls"), "real\nd\nf\ngone\n");
        place.says(&["gc"], 0);
        // A fork is one or none, and the next command finishes what was begun.
        let sessions = place.says(&["ls", "--json"], 0).object();
        for session in sessions["sessions"].as_array().unwrap() {
            let name = session["name"].as_str().unwrap();
            if name != "s" {
                place.says(&["exec", name, "--", "true"], 0);
                place.says(&["rm", name], 0);
            }
        }
        let kept = fs::read_dir(place.state.join("kept")).unwrap().next().unwrap().unwrap().path();
        assert!(!kept.join("history/working").exists() && !kept.join("cow/.fresh").exists());
        assert!(!kept.join("cow/.widened").exists());
        let names = |folder: &str| -> Vec<String> {
            let all = fs::read_dir(kept.join(folder)).unwrap();
            all.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
        };
        for folder in ["history", "history/points", "history/trees", "history/blobs", "cow"] {
            assert!(names(folder).iter().all(|name| !name.starts_with(".fresh")), "{folder}");
        }
    });
}

#[test]
fn the_death_of_everything_takes_no_point() {
    everyone(|place| {
        prepared(place);
        exec(place, "echo one >f");
        let words = ["exec", "s", "-d", "--id", "lost", "--shell", "echo two >f; sleep 1000"];
        place.says(&words, 0);
        until(SOON, || (exec(place, "cat f") == "two\n").then_some(())).unwrap();
        crate::place::outcome(place.host("/bin/kill").arg("-9").args(keepers(place)), SOON);
        until(SOON, || (phase(place, "s") == "lost").then_some(())).unwrap();
        place.says(&["undo", "s", "--to", "1"], 0);
        assert_eq!(exec(place, "cat f"), "one\n");
        place.says(&["undo", "s", "--to", "0"], 0);
        assert_eq!(exec(place, "cat f"), "real\n");
    });
}

#[test]
fn names_and_kinds_of_every_sort_go_back() {
    everyone(|place| {
        place.says(&["create", "--cow", "--name", "s"], 0);
        let odd = "mkdir -p \"$(printf 'a\\nb')/c\"; echo 1 >\"$(printf 'a\\nb')/c/x\\ y\"; \
            echo 2 >\"$(printf '\\377')\"; mkdir closed; echo 3 >closed/in; chmod 0 closed/in closed; \
            mkfifo fifo; d=.; for i in $(seq 60); do d=$d/d; done; mkdir -p $d; \
            python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"socket\")' 2>/dev/null; true";
        exec(place, odd);
        let look = "chmod 700 closed; find . -mindepth 1 -printf '%P|%y|%m|%n|%T@\\n' | grep -v closed | sort | od -c | md5sum; cat closed/in; chmod 0 closed";
        let paths = last(place)["effects"]["paths"].clone();
        assert!(paths.to_string().contains("path_base64"), "{paths}");
        let shown = place.says(&["history", "s"], 0).text();
        assert!(!shown.contains('\u{377}'));
        let point = at(place).to_string();
        let state =
            exec(place, "chmod 700 closed/in 2>/dev/null; true") + &exec(place, "ls | od -c");
        exec(place, "chmod -R 700 .; find . -mindepth 1 -maxdepth 1 -exec rm -rf {} +");
        assert_eq!(exec(place, "ls"), "");
        place.says(&["undo", "s", "--to", &point], 0);
        assert_eq!(exec(place, "ls | od -c"), state);
        assert_eq!(exec(place, "stat -c %a closed"), "0\n");
        exec(place, "chmod 700 closed; chmod 600 closed/in; test \"$(cat closed/in)\" = 3");
        exec(place, look);
        // Twice the same way.
        place.says(&["undo", "s", "--to", &point], 0);
        assert_eq!(exec(place, "ls | od -c"), state);
    });
}

#[test]
fn what_cannot_be_kept_is_said_and_spoils_no_command() {
    everyone(|place| {
        place.says(&["create", "--cow", "--name", "s"], 0);
        exec(place, "echo kept >f");
        let deep = "d=.; for i in $(seq 210); do d=$d/d; done; mkdir -p $d; echo done";
        let said = place.says(&["exec", "s", "--shell", deep], 0);
        assert_eq!(said.text(), "done\n");
        assert!(said.stderr.contains("no point of the history was kept"), "{said:?}");
        assert_eq!(said.stderr.lines().count(), 1, "{said:?}");
        let point = last(place);
        assert!(point["not_kept"].as_str().unwrap().contains("200 directories"), "{point}");
        let number = point["point"].to_string();
        let refused = place.says(&["undo", "s", "--to", &number], 1);
        assert!(refused.stderr.contains("was not kept"), "{refused:?}");
        let refused = place.says(&["undo", "s"], 1);
        assert!(refused.stderr.contains("--force"), "{refused:?}");
        assert_eq!(exec(place, "test -d d/d/d && cat f"), "kept\n");
        let said = place.says(&["undo", "s", "--to", "1", "--force"], 0);
        assert!(said.stderr.contains("could not be kept"), "{said:?}");
        assert_eq!(exec(place, "ls; cat f"), "f\nkept\n");
    });
}

#[test]
fn checkpoints_can_be_off_and_then_snapshots_are_all_there_is() {
    everyone(|place| {
        place.write("f", "real\n");
        place.says(&["create", "--cow", "--no-checkpoints", "--name", "s"], 0);
        exec(place, "echo one >f");
        let told = place.says(&["history", "s"], 0);
        assert!(told.stderr.contains("checkpoints are off"), "{told:?}");
        assert_eq!(points(place).len(), 0);
        let refused = place.says(&["undo", "s"], 1);
        assert!(refused.stderr.contains("--no-checkpoints"), "{refused:?}");
        place.says(&["snapshot", "create", "s", "--label", "one"], 0);
        exec(place, "echo two >f");
        place.says(&["snapshot", "restore", "s", "one"], 0);
        assert_eq!(exec(place, "cat f"), "one\n");
        fs::write(place.workspace.join("cofferdam.toml"), "[session]\ncheckpoints = false\n")
            .unwrap();
        place.give(&place.workspace.join("cofferdam.toml"));
        place.says(&["config", "trust", "cofferdam.toml"], 0);
        place.says(&["create", "--cow", "--name", "t"], 0);
        let told = place.says(&["history", "t", "--json"], 0).object();
        assert_eq!(told["checkpoints"], false);
    });
}

#[test]
fn what_was_applied_stays_over_an_undo_which_says_so() {
    everyone(|place| {
        prepared(place);
        exec(place, "echo two > f; echo n > new; echo k > kept");
        place.says(&["apply", "s", "f", "new"], 0);
        let said = place.says(&["undo", "s", "--dry-run"], 0);
        assert!(said.stderr.contains("stays in the workspace"), "{said:?}");
        let said = place.says(&["undo", "s"], 0);
        assert!(
            said.stderr.contains("since point 0") && said.stderr.contains("changes: 2"),
            "{said:?}"
        );
        assert_eq!(exec(place, "cat f new; test ! -e kept"), "two\nn\n");
        // The control: nothing was applied since the next point was made.
        exec(place, "echo later > later");
        let told = place.says(&["undo", "s", "--json"], 0).object();
        assert_eq!(told["landed"], 0, "{told}");
    });
}

//! What verbs take with a server besides: receipts, runs that are prepared and kept, manifests, parts of changes
//! that are chosen at a terminal, and secrets toward a host.

use crate::images::{busybox, layout, system};
use crate::layers::ASKED;
use crate::place::{PYTHON, Place, SOON, ended, everyone, outcome, started};
use crate::remote::{Server, Way, each_way, socket};
use crate::repositories::{self, has_git, host};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Stdio;

#[test]
fn a_receipt_comes_from_a_server_as_from_here() {
    everyone(|place| {
        each_way(place, |scene| {
            let workspace = scene.workspace();
            scene.write("a", "before\n");
            scene.write("b", "before\n");
            let made = ["-w", &workspace, "--profile", "no-network", "--cow"];
            scene.same(&[&["create", "--name", "r"], made.as_slice()].concat(), 0);
            let line = "echo new >n; echo more >>a; rm b; exit 3";
            let words = ["exec", "r", "--receipt", "--json", "--id", "one", "--shell", line];
            let told = scene.same(&words, 3).object();
            let files = &told["receipt"]["seen_by_host"]["files"];
            let paths = |list: &str| files[list][0]["path"].as_str().unwrap().to_owned();
            assert_eq!(
                [paths("added"), paths("changed"), paths("removed")],
                ["n", "a", "b"],
                "{told}"
            );
            assert_eq!(files["not_seen"], Value::Null, "{told}");
            let line = ["exec", "r", "--receipt", "--shell", "echo hi; echo >m"];
            let said = scene.way.says(&line, 0);
            assert_eq!(said.text(), "hi\n");
            assert!(said.stderr.contains("receipt: 1 added, 0 changed, 0 removed"), "{said:?}");
            scene.same(&["exec", "r", "--receipt", "-d", "--", "true"], 125);
            let plain = ["-w", &workspace, "--profile", "no-network"];
            scene.same(&[&["create", "--name", "p"], plain.as_slice()].concat(), 0);
            let told = scene.same(&["exec", "p", "--receipt", "--json", "--", "true"], 0).object();
            let files = &told["receipt"]["seen_by_host"]["files"];
            assert_eq!(files["not_seen"], "the session is not copy-on-write", "{told}");
            scene.same(&["rm", "r", "p"], 0);
        });
    });
}

#[test]
fn a_receipt_is_for_a_key_that_may_read_files() {
    everyone(|place| {
        let scopes = ["--scope", "look", "--scope", "run", "--scope", "manage"];
        let made = [&["key", "create", "runs"], scopes.as_slice()].concat();
        let key = place.says(&made, 0).text().trim().to_owned();
        let server = Server::start(place, "127.0.0.1:0");
        let way = Way::There(place, &server.url, Some(&key));
        way.says(&["create", "--name", "s"], 0);
        let said = way.says(&["exec", "s", "--receipt", "--", "touch", "ran"], 125);
        assert!(said.stderr.contains("no scope files-read"), "{said:?}");
        way.says(&["exec", "s", "--shell", "! test -e ran"], 0);
        // The control.
        way.says(&["exec", "s", "--", "true"], 0);
    });
}

#[test]
fn a_run_of_a_server_has_pre_flight_lines_and_is_kept_where_it_failed() {
    everyone(|place| {
        let server = Server::start(place, &socket(place));
        let way = Way::There(place, &server.url, None);
        let good = ["run", "--preflight", "echo before > order", "--shell", "cat order; exit 3"];
        assert_eq!(way.says(&good, 3).text(), "before\n");
        let run = |more: &[&str], code: i32| way.says(&[&["run"], more].concat(), code);
        let bad = run(&["--preflight", "echo why; exit 4", "--", "echo", "ran"], 125);
        assert!(bad.stderr.contains("exited 4: why") && bad.text().is_empty(), "{bad:?}");
        let told = run(&["--json", "--preflight", "exit 4", "--", "true"], 125).object();
        assert_eq!(told["ending"]["kind"], "setup_failed");
        assert_eq!(told.get("session"), None);
        let late = ["--timeout", "1s", "--preflight", "true", "--shell", "echo x; sleep 60"];
        assert_eq!(run(&late, 124).text(), "x\n");
        run(&["--timeout", "1s", "--preflight", "sleep 60", "--", "true"], 124);
        let listed = || way.says(&["ls", "--json"], 0).object()["sessions"].clone();
        assert_eq!(listed(), json!([]), "nothing is kept unasked");
        let note = "echo x > ~/note; exit 3";
        let kept = run(&["--json", "--on-failure", "preserve", "--shell", note], 3).object();
        let id = kept["session"].as_str().unwrap();
        let shown = way.says(&["show", id, "--json"], 0).object();
        assert_eq!(shown["phase"], "paused");
        let left_ms =
            shown["lease_until_ms"].as_u64().unwrap() - shown["updated_ms"].as_u64().unwrap();
        assert!(left_ms > 23 * 3_600_000, "{left_ms}");
        assert_eq!(way.says(&["exec", id, "--shell", "cat ~/note"], 0).text(), "x\n");
        let stopped = run(&["--on-failure", "stop", "--preflight", "false", "--", "true"], 125);
        assert!(stopped.stderr.contains("kept for study as session"), "{stopped:?}");
        assert_eq!(listed()[1]["phase"], "stopped");
        run(&["--on-failure", "preserve", "--", "true"], 0);
        assert_eq!(listed().as_array().unwrap().len(), 2, "what succeeds is not kept");
    });
}

#[test]
fn input_is_given_again_where_a_server_did_not_take_it() {
    everyone(|place| {
        // More pieces than this key may send in a second.
        let slow =
            place.says(&["key", "create", "slow", "--rate", "4/s"], 0).text().trim().to_owned();
        let bytes: Vec<u8> = (0..600_000_u32).map(|n| (n % 251) as u8).collect();
        let file = place.write("input", "");
        fs::write(&file, &bytes).unwrap();
        let listen = socket(place);
        let mut server = Server::start(place, &listen);
        let url = server.url.clone();
        let hers = Way::There(place, &url, Some(&slow));
        hers.says(&["create", "--name", "s"], 0);
        let mut command = hers.command(&["exec", "s", "-i", "--", "cat"]);
        let said = outcome(command.stdin(fs::File::open(&file).unwrap()), SOON);
        assert!(said.stdout == bytes, "{} of {} bytes", said.stdout.len(), bytes.len());
        // And where it is away.
        let way = Way::There(place, &url, None);
        way.says(&["create", "--name", "t"], 0);
        let mut command = way.command(&["exec", "t", "-i", "--", "cat"]);
        let mut child = started(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut stdin = child.stdin.take().unwrap();
        let mut line = String::new();
        stdin.write_all(b"one\n").unwrap();
        stdout.read_line(&mut line).unwrap();
        server.stop();
        stdin.write_all(b"two\n").unwrap();
        drop(stdin);
        let _next = Server::start(place, &listen);
        stdout.read_to_string(&mut line).unwrap();
        assert_eq!((line.as_str(), ended(child, SOON).code()), ("one\ntwo\n", Some(0)));
    });
}

#[test]
fn the_words_of_an_image_lead_a_run_of_a_server() {
    everyone(|place| {
        let Some(busybox) = busybox() else { return };
        let led = ["/bin/sh", "-c", "echo led $@", "sh"];
        let config = json!({ "Entrypoint": led, "Cmd": ["default"] });
        let reference =
            layout(place, "led", &json!({ "layers": [system(busybox)], "config": config }));
        let id = place.says(&["image", "import", &reference, "--json"], 0).text();
        let id = id.lines().rev().find_map(|line| {
            let line: Value = serde_json::from_str(line).unwrap();
            line["id"].as_str().map(str::to_owned)
        });
        let id = id.unwrap();
        let server = Server::start_with(place, &socket(place), &["--allow-image", &id], &[]);
        let way = Way::There(place, &server.url, None);
        for (words, said) in [
            (vec![], "led default\n"),
            (vec!["--", "x"], "led x\n"),
            (vec!["--entrypoint", "/bin/ls", "--", "/bin/cat"], "/bin/cat\n"),
            (vec!["--entrypoint", "", "--", "/bin/ls", "/bin/sh"], "/bin/sh\n"),
            (vec!["--shell", "echo z"], "z\n"),
        ] {
            let there = way.says(&[&["run", "--image", &id], words.as_slice()].concat(), 0);
            assert_eq!(there.text(), said, "{words:?}");
            let here = place.says(&[&["run", "--image", &id], words.as_slice()].concat(), 0);
            assert_eq!(here.text(), said, "{words:?}");
        }
        let said = way.says(&["run", "--entrypoint", "/bin/sh", "--", "x"], 125);
        assert!(said.stderr.contains("start of an image"), "{said:?}");
        let both = ["run", "--image", &id, "--entrypoint", "/bin/sh", "--shell", "x"];
        assert!(way.says(&both, 125).stderr.contains("--shell"));
    });
}

/// What is on this machine beside a manifest.
fn lay_out(place: &Place) -> PathBuf {
    let seeds = place.base.join("home/seeds");
    fs::create_dir_all(seeds.join("deep")).unwrap();
    fs::write(seeds.join("deep/run"), "#!/bin/sh\necho ran\n").unwrap();
    fs::set_permissions(seeds.join("deep/run"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(seeds.join("bytes"), [0xff, 0]).unwrap();
    seeds
}

#[test]
fn a_manifest_goes_to_a_server_with_the_files_that_it_copies() {
    everyone(|place| {
        let server = Server::start(place, &socket(place));
        let way = Way::There(place, &server.url, None);
        let seeds = lay_out(place);
        let write = |name: &str, entries: Value| {
            let file = place.base.join("home").join(name);
            let text = json!({ "version": 1, "entries": entries }).to_string();
            fs::write(&file, text).unwrap();
            file.to_str().unwrap().to_owned()
        };
        let all = write(
            "all.json",
            json!([
                { "type": "copy", "path": "c", "from": "seeds" },
                { "type": "file", "path": "f", "text": "said\n", "mode": "600" },
                { "type": "file", "path": "g", "from": "seeds/bytes" },
                { "type": "link", "path": "l", "target": "c/deep/run" },
                { "type": "directory", "path": "e/d" },
            ]),
        );
        let workspace = place.workspace.to_str().unwrap();
        let made = ["-w", workspace, "--profile", "no-network", "--manifest"];
        let create = |name: &str, file: &str, code: i32| {
            way.says(&[&["create", "--name", name], made.as_slice(), &[file]].concat(), code)
        };
        create("s", &all, 0);
        assert_eq!(way.says(&["exec", "s", "--", "./l"], 0).text(), "ran\n");
        let at = |name: &str| place.workspace.join(name);
        assert_eq!(fs::read(at("g")).unwrap(), [0xff, 0]);
        assert_eq!(fs::read(at("c/bytes")).unwrap(), [0xff, 0]);
        assert_eq!(fs::metadata(at("f")).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(at("e/d").is_dir());
        let ensure = ["ensure", "s", "-w", workspace, "--profile", "no-network", "--manifest"];
        way.says(&[ensure.as_slice(), &[&all]].concat(), 0);
        // As here, what was brought once stays, whatever the files hold later; another is a conflict.
        fs::write(seeds.join("bytes"), "other").unwrap();
        way.says(&[ensure.as_slice(), &[&all]].concat(), 0);
        assert_eq!(fs::read(at("g")).unwrap(), [0xff, 0]);
        let other = write("other.json", json!([{ "type": "directory", "path": "e/d" }]));
        let said = way.says(&[ensure.as_slice(), &[&other]].concat(), 1);
        assert!(said.stderr.contains("manifest"), "{said:?}");
        let mount = json!([{ "type": "mount", "path": "m", "from": "seeds" }]);
        let said = create("t", &write("bad.json", mount), 1);
        assert!(said.stderr.contains("a server does not see"), "{said:?}");
        fs::write(seeds.join("bytes"), vec![b'x'; (2 << 20) + 1]).unwrap();
        let said = create("t", &all, 1);
        assert!(said.stderr.contains("2097152 bytes"), "{said:?}");
        let nowhere = ["create", "--name", "t", "--manifest", &write("n.json", json!([]))];
        let nowhere = way.says(&nowhere, 2);
        assert!(nowhere.stderr.contains("workspace"), "{nowhere:?}");
        assert_eq!(
            way.says(&["ls", "--json"], 0).object()["sessions"].as_array().unwrap().len(),
            1
        );
    });
}

#[test]
fn a_manifest_goes_to_a_server_with_what_archives_hold_and_repositories_are() {
    everyone(|place| {
        if !has_git() {
            return;
        }
        let server = Server::start(place, &socket(place));
        let way = Way::There(place, &server.url, None);
        let origin = repositories::lay_out(place);
        host(
            place,
            "mkdir -p top/closed; printf '#!/bin/sh\necho ran\n' >top/run; chmod 755 top/run; \
             chmod 700 top/closed; head -c 900000 /dev/urandom >top/bytes; tar czf a.tgz top",
        );
        let file = place.base.join("home/m.json");
        let archive = json!({
            "type": "archive", "path": "un", "from": "a.tgz", "strip_components": 1,
        });
        let git = json!({ "type": "git", "path": "r", "url": origin.to_str().unwrap() });
        let write = |entries: Value| {
            fs::write(&file, json!({ "version": 1, "entries": entries }).to_string()).unwrap();
        };
        write(json!([archive, git]));
        let (workspace, file) = (place.workspace.to_str().unwrap(), file.to_str().unwrap());
        let with = ["-w", workspace, "--profile", "no-network", "--manifest", file];
        way.says(&[&["create", "--name", "s", "--init", "un/run >said"], &with[..]].concat(), 0);
        let at = |name: &str| place.workspace.join(name);
        assert_eq!(fs::read_to_string(at("said")).unwrap(), "ran\n", "it was there before init");
        assert_eq!(
            fs::read(at("un/bytes")).unwrap(),
            fs::read(place.base.join("home/top/bytes")).unwrap()
        );
        let mode = |name: &str| fs::metadata(at(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("un/closed"), mode("un/run")), (0o700, 0o755));
        let inside = |words: &[&str]| {
            way.says(&[&["exec", "s", "--", "git", "-C", "r"], words].concat(), 0).text()
        };
        assert_eq!(inside(&["status", "--porcelain"]), "");
        assert_eq!(inside(&["rev-list", "--count", "HEAD"]), "3\n");
        assert_eq!(inside(&["fsck", "--strict"]), "");
        // A clone has other bytes each time, and is the same manifest.
        fs::write(at("r/src/a"), "mine\n").unwrap();
        way.says(&[&["ensure", "s"], &with[..]].concat(), 0);
        assert_eq!(fs::read_to_string(at("r/src/a")).unwrap(), "mine\n");
        // What cannot be fetched makes nothing, and nothing stays of what was fetched before it.
        write(json!([git, { "type": "archive", "path": "un", "from": "no.tgz" }]));
        let said = way.says(&[&["create", "--name", "t"], &with[..]].concat(), 1);
        assert!(said.stderr.contains("no.tgz"), "{said:?}");
        assert_eq!(
            way.says(&["ls", "--json"], 0).object()["sessions"].as_array().unwrap().len(),
            1
        );
        assert_eq!(fs::read_dir(place.state.join("staging")).unwrap().count(), 0);
        way.says(&["rm", "s"], 0);
    });
}

/// Thirty lines with these marks in two parts of them.
fn lines(mark: [&str; 2]) -> String {
    let line = |n: u32| match n {
        2 => format!("{}\n", mark[0]),
        25 => format!("{}\n", mark[1]),
        n => format!("{n}\n"),
    };
    (0..30).map(line).collect()
}

/// What is said at a terminal where these letters are answered.
fn choose(place: &Place, url: &str, answers: &str, words: &[&str]) -> (Option<i32>, String) {
    let mut asked = place.host(PYTHON);
    asked.args(["-c", ASKED, answers, place.program(), "apply"]).args(words).arg("--hunks");
    let said = outcome(asked.env("COFFERDAM_SERVER", url), SOON);
    (said.code(), said.text())
}

#[test]
fn parts_of_a_file_behind_a_server_are_chosen_at_this_terminal() {
    everyone(|place| {
        let server = Server::start(place, &socket(place));
        let way = Way::There(place, &server.url, None);
        place.write("f", &lines(["old", "old"]));
        place.write("other", "other\n");
        let workspace = place.workspace.to_str().unwrap();
        let made = ["-w", workspace, "--profile", "no-network", "--cow"];
        way.says(&[&["create", "--name", "s"], made.as_slice()].concat(), 0);
        let line = "sed -i s/old/new/ f; printf '\\033[2J\\n' > other; echo added > new; \
                    printf 'a\\0b' > bytes; echo x > .envrc";
        way.says(&["exec", "s", "--shell", line], 0);
        let read = |name: &str| fs::read_to_string(place.workspace.join(name)).ok();
        // In the order of paths: .envrc is protected and not asked for; bytes, f in two parts, new, other.
        let (code, said) = choose(place, &server.url, "ynyyn", &["s", "--dry-run"]);
        assert_eq!(code, Some(1), "{said}");
        assert_eq!(read("f"), Some(lines(["old", "old"])), "a dry run");
        let (code, said) = choose(place, &server.url, "ynyyn", &["s"]);
        assert_eq!(code, Some(1), "{said}");
        // Remarks of our own are coloured.
        let mut shown = said.lines().filter(|line| !line.contains("what is protected"));
        assert!(
            said.contains("\\u{1b}[2J") && shown.all(|line| !line.contains('\u{1b}')),
            "{said}"
        );
        assert!(said.contains("+added"), "what lands as a whole is shown: {said}");
        assert_eq!(read("f"), Some(lines(["old", "new"])));
        assert_eq!((read("new"), read("bytes")), (Some("added\n".into()), Some("a\0b".into())));
        assert_eq!((read("other"), read(".envrc")), (Some("other\n".into()), None));
        let left = way.says(&["diff", "s", "--name-only"], 0).text();
        assert_eq!(left, ".envrc\nf\nother\n", "what was not chosen is a change still");
        // What is named is asked for, and a path without a change is said.
        let (code, said) = choose(place, &server.url, "n", &["s", ".envrc"]);
        assert!(code == Some(0) && said.contains("nothing was chosen"), "{said}");
        let (code, said) = choose(place, &server.url, "", &["s", "nothing/there"]);
        assert!(code == Some(1) && said.contains("changed nothing at"), "{said}");
        let (code, said) = choose(place, &server.url, "q", &["s"]);
        assert!(code == Some(1) && said.contains("nothing was chosen"), "{said}");
        let (code, said) = choose(place, &server.url, "yy", &["s"]);
        assert_eq!((code, read("f")), (Some(1), Some(lines(["new", "new"]))), "{said}");
        let (code, said) = choose(place, &server.url, "y", &["s", ".envrc"]);
        assert_eq!((code, read(".envrc")), (Some(0), Some("x\n".into())), "{said}");
    });
}

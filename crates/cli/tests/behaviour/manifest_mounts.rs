//! Sessions whose manifest mounts directories of the host.

use crate::place::{Place, SOON, everyone, outcome, until};
use crate::sessions::phase;
use crate::sessions_durable::keepers;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

/// Directories of the host beside the workspace, open to all, and a file beside them.
fn lay_out(place: &Place) {
    fs::create_dir_all(place.base.join("source/deep")).unwrap();
    fs::write(place.base.join("source/file"), "theirs\n").unwrap();
    fs::write(place.base.join("source/deep/key"), "hidden\n").unwrap();
    fs::write(place.base.join("beside"), "outside\n").unwrap();
    symlink("..", place.base.join("source/up")).unwrap();
    symlink("../beside", place.base.join("source/out")).unwrap();
    for name in ["source", "source/deep", "source/file", "source/deep/key", "beside"] {
        place.give(&place.base.join(name));
    }
}

fn manifest(place: &Place, entries: &[(&str, &str)]) -> String {
    let entry = |(path, from): &(&str, &str)| {
        format!("[[entries]]\ntype = \"mount\"\npath = \"{path}\"\nfrom = \"{from}\"\n")
    };
    let entries: String = entries.iter().map(entry).collect();
    let file = place.base.join("m.toml");
    fs::write(&file, format!("version = 1\n{entries}")).unwrap();
    file.to_str().unwrap().to_owned()
}

fn in_session(place: &Place, script: &str, code: i32) -> String {
    let said = place.says(&["exec", "s", "--shell", script], code);
    said.text() + &said.stderr
}

/// Everything in the workspace.
fn left(place: &Place) -> Vec<String> {
    let entries = fs::read_dir(&place.workspace).unwrap().flatten();
    entries.map(|entry| entry.file_name().into_string().unwrap()).collect()
}

fn is_refused(place: &Place, more: &[&str], file: &str, word: &str) {
    let words = [&["create", "--name", "s", "--manifest", file], more].concat();
    let said = place.say(&words);
    assert!(matches!(said.code(), Some(1 | 2)), "{said:?}");
    assert!(said.stderr.contains(word), "{word}: {said:?}");
    assert_eq!(place.says(&["ls", "--json"], 0).object()["sessions"], serde_json::json!([]));
}

/// Kills what keeps the session, as a crash would.
fn lose(place: &Place) {
    let keepers = keepers(place);
    outcome(place.host("/bin/kill").arg("-9").args(&keepers), SOON);
    until(SOON, || (phase(place, "s") == "lost").then_some(())).unwrap();
}

const TRIES: &str = "for at in vendor/lib /workspace/vendor/lib /run/cofferdam/mounts/0; do \
    cat $at/file || exit 1; for try in 'touch new' 'rm file' 'mv file other' 'chmod 777 file' \
    'mkdir sub' 'ln -s file link' 'truncate -s 0 file'; do (cd $at && $try 2>/dev/null) && exit 2; \
    done; (echo x >$at/file) 2>/dev/null && exit 3; done; \
    mount -o remount,bind,rw vendor/lib 2>/dev/null && exit 4; umount vendor/lib 2>/dev/null && \
    exit 5; rmdir vendor/lib 2>/dev/null && exit 6; true";

#[test]
fn a_directory_of_the_host_is_shown_read_only_as_long_as_the_session_is_there() {
    everyone(|place| {
        lay_out(place);
        let made = outcome(place.host("git").args(["init", "-q"]), SOON);
        assert_eq!(made.code(), Some(0), "{made:?}");
        let before = left(place);
        let file = manifest(place, &[("vendor/lib", "source")]);
        for user in [None, Some("root")] {
            let more: Vec<&str> = user.iter().flat_map(|user| ["--user", user]).collect();
            let words = [&["create", "--name", "s", "--manifest", &file], &more[..]].concat();
            place.says(&words, 0);
            in_session(place, TRIES, 0);
            // What the host changes is seen, and git does not see where it lies.
            fs::write(place.base.join("source/late"), "late\n").unwrap();
            assert_eq!(in_session(place, "cat vendor/lib/late", 0), "late\n");
            let status = outcome(place.host("git").args(["status", "--porcelain"]), SOON);
            assert_eq!(status.text(), "", "{status:?}");
            place.says(&["pause", "s"], 0);
            place.says(&["resume", "s"], 0);
            in_session(place, TRIES, 0);
            lose(place);
            place.says(&["resume", "s"], 0);
            in_session(place, TRIES, 0);
            place.says(
                &["ensure", "s", "--manifest", &file]
                    .iter()
                    .chain(&more)
                    .copied()
                    .collect::<Vec<_>>(),
                0,
            );
            place.says(&["rm", "s"], 0);
            assert_eq!(left(place), before, "nothing is left where it lay");
        }
        let theirs = fs::read_to_string(place.base.join("source/file")).unwrap();
        assert_eq!(theirs, "theirs\n");
    });
}

#[test]
fn file_verbs_read_a_mount_and_say_that_it_cannot_be_written() {
    everyone(|place| {
        lay_out(place);
        let file = manifest(place, &[("vendor/lib", "source")]);
        place.says(&["create", "--name", "s", "--manifest", &file], 0);
        assert_eq!(place.says(&["file", "read", "s", "vendor/lib/file"], 0).text(), "theirs\n");
        place.says(&["file", "read", "s", "vendor/lib/out"], 1);
        let patch = place.base.join("patch");
        let text = "--- a/vendor/lib/file\n+++ b/vendor/lib/file\n@@ -1 +1 @@\n-theirs\n+mine\n";
        fs::write(&patch, text).unwrap();
        let patch = patch.to_str().unwrap();
        for words in [
            &["file", "write", "s", "vendor/lib/file"][..],
            &["file", "write", "s", "vendor/lib/new/file"],
            &["file", "rm", "s", "vendor/lib/file"],
            &["file", "mkdir", "s", "vendor/lib/new"],
            &["file", "mv", "s", "vendor/lib/file", "moved"],
            &["file", "mv", "s", "vendor/lib", "moved"],
            &["file", "chmod", "s", "777", "vendor/lib/file"],
            &["file", "edit", "s", "vendor/lib/file", "--old", "theirs", "--new", "mine"],
            &["file", "patch", "s", patch],
            &["file", "rm", "s", "vendor", "--recursive"],
        ] {
            let said = place.says(words, 1);
            let known =
                ["Read-only", "read only", "protected", "busy", "denied", "different mounts"];
            assert!(known.iter().any(|word| said.stderr.contains(word)), "{words:?}: {said:?}");
        }
        assert_eq!(in_session(place, "cat vendor/lib/file", 0), "theirs\n");
        // The control: what lies beside it is as any other file.
        place.says(&["file", "write", "s", "vendor/file"], 0);
        place.says(&["file", "cp", "s", "vendor/lib/file", "vendor/file", "--replace"], 0);
        let edit = ["file", "edit", "s", "vendor/file", "--old", "theirs", "--new", "mine"];
        place.says(&edit, 0);
        assert_eq!(fs::read_to_string(place.workspace.join("vendor/file")).unwrap(), "mine\n");
        place.says(&["rm", "s"], 0);
        assert!(!place.workspace.join("vendor/lib").exists());
        assert!(place.workspace.join("vendor/file").exists(), "what was put there stays");
    });
}

#[test]
fn a_mount_is_made_again_where_its_place_is_taken_away() {
    everyone(|place| {
        lay_out(place);
        let file = manifest(place, &[("vendor/lib", "source")]);
        place.says(&["create", "--name", "s", "--manifest", &file], 0);
        // By the host, and by a command of the session.
        fs::remove_dir(place.workspace.join("vendor/lib")).unwrap();
        let is_there = || {
            let words = ["exec", "s", "--shell", "! touch vendor/lib/x && cat vendor/lib/file"];
            (place.say(&words).text() == "theirs\n").then_some(())
        };
        until(SOON, is_there).unwrap();
        in_session(place, "mv vendor away", 0);
        until(SOON, is_there).unwrap();
        assert_eq!(phase(place, "s"), "running");
        // Something else in its place is not what was meant: it ends there, and says so.
        let (place_of_it, link) = (place.workspace.join("vendor"), place.workspace.join("link"));
        symlink(&place.base, &link).unwrap();
        let at_once = rustix::fs::RenameFlags::EXCHANGE;
        let cwd = rustix::fs::CWD;
        rustix::fs::renameat_with(cwd, &link, cwd, &place_of_it, at_once).unwrap();
        until(SOON, || (phase(place, "s") == "lost").then_some(())).unwrap();
        let said = place.says(&["resume", "s"], 1);
        assert!(said.stderr.contains("no directory to mount on"), "{said:?}");
        fs::remove_file(&place_of_it).unwrap();
        place.says(&["resume", "s"], 0);
        in_session(place, TRIES, 0);
    });
}

#[test]
fn another_directory_in_the_place_of_the_mounted_one_is_an_error() {
    everyone(|place| {
        lay_out(place);
        let at = |name: &str| place.base.join(name);
        symlink("source", at("current")).unwrap();
        let file = manifest(place, &[("lib", "current")]);
        place.says(&["create", "--name", "s", "--manifest", &file], 0);
        assert_eq!(in_session(place, "cat lib/file", 0), "theirs\n");
        lose(place);
        fs::rename(at("source"), at("gone")).unwrap();
        let said = place.says(&["resume", "s"], 1);
        assert!(said.stderr.contains("current does not exist"), "{said:?}");
        fs::create_dir(at("source")).unwrap();
        place.give(&at("source"));
        let said = place.says(&["resume", "s"], 1);
        assert!(said.stderr.contains("is another one by now"), "{said:?}");
        let said = place.says(&["ensure", "s", "--manifest", &file], 1);
        assert!(said.stderr.contains("is another directory than"), "{said:?}");
        // A link that leads elsewhere by now is another directory too.
        fs::create_dir(at("other")).unwrap();
        fs::remove_file(at("current")).unwrap();
        symlink("other", at("current")).unwrap();
        let said = place.says(&["resume", "s"], 1);
        assert!(said.stderr.contains("is another one by now"), "{said:?}");
        // The control.
        fs::remove_file(at("current")).unwrap();
        symlink("gone", at("current")).unwrap();
        place.says(&["resume", "s"], 0);
        assert_eq!(in_session(place, "cat lib/file", 0), "theirs\n");
        let other = manifest(place, &[("lib", "other")]);
        place.says(&["ensure", "s", "--manifest", &other], 1);
    });
}

#[test]
fn what_read_refuses_is_not_mounted_and_what_is_hidden_stays_hidden() {
    everyone(|place| {
        lay_out(place);
        let state = place.state.to_str().unwrap().to_owned();
        for (from, word) in [
            ("/", "show everything"),
            ("/proc", "processes or devices"),
            ("/dev", "processes or devices"),
            (state.as_str(), "stays hidden"),
            ("source/file", "no directory"),
            ("none", "none"),
            ("workspace", "lie in one another"),
            (".", "lie in one another"),
        ] {
            is_refused(place, &[], &manifest(place, &[("lib", from)]), word);
        }
        // A link in the workspace may be another sandbox's.
        symlink(place.base.join("source"), place.workspace.join("planted")).unwrap();
        let planted = manifest(place, &[("lib", "workspace/planted")]);
        is_refused(place, &[], &planted, "an earlier command");
        let file = manifest(place, &[("lib", "source")]);
        let hide = place.base.join("source/deep");
        let hide = hide.to_str().unwrap();
        let all = "cat lib/deep/key /workspace/lib/deep/key /run/cofferdam/mounts/0/deep/key \
                   lib/deep/../deep/key 2>/dev/null; ls lib/deep; cat lib/file";
        place.says(&["create", "--name", "s", "--manifest", &file, "--hide", hide], 0);
        assert_eq!(in_session(place, all, 0), "theirs\n");
        place.says(&["rm", "s"], 0);
        let above = place.base.join("source");
        let above = above.to_str().unwrap();
        place.says(&["create", "--name", "s", "--manifest", &file, "--hide", above], 0);
        assert_eq!(
            in_session(place, "ls lib /run/cofferdam/mounts/0", 0),
            "/run/cofferdam/mounts/0:\n\nlib:\n"
        );
        place.says(&["rm", "s"], 0);
        // The control.
        place.says(&["create", "--name", "s", "--manifest", &file], 0);
        assert_eq!(in_session(place, all, 0), "hidden\n".repeat(4) + "key\ntheirs\n");
    });
}

#[test]
fn nothing_leads_out_of_a_mount_to_what_is_beside_it_on_the_host() {
    everyone(|place| {
        lay_out(place);
        let file = manifest(place, &[("lib", "source")]);
        place.says(&["create", "--name", "s", "--manifest", &file], 0);
        let beside = place.base.join("beside");
        let tries = format!(
            "cat lib/../beside lib/../../beside lib/up/beside lib/out lib/up/../beside \
             /run/cofferdam/mounts/0/../beside /run/cofferdam/mounts/beside {} 2>/dev/null",
            beside.display()
        );
        assert_eq!(in_session(place, &tries, 1), "");
        // A process that stands in a directory which the host moves out does not follow it.
        let stand = "cd lib/deep; touch /workspace/ready; while test -e /workspace/ready; do \
                     sleep 0.02; done; cat ../beside ../../beside key";
        let stand = ["exec", "s", "-d", "--id", "stand", "--shell", stand];
        place.says(&stand, 0);
        until(SOON, || place.workspace.join("ready").exists().then_some(())).unwrap();
        fs::rename(place.base.join("source/deep"), place.base.join("deep")).unwrap();
        fs::remove_file(place.workspace.join("ready")).unwrap();
        place.says(&["wait", "s", "stand"], 1);
        let said = place.says(&["logs", "s", "stand"], 0).text();
        assert!(!said.contains("outside"), "{said}");
        // The control: on the host all of these lead there.
        for way in ["source/up/beside", "source/out", "deep/../beside"] {
            assert_eq!(fs::read_to_string(place.base.join(way)).unwrap(), "outside\n", "{way}");
        }
    });
}

#[test]
fn a_mount_covers_nothing_and_follows_no_link_to_its_place() {
    everyone(|place| {
        lay_out(place);
        place.write("full/file", "mine\n");
        place.write("a-file", "mine\n");
        symlink(&place.base, place.workspace.join("link")).unwrap();
        symlink("full", place.workspace.join("near")).unwrap();
        for (path, word) in [
            ("full", "would cover"),
            ("a-file", "no directory to mount on"),
            ("a-file/below", "no directory to mount on"),
            ("link", "no directory to mount on"),
            ("link/below", "no directory to mount on"),
            ("near/below", "no directory to mount on"),
            (".vscode", "is protected"),
            (".git/hooks", "is protected"),
            ("sub/.husky/x", "is protected"),
        ] {
            is_refused(place, &[], &manifest(place, &[(path, "source")]), word);
        }
        assert!(!place.base.join("below").exists() && !place.workspace.join("full/below").exists());
        // What cannot be brought takes the mount with it.
        let file = manifest(place, &[("new/lib", "source")]);
        let more = "[[entries]]\ntype = \"file\"\npath = \"a-file\"\ntext = \"theirs\"\n";
        fs::write(&file, fs::read_to_string(&file).unwrap() + more).unwrap();
        is_refused(place, &[], &file, "a-file");
        assert!(!place.workspace.join("new").exists());
        // The control: an empty directory of the user's, which stays.
        fs::create_dir(place.workspace.join("mine")).unwrap();
        place.give(&place.workspace.join("mine"));
        let file = manifest(place, &[("mine", "source")]);
        place.says(&["create", "--name", "s", "--manifest", &file], 0);
        assert_eq!(in_session(place, "cat mine/file", 0), "theirs\n");
        place.says(&["rm", "s"], 0);
        assert!(place.workspace.join("mine").is_dir());
    });
}

#[test]
fn sessions_of_one_workspace_share_the_place_of_a_mount() {
    everyone(|place| {
        lay_out(place);
        let file = manifest(place, &[("v/lib", "source")]);
        for name in ["s", "t"] {
            place.says(&["create", "--name", name, "--manifest", &file], 0);
        }
        let more = ["--profile", "read-only", "--manifest", &file];
        place.says(&[&["create", "--name", "r"], &more[..]].concat(), 0);
        place.says(&["rm", "t"], 0);
        for name in ["s", "r"] {
            let said = place.says(&["exec", name, "--shell", "cat v/lib/file"], 0);
            assert_eq!(said.text(), "theirs\n");
        }
        place.says(&["rm", "s"], 0);
        assert!(Path::new(&place.workspace).join("v/lib").exists());
        let said = place.says(&["exec", "r", "--shell", "cat v/lib/file; touch v/x v/lib/x"], 1);
        assert_eq!(said.text(), "theirs\n");
        place.says(&["rm", "r"], 0);
        assert_eq!(left(place), Vec::<String>::new());
    });
}

#[test]
fn in_a_copy_on_write_workspace_a_mount_is_no_change() {
    everyone(|place| {
        lay_out(place);
        let file = manifest(place, &[("v/lib", "source")]);
        is_refused(place, &["--cow"], &file, "Make the directory before");
        fs::create_dir_all(place.workspace.join("v/lib")).unwrap();
        ["v", "v/lib"].iter().for_each(|name| place.give(&place.workspace.join(name)));
        place.says(&["create", "--name", "s", "--cow", "--manifest", &file], 0);
        in_session(place, &TRIES.replace("vendor", "v"), 0);
        assert_eq!(place.says(&["diff", "s", "--name-only"], 0).text(), "");
        in_session(place, "echo new >v/new", 0);
        assert_eq!(place.says(&["diff", "s", "--name-only"], 0).text(), "v/new\n");
        place.says(&["snapshot", "create", "s", "--label", "kept"], 0);
        in_session(place, "rm v/new; echo late >late; cat v/lib/file", 0);
        place.says(&["snapshot", "restore", "s", "kept"], 0);
        assert_eq!(in_session(place, "cat v/new v/lib/file; touch v/lib/x", 1).lines().count(), 3);
        place.says(&["fork", "s", "f"], 0);
        let fork = place.says(&["exec", "f", "--shell", "cat v/new v/lib/file"], 0);
        assert_eq!(fork.text(), "new\ntheirs\n");
        place.says(&["apply", "s"], 0);
        assert_eq!(fs::read_to_string(place.workspace.join("v/new")).unwrap(), "new\n");
        let lib = fs::read_dir(place.workspace.join("v/lib")).unwrap();
        assert_eq!(lib.count(), 0, "nothing of it landed");
        assert_eq!(in_session(place, "cat v/lib/file", 0), "theirs\n");
        place.says(&["discard", "f"], 0);
        let fork = place.says(&["exec", "f", "--shell", "cat v/lib/file"], 0);
        assert_eq!(fork.text(), "theirs\n");
    });
}

#[test]
fn explain_shows_what_a_manifest_mounts() {
    everyone(|place| {
        lay_out(place);
        let file = manifest(place, &[("vendor/lib", "source")]);
        let said = place.says(&["explain", "--manifest", &file], 0).text();
        let source = place.base.join("source");
        let line = format!("vendor/lib too: shows {} read-only.", source.display());
        assert!(said.contains(&line), "{said}");
        assert_eq!(left(place), Vec::<String>::new(), "nothing was made for it");
    });
}

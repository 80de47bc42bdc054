//! Patches, edits and windows of a session's workspace, by the command.

use crate::place::{PYTHON, Place, SOON, Said, ended, everyone, outcome, skipped, started};
use crate::schema::is_valid;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// How many commits of this repository are applied and taken back.
const COMMITS: usize = 5;
/// How many files the patch has whose caller is killed.
const MANY: usize = 150;

/// What is in a workspace, but for what Cofferdam pins there: mode, and bytes or target.
type Seen = BTreeMap<PathBuf, (u32, Vec<u8>)>;

fn seen(root: &Path) -> Seen {
    let mut seen = Seen::new();
    let mut left = vec![root.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let stat = fs::symlink_metadata(&path).unwrap();
            let name = path.strip_prefix(root).unwrap().to_owned();
            if stat.is_dir() {
                left.push(path);
            } else if stat.is_symlink() {
                let target = fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes();
                seen.insert(name, (0, target));
            } else if stat.is_file() && (stat.nlink() == 1 || stat.len() > 0) {
                seen.insert(name, (stat.mode() & 0o777, fs::read(&path).unwrap()));
            }
        }
    }
    seen
}

/// `file patch` with this patch.
fn patch(place: &Place, text: &[u8], words: &[&str], code: i32) -> Said {
    let file = place.base.join("patch");
    fs::write(&file, text).unwrap();
    let words: Vec<&str> = [&["file", "patch", "s"], words].concat();
    let said = outcome(place.cofferdam(&words).stdin(fs::File::open(&file).unwrap()), SOON * 3);
    assert_eq!(said.code(), Some(code), "as {}: {words:?}: {said:?}", place.uid());
    said
}

/// A change of everything that a patch can change.
const ALL: &str = "\
diff --git a/a.txt b/a.txt
--- a/a.txt
+++ b/a.txt
@@ -1,3 +1,3 @@
 one
-two
+TWO
 three
diff --git a/run.sh b/run.sh
old mode 100644
new mode 100755
diff --git a/dir/old.txt b/fresh/new.txt
similarity index 100%
rename from dir/old.txt
rename to fresh/new.txt
diff --git a/gone.txt b/gone.txt
deleted file mode 100644
--- a/gone.txt
+++ /dev/null
@@ -1 +0,0 @@
-gone
\\ No newline at end of file
diff --git a/link b/link
new file mode 120000
--- /dev/null
+++ b/link
@@ -0,0 +1 @@
+a.txt
\\ No newline at end of file
";

fn lay_out(place: &Place) {
    place.write("a.txt", "one\r\ntwo\r\nthree\r\n");
    place.write("run.sh", "#!/bin/sh\n");
    place.write("dir/old.txt", "moved");
    place.write("gone.txt", "gone");
}

#[test]
fn a_patch_is_applied_whole_and_taken_back() {
    everyone(|place| {
        lay_out(place);
        place.says(&["create", "--name", "s"], 0);
        let before = seen(&place.workspace);
        let dry = patch(place, ALL.as_bytes(), &["--dry-run"], 0);
        assert!(dry.text().contains("would be applied"), "{dry:?}");
        assert_eq!(seen(&place.workspace), before);
        let said = patch(place, ALL.as_bytes(), &["--json"], 0).object();
        is_valid(place, "file-patch", &said);
        assert_eq!(
            (said["changed"].as_bool(), &said["report"]["outcome"]),
            (Some(true), &"fits".into())
        );
        let read = |name: &str| fs::read_to_string(place.workspace.join(name)).unwrap();
        assert_eq!(read("a.txt"), "one\r\nTWO\r\nthree\r\n");
        assert_eq!((read("fresh/new.txt").as_str(), read("link")), ("moved", read("a.txt")));
        let mode = fs::metadata(place.workspace.join("run.sh")).unwrap().mode() & 0o777;
        assert_eq!(mode, 0o755);
        assert!(!place.workspace.join("gone.txt").exists());
        // What was applied before changes nothing, and is no failure.
        let again = patch(place, ALL.as_bytes(), &["--json"], 0).object();
        assert_eq!(again["changed"].as_bool(), Some(false));
        let back = patch(place, ALL.as_bytes(), &["--reverse"], 0);
        assert!(back.text().ends_with("applied\n"), "{back:?}");
        let again = patch(place, ALL.as_bytes(), &["-R"], 0);
        let words = "taken back before; nothing was changed\n";
        assert!(again.text().ends_with(words), "{again:?}");
        assert_eq!(seen(&place.workspace), before);
    });
}

#[test]
fn a_patch_that_does_not_fit_changes_nothing_and_says_where() {
    everyone(|place| {
        lay_out(place);
        place.write("gone.txt", "more");
        place.says(&["create", "--name", "s"], 0);
        let before = seen(&place.workspace);
        let said = patch(place, ALL.as_bytes(), &[], 1);
        assert!(said.text().contains("refused") && said.text().contains("gone.txt"), "{said:?}");
        assert_eq!(seen(&place.workspace), before);
        let said = patch(place, b"no patch at all\n", &[], 2);
        let told = "failed to work on the files: the patch of standard input cannot be used: ";
        assert!(said.stderr.contains(told), "{said:?}");
        let out = b"--- a/../x\n+++ b/../x\n@@ -0,0 +1 @@\n+x\n";
        let said = patch(place, out, &["--json"], 1).object();
        assert_eq!(said["error"]["kind"].as_str(), Some("path_escape"), "{said}");
        assert_eq!(seen(&place.workspace), before);
    });
}

#[test]
fn a_protected_name_is_refused_before_anything_changes() {
    everyone(|place| {
        place.write("a.txt", "one\n");
        place.write(".envrc", "export A=1\n");
        place.write(".vscode/settings.json", "{}\n");
        place.says(&["create", "--name", "s"], 0);
        let before = seen(&place.workspace);
        let fine = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+ONE\n";
        for name in [".envrc", ".vscode/settings.json", ".vscode/tasks.json", ".mcp.json"] {
            let old = fs::read_to_string(place.workspace.join(name)).unwrap_or_default();
            let lines = if old.is_empty() { "0,0" } else { "1" };
            let removed = if old.is_empty() { String::new() } else { format!("-{old}") };
            let head = if old.is_empty() { "/dev/null".to_owned() } else { format!("a/{name}") };
            let text =
                format!("{fine}--- {head}\n+++ b/{name}\n@@ -{lines} +1 @@\n{removed}+theirs\n");
            let said = patch(place, text.as_bytes(), &[], 1);
            let words = said.text() + &said.stderr;
            assert!(words.contains("protected"), "{name}: {said:?}");
            assert_eq!(seen(&place.workspace), before, "{name}");
        }
        // The control.
        patch(place, fine.as_bytes(), &[], 0);
        assert_ne!(seen(&place.workspace), before);
    });
}

fn git(words: &[&str]) -> Option<Vec<u8>> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new("git");
    command.args(["-c", "safe.directory=*", "-c", "diff.renameLimit=0"]).args(words);
    command.current_dir(repository.join("../..")).env("LC_ALL", "C").stdin(Stdio::null());
    command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
    let output = command.stderr(Stdio::null()).output().ok()?;
    output.status.success().then_some(output.stdout)
}

/// The tree of a commit, laid out in a directory of its own.
fn checked_out(place: &Place, commit: &str, directory: &Path) {
    fs::create_dir_all(directory).unwrap();
    let archive = place.base.join("archive.tar");
    fs::write(&archive, git(&["archive", commit]).unwrap()).unwrap();
    let status = Command::new("tar")
        .args(["--no-same-owner", "--no-same-permissions", "-xf"])
        .arg(&archive)
        .arg("-C")
        .arg(directory)
        .status();
    assert!(status.unwrap().success());
}

#[test]
fn diffs_of_this_repository_are_applied_and_taken_back() {
    let count = COMMITS.to_string();
    let Some(commits) = git(&["rev-list", "--first-parent", "--max-count", &count, "HEAD"]) else {
        return skipped("git", "this is no clone, or there is no git");
    };
    let mut commits: Vec<String> =
        String::from_utf8(commits).unwrap().lines().map(str::to_owned).collect();
    commits.reverse();
    everyone(|place| {
        checked_out(place, &commits[0], &place.workspace);
        let owner = format!("{0}:{0}", place.uid());
        let owned = Command::new("chown").arg("-hR").arg(owner).arg(&place.workspace).status();
        assert!(owned.unwrap().success());
        // A configuration of the workspace itself is none of this test's.
        place.says(&["create", "--name", "s"], 0);
        let diff =
            |old: &str, new: &str| git(&["diff", "--text", "--binary", "-M", old, new]).unwrap();
        let is = |commit: &str| {
            let expected = place.base.join("expected");
            checked_out(place, commit, &expected);
            let (found, wanted) = (seen(&place.workspace), seen(&expected));
            fs::remove_dir_all(&expected).unwrap();
            let names = |all: &Seen| all.keys().cloned().collect::<Vec<_>>();
            assert_eq!(names(&found), names(&wanted), "{commit}");
            for (name, thing) in wanted {
                assert!(found[&name].1 == thing.1, "{commit}: {}", name.display());
                assert_eq!(found[&name].0 & 0o111, thing.0 & 0o111, "{}", name.display());
            }
        };
        for pair in commits.windows(2) {
            let text = diff(&pair[0], &pair[1]);
            if !text.is_empty() {
                patch(place, &text, &[], 0);
                is(&pair[1]);
            }
        }
        for pair in commits.windows(2).rev() {
            let text = diff(&pair[0], &pair[1]);
            if !text.is_empty() {
                patch(place, &text, &["-R"], 0);
            }
        }
        is(&commits[0]);
    });
}

/// Exchanges the directory `d` with a link to the outside as fast as it can.
const SWAPPER: &str = "
import ctypes, os
libc, here, exchange = ctypes.CDLL(None), -100, 2
while not os.path.exists('stop'):
    for _ in range(50):
        libc.renameat2(here, b'd', here, b'out', exchange)
";

#[test]
fn names_that_change_under_a_patch_lead_nowhere() {
    everyone(|place| {
        // Outside of the workspace, where the sandbox's user could write if it were led there.
        place.write("d/a.txt", "one\n");
        place.write("d/b.txt", "two\n");
        place.says(&["create", "--name", "s"], 0);
        let outside =
            "mkdir /tmp/o && printf 'one\\n' >/tmp/o/a.txt && printf 'two\\n' >/tmp/o/b.txt
            ln -s /tmp/o out";
        place.says(&["exec", "s", "--shell", outside], 0);
        place.says(&["exec", "s", "-d", "--id", "swap", "--", PYTHON, "-c", SWAPPER], 0);
        // The control: who goes by names is led out.
        let careless = "n=0; while [ $n -lt 20000 ]; do n=$((n+1))
            if ( : >>d/led ) 2>/dev/null && [ -e /tmp/o/led ]; then rm /tmp/o/led; exit 0; fi
            done; exit 1";
        place.says(&["exec", "s", "--shell", careless], 0);
        place.says(&["exec", "s", "--shell", "rm -f d/led out/led"], 0);
        let text = "--- a/d/a.txt\n+++ b/d/a.txt\n@@ -1 +1 @@\n-one\n+ONE\n\
                    --- a/d/b.txt\n+++ b/d/b.txt\n@@ -1 +1 @@\n-two\n+TWO\n";
        fs::write(place.base.join("patch"), text).unwrap();
        let file = place.base.join("patch");
        let (mut done, mut refused) = (0, 0);
        for round in 0..24 {
            let way: &[&str] = if done % 2 == 0 { &[] } else { &["-R"] };
            let file = file.to_str().unwrap();
            let said = place.say(&[&["file", "patch", "s", file, "--json"], way].concat());
            let is_done = said.code() == Some(0) && said.object()["changed"] == true;
            done += usize::from(is_done);
            refused += usize::from(!is_done);
            // An edit beside it.
            let edit = ["file", "edit", "s", "d/a.txt", "--old", "none", "--new", "x"];
            assert_ne!(place.say(&edit).code(), Some(0), "{round}");
        }
        place.says(&["file", "write", "s", "stop"], 0);
        place.says(&["wait", "s", "swap"], 0);
        let after = place.says(&["exec", "s", "--shell", "cat /tmp/o/*; ls -A /tmp/o"], 0).text();
        assert_eq!(after, "one\ntwo\na.txt\nb.txt\n", "{done} done, {refused} refused");
        // Inside, both files are of one state.
        let inside = place.says(&["exec", "s", "--shell", "cat d/a.txt d/b.txt || cat out/*"], 0);
        let one = if done % 2 == 0 { "one\ntwo\n" } else { "ONE\nTWO\n" };
        let is_link = fs::symlink_metadata(place.workspace.join("d")).unwrap().is_symlink();
        let real = place.workspace.join(if is_link { "out" } else { "d" });
        let text = |name: &str| fs::read_to_string(real.join(name)).unwrap();
        assert_eq!(text("a.txt") + &text("b.txt"), one, "{inside:?}");
        let left = fs::read_dir(&place.workspace).unwrap().flatten();
        let left = left.filter(|e| e.file_name().to_string_lossy().starts_with(".cofferdam-"));
        assert_eq!(left.count(), 0);
    });
}

#[test]
fn a_caller_that_is_killed_leaves_all_or_nothing() {
    everyone(|place| {
        let mut text = String::new();
        for at in 0..MANY {
            place.write(&format!("d{}/f{at}", at % 7), "old\n");
            let name = format!("d{}/f{at}", at % 7);
            let parts = ["--- a/", &name, "\n+++ b/", &name, "\n@@ -1 +1 @@\n-old\n+new\n"];
            text.extend(parts);
        }
        place.says(&["create", "--name", "s"], 0);
        let file = place.base.join("patch");
        fs::write(&file, &text).unwrap();
        let file = file.to_str().unwrap();
        let (mut whole, mut none) = (0, 0);
        for round in 0..10_u64 {
            let mut child = started(
                place
                    .cofferdam(&["file", "patch", "s", file])
                    .stdout(Stdio::null())
                    .stderr(Stdio::null()),
            );
            std::thread::sleep(Duration::from_millis(round * 12));
            let _ = child.kill();
            ended(child, SOON);
            // The next one waits for nobody, and puts right what was left.
            patch(place, b"--- a/none\n+++ b/none\n@@ -1 +1 @@\n-x\n+y\n", &[], 1);
            let check = || {
                let all = seen(&place.workspace);
                let new = all.values().filter(|(_, bytes)| bytes == b"new\n").count();
                let left = all.keys().any(|name| name.to_string_lossy().contains(".cofferdam-"));
                (new, left)
            };
            // A worker that had all steps goes on to the end.
            let settled = crate::place::until(SOON, || Some(check()).filter(|(_, left)| !left));
            let (new, _) = settled.unwrap();
            assert!(new == 0 || new == MANY, "{new} of {MANY} in round {round}");
            if new == MANY {
                whole += 1;
                patch(place, text.as_bytes(), &["-R"], 0);
            } else {
                none += 1;
            }
        }
        assert!(none > 0, "{whole} whole, {none} none");
    });
}

#[test]
fn text_is_replaced_in_one_place_or_all_and_not_half() {
    everyone(|place| {
        let file = place.write("a.txt", "one\ntwo\none\n");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o750)).unwrap();
        place.says(&["create", "--name", "s"], 0);
        let edit = |words: &[&str], code| {
            place.says(&[&["file", "edit", "s", "a.txt"], words].concat(), code)
        };
        let read = || fs::read_to_string(&file).unwrap();
        let twice = edit(&["--old", "one", "--new", "1"], 1);
        assert!(twice.text().contains("lines 1, 3"), "{twice:?}");
        edit(&["--old", "one", "--new", "1", "--all", "--dry-run"], 0);
        assert_eq!(read(), "one\ntwo\none\n");
        let said = edit(&["--old", "one", "--new", "1", "--all", "--json"], 0).object();
        is_valid(place, "file-edit", &said);
        assert_eq!(
            (read().as_str(), said["report"]["replacements"].as_u64()),
            ("1\ntwo\n1\n", Some(2))
        );
        let list = place.base.join("edits.json");
        let list_name = list.to_str().unwrap().to_owned();
        fs::write(&list, r#"[{"old": "two", "new": "2"}, {"old": "3", "new": "4"}]"#).unwrap();
        edit(&["--edits", &list_name], 1);
        assert_eq!(read(), "1\ntwo\n1\n");
        fs::write(&list, r#"[{"old": "two", "new": "2"}, {"old": "1", "new": "", "all": true}]"#)
            .unwrap();
        edit(&["--edits", &list_name], 0);
        assert_eq!(read(), "\n2\n\n");
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o750);
        fs::write(&list, r#"[{"old": "two", "new": "2", "al": true}]"#).unwrap();
        edit(&["--edits", &list_name], 2);
        edit(&["--old", "", "--new", "x"], 2);
        symlink("a.txt", place.workspace.join("link")).unwrap();
        let through = ["file", "edit", "s", "link", "--old", "2", "--new", "3", "--json"];
        let said = place.says(&through, 1).object();
        assert_eq!(said["error"]["kind"].as_str(), Some("not_a_file"), "{said}");
        assert_eq!(read(), "\n2\n\n");
    });
}

#[test]
fn lines_are_read_with_their_numbers_and_a_way_to_go_on() {
    everyone(|place| {
        let text: String = (1..=3000).map(|line| format!("line {line}\n")).collect();
        place.write("a.txt", &text);
        place.write("b.bin", "a\0b");
        place.says(&["create", "--name", "s"], 0);
        let part = place.says(&["file", "read", "s", "a.txt", "--lines", "9:10"], 0);
        assert_eq!(part.text(), "9|line 9\n10|line 10\n");
        assert!(part.stderr.contains("--lines 11:"), "{part:?}");
        let first = place.says(&["file", "read", "s", "a.txt", "--window", "--json"], 0).object();
        is_valid(place, "file-window", &first);
        assert_eq!(first["window"]["truncation"]["next_offset"].as_u64(), Some(2000));
        let rest = place.says(&["file", "read", "s", "a.txt", "--lines", "2001:"], 0);
        assert_eq!((rest.text().lines().count(), rest.stderr.as_str()), (1000, ""));
        place.says(&["file", "read", "s", "a.txt", "--lines", "3001:"], 2);
        place.says(&["file", "read", "s", "a.txt", "--lines", "2:1"], 2);
        place.says(&["file", "read", "s", "b.bin", "--window"], 1);
    });
}

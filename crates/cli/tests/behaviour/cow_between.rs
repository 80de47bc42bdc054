//! What differs between two points of the history of a copy-on-write session.

use crate::place::{Place, everyone, skipped};
use crate::schema::is_valid;
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What commands do one after the other. A directory comes, goes, is made anew, and is brought back.
const DEEDS: [&str; 7] = [
    "true",
    "echo one >f; mkdir n; echo x >n/x; chmod 755 g; rm gone",
    "rm -r d; ln -s ../n/x link; printf 'no end' >n/y; ln n/x n/z",
    "mkdir -p d/deep; echo new >d/deep/er; echo two >>f; mv g moved",
    "rm -r n; echo n >n; rm -r d; printf 'a\\0b' >binary",
    "cp binary 'sp ace'; rm n; mkdir n; echo back >n/x; echo g2 >g; rm link; echo l >link",
    "rm binary moved; mkdir -p d/deep; echo e >d/deep/er; echo o >d/old; echo real >f",
];

fn prepared(place: &Place) {
    for (name, text) in
        [("f", "real\n"), ("g", "g\n"), ("gone", "g"), ("d/old", "o\n"), ("d/deep/er", "e\n")]
    {
        place.write(name, text);
    }
    place.says(&["create", "--cow", "--name", "s"], 0);
}

fn exec(place: &Place, line: &str) {
    place.says(&["exec", "s", "--shell", line], 0);
}

fn at(place: &Place) -> String {
    place.says(&["history", "s", "--json"], 0).object()["at"].to_string()
}

fn diff(place: &Place, words: &[&str]) -> Vec<u8> {
    place.says(&[&["diff", "s"], words].concat(), 0).stdout
}

fn lines(place: &Place, words: &[&str]) -> Vec<String> {
    let text = String::from_utf8(diff(place, words)).unwrap();
    text.lines().map(str::to_owned).collect()
}

/// Copies what a session shows into a directory.
fn copy(place: &Place, name: &str) -> PathBuf {
    let to = place.base.join(name);
    fs::create_dir(&to).unwrap();
    let tar = place.says(&["exec", "s", "--", "tar", "cf", "-", "."], 0).stdout;
    let mut unpack = Command::new("tar");
    unpack.args(["xf", "-", "--no-same-owner"]).current_dir(&to);
    feed(&mut unpack, &tar);
    to
}

fn feed(command: &mut Command, bytes: &[u8]) {
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(bytes).unwrap();
    let said = child.wait_with_output().unwrap();
    let error = String::from_utf8_lossy(&said.stderr);
    assert!(said.status.success(), "{error}\n{}", String::from_utf8_lossy(bytes));
}

/// Regular files and links with what git knows of them. What is binary is told, and not carried.
fn files(top: &Path) -> Vec<String> {
    let find = "find . \\( -type f -o -type l \\) ! -name binary ! -name 'sp ace' \
                -printf '%p %y %l ' \\( -type f -perm -100 -printf 'x' -o -true \\) -printf '\\n' \
                \\( -type f -exec cat {} \\; -o -true \\)";
    let said = Command::new("sh").args(["-c", find]).current_dir(top).output().unwrap();
    assert!(said.status.success(), "{said:?}");
    // By names, whatever the order of a directory is.
    let text = String::from_utf8(said.stdout).unwrap();
    let mut all: Vec<String> =
        text.split("./").map(str::to_owned).filter(|text| !text.is_empty()).collect();
    all.sort();
    all
}

/// All pairs of points in both directions, as real git and as the project's own patches make it.
#[test]
fn git_apply_makes_one_point_of_any_other() {
    if Command::new("git").arg("--version").output().is_err() {
        return skipped("git", "there is no git here");
    }
    everyone(|place| {
        prepared(place);
        let mut points = Vec::new();
        for (number, deed) in DEEDS.iter().enumerate() {
            exec(place, deed);
            points.push((at(place), copy(place, &format!("tree-{number}"))));
        }
        for (from, tree) in &points {
            assert_eq!(diff(place, &[&format!("{from}..{from}")]), b"");
            for (to, wanted) in &points {
                let text = diff(place, &[&format!("{from}..{to}")]);
                let made = place.base.join("made");
                let copied = Command::new("cp").arg("-a").arg(tree).arg(&made).status();
                assert!(copied.unwrap().success());
                if text.split(|byte| *byte == b'\n').any(|line| line.starts_with(b"diff --git")) {
                    let mut git = Command::new("git");
                    git.args(["apply", "--whitespace=nowarn", "-"]).current_dir(&made);
                    feed(git.env("GIT_CEILING_DIRECTORIES", "/"), &text);
                }
                let shown = String::from_utf8_lossy(&text);
                assert_eq!(files(&made), files(wanted), "{from}..{to}: {shown}");
                fs::remove_dir_all(&made).unwrap();
            }
        }
    });
}

#[test]
fn what_a_directory_hid_is_listed_and_nothing_is_reached_through_links() {
    everyone(|place| {
        prepared(place);
        let secret = place.base.join("secret");
        fs::create_dir(&secret).unwrap();
        fs::write(secret.join("key"), "key").unwrap();
        std::os::unix::fs::symlink(&secret, place.workspace.join("d/out")).unwrap();
        exec(place, "rm -r d");
        exec(place, "mkdir d; echo mine >d/old");
        let all = ["d", "d/deep", "d/deep/er", "d/old", "d/out"].map(str::to_owned).to_vec();
        assert_eq!(lines(place, &["0..1", "--name-only"]), all);
        assert_eq!(lines(place, &["1..0", "--name-only"]), all);
        assert_eq!(lines(place, &["1..2", "--name-only"]), ["d", "d/old"]);
        assert_eq!(lines(place, &["0..2", "--name-only"]), all[1..]);
        assert_eq!(lines(place, &["0..1", "--name-only", "d/deep"]), all[1..3]);
        let text = String::from_utf8(diff(place, &["0..1"])).unwrap();
        assert!(text.contains("-e\n") && !text.contains("key\n"), "{text}");
        // What no point holds is as the workspace has it now.
        fs::write(place.workspace.join("d/deep/er"), "other\n").unwrap();
        let text = String::from_utf8(diff(place, &["0..1"])).unwrap();
        assert!(text.contains("-other\n") && !text.contains("-e\n"), "{text}");
    });
}

#[test]
fn points_are_named_by_numbers_labels_and_ends_and_paths_behind_them() {
    everyone(|place| {
        prepared(place);
        exec(place, "echo one >f");
        place.says(&["snapshot", "create", "s", "--label", "tests pass"], 0);
        exec(place, "echo two >f; echo new >3..7");
        assert_eq!(lines(place, &["1..3", "--name-only"]), ["3..7", "f"]);
        assert_eq!(lines(place, &["tests pass..3", "f", "--name-only"]), ["f"]);
        assert_eq!(lines(place, &["..1", "--name-only"]), ["f"]);
        // What is in no point yet is one from now on.
        let mut write = place.cofferdam(&["file", "write", "s", "by-file"]);
        assert!(write.stdin(Stdio::null()).status().unwrap().success());
        assert_eq!(lines(place, &["3..", "--name-only"]), ["by-file"]);
        assert_eq!(at(place), "4");
        assert_eq!(lines(place, &["tests pass..", "--name-only"]), ["3..7", "by-file", "f"]);
        assert_eq!(lines(place, &["./3..7", "--name-only"]), ["3..7"]);
        assert_eq!(lines(place, &["--name-only", "--", "3..7"]), ["3..7"]);
        assert_eq!(lines(place, &["2..4", "--name-only", "--", "3..7"]), ["3..7"]);
        assert_eq!(lines(place, &["1..3", "--stat", "f"]), ["modified  +1 -1  f"]);
        let told = place.says(&["diff", "s", "1..3", "--json"], 0).object();
        is_valid(place, "changes", &told);
        assert_eq!((&told["from"], &told["to"]), (&1.into(), &3.into()));
        assert_eq!(told["changes"][1]["standing"], "history");
        let plain = place.says(&["diff", "s", "--json"], 0).object();
        is_valid(place, "changes", &plain);
        assert_eq!(plain["from"], Value::Null);
    });
}

#[test]
fn a_point_that_is_not_there_not_kept_or_damaged_is_an_error() {
    everyone(|place| {
        prepared(place);
        exec(place, "echo one >f");
        place.says(&["snapshot", "create", "s"], 0);
        exec(place, "echo two >f");
        exec(place, "echo three >f");
        place.says(&["snapshot", "rm", "s", "2"], 0);
        let refused = |range: &str, why: &str| {
            for way in ["--name-only", "--stat", "--json"] {
                let said = place.says(&["diff", "s", range, way], 1);
                let all = [said.stderr.clone(), said.text()].concat();
                assert!(all.contains(why), "{range}: {said:?}");
            }
        };
        refused("2..3", "point 2 is not kept any more");
        refused("1..99", "there is no point 99");
        refused("nothing..1", "there is no snapshot");
        // The control: these are there.
        assert_eq!(lines(place, &["1..3", "--name-only"]), ["f"]);
        let kept = fs::read_dir(place.state.join("kept")).unwrap().next().unwrap().unwrap();
        let history = kept.path().join("history");
        let header = history.join("points/3.json");
        let good = fs::read(&header).unwrap();
        let mut bad: Value = serde_json::from_slice(&good).unwrap();
        bad["tree"] = Value::Null;
        bad["said"]["not_kept"] = "the disk was full".into();
        fs::write(&header, bad.to_string()).unwrap();
        refused("1..3", "point 3 was not kept: the disk was full");
        fs::write(&header, good).unwrap();
        fs::write(history.join("points/3"), "x").unwrap();
        refused("1..3", "the list of point 3 is damaged");
        assert_eq!(lines(place, &["1..4", "--name-only"]), ["f"], "the others are whole");
        place.says(&["create", "--name", "plain"], 0);
        let said = place.says(&["diff", "plain", "0..1"], 1);
        assert!(said.stderr.contains("not copy-on-write"), "{said:?}");
    });
}

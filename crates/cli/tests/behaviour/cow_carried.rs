//! Snapshots that go out as one file and come in again, elsewhere.

use crate::place::{Place, SOON, everyone, outcome};
use crate::schema::is_valid;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, UNIX_EPOCH};

/// Changes of every sort.
const CHANGES: &str = "echo one >f; chmod 750 f; rm gone; mkdir -p n/empty; echo x >n/x; ln n/x n/again; \
    rm -r d; mkdir d; echo d >d/new; ln -s /etc/passwd out; mkfifo pipe; \
    truncate -s 8M sparse; echo end >>sparse; chmod 1770 n; chmod 711 n/x; mkdir shut; echo s >shut/s; \
    chmod 0 shut/s; touch \"$(printf 'raw \\377\\376\\n\\303\\244')\"; touch -d @1234567890.987654321 f n/empty";
/// All that a command inside can see of it, but for the times of directories that nobody touched.
const LOOK: &str = "find . -mindepth 1 -printf '%P %y %m %n %l ' \\( ! -type d -printf '%s %T@' -o -true \\) \
    -printf '\\n' | sort; stat -c '%n %Y' n/empty shut 2>&1; find . -type f -perm -400 -exec md5sum {} + | sort; \
    test \"$(stat -c %b sparse)\" -lt 1000 && echo sparse; true";

fn prepared(place: &Place) {
    for (name, text) in [("f", "real\n"), ("gone", "g"), ("d/old", "o\n"), ("kept/k", "k\n")] {
        let path = place.write(name, text);
        let then = UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        File::open(path).unwrap().set_modified(then).unwrap();
    }
    place.says(&["create", "--cow", "--name", "s"], 0);
}

fn look(place: &Place) -> Vec<u8> {
    place.says(&["exec", "s", "--shell", LOOK], 0).stdout
}

fn kept(place: &Place) -> PathBuf {
    fs::read_dir(place.state.join("kept")).unwrap().next().unwrap().unwrap().path()
}

fn path_of(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// What is below a directory, with what tells whether somebody wrote to it.
fn all(top: &Path) -> Vec<(PathBuf, u64, i64, i64)> {
    let mut found = Vec::new();
    for one in fs::read_dir(top).unwrap() {
        let path = one.unwrap().path();
        let about = fs::symlink_metadata(&path).unwrap();
        if about.is_dir() {
            found.extend(all(&path));
        } else {
            found.push((path, about.ino(), about.mtime(), about.mtime_nsec()));
        }
    }
    found.sort();
    found
}

/// An export, and what the session showed.
type Carried = (Vec<u8>, Vec<u8>);

/// From the session of one user to that of another, over another copy of the workspace.
#[test]
fn a_snapshot_comes_in_elsewhere_as_it_went_out() {
    let all: Mutex<Vec<Carried>> = Mutex::new(Vec::new());
    everyone(|place| all.lock().unwrap().push(carried_out(place)));
    everyone(|place| {
        prepared(place);
        let first = look(place);
        for (number, (bytes, seen)) in all.lock().unwrap().iter().enumerate() {
            let label = format!("from-{number}");
            carried_in(place, bytes, &label);
            assert_eq!(look(place), first, "the session stands where it stood");
            place.says(&["snapshot", "restore", "s", &label], 0);
            let shown = String::from_utf8_lossy(&look(place)).into_owned();
            assert_eq!(shown, String::from_utf8_lossy(seen));
            assert!(shown.ends_with("sparse\n"), "{shown}");
            belongs_to_the_owner(place);
            // What came is a snapshot like any other.
            place.says(&["fork", &format!("s@{label}"), &format!("t{number}")], 0);
            let names = ["diff", "s", &format!("0..{label}"), "--name-only"];
            let names = place.says(&names, 0).text();
            assert!(names.contains("d/new\nd/old\n"), "{names}");
            place.says(&["undo", "s", "--to", "0"], 0);
            assert_eq!(look(place), first);
        }
        let history = place.says(&["history", "s"], 0).text();
        assert!(history.contains("snapshot \"from-0\", imported"), "{history}");
        let events = place.says(&["events", "s", "--json"], 0).text();
        assert!(events.contains("snapshot_imported"), "{events}");
    });
}

/// Exports all that a session can change, in every way.
fn carried_out(place: &Place) -> Carried {
    prepared(place);
    place.says(&["exec", "s", "--shell", &format!("echo mine >~/note; {CHANGES}")], 0);
    place.says(&["snapshot", "create", "s", "--label", "whole"], 0);
    let seen = look(place);
    let to = place.base.join("home/whole.snapshot");
    let words = ["snapshot", "export", "s", "whole", path_of(&to), "--json"];
    let told = place.says(&words, 0).object();
    is_valid(place, "snapshot-exported", &told);
    assert_eq!(
        (&told["set_id_left_out"], &told["manifest"]["label"]),
        (&0.into(), &"whole".into())
    );
    let about = fs::metadata(&to).unwrap();
    assert_eq!((about.mode() & 0o777, about.uid()), (0o600, place.uid()));
    let bytes = fs::read(&to).unwrap();
    for secret in ["mine", "COFFERDAM", "PATH="] {
        let is_in = bytes.windows(secret.len()).any(|part| part == secret.as_bytes());
        assert!(!is_in, "{secret} went out");
    }
    let refused = place.says(&words, 1);
    assert!(refused.text().contains("is there already"), "{refused:?}");
    assert_eq!(fs::read(&to).unwrap(), bytes);
    place.says(&["snapshot", "export", "s", "2", path_of(&to), "--replace", "-z"], 0);
    let stream = place.says(&["snapshot", "export", "s", "whole"], 0).stdout;
    assert_eq!(stream, bytes, "the same, wherever it goes");
    let beside = fs::read_dir(place.base.join("home")).unwrap().flatten();
    let is_export = |one: &fs::DirEntry| one.file_name().to_string_lossy().contains("snapshot");
    assert_eq!(beside.filter(is_export).count(), 1, "nothing is left beside it");
    (fs::read(&to).unwrap(), seen)
}

/// Imports it from a pipe.
fn carried_in(place: &Place, bytes: &[u8], label: &str) {
    let mut import = place.cofferdam(&["snapshot", "import", "s", "--label", label, "--json"]);
    import.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = import.spawn().unwrap();
    child.stdin.take().unwrap().write_all(bytes).unwrap();
    let said = child.wait_with_output().unwrap();
    let told: serde_json::Value = serde_json::from_slice(&said.stdout).unwrap();
    is_valid(place, "snapshot-imported", &told);
    assert_eq!((&told["same_path"], &told["same_directory"]), (&false.into(), &false.into()));
    let error = String::from_utf8(said.stderr).unwrap();
    assert!(error.contains("the snapshot lay on another workspace, /"), "{error}");
}

/// Nothing in the layer is anybody else's.
fn belongs_to_the_owner(place: &Place) {
    let mut find = Command::new("find");
    let found = find.arg(kept(place).join("cow/upper")).args(["-printf", "%U\n"]).output();
    let owners = String::from_utf8(found.unwrap().stdout).unwrap();
    let owner = fs::metadata(&place.workspace).unwrap().uid().to_string();
    assert!(owners.lines().count() > 9 && owners.lines().all(|uid| uid == owner), "{owners}");
}

#[test]
fn it_says_where_the_workspace_is_the_same() {
    everyone(|place| {
        prepared(place);
        place.says(&["exec", "s", "--shell", "echo one >f"], 0);
        let to = place.base.join("home/one");
        place.says(&["snapshot", "export", "s", "1", path_of(&to)], 0);
        let said = place.says(&["snapshot", "import", "s", path_of(&to)], 0);
        assert_eq!(said.text(), "2\n");
        assert!(said.stderr.contains("since the snapshot was begun"), "{said:?}");
        assert!(!said.stderr.contains("lay on"), "{said:?}");
        place.says(&["rm", "s"], 0);
        let aside = place.base.join("aside");
        fs::rename(&place.workspace, &aside).unwrap();
        fs::create_dir(&place.workspace).unwrap();
        place.give(&place.workspace);
        place.says(&["create", "--cow", "--name", "t"], 0);
        let said = place.says(&["snapshot", "import", "t", path_of(&to)], 0);
        assert!(said.stderr.contains("lay on another directory at /"), "{said:?}");
    });
}

#[test]
fn what_is_no_whole_export_is_refused_and_leaves_nothing() {
    everyone(|place| {
        prepared(place);
        place.says(&["exec", "s", "--shell", CHANGES], 0);
        let to = place.base.join("home/one");
        place.says(&["snapshot", "export", "s", "1", path_of(&to)], 0);
        let good = fs::read(&to).unwrap();
        let before = all(&kept(place).join("history"));
        let import = || place.says(&["snapshot", "import", "s", path_of(&to)], 1);
        let mut flipped = good.clone();
        let middle = flipped.len() - 200;
        flipped[middle] ^= 1;
        let longer = [&good[..], b"x"].concat();
        for (bytes, why) in [
            (&good[..good.len() - 1], "its end is missing"),
            (&good[..good.len() / 2], "its end is missing"),
            (&flipped, "damaged"),
            (&longer, "something follows its end"),
            (b"", "its end is missing"),
            (b"#!/bin/sh\necho not a snapshot\n", "no exported snapshot"),
            (&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3], "read the exported snapshot"),
            (&[0x1f, 0x8b, 9, 0, 0, 0, 0, 0, 0, 3, 1, 2], "read the exported snapshot"),
        ] {
            fs::write(&to, bytes).unwrap();
            let refused = import();
            assert!(refused.stderr.contains(why), "{why}: {refused:?}");
        }
        assert_eq!(all(&kept(place).join("history")), before);
        let refused = place.says(&["snapshot", "import", "s", path_of(&place.workspace)], 1);
        assert!(refused.stderr.contains("is a directory"), "{refused:?}");
        place.says(&["snapshot", "import", "s", path_of(&place.base.join("nothing"))], 1);
        place.says(&["snapshot", "import", "s", path_of(&to), "--label", "7"], 2);
        place.says(&["create", "--name", "plain"], 0);
        fs::write(&to, &good).unwrap();
        let refused = place.says(&["snapshot", "import", "plain", path_of(&to)], 1);
        assert!(refused.stderr.contains("not copy-on-write"), "{refused:?}");
        // The control: the whole file.
        assert_eq!(place.says(&["snapshot", "import", "s", path_of(&to)], 0).text(), "2\n");
    });
}

/// A disk that is full in the middle leaves no file, and whoever closes the pipe leaves no session stuck.
#[test]
fn an_export_that_cannot_be_written_leaves_nothing() {
    everyone(|place| {
        prepared(place);
        place.says(&["exec", "s", "--shell", "head -c 4M /dev/urandom >big"], 0);
        let nowhere = place.base.join("nothing/one");
        place.says(&["snapshot", "export", "s", "1", path_of(&nowhere)], 1);
        place.says(&["snapshot", "export", "s", "99"], 1);
        let line = format!("exec {} snapshot export s 1 >/dev/full", place.program());
        let said = outcome(place.host("sh").args(["-c", &line]), SOON);
        assert_eq!(said.code(), Some(1), "{said:?}");
        // Whatever goes out says where it did not find room, which is not where Cofferdam keeps things.
        for words in ["snapshot export s 1", "file export s", "file read s big", "diff s"] {
            let line = format!("exec {} {words} >/dev/full", place.program());
            let said = outcome(place.host("sh").args(["-c", &line]), SOON);
            for part in ["standard output", "No space left", "Make room where it goes"] {
                assert!(said.stderr.contains(part), "{words}: {said:?}");
            }
            assert!(!said.stderr.contains("COFFERDAM_HOME"), "{words}: {said:?}");
        }
        let line = format!("exec {} snapshot export s 1 | head -c 9", place.program());
        outcome(place.host("sh").args(["-c", &line]), SOON);
        let to = place.base.join("home/one");
        // LIMIT: of the size of files that this process may write, in blocks of 512 bytes or of 1 KiB.
        let line = format!(
            "ulimit -f 1000; trap '' XFSZ; exec {} snapshot export s 1 {}",
            place.program(),
            path_of(&to)
        );
        let said = outcome(place.host("sh").args(["-c", &line]), SOON);
        assert_eq!(said.code(), Some(1), "{said:?}");
        let left = fs::read_dir(place.base.join("home")).unwrap().flatten();
        assert_eq!(left.filter(|one| one.file_name().to_string_lossy().contains("one")).count(), 0);
        // The control.
        place.says(&["snapshot", "export", "s", "1", path_of(&to)], 0);
    });
}

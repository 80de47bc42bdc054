//! Files of a session, by the command.

use crate::place::{Place, SOON, everyone, outcome};
use crate::schema::is_valid;
use crate::sessions::phase;
use std::fs;
use std::os::unix::fs::symlink;

/// `file write` with this input.
fn write(place: &Place, words: &[&str], input: &[u8], code: i32) {
    let file = place.base.join("input");
    fs::write(&file, input).unwrap();
    let words: Vec<&str> = [&["file", "write", "s"], words].concat();
    let said = outcome(place.cofferdam(&words).stdin(fs::File::open(&file).unwrap()), SOON);
    assert_eq!(said.code(), Some(code), "{words:?}: {said:?}");
}

#[test]
fn a_file_is_written_and_read_byte_for_byte() {
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        let bytes: Vec<u8> = (0..1_000_000_u32).map(|n| (n % 251) as u8).collect();
        write(place, &["deep/er/file"], &bytes, 0);
        assert!(fs::read(place.workspace.join("deep/er/file")).unwrap() == bytes);
        assert!(place.says(&["file", "read", "s", "/workspace/deep/er/file"], 0).stdout == bytes);
        let part = ["file", "read", "s", "deep/er/file", "--offset", "250", "--length", "3"];
        assert_eq!(place.says(&part, 0).stdout, [250, 0, 1]);
        let pipe = format!("{} file read s deep/er/file | head -c 3; wait", place.program());
        let said = outcome(place.host("/bin/sh").args(["-c", &pipe]), SOON);
        assert_eq!((said.stdout.as_slice(), said.stderr.as_str()), (&[0, 1, 2][..], ""));
        let inside = ["exec", "s", "--shell", "stat -c %s deep/er/file; id -u >mine"];
        assert_eq!(place.says(&inside, 0).text(), "1000000\n");
        // Whoever wrote it, it belongs to whom the workspace belongs to.
        write(place, &["ours"], b"", 0);
        let owner = |name: &str| {
            use std::os::unix::fs::MetadataExt;
            fs::metadata(place.workspace.join(name)).unwrap().uid()
        };
        assert_eq!(owner("ours"), owner("mine"));
    });
}

#[test]
fn files_are_changed_only_as_far_as_that_was_said() {
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        write(place, &["t/a", "--if-exists"], b"no", 1);
        write(place, &["t/a", "--if-missing", "--mode", "755"], b"one", 0);
        write(place, &["t/a", "--if-missing"], b"two", 1);
        let read = place.says(&["file", "read", "s", "t/a", "--json"], 0).object();
        assert_eq!((read["text"].as_str(), read["mode"].as_str()), (Some("one"), Some("755")));
        let hash = read["sha256"].as_str().unwrap();
        write(place, &["t/a", "--if-match", hash], b"three", 0);
        write(place, &["t/a", "--if-match", hash], b"four", 1);
        for bad in ["", "zz", &hash[1..], &format!("{hash}0")] {
            write(place, &["t/a", "--if-match", bad], b"five", 2);
        }
        let deep = place.says(&["file", "list", "s", "--depth", "129"], 2).stderr;
        assert!(deep.contains("from 1 to 128"), "{deep}");
        assert_eq!(place.says(&["file", "read", "s", "t/a"], 0).text(), "three");
        place.says(&["file", "cp", "s", "t/a", "t/b"], 0);
        place.says(&["file", "mv", "s", "t/a", "t/b"], 1);
        place.says(&["file", "mv", "s", "t/a", "t/b", "--replace"], 0);
        place.says(&["file", "chmod", "s", "600", "t/b"], 0);
        place.says(&["file", "chmod", "s", "4755", "t/b"], 2);
        place.says(&["file", "mkdir", "s", "t/d/e"], 0);
        let list = place.says(&["file", "list", "s", "t", "--depth", "2"], 0).text();
        let names: Vec<&str> = list.lines().map(|l| l.rsplit(' ').next().unwrap()).collect();
        assert_eq!(names, ["b", "d", "d/e"], "{list}");
        // What is not text is written as everywhere for people.
        place.says(&["exec", "s", "--shell", ">\"$(printf 't/d/z\\377')\""], 0);
        let list = place.says(&["file", "list", "s", "t/d"], 0).text();
        assert!(list.ends_with(" \"z\\377\"\n"), "{list}");
        let listed = place.says(&["file", "list", "s", "t/d", "--json"], 0).object();
        assert_eq!(listed["entries"][1]["path_base64"], "ev8=");
        place.says(&["file", "rm", "s", "t"], 1);
        place.says(&["file", "rm", "s", "t", "-r"], 0);
        place.says(&["file", "rm", "s", "t", "-r"], 1);
        assert!(!place.workspace.join("t").exists());
    });
}

#[test]
fn a_directory_is_copied_and_what_is_skipped_is_named() {
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        let made = "mkdir -p t/d; echo x >t/d/f; chmod 750 t/d; ln -s /etc t/out; mkfifo t/pipe";
        place.says(&["exec", "s", "--shell", made], 0);
        let said = place.says(&["file", "cp", "-r", "s", "t", "copy"], 0);
        assert!(said.stderr.contains("\"pipe\" was skipped, being a fifo"), "{}", said.stderr);
        let seen =
            "cat copy/d/f; readlink copy/out; stat -c %a copy/d; ls -A copy; ls -A | grep ^.cof";
        let seen = place.says(&["exec", "s", "--shell", &format!("{seen} || true")], 0).text();
        assert_eq!(seen, "x\n/etc\n750\nd\nout\n");
        place.says(&["file", "cp", "-r", "s", "t", "copy"], 1);
        place.says(&["file", "cp", "-r", "s", "t", "t/d/again"], 2);
        place.says(&["file", "cp", "-r", "--replace", "s", "t", "copy"], 2);
        place.says(&["file", "cp", "s", "t", "other"], 1);
    });
}

#[test]
fn a_slash_behind_a_link_means_the_directory_that_it_leads_to() {
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        let made = "mkdir -p d/e; echo x >d/f; echo y >file; ln -s d link; ln -s file plain; \
                    ln -s none dangling; ln -s /etc out; ln -s d/e deep";
        place.says(&["exec", "s", "--shell", made], 0);
        let kind = |path: &str| {
            place.says(&["file", "stat", "s", path, "--json"], 0).object()["kind"].clone()
        };
        // The control: without one it is the link.
        assert_eq!((kind("link"), kind("d/")), ("link".into(), "directory".into()));
        for path in ["link/", "link/.", "./link//", "/workspace/link/", "link/./"] {
            assert_eq!(kind(path), "directory", "{path}");
        }
        place.says(&["file", "chmod", "s", "700", "link/"], 0);
        place.says(&["file", "mkdir", "s", "link/"], 0);
        place.says(&["file", "mkdir", "s", "fresh/"], 0);
        place.says(&["file", "mv", "s", "fresh/", "moved/"], 0);
        let refused = |words: &[&str], kind: &str| {
            let said = place.says(&[&["file"], words, &["--json"]].concat(), 1).object();
            assert_eq!(said["error"]["kind"], kind, "{words:?}: {said}");
        };
        for path in ["file/", "file/.", "plain/"] {
            refused(&["stat", "s", path], "not_a_file");
            refused(&["read", "s", path], "not_a_file");
            refused(&["rm", "s", path], "not_a_file");
            refused(&["mv", "s", path, "elsewhere"], "not_a_file");
        }
        // A link itself is moved and removed without a slash alone.
        for words in [&["rm", "s", "link/", "-r"][..], &["mv", "s", "link/.", "elsewhere"]] {
            refused(words, "not_a_file");
            let said = place.says(&[&["file"], words].concat(), 1).stderr;
            assert!(said.contains("leave the slash out"), "{said}");
        }
        refused(&["mv", "s", "file", "other/"], "not_a_file");
        refused(&["cp", "s", "file", "other/"], "not_a_file");
        write(place, &["other/"], b"no", 1);
        write(place, &["link/"], b"no", 1);
        refused(&["stat", "s", "dangling/"], "not_found");
        refused(&["stat", "s", "out/"], "path_escape");
        refused(&["chmod", "s", "700", "out/"], "path_escape");
        refused(&["mkdir", "s", "out/"], "path_escape");
        let left = "ls -F | grep -v =; cat d/f; stat -c %a d";
        let left = place.says(&["exec", "s", "--shell", left], 0).text();
        assert_eq!(left, "d/\ndangling@\ndeep@\nfile\nlink@\nmoved/\nout@\nplain@\nx\n700\n");
        place.says(&["file", "rm", "s", "link"], 0);
        place.says(&["file", "rm", "s", "d/", "-r"], 0);
        assert!(!place.workspace.join("d").exists());
    });
}

#[test]
fn a_copy_of_a_sparse_file_has_its_bytes_and_its_holes() {
    use std::os::unix::fs::MetadataExt;
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        let made = "truncate -s 1G sparse; printf begin | dd of=sparse conv=notrunc status=none; \
                    printf middle | dd of=sparse bs=1M seek=500 conv=notrunc status=none; \
                    truncate -s 3M holes; chmod 640 sparse";
        place.says(&["exec", "s", "--shell", made], 0);
        for (name, size) in [("sparse", 1 << 30), ("holes", 3 << 20)] {
            let copy = format!("{name}.copy");
            let said = place.says(&["file", "cp", "s", name, &copy, "--json"], 0).object();
            let [from, to] =
                [name, &copy].map(|name| fs::metadata(place.workspace.join(name)).unwrap());
            assert_eq!((to.len(), said["bytes"].as_u64()), (size, Some(size)), "{said}");
            // In units of 512 bytes: a hole takes no room in the copy, but for what is beside data.
            assert!(to.blocks() < 4096, "{}", to.blocks());
            assert!(from.blocks() < 4096, "the control: the source has holes itself");
            let sum = format!("cmp {name} {copy} && sha256sum {copy} && stat -c %a {copy}");
            let seen = place.says(&["exec", "s", "--shell", &sum], 0).text();
            assert!(seen.starts_with(said["sha256"].as_str().unwrap()), "{seen} {said}");
            assert!(name == "holes" || seen.ends_with("640\n"), "{seen}");
        }
        let middle = ["file", "read", "s", "sparse.copy", "--offset", "524288000", "--length", "6"];
        assert_eq!(place.says(&middle, 0).text(), "middle");
    });
}

#[test]
fn placeholders_are_not_listed_and_what_commands_make_is() {
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        let bind = "import socket; socket.socket(socket.AF_UNIX).bind('own')";
        let inside = format!("python3 -c \"{bind}\"; [ -S .envrc ]");
        // The control: it is there for commands.
        place.says(&["exec", "s", "--shell", &inside], 0);
        let list = place.says(&["file", "list", "s", "--json"], 0).object();
        let names: Vec<&str> = list["entries"]
            .as_array()
            .unwrap()
            .iter()
            .map(|e| e["path"].as_str().unwrap())
            .collect();
        assert!(names.contains(&"own") && !names.contains(&".envrc"), "{names:?}");
        assert_eq!(
            place.says(&["file", "stat", "s", ".envrc", "--json"], 0).object()["kind"],
            "socket"
        );
    });
}

#[test]
fn what_lies_outside_is_refused_by_its_own_kind_of_error() {
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        symlink("/etc/hostname", place.workspace.join("out")).unwrap();
        place.says(&["file", "mkdir", "s", "a"], 0);
        for path in ["../x", "/etc/passwd", "out", "a/../../x"] {
            for verb in ["read", "list", "stat", "mkdir", "rm"] {
                if matches!((verb, path), ("stat" | "rm", "out")) {
                    continue;
                }
                let said = place.says(&["file", verb, "s", path, "--json"], 1).object();
                let kind = said["error"]["kind"].as_str();
                let fair = kind == Some("path_escape") || (verb, path) == ("mkdir", "out");
                assert!(fair, "{verb} {path}: {said}");
            }
        }
        let missing = place.says(&["file", "read", "s", "none"], 1);
        assert!(missing.stderr.contains("failed to work on the files"), "{}", missing.stderr);
        // The control: the same link is described and removed as what it is.
        let link = place.says(&["file", "stat", "s", "out", "--json"], 0).object();
        assert_eq!(
            (link["kind"].as_str(), link["target"].as_str()),
            (Some("link"), Some("/etc/hostname"))
        );
        place.says(&["file", "rm", "s", "out"], 0);
    });
}

#[test]
fn a_session_that_sleeps_wakes_for_its_files() {
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        write(place, &["a"], b"one", 0);
        place.says(&["pause", "s"], 0);
        assert_eq!(place.says(&["file", "read", "s", "a"], 0).text(), "one");
        assert_eq!(phase(place, "s"), "running");
    });
}

#[test]
fn every_object_about_files_is_what_its_schema_says() {
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        write(place, &["a"], b"\xff\xfe", 0);
        let valid = |name: &str, words: &[&str]| {
            let words: Vec<&str> = [&["file"], words, &["--json"]].concat();
            is_valid(place, name, &place.says(&words, 0).object());
        };
        valid("file-content", &["read", "s", "a"]);
        valid("file-entry", &["stat", "s", "a"]);
        valid("file-list", &["list", "s", "--limit", "1"]);
        valid("file-done", &["append", "s", "b"]);
        valid("file-done", &["write", "s", "b"]);
        valid("file-done", &["mkdir", "s", "c"]);
        valid("file-done", &["cp", "s", "b", "d"]);
        valid("file-copied", &["cp", "-r", "s", "c", "tree"]);
        valid("file-done", &["mv", "s", "d", "e"]);
        valid("file-done", &["chmod", "s", "600", "e"]);
        valid("file-done", &["rm", "s", "e"]);
    });
}

#[test]
fn what_cannot_be_read_so_is_told_with_the_flags_that_help() {
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        place.write("zeros", "\0\0");
        fs::File::create(place.write("large", "")).unwrap().set_len(65 << 20).unwrap();
        for (more, flags) in [
            (&["zeros", "--window"][..], &["--lines", "--window", "--offset", "--length"][..]),
            (&["zeros", "--lines", "1:2"], &["--lines", "--offset", "--length"]),
            (&["large", "--window"], &["--offset", "--length", "cofferdam file grep"]),
            (&["large", "--json"], &["--offset", "--length", "--json"]),
        ] {
            let said = place.says(&[&["file", "read", "s"], more].concat(), 1);
            let told = format!("{}{}", said.stderr, said.text());
            let (_, hint) = told.split_once("hint").unwrap();
            assert!(flags.iter().all(|flag| hint.contains(flag)), "{more:?}: {told}");
        }
        // The control: the flags that are named do help.
        assert_eq!(place.says(&["file", "read", "s", "zeros"], 0).stdout, [0, 0]);
        let part = ["file", "read", "s", "large", "--json", "--offset", "5", "--length", "2"];
        assert_eq!(place.says(&part, 0).object()["text"], "\0\0");
    });
}

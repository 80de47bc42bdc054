//! Searches in the files of a session, and several files at once, by the command.

use crate::place::{Place, everyone};
use crate::schema::is_valid;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

/// A session with these files.
fn with_files(place: &Place, files: &[(&str, &[u8])]) {
    for (path, bytes) in files {
        let path = place.workspace.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    place.says(&["create", "--name", "s"], 0);
}

const TREE: [(&str, &[u8]); 6] = [
    (".gitignore", b"/out/\n"),
    ("a.rs", b"fn main() {\n    needle();\n}\n"),
    ("bin", b"needle\0"),
    ("out/b.rs", b"needle\n"),
    ("src/.hidden.rs", b"needle\n"),
    ("src/c.rs", b"// Needle\n// -x\n"),
];

#[test]
fn names_and_lines_are_found() {
    everyone(|place| {
        with_files(place, &TREE);
        symlink("/etc", place.workspace.join("etc")).unwrap();
        let says = |words: &[&str]| place.says(&[&["file"], words].concat(), 0).text();
        assert_eq!(says(&["glob", "s", "**/*.rs"]), "a.rs\nsrc/c.rs\n");
        assert_eq!(
            says(&["glob", "s", "*.rs", "--in", "src", "--hidden"]),
            "src/.hidden.rs\nsrc/c.rs\n"
        );
        assert_eq!(says(&["glob", "s", "*", "--kind", "link,directory"]), "etc\nsrc\n");
        let found = "a.rs:2:    needle();\nbin: binary file matches\n";
        assert_eq!(says(&["grep", "s", "needle"]), found);
        assert_eq!(says(&["grep", "s", "needle", "out", "--no-ignore"]), "out/b.rs:1:needle\n");
        assert_eq!(says(&["grep", "s", "-il", "needle"]), "a.rs\nbin\nsrc/c.rs\n");
        assert_eq!(says(&["grep", "s", "-c", "e", "a.rs"]), "a.rs:1\n");
        let around = "a.rs-1-fn main() {\na.rs:2:    needle();\na.rs-3-}\n";
        assert_eq!(says(&["grep", "s", "-C1", "needle", "--include", "*.rs"]), around);
        assert_eq!(says(&["grep", "s", "-e", "-x", "src"]), "src/c.rs:2:// -x\n");
        assert_eq!(says(&["grep", "s", "nothing like it"]), "");
        place.says(&["file", "grep", "s", "("], 2);
        place.says(&["file", "grep", "s"], 2);
        place.says(&["file", "grep", "s", "x", "../.."], 1);
        let error = place.says(&["file", "grep", "s", "root", "etc", "--json"], 1).object();
        assert_eq!(error["error"]["kind"], "path_escape");
    });
}

#[test]
fn several_files_come_at_once_and_one_that_cannot_be_read_stops_no_other() {
    everyone(|place| {
        with_files(place, &TREE);
        let words = ["file", "read-many", "s", "a.rs", "none", "src", "src/c.rs"];
        let said = place.says(&words, 1);
        let expected =
            "==> a.rs <==\nfn main() {\n    needle();\n}\n==> src/c.rs <==\n// Needle\n// -x\n";
        assert_eq!(said.text(), expected);
        assert!(
            said.stderr.contains("\"none\"") && said.stderr.contains("\"src\""),
            "{}",
            said.stderr
        );
        let object = place.says(&[&words[..], &["--json"]].concat(), 1).object();
        let kinds: Vec<Option<&str>> = object["files"]
            .as_array()
            .unwrap()
            .iter()
            .map(|file| file["error"]["kind"].as_str())
            .collect();
        assert_eq!(kinds, [None, Some("not_found"), Some("not_a_file"), None]);
        let small = ["file", "read-many", "s", "a.rs", "src/c.rs", "--max-bytes", "20", "--json"];
        let object = place.says(&small, 1).object();
        assert_eq!(object["files"][0]["error"]["kind"], "too_large");
        assert_eq!(object["files"][1]["content"]["text"], "// Needle\n// -x\n");
        place.says(&["file", "read-many", "s", "a.rs", "src/c.rs"], 0);
    });
}

#[test]
fn what_was_left_out_is_said_and_what_was_found_cannot_steer_a_terminal() {
    everyone(|place| {
        let odd = "x\n\u{1b}[2J";
        with_files(place, &[(odd, b"needle \x1b[31m\xff\n"), ("y", b"needle\nneedle\n")]);
        let bad = place.workspace.join(OsStr::from_bytes(b"z\xff"));
        fs::write(bad, "needle").unwrap();
        let said = place.says(&["file", "grep", "s", "needle", "-m1"], 0);
        assert!(said.text().starts_with("x\\n\\u{1b}[2J:1:needle"), "{}", said.text());
        assert!(said.stderr.contains("1 file has more matches than are told"), "{}", said.stderr);
        let said = place.says(&["file", "grep", "s", "needle", "--limit", "1"], 0);
        assert!(
            said.stderr.contains("at least 2 more names or files were not told"),
            "{}",
            said.stderr
        );
        let command = format!("{} file grep s needle", place.program());
        let script = ["-qec", &command, "/dev/null"];
        let shown =
            crate::place::outcome(place.host("/usr/bin/script").args(script), crate::place::SOON);
        let text = String::from_utf8_lossy(&shown.stdout).into_owned();
        assert!(text.contains("needle \\u{1b}[31m") && !text.contains('\u{1b}'), "{text:?}");
        // The control: bytes for a program are as they are.
        let raw = place.says(&["file", "grep", "s", "needle"], 0).stdout;
        assert!(raw.windows(6).any(|part| part == b"\x1b[31m\xff"));
        let object = place.says(&["file", "grep", "s", "needle", "--json"], 0).object();
        assert_eq!(object["files"][0]["path"], odd);
        assert_eq!(object["files"][2]["path_base64"], "ev8=");
    });
}

#[test]
fn every_object_about_searches_is_what_its_schema_says() {
    everyone(|place| {
        with_files(place, &TREE);
        let valid = |name: &str, words: &[&str], code| {
            let words: Vec<&str> = [&["file"], words, &["--json"]].concat();
            is_valid(place, name, &place.says(&words, code).object());
        };
        valid("file-contents", &["read-many", "s", "a.rs", "none", "bin"], 1);
        valid("file-names", &["glob", "s", "**", "--limit", "1"], 0);
        valid("file-matches", &["grep", "s", "e", "-C1", "--limit", "1"], 0);
    });
}

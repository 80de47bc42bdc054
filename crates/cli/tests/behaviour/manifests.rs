//! Sessions that are made with a manifest, by the command.

use crate::place::{Place, SOON, everyone, outcome};
use crate::schema::is_valid;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

fn manifest(place: &Place, name: &str, text: &str) -> String {
    let file = place.base.join(name);
    fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

/// What is on the host beside the manifest.
fn lay_out(place: &Place) {
    let seeds = place.base.join("seeds");
    fs::create_dir_all(seeds.join("deep/er")).unwrap();
    fs::write(seeds.join("run.sh"), "#!/bin/sh\necho ran\n").unwrap();
    fs::set_permissions(seeds.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(seeds.join("deep/er/data"), [0xff; 300_000]).unwrap();
    symlink("deep/er", seeds.join("short")).unwrap();
}

const ALL: &str = r#"
version = 1

[[entries]]
type = "file"
path = "src/main.py"
text = "print(6 * 7)\n"
mode = "750"

[[entries]]
type = "file"
path = "bytes"
base64 = "AP8="

[[entries]]
type = "file"
path = "bin/run"
from = "seeds/run.sh"

[[entries]]
type = "directory"
path = "empty/dir"

[[entries]]
type = "link"
path = "main.py"
target = "src/main.py"

[[entries]]
type = "copy"
path = "copied"
from = "seeds"
"#;

#[test]
fn a_workspace_holds_what_its_manifest_says() {
    everyone(|place| {
        lay_out(place);
        let file = manifest(place, "m.toml", ALL);
        let made = ["create", "--name", "s", "--manifest", &file, "--json", "--init", "bin/run"];
        let session = place.says(&made, 0).object();
        is_valid(place, "session", &session);
        assert_eq!(session["manifest"].as_str(), Some("done"));
        let said = place.says(&["exec", "s", "--", "python3", "main.py"], 0);
        assert_eq!(said.text(), "42\n");
        let read = |name: &str| fs::read(place.workspace.join(name)).unwrap();
        let mode = |name: &str| fs::metadata(place.workspace.join(name)).unwrap().mode() & 0o777;
        assert_eq!(read("bytes"), [0, 0xff]);
        assert_eq!(read("copied/short/data"), [0xff; 300_000]);
        assert!(place.workspace.join("empty/dir").is_dir());
        assert_eq!((mode("src/main.py"), mode("bin/run"), mode("bytes")), (0o750, 0o755, 0o644));
        // The same again is what there is; in a new session too.
        place.says(&["ensure", "s", "--manifest", &file, "--init", "bin/run"], 0);
        place.says(&["rm", "s"], 0);
        place.says(&["create", "--name", "t", "--manifest", &file], 0);
        let other = manifest(place, "other.json", r#"{"version": 1, "entries": []}"#);
        place.says(&["ensure", "t", "--manifest", &other], 1);
    });
}

fn is_refused(place: &Place, text: &str, code: i32, word: &str) {
    let file = manifest(place, "bad.toml", &format!("version = 1\n{text}"));
    let said = place.says(&["create", "--name", "s", "--manifest", &file], code);
    assert!(said.stderr.contains(word), "{text}: {said:?}");
    if code == 2 {
        let told = format!("failed to make the session: the manifest {file} cannot be used: ");
        assert!(said.stderr.contains(&told), "{text}: {said:?}");
    }
    let left = place.says(&["ls", "--json"], 0).object();
    assert_eq!(left["sessions"].as_array().map(Vec::len), Some(0), "{text}: {left}");
}

#[test]
fn a_manifest_that_cannot_be_brought_leaves_no_session_and_no_file() {
    everyone(|place| {
        lay_out(place);
        place.write("taken", "mine\n");
        place.write(".envrc", "mine\n");
        let entry = |kind: &str, path: &str, more: &str| {
            format!("[[entries]]\ntype = \"{kind}\"\npath = \"{path}\"\n{more}\n")
        };
        let fine = entry("file", "new/fine", "text = \"x\"");
        let with = |bad: String| format!("{fine}{bad}");
        is_refused(place, &with(entry("file", "taken", "text = \"theirs\"")), 1, "taken");
        is_refused(place, &with(entry("file", "taken/below", "text = \"x\"")), 1, "taken");
        is_refused(place, &with(entry("file", ".envrc", "text = \"theirs\"")), 1, ".envrc");
        is_refused(place, &with(entry("file", ".mcp.json", "text = \"{}\"")), 1, "protected");
        is_refused(place, &with(entry("file", "../out", "text = \"x\"")), 1, "..");
        is_refused(place, &with(entry("link", "l", "target = \"../../etc\"")), 1, "lead out");
        is_refused(place, &with(entry("file", "f", "from = \"none\"")), 1, "none");
        is_refused(place, &with(entry("file", "f", "from = \"seeds\"")), 2, "no regular file");
        is_refused(place, &with(fine.clone()), 2, "said twice");
        symlink("/etc", place.base.join("seeds/out")).unwrap();
        is_refused(place, &with(entry("copy", "c", "from = \"seeds\"")), 1, "absolute");
        let left: Vec<_> = fs::read_dir(&place.workspace)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_file() || path.is_dir())
            .filter(|path| fs::metadata(path).unwrap().len() > 0)
            .collect();
        assert_eq!(left.len(), 2, "{left:?}");
        assert_eq!(fs::read_to_string(place.workspace.join("taken")).unwrap(), "mine\n");
        // The control.
        let file = manifest(place, "good.toml", &format!("version = 1\n{fine}"));
        place.says(&["create", "--name", "s", "--manifest", &file], 0);
        assert!(Path::new(&place.workspace).join("new/fine").exists());
    });
}

/// A command may put a link where a manifest names a directory, also of another session.
#[test]
fn what_a_manifest_names_is_not_followed_through_a_link_that_a_command_planted() {
    everyone(|place| {
        let make = "mkdir -p d/data ../private/data ../other && echo ok >d/data/diary && \
                    echo private >../private/data/diary";
        let made = outcome(place.host("sh").args(["-c", make]), SOON);
        assert!(made.status.success(), "{made:?}");
        let kinds = [("copy", "d/data"), ("file", "d/data/diary"), ("mount", "d/data")];
        let file = |kind: &str, from: &str| {
            let entry = format!("type = \"{kind}\"\npath = \"got\"\nfrom = \"{from}\"");
            place.write("m.toml", &format!("version = 1\n[[entries]]\n{entry}\n"));
            place.workspace.join("m.toml").to_str().unwrap().to_owned()
        };
        let other = place.base.join("other");
        let create = |kind: &str, from: &str| {
            let file = file(kind, from);
            let workspace = other.to_str().unwrap();
            place.say(&["create", "--name", "s", "--workspace", workspace, "--manifest", &file])
        };
        for (kind, from) in kinds {
            let said = create(kind, from);
            assert_eq!(said.code(), Some(0), "the control: {kind} {said:?}");
            let text = place.says(&["exec", "s", "--shell", "cat got 2>/dev/null || cat got/*"], 0);
            assert_eq!(text.text(), "ok\n", "the control: {kind}");
            place.says(&["exec", "s", "--shell", "rm -r got 2>/dev/null; true"], 0);
            place.says(&["rm", "s"], 0);
        }
        let planted = place.run(&["--shell", "mv d e && ln -s ../private d"]);
        assert_eq!(planted.code(), Some(0), "{planted:?}");
        for (kind, from) in kinds {
            let said = create(kind, from);
            assert!(!said.status.success(), "{kind} {said:?}");
            assert!(said.stderr.contains("which an earlier command in a sandbox"), "{said:?}");
        }
        assert_eq!(fs::read_dir(&other).unwrap().count(), 0);
    });
}

//! Sessions of which a path leads elsewhere by the time they start again.

use crate::place::{Place, everyone};
use std::fs;
use std::os::unix::fs::symlink;

const WRITES: &str = "cat doc; echo in >new";

/// A directory of the person's beside the workspace, which no sandbox here is shown.
fn private(place: &Place) {
    let private = place.base.join("private");
    fs::create_dir(&private).unwrap();
    fs::write(private.join("doc"), "theirs\n").unwrap();
    place.give(&private);
    place.give(&private.join("doc"));
}

/// A command in a sandbox of the directory above puts a link in the place of this one.
fn plant(place: &Place, name: &str) {
    let script = format!("mv {name} away && ln -s {} {name}", place.base.join("private").display());
    let said = place.run(&["--shell", &script]);
    assert_eq!(said.code(), Some(0), "{said:?}");
}

fn put_back(place: &Place, name: &str) {
    let at = |name: &str| place.workspace.join(name);
    fs::remove_file(at(name)).unwrap();
    fs::rename(at("away"), at(name)).unwrap();
}

fn is_refused(place: &Place, script: &str, word: &str) {
    let said = place.say(&["exec", "s", "--shell", script]);
    assert_ne!(said.code(), Some(0), "as {}: {said:?}", place.uid());
    assert!(said.stderr.contains(word) && !said.text().contains("theirs"), "{said:?}");
    assert!(!place.base.join("private/new").exists());
}

#[test]
fn a_session_that_starts_again_follows_no_link_to_another_workspace() {
    everyone(|place| {
        private(place);
        place.write("part/doc", "mine\n");
        for options in [&[][..], &["--cow"]] {
            let create = ["create", "--name", "s", "-w", "part"];
            place.says(&[&create, options].concat(), 0);
            place.says(&["stop", "s"], 0);
            plant(place, "part");
            is_refused(place, WRITES, "by now, through a symbolic link");
            // Controls: one whose directory is there again, and the same by a link of the caller's own.
            put_back(place, "part");
            assert_eq!(place.says(&["exec", "s", "--shell", WRITES], 0).text(), "mine\n");
            place.says(&["rm", "s"], 0);
        }
        symlink("part", place.workspace.join("beside")).unwrap();
        place.says(&["create", "--name", "s", "-w", "beside"], 0);
        place.says(&["stop", "s"], 0);
        fs::remove_file(place.workspace.join("beside")).unwrap();
        assert_eq!(place.says(&["exec", "s", "--", "cat", "doc"], 0).text(), "mine\n");
    });
}

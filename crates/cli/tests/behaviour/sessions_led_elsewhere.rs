//! Sessions of which a path leads elsewhere by the time they start again.

use crate::place::{Place, everyone};
use std::fs;
use std::os::unix::fs::symlink;

const WRITES: &str = "cat doc; echo in >new";

/// A directory of the person's beside the workspace, which no sandbox here is shown.
fn private(place: &Place) -> String {
    let private = place.base.join("private");
    fs::create_dir(&private).unwrap();
    fs::write(private.join("doc"), "theirs\n").unwrap();
    place.give(&private);
    place.give(&private.join("doc"));
    private.to_str().unwrap().to_owned()
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

#[test]
fn a_session_that_starts_again_is_shown_what_was_listed_when_it_was_made() {
    everyone(|place| {
        let private = private(place);
        place.write("part/doc", "mine\n");
        place.write("own/file", "x\n");
        let part = place.workspace.join("part");
        let part = part.to_str().unwrap();
        let all = format!("cat {private}/doc; echo in >{private}/new; cat {part}/doc");
        for list in ["--read", "--write", "--hide"] {
            place.says(&["create", "--name", "s", "-w", "own", list, part], 0);
            place.says(&["stop", "s"], 0);
            plant(place, "part");
            let word = format!("{list} {part} leads to {private} by now");
            is_refused(place, &all, &word);
            put_back(place, "part");
            place.says(&["exec", "s", "--", "true"], 0);
            place.says(&["rm", "s"], 0);
        }
        // Controls: what was a link when the session was made, and another session by what it is now.
        let way = place.base.join("way");
        symlink(part, &way).unwrap();
        let way = way.to_str().unwrap();
        let read = format!("cat {part}/doc");
        let create = ["create", "--name", "s", "-w", "own", "--read", way];
        place.says(&create, 0);
        place.says(&["stop", "s"], 0);
        assert_eq!(place.says(&["exec", "s", "--shell", &read], 0).text(), "mine\n");
        place.says(&["stop", "s"], 0);
        fs::remove_file(way).unwrap();
        symlink(&private, way).unwrap();
        is_refused(place, &all, "by now, and not to");
        place.says(&["rm", "s"], 0);
        place.says(&create, 0);
        let read = format!("cat {private}/doc");
        assert_eq!(place.says(&["exec", "s", "--shell", &read], 0).text(), "theirs\n");
    });
}

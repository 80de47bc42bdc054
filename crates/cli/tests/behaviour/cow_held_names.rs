//! Names that a sandbox in place holds by sockets, in the copy-on-write sandboxes of the same workspace.

use crate::cow::every_tier;
use crate::place::{Place, everyone};
use std::fs;
use std::os::unix::fs::FileTypeExt;

/// A workspace with a repository in it, in which a session in place holds names, which are told.
fn held(place: &Place) -> [&'static str; 3] {
    for (name, text) in [("HEAD", "ref: refs/heads/main\n"), ("config", ""), ("objects/x", "")] {
        place.write(&format!("sub/.git/{name}"), text);
    }
    place.write("sub/.git/refs/x", "");
    place.write("a", "a\n");
    place.says(&["create", "--name", "a"], 0);
    let names = [".envrc", ".vscode", "sub/.envrc"];
    for name in names {
        assert!(is_socket(place, name), "the control: {name} is held");
    }
    names
}

fn is_socket(place: &Place, name: &str) -> bool {
    let found = fs::symlink_metadata(place.workspace.join(name));
    found.is_ok_and(|found| found.file_type().is_socket())
}

/// What a copy-on-write session changed.
fn changes(place: &Place, session: &str) -> Vec<String> {
    let told = place.says(&["diff", session, "--json"], 0).object();
    let line = |change: &serde_json::Value| {
        format!("{} {}", change["kind"].as_str().unwrap(), change["path"].as_str().unwrap())
    };
    told["changes"].as_array().unwrap().iter().map(line).collect()
}

/// Makes of what is held whatever the session likes.
const MAKES: &str = "for name in .envrc .vscode sub/.envrc; do test ! -e $name -a ! -S $name || exit 7; done; \
    stat -c %a:%Y sub; mkdir .vscode && echo x >.vscode/f && echo y >.envrc && echo z >sub/.envrc && \
    cat .vscode/f .envrc sub/.envrc";

#[test]
fn names_that_a_sandbox_in_place_holds_are_nothing_to_one_with_a_layer() {
    every_tier(|place, cow| {
        let names = held(place);
        let mode = place.host("stat").args(["-c", "%a:%Y", "sub"]).output().unwrap().stdout;
        let expected = format!("{}x\ny\nz\n", String::from_utf8(mode).unwrap());
        assert_eq!(place.says(&["run", cow, "--", "sh", "-c", MAKES], 0).text(), expected);
        place.says(&["create", cow, "--name", "b"], 0);
        assert_eq!(changes(place, "b"), Vec::<String>::new());
        assert_eq!(place.says(&["exec", "b", "--", "sh", "-c", MAKES], 0).text(), expected);
        let made = ["added .envrc", "added .vscode", "added .vscode/f", "added sub/.envrc"];
        assert_eq!(changes(place, "b"), made);
        // What is held stays so: nothing lands over it.
        let said = place.says(&["apply", "b", ".envrc"], 1);
        assert!(is_socket(place, names[0]), "{said:?}");
        place.says(&["rm", "a"], 0);
        assert_eq!(changes(place, "b"), made);
        place.says(&["undo", "b"], 0);
        let left = changes(place, "b");
        assert!(
            !left.iter().any(|change| names.iter().any(|name| change.ends_with(name))),
            "{left:?}"
        );
        let listed = place.says(&["exec", "b", "--", "find", ".", "-type", "s"], 0).text();
        assert_eq!(listed, "");
        place.says(&["rm", "b"], 0);
    });
}

#[test]
fn names_that_are_held_later_show_in_an_overlay_until_it_is_mounted_anew() {
    everyone(|place| {
        place.write("a", "a\n");
        for (name, cow) in [("b", "--cow=overlay"), ("c", "--cow=copy")] {
            place.says(&["create", cow, "--name", name], 0);
            place.says(&["exec", name, "--", "true"], 0);
        }
        place.says(&["create", "--name", "a"], 0);
        let shows = |name: &str| {
            let words = ["exec", name, "--", "sh", "-c", "test -S .envrc && echo yes || echo no"];
            place.says(&words, 0).text()
        };
        assert_eq!((shows("b").as_str(), shows("c").as_str()), ("yes\n", "no\n"));
        assert_eq!(changes(place, "b"), Vec::<String>::new());
        place.says(&["stop", "b"], 0);
        assert_eq!(shows("b"), "no\n");
    });
}

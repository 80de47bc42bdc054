//! What is said of sessions in a sentence, and holds at its edges too.

use crate::place::{Place, everyone};
use crate::sessions::line;
use serde_json::Value;
use std::time::Duration;

/// What a command in session `s` prints.
fn exec(place: &Place, line: &str) -> String {
    place.says(&["exec", "s", "--shell", line], 0).text()
}

/// The permissions of the top of the workspace, as session `s` sees them.
fn top(place: &Place) -> String {
    exec(place, "stat -c %a .")
}

/// The labels of the snapshots of session `s`, oldest first.
fn labels(place: &Place) -> Vec<Value> {
    let told = place.says(&["snapshot", "ls", "s", "--json"], 0).object();
    let all = told["snapshots"].as_array().unwrap();
    all.iter().map(|snapshot| snapshot["label"].clone()).collect()
}

#[test]
fn a_lease_begins_anew_with_every_ensure_that_says_it() {
    everyone(|place| {
        let ends = |ttl: &[&str]| {
            let words = [&["ensure", "t", "--cow", "--json"], ttl].concat();
            place.says(&words, 0).object()["lease_until_ms"].as_u64().unwrap()
        };
        let first = ends(&["--ttl", "10m"]);
        std::thread::sleep(Duration::from_millis(1200));
        let second = ends(&["--ttl", "10m"]);
        assert!(second >= first + 1200, "{first} {second}");
        assert!(second < first + 120_000, "{first} {second}");
        // Who says none changes none.
        assert_eq!(ends(&[]), second);
        // One that was extended is not shortened by its own length.
        place.says(&["extend", "t", "30m"], 0);
        assert_eq!(ends(&["--ttl", "10m"]), second + 30 * 60_000);
        // Another length is taken as it is said.
        assert!(ends(&["--ttl", "5m"]) < second);
    });
}

#[test]
fn an_import_takes_no_label_from_another_snapshot() {
    everyone(|place| {
        place.write("f", "real\n");
        place.says(&["create", "--cow", "--name", "s"], 0);
        exec(place, "echo one >f");
        place.says(&["snapshot", "create", "s", "--label", "good"], 0);
        let file = place.base.join("home/good").to_string_lossy().into_owned();
        place.says(&["snapshot", "export", "s", "good", &file], 0);
        let import = |words: &[&str], code: i32| {
            place.says(&[&["snapshot", "import", "s", &file], words].concat(), code)
        };
        let said = import(&["--label", "good"], 1).stderr;
        assert!(said.contains("is called \"good\" already"), "{said}");
        // The file has that label, too.
        let said = import(&[], 1).stderr;
        assert!(said.contains("is called \"good\" already"), "{said}");
        assert!(said.contains("Import it with another --label."), "{said}");
        assert_eq!(labels(place), ["good"], "nothing came in");
        import(&["--label", "better"], 0);
        assert_eq!(labels(place), ["good", "better"]);
        place.says(&["snapshot", "restore", "s", "good"], 0);
        // What was removed leaves its label to others.
        place.says(&["snapshot", "rm", "s", "good"], 0);
        import(&[], 0);
        assert_eq!(labels(place), ["better", "good"]);
    });
}

#[test]
fn a_label_can_be_named_in_a_range_or_is_refused() {
    everyone(|place| {
        place.write("f", "real\n");
        place.says(&["create", "--cow", "--name", "s"], 0);
        exec(place, "echo one >f");
        line(place, &["snapshot", "create", "s", "--label", "feat/x"]);
        exec(place, "echo two >f; echo new >n");
        let changed = |range: &str| place.says(&["diff", "s", range, "--name-only"], 0).text();
        assert_eq!(changed("feat/x.."), "f\nn\n");
        assert_eq!(changed("..feat/x"), "f\n");
        let refused = place.says(&["snapshot", "create", "s", "--label", "a..b"], 2).stderr;
        assert!(refused.contains("the label \"a..b\" has \"..\" in it"), "{refused}");
        assert_eq!(labels(place), ["feat/x"]);
    });
}

/// To move a directory elsewhere takes the right to write it, which an ordinary user may have given up.
#[test]
fn a_session_whose_top_nobody_may_write_goes_back_and_forth() {
    everyone(|place| {
        place.write("a", "real\n");
        place.says(&["create", "--cow", "--name", "s"], 0);
        let open = top(place);
        exec(place, "echo one >a");
        place.says(&["snapshot", "create", "s", "--label", "open"], 0);
        exec(place, "echo two >a; chmod 555 .");
        place.says(&["snapshot", "create", "s", "--label", "closed"], 0);
        assert_eq!(top(place), "555\n");
        place.says(&["undo", "s", "--to", "open"], 0);
        assert_eq!((top(place), exec(place, "cat a")), (open.clone(), "one\n".to_owned()));
        place.says(&["snapshot", "restore", "s", "closed"], 0);
        assert_eq!((top(place).as_str(), exec(place, "cat a").as_str()), ("555\n", "two\n"));
        place.says(&["snapshot", "restore", "s", "open"], 0);
        assert_eq!((top(place), exec(place, "cat a")), (open, "one\n".to_owned()));
    });
}

#[test]
fn what_lies_where_nobody_may_write_is_discarded() {
    everyone(|place| {
        place.write("a", "real\n");
        place.write("d/x", "real\n");
        place.says(&["create", "--cow", "--name", "s"], 0);
        exec(place, "echo one >a; echo one >d/x; mkdir n; echo n >n/n; chmod 555 n d .");
        place.says(&["discard", "s", "a"], 0);
        assert_eq!(top(place), "555\n");
        assert_eq!(exec(place, "cat a d/x; stat -c %a d n"), "real\none\n555\n555\n");
        place.says(&["discard", "s"], 0);
        assert_eq!(exec(place, "cat a d/x; ls"), "real\nreal\na\nd\n");
    });
}

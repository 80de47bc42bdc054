//! What a command did, by `exec --receipt`.

use crate::place::{Place, SOON, ended, everyone, started, until};
use serde_json::Value;
use std::process::Stdio;

/// The receipt of a line of shell in session `s`.
fn receipt(place: &Place, line: &str, code: i32) -> Value {
    let words = ["exec", "s", "--receipt", "--json", "--shell", line];
    place.says(&words, code).object()["receipt"].clone()
}

/// The paths of one list of a receipt.
fn paths(receipt: &Value, list: &str) -> Vec<String> {
    let list = receipt["seen_by_host"]["files"][list].as_array().unwrap();
    let path =
        |file: &Value| file["path"].as_str().or(file["path_base64"].as_str()).unwrap().into();
    list.iter().map(path).collect()
}

fn nothing(receipt: &Value) {
    for list in ["added", "changed", "removed"] {
        assert_eq!(paths(receipt, list), Vec::<String>::new(), "{list}: {receipt}");
    }
}

#[test]
fn a_receipt_tells_what_a_command_did_to_files_and_no_more() {
    everyone(|place| {
        for name in ["a", "b", "d/c", "e"] {
            place.write(name, "before\n");
        }
        place.says(&["create", "--cow", "--name", "s"], 0);
        let first =
            receipt(place, "echo new >n; echo more >>a; rm b; mkdir -m 700 f; ln -s a l", 0);
        assert_eq!(paths(&first, "added"), ["f", "l", "n"]);
        assert_eq!(paths(&first, "changed"), ["a"]);
        assert_eq!(paths(&first, "removed"), ["b"]);
        let files = &first["seen_by_host"]["files"];
        assert_eq!((&files["not_seen"], &files["omitted"]), (&Value::Null, &Value::from(0)));
        let new = &files["added"][2];
        // That of "new\n", by another program.
        let hash = "7aa7a5359173d05b63cfd682e3c38487f3cb4f7f1d60659fe59fab1505977d4c";
        assert_eq!(
            (new["sha256"].as_str(), new["size"].as_u64(), new["kind"].as_str()),
            (Some(hash), Some(4), Some("file"))
        );
        assert_eq!(files["added"][0]["mode"], "700");
        // Of what was removed, what it was: that of "before\n", by another program.
        let hash = "9160d4be34c8695bd172a76c7c7966587ea5a4d991ad22c87b2b91af54aa9ebb";
        let gone = |told: &Value, at: usize| {
            let file = &told["seen_by_host"]["files"]["removed"][at];
            (file["kind"].clone(), file["size"].clone(), file["sha256"].clone())
        };
        let was = (Value::from("file"), Value::from(7), Value::from(hash));
        assert_eq!(gone(&first, 0), was);
        assert_eq!(files["removed"][0]["mode"], "644");
        // Of the next one, only its own.
        nothing(&receipt(place, "cat a n >/dev/null; ls -R >/dev/null", 0));
        let next = receipt(place, "rm -r n f; echo back >b; mv d moved", 0);
        assert_eq!(paths(&next, "added"), ["b", "moved", "moved/c"]);
        assert_eq!(paths(&next, "removed"), ["d", "d/c", "f", "n"]);
        assert_eq!(gone(&next, 1), was);
        assert_eq!(next["seen_by_host"]["files"]["removed"][2]["mode"], "700");
        // An earlier command had made it: nobody has its content any more.
        assert_eq!(gone(&next, 3), (Value::from("file"), Value::from(4), Value::Null));
        // What is written and left as the workspace has it is no effect.
        nothing(&receipt(place, "cat e >t; cat t >e; rm t", 0));
        let odd = receipt(place, "printf x >\"$(printf 'o\\377')\"", 0);
        assert_eq!(paths(&odd, "added"), ["b/8="]);
        // Nothing of all that is in the real tree.
        assert_eq!(std::fs::read_to_string(place.workspace.join("a")).unwrap(), "before\n");
    });
}

#[test]
fn a_change_that_hides_from_size_and_time_is_told() {
    everyone(|place| {
        place.write("a", "before");
        place.says(&["create", "--cow", "--name", "s"], 0);
        let hidden = "touch -r a t; printf 'behind' >a; touch -r t a; rm t";
        let before = receipt(place, "echo x >>a; printf 'before' >a; touch -d @1000000000 a", 0);
        nothing(&before);
        let told = receipt(place, hidden, 0);
        assert_eq!(paths(&told, "changed"), ["a"], "{told}");
        // The control: by size and time of change of content nobody would see it.
        let seen = place.says(&["exec", "s", "--shell", "stat -c '%s %Y' a"], 0).text();
        assert_eq!(seen, "6 1000000000\n");
    });
}

#[test]
fn a_receipt_says_who_ended_a_command_and_what_ran_beside() {
    everyone(|place| {
        place.says(&["create", "--cow", "--name", "s"], 0);
        place.says(&["exec", "s", "-d", "--id", "other", "--", "sleep", "1000"], 0);
        let words = ["exec", "s", "--receipt", "--json", "--timeout", "200ms", "--", "sleep", "60"];
        let late = place.says(&words, 124).object();
        let host = &late["receipt"]["seen_by_host"];
        assert_eq!(host["cause"], "timed_out", "{late}");
        assert_eq!(host["files"]["beside"], serde_json::json!(["other"]));
        assert!(host["ended_ms"].as_u64() >= host["started_ms"].as_u64());
        let own = receipt(place, "exit 3", 3);
        assert_eq!(own["seen_by_host"]["cause"], Value::Null);
        assert_eq!(
            (&own["said_by_guest"]["ending"], &own["said_by_guest"]["exit_code"]),
            (&Value::from("exited"), &Value::from(3))
        );
        let said = place.says(&["exec", "s", "--receipt", "--shell", "echo hi; echo >n"], 0);
        assert_eq!(said.text(), "hi\n");
        assert!(said.stderr.contains("receipt: 1 added, 0 changed, 0 removed"), "{}", said.stderr);
        assert!(said.stderr.contains("+ \"n\", 1 bytes"), "{}", said.stderr);
    });
}

#[test]
fn a_receipt_counts_what_was_killed_and_what_is_left_out() {
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        let left =
            receipt(place, "sleep 1000 & setsid sleep 1000 & sleep 1000 >/dev/null 2>&1 &", 0);
        assert_eq!(left["said_by_guest"]["killed_descendants"], 3, "{left}");
        assert_eq!(left["seen_by_host"]["processes_left"], 0);
        // The control: what ended before the command, waited for by nobody, was not killed.
        let line = "(sh -c 'sleep 0 & exec sleep 0.1') & wait; exec true";
        let none = receipt(place, line, 0);
        assert_eq!(none["said_by_guest"]["killed_descendants"], 0, "{none}");
        assert_eq!(none["seen_by_host"]["omitted"], serde_json::json!({"stdout": 0, "stderr": 0}));
        let listed = place.says(&["ps", "s", "--json"], 0).object();
        assert_eq!(listed["execs"][0]["killed_descendants"], 3, "{listed}");
        let words = ["exec", "s", "--receipt", "--json", "--max-output", "10", "--shell"];
        let much = place.says(&[&words[..], &["seq 1000"]].concat(), 0).object();
        assert_eq!(much["receipt"]["seen_by_host"]["omitted"], much["omitted"]);
        assert_eq!(much["omitted"]["stdout"], 3893 - 10, "{much}");
        let words = ["exec", "s", "--receipt", "--shell", "sleep 1000 &"];
        let told = place.says(&words, 0).stderr;
        assert!(told.contains("1 processes that it left were killed"), "{told}");
    });
}

#[test]
fn where_nobody_looked_at_files_the_receipt_says_so() {
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        let told = receipt(place, "echo >n", 0);
        nothing(&told);
        let why = told["seen_by_host"]["files"]["not_seen"].as_str().unwrap();
        assert_eq!(why, "the session is not copy-on-write");
        place.says(&["exec", "s", "--receipt", "-d", "--", "true"], 125);
        // What is closed to its own owner cannot be read from outside: the command runs all the same.
        place.write("closed", "x");
        place.says(&["create", "--cow", "--name", "t"], 0);
        place.says(&["exec", "t", "--", "chmod", "0", "closed"], 0);
        let said = place.says(&["exec", "t", "--receipt", "--json", "--", "true"], 0).object();
        let not_seen = &said["receipt"]["seen_by_host"]["files"]["not_seen"];
        assert_eq!(not_seen.is_null(), place.is_root(), "{said}");
    });
}

#[test]
fn a_receipt_names_so_many_paths_and_counts_the_rest() {
    everyone(|place| {
        place.says(&["create", "--cow", "--name", "s"], 0);
        let many = receipt(place, "i=0; while [ $i -lt 1005 ]; do >$i; i=$((i+1)); done", 0);
        assert_eq!(paths(&many, "added").len(), 1000);
        assert_eq!(many["seen_by_host"]["files"]["omitted"], 5);
        let large = receipt(place, "truncate -s 17M large; truncate -s 15M small", 0);
        let files = large["seen_by_host"]["files"]["added"].as_array().unwrap();
        assert_eq!((&files[0]["path"], &files[0]["sha256"]), (&Value::from("large"), &Value::Null));
        assert!(files[1]["sha256"].is_string(), "{large}");
    });
}

/// What a command is told to have done while which something is done from outside.
fn meanwhile(place: &Place, words: &[&str]) -> Value {
    const LINE: &str = "echo C >fileC; until test -e go; do sleep 0.05; done; rm -r go";
    place.says(&["create", "--cow", "--name", "s"], 0);
    place.says(&["exec", "s", "--shell", "echo A >fileA"], 0);
    let mut exec = place.cofferdam(&["exec", "s", "--receipt", "--json", "--shell", LINE]);
    let exec = started(exec.stdout(Stdio::piped()).stderr(Stdio::piped()));
    let has_begun = || (place.say(&["file", "stat", "s", "fileC"]).code() == Some(0)).then_some(());
    until(SOON, has_begun).expect("the command has begun");
    if !words.is_empty() {
        place.says(words, 0);
    }
    if !words.contains(&"go") {
        // Where the command was ended by that nobody waits for it.
        place.says(&["exec", "s", "--", "touch", "go"], 0);
    }
    ended(exec, SOON).object()["receipt"].clone()
}

#[test]
fn what_the_host_changes_while_a_command_runs_is_not_told_to_be_the_commands() {
    everyone(|place| {
        for (words, why) in [
            (["undo", "s"].as_slice(), "an undo changed"),
            (&["discard", "s"], "a discard changed"),
            (&["apply", "s"], "an apply changed"),
            (&["file", "mkdir", "s", "go"], "a write of files from outside changed"),
        ] {
            let told = meanwhile(place, words);
            nothing(&told);
            let not_seen = told["seen_by_host"]["files"]["not_seen"].as_str();
            assert!(not_seen.is_some_and(|told| told.starts_with(why)), "{words:?}: {told}");
            let history = place.says(&["history", "s"], 0).text();
            if words[0] == "file" {
                assert!(history.contains("with changes from outside of it"), "{history}");
            }
            place.says(&["rm", "s"], 0);
            for name in ["fileA", "fileC"] {
                let _ = std::fs::remove_file(place.workspace.join(name));
            }
        }
        // The control.
        let told = meanwhile(place, &[]);
        assert_eq!(paths(&told, "added"), ["fileC"]);
        assert_eq!(told["seen_by_host"]["files"]["not_seen"], Value::Null);
        let history = place.says(&["history", "s"], 0).text();
        assert!(!history.contains("from outside"), "{history}");
    });
}

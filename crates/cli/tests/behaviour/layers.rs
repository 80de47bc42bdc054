//! What a copy-on-write session changed: printed, applied, discarded.

use crate::cow_tree::tree;
use crate::place::{Place, SOON, everyone, outcome, skipped, until};
use crate::schema::is_valid;
use crate::sessions::phase;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// A repository with some files, and a session that changed them.
fn fill(place: &Place) {
    place.write("a.txt", "one\ntwo\nthree\n");
    place.write("gone", "gone\n");
    place.write("src/kept", "kept\n");
    let made = outcome(place.host("git").args(["init", "-q"]), SOON);
    assert_eq!(made.code(), Some(0), "{made:?}");
    place.says(&["create", "--cow", "--name", "s"], 0);
    let work = "echo four >> a.txt; rm gone; mkdir -p new/deep; echo n > new/deep/n; chmod +x a.txt; \
                ln -s kept src/link; echo evil > .git/hooks/pre-commit; printf '\\033[2J' > src/odd";
    place.says(&["exec", "s", "--shell", work], 0);
}

fn names(place: &Place) -> String {
    place.says(&["diff", "s", "--name-only"], 0).text()
}

#[test]
fn a_session_is_looked_at_applied_and_goes_on() {
    everyone(|place| {
        fill(place);
        let before = tree(&place.workspace);
        let all =
            ".git/hooks/pre-commit\na.txt\ngone\nnew\nnew/deep\nnew/deep/n\nsrc/link\nsrc/odd\n";
        assert_eq!(names(place), all);
        let patch = place.says(&["diff", "s"], 0).text();
        assert!(patch.contains(
            "old mode 100644\nnew mode 100755\n--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,4 @@"
        ));
        assert!(patch.contains("# +evil\n") && !patch.contains("\n+evil"), "{patch}");
        place.says(&["apply", "s", "--dry-run"], 1);
        assert_eq!(tree(&place.workspace), before, "nothing is done yet");
        assert_eq!(phase(place, "s"), "running");
        place.says(&["apply", "s", "new", "/workspace/a.txt"], 0);
        assert_eq!(
            fs::read_to_string(place.workspace.join("a.txt")).unwrap(),
            "one\ntwo\nthree\nfour\n"
        );
        assert_eq!(fs::read_to_string(place.workspace.join("new/deep/n")).unwrap(), "n\n");
        assert!(place.workspace.join("gone").exists());
        let said = place.says(&["apply", "s"], 1);
        assert!(said.text().contains("kept back  .git/hooks/pre-commit"), "{said:?}");
        assert!(!place.workspace.join(".git/hooks/pre-commit").exists());
        assert_eq!(names(place), ".git/hooks/pre-commit\n");
        place.says(&["apply", "s", ".git/hooks/pre-commit"], 0);
        assert!(place.workspace.join(".git/hooks/pre-commit").exists(), "the control");
        assert_eq!(names(place), "");
        let seen = place.says(&["exec", "s", "--shell", "cat a.txt new/deep/n; ls"], 0).text();
        assert_eq!(seen, "one\ntwo\nthree\nfour\nn\na.txt\nnew\nsrc\n");
        let events = place.says(&["events", "s"], 0).text();
        assert_eq!(events.matches("  applied  ").count(), 3, "{events}");
    });
}

#[test]
fn what_was_edited_meanwhile_stays() {
    everyone(|place| {
        fill(place);
        place.write("a.txt", "mine\n");
        let said = place.says(&["apply", "s", "a.txt", "gone"], 1);
        assert!(
            said.text().contains("conflict  a.txt: the workspace changed there since"),
            "{said:?}"
        );
        assert_eq!(fs::read_to_string(place.workspace.join("a.txt")).unwrap(), "mine\n");
        assert!(!place.workspace.join("gone").exists(), "the control landed");
        assert!(said.stderr.contains("apply s --overwrite PATH"), "{}", said.stderr);
        // Over it lands what is named, where that is said.
        place.says(&["apply", "s", "--overwrite"], 2);
        place.says(&["apply", "s", "--overwrite", "a.txt"], 0);
        assert_eq!(
            fs::read_to_string(place.workspace.join("a.txt")).unwrap(),
            "one\ntwo\nthree\nfour\n"
        );
    });
}

#[test]
fn what_is_discarded_is_gone_and_the_session_stays() {
    everyone(|place| {
        fill(place);
        let before = tree(&place.workspace);
        place.says(&["discard", "s", "src", "--dry-run"], 0);
        assert_eq!(phase(place, "s"), "running");
        place.says(&["exec", "s", "--detach", "--", "sleep", "600"], 0);
        place.says(&["exec", "s", "--shell", "sleep 600 & true"], 0);
        let done = place.says(&["discard", "s", "src", "a.txt", "--json"], 0).object();
        assert_eq!((&done["processes_ended"], &done["commands"]), (&true.into(), &1.into()));
        assert_eq!(done["left"], 0, "nothing outlives a command in the foreground");
        assert_eq!(phase(place, "s"), "stopped");
        let seen =
            place.says(&["exec", "s", "--shell", "cat a.txt; ls src; test -e gone || echo no"], 0);
        assert_eq!(seen.text(), "one\ntwo\nthree\nkept\nno\n", "the rest is there still");
        let told = place.says(&["discard", "s"], 0);
        assert!(told.stderr.contains("all processes of the session were ended"), "{told:?}");
        assert_eq!(place.says(&["exec", "s", "--", "cat", "gone"], 0).text(), "gone\n");
        assert_eq!(tree(&place.workspace), before, "the workspace is not touched");
        let done = place.says(&["discard", "s", "--json"], 0).object();
        assert_eq!(done["processes_ended"], false);
        assert_eq!(phase(place, "s"), "running", "nothing is ended for nothing");
    });
}

#[test]
fn a_lost_session_is_looked_at_as_it_is() {
    everyone(|place| {
        fill(place);
        let all = names(place);
        let keepers = crate::sessions_durable::keepers(place);
        outcome(place.host("/bin/kill").arg("-9").args(&keepers), SOON);
        until(SOON, || (phase(place, "s") == "lost").then_some(())).unwrap();
        assert_eq!(names(place), all);
        place.says(&["apply", "s", "gone"], 0);
        assert!(!place.workspace.join("gone").exists());
        assert_eq!(phase(place, "s"), "lost", "nothing is made for that");
    });
}

#[test]
fn what_makes_no_sense_about_a_layer_is_refused() {
    everyone(|place| {
        fill(place);
        place.says(&["create", "--name", "plain"], 0);
        for verb in ["diff", "apply", "discard"] {
            let said = place.says(&[verb, "plain"], 1);
            assert!(said.stderr.contains("is not copy-on-write"), "{said:?}");
            place.says(&[verb, "s", "../x"], 1);
        }
        let said = place.says(&["apply", "s", "nothing/there"], 1);
        assert!(said.stderr.contains("changed nothing at"), "{said:?}");
        let said = place.says(&["apply", "s", "--hunks"], 2);
        assert!(said.stderr.contains("--hunks asks at a terminal"), "{said:?}");
    });
}

#[test]
fn every_object_about_layers_is_what_its_schema_says() {
    everyone(|place| {
        fill(place);
        let valid = |name: &str, words: &[&str], code: i32| {
            is_valid(place, name, &place.says(&[words, &["--json"]].concat(), code).object());
        };
        valid("changes", &["diff", "s"], 0);
        valid("applied", &["apply", "s", "--dry-run"], 1);
        valid("applied", &["apply", "s", "new"], 0);
        valid("discarded", &["discard", "s", "src"], 0);
    });
}

/// Answers at a terminal, one after the other, as they are asked.
pub(crate) const ASKED: &str = "
import os, pty, sys
answers = sys.argv[1]
pid, tty = pty.fork()
if pid == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
said = b''
while True:
    try:
        piece = os.read(tty, 4096)
    except OSError:
        break
    if not piece:
        break
    said += piece
    while answers and said.count(b'?]? ') > len(sys.argv[1]) - len(answers):
        os.write(tty, answers[0].encode() + b'\\n')
        answers = answers[1:]
sys.stdout.buffer.write(said)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
";

#[test]
fn parts_of_a_file_are_chosen_at_a_terminal() {
    everyone(|place| {
        let lines = |mark: [&str; 2]| -> String {
            (0..30)
                .map(|n| match n {
                    2 => format!("{}\n", mark[0]),
                    25 => format!("{}\n", mark[1]),
                    n => format!("{n}\n"),
                })
                .collect()
        };
        place.write("f", &lines(["old", "old"]));
        place.write("other", "other\n");
        place.says(&["create", "--cow", "--name", "s"], 0);
        place.says(
            &["exec", "s", "--shell", "sed -i s/old/new/ f; printf '\\033[2J\\n' > other"],
            0,
        );
        let mut asked = place.host(crate::place::PYTHON);
        asked.args(["-c", ASKED, "nyn", place.program(), "apply", "s", "--hunks"]);
        let said = outcome(&mut asked, SOON);
        assert_eq!(said.code(), Some(0), "{said:?}");
        assert!(said.text().contains("\\u{1b}[2J") && !said.text().contains('\u{1b}'), "{said:?}");
        let now = fs::read_to_string(place.workspace.join("f")).unwrap();
        assert_eq!(now, lines(["old", "new"]));
        assert_eq!(fs::read_to_string(place.workspace.join("other")).unwrap(), "other\n");
        assert_eq!(names(place), "f\nother\n", "what was not chosen is a change still");
        place.says(&["apply", "s"], 0);
        assert_eq!(fs::read_to_string(place.workspace.join("f")).unwrap(), lines(["new", "new"]));
        // What is protected is asked about where it is named, and stays behind otherwise.
        place.says(&["exec", "s", "--shell", "echo hostile > .envrc"], 0);
        let asked = |words: &[&str]| {
            let mut asked = place.host(crate::place::PYTHON);
            asked.args(["-c", ASKED, "y", place.program(), "apply", "s", "--hunks"]).args(words);
            outcome(&mut asked, SOON)
        };
        let said = asked(&[]);
        assert_eq!(said.code(), Some(1), "{said:?}");
        assert!(!place.workspace.join(".envrc").exists() && said.text().contains("by name"));
        let said = asked(&[".envrc"]);
        assert_eq!(said.code(), Some(0), "{said:?}");
        assert_eq!(fs::read_to_string(place.workspace.join(".envrc")).unwrap(), "hostile\n");
    });
}

/// What is below a directory is asked about by itself, or was never seen.
#[test]
fn a_chosen_directory_brings_and_takes_nothing_else() {
    everyone(|place| {
        place.write("gone/precious", "precious\n");
        place.write("src/main", "main\n");
        place.says(&["create", "--cow", "--name", "s"], 0);
        let changes = "mkdir new; echo x >new/build; echo x >new/readme; rm -r gone; chmod 750 src; echo x >>src/main";
        place.says(&["exec", "s", "--shell", changes], 0);
        // gone, gone/precious, new, new/build, new/readme, src, src/main.
        let mut asked = place.host(crate::place::PYTHON);
        asked.args(["-c", ASKED, "ynynyyn", place.program(), "apply", "s", "--hunks"]);
        let said = outcome(&mut asked, SOON);
        assert_eq!(said.code(), Some(1), "{said:?}");
        let read = |name: &str| fs::read_to_string(place.workspace.join(name)).ok();
        assert_eq!(read("gone/precious").as_deref(), Some("precious\n"), "{said:?}");
        assert_eq!(read("src/main").as_deref(), Some("main\n"), "{said:?}");
        assert_eq!(read("new/build"), None, "{said:?}");
        assert_eq!(read("new/readme").as_deref(), Some("x\n"), "{said:?}");
        let mode = place.workspace.join("src").metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o750, "{said:?}");
        assert_eq!(names(place), "gone\ngone/precious\nnew/build\nsrc/main\n");
    });
}

#[test]
fn history_without_its_index_is_said_and_a_rehearsal_says_what_would_be() {
    everyone(|place| {
        let git = |words: &[&str]| {
            let by = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
            let said = outcome(place.host("git").args(by).args(words), SOON);
            assert_eq!(said.code(), Some(0), "{said:?}");
        };
        place.write("a", "one\n");
        git(&["init", "-q"]);
        git(&["add", "a"]);
        git(&["commit", "-qm", "first"]);
        place.says(&["create", "--cow", "--name", "s"], 0);
        let commits =
            "echo two >> a; git -c user.name=a -c user.email=a@example.org commit -qam second";
        place.says(&["exec", "s", "--shell", commits], 0);
        place.write("b", "other\n");
        git(&["add", "b"]);
        let rehearsed = place.says(&["apply", "s", "--dry-run"], 1);
        assert!(
            rehearsed.stderr.contains("history would land without .git/index"),
            "{rehearsed:?}"
        );
        let landed = place.says(&["apply", "s"], 1);
        assert!(landed.stderr.contains("history landed without .git/index"), "{landed:?}");
    });
}

/// Makes a directory take no new name, or does not any more. Says whether this can be done here.
fn close(directory: &Path, how: &str) -> bool {
    Command::new("chattr").arg(how).arg(directory).status().is_ok_and(|done| done.success())
}

#[test]
fn what_landed_is_among_the_events_where_clearing_up_fails() {
    everyone(|place| {
        fill(place);
        let kept = fs::read_dir(place.state.join("kept")).unwrap().next().unwrap().unwrap();
        let layer = kept.path().join("cow");
        if !close(&layer, "+i") {
            return skipped("chattr", "no directory can be closed to its owner");
        }
        let said = place.say(&["apply", "s", "gone", "new"]);
        assert!(close(&layer, "-i"));
        assert_eq!(said.code(), Some(1), "{said:?}");
        assert!(said.stderr.contains("what was to land has landed (4)"), "{said:?}");
        assert!(place.workspace.join("new/deep/n").exists());
        let events = place.says(&["events", "s"], 0).text();
        assert!(events.contains("applied=4"), "{events}");
        // Whoever comes next clears up, and nothing is left to land.
        place.says(&["gc"], 0);
        assert!(!names(place).contains("new"), "{}", names(place));
    });
}

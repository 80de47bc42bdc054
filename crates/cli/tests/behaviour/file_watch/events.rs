//! What is told.

use super::{Watched, inside};
use crate::images::root;
use crate::place::everyone;
use crate::schema::is_valid;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::symlink;

#[test]
fn every_sort_of_event_is_told_under_its_name() {
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        let watched = Watched::begin(place, &[]);
        let told = |line: &str, events: &[&str]| {
            inside(place, line);
            events.iter().for_each(|event| drop(watched.until(event)));
        };
        told("mkdir d", &["created     d/"]);
        told("echo x >d/f", &["created     d/f", "modified    d/f"]);
        told("echo x >>d/f", &["modified    d/f"]);
        told("chmod 600 d/f", &["attributes  d/f"]);
        told("mv d/f g", &["renamed     d/f -> g"]);
        told("mv d e; echo x >e/f", &["renamed     d/ -> e/", "created     e/f"]);
        told("rm g; rm -r e", &["removed     g", "removed     e/f", "removed     e/"]);
        told("ln -s /etc l; mkfifo p", &["created     l", "created     p"]);
        told("chmod 750 .", &["attributes  ."]);
        // A file is told once when it is closed, and not with every write.
        inside(place, "exec 3>n; for i in 1 2 3 4 5 6 7 8 9; do echo $i >&3; done; exec 3>&-; >o");
        let lines = watched.until("modified    o");
        assert_eq!(lines.iter().filter(|line| *line == "modified    n").count(), 1, "{lines:?}");
        // What is done from outside of the sandbox is told too.
        place.write("host", "x");
        watched.until("modified    host");
        place.says(&["file", "cp", "s", "host", "copy"], 0);
        // Until it has its name nobody hears of it.
        let lines = watched.until("created     copy");
        assert!(
            !lines.iter().any(|line| line.contains('#') || line.contains(".cofferdam-")),
            "{lines:?}"
        );
        inside(place, "echo x >'#12'; chmod 600 '#12'");
        watched.until("attributes  #12");
        watched.interrupt();
    });
}

#[test]
fn what_is_made_in_new_directories_is_told_however_soon() {
    const ROUNDS: usize = 150;
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        let watched = Watched::begin(place, &[]);
        inside(
            place,
            "i=0; while [ $i -lt 150 ]; do mkdir -p r$i/a/b/c && echo x >r$i/a/b/c/f; \
             i=$((i+1)); done; >done",
        );
        let lines = watched.until("created     done");
        for round in 0..ROUNDS {
            let wanted = format!("created     r{round}/a/b/c/f");
            assert!(lines.contains(&wanted), "{wanted} was not told");
        }
        assert!(!lines.iter().any(|line| line.starts_with("overflow")));
        // A directory that comes with all that is in it, and one that goes.
        let other = place.base.join("other");
        fs::create_dir_all(other.join("x/y")).unwrap();
        fs::write(other.join("x/y/f"), "x").unwrap();
        fs::rename(&other, place.workspace.join("moved")).unwrap();
        watched.until("created     moved/x/y/f");
        fs::rename(place.workspace.join("moved"), &other).unwrap();
        watched.until("removed     moved/");
        watched.interrupt();
    });
}

#[test]
fn places_levels_and_patterns_are_as_asked() {
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        inside(place, "mkdir -p a/b/c other; >a/file; ln -s a link");
        let work = "for f in x a/x a/b/x a/b/c/x.rs other/x a/file; do echo >$f; done; >a/last";
        let check = |words: &[&str], expected: &[&str]| {
            let watched = Watched::begin(place, words);
            inside(place, work);
            let mut told = Vec::new();
            let is_last = |line: &String| line.contains("last") || line.contains("file");
            while told.last().is_none_or(|line| !is_last(line)) {
                told.push(watched.next().unwrap());
            }
            told.retain(|line| line.starts_with("modified"));
            let names: Vec<&str> = told.iter().map(|line| &line["modified    ".len()..]).collect();
            assert_eq!(names, expected, "{words:?}");
            watched.interrupt();
            inside(place, "rm -f x a/x a/b/x a/b/c/x.rs other/x a/last");
        };
        check(&["a"], &["a/x", "a/b/x", "a/b/c/x.rs", "a/file"]);
        check(&["a", "--depth", "2"], &["a/x", "a/b/x", "a/file"]);
        check(&["./other/../a/", "--no-recursive"], &["a/x", "a/file"]);
        check(&["/workspace/a/file"], &["a/file"]);
        check(&["other", "a/file"], &["other/x", "a/file"]);
        check(&["--glob", "a/**/*.rs", "--glob", "*/file"], &["a/b/c/x.rs", "a/file"]);
        for (words, code) in [
            (&["none"][..], 1),
            (&["link"], 1),
            (&["link/b"], 1),
            (&["../x"], 1),
            (&["/etc"], 1),
            (&["--depth", "0"], 2),
            (&["--glob", "["], 2),
            (&["--once", "-n", "2"], 2),
        ] {
            place.says(&[&["file", "watch", "s"], words].concat(), code);
        }
        let refused = place.says(&["file", "watch", "s", "link"], 1).stderr;
        assert!(refused.contains("is a symbolic link"), "{refused}");
    });
}

#[test]
fn a_place_that_goes_and_comes_back_is_watched_again() {
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        inside(place, "mkdir -p a/b; >a/b/f");
        let watched = Watched::begin(place, &["a/b"]);
        inside(place, "mv a x; echo >x/b/unseen; mkdir -p a/b; echo >a/b/seen");
        let lines = watched.until("created     a/b/seen");
        assert!(lines.contains(&"removed     a/b/".to_owned()), "{lines:?}");
        assert!(lines.contains(&"created     a/b/".to_owned()), "{lines:?}");
        assert!(!lines.iter().any(|line| line.contains("unseen")), "{lines:?}");
        inside(place, "rm -r a; mv x a");
        watched.until("created     a/b/unseen");
        watched.interrupt();
    });
}

#[test]
fn a_watch_ends_after_so_many_events_or_so_long() {
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        let watched = Watched::begin(place, &["-n", "2"]);
        inside(place, ">a; >b");
        assert_eq!(watched.finish(), (Some(0), String::new()));
        let watched = Watched::begin(place, &["--once", "--glob", "c"]);
        inside(place, ">a; >c");
        watched.until("created     c");
        assert_eq!(watched.finish(), (Some(0), String::new()));
        assert_eq!(
            place.says(&["file", "watch", "s", "--timeout", "10ms"], 0).text().lines().count(),
            1
        );
        let late = place.says(&["file", "watch", "s", "--timeout", "10ms", "--once"], 1);
        assert!(late.stderr.contains("before 1 events had come"), "{}", late.stderr);
    });
}

#[test]
fn every_event_is_what_its_schema_says_whatever_its_name() {
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        let watched = Watched::begin(place, &["--json"]);
        // One after the other: what is there no more when somebody comes to look is not told.
        let told = |line: &str, event: &str, field: &str, value: &str| {
            inside(place, line);
            let parsed = |line: &str| serde_json::from_str::<Value>(line).unwrap();
            let is_it = |told: &Value| told["event"] == event && told[field] == value;
            let what = format!("{event} {field} {value}");
            let lines = watched.until_one(&what, |line| is_it(&parsed(line)));
            lines.iter().for_each(|line| is_valid(place, "file-event", &parsed(line)));
            parsed(lines.last().unwrap())
        };
        let odd = "d/a\nb\u{1b}[31m";
        told("mkdir d; >\"$(printf 'd/a\\nb\\033[31m')\"", "created", "path", odd);
        told(">\"$(printf 'z\\377')\"", "created", "path_base64", "ev8=");
        let rename = "mv \"$(printf 'z\\377')\" \"$(printf 'y\\377')\"";
        let renamed = told(rename, "renamed", "path_base64", "ef8=");
        assert_eq!(renamed["from_base64"], "ev8=");
        told("rm d/*", "removed", "path", odd);
        told("chmod 0 d", "attributes", "path", "d");
        inside(place, "chmod 700 d");
        watched.interrupt();
        // For people no name steers the terminal or fakes a line.
        let watched = Watched::begin(place, &[]);
        inside(place, ">\"$(printf 'a\\ncreated     b\\033[31m')\"");
        watched.until("created     a\\ncreated     b\\u{1b}[31m");
        watched.interrupt();
    });
}

#[test]
fn a_layer_over_the_workspace_is_watched_as_it_is_seen() {
    everyone(|place| {
        place.write("lower/deep/file", "old");
        place.says(&["create", "--cow", "--name", "s"], 0);
        let watched = Watched::begin(place, &[]);
        inside(place, "echo new >lower/deep/file; mkdir lower/new; echo x >lower/new/f");
        watched.until("modified    lower/deep/file");
        watched.until_one("a new file", |line| line.ends_with("lower/new/f"));
        inside(place, "mv lower/deep/file lower/deep/other; rm -r lower/deep");
        watched.until("renamed     lower/deep/file -> lower/deep/other");
        watched.until("removed     lower/deep/");
        assert_eq!(fs::read_to_string(place.workspace.join("lower/deep/file")).unwrap(), "old");
        watched.interrupt();
    });
}

#[test]
fn links_are_told_as_names_and_never_followed() {
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        let outside = place.base.join("outside");
        fs::create_dir(&outside).unwrap();
        symlink(&outside, place.workspace.join("out")).unwrap();
        let watched = Watched::begin(place, &[]);
        fs::write(outside.join("secret"), "x").unwrap();
        inside(place, "ln -s /tmp in; echo x >/tmp/secret; rm in; mkdir in; >in/own; >done");
        let lines = watched.until("created     done");
        assert!(lines.contains(&"created     in/own".to_owned()), "{lines:?}");
        assert!(!lines.iter().any(|line| line.contains("secret")), "{lines:?}");
        // Pipes and sockets are told, and nobody opens them.
        inside(place, "mkfifo p; (echo x >p) & sleep 0.2; kill %1 2>/dev/null || kill $!; rm p");
        watched.until("removed     p");
        watched.interrupt();
    });
}

#[test]
fn the_workspace_of_an_image_is_watched() {
    everyone(|place| {
        let Some(root) = root(place, "root") else { return };
        let image = root.to_str().unwrap();
        place.says(&["create", "--name", "s", "--image", image], 0);
        let watched = Watched::begin(place, &[]);
        // One after the other: a file that was moved before anybody looked is told where it came to be.
        inside(place, "mkdir -p d/e && echo x >d/e/f");
        watched.until("created     d/e/f");
        inside(place, "mv d/e/f g");
        watched.until("renamed     d/e/f -> g");
        watched.interrupt();
    });
}

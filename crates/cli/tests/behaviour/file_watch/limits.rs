//! What is told where not everything can be.

use super::{Watched, inside, set_often};
use crate::place::{PYTHON, SOON, everyone, skipped, started, until};
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::mpsc::channel;

#[test]
fn events_that_nobody_reads_are_lost_by_name_and_the_next_are_told() {
    const SET: usize = 50_000;
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        let words = ["file", "watch", "s", "--max-pending", "1"];
        let mut child = started(place.cofferdam(&words).stdout(Stdio::piped()));
        let mut out = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        assert!(out.next().unwrap().starts_with("ready"));
        // Nobody reads meanwhile.
        set_often(place, SET);
        let mut told = 0;
        while !out.next().unwrap().starts_with("overflow") {
            told += 1;
        }
        assert!(told < SET, "all was told");
        // More may be lost while the rest is read. What happens after the last word of that is told.
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            out.take_while(|line| sender.send(line.clone()).is_ok()).count()
        });
        let told = until(SOON, || {
            inside(place, "mkdir -p after; >after/file; rm -r after");
            lines.try_iter().any(|line| line == "created     after/file").then_some(())
        });
        assert!(told.is_some(), "nothing was told after the loss");
        child.kill().unwrap();
        child.wait().unwrap();
    });
}

#[test]
fn whoever_reads_loses_nothing() {
    // More than the kernel keeps for a watch, in parts that it keeps while the reader waits for its turn.
    const PART: usize = 5_000;
    const SET: usize = 4 * PART;
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        let watched = Watched::begin(place, &[]);
        let mut lines = Vec::new();
        for part in 0..SET / PART {
            set_often(place, PART);
            inside(place, &format!(">part{part}"));
            lines.extend(watched.until(&format!("created     part{part}")));
        }
        inside(place, "i=0; >n0; while [ $i -lt 300 ]; do mv n$i n$((i+1)); i=$((i+1)); done");
        lines.extend(watched.until("renamed     n299 -> n300"));
        let told = |what: &str| lines.iter().filter(|line| line.starts_with(what)).count();
        assert_eq!((told("overflow"), told("renamed")), (0, 300));
        assert!(told("attributes") >= SET, "{}", told("attributes"));
        watched.interrupt();
    });
}

#[test]
fn more_directories_than_may_be_watched_are_refused_or_told() {
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        inside(place, "mkdir -p a/b c");
        let refused = place.says(&["file", "watch", "s", "--max-directories", "3"], 1).stderr;
        assert!(refused.contains("more than 3 directories"), "{refused}");
        assert!(refused.contains("Watch a part of it"), "{refused}");
        // The control: what is asked for fits.
        let watched = Watched::begin(place, &["--max-directories", "4"]);
        inside(place, "mkdir d e; >d/unseen; >a/b/f");
        let lines = watched.until("created     a/b/f");
        let told: Vec<&String> = lines.iter().filter(|l| l.starts_with("unwatched")).collect();
        assert!(
            told.len() == 1 && told[0].starts_with("unwatched   d/: 4 directories"),
            "{told:?}"
        );
        assert!(!lines.iter().any(|line| line.contains("unseen")));
        inside(place, "rm -r a; mkdir new; >new/f");
        watched.until("created     new/f");
        watched.interrupt();
        let many: Vec<String> = (0..65).map(|n| format!("p{n}")).collect();
        let mut words = vec!["file", "watch", "s"];
        words.extend(many.iter().map(String::as_str));
        let refused = place.says(&words, 2).stderr;
        assert!(refused.contains("at most 64 places"), "{refused}");
    });
}

#[test]
fn a_directory_that_cannot_be_watched_is_told_and_stops_no_other() {
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        let deep = "import os\nfor _ in range(140):\n os.mkdir('d'); os.chdir('d')";
        inside(
            place,
            &format!("mkdir shut deep; >shut/f; chmod 0 shut; cd deep; python3 -c \"{deep}\""),
        );
        let watched = Watched::begin(place, &[]);
        inside(place, ">done");
        let lines = watched.until("created     done");
        let has = |what: &str| lines.iter().any(|l| l.starts_with("unwatched") && l.contains(what));
        assert!(has("shut/: ") && has("128 directories deep"), "{lines:?}");
        // One that is opened is watched, with what is in it.
        inside(place, "chmod 700 shut");
        watched.until("created     shut/f");
        inside(place, "mkdir later; chmod 0 later; >done2");
        watched.until_one("unwatched or done", |line| line == "created     done2");
        inside(place, "chmod 700 later; >later/f");
        watched.until("created     later/f");
        watched.interrupt();
        inside(place, "rm -rf deep shut later");
    });
}

#[test]
fn directories_that_change_places_are_looked_at_again() {
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        inside(place, "mkdir -p a/x b/y");
        let watched = Watched::begin(place, &[]);
        let swap = "import ctypes; ctypes.CDLL(None).renameat2(-100, b'a', -100, b'b', 2)";
        inside(place, &format!("python3 -c \"{swap}\""));
        watched.until_one("overflow", |line| line.starts_with("overflow"));
        inside(place, ">a/y/f; >b/x/g");
        let lines = watched.until("modified    b/x/g");
        assert!(lines.contains(&"created     a/y/f".to_owned()), "{lines:?}");
        watched.interrupt();
    });
}

/// What a watcher hears of `b` when its name leads there no more.
const MOVED_AT_ONCE: &str = "\
import os, time
for n in range(40):
    os.mkdir('a%d' % n)
time.sleep(1)
for n in range(40):
    os.mkdir('a%d/b' % n)
    os.rename('a%d' % n, 'c%d' % n)
time.sleep(1)
for n in range(40):
    open('c%d/b/own' % n, 'w').close()
open('done', 'w')
";

#[test]
fn a_directory_whose_parent_was_renamed_before_anybody_looked_is_watched() {
    everyone(|place| {
        if !std::path::Path::new(PYTHON).exists() {
            return skipped("python", "there is no python3 to be quick with names");
        }
        place.says(&["create", "--name", "s"], 0);
        place.write("move.py", MOVED_AT_ONCE);
        let watched = Watched::begin(place, &[]);
        place.says(&["exec", "s", "--", PYTHON, "move.py"], 0);
        let lines = watched.until("modified    done");
        let told = lines.iter().filter(|line| line.ends_with("/b/own") && line.starts_with("mod"));
        assert_eq!(told.count(), 40, "{lines:?}");
        watched.interrupt();
    });
}

#[test]
fn a_directory_that_was_swapped_often_is_told_of_still_under_the_name_that_it_has() {
    everyone(|place| {
        if !std::path::Path::new(PYTHON).exists() {
            return skipped("python", "there is no python3 to swap names with");
        }
        place.says(&["create", "--name", "s"], 0);
        place.write("swap.py", super::attacks::SWAPPER);
        let watched = Watched::begin(place, &[]);
        place.says(&["exec", "s", "--", PYTHON, "swap.py"], 0);
        watched.until("modified    done");
        inside(place, "for d in busy/real busy/link; do [ -L $d ] || >$d/inner/own; done");
        watched.until_one("a file", |line| line.ends_with("inner/own"));
        watched.interrupt();
    });
}

//! How a watch ends, and what it leaves.

use super::{Watched, inside, set_often};
use crate::place::{Place, SOON, ended, everyone, outcome, started, until};
use crate::sessions::phase;
use crate::sessions_durable::keepers;
use rustix::process::Signal;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

/// How many processes there are inside, those of the question among them.
fn processes(place: &Place) -> usize {
    inside(place, "ls /proc").lines().filter(|name| name.parse::<u32>().is_ok()).count()
}

/// Waits until there are as many processes inside as there were.
fn are_again(place: &Place, before: usize) {
    let is_so = || (processes(place) == before).then_some(());
    assert!(until(SOON, is_so).is_some(), "{} instead of {before}", processes(place));
}

#[test]
fn however_a_watch_ends_nothing_of_it_is_left_inside() {
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        let before = processes(place);
        let begin = || {
            let watched = Watched::begin(place, &[]);
            // The control: it is there.
            are_again(place, before + 1);
            watched
        };
        for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
            let watched = begin();
            watched.signal(signal);
            assert_eq!(watched.finish(), (Some(0), String::new()), "{signal:?}");
            are_again(place, before);
        }
        let watched = begin();
        watched.signal(Signal::KILL);
        assert_eq!(watched.finish().0, None);
        are_again(place, before);
        let watched = Watched::begin(place, &["--once"]);
        watched.signal(Signal::INT);
        let (code, said) = watched.finish();
        assert!(code == Some(1) && said.contains("before 1 events"), "{said}");
        are_again(place, before);
    });
}

#[test]
fn a_watch_ends_with_its_reader_and_hears_ctrl_c_from_behind_a_slow_one() {
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        let begin = || {
            let mut command = place.cofferdam(&["file", "watch", "s"]);
            let mut child = started(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
            let mut out = BufReader::new(child.stdout.take().unwrap());
            let mut line = String::new();
            out.read_line(&mut line).unwrap();
            assert!(line.starts_with("ready"), "{line}");
            (child, out)
        };
        // Nothing happens, and still it is noticed that nobody reads any more.
        let (child, out) = begin();
        drop(out);
        let said = ended(child, SOON);
        assert_eq!((said.code(), said.stderr.as_str()), (Some(0), ""));
        let (child, out) = begin();
        set_often(place, 10_000);
        rustix::process::kill_process(rustix::process::Pid::from_child(&child), Signal::INT)
            .unwrap();
        let said = ended(child, SOON);
        assert_eq!((said.code(), said.stderr.as_str()), (Some(0), ""));
        drop(out);
    });
}

#[test]
fn a_watch_stands_still_with_its_session_and_goes_on_with_it() {
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        let watched = Watched::begin(place, &[]);
        for round in 0..2 {
            place.says(&["pause", "s"], 0);
            place.write(&format!("meanwhile{round}"), "x");
            assert_eq!(phase(place, "s"), "paused");
            place.says(&["resume", "s"], 0);
            watched.until(&format!("modified    meanwhile{round}"));
            inside(place, &format!("mkdir -p d{round}/e; >d{round}/e/f"));
            watched.until(&format!("created     d{round}/e/f"));
        }
        watched.interrupt();
    });
}

#[test]
fn a_watch_says_what_became_of_its_session() {
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        let watched = Watched::begin(place, &[]);
        // Whoever is inside may kill what serves files.
        place.say(&["exec", "s", "--shell", "kill -9 -1"]);
        let (code, said) = watched.finish();
        assert!(code == Some(1) && said.contains("was killed inside its sandbox"), "{said}");
        let watched = Watched::begin(place, &["--json"]);
        place.says(&["rm", "s"], 0);
        watched.until_one("an error", |line| line.contains("\"not_found\""));
        let (code, said) = watched.finish();
        assert_eq!((code, said.as_str()), (Some(1), ""));
        place.says(&["create", "--name", "s"], 0);
        let watched = Watched::begin(place, &[]);
        place.says(&["rm", "s"], 0);
        let (code, said) = watched.finish();
        assert!(code == Some(1) && said.contains("was removed while it was watched"), "{said}");
        place.says(&["create", "--name", "s"], 0);
        let watched = Watched::begin(place, &[]);
        outcome(place.host("/bin/kill").arg("-9").args(keepers(place)), SOON);
        let (code, said) = watched.finish();
        assert!(code == Some(1) && said.contains("was lost while it was watched"), "{said}");
    });
}

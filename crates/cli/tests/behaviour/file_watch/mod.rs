//! Watches of a session's files, by the command.

mod attacks;
mod ends;
mod events;
mod limits;

use crate::place::{PYTHON, Place, SOON, lines_of, started, until};
use rustix::process::{Pid, Signal, kill_process};
use std::io::Read;
use std::process::{Child, Stdio};
use std::sync::mpsc::Receiver;
use std::time::Instant;

/// A `file watch` that runs, and is read all the time.
pub(super) struct Watched {
    child: Child,
    lines: Receiver<String>,
}

impl Watched {
    /// Watches with these words, and waits until the watch stands.
    pub(super) fn begin(place: &Place, words: &[&str]) -> Self {
        let words: Vec<&str> = [&["file", "watch", "s"], words].concat();
        let mut command = place.cofferdam(&words);
        let mut child = started(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
        let lines = lines_of(child.stdout.take().unwrap());
        let watched = Self { child, lines };
        let first = watched.next();
        let is_ready = first.as_deref().is_some_and(|line| line.contains("ready"));
        assert!(is_ready, "as {}: {words:?}: {first:?}: {}", place.uid(), watched.finish().1);
        watched
    }

    /// The next line; `None` at the end.
    pub(super) fn next(&self) -> Option<String> {
        self.lines.recv_timeout(SOON).ok()
    }

    /// All lines up to one that is this, which is among them.
    pub(super) fn until(&self, wanted: &str) -> Vec<String> {
        self.until_one(wanted, |line| line == wanted)
    }

    /// All lines up to one like this.
    pub(super) fn until_one(&self, what: &str, is_it: impl Fn(&str) -> bool) -> Vec<String> {
        let (mut lines, begin) = (Vec::new(), Instant::now());
        while let Some(line) = self.next().filter(|_| begin.elapsed() < 3 * SOON) {
            lines.push(line);
            if lines.last().is_some_and(|line| is_it(line)) {
                return lines;
            }
        }
        let last: Vec<&String> = lines.iter().rev().take(20).collect();
        panic!("{what:?} was not told after {} lines, the last of them {last:?}", lines.len())
    }

    /// Sends a signal.
    pub(super) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for the end. Answers the exit code and standard error.
    pub(super) fn finish(mut self) -> (Option<i32>, String) {
        let status = until(SOON, || self.child.try_wait().unwrap()).unwrap_or_else(|| {
            let _ = self.child.kill();
            let _ = self.child.wait();
            panic!("the watch did not end")
        });
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (status.code(), said)
    }

    /// Ends it as somebody at a terminal does.
    pub(super) fn interrupt(self) {
        self.signal(Signal::INT);
        let (code, said) = self.finish();
        assert_eq!((code, said.as_str()), (Some(0), ""));
    }
}

/// Runs a line of shell in the session.
pub(super) fn inside(place: &Place, line: &str) -> String {
    place.says(&["exec", "s", "--shell", line], 0).text()
}

/// Sets permissions so often, of two files by turns: equal events in a row are one.
pub(super) fn set_often(place: &Place, times: usize) {
    let set = "import os\nfor n in 'ab': open(n, 'w').close()";
    let often = format!("for n in range({times}): os.chmod('ab'[n % 2], 0o600 + n % 8)");
    place.says(&["exec", "s", "--", PYTHON, "-c", &format!("{set}\n{often}")], 0);
}

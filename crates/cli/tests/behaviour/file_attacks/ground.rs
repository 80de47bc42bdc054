//! A session with something to steal beside its workspace.

use super::attacks::{Attack, Expected};
use crate::place::{PYTHON, Place, SOON, Said, outcome, until};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// What stands in each secret file.
pub(super) const SECRET: &str = "not for anybody inside";

/// How often a verb meets names that are being swapped.
const RACED: u32 = 8;

/// Makes what must not be reached in the sandbox's own space, and says how it is.
const INSIDE: &str = "rm -rf /tmp/out; mkdir -p /tmp/out/dir; \
    for f in secret dir/inner; do printf '%s' 'not for anybody inside' >/tmp/out/$f; \
    chmod 640 /tmp/out/$f; done; touch -d @1000000000 /tmp/out/secret /tmp/out/dir/inner";
const SEEN: &str = "cd /tmp/out && find . -printf '%p %y %m %s %T@ %n\\n' | grep -v '^\\. \\|^./dir d' | sort; \
    find . | sort; cat secret dir/inner";

/// Swaps a directory with a link that leads out, and counts.
const SWAPPER: &str = "\
import ctypes, os, time
libc = ctypes.CDLL(None)
os.makedirs('busy/real', exist_ok=True)
open('busy/real/secret', 'w').write('fine')
os.symlink('/tmp/out', 'busy/link')
n = 0
while True:
    libc.renameat2(-100, b'busy/real', -100, b'busy/link', 2)
    n += 1
    time.sleep(0.00005)
    if n % 50 == 0:
        open('busy.next', 'w').write(str(n))
        os.rename('busy.next', 'busy.count')
";

/// A session under attack.
pub(super) struct Ground<'a> {
    pub(super) place: &'a Place,
    outside: PathBuf,
    before: BTreeMap<PathBuf, String>,
    inside: String,
}

impl<'a> Ground<'a> {
    pub(super) fn new(place: &'a Place) -> Self {
        let outside = place.base.join("outside");
        fs::create_dir_all(outside.join("dir")).unwrap();
        for name in ["secret", "dir/inner"] {
            fs::write(outside.join(name), SECRET).unwrap();
            place.give(&outside.join(name));
        }
        place.give(&outside.join("dir"));
        place.give(&outside);
        let mut ground = Self { place, before: listing(&outside), outside, inside: String::new() };
        place.says(&["create", "--name", "s"], 0);
        ground.inside(INSIDE);
        ground.inside = ground.inside(SEEN);
        place.write("swap.py", SWAPPER);
        place.says(&["exec", "s", "-d", "--", PYTHON, "swap.py"], 0);
        until(SOON, || (ground.swaps() > 0).then_some(())).unwrap();
        ground
    }

    /// How often names were swapped so far.
    pub(super) fn swaps(&self) -> u64 {
        let count = fs::read_to_string(self.place.workspace.join("busy.count"));
        count.ok().and_then(|count| count.parse().ok()).unwrap_or(0)
    }

    /// What a line of shell prints inside.
    pub(super) fn inside(&self, line: &str) -> String {
        self.place.says(&["exec", "s", "--shell", line], 0).text()
    }

    /// Sets a trap: a line of shell that is run inside, or on the host where it begins with `host:`.
    pub(super) fn set(&self, trap: &str) {
        match trap.strip_prefix("host:") {
            Some(line) => {
                let mut shell = self.place.host("/bin/sh");
                let said = outcome(shell.args(["-c", line]), SOON);
                assert_eq!(said.code(), Some(0), "{line}: {said:?}");
            }
            None => drop(self.inside(&format!("{{ {trap}; }} >/dev/null"))),
        }
    }

    /// Takes all traps away.
    pub(super) fn restore(&self) {
        self.inside(&format!(
            "{INSIDE}; find . -mindepth 1 -maxdepth 1 -name 't*' -exec rm -rf {{}} +"
        ));
    }

    /// Why an attack was not held, if it was not.
    pub(super) fn failure_of(&self, attack: &Attack) -> Option<String> {
        let times = if attack.expected == Expected::Either { RACED } else { 1 };
        (0..times).find_map(|_| self.failure_once(attack))
    }

    fn failure_once(&self, attack: &Attack) -> Option<String> {
        self.set(attack.trap);
        let host = self.outside.to_str().unwrap();
        let words: Vec<String> = attack.words.iter().map(|w| w.replace("OUTSIDE", host)).collect();
        let words: Vec<&str> = ["file", words[0].as_str(), "s"]
            .into_iter()
            .chain(words[1..].iter().map(String::as_str))
            .collect();
        let mut command = self.place.cofferdam(&words);
        let said = outcome(command.stdin(input(self.place)), SOON);
        let failure = self.judge(attack, &said);
        self.restore();
        failure.map(|why| format!("{:?} after {:?}: {why}: {said:?}", attack.words, attack.trap))
    }

    fn judge(&self, attack: &Attack, said: &Said) -> Option<String> {
        if self.inside(SEEN) != self.inside {
            return Some(format!("changed inside: {}", self.inside(SEEN)));
        }
        if listing(&self.outside) != self.before {
            return Some("changed on the host".to_owned());
        }
        let everything = [said.text(), said.stderr.clone()].concat();
        if everything.contains(SECRET) {
            return Some("told the secret".to_owned());
        }
        if said.stderr.chars().any(|c| c.is_control() && c != '\n') {
            return Some("control characters reach the terminal".to_owned());
        }
        match (attack.expected, said.code()) {
            (Expected::Done, Some(0)) | (Expected::Either, Some(0 | 1)) => None,
            (Expected::Refused(words), Some(1)) if said.stderr.contains(words) => None,
            (Expected::Usage, Some(2)) => None,
            (expected, code) => Some(format!("expected {expected:?}, got {code:?}")),
        }
    }
}

/// What verbs read from standard input.
fn input(place: &Place) -> Stdio {
    let path = place.base.join("input");
    fs::write(&path, "written by an attack").unwrap();
    fs::File::open(path).unwrap().into()
}

/// Everything of each file that an attack could change. How many names one has is left out: a trap
/// may be another name of it.
fn listing(directory: &Path) -> BTreeMap<PathBuf, String> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let meta = fs::symlink_metadata(&path).unwrap();
        let content = if meta.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
        let facts = (meta.mode(), meta.uid(), meta.gid(), meta.size());
        if meta.is_dir() {
            all.extend(listing(&path));
        }
        let times = if meta.is_file() { meta.mtime_nsec() } else { 0 };
        all.insert(path, format!("{facts:?} {times} {content:?}"));
    }
    all
}

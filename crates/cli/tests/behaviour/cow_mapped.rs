//! What is stored through a mapping of a file moves no time of change, and is found all the same.

use crate::cow_history::{at, exec};
use crate::place::{PYTHON, Place, SOON, everyone, until};
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Writes through a mapping of `f`, once at once and once when it is told, and says whether the times of the
/// file told of the second.
const MAPS: &str = "
import mmap, os, time
f = open('f', 'r+b')
m = mmap.mmap(f.fileno(), 0)
m[0:4] = b'good'
print('mapped', flush=True)
while not os.path.exists('/tmp/go'): time.sleep(0.01)
before = os.stat('f').st_ctime_ns
m[0:4] = b'evil'
print('same', os.stat('f').st_ctime_ns == before, flush=True)
if os.path.exists('/tmp/stay'): time.sleep(1000)
";

/// How often the attack is tried anew where the kernel wrote the page out in between, which moves the time.
const TRIES: usize = 40;

/// A store into a page that is dirty already leaves every time as it was.
#[test]
fn what_is_written_through_a_mapping_is_in_the_next_point() {
    everyone(|place| {
        for (tier, stays) in [("--cow", true), ("--cow=copy", true), ("--cow", false)] {
            let was_unseen = (0..TRIES).any(|_| {
                let was_unseen = stores(place, tier, stays);
                place.says(&["rm", "s"], 0);
                was_unseen
            });
            assert!(was_unseen, "{tier}: the attack");
        }
    });
}

/// Stores through a mapping between two points. Says whether no time told of it.
fn stores(place: &Place, tier: &str, stays: bool) -> bool {
    place.write("f", "real\n");
    place.says(&["create", tier, "--name", "s"], 0);
    if stays {
        exec(place, "touch /tmp/stay");
    }
    place.says(&["exec", "s", "-d", "--id", "m", "--", PYTHON, "-c", MAPS], 0);
    let logs = |word: &str| place.says(&["logs", "s", "m"], 0).text().contains(word);
    assert!(until(SOON, || logs("mapped").then_some(())).is_some());
    // Long enough for a time of change to be certain.
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(exec(place, "cat f"), "good\n");
    let good = at(place);
    exec(place, "touch /tmp/go");
    assert!(until(SOON, || logs("same").then_some(())).is_some());
    assert_eq!(exec(place, "cat f"), "evil\n");
    let (good, evil) = (good.to_string(), at(place).to_string());
    let range = format!("{good}..{evil}");
    assert!(place.says(&["diff", "s", &range], 0).text().contains("+evil"), "{tier}");
    let was_unseen = logs("same True");
    for (to, expected) in [(&good, "good\n"), (&evil, "evil\n")] {
        place.says(&["undo", "s", "--to", to], 0);
        assert_eq!(exec(place, "cat f"), expected, "{tier}");
    }
    assert_eq!(fs::read_to_string(place.workspace.join("f")).unwrap(), "real\n");
    was_unseen
}

/// There no time tells of stores through mappings at all.
#[test]
fn what_is_written_through_a_mapping_is_found_in_a_file_system_in_memory() {
    everyone(|place| {
        let memory = Path::new("/dev/shm").join(&place.marker);
        fs::create_dir(&memory).unwrap();
        place.give(&memory);
        let says = |words: &[&str]| {
            let mut command = place.cofferdam(words);
            let output = command.env("COFFERDAM_HOME", &memory).output().unwrap();
            assert!(output.status.success(), "{words:?} {output:?}");
            String::from_utf8(output.stdout).unwrap()
        };
        for tier in ["--cow", "--cow=copy"] {
            place.write("f", "real\n");
            place.write("other", "real\n");
            says(&["create", tier, "--name", "s"]);
            let store =
                "import mmap; f = open('f', 'r+b'); m = mmap.mmap(f.fileno(), 0); m[0:4] = b'%s'";
            for word in ["good", "evil"] {
                says(&["exec", "s", "--", PYTHON, "-c", &store.replace("%s", word)]);
            }
            let diff = says(&["diff", "s"]);
            assert!(diff.contains("+evil") && !diff.contains("other"), "{tier} {diff:?}");
            says(&["undo", "s", "1"]);
            assert_eq!(says(&["exec", "s", "--", "cat", "f"]), "good\n", "{tier}");
            says(&["rm", "s"]);
        }
        fs::remove_dir_all(&memory).unwrap();
    });
}

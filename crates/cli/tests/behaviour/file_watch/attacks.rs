//! Attacks that want a watch to tell of what lies outside, and careless watchers that do.

use super::{Watched, inside};
use crate::place::{PYTHON, everyone, skipped};
use std::fs;

/// Swaps a directory with a link that leads out, and makes names on both sides all the while.
pub(super) const SWAPPER: &str = "\
import ctypes, os
libc = ctypes.CDLL(None)
os.makedirs('/tmp/out/inner', exist_ok=True)
os.makedirs('busy/real/inner', exist_ok=True)
os.symlink('/tmp/out', 'busy/link')
for n in range(3000):
    libc.renameat2(-100, b'busy/real', -100, b'busy/link', 2)
    for name in ('/tmp/out/secret-%d' % n, '/tmp/out/inner/secret-%d' % n):
        os.close(os.open(name, os.O_CREAT | os.O_WRONLY))
        os.unlink(name)
    if n % 100 == 0:
        os.makedirs('fresh-%d/deep' % n)
        os.rename('fresh-%d' % n, 'busy/fresh-%d' % n)
open('done', 'w')
";

#[test]
fn swapping_a_directory_with_a_link_tells_nothing_of_outside() {
    everyone(|place| {
        if !std::path::Path::new(PYTHON).exists() {
            return skipped("python", "there is no python3 to swap names with");
        }
        place.says(&["create", "--name", "s"], 0);
        place.write("swap.py", SWAPPER);
        let watched = Watched::begin(place, &[]);
        place.says(&["exec", "s", "--", PYTHON, "swap.py"], 0);
        let lines = watched.until("modified    done");
        let renamed = lines.iter().filter(|line| line.starts_with("renamed     busy/")).count();
        assert!(renamed > 100, "the names were hardly swapped: {renamed}");
        let secrets: Vec<&String> = lines.iter().filter(|l| l.contains("secret")).collect();
        assert!(secrets.is_empty(), "{secrets:?}");
        watched.interrupt();
    });
}

/// Watches by path, as a program without care does.
const CARELESS: &str = "\
import ctypes, os
libc = ctypes.CDLL(None)
os.makedirs('/tmp/out', exist_ok=True)
os.path.lexists('way') or os.symlink('/tmp/out', 'way')
queue = libc.inotify_init1(0)
assert libc.inotify_add_watch(queue, b'way', 0x100) >= 0
open('/tmp/out/secret', 'w')
print(b'secret' in os.read(queue, 4096))
";

#[test]
fn a_watcher_that_takes_no_care_is_led_outside() {
    everyone(|place| {
        if !std::path::Path::new(PYTHON).exists() {
            return skipped("python", "there is no python3 to be careless");
        }
        place.says(&["create", "--name", "s"], 0);
        place.write("careless.py", CARELESS);
        assert_eq!(place.says(&["exec", "s", "--", PYTHON, "careless.py"], 0).text(), "True\n");
    });
}

#[test]
fn what_leaves_the_workspace_is_not_told_of_any_more() {
    everyone(|place| {
        place.says(&["create", "--name", "s"], 0);
        inside(place, "mkdir -p d/e; chmod -R 777 d");
        let watched = Watched::begin(place, &[]);
        // The control: before it goes, it is told of.
        fs::write(place.workspace.join("d/e/first"), "x").unwrap();
        watched.until("modified    d/e/first");
        let outside = place.base.join("outside");
        fs::rename(place.workspace.join("d"), &outside).unwrap();
        fs::write(outside.join("e/secret"), "x").unwrap();
        fs::create_dir(outside.join("e/secret-directory")).unwrap();
        inside(place, ">done");
        let lines = watched.until("created     done");
        assert!(lines.contains(&"removed     d/".to_owned()), "{lines:?}");
        assert!(!lines.iter().any(|line| line.contains("secret")), "{lines:?}");
        watched.interrupt();
    });
}

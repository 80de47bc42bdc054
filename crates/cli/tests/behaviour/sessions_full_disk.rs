//! A disk that is full to the last block: what runs can be seen, stopped and removed all the same.

use crate::place::{PYTHON, Place, SOON, caller, everyone, outcome, skipped, until};
use crate::sessions::phase;
use std::fs;
use std::io::Write;
use std::process::Command;

/// A small disk of its own under the state directory of a place, gone with the value.
struct Disk<'a>(&'a Place);

impl<'a> Disk<'a> {
    fn mount(place: &'a Place) -> Self {
        let options = format!("size=24M,mode=700,uid={0},gid={0}", place.uid());
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "tmpfs"])
            .arg(&place.state)
            .status();
        assert!(mounted.unwrap().success());
        Self(place)
    }

    /// Takes every block that is left.
    fn fill(&self) {
        let mut rest = fs::File::create(self.0.state.join("probe-rest")).unwrap();
        while rest.write_all(&[1; 4096]).is_ok() {}
        assert!(self.is_full());
    }

    /// Whether it takes not even one more block.
    fn is_full(&self) -> bool {
        let probe = self.0.state.join("probe");
        let is_full = fs::write(&probe, [1; 4096]).is_err();
        let _ = fs::remove_file(&probe);
        is_full
    }
}

impl Drop for Disk<'_> {
    fn drop(&mut self) {
        let _ = self.0.cofferdam(&["rm", "s", "t"]).output();
        let _ = Command::new("umount").arg("-l").arg(&self.0.state).status();
    }
}

#[test]
fn on_a_full_disk_what_runs_can_be_seen_stopped_and_removed() {
    if caller() != 0 {
        return skipped("root", "only root mounts a disk to fill");
    }
    everyone(|place| {
        let disk = Disk::mount(place);
        for name in ["s", "t"] {
            place.says(&["create", "--name", name], 0);
            place.says(&["exec", name, "--", "true"], 0);
        }
        place.says(&["exec", "t", "-d", "--id", "srv", "--", "sleep", "1000"], 0);
        // It takes every block that comes free, without a pause.
        let fills = "while :; do cat /dev/zero >> ~/f; done 2> /dev/null";
        place.says(&["exec", "s", "-d", "--id", "fills", "--shell", fills], 0);
        until(SOON, || disk.is_full().then_some(())).unwrap();
        for (refused, code) in
            [(&["exec", "t", "--", "true"][..], 125), (&["create", "--name", "u"], 1)]
        {
            let said = place.says(refused, code);
            let is_clear = said.stderr.contains("its disk is full")
                && said.stderr.contains("hint: Free some space")
                && said.stderr.contains("`cofferdam rm`");
            assert!(is_clear, "{said:?}");
            assert_eq!(said.stderr.matches("disk I/O error").count(), 1, "{said:?}");
        }
        assert_eq!(phase(place, "s"), "running");
        place.says(&["show", "t"], 0);
        assert!(place.says(&["ps", "t"], 0).text().contains("srv"));
        place.says(&["signal", "t", "srv", "TERM"], 0);
        // First the one that would take what is let go of.
        place.says(&["pause", "s"], 0);
        place.says(&["pause", "t"], 0);
        assert_eq!((phase(place, "s"), phase(place, "t")), ("paused".into(), "paused".into()));
        disk.fill();
        place.says(&["exec", "t", "--", "true"], 125);
        place.says(&["gc"], 0);
        place.says(&["rm", "s"], 0);
        assert!(!disk.is_full());
        // With room all is as before, and what was kept for this is there again.
        place.says(&["exec", "t", "--", "true"], 0);
        place.says(&["wait", "t", "srv"], 143);
        assert!(place.state.join("reserve").exists());
        let check = "import sqlite3, sys\nprint(*sqlite3.connect(sys.argv[1]).execute('PRAGMA integrity_check').fetchone())";
        let database = place.state.join("sessions.db");
        let whole = outcome(place.host(PYTHON).args(["-c", check]).arg(database), SOON);
        assert_eq!(whole.text(), "ok\n", "{whole:?}");
        place.says(&["rm", "t"], 0);
        assert_eq!(fs::read_dir(place.state.join("owed")).unwrap().count(), 0);
    });
}

#[test]
fn what_fills_the_disk_without_a_pause_is_removed() {
    if caller() != 0 {
        return skipped("root", "only root mounts a disk to fill");
    }
    everyone(|place| {
        let disk = Disk::mount(place);
        place.says(&["create", "--name", "s"], 0);
        let fills = "while :; do cat /dev/zero >> ~/f; done 2> /dev/null";
        place.says(&["exec", "s", "-d", "--shell", fills], 0);
        until(SOON, || disk.is_full().then_some(())).unwrap();
        place.says(&["rm", "s"], 0);
        assert!(!disk.is_full());
        place.says(&["create", "--name", "t"], 0);
        place.says(&["exec", "t", "--", "true"], 0);
    });
}

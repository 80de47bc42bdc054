//! A disk that is full to the last block: what runs can be seen, stopped and removed all the same.

use crate::images::layout;
use crate::place::{
    PYTHON, Place, SOON, caller, ended, everyone, lines_of, outcome, skipped, started, until,
};
use crate::sessions::phase;
use serde_json::json;
use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A small disk of its own under the state directory of a place, gone with the value.
struct Disk<'a>(&'a Place);

impl<'a> Disk<'a> {
    fn mount(place: &'a Place) -> Self {
        Self::mount_with(place, "size=24M")
    }

    fn mount_with(place: &'a Place, most: &str) -> Self {
        let options = format!("{most},mode=700,uid={0},gid={0}", place.uid());
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
        // As an object with what helps, too.
        let said = place.says(&["run", "--json", "--", "true"], 125).object();
        assert!(said["error"]["hint"].as_str().unwrap().contains("Free some space"), "{said}");
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
fn where_no_session_ever_was_what_fills_the_disk_is_removed_all_the_same() {
    if caller() != 0 {
        return skipped("root", "only root mounts a disk to fill");
    }
    everyone(|place| {
        let disk = Disk::mount(place);
        let import = |name: &str| {
            let entry = json!({"path": name, "content": name});
            let image = layout(place, name, &json!({"layers": [[entry]]}));
            place.says(&["image", "import", &image], 0);
            image
        };
        let (one, _two) = (import("one"), import("two"));
        // As a pull leaves it for which there was too little room.
        let part = place.state.join(format!("images/staging/fetch-{}", "0".repeat(64)));
        fs::create_dir(&part).unwrap();
        fs::write(part.join("packed"), vec![1; 8 << 20]).unwrap();
        for path in [&part, &part.join("packed")] {
            place.give(path);
        }
        disk.fill();
        for words in [&["ls"][..], &["gc"], &["gc", "--dry-run"], &["image", "ls"]] {
            place.says(words, 0);
        }
        assert!(disk.is_full());
        place.says(&["image", "rm", &one], 0);
        disk.fill();
        assert_eq!(place.says(&["image", "gc"], 0).text().lines().count(), 1);
        assert!(!disk.is_full() && !part.exists());
        let made = ["sessions.db", "sessions.new", "reserve", "locks", "homes"];
        assert!(!made.iter().any(|name| place.state.join(name).exists()));
        // With room there are sessions as ever.
        place.says(&["create", "--name", "s"], 0);
        assert!(place.says(&["ls"], 0).text().contains(" s "));
    });
}

#[test]
fn the_end_of_what_runs_is_told_on_a_full_disk() {
    if caller() != 0 {
        return skipped("root", "only root mounts a disk to fill");
    }
    everyone(|place| {
        let disk = Disk::mount(place);
        place.says(&["create", "--name", "t"], 0);
        // Its end takes several blocks more, because it tells the words again.
        let long = "a".repeat(5000);
        let line = "echo ready; read line";
        let mut command = place.cofferdam(&["exec", "t", "-i", "--", "/bin/sh", "-c", line, &long]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut waiting = started(&mut command);
        let lines = lines_of(waiting.stdout.take().unwrap());
        assert_eq!(lines.recv_timeout(SOON).unwrap(), "ready");
        disk.fill();
        drop(waiting.stdin.take());
        let said = ended(waiting, SOON);
        let is_told = said.code() == Some(1) || said.stderr.contains("its disk is full");
        assert!(is_told, "as {}: {said:?}", place.uid());
        place.says(&["rm", "t"], 0);
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

#[test]
fn on_a_disk_that_takes_no_more_files_what_runs_can_be_seen_and_removed() {
    if caller() != 0 {
        return skipped("root", "only root mounts a disk to fill");
    }
    everyone(|place| {
        let _disk = Disk::mount_with(place, "size=24M,nr_inodes=300");
        place.says(&["create", "--name", "s"], 0);
        // Until there was none for two seconds: others give some back.
        let fills = "i=0; n=0; while [ $n -lt 100 ]; do if true >~/$i; then i=$((i+1)); n=0; \
                     else n=$((n+1)); sleep 0.02; fi; done 2>/dev/null; sleep 1000";
        place.says(&["exec", "s", "-d", "--id", "fills", "--shell", fills], 0);
        let free = || rustix::fs::statvfs(&place.state).unwrap().f_favail;
        let mut since = Instant::now();
        let is_full = || {
            if free() > 0 {
                since = Instant::now();
            }
            (since.elapsed() > Duration::from_secs(3)).then_some(())
        };
        assert!(until(SOON, is_full).is_some());
        assert_eq!(phase(place, "s"), "running");
        assert!(place.says(&["ps", "s"], 0).text().contains("fills"));
        let said = place.says(&["create", "--name", "t"], 1);
        assert!(said.stderr.contains("no room for another file"), "{said:?}");
        place.says(&["rm", "s"], 0);
        place.says(&["create", "--name", "t"], 0);
        place.says(&["exec", "t", "--", "true"], 0);
    });
}

#[test]
fn output_that_finds_no_room_is_counted() {
    if caller() != 0 {
        return skipped("root", "only root mounts a disk to fill");
    }
    everyone(|place| {
        let disk = Disk::mount(place);
        place.says(&["create", "--name", "s"], 0);
        let line = "head -c 20000000 /dev/zero >~/f; head -c 30000000 /dev/zero; exit 5";
        let said = place.says(&["exec", "s", "--json", "--shell", line], 5).object();
        let omitted = said["omitted"]["stdout"].as_u64().unwrap();
        assert!(omitted > 10 << 20, "{omitted}");
        drop(disk);
    });
}

#[test]
fn an_undo_that_cannot_be_told_says_that_the_session_has_gone() {
    everyone(|place| {
        place.says(&["create", "--cow", "--name", "s"], 0);
        for text in ["one", "two"] {
            place.says(&["exec", "s", "--shell", &format!("echo {text} >f")], 0);
        }
        let say = |what: &str| {
            let script =
                "import sqlite3, sys; sqlite3.connect(sys.argv[1]).executescript(sys.argv[2])";
            let base = place.state.join("sessions.db");
            let mut command = place.host(PYTHON);
            command.args(["-c", script]).arg(base).arg(what);
            assert!(command.status().unwrap().success());
        };
        // As where the disk is full: nothing takes the event.
        say("CREATE TRIGGER no BEFORE INSERT ON events WHEN new.kind = 'undone' \
             BEGIN SELECT RAISE(FAIL, 'no room'); END");
        let said = place.says(&["undo", "s"], 1);
        assert!(said.stderr.contains("the session stands at point 1 now"), "{said:?}");
        assert!(said.stderr.contains("no room"), "{said:?}");
        say("DROP TRIGGER no");
        assert_eq!(crate::cow_history::at(place), 1);
        assert_eq!(place.says(&["exec", "s", "--", "cat", "f"], 0).text(), "one\n");
        // The control: what did not go says nothing of that.
        let said = place.says(&["undo", "s", "--to", "77"], 1);
        assert!(!said.stderr.contains("stands at"), "{said:?}");
    });
}

#[test]
fn a_fork_that_finds_no_room_leaves_nothing() {
    if caller() != 0 {
        return skipped("root", "only root mounts a disk to fill");
    }
    everyone(|place| {
        let disk = Disk::mount(place);
        let workspace = place.workspace.to_str().unwrap();
        place.says(&["create", "--cow", "--name", "s", "-w", workspace], 0);
        let line = "mkdir d; seq 40000 >d/big; echo z >d/z";
        place.says(&["exec", "s", "--shell", line], 0);
        let rest = place.state.join("probe-rest");
        for left in [128, 200, 288, 360] {
            fill_but(&disk, left);
            let said = place.says(&["fork", "s", "t"], 1);
            assert!(said.stderr.contains("hint:"), "{left}: {said:?}");
            fs::remove_file(&rest).unwrap();
            place.says(&["exec", "t", "--", "true"], 125);
            let listed = place.says(&["ls", "--json"], 0).object();
            assert_eq!(listed["sessions"].as_array().unwrap().len(), 1, "{left}: {listed}");
        }
        // The control: with room it is made, and its name is free.
        place.says(&["fork", "s", "t"], 0);
        let read = "wc -l <d/big; cat d/z";
        assert_eq!(place.says(&["exec", "t", "--shell", read], 0).text(), "40000\nz\n");
    });
}

/// Leaves so many KiB.
fn fill_but(disk: &Disk<'_>, left: u64) {
    disk.fill();
    let rest = disk.0.state.join("probe-rest");
    let file = fs::OpenOptions::new().write(true).open(&rest).unwrap();
    file.set_len(file.metadata().unwrap().len() - left * 1024).unwrap();
}

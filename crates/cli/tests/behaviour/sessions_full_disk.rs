//! A disk that is full to the last block: what runs can be seen, stopped and removed all the same.

use crate::images::layout;
use crate::place::{
    PYTHON, Place, SOON, caller, ended, everyone, lines_of, outcome, skipped, started, until,
};
use crate::sessions::phase;
use rustix::fs::{FallocateFlags, fallocate};
use serde_json::json;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
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

    /// One of real blocks, of 1 KiB, as `mkfs` makes them on a small disk. `None` where there can be none.
    fn of_small_blocks(place: &'a Place) -> Option<Self> {
        let image = place.base.join("disk.img");
        fs::File::create(&image).unwrap().set_len(20 << 20).unwrap();
        let made = Command::new("mke2fs")
            .args(["-q", "-F", "-t", "ext4", "-b", "1024", "-m", "0"])
            .arg(&image)
            .status();
        let mut mount = Command::new("mount");
        mount.args(["-o", "loop"]).args([&image, &place.state]);
        if !made.is_ok_and(|made| made.success()) || !mount.status().unwrap().success() {
            return None;
        }
        let disk = Self(place);
        fs::remove_dir(place.state.join("lost+found")).unwrap();
        chown(&place.state, Some(place.uid()), Some(place.uid())).unwrap();
        fs::set_permissions(&place.state, fs::Permissions::from_mode(0o700)).unwrap();
        Some(disk)
    }

    /// Takes every block but so many bytes.
    fn fill_but(&self, bytes: u64) {
        let take = |file: &fs::File, at: u64, most: u64| {
            fallocate(file, FallocateFlags::empty(), at, most).is_ok()
        };
        let left = self.0.state.join("probe-left");
        let kept = fs::File::create(&left).unwrap();
        assert!(bytes == 0 || take(&kept, 0, bytes));
        let rest = fs::File::create(self.0.state.join("probe-rest")).unwrap();
        let (mut at, mut size) = (0, 1 << 20);
        while size >= 1024 {
            match take(&rest, at, size) {
                true => at += size,
                false => size /= 2,
            }
        }
        fs::remove_file(&left).unwrap();
        rustix::fs::syncfs(&rest).unwrap();
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
fn on_a_full_disk_of_small_blocks_sessions_can_be_seen_and_removed() {
    if caller() != 0 {
        return skipped("root", "only root mounts a disk to fill");
    }
    // Those that the file which is shared in memory begins with, fewer, and none.
    for bytes in [10 << 10, 5 << 10, 0] {
        everyone(|place| {
            let Some(disk) = Disk::of_small_blocks(place) else {
                return skipped("root", "no disk is mounted from a file");
            };
            place.says(&["create", "--cow", "--name", "s"], 0);
            disk.fill_but(bytes);
            assert_eq!(phase(place, "s"), "running");
            let said = place.says(&["exec", "s", "--", "true"], 125);
            assert!(said.stderr.contains("its disk is full"), "{said:?}");
            place.says(&["stop", "s"], 0);
            place.says(&["ls"], 0);
            place.says(&["gc"], 0);
            place.says(&["rm", "s"], 0);
            assert_eq!(place.says(&["ls", "--json"], 0).object()["sessions"], json!([]));
            fs::remove_file(place.state.join("probe-rest")).unwrap();
            place.says(&["create", "--name", "t"], 0);
            place.says(&["exec", "t", "--", "true"], 0);
            drop(disk);
        });
    }
}

#[test]
fn a_disk_of_small_blocks_that_fills_up_harms_nobody_who_is_at_work() {
    if caller() != 0 {
        return skipped("root", "only root mounts a disk to fill");
    }
    everyone(|place| {
        let Some(disk) = Disk::of_small_blocks(place) else {
            return skipped("root", "no disk is mounted from a file");
        };
        place.says(&["create", "--name", "s"], 0);
        let line = "echo ready; read line";
        let mut command = place.cofferdam(&["exec", "s", "-i", "--shell", line]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut waiting = started(&mut command);
        let lines = lines_of(waiting.stdout.take().unwrap());
        assert_eq!(lines.recv_timeout(SOON).unwrap(), "ready");
        // Whoever has the database open has all that it needs of the disk.
        let shared = fs::metadata(place.state.join("sessions.db-shm")).unwrap();
        assert!(shared.blocks() * 512 >= shared.len(), "{shared:?}");
        disk.fill_but(0);
        assert_eq!(phase(place, "s"), "running");
        drop(waiting.stdin.take());
        let said = ended(waiting, SOON);
        let is_told = said.code() == Some(1) || said.stderr.contains("its disk is full");
        assert!(is_told, "as {}: {said:?}", place.uid());
        place.says(&["rm", "s"], 0);
        drop(disk);
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

/// Changes the database of a place by hand.
fn change(place: &Place, what: &str) {
    let script = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).executescript(sys.argv[2])";
    let base = place.state.join("sessions.db");
    let mut command = place.host(PYTHON);
    assert!(command.args(["-c", script]).arg(base).arg(what).status().unwrap().success());
}

#[test]
fn what_was_done_and_cannot_be_told_says_that_it_was_done() {
    everyone(|place| {
        place.says(&["create", "--cow", "--name", "s"], 0);
        for text in ["one", "two"] {
            place.says(&["exec", "s", "--shell", &format!("echo {text} >{text}")], 0);
        }
        place.says(&["snapshot", "create", "s", "--label", "before"], 0);
        let file = place.base.join("exported");
        let file = file.to_str().unwrap();
        place.says(&["snapshot", "export", "s", "before", file], 0);
        // As where the disk is full: nothing takes the event.
        change(
            place,
            "CREATE TRIGGER no BEFORE INSERT ON events WHEN new.kind LIKE 'snapshot_%' \
             OR new.kind IN ('applied', 'discarded') BEGIN SELECT RAISE(FAIL, 'no room'); END",
        );
        let snapshots = || {
            let all = place.says(&["snapshot", "ls", "s", "--json"], 0).object();
            all["snapshots"].as_array().unwrap().len()
        };
        let untold = |words: &[&str], done: &str| {
            let said = place.says(words, 1).stderr;
            let is_told = said.contains(done)
                && said.contains("but that could not be written down among the events")
                && said.contains("no room");
            assert!(is_told, "{words:?}: {said}");
        };
        untold(&["snapshot", "create", "s", "--label", "more"], "it was taken as snapshot ");
        assert_eq!(snapshots(), 2);
        untold(&["snapshot", "rm", "s", "more"], " is gone");
        assert_eq!(snapshots(), 1);
        let import = ["snapshot", "import", "s", file, "--label", "in"];
        untold(&import, "it came in as snapshot ");
        assert_eq!(snapshots(), 2);
        place.says(&["exec", "s", "--", "rm", "one"], 0);
        untold(&["snapshot", "restore", "s", "before"], "the session stands at snapshot ");
        assert_eq!(place.says(&["exec", "s", "--", "cat", "one"], 0).text(), "one\n");
        untold(&["apply", "s", "one"], "what was to land has landed (1)");
        assert_eq!(fs::read_to_string(place.workspace.join("one")).unwrap(), "one\n");
        untold(&["discard", "s"], "what was to be dropped is dropped (1)");
        place.says(&["exec", "s", "--", "test", "!", "-e", "two"], 0);
        // The control: what was not done says nothing of that.
        let said = place.says(&["snapshot", "rm", "s", "none"], 1);
        assert!(!said.stderr.contains("is gone"), "{said:?}");
    });
}

#[test]
fn what_makes_room_works_on_a_full_disk() {
    if caller() != 0 {
        return skipped("root", "only root mounts a disk to fill");
    }
    everyone(|place| {
        let disk = Disk::mount(place);
        place.says(&["create", "--cow", "--name", "s"], 0);
        place.says(&["exec", "s", "--shell", "head -c 3000000 /dev/urandom >big; echo >small"], 0);
        place.says(&["snapshot", "create", "s", "--label", "old"], 0);
        place.says(&["exec", "s", "--", "rm", "big"], 0);
        place.says(&["snapshot", "create", "s", "--label", "new"], 0);
        disk.fill();
        let said = place.says(&["exec", "s", "--", "true"], 125);
        assert!(said.stderr.contains("`snapshot rm`, `discard` and"), "{said:?}");
        let left = place.says(&["snapshot", "ls", "s"], 0).text();
        assert!(left.contains("old") && left.contains("new"), "{left}");
        place.says(&["snapshot", "rm", "s", "new"], 0);
        disk.fill();
        place.says(&["discard", "s"], 0);
        assert_eq!(place.says(&["snapshot", "ls", "s"], 0).text().matches("old").count(), 1);
        fs::remove_file(place.state.join("probe-rest")).unwrap();
        place.says(&["exec", "s", "--", "test", "!", "-e", "small"], 0);
        let kept = fs::metadata(place.state.join("reserve")).unwrap();
        assert!(kept.blocks() * 512 >= 512 << 10, "{kept:?}");
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
        // As where the disk is full: nothing takes the event.
        change(
            place,
            "CREATE TRIGGER no BEFORE INSERT ON events WHEN new.kind = 'undone' \
             BEGIN SELECT RAISE(FAIL, 'no room'); END",
        );
        let said = place.says(&["undo", "s"], 1);
        assert!(said.stderr.contains("the session stands at point 1 now"), "{said:?}");
        assert!(said.stderr.contains("no room"), "{said:?}");
        change(place, "DROP TRIGGER no");
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
            disk.fill_but(left * 1024);
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

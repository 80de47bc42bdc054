//! Copy-on-write workspaces where the kernel makes no overlay: the workspace is copied.

use crate::cow::{TIERS, every_tier};
use crate::cow_tree::tree;
use crate::place::{Place, SOON, everyone, outcome, skipped, started, until};
use crate::schema::is_valid;
use crate::sessions::phase;
use crate::sessions_durable::keepers;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Overlays over overlays, deeper than the kernel lets another one be. Gone with this.
struct Deep(Vec<PathBuf>);

impl Deep {
    /// Mounts them, with a workspace in the last; `None` where this cannot be mounted.
    fn new(place: &Place) -> Option<(Self, PathBuf)> {
        let mut deep = Self(Vec::new());
        let mut lower = place.base.join("deep-lower");
        fs::create_dir(&lower).unwrap();
        for level in 0..2 {
            let at = |name: &str| place.base.join(format!("deep-{name}-{level}"));
            let (upper, work, mount) = (at("upper"), at("work"), at("mount"));
            for directory in [&upper, &work, &mount] {
                fs::create_dir(directory).unwrap();
            }
            let options = format!(
                "lowerdir={},upperdir={},workdir={}",
                lower.display(),
                upper.display(),
                work.display()
            );
            let mut command = Command::new("mount");
            command.args(["-t", "overlay", "overlay", "-o", &options]).arg(&mount);
            if !command.stderr(Stdio::null()).status().unwrap().success() {
                skipped("overlay", "no overlay can be mounted by this user");
                return None;
            }
            deep.0.push(mount.clone());
            lower = mount;
        }
        let workspace = lower.join("project");
        fs::create_dir(&workspace).unwrap();
        fs::write(workspace.join("f"), "real\n").unwrap();
        for path in [&workspace, &workspace.join("f")] {
            place.give(path);
        }
        Some((deep, workspace))
    }
}

impl Drop for Deep {
    fn drop(&mut self) {
        for mount in self.0.iter().rev() {
            let _ = Command::new("umount").arg("-l").arg(mount).status();
        }
    }
}

#[test]
fn where_the_kernel_makes_no_overlay_the_workspace_is_copied_and_the_reason_is_told() {
    everyone(|place| {
        let Some((_deep, workspace)) = Deep::new(place) else { return };
        let before = tree(&workspace);
        let at = workspace.to_str().unwrap();
        let work = "echo mine > f; cat f";
        let refused = place.run(&["--cow=overlay", "-w", at, "--shell", work]);
        assert_eq!(refused.code(), Some(125), "the control: {refused:?}");
        let said = place.run(&["--cow", "-w", at, "--shell", work]);
        assert_eq!(said.text(), "mine\n", "{said:?}");
        assert!(said.stderr.contains("the workspace was copied, because "), "{said:?}");
        let report = place.report(&["--cow", "-w", at, "--shell", work]);
        assert!(report["tier"] == "copy" || report["tier"] == "reflink", "{report}");
        assert!(report["tier_why"].as_str().unwrap().contains("overlay"), "{report}");
        is_valid(place, "result", &report);
        assert_eq!(fs::read_dir(place.state.join("copies")).unwrap().count(), 0);
        let refused = place.say(&["create", "--cow=overlay", "-w", at, "--name", "o"]);
        assert_ne!(refused.code(), Some(0), "{refused:?}");
        let created = place.says(&["create", "--cow", "-w", at, "--name", "s"], 0);
        assert!(created.stderr.contains("the workspace was copied, because "), "{created:?}");
        let shown = place.says(&["show", "s", "--json"], 0).object();
        assert_eq!(
            shown["tier_why"],
            report["tier_why"].as_str().map_or(Value::Null, |_| shown["tier_why"].clone())
        );
        assert!(shown["tier_why"].as_str().unwrap().contains("overlay"), "{shown}");
        is_valid(place, "session", &shown);
        assert_eq!(place.says(&["exec", "s", "--shell", work], 0).text(), "mine\n");
        // What was made once stays what it is.
        outcome(place.host("/bin/kill").arg("-9").args(keepers(place)), SOON);
        until(SOON, || (phase(place, "s") == "lost").then_some(())).unwrap();
        assert_eq!(place.says(&["exec", "s", "--", "cat", "f"], 0).text(), "mine\n");
        assert_eq!(tree(&workspace), before);
        place.says(&["rm", "s"], 0);
        assert_eq!(fs::read_dir(place.state.join("kept")).unwrap().count(), 0);
    });
}

/// What is told of changes, without what differs from run to run.
fn told(all: &Value) -> Vec<Value> {
    let mut all = all.as_array().unwrap().clone();
    for change in &mut all {
        let change = change.as_object_mut().unwrap();
        change.remove("version");
        for side in ["before", "after"] {
            let state = change.get_mut(side).and_then(Value::as_object_mut);
            // The size of a directory is the file system's own business.
            if let Some(state) = state.filter(|state| state["kind"] == "directory") {
                state.remove("size");
            }
        }
    }
    all
}

#[test]
fn changes_of_both_tiers_are_told_and_land_in_the_same_words() {
    everyone(|place| {
        let work = "echo s > a; rm -r gone; mkdir -p new/deep; echo n > new/deep/n; chmod 755 b; \
                    rm typed; mkdir typed; echo t > typed/t; ln -s a link; ln new/deep/n other; \
                    echo x > .envrc; touch same; echo c > conflict";
        let mut all = Vec::new();
        for cow in TIERS {
            for name in ["a", "b", "gone/one", "gone/two", "typed", "same", "conflict", "old"] {
                place.write(name, "real\n");
            }
            place.says(&["create", cow, "--name", "s"], 0);
            place.says(&["exec", "s", "--shell", work], 0);
            place.write("conflict", "of the host\n");
            place.write("meanwhile", "of the host\n");
            fs::remove_file(place.workspace.join("old")).unwrap();
            let diff = place.says(&["diff", "s", "--json"], 0).object();
            is_valid(place, "changes", &diff);
            let tried = place.says(&["apply", "s", "--dry-run", "--json"], 1).object();
            let discarded = place.says(&["discard", "s", "b", "new", "--json"], 0).object();
            let landed = place.says(&["apply", "s", "--json"], 1).object();
            let left = place.says(&["diff", "s", "--json"], 0).object();
            let objects = [
                told(&diff["changes"]),
                told(&tried["applied"]),
                told(&tried["kept"]),
                told(&discarded["discarded"]),
                told(&landed["applied"]),
                told(&landed["kept"]),
                told(&left["changes"]),
            ];
            let read = |name: &str| fs::read_to_string(place.workspace.join(name)).ok();
            let names = ["a", "typed/t", "gone/one", "conflict", "meanwhile", "old", "other"];
            all.push((objects, names.map(read)));
            place.says(&["rm", "s"], 0);
            for entry in fs::read_dir(&place.workspace).unwrap() {
                let path = entry.unwrap().path();
                let _ = fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path));
            }
        }
        assert_eq!(all[0], all[1]);
        let text = serde_json::to_string(&all[1].0).unwrap();
        for word in ["\"conflict\"", "changed", "protected", "gone/one", "typed/t"] {
            assert!(text.contains(word), "the control: {word}: {text}");
        }
        assert!(!text.contains("meanwhile") && !text.contains("\"old\""), "{text}");
        assert_eq!(all[1].1[0].as_deref(), Some("s\n"));
        assert_eq!(all[1].1[3].as_deref(), Some("of the host\n"));
    });
}

#[test]
fn snapshots_forks_and_receipts_are_those_of_any_layer() {
    every_tier(|place, cow| {
        for name in ["f", "kept", "gone/one"] {
            place.write(name, "real\n");
        }
        let before = tree(&place.workspace);
        place.says(&["create", cow, "--name", "s"], 0);
        let first = place.says(&["exec", "s", "--receipt", "--json", "--shell", "echo one > f"], 0);
        let seen = first.object()["receipt"].to_string();
        assert!(seen.contains("\"f\"") && !seen.contains("\"kept\""), "{seen}");
        place.says(&["snapshot", "create", "s"], 0);
        place.says(&["exec", "s", "--shell", "echo two > f; rm -r gone; echo n > n"], 0);
        place.says(&["fork", "s", "t"], 0);
        place.says(&["snapshot", "restore", "s", "2"], 0);
        let names = |session: &str| -> Vec<String> {
            let diff = place.says(&["diff", session, "--json"], 0).object();
            let changes = diff["changes"].as_array().unwrap().clone();
            let named = |change: &Value| format!("{} {}", change["kind"], change["path"]);
            changes.iter().map(named).map(|line| line.replace('"', "")).collect()
        };
        assert_eq!(names("s"), ["modified f"]);
        let forked = ["modified f", "removed gone", "removed gone/one", "added n"];
        assert_eq!(names("t"), forked);
        // A fork begins where the session began.
        place.write("kept", "of the host\n");
        place.says(&["exec", "t", "--shell", "echo mine > kept"], 0);
        let applied = place.says(&["apply", "t", "--json"], 1).object();
        assert_eq!(applied["kept"].as_array().unwrap().len(), 1, "{applied}");
        assert_eq!(fs::read_to_string(place.workspace.join("kept")).unwrap(), "of the host\n");
        assert_ne!(tree(&place.workspace), before);
        place.says(&["rm", "s"], 0);
        place.says(&["rm", "t"], 0);
        fs::remove_file(place.workspace.join("n")).unwrap();
    });
}

#[test]
fn what_a_command_removes_is_told_by_the_history_of_both_tiers() {
    everyone(|place| {
        for tier in TIERS {
            fs::write(place.workspace.join("gone"), "real\n").unwrap();
            place.give(&place.workspace.join("gone"));
            place.says(&["create", "--name", "s", tier], 0);
            place.says(&["exec", "s", "--shell", "rm gone; echo n >new"], 0);
            let history = place.says(&["history", "s", "--json"], 0).object();
            let effects = &history["points"][1]["effects"];
            assert_eq!((&effects["added"], &effects["removed"]), (&1.into(), &1.into()), "{tier}");
            let stat = place.says(&["diff", "s", "0..1", "--name-only"], 0).text();
            assert_eq!(stat, "gone\nnew\n", "{tier}");
            let undone = place.says(&["undo", "s"], 0).text();
            assert_eq!(undone, "+ gone\n- new\n", "{tier}");
            assert_eq!(place.says(&["exec", "s", "--", "cat", "gone"], 0).text(), "real\n");
            place.says(&["rm", "s"], 0);
        }
    });
}

#[test]
fn a_copy_of_a_killed_run_is_removed_by_the_next_start() {
    everyone(|place| {
        place.write("f", "real\n");
        let before = tree(&place.workspace);
        let copies = place.state.join("copies");
        let count = || fs::read_dir(&copies).map_or(0, Iterator::count);
        let words = ["run", "--cow=copy", "--shell", "echo x > f; touch ready; sleep 1000"];
        let mut run = started(place.cofferdam(&words).stderr(Stdio::null()));
        let is_ready = || {
            let one = fs::read_dir(&copies).ok()?.flatten().next()?.path();
            one.join("upper/ready").exists().then_some(())
        };
        until(SOON, is_ready).unwrap();
        // Another start leaves it alone while it lives.
        assert_eq!(place.run(&["--no-workspace", "--", "true"]).code(), Some(0));
        assert_eq!(count(), 1);
        let killed = outcome(place.host("/bin/kill").args(["-9", &run.id().to_string()]), SOON);
        assert_eq!(killed.code(), Some(0), "{killed:?}");
        run.wait().unwrap();
        let is_gone = || {
            assert_eq!(place.run(&["--no-workspace", "--", "true"]).code(), Some(0));
            (count() == 0).then_some(())
        };
        until(SOON, is_gone).unwrap();
        assert_eq!(tree(&place.workspace), before);
    });
}

#[test]
fn what_cannot_be_copied_is_named_and_does_not_land() {
    everyone(|place| {
        let closed = place.write("closed", "secret");
        place.write("f", "real\n");
        let (node, name) = (place.workspace.join("device"), "device: it is a device");
        let (left_out, named) = match place.is_root() {
            false => {
                fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
                ("closed", "closed: it cannot be read")
            }
            true => {
                let mut mknod = Command::new("mknod");
                let made = mknod.arg(&node).args(["c", "1", "3"]).status();
                if !made.is_ok_and(|made| made.success()) {
                    return skipped("device", "none can be made here");
                }
                ("device", name)
            }
        };
        let said = place.run(&["--cow=copy", "--", "cat", "f"]);
        assert_eq!(said.text(), "real\n");
        assert!(said.stderr.contains(named), "{said:?}");
        let created = place.says(&["create", "--cow=copy", "--name", "s"], 0);
        assert!(created.stderr.contains(named), "{created:?}");
        let shown = place.says(&["show", "s"], 0).text();
        assert!(shown.contains(named), "{shown}");
        let listed = place.says(&["exec", "s", "--", "ls"], 0).text();
        assert!(!listed.contains(left_out), "{listed}");
        assert_eq!(place.says(&["diff", "s"], 0).text(), "", "what was left out is no change");
        place.says(&["exec", "s", "--shell", &format!("echo mine > {left_out}; echo g > g")], 0);
        let applied = place.says(&["apply", "s", "--json"], 1).object();
        assert_eq!(applied["kept"][0]["path"], left_out, "{applied}");
        assert_eq!(applied["applied"][0]["path"], "g", "the control: {applied}");
        place.says(&["rm", "s"], 0);
    });
}

#[test]
fn what_was_applied_stays_over_an_undo_in_a_copy_which_says_that_it_would_be_taken_back() {
    everyone(|place| {
        place.write("f", "real\n");
        place.says(&["create", "--cow=copy", "--name", "s"], 0);
        place.says(&["exec", "s", "--shell", "echo two > f; echo n > new"], 0);
        place.says(&["apply", "s"], 0);
        let said = place.says(&["undo", "s", "--dry-run", "--json"], 0).object();
        assert_eq!((&said["landed"], &said["in_copy"]), (&2.into(), &true.into()), "{said}");
        let said = place.says(&["undo", "s"], 0);
        for words in ["stays in the workspace, and", "works in a copy", "changes: 2"] {
            assert!(said.stderr.contains(words), "{words}: {said:?}");
        }
        // What it says is so.
        assert_eq!(place.says(&["exec", "s", "--shell", "cat f; ls"], 0).text(), "real\nf\n");
        place.says(&["apply", "s"], 0);
        assert_eq!(fs::read_to_string(place.workspace.join("f")).unwrap(), "real\n");
        assert!(!place.workspace.join("new").exists());
    });
}

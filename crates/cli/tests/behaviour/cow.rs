//! Copy-on-write workspaces: what lands, and where.

use crate::cow_tree::tree;
use crate::place::{PYTHON, Place, SOON, caller, everyone, outcome, skipped, started, until};
use crate::sessions::phase;
use crate::sessions_durable::keepers;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

/// Ways to change a tree, each of its own file or name. `at` is a path of the tree, and each says what
/// the tree is inside afterwards, or fails.
const ATTACKS: [(&str, &str); 22] = [
    ("write", "open(at+'/write','w').write('evil')"),
    ("append", "open(at+'/append','a').write('evil')"),
    ("truncate", "os.truncate(at+'/truncate', 0)"),
    ("chmod", "os.chmod(at+'/chmod', 0o777)"),
    ("times", "os.utime(at+'/times', (1, 1))"),
    ("attribute", "os.setxattr(at+'/attribute', 'user.evil', b'1')"),
    ("remove", "os.remove(at+'/remove')"),
    ("rename", "os.rename(at+'/rename', at+'/renamed')"),
    ("replace", "open(at+'/fresh','w').write('evil'); os.rename(at+'/fresh', at+'/replace')"),
    ("link", "os.link(at+'/link', at+'/linked'); open(at+'/linked','w').write('evil')"),
    ("symlink", "os.symlink('/etc', at+'/symlink')"),
    ("mkdir", "os.makedirs(at+'/made/deep')"),
    ("rmdir", "os.remove(at+'/directory/file'); os.rmdir(at+'/directory')"),
    ("socket", "import socket; socket.socket(socket.AF_UNIX).bind(at+'/socket')"),
    ("pipe", "os.mkfifo(at+'/pipe')"),
    (
        "map",
        "f=os.open(at+'/map',os.O_RDWR); import mmap; m=mmap.mmap(f,4); m[:4]=b'evil'; m.flush()",
    ),
    (
        "reopen",
        "f=os.open(at+'/reopen',os.O_PATH); g=os.open('/proc/self/fd/%d'%f,os.O_RDWR); \
         os.write(g,b'evil')",
    ),
    (
        "beneath",
        "d=os.open(at,os.O_PATH); f=os.open('beneath',os.O_WRONLY|os.O_TRUNC,dir_fd=d); \
         os.write(f,b'evil')",
    ),
    (
        "nameless",
        "f=os.open(at,os.O_TMPFILE|os.O_WRONLY,0o644); os.write(f,b'evil'); import ctypes; \
         name=('/proc/self/fd/%d'%f).encode(); c=ctypes.CDLL(None,use_errno=True); \
         r=c.linkat(-100,name,-100,(at+'/nameless').encode(),0x400); \
         assert r==0, ctypes.get_errno()",
    ),
    (
        "hole",
        "f=os.open(at+'/hole',os.O_RDWR); import ctypes; \
         r=ctypes.CDLL(None,use_errno=True).fallocate(f,3,ctypes.c_long(0),ctypes.c_long(2)); \
         assert r==0, ctypes.get_errno()",
    ),
    ("control", "open(at+'/.git/config','a').write('[core]\\n\\tfsmonitor = evil\\n')"),
    ("absent", "open(at+'/.envrc','w').write('evil')"),
];

/// What makes a layer.
pub(crate) const TIERS: [&str; 2] = ["--cow=overlay", "--cow=copy"];

/// A promise for every caller, and for whatever makes the layer.
pub(crate) fn every_tier(promise: impl Fn(&Place, &str)) {
    everyone(|place| TIERS.into_iter().for_each(|cow| promise(place, cow)));
}

/// The names by which a workspace is reached inside.
fn names(place: &Place) -> [String; 4] {
    let own = place.workspace.to_str().unwrap();
    let root = "/proc/self/root";
    [own.to_owned(), "/workspace".to_owned(), format!("{root}{own}"), format!("{root}/workspace")]
}

/// A workspace in which every attack has something to change.
fn fill(place: &Place) {
    let files = ["write", "append", "truncate", "chmod", "times", "attribute", "remove", "rename"];
    let more = ["replace", "link", "directory/file", "map", "reopen", "beneath", "hole"];
    for name in files.into_iter().chain(more) {
        place.write(name, "good");
    }
    let made = outcome(place.host("git").args(["init", "-q"]), SOON);
    assert_eq!(made.code(), Some(0), "{made:?}");
}

fn clear(place: &Place) {
    for entry in fs::read_dir(&place.workspace).unwrap() {
        let path = entry.unwrap().path();
        match fs::symlink_metadata(&path).unwrap().is_dir() {
            true => fs::remove_dir_all(path).unwrap(),
            false => fs::remove_file(path).unwrap(),
        }
    }
}

fn script(attack: &str, at: &str) -> String {
    format!("import os\nat={at:?}\n{attack}\nprint('landed')")
}

/// What somebody does in a session by Python must succeed there.
fn does(place: &Place, session: &str, script: &str) {
    let said = place.says(&["exec", session, "--", PYTHON, "-c", script], 0);
    assert_eq!(said.text(), "landed\n");
}

#[test]
fn nothing_lands_in_the_real_tree_by_whatever_way_and_whatever_name() {
    every_tier(|place, cow| {
        fill(place);
        let before = tree(&place.workspace);
        for (number, at) in names(place).iter().enumerate() {
            let session = format!("s{number}");
            place.says(&["create", cow, "--name", &session], 0);
            assert_eq!(tree(&place.workspace), before, "a layer needs no placeholders");
            for (name, attack) in ATTACKS {
                does(place, &session, &script(attack, at));
                let now = tree(&place.workspace);
                assert_eq!(now, before, "{name} by {at} as {}", place.uid());
            }
            place.says(&["rm", &session], 0);
            assert_eq!(tree(&place.workspace), before);
        }
    });
}

#[test]
fn the_same_lands_where_the_workspace_is_not_copy_on_write() {
    everyone(|place| {
        for at in names(place) {
            for (name, attack) in ATTACKS {
                fill(place);
                let before = tree(&place.workspace);
                let words = ["--allow-sensitive-writes", "--", PYTHON, "-c"];
                let said = place.run(&[&words[..], &[&script(attack, &at)]].concat());
                assert_eq!(said.text(), "landed\n", "{name} by {at}: {said:?}");
                assert_ne!(tree(&place.workspace), before, "{name} by {at} as {}", place.uid());
                clear(place);
            }
        }
        fill(place);
        let before = tree(&place.workspace);
        place.says(&["create", "--name", "s"], 0);
        assert_ne!(tree(&place.workspace), before, "placeholders are seen as a difference");
    });
}

#[test]
fn a_session_keeps_its_layer_and_its_removal_takes_it() {
    every_tier(|place, cow| {
        fill(place);
        let before = tree(&place.workspace);
        place.says(&["create", cow, "--name", "s"], 0);
        let mut shown = place.says(&["show", "s", "--json"], 0).object();
        if shown["tier"] == "reflink" {
            // A copy that shares its blocks, where the disk can.
            shown["tier"] = "copy".into();
        }
        assert_eq!(
            (&shown["copy_on_write"], &shown["tier"]),
            (&true.into(), &cow.trim_start_matches("--cow=").into())
        );
        let work = "echo new > write; rm -r directory; mkdir -p a/closed; echo x > a/closed/f; \
                    chmod 0 a/closed";
        place.says(&["exec", "s", "--shell", work], 0);
        place.says(&["pause", "s"], 0);
        assert_eq!(phase(place, "s"), "paused");
        let holds =
            "cat write; ls -d directory a/closed 2>&1 | grep -c cannot; stat -c %a a/closed";
        assert_eq!(place.says(&["exec", "s", "--shell", holds], 0).text(), "new\n1\n0\n");
        // Everything of the session is killed at once, and nothing is told.
        let keepers = keepers(place);
        assert_eq!(keepers.len(), 1);
        outcome(place.host("/bin/kill").arg("-9").args(&keepers), SOON);
        until(SOON, || (phase(place, "s") == "lost").then_some(())).unwrap();
        assert_eq!(place.says(&["exec", "s", "--shell", holds], 0).text(), "new\n1\n0\n");
        assert_eq!(place.says(&["file", "read", "s", "write"], 0).text(), "new\n");
        place.says(&["rm", "s"], 0);
        assert_eq!(fs::read_dir(place.state.join("kept")).unwrap().count(), 0);
        assert_eq!(tree(&place.workspace), before);
    });
}

#[test]
fn what_is_written_through_the_file_service_lands_in_the_layer() {
    every_tier(|place, cow| {
        place.write("a.txt", "real");
        let before = tree(&place.workspace);
        place.says(&["create", cow, "--name", "s"], 0);
        let mut write = place.host("sh");
        write.args(["-c", "echo layer | \"$0\" file write s deep/a.txt", place.program()]);
        assert_eq!(outcome(&mut write, SOON).code(), Some(0));
        place.says(&["file", "mv", "s", "a.txt", "b.txt"], 0);
        assert_eq!(place.says(&["file", "read", "s", "b.txt"], 0).text(), "real");
        let seen = place.says(&["exec", "s", "--shell", "cat deep/a.txt; ls"], 0).text();
        assert_eq!(seen, "layer\nb.txt\ndeep\n");
        assert_eq!(tree(&place.workspace), before);
        place.says(&["rm", "s"], 0);
    });
}

#[test]
fn reading_changes_no_time_of_the_real_tree() {
    every_tier(|place, cow| {
        use std::os::unix::fs::MetadataExt;
        let file = place.write("f", "x");
        let read = |options: &[&str]| {
            // Long ago, so that the kernel would take note of any reading.
            let old =
                outcome(place.host("touch").args(["-a", "-d", "2001-01-01"]).arg(&file), SOON);
            assert_eq!(old.code(), Some(0), "{old:?}");
            let before = fs::metadata(&file).unwrap().atime();
            assert_eq!(place.run(&[options, &["--", "cat", "f"]].concat()).text(), "x");
            fs::metadata(&file).unwrap().atime() != before
        };
        assert!(!read(&[cow]));
        match read(&[]) {
            true => {}
            false => skipped("atime", "times of access are not kept here"),
        }
    });
}

#[test]
fn two_sessions_over_one_workspace_have_layers_of_their_own() {
    every_tier(|place, cow| {
        place.write("f", "real\n");
        let before = tree(&place.workspace);
        for (name, text) in [("a", "one"), ("b", "two")] {
            place.says(&["create", cow, "--name", name], 0);
            place.says(&["exec", name, "--shell", &format!("echo {text} > f")], 0);
        }
        assert_eq!(place.says(&["exec", "a", "--", "cat", "f"], 0).text(), "one\n");
        assert_eq!(place.says(&["exec", "b", "--", "cat", "f"], 0).text(), "two\n");
        place.says(&["rm", "a"], 0);
        assert_eq!(place.says(&["exec", "b", "--", "cat", "f"], 0).text(), "two\n");
        assert_eq!(tree(&place.workspace), before);
        place.says(&["rm", "b"], 0);
    });
}

#[test]
fn a_run_sees_the_workspace_and_its_changes_are_thrown_away() {
    every_tier(|place, cow| {
        fill(place);
        let before = tree(&place.workspace);
        let work = "test \"$(cat write)\" = good && echo evil > write && rm -r directory && \
                    git config user.name x && git config user.email y && git add -A && \
                    git commit -qm all && cat write && git status --short | wc -l";
        let said = place.run(&[cow, "--shell", work]);
        assert_eq!((said.code(), said.text().as_str()), (Some(0), "evil\n0\n"), "{said:?}");
        assert_eq!(tree(&place.workspace), before);
        assert_eq!(said.stderr, "", "no control file is new");
        let again = place.run(&[cow, "--", "cat", "write"]);
        assert_eq!(again.text(), "good");
        if cow == "--cow=copy" {
            // It lies on the host's disk, and not in the private space.
            return clear(place);
        }
        let large = "head -c 20000000 /dev/zero > large";
        let said = place.run(&[cow, "--disk", "10M", "--shell", large]);
        assert!(said.stderr.contains("No space left"), "{said:?}");
        assert_eq!(tree(&place.workspace), before);
        clear(place);
    });
}

#[test]
fn a_directory_of_the_workspace_is_moved_by_tools_that_copy_where_they_have_to() {
    everyone(|place| {
        fill(place);
        let before = tree(&place.workspace);
        place.says(&["create", "--cow=overlay", "--name", "s"], 0);
        let renamed = "import os, errno\ntry:\n    os.rename('directory', 'moved')\nexcept OSError \
                       as e:\n    print(errno.errorcode[e.errno])";
        assert_eq!(place.says(&["exec", "s", "--", PYTHON, "-c", renamed], 0).text(), "EXDEV\n");
        let moved = "mv directory moved && cat moved/file && ls -d directory";
        assert_eq!(place.says(&["exec", "s", "--shell", moved], 2).text(), "good");
        assert_eq!(tree(&place.workspace), before);
        // Nothing lies under a copy.
        place.says(&["create", "--cow=copy", "--name", "t"], 0);
        assert_eq!(place.says(&["exec", "t", "--", PYTHON, "-c", renamed], 0).text(), "");
        assert_eq!(tree(&place.workspace), before);
    });
}

#[test]
fn a_workspace_that_was_replaced_meanwhile_is_an_error_that_says_so() {
    every_tier(|place, cow| {
        place.write("f", "old\n");
        place.says(&["create", cow, "--name", "s"], 0);
        place.says(&["exec", "s", "--shell", "echo mine > f"], 0);
        place.says(&["exec", "s", "-d", "--id", "d", "--", "sleep", "1000"], 0);
        outcome(place.host("/bin/kill").arg("-9").args(keepers(place)), SOON);
        until(SOON, || (phase(place, "s") == "lost").then_some(())).unwrap();
        let old = place.workspace.with_extension("old");
        fs::rename(&place.workspace, &old).unwrap();
        fs::create_dir(&place.workspace).unwrap();
        place.give(&place.workspace);
        let refused = place.say(&["exec", "s", "--", "true"]);
        assert_eq!(refused.code(), Some(125), "{refused:?}");
        let named = place.workspace.to_str().unwrap();
        assert!(refused.stderr.contains("is not the directory"), "{refused:?}");
        assert!(refused.stderr.contains(named), "{refused:?}");
        fs::remove_dir(&place.workspace).unwrap();
        fs::rename(&old, &place.workspace).unwrap();
        assert_eq!(place.says(&["exec", "s", "--", "cat", "f"], 0).text(), "mine\n");
        place.says(&["rm", "s"], 0);
    });
}

#[test]
fn what_contradicts_a_layer_is_refused_by_name() {
    everyone(|place| {
        place.write("sub/f", "x");
        let sub = place.workspace.join("sub");
        let other = place.base.join("other");
        fs::create_dir(&other).unwrap();
        place.give(&other);
        let refused = |words: &[&str], what: &str| {
            let said = place.run(&[words, &["--", "true"]].concat());
            assert_eq!(said.code(), Some(125), "{words:?}: {said:?}");
            assert!(said.stderr.contains(what), "{words:?}: {said:?}");
        };
        refused(&["--cow", "--profile", "read-only"], "--cow cannot hold");
        refused(&["--cow", "--write", sub.to_str().unwrap()], "past the layer");
        refused(&["--cow", "--no-workspace"], "exclude each other");
        let elsewhere = ["--cow", "--write", other.to_str().unwrap(), "--", "true"];
        assert_eq!(place.run(&elsewhere).code(), Some(0), "the control");
        place.says(&["create", "--cow", "--name", "s"], 0);
        let other = place.say(&["ensure", "s"]);
        assert!(other.stderr.contains("copy_on_write"), "{other:?}");
        place.says(&["ensure", "s", "--cow"], 0);
    });
}

#[test]
fn what_is_shown_or_hidden_below_a_layer_stays_so() {
    every_tier(|place, cow| {
        place.write("sub/secret/f", "hidden");
        place.write("shown/f", "shown");
        let before = tree(&place.workspace);
        let look = "ls sub/secret; mv sub other 2>&1 | grep -c busy; echo x > shown/f; cat shown/f; \
                    rm -rf sub; echo y > sub/own && cat sub/own";
        let words = [cow, "--hide", "sub/secret", "--read", "shown", "--shell", look];
        let said = place.run(&words);
        assert_eq!(said.text(), "1\nshowny\n", "{said:?}");
        assert_eq!(tree(&place.workspace), before);
    });
}

#[test]
fn the_repository_of_a_linked_worktree_is_not_written_past_the_layer() {
    every_tier(|place, cow| {
        let git = |words: &[&str]| {
            let mut git = place.host("git");
            git.args(["-c", "user.name=a", "-c", "user.email=b"]).args(words);
            let said = outcome(&mut git, SOON);
            assert_eq!(said.code(), Some(0), "{words:?}: {said:?}");
        };
        place.write("f", "x");
        git(&["init", "-q"]);
        git(&["add", "-A"]);
        git(&["commit", "-qm", "first"]);
        let linked = place.base.join("linked");
        git(&["worktree", "add", "-q", linked.to_str().unwrap()]);
        let before = tree(&place.workspace);
        let commit = "echo y > f; git -c user.name=a -c user.email=b commit -qam second; cat f";
        let words = [cow, "-w", linked.to_str().unwrap(), "--shell", commit];
        let said = place.run(&words);
        assert_eq!(said.text(), "y\n");
        assert!(said.stderr.contains("Read-only file system"), "{said:?}");
        assert_eq!(tree(&place.workspace), before);
        place.run(&words[1..]);
        assert_ne!(tree(&place.workspace), before, "the control");
        fs::remove_dir_all(&linked).unwrap();
        clear(place);
    });
}

#[test]
fn a_setting_makes_workspaces_copy_on_write() {
    everyone(|place| {
        place.write("f", "real\n");
        let before = tree(&place.workspace);
        let mut command = place.cofferdam(&["run", "--shell", "echo x > f"]);
        command.env("COFFERDAM_COPY_ON_WRITE", "true");
        assert_eq!(outcome(&mut command, SOON).code(), Some(0));
        assert_eq!(tree(&place.workspace), before);
        let mut command = place.cofferdam(&["run", "--json", "--shell", "echo x > f"]);
        command.env("COFFERDAM_COPY_ON_WRITE", "copy");
        let said = outcome(&mut command, SOON).object();
        assert!(["copy", "reflink"].contains(&said["tier"].as_str().unwrap()), "{said}");
        assert_eq!(tree(&place.workspace), before);
        place.run(&["--shell", "echo x > f"]);
        assert_ne!(tree(&place.workspace), before, "the control");
    });
}

#[test]
fn no_set_id_file_is_made_in_a_layer_and_none_of_the_workspace_gives_anything() {
    every_tier(|place, cow| {
        let program = place.workspace.join("program");
        fs::copy("/bin/sh", &program).unwrap();
        place.give(&program);
        fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).unwrap();
        place.says(&["create", cow, "--name", "s"], 0);
        let inside = "chmod 4755 f 2>/dev/null; : > f; chmod 6777 f; ./program -c 'id -u; id -ru'";
        let said = place.say(&["exec", "s", "--shell", inside]);
        assert_eq!(said.text(), "1000\n1000\n", "{said:?}");
        let upper = layer(place).join("upper/f");
        assert_eq!(fs::metadata(upper).unwrap().permissions().mode() & 0o6000, 0);
        place.says(&["rm", "s"], 0);
    });
}

/// The one layer of the place.
fn layer(place: &Place) -> PathBuf {
    let kept = fs::read_dir(place.state.join("kept")).unwrap();
    let mut layers = kept.map(|entry| entry.unwrap().path().join("cow"));
    let layer = layers.next().unwrap();
    assert_eq!(layers.next(), None);
    layer
}

#[test]
fn what_the_layer_keeps_belongs_to_the_owner_of_the_workspace() {
    everyone(|place| {
        use std::os::unix::fs::MetadataExt;
        place.write("f", "x");
        if place.is_root() {
            // A project of somebody else's.
            for path in [place.workspace.clone(), place.workspace.join("f")] {
                std::os::unix::fs::chown(path, Some(54_322), Some(54_323)).unwrap();
            }
        }
        let real = fs::metadata(&place.workspace).unwrap();
        place.says(&["create", "--cow", "--name", "s"], 0);
        place.says(&["exec", "s", "--shell", "echo y > f; mkdir d; echo z > d/g; ls -ld f"], 0);
        let upper = layer(place).join("upper");
        for name in ["", "f", "d", "d/g"] {
            let found = fs::metadata(upper.join(name)).unwrap();
            assert_eq!((found.uid(), found.gid()), (real.uid(), real.gid()), "{name}");
        }
        let base = fs::read_to_string(layer(place).join("base.json")).unwrap();
        let base: serde_json::Value = serde_json::from_str(&base).unwrap();
        assert_eq!(base["workspace"], place.workspace.to_str().unwrap());
        assert_eq!(
            (base["device"].as_u64(), base["inode"].as_u64()),
            (Some(real.dev()), Some(real.ino()))
        );
        assert_eq!(base["owner"]["uid"], real.uid());
        nobody_else_can_look(&place.state.join("kept"));
    });
}

fn nobody_else_can_look(kept: &Path) {
    assert_eq!(fs::metadata(kept).unwrap().permissions().mode() & 0o077, 0);
}

/// Something mounted on the host, gone with the value.
struct Mounted(PathBuf);

impl Mounted {
    /// `None` where mounting is not allowed.
    fn new(kind: &str, options: &str, at: &Path) -> Option<Self> {
        let mut mount = std::process::Command::new("mount");
        mount.args(["-t", kind, "-o", options, "none"]).arg(at);
        let said = outcome(&mut mount, SOON);
        said.status.success().then(|| Self(at.to_owned()))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn what_no_layer_can_lie_on_is_refused_with_the_remedy() {
    everyone(|place| {
        if caller() != 0 {
            return skipped("root", "only root mounts a file system in a workspace");
        }
        place.write("sub/f", "x");
        let sub = place.workspace.join("sub");
        let nested = Mounted::new("tmpfs", "size=1M", &sub).unwrap();
        for words in [&["run", "--cow", "--", "true"][..], &["create", "--cow", "--name", "s"]] {
            let refused = place.say(words);
            assert!(!refused.status.success(), "{refused:?}");
            assert!(refused.stderr.contains("sub is mounted in it"), "{refused:?}");
            assert!(refused.stderr.contains("Unmount it"), "{refused:?}");
        }
        assert_eq!(place.run(&["--", "true"]).code(), Some(0), "the control");
        drop(nested);
        assert_eq!(place.run(&["--cow", "--", "true"]).code(), Some(0), "the control");
        // Layers on layers on layers: the kernel takes two.
        let mut lower = place.workspace.clone();
        let mut stacked = Vec::new();
        for number in 0..2 {
            let at = place.base.join(format!("stack-{number}"));
            for name in ["u", "w", "m"] {
                fs::create_dir_all(at.join(name)).unwrap();
                place.give(&at.join(name));
            }
            let path = |name: &str| at.join(name).to_str().unwrap().to_owned();
            let options = format!(
                "lowerdir={},upperdir={},workdir={}",
                lower.display(),
                path("u"),
                path("w")
            );
            lower = at.join("m");
            stacked.push(Mounted::new("overlay", &options, &lower).unwrap());
        }
        let top = lower.to_str().unwrap();
        let cow = "--cow=overlay";
        for words in [&["run", cow, "-w", top, "--", "true"][..], &["create", cow, "-w", top]] {
            let refused = place.say(words);
            assert!(!refused.status.success(), "{refused:?}");
            assert!(refused.stderr.contains("ext4, xfs, btrfs"), "{refused:?}");
        }
        assert!(fs::read_dir(place.state.join("kept")).unwrap().next().is_none());
        while stacked.pop().is_some() {}
    });
}

#[test]
fn a_crash_while_a_session_is_made_leaves_no_layer_that_is_not_removed() {
    everyone(|place| {
        fill(place);
        let before = tree(&place.workspace);
        let mut met = 0;
        for after_ms in 0..20 {
            let mut maker = started(
                place.cofferdam(&["create", "--cow"]).stdout(Stdio::null()).stderr(Stdio::null()),
            );
            std::thread::sleep(Duration::from_millis(after_ms * 2));
            maker.kill().unwrap();
            maker.wait().unwrap();
            met += u32::from(keeps_a_layer(place));
        }
        println!("{met} of 20 kills met a layer");
        let listed = place.says(&["ls", "--json"], 0).object();
        for session in listed["sessions"].as_array().unwrap() {
            place.says(&["rm", session["id"].as_str().unwrap()], 0);
        }
        let clean = || {
            place.says(&["gc"], 0);
            (!keeps_a_layer(place) && keepers(place).is_empty()).then_some(())
        };
        until(SOON, clean).unwrap();
        assert_eq!(tree(&place.workspace), before);
    });
}

fn keeps_a_layer(place: &Place) -> bool {
    fs::read_dir(place.state.join("kept")).is_ok_and(|mut kept| kept.next().is_some())
}

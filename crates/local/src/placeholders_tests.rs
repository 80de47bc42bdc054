//! With real git, and as root in somebody else's workspace.

use super::*;
use crate::control_files::{self, ControlFiles, Nature};
use crate::test_directory::{TestDirectory, sweep};
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, chown};
use std::process::Command;

struct Fixture {
    directory: TestDirectory,
    state: StateDirectory,
}

impl Fixture {
    fn new(name: &str) -> Self {
        let directory = TestDirectory::new(&format!("placeholders-{name}"));
        fs::create_dir(directory.path().join("w")).unwrap();
        let state = StateDirectory::open(&directory.path().join("s")).unwrap();
        Self { directory, state }
    }

    fn repository(name: &str) -> Self {
        let fixture = Self::new(name);
        fixture.git(&["init", "-q", "."]);
        fixture.git(&["config", "user.name", "n"]);
        fixture.git(&["config", "user.email", "e@e"]);
        fixture
    }

    fn workspace(&self) -> PathBuf {
        self.directory.path().join("w")
    }

    fn path(&self, path: &str) -> PathBuf {
        self.workspace().join(path)
    }

    /// Standard output and standard error, together.
    fn git(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("git");
        let output = command.args(arguments).current_dir(self.workspace()).output().unwrap();
        assert!(output.status.success(), "git {arguments:?}: {output:?}");
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    }

    fn start(&self) -> (Placeholders, ControlFiles) {
        let share = Placeholders::hold(&self.state, &self.workspace()).unwrap();
        let found = control_files::find(share.directory()).unwrap();
        let unmade = share.make(&found.absent).unwrap();
        assert_eq!((unmade.exposed, unmade.by_nobody), (vec![], vec![]));
        (share, found)
    }

    /// Every name in the workspace, outside of git's objects.
    fn names(&self) -> Vec<String> {
        let output = Command::new("find").arg(self.workspace()).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let mut names: Vec<String> =
            text.lines().filter(|name| !name.contains("/objects")).map(str::to_owned).collect();
        names.sort();
        names
    }

    fn owed(&self) -> usize {
        fs::read_dir(self.directory.path().join("s/owed")).unwrap().count()
    }
}

#[test]
fn every_absent_name_is_there_meanwhile_and_gone_afterwards() {
    let fixture = Fixture::repository("litter");
    let before = fixture.names();
    let (share, found) = fixture.start();
    assert!(found.absent.len() > 20);
    for name in &found.absent {
        fixture.path(&name.path).symlink_metadata().unwrap();
    }
    assert!(fixture.path(".envrc").symlink_metadata().unwrap().file_type().is_socket());
    assert_eq!(fs::read(fixture.path(".git/commondir")).unwrap(), b".\n");
    share.remove().unwrap();
    assert_eq!(fixture.names(), before);
    assert_eq!(fixture.owed(), 0);
}

#[test]
fn a_placeholder_with_content_is_never_seen_without_it() {
    let fixture = Fixture::repository("whole");
    let path = fixture.path(".git/commondir");
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|threads| {
        let reader = threads.spawn(|| {
            let mut seen = 0;
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                let Ok(content) = fs::read(&path) else { continue };
                assert_eq!(content, b".\n");
                seen += 1;
            }
            seen
        });
        for _ in 0..200 {
            let (share, _) = fixture.start();
            share.remove().unwrap();
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(reader.join().unwrap() > 0, "the reader saw none");
    });
}

#[test]
fn git_on_the_host_neither_shows_nor_commits_them() {
    let fixture = Fixture::repository("git");
    fs::write(fixture.path("a"), "1").unwrap();
    let (share, _) = fixture.start();
    assert_eq!(fixture.git(&["status", "--porcelain", "--untracked-files=all"]), "?? a\n");
    fixture.git(&["add", "-A"]);
    fixture.git(&["commit", "-q", "-m", "one"]);
    assert_eq!(fixture.git(&["ls-tree", "-r", "--name-only", "HEAD"]), "a\n");
    assert_eq!(fixture.git(&["status", "--porcelain", "--ignored"]), "");
    for quiet in [
        &["submodule", "status"][..],
        &["diff", "HEAD"],
        &["checkout", "-q", "-b", "other"],
        &["stash", "list"],
        &["fsck", "--no-progress"],
        &["config", "user.name", "m"],
    ] {
        assert_eq!(fixture.git(quiet), "", "{quiet:?}");
    }
    assert!(fixture.git(&["rev-parse", "--git-common-dir"]).ends_with("/w/.git\n"));
    // The known price of the least bad kind for .gitmodules.
    assert!(fixture.git(&["fetch", "-q", "."]).contains(".gitmodules"));
    share.remove().unwrap();
    assert_eq!(fixture.git(&["fetch", "-q", "."]), "");
    assert_eq!(fixture.git(&["status", "--porcelain", "--ignored"]), "");
}

#[test]
fn the_last_of_two_sandboxes_removes_them() {
    let fixture = Fixture::repository("two");
    let before = fixture.names();
    let (one, _) = fixture.start();
    let (two, found) = fixture.start();
    assert!(found.absent.is_empty(), "they are there already: {:?}", found.absent);
    one.remove().unwrap();
    assert!(fixture.path(".vscode").exists() && fixture.path(".git/commondir").exists());
    let (three, _) = fixture.start();
    two.remove().unwrap();
    assert!(fixture.path(".vscode").exists());
    drop(three);
    assert_eq!(fixture.names(), before);
    assert_eq!(fixture.owed(), 0);
}

#[test]
fn those_of_another_run_are_neither_there_nor_news() {
    let fixture = Fixture::repository("news");
    let news = |found: &ControlFiles| {
        control_files::appeared(found, fs::File::open(fixture.workspace()).unwrap()).unwrap()
    };
    // First in, first out.
    let (one, found_by_one) = fixture.start();
    let (two, found_by_two) = fixture.start();
    one.remove().unwrap();
    assert_eq!(news(&found_by_one), Vec::<String>::new());
    assert_eq!(found_by_one.present, found_by_two.present);
    two.remove().unwrap();
    // What was a placeholder when a run began is news as soon as it is more.
    fs::create_dir(fixture.path(".vscode")).unwrap();
    fs::write(fixture.path(".vscode/tasks.json"), "{}").unwrap();
    fs::write(fixture.path(".git/config.worktree"), "[core]").unwrap();
    assert_eq!(news(&found_by_two), [".git/config.worktree", ".vscode"]);
}

#[test]
fn those_that_vanish_while_they_are_looked_at_are_no_news() {
    let fixture = Fixture::repository("vanishing");
    let (one, found) = fixture.start();
    one.remove().unwrap();
    let is_done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Others come and go.
        scope.spawn(|| {
            while !is_done.load(std::sync::atomic::Ordering::Relaxed) {
                fixture.start().0.remove().unwrap();
            }
        });
        let news = (0..300).find_map(|_| {
            let workspace = fs::File::open(fixture.workspace()).unwrap();
            Some(control_files::appeared(&found, workspace).unwrap()).filter(|all| !all.is_empty())
        });
        is_done.store(true, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(news, None);
    });
}

#[test]
fn what_became_somebody_elses_stays() {
    let fixture = Fixture::repository("theirs");
    let (share, _) = fixture.start();
    fs::remove_file(fixture.path(".vscode")).unwrap();
    fs::create_dir(fixture.path(".vscode")).unwrap();
    fs::write(fixture.path(".vscode/settings.json"), "{}").unwrap();
    fs::remove_file(fixture.path(".envrc")).unwrap();
    fs::write(fixture.path(".envrc"), "").unwrap();
    fs::write(fixture.path(".git/info/attributes"), "* text").unwrap();
    fs::write(fixture.path(".git/commondir"), "x").unwrap();
    fixture.git(&["config", "--file", ".git/config.worktree", "a.b", "c"]);
    share.remove().unwrap();
    for path in [".vscode/settings.json", ".envrc", ".git/info/attributes", ".git/config.worktree"]
    {
        assert!(fixture.path(path).exists(), "{path}");
    }
    assert!(fixture.path(".git/commondir").exists());
    assert!(!fixture.path(".idea").exists());
    assert_eq!(fixture.owed(), 0);
}

#[test]
fn nothing_that_can_be_opened_is_used_again() {
    let fixture = Fixture::repository("again");
    fs::remove_dir_all(fixture.path(".git/hooks")).unwrap();
    let before = fixture.names();
    let directories = [".git/hooks", ".git/worktrees"];
    for _ in 0..3 {
        let (share, found) = fixture.start();
        assert!(found.absent.len() > 20);
        // A sandbox on an outer directory holds all open that it can.
        let mut held = Vec::new();
        for name in &found.absent {
            match fs::File::open(fixture.path(&name.path)) {
                Ok(file) => held.push((name.path.clone(), file)),
                Err(e) => assert_eq!(e.raw_os_error(), Some(libc::ENXIO), "{}", name.path),
            }
        }
        share.remove().unwrap();
        let (share, _) = fixture.start();
        for (name, file) in &held {
            assert_eq!(file.metadata().unwrap().nlink(), 0, "{name} stands somewhere");
        }
        for name in directories {
            let (_, directory) = held.iter().find(|(path, _)| path == name).unwrap();
            let flags = OFlags::CREATE | OFlags::WRONLY;
            let made = rustix::fs::openat(directory, "post-commit", flags, Mode::RWXU);
            assert_eq!(made.unwrap_err(), Errno::NOENT);
            assert_eq!(fs::read_dir(fixture.path(name)).unwrap().count(), 0);
        }
        share.remove().unwrap();
        assert_eq!(fixture.names(), before);
    }
}

#[test]
fn a_link_to_one_from_elsewhere_does_not_keep_it() {
    let fixture = Fixture::repository("linked");
    let before = fixture.names();
    let (share, _) = fixture.start();
    fs::hard_link(fixture.path(".vscode"), fixture.path("litter")).unwrap();
    share.remove().unwrap();
    fs::remove_file(fixture.path("litter")).unwrap();
    assert_eq!(fixture.names(), before);
}

#[test]
fn git_on_the_host_can_make_work_trees_and_hooks_meanwhile() {
    let fixture = Fixture::repository("meanwhile");
    fs::remove_dir_all(fixture.path(".git/hooks")).unwrap();
    fixture.git(&["commit", "-q", "--allow-empty", "-m", "one"]);
    let (share, _) = fixture.start();
    fixture.git(&["worktree", "add", "-q", "../other"]);
    fs::write(fixture.path(".git/hooks/pre-commit"), "").unwrap();
    share.remove().unwrap();
    assert!(fixture.path(".git/hooks/pre-commit").exists());
    assert_eq!(fixture.git(&["worktree", "list"]).lines().count(), 2);
}

#[test]
fn what_a_dead_owner_left_is_swept_at_whatever_point_it_died() {
    let fixture = Fixture::repository("dead");
    let before = fixture.names();
    let (mut share, _) = fixture.start();
    let whole = share.record.as_ref().unwrap().content().unwrap();
    // As if the owner were killed: its lock goes, and nothing else happens.
    drop(share.record.take());
    assert!(sweep(&fixture.state).placeholders > 20);
    assert_eq!(fixture.names(), before);
    // Killed before it wrote what it had made: only the intents are there.
    let (mut share, _) = fixture.start();
    let name = fs::read_dir(fixture.directory.path().join("s/owed")).unwrap().next().unwrap();
    let intents = whole.windows(2).position(|pair| pair == b"\0!").unwrap();
    fs::write(name.unwrap().path(), &whole[..=intents]).unwrap();
    drop(share.record.take());
    assert!(sweep(&fixture.state).placeholders > 20);
    assert_eq!(fixture.names(), before);
}

#[test]
fn a_survivor_takes_over_what_a_dead_one_made() {
    let fixture = Fixture::repository("survivor");
    let before = fixture.names();
    let (mut dead, _) = fixture.start();
    let (survivor, _) = fixture.start();
    drop(dead.record.take());
    assert_eq!(fixture.state.sweep().unwrap().alive, 1);
    assert!(fixture.path(".vscode").exists());
    survivor.remove().unwrap();
    assert_eq!(fixture.names(), before);
}

#[test]
fn a_name_that_somebody_makes_in_between_is_theirs() {
    let fixture = Fixture::new("between");
    let share = Placeholders::hold(&fixture.state, &fixture.workspace()).unwrap();
    let found = control_files::find(share.directory()).unwrap();
    fs::create_dir(fixture.path(".vscode")).unwrap();
    let unmade = share.make(&found.absent).unwrap();
    assert_eq!((unmade.exposed, unmade.by_nobody), (vec![], vec![]));
    share.remove().unwrap();
    assert!(fixture.path(".vscode").exists());
}

#[test]
fn a_workspace_that_is_gone_owes_nothing() {
    let fixture = Fixture::new("gone");
    let (mut share, _) = fixture.start();
    fs::remove_dir_all(fixture.workspace()).unwrap();
    drop(share.record.take());
    assert_eq!(sweep(&fixture.state).placeholders, 0);
    assert_eq!(fixture.owed(), 0);
}

#[test]
fn a_sweep_touches_no_other_directory_at_the_path() {
    let fixture = Fixture::new("moved");
    let (mut share, _) = fixture.start();
    // What a killed start may leave is known by its kind alone, so another directory's would do.
    let ledger = share.record.as_ref().unwrap();
    let name = AbsentName { path: ".git/hooks".to_owned(), nature: Nature::GitDirectory };
    ledger.append(&ledger::intents(&fixture.workspace(), &[name])).unwrap();
    drop(share.record.take());
    fs::rename(fixture.workspace(), fixture.directory.path().join("moved")).unwrap();
    fs::create_dir_all(fixture.path(".git/hooks")).unwrap();
    assert_eq!(sweep(&fixture.state).placeholders, 0);
    assert!(fixture.path(".git/hooks").exists());
    assert_eq!(fixture.owed(), 0);
}

#[test]
fn a_way_through_a_link_is_not_taken() {
    let fixture = Fixture::new("link");
    fs::create_dir(fixture.directory.path().join("outside")).unwrap();
    std::os::unix::fs::symlink("../outside", fixture.path("sub")).unwrap();
    let share = Placeholders::hold(&fixture.state, &fixture.workspace()).unwrap();
    let name = AbsentName { path: "sub/.vscode".to_owned(), nature: Nature::Directory };
    assert_eq!(share.make(std::slice::from_ref(&name)).unwrap().exposed.len(), 1);
    assert!(!fixture.directory.path().join("outside/.vscode").exists());
}

#[test]
fn root_makes_them_as_the_owner_of_the_workspace() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: not root");
        return;
    }
    let fixture = Fixture::repository("owner");
    let status = Command::new("chown").args(["-R", "1000:1000"]).arg(fixture.workspace()).status();
    assert!(status.unwrap().success());
    let before = fixture.names();
    let (share, found) = fixture.start();
    for name in &found.absent {
        let meta = fixture.path(&name.path).symlink_metadata().unwrap();
        assert_eq!((meta.uid(), meta.gid()), (1000, 1000), "{}", name.path);
    }
    share.remove().unwrap();
    assert_eq!(fixture.names(), before);
    // What the owner cannot write, root does not write for them; and nobody inside can.
    fs::create_dir(fixture.path("sub")).unwrap();
    fs::create_dir(fixture.path("sub/.git")).unwrap();
    chown(fixture.path("sub/.git"), Some(0), Some(0)).unwrap();
    let share = Placeholders::hold(&fixture.state, &fixture.workspace()).unwrap();
    let found = control_files::find(share.directory()).unwrap();
    let unmade = share.make(&found.absent).unwrap();
    assert_eq!(unmade.exposed, []);
    assert!(unmade.by_nobody.contains(&"sub/.git/hooks".to_owned()), "{unmade:?}");
    assert!(!fixture.path("sub/.git/hooks").exists());
    drop(share);
}

#[test]
fn many_at_once_leave_nothing() {
    let fixture = Fixture::repository("many");
    let before = fixture.names();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..25 {
                    let (share, found) = fixture.start();
                    let missing = found
                        .pins
                        .iter()
                        .filter(|pin| fixture.path(&pin.path).symlink_metadata().is_err());
                    assert_eq!(missing.count(), 0);
                    share.remove().unwrap();
                }
            });
        }
    });
    assert_eq!(fixture.names(), before);
    assert_eq!(fixture.owed(), 0);
}

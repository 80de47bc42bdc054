//! Submodules in a workspace that is written in place: git works in them, and what git on the host obeys later
//! cannot be put there.

use crate::place::{Place, SOON, everyone, outcome};
use crate::workspace::{Inside, has_git};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};

/// A shell line of the person's on the host.
pub(crate) fn on_the_host(place: &Place, directory: &Path, line: &str) -> (Option<i32>, String) {
    let mut shell = place.host("sh");
    shell.args(["-c", &format!("{GIT}{line}")]).current_dir(directory);
    shell.env("GIT_CONFIG_GLOBAL", "/dev/null").env("BASE", &place.base);
    let said = outcome(&mut shell, SOON);
    (said.code(), format!("{}{}", said.text(), said.stderr))
}

/// Git for all lines of a shell.
pub(crate) const GIT: &str = "git() { /usr/bin/git -c user.name=A -c user.email=a@b.c \
                              -c protocol.file.allow=always -c init.defaultBranch=main \"$@\"; }; ";

/// A repository with the submodule `lib`, by a name of two parts, which has one itself, and one that is not
/// there yet.
fn superproject(place: &Place) -> PathBuf {
    let line = "set -e; \
        for name in deep l; do git init -q $name; cd $name; echo one >f; git add f; git commit -qm one; cd ..; done; \
        cd l; git submodule --quiet add $BASE/deep deep; git commit -qm deep; cd ..; \
        git init -q sup; cd sup; git submodule --quiet add --name a/lib $BASE/l lib; \
        git submodule --quiet add --name new $BASE/l new; git submodule --quiet update --init --recursive; \
        git commit -qm sup; git submodule --quiet deinit -f new; rm -rf .git/modules/new; \
        git -C lib config extensions.worktreeConfig true";
    let (code, said) = on_the_host(place, &place.base, line);
    assert_eq!(code, Some(0), "{said}");
    place.base.join("sup")
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn commits_work_in_submodules_of_the_workspace() {
    if !has_git() {
        return;
    }
    everyone(|place| {
        let sup = superproject(place);
        let line = format!(
            "{GIT} set -e; cd lib/deep; echo two >>f; git commit -qam two; cd ..; echo two >>f; \
             git commit -qam two; git checkout -q -b side; git checkout -q -; git branch -q -d side; \
             git gc -q; git fsck --no-progress; cd ..; git commit -qam two; git submodule status --recursive \
             | cut -c1; git -C lib log --format=%s; git -C lib/deep log --format=%s"
        );
        let report = place.report(&["-w", path(&sup), "--shell", &line]);
        assert_eq!(report["stdout"], " \n \n-\ntwo\ndeep\none\ntwo\none\n", "{report}");
        assert_eq!(report["new_control_files"], json!([]));
        let (_, said) =
            on_the_host(place, &sup, "git status --porcelain; git -C lib status --porcelain");
        assert_eq!(said, "");
        let (_, said) =
            on_the_host(place, &sup, "find . -name commondir -o -type s; find . ! -uid $(id -u)");
        assert_eq!(said, "", "nothing is left");
    });
}

/// What a command does to a submodule, and by what git on the host obeys it.
const ATTACKS: [(&str, &str, &str); 14] = [
    (
        "a hook",
        "printf '#!/bin/sh\n%s\n' \"$DO\" >$LIB/hooks/post-commit; chmod +x $LIB/hooks/post-commit",
        "cd lib; git commit -q --allow-empty -m x",
    ),
    (
        "other hooks",
        "mv $LIB/hooks $LIB/old; cp -r evil/hooks $LIB/hooks",
        "cd lib; git commit -q --allow-empty -m x",
    ),
    ("core.fsmonitor", "git -C lib config core.fsmonitor \"$DO\"", "cd lib; git status"),
    (
        "core.fsmonitor, for the superproject",
        "git -C lib config core.fsmonitor \"$DO\"",
        "git status",
    ),
    (
        "core.hooksPath",
        "printf '[core]\nhooksPath = %s\n' \"$PWD/evil/hooks\" >>$LIB/config",
        "cd lib; git commit -q --allow-empty -m x",
    ),
    ("include.path", "git -C lib config include.path \"$PWD/evil/config\"", "cd lib; git status"),
    (
        "core.worktree",
        "cd lib; echo x >mark; git add mark; git commit -qm mark; git config core.worktree \"${MARK%/*}\"",
        "cd lib; git checkout -q -f",
    ),
    (
        "config.worktree",
        "printf '[core]\nfsmonitor = \"%s\"\n' \"$DO\" >$LIB/config.worktree",
        "cd lib; git status",
    ),
    ("commondir", "echo \"$PWD/evil\" >$LIB/commondir", "cd lib; git status"),
    ("its .git file", "echo 'gitdir: ../evil' >lib/.git", "cd lib; git status"),
    (
        "another directory in its place",
        "mv lib old; mkdir lib; echo 'gitdir: ../evil' >lib/.git",
        "cd lib; git status",
    ),
    ("another git directory", "mv $LIB $LIB.old; cp -r evil $LIB", "cd lib; git status"),
    (
        "another modules",
        "mv .git/modules .git/old; mkdir -p .git/modules/a; cp -r evil $LIB",
        "cd lib; git status",
    ),
    (
        "one for a submodule to come",
        "cp -r evil .git/modules/new",
        "git submodule update --init new",
    ),
];

/// What every attack begins with: a repository in the workspace that runs something.
const PRELUDE: &str = "LIB=.git/modules/a/lib; cp -r $LIB evil; rm -f evil/index; \
    printf '#!/bin/sh\n%s\n' \"$DO\" >evil/hooks/post-commit; chmod +x evil/hooks/post-commit; \
    cp evil/hooks/post-commit evil/hooks/post-checkout; \
    printf '[core]\nfsmonitor = \"%s\"\n' \"$DO\" >>evil/config; ";

#[test]
fn what_git_obeys_in_a_submodule_cannot_be_planted() {
    if !has_git() {
        return;
    }
    everyone(|place| {
        let sup = superproject(place);
        for (name, attack, trigger) in ATTACKS {
            let mut obeyed = Vec::new();
            for is_inside in [false, true] {
                let (workspace, mark) = (place.base.join("attacked"), place.base.join("mark"));
                let copy = format!("cp -a {} {}", path(&sup), path(&workspace));
                assert_eq!(on_the_host(place, &place.base, &copy).0, Some(0));
                let line =
                    format!("MARK={}; DO=\"touch $MARK; true\"; {PRELUDE}{attack}", path(&mark));
                if is_inside {
                    place.run(&["-w", path(&workspace), "--shell", &format!("{GIT}{line}")]);
                } else {
                    on_the_host(place, &workspace, &line);
                }
                assert!(!mark.exists(), "{name}: nothing but the host runs it");
                on_the_host(place, &workspace, trigger);
                obeyed.push(mark.exists());
                let _ = fs::remove_file(&mark);
                fs::remove_dir_all(&workspace).unwrap();
            }
            assert_eq!(obeyed, [true, false], "{name}: the control, and from inside");
        }
    });
}

#[test]
fn a_repository_within_that_of_a_submodule_is_told() {
    if !has_git() {
        return;
    }
    everyone(|place| {
        let sup = superproject(place);
        let line = "cp -r .git/modules/a/lib/modules/deep x; mv x .git/modules/a/lib/objects/x; \
                    rm .git/modules/a/lib/HEAD";
        let report = place.report(&["-w", path(&sup), "--shell", line]);
        let told = report["new_control_files"].to_string();
        assert!(told.contains(".git/modules/a/lib/objects/x\""), "{report}");
    });
}

#[test]
fn what_the_host_changes_of_a_submodule_is_pinned_again() {
    if !has_git() {
        return;
    }
    everyone(|place| {
        let sup = superproject(place);
        let mut inside = Inside::start(place, &["-w", path(&sup)]);
        let config = ".git/modules/a/lib/config";
        let (code, said) = on_the_host(place, &sup, "git -C lib config user.name B");
        assert_eq!(code, Some(0), "{said}");
        let (code, _) = inside.does(&format!(
            "(for n in 1 2 3 4 5 6 7 8 9 10; do sleep 0.1; echo >>{config} || exit 7; done)"
        ));
        assert_eq!(code, 7, "it is not writable for long");
        let commit = "cd lib; git -c user.name=A -c user.email=b commit -q --allow-empty -m x";
        inside.succeeds(commit);
        inside.end();
    });
}

//! Workspaces whose git directory lies elsewhere: linked worktrees and submodules. Git works there, and what git on
//! the host obeys later cannot be put into that directory.

use crate::place::{Place, everyone};
use crate::submodules::{GIT, on_the_host};
use crate::workspace::{Inside, has_git};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};

/// A repository with a branch of somebody else's that conflicts, with two linked worktrees, and another one with a
/// submodule, all of them below `ground`.
fn ground(place: &Place) -> PathBuf {
    let line = "set -e; mkdir ground; cd ground; git init -q cp; cd cp; echo a >f; git add f; git commit -qm one; \
        git checkout -q -b o; echo o >f; git commit -qam theirs --author 'Other <o@o>'; git checkout -q main; \
        echo m >f; git commit -qam mine; git branch gone; git pack-refs --all; git worktree add -q ../wt -b w; \
        git worktree add -q ../other -b other; git config extensions.worktreeConfig true; cd ..; \
        git init -q sup; cd sup; git submodule --quiet add --name a/lib $BASE/ground/cp lib; git commit -qm sup; \
        git -C lib config extensions.worktreeConfig true";
    let (code, said) = on_the_host(place, &place.base, line);
    assert_eq!(code, Some(0), "{said}");
    place.base.join("ground")
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Nothing of a sandbox is left in a git directory.
fn is_clean(place: &Place, git: &Path) {
    let line = "find . -name config.worktree -o -type s; find . -path '*/objects' -prune -o ! -uid $(id -u) -print";
    assert_eq!(on_the_host(place, git, line).1, "", "{}", git.display());
}

#[test]
fn git_works_in_a_linked_worktree_as_in_a_repository_of_its_own() {
    if !has_git() {
        return;
    }
    everyone(|place| {
        let ground = ground(place);
        let line = format!(
            "{GIT} git cherry-pick o >/dev/null 2>&1; set -e; echo d >f; git add f; git commit -qm picked; \
             git commit -q --allow-empty -m alone; git commit -q --amend --allow-empty -m amended; git branch -q x; \
             git merge -q main; git branch -q -D gone; git pack-refs --all; git branch -q -d x; \
             git fsck --no-progress --no-dangling; git log -3 --format='%an %s'; git status --porcelain"
        );
        let report = place.report(&["-w", path(&ground.join("wt")), "--shell", &line]);
        assert_eq!(report["stdout"], "A amended\nOther picked\nA mine\n", "{report}");
        assert_eq!((&report["exit_code"], &report["new_control_files"]), (&json!(0), &json!([])));
        let (_, said) = on_the_host(
            place,
            &ground.join("cp"),
            "git status --porcelain; git branch --list gone x",
        );
        assert_eq!(said, "");
        is_clean(place, &ground.join("cp/.git"));
        place.says(&["create", "-w", path(&ground.join("wt")), "--name", "s"], 0);
        let line = format!(
            "{GIT} git commit -q --allow-empty -m session && git branch -q y && git branch -q -d y"
        );
        place.says(&["exec", "s", "--shell", &line], 0);
        place.says(&["rm", "s"], 0);
        is_clean(place, &ground.join("cp/.git"));
    });
}

#[test]
fn git_works_in_a_submodule_that_is_the_workspace() {
    if !has_git() {
        return;
    }
    everyone(|place| {
        let lib = ground(place).join("sup/lib");
        let line = format!(
            "{GIT} set -e; echo b >f; git commit -qam two; git branch -q x; git branch -q -d x; git gc -q; \
             git log -2 --format=%s; git status --porcelain"
        );
        let report = place.report(&["-w", path(&lib), "--shell", &line]);
        assert_eq!(report["stdout"], "two\nmine\n", "{report}");
        assert_eq!((&report["exit_code"], &report["new_control_files"]), (&json!(0), &json!([])));
        assert_eq!(
            on_the_host(place, &lib, "git log -1 --format=%s; git status --porcelain").1,
            "two\n"
        );
        is_clean(place, &lib.join("../.git"));
        let said = place.run(&[
            "-w",
            path(&lib),
            "--profile",
            "read-only",
            "--shell",
            "git log -1 --format=%s",
        ]);
        assert_eq!(said.text(), "two\n", "{said:?}");
    });
}

/// What a command does to its git directory, and by what git on the host obeys it. `$TO` is that of the main work
/// tree or of the submodule.
const ATTACKS: [(&str, &str, &str); 10] = [
    ("a hook", "cp evil/hooks/post-commit $TO/hooks", "git commit -q --allow-empty -m x"),
    (
        "other hooks",
        "mv $TO/hooks $TO/old; cp -r evil/hooks $TO/hooks",
        "git commit -q --allow-empty -m x",
    ),
    ("core.fsmonitor", "git config core.fsmonitor \"$DO\"", "git status"),
    (
        "core.hooksPath",
        "printf '[core]\nhooksPath = %s\n' \"$PWD/evil/hooks\" >>$TO/config",
        "git commit -q --allow-empty -m x",
    ),
    ("include.path", "git config include.path \"$PWD/evil/config\"", "git status"),
    (
        "config.worktree",
        "printf '[core]\nfsmonitor = \"%s\"\n' \"$DO\" >$TO/config.worktree",
        "git -C \"$MAIN\" status",
    ),
    (
        "a configuration of its own",
        "printf '[core]\nfsmonitor = \"%s\"\n' \"$DO\" >$(git rev-parse --git-dir)/config.worktree",
        "git status",
    ),
    ("commondir", "echo \"$PWD/evil\" >$TO/commondir", "git -C \"$MAIN\" status"),
    ("its own commondir", "echo \"$PWD/evil\" >$(git rev-parse --git-dir)/commondir", "git status"),
    ("its .git file", "echo \"gitdir: $PWD/evil\" >.git", "git status"),
];

/// Of a linked worktree alone.
const ATTACKS_OF_LINKED: [(&str, &str, &str); 3] = [
    (
        "the worktree of another",
        "echo \"$PWD/evil\" >$TO/worktrees/other/commondir",
        "git -C ../other status",
    ),
    (
        "another configuration of another",
        "printf '[core]\nfsmonitor = \"%s\"\n' \"$DO\" >$TO/worktrees/other/config.worktree",
        "git -C ../other status",
    ),
    (
        "a submodule to come",
        "mkdir -p $TO/modules; cp -r evil $TO/modules/new",
        "cd \"$MAIN\"; printf '[submodule \"new\"]\npath = new\nurl = /nowhere\n' >.gitmodules; \
         git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),new; git submodule update --init new",
    ),
];

/// A repository in the workspace that runs something.
const PRELUDE: &str = "TO=$(git rev-parse --git-common-dir); cp -r $TO evil; rm -f evil/index; git config -f evil/config --unset core.worktree; \
    printf '#!/bin/sh\n%s\n' \"$DO\" >evil/hooks/post-commit; chmod +x evil/hooks/post-commit; \
    cp evil/hooks/post-commit evil/hooks/post-checkout; \
    printf '[core]\nfsmonitor = \"%s\"\n' \"$DO\" >>evil/config; ";

/// Tries each attack on the host and from inside, in the workspace `tree`, whose git directory is that of `main`.
fn none_succeeds(place: &Place, (tree, main): (&str, &str), attacks: &[(&str, &str, &str)]) {
    let ground = ground(place);
    let kept = place.base.join("kept");
    fs::rename(&ground, &kept).unwrap();
    for (name, attack, trigger) in attacks {
        let mut obeyed = Vec::new();
        for is_inside in [false, true] {
            let (workspace, mark) = (ground.join(tree), place.base.join("mark"));
            let copy = format!("cp -a {} {}", path(&kept), path(&ground));
            assert_eq!(on_the_host(place, &place.base, &copy).0, Some(0));
            let names = format!("MARK={}; MAIN={}; ", path(&mark), path(&ground.join(main)));
            let line = format!("{names}DO=\"touch $MARK; true\"; {PRELUDE}{attack}");
            if is_inside {
                place.run(&["-w", path(&workspace), "--shell", &format!("{GIT}{line}")]);
            } else {
                on_the_host(place, &workspace, &line);
            }
            assert!(!mark.exists(), "{name}: nothing but the host runs it");
            on_the_host(place, &workspace, &format!("{names}{trigger}"));
            obeyed.push(mark.exists());
            let _ = fs::remove_file(&mark);
            fs::remove_dir_all(&ground).unwrap();
        }
        assert_eq!(obeyed, [true, false], "{tree}, {name}: the control, and from inside");
    }
}

#[test]
fn what_git_obeys_in_the_repository_of_a_linked_worktree_cannot_be_planted() {
    if !has_git() {
        return;
    }
    everyone(|place| {
        none_succeeds(place, ("wt", "cp"), &[&ATTACKS[..], &ATTACKS_OF_LINKED].concat());
    });
}

#[test]
fn what_git_obeys_in_a_submodule_that_is_the_workspace_cannot_be_planted() {
    if !has_git() {
        return;
    }
    everyone(|place| none_succeeds(place, ("sup/lib", "sup/lib"), &ATTACKS));
}

#[test]
fn the_work_trees_of_others_stay_as_they_are() {
    if !has_git() {
        return;
    }
    everyone(|place| {
        let ground = ground(place);
        let line = "echo x >../cp/.git/worktrees/other/HEAD || mkdir ../cp/.git/worktrees/new || \
                    mv ../cp/.git/worktrees/wt ../cp/.git/worktrees/x || rm ../cp/.git/worktrees/wt/gitdir";
        let said = place.run(&["-w", path(&ground.join("wt")), "--shell", line]);
        assert_ne!(said.code(), Some(0), "{said:?}");
        let (code, said) =
            on_the_host(place, &ground.join("cp"), "git -C ../other status && git worktree list");
        assert_eq!(
            (code, said.lines().filter(|line| line.contains('[')).count()),
            (Some(0), 3),
            "{said}"
        );
    });
}

#[test]
fn what_leads_git_elsewhere_in_an_outer_repository_is_told() {
    if !has_git() {
        return;
    }
    everyone(|place| {
        let ground = ground(place);
        let line = "ln -s /etc/hostname ../cp/.git/FETCH_HEAD; echo 'ref: commondir' >../cp/.git/refs/heads/x; \
                    mkdir ../cp/.git/rebase-merge; echo 'exec id' >../cp/.git/rebase-merge/git-rebase-todo";
        let report = place.report(&["-w", path(&ground.join("wt")), "--shell", line]);
        let git = ground.join("cp/.git");
        let all = ["FETCH_HEAD", "rebase-merge/git-rebase-todo", "refs/heads/x"];
        assert_eq!(report["new_control_files"], json!(all.map(|name| git.join(name))), "{report}");
    });
}

#[test]
fn what_the_host_changes_of_an_outer_repository_is_pinned_again() {
    if !has_git() {
        return;
    }
    everyone(|place| {
        let ground = ground(place);
        let mut inside = Inside::start(place, &["-w", path(&ground.join("wt"))]);
        let second = Inside::start(place, &["-w", path(&ground.join("other"))]);
        let (code, said) = on_the_host(place, &ground.join("cp"), "git config user.name B");
        assert_eq!(code, Some(0), "{said}");
        let tries = |name: &str| {
            format!(
                "(for n in 1 2 3 4 5 6 7 8 9 10; do sleep 0.1; echo >>../cp/.git/{name} || exit 7; done)"
            )
        };
        assert_eq!(inside.does(&tries("config")).0, 7, "it is not writable for long");
        second.end();
        for name in
            ["config", "commondir", "config.worktree", "hooks/x", "worktrees/wt/config.worktree"]
        {
            assert_eq!(inside.does(&tries(name)).0, 7, "{name}");
        }
        inside.end();
        is_clean(place, &ground.join("cp/.git"));
    });
}

//! Repositories wherever they are: what git runs or reads lands by name alone.

use super::stage::{Stage, Way, shown, ways};
use crate::control_files;

/// What of a landing of everything is kept back as protected.
fn kept(stage: &Stage) -> Vec<String> {
    let kept = stage.apply(&[]).kept;
    let mark = " (protected)";
    kept.iter().map(|change| shown(change).replace(mark, "")).collect()
}

/// A look says the same beforehand, and what is kept back is not in the workspace.
fn assert_kept(stage: &Stage, way: Way, expected: &[&str]) {
    let shown: Vec<String> = stage.shown();
    let foreseen: Vec<&str> =
        shown.iter().filter_map(|line| line.strip_suffix(" (protected)")).collect();
    assert_eq!(foreseen, expected, "{way:?}");
    let before = stage.real();
    assert_eq!(kept(stage), expected, "{way:?}");
    for path in expected.iter().filter_map(|line| line.strip_prefix("a ")) {
        assert!(!stage.real().contains_key(path), "{way:?} {path}");
    }
    for path in expected.iter().filter_map(|line| line.strip_prefix("m ")) {
        assert_eq!(stage.real()[path], before[path], "{way:?} {path}");
    }
}

#[test]
fn a_repository_deep_inside_keeps_its_hooks() {
    for way in ways() {
        let workspace = "mkdir -p a/b/c/d; git init -q a/b/c/d/e; cd a/b/c/d/e; mkdir tools src
             printf '[core]\\n\\thooksPath = tools\\n' >>.git/config";
        let stage = Stage::new("deep", way, workspace);
        stage.inside(
            "cd a/b/c/d/e; for d in tools src .git/hooks; do printf x >$d/pre-commit; done",
        );
        let expected = ["a a/b/c/d/e/.git/hooks/pre-commit", "a a/b/c/d/e/tools/pre-commit"];
        assert_kept(&stage, way, &expected);
        assert_eq!(stage.real()["a/b/c/d/e/src/pre-commit"].1, b"x", "the control");
    }
}

#[test]
fn a_bare_repository_keeps_what_git_runs_and_reads() {
    for way in ways() {
        let stage = Stage::new("bare", way, "mkdir -p x/y; git init -q --bare x/y/store");
        stage.inside(
            "cd x/y/store; printf x >>config; printf x >hooks/update; printf x >packed-refs",
        );
        assert_kept(&stage, way, &["m x/y/store/config", "a x/y/store/hooks/update"]);
        assert!(stage.real().contains_key("x/y/store/packed-refs"), "the control");
    }
}

#[test]
fn a_git_directory_that_a_file_points_to_is_one_whatever_it_lacks() {
    for way in ways() {
        let workspace = "mkdir -p sub meta/store/hooks other/sub
             printf 'gitdir: ../meta/store\\n' >sub/.git; printf r >meta/store/HEAD
             printf 'gitdir: ../../later/store\\n' >other/sub/.git";
        let stage = Stage::new("pointer", way, workspace);
        stage.inside(
            "printf x >meta/store/config; printf x >meta/store/hooks/update; printf x >meta/x
             mkdir -p later/store; cd later/store; printf r >HEAD; printf ../c >commondir",
        );
        let expected = [
            "a later/store",
            "a later/store/HEAD",
            "a later/store/commondir",
            "a meta/store/config",
            "a meta/store/hooks/update",
        ];
        assert_kept(&stage, way, &expected);
        assert_eq!(stage.real()["meta/x"].1, b"x", "the control");
        stage.apply(&["later/store", "meta/store/config", "meta/store/hooks"]);
        stage.assert_landed();
    }
}

/// Its parts come one after the other, each harmless by itself.
#[test]
fn a_directory_does_not_become_a_repository_piece_by_piece() {
    for way in ways() {
        let stage = Stage::new("pieces", way, "mkdir plain");
        stage.inside("mkdir -p store/hooks; printf x >store/config; printf x >store/hooks/update");
        assert_kept(&stage, way, &[]);
        stage.inside(
            "mkdir store/objects store/refs plain/objects plain/refs; printf r >store/HEAD
             printf r >plain/HEAD",
        );
        assert_kept(&stage, way, &["a store/HEAD", "a store/objects", "a store/refs"]);
        assert!(stage.real().contains_key("plain/HEAD"), "the control: nothing for git to run");
        stage.apply(&["store/HEAD", "store/objects", "store/refs"]);
        stage.assert_landed();
    }
}

/// What git takes from another directory is as good as in the repository.
#[test]
fn a_repository_that_shares_with_another_directory_does_not_land() {
    for way in ways() {
        let stage = Stage::new("shares", way, "git init -q .");
        stage.inside(
            "rm .git/HEAD; printf 'ref: refs/heads/x' >HEAD; printf y >commondir
             printf w >config.worktree; mkdir -p y/objects y/refs; printf c >y/config
             mkdir -p s/o/objects s/o/refs s/o/hooks; printf r >s/HEAD; printf o >s/commondir
             printf h >s/o/hooks/post-checkout; printf x >ordinary",
        );
        let expected = [
            "a commondir",
            "a config.worktree",
            "a s/commondir",
            "a s/o/hooks",
            "a s/o/hooks/post-checkout",
            "a y/config",
        ];
        assert_kept(&stage, way, &expected);
        assert!(stage.real().contains_key("ordinary"), "the control");
        // What is missing comes later.
        let stage = Stage::new("shares-later", way, "git init -q .");
        stage.inside("printf y >commondir; mkdir -p y/objects y/refs; printf c >y/config");
        assert_kept(&stage, way, &[]);
        stage.inside("printf 'ref: refs/heads/x' >HEAD");
        assert_kept(&stage, way, &["a HEAD"]);
    }
}

/// Where hooks are named in a way that cannot be pinned, they stay back all the same, and so does what would
/// lead there.
#[test]
fn hooks_by_way_of_links_stay_back_with_the_links() {
    for way in ways() {
        let hooks = |path: &str| {
            format!(
                "git init -q .; mkdir -p real/h tools/hooks evil; ln -s real lnk
                 git config core.hooksPath {path}"
            )
        };
        let stage = Stage::new("links", way, &hooks("lnk/h"));
        stage.inside("printf x >real/h/pre-commit; printf x >real/other; ln -sfn evil lnk");
        assert_kept(&stage, way, &["m lnk", "a real/h/pre-commit"]);
        assert!(stage.real().contains_key("real/other"), "the control");
        let stage = Stage::new("link-of-hooks", way, &hooks("none"));
        stage.outside("rm -r .git/hooks; ln -s ../lnk .git/hooks");
        stage.inside("printf x >real/pre-commit; printf x >evil/pre-commit");
        assert_kept(&stage, way, &["a real/pre-commit"]);
        // A directory on the way becomes a link.
        let stage = Stage::new("way", way, &hooks("tools/hooks"));
        stage.inside("rm -r tools; mkdir evil/hooks; printf x >evil/hooks/pre-commit");
        stage.inside("ln -s evil tools; printf x >evil/other");
        let kept = kept(&stage);
        assert!(kept.contains(&"m tools".to_owned()), "{way:?} {kept:?}");
        assert!(stage.real().contains_key("evil/other"), "the control");
    }
}

#[test]
fn what_says_how_git_goes_on_stays_back_and_so_does_where_its_links_lead() {
    for way in ways() {
        let workspace = "git init -q .; mkdir lg other; rm -rf .git/logs; ln -s ../lg .git/logs";
        let stage = Stage::new("state", way, workspace);
        stage.inside(
            "mkdir .git/sequencer .git/rebase-merge; printf x >.git/sequencer/opts
             printf x >.git/rebase-merge/strategy; ln -s /etc/hostname lg/HEAD; printf x >other/HEAD",
        );
        let expected = [
            "a .git/rebase-merge",
            "a .git/rebase-merge/strategy",
            "a .git/sequencer",
            "a .git/sequencer/opts",
            "a lg/HEAD",
        ];
        assert_kept(&stage, way, &expected);
        assert!(stage.real().contains_key("other/HEAD"), "the control");
        // One that was gone on with to its end is over there, too.
        let workspace = "git init -q .; mkdir .git/rebase-merge; printf x >.git/rebase-merge/todo";
        let stage = Stage::new("state-over", way, workspace);
        stage.inside("rm -r .git/rebase-merge");
        assert_kept(&stage, way, &[]);
        assert!(!stage.real().contains_key(".git/rebase-merge"), "{way:?}");
    }
}

/// Where such a repository is its hooks cannot be named.
#[test]
fn a_repository_whose_path_is_no_text_does_not_change() {
    for way in ways() {
        let workspace = "d=$(printf 'caf\\351'); git init -q $d; mkdir $d/h
             printf '[core]\\nhooksPath = h\\n' >>$d/.git/config; mkdir other";
        let stage = Stage::new("no-text", way, workspace);
        stage.inside("printf x >$(printf 'caf\\351')/h/pre-commit; printf x >other/pre-commit");
        let kept = kept(&stage);
        assert!(kept.len() == 1 && kept[0].ends_with("/h/pre-commit"), "{way:?} {kept:?}");
        assert!(stage.real().contains_key("other/pre-commit"), "the control");
    }
}

/// What a configuration says is not known, so nothing lands that nobody names.
#[test]
fn where_a_configuration_cannot_be_read_everything_stays_back_that_nobody_names() {
    for way in ways() {
        let workspace = "git init -q .; printf '[core]\\n hooksPath = h\\377\\n' >>.git/config";
        let stage = Stage::new("unknown", way, workspace);
        stage.inside("printf x >one; printf x >two");
        assert_kept(&stage, way, &["a one", "a two"]);
        stage.apply(&["one"]);
        assert!(stage.real().contains_key("one"));
    }
}

#[test]
fn a_repository_whose_parents_were_renamed_keeps_its_hooks() {
    for way in ways() {
        let workspace = "mkdir one; git init -q one/r; cd one/r; mkdir own
             printf x >own/post-merge; printf '[core]\\n\\thooksPath = own\\n' >>.git/config";
        let stage = Stage::new("renamed", way, workspace);
        stage.inside("mv one two; printf x >two/r/own/pre-push; printf x >two/r/file");
        stage.apply(&[]);
        let real = stage.real();
        for path in ["two/r/.git/config", "two/r/own/pre-push", "two/r/own/post-merge"] {
            assert!(!real.contains_key(path), "{way:?} {path}");
        }
        for path in ["one/r/.git/config", "one/r/own/post-merge", "two/r/file"] {
            assert!(real.contains_key(path), "{way:?} {path}: the control");
        }
    }
}

#[test]
fn what_the_sandbox_names_as_hooks_are_hooks() {
    for way in ways() {
        let stage = Stage::new("named", way, "git init -q .");
        let workspace = stage.workspace();
        stage.inside(&format!(
            "printf '[core]\\nhooksPath = hooks\\n[include]\\npath = {}/more\\n' >>.git/config
             mkdir hooks others; printf x >hooks/pre-push; printf x >more; printf x >others/pre-push",
            workspace.display()
        ));
        let expected = ["m .git/config", "a hooks", "a hooks/pre-push", "a more"];
        assert_kept(&stage, way, &expected);
        assert_eq!(stage.real()["others/pre-push"].1, b"x", "the control");
        stage.apply(&[".git/config", "hooks", "more"]);
        stage.assert_landed();
    }
}

#[test]
fn a_repository_far_off_is_remembered_and_one_that_came_since_is_found_when_changes_land() {
    for way in ways() {
        let workspace = "git init -q one; mkdir -p tools/hooks tools/late
             printf '[core]\\n\\thooksPath = ../tools/hooks\\n' >>one/.git/config";
        let stage = Stage::new("far", way, workspace);
        stage.inside("printf x >tools/hooks/pre-push");
        assert_kept(&stage, way, &["a tools/hooks/pre-push"]);
        stage.outside(
            "git init -q late; printf '[core]\\nhooksPath = ../tools/late\\n' >>late/.git/config",
        );
        stage.inside("printf x >tools/late/pre-push");
        // LIMIT: a look finds repositories that a change is in, and those of earlier looks.
        let expected = ["a tools/hooks/pre-push (protected)", "a tools/late/pre-push"];
        assert_eq!(stage.shown(), expected, "{way:?}");
        assert_eq!(kept(&stage), ["a tools/hooks/pre-push", "a tools/late/pre-push"]);
        assert_kept(&stage, way, &["a tools/hooks/pre-push", "a tools/late/pre-push"]);
        // What is remembered may be damaged: then it is looked for anew.
        let remembered = stage.cow().join("repositories.json");
        assert!(remembered.exists());
        std::fs::write(&remembered, "{").unwrap();
        assert_kept(&stage, way, &["a tools/hooks/pre-push", "a tools/late/pre-push"]);
    }
}

#[test]
fn a_pipe_in_the_place_of_a_configuration_is_not_opened() {
    for way in ways() {
        let stage = Stage::new("pipe", way, "git init -q .; printf a >a");
        stage.inside("rm .git/config; mkfifo .git/config; printf b >a");
        let pipe = stage.cow().join("upper/.git/config");
        let writer = std::thread::spawn({
            let pipe = pipe.clone();
            move || std::fs::write(pipe, "x")
        });
        assert_eq!(stage.shown().len(), 2);
        stage.apply(&[]);
        assert_eq!(stage.real()["a"].1, b"b", "the control: a file lands");
        assert!(!writer.is_finished(), "nobody came to the other end");
        assert_eq!(std::fs::read(&pipe).unwrap(), b"x");
        writer.join().unwrap().unwrap();
    }
}

#[test]
fn what_leads_git_elsewhere_by_its_content_lands_only_by_name() {
    for way in ways() {
        let stage = Stage::new(
            "leading",
            way,
            "git init -q .; printf a >a; git init -q --bare b.git; printf 0 >.git/refs/heads/old",
        );
        let bytes = |name: &str| {
            let index = control_files::index_of_one(0o100_644, name);
            index.iter().map(|byte| format!("\\{byte:03o}")).collect::<String>()
        };
        let index = |name: &str| format!("printf '{}' >.git/index\n", bytes(name));
        stage.inside(&index("a"));
        assert_eq!(stage.apply(&[]).kept, [], "the control: an index of our own lands");
        stage.inside(&format!(
            "{}printf 'ref: commondir' >.git/ORIG_HEAD; mkdir -p .git/refs/remotes/origin
             printf 'ref: commondir' >.git/refs/remotes/origin/main
             printf 'ref: refs/heads/main' >.git/refs/remotes/origin/HEAD
             printf 'ref: commondir' >b.git/refs/heads/main
             printf '1\\t../x\\0' >.git/MERGE_RR; mkdir .git/remotes; printf u >.git/remotes/origin",
            index("../outside"),
        ));
        let kept: Vec<String> = stage.apply(&[]).kept.iter().map(shown).collect();
        let expected = [
            "a .git/MERGE_RR",
            "a .git/ORIG_HEAD",
            "m .git/index",
            "a .git/refs/remotes/origin/main",
            "a .git/remotes",
            "a .git/remotes/origin",
            "a b.git/refs/heads/main",
        ];
        assert_eq!(kept, expected.map(|line| format!("{line} (protected)")), "{way:?}");
        assert!(stage.real().contains_key(".git/refs/remotes/origin/HEAD"), "the control");
        let named = [".git/MERGE_RR", ".git/ORIG_HEAD", ".git/index", ".git/remotes"];
        stage.apply(&named);
        stage.apply(&[".git/refs/remotes/origin/main", "b.git/refs/heads/main"]);
        stage.assert_landed();
    }
}

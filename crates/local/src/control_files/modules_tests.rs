//! Git directories of submodules, against directories of the tests' own.

use super::super::tests::{Tree, absent, access};
use super::super::{ControlFiles, Nature, appeared, find_outer};
use super::*;
use crate::view::OuterGitDirectory;
use std::fs;

/// A repository with one submodule, whose git directory has this path.
fn superproject(name: &str, git: &str) -> Tree {
    let tree = Tree::new(name, &[".git/objects", ".git/refs", "lib"], &[".git/HEAD"]);
    make(&tree, git);
    fs::write(tree.path("lib/.git"), format!("gitdir: ../{git}\n")).unwrap();
    tree
}

fn make(tree: &Tree, git: &str) {
    for name in ["objects/ab", "refs/heads"] {
        fs::create_dir_all(tree.path(&format!("{git}/{name}"))).unwrap();
    }
    fs::write(tree.path(&format!("{git}/HEAD")), "ref: refs/heads/main\n").unwrap();
    fs::write(tree.path(&format!("{git}/config")), "[core]\n").unwrap();
}

fn is_open(found: &ControlFiles, path: &str) -> bool {
    found.pins.iter().any(|pin| pin.path == path && pin.is_open)
}

#[test]
fn the_git_directory_of_a_submodule_is_written_and_its_control_files_are_not() {
    let git = ".git/modules/a/b";
    let tree = superproject("submodule", git);
    make(&tree, ".git/modules/a/b/modules/deep");
    fs::create_dir_all(tree.path(".git/modules/none")).unwrap();
    let found = tree.find();
    assert_eq!(access(&found, ".git/modules"), Some(Access::ReadOnly));
    for path in [git, ".git/modules/a/b/modules/deep"] {
        assert_eq!(access(&found, path), Some(Access::ReadWrite), "{path}");
        assert!(is_open(&found, path), "{path}");
        let names = [
            "hooks",
            "config",
            "config.worktree",
            "commondir",
            "worktrees",
            "info/attributes",
            "modules",
        ];
        for name in names {
            let path = format!("{path}/{name}");
            assert_eq!(access(&found, &path), Some(Access::ReadOnly), "{path}");
            assert!(!is_open(&found, &path), "{path}");
        }
        assert_eq!(absent(&found, &format!("{path}/commondir")), Some(Nature::CommonDir));
    }
    let others = [".git/modules/none", ".git/modules/a", ".git/modules/a/b/info"];
    assert!(others.iter().all(|path| !is_open(&found, path)), "{:?}", found.pins);
    assert_eq!((found.reasons().len(), found.notes.len()), (0, 0));
    assert!(appeared(&found, tree.open()).unwrap().is_empty());
}

#[test]
fn what_the_configuration_of_a_submodule_names_is_pinned_from_its_work_tree() {
    let tree = superproject("submodule-names", ".git/modules/lib");
    let config =
        "[core]\nworktree = ../../../lib\nhooksPath = mine\n[include]\npath = ../../more\n";
    fs::write(tree.path(".git/modules/lib/config"), config).unwrap();
    fs::create_dir(tree.path("lib/mine")).unwrap();
    fs::write(tree.path(".git/more"), "").unwrap();
    let found = tree.find();
    for path in ["lib/mine", ".git/more", "lib/.git"] {
        assert_eq!(access(&found, path), Some(Access::ReadOnly), "{path}");
    }
    assert_eq!(found.reasons(), Vec::<String>::new());
    // What is named within the git directory is pinned there, too.
    fs::write(tree.path(".git/modules/lib/config"), "[include]\npath = extra\n").unwrap();
    let found = tree.find();
    assert_eq!(access(&found, ".git/modules/lib/extra"), Some(Access::ReadOnly));
    assert_eq!(absent(&found, ".git/modules/lib/extra"), Some(Nature::GitFile));
}

#[test]
fn a_repository_that_is_put_into_the_git_directory_of_a_submodule_is_told() {
    for place in ["x", "refs/heads/x", "objects/ab/x", "logs/y/x"] {
        let tree = superproject("submodule-in", ".git/modules/lib");
        let before = tree.find();
        let path = format!(".git/modules/lib/{place}");
        make(&tree, &path);
        // Git takes the outer one for none then, and would use what is in it.
        fs::remove_file(tree.path(".git/modules/lib/HEAD")).unwrap();
        let told = appeared(&before, tree.open()).unwrap();
        assert!(told.contains(&path), "{place}: {told:?}");
    }
}

#[test]
fn what_leads_git_elsewhere_in_a_submodule_is_told() {
    let tree = superproject("submodule-leads", ".git/modules/lib");
    let before = tree.find();
    fs::write(tree.path(".git/modules/lib/refs/heads/x"), "ref: commondir\n").unwrap();
    fs::write(tree.path(".git/modules/lib/index"), "x").unwrap();
    let all = ["index", "refs/heads/x"].map(|name| format!(".git/modules/lib/{name}"));
    assert_eq!(appeared(&before, tree.open()).unwrap(), all);
    fs::remove_file(tree.path(".git/modules/lib/HEAD")).unwrap();
    assert_eq!(appeared(&before, tree.open()).unwrap(), all);
}

#[test]
fn beyond_the_limits_submodules_stay_read_only() {
    let tree = superproject("submodules-many", ".git/modules/lib");
    for number in 0..MAX_MODULES {
        make(&tree, &format!(".git/modules/m{number}"));
    }
    let found = tree.find();
    assert_eq!(found.pins.iter().filter(|pin| pin.is_open).count(), MAX_MODULES);
    assert!(found.notes.concat().contains("commits fail there"), "{:?}", found.notes);
    assert_eq!(found.reasons(), Vec::<String>::new(), "they are protected all the same");
    let tree = superproject("submodule-deep", ".git/modules/lib");
    let deep = format!(".git/modules/{}x", "d/".repeat(MAX_DEPTH));
    make(&tree, &deep);
    let found = tree.find();
    assert!(is_open(&found, ".git/modules/lib") && !is_open(&found, &deep));
    assert_eq!(found.notes.len(), 1, "{:?}", found.notes);
}

#[test]
fn of_a_linked_work_tree_its_own_submodules_are_written_and_no_others() {
    let tree = superproject("submodule-linked", ".git/modules/lib");
    make(&tree, ".git/worktrees/w/modules/lib");
    make(&tree, ".git/worktrees/other/modules/lib");
    let common = tree.path(".git").to_str().unwrap().to_owned();
    let found = |own: Option<&str>| {
        let own = own.map(|own| format!("{common}/{own}"));
        let outer = OuterGitDirectory { common: common.clone(), own };
        find_outer(&outer, tree.path("w").to_str().unwrap(), None).unwrap()
    };
    let open = |found: &ControlFiles| {
        let pins = found.pins.iter().filter(|pin| pin.is_open);
        pins.map(|pin| pin.path.clone()).collect::<Vec<_>>()
    };
    let linked = found(Some("worktrees/w"));
    assert_eq!(open(&linked), ["worktrees/w", "worktrees/w/modules/lib"]);
    let fixed = ["worktrees", "modules", "config", "worktrees/w/commondir", "worktrees/w/gitdir"];
    for path in fixed.into_iter().chain(["worktrees/w/config.worktree", "worktrees/w/modules"]) {
        assert_eq!(access(&linked, path), Some(Access::ReadOnly), "{path}");
    }
    assert_eq!(open(&found(None)), ["modules/lib"], "the control");
}

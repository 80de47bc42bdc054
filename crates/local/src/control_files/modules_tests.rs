//! Git directories of submodules.

use super::super::modules::MAX_MODULES;
use super::*;
use std::os::unix::fs::PermissionsExt;

/// Makes what git takes for a git directory.
fn git(tree: &Tree, path: &str) {
    for name in ["objects", "refs/heads", "hooks"] {
        fs::create_dir_all(tree.path(path).join(name)).unwrap();
    }
    fs::write(tree.path(path).join("HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::write(tree.path(path).join("config"), "[core]\n").unwrap();
}

fn tree(name: &str, all: &[&str]) -> Tree {
    let tree = Tree::new(&format!("modules-{name}"), &[], &[]);
    git(&tree, ".git");
    all.iter().for_each(|path| git(&tree, path));
    tree
}

/// What stays as it is, by the directories that it is in.
fn open(found: &ControlFiles) -> Vec<(&str, Vec<&str>)> {
    let pins = found.pins.iter().filter(|pin| !pin.open.is_empty());
    pins.map(|pin| (&*pin.path, pin.open.iter().map(String::as_str).collect())).collect()
}

fn check(tree: &Tree, expected: &[&str]) {
    let found = tree.find();
    let found: Vec<&str> = open(&found).into_iter().flat_map(|(_, open)| open).collect();
    assert_eq!(found, expected);
}

#[test]
fn a_submodule_keeps_its_control_files_and_the_rest_can_be_written() {
    let tree = tree("one", &[".git/modules/x"]);
    let found = tree.find();
    assert_eq!(access(&found, ".git/modules"), Some(Access::ReadOnly));
    assert_eq!(open(&found), [(".git/modules", vec![".git/modules/x"])]);
    let names = super::super::in_git_directory();
    for name in names {
        let path = format!(".git/modules/x/{name}");
        assert_eq!(access(&found, &path), Some(Access::ReadOnly), "{path}");
    }
    for (name, nature) in [
        ("config.worktree", Nature::GitFile),
        ("commondir", Nature::CommonDir),
        ("modules", Nature::Directory),
        ("worktrees", Nature::GitDirectory),
        ("info", Nature::GitDirectory),
        ("info/attributes", Nature::GitFile),
    ] {
        assert_eq!(absent(&found, &format!(".git/modules/x/{name}")), Some(nature), "{name}");
    }
    assert_eq!(access(&found, ".git/modules/x/objects"), None);
    assert_eq!(found.reasons(), Vec::<String>::new());
    assert!(appeared(&found, tree.open()).unwrap().is_empty());
}

#[test]
fn names_of_several_parts_and_submodules_of_submodules_are_found() {
    let all = [".git/modules/a/b", ".git/modules/c", ".git/modules/c/modules/d/e"];
    let found_in = tree("nested", &all);
    let found = found_in.find();
    assert_eq!(
        open(&found),
        [
            (".git/modules", vec![".git/modules/c", ".git/modules/a/b"]),
            (".git/modules/c/modules", vec![".git/modules/c/modules/d/e"])
        ]
    );
    for path in all {
        assert_eq!(access(&found, &format!("{path}/hooks")), Some(Access::ReadOnly), "{path}");
    }
    // It is on the way, and as what it lies in.
    assert_eq!(access(&found, ".git/modules/a"), Some(Access::ReadWrite));
    assert_eq!(access(&found, ".git/modules/a/hooks"), None);
}

#[test]
fn what_is_not_plainly_a_git_directory_stays_read_only() {
    let tree = tree("not", &["elsewhere", ".git/modules/real"]);
    check(&tree, &[".git/modules/real"]);
    // The beginning of a name is none, whatever comes next.
    git(&tree, ".git/modules/lib/objects/q");
    git(&tree, ".git/modules/lib/refs/q");
    check(&tree, &[".git/modules/real", ".git/modules/lib/refs/q", ".git/modules/lib/objects/q"]);
    fs::remove_dir_all(tree.path(".git/modules/lib")).unwrap();
    // A link, and one that lacks something or has something else in its place.
    symlink("../../elsewhere", tree.path(".git/modules/link")).unwrap();
    for lacks in ["HEAD", "objects", "refs"] {
        let path = format!(".git/modules/without-{lacks}");
        git(&tree, &path);
        let name = tree.path(&path).join(lacks);
        fs::rename(&name, tree.path(&path).join("other")).unwrap();
        symlink("other", name).unwrap();
    }
    let odd = std::ffi::OsStr::from_bytes(b"odd\xff");
    let odd = tree.path(".git/modules").join(odd);
    fs::create_dir_all(&odd).unwrap();
    for name in ["HEAD", "objects", "refs"] {
        fs::rename(tree.path(".git/modules/real").join(name), odd.join(name)).unwrap();
    }
    check(&tree, &[]);
    git(&tree, ".git/modules/real");
    check(&tree, &[".git/modules/real"]);
    assert_eq!(tree.find().reasons(), Vec::<String>::new());
}

#[test]
fn a_git_directory_with_another_one_in_it_stays_read_only() {
    for inner in ["b", "refs/heads/b", "logs/b", "objects/b", "info/b"] {
        let tree = tree("inner", &[".git/modules/a", &format!(".git/modules/a/{inner}")]);
        check(&tree, &[]);
        fs::remove_file(tree.path(&format!(".git/modules/a/{inner}/HEAD"))).unwrap();
        check(&tree, &[".git/modules/a"]);
    }
}

#[test]
fn no_more_submodules_than_the_limit_stay_as_they_are() {
    let all: Vec<String> = (0..MAX_MODULES + 6).map(|n| format!(".git/modules/m{n:03}")).collect();
    let tree = tree("limit", &all.iter().map(String::as_str).collect::<Vec<_>>());
    let found = tree.find();
    assert_eq!(open(&found)[0].1.len(), MAX_MODULES);
    assert_eq!(found.reasons(), Vec::<String>::new(), "what is more is read-only");
    assert_eq!(access(&found, ".git/modules/m000/hooks"), Some(Access::ReadOnly));
    assert_eq!(access(&found, ".git/modules/m064/hooks"), None);
    assert!(appeared(&found, tree.open()).unwrap().is_empty());
}

#[test]
fn one_of_too_long_a_path_stays_read_only() {
    let long = format!(".git/modules/{}x", format!("{}/", "d".repeat(200)).repeat(5));
    let tree = tree("long", &[".git/modules/a", &long]);
    assert!(long.len() > 1000 && long.len() < 1024, "{}", long.len());
    check(&tree, &[".git/modules/a", &long]);
    git(&tree, &format!("{long}{}", "x".repeat(100)));
    check(&tree, &[".git/modules/a", &long]);
    assert_eq!(tree.find().reasons(), Vec::<String>::new());
}

/// All was read-only in `modules` once, and so not looked at.
#[test]
fn what_leads_into_a_git_directory_of_a_submodule_is_pinned_there() {
    let all = [".git/modules/x", ".git/modules/y"];
    let tree = tree("led", &all);
    for (config, more) in [(".git", "modules/x/more"), (".git/modules/x", "../y/more")] {
        let text = format!("[include]\n\tpath = {more}\n[core]\n\thooksPath = .git/modules/y/h\n");
        fs::write(tree.path(config).join("config"), text).unwrap();
    }
    let found = tree.find();
    for path in ["x/more", "y/more", "y/h"] {
        let path = format!(".git/modules/{path}");
        assert_eq!(access(&found, &path), Some(Access::ReadOnly), "{path}");
        assert!(absent(&found, &path).is_some(), "{path}");
    }
    // Another reason to be read-only is the stronger one.
    for (hooks, open_below) in [(".git/modules", 0), (".git", 1), (".git/modules/x", 2)] {
        let text = format!("[core]\n\thooksPath = {hooks}\n");
        fs::write(tree.path(".git/config"), text).unwrap();
        let found = tree.find();
        assert_eq!(access(&found, hooks), Some(Access::ReadOnly), "{hooks}");
        let open = open(&found).first().map_or(0, |(_, open)| open.len());
        assert_eq!(open, open_below.min(1) * 2, "{hooks}: those above cover them");
    }
}

#[test]
fn a_submodule_is_looked_at_as_any_repository() {
    let tree = tree("as-any", &[".git/modules/x"]);
    fs::create_dir_all(tree.path("sub/own")).unwrap();
    fs::create_dir_all(tree.path("common/objects")).unwrap();
    let config = "[core]\n\tworktree = ../../../sub\n\thooksPath = own\n";
    fs::write(tree.path(".git/modules/x/config"), config).unwrap();
    fs::write(tree.path(".git/modules/x/commondir"), "../../../common\n").unwrap();
    fs::write(tree.path("sub/.git"), "gitdir: ../.git/modules/x\n").unwrap();
    let before = tree.find();
    for path in ["sub/own", "common/hooks", "sub/.git", "sub/.envrc"] {
        assert_eq!(access(&before, path), Some(Access::ReadOnly), "{path}");
    }
    assert_eq!(before.reasons(), Vec::<String>::new());
    // What leads git elsewhere by its content is told of, though what makes it a repository was taken away.
    fs::write(tree.path(".git/modules/x/refs/heads/main"), "ref: config\n").unwrap();
    symlink("/root", tree.path(".git/modules/x/logs")).unwrap();
    fs::remove_dir(tree.path(".git/modules/x/objects")).unwrap();
    let told = appeared(&before, tree.open()).unwrap();
    assert_eq!(told, [".git/modules/x/logs", ".git/modules/x/refs/heads/main"]);
    // Pinned names that vanish are made again all the same.
    let again = find_again(tree.open(), &before).unwrap();
    assert_eq!(absent(&again, ".git/modules/x/config.worktree"), Some(Nature::GitFile));
    assert_eq!(absent(&tree.find(), ".git/modules/x/info"), None, "the control");
}

#[test]
fn a_submodule_that_is_not_checked_out_hinders_no_start() {
    let tree = tree("left", &[".git/modules/x"]);
    let config = "[core]\n\tworktree = ../../../sub\n\thooksPath = .husky/_\n";
    fs::write(tree.path(".git/modules/x/config"), config).unwrap();
    let before = tree.find();
    assert_eq!(before.reasons(), Vec::<String>::new());
    fs::create_dir_all(tree.path("sub/.husky/_")).unwrap();
    assert_eq!(appeared(&before, tree.open()).unwrap(), ["sub/.husky/_"]);
    // The control: checked out, it has to have its hooks where they are protected.
    fs::remove_dir_all(tree.path("sub/.husky")).unwrap();
    fs::write(tree.path("sub/.git"), "gitdir: ../.git/modules/x\n").unwrap();
    assert_eq!(tree.find().reasons().len(), 1);
}

#[test]
fn a_directory_of_submodules_that_its_owner_closed_stays_read_only() {
    if rustix::process::geteuid().is_root() {
        println!("skipped: nothing is closed to root");
        return;
    }
    let tree = tree("closed", &[".git/modules/x", ".git/modules/y/z"]);
    fs::set_permissions(tree.path(".git/modules/y"), fs::Permissions::from_mode(0o0)).unwrap();
    let found = tree.find();
    fs::set_permissions(tree.path(".git/modules/y"), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(open(&found), [(".git/modules", vec![".git/modules/x"])]);
}

//! What leads git elsewhere by its content, and the repository of a linked work tree.

use super::*;

/// The longest pointer that git reads.
const POINTER_LIMIT: usize = 1 << 20;

#[test]
fn what_leads_git_elsewhere_by_its_content_is_told() {
    let tree = Tree::new("leading", &[".git/refs/heads"], &[".git/HEAD", ".git/objects/x"]);
    fs::write(tree.path(".git/index"), index_of_one(0o100_644, "a")).unwrap();
    fs::write(tree.path(".git/refs/heads/old"), "ref: refs/heads/x").unwrap();
    let before = tree.find();
    assert_eq!(appeared(&before, tree.open()).unwrap(), <[&str; 0]>::default(), "the control");
    for (path, content) in [
        ("HEAD", "ref: refs/heads/main\n"),
        ("ORIG_HEAD", "ref: commondir\n"),
        ("FETCH_HEAD", "0123 not-for-merge branch 'x'"),
        ("refs/remotes/origin/main", "ref:\tcommondir"),
        ("refs/heads/new", "0123456789"),
        ("MERGE_RR", "0123\t../home/.ssh/id_rsa\0"),
        ("remotes/origin", "URL: x"),
        ("evil/.git/HEAD", "x"),
        ("COMMIT_EDITMSG", "ref: commondir"),
    ] {
        let path = tree.path(&format!(".git/{path}"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    fs::write(tree.path(".git/index"), index_of_one(0o160_000, ".git/evil")).unwrap();
    let told = appeared(&before, tree.open()).unwrap();
    let all = [
        "COMMIT_EDITMSG",
        "MERGE_RR",
        "ORIG_HEAD",
        "evil/.git",
        "index",
        "refs/remotes/origin/main",
        "remotes",
    ];
    assert_eq!(told, all.map(|name| format!(".git/{name}")));
}

#[test]
fn a_link_of_another_repository_hides_nothing_of_one() {
    let dirs = ["a/.git", "b/.git/refs/heads", "objects/b/.git/logs/ab"];
    let tree = Tree::new("hiding", &dirs, &["a/.git/HEAD", "b/.git/HEAD", "objects/b/.git/HEAD"]);
    symlink("../../b/.git/refs", tree.path("a/.git/peek")).unwrap();
    symlink("../../objects/b/.git/logs", tree.path("a/.git/too")).unwrap();
    let before = tree.find();
    assert_eq!(appeared(&before, tree.open()).unwrap(), <[&str; 0]>::default(), "the control");
    fs::write(tree.path("b/.git/refs/heads/x"), "ref: commondir").unwrap();
    symlink("/root/.bashrc", tree.path("objects/b/.git/logs/ab/x")).unwrap();
    let told = appeared(&before, tree.open()).unwrap();
    assert_eq!(told, ["b/.git/refs/heads/x", "objects/b/.git/logs/ab/x"]);
}

/// Git runs them there as the user's own.
#[test]
fn hooks_in_the_workspace_of_a_work_tree_outside_are_protected() {
    let directories = [".git/objects", ".git/refs", ".git/worktrees/w", "team"];
    let tree = Tree::new("elsewhere", &directories, &[".git/HEAD"]);
    fs::write(tree.path(".git/worktrees/w/gitdir"), "/elsewhere/w/.git\n").unwrap();
    assert_eq!(access(&tree.find(), "team"), None, "the control");
    let own = tree.path(".git/worktrees/w/config.worktree");
    fs::write(own, format!("[core]\n\thooksPath = {}\n", tree.path("team").display())).unwrap();
    let found = tree.find();
    assert_eq!(access(&found, "team"), Some(Access::ReadOnly), "{:?}", found.reasons());
    assert_eq!(found.reasons(), Vec::<String>::new());
    for number in 1..repository::MAX_ENTRIES {
        fs::create_dir(tree.path(&format!(".git/worktrees/{number}"))).unwrap();
    }
    assert!(tree.find().reasons().concat().contains("too many work trees"));
    fs::remove_dir(tree.path(".git/worktrees/1")).unwrap();
    assert_eq!(tree.find().reasons(), Vec::<String>::new());
}

#[test]
fn an_index_that_was_so_before_is_read_once() {
    let tree = Tree::new("index", &[".git"], &[".git/HEAD"]);
    fs::write(tree.path(".git/index"), "no index").unwrap();
    let before = tree.find();
    assert_eq!(appeared(&before, tree.open()).unwrap(), <[&str; 0]>::default());
    fs::write(tree.path(".git/sharedindex.0a"), index_of_one(0o100_644, "../x")).unwrap();
    assert_eq!(appeared(&before, tree.open()).unwrap(), [".git/sharedindex.0a"]);
}

#[test]
fn the_outer_repository_of_a_linked_work_tree_is_looked_at() {
    let tree = Tree::new("linked", &["repo/.git/refs", "repo/.git/logs"], &["repo/.git/HEAD"]);
    let own = tree.path("repo/.git/worktrees/ws");
    fs::create_dir_all(&own).unwrap();
    fs::create_dir_all(tree.path("ws")).unwrap();
    fs::write(tree.path("ws/.git"), format!("gitdir: {}\n", own.display())).unwrap();
    fs::write(own.join("gitdir"), tree.path("ws/.git").to_str().unwrap()).unwrap();
    fs::write(own.join("commondir"), "../..\n").unwrap();
    let open = || fs::File::open(tree.path("ws")).unwrap();
    let before = find(open()).unwrap();
    assert_eq!(appeared(&before, open()).unwrap(), <[&str; 0]>::default(), "the control");
    fs::create_dir_all(own.join("rebase-merge")).unwrap();
    fs::write(own.join("rebase-merge/git-rebase-todo"), "exec id").unwrap();
    fs::write(own.join("index"), index_of_one(0o100_644, ".git/hooks/x")).unwrap();
    fs::create_dir_all(own.join("logs")).unwrap();
    symlink("/root/.bashrc", own.join("logs/HEAD")).unwrap();
    symlink("/root/.bashrc", tree.path("repo/.git/logs/x")).unwrap();
    fs::write(tree.path("repo/.git/refs/y"), "ref: commondir").unwrap();
    let told = appeared(&before, open()).unwrap();
    let outer = tree.path("repo/.git");
    let all = [
        "logs/x",
        "refs/y",
        "worktrees/ws/index",
        "worktrees/ws/logs/HEAD",
        "worktrees/ws/rebase-merge/git-rebase-todo",
    ];
    assert_eq!(told, all.map(|name| format!("{}/{name}", outer.display())));
}

#[test]
fn a_pointer_that_is_too_long_is_not_protected() {
    let tree = Tree::new("long", &["sub"], &[]);
    fs::write(tree.path("sub/.git"), format!("gitdir: x{}", "\n".repeat(POINTER_LIMIT))).unwrap();
    let found = tree.find();
    assert_eq!(found.unprotected.iter().map(|name| &*name.path).collect::<Vec<_>>(), ["sub/.git"]);
    fs::write(tree.path("sub/.git"), format!("gitdir: ../g{}", "\n".repeat(10_000))).unwrap();
    fs::create_dir_all(tree.path("g/refs")).unwrap();
    assert_eq!(access(&tree.find(), "g/hooks"), Some(Access::ReadOnly), "git reads it, too");
}

#[test]
fn a_configuration_that_includes_itself_many_times_over_is_read_once() {
    let tree = Tree::new("includes", &[".git/hooks"], &[".git/HEAD"]);
    let includes = "[include]\npath=../i\n".repeat(15_000);
    fs::write(tree.path(".git/config"), includes).unwrap();
    let included = fs::File::create(tree.path("i")).unwrap();
    included.set_len(4 << 20).unwrap();
    let found = tree.find();
    assert_eq!(access(&found, "i"), Some(Access::ReadOnly));
    // Read each time, it would be over the limit of all together.
    assert!(found.unprotected.is_empty(), "{:?}", found.unprotected);
}

#[test]
fn what_is_read_of_configurations_and_of_what_they_name_has_a_limit() {
    let tree = Tree::new("budgets", &[".git/hooks"], &[".git/HEAD"]);
    let many = |count: usize| -> String {
        (0..count).map(|n| format!("[include]\npath=../{n}\n")).collect()
    };
    fs::write(tree.path(".git/config"), many(100)).unwrap();
    assert_eq!(tree.find().pointed.iter().filter(|path| path.is_empty()).count(), 0);
    fs::write(tree.path(".git/config"), many(20_001)).unwrap();
    let found = tree.find();
    assert!(found.pointed.contains(&String::new()), "the workspace as a whole");
    assert!(
        found.unprotected.iter().any(|one| one.why.contains("too much")),
        "{:?}",
        found.unprotected.len()
    );
    // Configurations that are large together.
    fs::write(tree.path(".git/config"), many(20)).unwrap();
    for name in 0..20 {
        fs::File::create(tree.path(&name.to_string())).unwrap().set_len(4 << 20).unwrap();
    }
    let found = tree.find();
    assert!(found.unprotected.iter().any(|one| one.why.contains("too many large")));
    assert!(found.pointed.contains(&String::new()));
}

#[test]
fn indexes_are_read_up_to_a_limit_and_the_rest_is_told() {
    let tree = Tree::new("indexes", &[".git"], &[".git/HEAD"]);
    let before = tree.find();
    for name in 0..20 {
        let index = fs::File::create(tree.path(&format!(".git/sharedindex.{name}"))).unwrap();
        index.set_len(256 << 20).unwrap();
    }
    assert_eq!(appeared(&before, tree.open()).unwrap().len(), 20);
}

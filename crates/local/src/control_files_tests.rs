//! Against directories of the tests' own.

use super::*;
use crate::test_directory::TestDirectory;
use rustix::fs::Mode;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

#[path = "control_files/leading_tests.rs"]
mod leading;

struct Tree(TestDirectory);

impl Tree {
    fn new(name: &str, directories: &[&str], files: &[&str]) -> Self {
        let tree = Self(TestDirectory::new(&format!("control-{name}")));
        for path in directories {
            fs::create_dir_all(tree.path(path)).unwrap();
        }
        for path in files {
            fs::create_dir_all(tree.path(path).parent().unwrap()).unwrap();
            fs::write(tree.path(path), "x").unwrap();
        }
        tree
    }

    fn path(&self, path: &str) -> std::path::PathBuf {
        self.0.path().join(path)
    }

    fn open(&self) -> OwnedFd {
        fs::File::open(self.0.path()).unwrap().into()
    }

    fn find(&self) -> ControlFiles {
        find(self.open()).unwrap()
    }
}

fn access(found: &ControlFiles, path: &str) -> Option<Access> {
    found.pins.iter().find(|pin| pin.path == path).map(|pin| pin.access)
}

fn absent(found: &ControlFiles, path: &str) -> Option<Nature> {
    found.absent.iter().find(|name| name.path == path).map(|name| name.nature)
}

#[test]
fn present_and_absent_names_are_pinned() {
    let tree = Tree::new("root", &[".vscode"], &[".envrc"]);
    let found = tree.find();
    assert_eq!(found.pins.len(), WORK_TREE.len());
    assert!(found.pins.iter().all(|pin| pin.access == Access::ReadOnly));
    assert_eq!(absent(&found, ".vscode"), None);
    assert_eq!(absent(&found, ".envrc"), None);
    assert_eq!(absent(&found, ".idea"), Some(Nature::Directory));
    assert_eq!(absent(&found, ".mcp.json"), Some(Nature::File));
    assert_eq!(absent(&found, ".git"), None, "git init is allowed where there is no repository");
    assert_eq!((found.scan, found.reasons().len()), (ScanEnd::Complete, 0));
}

#[test]
fn a_git_directory_is_pinned_and_stays_usable() {
    let tree = Tree::new("git", &[".git/hooks", ".git/objects"], &[".git/config", ".git/HEAD"]);
    let found = tree.find();
    assert_eq!(access(&found, ".git"), Some(Access::ReadWrite));
    assert_eq!(access(&found, ".git/info"), Some(Access::ReadWrite));
    for name in ["hooks", "config", "config.worktree", "commondir", "modules", "info/attributes"] {
        assert_eq!(access(&found, &format!(".git/{name}")), Some(Access::ReadOnly), "{name}");
    }
    assert_eq!(access(&found, ".git/HEAD"), None);
    assert_eq!(absent(&found, ".git/commondir"), Some(Nature::CommonDir));
    assert_eq!(absent(&found, ".git/info"), Some(Nature::GitDirectory));
    assert_eq!(absent(&found, ".git/config"), None);
}

#[test]
fn parents_come_first() {
    let tree = Tree::new("order", &["a-b/.git", "a/b/.git", "a.b/.git"], &[]);
    let found = tree.find();
    for (index, pin) in found.pins.iter().enumerate() {
        let before = &found.pins[..index];
        for ancestor in Path::new(&pin.path).ancestors().skip(1) {
            let name = ancestor.to_str().unwrap();
            assert!(name.is_empty() || before.iter().any(|pin| pin.path == name), "{}", pin.path);
        }
    }
    assert_eq!(access(&found, "a"), Some(Access::ReadWrite));
    assert_eq!(access(&found, "a/b/.git/hooks"), Some(Access::ReadOnly));
    assert_eq!(access(&found, "a/b/.vscode"), Some(Access::ReadOnly));
    assert_eq!(access(&found, "a/.vscode"), None, "only repositories have them");
}

#[test]
fn linked_work_trees_and_bare_repositories_are_known() {
    let tree = Tree::new("kinds", &["bare/objects", "bare/refs"], &["sub/.git", "bare/HEAD"]);
    let found = tree.find();
    assert_eq!(access(&found, "sub/.git"), Some(Access::ReadOnly));
    assert_eq!(access(&found, "sub/.git/hooks"), None);
    let bare = find(fs::File::open(tree.path("bare")).unwrap()).unwrap();
    assert_eq!(access(&bare, "hooks"), Some(Access::ReadOnly));
    assert_eq!(access(&bare, "info/attributes"), Some(Access::ReadOnly));
}

#[test]
fn only_what_is_pinned_is_not_entered() {
    let deep = "a/b/c/d/e/f/g/h/i/j/k/l/m/.git";
    let entered = ["node_modules/x/.git", "target/x/.git", "sub/.claude/x/.git", deep];
    let tree = Tree::new("skip", &[&entered[..], &[".claude/x/.git", "deep/.git"]].concat(), &[]);
    symlink("/", tree.path("link")).unwrap();
    let found = tree.find();
    for path in entered {
        assert_eq!(access(&found, &format!("{path}/hooks")), Some(Access::ReadOnly), "{path}");
    }
    assert!(!found.present.contains(".claude/x/.git"));
    assert_eq!((found.scan, found.reasons().len()), (ScanEnd::Complete, 0));
}

#[test]
fn bare_repositories_below_are_protected() {
    let tree = Tree::new("bare", &["x/b.git/objects", "x/b.git/refs"], &["x/b.git/HEAD"]);
    let found = tree.find();
    assert_eq!(access(&found, "x"), Some(Access::ReadWrite));
    assert_eq!(access(&found, "x/b.git/hooks"), Some(Access::ReadOnly));
    assert_eq!(access(&found, "x/b.git/.vscode"), None);
}

#[test]
fn a_scan_is_bounded_and_says_so() {
    let names: Vec<String> = (0..260).map(|n| format!("r{n:03}/.git")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let found = Tree::new("repositories", &names, &[]).find();
    assert_eq!(found.scan, ScanEnd::TooManyRepositories);
    assert!(found.reasons()[0].contains("--allow-sensitive-writes"), "{:?}", found.reasons());
    let found = Tree::new("deep", &[&"d/".repeat(70)], &[]).find();
    let told = found.reasons();
    assert!(told[0].contains("\"d/d/d/d/d/d/d/d\"") && told[0].contains("--cow"), "{told:?}");
    assert!(ScanEnd::TooLarge.reason().unwrap().contains("--cow"));
    let names: Vec<String> = (0..2000).map(|n| format!("d{n}")).collect();
    let deep = "d/".repeat(64);
    let names: Vec<&str> = names.iter().chain([&deep]).map(String::as_str).collect();
    let found = Tree::new("directories", &names, &[]).find();
    assert_eq!((found.scan, found.reasons().len()), (ScanEnd::Complete, 0));
}

#[test]
fn what_its_owner_closed_to_themselves_is_not_passed_over() {
    if rustix::process::geteuid().is_root() {
        println!("skipped: nothing is closed to root");
        return;
    }
    use std::os::unix::fs::PermissionsExt;
    let tree = Tree::new("closed", &["a/.git", "b/.git/hooks"], &[]);
    for path in ["a", "b/.git"] {
        fs::set_permissions(tree.path(path), fs::Permissions::from_mode(0o0)).unwrap();
    }
    let found = tree.find();
    for path in ["a", "b/.git"] {
        fs::set_permissions(tree.path(path), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let names: BTreeSet<_> = found.unprotected.iter().map(|name| name.path.as_str()).collect();
    assert!(names.contains("a") && names.contains("b/.git/hooks"), "{names:?}");
}

#[test]
fn a_link_is_pinned_with_what_it_names() {
    let tree = Tree::new("links", &["conf/claude", "conf/codex"], &["rc"]);
    symlink("conf/claude", tree.path(".claude")).unwrap();
    symlink("./rc", tree.path(".bashrc")).unwrap();
    symlink("/etc/profile", tree.path(".profile")).unwrap();
    symlink("../elsewhere", tree.path(".zshrc")).unwrap();
    symlink("nowhere", tree.path(".envrc")).unwrap();
    symlink(".claude", tree.path(".cursor")).unwrap();
    symlink(tree.path("conf/codex"), tree.path(".codex")).unwrap();
    let name = tree.0.path().file_name().unwrap().to_str().unwrap();
    symlink(format!("../{name}/rc"), tree.path(".exrc")).unwrap();
    let found = tree.find();
    for path in
        [".claude", ".bashrc", ".profile", ".zshrc", ".envrc", "conf/claude", "conf/codex", "rc"]
    {
        assert_eq!(access(&found, path), Some(Access::ReadOnly), "{path}");
    }
    assert_eq!(access(&found, "conf"), Some(Access::ReadWrite));
    assert_eq!(found.reasons(), Vec::<String>::new());
    // Nothing can be made where a link leads that led nowhere.
    assert_eq!(access(&found, "nowhere"), Some(Access::ReadOnly));
    assert_eq!(absent(&found, "nowhere"), Some(Nature::File));
    symlink("no/where", tree.path(".zshenv")).unwrap();
    let found = tree.find();
    assert!(found.reasons()[0].starts_with("files: \".zshenv\" is not protected"));
    assert_eq!(found.pointed, ["no/where"]);
}

#[test]
fn what_has_another_name_is_not_protected() {
    let tree = Tree::new("hard", &[], &[".envrc"]);
    fs::hard_link(tree.path(".envrc"), tree.path("other")).unwrap();
    symlink("x", tree.path("sub")).unwrap();
    let found = tree.find();
    assert_eq!(found.unprotected.len(), 1);
    assert_eq!(found.unprotected[0].path, ".envrc");
}

#[test]
fn a_repository_whose_path_is_not_text_is_reported() {
    let tree = Tree::new("text", &[], &[]);
    let name = std::ffi::OsStr::from_bytes(b"r\xff");
    fs::create_dir_all(tree.0.path().join(name).join(".git")).unwrap();
    assert_eq!(tree.find().unprotected.len(), 1);
}

#[test]
fn what_appeared_is_told() {
    let tree = Tree::new("appeared", &[".git"], &[".envrc"]);
    let before = tree.find();
    assert!(appeared(&before, tree.open()).unwrap().is_empty());
    fs::create_dir_all(tree.path("new/.git/hooks")).unwrap();
    fs::write(tree.path("new/.git/hooks/pre-push"), "x").unwrap();
    fs::write(tree.path(".mcp.json"), "x").unwrap();
    let names = appeared(&before, tree.open()).unwrap();
    assert_eq!(names, [".mcp.json", "new/.git", "new/.git/hooks"]);
}

#[test]
fn whatever_stands_for_info_is_pinned_and_harms_no_start() {
    let directories = ["file/.git", "loop/.git", "link/.git", "away/.git", "other"];
    let tree = Tree::new("info", &directories, &["file/.git/info", "other/attributes"]);
    symlink("info", tree.path("loop/.git/info")).unwrap();
    symlink("../../other", tree.path("link/.git/info")).unwrap();
    symlink("nowhere", tree.path("away/.git/info")).unwrap();
    let fifo = ["fifo/.git", "empty/.git/info"];
    fs::create_dir_all(tree.path("fifo")).unwrap();
    fs::create_dir_all(tree.path(fifo[1])).unwrap();
    let status = std::process::Command::new("mkfifo").arg(tree.path(fifo[0])).status().unwrap();
    assert!(status.success());
    let found = tree.find();
    assert_eq!(found.reasons(), Vec::<String>::new());
    for path in ["file/.git", "loop/.git", "link/.git", "away/.git"] {
        assert_eq!(access(&found, &format!("{path}/info")), Some(Access::ReadOnly), "{path}");
        assert_eq!(access(&found, &format!("{path}/info/attributes")), None, "{path}");
        assert_eq!(access(&found, &format!("{path}/hooks")), Some(Access::ReadOnly), "{path}");
    }
    assert_eq!(access(&found, "other"), Some(Access::ReadOnly));
    assert_eq!(access(&found, "away/.git/nowhere"), Some(Access::ReadOnly));
    assert_eq!(access(&found, "fifo/.git"), Some(Access::ReadOnly));
    assert_eq!(access(&found, "empty/.git/info/attributes"), Some(Access::ReadOnly));
}

#[test]
fn a_git_directory_that_a_file_or_link_names_is_protected() {
    let directories = ["real/objects", "sub", "linked", "away", "modules/a", "by/way/objects"];
    let tree = Tree::new("elsewhere", &directories, &["real/HEAD", "away/.git"]);
    fs::write(tree.path(".git"), "gitdir: real\n").unwrap();
    fs::write(tree.path("sub/.git"), format!("gitdir: {}\n", tree.path("real").display())).unwrap();
    symlink("../real", tree.path("linked/.git")).unwrap();
    fs::write(tree.path("modules/a/.git"), "gitdir: ../../nowhere").unwrap();
    let found = tree.find();
    assert_eq!(access(&found, ".git"), Some(Access::ReadOnly));
    assert_eq!(access(&found, "real"), Some(Access::ReadWrite));
    assert_eq!(access(&found, "real/hooks"), Some(Access::ReadOnly));
    assert_eq!(access(&found, "real/config"), Some(Access::ReadOnly));
    assert_eq!(found.reasons(), Vec::<String>::new());
    symlink("by", tree.path("via")).unwrap();
    fs::write(tree.path("away/.git"), "gitdir: ../via/way\n").unwrap();
    let found = tree.find();
    assert_eq!(found.reasons(), Vec::<String>::new());
    for path in ["via", "by/way/hooks"] {
        assert_eq!(access(&found, path), Some(Access::ReadOnly), "{path}");
    }
}

#[test]
fn what_a_configuration_makes_git_run_is_pinned() {
    let directories = [".git/hooks", "tools/hooks", "sub/.git", "sub/mine", "conf", "scripts"];
    let tree = Tree::new("configuration", &directories, &["scripts/lint"]);
    let config = "[core]\n\thooksPath = tools/hooks\n[include]\n\tpath = ../conf/git\n";
    fs::write(tree.path(".git/config"), config).unwrap();
    let more = format!("[includeIf \"gitdir:x\"]\npath = more\n[include]\npath = {}\n", "/etc/x");
    fs::write(tree.path("conf/git"), more).unwrap();
    fs::write(tree.path("conf/more"), "[include]\npath = git\n").unwrap();
    fs::write(tree.path("sub/.git/config"), "[core]\nhooksPath = mine\n").unwrap();
    symlink("../../scripts/lint", tree.path(".git/hooks/pre-commit")).unwrap();
    let found = tree.find();
    for path in ["tools/hooks", "conf/git", "conf/more", "sub/mine", "scripts/lint"] {
        assert_eq!(access(&found, path), Some(Access::ReadOnly), "{path}");
    }
    assert_eq!(access(&found, "conf"), Some(Access::ReadWrite));
    assert_eq!(found.reasons(), Vec::<String>::new());
    fs::write(tree.path(".git/config"), "[core]\nhooksPath = .\n").unwrap();
    fs::write(tree.path("sub/.git/config"), "[core]\nhooksPath = later\n").unwrap();
    let found = tree.find();
    assert_eq!(access(&found, "sub/later"), Some(Access::ReadOnly));
    assert_eq!(absent(&found, "sub/later"), Some(Nature::Directory));
    assert_eq!(found.reasons().len(), 1, "{:?}", found.reasons());
}

#[test]
fn a_configuration_that_is_no_file_is_not_read() {
    let tree = Tree::new("fifo", &[".git", "sub/.git"], &[]);
    let status = std::process::Command::new("mkfifo").arg(tree.path(".git/config")).status();
    assert!(status.unwrap().success());
    let large = "#".repeat(configuration::CONFIG_BYTES + 1);
    fs::write(tree.path("sub/.git/config"), &large).unwrap();
    let found = tree.find();
    assert_eq!(found.unprotected.len(), 1);
    assert_eq!(found.pointed, [""], "where it leads is not known");
    let fits = format!("[core]\nhooksPath = far\n{}", &large[..configuration::CONFIG_BYTES - 30]);
    fs::write(tree.path("sub/.git/config"), fits).unwrap();
    let found = tree.find();
    assert_eq!((found.unprotected.len(), access(&found, "sub/far")), (0, Some(Access::ReadOnly)));
    fs::write(tree.path("sub/.git/config"), b"[core]\nhooksPath = h\xff\n").unwrap();
    let found = tree.find();
    assert_eq!((found.unprotected.len(), &*found.pointed), (1, &["".to_owned()][..]));
}

#[test]
fn a_directory_that_shares_with_another_is_a_repository_with_the_control_files_of_both() {
    let tree = Tree::new("shared", &["x", "y/objects", "y/refs", "mine"], &["x/HEAD"]);
    fs::write(tree.path("x/commondir"), "../y\n").unwrap();
    fs::write(tree.path("y/config"), "[core]\nhooksPath = ../mine\n").unwrap();
    let found = tree.find();
    assert!(found.present.contains("x"), "{:?}", found.present);
    let names = ["x/commondir", "x/config.worktree", "y/config", "y/hooks", "mine"];
    for path in names {
        assert_eq!(access(&found, path), Some(Access::ReadOnly), "{path}");
    }
    // One that names what is not there, or itself.
    fs::write(tree.path("x/commondir"), "../z").unwrap();
    assert_eq!(tree.find().pointed, ["z"]);
    fs::write(tree.path("x/commondir"), "../x/.").unwrap();
    let found = tree.find();
    assert_eq!((&*found.pointed, found.reasons().len()), (&[][..], 0));
    // The control.
    fs::remove_file(tree.path("x/commondir")).unwrap();
    assert!(!tree.find().present.contains("x"));
}

#[test]
fn a_workspace_that_becomes_a_repository_itself_is_told_of() {
    for shared in [true, false] {
        let tree = Tree::new("taken-over", &[".git/objects", ".git/refs"], &[".git/HEAD"]);
        let before = tree.find();
        fs::remove_file(tree.path(".git/HEAD")).unwrap();
        fs::write(tree.path("HEAD"), "ref: refs/heads/main\n").unwrap();
        let place = if shared { "y/" } else { "" };
        for name in ["objects", "refs"] {
            fs::create_dir_all(tree.path(&format!("{place}{name}"))).unwrap();
        }
        fs::write(tree.path(&format!("{place}config")), "[core]\nfsmonitor = x\n").unwrap();
        let mut expected = vec!["HEAD", "config"];
        if shared {
            fs::write(tree.path("commondir"), "y").unwrap();
            fs::write(tree.path("config.worktree"), "[core]\nworktree = .\n").unwrap();
            expected = vec!["HEAD", "commondir", "config.worktree", "y/config"];
        }
        assert_eq!(appeared(&before, tree.open()).unwrap(), expected);
    }
}

#[test]
fn what_is_reached_by_way_of_links_is_pinned_with_the_links() {
    let check = |name: &str, expected: &[&str]| {
        let directories = [".git/hooks", "real/h", "deep/down", "h"];
        let tree = Tree::new("way", &directories, &[]);
        symlink("real", tree.path("link")).unwrap();
        symlink("deep/down", tree.path("down")).unwrap();
        symlink("link/h", tree.path("twice")).unwrap();
        let config = format!("[core]\nhooksPath = {name}\n");
        fs::write(tree.path(".git/config"), config).unwrap();
        let found = tree.find();
        assert_eq!(found.reasons(), Vec::<String>::new(), "{name}");
        for path in ["link", "real/h", "real/later", "twice", "down", "deep/h", "h"] {
            let pinned = access(&found, path) == Some(Access::ReadOnly);
            assert_eq!(pinned, expected.contains(&path), "{name}: {path}");
        }
    };
    check("real/h", &["real/h"]);
    check("real/../h", &["h"]);
    check("link/h", &["link", "real/h"]);
    check("twice", &["twice", "link", "real/h"]);
    check("link/later", &["link", "real/later"]);
    check("down/../h", &["down", "deep/h"]);
    check("", &[]);
    check("%(prefix)/x", &[]);
    check("/etc/hooks", &[]);
    check("../../../../../../../etc", &[]);
}

/// Where hooks are is said outside of the workspace, or meant from elsewhere.
#[test]
fn hooks_are_found_wherever_the_configuration_is_that_names_them() {
    let names = |path: &str| format!("[core]\n\thooksPath = {path}\n");
    let outer = Tree::new("outer", &["main/.git/objects", "main/.git/refs"], &["main/.git/HEAD"]);
    let linked = "main/.git/worktrees/w";
    fs::create_dir_all(outer.path(linked)).unwrap();
    fs::create_dir_all(outer.path("main/sub/hooks")).unwrap();
    fs::write(outer.path("main/.git/config"), names(".githooks")).unwrap();
    fs::write(outer.path(linked).join("commondir"), "../..\n").unwrap();
    fs::write(outer.path("team"), names(".team")).unwrap();
    let read_only = |tree: &Tree, path: &str| {
        let found = tree.find();
        assert_eq!(access(&found, path), Some(Access::ReadOnly), "{path} {:?}", found.reasons());
        assert_eq!(found.reasons(), Vec::<String>::new());
    };
    // A linked work tree whose repository is elsewhere.
    let tree = Tree::new("of-another", &[".githooks"], &[]);
    let pointer = format!("gitdir: {}\n", outer.path(linked).display());
    fs::write(tree.path(".git"), pointer).unwrap();
    read_only(&tree, ".githooks");
    // One within the workspace.
    let directories = [".git/objects", ".git/refs", ".git/worktrees/w", "w/.githooks"];
    let tree = Tree::new("of-itself", &directories, &[".git/HEAD"]);
    fs::write(tree.path(".git/config"), names(".githooks")).unwrap();
    fs::write(tree.path(".git/worktrees/w/commondir"), "../..\n").unwrap();
    fs::write(tree.path("w/.git"), "gitdir: ../.git/worktrees/w\n").unwrap();
    read_only(&tree, "w/.githooks");
    // An inclusion that is elsewhere, a link, another work tree.
    let include = format!("[include]\n\tpath = {}\n", outer.path("team").display());
    for (config, is_link, expected) in [
        (include, false, ".team"),
        (names(".h"), true, ".h"),
        (format!("{}worktree = ../src\n", names(".h")), false, "src/.h"),
    ] {
        let tree = Tree::new("shapes", &[".git", ".team", ".h", "src/.h"], &[".git/HEAD"]);
        fs::write(tree.path("real"), &config).unwrap();
        match is_link {
            true => symlink("../real", tree.path(".git/config")).unwrap(),
            false => fs::write(tree.path(".git/config"), &config).unwrap(),
        }
        read_only(&tree, expected);
    }
    // A part of a repository.
    fs::write(outer.path("main/.git/config"), names("sub/hooks")).unwrap();
    let part = fs::File::open(outer.path("main/sub")).unwrap();
    assert_eq!(access(&find(&part).unwrap(), "hooks"), Some(Access::ReadOnly));
    fs::write(outer.path("main/.git/config"), "").unwrap();
    assert_eq!(access(&find(&part).unwrap(), "hooks"), None, "the control");
    fs::create_dir(outer.path("main/.git/hooks")).unwrap();
    symlink("../../sub/hooks/x", outer.path("main/.git/hooks/pre-push")).unwrap();
    assert_eq!(access(&find(&part).unwrap(), "hooks/x"), Some(Access::ReadOnly));
}

/// Read as often as it is named, this would be 5¹⁰ files.
#[test]
fn what_includes_itself_over_and_over_is_read_once() {
    let tree = Tree::new("itself", &[".git", "h"], &[]);
    let lines: String = (0..5).map(|n| format!("\tpath = more{}\n", n % 3)).collect();
    for name in ["config", "more0", "more1", "more2"] {
        fs::write(tree.path(&format!(".git/{name}")), format!("[include]\n{lines}")).unwrap();
    }
    let last = fs::read_to_string(tree.path(".git/more2")).unwrap();
    fs::write(tree.path(".git/more2"), format!("{last}[core]\nhooksPath = h\n")).unwrap();
    let found = tree.find();
    assert_eq!(access(&found, "h"), Some(Access::ReadOnly));
    assert_eq!(found.reasons(), Vec::<String>::new());
}

/// Hooks are links in a directory that a link leads to.
#[test]
fn what_hooks_lead_to_is_protected_by_way_of_any_link() {
    let tree = Tree::new("linked-hooks", &[".git", "githooks"], &["scripts/lint"]);
    symlink("../githooks", tree.path(".git/hooks")).unwrap();
    symlink("../scripts/lint", tree.path("githooks/pre-commit")).unwrap();
    let found = tree.find();
    for path in [".git/hooks", "githooks", "scripts/lint"] {
        assert_eq!(access(&found, path), Some(Access::ReadOnly), "{path}");
    }
    assert_eq!(found.reasons(), Vec::<String>::new());
}

#[test]
fn a_link_that_is_pointed_elsewhere_is_told_of() {
    let tree = Tree::new("pointed", &[".git/logs", "a", "b"], &[".git/HEAD"]);
    symlink("../../a", tree.path(".git/logs/x")).unwrap();
    let before = tree.find();
    assert!(appeared(&before, tree.open()).unwrap().is_empty());
    fs::remove_file(tree.path(".git/logs/x")).unwrap();
    symlink("../../b", tree.path(".git/logs/x")).unwrap();
    assert_eq!(appeared(&before, tree.open()).unwrap(), [".git/logs/x"]);
}

/// What git enters and no look does is told of.
#[test]
fn what_cannot_be_looked_at_is_told_of_where_it_is_new() {
    use std::os::unix::fs::PermissionsExt;
    let tree = Tree::new("closed", &[".git/logs"], &[".git/HEAD"]);
    let before = tree.find();
    let odd = tree.0.path().join(std::ffi::OsStr::from_bytes(b"caf\xe9"));
    fs::create_dir_all(odd.join(".git")).unwrap();
    assert_eq!(appeared(&before, tree.open()).unwrap(), ["caf\u{fffd}"]);
    fs::remove_dir_all(odd).unwrap();
    fs::create_dir_all(tree.path(&"d/".repeat(70))).unwrap();
    assert_eq!(appeared(&before, tree.open()).unwrap(), ["d/d/d/d/d/d/d/d"]);
    fs::remove_dir_all(tree.path("d")).unwrap();
    // Of so long a path that the names of a repository there cannot be asked for.
    let mut at = tree.open();
    for _ in 0..16 {
        let name = "d".repeat(250);
        rustix::fs::mkdirat(&at, &*name, Mode::RWXU).unwrap();
        at = rustix::fs::openat(&at, &*name, OFlags::DIRECTORY, Mode::empty()).unwrap();
    }
    rustix::fs::mkdirat(&at, ".git", Mode::RWXU).unwrap();
    let told = appeared(&before, tree.open()).unwrap();
    assert!(told.iter().any(|path| path.ends_with("/.git")), "{told:?}");
    if rustix::process::geteuid().is_root() {
        return;
    }
    for path in ["closed", ".git/logs"] {
        fs::create_dir_all(tree.path(path)).unwrap();
        fs::set_permissions(tree.path(path), fs::Permissions::from_mode(0o300)).unwrap();
        let told = appeared(&before, tree.open()).unwrap();
        fs::set_permissions(tree.path(path), fs::Permissions::from_mode(0o700)).unwrap();
        assert!(told.contains(&path.to_owned()), "{told:?}");
    }
}

#[test]
fn a_link_outside_that_leads_in_is_no_hindrance() {
    let tree = Tree::new("outside", &[".git/hooks", "own"], &[]);
    let outside = TestDirectory::new("control-outside-link");
    symlink(tree.0.path(), outside.path().join("in")).unwrap();
    for name in ["in/own", "in/./later/../own", "in/../in/own"] {
        let path = outside.path().join(name);
        let config = format!("[core]\nhooksPath = {}\n", path.display());
        fs::write(tree.path(".git/config"), config).unwrap();
        let found = tree.find();
        let leads_back = name != "in/../in/own";
        assert_eq!(access(&found, "own").is_some(), leads_back, "{name} {:?}", found.reasons());
        assert_eq!(found.reasons().len(), 0);
    }
}

#[test]
fn what_most_have_not_is_pinned_where_it_stands_and_told_of_where_it_comes() {
    let tree = Tree::new("if-there", &[".zed", ".hg", ".git/rebase-merge"], &[".vimrc"]);
    let before = tree.find();
    for path in [".zed", ".vimrc"] {
        assert_eq!(access(&before, path), Some(Access::ReadOnly), "{path}");
    }
    for path in [".hg/hgrc", ".mise.toml"] {
        assert_eq!((access(&before, path), absent(&before, path)), (None, None), "{path}");
    }
    let todo = ".git/rebase-merge/git-rebase-todo";
    for path in [".hg/hgrc", ".mise.toml", todo] {
        fs::write(tree.path(path), "x").unwrap();
    }
    let names = appeared(&before, tree.open()).unwrap();
    assert_eq!(names, [todo, ".hg/hgrc", ".mise.toml"]);
    let found = tree.find();
    assert!(appeared(&found, tree.open()).unwrap().is_empty());
    std::thread::sleep(std::time::Duration::from_millis(20));
    fs::write(tree.path(todo), "y").unwrap();
    assert_eq!(
        appeared(&found, tree.open()).unwrap(),
        [todo],
        "what was there says something else"
    );
    assert_eq!(access(&found, ".hg"), Some(Access::ReadWrite));
    assert_eq!(access(&found, ".hg/hgrc"), Some(Access::ReadOnly));
    assert_eq!(access(&found, ".git/rebase-merge/git-rebase-todo"), None, "a rebase goes on");
}

#[test]
fn a_hook_that_has_another_name_is_not_protected() {
    let tree = Tree::new("hook", &[], &[".git/hooks/pre-push"]);
    fs::hard_link(tree.path(".git/hooks/pre-push"), tree.path("other")).unwrap();
    let found = tree.find();
    assert_eq!(found.unprotected.len(), 1);
    assert_eq!(found.unprotected[0].path, ".git/hooks/pre-push");
}

#[test]
fn links_in_a_git_directory_are_told() {
    let tree = Tree::new("redirect", &[".git"], &[".git/HEAD"]);
    let before = tree.find();
    fs::remove_file(tree.path(".git/HEAD")).unwrap();
    symlink("/etc/hostname", tree.path(".git/HEAD")).unwrap();
    symlink("../../.bashrc", tree.path(".git/COMMIT_EDITMSG")).unwrap();
    fs::create_dir_all(tree.path(".git/logs/refs/heads/ab")).unwrap();
    symlink("/root/.bashrc", tree.path(".git/logs/refs/heads/ab/x")).unwrap();
    symlink("/root", tree.path(".git/refs")).unwrap();
    fs::create_dir_all(tree.path(".git/objects/ab")).unwrap();
    symlink("/root", tree.path(".git/objects/cd")).unwrap();
    symlink("/root/x", tree.path(".git/objects/ab/y")).unwrap();
    let names = appeared(&before, tree.open()).unwrap();
    let all = ["COMMIT_EDITMSG", "HEAD", "logs/refs/heads/ab/x", "objects/cd", "refs"];
    assert_eq!(names, all.map(|name| format!(".git/{name}")));
}

#[test]
fn names_without_a_placeholder_are_left_out() {
    let tree = Tree::new("without", &[".git"], &[]);
    let exposed = Unprotected { path: ".git/info".to_owned(), why: "no room".to_owned() };
    let by_nobody = vec![".git/hooks".to_owned()];
    let found = tree.find().without(Unmade { exposed: vec![exposed], by_nobody });
    let pinned = [".git/info", ".git/info/attributes", ".git/hooks", ".git/config"];
    assert_eq!(pinned.map(|name| access(&found, name).is_some()), [false, false, false, true]);
    assert_eq!(found.reasons().len(), 1);
}

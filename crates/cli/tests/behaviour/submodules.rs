//! Submodules: what is committed in one, and what of its git directory is protected.

use crate::place::{Place, everyone, skipped};
use crate::workspace::{git, has_git};

/// A repository with a submodule, both made by git.
fn submodule(place: &Place) {
    place.write("f", "x");
    let source = place.base.join("source");
    for words in [&["init", "-q"][..], &["add", "-A"], &["commit", "-qm", "one"]] {
        git(place, words);
    }
    let source = source.to_str().unwrap();
    git(place, &["clone", "-q", ".", source]);
    let add = ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", source, "sub"];
    git(place, &add);
    git(place, &["commit", "-qm", "two"]);
}

const COMMIT: &str = "set -e
    export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
    echo y >sub/y; git -C sub add y; git -C sub commit -qm inside; git add sub; git commit -qm outer";

/// Each ends with 0 where it succeeds.
const ATTACKS: [&str; 9] = [
    "echo x >.git/modules/sub/hooks/pre-commit",
    "echo x >>.git/modules/sub/config",
    "echo x >.git/modules/sub/config.worktree",
    "echo ../.. >.git/modules/sub/commondir",
    "echo x >.git/modules/sub/info/attributes",
    "mkdir -p .git/modules/sub/modules/z",
    "mkdir .git/modules/new",
    "mv .git/modules/sub .git/modules/other && mv .git/modules/other .git/modules/sub",
    "mv .git/modules/sub/hooks .git/modules/sub/h && mv .git/modules/sub/h .git/modules/sub/hooks",
];

#[test]
fn a_submodule_can_be_committed_in_and_its_control_files_are_protected() {
    if !has_git() {
        return skipped("tool-git", "there is no git");
    }
    everyone(|place| {
        submodule(place);
        place.says(&["run", "--shell", COMMIT], 0);
        let log = "git -C sub log -1 --format=%s; git log -1 --format=%s; git -C sub status -s";
        let said = place.says(&["run", "--shell", log], 0);
        assert_eq!(said.text(), "inside\nouter\n");
        for attack in ATTACKS {
            let line = format!("{{ {attack}; }} 2>/dev/null");
            assert_ne!(place.run(&["--shell", &line]).code(), Some(0), "{attack}");
        }
        for attack in ATTACKS {
            let open = ["--allow-sensitive-writes", "--shell", attack];
            assert_eq!(place.run(&open).code(), Some(0), "{attack}: the control");
        }
    });
}

#[test]
fn of_a_copy_a_commit_in_a_submodule_lands_and_a_hook_does_not() {
    if !has_git() {
        return skipped("tool-git", "there is no git");
    }
    everyone(|place| {
        submodule(place);
        place.says(&["create", "--name", "box", "--cow"], 0);
        place.says(&["exec", "box", "--", "sh", "-c", COMMIT], 0);
        let hook = "echo x >.git/modules/sub/hooks/pre-commit; echo '[a]' >>.git/modules/sub/config
            mkdir -p .git/modules/new; echo x >.git/modules/new/HEAD";
        place.says(&["exec", "box", "--", "sh", "-c", hook], 0);
        place.says(&["apply", "box"], 1);
        let git = place.workspace.join(".git/modules");
        assert!(!git.join("sub/hooks/pre-commit").exists() && !git.join("new/HEAD").exists());
        assert!(!std::fs::read_to_string(git.join("sub/config")).unwrap().contains("[a]"));
        let head = std::fs::read_to_string(git.join("sub/logs/HEAD")).unwrap();
        assert!(head.contains("inside"), "{head}");
    });
}

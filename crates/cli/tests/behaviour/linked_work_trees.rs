//! Linked work trees of git, whose repository lies outside of the workspace.

use crate::place::{caller, everyone, skipped};
use crate::workspace::{git, has_git};
use std::os::unix::fs::chown;

#[test]
fn the_repository_of_somebody_else_is_not_shown_to_a_linked_worktree() {
    if !has_git() || caller() != 0 {
        return skipped("root", "only root gives a repository to somebody else");
    }
    everyone(|place| {
        place.write("f", "x");
        for words in [&["init", "-q"][..], &["add", "-A"], &["commit", "-qm", "one"]] {
            git(place, words);
        }
        let linked = place.base.join("linked");
        git(place, &["worktree", "add", "-q", linked.to_str().unwrap()]);
        let written = || {
            let write = "echo x >$REPOSITORY/objects/x";
            let repository = place.workspace.join(".git");
            let line = write.replace("$REPOSITORY", repository.to_str().unwrap());
            place.run(&["-w", linked.to_str().unwrap(), "--shell", &line]).code() == Some(0)
        };
        assert!(written(), "the control");
        chown(place.workspace.join(".git/objects"), Some(4242), None).unwrap();
        assert!(!written());
        let words = ["explain", "-w", linked.to_str().unwrap(), "--", "true"];
        let told = place.says(&words, 0).text();
        assert!(told.contains("objects belongs to user 4242"), "{told}");
    });
}

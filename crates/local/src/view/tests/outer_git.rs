//! Git directories that lie outside of the workspace.

use super::*;
use crate::host::{Obstacle, UserNamespaces};

fn outer(view: &View) -> Option<&OuterGitDirectory> {
    match &view.workspace {
        WorkspaceView::Directory(directory) => directory.outer_git.as_ref(),
        WorkspaceView::Private => None,
    }
}

/// A repository with the workspace as a linked work tree.
fn linked(name: &str) -> Ground {
    let ground = Ground::new(name);
    let own = ground.directory("repo/.git/worktrees/proj");
    for name in ["repo/.git/objects", "repo/.git/refs", "repo/.git/hooks"] {
        ground.directory(name);
    }
    ground.file("repo/.git/HEAD", "ref: refs/heads/main\n");
    ground.file("repo/.git/config", "[core]\n");
    ground.file("repo/.git/worktrees/proj/commondir", "../..\n");
    ground.file("repo/.git/worktrees/proj/gitdir", &ground.path("home/proj/.git"));
    ground.file("home/proj/.git", &format!("gitdir: {own}\n"));
    ground
}

#[test]
fn a_linked_worktree_shows_its_repository_only_if_that_points_back() {
    let ground = Ground::new("worktree");
    let own = ground.directory("repo/.git/worktrees/proj");
    for name in ["repo/.git/objects", "repo/.git/refs", "repo/.git/hooks"] {
        ground.directory(name);
    }
    ground.file("repo/.git/HEAD", "ref: refs/heads/main\n");
    ground.file("repo/.git/config", "[core]\n");
    ground.file("repo/.git/worktrees/proj/commondir", "../..\n");
    ground.file("home/proj/.git", &format!("gitdir: {own}\n"));
    let spec = ground.spec();

    let view = user(&spec).unwrap();
    assert!(!view.shows(&ground.path("repo/.git")));
    assert!(view.notes.iter().any(|note| note.contains("point back")), "{:?}", view.notes);

    ground.file("repo/.git/worktrees/proj/gitdir", &ground.path("elsewhere/.git"));
    assert!(!user(&spec).unwrap().shows(&ground.path("repo/.git")));

    ground.file("repo/.git/worktrees/proj/gitdir", &ground.path("home/proj/.git"));
    let view = user(&spec).unwrap();
    let access = |name: &str| shown(&view, &ground.path(name)).map(|place| place.access);
    assert_eq!(access("repo/.git"), Some(Access::ReadWrite), "with its control files pinned");
    assert_eq!(access("repo/.git/objects"), None);
    assert!(outer(&view).is_some() && !view.shows(&ground.path("repo/src")));
}

#[test]
fn where_names_cannot_be_pinned_a_linked_worktree_writes_only_what_nobody_obeys() {
    let ground = linked("worktree-parts");
    let spec = ground.spec();
    let is_as_ever = |view: &View| {
        let access = |name: &str| shown(view, &ground.path(name)).map(|place| place.access);
        assert_eq!(access("repo/.git"), Some(Access::ReadOnly));
        assert_eq!(access("repo/.git/objects"), Some(Access::ReadWrite));
        assert_eq!(access("repo/.git/refs"), Some(Access::ReadWrite));
        assert_eq!(access("repo/.git/worktrees/proj"), Some(Access::ReadWrite));
        assert_eq!(access("repo/.git/worktrees/proj/commondir"), Some(Access::ReadOnly));
        assert_eq!(access("repo/.git/hooks"), None);
        assert!(outer(view).is_none());
        let told = view.notes.iter().any(|note| note.contains("only part can be written"));
        assert!(told, "{:?}", view.notes);
    };
    let mut facts = fake::host(1000);
    facts.user_namespaces = UserNamespaces::Forbidden(Obstacle::UnprivilegedClone);
    is_as_ever(&look(&spec, &facts).unwrap());
    let hook = ground.path("repo/.git/hooks/pre-push");
    fs::write(&hook, "").unwrap();
    fs::hard_link(&hook, ground.path("repo/other")).unwrap();
    let view = user(&spec).unwrap();
    is_as_ever(&view);
    let told = "because \"hooks/pre-push\" is not protected";
    assert!(view.notes.iter().any(|note| note.contains(told)), "{:?}", view.notes);
}

#[test]
fn a_submodule_shows_its_git_directory_only_if_that_names_it() {
    let ground = Ground::new("submodule");
    let git = "home/.git/modules/a/proj";
    for name in ["home/.git/objects", "home/.git/refs", "home/.git/modules/a/proj/objects"] {
        ground.directory(name);
    }
    ground.directory("home/.git/modules/a/proj/refs");
    ground.file("home/.git/modules/a/proj/HEAD", "ref: refs/heads/main\n");
    ground.file("home/proj/.git", "gitdir: ../.git/modules/a/proj\n");
    let config = "home/.git/modules/a/proj/config";
    let spec = ground.spec();
    let is_shown = || user(&spec).unwrap().shows(&ground.path(git));
    ground.file(config, "[core]\nworktree = ../../../../proj\n");
    assert!(!is_shown(), "what it lies in is no repository");
    ground.file("home/.git/HEAD", "ref: refs/heads/main\n");
    for other in ["", "[core]\nworktree = ../../../../other\n", "[core]\nworktree = ../../../..\n"]
    {
        ground.file(config, other);
        assert!(!is_shown(), "{other:?}");
    }
    ground.file(config, "[core]\nworktree = ../../../../proj\nworktree = ../x\n");
    assert!(!is_shown(), "the last counts");
    ground.file(config, "[core]\nworktree = ../../../../proj\n");
    let view = user(&spec).unwrap();
    let place = shown(&view, &ground.path(git)).unwrap();
    assert_eq!(place.access, Access::ReadWrite);
    assert_eq!(outer(&view).unwrap().common, ground.path(git));
    assert!(!view.shows(&ground.path("home/.git/objects")));
    fs::remove_file(ground.0.join("home/.git/modules/a/proj/HEAD")).unwrap();
    assert!(!is_shown(), "it is no repository itself");
}

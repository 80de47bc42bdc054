//! Which names are control files wherever they stand. Pure.
//!
//! This goes by names alone, for files that are to come into a workspace, so it takes more for control
//! files than are pinned: names of a work tree count in every directory, and every spelling of them.

use super::leading::Read;
use super::{
    GIT_DIRECTORY, GIT_DIRECTORY_IF_THERE, GIT_STATE_DIRECTORIES, WORK_TREE, WORK_TREE_IF_THERE,
};
use cofferdam_core::GuestPath;

/// What the names of a path say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Named {
    /// A control file, or in a directory of them.
    Control,
    /// The git directory of a repository itself. One that is a directory is none by itself; anything
    /// else in its place leads git elsewhere.
    GitDirectory,
    /// In a git directory, and only a link is one, or what leads git elsewhere by its content.
    InGitDirectory(Option<Read>),
    /// Says how git goes on with what it began. Its removal is harmless.
    GitState,
    /// A control file if this directory is a bare repository; the empty path is the workspace.
    IfBare(Vec<u8>),
    /// None.
    Ordinary,
}

/// What the names of a path say.
pub(crate) fn named(path: &GuestPath) -> Named {
    let names: Vec<&[u8]> = path.names().collect();
    let mut found = Named::Ordinary;
    for (at, name) in names.iter().enumerate() {
        let rest = names.get(at + 1..).unwrap_or_default();
        let rest_of_all = names.get(at..).unwrap_or_default();
        if WORK_TREE.iter().any(|(known, _)| is(name, known))
            || WORK_TREE_IF_THERE.iter().any(|known| leads(rest_of_all, known))
        {
            return Named::Control;
        }
        if is_git(name) {
            found = match rest {
                [] => Named::GitDirectory,
                rest if is_of_git(rest) => return Named::Control,
                rest if is_state_of_git(rest) => return Named::GitState,
                rest => Named::InGitDirectory(Read::of(rest)),
            };
        } else if found == Named::Ordinary && is_of_git(names.get(at..).unwrap_or_default()) {
            let before = names.get(..at).unwrap_or_default();
            found = Named::IfBare(before.join(&b'/'));
        }
    }
    found
}

/// Whether these names, in a git directory, are of a control file.
fn is_of_git(names: &[&[u8]]) -> bool {
    GIT_DIRECTORY.iter().any(|(known, _)| leads(names, known))
        || GIT_DIRECTORY_IF_THERE.iter().any(|known| leads(names, known))
}

fn is_state_of_git(names: &[&[u8]]) -> bool {
    GIT_STATE_DIRECTORIES.iter().any(|known| leads(names, known))
}

/// Whether names begin with those of a known path.
fn leads(names: &[&[u8]], known: &str) -> bool {
    let mut parts = known.split('/');
    names.iter().zip(parts.by_ref()).all(|(name, part)| is(name, part)) && parts.next().is_none()
}

fn is(name: &[u8], known: &str) -> bool {
    name.eq_ignore_ascii_case(known.as_bytes())
}

/// `.git`, also as file systems spell it that ignore case, or dots and spaces at the end.
pub(super) fn is_git(name: &[u8]) -> bool {
    let end = name.iter().rposition(|byte| !matches!(byte, b'.' | b' ')).map_or(0, |at| at + 1);
    let name = name.get(..end).unwrap_or(name);
    name.eq_ignore_ascii_case(b".git") || name.eq_ignore_ascii_case(b"git~1")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, expected: Named) {
        assert_eq!(named(&GuestPath::new(path).unwrap()), expected, "{path}");
    }

    #[test]
    fn names_of_a_work_tree_count_everywhere_and_in_every_spelling() {
        for path in [".envrc", "a/b/.envrc", ".vscode", ".VSCode/tasks.json", "x/.husky/pre-push"] {
            check(path, Named::Control);
        }
        for path in ["envrc", ".envrc2", "a/.vscode-test/x", "profile"] {
            check(path, Named::Ordinary);
        }
    }

    #[test]
    fn of_a_git_directory_hooks_and_configuration_count() {
        for path in [".git/hooks", ".git/hooks/pre-commit", "a/.git/config", ".GIT/Config"] {
            check(path, Named::Control);
        }
        for path in [".git/info/attributes", ".git/modules/x/config", ".git./config"] {
            check(path, Named::Control);
        }
        for path in [".git/objects/ab/cd", ".git/info", ".git/info/exclude"] {
            check(path, Named::InGitDirectory(None));
        }
        check(".git/HEAD", Named::InGitDirectory(Some(Read::Reference)));
        check("a/.git/index", Named::InGitDirectory(Some(Read::Index)));
        check(".git/remotes/origin", Named::Control);
        check(".git/rebase-merge", Named::GitState);
        check("a/.git/sequencer/opts", Named::GitState);
        check(".git", Named::GitDirectory);
        check("a/git~1", Named::GitDirectory);
        check(".gitignore", Named::Ordinary);
    }

    #[test]
    fn a_bare_repository_has_them_beside_its_objects() {
        check("config", Named::IfBare(Vec::new()));
        check("a/b.git/hooks/update", Named::IfBare(b"a/b.git".to_vec()));
        check("src/config/mod.rs", Named::IfBare(b"src".to_vec()));
        check("a/info/attributes", Named::IfBare(b"a".to_vec()));
        check("a/info/refs", Named::Ordinary);
    }
}

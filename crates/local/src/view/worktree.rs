//! Linked worktrees and submodules, whose git directory lies outside of the workspace.

use super::OuterGitDirectory;
use super::lookup::{exists, find, is_within, text_of};
use crate::control_files::{is_repository, last_work_tree};
use cofferdam_wire::plan::Access;
use std::path::Path;

/// Whether a workspace's repository is elsewhere.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum OuterGit {
    /// It has none, or its own.
    None,
    /// It names one, but that one does not know it; the sentence says so.
    Unproved(String),
    /// It names one that points back.
    Proved(OuterGitDirectory),
}

/// No pointer of git is longer.
const POINTER_BYTES: u64 = 8192;
/// No configuration of a repository that is read here is longer.
const CONFIGURATION_BYTES: u64 = 1 << 20;

/// Follows `workspace/.git` where it is a file.
///
/// HOSTILE: the file may have been written by a sandboxed command, or come with a repository, and
/// may name any directory. Only a directory that names the workspace in turn is taken: to write
/// that, one must have been able to write there already.
pub(super) fn outer_git(workspace: &str) -> OuterGit {
    let pointer = format!("{workspace}/.git");
    let Some(text) = first_line(&pointer) else { return OuterGit::None };
    let Some(target) = text.strip_prefix("gitdir: ") else { return OuterGit::None };
    let unproved = |why: &str| {
        OuterGit::Unproved(format!(
            "git does not work here: {pointer} names {target:?}, which {why}"
        ))
    };
    // An absolute target replaces the workspace in `join`.
    let Some(private) = find(Path::new(workspace).join(target)) else {
        return unproved("does not exist");
    };
    // A linked worktree may be one of a submodule.
    if !exists(format!("{}/gitdir", private.path)) && is_of_submodule(&private.path) {
        return match is_work_tree(workspace, &private.path) {
            true => OuterGit::Proved(OuterGitDirectory { common: private.path, own: None }),
            false => unproved("has another work tree"),
        };
    }
    let Some((worktrees, _name)) = private.path.rsplit_once('/') else {
        return unproved("is no worktree");
    };
    let Some(common) = worktrees.strip_suffix("/worktrees") else {
        return unproved("is not listed among the worktrees or submodules of a repository");
    };
    let back = first_line(&format!("{}/gitdir", private.path));
    let back = back.and_then(|back| find(Path::new(&private.path).join(back)));
    if back.is_none_or(|back| back.path != pointer) {
        return unproved("does not point back");
    }
    match find(format!("{common}/HEAD")) {
        Some(head) if head.is_file() => {
            let common = common.to_owned();
            OuterGit::Proved(OuterGitDirectory { common, own: Some(private.path) })
        }
        Some(_) | None => unproved("belongs to no repository"),
    }
}

/// Whether this is a git directory among the submodules of another one.
fn is_of_submodule(git: &str) -> bool {
    let is_git = |path: &str| is_repository(|sign| exists(format!("{path}/{sign}")));
    let mut above = git.match_indices("/modules/").filter_map(|(at, _)| git.get(..at));
    is_git(git) && above.any(is_git)
}

/// Whether the configuration of a git directory says that this is its work tree.
fn is_work_tree(workspace: &str, git: &str) -> bool {
    let text = text_of(&format!("{git}/config"), CONFIGURATION_BYTES);
    let named = text.and_then(|text| last_work_tree(text.as_bytes()));
    let found = named.and_then(|named| find(Path::new(git).join(named)));
    found.is_some_and(|found| found.path == workspace)
}

/// Whether one of them lies in the other.
pub(super) fn overlap(workspace: &str, common: &str) -> bool {
    is_within(workspace, common) || is_within(common, workspace)
}

/// What of a shared git directory a linked worktree has to write for a commit, where names in it cannot be
/// pinned. All else there stays read-only, above all `hooks`, `config` and `commondir`: they decide what git runs
/// outside.
const WRITTEN: &[&str] = &["objects", "refs", "logs"];

/// Names in a worktree's own directory that decide where git looks and what it runs.
const OWN_READ_ONLY: &[&str] = &["commondir", "gitdir", "config.worktree"];

/// The parts of an outer repository that are shown where names in it cannot be pinned, each with whether it can be
/// written. Of a submodule that is too little for a commit.
pub(super) fn parts(
    OuterGitDirectory { common, own }: &OuterGitDirectory,
) -> Vec<(String, Access)> {
    let mut parts = vec![(common.to_owned(), Access::ReadOnly)];
    let Some(own) = own else { return parts };
    parts.extend(WRITTEN.iter().map(|name| (format!("{common}/{name}"), Access::ReadWrite)));
    // With this extension a file that is not there yet would be configuration. It cannot be
    // pinned, so nothing can be written around it.
    let config = format!("{common}/config");
    let reads_own = match text_of(&config, CONFIGURATION_BYTES) {
        Some(text) => text.to_ascii_lowercase().contains("worktreeconfig"),
        // Nothing is known of one that is there and cannot be read.
        None => exists(&config),
    };
    if !reads_own || find(format!("{own}/config.worktree")).is_some() {
        parts.push((own.to_owned(), Access::ReadWrite));
        let fixed = OWN_READ_ONLY.iter().map(|name| (format!("{own}/{name}"), Access::ReadOnly));
        parts.extend(fixed);
    }
    parts
}

fn first_line(path: &str) -> Option<String> {
    text_of(path, POINTER_BYTES)?.lines().next().map(str::to_owned)
}

//! Linked worktrees of git, whose repository lies outside of the workspace.

use super::lookup::{Found, exists, find, text_of};
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
    Proved {
        /// The shared git directory.
        common: String,
        /// This worktree's own directory in it.
        own: String,
    },
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
    let Some((worktrees, _name)) = private.path.rsplit_once('/') else {
        return unproved("is no worktree");
    };
    let Some(common) = worktrees.strip_suffix("/worktrees") else {
        return unproved("is not listed among the worktrees of a repository");
    };
    let back = first_line(&format!("{}/gitdir", private.path));
    let back = back.and_then(|back| find(Path::new(&private.path).join(back)));
    if back.is_none_or(|back| back.path != pointer) {
        return unproved("does not point back");
    }
    match find(format!("{common}/HEAD")) {
        Some(head) if head.is_file() => {
            OuterGit::Proved { common: common.to_owned(), own: private.path }
        }
        Some(_) | None => unproved("belongs to no repository"),
    }
}

/// What of a shared git directory a linked worktree has to write for a commit. All else there stays
/// read-only, above all `hooks`, `config` and `commondir`: they decide what git runs outside.
const WRITTEN: &[&str] = &["objects", "refs", "logs"];

/// Names in a worktree's own directory that decide where git looks and what it runs.
const OWN_READ_ONLY: &[&str] = &["commondir", "gitdir", "config.worktree"];

/// The parts of an outer repository that are shown, each with whether it can be written.
pub(super) fn parts(common: &str, own: &str) -> Vec<(String, Access)> {
    let mut parts = vec![(common.to_owned(), Access::ReadOnly)];
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

/// What shows that a workspace is a work tree of the repository which has this directory for it.
pub(super) fn proof(workspace: &str, own: &str) -> [String; 3] {
    [format!("{workspace}/.git"), own.to_owned(), format!("{own}/gitdir")]
}

/// Why a repository is not shown of which something belongs to none of these users; `None` where all of it does.
pub(super) fn foreign(parts: &[Found], trusted: [u32; 3]) -> Option<String> {
    let foreign = parts.iter().find(|part| !trusted.contains(&part.owner().0))?;
    Some(format!(
        "git does not work here: {} belongs to user {}, who is neither you nor the owner of the workspace, \
         so its repository is not shown",
        foreign.path,
        foreign.owner().0
    ))
}

fn first_line(path: &str) -> Option<String> {
    text_of(path, POINTER_BYTES)?.lines().next().map(str::to_owned)
}

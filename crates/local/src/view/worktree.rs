//! Linked worktrees of git, whose repository lies outside of the workspace.

use super::lookup::find;
use std::fs;
use std::io::Read;
use std::path::Path;

/// Whether a workspace's repository is elsewhere.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum OuterGit {
    /// It has none, or its own.
    None,
    /// It names one, but that one does not know it; the sentence says so.
    Unproved(String),
    /// The shared git directory, which points back to this workspace.
    Proved(String),
}

/// No pointer of git is longer.
const POINTER_BYTES: u64 = 8192;

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
        Some(head) if head.is_file() => OuterGit::Proved(common.to_owned()),
        Some(_) | None => unproved("belongs to no repository"),
    }
}

/// The first line of a regular file. A link, a FIFO or anything else has none.
fn first_line(path: &str) -> Option<String> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = fs::File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    file.take(POINTER_BYTES).read_to_string(&mut text).ok()?;
    text.lines().next().map(str::to_owned)
}

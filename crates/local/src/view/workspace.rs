//! The directory that commands work in, and what cannot be one.

use super::lookup::{Found, find, find_workspace, is_within};
use super::secrets::{Secrets, state_directory};
use super::{Landing, Shown, WORKSPACE, WorkspaceDirectory, WorkspaceView, nested, worktree};
use crate::host::HostFacts;
use cofferdam_core::way::NEVER_WRITTEN;
use cofferdam_core::{Error, ErrorKind, Result, Spec, Workspace};
use cofferdam_wire::plan::{Access, Owner};
use std::path::Path;

/// The workspace, and what is shown for it.
#[derive(Debug, Default)]
pub(super) struct Ground {
    pub(super) workspace: WorkspaceView,
    pub(super) shown: Vec<Shown>,
    pub(super) outer_git: Option<String>,
    pub(super) notes: Vec<String>,
}

/// Kernel interfaces: neither they nor anything below them is a place to work in.
const KERNEL: &[&str] = &["/proc", "/sys", "/dev"];

/// Looks at the workspace.
pub(super) fn look(spec: &Spec, facts: &HostFacts, secrets: &Secrets) -> Result<Ground> {
    let Some(path) = spec.workspace.directory() else { return Ok(Ground::default()) };
    let found = find_workspace(path)?;
    if !found.is_directory() {
        return Err(super::usage(
            format!("workspace {} is not a directory", found.path),
            "Name a directory, or use --no-workspace for an empty private one.",
        ));
    }
    refuse_to_write(&found, "workspace", spec, secrets)?;
    let access = match spec.profile.writes_workspace() {
        true => Access::ReadWrite,
        false => Access::ReadOnly,
    };
    let landing = landing(&found, spec)?;
    let mut ground = Ground::default();
    ground.shown.push(Shown {
        source: found.path.clone(),
        path: found.path.clone(),
        access,
        owner: owner(&found, facts),
        identity: Some(found.identity()),
        why: match (access, landing) {
            (Access::ReadWrite, Landing::InPlace) => {
                "the workspace, at its own path so that absolute paths keep working"
            }
            (Access::ReadWrite, Landing::Beside { .. }) => {
                "the workspace, copy-on-write: what is written lands in a layer beside it"
            }
            (Access::ReadOnly, _) => "the workspace, which this profile only reads",
        }
        .to_owned(),
    });
    outer_git(&found, spec, facts, secrets, &mut ground);
    ground.workspace = WorkspaceView::Directory(WorkspaceDirectory {
        at_workspace: has_room_at_workspace(&found.path, spec),
        owner: found.owner(),
        path: found.path,
        outer_git: ground.outer_git.clone(),
        landing,
    });
    Ok(ground)
}

/// Where what is written to this workspace lands. Fails where a layer over it makes no sense, or could
/// not show what is there.
fn landing(found: &Found, spec: &Spec) -> Result<Landing> {
    match &spec.workspace {
        Workspace::Directory(_) | Workspace::Private => return Ok(Landing::InPlace),
        Workspace::CopyOnWrite(_) => {}
    }
    if !spec.profile.writes_workspace() {
        return Err(super::usage(
            format!("profile {} writes nothing, so --cow cannot hold", spec.profile),
            "Leave --cow out, or use --profile no-network.",
        ));
    }
    nested::refuse(&found.path)?;
    Ok(Landing::Beside { mode: found.mode() })
}

/// As root, files made inside belong to whoever owns the place, not to the sandbox's passing user.
pub(super) fn owner(found: &Found, facts: &HostFacts) -> Owner {
    if facts.is_root() { found.mapped() } else { Owner::Same }
}

/// `/workspace` shows the workspace, unless something else is shown at or below that name.
fn has_room_at_workspace(path: &str, spec: &Spec) -> bool {
    let listed = spec.read.iter().chain(&spec.write).filter_map(find);
    !is_within(path, WORKSPACE)
        && !listed.into_iter().any(|found| is_within(&found.path, WORKSPACE))
}

/// Shows the repository of a linked worktree, as far as a commit needs it.
fn outer_git(
    found: &Found,
    spec: &Spec,
    facts: &HostFacts,
    secrets: &Secrets,
    ground: &mut Ground,
) {
    let (common, own) = match worktree::outer_git(&found.path) {
        worktree::OuterGit::None => return,
        worktree::OuterGit::Unproved(why) => return ground.notes.push(why),
        worktree::OuterGit::Proved { common, own } => (common, own),
    };
    // HOSTILE: whoever prepared the workspace may have prepared all that it names, of directories of others too.
    // What was looked at is what is shown: it has to have the same identity.
    let there = |path: &str| find(path).filter(|part| part.path == path);
    let parts: Vec<(Found, Access)> = worktree::parts(&common, &own)
        .into_iter()
        .filter_map(|(path, access)| Some((there(&path)?, access)))
        .collect();
    let proof = worktree::proof(&found.path, &own).into_iter().filter_map(|path| there(&path));
    let mut all: Vec<Found> = parts.iter().map(|(part, _)| part.clone()).collect();
    all.extend(proof);
    let trusted = [found.owner().0, facts.uid, 0];
    if let Some(why) = worktree::foreign(&all, trusted) {
        return ground.notes.push(why);
    }
    for (part, access) in parts {
        if let Err(error) = refuse_to_write(&part, "git directory", spec, secrets) {
            return ground.notes.push(error.message);
        }
        let writes = spec.profile.writes_workspace() && spec.workspace.written().is_some();
        let access = if writes { access } else { Access::ReadOnly };
        ground.shown.push(Shown {
            source: part.path.clone(),
            owner: owner(&part, facts),
            identity: Some(part.identity()),
            path: part.path,
            access,
            why: "the workspace is a linked worktree of this repository, which points back to it"
                .to_owned(),
        });
    }
    if spec.workspace.written().is_none() {
        ground.notes.push(format!(
            "the repository {common} is shown read-only, because the workspace is copy-on-write and \
             what belongs to it elsewhere is not: commits fail"
        ));
    }
    ground.outer_git = Some(common);
}

/// Fails where writing below this place would reach more than a task: the system, a home, what is
/// secret, or Cofferdam's own state. `what` says who listed it.
pub(super) fn refuse_to_write(
    found: &Found,
    what: &str,
    spec: &Spec,
    secrets: &Secrets,
) -> Result<()> {
    let path = found.path.as_str();
    let refused = |why: &str| {
        Err(Error::new(ErrorKind::Denied, format!("{what} {path} cannot be used: {why}"))
            .hint("Name a directory that holds nothing but the task, or use --no-workspace."))
    };
    if KERNEL.iter().any(|kernel| is_within(path, kernel)) && !path.starts_with("/dev/shm/") {
        return refused("it is an interface of the kernel");
    }
    if NEVER_WRITTEN.contains(&path) {
        return refused("it belongs to the whole system");
    }
    if secrets.home().is_some_and(|home| is_within(home, path)) {
        return refused("it is, or lies above, your home directory");
    }
    let state = state_directory(&spec.caller).map(|state| canonical_name(&state));
    if state.is_some_and(|state| is_within(&state, path)) {
        return refused("it is, or lies above, Cofferdam's own state directory");
    }
    secrets.refuse(path, what)
}

/// The canonical name of something that may not exist yet: that of its nearest existing ancestor,
/// and the rest as written.
fn canonical_name(path: &Path) -> String {
    for ancestor in path.ancestors() {
        if let Some(found) = find(ancestor) {
            let rest = path.strip_prefix(ancestor).unwrap_or(Path::new(""));
            return Path::new(&found.path).join(rest).to_string_lossy().into_owned();
        }
    }
    path.to_string_lossy().into_owned()
}

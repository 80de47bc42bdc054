//! What the caller listed with `--read`, `--write` and `--hide`.

use super::lookup::{Found, depth, find, is_within, owner_for_root};
use super::secrets::Secrets;
use super::workspace::{self, Ground};
use super::written::Written;
use super::{Hidden, Place, Shown, View, WORKSPACE, WorkspaceView, usage};
use crate::host::HostFacts;
use cofferdam_core::{Error, ErrorKind, Result, Spec};
use cofferdam_wire::plan::{Access, Owner};
use std::path::{Component, Path};

/// Looks at the listed paths.
pub(super) fn look(
    spec: &Spec,
    facts: &HostFacts,
    secrets: &Secrets,
    ground: &Ground,
    written: &Written,
) -> Result<Vec<Shown>> {
    if !spec.write.is_empty() && !spec.profile.writes_workspace() {
        return Err(usage(
            format!("profile {} writes nothing, so --write cannot hold", spec.profile),
            "Leave --write out, or use --profile no-network.",
        ));
    }
    let mut shown: Vec<Shown> = ground.shown.clone();
    let listed = spec.read.len() + spec.write.len();
    for path in &spec.read {
        let found = written.find_listed(path, "--read")?;
        refuse_elsewhere(path, &found, "--read", spec)?;
        refuse_to_read(&found, secrets, "--read")?;
        let owner = if facts.is_root() { owner_for_root(&found) } else { Owner::Same };
        add(&mut shown, listed_place(&found, Access::ReadOnly, owner))?;
    }
    for path in &spec.write {
        let found = written.find_listed(path, "--write")?;
        refuse_elsewhere(path, &found, "--write", spec)?;
        workspace::refuse_to_write(&found, "--write", spec, secrets)?;
        if !found.is_directory() && !found.is_file() {
            return Err(no_device(&found, "--write"));
        }
        refuse_past_the_layer(&found, ground)?;
        add(&mut shown, listed_place(&found, Access::ReadWrite, workspace::owner(&found, facts)))?;
    }
    shown.drain(..ground.shown.len());
    debug_assert!(shown.len() <= listed);
    Ok(shown)
}

/// Every sandbox of a session is shown what was listed when it was made, whatever has that name by now.
fn refuse_elsewhere(path: &Path, found: &Found, what: &str, spec: &Spec) -> Result<()> {
    match spec.leads.get(path) {
        Some(was) if was != Path::new(&found.path) => {
            let (path, now, was) = (path.display(), &found.path, was.display());
            let what = format!("{what} {path} leads to {now} by now, and not to {was}");
            Err(Error::new(ErrorKind::Conflict, what)
                .hint("Put back what was there when the session was made, or make it anew."))
        }
        Some(_) | None => Ok(()),
    }
}

/// Nothing lands in a copy-on-write workspace, by whatever way.
fn refuse_past_the_layer(found: &Found, ground: &Ground) -> Result<()> {
    match ground.workspace.beside() {
        Some((own, _)) if is_within(&found.path, own) || is_within(own, &found.path) => Err(usage(
            format!("--write {} would lead past the layer of a --cow workspace", found.path),
            "Leave --write out: the workspace can be written. Or leave --cow out.",
        )),
        Some(_) | None => Ok(()),
    }
}

fn listed_place(found: &Found, access: Access, owner: Owner) -> Shown {
    let why = match access {
        Access::ReadOnly => "listed with --read",
        Access::ReadWrite => "listed with --write",
    };
    Shown {
        source: found.path.clone(),
        path: found.path.clone(),
        access,
        owner,
        identity: Some(found.identity()),
        why: why.to_owned(),
    }
}

/// The same path twice is one, unless it is to be both read-only and writable.
fn add(shown: &mut Vec<Shown>, new: Shown) -> Result<()> {
    match shown.iter().find(|old| old.path == new.path) {
        None => shown.push(new),
        Some(old) if old.access == new.access => {}
        Some(_) => {
            return Err(usage(
                format!("{} is listed both as read-only and as writable", new.path),
                "Decide for one of them; --profile read-only makes the workspace read-only.",
            ));
        }
    }
    Ok(())
}

/// What may not be shown. `what` says who listed it.
pub(super) fn refuse_to_read(found: &Found, secrets: &Secrets, what: &str) -> Result<()> {
    let path = found.path.as_str();
    if path == "/" {
        return Err(Error::new(ErrorKind::Denied, format!("{what} / would show everything"))
            .hint("List the directories that the command needs."));
    }
    if is_kernels(path) {
        return Err(Error::new(
            ErrorKind::Denied,
            format!("{what} {path} would show processes or devices of this host"),
        )
        .hint("Leave it out: the sandbox has a /proc and a /dev of its own."));
    }
    if !found.is_directory() && !found.is_file() {
        return Err(no_device(found, what));
    }
    secrets.refuse(path, what)
}

/// Whether the sandbox has something of its own at this path, made by the kernel.
fn is_kernels(path: &str) -> bool {
    ["/proc", "/dev"].iter().any(|kernel| is_within(path, kernel)) && !path.starts_with("/dev/shm/")
}

fn no_device(found: &Found, what: &str) -> Error {
    Error::new(
        ErrorKind::Denied,
        format!("{what} {} is neither a file nor a directory", found.path),
    )
    .hint("Sockets, devices and pipes of this host are not shown.")
}

/// Resolves `--hide`. A path below `/workspace` means the workspace.
pub(super) fn hidden(spec: &Spec, view: &View, written: &Written) -> Result<Vec<Hidden>> {
    let workspace = match &view.workspace {
        WorkspaceView::Directory(directory) => Some(directory),
        WorkspaceView::Private => None,
    };
    let mut hidden = Vec::new();
    for path in &spec.hide {
        // A path with `..` means what it means on this host, where that name may be nothing.
        let climbs = path.components().any(|part| part == Component::ParentDir);
        let inside = workspace
            .filter(|workspace| workspace.at_workspace && !climbs)
            .and_then(|workspace| {
                Some(Path::new(&workspace.path).join(path.strip_prefix(WORKSPACE).ok()?))
            })
            .filter(|inside| find(inside).is_some());
        let found = written.find_listed(inside.as_deref().unwrap_or(path), "--hide")?;
        if inside.is_none() {
            refuse_elsewhere(path, &found, "--hide", spec)?;
        }
        if workspace.is_some_and(|workspace| is_within(&workspace.path, &found.path)) {
            return Err(usage(
                format!("--hide {} would hide the workspace itself", found.path),
                "Hide a part of it, or use --no-workspace.",
            ));
        }
        let is_system = view.system.iter().any(|shown| shown.path == found.path);
        if found.path == "/" || is_system && depth(&found.path) < 2 {
            return Err(usage(
                format!("--hide {} would hide the system itself", found.path),
                "Hide a part of it.",
            ));
        }
        hidden.extend(shown_below(view, &found.path));
        if is_kernels(&found.path) {
            return Err(usage(
                format!("--hide {} would hide what is the sandbox's own there", found.path),
                "Leave it out: its /proc and /dev show no process and no device of this host.",
            ));
        }
        hidden.push(Hidden { path: found.path, why: "listed with --hide".to_owned() });
    }
    Ok(hidden)
}

/// What is shown below a hidden path though the path itself is not: a part of a toolchain, of the
/// system, or of what another option lists.
fn shown_below(view: &View, above: &str) -> Vec<Hidden> {
    let system = view.system.iter().map(|shown| shown.path.as_str());
    let files = view.files.iter().map(|file| file.path.as_str());
    let places = view.places.iter().filter_map(Place::shown).map(|shown| shown.path.as_str());
    let below = system.chain(files).chain(places);
    let below = below.filter(|path| *path != above && is_within(path, above));
    let why = format!("lies below {above}, which is listed with --hide");
    below.map(|path| Hidden { path: path.to_owned(), why: why.clone() }).collect()
}

//! Attacks on what a later run outside trusts: P3.
//!
//! Every attack goes over all protected names, and undoes what it managed to do.

use super::attack::{Group, Row, Scene};
use super::calls::{create, open_to_write};
use super::outcome::{Door, Outcome, any};
use rustix::fs::{AtFlags, CWD, RenameFlags};
use std::fs::OpenOptions;
use std::path::Path;

const PROTECT: Group = Group { axis: "files", promise: "P3", door: Door::Path };

pub(super) const ROWS: &[Row] = &[
    PROTECT.check("files.protected_write", |s| each(s, write_into), create_beside).when(asked),
    PROTECT.check("files.protected_create", |s| each(s, create_at), create_beside).when(asked),
    PROTECT.check("files.protected_remove", |s| each(s, remove), rename_beside).when(asked),
    PROTECT.check("files.protected_rename", |s| each(s, rename_away), rename_beside).when(asked),
    PROTECT.check("files.protected_replace", |s| each(s, rename_over), rename_beside).when(asked),
    PROTECT.check("files.protected_exchange", |s| each(s, exchange), rename_beside).when(asked),
    PROTECT.check("files.protected_link", |s| each(s, link_and_write), link_beside).when(asked),
    PROTECT.check("files.protected_shadow", |s| each(s, link_over), rename_beside).when(asked),
    PROTECT.check("files.protected_parent", |s| each(s, rename_parent), rename_beside).when(asked),
    PROTECT.check("files.protected_alias", alias, create_beside).when(asked),
];

fn asked(scene: &Scene<'_>) -> bool {
    let targets = &scene.request.targets;
    targets.workspace_writable && !targets.protected.is_empty()
}

fn each(scene: &Scene<'_>, attack: fn(&str) -> Outcome) -> Outcome {
    let workspace = &scene.request.targets.workspace;
    any(scene.request.targets.protected.iter().map(|name| attack(&format!("{workspace}/{name}"))))
}

/// A name beside, that nothing else uses.
fn beside(path: &str) -> String {
    format!("{path}.cofferdam-attack")
}

fn write_into(path: &str) -> Outcome {
    if Path::new(path).is_dir() {
        return create(&format!("{path}/cofferdam-attack"));
    }
    open_to_write(path)
}

fn create_at(path: &str) -> Outcome {
    let file = create(path);
    if file.succeeded() {
        return file;
    }
    match std::fs::create_dir(path) {
        Ok(()) => {
            let _ = std::fs::remove_dir(path);
            Outcome::did(format!("mkdir {path}"))
        }
        Err(_) => file,
    }
}

/// Removes only what it can put back: an empty directory or an empty file.
fn remove(path: &str) -> Outcome {
    let call = format!("remove {path}");
    let Ok(facts) = std::fs::symlink_metadata(path) else {
        return Outcome::met(libc::ENOENT, call);
    };
    if facts.is_dir() {
        let removed = std::fs::remove_dir(path);
        if removed.is_ok() {
            let _ = std::fs::create_dir(path);
        }
        return Outcome::of(&call, &removed);
    }
    // A rename shows the same right, and loses nothing.
    rename_away(path)
}

fn rename_away(path: &str) -> Outcome {
    let away = beside(path);
    let renamed = std::fs::rename(path, &away);
    if renamed.is_ok() {
        let _ = std::fs::rename(&away, path);
    }
    Outcome::of(&format!("rename {path}"), &renamed)
}

/// Swaps with a file of its own, which a plain rename over the name would lose.
fn exchange(path: &str) -> Outcome {
    with_beside(path, |own| {
        let swap = || rustix::fs::renameat_with(CWD, own, CWD, path, RenameFlags::EXCHANGE);
        let swapped = swap();
        if swapped.is_ok() {
            let _ = swap();
        }
        let result = swapped.map_err(std::io::Error::from);
        Outcome::of(&format!("exchange with {path}"), &result)
    })
}

fn rename_over(path: &str) -> Outcome {
    if Path::new(path).exists() {
        // Renaming over what is there would lose it where the attack succeeds.
        return exchange(path);
    }
    with_beside(path, |own| {
        let renamed = std::fs::rename(own, path);
        if renamed.is_ok() {
            let _ = std::fs::remove_file(path);
        }
        Outcome::of(&format!("rename over {path}"), &renamed)
    })
}

fn link_and_write(path: &str) -> Outcome {
    let link = beside(path);
    let linked = rustix::fs::linkat(CWD, path, CWD, &link, AtFlags::empty());
    if let Err(error) = linked {
        return Outcome::met(error.raw_os_error(), format!("link {path}"));
    }
    let opened = OpenOptions::new().append(true).open(&link);
    let _ = std::fs::remove_file(&link);
    Outcome::of(&format!("write through a link to {path}"), &opened)
}

/// Puts a symbolic link where the name is absent.
fn link_over(path: &str) -> Outcome {
    let linked = std::os::unix::fs::symlink("/tmp", path);
    if linked.is_ok() {
        let _ = std::fs::remove_file(path);
    }
    Outcome::of(&format!("symlink at {path}"), &linked)
}

/// Renames the directory that the name is in, as far as that is below the workspace.
fn rename_parent(path: &str) -> Outcome {
    match path.rsplit_once('/') {
        Some((parent, _)) if Path::new(parent).join(".git").exists() => {
            // The parent is the workspace itself, or a whole repository: its `.git` is what counts.
            rename_away(&format!("{parent}/.git"))
        }
        Some((parent, _)) => rename_away(parent),
        None => Outcome::untried("a name without a directory"),
    }
}

/// The same names below the other path of the workspace.
fn alias(scene: &Scene<'_>) -> Outcome {
    const ALIAS: &str = "/workspace";
    if scene.request.targets.workspace == ALIAS || !Path::new(ALIAS).is_dir() {
        return each(scene, write_into);
    }
    any(scene
        .request
        .targets
        .protected
        .iter()
        .flat_map(|name| [write_into, create_at].map(|attack| attack(&format!("{ALIAS}/{name}")))))
}

fn with_beside(path: &str, act: impl FnOnce(&str) -> Outcome) -> Outcome {
    let own = beside(path);
    if let Err(error) = std::fs::File::create(&own) {
        return Outcome::met(error.raw_os_error().unwrap_or(0), format!("create {own}"));
    }
    let outcome = act(&own);
    let _ = std::fs::remove_file(&own);
    outcome
}

fn create_beside(scene: &Scene<'_>) -> Outcome {
    create(&scene.scratch("beside"))
}

fn rename_beside(scene: &Scene<'_>) -> Outcome {
    let path = scene.scratch("renamed");
    if let Err(error) = std::fs::File::create(&path) {
        return Outcome::met(error.raw_os_error().unwrap_or(0), format!("create {path}"));
    }
    let outcome = rename_away(&path);
    let _ = std::fs::remove_file(&path);
    outcome
}

fn link_beside(scene: &Scene<'_>) -> Outcome {
    let path = scene.scratch("linked");
    if let Err(error) = std::fs::File::create(&path) {
        return Outcome::met(error.raw_os_error().unwrap_or(0), format!("create {path}"));
    }
    let outcome = link_and_write(&path);
    let _ = std::fs::remove_file(&path);
    outcome
}

//! Paths of the host that settings name: found, made plain, and kept apart from Cofferdam's own.

use crate::config::Sourced;
use crate::surroundings::Surroundings;
use cofferdam_core::{Error, ErrorKind, Result, Spec, Workspace};
use std::path::{Component, Path, PathBuf};

/// The directory at this absolute path, without symbolic links.
pub(crate) fn directory(path: &Path) -> Result<PathBuf> {
    let found = path.canonicalize().map_err(|cause| {
        Error::new(ErrorKind::NotFound, format!("the workspace {} cannot be used", path.display()))
            .source(cause)
            .hint("Name a directory that exists, or use --no-workspace.")
    })?;
    if !found.is_dir() {
        let message = format!("the workspace {} is not a directory", path.display());
        return Err(Error::new(ErrorKind::Usage, message)
            .hint("Name a directory, or show a file with --read or --write."));
    }
    Ok(found)
}

/// The paths without `.` and `..`. A path with `..` must exist, because what `..` means depends on
/// symbolic links.
pub(crate) fn plain(paths: Vec<Sourced<PathBuf>>) -> Result<Vec<PathBuf>> {
    let plain_one = |path: PathBuf| {
        if path.components().any(|part| part == Component::ParentDir) {
            return path.canonicalize().map_err(|cause| missing(&path).source(cause));
        }
        // Components leave `.` and doubled slashes out by themselves.
        Ok(path.components().collect())
    };
    paths.into_iter().map(|said| plain_one(said.value)).collect()
}

/// Fails if there is nothing at this path.
pub(crate) fn must_exist(path: &Path) -> Result<()> {
    match rustix::fs::stat(path) {
        Ok(_) => Ok(()),
        Err(cause) => Err(missing(path).source(cause)),
    }
}

fn missing(path: &Path) -> Error {
    Error::new(ErrorKind::NotFound, format!("{} cannot be shown", path.display()))
        .hint("Name a path that exists.")
}

/// The path of a file that need not be there, with its directory's symbolic links resolved.
pub(crate) fn of_file(path: &Path) -> Result<PathBuf> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(Error::new(ErrorKind::Usage, format!("{} is no file", path.display())));
    };
    Ok(located(parent).join(name))
}

/// Refuses a sandbox that could write the user's configuration or Cofferdam's records, there already
/// or not yet: with them a sandboxed program could widen its next run.
pub(crate) fn keep_own_files_out(
    spec: &Spec,
    surroundings: &Surroundings,
    state_directory: &Path,
) -> Result<()> {
    let workspace = match &spec.workspace {
        Workspace::Directory(path) if spec.profile.writes_workspace() => Some(path.as_path()),
        Workspace::Directory(_) | Workspace::Private => None,
    };
    let named: Vec<PathBuf> = spec.write.iter().map(|path| located(path)).collect();
    let writable: Vec<&Path> =
        workspace.into_iter().chain(named.iter().map(PathBuf::as_path)).collect();
    if writable.is_empty() {
        return Ok(());
    }
    let own_config = surroundings.own_config();
    let config_directory = own_config.as_deref().and_then(Path::parent);
    for own in config_directory.into_iter().chain([state_directory]) {
        let own_located = located(own);
        let overlaps =
            |place: &&&Path| own_located.starts_with(place) || place.starts_with(&own_located);
        if let Some(place) = writable.iter().find(overlaps) {
            return Err(Error::new(
                ErrorKind::Denied,
                format!(
                    "a sandbox that writes {} could write Cofferdam's own {}, and widen its next run",
                    place.display(),
                    own.display()
                ),
            )
            .hint("Name a project directory with --workspace, or use --no-workspace."));
        }
    }
    Ok(())
}

/// The path with the symbolic links of all that exists of it resolved.
fn located(path: &Path) -> PathBuf {
    for existing in path.ancestors() {
        if let Ok(found) = existing.canonicalize() {
            return match path.strip_prefix(existing) {
                Ok(rest) if !rest.as_os_str().is_empty() => found.join(rest),
                Ok(_) | Err(_) => found,
            };
        }
    }
    path.to_owned()
}

//! Paths of the host that settings name: found, made plain, and kept apart from Cofferdam's own.

use crate::config::Sourced;
use crate::surroundings::Surroundings;
use cofferdam_core::way::{PassedLink, doubted_link, planted};
use cofferdam_core::{Error, ErrorKind, Result, Spec};
use rustix::io::Errno;
use std::path::{Component, Path, PathBuf};

/// The directory at this absolute path, without symbolic links.
///
/// HOSTILE: an earlier command of a sandbox may have put a link there, to have the next one write what it leads to.
pub(crate) fn directory(path: &Path, surroundings: &Surroundings) -> Result<PathBuf> {
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
    refuse_doubted("the workspace", path, &found, surroundings)?;
    Ok(found)
}

/// Fails where the way of a path to `end` passes a link that a command of any workspace may have made. `what` says what
/// it was named as.
pub(crate) fn refuse_doubted(
    what: &str,
    path: &Path,
    end: &Path,
    surroundings: &Surroundings,
) -> Result<()> {
    let Ok(whole) = std::path::absolute(path) else { return Ok(()) };
    let home = || surroundings.home.as_deref().and_then(|home| home.canonicalize().ok());
    let doubts = |link: &PassedLink| !link.stays() && !link.is_out_of_reach(home().as_deref());
    let read = |link: &Path| std::fs::read_link(link).ok();
    match doubted_link(&whole, end, read, doubts) {
        None => Ok(()),
        Some(link) => {
            let hint =
                format!("Remove the link, or name {} itself if you trust it.", end.display());
            Err(planted(what, path, &link, end).hint(hint))
        }
    }
}

/// The paths without `.`, and without `..` where that means the directory above. Links stay as they
/// are: who follows them has to know where they lie. A path with `..` must exist up to there, because
/// what `..` means depends on links.
pub(crate) fn plain(paths: Vec<Sourced<PathBuf>>) -> Result<Vec<PathBuf>> {
    paths.into_iter().map(|said| plain_one(&said.value)).collect()
}

fn plain_one(path: &Path) -> Result<PathBuf> {
    let mut plain = PathBuf::new();
    // Components leave `.` and doubled slashes out by themselves.
    for part in path.components() {
        match part {
            Component::ParentDir if plain == Path::new("/") => {}
            Component::ParentDir => match rustix::fs::readlink(&plain, Vec::new()) {
                Err(Errno::INVAL) if plain.file_name().is_some() => {
                    plain.pop();
                }
                // Above a link, or above another `..` that is above one.
                Ok(_) | Err(Errno::INVAL) => plain.push(part),
                Err(cause) => return Err(missing(path).source(cause)),
            },
            Component::Normal(_)
            | Component::RootDir
            | Component::CurDir
            | Component::Prefix(_) => plain.push(part),
        }
    }
    Ok(plain)
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
    let workspace = spec.workspace.directory().filter(|_| spec.profile.writes_workspace());
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
///
/// Looks at each part once: this stands on the way of every run, and resolving the path anew for each
/// ancestor that might exist takes three times as many system calls.
fn located(path: &Path) -> PathBuf {
    let mut found = PathBuf::new();
    let mut parts = path.components();
    while let Some(part) = parts.next() {
        found.push(part);
        match rustix::fs::readlink(&found, Vec::new()) {
            // The usual case: it is there, and no link.
            Err(Errno::INVAL) if part != Component::ParentDir => {}
            Err(Errno::NOENT) if part != Component::ParentDir => {
                found.extend(parts);
                return found;
            }
            Ok(_) | Err(_) => return resolved(path),
        }
    }
    found
}

/// [`located`] for paths with links in them.
fn resolved(path: &Path) -> PathBuf {
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

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_core::{Caller, Profile, Workspace};

    #[test]
    fn links_of_what_exists_are_resolved() {
        let base = std::env::temp_dir().canonicalize().unwrap();
        let base = base.join(format!("cofferdam-places-{}", std::process::id()));
        std::fs::create_dir_all(base.join("real")).unwrap();
        std::os::unix::fs::symlink("real", base.join("link")).unwrap();
        assert_eq!(located(&base.join("real/a/b")), base.join("real/a/b"));
        assert_eq!(located(&base.join("link/a/b")), base.join("real/a/b"));
        assert_eq!(located(&base.join("real")), base.join("real"));
        assert_eq!(located(Path::new("/")), Path::new("/"));
        std::fs::remove_dir_all(&base).unwrap();
    }

    #[test]
    fn a_link_is_left_to_whoever_follows_it() {
        let base = std::env::temp_dir().canonicalize().unwrap();
        let base = base.join(format!("cofferdam-plain-{}", std::process::id()));
        std::fs::create_dir_all(base.join("a/b")).unwrap();
        std::os::unix::fs::symlink("/usr/lib", base.join("link")).unwrap();
        let plain = |name: &str| plain_one(&base.join(name)).map_err(|error| error.kind);
        assert_eq!(plain("a/../link"), Ok(base.join("link")));
        assert_eq!(plain("link/x/./y"), Ok(base.join("link/x/y")));
        assert_eq!(plain("a/b/../../a"), Ok(base.join("a")));
        assert_eq!(plain("link/../../bin"), Ok(base.join("link/../../bin")));
        assert_eq!(plain("none/../a"), Err(ErrorKind::NotFound));
        assert_eq!(plain_one(Path::new("/../etc")).unwrap(), Path::new("/etc"));
        std::fs::remove_dir_all(&base).unwrap();
    }

    fn check(workspace: &str, profile: Profile, write: &[&str], is_allowed: bool) {
        let workspace = Workspace::Directory(workspace.into());
        let mut spec = Spec::new(workspace, Caller::default());
        spec.profile = profile;
        spec.write = write.iter().map(PathBuf::from).collect();
        let home = Some("/nowhere/u".into());
        let surroundings = Surroundings { home, ..Surroundings::default() };
        let state = surroundings.state_directory().unwrap();
        let outcome = keep_own_files_out(&spec, &surroundings, &state);
        assert_eq!(outcome.is_ok(), is_allowed, "{spec:?}");
    }

    #[test]
    fn no_sandbox_writes_what_its_next_run_is_ruled_by() {
        check("/nowhere/u/project", Profile::NoNetwork, &[], true);
        check("/nowhere/u", Profile::NoNetwork, &[], false);
        check("/", Profile::NoNetwork, &[], false);
        check("/nowhere/u", Profile::ReadOnly, &[], true);
        check("/nowhere/u", Profile::ReadOnly, &["/nowhere/u/.config"], false);
        check("/nowhere/u/.local/state/cofferdam/trust", Profile::NoNetwork, &[], false);
    }
}

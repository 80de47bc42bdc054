//! A directory of the host that is the home directory of a sandbox that is kept.

use super::lookup::find_listed;
use super::{HOME, Shown, workspace};
use crate::host::{HostFacts, UserNamespaces};
use cofferdam_core::{Error, ErrorKind, Result};
use cofferdam_wire::plan::Access;
use std::path::Path;

/// What of the state directory no sandbox may write: the records that the next start believes.
const RECORDS: [&str; 2] = ["owed", "sessions"];

/// Looks at it. It may lie below the state directory, which is kept out of every view otherwise: this
/// one directory is shown, and no record may lie in it.
///
/// As root its files stay its owner's on disk, whoever the sandbox's passing user is.
pub(crate) fn look(path: &Path, facts: &HostFacts, state: &Path) -> Result<Shown> {
    let found = find_listed(path, "the home directory")?;
    let refused = |why: &str| {
        Error::new(ErrorKind::Denied, format!("{} cannot be a home directory: {why}", found.path))
            .hint("Make an empty directory of your own for it.")
    };
    if !found.is_directory() {
        return Err(refused("it is not a directory"));
    }
    // HOSTILE: what is shown is what was looked at; a name that leads elsewhere is not followed.
    if Path::new(&found.path) != path {
        return Err(refused(&format!("{} leads there by a link", path.display())));
    }
    if !facts.is_root() && found.owner().0 != facts.uid {
        return Err(refused("it belongs to somebody else"));
    }
    let state = state.canonicalize().unwrap_or_else(|_| state.to_path_buf());
    for record in RECORDS.map(|name| state.join(name)) {
        if record.starts_with(path) || path.starts_with(&record) {
            return Err(refused("Cofferdam's own records lie there"));
        }
    }
    let place = match facts.user_namespaces {
        UserNamespaces::Allowed => HOME.to_owned(),
        UserNamespaces::Forbidden(_) if facts.is_root() => {
            return Err(Error::new(
                ErrorKind::Unenforceable,
                "a home directory that stays needs user namespaces where root starts the sandbox",
            )
            .hint("Run as an ordinary user, or let the home directory go with the sandbox."));
        }
        UserNamespaces::Forbidden(_) => found.path.clone(),
    };
    Ok(Shown {
        source: found.path.clone(),
        path: place,
        access: Access::ReadWrite,
        owner: workspace::owner(&found, facts),
        identity: Some(found.identity()),
        why: "the home directory, on disk, so that it outlives the sandbox".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_directory::TestDirectory;

    #[test]
    fn records_cannot_lie_in_a_home_directory() {
        let directory = TestDirectory::new("home");
        let state = directory.path().canonicalize().unwrap();
        let facts = HostFacts::gather();
        for name in ["homes/one", "sessions/one", "owed"] {
            std::fs::create_dir_all(state.join(name)).unwrap();
        }
        std::os::unix::fs::symlink(state.join("homes/one"), state.join("link")).unwrap();
        std::fs::write(state.join("file"), "").unwrap();
        let kind = |name: &str| look(&state.join(name), &facts, &state).map_err(|e| e.kind);
        assert!(kind("homes/one").is_ok());
        for name in ["", "sessions", "sessions/one", "owed", "link", "file"] {
            assert_eq!(kind(name), Err(ErrorKind::Denied), "{name:?}");
        }
        assert_eq!(kind("nothing"), Err(ErrorKind::NotFound));
    }
}

//! A directory of a sandbox's own on the host, where it cannot have a root of its own.

use crate::host::{HostFacts, UserNamespaces};
use crate::state::StateDirectory;
use cofferdam_core::{Error, ErrorKind, Result, SandboxId};
use rustix::fs::{CWD, Gid, Mode, Uid};
use std::path::{Path, PathBuf};

/// Leads the directory's name below `/tmp`. The sandbox's id and the user's follow.
const LEAD: &str = "cofferdam-scratch-";

/// The directory. Dropping it removes it and what is in it.
#[derive(Debug)]
pub(crate) struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// Where it will be, if it is needed. What a dead sandbox left at such a place is removed.
    pub(crate) fn path(
        state: &StateDirectory,
        id: &SandboxId,
        facts: &HostFacts,
    ) -> Result<Option<String>> {
        match facts.user_namespaces {
            UserNamespaces::Allowed => return Ok(None),
            UserNamespaces::Forbidden(_) => {}
        }
        sweep(state, facts.uid);
        Ok(Some(format!("/tmp/{LEAD}{}-{id}", facts.uid)))
    }

    /// Makes it for this user.
    pub(crate) fn make(path: &str, owner: (u32, u32)) -> Result<Self> {
        let failed = |errno| {
            Error::new(ErrorKind::Io, format!("make {path}")).source(std::io::Error::from(errno))
        };
        // A directory that is there already belongs to somebody else: mkdir follows no link.
        rustix::fs::mkdirat(CWD, path, Mode::RWXU).map_err(failed)?;
        let made = Self { path: path.into() };
        if rustix::process::geteuid().is_root() {
            let (uid, gid) = (Uid::from_raw(owner.0), Gid::from_raw(owner.1));
            rustix::fs::chown(path, Some(uid), Some(gid)).map_err(failed)?;
        }
        Ok(made)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// Removes the directories of this user's sandboxes that have no owner any more.
fn sweep(state: &StateDirectory, uid: u32) {
    let lead = format!("{LEAD}{uid}-");
    let Ok(entries) = std::fs::read_dir("/tmp") else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(id) = name.to_str().and_then(|name| name.strip_prefix(&lead)) else { continue };
        if !state.has_sandbox(id) && is_ours(&entry.path(), uid) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

fn is_ours(path: &Path, uid: u32) -> bool {
    use std::os::unix::fs::MetadataExt;
    // As root the directory belongs to a session user, so any owner will do.
    uid == 0 || std::fs::symlink_metadata(path).is_ok_and(|found| found.uid() == uid)
}

//! Copies of workspaces for sandboxes that pass: below `copies` of the state directory, a directory for
//! each, removed with its sandbox.
//!
//! Whoever made one holds a lock on it. One that can be locked is nobody's any more, and is removed by
//! the next start.

use crate::layers::{self, Copied};
use crate::placeholders::Standing;
use crate::state::{StateDirectory, io, retry};
use crate::view::{Found, find_listed};
use cofferdam_core::{Error, ErrorKind, LayerNote, Result, SandboxId};
use rustix::fd::OwnedFd;
use rustix::fs::{FlockOperation, Mode, OFlags, RawDir};
use rustix::io::Errno;
use std::mem::MaybeUninit;
use std::path::Path;

/// The folder of copies.
const COPIES: &str = "copies";
/// The copy in its directory.
const COPY: &str = "upper";
/// Leads the name of what is owed for a dead sandbox.
const DEBT: &str = "copy-";
/// How often a directory is made anew because a sweep took it away between its making and its locking.
const ATTEMPTS: u32 = 16;

/// A copy that goes when this is dropped.
#[derive(Debug)]
pub(crate) struct PassingCopy {
    folder: OwnedFd,
    name: String,
    _lock: OwnedFd,
    /// Where it is.
    pub(crate) found: Found,
    /// Who owns the workspace.
    pub(crate) owner: (u32, u32),
    /// What is to be said of it.
    pub(crate) note: LayerNote,
}

impl PassingCopy {
    /// Copies a workspace for a sandbox of this id.
    pub(crate) fn make(
        state: &StateDirectory,
        id: &SandboxId,
        workspace: &Found,
        why: Option<String>,
    ) -> Result<Self> {
        let folder = folder(state)?;
        let name = id.to_string();
        let path = state.path().join(COPIES).join(&name);
        let lock = claim(&folder, &name, &path)?;
        let made = (|| {
            let (device, inode) = workspace.identity();
            let source = layers::open_workspace(&workspace.path, device, inode)?;
            let placeholders = Standing::read(state, (device, inode))?;
            let copied = layers::copy_whole((&source, &placeholders), &lock, COPY)?;
            Ok((note(&copied, why), find_listed(&path.join(COPY), "the copy")?))
        })();
        match made {
            Ok((note, found)) => {
                Ok(Self { folder, name, _lock: lock, found, owner: workspace.owner(), note })
            }
            Err(error) => {
                // The error that made this necessary is the one to tell.
                let _ = layers::remove_tree(&folder, name.as_bytes());
                Err(error)
            }
        }
    }
}

impl Drop for PassingCopy {
    fn drop(&mut self) {
        // What cannot be removed is owed to the next start.
        let _ = layers::remove_tree(&self.folder, self.name.as_bytes());
    }
}

/// What is to be said of a copy.
pub(super) fn note(copied: &Copied, why: Option<String>) -> LayerNote {
    LayerNote {
        tier: copied.tier,
        why,
        left_out: copied.left_out.first.clone(),
        left_out_more: copied.left_out.more,
    }
}

/// Removes copies of dead sandboxes. Says what could not be removed.
pub(crate) fn sweep(state: &StateDirectory) -> Vec<String> {
    let mut kept = Vec::new();
    for (name, _lock) in orphans(state) {
        if let Err(error) = remove(state, &name) {
            kept.push(format!("copy {name}: {}", error.chain()));
        }
    }
    kept
}

/// What is owed for dead sandboxes, by name.
pub(crate) fn debts(state: &StateDirectory) -> Vec<String> {
    orphans(state).into_iter().map(|(name, _)| format!("{DEBT}{name}")).collect()
}

/// Removes what one of these names stands for; `None` where it is the name of something else. `false`
/// where somebody else did, or owns it.
pub(crate) fn pay(state: &StateDirectory, debt: &str) -> Option<Result<bool>> {
    let name = debt.strip_prefix(DEBT)?;
    let orphan = orphans(state).into_iter().find(|(orphan, _)| orphan == name);
    Some(orphan.map_or(Ok(false), |(name, _lock)| remove(state, &name).map(|()| true)))
}

fn remove(state: &StateDirectory, name: &str) -> Result<()> {
    let path = state.path().join(COPIES).join(name);
    layers::remove_tree(&folder(state)?, name.as_bytes())
        .map_err(|errno| io("remove", &path, errno))
}

/// The names of copies whose sandbox is dead, each with a lock that keeps others off.
fn orphans(state: &StateDirectory) -> Vec<(String, OwnedFd)> {
    let Ok(listing) = open(state.directory(), COPIES) else { return Vec::new() };
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut entries = RawDir::new(&listing, &mut buffer);
    let mut names = Vec::new();
    while let Some(Ok(entry)) = entries.next() {
        if let Ok(name) = entry.file_name().to_str()
            && SandboxId::new(name).is_ok()
        {
            names.push(name.to_owned());
        }
    }
    let lock = |name: String| {
        let directory = open(&listing, &name).ok()?;
        let lock = FlockOperation::NonBlockingLockExclusive;
        retry(|| rustix::fs::flock(&directory, lock)).ok()?;
        Some((name, directory))
    };
    names.into_iter().filter_map(lock).collect()
}

fn claim(folder: &OwnedFd, name: &str, path: &Path) -> Result<OwnedFd> {
    let at = |errno| io("make a directory in", path, errno);
    for _ in 0..ATTEMPTS {
        match rustix::fs::mkdirat(folder, name, Mode::RWXU) {
            Ok(()) => {}
            Err(Errno::EXIST) => {
                let what = format!("a sandbox {name} is there already");
                return Err(Error::new(ErrorKind::Conflict, what));
            }
            Err(errno) => return Err(at(errno)),
        }
        let Ok(directory) = open(folder, name) else { continue };
        // Who has it now only looks whether it has an owner, or removes what is empty.
        retry(|| rustix::fs::flock(&directory, FlockOperation::LockExclusive)).map_err(at)?;
        if rustix::fs::fstat(&directory).is_ok_and(|stat| stat.st_nlink > 0) {
            return Ok(directory);
        }
        // A sweep took it for a dead one's.
    }
    Err(Error::new(ErrorKind::Unavailable, format!("the directory of {name} keeps vanishing")))
}

fn folder(state: &StateDirectory) -> Result<OwnedFd> {
    let at = |errno| io("make the folder of copies in", state.path(), errno);
    match rustix::fs::mkdirat(state.directory(), COPIES, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(errno) => return Err(at(errno)),
    }
    open(state.directory(), COPIES).map_err(at)
}

fn open(at: impl rustix::fd::AsFd, name: &str) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(at, name, flags, Mode::empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_directory::TestDirectory;

    #[test]
    fn a_copy_goes_with_its_owner_or_with_the_next_sweep() {
        let directory = TestDirectory::new("passing");
        let root = directory.path().canonicalize().unwrap();
        let workspace = root.join("w");
        std::fs::create_dir(&workspace).unwrap();
        std::fs::write(workspace.join("f"), "x").unwrap();
        let state = StateDirectory::open(&root.join("s")).unwrap();
        let found = find_listed(&workspace, "workspace").unwrap();
        let id = SandboxId::new("one").unwrap();
        let make = || PassingCopy::make(&state, &id, &found, None);
        let copy = make().unwrap();
        let place = root.join("s/copies/one");
        assert_eq!(std::fs::read(place.join("upper/f")).unwrap(), b"x");
        assert_eq!(make().unwrap_err().kind, ErrorKind::Conflict);
        assert!(debts(&state).is_empty() && sweep(&state).is_empty());
        assert!(matches!(pay(&state, "copy-one"), Some(Ok(false))), "its owner lives");
        assert!(place.exists());
        drop(copy);
        assert!(!place.exists());
        // As one leaves it who was killed.
        std::fs::create_dir_all(place.join("upper/d")).unwrap();
        assert_eq!(debts(&state), ["copy-one"]);
        assert!(matches!(pay(&state, "copy-one"), Some(Ok(true))));
        std::fs::create_dir_all(place.join("upper/d")).unwrap();
        assert!(sweep(&state).is_empty() && !place.exists());
        assert!(pay(&state, "sandbox-one").is_none());
    }
}

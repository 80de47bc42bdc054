//! Directories of the host that are shown read-only at a place of the workspace.
//!
//! Each is mounted at a place of its own first, which nobody on the host can take away, and from there
//! at its place in the workspace: where the host removes the name that it lies on, it is mounted again
//! from its own.
//!
//! HOSTILE: the workspace is written from inside, by this sandbox and by others of it. So the way to the
//! place is walked without any link, and the source by the rules of every listed path.

use super::lookup::{Found, is_within, owner_for_root};
use super::requested::refuse_to_read;
use super::secrets::Secrets;
use super::workspace::Ground;
use super::written::Written;
use super::{Hidden, Landing, Shown, WorkspaceDirectory, WorkspaceView, usage};
use crate::control_files::{Named, named};
use crate::host::HostFacts;
use cofferdam_core::{DirectoryIdentity, Error, ErrorKind, HostMount, Result, Spec};
use cofferdam_wire::plan::{Access, Owner};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, RawDir, ResolveFlags, StatxFlags};
use rustix::io::Errno;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

/// What is mounted here belongs to the workspace.
const OWN_PLACES: &str = "/run/cofferdam/mounts";

/// A mount in the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mounted {
    /// Its own place inside, which stands among [`super::View::places`].
    pub place: String,
    /// Its place in the workspace, by the workspace's own path.
    pub path: String,
    /// The same, relative to the workspace.
    pub below: String,
    /// Why it is there.
    pub why: String,
}

/// Looks at what is to be mounted, and where.
pub(super) fn look(
    spec: &Spec,
    facts: &HostFacts,
    secrets: &Secrets,
    ground: &Ground,
    written: &Written,
) -> Result<(Vec<Shown>, Vec<Mounted>)> {
    let (mut shown, mut mounted) = (Vec::new(), Vec::new());
    if spec.mounts.is_empty() {
        return Ok((shown, mounted));
    }
    let WorkspaceView::Directory(workspace) = &ground.workspace else {
        return Err(usage(
            "a mount needs a workspace that is a directory of this host".to_owned(),
            "Name a directory as workspace.",
        ));
    };
    for (number, mount) in spec.mounts.iter().enumerate() {
        let source = source(mount, workspace, secrets, written)?;
        let place = format!("{OWN_PLACES}/{number}");
        mounted.push(target(mount, workspace, &source, place.clone())?);
        let owner = if facts.is_root() { owner_for_root(&source) } else { Owner::Same };
        shown.push(Shown {
            source: source.path.clone(),
            path: place,
            access: Access::ReadOnly,
            owner,
            identity: Some(source.identity()),
            why: format!("mounted at {} of the workspace", mount.path),
        });
    }
    Ok((shown, mounted))
}

/// What of these hidden paths of the host is shown by a mount, under the names that it has there.
pub(super) fn hidden(shown: &[Shown], mounted: &[Mounted], hidden: &[Hidden]) -> Vec<Hidden> {
    let mut also = Vec::new();
    for (shown, mounted) in shown.iter().zip(mounted) {
        for hidden in hidden {
            let rest = match hidden.path.strip_prefix(shown.source.as_str()) {
                Some(rest) if is_within(&hidden.path, &shown.source) => rest,
                Some(_) | None if is_within(&shown.source, &hidden.path) => "",
                Some(_) | None => continue,
            };
            let at = |top: &str| Hidden { path: format!("{top}{rest}"), why: hidden.why.clone() };
            also.extend([at(&shown.path), at(&mounted.path)]);
        }
    }
    also
}

/// The directory of the host, if it is still the one that was meant.
fn source(
    mount: &HostMount,
    workspace: &WorkspaceDirectory,
    secrets: &Secrets,
    written: &Written,
) -> Result<Found> {
    let what = "the mounted directory";
    let found = written.find_listed(&mount.source, what).map_err(|error| {
        if error.kind == ErrorKind::NotFound {
            return error.hint("Put it back, or make the session anew without it.");
        }
        error
    })?;
    refuse_to_read(&found, secrets, what)?;
    if !found.is_directory() || identity(&found)? != mount.identity {
        let what = format!("{what} {} is another one by now", mount.source.display());
        return Err(Error::new(ErrorKind::Conflict, what)
            .hint("Put the one back that the session was made with, or make the session anew."));
    }
    if is_within(&found.path, &workspace.path) || is_within(&workspace.path, &found.path) {
        return Err(usage(
            format!(
                "{what} {} and the workspace {} lie in one another",
                found.path, workspace.path
            ),
            "Mount what is not of the workspace; a link leads to what is.",
        ));
    }
    Ok(found)
}

fn identity(found: &Found) -> Result<DirectoryIdentity> {
    let wanted = StatxFlags::INO | StatxFlags::BTIME;
    let stat = rustix::fs::statx(CWD, &found.path, AtFlags::SYMLINK_NOFOLLOW, wanted);
    let stat = stat.map_err(|errno| unseen(&found.path, errno))?;
    Ok(DirectoryIdentity {
        inode: stat.stx_ino,
        born_s: stat.stx_btime.tv_sec,
        born_ns: stat.stx_btime.tv_nsec,
    })
}

/// The place in the workspace: a directory with nothing in it, or nothing yet.
fn target(
    mount: &HostMount,
    workspace: &WorkspaceDirectory,
    source: &Found,
    place: String,
) -> Result<Mounted> {
    let below = std::str::from_utf8(mount.path.as_bytes()).map_err(|e| {
        usage(format!("the place of a mount {:?} is not UTF-8", mount.path), "Choose another one.")
            .source(e)
    })?;
    match named(&mount.path) {
        Named::Ordinary | Named::IfBare(_) => {}
        Named::Control | Named::GitDirectory | Named::InGitDirectory(_) | Named::GitState => {
            let what = format!("{below:?} is protected, so nothing is mounted there");
            return Err(Error::new(ErrorKind::Denied, what).hint("Choose another place."));
        }
    }
    let missing = missing_on_the_way(&workspace.path, below)?;
    if missing.is_empty() {
        refuse_to_cover(&workspace.path, below)?;
    }
    if let (Some(first), Landing::Beside { .. }) = (missing.first(), workspace.landing) {
        let what = format!("{first:?} is not there, and {} is to be mounted", source.path);
        return Err(Error::new(ErrorKind::NotFound, what).hint(
            "Make the directory before: in a --cow workspace a mount lies on one that is there.",
        ));
    }
    Ok(Mounted {
        place,
        path: format!("{}/{below}", workspace.path),
        below: below.to_owned(),
        why: format!("shows {} read-only", source.path),
    })
}

/// What is missing of the way to a place of this workspace to mount on, parents first, both relative to
/// it. Fails where anything but directories is on that way.
pub(crate) fn missing_on_the_way(workspace: &str, below: &str) -> Result<Vec<String>> {
    let top = open_top(workspace)?;
    let ends = below.match_indices('/').map(|(end, _)| end).chain([below.len()]);
    let mut missing = Vec::new();
    for shown in ends.filter_map(|end| below.get(..end)) {
        match open_below(&top, shown, OFlags::PATH) {
            Ok(_) => {}
            Err(Errno::NOENT) => missing.push(shown.to_owned()),
            Err(Errno::NOTDIR | Errno::LOOP) => {
                let what = format!("{shown:?} is no directory to mount on");
                return Err(Error::new(ErrorKind::Conflict, what)
                    .hint("Remove it, or mount elsewhere; links are not followed."));
            }
            Err(errno) => return Err(unseen(shown, errno)),
        }
    }
    Ok(missing)
}

/// Fails where a mount would cover something.
fn refuse_to_cover(workspace: &str, below: &str) -> Result<()> {
    let opened = open_below(&open_top(workspace)?, below, OFlags::RDONLY);
    if is_empty(&opened.map_err(|errno| unseen(below, errno))?)? {
        return Ok(());
    }
    let what = format!("{below:?} holds something that a mount would cover");
    Err(Error::new(ErrorKind::Conflict, what).hint("Move it away, or mount elsewhere."))
}

const DIRECTORY: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

fn open_top(workspace: &str) -> Result<OwnedFd> {
    let opened = rustix::fs::openat(CWD, workspace, OFlags::PATH | DIRECTORY, Mode::empty());
    opened.map_err(|errno| unseen(workspace, errno))
}

fn open_below(top: &OwnedFd, below: &str, how: OFlags) -> rustix::io::Result<OwnedFd> {
    let rules = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    rustix::fs::openat2(top, below, how | DIRECTORY, Mode::empty(), rules)
}

fn is_empty(directory: &OwnedFd) -> Result<bool> {
    let mut buffer = [MaybeUninit::uninit(); 512];
    let mut entries = RawDir::new(directory, &mut buffer);
    while let Some(entry) = entries.next() {
        let entry = entry.map_err(|errno| unseen("the place of a mount", errno))?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            return Ok(false);
        }
    }
    Ok(true)
}

fn unseen(path: &str, errno: Errno) -> Error {
    let kind = match errno {
        Errno::NOENT => ErrorKind::NotFound,
        Errno::ACCESS | Errno::PERM => ErrorKind::Denied,
        _ => ErrorKind::Io,
    };
    Error::new(kind, format!("look at {path:?} for a mount"))
        .hint("Check the permissions of the directories above it.")
        .source(std::io::Error::from(errno))
}

//! The state directory itself: made for its owner alone, and used by nobody else.

use super::io;
use cofferdam_core::{Error, ErrorKind, Result};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

/// Group and others may not write it.
const FOREIGN_WRITE: u32 = 0o022;

/// Makes the directory and its parents. Parents are made with the user's own mask, as the XDG rules
/// want; root makes nothing in somebody else's home, because the owner could not use it afterwards.
pub(super) fn make(home: &Path) -> Result<()> {
    let parent = home.parent().unwrap_or(Path::new("/"));
    try_make(home, parent).map_err(|e| {
        Error::new(ErrorKind::Io, format!("make the state directory {}", home.display()))
            .hint("Set COFFERDAM_HOME to a directory of your own.")
            .source(e)
    })
}

fn try_make(home: &Path, parent: &Path) -> std::io::Result<()> {
    let owner = std::fs::metadata(nearest(parent))?.uid();
    if owner != 0 && owner != rustix::process::geteuid().as_raw() {
        return Err(Errno::PERM.into());
    }
    std::fs::create_dir_all(parent)?;
    match std::fs::DirBuilder::new().mode(0o700).create(home) {
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

/// The nearest ancestor that is there.
fn nearest(path: &Path) -> &Path {
    path.ancestors().find(|ancestor| ancestor.is_dir()).unwrap_or(Path::new("/"))
}

pub(super) fn check_owner(fd: &OwnedFd, home: &Path) -> Result<()> {
    let stat = rustix::fs::fstat(fd).map_err(|e| io("look at the state directory", home, e))?;
    let me = rustix::process::geteuid().as_raw();
    if stat.st_uid != me {
        return Err(Error::new(
            ErrorKind::Denied,
            format!(
                "use the state directory {}: it belongs to user {}",
                home.display(),
                stat.st_uid
            ),
        )
        .hint("Set COFFERDAM_HOME to a directory of your own."));
    }
    if stat.st_mode & FOREIGN_WRITE != 0 {
        return Err(Error::new(
            ErrorKind::Denied,
            format!("use the state directory {}: others may write it", home.display()),
        )
        .hint(format!("Run chmod 700 {}, if you trust what is in it.", home.display())));
    }
    Ok(())
}

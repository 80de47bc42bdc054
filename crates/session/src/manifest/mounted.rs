//! A directory of the host that a manifest wants shown, and not copied.

use super::host::{Last, open_named, unseen};
use super::wrong;
use cofferdam_core::{DirectoryIdentity, Error, ErrorKind, GuestPath, HostMount, Result};
use rustix::fs::{AtFlags, FileType, StatxFlags};
use std::path::Path;

/// The most directories that a manifest shows. Each takes mounts of every sandbox of the session.
pub const MAX_MOUNTS: usize = 64;

/// Looks which directory this is now. Every sandbox of the session has to find the same one, by the name of
/// the manifest's directory that was given; what is looked at is below its canonical one.
pub(super) fn find(
    path: GuestPath,
    from: &Path,
    (base, real): (&Path, &Path),
) -> Result<HostMount> {
    let absolute = |e| {
        let what = format!("find the directory that {} is relative to", from.display());
        Error::new(ErrorKind::Io, what).source(e)
    };
    let source = std::path::absolute(base.join(from)).map_err(absolute)?;
    let opened = open_named(&real.join(from), "the mounted directory", Last::Followed)?;
    let wanted = StatxFlags::TYPE | StatxFlags::INO | StatxFlags::BTIME;
    let stat = rustix::fs::statx(&opened, c"", AtFlags::EMPTY_PATH, wanted);
    let stat = stat.map_err(|e| unseen(&source, e))?;
    if FileType::from_raw_mode(stat.stx_mode.into()) != FileType::Directory {
        return Err(wrong(&path, &format!("mounts {}, which is no directory", source.display())));
    }
    let identity = DirectoryIdentity {
        inode: stat.stx_ino,
        // Zero where the file system does not keep it.
        born_s: stat.stx_btime.tv_sec,
        born_ns: stat.stx_btime.tv_nsec,
    };
    Ok(HostMount { source, path, identity })
}

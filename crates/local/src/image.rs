//! What a sandbox on an image has on the host: its layers, and a directory for what is written to
//! them where that is to stay.

use crate::host::HostFacts;
use crate::view::{ImageUpper, Shown, View, find_listed};
use cofferdam_core::{Error, ErrorKind, Result, Spec};
use cofferdam_wire::plan::{Access, Owner};
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::path::Path;

/// The folder for what is written, below what is kept of a sandbox.
const FOLDER: &str = "image";

/// The directory that takes what is written, and the kernel's own beside it.
const UPPER: &str = "upper";
const WORK: &str = "work";

/// Holds the layers of this spec's image, so that nobody removes them. Fails where one is gone.
pub(crate) fn hold(spec: &Spec) -> Result<Vec<OwnedFd>> {
    let Some(image) = &spec.image else { return Ok(Vec::new()) };
    let directories = image.layers.iter().filter_map(|layer| layer.hold.as_deref());
    let held = |directory: &Path| {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(CWD, directory, flags, Mode::empty())?;
        rustix::fs::flock(&opened, FlockOperation::NonBlockingLockShared)?;
        // It may have been removed between the two.
        let (ours, there) = (rustix::fs::fstat(&opened)?, rustix::fs::lstat(directory)?);
        if (ours.st_dev, ours.st_ino) == (there.st_dev, there.st_ino) {
            Ok(opened)
        } else {
            Err(Errno::NOENT)
        }
    };
    let gone = |errno| {
        Error::new(ErrorKind::NotFound, format!("a layer of image {} is gone", image.name))
            .hint("Run `cofferdam image import` with the same reference.")
            .source(std::io::Error::from(errno))
    };
    directories.map(|directory| held(directory).map_err(gone)).collect()
}

/// Makes sure that what is written to an image has a place that stays. Changes nothing of one that is
/// there.
pub(crate) fn ensure(spec: &Spec, kept: Option<&Path>) -> Result<()> {
    let (Some(_), Some(kept)) = (&spec.image, kept) else { return Ok(()) };
    let folder = kept.join(FOLDER);
    let (upper, work) = (folder.join(UPPER), folder.join(WORK));
    // A sandbox of the host's root goes through the folder as somebody else; the directory above lets
    // nobody in.
    for (path, mode) in [(&folder, 0o711), (&upper, 0o755), (&work, 0o700)] {
        match std::fs::create_dir(path) {
            Ok(()) => rustix::fs::chmod(path, Mode::from(mode)).map_err(std::io::Error::from),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
        }
        .map_err(|error| {
            Error::new(ErrorKind::Io, format!("make {}", path.display())).source(error)
        })?;
    }
    Ok(())
}

/// Has what is written to this view's image land in the place that stays.
pub(crate) fn keep(view: &mut View, kept: Option<&Path>, facts: &HostFacts) -> Result<()> {
    let (Some(image), Some(kept)) = (&mut view.image, kept) else { return Ok(()) };
    let folder = find_listed(&kept.join(FOLDER), "what is kept of the image")?;
    let (uid, gid) = folder.owner();
    image.upper = ImageUpper::Kept(Shown {
        source: folder.path.clone(),
        path: "/".to_owned(),
        access: Access::ReadWrite,
        owner: if facts.is_root() { Owner::Mapped { uid, gid } } else { Owner::Same },
        identity: Some(folder.identity()),
        why: "what is written to the image, on disk, so that it outlives the sandbox".to_owned(),
    });
    Ok(())
}

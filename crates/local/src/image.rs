//! What a sandbox on an image has on the host: its layers, and a directory for what is written to
//! them where that is to stay.

use crate::host::HostFacts;
use crate::view::{ImageUpper, Shown, View, find_listed};
use cofferdam_core::{Error, ErrorKind, Image, Result, Spec};
use cofferdam_wire::plan::{Access, Owner};
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::path::Path;
use std::time::{Duration, Instant};

/// The folder for what is written, below what is kept of a sandbox.
const FOLDER: &str = "image";

/// The directory that takes what is written, and the kernel's own beside it.
const UPPER: &str = "upper";
const WORK: &str = "work";

/// How long a layer may be held alone by somebody else.
const HELD_WITHIN: Duration = Duration::from_millis(200);
/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(1);

/// What it lies on.
const BASE: &str = "base";

/// Holds this spec's image and its layers, so that nobody removes them. Fails where one is gone.
pub(crate) fn hold(spec: &Spec) -> Result<Vec<OwnedFd>> {
    let Some(image) = &spec.image else { return Ok(Vec::new()) };
    let layers = image.layers.iter().filter_map(|layer| layer.hold.as_deref());
    let directories = layers.chain(image.hold.as_deref());
    let held = |directory: &Path| {
        let opened = locked(directory)?;
        // It may have been removed between the two.
        let (ours, there) = (rustix::fs::fstat(&opened)?, rustix::fs::lstat(directory)?);
        if (ours.st_dev, ours.st_ino) == (there.st_dev, there.st_ino) {
            Ok(opened)
        } else {
            Err(Errno::NOENT)
        }
    };
    let gone = |errno| {
        Error::new(ErrorKind::NotFound, format!("image {} or a layer of it is gone", image.name))
            .hint("Run `cofferdam image import` with the same reference.")
            .source(std::io::Error::from(errno))
    };
    directories.map(|directory| held(directory).map_err(gone)).collect()
}

/// Opens the directory of a layer, and keeps it there. Who removes it holds it alone, and so does for a moment
/// whoever asks whether it is used.
fn locked(directory: &Path) -> rustix::io::Result<OwnedFd> {
    let begin = Instant::now();
    loop {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(CWD, directory, flags, Mode::empty())?;
        match rustix::fs::flock(&opened, FlockOperation::NonBlockingLockShared) {
            Err(Errno::WOULDBLOCK) if begin.elapsed() < HELD_WITHIN => std::thread::sleep(PAUSE),
            other => return other.map(|()| opened),
        }
    }
}

/// Makes sure that what is written to an image has a place that stays. Changes nothing of one that is
/// there.
pub(crate) fn ensure(spec: &Spec, kept: Option<&Path>) -> Result<()> {
    let (Some(image), Some(kept)) = (&spec.image, kept) else { return Ok(()) };
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
        .map_err(|error| io("make", path, error))?;
    }
    same_base(image, &folder.join(BASE))
}

/// Notes what the written layer lies on, and fails where that is something else by now: a layer over
/// another tree is no change that anybody made.
fn same_base(image: &Image, path: &Path) -> Result<()> {
    let mut base = format!("{}\n", image.id);
    for layer in image.layers.iter().filter(|layer| layer.hold.is_none()) {
        let found = rustix::fs::stat(&layer.tree)
            .map_err(|errno| io("look at the image", &layer.tree, errno.into()))?;
        base.push_str(&found.st_dev.to_string());
        base.push(' ');
        base.push_str(&found.st_ino.to_string());
        base.push('\n');
    }
    match std::fs::read_to_string(path) {
        Ok(known) if known == base => Ok(()),
        Ok(_) => Err(Error::new(
            ErrorKind::Conflict,
            format!("image {} is not any more what it was", image.name),
        )
        .hint("Put the old directory back; or remove the session, and with it what it changed.")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let fresh = path.with_extension("new");
            std::fs::write(&fresh, base)
                .and_then(|()| std::fs::rename(&fresh, path))
                .map_err(|error| io("write", path, error))
        }
        Err(error) => Err(io("read", path, error)),
    }
}

fn io(what: &str, path: &Path, error: std::io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("{what} {}", path.display())).source(error)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_directory::TestDirectory;
    use cofferdam_core::{Caller, ImageLayer, ImageRun, Workspace};

    fn spec(tree: &Path, hold: Option<&Path>) -> Spec {
        let layer = ImageLayer { tree: tree.into(), hold: hold.map(Into::into) };
        let run = ImageRun::default();
        let image =
            Image { id: "i".into(), name: "n".into(), layers: vec![layer], hold: None, run };
        Spec { image: Some(image), ..Spec::new(Workspace::Private, Caller::default()) }
    }

    #[test]
    fn a_layer_that_is_used_is_held_and_one_that_is_gone_is_said() {
        let directory = TestDirectory::new("image-hold");
        let layer = directory.path().join("layer");
        assert_eq!(hold(&spec(&layer, Some(&layer))).unwrap_err().kind, ErrorKind::NotFound);
        std::fs::create_dir(&layer).unwrap();
        let held = hold(&spec(&layer, Some(&layer))).unwrap();
        let alone = || {
            let opened = std::fs::File::open(&layer).unwrap();
            rustix::fs::flock(&opened, FlockOperation::NonBlockingLockExclusive)
        };
        assert_eq!(alone(), Err(Errno::WOULDBLOCK));
        drop(held);
        // A child that another test is just starting holds a copy for an instant.
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while alone().is_err() {
            assert!(std::time::Instant::now() < deadline);
        }
        assert!(hold(&spec(&layer, None)).unwrap().is_empty(), "nobody removes a plain directory");
        // The image itself, which others may share the layer with.
        let mut spec = spec(&layer, None);
        spec.image.as_mut().unwrap().hold = Some(layer.clone());
        let held = hold(&spec).unwrap();
        assert_eq!((held.len(), alone()), (1, Err(Errno::WOULDBLOCK)));
        std::fs::remove_dir(&layer).unwrap();
        assert_eq!(hold(&spec).unwrap_err().kind, ErrorKind::NotFound);
    }

    #[test]
    fn what_is_kept_of_an_image_is_made_once_and_never_lies_on_another_one() {
        let directory = TestDirectory::new("image-kept");
        let (root, kept) = (directory.path().join("root"), directory.path().join("kept"));
        std::fs::create_dir(&root).unwrap();
        std::fs::create_dir(&kept).unwrap();
        let spec = spec(&root, None);
        ensure(&spec, Some(&kept)).unwrap();
        std::fs::write(kept.join("image/upper/mine"), "x").unwrap();
        ensure(&spec, Some(&kept)).unwrap();
        assert!(kept.join("image/upper/mine").exists());
        std::fs::rename(&root, root.with_extension("old")).unwrap();
        std::fs::create_dir(&root).unwrap();
        assert_eq!(ensure(&spec, Some(&kept)).unwrap_err().kind, ErrorKind::Conflict);
        ensure(&spec, None).unwrap();
    }
}

//! Layers of the host as one tree.
//!
//! The kernel takes layers by path, and only such as are mounted somewhere in this namespace. So they
//! stand below a directory of the new root for a moment, under short names, and the file system holds
//! copies of its own of them afterwards.

use super::mounts::{NOEXEC, RDONLY, Source, Tree, attach, new_tmpfs, open, relative, set_flags};
use super::{CallFailed, During};
use cofferdam_wire::plan::{Overlay, Upper};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, StatVfsMountFlags};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, UnmountFlags};

/// Leads the name of the directory in which layers stand; the number of the overlay follows.
const STAGE: &str = "/.layers-";
/// The name of the upper layer there.
const UPPER: &str = "u";
/// The name there of what hides names of the others.
const VEIL: &str = "v";
/// The size of a stage of its own, and how many files it has at most: a root and a place for each layer.
const STAGE_BYTES: u64 = 64 << 10;
const STAGE_FILES: u64 = 128;

/// Nothing that a layer says of itself is believed: its files may name no other place for their
/// content or for what they are called. Written data reaches the disk as on any file system, so that a
/// layer survives a crash.
const OPTIONS: &[(&str, &str)] = &[
    ("redirect_dir", "nofollow"),
    ("metacopy", "off"),
    ("index", "off"),
    // One device number for the whole tree only where that needs no numbers of files beyond what
    // programs take for exact.
    ("xino", "auto"),
    ("upperdir", "u/upper"),
    ("workdir", "u/work"),
];

impl Tree {
    pub(super) fn overlay(
        &mut self,
        overlay: &Overlay,
        opened: Vec<OwnedFd>,
    ) -> Result<(), CallFailed> {
        let layers = overlay.lower.len();
        if layers == 0 || layers > Overlay::MOST_LAYERS {
            return Err(CallFailed::new(format!("overlay of {layers} layers"), Errno::INVAL));
        }
        let opened = match opened.is_empty() {
            true => overlay.sources().map(|layer| open(Source::of_layer(layer))).collect(),
            false => Ok(opened),
        }?;
        let place = format!("{STAGE}{}", self.overlays);
        self.overlays += 1;
        let made = self.layered(&place, overlay, &opened);
        if made.is_err() {
            self.clear_stage(&place, overlay)?;
        }
        made
    }

    fn layered(
        &mut self,
        place: &str,
        overlay: &Overlay,
        opened: &[OwnedFd],
    ) -> Result<(), CallFailed> {
        let layers = overlay.lower.len();
        let stage = self.stage(place)?;
        let mount = mount_on(&stage, overlay, opened)?;
        for name in veil(overlay).chain(names(layers)).chain(kept(overlay)) {
            rustix::mount::unmount(&*name, UnmountFlags::DETACH)
                .during(|| format!("umount({place:?}/{name})"))?;
            rustix::fs::unlinkat(&stage, &*name, AtFlags::REMOVEDIR)
                .during(|| format!("rmdir({place:?}/{name})"))?;
        }
        rustix::process::fchdir(self.root()?).during(|| "fchdir(new root)".to_owned())?;
        if overlay.path == "/" {
            return self.stand_on(mount);
        }
        match &overlay.upper {
            Upper::Kept(_) => self.remove_stage(place)?,
            // On an image it lies in the space, which nobody sees.
            Upper::Private { .. } if self.image.is_some() => {}
            // What lies in the layer is to be seen through the overlay alone.
            Upper::Private { .. } => self.mask(place)?,
        }
        self.attach_made(mount.as_fd(), &overlay.path, FileType::Directory)
    }

    /// Where the layers are put for the kernel to take them.
    fn stage(&mut self, place: &str) -> Result<OwnedFd, CallFailed> {
        let (above, name) = self.stage_place(place)?;
        match rustix::fs::mkdirat(above, name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(CallFailed::new(format!("mkdir({place:?})"), errno)),
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(above, name, flags, Mode::empty()).during(|| format!("open({place:?})"))
    }

    /// Takes away what stands there of an overlay that could not be made, for the sandbox may do without
    /// it.
    fn clear_stage(&mut self, place: &str, overlay: &Overlay) -> Result<(), CallFailed> {
        let root = self.root()?;
        rustix::process::fchdir(root).during(|| "fchdir(new root)".to_owned())?;
        let (above, name) = self.stage_place(place)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let Ok(stage) = rustix::fs::openat(above, name, flags, Mode::empty()) else {
            return Ok(());
        };
        rustix::process::fchdir(&stage).during(|| format!("fchdir({place:?})"))?;
        for name in veil(overlay).chain(names(overlay.lower.len())).chain(kept(overlay)) {
            match rustix::mount::unmount(&*name, UnmountFlags::DETACH) {
                // Nothing was mounted there yet, or nothing was made.
                Ok(()) | Err(Errno::INVAL | Errno::NOENT) => {}
                Err(errno) => {
                    return Err(CallFailed::new(format!("umount({place:?}/{name})"), errno));
                }
            }
        }
        rustix::process::fchdir(self.root()?).during(|| "fchdir(new root)".to_owned())?;
        self.mask(place)
    }

    /// Where layers stand: at the root; on an image in the space, because the kernel takes no layer that
    /// lies on layers for one that is written.
    fn stage_place<'a>(&mut self, place: &'a str) -> Result<(BorrowedFd<'_>, &'a str), CallFailed> {
        if self.image.is_none() {
            return self.within(place);
        }
        let space = self.space.as_ref();
        let space = space.ok_or_else(|| CallFailed::new("a step before the space", Errno::BADF))?;
        Ok((space.as_fd(), relative(place)))
    }

    fn remove_stage(&mut self, place: &str) -> Result<(), CallFailed> {
        let (above, name) = self.stage_place(place)?;
        rustix::fs::unlinkat(above, name, AtFlags::REMOVEDIR).during(|| format!("rmdir({place:?})"))
    }
}

/// A file system for nothing but the places of layers.
pub(super) fn stage_of_its_own() -> Result<OwnedFd, CallFailed> {
    new_tmpfs(STAGE_BYTES, STAGE_FILES, 0o700)
}

/// Makes an overlay of layers that stand on this stage from here on. That is the working directory then.
pub(super) fn mount_on(
    stage: &OwnedFd,
    overlay: &Overlay,
    opened: &[OwnedFd],
) -> Result<OwnedFd, CallFailed> {
    let layers = overlay.lower.len();
    for lower in opened.iter().take(layers) {
        set_flags(lower.as_fd(), libc::AT_RECURSIVE, RDONLY)?;
    }
    for (name, layer) in names(layers).chain(kept(overlay)).zip(opened) {
        make(stage.as_fd(), &name, 0o700)?;
        attach(layer.as_fd(), stage, &name)?;
    }
    if let Some(lower) = opened.first()
        && let Some(veil) = super::veil::over(lower.as_fd(), &overlay.without)?
    {
        set_flags(veil.as_fd(), 0, RDONLY)?;
        make(stage.as_fd(), VEIL, 0o700)?;
        attach(veil.as_fd(), stage, VEIL)?;
    }
    if let Upper::Private { mode } = &overlay.upper {
        for (name, mode) in [("u", 0o700), ("u/upper", *mode), ("u/work", 0o700)] {
            make(stage.as_fd(), name, mode)?;
        }
    }
    rustix::process::fchdir(stage).during(|| "fchdir(stage)".to_owned())?;
    let lower = veil(overlay).chain(names(layers)).collect::<Vec<_>>().join(":");
    let mount = mount(&lower).map_err(|failed| CallFailed {
        call: format!("{} for {:?} over {:?}", failed.call, overlay.path, sources(overlay)),
        ..failed
    })?;
    if let Some(lower) = opened.first() {
        // What may not be executed where it lies is not executed here.
        let lies = rustix::fs::fstatvfs(lower).during(|| "fstatvfs(layer)".to_owned())?;
        if lies.f_flag.contains(StatVfsMountFlags::NOEXEC) {
            set_flags(mount.as_fd(), 0, NOEXEC)?;
        }
    }
    Ok(mount)
}

fn make(stage: BorrowedFd<'_>, name: &str, mode: u32) -> Result<(), CallFailed> {
    rustix::fs::mkdirat(stage, name, Mode::RWXU).during(|| format!("mkdir({name:?})"))?;
    // Whatever the mask of new files is.
    rustix::fs::chmodat(stage, name, Mode::from(mode), AtFlags::empty())
        .during(|| format!("chmod({name:?})"))
}

/// The names of the lower layers below that, uppermost first.
fn names(layers: usize) -> impl Iterator<Item = String> {
    (0..layers).map(|number| number.to_string())
}

/// The name of what hides names of the others, where something does.
fn veil(overlay: &Overlay) -> impl Iterator<Item = String> {
    (!overlay.without.is_empty()).then(|| VEIL.to_owned()).into_iter()
}

/// The name of the upper layer, where it is one of the host.
fn kept(overlay: &Overlay) -> Option<String> {
    match &overlay.upper {
        Upper::Kept(_) => Some(UPPER.to_owned()),
        Upper::Private { .. } => None,
    }
}

fn sources(overlay: &Overlay) -> Vec<&str> {
    overlay.sources().map(|layer| layer.source.as_str()).collect()
}

/// Mounts the layers that stand below the working directory.
fn mount(lower: &str) -> Result<OwnedFd, CallFailed> {
    let context = rustix::mount::fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)
        .during(|| "fsopen(\"overlay\")".to_owned())?;
    // In a user namespace the kernel lets no other names be used.
    rustix::mount::fsconfig_set_flag(context.as_fd(), "userxattr")
        .during(|| "fsconfig(\"overlay\", userxattr)".to_owned())?;
    for (key, value) in OPTIONS.iter().copied().chain([("lowerdir", lower)]) {
        rustix::mount::fsconfig_set_string(context.as_fd(), key, value)
            .during(|| format!("fsconfig(\"overlay\", {key}={value})"))?;
    }
    rustix::mount::fsconfig_create(context.as_fd()).during(|| "mount an overlay".to_owned())?;
    let flags = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    rustix::mount::fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, flags)
        .during(|| "fsmount(\"overlay\")".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_wire::plan::{Layer, Owner};

    /// What the kernel takes in one option, with the byte that ends it.
    const OPTION_BYTES: usize = 256;

    #[test]
    fn an_overlay_has_a_bounded_number_of_layers() {
        let layer = Layer { source: "/none".to_owned(), owner: Owner::Same, identity: None };
        for (count, errnos) in [
            (0, [Errno::INVAL; 2]),
            (Overlay::MOST_LAYERS + 1, [Errno::INVAL; 2]),
            // The control: these are looked for, which an ordinary user may not.
            (Overlay::MOST_LAYERS, [Errno::NOENT, Errno::PERM]),
        ] {
            let overlay = Overlay {
                lower: vec![layer.clone(); count],
                upper: Upper::Private { mode: 0o755 },
                path: "/w".to_owned(),
                without: Vec::new(),
            };
            let failed = Tree::default().overlay(&overlay, Vec::new()).unwrap_err();
            assert!(errnos.contains(&failed.errno), "{count}: {} {}", failed.call, failed.errno);
        }
        let longest = [VEIL.to_owned()]
            .into_iter()
            .chain(names(Overlay::MOST_LAYERS))
            .collect::<Vec<_>>()
            .join(":");
        assert!(longest.len() < OPTION_BYTES);
    }
}

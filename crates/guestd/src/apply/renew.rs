//! A layer put in the place of another one in a sandbox that stands.
//!
//! Nobody is left in it but its first process, which holds nothing of its workspace.

use super::mounts::{Tree, open};
use super::{CallFailed, During, Source, confine, identity};
use crate::sys;
use cofferdam_wire::message::SetupFailure;
use cofferdam_wire::plan::{Access, Landlock, Op, Overlay, Plan};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::mount::UnmountFlags;
use rustix::thread::UnshareFlags;
use std::path::Path;

/// Opens the layers of an overlay, in a mount namespace of the caller's own.
///
/// The caller has joined the sandbox's user namespace and is still in the host's tree.
pub fn open_layers(overlay: &Overlay) -> Result<Vec<OwnedFd>, SetupFailure> {
    // Whoever has no right in the host's mount namespace has one in a copy of it.
    let copied = sys::unshare(UnshareFlags::NEWNS).during(|| "unshare(CLONE_NEWNS)".to_owned());
    let opened = copied
        .and_then(|()| overlay.sources().map(|layer| open(Source::of_layer(layer))).collect());
    opened.map_err(|failed| failed.in_step("overlay"))
}

/// Mounts an overlay anew from these layers, where it is mounted. What was pinned above it is pinned again,
/// and it is shown wherever else it was. What may be written by these rules may be written there too.
///
/// Answers what keeps the old overlay: its end, for which the kernel writes out what is left to write, begins
/// when this is dropped.
///
/// The caller has joined the sandbox's user and mount namespaces.
pub fn renew_layer(
    plan: &Plan,
    (overlay, opened): (&Overlay, &[OwnedFd]),
    (pins, shown_at): (&[(&str, Access)], &[&str]),
    rules: Option<(BorrowedFd<'_>, &Landlock)>,
) -> Result<OwnedFd, SetupFailure> {
    let renewed = become_inside(plan).and_then(|()| Tree::standing()).and_then(|mut tree| {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let (parent, name) = tree.within(&overlay.path)?;
        let old = rustix::fs::openat(parent, name, flags, Mode::empty())
            .during(|| format!("open({:?})", overlay.path))?;
        // ORDER: from the last to the first, as they lie on each other. What was pinned below a name that was
        // pinned before lies on that, and goes with it.
        let outermost = pins.iter().enumerate().filter(|(place, (path, _))| {
            !pins.iter().take(*place).any(|(above, _)| Path::new(path).starts_with(above))
        });
        let pinned = outermost.rev().map(|(_, (path, _))| *path);
        for path in shown_at.iter().rev().copied().chain(pinned).chain([&*overlay.path]) {
            tree.unmount(path)?;
        }
        let mount = tree.staged(overlay, opened)?;
        tree.attach_at(mount.as_fd(), &overlay.path)?;
        if let Some(rules) = rules {
            confine::allow_writing(rules, &overlay.path)?;
        }
        pins.iter().try_for_each(|(path, access)| tree.pin(path, *access))?;
        shown_at.iter().try_for_each(|path| tree.rebind(&overlay.path, path))?;
        Ok(old)
    });
    renewed.map_err(|failed| failed.in_step("overlay"))
}

/// What is made inside has to belong to an id that the sandbox's user namespace knows.
fn become_inside(plan: &Plan) -> Result<(), CallFailed> {
    let identity = plan.steps.iter().find_map(|step| {
        let Op::Identity { uid, gid } = step.op else { return None };
        Some((uid, gid))
    });
    let Some((uid, gid)) = identity else { return Ok(()) };
    identity::keep_over_user_change()?;
    identity::become_user(uid, gid)
}

impl Tree {
    /// The layers stand in a file system of their own for a moment, in the place of the overlay.
    fn staged(&mut self, overlay: &Overlay, opened: &[OwnedFd]) -> Result<OwnedFd, CallFailed> {
        let stage = super::overlay::stage_of_its_own()?;
        self.attach_at(stage.as_fd(), &overlay.path)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let stage = rustix::fs::openat(&stage, ".", flags, Mode::empty())
            .during(|| "open(stage)".to_owned())?;
        let mount = super::overlay::mount_on(&stage, overlay, opened)?;
        rustix::process::chdir("/").during(|| "chdir(/)".to_owned())?;
        // What stands in it goes with it.
        self.unmount(&overlay.path)?;
        Ok(mount)
    }

    fn unmount(&mut self, path: &str) -> Result<(), CallFailed> {
        let (parent, name) = self.within(path)?;
        rustix::process::fchdir(parent).during(|| format!("fchdir(above {path:?})"))?;
        rustix::mount::unmount(name, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW)
            .during(|| format!("umount({path:?})"))?;
        // What lies below is another directory now.
        self.last = None;
        rustix::process::chdir("/").during(|| "chdir(/)".to_owned())
    }
}

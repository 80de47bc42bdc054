//! The new root, built by descriptors beneath an own file system.

use super::{CallFailed, During};
use crate::sys::{self, Beside, Job, MountAttributes};
use cofferdam_wire::plan::{Access, Bind, Depth, Layer, Owner};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags,
    OpenTreeFlags, UnmountFlags,
};

pub(super) const RDONLY: u64 = 1;
const NOSUID: u64 = 2;
const NODEV: u64 = 4;
pub(super) const NOEXEC: u64 = 8;
const IDMAP: u64 = 0x0010_0000;

/// Paths of the plan are taken beneath the new root and never through a symbolic link. The links
/// that stand in it are the plan's own, and nothing is mounted through them.
const BENEATH: ResolveFlags =
    ResolveFlags::IN_ROOT.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);

/// An empty directory of the new root, to cover directories with.
const EMPTY: &str = "var/empty";

/// The most terminals that programs inside may open. All sandboxes have those together that are not the host's alone.
const MAX_TERMINALS: u32 = 256;

/// The new root while it is built.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) root: Option<OwnedFd>,
    /// The old root, while it goes.
    left: Option<Beside>,
    /// The directory that the last step worked in: steps come sorted.
    pub(super) last: Option<(String, OwnedFd)>,
    /// Covers that are mounted somewhere, to be copied.
    null_cover: Option<OwnedFd>,
    empty_cover: Option<OwnedFd>,
    /// Where directories of the sandbox's own are made in a prepared tree, and how many were.
    pub(super) space: Option<OwnedFd>,
    made: u32,
    /// What is writable until the tree is sealed.
    ways: Vec<OwnedFd>,
    /// How many overlays were made.
    pub(super) overlays: u32,
    /// The device of a root that an image brought. Names there are hostile.
    pub(super) image: Option<u64>,
}

/// What of the host a step shows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source<'a> {
    path: &'a str,
    depth: Depth,
    owner: Owner,
    identity: Option<(u64, u64)>,
}

impl<'a> Source<'a> {
    pub(crate) fn of(bind: &'a Bind) -> Self {
        let Bind { source, depth, owner, identity, .. } = bind;
        Self { path: source, depth: *depth, owner: *owner, identity: *identity }
    }

    /// What is mounted below a layer comes too, because the kernel refuses to leave it out; an overlay
    /// of it is refused where that would show what lies under a mount.
    pub(crate) fn of_layer(layer: &'a Layer) -> Self {
        let Layer { source, owner, identity } = layer;
        Self { path: source, depth: Depth::All, owner: *owner, identity: *identity }
    }
}

pub(super) fn relative(path: &str) -> &str {
    match path.trim_start_matches('/') {
        "" => ".",
        rest => rest,
    }
}

impl Tree {
    pub(super) fn root(&self) -> Result<BorrowedFd<'_>, CallFailed> {
        self.root
            .as_ref()
            .map(AsFd::as_fd)
            .ok_or_else(|| CallFailed::new("a step before the new root", Errno::BADF))
    }

    /// The root of a sandbox that stands.
    pub(super) fn standing() -> Result<Self, CallFailed> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::openat(CWD, "/", flags, Mode::empty())
            .during(|| "open(\"/\")".to_owned())?;
        Ok(Self { root: Some(root), ..Self::default() })
    }

    pub(super) fn private(&self) -> Result<(), CallFailed> {
        let flags = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
        rustix::mount::mount_change("/", flags).during(|| "mount(/, MS_PRIVATE)".to_owned())
    }

    pub(super) fn new_root(&mut self, size: u64, inodes: u64) -> Result<(), CallFailed> {
        let mount = new_tmpfs(size, inodes, 0o755)?;
        // The old root stays what `/` means until the pivot, because a path that begins with `/`
        // does not look at what is mounted on top of the root itself.
        attach(mount.as_fd(), CWD, "/")?;
        self.root = Some(mount);
        self.directory(&format!("/{EMPTY}"), 0o555)
    }

    pub(super) fn directory(&self, path: &str, mode: u32) -> Result<(), CallFailed> {
        if self.image.is_some() {
            return self.directory_in_image(path, mode);
        }
        let root = self.root()?;
        self.below_its_parent(path, |path| {
            match rustix::fs::mkdirat(root, path, Mode::from(mode)) {
                Err(Errno::EXIST) => Ok(()),
                other => other,
            }
        })
        .during(|| format!("mkdir({path:?})"))
    }

    /// Tries what makes a path, and makes its parent only where that is missing: it rarely is.
    fn below_its_parent<T>(
        &self,
        path: &str,
        make: impl Fn(&str) -> rustix::io::Result<T>,
    ) -> rustix::io::Result<T> {
        let path = relative(path);
        match (make(path), path.rsplit_once('/')) {
            (Err(Errno::NOENT), Some((parent, _))) => {
                self.directory(parent, 0o755).map_err(|failed| failed.errno)?;
                make(path)
            }
            (made, _) => made,
        }
    }

    pub(super) fn file(&self, path: &str, content: &[u8], mode: u32) -> Result<(), CallFailed> {
        let root = self.root()?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let create = |dir: BorrowedFd<'_>, name: &str| {
            rustix::fs::openat(dir, name, flags, Mode::from(mode))
        };
        let file = match self.image {
            Some(_) => self.clear_place(path).and_then(|(dir, name)| create(dir.as_fd(), name)),
            None => self.below_its_parent(path, |path| create(root, path)),
        };
        let file = file.during(|| format!("open({path:?}, O_CREAT)"))?;
        if content.is_empty() {
            return Ok(());
        }
        let written = rustix::io::write(&file, content).during(|| format!("write({path:?})"))?;
        if written == content.len() {
            Ok(())
        } else {
            Err(CallFailed::new(format!("write({path:?})"), Errno::NOSPC))
        }
    }

    pub(super) fn symlink(&self, path: &str, target: &str) -> Result<(), CallFailed> {
        let root = self.root()?;
        let made = match self.image {
            Some(_) => {
                let place = self.clear_place(path);
                place.and_then(|(dir, name)| rustix::fs::symlinkat(target, dir, name))
            }
            None => self.below_its_parent(path, |path| rustix::fs::symlinkat(target, root, path)),
        };
        made.during(|| format!("symlink({target:?}, {path:?})"))
    }

    pub(super) fn tmpfs(
        &mut self,
        path: &str,
        size: u64,
        inodes: u64,
        mode: u32,
    ) -> Result<(), CallFailed> {
        let mount = new_tmpfs(size, inodes, mode)?;
        self.attach_made(mount.as_fd(), path, FileType::Directory)
    }

    pub(super) fn bind(&mut self, bind: &Bind, opened: Option<OwnedFd>) -> Result<(), CallFailed> {
        let mount = opened.map_or_else(|| open(Source::of(bind)), Ok)?;
        restrict(mount.as_fd(), bind)?;
        let kind = file_type(mount.as_fd())?;
        self.attach_made(mount.as_fd(), &bind.path, kind).map_err(|failed| CallFailed {
            call: format!("{} of {:?} on {:?}", failed.call, bind.source, bind.path),
            errno: failed.errno,
        })
    }

    pub(super) fn rebind(&mut self, from: &str, path: &str) -> Result<(), CallFailed> {
        let (parent, name) = self.within(from)?;
        let mount =
            clone_tree(parent, name, Depth::All).during(|| format!("open_tree({from:?})"))?;
        let kind = file_type(mount.as_fd())?;
        self.attach_made(mount.as_fd(), path, kind)
    }

    pub(super) fn proc(&mut self, path: &str) -> Result<(), CallFailed> {
        let mount = new_mount("proc", &[], RDONLY_NEVER)?;
        self.attach_made(mount.as_fd(), path, FileType::Directory)
    }

    pub(super) fn devpts(&mut self, path: &str) -> Result<(), CallFailed> {
        let options = [
            ("mode", "620".to_owned()),
            ("ptmxmode", "666".to_owned()),
            ("max", MAX_TERMINALS.to_string()),
        ];
        let flags = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        let mount = new_mount("devpts", &options, flags)?;
        self.attach_made(mount.as_fd(), path, FileType::Directory)
    }

    pub(super) fn mask(&mut self, path: &str) -> Result<(), CallFailed> {
        let is_directory = match self.kind(path) {
            Ok(kind) => kind == FileType::Directory,
            Err(failed) if failed.errno == Errno::NOENT => return Ok(()),
            Err(failed) => return Err(failed),
        };
        let known = if is_directory { &self.empty_cover } else { &self.null_cover };
        // A copy of a cover that is in use already has its flags.
        if let Some(known) = known {
            let cover =
                clone_tree(known, "", Depth::One).during(|| "open_tree(cover)".to_owned())?;
            return self.attach_at(cover.as_fd(), path);
        }
        let cover = if is_directory {
            let holder = match (&self.space, self.image) {
                // Nothing that an image has under this name is known to be empty.
                (Some(space), Some(_)) => space.as_fd(),
                _ => self.root()?,
            };
            clone_tree(holder, EMPTY, Depth::One).during(|| "open_tree(empty)".to_owned())?
        } else {
            null_device()?
        };
        set_flags(cover.as_fd(), 0, RDONLY | NOSUID | NOEXEC)?;
        self.attach_at(cover.as_fd(), path)?;
        let place = if is_directory { &mut self.empty_cover } else { &mut self.null_cover };
        *place = Some(cover);
        Ok(())
    }

    /// Pins a name. Where the directory that it is in is gone, or the directory itself that was only to stay in
    /// its place, nothing is left that it protected; the host sees what comes there.
    pub(super) fn pin(&mut self, path: &str, access: Access) -> Result<(), CallFailed> {
        let is_gone = |failed: &CallFailed| matches!(failed.errno, Errno::NOENT | Errno::NOTDIR);
        match self.within(path).map(drop) {
            Err(failed) if is_gone(&failed) => return Ok(()),
            found => found?,
        }
        match (self.pin_from(path, path, access), access) {
            (Err(failed), Access::ReadWrite) if is_gone(&failed) => Ok(()),
            (pinned, _) => pinned,
        }
    }

    /// Makes a part of the tree a mount at another place of it, where something has to stand.
    pub(super) fn pin_from(
        &mut self,
        from: &str,
        path: &str,
        access: Access,
    ) -> Result<(), CallFailed> {
        let (parent, name) = self.within(from)?;
        let mount =
            clone_tree(parent, name, Depth::All).during(|| format!("open_tree({from:?})"))?;
        let flags = match access {
            Access::ReadOnly => RDONLY,
            Access::ReadWrite => 0,
        };
        set_flags(mount.as_fd(), libc::AT_RECURSIVE, flags | NOSUID | NODEV)?;
        self.attach_at(mount.as_fd(), path)
    }

    pub(super) fn pin_all(&mut self, pins: &[(String, Access)]) -> Result<(), CallFailed> {
        pins.iter().try_for_each(|(path, access)| self.pin(path, *access))
    }

    /// Mounts the space where its first private directory will cover it, because copies can be
    /// taken only of what is mounted.
    pub(super) fn space(&mut self, path: &str, size: u64, inodes: u64) -> Result<(), CallFailed> {
        let mount = new_tmpfs(size, inodes, 0o755)?;
        self.attach_made(mount.as_fd(), path, FileType::Directory)?;
        self.space = Some(mount);
        Ok(())
    }

    pub(super) fn private_directory(
        &mut self,
        path: &str,
        mode: u32,
    ) -> Result<OwnedFd, CallFailed> {
        let space = self.space.as_ref();
        let space = space.ok_or_else(|| CallFailed::new("a step before the space", Errno::BADF))?;
        // Numbers, because two of them may have the same last name.
        let name = self.made.to_string();
        rustix::fs::mkdirat(space, &name, Mode::from(mode))
            .during(|| format!("mkdir({path:?} of the space)"))?;
        let mount =
            clone_tree(space, &name, Depth::One).during(|| format!("open_tree({path:?})"))?;
        self.made += 1;
        self.attach_made(mount.as_fd(), path, FileType::Directory)?;
        Ok(mount)
    }

    pub(super) fn way(&mut self, path: &str) -> Result<(), CallFailed> {
        let mount = self.private_directory(path, 0o755)?;
        self.ways.push(mount);
        Ok(())
    }

    pub(super) fn seal(&self) -> Result<(), CallFailed> {
        if self.space.is_none() {
            return set_flags(self.root()?, 0, RDONLY | NOSUID | NODEV);
        }
        // The root was sealed when it was prepared.
        self.ways.iter().try_for_each(|way| set_flags(way.as_fd(), 0, RDONLY | NOSUID | NODEV))
    }

    pub(super) fn pivot(&mut self) -> Result<(), CallFailed> {
        rustix::process::fchdir(self.root()?).during(|| "fchdir(new root)".to_owned())?;
        rustix::process::pivot_root(".", ".").during(|| "pivot_root".to_owned())?;
        if self.image.is_some() {
            // On the old root lies what the image stood on, and only what lies uppermost is detached.
            rustix::mount::unmount(".", UnmountFlags::DETACH)
                .during(|| "umount(what the image stood on)".to_owned())?;
        }
        // The old root lies on the new one now, where only the working directory leads to it. The
        // kernel takes its time to let go of it.
        let left = Beside::start(Job::Unmount).during(|| "clone(CLONE_VM)".to_owned())?;
        self.left = Some(left);
        rustix::process::chdir("/").during(|| "chdir(/)".to_owned())
    }

    /// Waits until the old root is gone.
    pub(super) fn finish(&mut self) -> Result<(), CallFailed> {
        let left = self.left.take();
        left.map_or(Ok(()), Beside::finish).during(|| "umount(old root)".to_owned())?;
        self.stands_alone()
    }

    /// The directory that a path is in, never reached through a link, and its name there.
    pub(super) fn within<'a>(
        &mut self,
        path: &'a str,
    ) -> Result<(BorrowedFd<'_>, &'a str), CallFailed> {
        let path = relative(path);
        let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
        if name == ".." {
            return Err(CallFailed::new(format!("open({path:?})"), Errno::INVAL));
        }
        if above.is_empty() {
            return Ok((self.root()?, name));
        }
        if self.last.as_ref().is_none_or(|(known, _)| known != above) {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let opened = rustix::fs::openat2(self.root()?, above, flags, Mode::empty(), BENEATH)
                .during(|| format!("openat2({above:?})"))?;
            self.last = Some((above.to_owned(), opened));
        }
        match &self.last {
            Some((_, directory)) => Ok((directory.as_fd(), name)),
            None => Err(CallFailed::new(format!("openat2({above:?})"), Errno::BADF)),
        }
    }

    /// What stands at a path of the new root, itself if it is a link.
    fn kind(&mut self, path: &str) -> Result<FileType, CallFailed> {
        let (parent, name) = self.within(path)?;
        let stat = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)
            .during(|| format!("fstatat({path:?})"))?;
        Ok(FileType::from_raw_mode(stat.st_mode))
    }

    /// Mounts on what stands at a path. A link there is not followed.
    pub(super) fn attach_at(
        &mut self,
        mount: BorrowedFd<'_>,
        path: &str,
    ) -> Result<(), CallFailed> {
        let (parent, name) = self.within(path)?;
        attach(mount, parent, name)?;
        let path = relative(path);
        let covers = |known: &str| {
            known.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        // What lies below is another directory now.
        let _ = self.last.take_if(|(known, _)| covers(known));
        Ok(())
    }

    /// Mounts on a path, and makes what it lies on where that is not there.
    pub(super) fn attach_made(
        &mut self,
        mount: BorrowedFd<'_>,
        path: &str,
        kind: FileType,
    ) -> Result<(), CallFailed> {
        match self.make(path, kind) {
            Err(failed) if failed.errno == Errno::NOENT => {
                if let Some((above, _)) = relative(path).rsplit_once('/') {
                    self.directory(above, 0o755)?;
                }
                self.make(path, kind)?;
            }
            other => other?,
        }
        self.attach_at(mount, path)
    }

    /// Makes something to mount on in a directory that is there.
    fn make(&mut self, path: &str, kind: FileType) -> Result<(), CallFailed> {
        if self.image.is_some() {
            return self.make_in_image(path, kind);
        }
        let (parent, name) = self.within(path)?;
        let made = if kind == FileType::Directory {
            rustix::fs::mkdirat(parent, name, Mode::from(0o755))
        } else {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            rustix::fs::openat(parent, name, flags, Mode::from(0o644)).map(drop)
        };
        match made {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(errno) => Err(CallFailed::new(format!("make {path:?}"), errno)),
        }
    }
}

const RDONLY_NEVER: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_NOSUID
    .union(MountAttrFlags::MOUNT_ATTR_NODEV)
    .union(MountAttrFlags::MOUNT_ATTR_NOEXEC);

pub(super) fn new_tmpfs(size: u64, inodes: u64, mode: u32) -> Result<OwnedFd, CallFailed> {
    let options = [
        ("size", size.to_string()),
        ("nr_inodes", inodes.to_string()),
        ("mode", format!("{mode:o}")),
    ];
    let flags = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    new_mount("tmpfs", &options, flags)
}

fn new_mount(
    kind: &str,
    options: &[(&str, String)],
    flags: MountAttrFlags,
) -> Result<OwnedFd, CallFailed> {
    let context = rustix::mount::fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)
        .during(|| format!("fsopen({kind:?})"))?;
    for (key, value) in options {
        rustix::mount::fsconfig_set_string(context.as_fd(), *key, value.as_str())
            .during(|| format!("fsconfig({kind:?}, {key}={value})"))?;
    }
    rustix::mount::fsconfig_create(context.as_fd())
        .during(|| format!("fsconfig({kind:?}, create)"))?;
    rustix::mount::fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, flags)
        .during(|| format!("fsmount({kind:?})"))
}

/// A detached copy of the mount at a path.
pub(crate) fn clone_tree(dir: impl AsFd, path: &str, depth: Depth) -> Result<OwnedFd, Errno> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_SYMLINK_NOFOLLOW;
    match depth {
        Depth::All => rustix::mount::open_tree(dir, path, flags | OpenTreeFlags::AT_RECURSIVE),
        // Where the caller's namespace locked mounts together, one alone cannot be copied.
        Depth::One => match rustix::mount::open_tree(dir.as_fd(), path, flags) {
            Err(Errno::INVAL) => {
                rustix::mount::open_tree(dir, path, flags | OpenTreeFlags::AT_RECURSIVE)
            }
            other => other,
        },
    }
}

/// Opens a source on the host and gives it its owner.
///
/// `owner` is a user namespace that maps the owner on disk to the sandbox's user outside.
pub(crate) fn prepare(
    source: Source<'_>,
    owner: Option<BorrowedFd<'_>>,
) -> Result<OwnedFd, CallFailed> {
    let mount = open_source(source)?;
    if let Some(namespace) = owner {
        let attributes = MountAttributes {
            set: IDMAP,
            userns_fd: u64::try_from(namespace.as_raw_fd()).unwrap_or(u64::MAX),
            ..MountAttributes::default()
        };
        sys::mount_setattr(mount.as_fd(), libc::AT_RECURSIVE, &attributes)
            .during(|| format!("mount_setattr({:?}, MOUNT_ATTR_IDMAP)", source.path))?;
    }
    Ok(mount)
}

/// Opens a source inside.
pub(super) fn open(source: Source<'_>) -> Result<OwnedFd, CallFailed> {
    match source.owner {
        Owner::Same => open_source(source),
        Owner::Mapped { .. } => {
            let call = format!("id-mapped mount of {:?}", source.path);
            Err(CallFailed::new(call, Errno::PERM))
        }
    }
}

/// Opens a source and checks that it still is what the plan was made for.
fn open_source(source: Source<'_>) -> Result<OwnedFd, CallFailed> {
    let mount = clone_tree(CWD, source.path, source.depth)
        .during(|| format!("open_tree({:?})", source.path))?;
    if let Some((device, inode)) = source.identity {
        let stat = rustix::fs::fstat(&mount).during(|| format!("fstat({:?})", source.path))?;
        if (stat.st_dev, stat.st_ino) != (device, inode) {
            return Err(CallFailed::new(format!("{:?} was replaced", source.path), Errno::STALE));
        }
    }
    Ok(mount)
}

fn restrict(mount: BorrowedFd<'_>, bind: &Bind) -> Result<(), CallFailed> {
    let access = match bind.access {
        Access::ReadOnly => RDONLY,
        Access::ReadWrite => 0,
    };
    let devices = if bind.devices { NOEXEC } else { NODEV };
    let depth = match bind.depth {
        Depth::One => 0,
        Depth::All => libc::AT_RECURSIVE,
    };
    // A copy of one mount may have come with locked ones below it: restrict them all.
    set_flags(mount, depth | libc::AT_RECURSIVE, access | devices | NOSUID)
}

pub(super) fn set_flags(mount: BorrowedFd<'_>, depth: i32, set: u64) -> Result<(), CallFailed> {
    let attributes = MountAttributes { set, ..MountAttributes::default() };
    sys::mount_setattr(mount, depth, &attributes).during(|| format!("mount_setattr({set:#x})"))
}

fn null_device() -> Result<OwnedFd, CallFailed> {
    let mount = clone_tree(CWD, "/dev/null", Depth::One)
        .during(|| "open_tree(\"/dev/null\")".to_owned())?;
    let stat = rustix::fs::fstat(&mount).during(|| "fstat(\"/dev/null\")".to_owned())?;
    // HOSTILE: a link in the place of /dev/null was once used to mask nothing, or too much.
    let is_null = FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice
        && stat.st_rdev == rustix::fs::makedev(1, 3);
    if is_null {
        Ok(mount)
    } else {
        Err(CallFailed::new("\"/dev/null\" is another file", Errno::NODEV))
    }
}

fn file_type(fd: BorrowedFd<'_>) -> Result<FileType, CallFailed> {
    let stat = rustix::fs::fstat(fd).during(|| "fstat(mount)".to_owned())?;
    Ok(FileType::from_raw_mode(stat.st_mode))
}

pub(super) fn attach(mount: BorrowedFd<'_>, dir: impl AsFd, path: &str) -> Result<(), CallFailed> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH
        | if path.is_empty() {
            MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH
        } else {
            MoveMountFlags::empty()
        };
    rustix::mount::move_mount(mount, "", dir, path, flags)
        .during(|| format!("move_mount({path:?})"))
}

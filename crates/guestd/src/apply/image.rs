//! A root that an image brought.
//!
//! HOSTILE: every name in it was chosen by somebody else. A link in the place of `/proc`, or on the way
//! to a workspace, would have a mount made elsewhere, and before the host's tree is left an absolute
//! link leads there. So each path is walked name by name from the root, no link is followed, and what
//! stands in the way is removed: from the layer that takes what is written, never from what a mount
//! shows of the host.

use super::mounts::{Tree, attach, clone_tree, relative};
use super::{CallFailed, During};
use cofferdam_wire::plan::{Depth, Overlay};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, StatxFlags};
use rustix::io::Errno;

impl Tree {
    /// Makes a tree the new root. What was that until now holds directories of the sandbox's own.
    pub(super) fn stand_on(&mut self, mount: OwnedFd) -> Result<(), CallFailed> {
        let space = self.root.take();
        let space =
            space.ok_or_else(|| CallFailed::new("an image before the root", Errno::BADF))?;
        let stat = rustix::fs::fstat(&mount).during(|| "fstat(image)".to_owned())?;
        // ORDER: before the copy, because only of what is mounted can one be taken.
        attach(mount.as_fd(), &space, "")?;
        let copy = clone_tree(&space, "", Depth::One).during(|| "open_tree(space)".to_owned())?;
        self.root = Some(mount);
        self.image = Some(stat.st_dev);
        self.last = None;
        self.attach_made(copy.as_fd(), Overlay::SPACE, FileType::Directory)?;
        self.space = Some(copy);
        Ok(())
    }

    /// Fails where something still lies on the root: the way up from it would lead there.
    pub(super) fn stands_alone(&self) -> Result<(), CallFailed> {
        if self.image.is_none() {
            return Ok(());
        }
        let mount = |dir: BorrowedFd<'_>, path: &str| {
            let flags = AtFlags::EMPTY_PATH | AtFlags::NO_AUTOMOUNT;
            let found = rustix::fs::statx(dir, path, flags, StatxFlags::MNT_ID)?;
            Ok((found.stx_mnt_id, found.stx_ino))
        };
        let root = self.root()?;
        let found = mount(root, "").and_then(|root| Ok((root, mount(CWD, "/..")?)));
        match found.during(|| "statx(\"/..\")".to_owned())? {
            (root, up) if root == up => Ok(()),
            _ => Err(CallFailed::new("something lies on the new root", Errno::BUSY)),
        }
    }

    pub(super) fn directory_in_image(&self, path: &str, mode: u32) -> Result<(), CallFailed> {
        let made = self.way_to(path).and_then(|(dir, name)| self.enter(dir.as_fd(), name, mode));
        made.map(drop).during(|| format!("mkdir({path:?})"))
    }

    /// Makes the directory that commands start in, as they would: through the image's own links, which lead
    /// within the root, and in the place of nothing.
    pub(super) fn start(&mut self, path: &str) -> Result<(), CallFailed> {
        // ORDER: the host's tree lies on the root until then, and a link up from the root would lead there.
        self.finish()?;
        let root = self.root()?;
        Self::start_below(root, relative(path)).during(|| format!("mkdir({path:?})"))
    }

    fn start_below(root: BorrowedFd<'_>, path: &str) -> rustix::io::Result<()> {
        let mut at = rustix::io::fcntl_dupfd_cloexec(root, 3)?;
        let ends = path.match_indices('/').map(|(end, _)| end).chain([path.len()]);
        for end in ends {
            let walked = path.get(..end).unwrap_or_default();
            let found = inside(root, walked);
            at = match found {
                Err(Errno::NOENT) => {
                    let name = walked.rsplit('/').next().unwrap_or_default();
                    rustix::fs::mkdirat(&at, name, Mode::from(0o755))?;
                    inside(root, walked)?
                }
                found => found?,
            };
        }
        Ok(())
    }

    /// Makes something to mount on.
    pub(super) fn make_in_image(&self, path: &str, kind: FileType) -> Result<(), CallFailed> {
        let made = if kind == FileType::Directory {
            self.way_to(path).and_then(|(dir, name)| self.enter(dir.as_fd(), name, 0o755)).map(drop)
        } else {
            self.file_to_mount_on(path)
        };
        made.during(|| format!("make {path:?}"))
    }

    fn file_to_mount_on(&self, path: &str) -> rustix::io::Result<()> {
        let (dir, name) = self.way_to(path)?;
        if kind_of(dir.as_fd(), name)? == Some(FileType::RegularFile) {
            return Ok(());
        }
        self.clear(dir.as_fd(), name)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        rustix::fs::openat(dir, name, flags, Mode::from(0o644)).map(drop)
    }

    /// The directory that a path is in, and a name there that nothing has.
    pub(super) fn clear_place<'a>(&self, path: &'a str) -> rustix::io::Result<(OwnedFd, &'a str)> {
        let (dir, name) = self.way_to(path)?;
        self.clear(dir.as_fd(), name)?;
        Ok((dir, name))
    }

    /// The directory that a path is in, made as far as it is not there, and the last name.
    fn way_to<'a>(&self, path: &'a str) -> rustix::io::Result<(OwnedFd, &'a str)> {
        let path = relative(path);
        let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
        if matches!(name, "" | "." | "..") {
            return Err(Errno::INVAL);
        }
        let root = self.root().map_err(|failed| failed.errno)?;
        let mut at = rustix::io::fcntl_dupfd_cloexec(root, 3)?;
        for name in above.split('/').filter(|name| !name.is_empty()) {
            at = self.enter(at.as_fd(), name, 0o755)?;
        }
        Ok((at, name))
    }

    /// Opens a directory, made where it is not there. A link or a file of the image gives way.
    fn enter(&self, dir: BorrowedFd<'_>, name: &str, mode: u32) -> rustix::io::Result<OwnedFd> {
        match open(dir, name) {
            Err(Errno::NOENT) => {}
            Err(Errno::LOOP | Errno::NOTDIR) => self.clear(dir, name)?,
            other => return other,
        }
        rustix::fs::mkdirat(dir, name, Mode::from(mode))?;
        open(dir, name)
    }

    /// Removes a name that the image has. A directory must be empty.
    fn clear(&self, dir: BorrowedFd<'_>, name: &str) -> rustix::io::Result<()> {
        let flags = match kind_of(dir, name)? {
            None => return Ok(()),
            Some(FileType::Directory) => AtFlags::REMOVEDIR,
            Some(_) => AtFlags::empty(),
        };
        // What a mount shows of the host is not ours to remove.
        if Some(rustix::fs::fstat(dir)?.st_dev) != self.image {
            return Err(Errno::EXIST);
        }
        rustix::fs::unlinkat(dir, name, flags)
    }
}

/// What stands under a name, itself if it is a link.
fn kind_of(dir: BorrowedFd<'_>, name: &str) -> rustix::io::Result<Option<FileType>> {
    match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(FileType::from_raw_mode(stat.st_mode))),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// How often a way is walked that leads up somewhere. Where anything is mounted or moved anywhere on the machine
/// meanwhile, the kernel cannot tell whether it stayed inside, and asks to try again.
const MOST_WALKS: usize = 1000;

/// Opens a directory as a command would find it once this is the root.
fn inside(root: BorrowedFd<'_>, path: &str) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let rules = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    let walk = || rustix::fs::openat2(root, path, flags, Mode::empty(), rules);
    let mut walked = walk();
    for _ in 1..MOST_WALKS {
        if !matches!(walked, Err(Errno::AGAIN)) {
            break;
        }
        rustix::thread::sched_yield();
        walked = walk();
    }
    walked
}

fn open(dir: BorrowedFd<'_>, name: &str) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    if name == ".." {
        return Err(Errno::INVAL);
    }
    rustix::fs::openat(dir, name, flags, Mode::empty())
}

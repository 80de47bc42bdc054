//! Names that become mounts of their own.

use super::mounts::{NODEV, NOSUID, RDONLY, Tree, clone_tree, file_type, set_flags};
use super::{CallFailed, During, NamedPin};
use cofferdam_wire::plan::{Access, Depth};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::FileType;
use rustix::io::Errno;

impl Tree {
    /// Pins a name. Where the directory that it is in is gone, or the directory itself that was only to stay in
    /// its place, nothing is left that it protected; the host sees what comes there.
    ///
    /// What is `open` in it becomes a mount that can be written as far as it could be before, and no further:
    /// what the host or the plan shows read-only there stays so.
    pub(super) fn pin(
        &mut self,
        path: &str,
        access: Access,
        open: &[String],
    ) -> Result<(), CallFailed> {
        match self.within(path).map(drop) {
            Err(failed) if is_gone(&failed) => return Ok(()),
            found => found?,
        }
        // ORDER: copied before, as what lets them be written or not has left them.
        let kept = self.copies(open)?;
        match (self.pin_from(path, path, access), access) {
            (Err(failed), Access::ReadWrite) if is_gone(&failed) => return Ok(()),
            (pinned, _) => pinned?,
        }
        for (path, mount) in kept {
            match self.attach_at(mount.as_fd(), path) {
                Err(failed) if is_gone(&failed) => {}
                attached => attached?,
            }
        }
        Ok(())
    }

    /// Copies of directories with all that is mounted there. What is none any more is left out, and is then
    /// as what it lies in.
    fn copies<'p>(&mut self, paths: &'p [String]) -> Result<Vec<(&'p str, OwnedFd)>, CallFailed> {
        let mut copies = Vec::new();
        for path in paths {
            let (parent, name) = match self.within(path) {
                Err(failed) if is_gone(&failed) => continue,
                found => found?,
            };
            let mount = match clone_tree(parent, name, Depth::All) {
                Err(Errno::NOENT | Errno::NOTDIR) => continue,
                copied => copied.during(|| format!("open_tree({path:?})"))?,
            };
            if file_type(mount.as_fd())? == FileType::Directory {
                set_flags(mount.as_fd(), libc::AT_RECURSIVE, NOSUID | NODEV)?;
                copies.push((path.as_str(), mount));
            }
        }
        Ok(copies)
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

    pub(super) fn pin_all(&mut self, pins: &[NamedPin]) -> Result<(), CallFailed> {
        pins.iter().try_for_each(|pin| self.pin(&pin.path, pin.access, &pin.open))
    }
}

/// Whether nothing stands there any more.
fn is_gone(failed: &CallFailed) -> bool {
    matches!(failed.errno, Errno::NOENT | Errno::NOTDIR)
}

//! Names that are made mounts of their own, so that they stay what they are.

use super::mounts::{NODEV, NOSUID, RDONLY, Tree, clone_tree, set_flags};
use super::{CallFailed, During};
use cofferdam_wire::plan::{Access, Depth};
use rustix::fd::AsFd;
use rustix::io::Errno;

impl Tree {
    /// Takes a part of the tree as it is now, for its pin: what it lies in is pinned read-only before that.
    /// What is not there needs none.
    pub(super) fn keep(&mut self, path: &str) -> Result<(), CallFailed> {
        let taken = self.within(path).and_then(|(parent, name)| {
            clone_tree(parent, name, Depth::All).during(|| format!("open_tree({path:?})"))
        });
        match taken {
            Ok(mount) => {
                self.kept.insert(path.to_owned(), mount);
                Ok(())
            }
            Err(failed) if is_gone(&failed) => Ok(()),
            Err(failed) => Err(failed),
        }
    }

    /// Pins a name. Where the directory that it is in is gone, or the directory itself that was only to stay in
    /// its place, nothing is left that it protected; the host sees what comes there.
    pub(super) fn pin(&mut self, path: &str, access: Access) -> Result<(), CallFailed> {
        match self.within(path).map(drop) {
            Err(failed) if is_gone(&failed) => return Ok(()),
            found => found?,
        }
        let pinned = match (self.kept.remove(path), access) {
            (Some(kept), Access::ReadWrite) => {
                // What it was taken from may be read-only itself, and then it stays so.
                set_flags(kept.as_fd(), libc::AT_RECURSIVE, NOSUID | NODEV)
                    .and_then(|()| self.attach_at(kept.as_fd(), path))
            }
            (_, access) => self.pin_from(path, path, access),
        };
        match (pinned, access) {
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

    /// Pins all of these, parents first, after what is kept of them.
    pub(super) fn pin_all(
        &mut self,
        kept: &[String],
        pins: &[(String, Access)],
    ) -> Result<(), CallFailed> {
        kept.iter().try_for_each(|path| self.keep(path))?;
        pins.iter().try_for_each(|(path, access)| self.pin(path, *access))
    }
}

fn is_gone(failed: &CallFailed) -> bool {
    matches!(failed.errno, Errno::NOENT | Errno::NOTDIR)
}

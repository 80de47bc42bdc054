//! Changes that are dropped from a layer which nobody has mounted.
//!
//! What a path had in the upper directory goes, with all below it, and the workspace shows through
//! again. Each path goes in one moment; a crash leaves some gone and the others as they were.

use super::clear;
use super::content::failed;
use super::layer::Layer;
use super::look::{Kind, Seen, look, names, open};
use super::revert::{Place, hidden as hidden_by};
use super::walk::MAX_LAYER_ENTRIES;
use super::writable::Writable;
use crate::cow::base::changes_of_tree_until_ns;
use crate::oneshot::unique;
use cofferdam_core::{Error, GuestPath, Result};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags, RenameFlags};
use rustix::io::Errno;

/// Leads the name of a directory, in the folder of a layer, of what is being thrown away.
const TRASH: &str = "discarded-";

impl Layer {
    /// Drops what the layer has at these paths, or all of it. Paths where it has nothing are as they
    /// should be. Nobody may have the layer mounted.
    pub fn discard(&mut self, paths: &[GuestPath]) -> Result<()> {
        self.empty_trash()?;
        for path in paths {
            self.check(path)?;
        }
        // ORDER: what the workspace gets from here on is news.
        let top = Seen::of(&self.workspace)
            .map_err(|errno| self.failed("look at what lies below", errno))?;
        let at_ns = changes_of_tree_until_ns(top.changed_ns);
        let name = format!("{TRASH}{}", unique());
        let at = |errno| self.failed("make a directory in", errno);
        rustix::fs::mkdirat(&self.folder, name.as_str(), Mode::RWXU).map_err(at)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
        let trash = open(self.folder.as_fd(), name.as_bytes(), flags).map_err(at)?;
        let dropped = match self.listing.clone() {
            Some(listing) => self.revert(listing, paths, &trash),
            None => self.drop_all(&trash, paths),
        };
        // ORDER: once it is done; what is not noted is told as a conflict again.
        let noted = match dropped {
            Ok(paths) => self.dropped.add(&self.folder, paths, at_ns),
            Err(error) => Err(error),
        };
        clear::remove(&self.folder, name.as_bytes())
            .map_err(|errno| self.failed("throw away what was discarded from", errno))?;
        noted
    }

    /// Drops, and says of which paths the workspace shows through now.
    fn drop_all(&self, trash: &OwnedFd, paths: &[GuestPath]) -> Result<Vec<Vec<u8>>> {
        let named = || paths.iter().map(|path| path.as_bytes().to_vec()).collect();
        let shown = if paths.is_empty() { vec![Vec::new()] } else { named() };
        let paths: Vec<Vec<u8>> = if paths.is_empty() { self.tops()? } else { named() };
        for (at, path) in paths.iter().enumerate() {
            let place = super::changes::parent(path);
            let name = path.get(place.map_or(0, |place| place.len() + 1)..).unwrap_or_default();
            let flags = OFlags::PATH | OFlags::DIRECTORY;
            let directory = match open(self.upper.as_fd(), place.unwrap_or(b"."), flags) {
                Ok(directory) => directory,
                Err(Errno::NOENT | Errno::NOTDIR) => continue,
                Err(errno) => return Err(self.failed("open a directory of", errno)),
            };
            throw((&directory, name), trash, &at.to_string()).map_err(|errno| {
                let path = String::from_utf8_lossy(path);
                self.failed(&format!("drop {path:?} from"), errno)
            })?;
        }
        Ok(shown)
    }

    /// Whether the workspace shows through where the layer has nothing at a path.
    fn check(&self, path: &GuestPath) -> Result<()> {
        let at = |errno| failed("look at", path, errno);
        if self.listing.is_some() {
            return match self.place(path).map_err(at)? {
                Place::Free => Ok(()),
                Place::HiddenBy(above) => Err(hidden_by(path, &above)),
            };
        }
        let hidden = self.below(&self.workspace, path.as_bytes(), path).map_err(at)?.is_some();
        let mut ways: Vec<GuestPath> = path.ancestors().collect();
        ways.reverse();
        for above in ways {
            let Some((seen, file)) = look(&self.upper, above.as_bytes()).map_err(at)? else {
                return Ok(());
            };
            let hides = match seen.kind {
                Kind::Directory => {
                    let opaque = super::look::mark(&file, &self.mark("opaque")).map_err(at)?;
                    opaque.is_some_and(|value| value == b"y") && hidden
                }
                Kind::File
                | Kind::Link
                | Kind::Fifo
                | Kind::Socket
                | Kind::Device
                | Kind::Mounted => true,
            };
            if hides {
                return Err(hidden_by(path, &above));
            }
        }
        Ok(())
    }

    fn tops(&self) -> Result<Vec<Vec<u8>>> {
        names(&self.upper, MAX_LAYER_ENTRIES).map_err(|errno| self.failed("list", errno))
    }

    /// Removes what one left who died.
    fn empty_trash(&self) -> Result<()> {
        let at = |errno| self.failed("clear", errno);
        let all = names(&self.folder, MAX_LAYER_ENTRIES).map_err(at)?;
        for name in all.iter().filter(|name| name.starts_with(TRASH.as_bytes())) {
            clear::remove(&self.folder, name).map_err(at)?;
        }
        Ok(())
    }

    pub(super) fn failed(&self, what: &str, errno: Errno) -> Error {
        crate::state::io(&format!("{what} the layer"), &self.path, errno)
    }
}

/// Moves what has this name in a directory to a place in the trash. What is not there is gone already.
fn throw((directory, name): (&OwnedFd, &[u8]), trash: &OwnedFd, place: &str) -> Result<(), Errno> {
    let thing = look(directory, name)?;
    let things = [Some(directory), thing.as_ref().map(|(_, file)| file)];
    let _writable = Writable::all(things);
    match rustix::fs::renameat_with(directory, name, trash, place, RenameFlags::NOREPLACE) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno),
    }
}

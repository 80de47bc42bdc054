//! A layer made again of a tree and its blobs.
//!
//! Nobody waits for the disk, for which other programs' writes would have to be waited for too. But what was
//! made is handed to it at once: where a file system commits names after the data that they lead to, as
//! ext4 does, a loss of power leaves the layer that was there before, or this one whole. A file that is taken
//! over from the present layer is on disk as far as it was: handing all of them over takes longer than the
//! rest of an undo, and drops from memory what commands will read.

use super::blobs::Blobs;
use super::content::Copier;
use super::gather::UPPER;
use super::linked::{Present, beneath};
use super::tree::{Content, Entry, Moment, Node, Tree, split};
use super::walk::{directory, failed};
use crate::home;
use cofferdam_core::{Error, ErrorKind, Result};
use rustix::fs::{
    Advice, AtFlags, FileType, Gid, Mode, OFlags, Timespec, Timestamps, Uid, XattrFlags, chmodat,
    chownat, fadvise, fchmod, fchown, fsetxattr, fstat, futimens, linkat, mkdirat, mknodat, openat,
    symlinkat, utimensat,
};
use std::collections::BTreeSet;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::rc::Rc;

/// Where files of several names stand while a layer is made.
const LINKS: &str = ".links";

/// Makes the directory of a layer in this folder, where none is yet. Files that are the same in the present
/// layer, where one is told of, are no copies but get a name more. Says whether there are any of these.
pub(super) fn make<'m>(
    tree: &'m Tree,
    blobs: &'m Blobs,
    folder: &Path,
    present: Option<Present<'m>>,
) -> Result<bool> {
    let repeated = tree.entries().iter().filter_map(|entry| entry.node.first());
    let repeated: BTreeSet<u32> = repeated.collect();
    let has_links = !repeated.is_empty();
    if has_links {
        home::make(folder, LINKS)?;
    }
    let links = if has_links { folder.join(LINKS) } else { folder.to_owned() };
    let mut making = Making {
        blobs,
        links: Rc::new(directory(&links)?),
        repeated,
        present,
        copier: Copier::new(u64::MAX),
        open: Vec::new(),
        is_root: rustix::process::geteuid().is_root(),
    };
    let above = directory(folder)?;
    for (place, entry) in tree.entries().iter().enumerate() {
        making.entry(entry, u32::try_from(place).unwrap_or(u32::MAX), above.as_fd())?;
    }
    making.close_until(None)?;
    let has_taken = making.present.as_ref().is_some_and(Present::has_given);
    drop(making);
    if has_links {
        home::remove(folder, LINKS)?;
    }
    Ok(has_taken)
}

struct Making<'m> {
    blobs: &'m Blobs,
    links: Rc<OwnedFd>,
    /// The places of files that have other names.
    repeated: BTreeSet<u32>,
    /// The layer that is there, where this one takes files from it.
    present: Option<Present<'m>>,
    copier: Copier,
    /// The directories on the way to what is made now. They are settled when all in them is made.
    open: Vec<Open<'m>>,
    is_root: bool,
}

/// A directory that is being filled.
struct Open<'m> {
    entry: &'m Entry,
    made: Rc<OwnedFd>,
    /// The one of the same path in the present layer.
    present: Option<Rc<OwnedFd>>,
}

impl<'m> Making<'m> {
    fn entry(&mut self, entry: &'m Entry, place: u32, above: BorrowedFd<'_>) -> Result<()> {
        let (parent, name) = split(&entry.path);
        if entry.path.is_empty() {
            return self.directory(entry, (above, UPPER.to_bytes()));
        }
        self.close_until(Some(parent))?;
        let Some(Open { made, present, .. }) = self.open.last() else {
            return Err(Error::new(ErrorKind::Io, "a list without a top"));
        };
        let (above, from) = (Rc::clone(made), present.clone());
        let made = |e| failed("make", &entry.path, e);
        match &entry.node {
            Node::Directory => self.directory(entry, (above.as_fd(), name)),
            Node::Again(of) => {
                linkat(&*self.links, of.to_string(), &*above, name, AtFlags::empty()).map_err(made)
            }
            Node::File(_) | Node::Link(_) | Node::Removed | Node::Fifo | Node::Socket
                if self.repeated.contains(&place) =>
            {
                let (links, first) = (Rc::clone(&self.links), place.to_string());
                self.plain(entry, (links.as_fd(), first.as_bytes()))?;
                linkat(&*links, &*first, &*above, name, AtFlags::empty()).map_err(made)
            }
            Node::File(_) | Node::Link(_) | Node::Removed | Node::Fifo | Node::Socket => {
                match self.is_taken(entry, from.as_deref(), (above.as_fd(), name))? {
                    true => Ok(()),
                    false => self.plain(entry, (above.as_fd(), name)),
                }
            }
        }
    }

    /// Whether a file came from the present layer.
    fn is_taken(
        &mut self,
        entry: &Entry,
        from: Option<&OwnedFd>,
        (above, name): (BorrowedFd<'_>, &[u8]),
    ) -> Result<bool> {
        let (Some(present), Some(from), Some(_)) = (&mut self.present, from, entry.node.content())
        else {
            return Ok(false);
        };
        present.link(entry, (from.as_fd(), above), name)
    }

    fn directory(
        &mut self,
        entry: &'m Entry,
        (above, name): (BorrowedFd<'_>, &[u8]),
    ) -> Result<()> {
        let present = match self.open.last() {
            Some(last) => last.present.as_deref().and_then(|from| beneath(from, name)),
            None => self.present.as_ref().and_then(|present| beneath(&present.folder, name)),
        };
        mkdirat(above, name, Mode::RWXU).map_err(|e| failed("make", &entry.path, e))?;
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
        let made = openat(above, name, flags, Mode::empty());
        let made = made.map_err(|e| failed("open", &entry.path, e))?;
        self.open.push(Open { entry, made: Rc::new(made), present: present.map(Rc::new) });
        Ok(())
    }

    /// Settles the directories that this one is not in; all of them where there is none.
    fn close_until(&mut self, parent: Option<&[u8]>) -> Result<()> {
        while let Some(Open { entry, made, .. }) =
            self.open.pop_if(|open| parent.is_none_or(|parent| open.entry.path != parent))
        {
            attributes(&made, entry)?;
            settle(&made, entry, self.is_root)?;
        }
        Ok(())
    }

    /// A file of any kind but a directory.
    fn plain(&mut self, entry: &Entry, (above, name): (BorrowedFd<'_>, &[u8])) -> Result<()> {
        let made = |e| failed("make", &entry.path, e);
        let kind = match &entry.node {
            Node::File(content) => return self.content(entry, *content, (above, name)),
            Node::Link(target) => {
                symlinkat(target.as_slice(), above, name).map_err(made)?;
                None
            }
            Node::Removed => Some(FileType::CharacterDevice),
            Node::Fifo => Some(FileType::Fifo),
            Node::Socket => Some(FileType::Socket),
            Node::Directory | Node::Again(_) => return Ok(()),
        };
        if let Some(kind) = kind {
            let mode = Mode::from_raw_mode(entry.mode);
            mknodat(above, name, kind, mode, 0).map_err(made)?;
            chmodat(above, name, mode, AtFlags::empty())
                .map_err(|e| failed("change the mode of", &entry.path, e))?;
        }
        if self.is_root {
            let (user, group) = (Uid::from_raw(entry.user), Gid::from_raw(entry.group));
            chownat(above, name, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW)
                .map_err(|e| failed("give away", &entry.path, e))?;
        }
        utimensat(above, name, &times(entry), AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|e| failed("date", &entry.path, e))
    }

    fn content(
        &mut self,
        entry: &Entry,
        content: Content,
        (above, name): (BorrowedFd<'_>, &[u8]),
    ) -> Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let make = || {
            openat(above, name, flags, Mode::RUSR | Mode::WUSR)
                .map_err(|e| failed("make", &entry.path, e))
        };
        if let Some(bytes) = self.blobs.packed(content) {
            let target = File::from(make()?);
            target
                .write_all_at(&bytes, 0)
                .map_err(|e| Error::new(ErrorKind::Io, "put back a file").source(e))?;
            let target = target.into();
            attributes(&target, entry)?;
            settle(&target, entry, self.is_root)?;
            return handed_out(&target, entry);
        }
        let source = self.blobs.open(content)?;
        let has = fstat(&source).map_err(|e| failed("look at", &entry.path, e))?.st_size;
        if u64::try_from(has).ok() != Some(content.size) {
            let what =
                format!("the content of {:?} is damaged", String::from_utf8_lossy(&entry.path));
            return Err(Error::new(ErrorKind::Io, what).hint("Go to another point of the history."));
        }
        let target = make()?;
        self.copier.copy((source.as_fd(), target.as_fd()), content.size, &entry.path)?;
        attributes(&target, entry)?;
        settle(&target, entry, self.is_root)?;
        handed_out(&target, entry)
    }
}

/// Begins to write a file out, and waits for nothing.
fn handed_out(file: &OwnedFd, entry: &Entry) -> Result<()> {
    fadvise(file, 0, None, Advice::DontNeed).map_err(|e| failed("write out", &entry.path, e))
}

fn attributes(file: &OwnedFd, entry: &Entry) -> Result<()> {
    for (name, value) in &entry.attributes {
        fsetxattr(file, name.as_slice(), value, XattrFlags::empty())
            .map_err(|e| failed("put back the attributes of", &entry.path, e))?;
    }
    Ok(())
}

/// Owner, permissions and times, in the order in which one does not undo the other.
fn settle(file: &OwnedFd, entry: &Entry, is_root: bool) -> Result<()> {
    let bad = |e| failed("settle", &entry.path, e);
    if is_root {
        let (user, group) = (Uid::from_raw(entry.user), Gid::from_raw(entry.group));
        fchown(file, Some(user), Some(group)).map_err(bad)?;
    }
    fchmod(file, Mode::from_raw_mode(entry.mode)).map_err(bad)?;
    futimens(file, &times(entry)).map_err(bad)
}

fn times(entry: &Entry) -> Timestamps {
    let time = |(seconds, rest): Moment| Timespec { tv_sec: seconds, tv_nsec: i64::from(rest) };
    Timestamps { last_access: time(entry.accessed), last_modification: time(entry.modified) }
}

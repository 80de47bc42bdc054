//! One layer from a tar stream into a directory.
//!
//! HOSTILE: every name, size and number comes from the image. Nothing is reached but by a descriptor
//! beneath the directory, no link is followed, and what a sandbox could not use is not made.
//!
//! What a layer removes becomes what the kernel's overlay understands without any privilege: a
//! character device 0:0 for a name, `user.overlay.opaque` for all of a directory.

mod beneath;

use crate::limits::Bounds;
use crate::tar::{self, Entries, Entry, Kind};
use beneath::Beneath;
use cofferdam_core::{Error, ErrorKind, Result};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, Mode, OFlags, Timespec, Timestamps};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};

/// How many names of what was left out are kept.
const NAMES_KEPT: usize = 20;

/// The most that may follow the last entry. Tools fill up to 1 MiB at the most.
const MAX_BEHIND_BYTES: u64 = 16 << 20;

/// Leads the name of what a layer removes.
const WHITEOUT: &[u8] = b".wh.";

/// Removes everything that lower layers have in a directory.
const OPAQUE: &[u8] = b".wh..wh..opq";

/// Leads names of a file system of old that mean nothing here.
const WHITEOUT_OF_AUFS: &[u8] = b".wh..wh.";

/// What came of a layer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tally {
    /// Entries of all sorts.
    pub entries: u64,
    /// Bytes of all files.
    pub bytes: u64,
    /// Devices and named pipes, which are not made.
    pub left_out: u64,
    /// The first of their names.
    pub left_out_names: Vec<String>,
    /// Entries whose set-id bits were dropped.
    pub set_ids: u64,
    /// Extended attributes that were dropped, capabilities of files among them.
    pub attributes: u64,
    /// Entries of other owners than user and group 0, who are written down and not given.
    pub other_owners: u64,
    /// Whether nothing of the layers below shows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hides_all_below: bool,
}

/// What is asked for, and who is told how far it is.
pub(crate) struct Unpacking<'a> {
    pub(crate) bounds: &'a Bounds,
    /// How many packed bytes have been read so far.
    pub(crate) packed: &'a dyn Fn() -> u64,
    /// Called now and then.
    pub(crate) tell: &'a mut dyn FnMut(),
    /// Where other owners are written down.
    pub(crate) owners: &'a mut dyn Write,
}

/// Unpacks a stream into an empty directory that nobody else writes to, and reads it to its end.
pub(crate) fn unpack(
    stream: impl Read,
    directory: OwnedFd,
    unpacking: Unpacking<'_>,
) -> Result<Tally> {
    let mut layer = Layer {
        beneath: Beneath::new(directory),
        unpacking,
        tally: Tally::default(),
        name_bytes: 0,
        directories: BTreeMap::new(),
    };
    let mut entries = Entries::new(stream);
    while let Some(entry) = entries.next_entry().map_err(unreadable)? {
        layer.entry(&entry, &mut entries)?;
    }
    layer.settle()?;
    layer.drain(entries)?;
    Ok(layer.tally)
}

struct Layer<'a> {
    beneath: Beneath,
    unpacking: Unpacking<'a>,
    tally: Tally,
    name_bytes: u64,
    /// What directories get at the end: until then we must be able to write in them.
    directories: BTreeMap<Vec<u8>, (u32, (i64, u32))>,
}

impl Layer<'_> {
    fn entry<R: Read>(&mut self, entry: &Entry, content: &mut Entries<R>) -> Result<()> {
        self.count(entry)?;
        self.within_ratio(content.position())?;
        let names = names(entry, self.unpacking.bounds.depth)?;
        let Some((name, above)) = names.split_last() else {
            // The layer's own root.
            self.directories.insert(Vec::new(), (entry.mode, entry.mtime));
            return Ok(());
        };
        if *name == OPAQUE {
            // On a root the mark means nothing to the kernel.
            self.tally.hides_all_below |= above.is_empty();
            return self.beneath.directory(above)?.make_opaque().map_err(|e| at(entry, e));
        }
        if name.starts_with(WHITEOUT_OF_AUFS) {
            return Ok(());
        }
        if let Some(removed) = name.strip_prefix(WHITEOUT) {
            return self.whiteout(entry, removed, above);
        }
        self.owner(entry)?;
        match entry.kind {
            Kind::Directory => self.directory(entry, name, above),
            Kind::File => self.file(entry, name, above, content),
            Kind::Symlink => {
                self.clear(entry, name, above)?;
                self.symlink(entry, name, above)
            }
            Kind::HardLink => self.hard_link(entry, name, above),
            Kind::CharacterDevice | Kind::BlockDevice | Kind::Fifo => {
                self.leave_out(entry);
                Ok(())
            }
        }
    }

    fn count(&mut self, entry: &Entry) -> Result<()> {
        let bounds = self.unpacking.bounds;
        self.tally.entries += 1;
        self.name_bytes += (entry.path.len() + entry.target.len()) as u64;
        self.tally.attributes += entry.attributes;
        self.tally.bytes = self.tally.bytes.saturating_add(entry.size);
        let over = |what: &str, most: u64| Err(too_large(format!("more than {most} {what}")));
        if self.tally.entries > bounds.entries {
            return over("entries", bounds.entries);
        }
        if self.name_bytes > bounds.name_bytes {
            return over("bytes of names", bounds.name_bytes);
        }
        if self.tally.bytes > bounds.bytes {
            return over("bytes", bounds.bytes);
        }
        Ok(())
    }

    fn within_ratio(&self, position: u64) -> Result<()> {
        let ratio = self.unpacking.bounds.ratio;
        let most = (self.unpacking.packed)().saturating_mul(ratio);
        if position > Bounds::RATIO_FREE && position > most {
            return Err(too_large(format!("more than {ratio} bytes for each packed one")));
        }
        Ok(())
    }

    fn whiteout(&mut self, entry: &Entry, removed: &[u8], above: &[&[u8]]) -> Result<()> {
        if matches!(removed, b"" | b"." | b"..") {
            return Err(escapes(entry, "removes no name"));
        }
        let parent = self.beneath.directory(above)?;
        parent.white_out(removed).map_err(|errno| at(entry, errno))
    }

    fn directory(&mut self, entry: &Entry, name: &[u8], above: &[&[u8]]) -> Result<()> {
        let parent = self.beneath.directory(above)?;
        parent.replace_by_directory(name).map_err(|errno| at(entry, errno))?;
        let path = [above, &[name]].concat().join(&b'/');
        if entry.mode & 0o6000 != 0 {
            self.tally.set_ids += 1;
        }
        self.directories.insert(path, (entry.mode, entry.mtime));
        Ok(())
    }

    fn file<R: Read>(
        &mut self,
        entry: &Entry,
        name: &[u8],
        above: &[&[u8]],
        content: &mut Entries<R>,
    ) -> Result<()> {
        self.clear(entry, name, above)?;
        let file = {
            let parent = self.beneath.directory(above)?;
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            rustix::fs::openat(parent.fd(), name, flags, Mode::RUSR | Mode::WUSR)
                .map_err(|errno| at(entry, errno))?
        };
        let mut file = std::fs::File::from(file);
        self.copy(entry, content, &mut file)?;
        if entry.mode & 0o6000 != 0 {
            self.tally.set_ids += 1;
        }
        settle(&file, entry.mode & 0o777, entry.mtime).map_err(|errno| at(entry, errno))
    }

    fn copy<R: Read>(
        &mut self,
        entry: &Entry,
        content: &mut Entries<R>,
        file: &mut std::fs::File,
    ) -> Result<()> {
        let mut piece = vec![0; 128 << 10];
        loop {
            let count = content.read(&mut piece).map_err(unreadable)?;
            if count == 0 {
                return Ok(());
            }
            self.within_ratio(content.position())?;
            (self.unpacking.tell)();
            file.write_all(piece.get(..count).unwrap_or_default())
                .map_err(|error| failed(entry, error))?;
        }
    }

    fn symlink(&mut self, entry: &Entry, name: &[u8], above: &[&[u8]]) -> Result<()> {
        // Where it points is for whoever follows it, inside, and not for us.
        let parent = self.beneath.directory(above)?;
        rustix::fs::symlinkat(&entry.target[..], parent.fd(), name)
            .map_err(|errno| at(entry, errno))?;
        let times = timestamps(entry.mtime);
        rustix::fs::utimensat(parent.fd(), name, &times, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|errno| at(entry, errno))
    }

    /// Only to what this layer has itself, and only to a file or a symbolic link.
    fn hard_link(&mut self, entry: &Entry, name: &[u8], above: &[&[u8]]) -> Result<()> {
        let there = split(&entry.target, self.unpacking.bounds.depth)
            .ok_or_else(|| escapes(entry, "is a link that leads out of the layer"))?;
        let Some((there, beside)) = there.split_last() else {
            return Err(escapes(entry, "is a hard link to a directory"));
        };
        if (beside, *there) == (above, name) {
            return Err(escapes(entry, "is a hard link to itself"));
        }
        let is_nowhere = |errno| match errno {
            Errno::NOENT => escapes(entry, "is a hard link to what its layer does not have"),
            errno => at(entry, errno),
        };
        let from = self.beneath.existing(beside).map_err(is_nowhere)?;
        let stat =
            rustix::fs::statat(&from, *there, AtFlags::SYMLINK_NOFOLLOW).map_err(is_nowhere)?;
        use rustix::fs::FileType;
        let kind = FileType::from_raw_mode(stat.st_mode);
        if !matches!(kind, FileType::RegularFile | FileType::Symlink) {
            return Err(escapes(entry, "is a hard link to what is no file"));
        }
        self.clear(entry, name, above)?;
        let parent = self.beneath.directory(above)?;
        // A link at the end is not followed without a flag that says so.
        rustix::fs::linkat(&from, *there, parent.fd(), name, AtFlags::empty())
            .map_err(|errno| at(entry, errno))
    }

    /// The later of two entries of one name wins. A directory gives way only where it is empty.
    fn clear(&mut self, entry: &Entry, name: &[u8], above: &[&[u8]]) -> Result<()> {
        let parent = self.beneath.directory(above)?;
        let is_directory = parent.clear(name).map_err(|errno| at(entry, errno))?;
        if is_directory {
            self.beneath.forget();
            self.directories.remove(&[above, &[name]].concat().join(&b'/'));
        }
        Ok(())
    }

    fn leave_out(&mut self, entry: &Entry) {
        self.tally.left_out += 1;
        if self.tally.left_out_names.len() < NAMES_KEPT {
            self.tally.left_out_names.push(tar::text(&entry.path));
        }
    }

    fn owner(&mut self, entry: &Entry) -> Result<()> {
        if (entry.uid, entry.gid) == (0, 0) {
            return Ok(());
        }
        self.tally.other_owners += 1;
        let (uid, gid, path) = (entry.uid, entry.gid, String::from_utf8_lossy(&entry.path));
        writeln!(self.unpacking.owners, "{uid}\t{gid}\t{path:?}")
            .map_err(|error| failed(entry, error))
    }

    /// Gives directories their modes and times.
    ///
    /// ORDER: what is below comes first, because a directory may forbid its owner to enter it.
    fn settle(&mut self) -> Result<()> {
        for (path, (mode, mtime)) in self.directories.iter().rev() {
            let directory = self.beneath.open(path).map_err(|errno| at_path(path, errno))?;
            settle(&directory, mode & 0o1777, *mtime).map_err(|errno| at_path(path, errno))?;
        }
        Ok(())
    }

    /// What follows the last entry is read too, for the digest is of all of it.
    fn drain<R: Read>(&mut self, entries: Entries<R>) -> Result<()> {
        let end = entries.position();
        let mut position = end;
        let mut rest = entries.into_inner();
        let mut piece = vec![0; 64 << 10];
        loop {
            let count = rest.read(&mut piece).map_err(unreadable)?;
            if count == 0 {
                return Ok(());
            }
            position += count as u64;
            self.within_ratio(position)?;
            if position - end > MAX_BEHIND_BYTES {
                return Err(too_large(format!(
                    "more than {MAX_BEHIND_BYTES} bytes behind its end"
                )));
            }
        }
    }
}

/// The names of an entry's path. It may begin at the root, which is the layer's.
fn names(entry: &Entry, depth: usize) -> Result<Vec<&[u8]>> {
    split(&entry.path, depth)
        .ok_or_else(|| escapes(entry, "leads out of the layer, or is too long or too deep"))
}

fn split(path: &[u8], depth: usize) -> Option<Vec<&[u8]>> {
    let names = path.split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b"."));
    let names: Vec<&[u8]> = names.take(depth + 1).collect();
    let is_bad = |name: &&[u8]| *name == b".." || name.len() > 255;
    (names.len() <= depth && !names.iter().any(is_bad)).then_some(names)
}

fn settle(fd: impl AsFd, mode: u32, mtime: (i64, u32)) -> rustix::io::Result<()> {
    rustix::fs::fchmod(&fd, Mode::from(mode))?;
    rustix::fs::futimens(fd, &timestamps(mtime))
}

fn timestamps((seconds, nanoseconds): (i64, u32)) -> Timestamps {
    let time = Timespec { tv_sec: seconds, tv_nsec: i64::from(nanoseconds) };
    Timestamps { last_access: time, last_modification: time }
}

fn escapes(entry: &Entry, why: &str) -> Error {
    Error::new(
        ErrorKind::PathEscape,
        format!("unpack the entry {}: it {why}", tar::text(&entry.path)),
    )
    .hint("Do not use this image: a tool that makes images does not write such an entry.")
}

fn at(entry: &Entry, errno: Errno) -> Error {
    at_path(&entry.path, errno)
}

fn at_path(path: &[u8], errno: Errno) -> Error {
    let shown = tar::text(path);
    match errno {
        Errno::LOOP | Errno::NOTDIR | Errno::XDEV => {
            let message = format!("unpack the entry {shown}: it leads through a link or a file");
            Error::new(ErrorKind::PathEscape, message)
                .hint("Do not use this image: a tool that makes images writes no such entry.")
        }
        Errno::NOTEMPTY => Error::new(
            ErrorKind::Denied,
            format!("unpack the entry {shown}: a directory that is not empty has the same name"),
        ),
        Errno::OPNOTSUPP => Error::new(
            ErrorKind::Unsupported,
            format!("unpack the entry {shown}: the file system has no extended attributes"),
        )
        .hint("Set COFFERDAM_HOME to a directory on ext4, xfs, btrfs or tmpfs."),
        errno => failed_path(shown, io::Error::from(errno)),
    }
}

fn failed(entry: &Entry, error: io::Error) -> Error {
    failed_path(tar::text(&entry.path), error)
}

fn failed_path(shown: String, error: io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("unpack the entry {shown}")).source(error)
}

fn too_large(what: String) -> Error {
    Error::new(ErrorKind::TooLarge, format!("unpack a layer: it has {what}"))
        .hint("Use a smaller image, if this one is what you expect.")
}

/// What was read makes no sense, or could not be read.
fn unreadable(error: io::Error) -> Error {
    let is_broken = matches!(
        error.kind(),
        io::ErrorKind::InvalidData
            | io::ErrorKind::InvalidInput
            | io::ErrorKind::UnexpectedEof
            | io::ErrorKind::Other
    );
    let kind = if is_broken { ErrorKind::NotAFile } else { ErrorKind::Io };
    Error::new(kind, "read a layer: it is broken, or no tar file")
        .hint("Get the image anew, or say what it is: oci-archive:FILE, docker-archive:FILE, tar:FILE.")
        .source(error)
}

#[cfg(test)]
mod tests;

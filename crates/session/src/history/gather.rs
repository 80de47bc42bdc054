//! A tree of what was found in a layer. The content of files that were changed since the last look is
//! copied, and of no others.

use super::blobs::Blobs;
use super::content::{Copier, attributes, small};
use super::live::Live;
use super::pack::MAX_SMALL_BYTES;
use super::tree::{Attribute, Content, Entry, Moment, Node, Tree, split};
use super::walk::{Bounds, Found, Mark, Named, Stillness, directory, failed, open, too_large};
use super::widened::Widened;
use cofferdam_core::{Error, ErrorKind, Result};
use rustix::fs::{FileType, Mode, OFlags, openat, readlinkat};
use rustix::io::Errno;
use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

/// The directory of what a session changed, in the folder of its layer.
pub(super) const UPPER: &CStr = c"upper";

/// The most files and bytes that are looked at again the next time, rather than written down.
const LITTLE: (u64, u64) = (32, 1 << 18);

/// What is known of an earlier look.
#[derive(Debug, Default)]
pub(super) struct Known {
    tree: Option<Tree>,
    /// The place in that tree of each file, with its mark if that is certain.
    places: HashMap<(u64, u64), (usize, Option<Mark>)>,
}

impl Known {
    /// The tree of that look, and what was seen then if it is still known.
    pub(super) fn new(tree: Tree, live: Option<&Live>) -> Self {
        let mut places = HashMap::new();
        let entries = live.map(|live| live.entries.as_slice()).unwrap_or_default();
        if entries.len() == tree.entries().len() {
            for (place, seen) in entries.iter().enumerate() {
                let mark = seen.is_certain.then_some(seen.mark);
                // The first name of a file is the one that has its content.
                places.entry((seen.mark.device, seen.mark.inode)).or_insert((place, mark));
            }
        }
        Self { tree: Some(tree), places }
    }

    pub(super) fn tree(&self) -> Option<&Tree> {
        self.tree.as_ref()
    }

    /// The entry of what was not touched since.
    fn untouched(&self, mark: Mark) -> Option<&Entry> {
        let (place, certain) = self.places.get(&(mark.device, mark.inode))?;
        let tree = self.tree.as_ref().filter(|_| *certain == Some(mark))?;
        tree.entries().get(*place).map(|entry| tree.resolved(entry))
    }

    /// Whether so much was touched that it is sooner written down than looked at again the next time.
    pub(super) fn is_much(&self, found: &[Found]) -> bool {
        let touched = found.iter().filter(|found| self.untouched(found.mark()).is_none());
        let size = |found: &Found| u64::try_from(found.stat.st_size).unwrap_or(u64::MAX);
        let (files, bytes) = touched.fold((0, 0_u64), |(files, bytes), found| {
            (files + 1, bytes.saturating_add(size(found)))
        });
        (files, bytes) != (0, 0) && (files > LITTLE.0 || bytes > LITTLE.1)
    }

    /// The content that a file had, or that the file of this name had, if it was of this size.
    fn likely(&self, mark: Mark, path: &[u8], size: u64) -> Option<Content> {
        let tree = self.tree.as_ref()?;
        let same_file = self.places.get(&(mark.device, mark.inode));
        let same_file = same_file.and_then(|(place, _)| tree.entries().get(*place));
        let content = |entry: &Entry| {
            tree.resolved(entry).node.content().filter(|content| content.size == size)
        };
        same_file.and_then(content).or_else(|| tree.get(path).and_then(content))
    }
}

/// Makes a tree.
pub(super) struct Gather<'g> {
    pub(super) known: &'g Known,
    pub(super) blobs: &'g mut Blobs,
    pub(super) stillness: Stillness,
    pub(super) widened: &'g mut Widened,
    copier: Copier,
    /// The top of the layer.
    top: OwnedFd,
    /// The directory that was opened last.
    parent: Option<(Vec<u8>, OwnedFd)>,
    /// The place of the first name of each file that has several.
    firsts: HashMap<(u64, u64), u32>,
}

impl<'g> Gather<'g> {
    pub(super) fn new(
        folder: &Path,
        (bounds, stillness): (Bounds, Stillness),
        known: &'g Known,
        blobs: &'g mut Blobs,
        widened: &'g mut Widened,
    ) -> Result<Self> {
        let folder = directory(folder)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let top = openat(&folder, UPPER, flags, Mode::empty())
            .map_err(|e| failed("open", UPPER.to_bytes(), e))?;
        Ok(Self {
            known,
            blobs,
            stillness,
            widened,
            copier: Copier::new(bounds.bytes),
            top,
            parent: None,
            firsts: HashMap::new(),
        })
    }

    /// The tree of all that was found.
    pub(super) fn tree(mut self, found: &[Found]) -> Result<Tree> {
        let mut entries = Vec::with_capacity(found.len());
        for one in found {
            let place = u32::try_from(entries.len()).unwrap_or(u32::MAX);
            entries.push(self.entry(one, place)?);
        }
        Tree::new(entries)
    }

    fn entry(&mut self, found: &Found, place: u32) -> Result<Entry> {
        let mark = found.mark();
        if found.kind() != FileType::Directory && found.stat.st_nlink > 1 {
            let first = *self.firsts.entry((mark.device, mark.inode)).or_insert(place);
            if first != place {
                return Ok(bare(found, Node::Again(first)));
            }
        }
        if let Some(known) = self.known.untouched(mark) {
            return Ok(Entry { path: found.path.clone(), ..known.clone() });
        }
        let (node, attributes) = match found.kind() {
            FileType::RegularFile => self.file(found)?,
            FileType::Directory => {
                let file = self.open(found)?;
                (Node::Directory, attributes(file.as_fd(), &found.path)?)
            }
            FileType::Symlink => (self.link(found)?, Vec::new()),
            FileType::CharacterDevice if found.stat.st_rdev == 0 => (Node::Removed, Vec::new()),
            FileType::Fifo => (Node::Fifo, Vec::new()),
            FileType::Socket => (Node::Socket, Vec::new()),
            FileType::CharacterDevice | FileType::BlockDevice | FileType::Unknown => {
                return Err(failed("keep the device", &found.path, Errno::INVAL));
            }
        };
        Ok(Entry { attributes, ..bare(found, node) })
    }

    fn file(&mut self, found: &Found) -> Result<(Node, Vec<Attribute>)> {
        let file = self.open(found)?;
        let size = u64::try_from(found.stat.st_size).unwrap_or(0);
        let attributes = attributes(file.as_fd(), &found.path)?;
        let likely = self.known.likely(found.mark(), &found.path, size);
        let bytes = match size <= MAX_SMALL_BYTES {
            true => small(file.as_fd(), size),
            false => None,
        };
        if let Some(bytes) = &bytes {
            self.copier.spend(size)?;
            if let Some(content) = likely.filter(|content| self.blobs.packs(*content, bytes)) {
                return Ok((Node::File(content), attributes));
            }
        }
        if let Some(content) = likely.filter(|content| !self.blobs.is_packed(*content))
            && let Ok(blob) = self.blobs.open(content)
            && self.copier.same((file.as_fd(), blob.as_fd()), size, &found.path)?
        {
            return Ok((Node::File(content), attributes));
        }
        if let Some(blob) = bytes.and_then(|bytes| self.blobs.pack(&bytes)) {
            return Ok((Node::File(Content { blob, size }), attributes));
        }
        let (blob, target) = self.blobs.make()?;
        self.copier.copy((file.as_fd(), target.as_fd()), size, &found.path)?;
        self.blobs.made(&target)?;
        Ok((Node::File(Content { blob, size }), attributes))
    }

    fn link(&mut self, found: &Found) -> Result<Node> {
        let (name, path) = (name_of(found)?, found.path.clone());
        let parent = self.parent(split(&path).0)?;
        let target = readlinkat(parent, &*name, Vec::new())
            .map_err(|e| failed("read the link", &path, e))?;
        Ok(Node::Link(target.into_bytes()))
    }

    fn open(&mut self, found: &Found) -> Result<OwnedFd> {
        if found.path.is_empty() {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            return openat(&self.top, c".", flags, Mode::empty())
                .map_err(|e| failed("open", UPPER.to_bytes(), e));
        }
        let name = name_of(found)?;
        let parent = split(&found.path).0;
        let below = if parent.is_empty() { &b""[..] } else { b"/" };
        self.widened.stand([UPPER.to_bytes(), below, parent].concat());
        let stillness = self.stillness;
        self.parent(parent)?;
        let Some((_, above)) = &self.parent else { return Err(too_large("nothing")) };
        let named: Named<'_> = (above.as_fd(), &name);
        let mut stat = found.stat;
        if found.kind() == FileType::Directory {
            // It was opened up by the walk, if that was needed.
            stat.st_mode |= 0o700;
        }
        open((named, &stat), (stillness, &mut *self.widened))
    }

    /// The directory of this path.
    fn parent(&mut self, path: &[u8]) -> Result<&OwnedFd> {
        if self.parent.as_ref().is_none_or(|(known, _)| known != path) {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let mut at = openat(&self.top, c".", flags, Mode::empty())
                .map_err(|e| failed("open", path, e))?;
            for name in path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
                at =
                    openat(&at, name, flags, Mode::empty()).map_err(|e| failed("open", path, e))?;
            }
            self.parent = Some((path.to_vec(), at));
        }
        match &self.parent {
            Some((_, directory)) => Ok(directory),
            None => Ok(&self.top),
        }
    }
}

/// What the kernel says of an entry.
fn bare(found: &Found, node: Node) -> Entry {
    let stat = &found.stat;
    let moment = |seconds, rest| -> Moment { (seconds, u32::try_from(rest).unwrap_or(0)) };
    Entry {
        path: found.path.clone(),
        node,
        mode: stat.st_mode & 0o7777,
        user: stat.st_uid,
        group: stat.st_gid,
        modified: moment(stat.st_mtime, stat.st_mtime_nsec),
        accessed: moment(stat.st_atime, stat.st_atime_nsec),
        attributes: Vec::new(),
    }
}

fn name_of(found: &Found) -> Result<CString> {
    CString::new(split(&found.path).1)
        .map_err(|e| Error::new(ErrorKind::Io, "a name with a NUL").source(e))
}

//! Lists, in the order of names, a page at a time.
//!
//! A page holds the first so many entries behind a given one, so what changes between two pages moves
//! nothing else; and of a directory with a million entries no more than a page is ever held.

use super::failure::{Trouble, failed, refused};
use super::read::{entry, is_placeholder};
use super::talk::Talk;
use super::walk::{Missing, Root};
use cofferdam_wire::ByteString;
use cofferdam_wire::files::{Answer, Entry, EntryKind, Failure, List, MAX_DEPTH, MAX_ENTRIES, Why};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::collections::BinaryHeap;

/// How many bytes of names and targets go in one message. In JSON each takes four at most.
const BATCH_BYTES: usize = 8 << 10;
/// What an entry takes in JSON beside these, with room to spare.
const ENTRY_BYTES: usize = 64;

/// Sends one page.
pub(super) fn list(root: &Root, order: &List, talk: &mut Talk) -> Result<Answer, Trouble> {
    let depth = usize::try_from(order.depth).unwrap_or(usize::MAX).min(MAX_DEPTH);
    if depth == 0 || order.limit == 0 {
        return Err(refused(Why::BadRequest, "a list has at least one level and entry").into());
    }
    let place = root.walk(&order.path, Missing::Refuse)?.into_directory()?;
    let directory =
        open(place.directory(), b".").map_err(|e| failed(e, "the directory cannot be read"))?;
    let stat = rustix::fs::fstat(&directory).map_err(|e| failed(e, "it cannot be looked at"))?;
    root.admit(&directory, &stat)?;
    let after = order.after.as_ref().map(ByteString::as_bytes).unwrap_or_default();
    let mut page = Page {
        talk,
        batch: Vec::new(),
        batch_bytes: 0,
        left: usize::try_from(order.limit.min(MAX_ENTRIES)).unwrap_or(1),
        last: None,
    };
    let after = if after.is_empty() { None } else { Some(after) };
    let more = page.directory(&directory, &[], after, depth)?;
    page.send()?;
    let next = page.last.filter(|_| more == More::Yes).map(ByteString::from);
    Ok(Answer::Listed { next })
}

/// A page that is being made.
struct Page<'a> {
    talk: &'a mut Talk,
    batch: Vec<Entry>,
    batch_bytes: usize,
    left: usize,
    last: Option<Vec<u8>>,
}

/// Whether the page was full before everything was in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum More {
    Yes,
    No,
}

impl Page<'_> {
    /// Adds the entries of a directory behind `after`, each before what is in it.
    fn directory(
        &mut self,
        directory: &OwnedFd,
        path: &[u8],
        after: Option<&[u8]>,
        levels: usize,
    ) -> Result<More, Trouble> {
        let (first, rest) = match after {
            None => (None, None),
            Some(after) => match after.iter().position(|byte| *byte == b'/') {
                Some(cut) => (after.get(..cut), after.get(cut + 1..)),
                None => (Some(after), None),
            },
        };
        // One more than fits, to know whether there is more.
        for name in names(directory, first, self.left + 2)? {
            let is_behind = first.is_none_or(|first| name.as_slice() > first);
            let mut below = path.to_vec();
            if !below.is_empty() {
                below.push(b'/');
            }
            below.extend_from_slice(&name);
            let found = match entry(directory.as_fd(), &name, below.clone().into()) {
                Ok(found) => found,
                Err(Failure { why: Why::NotFound, .. }) => continue,
                Err(failure) => return Err(failure.into()),
            };
            let is_directory = found.kind == EntryKind::Directory;
            if is_behind {
                if self.left == 0 {
                    return Ok(More::Yes);
                }
                self.add(found)?;
            }
            if is_directory && levels > 1 {
                let rest = rest.filter(|_| !is_behind);
                if self.below(directory.as_fd(), (&name, &below), rest, levels)? == More::Yes {
                    return Ok(More::Yes);
                }
            }
        }
        Ok(More::No)
    }

    fn below(
        &mut self,
        above: BorrowedFd<'_>,
        (name, path): (&[u8], &[u8]),
        after: Option<&[u8]>,
        levels: usize,
    ) -> Result<More, Trouble> {
        match open(above, name) {
            Ok(inner) => self.directory(&inner, path, after, levels - 1),
            // It was one a moment ago, or may not be looked into.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS) => Ok(More::No),
            Err(errno) => Err(failed(errno, "a directory in it cannot be read").into()),
        }
    }

    fn add(&mut self, entry: Entry) -> Result<(), Trouble> {
        self.left -= 1;
        self.last = Some(entry.path.as_bytes().to_vec());
        let target = entry.target.as_ref().map_or(0, |target| target.as_bytes().len());
        let bytes = entry.path.as_bytes().len() + target + ENTRY_BYTES;
        if self.batch_bytes + bytes > BATCH_BYTES {
            self.send()?;
        }
        self.batch_bytes += bytes;
        self.batch.push(entry);
        Ok(())
    }

    fn send(&mut self) -> Result<(), Trouble> {
        self.batch_bytes = 0;
        if self.batch.is_empty() {
            return Ok(());
        }
        let entries = std::mem::take(&mut self.batch);
        Ok(self.talk.answer(&Answer::Entries(entries))?)
    }
}

/// Opens a directory by its name, to read it.
pub(super) fn open(above: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(above, name, flags, Mode::empty())
}

/// The first so many names of a directory from `from` on, in order.
fn names(directory: &OwnedFd, from: Option<&[u8]>, most: usize) -> Result<Vec<Vec<u8>>, Failure> {
    let unreadable = |errno| failed(errno, "a directory cannot be read");
    let mut first = BinaryHeap::new();
    let mut entries = Dir::read_from(directory).map_err(unreadable)?;
    while let Some(entry) = entries.read() {
        let entry = entry.map_err(unreadable)?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." || from.is_some_and(|from| name < from) {
            continue;
        }
        let may_be_ours = matches!(entry.file_type(), FileType::Socket | FileType::Unknown);
        if may_be_ours && is_placeholder(directory.as_fd(), name) {
            continue;
        }
        if first.len() >= most {
            if first.peek().is_none_or(|last: &Vec<u8>| last.as_slice() <= name) {
                continue;
            }
            first.pop();
        }
        first.push(name.to_vec());
    }
    Ok(first.into_sorted_vec())
}

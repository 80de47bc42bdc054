//! What a command writes, on its way from a pipe to a file.
//!
//! A byte stands in the file at the offset at which it was written. Where more came than is kept, the
//! oldest go first: their blocks are given back to the file system, and offsets stay true. What was
//! dropped is noted in a ledger beside the file before it is dropped, so that a reader never takes a
//! hole for what a command wrote.

use crate::state::retry;
use cofferdam_core::secret::{Mask, Masker};
use cofferdam_core::{Chunk, Spooled};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{FallocateFlags, Mode, OFlags};
use rustix::io::Errno;
use rustix::pipe::SpliceFlags;
use std::sync::Arc;

/// The least that is kept of a stream.
pub(super) const MIN_KEPT_BYTES: u64 = 64 * 1024;
/// How much is moved at a time.
const PIECE_BYTES: usize = 64 * 1024;
/// How much is moved before others get their turn.
const TURN_BYTES: u64 = 1 << 20;
/// How much is masked at a time.
const MASKED_BYTES: usize = 16 * 1024;
const MASKED_BYTES_AS_LENGTH: u64 = 16 * 1024;
/// Holes are made of whole blocks.
const BLOCK_BYTES: u64 = 4096;
/// An entry of the ledger: from where on bytes are kept, where keeping ended, how many came in all.
const ENTRY_BYTES: u64 = 24;

/// The writer's side of one stream.
#[derive(Debug)]
pub(super) struct Spool {
    /// The pipe, or the master of the terminal; `None` once nothing more comes.
    source: Option<OwnedFd>,
    file: Sink,
    way: Way,
    /// Covers what nobody may see, where there is such: then all is copied.
    masker: Option<Box<Masker>>,
    kept_bytes: u64,
    written: u64,
    /// Where what is kept begins.
    from: u64,
    /// Where keeping ended, because there was no room for more and no way to make it.
    cut: Option<u64>,
    ledger: Ledger,
}

/// How bytes are moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// The kernel moves them.
    Splice,
    /// They are read and written, as a terminal's must be.
    Copy,
}

/// What came of moving.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moved {
    /// The source is empty for now, or others have their turn.
    Waits,
    /// Nothing more comes.
    Done,
}

/// A file that is made when something is written to it: making one costs more than all else that a command
/// which writes nothing needs of us.
#[derive(Debug)]
pub(super) struct Sink {
    directory: Arc<OwnedFd>,
    name: String,
    /// How it is opened, besides.
    how: OFlags,
    file: Option<OwnedFd>,
}

impl Sink {
    pub(super) fn new(directory: Arc<OwnedFd>, name: String, how: OFlags) -> Self {
        Self { directory, name, how, file: None }
    }

    fn file(&mut self) -> rustix::io::Result<&OwnedFd> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC | self.how;
        let file = match self.file.take() {
            Some(file) => file,
            None => retry(|| {
                let mode = Mode::RUSR | Mode::WUSR;
                rustix::fs::openat(&*self.directory, &self.name, flags, mode)
            })?,
        };
        Ok(self.file.insert(file))
    }
}

/// Where it is noted what was dropped: an entry for each stream of a file that both have.
#[derive(Debug)]
pub(super) struct Ledger {
    pub(super) file: Sink,
    pub(super) entry: u64,
}

impl Spool {
    pub(super) fn new(
        source: OwnedFd,
        file: Sink,
        way: Way,
        kept_bytes: u64,
        ledger: Ledger,
    ) -> rustix::io::Result<Self> {
        rustix::io::ioctl_fionbio(&source, true)?;
        let kept_bytes = kept_bytes.max(MIN_KEPT_BYTES);
        let source = Some(source);
        Ok(Self {
            source,
            file,
            way,
            masker: None,
            kept_bytes,
            written: 0,
            from: 0,
            cut: None,
            ledger,
        })
    }

    /// What to wait on.
    pub(super) fn source(&self) -> Option<BorrowedFd<'_>> {
        self.source.as_ref().map(AsFd::as_fd)
    }

    /// Writes to the terminal whose master this reads.
    pub(super) fn master(&self) -> Option<&OwnedFd> {
        self.source.as_ref().filter(|_| self.way == Way::Copy)
    }

    pub(super) fn spooled(&self) -> Spooled {
        let beyond = self.cut.map_or(0, |cut| self.written - cut);
        Spooled { written: self.written, dropped: self.from + beyond }
    }

    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// Takes no more, and lets go of the source. What was held back goes with it: where a stream is cut
    /// off, that may be the beginning of a value.
    pub(super) fn close(&mut self) {
        self.source = None;
        self.masker = None;
    }

    /// Moves what has come, a bounded piece of it.
    pub(super) fn work(&mut self) -> Moved {
        if self.masker.is_some() {
            return self.work_masked();
        }
        let until = self.written.saturating_add(TURN_BYTES);
        while self.written < until {
            let Some(source) = &self.source else { return Moved::Done };
            let moved = match (self.cut, self.way) {
                (Some(_), _) => discard(source),
                (None, Way::Splice) => splice(source, &mut self.file, self.written),
                (None, Way::Copy) => copy(source, &mut self.file, self.written),
            };
            match moved {
                Ok(0) => {
                    self.source = None;
                    return Moved::Done;
                }
                Ok(count) => self.count(count),
                Err(Failed::Source(Errno::AGAIN)) => return Moved::Waits,
                Err(Failed::Source(Errno::INTR)) => {}
                // EIO is how a terminal says that nobody has it open any more.
                Err(Failed::Source(_)) => {
                    self.source = None;
                    return Moved::Done;
                }
                Err(Failed::File(lost)) => {
                    self.cut = Some(self.written);
                    self.count(lost);
                }
            }
        }
        Moved::Waits
    }

    /// Covers this from now on.
    pub(super) fn cover(&mut self, mask: &Mask) {
        match &mut self.masker {
            Some(masker) => masker.set_mask(mask.clone()),
            None => self.masker = Some(Box::new(Masker::new(mask.clone()))),
        }
    }

    /// Writes what was held back to see what follows it.
    pub(super) fn finish(&mut self) {
        let Some(masker) = &mut self.masker else { return };
        let mut covered = Vec::new();
        masker.finish(&mut covered);
        self.put(&covered);
    }

    fn work_masked(&mut self) -> Moved {
        let mut piece = [0; MASKED_BYTES];
        for _ in 0..TURN_BYTES / MASKED_BYTES_AS_LENGTH {
            let Some(source) = &self.source else { return Moved::Done };
            match rustix::io::read(source, &mut piece) {
                Err(Errno::AGAIN) => return Moved::Waits,
                Err(Errno::INTR) => {}
                Ok(count @ 1..) => {
                    let Some(masker) = &mut self.masker else { return Moved::Waits };
                    let mut covered = Vec::new();
                    masker.push(piece.get(..count).unwrap_or_default(), &mut covered);
                    self.put(&covered);
                }
                // EIO is how a terminal says that nobody has it open any more.
                Ok(_) | Err(_) => {
                    self.source = None;
                    self.finish();
                    return Moved::Done;
                }
            }
        }
        Moved::Waits
    }

    /// Writes what may be seen.
    fn put(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        if self.cut.is_none() && append(&mut self.file, bytes, self.written).is_err() {
            self.cut = Some(self.written);
        }
        self.count(bytes.len());
    }

    fn count(&mut self, count: usize) {
        self.written += u64::try_from(count).unwrap_or(0);
        match self.cut {
            Some(_) => drop(self.note()),
            None if self.written - self.from > self.kept_bytes => self.drop_oldest(),
            None => {}
        }
    }

    /// Drops in steps of an eighth, so that few holes are made.
    fn drop_oldest(&mut self) {
        let step = self.kept_bytes / 8;
        let from = self.written - self.kept_bytes + step;
        let from = (from / BLOCK_BYTES * BLOCK_BYTES).min(self.written);
        if from <= self.from {
            return;
        }
        let before = std::mem::replace(&mut self.from, from);
        // ORDER: noted before it is dropped, and not dropped where that cannot be noted.
        let punched = self.note().and_then(|()| {
            let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            let file = self.file.file()?;
            retry(|| rustix::fs::fallocate(file, hole, before, from - before))
        });
        if punched.is_err() {
            self.from = before;
            self.cut = Some(self.written);
            let _ = self.note();
        }
    }

    /// LIMIT: on a disk that has no room for the ledger either, a reader learns of a cut only from
    /// what the keeper counts, until there is room.
    fn note(&mut self) -> rustix::io::Result<()> {
        let cut = self.cut.unwrap_or(u64::MAX);
        let entry = [self.from, cut, self.written].map(u64::to_le_bytes).concat();
        let at = self.ledger.entry * ENTRY_BYTES;
        let file = self.ledger.file.file()?;
        retry(|| rustix::io::pwrite(file, &entry, at)).map(drop)
    }
}

enum Failed {
    /// There is nothing to take.
    Source(Errno),
    /// So many bytes were taken and found no room.
    File(usize),
}

fn splice(source: &OwnedFd, sink: &mut Sink, at: u64) -> Result<usize, Failed> {
    // Whether anything comes at all is seen by who reads.
    let Some(file) = &sink.file else { return copy(source, sink, at) };
    let mut offset = at;
    let flags = SpliceFlags::NONBLOCK | SpliceFlags::MOVE;
    match rustix::pipe::splice(source, None, file, Some(&mut offset), PIECE_BYTES, flags) {
        Ok(count) => Ok(count),
        Err(errno @ (Errno::AGAIN | Errno::INTR)) => Err(Failed::Source(errno)),
        // Whichever side it was, to copy tells.
        Err(_) => copy(source, sink, at),
    }
}

fn copy(source: &OwnedFd, sink: &mut Sink, at: u64) -> Result<usize, Failed> {
    let mut piece = [0; 4096];
    let count = rustix::io::read(source, &mut piece).map_err(Failed::Source)?;
    append(sink, piece.get(..count).unwrap_or_default(), at).map_err(|()| Failed::File(count))?;
    Ok(count)
}

/// Writes all of it, or fails.
fn append(sink: &mut Sink, bytes: &[u8], at: u64) -> Result<(), ()> {
    let (mut rest, mut offset) = (bytes, at);
    while !rest.is_empty() {
        let file = sink.file().map_err(|_| ())?;
        match retry(|| rustix::io::pwrite(file, rest, offset)) {
            Ok(written @ 1..) => {
                offset += u64::try_from(written).unwrap_or(0);
                rest = rest.get(written..).unwrap_or_default();
            }
            Ok(_) | Err(_) => return Err(()),
        }
    }
    Ok(())
}

fn discard(source: &OwnedFd) -> Result<usize, Failed> {
    rustix::io::read(source, &mut [0_u8; 4096]).map_err(Failed::Source)
}

/// What is kept of a stream at `offset`, read beside a keeper that may drop it meanwhile. `ledger`
/// opens the ledger, which may come to be meanwhile. There is no file of a stream of which nothing was kept.
pub(super) fn read(
    file: Option<&OwnedFd>,
    (ledger, entry): (impl Fn() -> Option<OwnedFd>, u64),
    offset: u64,
    most: usize,
) -> rustix::io::Result<Chunk> {
    let look = || ledger().map_or(Ok(Entry::default()), |file| Entry::read(&file, entry));
    let mut bytes = vec![0; most];
    let mut entry = look()?;
    loop {
        let at = offset.max(entry.from);
        if at >= entry.cut {
            return Ok(Chunk { offset: at.max(entry.total), bytes: Vec::new() });
        }
        let Some(file) = file else { return Ok(Chunk { offset: at, bytes: Vec::new() }) };
        let room = usize::try_from(entry.cut - at).unwrap_or(usize::MAX).min(most);
        let space = bytes.get_mut(..room).unwrap_or_default();
        let count = retry(|| rustix::io::pread(file, &mut *space, at))?;
        // ORDER: after the bytes, because what is dropped is noted first.
        let now = look()?;
        if now.from > at {
            entry = now;
            continue;
        }
        bytes.truncate(count);
        return Ok(Chunk { offset: at, bytes });
    }
}

/// How much of a stream there is, where nobody has counted to its end: by the file itself.
pub(super) fn counted(file: &OwnedFd, ledger: Option<&OwnedFd>, entry: u64) -> Spooled {
    let entry = ledger.and_then(|file| Entry::read(file, entry).ok()).unwrap_or_default();
    let size = rustix::fs::fstat(file).map_or(0, |stat| stat.st_size);
    match entry.cut {
        u64::MAX => {
            let written = entry.total.max(u64::try_from(size).unwrap_or(0));
            Spooled { written, dropped: entry.from }
        }
        cut => {
            Spooled { written: entry.total, dropped: entry.from + entry.total.saturating_sub(cut) }
        }
    }
}

struct Entry {
    from: u64,
    cut: u64,
    total: u64,
}

impl Default for Entry {
    fn default() -> Self {
        Self { from: 0, cut: u64::MAX, total: 0 }
    }
}

impl Entry {
    fn read(file: &OwnedFd, entry: u64) -> rustix::io::Result<Self> {
        let mut bytes = [0; 24];
        let count = retry(|| rustix::io::pread(file, &mut bytes, entry * ENTRY_BYTES))?;
        let number = |at: usize| {
            let eight = bytes.get(at..)?.first_chunk::<8>()?;
            Some(u64::from_le_bytes(*eight))
        };
        match (number(0), number(8), number(16)) {
            // Nothing was noted: all of an entry that was not written is 0.
            (Some(from), Some(cut), Some(total)) if count == bytes.len() && cut.max(total) > 0 => {
                Ok(Self { from, cut, total })
            }
            _ => Ok(Self::default()),
        }
    }
}

#[cfg(test)]
#[path = "spool_tests.rs"]
mod tests;

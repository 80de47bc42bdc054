//! What happened to a sandbox, a line of JSON an entry, each written in one call.
//!
//! A line that is cut short was never written: its writer died, or the disk was full. Readers leave
//! it out, and the next writer takes it away.

use crate::state::retry;
use cofferdam_core::{Error, ErrorKind, Happened, JournalEntry, Result};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::FallocateFlags;
use rustix::io::Errno;
use serde::Deserialize;
use std::time::{SystemTime, UNIX_EPOCH};

/// How much is read at a time.
const PIECE_BYTES: usize = 64 * 1024;
/// The longest entry that a reader takes in. The longest that a keeper writes is far shorter.
const MAX_ENTRY_BYTES: usize = 1 << 20;

/// What the end of a command may take beyond what its beginning took.
const END_BYTES: u64 = 8 << 10;
/// How much room is asked for at once, so that not every command asks.
const AHEAD_BYTES: u64 = 64 << 10;

/// The writer's side.
#[derive(Debug)]
pub(super) struct Journal {
    file: OwnedFd,
    /// How long the file is.
    end: u64,
    /// The number of the last entry that stands in the file.
    written: u64,
    /// The number of the last entry.
    last: u64,
    /// Entries that the disk did not take yet.
    waiting: Vec<u8>,
    waiting_ends: Vec<usize>,
    /// Commands that began and did not end, and the longest entry of a beginning.
    running: u64,
    longest: u64,
    /// Up to where the disk has given room.
    reserved: u64,
}

impl Journal {
    /// Goes on where the file ends. Whoever calls this holds its lock.
    pub(super) fn open(file: OwnedFd) -> Result<Self> {
        let mut written = 0;
        let end = each(&file, 0, |entry| written = entry.seq)?;
        rustix::fs::ftruncate(&file, end).map_err(|errno| failed("repair the journal", errno))?;
        Ok(Self {
            file,
            end,
            written,
            last: written,
            waiting: Vec::new(),
            waiting_ends: Vec::new(),
            running: 0,
            longest: 0,
            reserved: 0,
        })
    }

    /// Adds an entry, and says its number. It has happened once [`Journal::has`] says so; where the
    /// disk is full it waits for [`Journal::flush`].
    pub(super) fn add(&mut self, happened: Happened) -> u64 {
        self.last += 1;
        if matches!(happened, Happened::ExecEnded(_)) {
            self.running = self.running.saturating_sub(1);
        }
        let entry = JournalEntry { seq: self.last, at_ms: now_ms(), happened };
        if let Ok(line) = serde_json::to_vec(&entry) {
            self.waiting.extend(line);
            self.waiting.push(b'\n');
            self.waiting_ends.push(self.waiting.len());
        }
        self.flush();
        self.last
    }

    /// Adds the entry of a command that begins if the disk takes it now, behind all that wait, and has room for the end of
    /// it and of each that runs; says whether it did. Who waits for a command is told of no end that is not
    /// written down.
    pub(super) fn begin(&mut self, happened: Happened) -> bool {
        self.flush();
        let entry = JournalEntry { seq: self.last + 1, at_ms: now_ms(), happened };
        let Ok(mut line) = serde_json::to_vec(&entry) else { return false };
        line.push(b'\n');
        if !self.is_whole() || self.put(&line).is_err() {
            return false;
        }
        let len = u64::try_from(line.len()).unwrap_or(0);
        let longest = self.longest.max(len);
        if !self.reserve(len + (self.running + 1) * (longest + END_BYTES)) {
            self.cut();
            return false;
        }
        self.end += len;
        self.written += 1;
        self.last += 1;
        self.running += 1;
        self.longest = longest;
        true
    }

    /// Has the disk give room for so many bytes more. Where it cannot say, nothing is known of it.
    fn reserve(&mut self, bytes: u64) -> bool {
        let until = self.end + bytes;
        if until <= self.reserved {
            return true;
        }
        for ahead in [AHEAD_BYTES, 0] {
            let (flags, len) = (FallocateFlags::KEEP_SIZE, bytes + ahead);
            match retry(|| rustix::fs::fallocate(&self.file, flags, self.end, len)) {
                Ok(()) => self.reserved = until + ahead,
                Err(Errno::NOSPC | Errno::DQUOT) => continue,
                Err(_) => {}
            }
            return true;
        }
        false
    }

    /// Takes away what stands behind the last entry, and what room there was.
    fn cut(&mut self) {
        let _ = rustix::fs::ftruncate(&self.file, self.end);
        self.reserved = 0;
    }

    /// Whether this entry stands in the file.
    pub(super) fn has(&self, number: u64) -> bool {
        number <= self.written
    }

    /// Whether every entry stands in the file.
    pub(super) fn is_whole(&self) -> bool {
        self.has(self.last)
    }

    /// Whether anybody finds the file.
    pub(super) fn is_there(&self) -> bool {
        rustix::fs::fstat(&self.file).is_ok_and(|stat| stat.st_nlink > 0)
    }

    /// Has the disk keep what stands in the file, over the end of the machine, too.
    pub(super) fn settle(&self) {
        // A disk that cannot is found out by the next entry.
        let _ = rustix::fs::fdatasync(&self.file);
    }

    /// Tries again to write what waits.
    pub(super) fn flush(&mut self) {
        let mut done = 0;
        let waiting = std::mem::take(&mut self.waiting);
        for end in std::mem::take(&mut self.waiting_ends) {
            let line = waiting.get(done..end).unwrap_or_default();
            if done != end && self.put(line).is_err() {
                break;
            }
            self.end += u64::try_from(end - done).unwrap_or(0);
            self.written += 1;
            done = end;
        }
        self.waiting = waiting;
        self.waiting.drain(..done);
        let mut at = 0;
        for (place, byte) in self.waiting.iter().enumerate() {
            if *byte == b'\n' {
                at = place + 1;
                self.waiting_ends.push(at);
            }
        }
        debug_assert_eq!(at, self.waiting.len());
        if self.waiting.is_empty() {
            self.waiting = Vec::new();
        }
    }

    fn put(&mut self, line: &[u8]) -> Result<()> {
        let count = retry(|| rustix::io::pwrite(&self.file, line, self.end))
            .map_err(|errno| failed("write the journal", errno))?;
        if count == line.len() {
            return Ok(());
        }
        // What was cut short must not stand before a whole line.
        self.cut();
        Err(Error::new(ErrorKind::Io, "write the journal in one piece"))
    }
}

/// Where an entry ends in a file, so that who wants those after it need not read those before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Mark {
    /// The number of the entry.
    pub(super) seq: u64,
    /// Where it ends; no entry is ever written anew.
    pub(super) end: u64,
}

/// Gives every whole entry after this one to `take`, in order, and says where the last of them ends.
pub(super) fn each(file: impl AsFd, after: u64, mut take: impl FnMut(JournalEntry)) -> Result<u64> {
    let mut last = Mark::default();
    each_behind(file, &mut last, |entry| {
        if entry.seq > after {
            take(entry);
        }
    })?;
    Ok(last.end)
}

/// Gives every whole entry behind the mark to `take`, in order, and moves the mark to the last of them.
pub(super) fn each_behind(
    file: impl AsFd,
    mark: &mut Mark,
    mut take: impl FnMut(JournalEntry),
) -> Result<()> {
    while_behind(file, mark, |entry| {
        take(entry);
        true
    })
}

/// The same as long as `take` wants more.
fn while_behind(
    file: impl AsFd,
    mark: &mut Mark,
    mut take: impl FnMut(JournalEntry) -> bool,
) -> Result<()> {
    let (mut text, mut offset) = (Vec::new(), mark.end);
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let count = retry(|| rustix::io::pread(file.as_fd(), &mut piece, offset))
            .map_err(|errno| failed("read the journal", errno))?;
        offset += u64::try_from(count).unwrap_or(0);
        text.extend_from_slice(piece.get(..count).unwrap_or_default());
        let mut done = 0;
        while let Some(length) = text.get(done..).and_then(|t| t.iter().position(|b| *b == b'\n')) {
            let line = text.get(done..done + length).unwrap_or_default();
            // Anything else than an entry is where writing was cut short.
            let Ok(entry) = serde_json::from_slice::<JournalEntry>(line) else { return Ok(()) };
            done += length + 1;
            let end = mark.end + u64::try_from(length + 1).unwrap_or(0);
            *mark = Mark { seq: entry.seq, end };
            if !take(entry) {
                return Ok(());
            }
        }
        text.drain(..done);
        if count == 0 || text.len() > MAX_ENTRY_BYTES {
            return Ok(());
        }
    }
}

/// The first of what `look` finds in an entry, from the first one on.
pub(super) fn first<T>(
    file: impl AsFd,
    mut look: impl FnMut(JournalEntry) -> Option<T>,
) -> Result<Option<T>> {
    let mut found = None;
    while_behind(file, &mut Mark::default(), |entry| {
        found = look(entry);
        found.is_none()
    })?;
    Ok(found)
}

/// The last entry, looked for from the end of the file on. Where the last whole line is none, all are read.
pub(super) fn last(file: impl AsFd) -> Result<Option<JournalEntry>> {
    let last = from_the_end(file.as_fd(), |line, _| Some(serde_json::from_slice(line).ok()));
    if last.is_some() {
        return Ok(last);
    }
    let mut last = None;
    each(file, 0, |entry| last = Some(entry))?;
    Ok(last)
}

/// Where the entry of this number ends, looked for from the end of the file on: whoever knows all but the
/// last few entries finds it at once. `None` where it is not among the last ones, or is not there.
pub(super) fn mark_of(file: impl AsFd, seq: u64) -> Option<Mark> {
    from_the_end(file, |line, end| {
        // What stands behind a line that is no entry does not count.
        let Ok(Numbered { seq: found }) = serde_json::from_slice(line) else { return Some(None) };
        (found <= seq).then(|| (found == seq).then_some(Mark { seq, end }))
    })
}

/// Gives every whole line of the last mebibyte with its end to `look`, the last one first, until it
/// answers.
fn from_the_end<T>(
    file: impl AsFd,
    mut look: impl FnMut(&[u8], u64) -> Option<Option<T>>,
) -> Option<T> {
    let size = u64::try_from(rustix::fs::fstat(file.as_fd()).ok()?.st_size).ok()?;
    let answer = [PIECE_BYTES, MAX_ENTRY_BYTES].into_iter().find_map(|window| {
        let mut text = vec![0; window.min(usize::try_from(size).ok()?)];
        let begin = size - u64::try_from(text.len()).ok()?;
        let count = retry(|| rustix::io::pread(file.as_fd(), &mut text, begin)).ok()?;
        text.truncate(count);
        let mut end = text.len();
        // What follows the last end of a line is being written, or was cut short.
        while let Some(stop) = text.get(..end)?.iter().rposition(|byte| *byte == b'\n') {
            end = text.get(..stop)?.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            // The first line may have begun before.
            let line = text.get(end..stop).filter(|_| end > 0 || begin == 0)?;
            let answer = look(line, begin + u64::try_from(stop + 1).ok()?);
            if answer.is_some() {
                return answer;
            }
        }
        // All of it was looked at, and a larger window shows no more.
        (begin == 0).then_some(None)
    });
    answer.flatten()
}

/// Of an entry its number.
#[derive(Deserialize)]
struct Numbered {
    seq: u64,
}

/// The time, in milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| u64::try_from(now.as_millis()).unwrap_or(u64::MAX))
}

fn failed(what: &str, errno: rustix::io::Errno) -> Error {
    Error::new(ErrorKind::Io, what.to_owned()).source(std::io::Error::from(errno))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_directory::TestDirectory;
    use cofferdam_core::DestroyReason;
    use rustix::fs::{CWD, Mode, OFlags};

    fn open(directory: &TestDirectory) -> OwnedFd {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC;
        rustix::fs::openat(CWD, directory.path().join("journal"), flags, Mode::RUSR | Mode::WUSR)
            .unwrap()
    }

    fn numbers(file: &OwnedFd, after: u64) -> Vec<u64> {
        let mut numbers = Vec::new();
        each(file, after, |entry| numbers.push(entry.seq)).unwrap();
        numbers
    }

    #[test]
    fn a_torn_last_line_is_left_out_and_overwritten() {
        let directory = TestDirectory::new("journal");
        let file = open(&directory);
        let mut journal = Journal::open(open(&directory)).unwrap();
        assert_eq!(journal.add(Happened::Resumed), 1);
        assert_eq!(journal.add(Happened::Destroyed(DestroyReason::Lost)), 2);
        assert!(journal.has(2) && journal.is_whole() && !journal.has(3));
        let size = rustix::fs::fstat(&file).unwrap().st_size;
        for torn in [&b"{\"seq\":3,\"at"[..], b"\0\0\0\0", b"not json\n{\"seq\":4}\n"] {
            rustix::io::pwrite(&file, torn, size.cast_unsigned()).unwrap();
            assert_eq!(numbers(&file, 0), [1, 2]);
            assert_eq!(numbers(&file, 1), [2]);
            drop(Journal::open(open(&directory)).unwrap());
            assert_eq!(rustix::fs::fstat(&file).unwrap().st_size, size);
        }
        let mut next = Journal::open(open(&directory)).unwrap();
        assert_eq!(next.add(Happened::Resumed), 3);
        assert_eq!(numbers(&file, 0), [1, 2, 3]);
    }

    #[test]
    fn an_entry_is_found_from_the_end() {
        let directory = TestDirectory::new("journal-end");
        let file = open(&directory);
        assert_eq!(mark_of(&file, 1), None);
        let mut journal = Journal::open(open(&directory)).unwrap();
        let mut ends = Vec::new();
        for _ in 0..40_000 {
            journal.add(Happened::Resumed);
            ends.push(journal.end);
        }
        let end = *ends.last().unwrap();
        assert!(end > u64::try_from(MAX_ENTRY_BYTES).unwrap());
        let mark = |seq: u64| Mark { seq, end: ends[usize::try_from(seq).unwrap() - 1] };
        for seq in [40_000, 39_999, 39_000, 30_000] {
            assert_eq!(mark_of(&file, seq), Some(mark(seq)));
        }
        // Too long ago, and not yet.
        assert_eq!(mark_of(&file, 1), None);
        assert_eq!(mark_of(&file, 40_001), None);
        for torn in [&b"{\"seq\":40001,\"at"[..], b"\0\0"] {
            rustix::io::pwrite(&file, torn, end).unwrap();
            assert_eq!(mark_of(&file, 40_000), Some(mark(40_000)));
        }
        // Behind what is no entry nothing counts.
        let behind = b"not json\n{\"seq\":40001,\"at_ms\":1,\"happened\":\"Resumed\"}\n";
        rustix::io::pwrite(&file, behind, end).unwrap();
        assert_eq!(mark_of(&file, 40_000), None);
        // A short file has its first line whole.
        rustix::fs::ftruncate(&file, ends[1]).unwrap();
        assert_eq!((mark_of(&file, 1), mark_of(&file, 2)), (Some(mark(1)), Some(mark(2))));
        assert_eq!(last(&file).unwrap().unwrap().seq, 2);
        rustix::io::pwrite(&file, b"not json\n", ends[1]).unwrap();
        assert_eq!(last(&file).unwrap().unwrap().seq, 2);
        assert_eq!(first(&file, |entry| Some(entry.seq)).unwrap(), Some(1));
        assert_eq!(first(&file, |_| None::<u64>).unwrap(), None);
    }

    #[test]
    fn an_entry_that_the_disk_does_not_take_has_not_happened_yet() {
        let directory = TestDirectory::new("journal-full");
        let full = rustix::fs::openat(CWD, "/dev/full", OFlags::RDWR, Mode::empty()).unwrap();
        let file = open(&directory);
        let mut journal = Journal::open(open(&directory)).unwrap();
        let good = std::mem::replace(&mut journal.file, full);
        assert_eq!(journal.add(Happened::Resumed), 1);
        assert_eq!(journal.add(Happened::Resumed), 2);
        assert!(!journal.has(1) && !journal.is_whole());
        assert!(!journal.begin(Happened::Resumed), "it never happens");
        journal.file = good;
        journal.flush();
        assert!(journal.has(2) && journal.is_whole());
        assert_eq!(numbers(&file, 0), [1, 2]);
        assert!(journal.begin(Happened::Resumed) && journal.has(3));
        assert_eq!(journal.add(Happened::Resumed), 4);
        assert_eq!(numbers(&file, 0), [1, 2, 3, 4]);
    }
}

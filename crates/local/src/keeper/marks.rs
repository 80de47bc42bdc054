//! Up to where journals were read, so that what a question costs does not grow with all that happened.

use super::journal::{Mark, each_behind, mark_of};
use super::place::Place;
use crate::state::retry;
use cofferdam_core::{Error, ErrorKind, JournalEntry, Result, SandboxId};
use rustix::fd::OwnedFd;
use rustix::fs::fstat;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// How many journals one backend remembers; those that were read longest ago go first.
const MAX_MARKS: usize = 1024;

/// A journal: the sandbox that it is of, and its file, for an id may be used again.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Which {
    sandbox: SandboxId,
    device: u64,
    inode: u64,
}

/// The end of what was read last, of each journal.
#[derive(Debug, Default)]
pub(super) struct Marks(Mutex<VecDeque<(Which, Mark)>>);

impl Marks {
    /// Every entry of a sandbox's journal after the one of this number.
    pub(super) fn entries(
        &self,
        place: &Place,
        sandbox: &SandboxId,
        after: u64,
    ) -> Result<Vec<JournalEntry>> {
        match place.journal()? {
            Some(journal) => self.read(&journal, sandbox, after),
            None => Ok(Vec::new()),
        }
    }

    fn read(
        &self,
        journal: &OwnedFd,
        sandbox: &SandboxId,
        after: u64,
    ) -> Result<Vec<JournalEntry>> {
        let stat = fstat(journal).map_err(|errno| {
            let what = format!("look at the journal of {sandbox}");
            Error::new(ErrorKind::Io, what).source(std::io::Error::from(errno))
        })?;
        let which = Which { sandbox: sandbox.clone(), device: stat.st_dev, inode: stat.st_ino };
        let known = self.get(&which).filter(|mark| {
            // One who asks for less begins at the beginning, and so does who finds no end of a line there.
            mark.seq <= after && is_end_of_line(journal, mark.end)
        });
        // What this process did not read, somebody has who asks for what comes after it.
        let found = || (after > 0).then(|| mark_of(journal, after)).flatten();
        let begin = known.or_else(found).unwrap_or_default();
        let (mut mark, mut entries) = (begin, Vec::new());
        each_behind(journal, &mut mark, |entry| entries.push(entry))?;
        let follows = entries.first().is_none_or(|entry| entry.seq == begin.seq + 1);
        if !follows {
            // Not the file that was read: nothing of it is known.
            (mark, entries) = (Mark::default(), Vec::new());
            each_behind(journal, &mut mark, |entry| entries.push(entry))?;
        }
        self.put(which, mark);
        entries.retain(|entry| entry.seq > after);
        Ok(entries)
    }

    fn get(&self, which: &Which) -> Option<Mark> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().rev().find(|(known, _)| known == which).map(|(_, mark)| *mark)
    }

    fn put(&self, which: Which, mark: Mark) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(known, _)| *known != which);
        all.push_back((which, mark));
        if all.len() > MAX_MARKS {
            all.pop_front();
        }
    }
}

fn is_end_of_line(journal: &OwnedFd, at: u64) -> bool {
    let Some(before) = at.checked_sub(1) else { return true };
    let mut byte = [0];
    matches!(retry(|| rustix::io::pread(journal, &mut byte, before)), Ok(1)) && byte == [b'\n']
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keeper::journal::Journal;
    use crate::test_directory::TestDirectory;
    use cofferdam_core::Happened;
    use rustix::fs::{CWD, Mode, OFlags, openat};

    fn open(directory: &TestDirectory, name: &str) -> OwnedFd {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC;
        openat(CWD, directory.path().join(name), flags, Mode::RUSR | Mode::WUSR).unwrap()
    }

    fn numbers(marks: &Marks, journal: &OwnedFd, after: u64) -> Vec<u64> {
        let entries = marks.read(journal, &SandboxId::new("a").unwrap(), after).unwrap();
        entries.iter().map(|entry| entry.seq).collect()
    }

    #[test]
    fn what_was_read_is_not_read_again_and_nothing_is_missed() {
        let directory = TestDirectory::new("marks");
        let (marks, file) = (Marks::default(), open(&directory, "journal"));
        let mut journal = Journal::open(open(&directory, "journal")).unwrap();
        assert!(numbers(&marks, &file, 0).is_empty());
        journal.add(Happened::Resumed);
        journal.add(Happened::Resumed);
        assert_eq!(numbers(&marks, &file, 0), [1, 2]);
        // Who knows less is told again.
        assert_eq!(numbers(&marks, &file, 0), [1, 2]);
        assert_eq!(numbers(&marks, &file, 1), [2]);
        // What stands before the mark is not looked at any more.
        rustix::io::pwrite(&file, b"#", 0).unwrap();
        journal.add(Happened::Resumed);
        assert_eq!(numbers(&marks, &file, 2), [3]);
        assert!(numbers(&marks, &file, 3).is_empty());
    }

    #[test]
    fn another_file_is_read_from_its_beginning() {
        let directory = TestDirectory::new("marks-other");
        let (marks, file) = (Marks::default(), open(&directory, "journal"));
        let mut journal = Journal::open(open(&directory, "journal")).unwrap();
        journal.add(Happened::Resumed);
        journal.add(Happened::Resumed);
        assert_eq!(numbers(&marks, &file, 0), [1, 2]);
        let other = open(&directory, "other");
        let mut journal = Journal::open(open(&directory, "other")).unwrap();
        journal.add(Happened::Resumed);
        assert_eq!(numbers(&marks, &other, 0), [1]);
        // The same file, written anew.
        rustix::fs::ftruncate(&file, 0).unwrap();
        let mut journal = Journal::open(open(&directory, "journal")).unwrap();
        for _ in 0..3 {
            journal.add(Happened::Resumed);
        }
        assert_eq!(numbers(&marks, &file, 0), [1, 2, 3]);
        assert_eq!(numbers(&marks, &file, 2), [3]);
    }

    #[test]
    fn only_so_many_journals_are_remembered() {
        let marks = Marks::default();
        for inode in 0..=u64::try_from(MAX_MARKS).unwrap() {
            let sandbox = SandboxId::new("a").unwrap();
            marks.put(Which { sandbox, device: 1, inode }, Mark::default());
        }
        assert_eq!(marks.0.lock().unwrap().len(), MAX_MARKS);
        assert_eq!(marks.0.lock().unwrap()[0].0.inode, 1);
    }
}

//! The log: one line a connection, never more bytes than were granted.

use crate::attempt::now_ms;
use cofferdam_core::ConnectionReport;
use rustix::fs::{FallocateFlags, SeekFrom, fallocate, seek};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, PoisonError};

/// What stands where older lines were dropped.
const DROPPED: &str =
    "there were more connections than the audit keeps: older ones are not in it any more";

/// Appends reports to a file. Where it would hold more bytes than its bound, the older half of them is
/// dropped, whole lines, and a line says so; where that cannot be, new lines are dropped instead.
pub(crate) struct Log(Mutex<Option<Kept>>);

/// A file of which what was dropped is a hole: a place in it is the same line for whoever reads it on.
struct Kept {
    file: File,
    /// Where the first line that is kept begins, and where the last one ends.
    begins: u64,
    ends: u64,
    most: u64,
}

impl Log {
    /// A log in this file, which was opened to append to it. Without one nothing is written.
    pub(crate) fn new(file: Option<File>, most: u64) -> io::Result<Self> {
        let kept = match file {
            Some(file) => Some(Kept::new(file, most)?),
            None => None,
        };
        Ok(Self(Mutex::new(kept)))
    }

    /// Writes a line. A log that cannot be written holds up nobody.
    pub(crate) fn write(&self, report: &ConnectionReport) {
        if let Some(kept) = self.0.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            let _ = kept.add(report);
        }
    }
}

impl Kept {
    fn new(file: File, most: u64) -> io::Result<Self> {
        let ends = file.metadata()?.len();
        // A file without any data has none to seek.
        let begins = seek(&file, SeekFrom::Data(0)).unwrap_or(ends);
        Ok(Self { file, begins, ends, most })
    }

    fn add(&mut self, report: &ConnectionReport) -> io::Result<()> {
        let line = line(report)?;
        if !self.has_room(&line) {
            self.drop_older()?;
            let note = ConnectionReport::of_the_gate(now_ms(), report.policy_version, DROPPED);
            self.append(&self::line(&note)?)?;
        }
        self.append(&line)
    }

    fn has_room(&self, line: &[u8]) -> bool {
        let kept = self.ends.saturating_sub(self.begins);
        kept.saturating_add(line.len() as u64) <= self.most
    }

    fn append(&mut self, line: &[u8]) -> io::Result<()> {
        if !self.has_room(line) {
            return Ok(());
        }
        if let Err(error) = self.file.write_all(line) {
            // Half a line would spoil the next one too.
            self.file.set_len(self.ends)?;
            return Err(error);
        }
        self.ends = self.ends.saturating_add(line.len() as u64);
        Ok(())
    }

    /// Drops the older half of what was granted.
    fn drop_older(&mut self) -> io::Result<()> {
        let kept = self.most.div_euclid(2).min(self.ends.saturating_sub(self.begins));
        let from = self.ends.saturating_sub(kept);
        let mut newer = vec![0; usize::try_from(kept).unwrap_or(0)];
        self.file.read_exact_at(&mut newer, from)?;
        let begun = newer.iter().position(|byte| *byte == b'\n').map_or(kept, |end| end as u64 + 1);
        let begins = from.saturating_add(begun);
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        if fallocate(&self.file, hole, 0, begins).is_ok() {
            self.begins = begins;
            return Ok(());
        }
        self.begin_again(newer.get(usize::try_from(begun).unwrap_or(0)..).unwrap_or_default())
    }

    /// The same on a file system without holes: what is read on there has to be found anew.
    fn begin_again(&mut self, newer: &[u8]) -> io::Result<()> {
        self.file.set_len(0)?;
        (self.begins, self.ends) = (0, 0);
        self.file.write_all(newer)?;
        self.ends = newer.len() as u64;
        Ok(())
    }
}

fn line(report: &ConnectionReport) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(report)?;
    line.push(b'\n');
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> File {
        let file = rustix::fs::memfd_create("log", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        rustix::fs::fcntl_setfl(&file, rustix::fs::OFlags::APPEND).unwrap();
        file.into()
    }

    fn report(number: u64) -> ConnectionReport {
        ConnectionReport { id: number, ..ConnectionReport::of_the_gate(1, 1, "a reason") }
    }

    /// What stands in the file from there on, holes left out.
    fn ids(file: &File, from: u64) -> Vec<u64> {
        let mut text = vec![0; usize::try_from(file.metadata().unwrap().len() - from).unwrap()];
        file.read_exact_at(&mut text, from).unwrap();
        let text = String::from_utf8(text).unwrap();
        let lines = text.trim_start_matches('\0').lines();
        lines.map(|line| serde_json::from_str::<ConnectionReport>(line).unwrap().id).collect()
    }

    #[test]
    fn a_place_in_a_log_stays_the_same_line_when_older_ones_are_dropped() {
        const MOST: u64 = 64 * 1024;
        let file = file();
        let mut kept = Kept::new(file.try_clone().unwrap(), MOST).unwrap();
        let mut places = Vec::new();
        for number in 1..=2000 {
            places.push(kept.ends);
            kept.add(&report(number)).unwrap();
            let blocks = std::os::unix::fs::MetadataExt::blocks(&file.metadata().unwrap());
            assert!(blocks * 512 <= MOST + 4096, "{number}: {blocks}");
        }
        let last = ids(&file, kept.begins);
        assert!(last.len() > 100 && last.ends_with(&[1999, 2000]), "{last:?}");
        assert!(last.contains(&0), "it says that lines were dropped");
        // Somebody who had read up to this one goes on with the next.
        let from = *places.get(1989).unwrap();
        assert_eq!(ids(&file, from), (1990..=2000).collect::<Vec<_>>());
        // A gate that is started again goes on where the last one was.
        let again = Kept::new(file.try_clone().unwrap(), MOST).unwrap();
        assert_eq!(again.ends, kept.ends);
        assert!(kept.begins - again.begins < 4096, "{} {}", again.begins, kept.begins);
    }

    #[test]
    fn without_holes_it_begins_again() {
        let file = file();
        let mut kept = Kept::new(file.try_clone().unwrap(), 4000).unwrap();
        (1..=3).for_each(|number| kept.add(&report(number)).unwrap());
        let mut two = line(&report(2)).unwrap();
        two.extend(line(&report(3)).unwrap());
        kept.begin_again(&two).unwrap();
        kept.add(&report(4)).unwrap();
        assert_eq!(ids(&file, 0), [2, 3, 4]);
        assert_eq!(kept.ends, file.metadata().unwrap().len());
    }
}

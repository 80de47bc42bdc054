//! The log: one line a connection, never more bytes than were granted.

use cofferdam_core::ConnectionReport;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, PoisonError};

/// Appends reports to a file. Where the file would outgrow its bound, the older half of it is dropped,
/// whole lines; where it cannot be read, new lines are dropped instead.
pub(crate) struct Log(Mutex<Option<Kept>>);

struct Kept {
    file: File,
    bytes: u64,
    most: u64,
}

impl Log {
    /// A log in this file, which was opened to append to it. Without one nothing is written.
    pub(crate) fn new(file: Option<File>, most: u64) -> io::Result<Self> {
        let kept = match file {
            Some(file) => Some(Kept { bytes: file.metadata()?.len(), file, most }),
            None => None,
        };
        Ok(Self(Mutex::new(kept)))
    }

    /// Writes a line. A log that cannot be written holds up nobody.
    pub(crate) fn write(&self, report: &ConnectionReport) {
        let Ok(mut line) = serde_json::to_vec(report) else { return };
        line.push(b'\n');
        if let Some(kept) = self.0.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            let _ = kept.append(&line);
        }
    }
}

impl Kept {
    fn append(&mut self, line: &[u8]) -> io::Result<()> {
        let more = line.len() as u64;
        if self.bytes.saturating_add(more) > self.most {
            self.halve()?;
        }
        if self.bytes.saturating_add(more) > self.most {
            return Ok(());
        }
        if let Err(error) = self.file.write_all(line) {
            // Half a line would spoil the next one too.
            self.file.set_len(self.bytes)?;
            return Err(error);
        }
        self.bytes = self.bytes.saturating_add(more);
        Ok(())
    }

    /// Drops the older half of what was granted.
    fn halve(&mut self) -> io::Result<()> {
        let kept = self.most.div_euclid(2).min(self.bytes);
        let mut newer = vec![0; usize::try_from(kept).unwrap_or(0)];
        self.file.read_exact_at(&mut newer, self.bytes.saturating_sub(kept))?;
        let begun = newer.iter().position(|byte| *byte == b'\n').map_or(kept, |end| end as u64 + 1);
        let newer = newer.get(usize::try_from(begun).unwrap_or(0)..).unwrap_or_default();
        self.file.set_len(0)?;
        self.bytes = 0;
        self.file.write_all(newer)?;
        self.bytes = newer.len() as u64;
        Ok(())
    }
}

//! Where a session stands in its history, as a file that is written after every command.
//!
//! It is one line of JSON and a line with its SHA-256, filled up to a page. A page is written over in its
//! place by one call, which a kill does not interrupt: to put another file in its place makes some file
//! systems write that to the disk at once, for which the command would wait. What does not fit into a page
//! is put in its place all the same. Whoever reads without the session's lock may meet half of what is
//! being written, and the sum tells.

use super::point::TreeFile;
use cofferdam_core::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The format that this program writes. In the one before it no point was one file, which is read as well;
/// whoever knows only that one refuses this one, and removes nothing that it does not know.
const FORMAT: u32 = 2;
const FORMAT_BEFORE: u32 = 1;
/// The size of the file where all fits into it.
const PAGE_BYTES: usize = 4096;
/// The bytes of a sum.
const SUM_BYTES: usize = 64;

/// Where a session stands in its history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct State {
    pub(super) format: u32,
    /// The point that it stands at. Its header may have been removed.
    pub(super) at: Option<u32>,
    /// The last state that was kept. The point that it stands at may be a later one that was not.
    pub(super) tree: Option<TreeFile>,
    pub(super) next_point: u32,
    pub(super) next_blob: u64,
    /// Bytes on disk of all contents and trees.
    pub(super) bytes: u64,
    /// When commands were listed for the last look, in milliseconds since 1970. What ended before that is
    /// in some point.
    pub(super) looked_ms: u64,
    /// Commands that are in some point though they ended in that millisecond or later.
    #[serde(default)]
    pub(super) told: Vec<String>,
    /// Commands that ended while another one's point was taken, whose own is still to come.
    #[serde(default)]
    pub(super) owed: Vec<String>,
    /// Where it is being taken. Whether it arrived is told by the inode of its layer.
    pub(super) going: Option<Going>,
}

/// Where a session is being taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Going {
    pub(super) at: u32,
    pub(super) tree: TreeFile,
    /// That of the directory which becomes the layer.
    pub(super) inode: u64,
}

impl State {
    /// Stands where it was being taken, if the layer has this inode.
    pub(super) fn arrive(&mut self, inode: u64) {
        if let Some(going) = self.going.take().filter(|going| going.inode == inode) {
            self.at = Some(going.at);
            self.tree = Some(going.tree);
        }
    }
}

impl Default for State {
    fn default() -> Self {
        Self {
            format: FORMAT,
            at: None,
            tree: None,
            next_point: 0,
            next_blob: 1,
            bytes: 0,
            looked_ms: 0,
            told: Vec::new(),
            owed: Vec::new(),
            going: None,
        }
    }
}

impl State {
    pub(super) fn encode(&self) -> Result<Vec<u8>> {
        let mut text = serde_json::to_vec(self)
            .map_err(|e| Error::new(ErrorKind::Io, "write down the history").source(e))?;
        let sum = sum(&text);
        text.push(b'\n');
        text.extend(sum);
        text.push(b'\n');
        text.resize(text.len().max(PAGE_BYTES), b' ');
        Ok(text)
    }

    /// Reads it; `None` where it is not whole.
    pub(super) fn decode(text: &[u8]) -> Result<Option<Self>> {
        let mut lines = text.splitn(2, |byte| *byte == b'\n');
        let line = lines.next().unwrap_or_default();
        // What was written before there were sums was put in its place whole.
        if lines.next().is_some_and(|rest| rest.get(..SUM_BYTES) != Some(sum(line).as_slice())) {
            return Ok(None);
        }
        match serde_json::from_slice::<Self>(line) {
            Ok(state) if (FORMAT_BEFORE..=FORMAT).contains(&state.format) => {
                Ok(Some(Self { format: FORMAT, ..state }))
            }
            Ok(Self { format, .. }) => {
                let what = format!("the history is of format {format}, not {FORMAT}");
                Err(Error::new(ErrorKind::Unsupported, what)
                    .hint("Use the version of Cofferdam that made it."))
            }
            Err(_) => Ok(None),
        }
    }
}

/// Writes over the page that is there, if it is one and what comes is one.
pub(super) fn write_over(path: &Path, text: &[u8]) -> std::io::Result<bool> {
    if text.len() != PAGE_BYTES {
        return Ok(false);
    }
    let file = match File::options().write(true).open(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        other => other?,
    };
    if file.metadata()?.len() != text.len() as u64 {
        return Ok(false);
    }
    file.write_all_at(text, 0).map(|()| true)
}

fn sum(text: &[u8]) -> Vec<u8> {
    let digest = Sha256::digest(text);
    digest.iter().flat_map(|byte| format!("{byte:02x}").into_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_half_written_is_not_read() {
        let old = State { next_point: 7, told: vec!["x1".into()], ..State::default() };
        let new = State { next_point: 8, told: vec!["x2".into()], ..State::default() };
        let (before, after) = (old.encode().unwrap(), new.encode().unwrap());
        assert_eq!((before.len(), after.len()), (PAGE_BYTES, PAGE_BYTES));
        assert_eq!(State::decode(&after).unwrap(), Some(new.clone()));
        for at in 0..PAGE_BYTES {
            let mixed = [&after[..at], &before[at..]].concat();
            let read = State::decode(&mixed).unwrap();
            assert!(
                read.is_none() || read == Some(old.clone()) || read == Some(new.clone()),
                "{at}"
            );
        }
        assert_eq!(State::decode(b"").unwrap(), None);
        assert_eq!(State::decode(&after[..100]).unwrap(), None);
        // As it was written before there were sums.
        let line = serde_json::to_vec(&old).unwrap();
        assert_eq!(State::decode(&line).unwrap(), Some(old.clone()));
        // As it was written before points were files, and as it may be written one day.
        let before = serde_json::to_vec(&State { format: FORMAT_BEFORE, ..old.clone() }).unwrap();
        assert_eq!(State::decode(&before).unwrap(), Some(old.clone()));
        let later = serde_json::to_vec(&State { format: FORMAT + 1, ..old }).unwrap();
        assert_eq!(State::decode(&later).unwrap_err().kind, ErrorKind::Unsupported);
    }

    #[test]
    fn a_page_is_written_over_and_nothing_else() {
        let path = std::env::temp_dir().join(format!("cofferdam-state-{}", std::process::id()));
        let small = State::default().encode().unwrap();
        let told = (0..1000).map(|number| format!("x{number}")).collect();
        let large = State { told, ..State::default() }.encode().unwrap();
        assert!(!write_over(&path, &small).unwrap());
        std::fs::write(&path, &large).unwrap();
        assert!(!write_over(&path, &small).unwrap());
        std::fs::write(&path, &small).unwrap();
        assert!(!write_over(&path, &large).unwrap());
        assert!(write_over(&path, &small).unwrap());
        std::fs::remove_file(&path).unwrap();
    }
}

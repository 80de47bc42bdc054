//! What changes a session's layer that is none of its commands: so that nobody takes it for theirs.
//!
//! A file beside the layer grows by a letter before such a change begins, and by another one when it is over.
//! Whoever looked twice, and finds it longer, cannot tell whose is what differs.
//!
//! LIMIT: where the disk is full nothing is noted. A change that begins before the first look and is not over at the
//! second is not seen to be one.

use crate::session::Session;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

/// The directory of the layer in what a session keeps, and the file in it.
const NOTES: &str = "cow/outside";
/// How much is read of what was noted since. More says nothing more.
const MOST_READ: u64 = 4096;

/// Who changes a layer from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outside {
    /// Files are written through the sandbox.
    Files,
    /// What the session changed lands.
    Apply,
    /// What it changed is dropped.
    Discard,
    /// It goes to another point of its history.
    Undo,
}

impl Outside {
    const ALL: [Self; 4] = [Self::Files, Self::Apply, Self::Discard, Self::Undo];

    fn letter(self) -> u8 {
        match self {
            Self::Files => b'f',
            Self::Apply => b'a',
            Self::Discard => b'd',
            Self::Undo => b'u',
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Files => "a write of files from outside",
            Self::Apply => "an apply",
            Self::Discard => "a discard",
            Self::Undo => "an undo",
        }
    }
}

/// A change from outside that goes on. It is over when this is dropped.
#[derive(Debug)]
pub(crate) struct Underway {
    notes: Option<File>,
    what: Outside,
}

impl Underway {
    fn note(&mut self) {
        if let Some(notes) = &mut self.notes {
            // What it is for can be done without it.
            let _ = notes.write_all(&[self.what.letter()]);
        }
    }
}

impl Drop for Underway {
    fn drop(&mut self) {
        self.note();
    }
}

impl Session {
    /// Notes that its layer is changed from outside, until what this returns is dropped. One without a layer has no
    /// need of it.
    ///
    /// ORDER: before the first thing is done for it, the end of commands among them.
    pub(crate) fn begin_outside(&self, what: Outside) -> Underway {
        let notes = OpenOptions::new().append(true).create(true).open(self.outside());
        let mut underway = Underway { notes: notes.ok(), what };
        underway.note();
        underway
    }

    /// How much was noted until now.
    pub(crate) fn noted_outside(&self) -> u64 {
        std::fs::metadata(self.outside()).map_or(0, |notes| notes.len())
    }

    /// What was noted since there was so much, as a sentence that says why nobody knows what a command did.
    pub(crate) fn changed_outside(&self, since: u64) -> Option<String> {
        if self.noted_outside() <= since {
            return None;
        }
        let mut letters = Vec::new();
        let read = File::open(self.outside()).and_then(|mut notes| {
            notes.seek(SeekFrom::Start(since))?;
            notes.take(MOST_READ).read_to_end(&mut letters)
        });
        let all = Outside::ALL.into_iter().filter(|what| letters.contains(&what.letter()));
        let all: Vec<&str> = all.map(Outside::name).collect();
        let what = match (read, all.as_slice()) {
            (Err(_), _) | (Ok(_), []) => "something else".to_owned(),
            (Ok(_), all) => all.join(" and "),
        };
        Some(format!(
            "{what} changed the session's layer while the command ran, so that nobody can tell what is \
             the command's own"
        ))
    }

    fn outside(&self) -> PathBuf {
        self.sessions.0.places.kept().join(self.id.as_str()).join(NOTES)
    }
}

//! Many changes carried out at once, whole or not at all.
//!
//! The [`Step`]s follow the request as what is written follows [`Request::Write`](super::Request): each
//! as four bytes of length, least significant first, its JSON, and for a file its bytes. Paths are
//! relative, have no `..`, and no link on the way is followed.

use crate::bytes::ByteString;
use serde::{Deserialize, Serialize};

/// The most steps of one carry.
pub const MAX_STEPS: usize = 100_000;
/// The most bytes of files in one carry.
pub const MAX_CARRIED_BYTES: u64 = 2 << 30;
/// The most bytes of one step's JSON.
pub const MAX_STEP_BYTES: usize = 64 << 10;
/// In how many directories that are there already one carry changes names. Each is held open.
pub const MAX_HELD_DIRECTORIES: usize = 3000;
/// How many names a path of a carry has at most. A stage adds two, and is removed like every directory.
pub const MAX_CARRY_DEPTH: usize = 126;
/// The most characters of a carry's name.
pub const MAX_CARRY_NAME: usize = 32;

/// How many bytes tell the length of a step.
pub const STEP_HEAD_BYTES: usize = 4;

/// What is to be carried out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Carry {
    /// A name that no other carry has: small letters and digits.
    pub name: String,
}

/// One thing that has to be so, or that is to be done. What has to be so comes first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    /// This is so before the first change, and still when the change comes to it.
    Expect {
        /// Where.
        path: ByteString,
        /// What is there.
        is: Before,
    },
    /// A regular file stands there from now on. Its bytes follow.
    File {
        /// Where. Nothing, or a file or link that is expected.
        path: ByteString,
        /// Its permissions, at most 0777.
        mode: u32,
        /// How many bytes follow.
        bytes: u64,
    },
    /// A symbolic link stands there from now on.
    Link {
        /// Where. Nothing, or a file or link that is expected.
        path: ByteString,
        /// Where it leads, as it says.
        target: ByteString,
    },
    /// A directory stands there from now on.
    Directory {
        /// Where. Nothing.
        path: ByteString,
        /// Its permissions, at most 0777; without it those that a command's would have.
        mode: Option<u32>,
    },
    /// A file or link, which is expected, goes.
    Remove {
        /// Which.
        path: ByteString,
    },
    /// A directory, which is empty by then, goes.
    RemoveDirectory {
        /// Which.
        path: ByteString,
    },
    /// A file or link, which is expected, gets another name. Nothing is there.
    Rename {
        /// Its name before.
        from: ByteString,
        /// Its name after.
        to: ByteString,
    },
}

/// What is at a path before anything is changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Before {
    /// Nothing, or no directory to look in.
    Nothing,
    /// A regular file.
    File {
        /// The SHA-256 of its bytes, in hexadecimal.
        sha256: String,
        /// Its permissions, at most 07777.
        mode: u32,
    },
    /// A symbolic link.
    Link {
        /// Where it leads, as it says.
        target: ByteString,
    },
}

/// What has become of a carry whose end nobody heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CarryEnd {
    /// It was begun, and everything is as it was before.
    Undone,
    /// All of it was done.
    Done,
    /// Nothing tells of it: it was not begun, or it was done and cleared away.
    NoTrace,
    /// Somebody is still at it.
    Busy,
}

impl Step {
    /// The step as it is sent, without the bytes of a file. `None` if it is too long.
    pub fn encode(&self) -> Option<Vec<u8>> {
        let text = serde_json::to_vec(self).ok().filter(|text| text.len() <= MAX_STEP_BYTES)?;
        let length = u32::try_from(text.len()).ok()?;
        Some([&length.to_le_bytes(), text.as_slice()].concat())
    }
}

/// The length of a step, from its head. `None` if it is longer than a step may be.
pub fn step_length(head: [u8; STEP_HEAD_BYTES]) -> Option<usize> {
    usize::try_from(u32::from_le_bytes(head)).ok().filter(|length| *length <= MAX_STEP_BYTES)
}

/// Whether this can be a carry's name.
pub fn is_carry_name(name: &str) -> bool {
    let good = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    (1..=MAX_CARRY_NAME).contains(&name.len()) && name.bytes().all(good)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_names_fit_a_step_and_longer_ones_are_refused() {
        let path = |bytes: usize| ByteString::from(vec![0xff; bytes]);
        assert!(Step::Rename { from: path(4096), to: path(4096) }.encode().is_some());
        assert_eq!(Step::Remove { path: path(MAX_STEP_BYTES) }.encode(), None);
        let most = u32::try_from(MAX_STEP_BYTES).unwrap();
        assert_eq!(step_length(most.to_le_bytes()), Some(MAX_STEP_BYTES));
        assert_eq!(step_length((most + 1).to_le_bytes()), None);
    }

    #[test]
    fn a_name_of_a_carry_is_one_word_of_small_letters() {
        assert!(is_carry_name(&"a1".repeat(MAX_CARRY_NAME / 2)));
        for bad in ["", "..", "a/b", "A", &"a".repeat(MAX_CARRY_NAME + 1)] {
            assert!(!is_carry_name(bad), "{bad:?}");
        }
    }
}

//! What a caller is told beside the counts.

use cofferdam_core::ByteString;
use cofferdam_core::files::EntryKind;
use std::fmt;

/// How many notes are kept. More are counted.
pub const MAX_NOTES: usize = 1000;

/// Something that is not in the new place as it was in the old one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// What it is about; below the directory that was exported, or as the archive says.
    pub path: ByteString,
    /// What is to be known.
    pub remark: Remark,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = &self.path;
        match self.remark {
            Remark::Skipped(kind) => write!(f, "{path:?} was skipped, being a {}", kind.name()),
            Remark::Unreadable => {
                write!(f, "{path:?} was left out, as it is gone or cannot be read")
            }
            Remark::Cut => {
                write!(f, "{path:?} grew meanwhile, and was cut at the size that it had")
            }
            Remark::Padded => {
                write!(f, "{path:?} became shorter meanwhile, and was filled up with zeros")
            }
            Remark::IdentityLeftOut => write!(f, "{path:?} lost its set-id or sticky bits"),
            Remark::OwnerAdded => write!(f, "{path:?} got all permissions for its owner"),
        }
    }
}

/// What is to be known of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remark {
    /// It was left out, being neither a file nor a directory nor a link.
    Skipped(EntryKind),
    /// It was left out, since it is gone or cannot be read.
    Unreadable,
    /// It grew meanwhile, and was cut at the size that it had.
    Cut,
    /// It became shorter or could not be read to its end, and was filled up with zeros.
    Padded,
    /// Bits were left out that give whoever runs it another identity, or the sticky bit.
    IdentityLeftOut,
    /// The owner got all permissions of a directory.
    OwnerAdded,
}

impl Remark {
    /// Whether the archive does not hold what the workspace did.
    pub fn is_loss(self) -> bool {
        match self {
            Self::Unreadable | Self::Cut | Self::Padded => true,
            Self::Skipped(_) | Self::IdentityLeftOut | Self::OwnerAdded => false,
        }
    }
}

/// Some notes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Notes {
    /// The first [`MAX_NOTES`].
    pub first: Vec<Note>,
    /// How many more there were.
    pub more: u64,
    /// How many of all are a loss; see [`Remark::is_loss`].
    pub losses: u64,
}

impl Notes {
    pub(crate) fn add(&mut self, path: &[u8], remark: Remark) {
        self.losses += u64::from(remark.is_loss());
        if self.first.len() < MAX_NOTES {
            self.first.push(Note { path: path.to_vec().into(), remark });
        } else {
            self.more += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_that_are_not_kept_are_counted() {
        let mut notes = Notes::default();
        (0..MAX_NOTES + 2).for_each(|_| notes.add(b"x", Remark::Cut));
        notes.add(b"x", Remark::OwnerAdded);
        assert_eq!((notes.first.len(), notes.more), (MAX_NOTES, 3));
        assert_eq!(notes.losses, MAX_NOTES as u64 + 2);
    }
}

//! What a ledger says: fields ended by a zero byte, in groups led by a letter.

use crate::control_files::{AbsentName, Nature};
use cofferdam_core::{Error, ErrorKind, Result};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Statx, StatxFlags};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Leads what one process wrote at once, with the workspace's path.
const WORKSPACE: &str = "workspace 1";
/// Leads what is about to be made.
const INTENT: char = '?';
/// Leads what was made.
const MADE: char = '!';
/// Leads what was not made after all.
const DROPPED: char = '-';
/// What git reads in a git directory that is its own common one.
const COMMON_DIR: &[u8] = b".\n";

/// What a placeholder is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// An empty directory.
    Directory,
    /// A socket node.
    Socket,
    /// An empty file.
    Empty,
    /// Git's `commondir`.
    CommonDir,
}

/// Tells a file from another one of the same name, even if the number was used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    inode: u64,
    born_s: i64,
    born_ns: u32,
}

/// What came of one intent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) path: String,
    /// `None` where nothing was made.
    pub(super) made: Option<(Kind, Identity)>,
}

/// What is known of one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) kind: Kind,
    /// The last that was made.
    pub(super) identity: Option<Identity>,
    /// Intents without an outcome: somebody died, or has not come that far.
    pub(super) open: u32,
}

/// A whole ledger.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Ledger {
    pub(super) workspace: Option<PathBuf>,
    /// By path, so that what is in a directory follows it.
    pub(super) entries: BTreeMap<String, Entry>,
}

/// The record of what is about to be made.
pub(super) fn intents(workspace: &Path, absent: &[AbsentName]) -> Vec<u8> {
    let mut text = Vec::from(WORKSPACE);
    text.push(0);
    text.extend_from_slice(workspace.as_os_str().as_bytes());
    text.push(0);
    for name in absent {
        push(&mut text, &format!("{INTENT}{}", Kind::of(name.nature).letter()));
        push(&mut text, &name.path);
    }
    text
}

/// The record of what came of it.
pub(super) fn outcomes(outcomes: &[Outcome]) -> Vec<u8> {
    let mut text = Vec::new();
    for outcome in outcomes {
        match outcome.made {
            Some((kind, Identity { inode, born_s, born_ns })) => {
                push(&mut text, &format!("{MADE}{}{inode} {born_s} {born_ns}", kind.letter()));
            }
            None => push(&mut text, &format!("{DROPPED}")),
        }
        push(&mut text, &outcome.path);
    }
    text
}

fn push(text: &mut Vec<u8>, field: &str) {
    text.extend_from_slice(field.as_bytes());
    text.push(0);
}

impl Ledger {
    /// Reads a ledger. What was cut off at its end was never made.
    pub(super) fn parse(content: &[u8]) -> Result<Self> {
        let mut ledger = Self::default();
        let whole = content.iter().rposition(|byte| *byte == 0).unwrap_or_default();
        let mut fields = content.get(..whole).unwrap_or_default().split(|byte| *byte == 0);
        while let (Some(head), Some(value)) = (fields.next(), fields.next()) {
            let head = String::from_utf8_lossy(head);
            if head == WORKSPACE {
                ledger.workspace = Some(OsString::from_vec(value.to_vec()).into());
                continue;
            }
            let path = String::from_utf8_lossy(value).into_owned();
            ledger.add(&head, path).ok_or_else(|| {
                Error::new(ErrorKind::Unsupported, "its format is unknown to this version")
            })?;
        }
        Ok(ledger)
    }

    /// Takes one field in. `None` where it makes no sense.
    fn add(&mut self, head: &str, path: String) -> Option<()> {
        let mut letters = head.chars();
        let tag = letters.next()?;
        if tag == DROPPED {
            if let Some(entry) = self.entries.get_mut(&path) {
                entry.open = entry.open.saturating_sub(1);
            }
            return Some(());
        }
        let kind = Kind::from_letter(letters.next()?)?;
        let entry = self.entries.entry(path).or_insert(Entry { kind, identity: None, open: 0 });
        match tag {
            INTENT => entry.open += 1,
            MADE => {
                let identity = Some(Identity::parse(letters.as_str())?);
                *entry = Entry { kind, identity, open: entry.open.saturating_sub(1) };
            }
            _ => return None,
        }
        Some(())
    }
}

impl Kind {
    pub(super) fn of(nature: Nature) -> Self {
        match nature {
            Nature::GitDirectory | Nature::MountPoint => Self::Directory,
            Nature::Directory | Nature::File => Self::Socket,
            Nature::GitFile => Self::Empty,
            Nature::CommonDir => Self::CommonDir,
        }
    }

    pub(super) fn letter(self) -> char {
        match self {
            Self::Directory => 'd',
            Self::Socket => 's',
            Self::Empty => 'e',
            Self::CommonDir => 'c',
        }
    }

    fn from_letter(letter: char) -> Option<Self> {
        [Self::Directory, Self::Socket, Self::Empty, Self::CommonDir]
            .into_iter()
            .find(|kind| kind.letter() == letter)
    }

    /// Whether several names can be one inode without harm: nobody can put anything into it.
    pub(super) fn can_be_linked(self) -> bool {
        self == Self::Socket
    }

    /// What one is on disk.
    pub(super) fn file_type(self) -> FileType {
        match self {
            Self::Directory => FileType::Directory,
            Self::Socket => FileType::Socket,
            Self::Empty | Self::CommonDir => FileType::RegularFile,
        }
    }

    /// How one is removed.
    pub(super) fn removal(self) -> AtFlags {
        match self {
            Self::Directory => AtFlags::REMOVEDIR,
            Self::Socket | Self::Empty | Self::CommonDir => AtFlags::empty(),
        }
    }

    /// What is in a placeholder of this kind.
    pub(super) fn content(self) -> &'static [u8] {
        match self {
            Self::CommonDir => COMMON_DIR,
            Self::Directory | Self::Socket | Self::Empty => b"",
        }
    }

    /// Whether what is there now is as it was made. An empty directory is told by its removal.
    pub(super) fn is_still(self, parent: BorrowedFd<'_>, name: &str) -> Result<bool, Errno> {
        let stat = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let found = FileType::from_raw_mode(stat.st_mode);
        let size = u64::try_from(stat.st_size).unwrap_or(u64::MAX);
        Ok(match self {
            Self::Directory => found == FileType::Directory,
            Self::Socket => found == FileType::Socket,
            Self::Empty => found == FileType::RegularFile && size == 0,
            Self::CommonDir => {
                found == FileType::RegularFile
                    && size <= COMMON_DIR.len() as u64
                    && has_content(parent, name)?
            }
        })
    }
}

/// Whether `commondir` says what we wrote, or as much of it as its maker lived to write.
fn has_content(parent: BorrowedFd<'_>, name: &str) -> Result<bool, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::openat(parent, name, flags, Mode::empty())?;
    let mut content = [0_u8; COMMON_DIR.len() + 1];
    let count = rustix::io::read(&file, &mut content)?;
    Ok(content.get(..count).is_some_and(|found| COMMON_DIR.starts_with(found)))
}

impl Identity {
    fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split(' ');
        Some(Self {
            inode: numbers.next()?.parse().ok()?,
            born_s: numbers.next()?.parse().ok()?,
            born_ns: numbers.next()?.parse().ok()?,
        })
    }

    /// Of what has this name now; `None` where nothing has.
    pub(crate) fn of(parent: BorrowedFd<'_>, name: &str) -> Result<Option<Self>, Errno> {
        let wanted = StatxFlags::INO | StatxFlags::BTIME;
        match rustix::fs::statx(parent, name, AtFlags::SYMLINK_NOFOLLOW, wanted) {
            Ok(stat) => Ok(Some(Self::from(&stat))),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Of a file that is open, if it is of this kind.
    pub(super) fn of_open(file: BorrowedFd<'_>, kind: Kind) -> Result<Option<Self>, Errno> {
        let wanted = StatxFlags::TYPE | StatxFlags::INO | StatxFlags::BTIME;
        let stat = rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, wanted)?;
        let found = FileType::from_raw_mode(stat.stx_mode.into());
        Ok((found == kind.file_type()).then(|| Self::from(&stat)))
    }

    fn from(stat: &Statx) -> Self {
        Self {
            inode: stat.stx_ino,
            // Zero where the file system does not keep it.
            born_s: stat.stx_btime.tv_sec,
            born_ns: stat.stx_btime.tv_nsec,
        }
    }

    /// Whether no other file ever had or gets this identity.
    pub(super) fn is_unique(self) -> bool {
        (self.born_s, self.born_ns) != (0, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn absent(path: &str, nature: Nature) -> AbsentName {
        AbsentName { path: path.to_owned(), nature }
    }

    #[test]
    fn a_ledger_is_read_as_it_was_written() {
        let names = [absent(".envrc", Nature::File), absent(".idea", Nature::Directory)];
        let mut text = intents(Path::new("/w\n\u{e9}"), &names);
        let identity = Identity { inode: 7, born_s: -1, born_ns: 9 };
        let made = Some((Kind::Empty, identity));
        text.extend(outcomes(&[
            Outcome { path: ".envrc".to_owned(), made },
            Outcome { path: ".idea".to_owned(), made: None },
        ]));
        let ledger = Ledger::parse(&text).unwrap();
        assert_eq!(ledger.workspace.unwrap(), Path::new("/w\n\u{e9}"));
        let entry = Entry { kind: Kind::Empty, identity: Some(identity), open: 0 };
        assert_eq!(ledger.entries[".envrc"], entry);
        assert_eq!((ledger.entries[".idea"].identity, ledger.entries[".idea"].open), (None, 0));
        text.extend(intents(Path::new("/w"), &names));
        let ledger = Ledger::parse(&text).unwrap();
        assert_eq!(ledger.entries[".envrc"], Entry { kind: Kind::Empty, open: 1, ..entry });
        assert_eq!(ledger.entries[".idea"].open, 1);
    }

    #[test]
    fn a_ledger_that_was_cut_off_is_read_to_there() {
        let names = [absent("a", Nature::GitFile), absent("b", Nature::CommonDir)];
        let text = intents(Path::new("/w"), &names);
        for end in 0..text.len() {
            assert!(Ledger::parse(&text[..end]).unwrap().entries.len() < 2);
        }
        assert_eq!(Ledger::parse(&text).unwrap().entries.len(), 2);
        assert!(Ledger::parse(b"workspace 2\0/w\0").is_err());
        assert!(Ledger::parse(b"!e7\0a\0").is_err());
    }
}

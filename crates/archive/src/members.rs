//! What a checked archive holds, for whoever puts it in the workspace together with other things.

use crate::checked::{Checked, Thing, content, wrong};
use cofferdam_core::files::Content;
use cofferdam_core::{Error, ErrorKind, GuestPath, Result};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Take};
use std::sync::Arc;

/// One thing that a checked archive holds.
#[derive(Debug, Clone)]
pub enum Archived {
    /// A regular file.
    File {
        /// Its bytes.
        file: ArchivedFile,
        /// Its permissions.
        mode: u32,
    },
    /// A directory, with its permissions where the archive names it.
    Directory {
        /// The permissions.
        mode: Option<u32>,
    },
    /// A symbolic link. It may lead anywhere: whoever makes it decides whether it may.
    Link {
        /// Where it leads, as it says.
        target: Vec<u8>,
    },
}

/// The bytes of a file of an archive. They are there as long as the value.
#[derive(Debug, Clone)]
pub struct ArchivedFile {
    spool: Arc<File>,
    at: u64,
    bytes: u64,
}

impl ArchivedFile {
    /// How many there are.
    pub fn len(&self) -> u64 {
        self.bytes
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Reads them. ORDER: one file of an archive after the other, for they share where they are in it.
    pub fn open(&self) -> io::Result<Take<File>> {
        let mut file = self.spool.try_clone()?;
        file.seek(SeekFrom::Start(self.at))?;
        Ok(file.take(self.bytes))
    }

    /// The same for a carry.
    pub fn content(&self) -> Content {
        content(&self.spool, self.at, self.bytes)
    }
}

impl Checked {
    /// The archive without the first `count` names of every path. What has no more names is left out.
    ///
    /// Fails where two things would have one path then, or one would lie below what is no directory.
    pub fn strip(mut self, count: usize) -> Result<Self> {
        if count == 0 {
            return Ok(self);
        }
        let mut things = BTreeMap::new();
        for (path, thing) in std::mem::take(&mut self.things) {
            let names: Vec<&[u8]> = path.names().skip(count).collect();
            if names.is_empty() {
                continue;
            }
            let stripped = GuestPath::new(names.join(&b'/'))?;
            let twice = match (things.get(&stripped), &thing) {
                // Directories of two parents become one.
                (Some(Thing::Directory { .. }), Thing::Directory { .. }) | (None, _) => false,
                (Some(_), _) => true,
            };
            if twice {
                let what = format!("is there twice without the first {count} names of its path");
                return Err(wrong(path.as_bytes(), ErrorKind::Usage, &what));
            }
            things.insert(stripped, thing);
        }
        if things.is_empty() {
            let what = format!("nothing in the archive has more than {count} names in its path");
            return Err(Error::new(ErrorKind::Usage, what).hint("Leave out fewer."));
        }
        self.things = things;
        self.lies_in_directories()?;
        Ok(self)
    }

    /// Everything with its path, each directory that is named before what is in it.
    pub fn into_members(self) -> impl Iterator<Item = (GuestPath, Archived)> {
        let spool = self.spool;
        self.things.into_iter().map(move |(path, thing)| {
            let member = match thing {
                Thing::File { at, bytes, mode } => Archived::File {
                    file: ArchivedFile { spool: Arc::clone(&spool), at, bytes },
                    mode,
                },
                Thing::Directory { mode } => Archived::Directory { mode },
                Thing::Link { target } => Archived::Link { target },
            };
            (path, member)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::{Member, padding};
    use tar::EntryType;

    fn with(kind: EntryType, path: &str, target: &str, data: &[u8]) -> Vec<u8> {
        let (path, target, bytes) = (path.as_bytes(), target.as_bytes(), data.len() as u64);
        let mut blocks = Member { path, kind, target, mode: 0o640, modified_ms: 0, bytes }.blocks();
        blocks.extend_from_slice(data);
        blocks.resize(blocks.len() + padding(bytes), 0);
        blocks
    }

    fn stripped(parts: &[Vec<u8>], count: usize) -> Result<Vec<(String, Archived)>> {
        let mut archive = parts.concat();
        archive.resize(archive.len() + 1024, 0);
        let name = format!("cofferdam-members-{:?}", std::thread::current().id());
        let path = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
        let mut options = File::options();
        let spool = options.read(true).write(true).create_new(true).open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let members = Checked::read(&mut &*archive, spool)?.strip(count)?.into_members();
        Ok(members.map(|(path, member)| (path.to_string(), member)).collect())
    }

    fn file(path: &str, data: &[u8]) -> Vec<u8> {
        with(EntryType::Regular, path, "", data)
    }

    #[test]
    fn leading_names_are_left_out_and_bytes_stay_those_of_their_file() {
        let parts = [
            with(EntryType::Directory, "top/", "", b""),
            file("top/a", b"one"),
            file("top/b/c", b"another"),
            with(EntryType::Link, "top/b/d", "top/a", b""),
            with(EntryType::Symlink, "top/l", "b/c", b""),
        ];
        let members = stripped(&parts, 1).unwrap();
        let names: Vec<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["a", "b/c", "b/d", "l"]);
        let read = |at: usize| {
            let Archived::File { file, mode } = &members[at].1 else { panic!("{members:?}") };
            let mut text = String::new();
            file.open().unwrap().read_to_string(&mut text).unwrap();
            (text, file.len(), *mode)
        };
        assert_eq!(read(1), ("another".to_owned(), 7, 0o640));
        assert_eq!((read(0).0, read(2).0), ("one".to_owned(), "one".to_owned()));
        assert_eq!(stripped(&parts, 0).unwrap().len(), 5);
        assert_eq!(stripped(&parts, 2).unwrap().len(), 2);
    }

    #[test]
    fn what_becomes_one_path_or_lies_below_a_file_then_refuses_the_archive() {
        let kind = |parts: &[Vec<u8>]| stripped(parts, 1).map_err(|error| error.kind);
        assert_eq!(kind(&[file("a/x", b""), file("b/x", b"")]).unwrap_err(), ErrorKind::Usage);
        let below = [file("a/x", b""), file("b/x/y", b"")];
        assert_eq!(kind(&below).unwrap_err(), ErrorKind::PathEscape);
        let link = with(EntryType::Symlink, "a/x", "..", b"");
        assert_eq!(kind(&[link, file("b/x/y", b"")]).unwrap_err(), ErrorKind::PathEscape);
        assert_eq!(kind(&[file("a", b"")]).unwrap_err(), ErrorKind::Usage);
        // The controls.
        let directory = |path: &str| with(EntryType::Directory, path, "", b"");
        assert!(kind(&[directory("a/x/"), directory("b/x/")]).is_ok());
        assert!(stripped(&below, 0).is_ok());
    }
}

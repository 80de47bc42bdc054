//! An image in one tar file: its members, by name.

use crate::limits::{MAX_DOCUMENT_BYTES, MAX_MEMBERS};
use crate::tar::{Entries, Kind};
use cofferdam_core::{Error, ErrorKind, Result};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;

/// The longest chain of links between members.
const MAX_LINKS: usize = 4;

/// The members of an archive.
pub(crate) struct Archive {
    file: File,
    members: BTreeMap<String, Member>,
}

enum Member {
    /// Where its content is, and how long it is.
    Content(u64, u64),
    /// It is another one.
    Link(String),
}

impl Archive {
    /// Reads the list of members. The file must not be packed.
    pub(crate) fn read(file: File) -> Result<Self> {
        let members = members(&file).map_err(|error| {
            Error::new(ErrorKind::NotAFile, "read the archive: it is broken, or no tar file")
                .hint("Write the image anew.")
                .source(error)
        })?;
        Ok(Self { file, members })
    }

    /// Whether there is a member of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// A member, and how long it is.
    pub(crate) fn open(&self, name: &str) -> Option<(Part<'_>, u64)> {
        let (start, length) = self.find(name)?;
        Some((Part { file: &self.file, at: start, left: length }, length))
    }

    fn find(&self, name: &str) -> Option<(u64, u64)> {
        let mut name = name;
        for _ in 0..=MAX_LINKS {
            match self.members.get(name)? {
                Member::Content(start, length) => return Some((*start, *length)),
                Member::Link(other) => name = other,
            }
        }
        None
    }
}

/// A part of a file.
pub(crate) struct Part<'a> {
    file: &'a File,
    at: u64,
    left: u64,
}

impl Read for Part<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let count = self.file.read_at(buffer.get_mut(..most).unwrap_or_default(), self.at)?;
        if count == 0 && most > 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.at += count as u64;
        self.left -= count as u64;
        Ok(count)
    }
}

fn members(mut file: &File) -> io::Result<BTreeMap<String, Member>> {
    file.seek(SeekFrom::Start(0))?;
    let length = file.metadata()?.len();
    let mut entries = Entries::new(BufReader::new(file));
    let mut members = BTreeMap::new();
    while let Some(entry) = entries.next_entry()? {
        if members.len() == MAX_MEMBERS {
            let what = format!("an archive has more than {MAX_MEMBERS} members");
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        let Ok(name) = String::from_utf8(entry.path) else { continue };
        let name = name.trim_start_matches("./").to_owned();
        let start = entries.position();
        match entry.kind {
            Kind::File if start.checked_add(entry.size).is_some_and(|end| end <= length) => {
                members.insert(name, Member::Content(start, entry.size));
            }
            Kind::File => return Err(io::ErrorKind::UnexpectedEof.into()),
            Kind::Symlink | Kind::HardLink => {
                let target = String::from_utf8_lossy(&entry.target).into_owned();
                let above = if entry.kind == Kind::Symlink { directory(&name) } else { "" };
                if let Some(target) = beside(above, &target) {
                    members.insert(name, Member::Link(target));
                }
            }
            Kind::Directory | Kind::CharacterDevice | Kind::BlockDevice | Kind::Fifo => {}
        }
        if entry.size > MAX_DOCUMENT_BYTES {
            let bytes = i64::try_from(entries.skip_content()).map_err(io::Error::other)?;
            entries.source().seek_relative(bytes)?;
        }
    }
    Ok(members)
}

fn directory(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(directory, _)| directory)
}

/// The member that a link in this directory of the archive means. None outside of it.
fn beside(directory: &str, target: &str) -> Option<String> {
    let mut names: Vec<&str> = directory.split('/').filter(|name| !name.is_empty()).collect();
    for name in target.split('/') {
        match name {
            "" | "." => {}
            ".." => drop(names.pop()?),
            name => names.push(name),
        }
    }
    Some(names.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tar::tests::Written;

    fn archive(bytes: &[u8], name: &str) -> Result<Archive> {
        let path =
            std::env::temp_dir().join(format!("cofferdam-archive-{name}-{}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        let archive = Archive::read(File::open(&path).unwrap());
        std::fs::remove_file(path).unwrap();
        archive
    }

    fn content(archive: &Archive, name: &str) -> Option<Vec<u8>> {
        let (mut part, _) = archive.open(name)?;
        let mut content = Vec::new();
        part.read_to_end(&mut content).unwrap();
        Some(content)
    }

    #[test]
    fn members_are_found_by_name_and_by_links_within() {
        let large = vec![7; 5 << 20];
        let bytes = Written::default()
            .file("./index.json", b"{}")
            .file("a/layer.tar", &large)
            .symlink("b/layer.tar", "../a/layer.tar")
            .symlink("out", "../../etc/passwd")
            .symlink("round", "round")
            .file("last", b"x")
            .done();
        let archive = archive(&bytes, "found").unwrap();
        assert_eq!(content(&archive, "index.json").unwrap(), b"{}");
        assert_eq!(content(&archive, "b/layer.tar").unwrap(), large);
        assert_eq!(content(&archive, "last").unwrap(), b"x");
        for missing in ["out", "round", "etc/passwd", "none"] {
            assert!(!archive.has(missing), "{missing}");
        }
    }

    #[test]
    fn an_archive_that_ends_early_or_has_too_many_members_is_an_error() {
        let cut = Written::default().claim(b'0', "a", 1 << 40).done();
        assert!(archive(&cut, "cut").is_err());
        let mut many = Written::default();
        for number in 0..=MAX_MEMBERS {
            many = many.file(&number.to_string(), b"");
        }
        assert!(archive(&many.done(), "many").is_err());
    }
}

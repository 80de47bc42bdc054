//! What a copy of a workspace was made of: the file `listing` beside the copy. Format 1.
//!
//! With it, and without asking what the copy was made of, a walk tells what a sandbox did to the copy
//! from what it left alone, and what somebody removed from what somebody else made meanwhile.
//!
//! The file is a head, then for each entry its kind, permissions, time of change below, and what its
//! copy is known by (inode, time of change, size), in decimal but for the permissions, then its path,
//! all ended by a NUL. The empty path is the workspace.

use super::copying::Copied;
use super::landed::fresh_file;
use super::look::{Kind, Seen};
use crate::state::retry;
use cofferdam_core::{Error, ErrorKind, Result, tells_of_stores};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use std::collections::BTreeMap;
use std::io::{Read, Write};

/// The file.
pub(super) const LISTING: &str = "listing";
/// Where it is written until it is whole.
const FRESH: &str = ".listing";
const HEAD: &[u8] = b"cofferdam listing 1";
/// The most bytes of the file: as many paths as may be copied, each of a great length.
const MOST_BYTES: u64 = 1 << 30;

/// What was copied, by path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Listing {
    entries: BTreeMap<Vec<u8>, Listed>,
    /// Whether a file of the copy may be changed with no mark of it: then each is compared.
    is_mute: bool,
}

/// What stood under a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Listed {
    /// What it was; `None` where it was left out of the copy.
    pub(super) kind: Option<Kind>,
    /// Its permissions.
    pub(super) mode: u32,
    /// Its time of change in the workspace.
    pub(super) changed_ns: u64,
    /// What its copy is known by.
    pub(super) copy: Mark,
}

/// What tells a copy that nobody touched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) inode: u64,
    pub(super) changed_ns: u64,
    pub(super) size: u64,
}

impl Mark {
    pub(super) fn of(seen: &Seen) -> Self {
        Self { inode: seen.id.inode, changed_ns: seen.changed_ns, size: seen.size }
    }
}

impl Listed {
    fn is_untouched(&self, seen: &Seen) -> bool {
        match self.kind {
            Some(Kind::Directory) => seen.kind == Kind::Directory && seen.mode == self.mode,
            Some(kind) => seen.kind == kind && Mark::of(seen) == self.copy,
            None => false,
        }
    }
}

impl Listing {
    pub(super) fn add(&mut self, path: Vec<u8>, listed: Listed) {
        self.entries.insert(path, listed);
    }

    pub(super) fn get(&self, path: &[u8]) -> Option<&Listed> {
        self.entries.get(path)
    }

    /// Whether a sandbox left alone what stands in the copy. Of a directory, its permissions: what is
    /// in it has entries of its own.
    pub(super) fn is_untouched(&self, path: &[u8], seen: &Seen) -> bool {
        let is_told = !self.is_mute || seen.kind != Kind::File;
        is_told && self.get(path).is_some_and(|was| was.is_untouched(seen))
    }

    /// The time of change that a path had in the workspace when it was copied.
    pub(super) fn since_ns(&self, path: &[u8]) -> u64 {
        self.get(path).map_or(0, |listed| listed.changed_ns)
    }

    /// Forgets a path and all below it.
    pub(super) fn forget(&mut self, path: &[u8]) {
        let lead = [path, b"/"].concat();
        self.entries.remove(path);
        let below: Vec<Vec<u8>> = self
            .entries
            .range(lead.clone()..)
            .map(|(path, _)| path.clone())
            .take_while(|path| path.starts_with(&lead))
            .collect();
        for path in below {
            self.entries.remove(&path);
        }
    }

    /// A directory that has these permissions now.
    pub(super) fn set_directory(&mut self, path: &[u8], mode: u32) {
        let changed_ns = self.since_ns(path);
        let kind = Some(Kind::Directory);
        self.add(path.to_vec(), Listed { kind, mode, changed_ns, copy: Mark::default() });
    }

    /// What was copied anew. It is still compared with the workspace as of the beginning, because
    /// snapshots of the copy may be older.
    pub(super) fn take_over(&mut self, copied: &Copied) {
        for (path, listed) in &copied.listing.entries {
            self.add(path.clone(), Listed { changed_ns: 0, ..*listed });
        }
    }

    /// The copy of a path is known by something else now, through what was done to it here.
    pub(super) fn renew(&mut self, path: &[u8], seen: &Seen) {
        if let Some(listed) = self.entries.get_mut(path) {
            listed.copy = Mark::of(seen);
        }
    }

    /// Reads it from the folder of a layer.
    pub(super) fn read(folder: &OwnedFd) -> Result<Self> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = retry(|| rustix::fs::openat(folder, LISTING, flags, Mode::empty()))
            .map_err(|errno| failed("open", errno.into()))?;
        let mut text = Vec::new();
        let mut file = std::fs::File::from(file).take(MOST_BYTES);
        file.read_to_end(&mut text).map_err(|error| failed("read", error))?;
        let mut listing = Self::parse(&text)
            .ok_or_else(|| Error::new(ErrorKind::Io, format!("the file {LISTING} is damaged")))?;
        listing.is_mute = !rustix::fs::fstatfs(folder)
            .is_ok_and(|told| tells_of_stores(told.f_type.cast_unsigned()));
        Ok(listing)
    }

    fn parse(text: &[u8]) -> Option<Self> {
        let mut lines = text.strip_suffix(b"\0")?.split(|byte| *byte == 0);
        if lines.next()? != HEAD {
            return None;
        }
        let entries = lines.map(parse_line).collect::<Option<_>>()?;
        Some(Self { entries, is_mute: false })
    }

    /// Writes it into the folder of a layer, whole and on disk when this returns.
    pub(super) fn write(&self, folder: &OwnedFd) -> Result<()> {
        self.try_write(folder).map_err(|error| failed("write", error))
    }

    fn try_write(&self, folder: &OwnedFd) -> std::io::Result<()> {
        let mut out = std::io::BufWriter::new(fresh_file(folder, FRESH)?);
        out.write_all(HEAD)?;
        out.write_all(b"\0")?;
        for (path, listed) in &self.entries {
            let Mark { inode, changed_ns, size } = listed.copy;
            let (kind, mode, since_ns) = (letter(listed.kind), listed.mode, listed.changed_ns);
            write!(out, "{kind} {mode:o} {since_ns} {inode} {changed_ns} {size} ")?;
            out.write_all(path)?;
            out.write_all(b"\0")?;
        }
        out.flush()?;
        out.get_ref().sync_all()?;
        Ok(rustix::fs::renameat(folder, FRESH, folder, LISTING)?)
    }
}

fn parse_line(line: &[u8]) -> Option<(Vec<u8>, Listed)> {
    let mut words = line.splitn(7, |byte| *byte == b' ');
    let mut word = || std::str::from_utf8(words.next()?).ok();
    let kind = of_letter(word()?)?;
    let mode = u32::from_str_radix(word()?, 8).ok()?;
    let mut number = || word()?.parse::<u64>().ok();
    let (changed_ns, inode, copied_ns, size) = (number()?, number()?, number()?, number()?);
    let copy = Mark { inode, changed_ns: copied_ns, size };
    Some((words.next()?.to_vec(), Listed { kind, mode, changed_ns, copy }))
}

fn letter(kind: Option<Kind>) -> char {
    match kind {
        None => 'x',
        Some(Kind::File) => 'f',
        Some(Kind::Directory) => 'd',
        Some(Kind::Link) => 'l',
        Some(Kind::Fifo) => 'p',
        Some(Kind::Socket) => 's',
        Some(Kind::Device) => 'c',
        Some(Kind::Mounted) => 'm',
    }
}

#[expect(clippy::option_option, reason = "nothing, and a letter that stands for nothing")]
fn of_letter(letter: &str) -> Option<Option<Kind>> {
    Some(match letter {
        "x" => None,
        "f" => Some(Kind::File),
        "d" => Some(Kind::Directory),
        "l" => Some(Kind::Link),
        "p" => Some(Kind::Fifo),
        "s" => Some(Kind::Socket),
        "c" => Some(Kind::Device),
        "m" => Some(Kind::Mounted),
        _ => return None,
    })
}

fn failed(what: &str, error: std::io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("{what} the file {LISTING} of the layer")).source(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_directory::TestDirectory;

    fn listed(kind: Option<Kind>, number: u64) -> Listed {
        let copy = Mark { inode: number + 1, changed_ns: u64::MAX, size: number };
        Listed { kind, mode: 0o1755, changed_ns: number, copy }
    }

    fn all() -> Listing {
        let kinds = [Kind::File, Kind::Directory, Kind::Link, Kind::Fifo, Kind::Socket];
        let kinds = kinds.into_iter().map(Some).chain([None]);
        let names: [&[u8]; 6] = [b"", b"a", b"a/b \n\xff c", b"a/b/c", b"a.b", b"ab"];
        let mut listing = Listing::default();
        for ((name, kind), number) in names.into_iter().zip(kinds).zip(0..) {
            listing.add(name.to_vec(), listed(kind, number));
        }
        listing
    }

    #[test]
    fn a_listing_is_read_as_it_was_written_whatever_bytes_names_have() {
        let directory = TestDirectory::new("listing");
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let folder = rustix::fs::open(directory.path(), flags, Mode::empty()).unwrap();
        for listing in [all(), Listing::default()] {
            listing.write(&folder).unwrap();
            assert_eq!(Listing::read(&folder).unwrap(), listing);
        }
        all().write(&folder).unwrap();
        let good = std::fs::read(directory.path().join(LISTING)).unwrap();
        // Half of a file, another format, and an entry of another form.
        let cut = good[..good.len() - 3].to_vec();
        let newer = [b"cofferdam listing 2".as_slice(), &good[HEAD.len()..]].concat();
        let odd = [good.as_slice(), b"f 644 1 2 3 path\0"].concat();
        for bad in [cut, newer, odd, Vec::new()] {
            std::fs::write(directory.path().join(LISTING), &bad).unwrap();
            assert_eq!(Listing::read(&folder).unwrap_err().kind, ErrorKind::Io);
        }
    }

    #[test]
    fn what_is_below_a_path_is_forgotten_with_it_and_nothing_else() {
        let mut listing = all();
        listing.forget(b"a");
        let left: Vec<&[u8]> = listing.entries.keys().map(Vec::as_slice).collect();
        assert_eq!(left, [b"".as_slice(), b"a.b", b"ab"]);
    }
}

//! An archive that was read to its end, and holds nothing but what may be imported.

use crate::extension::{Extensions, MAX_EXTENSION_BYTES, global, sparse};
use crate::header::{BLOCK_BYTES, padding};
use crate::notes::{Notes, Remark};
use cofferdam_core::files::{Content, MAX_CARRIED_BYTES, MAX_CARRY_DEPTH, MAX_PATH_BYTES};
use cofferdam_core::{Error, ErrorKind, GuestPath, Result};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::Arc;
use tar::{Archive, EntryType, Header};

/// The most bytes of an archive that is imported, unpacked. It lies in a file of the host meanwhile.
pub const MAX_ARCHIVE_BYTES: u64 = MAX_CARRIED_BYTES + (256 << 20);
/// The most files, directories and links of an archive, and above it. Each takes two steps of a carry.
pub const MAX_ARCHIVE_ENTRIES: usize = 50_000;

/// How much is read at once.
const PIECE_BYTES: usize = 64 << 10;

/// An archive of which every entry has a place of its own inside, and is a file, a directory or a link.
#[derive(Debug)]
pub struct Checked {
    pub(crate) spool: Arc<File>,
    pub(crate) things: BTreeMap<GuestPath, Thing>,
    pub(crate) notes: Notes,
    bytes: u64,
}

/// One thing that an archive holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Thing {
    /// Its bytes lie in the spool.
    File {
        at: u64,
        bytes: u64,
        mode: u32,
    },
    Directory {
        mode: Option<u32>,
    },
    Link {
        target: Vec<u8>,
    },
}

impl Checked {
    /// Reads `source` to its end into `spool`, an empty file that nobody else has, and looks at all of it.
    ///
    /// The first entry that may not be imported refuses all of it, by its name.
    pub fn read(source: &mut dyn Read, mut spool: File) -> Result<Self> {
        let length = fill(source, &mut spool, MAX_ARCHIVE_BYTES)?;
        spool.rewind().map_err(unspooled)?;
        let spool = Arc::new(spool);
        let (things, notes) = (BTreeMap::new(), Notes::default());
        let mut checked = Self { spool: Arc::clone(&spool), things, notes, bytes: 0 };
        let mut archive = Archive::new(&*spool);
        let (mut extensions, mut end) = (Extensions::default(), 0);
        for entry in archive.entries_with_seek().map_err(broken)?.raw(true) {
            let mut entry = entry.map_err(broken)?;
            let (at, bytes) = (entry.raw_file_position(), entry.size());
            // HOSTILE: a size may be any number.
            let padded = bytes.checked_add(padding(bytes) as u64);
            end = padded.and_then(|padded| at.checked_add(padded)).unwrap_or(u64::MAX);
            if end > length {
                return Err(truncated());
            }
            let kind = entry.header().entry_type();
            if is_extension(kind) {
                extend(&mut extensions, kind, &mut entry)?;
            } else {
                checked.member(entry.header(), std::mem::take(&mut extensions), at)?;
            }
        }
        if extensions.is_any {
            return Err(truncated());
        }
        checked.ends(end, length)?;
        checked.lies_in_directories()?;
        Ok(checked)
    }

    /// How many files, directories and links it names.
    pub fn len(&self) -> usize {
        self.things.len()
    }

    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.things.is_empty()
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "not our enum; whatever else it has is refused"
    )]
    fn member(&mut self, header: &Header, extensions: Extensions, at: u64) -> Result<()> {
        let named = extensions.path.unwrap_or_else(|| header.path_bytes().into_owned());
        let kind = header.entry_type();
        let bytes = header.entry_size().map_err(broken)?;
        if extensions.size.is_some_and(|size| size != bytes) {
            // HOSTILE: programs differ in which of the two they believe.
            return Err(wrong(&named, ErrorKind::Usage, "has two different sizes"));
        }
        let is_root = named.split(|byte| *byte == b'/').all(|name| matches!(name, b"" | b"."));
        if is_root && kind == EntryType::Directory && named.first() != Some(&b'/') {
            // The directory that the archive was made of.
            return if bytes == 0 { Ok(()) } else { Err(with_data(&named)) };
        }
        let path = GuestPath::new(&named)?;
        let linked = || header.link_name_bytes().map(std::borrow::Cow::into_owned);
        let target = extensions.target.or_else(linked).unwrap_or_default();
        let is_file = matches!(kind, EntryType::Regular | EntryType::Continuous);
        if !is_file && bytes > 0 {
            return Err(with_data(&named));
        }
        let thing = match kind {
            // A name of the oldest format says by its end that it is a directory.
            EntryType::Regular | EntryType::Continuous if named.last() != Some(&b'/') => {
                Thing::File { at, bytes, mode: self.mode(header, &named)? }
            }
            EntryType::Directory => {
                let mode = self.mode(header, &named)?;
                if mode & 0o700 != 0o700 {
                    self.notes.add(&named, Remark::OwnerAdded);
                }
                Thing::Directory { mode: Some(mode | 0o700) }
            }
            EntryType::Symlink => Thing::Link { target: link_target(&named, target)? },
            EntryType::Link => self.linked(&named, &target)?,
            EntryType::GNUSparse => return Err(sparse()),
            kind => {
                let what = format!("is {}, which is not imported", kind_words(kind));
                return Err(wrong(&named, ErrorKind::Unsupported, &what));
            }
        };
        self.add(path, thing)
    }

    fn add(&mut self, path: GuestPath, thing: Thing) -> Result<()> {
        if let Thing::File { bytes, .. } = thing {
            self.bytes = self.bytes.saturating_add(bytes);
        }
        if self.bytes > MAX_CARRIED_BYTES {
            let what = format!("the files of the archive have more than {MAX_CARRIED_BYTES} bytes");
            return Err(Error::new(ErrorKind::TooLarge, what).hint("Import it in parts."));
        }
        if path.names().count() > MAX_CARRY_DEPTH {
            let what = format!("lies more than {MAX_CARRY_DEPTH} deep");
            return Err(wrong(path.as_bytes(), ErrorKind::TooLarge, &what));
        }
        let named = path.as_bytes().to_vec();
        if self.things.insert(path, thing).is_some() {
            return Err(wrong(&named, ErrorKind::Usage, "is there twice"));
        }
        if self.things.len() > MAX_ARCHIVE_ENTRIES { Err(too_many()) } else { Ok(()) }
    }

    /// The permissions, without what would give another identity.
    fn mode(&mut self, header: &Header, named: &[u8]) -> Result<u32> {
        let mode = header.mode().map_err(broken)?;
        if mode & 0o7000 != 0 {
            self.notes.add(named, Remark::IdentityLeftOut);
        }
        Ok(mode & 0o777)
    }

    /// A further name of a file, as a copy of it.
    fn linked(&self, named: &[u8], target: &[u8]) -> Result<Thing> {
        let outside = |_| {
            wrong(
                named,
                ErrorKind::PathEscape,
                "is a further name of something outside the archive",
            )
        };
        match self.things.get(&GuestPath::new(target).map_err(outside)?) {
            Some(file @ Thing::File { .. }) => Ok(file.clone()),
            Some(Thing::Directory { .. } | Thing::Link { .. }) | None => {
                let what = "is a further name of what is no file before it in the archive";
                Err(wrong(named, ErrorKind::PathEscape, what))
            }
        }
    }

    /// Refuses what lies below a file or a link, in whichever order they stand.
    pub(crate) fn lies_in_directories(&self) -> Result<()> {
        for path in self.things.keys() {
            for above in path.ancestors() {
                if let Some(Thing::File { .. } | Thing::Link { .. }) = self.things.get(&above) {
                    let what = format!("lies below {:?}, which is no directory", above.to_string());
                    return Err(wrong(path.as_bytes(), ErrorKind::PathEscape, &what));
                }
            }
        }
        Ok(())
    }

    /// Refuses an archive without an end, and one with anything behind it.
    fn ends(&self, end: u64, length: u64) -> Result<()> {
        if end.checked_add(BLOCK_BYTES).is_none_or(|end| end > length) {
            return Err(truncated());
        }
        let mut spool = &*self.spool;
        spool.seek(SeekFrom::Start(end)).map_err(unspooled)?;
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            let count = spool.read(&mut piece).map_err(unspooled)?;
            if count == 0 {
                return Ok(());
            }
            if piece.get(..count).unwrap_or_default().iter().any(|byte| *byte != 0) {
                let what = "something stands behind the end of the archive";
                return Err(
                    Error::new(ErrorKind::Usage, what).hint("Import one archive at a time.")
                );
            }
        }
    }
}

/// What a file of an archive holds.
pub(crate) fn content(spool: &Arc<File>, at: u64, bytes: u64) -> Content {
    let spool = Arc::clone(spool);
    // ORDER: one file after the other is read, so that they may share where they are in the spool.
    let open = move || {
        let mut file = spool.try_clone()?;
        file.seek(SeekFrom::Start(at))?;
        Ok(file)
    };
    Content::Later { open: Box::new(open), bytes }
}

/// Copies the whole archive, and answers its length.
fn fill(source: &mut dyn Read, spool: &mut dyn Write, max_bytes: u64) -> Result<u64> {
    let (mut piece, mut length) = (vec![0; PIECE_BYTES], 0);
    loop {
        let count = match source.read(&mut piece) {
            Ok(0) => return Ok(length),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => {
                return Err(Error::new(ErrorKind::Io, "read the archive").source(error));
            }
        };
        length += count as u64;
        if length > max_bytes {
            let what = format!("the archive has more than {max_bytes} bytes");
            return Err(Error::new(ErrorKind::TooLarge, what).hint("Import it in parts."));
        }
        spool.write_all(piece.get(..count).unwrap_or_default()).map_err(unspooled)?;
    }
}

fn is_extension(kind: EntryType) -> bool {
    kind.is_gnu_longname()
        || kind.is_gnu_longlink()
        || kind.is_pax_local_extensions()
        || kind.is_pax_global_extensions()
}

fn extend(extensions: &mut Extensions, kind: EntryType, entry: &mut impl Read) -> Result<()> {
    let mut data = Vec::new();
    entry.take(MAX_EXTENSION_BYTES + 1).read_to_end(&mut data).map_err(broken)?;
    if data.len() as u64 > MAX_EXTENSION_BYTES {
        let what = format!("an extension of the archive has more than {MAX_EXTENSION_BYTES} bytes");
        return Err(Error::new(ErrorKind::TooLarge, what));
    }
    if kind.is_gnu_longname() {
        extensions.long_path(&data)
    } else if kind.is_gnu_longlink() {
        extensions.long_target(&data)
    } else if kind.is_pax_local_extensions() {
        extensions.records(&data)
    } else {
        global(&data)
    }
}

fn link_target(named: &[u8], target: Vec<u8>) -> Result<Vec<u8>> {
    match target.is_empty() || target.len() >= MAX_PATH_BYTES || target.contains(&0) {
        true => Err(wrong(named, ErrorKind::Usage, "is a link that leads nowhere")),
        false => Ok(target),
    }
}

fn kind_words(kind: EntryType) -> &'static str {
    if kind.is_character_special() || kind.is_block_special() {
        "a device"
    } else if kind.is_fifo() {
        "a pipe"
    } else {
        "of an unknown kind"
    }
}

fn with_data(named: &[u8]) -> Error {
    wrong(named, ErrorKind::Usage, "is no file and has bytes")
}

pub(crate) fn too_many() -> Error {
    let what = format!("the archive holds more than {MAX_ARCHIVE_ENTRIES} things");
    Error::new(ErrorKind::TooLarge, what).hint("Import it in parts.")
}

/// An error that names an entry.
pub(crate) fn wrong(named: &[u8], kind: ErrorKind, what: &str) -> Error {
    // HOSTILE: it may be as long as the archive.
    let shown = String::from_utf8_lossy(named.get(..200).unwrap_or(named));
    Error::new(kind, format!("{shown:?} in the archive {what}"))
        .hint("Make the archive without it; nothing was changed.")
}

fn truncated() -> Error {
    Error::new(ErrorKind::Usage, "the archive has no end").hint("Send all of it.")
}

fn broken(cause: io::Error) -> Error {
    Error::new(ErrorKind::Usage, "what was sent is no tar archive, or a broken one")
        .hint("Send a tar archive, as it is or packed with gzip, xz or zstd.")
        .source(cause)
}

fn unspooled(cause: io::Error) -> Error {
    Error::new(ErrorKind::Io, "keep the archive in a temporary file").source(cause)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_archive_without_an_end_no_more_is_kept_than_may_be() {
        let most = 3 * PIECE_BYTES as u64 + 1;
        let kept = |bytes: u64| {
            let mut kept = Vec::new();
            (fill(&mut io::repeat(1).take(bytes), &mut kept, most), kept.len() as u64)
        };
        assert_eq!(kept(most).0.unwrap(), most);
        let (refused, kept) = kept(u64::MAX);
        assert_eq!(refused.unwrap_err().kind, ErrorKind::TooLarge);
        assert!(kept <= most);
    }
}

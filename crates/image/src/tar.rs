//! The tar format: entries one after another, from any bytes.
//!
//! Understood are the old format, ustar, pax and GNU's long names. What is not understood is an
//! error, because two readers that disagree about an archive are how files get where nobody looked.

mod extension;
mod number;

use extension::Extension;
use number::{mtime, number};
use std::io::{self, Read};

/// Everything comes in pieces of this size.
const BLOCK: usize = 512;

/// The most bytes of extended attributes and long names before one entry.
const MAX_EXTENSION_BYTES: u64 = 1 << 20;

/// The longest path. The kernel takes no longer one either.
pub(crate) const MAX_PATH_BYTES: usize = 4096;

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A file with content.
    File,
    /// Another name of a file.
    HardLink,
    /// A symbolic link.
    Symlink,
    /// A directory.
    Directory,
    /// A character device.
    CharacterDevice,
    /// A block device.
    BlockDevice,
    /// A named pipe.
    Fifo,
}

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Its path as it is written.
    pub(crate) path: Vec<u8>,
    /// Where a link points.
    pub(crate) target: Vec<u8>,
    pub(crate) kind: Kind,
    /// Permission bits, with those that set ids.
    pub(crate) mode: u32,
    pub(crate) uid: u64,
    pub(crate) gid: u64,
    /// Bytes of content.
    pub(crate) size: u64,
    /// Seconds and nanoseconds.
    pub(crate) mtime: (i64, u32),
    /// How many extended attributes it has.
    pub(crate) attributes: u64,
}

/// The entries of a stream. Reading reads the content of the last one.
pub(crate) struct Entries<R> {
    source: R,
    /// Bytes of content that were not read, and what fills the last block after them.
    left: u64,
    fill: u64,
    /// Bytes of the stream so far.
    position: u64,
}

/// A stream that does not hold what it should.
pub(crate) fn malformed(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

impl<R: Read> Entries<R> {
    pub(crate) fn new(source: R) -> Self {
        Self { source, left: 0, fill: 0, position: 0 }
    }

    /// Where the content of the last entry begins, until some of it is read.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// Counts the content of the last entry as read. Whoever calls this passes over as many bytes.
    pub(crate) fn skip_content(&mut self) -> u64 {
        let bytes = std::mem::take(&mut self.left);
        self.position += bytes;
        bytes
    }

    /// The stream.
    pub(crate) fn source(&mut self) -> &mut R {
        &mut self.source
    }

    /// The stream, at the place where its entries end.
    pub(crate) fn into_inner(self) -> R {
        self.source
    }

    /// The next entry. Content that was not read is passed over. The stream may end right behind the
    /// content of the last entry, or in what fills its block, but nowhere else within an entry.
    pub(crate) fn next_entry(&mut self) -> io::Result<Option<Entry>> {
        let mut extension = Extension::default();
        loop {
            let (left, fill) = (std::mem::take(&mut self.left), std::mem::take(&mut self.fill));
            self.pass(left)?;
            // Some tools write nothing behind the last content, not even what fills its block.
            if self.pass_some(fill)? < fill {
                return Ok(None);
            }
            let Some(block) = self.block()? else { return Ok(None) };
            check_sum(&block)?;
            let size = number(field(&block, 124, 12))?;
            match block.get(156).copied().unwrap_or_default() {
                kind @ (b'x' | b'X' | b'L' | b'K') => {
                    let content = self.extension(size)?;
                    extension.take(kind, &content)?;
                }
                // What holds for all entries of an archive is a comment where it is used at all.
                b'g' => drop(self.extension(size)?),
                kind => return self.entry(&block, kind, size, extension).map(Some),
            }
        }
    }

    fn entry(
        &mut self,
        block: &[u8; BLOCK],
        kind: u8,
        size: u64,
        extension: Extension,
    ) -> io::Result<Entry> {
        let path = match extension.path {
            Some(path) => path,
            None => short_path(block),
        };
        if path.len() > MAX_PATH_BYTES {
            return Err(malformed(format!("a path has {} bytes", path.len())));
        }
        let size = extension.size.unwrap_or(size);
        let kind = match kind {
            // The old format has no other sign of a directory.
            b'0' | 0 if path.ends_with(b"/") => Kind::Directory,
            b'0' | 0 | b'7' => Kind::File,
            b'1' => Kind::HardLink,
            b'2' => Kind::Symlink,
            b'3' => Kind::CharacterDevice,
            b'4' => Kind::BlockDevice,
            b'5' => Kind::Directory,
            b'6' => Kind::Fifo,
            other => {
                let kind = char::from(other);
                return Err(malformed(format!("{} is of the unknown kind {kind:?}", text(&path))));
            }
        };
        // Only a file has content; others may still say a size that means nothing.
        let content = if kind == Kind::File { size } else { 0 };
        self.left = content;
        self.fill = filling(content);
        Ok(Entry {
            target: extension.target.unwrap_or_else(|| terminated(field(block, 157, 100))),
            kind,
            mode: u32::try_from(number(field(block, 100, 8))? & 0o7777).unwrap_or_default(),
            uid: extension.uid.map_or_else(|| number(field(block, 108, 8)), Ok)?,
            gid: extension.gid.map_or_else(|| number(field(block, 116, 8)), Ok)?,
            size: content,
            mtime: extension.mtime.map_or_else(|| mtime(field(block, 136, 12)), Ok)?,
            attributes: extension.attributes,
            path,
        })
    }

    /// What stands before an entry and says more about it.
    fn extension(&mut self, size: u64) -> io::Result<Vec<u8>> {
        // HOSTILE: before anything is allocated.
        if size > MAX_EXTENSION_BYTES {
            return Err(malformed(format!("an extended header has {size} bytes")));
        }
        let mut content = Vec::new();
        let read = (&mut self.source).take(size).read_to_end(&mut content)?;
        self.position += read as u64;
        if read as u64 != size {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.pass(filling(size))?;
        Ok(content)
    }

    /// One block. `None` at the end: an empty block, or nothing at all.
    fn block(&mut self) -> io::Result<Option<[u8; BLOCK]>> {
        let mut block = [0; BLOCK];
        let mut filled = 0;
        while let Some(rest) = block.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match self.source.read(rest) {
                Ok(0) if filled == 0 => return Ok(None),
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.position += BLOCK as u64;
        Ok(block.iter().any(|byte| *byte != 0).then_some(block))
    }

    fn pass(&mut self, bytes: u64) -> io::Result<()> {
        let passed = self.pass_some(bytes)?;
        if passed == bytes { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    /// Passes over as many bytes as there are, up to this many, and says how many those were.
    fn pass_some(&mut self, bytes: u64) -> io::Result<u64> {
        let passed = io::copy(&mut (&mut self.source).take(bytes), &mut io::sink())?;
        self.position += passed;
        Ok(passed)
    }
}

impl<R: Read> Read for Entries<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = (&mut self.source).take(self.left).read(buffer)?;
        if count == 0 && self.left > 0 && !buffer.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.left -= count as u64;
        self.position += count as u64;
        Ok(count)
    }
}

/// What is between content and the next block.
fn filling(size: u64) -> u64 {
    let over = size % BLOCK as u64;
    if over == 0 { 0 } else { BLOCK as u64 - over }
}

fn field(block: &[u8; BLOCK], start: usize, length: usize) -> &[u8] {
    block.get(start..start + length).unwrap_or_default()
}

fn terminated(bytes: &[u8]) -> Vec<u8> {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default().to_vec()
}

fn short_path(block: &[u8; BLOCK]) -> Vec<u8> {
    let name = terminated(field(block, 0, 100));
    let prefix = match field(block, 257, 6) {
        b"ustar\0" => terminated(field(block, 345, 155)),
        // GNU keeps other things there.
        _ => Vec::new(),
    };
    if prefix.is_empty() { name } else { [prefix, name].join(&b'/') }
}

fn check_sum(block: &[u8; BLOCK]) -> io::Result<()> {
    let bytes = block.iter().enumerate();
    let sum: u64 = bytes
        .map(|(place, byte)| if (148..156).contains(&place) { 32 } else { u64::from(*byte) })
        .sum();
    if number(field(block, 148, 8))? == sum {
        Ok(())
    } else {
        Err(malformed("a header has a wrong checksum, so this is no tar file"))
    }
}

/// A name for people.
pub(crate) fn text(path: &[u8]) -> String {
    let shown = path.get(..path.len().min(200)).unwrap_or_default();
    format!("{:?}", String::from_utf8_lossy(shown))
}

#[cfg(test)]
pub(crate) mod tests;

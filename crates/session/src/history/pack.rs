//! A point in one file: the contents of small files, the list that names them, and the header.
//!
//! To make a file is most of what a point costs on some file systems, so a point of little is one. It is
//! written once, by one call, and never changed. A content in it is named by the number of the point and by
//! where it begins. The file stays for as long as a list names a content of it, or somebody the list.
//!
//! | bytes | what |
//! |---|---|
//! | 16 | [`LEAD`] |
//! | | contents, one after another |
//! | | the list, as [`Tree::encode`](super::tree::Tree) writes it |
//! | | the header, in JSON |
//! | 32 | how long those three are, and [`END`] |
//!
//! What is cut off has no end, and nothing of it is read.

use rustix::io::pread;
use std::fs::File;
use std::ops::Range;

/// What such a file begins with.
pub(super) const LEAD: &[u8; 16] = b"cofferdam-pack\x01\n";
/// What it ends with.
const END: &[u8; 8] = b"packend\n";
/// The bytes of the end.
const END_BYTES: usize = 32;
/// The most bytes of a content that is in such a file.
pub(super) const MAX_SMALL_BYTES: u64 = 32 << 10;
/// The most bytes of contents in one such file: what may stay behind for one that is still named.
pub(super) const MAX_PACK_BYTES: usize = 256 << 10;
/// Marks the number of a content that is in such a file.
const PACKED: u64 = 1 << 63;
/// Files of another history have numbers from here on, those of points are below.
pub(super) const FOREIGN: u32 = 1 << 30;
/// The first number that is none.
pub(super) const TOO_HIGH: u32 = 1 << 31;

/// Contents that are to be in the file of the next point.
#[derive(Debug)]
pub(super) struct Pack {
    pub(super) number: u32,
    bytes: Vec<u8>,
}

impl Pack {
    pub(super) fn new(number: u32) -> Self {
        Self { number, bytes: Vec::new() }
    }

    /// Takes a content, and says its number; nothing where it has no room.
    pub(super) fn add(&mut self, content: &[u8]) -> Option<u64> {
        if self.number >= FOREIGN || content.len() as u64 > MAX_SMALL_BYTES {
            return None;
        }
        // LIMIT: the rest are files of their own.
        if self.bytes.len() + content.len() > MAX_PACK_BYTES {
            return None;
        }
        let at = u32::try_from(LEAD.len() + self.bytes.len()).ok()?;
        self.bytes.extend(content);
        if content.is_empty() {
            // What comes next begins elsewhere, for the place is the name.
            self.bytes.push(0);
        }
        Some(PACKED | u64::from(self.number) << 32 | u64::from(at))
    }

    /// Bytes of a content, by their place in the file.
    pub(super) fn get(&self, part: Range<u64>) -> Option<Vec<u8>> {
        let lead = LEAD.len() as u64;
        let place = |at: u64| usize::try_from(at.checked_sub(lead)?).ok();
        self.bytes.get(place(part.start)?..place(part.end)?).map(<[u8]>::to_vec)
    }

    /// The bytes of the file.
    pub(super) fn whole(&self, list: &[u8], header: &[u8]) -> Vec<u8> {
        let mut out = [&LEAD[..], &self.bytes, list, header].concat();
        for part in [&self.bytes[..], list, header] {
            out.extend((part.len() as u64).to_le_bytes());
        }
        out.extend(END);
        out
    }
}

/// In which file a content is, and where it begins; nothing where it is a file of its own.
pub(super) fn place(blob: u64) -> Option<(u32, u64)> {
    let pack = u32::try_from((blob & !PACKED) >> 32).ok()?;
    (blob & PACKED != 0).then_some((pack, blob & u64::from(u32::MAX)))
}

/// The same content in another file.
pub(super) fn moved(blob: u64, to: u32) -> u64 {
    PACKED | u64::from(to) << 32 | blob & u64::from(u32::MAX)
}

/// Where the parts of such a file are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Parts {
    pub(super) contents: Range<u64>,
    pub(super) list: Range<u64>,
    pub(super) header: Range<u64>,
}

impl Parts {
    /// Those of a file, if it is a whole one.
    pub(super) fn of(file: &File) -> Option<Self> {
        let size = file.metadata().ok()?.len();
        let mut end = [0; END_BYTES];
        let at = size.checked_sub(END_BYTES as u64)?;
        if pread(file, &mut end[..], at).ok()? != end.len() {
            return None;
        }
        let (lengths, mark) = end.split_at(24);
        let (lengths, _) = lengths.as_chunks::<8>();
        let mut begin = LEAD.len() as u64;
        let mut ranges = lengths.iter().map(|length| {
            let end = begin.checked_add(u64::from_le_bytes(*length))?;
            Some(std::mem::replace(&mut begin, end)..end)
        });
        let (contents, list, header) = (ranges.next()??, ranges.next()??, ranges.next()??);
        (mark == END && header.end == at).then_some(Self { contents, list, header })
    }

    /// A part of the file.
    pub(super) fn read(file: &File, part: Range<u64>) -> Option<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(part.end.checked_sub(part.start)?).ok()?];
        let mut done = 0;
        while done < bytes.len() {
            let rest = bytes.get_mut(done..)?;
            match pread(file, rest, part.start + done as u64).ok()? {
                0 => return None,
                count => done += count,
            }
        }
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_off_or_has_no_room_is_not_in_it() {
        let path = std::env::temp_dir().join(format!("cofferdam-pack-{}", std::process::id()));
        let mut pack = Pack::new(7);
        let (one, other) = (pack.add(b"one").unwrap(), pack.add(b"other").unwrap());
        assert_eq!((place(one), place(other)), (Some((7, 16)), Some((7, 19))));
        assert_ne!(Pack::new(7).add(b""), None);
        let mut empties = Pack::new(7);
        assert_ne!(empties.add(b""), empties.add(b"x"), "each has a name of its own");
        assert_eq!(place(moved(other, FOREIGN + 3)), Some((FOREIGN + 3, 19)));
        assert_eq!(place(7), None);
        let whole = pack.whole(b"list", b"header");
        std::fs::write(&path, &whole).unwrap();
        let file = File::open(&path).unwrap();
        let parts = Parts::of(&file).unwrap();
        assert_eq!(Parts::read(&file, parts.contents.clone()).unwrap(), b"oneother");
        assert_eq!(Parts::read(&file, parts.list.clone()).unwrap(), b"list");
        assert_eq!(Parts::read(&file, parts.header).unwrap(), b"header");
        for at in 0..whole.len() {
            std::fs::write(&path, &whole[..at]).unwrap();
            assert_eq!(Parts::of(&File::open(&path).unwrap()), None, "{at}");
        }
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_pack_has_bounds() {
        let mut pack = Pack::new(FOREIGN);
        assert_eq!(pack.add(b"x"), None, "numbers of other histories are none of points");
        let mut pack = Pack::new(0);
        let small = usize::try_from(MAX_SMALL_BYTES).unwrap();
        assert_eq!(pack.add(&vec![0; small + 1]), None);
        let room = MAX_PACK_BYTES / small;
        assert!((0..room).all(|_| pack.add(&vec![0; small]).is_some()));
        assert_eq!(pack.add(b"x"), None);
    }
}

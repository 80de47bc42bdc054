//! The content of files: copied with its holes, and compared.

use super::take::MAX_ASKED_BYTES;
use super::tree::{ATTRIBUTE_BYTES, ATTRIBUTES, Attribute};
use super::walk::{failed, too_large};
use cofferdam_core::{Error, Result};
use rustix::fs::{SeekFrom, fgetxattr, flistxattr, ftruncate, ioctl_ficlone, seek};
use rustix::io::{Errno, pread, pwrite};
use std::os::fd::BorrowedFd;

/// How much is copied at once.
const PIECE_BYTES: usize = 1 << 20;

/// Copies and compares, up to so many bytes in all.
#[derive(Debug)]
pub(super) struct Copier {
    left: u64,
    most: u64,
    piece: Vec<u8>,
    other: Vec<u8>,
}

impl Copier {
    pub(super) fn new(most: u64) -> Self {
        Self { left: most, most, piece: Vec::new(), other: Vec::new() }
    }

    /// Makes an empty file what another one of this size is.
    pub(super) fn copy(
        &mut self,
        (source, target): (BorrowedFd<'_>, BorrowedFd<'_>),
        size: u64,
        name: &[u8],
    ) -> Result<()> {
        if ioctl_ficlone(target, source).is_ok() {
            return Ok(());
        }
        ftruncate(target, size).map_err(|e| failed("make room for", name, e))?;
        let mut at = 0;
        while let Some((begin, end)) = extent(source, at, size, name)? {
            self.spend(end - begin)?;
            make_room(&mut self.piece, end - begin);
            at = begin;
            while at < end {
                let count = fill(&mut self.piece, source, (at, end), name)?;
                if count == 0 {
                    return Ok(());
                }
                let mut rest = self.piece.get(..count).unwrap_or_default();
                while !rest.is_empty() {
                    let wrote = pwrite(target, rest, at).map_err(|e| failed("keep", name, e))?;
                    rest = rest.get(wrote..).unwrap_or_default();
                    at += wrote as u64;
                }
            }
        }
        Ok(())
    }

    /// Whether two files of this size have the same content. Where their holes differ they count as
    /// different.
    pub(super) fn same(
        &mut self,
        (one, other): (BorrowedFd<'_>, BorrowedFd<'_>),
        size: u64,
        name: &[u8],
    ) -> Result<bool> {
        let mut at = 0;
        loop {
            let part = extent(one, at, size, name)?;
            if part != extent(other, at, size, name)? {
                return Ok(false);
            }
            let Some((begin, end)) = part else { return Ok(true) };
            self.spend(end - begin)?;
            make_room(&mut self.piece, end - begin);
            make_room(&mut self.other, end - begin);
            at = begin;
            while at < end {
                let count = fill(&mut self.piece, one, (at, end), name)?;
                let most = at.saturating_add(count as u64);
                let like = fill(&mut self.other, other, (at, most), name)?;
                if count == 0 || self.piece.get(..count) != self.other.get(..like) {
                    return Ok(false);
                }
                at += count as u64;
            }
        }
    }

    fn too_much(&self) -> Error {
        let more = match self.most < MAX_ASKED_BYTES {
            true => format!("; a snapshot that is asked for keeps {MAX_ASKED_BYTES}"),
            false => String::new(),
        };
        too_large(&format!("more than {} new bytes{more}", self.most))
    }

    /// Counts bytes that are read.
    pub(super) fn spend(&mut self, bytes: u64) -> Result<()> {
        self.left = self.left.checked_sub(bytes).ok_or_else(|| self.too_much())?;
        Ok(())
    }
}

/// Makes a piece hold so much, or as much as is copied at once: most files are small, and to make a large
/// piece takes longer than to copy one of these.
fn make_room(piece: &mut Vec<u8>, bytes: u64) {
    let wanted = usize::try_from(bytes).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
    if piece.len() < wanted {
        // Not by `resize`, which writes to all of it where the kernel gives zeros anyway.
        *piece = vec![0; wanted.next_power_of_two()];
    }
}

/// The next part of a file that is no hole.
pub(super) fn extent(
    file: BorrowedFd<'_>,
    at: u64,
    size: u64,
    name: &[u8],
) -> Result<Option<(u64, u64)>> {
    if at >= size {
        return Ok(None);
    }
    let read = |e| failed("read", name, e);
    let begin = match seek(file, SeekFrom::Data(at)) {
        Ok(begin) if begin < size => begin,
        Ok(_) | Err(Errno::NXIO) => return Ok(None),
        Err(e) => return Err(read(e)),
    };
    let end = seek(file, SeekFrom::Hole(begin)).map_err(read)?;
    Ok(Some((begin, end.min(size))))
}

/// Reads what is there from `at` on, up to `end`, as far as it fits. 0 only at the end of the file.
fn fill(
    piece: &mut [u8],
    file: BorrowedFd<'_>,
    (at, end): (u64, u64),
    name: &[u8],
) -> Result<usize> {
    let most = usize::try_from(end - at).unwrap_or(PIECE_BYTES).min(piece.len());
    let mut done = 0;
    while done < most {
        let piece = piece.get_mut(done..most).unwrap_or_default();
        let count = pread(file, piece, at + done as u64).map_err(|e| failed("read", name, e))?;
        if count == 0 {
            break;
        }
        done += count;
    }
    Ok(done)
}

/// All of a file of this size, if it is so long and has no holes.
pub(super) fn small(file: BorrowedFd<'_>, size: u64) -> Option<Vec<u8>> {
    if size > 0
        && (seek(file, SeekFrom::Hole(0)).ok()?, seek(file, SeekFrom::Data(0)).ok()?) != (size, 0)
    {
        return None;
    }
    let mut bytes = vec![0; usize::try_from(size).ok()?];
    (fill(&mut bytes, file, (0, size), b"").ok()? == bytes.len()).then_some(bytes)
}

/// The attributes of a file that are kept, in the order of their names.
pub(super) fn attributes(file: BorrowedFd<'_>, name: &[u8]) -> Result<Vec<Attribute>> {
    let bad = |e| failed("read the attributes of", name, e);
    let listed = match answered(|place| flistxattr(file, place)) {
        Ok(listed) => listed,
        Err(Errno::OPNOTSUPP) => return Ok(Vec::new()),
        Err(e) => return Err(bad(e)),
    };
    let is_ours = |key: &&[u8]| ATTRIBUTES.iter().any(|lead| key.starts_with(lead));
    let mut found = Vec::new();
    for key in listed.split(|byte| *byte == 0).filter(is_ours) {
        let value = answered(|place| fgetxattr(file, key, place)).map_err(bad)?;
        found.push((key.to_vec(), value));
    }
    found.sort();
    Ok(found)
}

/// What the kernel answers into a place, which is large only where it has to be.
fn answered(
    ask: impl Fn(&mut [u8]) -> std::result::Result<usize, Errno>,
) -> std::result::Result<Vec<u8>, Errno> {
    let mut small = [0; 256];
    match ask(&mut small) {
        Ok(count) => Ok(small.get(..count).unwrap_or_default().to_vec()),
        Err(Errno::RANGE) => {
            let mut large = vec![0; ATTRIBUTE_BYTES];
            let count = ask(&mut large)?;
            Ok(large.get(..count).unwrap_or_default().to_vec())
        }
        Err(e) => Err(e),
    }
}

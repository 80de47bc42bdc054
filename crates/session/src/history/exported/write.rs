//! An exported snapshot, written.

use super::super::between::whole;
use super::super::blobs::Blobs;
use super::super::content::extent;
use super::super::tree::Content;
use super::super::walk::failed;
use super::outgoing::Outgoing;
use super::{LEAD, PIECE_BYTES};
use cofferdam_core::{Error, ErrorKind, Result};
use rustix::io::pread;
use sha2::{Digest, Sha256};
use std::io::Write;
use std::os::fd::AsFd;

impl Outgoing {
    /// Writes all of it. Where this fails what was written is no exported snapshot: its end is missing.
    pub(crate) fn write(&self, out: &mut impl Write) -> Result<()> {
        let mut out = Summed { out, all: Sha256::new(), part: None };
        let manifest = serde_json::to_vec(&self.manifest)
            .map_err(|e| Error::new(ErrorKind::Io, "write down a snapshot").source(e))?;
        out.write(LEAD)?;
        out.write(&u32::try_from(manifest.len()).unwrap_or(u32::MAX).to_le_bytes())?;
        out.write(&manifest)?;
        out.write(&self.list)?;
        let mut held = 0;
        for content in &self.contents {
            held += self.content(*content, &mut out)?;
        }
        if held != self.manifest.content_bytes {
            return Err(Error::new(ErrorKind::Io, "the contents of the history are damaged")
                .hint("Export another point of the history."));
        }
        let sum = out.all.clone().finalize();
        out.write(&sum)?;
        out.out.flush().map_err(unwritten)
    }

    fn content(&self, content: Content, out: &mut Summed<'_, impl Write>) -> Result<u64> {
        let name = b"a file";
        let file = whole(&self.blobs, content, name)?;
        let mut piece = vec![0; PIECE_BYTES as usize];
        let (mut at, mut held) = (0, 0);
        out.part = Some(Sha256::new());
        while let Some((begin, end)) = extent(file.as_fd(), at, content.size, name)? {
            at = begin;
            while at < end {
                let most = usize::try_from(end - at).unwrap_or(usize::MAX).min(piece.len());
                let part = piece.get_mut(..most).unwrap_or_default();
                let count = pread(&file, part, at).map_err(|e| failed("read", name, e))?;
                if count == 0 {
                    return Err(failed("read", name, rustix::io::Errno::IO));
                }
                out.write(&at.to_le_bytes())?;
                out.write(&u32::try_from(count).unwrap_or(0).to_le_bytes())?;
                out.write(piece.get(..count).unwrap_or_default())?;
                at += count as u64;
                held += count as u64;
            }
        }
        out.write(&content.size.to_le_bytes())?;
        out.write(&0_u32.to_le_bytes())?;
        if let Some(part) = out.part.take() {
            out.write(&part.finalize())?;
        }
        Ok(held)
    }
}

/// How many bytes a content has without its holes.
pub(super) fn held(blobs: &Blobs, content: Content) -> Result<u64> {
    let name = b"a file";
    let file = whole(blobs, content, name)?;
    let (mut at, mut held) = (0, 0);
    while let Some((begin, end)) = extent(file.as_fd(), at, content.size, name)? {
        held += end - begin;
        at = end;
    }
    Ok(held)
}

/// What is written, and the sums of it.
struct Summed<'o, W> {
    out: &'o mut W,
    all: Sha256,
    part: Option<Sha256>,
}

impl<W: Write> Summed<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.all.update(bytes);
        if let Some(part) = &mut self.part {
            part.update(bytes);
        }
        self.out.write_all(bytes).map_err(unwritten)
    }
}

fn unwritten(cause: std::io::Error) -> Error {
    Error::new(ErrorKind::Io, "write the exported snapshot").source(cause)
}

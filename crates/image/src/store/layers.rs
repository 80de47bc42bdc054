//! Each layer unpacked once, whoever asks for it and how many at once.

use super::directory::{Lock, lock, open_directory};
use super::open::packed_otherwise;
use super::record::{FORMAT, LayerRecord};
use super::{LAYERS, Store, failed};
use crate::blobs::check;
use crate::described::LayerSource;
use crate::digest::{Digest, Hashing};
use crate::progress::{Event, Progress};
use crate::unpack::{Unpacking, unpack};
use cofferdam_archive::unpacked;
use cofferdam_core::{Error, ErrorKind, Result};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};

/// How many packed bytes pass between two words of progress.
const TOLD_EVERY_BYTES: u64 = 4 << 20;

/// Which of how many.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) number: usize,
    pub(super) of: usize,
}

/// A packed layer that is read.
pub(super) struct Packed<'a> {
    pub(super) content: Box<dyn Read + 'a>,
    /// How long it is.
    pub(super) bytes: u64,
}

impl Store {
    /// A layer that lies there when this returns, and stays while the answer lives.
    pub(super) fn ensure_layer<'a>(
        &self,
        source: &LayerSource,
        open: impl FnOnce() -> Result<Packed<'a>>,
        place: Place,
        progress: &mut dyn Progress,
    ) -> Result<OwnedFd> {
        let folder = self.folder(LAYERS)?;
        let name = source.diff_id.hex();
        let path = self.layer(&source.diff_id);
        let held = || lock(&folder, name, Lock::Shared).map_err(|e| failed("lock", &path, e));
        if let Some(held) = held()? {
            return Ok(held);
        }
        let layer = source.diff_id.to_string();
        let waits = || progress.tell(Event::Waiting { layer });
        if let Some(staged) = self.stage(name, || path.exists(), waits)? {
            let packed = open()?;
            let read = self.read_layer(staged.directory(), packed, place, progress)?;
            if let Some(promised) = &source.packed {
                check(promised, &read.packed)?;
            }
            if source.size.is_some_and(|size| size != read.packed_bytes) {
                let what = format!("layer {} is not as long as was said", source.name);
                return Err(Error::new(ErrorKind::Denied, what).hint("Get the image anew."));
            }
            check(&source.diff_id, &read.record.diff_id)?;
            self.finish_layer(staged, &read.record, place, progress)?;
        }
        held()?.ok_or_else(|| {
            Error::new(ErrorKind::Unavailable, format!("layer {} was removed", source.diff_id))
                .hint("Try again.")
        })
    }

    /// A layer whose digest nobody knows yet.
    pub(super) fn take_layer(
        &self,
        packed: Packed<'_>,
        progress: &mut dyn Progress,
    ) -> Result<(Digest, OwnedFd)> {
        let name = format!("new-{}", std::process::id());
        let place = Place { number: 1, of: 1 };
        let staged = self.stage(&name, || false, || ())?.ok_or_else(|| {
            Error::new(ErrorKind::Unavailable, "another process unpacks the same layer")
        })?;
        let read = self.read_layer(staged.directory(), packed, place, progress)?;
        self.finish_layer(staged, &read.record, place, progress)?;
        let folder = self.folder(LAYERS)?;
        let diff_id = read.record.diff_id;
        let path = self.layer(&diff_id);
        let held = lock(&folder, diff_id.hex(), Lock::Shared)
            .map_err(|errno| failed("lock", &path, errno))?
            .ok_or_else(|| {
                Error::new(ErrorKind::Unavailable, "the layer was removed").hint("Try again.")
            })?;
        Ok((diff_id, held))
    }

    fn finish_layer(
        &self,
        staged: super::staging::Staged,
        record: &LayerRecord,
        place: Place,
        progress: &mut dyn Progress,
    ) -> Result<()> {
        let diff_id = &record.diff_id;
        let path = self.layer(diff_id);
        let folder = self.folder(LAYERS)?;
        staged.finish(&folder, diff_id.hex()).map_err(|errno| failed("make", &path, errno))?;
        let (layer, left_out) = (diff_id.to_string(), record.tally.left_out);
        progress.tell(Event::Unpacked { layer, number: place.number, of: place.of, left_out });
        Ok(())
    }

    fn read_layer(
        &self,
        staged: &OwnedFd,
        packed: Packed<'_>,
        place: Place,
        progress: &mut dyn Progress,
    ) -> Result<ReadLayer> {
        let tree = make_tree(staged).map_err(|e| failed("make a tree in", &self.path, e))?;
        let owners =
            make_file(staged, "owners").map_err(|e| failed("make owners in", &self.path, e))?;
        let mut owners = BufWriter::new(owners);
        let (total_bytes, passed) = (packed.bytes, Cell::new(0));
        let hashing = RefCell::new(Hashing::new(packed.content));
        let packed = Shared { inner: &hashing, passed: &passed };
        let broken = |error: io::Error| match error.kind() == io::ErrorKind::Unsupported {
            true => packed_otherwise("a layer", error),
            false => Error::new(ErrorKind::NotAFile, "read a layer: it is broken")
                .hint("Get the image anew.")
                .source(error),
        };
        let mut stream = Hashing::new(unpacked(packed).map_err(broken)?);
        let mut told = 0;
        let mut tell = || {
            if passed.get() - told >= TOLD_EVERY_BYTES {
                told = passed.get();
                let (number, of) = (place.number, place.of);
                let (layer, read_bytes) = (String::new(), told);
                progress.tell(Event::Unpacking { layer, number, of, read_bytes, total_bytes });
            }
        };
        let unpacking = Unpacking {
            bounds: &self.bounds,
            packed: &|| passed.get(),
            tell: &mut tell,
            owners: &mut owners,
        };
        let tally = unpack(&mut stream, tree, unpacking)?;
        owners.flush().map_err(|error| failed("write owners in", &self.path, error))?;
        let diff_id = stream.digest();
        drop(stream);
        // What stands behind the end of what is packed counts for its digest all the same.
        let mut hashing = hashing.into_inner();
        io::copy(&mut (&mut hashing).take(total_bytes), &mut io::sink()).map_err(broken)?;
        let record = LayerRecord { format: FORMAT, diff_id, tally };
        let mut text =
            make_file(staged, "record.json").map_err(|e| failed("write in", &self.path, e))?;
        serde_json::to_writer(&mut text, &record)
            .map_err(|error| failed("write in", &self.path, io::Error::from(error)))?;
        Ok(ReadLayer { packed: hashing.digest(), packed_bytes: hashing.passed(), record })
    }
}

/// A layer that was read to its end.
struct ReadLayer {
    packed: Digest,
    packed_bytes: u64,
    record: LayerRecord,
}

/// A reader that is looked at while it is read.
struct Shared<'a, R> {
    inner: &'a RefCell<R>,
    passed: &'a Cell<u64>,
}

impl<R: Read> Read for Shared<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.borrow_mut().read(buffer)?;
        self.passed.set(self.passed.get() + count as u64);
        Ok(count)
    }
}

fn make_tree(staged: &OwnedFd) -> rustix::io::Result<OwnedFd> {
    rustix::fs::mkdirat(staged, "tree", Mode::from(0o755))?;
    // The caller's mask does not shape what a sandbox sees.
    let tree = open_directory(staged, "tree")?;
    rustix::fs::fchmod(&tree, Mode::from(0o755))?;
    Ok(tree)
}

fn make_file(staged: &OwnedFd, name: &str) -> rustix::io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    rustix::fs::openat(staged, name, flags, mode).map(File::from)
}

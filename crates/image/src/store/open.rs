//! From what somebody names to an image that lies ready.

use super::layers::{Packed, Place};
use super::pull::not_pulled;
use super::record::{FORMAT, ImageRecord, read};
use super::{Held, SEEN, Store, failed};
use crate::archive::Archive;
use crate::blobs::{Blobs, not_opened};
use crate::described::{Described, of_layout, of_saved};
use crate::digest::Digest;
use crate::limits::Bounds;
use crate::platform::Platform;
use crate::progress::Progress;
use crate::reference::Reference;
use cofferdam_archive::{Packing, REPACK, refuse_others, unpacked};
use cofferdam_core::{Error, ErrorKind, Image, ImageLayer, ImageRun, Result};
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Mode, OFlags};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

impl Store {
    /// Makes an image ready, which costs nothing where it is already, and holds it.
    pub fn open_image(
        &self,
        reference: &Reference,
        progress: &mut dyn Progress,
    ) -> Result<(Image, Held)> {
        let name = reference.to_string();
        match reference {
            Reference::Registry(remote) => match self.pulled(remote, &Platform::host())? {
                Some(ready) => Ok(ready),
                None => Err(not_pulled(remote)),
            },
            Reference::Stored(id) => self.hold(&self.find_record(id)?, name),
            Reference::Directory(path) => Ok((directory(path, name)?, Held::default())),
            Reference::Tar(path) => self.of_file(path, &name, |file| self.tar(file, progress)),
            Reference::OciArchive { path, tag } => self.of_file(path, &name, |file| {
                let blobs = Blobs::Archive(Archive::read(self.plain(file)?)?);
                let described = of_layout(&blobs, tag.as_deref());
                self.layered(&blobs, described.map_err(|e| wrong_in(path, e))?, progress)
            }),
            Reference::DockerArchive { path, tag } => self.of_file(path, &name, |file| {
                let blobs = Blobs::Archive(Archive::read(self.plain(file)?)?);
                let described = of_saved(&blobs, tag.as_deref());
                self.layered(&blobs, described.map_err(|e| wrong_in(path, e))?, progress)
            }),
            Reference::OciLayout { path, tag } => {
                let blobs = Blobs::directory(path)?;
                if !blobs.has("index.json") {
                    let what =
                        format!("{} is no OCI image layout: it has no index.json", path.display());
                    return Err(Error::new(ErrorKind::NotFound, what)
                        .hint("Name a plain directory as dir:DIR."));
                }
                let described =
                    of_layout(&blobs, tag.as_deref()).map_err(|error| wrong_in(path, error))?;
                let (record, _held) = match self.record(described.id.hex())? {
                    Some(known) if self.is_whole(&known) => (known, Vec::new()),
                    _ => self.layered(&blobs, described, progress)?,
                };
                self.write_record(record.clone(), &name)?;
                self.hold(&record, name)
            }
        }
    }

    /// An image of one file. What the file holds is remembered as long as it is the same one.
    fn of_file(
        &self,
        path: &Path,
        name: &str,
        read_it: impl FnOnce(File) -> Result<(ImageRecord, Vec<OwnedFd>)>,
    ) -> Result<(Image, Held)> {
        let file = open_file(path)?;
        let seen = self.path.join(SEEN).join(seen_name(&file, name, path)?);
        let known: Option<Digest> = read(&seen)?;
        if let Some(id) = known
            && let Some(record) = self.record(id.hex())?
            && self.is_whole(&record)
        {
            // A link may lead to what it led to before: then the name comes back.
            self.write_record(record.clone(), name)?;
            return self.hold(&record, name.to_owned());
        }
        let (record, _held) = read_it(file)?;
        self.write_record(record.clone(), name)?;
        self.write_seen(&seen, &record.id)?;
        self.hold(&record, name.to_owned())
    }

    pub(super) fn hold(&self, record: &ImageRecord, name: String) -> Result<(Image, Held)> {
        let (image, layers) = self.image(record, name)?;
        Ok((image, Held { _layers: layers }))
    }

    /// Whether all its layers lie there.
    pub(super) fn is_whole(&self, record: &ImageRecord) -> bool {
        record.layers.iter().all(|layer| self.layer(layer).exists())
    }

    fn layered(
        &self,
        blobs: &Blobs,
        described: Described,
        progress: &mut dyn Progress,
    ) -> Result<(ImageRecord, Vec<OwnedFd>)> {
        let Described { id, run, layers } = described;
        let of = layers.len();
        let mut held = Vec::with_capacity(of);
        for (position, layer) in layers.iter().enumerate() {
            let place = Place { number: position + 1, of };
            let open = || {
                let (content, bytes) = blobs.open(&layer.name)?;
                Ok(Packed { content, bytes })
            };
            held.push(self.ensure_layer(layer, open, place, progress)?);
        }
        let layers = layers.into_iter().map(|layer| layer.diff_id).collect();
        Ok((self.new_record(id, layers, run), held))
    }

    /// A root file system without a word on how it is run.
    fn tar(&self, file: File, progress: &mut dyn Progress) -> Result<(ImageRecord, Vec<OwnedFd>)> {
        let bytes = file.metadata().map_err(|e| failed("look at", &self.path, e))?.len();
        let packed = Packed { content: Box::new(file), bytes };
        let (diff_id, held) = self.take_layer(packed, progress)?;
        let record = self.new_record(diff_id.clone(), vec![diff_id], ImageRun::default());
        Ok((record, vec![held]))
    }

    pub(super) fn new_record(&self, id: Digest, layers: Vec<Digest>, run: ImageRun) -> ImageRecord {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let imported_s = now.map_or(0, |now| now.as_secs());
        ImageRecord {
            format: FORMAT,
            id,
            names: Vec::new(),
            pulled: Vec::new(),
            layers,
            run,
            imported_s,
        }
    }

    /// An archive that can be read at any place: one that is packed is unpacked to a file without a
    /// name.
    fn plain(&self, mut file: File) -> Result<File> {
        let mut head = [0; 8];
        let count = file.read_at(&mut head, 0).map_err(|e| failed("read for", &self.path, e))?;
        let head = head.get(..count).unwrap_or_default();
        refuse_others(head).map_err(|error| packed_otherwise("the archive", error))?;
        if Packing::of(head) == Packing::Plain {
            return Ok(file);
        }
        let broken = |error: io::Error| {
            let what = "unpack the archive: it is broken, or there is no room for it";
            Error::new(ErrorKind::Io, what)
                .hint("Get the image anew, or make room with `cofferdam image gc`.")
                .source(error)
        };
        let packed = file.metadata().map_err(broken)?.len();
        let most = packed.saturating_mul(self.bounds.ratio).max(Bounds::RATIO_FREE);
        let most = most.min(self.bounds.bytes);
        file.seek(SeekFrom::Start(0)).map_err(broken)?;
        let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let plain = rustix::fs::openat(&self.directory, ".", flags, mode);
        let mut plain = File::from(plain.map_err(|e| failed("make a file in", &self.path, e))?);
        let mut stream = unpacked(file).map_err(broken)?.take(most + 1);
        let written = io::copy(&mut stream, &mut plain).map_err(broken)?;
        plain.flush().map_err(broken)?;
        if written > most {
            let what = format!("unpack the archive: it has more than {most} bytes");
            return Err(Error::new(ErrorKind::TooLarge, what)
                .hint("Unpack it yourself, if it is what you expect."));
        }
        Ok(plain)
    }
}

/// A plain directory, where it is.
fn directory(path: &Path, name: String) -> Result<Image> {
    let found = path.canonicalize().map_err(|error| not_opened(path, error))?;
    if !found.is_dir() {
        let what = format!("{} is no directory", path.display());
        return Err(Error::new(ErrorKind::Usage, what).hint("Name a tar file as tar:FILE."));
    }
    let id = format!("dir:{}", found.display());
    // The path as it was named: whoever shows it looks which links lead there.
    let tree = std::path::absolute(path).map_err(|error| not_opened(path, error))?;
    let layer = ImageLayer { tree, hold: None };
    Ok(Image { id, name, layers: vec![layer], hold: None, run: ImageRun::default() })
}

/// Why what is packed in a way that is not read here is no image.
pub(super) fn packed_otherwise(what: &str, error: io::Error) -> Error {
    let message = format!("read {what}: it is packed in another way than images are");
    Error::new(ErrorKind::Unsupported, message).hint(REPACK).source(error)
}

/// Says where the image is in which something is wrong.
fn wrong_in(path: &Path, error: Error) -> Error {
    Error { message: format!("{}: {}", path.display(), error.message), ..error }
}

/// Opens a file, and no pipe or device that would keep us waiting.
fn open_file(path: &Path) -> Result<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = rustix::fs::openat(CWD, path, flags, Mode::empty());
    let file = File::from(file.map_err(|errno| not_opened(path, errno))?);
    let metadata = file.metadata().map_err(|error| not_opened(path, error))?;
    if !metadata.is_file() {
        let what = format!("the image {} is no regular file", path.display());
        return Err(
            Error::new(ErrorKind::NotAFile, what).hint("Name a plain directory as dir:DIR.")
        );
    }
    Ok(file)
}

/// What tells a file, and a version of it, from all others.
fn seen_name(file: &File, name: &str, path: &Path) -> Result<String> {
    let stat = file.metadata().map_err(|error| not_opened(path, error))?;
    let (mtime, ctime) = ((stat.mtime(), stat.mtime_nsec()), (stat.ctime(), stat.ctime_nsec()));
    let version = (stat.dev(), stat.ino(), stat.len(), mtime, ctime, name);
    Ok(Digest::of(format!("{version:?}").as_bytes()).hex().to_owned())
}

//! What is written down of images and layers.

use super::directory::{Lock, lock, own_directory};
use super::{LAYERS, RECORDS, Store, USED, failed};
use crate::digest::Digest;
use crate::unpack::Tally;
use crate::user;
use cofferdam_core::{Error, ErrorKind, Image, ImageLayer, ImageRun, Result};
use rustix::fd::OwnedFd;
use rustix::fs::{FlockOperation, Mode};
use rustix::io::Errno;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The format that this program writes, and the only one that it reads.
pub(super) const FORMAT: u32 = 1;

/// The most names that one image is remembered by.
const MAX_NAMES: usize = 32;

/// The fewest digits that mean an image by the beginning of its id.
const MIN_ID_DIGITS: usize = 4;

/// How many records this process has begun to write: threads of it must not share a file.
static WRITTEN: AtomicU64 = AtomicU64::new(0);

/// Begins the end of the name of what is being written.
const UNWRITTEN: &str = "new-";

/// The largest record.
const MAX_RECORD_BYTES: u64 = 8 << 20;

/// An image that lies ready. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageRecord {
    pub(super) format: u32,
    /// What it is called by content.
    pub id: Digest,
    /// What it was asked for as.
    pub names: Vec<String>,
    /// Where it was pulled from. A record without the field is of one that was not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pulled: Vec<PulledFrom>,
    /// Its layers unpacked, the lowest first.
    pub layers: Vec<Digest>,
    /// How it wants to be run.
    pub run: ImageRun,
    /// When it came, in seconds since 1970.
    pub imported_s: u64,
}

/// Where an image was pulled from. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PulledFrom {
    /// The registry and the repository.
    pub repository: String,
    /// The tag that meant it, if it was asked for by one.
    pub tag: Option<String>,
    /// What the tag meant: the digest of a manifest, or of a list of them.
    pub digest: Digest,
    /// The digest of the image's own manifest.
    pub manifest: Digest,
    /// What it is for.
    pub platform: String,
    /// When, in seconds since 1970.
    pub pulled_s: u64,
}

/// A layer that lies ready. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LayerRecord {
    pub(super) format: u32,
    /// What it is called by content.
    pub diff_id: Digest,
    /// What came of it.
    pub tally: Tally,
}

/// An image with its layers, for people and programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ImageReport {
    /// The image.
    pub image: ImageRecord,
    /// Its layers, the lowest first.
    pub layers: Vec<LayerRecord>,
    /// Bytes of all its layers.
    pub bytes: u64,
    /// Whether a sandbox lies on it now.
    pub in_use: bool,
}

impl ImageRecord {
    /// Forgets the oldest names beyond the bound.
    pub(super) fn bound(&mut self) {
        let surplus = self.names.len().saturating_sub(MAX_NAMES);
        self.names.drain(..surplus);
        let surplus = self.pulled.len().saturating_sub(MAX_NAMES);
        self.pulled.drain(..surplus);
    }
}

impl Store {
    /// All images, the newest first.
    pub fn list(&self) -> Result<Vec<ImageReport>> {
        let mut all = Vec::new();
        for record in self.records()? {
            all.push(self.report(record)?);
        }
        Ok(all)
    }

    /// The one that a name, an id or the beginning of an id means.
    pub fn find(&self, name: &str) -> Result<ImageReport> {
        self.report(self.find_record(name)?)
    }

    pub(super) fn records(&self) -> Result<Vec<ImageRecord>> {
        let folder = self.folder(RECORDS)?;
        let path = self.path.join(RECORDS);
        let mut all = Vec::new();
        let entries = rustix::fs::Dir::read_from(&folder).map_err(|e| failed("list", &path, e))?;
        for entry in entries {
            let entry = entry.map_err(|errno| failed("list", &path, errno))?;
            let name = entry.file_name().to_string_lossy();
            if let Some(hex) = name.strip_suffix(".json")
                && let Some(record) = self.record(hex)?
            {
                all.push(record);
            }
        }
        all.sort_by(|a, b| b.imported_s.cmp(&a.imported_s).then_with(|| a.id.cmp(&b.id)));
        Ok(all)
    }

    /// One by the digits of its id. `None` where there is none.
    pub(super) fn record(&self, hex: &str) -> Result<Option<ImageRecord>> {
        let path = self.path.join(RECORDS).join(format!("{hex}.json"));
        let record: Option<ImageRecord> = read(&path)?;
        record.map(|record| check_format(record.format, &path).map(|()| record)).transpose()
    }

    pub(super) fn find_record(&self, name: &str) -> Result<ImageRecord> {
        let digits = name.strip_prefix("sha256:").unwrap_or(name);
        let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_id = is_hex && digits.len() >= MIN_ID_DIGITS;
        let means = |record: &ImageRecord| {
            record.names.iter().any(|known| known == name)
                || is_id && record.id.hex().starts_with(digits)
        };
        let mut found = self.records()?.into_iter().filter(means);
        match (found.next(), found.next()) {
            (Some(one), None) => Ok(one),
            (None, _) => {
                let error =
                    Error::new(ErrorKind::NotFound, format!("there is no image {name} here"));
                Err(match is_hex && !is_id {
                    true => error.hint(format!(
                        "Write at least {MIN_ID_DIGITS} digits of an id, and so many that they mean one \
                         image; `cofferdam image ls` lists them."
                    )),
                    false => error.hint("Run `cofferdam image ls` to see what there is."),
                })
            }
            (Some(_), Some(_)) => {
                Err(Error::new(ErrorKind::Conflict, format!("{name} means more than one image"))
                    .hint("Write more digits of its id."))
            }
        }
    }

    pub(super) fn report(&self, image: ImageRecord) -> Result<ImageReport> {
        let mut layers = Vec::with_capacity(image.layers.len());
        for diff_id in &image.layers {
            let path = self.layer(diff_id).join("record.json");
            layers.extend(read::<LayerRecord>(&path)?);
        }
        let bytes = layers.iter().map(|layer| layer.tally.bytes).sum();
        let in_use = self.is_used(&image)?;
        Ok(ImageReport { image, layers, bytes, in_use })
    }

    /// Whether somebody lies on it, and not only on layers that it shares.
    pub(super) fn is_used(&self, image: &ImageRecord) -> Result<bool> {
        let path = self.path.join(USED).join(image.id.hex());
        if !path.exists() {
            return Ok(false);
        }
        let folder = self.folder(USED)?;
        let alone = lock(&folder, image.id.hex(), Lock::Alone);
        Ok(alone.map_err(|errno| failed("lock", &path, errno))?.is_none())
    }

    /// Notes that somebody lies on it, as long as the lock lives.
    fn used(&self, id: &Digest) -> Result<(PathBuf, OwnedFd)> {
        // Not made before somebody needs it: what only removes may have no room.
        let folder = own_directory(&self.path.join(USED))?;
        let path = self.path.join(USED).join(id.hex());
        match rustix::fs::mkdirat(&folder, id.hex(), Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(failed("make", &path, errno)),
        }
        let held = lock(&folder, id.hex(), Lock::Shared)
            .map_err(|errno| failed("lock", &path, errno))?
            .ok_or_else(|| gone(&format!("image {id}")))?;
        Ok((path, held))
    }

    /// Keeps others from changing records, as long as the answer lives.
    pub(super) fn alone_at_records(&self) -> Result<OwnedFd> {
        let folder = self.folder(RECORDS)?;
        rustix::fs::flock(&folder, FlockOperation::LockExclusive)
            .map_err(|errno| failed("lock", &self.path.join(RECORDS), errno))?;
        Ok(folder)
    }

    /// The same, unless somebody changes them now.
    pub(super) fn alone_at_quiet_records(&self) -> Result<Option<OwnedFd>> {
        let folder = self.folder(RECORDS)?;
        match rustix::fs::flock(&folder, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(folder)),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(errno) => Err(failed("lock", &self.path.join(RECORDS), errno)),
        }
    }

    /// Remembers which image a file holds.
    pub(super) fn write_seen(&self, seen: &Path, id: &Digest) -> Result<()> {
        let _alone = self.alone_at_records()?;
        write(seen, id)
    }

    /// Writes it down, with the names that it had and one more, which means no other image any longer.
    pub(super) fn write_record(&self, mut record: ImageRecord, name: &str) -> Result<()> {
        // A name is in one record at most, so there is nothing to take from others.
        let is_called = |known: ImageRecord| known.names.iter().any(|known| known == name);
        if self.record(record.id.hex())?.is_some_and(is_called) {
            return Ok(());
        }
        let _alone = self.alone_at_records()?;
        for mut other in self.records()? {
            if other.id != record.id && other.names.iter().any(|known| known == name) {
                other.names.retain(|known| known != name);
                self.replace_record(&other)?;
            }
        }
        if let Some(known) = self.record(record.id.hex())? {
            record = known;
        }
        if record.names.iter().any(|known| known == name) {
            return Ok(());
        }
        record.names.push(name.to_owned());
        record.bound();
        self.replace_record(&record)
    }

    pub(super) fn replace_record(&self, record: &ImageRecord) -> Result<()> {
        let path = self.path.join(RECORDS).join(format!("{}.json", record.id.hex()));
        write(&path, record)
    }

    /// As a sandbox needs it, and the locks that keep it there.
    pub(super) fn image(
        &self,
        record: &ImageRecord,
        name: String,
    ) -> Result<(Image, Vec<OwnedFd>)> {
        let folder = self.folder(LAYERS)?;
        let mut layers = Vec::with_capacity(record.layers.len());
        let (hold, used) = self.used(&record.id)?;
        let mut held = vec![used];
        for diff_id in record.layers.iter().rev() {
            let path = self.layer(diff_id);
            let lock = lock(&folder, diff_id.hex(), Lock::Shared)
                .map_err(|errno| failed("lock", &path, errno))?
                .ok_or_else(|| gone(&format!("layer {diff_id}")))?;
            held.push(lock);
            let record: Option<LayerRecord> = read(&path.join("record.json"))?;
            layers.push(ImageLayer { tree: path.join("tree"), hold: Some(path) });
            if record.is_some_and(|record| record.tally.hides_all_below) {
                break;
            }
        }
        let mut run = record.run.clone();
        user::note(&mut run, &layers);
        let image = Image { id: record.id.to_string(), name, layers, hold: Some(hold), run };
        Ok((image, held))
    }

    pub(super) fn layer(&self, diff_id: &Digest) -> std::path::PathBuf {
        self.path.join(LAYERS).join(diff_id.hex())
    }
}

fn gone(what: &str) -> Error {
    Error::new(ErrorKind::Unavailable, format!("{what} is being removed"))
        .hint("Try again; the image is made anew then.")
}

fn check_format(format: u32, path: &Path) -> Result<()> {
    if format == FORMAT {
        return Ok(());
    }
    let what = format!("{} is of format {format}, not {FORMAT}", path.display());
    Err(Error::new(ErrorKind::Unsupported, what)
        .hint("Use the version of Cofferdam that wrote it, or remove the directory of images."))
}

pub(super) fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    let file = match std::fs::File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        other => other.map_err(|error| failed("open", path, error))?,
    };
    let mut bytes = Vec::new();
    file.take(MAX_RECORD_BYTES)
        .read_to_end(&mut bytes)
        .map_err(|error| failed("read", path, error))?;
    serde_json::from_slice(&bytes).map(Some).map_err(|error| {
        Error::new(ErrorKind::Io, format!("read {}: it is malformed", path.display()))
            .hint("Remove the file; what it tells of is made anew.")
            .source(error)
    })
}

/// Whether a file of this name was being written, by us or by one who was killed.
pub(super) fn is_unwritten(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, end)| end.starts_with(UNWRITTEN))
}

/// Whole or not at all. Whoever writes where others look holds `alone_at_records`: what nobody writes
/// is removed.
pub(super) fn write(path: &Path, value: &impl Serialize) -> Result<()> {
    let mut text = serde_json::to_vec(value)
        .map_err(|error| failed("write", path, std::io::Error::other(error)))?;
    text.push(b'\n');
    let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
    let beside = path.with_extension(format!("{UNWRITTEN}{}-{number}", std::process::id()));
    std::fs::write(&beside, text)
        .and_then(|()| std::fs::rename(&beside, path))
        .map_err(|error| failed("write", path, error))
}

//! An archive of the host that a manifest wants unpacked.
//!
//! It is looked at to its end before anything of it is brought, by the rules of every archive that goes
//! into a workspace; see [`cofferdam_archive::Checked`].

use super::host::{HostFile, Named, unseen};
use super::wrong;
use cofferdam_archive::{Checked, MAX_ARCHIVE_BYTES, unpacked};
use cofferdam_core::{Error, ErrorKind, GuestPath, Result, hexadecimal};
use rustix::fs::FileType;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// The most leading names of a path that can be left out.
pub const MAX_STRIPPED: u32 = 64;

/// How much is read at once.
const PIECE_BYTES: usize = 128 << 10;

/// What an entry says of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) from: PathBuf,
    strip: usize,
    /// In small letters.
    sha256: Option<String>,
}

/// An archive of the host, as it was found.
#[derive(Debug, Clone)]
pub(super) struct Archive {
    said: Said,
    file: HostFile,
}

impl Said {
    pub(super) fn new(
        path: &GuestPath,
        from: &Path,
        strip: u32,
        sha256: Option<&str>,
    ) -> Result<Self> {
        if strip > MAX_STRIPPED {
            let what = format!("has a strip_components of {strip}, not up to {MAX_STRIPPED}");
            return Err(wrong(path, &what));
        }
        let is_hash = |text: &str| text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit());
        if sha256.is_some_and(|text| !is_hash(text)) {
            return Err(wrong(path, "has a sha256 that is not 64 hexadecimal digits"));
        }
        let sha256 = sha256.map(str::to_ascii_lowercase);
        Ok(Self { from: from.to_owned(), strip: strip as usize, sha256 })
    }

    /// Looks at the file, and reads nothing.
    pub(super) fn find(mut self, path: &GuestPath, base: &Path) -> Result<Archive> {
        self.from = base.join(&self.from);
        let named = Named::open_named(&self.from, "the archive")?;
        let stat = named.look().map_err(|e| unseen(&self.from, e))?;
        let shown = self.from.display();
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(wrong(path, &format!("unpacks {shown}, which is no regular file")));
        }
        let file = named.file(&[], &stat);
        if file.bytes > MAX_ARCHIVE_BYTES {
            let what = format!("the archive {shown} has more than {MAX_ARCHIVE_BYTES} bytes");
            return Err(Error::new(ErrorKind::TooLarge, what).hint("Unpack it in parts."));
        }
        Ok(Archive { said: self, file })
    }
}

impl Archive {
    /// Reads and checks all of it. It lies in a file without a name in this private directory meanwhile.
    pub(super) fn check(&self, stage: &Path, stopped: &AtomicBool) -> Result<Checked> {
        self.unpack(stage, stopped).map_err(|error| {
            let message = format!("unpack {}: {}", self.said.from.display(), error.message);
            Error { message, ..error }
        })
    }

    fn unpack(&self, stage: &Path, stopped: &AtomicBool) -> Result<Checked> {
        // ORDER: what is not what was meant is not even unpacked.
        self.is_what_was_meant(self.open(stopped)?)?;
        let mut source = self.open(stopped)?;
        let checked = {
            let mut stream = unpacked(&mut source).map_err(unread)?;
            let checked = Checked::read(&mut stream, spool(stage).map_err(unread)?);
            checked.map_err(|error| match error.hint {
                Some(_) => error,
                None => error.hint("Name a tar archive, plain or packed by gzip, xz or Zstandard."),
            })?
        };
        // It may have become another since it was looked at.
        self.is_what_was_meant(source)?;
        checked.strip(self.said.strip)
    }

    fn open<'a>(&self, stopped: &'a AtomicBool) -> Result<Source<'a>> {
        let file = self.file.open().map_err(unread)?;
        Ok(Source { file, hash: Sha256::new(), stopped })
    }

    /// Fails where the file is not the one that the entry names by its hash.
    fn is_what_was_meant(&self, mut source: Source<'_>) -> Result<()> {
        let Some(wanted) = &self.said.sha256 else { return Ok(()) };
        io::copy(&mut source, &mut io::sink()).map_err(unread)?;
        let found = hexadecimal(source.hash.finalize());
        if found == *wanted {
            return Ok(());
        }
        let what = format!("its sha256 is {found}, and the manifest wants {wanted}");
        Err(Error::new(ErrorKind::Conflict, what)
            .hint("Get the archive that is meant, or correct the manifest; nothing was changed."))
    }
}

/// The file, hashed as it is read. It ends when nobody waits any more.
struct Source<'a> {
    file: File,
    hash: Sha256,
    stopped: &'a AtomicBool,
}

impl Read for Source<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stopped.load(Ordering::Relaxed) {
            return Err(io::Error::other("nobody waits for it any more"));
        }
        let most = buffer.len().min(PIECE_BYTES);
        let count = self.file.read(buffer.get_mut(..most).unwrap_or_default())?;
        self.hash.update(buffer.get(..count).unwrap_or_default());
        Ok(count)
    }
}

/// A file that is gone with its descriptor.
fn spool(stage: &Path) -> io::Result<File> {
    let path = stage.join("archive");
    let mut options = File::options();
    let file = options.read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

fn unread(cause: io::Error) -> Error {
    Error::new(ErrorKind::Io, "read it").source(cause)
}

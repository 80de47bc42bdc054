//! When paths landed: what was changed there later is news again. The file `landed.json` beside the
//! layer's base. Format 1.

use crate::state::retry;
use cofferdam_core::{ByteString, Error, ErrorKind, Result};
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{Read, Write};

/// The file.
const LANDED: &str = "landed.json";
/// Where it is written until it is whole.
const FRESH: &str = ".landed.json";
const FORMAT: u32 = 1;
/// The most bytes of the file: as many paths as a layer has entries, of a usual length.
const MOST_BYTES: u64 = 512 << 20;

/// The time of change that each path had when it landed, in nanoseconds since 1970; and that of
/// directories in which something landed. The empty path is the workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Landed(BTreeMap<Vec<u8>, u64>);

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    format: u32,
    paths: Vec<(ByteString, u64)>,
}

impl Landed {
    /// Reads it from the folder of a layer; empty where nothing landed.
    pub(super) fn read(folder: &OwnedFd) -> Result<Self> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(folder, LANDED, flags, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(Self::default()),
            Err(errno) => return Err(failed("open", std::io::Error::from(errno))),
        };
        let mut text = Vec::new();
        std::fs::File::from(file)
            .take(MOST_BYTES)
            .read_to_end(&mut text)
            .map_err(|error| failed("read", error))?;
        let stored: Stored = serde_json::from_slice(&text).map_err(|error| {
            Error::new(ErrorKind::Io, format!("{LANDED} is damaged")).source(error)
        })?;
        if stored.format != FORMAT {
            let what = format!("{LANDED} is of format {}, not {FORMAT}", stored.format);
            return Err(Error::new(ErrorKind::Unsupported, what)
                .hint("Use the version of Cofferdam that wrote it."));
        }
        Ok(stored.paths.into_iter().map(|(path, ns)| (path.as_bytes().to_vec(), ns)).collect())
    }

    /// Adds what landed now, without what a landing removed, and writes all of it, whole or not at all.
    pub(super) fn add<'p>(
        &mut self,
        folder: &OwnedFd,
        removed: impl IntoIterator<Item = &'p [u8]>,
        more: Self,
    ) -> Result<()> {
        for path in removed {
            self.0.remove(path);
        }
        self.0.extend(more.0);
        let paths = self.0.iter();
        let paths = paths.map(|(path, ns)| (ByteString::from(path.clone()), *ns)).collect();
        let text = serde_json::to_vec(&Stored { format: FORMAT, paths })
            .map_err(|error| failed("write", error.into()))?;
        write(folder, &text).map_err(|error| failed("write", error))
    }

    /// Whether something landed under this path.
    pub(super) fn has(&self, path: &[u8]) -> bool {
        self.0.contains_key(path)
    }

    /// The time from which on a change of this path is news.
    pub(super) fn since(&self, path: &[u8], made_ns: u64) -> u64 {
        self.0.get(path).copied().unwrap_or(0).max(made_ns)
    }
}

impl FromIterator<(Vec<u8>, u64)> for Landed {
    fn from_iter<T: IntoIterator<Item = (Vec<u8>, u64)>>(all: T) -> Self {
        Self(all.into_iter().collect())
    }
}

/// A new file of our own. One of this name that a crash left is removed.
pub(super) fn fresh_file(folder: &OwnedFd, name: &str) -> std::io::Result<std::fs::File> {
    match rustix::fs::unlinkat(folder, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(errno) => return Err(errno.into()),
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    let file = retry(|| rustix::fs::openat(folder, name, flags, mode))?;
    Ok(file.into())
}

fn write(folder: &OwnedFd, text: &[u8]) -> std::io::Result<()> {
    fresh_file(folder, FRESH)?.write_all(text)?;
    Ok(rustix::fs::renameat(folder, FRESH, folder, LANDED)?)
}

fn failed(what: &str, error: std::io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("{what} {LANDED}")).source(error)
}

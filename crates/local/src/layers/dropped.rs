//! When changes were discarded: what the workspace had there by then is what the sandbox went on from,
//! and no news to it. The file `dropped.json` beside the layer's base. Format 1.
//!
//! It counts for the very upper directory that it names. An undo puts another one in its place, made of what
//! the layer was at an earlier time, and so does a fork: then nothing was discarded.

use super::landed::fresh_file;
use crate::state::retry;
use cofferdam_core::{ByteString, Error, ErrorKind, Result};
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Mode, OFlags, StatxFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{Read, Write};

/// The file.
const DROPPED: &str = "dropped.json";
/// Where it is written until it is whole.
const FRESH: &str = ".dropped.json";
const FORMAT: u32 = 1;
/// The most paths; the oldest are forgotten, and then what changed there meanwhile is a conflict again.
const MOST_PATHS: usize = 10_000;
/// The most bytes of the file.
const MOST_BYTES: u64 = 128 << 20;

/// Which directory it is, whatever directory got its number later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Upper {
    inode: u64,
    born_ns: u64,
}

/// Paths, each with all below it, and when their changes were discarded, in nanoseconds since 1970. The
/// empty path is the workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Dropped {
    /// `None` where directories cannot be told from one another: then nothing is noted.
    upper: Option<Upper>,
    paths: BTreeMap<Vec<u8>, u64>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    format: u32,
    upper: Upper,
    paths: Vec<(ByteString, u64)>,
}

impl Dropped {
    /// Reads what counts for this upper directory from the folder of a layer.
    pub(super) fn read(folder: &OwnedFd, upper: &OwnedFd) -> Result<Self> {
        let empty = Self { upper: identity(upper), paths: BTreeMap::new() };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = match retry(|| rustix::fs::openat(folder, DROPPED, flags, Mode::empty())) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(empty),
            Err(errno) => return Err(failed("open", errno.into())),
        };
        let mut text = Vec::new();
        let mut file = std::fs::File::from(file).take(MOST_BYTES);
        file.read_to_end(&mut text).map_err(|error| failed("read", error))?;
        let stored: Stored = serde_json::from_slice(&text).map_err(|error| {
            Error::new(ErrorKind::Io, format!("{DROPPED} is damaged")).source(error)
        })?;
        if stored.format != FORMAT {
            let what = format!("{DROPPED} is of format {}, not {FORMAT}", stored.format);
            return Err(Error::new(ErrorKind::Unsupported, what)
                .hint("Use the version of Cofferdam that wrote it."));
        }
        if Some(stored.upper) != empty.upper {
            return Ok(empty);
        }
        let paths = stored.paths.into_iter().map(|(path, ns)| (path.as_bytes().to_vec(), ns));
        Ok(Self { paths: paths.collect(), ..empty })
    }

    /// Notes that changes at these paths were discarded at this moment.
    pub(super) fn add(&mut self, folder: &OwnedFd, paths: Vec<Vec<u8>>, at_ns: u64) -> Result<()> {
        let Some(upper) = self.upper.filter(|_| !paths.is_empty()) else { return Ok(()) };
        self.paths.extend(paths.into_iter().map(|path| (path, at_ns)));
        while self.paths.len() > MOST_PATHS {
            let oldest = self.paths.iter().min_by_key(|(_, ns)| **ns).map(|(path, _)| path.clone());
            oldest.and_then(|path| self.paths.remove(&path));
        }
        let paths = self.paths.iter();
        let paths = paths.map(|(path, ns)| (ByteString::from(path.clone()), *ns)).collect();
        let text = serde_json::to_vec(&Stored { format: FORMAT, upper, paths })
            .map_err(|error| failed("write", error.into()))?;
        write(folder, &text).map_err(|error| failed("write", error))
    }

    /// When changes at this path, or of all that it is in, were discarded last; 0 where they never were.
    pub(super) fn at_ns(&self, path: &[u8]) -> u64 {
        let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        let above = slashes.filter_map(|(at, _)| path.get(..at));
        let all = [&b""[..], path].into_iter().chain(above);
        all.filter_map(|path| self.paths.get(path)).copied().max().unwrap_or(0)
    }
}

fn identity(directory: &OwnedFd) -> Option<Upper> {
    let wanted = StatxFlags::INO | StatxFlags::BTIME;
    let stat = rustix::fs::statx(directory, "", AtFlags::EMPTY_PATH, wanted).ok()?;
    if stat.stx_mask & StatxFlags::BTIME.bits() == 0 {
        return None;
    }
    let seconds = u64::try_from(stat.stx_btime.tv_sec).ok()?;
    let born_ns =
        seconds.saturating_mul(1_000_000_000).saturating_add(u64::from(stat.stx_btime.tv_nsec));
    Some(Upper { inode: stat.stx_ino, born_ns })
}

fn write(folder: &OwnedFd, text: &[u8]) -> std::io::Result<()> {
    fresh_file(folder, FRESH)?.write_all(text)?;
    Ok(rustix::fs::renameat(folder, FRESH, folder, DROPPED)?)
}

fn failed(what: &str, error: std::io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("{what} {DROPPED}")).source(error)
}

//! A workspace copied whole, for where the kernel makes no overlay of it.
//!
//! HOSTILE: another sandbox may write the workspace meanwhile. Everything is opened below the open
//! directory of the workspace, over no link and no mount; what is read was looked at before; entries,
//! bytes and depth are bounded. The workspace is only read, and its times stay where the kernel lets
//! them. A file that changes while it is copied is copied again; one that never stands still is told.

mod files;
mod limits;

pub(crate) use limits::Copied;
pub use limits::{MAX_COPIED_BYTES, MAX_COPIED_ENTRIES, Progress, watch};

use super::listing::{Listed, Mark};
use super::look::{DIRECTORY_MODE, Kind, Seen, changed_ns, look, names, open};
use super::walk::MAX_LAYER_DEPTH;
use crate::cow::base::wait_beyond;
use crate::placeholders::Standing;
use cofferdam_core::{Error, ErrorKind, GuestPath, LayerTier, Result};
use files::{Attributes, attributes, settle};
use limits::Bounds;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags, Stat};
use rustix::io::Errno;
use std::collections::BTreeMap;

/// Leads the names of directories in which changes land. One that lands just now is none of the
/// workspace's own.
const STAGE: &[u8] = b".cofferdam-landing-";

/// A path that is to be copied, and where to.
pub(super) struct Job<'j> {
    /// The workspace.
    pub(super) workspace: &'j OwnedFd,
    /// What of it; the empty path is all of it.
    pub(super) path: &'j [u8],
    /// The directory in which the copy is made.
    pub(super) into: &'j OwnedFd,
    /// Its name there.
    pub(super) name: &'j str,
    /// What is passed over, as if it were not there.
    pub(super) placeholders: &'j Standing,
}

/// Copies what stands under a path, or nothing where nothing does. What was begun when this fails is
/// the caller's to remove, and the wait for the end of its last moment.
pub(super) fn copy(job: &Job<'_>) -> Result<Copied> {
    copy_within(job, Bounds::DEFAULT)
}

/// Copies a whole workspace to this name, and writes the listing beside it.
pub(crate) fn copy_whole(
    (workspace, placeholders): (&OwnedFd, &Standing),
    into: &OwnedFd,
    name: &str,
) -> Result<Copied> {
    let copied = copy(&Job { workspace, path: b"", into, name, placeholders })?;
    copied.listing.write(into)?;
    wait_beyond(copied.last_ns);
    Ok(copied)
}

fn copy_within(job: &Job<'_>, bounds: Bounds) -> Result<Copied> {
    let mut copying = Copying {
        job,
        bounds,
        copied: Copied::default(),
        waiting: Vec::new(),
        directories: Vec::new(),
        others: Vec::new(),
        linked: BTreeMap::new(),
        can_clone: true,
        cloned: 0,
        plain: 0,
    };
    copying.all()?;
    Ok(copying.copied)
}

struct Copying<'c> {
    job: &'c Job<'c>,
    bounds: Bounds,
    copied: Copied,
    /// Directories that are to be copied.
    waiting: Vec<Vec<u8>>,
    /// Those that are made, parents first, and get their permissions and times at the end.
    directories: Vec<(Vec<u8>, Stat, Attributes)>,
    /// What else was copied, with its time of change in the workspace.
    others: Vec<(Vec<u8>, u64)>,
    /// Where the first name of a file of several names went.
    linked: BTreeMap<(u64, u64), Vec<u8>>,
    can_clone: bool,
    cloned: u64,
    plain: u64,
}

impl Copying<'_> {
    fn all(&mut self) -> Result<()> {
        let top = self.job.path;
        let looked = look(self.job.workspace, if top.is_empty() { b"." } else { top });
        let looked = looked.map_err(|errno| failed("look at", top, errno))?;
        match looked {
            None => return Ok(()),
            Some((_, file)) if self.job.placeholders.has(top, &file) => return Ok(()),
            Some((seen, _)) if seen.kind == Kind::Directory => self.waiting.push(top.to_vec()),
            Some((seen, file)) => {
                let (into, name) = (self.job.into, self.job.name.as_bytes());
                self.entry(top.to_vec(), (&seen, &file), (into, name))?;
            }
        }
        while let Some(path) = self.waiting.pop() {
            self.directory(path)?;
        }
        self.finish()
    }

    fn directory(&mut self, path: Vec<u8>) -> Result<()> {
        let source = match open_quietly(self.job.workspace, &path) {
            Ok(source) => source,
            // It went, or became something else, since it was listed.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(()),
            Err(Errno::ACCESS) => return self.left_out(path, "it cannot be read by you"),
            Err(Errno::XDEV) => return self.left_out(path, "something is mounted there"),
            Err(errno) => return Err(failed("open", &path, errno)),
        };
        let stat = rustix::fs::fstat(&source).map_err(|errno| failed("look at", &path, errno))?;
        let all = names(&source, self.bounds.entries).map_err(|errno| match errno {
            Errno::OVERFLOW => self.bounds.too_many(),
            errno => failed("list", &path, errno),
        })?;
        let kept = attributes(&source).map_err(|errno| failed("look at", &path, errno))?;
        let target = self.make(&path)?;
        self.directories.push((path.clone(), stat, kept));
        for name in all {
            if path.is_empty() && name.starts_with(STAGE) {
                continue;
            }
            let child = joined(&path, &name);
            let looked = look(&source, &name).map_err(|errno| failed("look at", &child, errno))?;
            let Some((seen, file)) = looked else { continue };
            if self.job.placeholders.has(&child, &file) {
                continue;
            }
            self.count(&child)?;
            self.entry(child, (&seen, &file), (&target, &name))?;
        }
        Ok(())
    }

    /// Makes the directory that a path is copied to.
    fn make(&self, path: &[u8]) -> Result<OwnedFd> {
        let place = self.place(path);
        let at = |errno| failed("make a copy of", path, errno);
        let slash = place.iter().rposition(|byte| *byte == b'/');
        let (above, name) = match slash {
            None => (&b"."[..], place.as_slice()),
            Some(slash) => {
                (place.get(..slash).unwrap_or_default(), place.get(slash + 1..).unwrap_or_default())
            }
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let above = open(self.job.into.as_fd(), above, flags).map_err(at)?;
        rustix::fs::mkdirat(&above, name, Mode::RWXU).map_err(at)?;
        open(above.as_fd(), name, flags | OFlags::NOFOLLOW).map_err(at)
    }

    fn entry(
        &mut self,
        path: Vec<u8>,
        (seen, file): (&Seen, &OwnedFd),
        (target, name): (&OwnedFd, &[u8]),
    ) -> Result<()> {
        match seen.kind {
            Kind::Directory => self.waiting.push(path),
            Kind::Mounted => return self.left_out(path, "something is mounted there"),
            Kind::Device => return self.left_out(path, "it is a device"),
            Kind::File => return self.file(path, (seen, file), (target, name)),
            Kind::Link | Kind::Fifo | Kind::Socket => {
                self.special((seen, file), (target, name))
                    .map_err(|errno| failed("copy", &path, errno))?;
                self.others.push((path, seen.changed_ns));
            }
        }
        Ok(())
    }

    /// Permissions and times of directories, innermost first; and what is known of each entry.
    fn finish(&mut self) -> Result<()> {
        let mut last_ns = 0;
        for (path, changed_ns) in std::mem::take(&mut self.others) {
            let looked = look(self.job.into, &self.place(&path));
            let looked = looked.map_err(|errno| failed("look at the copy of", &path, errno))?;
            let Some((seen, _)) = looked else { return Err(failed("copy", &path, Errno::NOENT)) };
            last_ns = last_ns.max(seen.changed_ns);
            let copy = Mark::of(&seen);
            let listed = Listed { kind: Some(seen.kind), mode: seen.mode, changed_ns, copy };
            self.copied.listing.add(path, listed);
        }
        for (path, stat, kept) in std::mem::take(&mut self.directories).into_iter().rev() {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            open(self.job.into.as_fd(), &self.place(&path), flags)
                .and_then(|directory| settle(&directory, &stat, &kept))
                .map_err(|errno| failed("settle the copy of", &path, errno))?;
            let changed_ns = changed_ns(&stat);
            let (kind, mode) = (Some(Kind::Directory), stat.st_mode & DIRECTORY_MODE);
            let listed = Listed { kind, mode, changed_ns, copy: Mark::default() };
            self.copied.listing.add(path, listed);
        }
        self.copied.tier = match (self.cloned, self.plain) {
            (1.., 0) => LayerTier::Reflink,
            _ => LayerTier::Copy,
        };
        self.copied.last_ns = last_ns;
        Ok(())
    }

    /// Where a path is copied to, below the directory that the copy is made in.
    fn place(&self, path: &[u8]) -> Vec<u8> {
        let rest = path.get(self.job.path.len()..).unwrap_or_default();
        let rest = rest.strip_prefix(b"/").unwrap_or(rest);
        joined(self.job.name.as_bytes(), rest)
    }

    fn count(&mut self, path: &[u8]) -> Result<()> {
        let levels = GuestPath::new(path).map(|path| path.names().count());
        if levels.is_ok_and(|levels| levels <= MAX_LAYER_DEPTH) {
            return self.bounds.count(&mut self.copied, 1, 0);
        }
        let top = String::from_utf8_lossy(path.get(..80).unwrap_or(path)).into_owned();
        let what = format!(
            "the workspace cannot be copied: {top:?} is deeper than {MAX_LAYER_DEPTH} levels or \
             4095 bytes"
        );
        Err(Error::new(ErrorKind::TooLarge, what)
            .hint("Name a directory above which less lies, or leave --cow out."))
    }

    fn left_out(&mut self, path: Vec<u8>, why: &str) -> Result<()> {
        self.copied.left_out.add(&path, why);
        let listed = Listed { kind: None, mode: 0, changed_ns: 0, copy: Mark::default() };
        self.copied.listing.add(path, listed);
        Ok(())
    }
}

/// Opens a directory of the workspace to list it, without a trace where that is allowed.
fn open_quietly(workspace: &OwnedFd, path: &[u8]) -> Result<OwnedFd, Errno> {
    let path = if path.is_empty() { b"." } else { path };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    match open(workspace.as_fd(), path, flags | OFlags::NOATIME) {
        Err(Errno::PERM) => open(workspace.as_fd(), path, flags),
        other => other,
    }
}

fn joined(path: &[u8], name: &[u8]) -> Vec<u8> {
    match (path.is_empty(), name.is_empty()) {
        (true, _) => name.to_vec(),
        (false, true) => path.to_vec(),
        (false, false) => [path, b"/", name].concat(),
    }
}

fn failed(what: &str, path: &[u8], errno: Errno) -> Error {
    let path = String::from_utf8_lossy(path);
    let error = Error::new(ErrorKind::Io, format!("{what} {path:?} of the workspace"));
    let error = error.source(std::io::Error::from(errno));
    match errno {
        Errno::NOSPC | Errno::DQUOT => error.hint(
            "Make room on the disk of the state directory (COFFERDAM_HOME), or leave --cow out.",
        ),
        _ => error,
    }
}

#[cfg(test)]
mod tests;

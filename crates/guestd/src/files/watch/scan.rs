//! Directories that come to be watched, and what is in them.

use super::tree::{Number, Put};
use super::{Phase, Watcher, join};
use crate::files::failure::{Trouble, failed, refused};
use crate::files::list;
use crate::files::read::is_placeholder;
use cofferdam_wire::files::{Failure, FileEvent, MAX_DEPTH, MAX_PATH_BYTES, Why};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, Dir, DirEntry, FileType};
use rustix::io::Errno;

/// The longest name that the kernel takes.
const NAME_BYTES: usize = 255;
/// How many directories that cannot be watched are told of one look at everything.
pub(super) const MAX_REFUSALS: usize = 64;
/// After how many directories the host hears that we are still at it.
const STILL_EVERY: usize = 256;

/// Whether what is in a new directory is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum News {
    /// It was there before anything was promised.
    Keep,
    /// It came with the directory, or since.
    Tell,
}

impl Watcher<'_> {
    /// Watches everything that is to be watched.
    pub(super) fn look_at_everything(&mut self) -> Result<(), Trouble> {
        self.refusals_left = MAX_REFUSALS;
        let top = list::open(self.root.top(), b".")
            .map_err(|errno| failed(errno, "the workspace cannot be read"))?;
        self.enter(&top, None, b"", News::Keep)
    }

    /// Watches the directory of this path and what is below it, if it is one still.
    pub(super) fn visit(&mut self, above: Number, path: &[u8]) -> Result<(), Trouble> {
        let reached = self.root.straight(&path.to_vec().into());
        let opened = reached.and_then(|directory| {
            list::open(directory.as_fd(), b".").map_err(|e| failed(e, "it cannot be read"))
        });
        match opened {
            Ok(directory) => self.enter(&directory, Some(above), path, News::Tell),
            // It was there a moment ago; what became of it, or of what it is in, is told next.
            Err(Failure { why: Why::NotFound | Why::WrongType, .. }) => {
                self.miss(above, path);
                Ok(())
            }
            Err(failure) => self.leave_out(path, failure),
        }
    }

    fn miss(&mut self, above: Number, path: &[u8]) {
        if self.missed.len() < self.max_directories {
            self.missed.insert((above, last_name(path).to_vec()));
        } else {
            self.out.lose();
        }
    }

    /// Visits what was missed in a directory that has another name now, or below it.
    pub(super) fn visit_missed(&mut self, renamed: Number) -> Result<(), Trouble> {
        let is_due = |above: Number| self.tree.is_within(above, renamed);
        let due: Vec<_> = self.missed.iter().filter(|(above, _)| is_due(*above)).cloned().collect();
        for one in due {
            self.missed.remove(&one);
            let (above, name) = one;
            if let Some(directory) = self.tree.path(above) {
                self.visit(above, &join(&directory, &name))?;
            }
        }
        Ok(())
    }

    fn enter(
        &mut self,
        directory: &OwnedFd,
        above: Option<Number>,
        path: &[u8],
        news: News,
    ) -> Result<(), Trouble> {
        if let Err(failure) = self.admit(directory, path) {
            return self.leave_out(path, failure);
        }
        if self.tree.len() >= self.max_directories {
            return self.refuse_more(path);
        }
        // ORDER: watched before it is read, so that whatever is not in it yet is told when it comes.
        let number = match self.notices.add(directory, self.root.top()) {
            Ok(number) => number,
            Err(errno) => return self.leave_out(path, failed(errno, "it cannot be watched")),
        };
        let news = match self.tree.put(above, last_name(path), number) {
            Put::New => news,
            Put::Known if self.scope.is_whole() => return Ok(()),
            Put::Known => News::Keep,
            Put::Doubtful => {
                self.doubt(number);
                return Ok(());
            }
        };
        if above.is_none() {
            self.top = number;
        }
        if self.phase == Phase::Begins && self.tree.len().is_multiple_of(STILL_EVERY) {
            self.out.still_at_it()?;
        }
        for name in self.tell_entries(directory, path, news)? {
            let path = join(path, &name);
            match list::open(directory.as_fd(), &name) {
                Ok(inner) => self.enter(&inner, Some(number), &path, news)?,
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                Err(errno) => self.leave_out(&path, failed(errno, "it cannot be read"))?,
            }
        }
        Ok(())
    }

    /// A directory is not where the notices so far say.
    fn doubt(&mut self, number: Number) {
        if !self.tree.knows(number) {
            self.notices.remove(number);
        }
        // While everything is looked at one may be met twice: renamed meanwhile, which the notices that
        // wait will say, or mounted in two places.
        if !self.looks_at_everything() {
            self.out.lose();
        }
    }

    fn looks_at_everything(&self) -> bool {
        self.refusals_left != usize::MAX
    }

    /// Tells what is in a directory, if that is news, and answers the directories to go into.
    fn tell_entries(
        &mut self,
        directory: &OwnedFd,
        path: &[u8],
        news: News,
    ) -> Result<Vec<Vec<u8>>, Trouble> {
        let mut inner = Vec::new();
        let mut entries = match Dir::read_from(directory) {
            Ok(entries) => entries,
            Err(errno) => return self.unread(path, errno),
        };
        while let Some(entry) = entries.read() {
            let entry = match entry {
                Ok(entry) => entry,
                Err(errno) => return self.unread(path, errno),
            };
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            let kind = kind(directory, &entry);
            let is_directory = kind == FileType::Directory;
            let path = join(path, name);
            let is_ours = || kind == FileType::Socket && is_placeholder(directory.as_fd(), name);
            if news == News::Tell && self.scope.tells(&path) && !is_ours() {
                self.tell_created(&path, is_directory)?;
            }
            if is_directory && self.scope.enters(&path) && inner.len() <= self.max_directories {
                inner.push(name.to_vec());
            }
        }
        Ok(inner)
    }

    /// A directory that cannot be read has nothing to go into.
    fn unread(&mut self, path: &[u8], errno: Errno) -> Result<Vec<Vec<u8>>, Trouble> {
        // One that is gone is empty.
        if errno != Errno::NOENT {
            self.leave_out(path, failed(errno, "it cannot be read"))?;
        }
        Ok(Vec::new())
    }

    fn admit(&self, directory: &OwnedFd, path: &[u8]) -> Result<(), Failure> {
        let depth = match path {
            [] => 0,
            path => 1 + path.iter().filter(|byte| **byte == b'/').count(),
        };
        if depth > MAX_DEPTH {
            let what = format!("it lies more than {MAX_DEPTH} directories deep");
            return Err(refused(Why::BadRequest, what));
        }
        if path.len() + 1 + NAME_BYTES > MAX_PATH_BYTES {
            return Err(refused(Why::BadRequest, "the paths below it are too long"));
        }
        let stat = rustix::fs::fstat(directory).map_err(|e| failed(e, "it cannot be looked at"))?;
        self.root.admit(directory, &stat)
    }

    /// Tells once that there are too many directories, until there is room again.
    fn refuse_more(&mut self, path: &[u8]) -> Result<(), Trouble> {
        if std::mem::replace(&mut self.is_full, true) {
            return Ok(());
        }
        let most = self.max_directories;
        let what = match self.phase {
            Phase::Begins => format!("there are more than {most} directories"),
            Phase::Runs => {
                format!("{most} directories are watched; neither this one nor another new one is")
            }
        };
        self.leave_out(path, refused(Why::TooLarge, what))
    }

    /// Tells that a directory is not watched. A watch that cannot begin whole for want of room does not
    /// begin.
    pub(super) fn leave_out(&mut self, path: &[u8], mut failure: Failure) -> Result<(), Trouble> {
        if self.phase == Phase::Begins && matches!(failure.why, Why::TooLarge | Why::Exhausted) {
            return Err(failure.into());
        }
        let path = path.to_vec().into();
        if !self.looks_at_everything() {
            return Ok(self.out.tell(FileEvent::Unwatched { path, failure })?);
        }
        match self.refusals_left {
            0 => return Ok(()),
            1 => failure.detail.push_str("; others are not watched either"),
            _ => {}
        }
        self.refusals_left -= 1;
        self.out.add(FileEvent::Unwatched { path, failure });
        Ok(())
    }
}

fn last_name(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
}

fn kind(directory: &OwnedFd, entry: &DirEntry) -> FileType {
    let kind = entry.file_type();
    if kind != FileType::Unknown {
        return kind;
    }
    let stat = rustix::fs::statat(directory, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW);
    stat.map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode))
}

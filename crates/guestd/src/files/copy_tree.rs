//! Copying a directory with all that is in it, whole or not at all.
//!
//! The copy is made beside its place under a name of ours, and renamed when it is whole. Both trees are
//! gone through by one name after the other, each opened in the directory above and no link followed,
//! so whatever is renamed meanwhile, nothing is read or written that a command could not reach here.
//! Unlike a file that is written, a copy does not wait for the disk.

use super::failure::{Trouble, failed, in_words, refused, regular};
use super::list::open as open_directory;
use super::read::{described, is_placeholder, look_at, read_at};
use super::remove::remove_tree;
use super::talk::Talk;
use super::walk::{Missing, Root};
use super::write::{set_mode, there_already, write_all};
use cofferdam_wire::files::{
    Answer, Copied, CopyTree, Failure, MAX_COPY_ENTRIES, MAX_DEPTH, MAX_PIECE_BYTES,
    MAX_SKIPPED_BYTES, Skipped, Why,
};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, RenameFlags, SeekFrom, Stat};
use rustix::io::Errno;

/// How many names are tried for what is being made.
const TRIES: u32 = 100;
/// How much of a path is told with a failure.
const TOLD_CHARS: usize = 300;
/// How many skipped things are told by name.
const TOLD_SKIPPED: usize = 100;
/// How many things are copied between two signs of life to the host, and how many bytes of one.
const SIGN_EVERY: u64 = 256;
const SIGN_EVERY_BYTES: u64 = 16 << 20;

/// Copies something under a name that is free.
pub(super) fn copy(root: &Root, order: &CopyTree, talk: &mut Talk) -> Result<Answer, Trouble> {
    let from = root.named(&order.from, Missing::Refuse)?;
    let stat =
        look_at(from.directory(), &from.name).map_err(|e| failed(e, "there is no such thing"))?;
    let kind = FileType::from_raw_mode(stat.st_mode);
    if !matches!(kind, FileType::RegularFile | FileType::Directory | FileType::Symlink) {
        let what = format!("it is {}, which is not copied", in_words(kind));
        return Err(refused(Why::WrongType, what).into());
    }
    let to = root.for_kind(kind, &order.to)?;
    if kind == FileType::Directory && to.leads_through(&stat) {
        return Err(refused(Why::BadRequest, "a directory cannot be copied into itself").into());
    }
    if look_at(to.directory(), &to.name).is_ok() {
        return Err(there_already().into());
    }
    let stage = Stage::new(to.directory())?;
    let mut copy = Copy {
        root,
        talk,
        copied: Copied::default(),
        most: order.max_entries.min(MAX_COPY_ENTRIES),
        seen: 0,
        skipped_bytes: 0,
    };
    let places = Places { from: from.directory(), to: to.directory() };
    copy.one(&places, (&from.name, &stage.name), &mut Vec::new())?;
    let copied = copy.copied;
    stage.take_place(&to.name)?;
    to.keep();
    Ok(Answer::Copied(copied))
}

/// A copy that is being made.
struct Copy<'a> {
    root: &'a Root,
    talk: &'a mut Talk,
    copied: Copied,
    most: u64,
    seen: u64,
    skipped_bytes: usize,
}

/// A directory and its copy.
struct Places<'a> {
    from: BorrowedFd<'a>,
    to: BorrowedFd<'a>,
}

impl Copy<'_> {
    /// Copies what a name stands for. `path` is where that is below the beginning.
    fn one(
        &mut self,
        places: &Places<'_>,
        (old, new): (&[u8], &[u8]),
        path: &mut Vec<Vec<u8>>,
    ) -> Result<(), Trouble> {
        self.seen += 1;
        if self.seen > self.most {
            let what = format!("there are more than {} things to copy", self.most);
            return Err(refused(Why::TooLarge, what).into());
        }
        if self.seen.is_multiple_of(SIGN_EVERY) {
            self.talk.still_at_it()?;
        }
        let stat = match look_at(places.from, old) {
            Ok(stat) => stat,
            // It is gone since its name was read.
            Err(Errno::NOENT) if !path.is_empty() => return Ok(()),
            Err(errno) => return Err(at(path, failed(errno, "it cannot be looked at")).into()),
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => self.file(places, (old, new), path),
            FileType::Directory => self.directory(places, (old, new), path),
            FileType::Symlink => self.link(places, (old, new), path).map_err(Trouble::from),
            FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => {
                if !is_placeholder(places.from, old) {
                    self.skip(&stat, path);
                }
                Ok(())
            }
        }
    }

    fn file(
        &mut self,
        places: &Places<'_>,
        (old, new): (&[u8], &[u8]),
        path: &[Vec<u8>],
    ) -> Result<(), Trouble> {
        let told = |errno, what| Trouble::from(at(path, failed(errno, what)));
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let source = rustix::fs::openat(places.from, old, flags | OFlags::RDONLY, Mode::empty())
            .map_err(|e| told(e, "it cannot be opened"))?;
        let stat = rustix::fs::fstat(&source).map_err(|e| told(e, "it cannot be looked at"))?;
        regular(&stat).and_then(|()| self.root.admit(&source, &stat)).map_err(|f| at(path, f))?;
        let flags = flags | OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let target = rustix::fs::openat(places.to, new, flags, Mode::RUSR | Mode::WUSR)
            .map_err(|e| told(e, "it cannot be made"))?;
        let bytes = self.data(&source, &target).map_err(|trouble| match trouble {
            Trouble::Failed(failure) => at(path, failure).into(),
            Trouble::Gone => Trouble::Gone,
        })?;
        set_mode(&target, Mode::from_raw_mode(stat.st_mode & 0o777))?;
        self.copied.files += 1;
        self.copied.bytes += bytes;
        Ok(())
    }

    /// Copies what a file holds, and passes over its holes. Answers its size.
    fn data(&mut self, source: &OwnedFd, target: &OwnedFd) -> Result<u64, Trouble> {
        let wrong = |errno| Trouble::from(failed(errno, "it cannot be copied"));
        let mut piece = vec![0; MAX_PIECE_BYTES];
        // HOSTILE: it may grow as fast as it is copied.
        let size = rustix::fs::fstat(source).map_err(wrong)?.st_size;
        let size = u64::try_from(size).unwrap_or(0);
        let (mut place, mut signed) = (0, 0);
        while place < size {
            place = match rustix::fs::seek(source, SeekFrom::Data(place)) {
                Ok(data) => data,
                // There is a hole up to the end, or nothing.
                Err(Errno::NXIO) => break,
                Err(errno) => return Err(wrong(errno)),
            };
            let hole = rustix::fs::seek(source, SeekFrom::Hole(place)).map_err(wrong)?.min(size);
            rustix::fs::seek(target, SeekFrom::Start(place)).map_err(wrong)?;
            while place < hole {
                let room = usize::try_from(hole - place).unwrap_or(usize::MAX).min(piece.len());
                let room = piece.get_mut(..room).unwrap_or_default();
                let count = read_at(source, room, place)?;
                if count == 0 {
                    break;
                }
                write_all(target, room.get(..count).unwrap_or_default())?;
                place += count as u64;
                if place - signed > SIGN_EVERY_BYTES {
                    signed = place;
                    self.talk.still_at_it()?;
                }
            }
            if place < hole {
                break;
            }
        }
        rustix::fs::ftruncate(target, size).map_err(wrong)?;
        Ok(size)
    }

    fn directory(
        &mut self,
        places: &Places<'_>,
        (old, new): (&[u8], &[u8]),
        path: &mut Vec<Vec<u8>>,
    ) -> Result<(), Trouble> {
        if path.len() >= MAX_DEPTH {
            let what = format!("it is more than {MAX_DEPTH} directories deep");
            return Err(refused(Why::BadRequest, what).into());
        }
        let told = |path: &[Vec<u8>], errno, what| Trouble::from(at(path, failed(errno, what)));
        let from =
            open_directory(places.from, old).map_err(|e| told(path, e, "it cannot be read"))?;
        let stat = rustix::fs::fstat(&from).map_err(|e| told(path, e, "it cannot be looked at"))?;
        self.root.admit(&from, &stat).map_err(|failure| at(path, failure))?;
        rustix::fs::mkdirat(places.to, new, Mode::RWXU)
            .map_err(|e| told(path, e, "it cannot be made"))?;
        let to = open_directory(places.to, new).map_err(|e| told(path, e, "it cannot be made"))?;
        self.copied.directories += 1;
        let mut entries = Dir::read_from(&from).map_err(|e| told(path, e, "it cannot be read"))?;
        let below = Places { from: from.as_fd(), to: to.as_fd() };
        while let Some(entry) = entries.read() {
            let entry = entry.map_err(|e| told(path, e, "it cannot be read"))?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                path.push(name.to_vec());
                self.one(&below, (name, name), path)?;
                path.pop();
            }
        }
        Ok(set_mode(&to, Mode::from_raw_mode(stat.st_mode & 0o777))?)
    }

    fn link(
        &mut self,
        places: &Places<'_>,
        (old, new): (&[u8], &[u8]),
        path: &[Vec<u8>],
    ) -> Result<(), Failure> {
        let target = rustix::fs::readlinkat(places.from, old, Vec::new()).map_err(|e| match e {
            // It was a link a moment ago.
            Errno::INVAL => at(path, refused(Why::Changed, "it changed while it was copied")),
            _ => at(path, failed(e, "it cannot be read")),
        })?;
        rustix::fs::symlinkat(target.as_c_str(), places.to, new)
            .map_err(|e| at(path, failed(e, "it cannot be made")))?;
        self.copied.links += 1;
        Ok(())
    }

    /// Tells that something is not copied, as long as there is room for its name.
    fn skip(&mut self, stat: &Stat, path: &[Vec<u8>]) {
        let path = path.join(&b'/');
        self.skipped_bytes += path.len() + 1;
        if self.skipped_bytes > MAX_SKIPPED_BYTES || self.copied.skipped.len() >= TOLD_SKIPPED {
            self.copied.skipped_more += 1;
        } else {
            let kind = described(stat).kind;
            self.copied.skipped.push(Skipped { path: path.into(), kind });
        }
    }
}

/// Says where something failed.
fn at(path: &[Vec<u8>], failure: Failure) -> Failure {
    match path.is_empty() {
        true => failure,
        false => {
            let path = path.join(&b'/');
            // HOSTILE: a path may be longer than a message.
            let text: String = String::from_utf8_lossy(&path).chars().take(TOLD_CHARS).collect();
            Failure { detail: format!("{text:?}: {}", failure.detail), ..failure }
        }
    }
}

/// The name under which a copy is made. What has it is removed, unless it took its place.
struct Stage<'a> {
    directory: BorrowedFd<'a>,
    name: Vec<u8>,
    is_placed: bool,
}

impl<'a> Stage<'a> {
    fn new(directory: BorrowedFd<'a>) -> Result<Self, Failure> {
        let own = rustix::process::getpid().as_raw_nonzero();
        for number in 0..TRIES {
            let name = format!(".cofferdam-{own}-{number}").into_bytes();
            // Who takes the name in between makes the copy fail.
            if matches!(look_at(directory, &name), Err(Errno::NOENT)) {
                return Ok(Self { directory, name, is_placed: false });
            }
        }
        Err(refused(Why::Exists, "no name is free for a copy beside it"))
    }

    fn take_place(mut self, to: &[u8]) -> Result<(), Failure> {
        let name = self.name.as_slice();
        rustix::fs::renameat_with(self.directory, name, self.directory, to, RenameFlags::NOREPLACE)
            .map_err(|errno| match errno {
                Errno::EXIST => there_already(),
                Errno::BUSY => failed(errno, "it is protected"),
                _ => failed(errno, "it cannot take its place"),
            })?;
        self.is_placed = true;
        Ok(())
    }
}

impl Drop for Stage<'_> {
    fn drop(&mut self) {
        if self.is_placed {
            return;
        }
        // What is gone already is gone.
        if let Ok(directory) = open_directory(self.directory, &self.name) {
            make_removable(&directory, 0);
            let _ = remove_tree(self.directory, &self.name);
        } else {
            let _ = rustix::fs::unlinkat(self.directory, self.name.as_slice(), AtFlags::empty());
        }
    }
}

/// Gives back the permissions that a copied directory may lack for what is in it to be removed.
fn make_removable(directory: &OwnedFd, depth: usize) {
    let _ = set_mode(directory, Mode::RWXU);
    let Ok(mut entries) = Dir::read_from(directory) else { return };
    while depth < MAX_DEPTH
        && let Some(Ok(entry)) = entries.read()
    {
        let name = entry.file_name().to_bytes();
        if name != b"."
            && name != b".."
            && entry.file_type() != FileType::RegularFile
            && let Ok(below) = open_directory(directory.as_fd(), name)
        {
            make_removable(&below, depth + 1);
        }
    }
}

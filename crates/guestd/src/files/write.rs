//! Writing: a file whole or not at all, or more bytes at its end.

use super::failure::{Trouble, failed, no_file, refused, regular};
use super::read::{hash, look_at, open_file, read_at};
use super::talk::Talk;
use super::tally::Tally;
use super::walk::{Missing, Named, Root};
use cofferdam_wire::files::{
    Answer, Append, Failure, MAX_PIECE_BYTES, Move, Only, Why, Write, Written,
};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, SeekFrom, Stat};
use rustix::io::Errno;

/// The permissions of a new file for which nobody names any.
const NEW_FILE: u32 = 0o644;
/// How many names are tried for a temporary file.
const TRIES: u32 = 100;

/// Writes a whole file beside its place, and gives it the place at once.
pub(super) fn write(root: &Root, order: &Write, talk: &mut Talk) -> Result<Answer, Trouble> {
    // Nothing is made for a file that has to be there already.
    let missing = match &order.only {
        Only::Always | Only::IfMissing => Missing::Make,
        Only::IfExists | Only::IfMatch(_) => Missing::Refuse,
    };
    let place = root.for_file(&order.path, missing)?;
    let before = what_is_there(&place)?;
    check(root, order, before.as_ref(), talk)?;
    let mode = order.mode.or(before.map(|stat| stat.st_mode & 0o777)).unwrap_or(NEW_FILE);
    let beside = Beside::new(&place, mode)?;
    let mut tally = Tally::new();
    while let Some(piece) = talk.next_piece()? {
        write_all(&beside.file, piece)?;
        tally.add(piece);
    }
    let now = what_is_there(&place)?;
    // A writer who comes between this look and the renaming loses, as with any other program.
    if order.only != Only::Always && !is_same(before.as_ref(), now.as_ref()) {
        return Err(refused(Why::Changed, "it changed while it was written").into());
    }
    beside.take_place(match (&order.only, before) {
        (Only::IfMissing, _) => RenameFlags::NOREPLACE,
        (Only::Always | Only::IfExists | Only::IfMatch(_), _) => RenameFlags::empty(),
    })?;
    place.keep();
    Ok(written(tally, now.is_none()))
}

/// Adds bytes at the end of a file.
pub(super) fn append(root: &Root, order: &Append, talk: &mut Talk) -> Result<Answer, Trouble> {
    let place = root.for_file(&order.path, Missing::Make)?;
    let mode = permissions(order.mode.unwrap_or(NEW_FILE))?;
    let flags = OFlags::WRONLY
        | OFlags::APPEND
        | OFlags::NOFOLLOW
        | OFlags::NONBLOCK
        | OFlags::NOCTTY
        | OFlags::CLOEXEC;
    let open = |flags| rustix::fs::openat(place.directory(), place.name.as_slice(), flags, mode);
    let (file, created) = match open(flags) {
        Ok(file) => (file, false),
        Err(Errno::NOENT) => {
            let made = open(flags | OFlags::CREATE | OFlags::EXCL);
            (made.map_err(|e| failed(e, "it cannot be made"))?, true)
        }
        Err(Errno::LOOP) => return Err(no_file(FileType::Symlink).into()),
        Err(Errno::ISDIR) => return Err(no_file(FileType::Directory).into()),
        // A pipe that nobody reads, or a socket.
        Err(Errno::NXIO) => {
            let kind = look_at(place.directory(), &place.name);
            let kind = kind.map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode));
            return Err(no_file(kind).into());
        }
        Err(errno) => return Err(failed(errno, "it cannot be opened to write").into()),
    };
    let stat = rustix::fs::fstat(&file).map_err(|e| failed(e, "it cannot be looked at"))?;
    regular(&stat)?;
    root.admit(&file, &stat)?;
    one_name_only(&stat)?;
    if created {
        set_mode(&file, mode)?;
    }
    let mut tally = Tally::new();
    while let Some(piece) = talk.next_piece()? {
        write_all(&file, piece)?;
        tally.add(piece);
    }
    rustix::fs::fdatasync(&file).map_err(|e| failed(e, "the disk does not take it"))?;
    place.keep();
    Ok(written(tally, created))
}

/// Copies a regular file.
pub(super) fn copy(root: &Root, order: &Move, talk: &mut Talk) -> Result<Answer, Trouble> {
    let (source, stat) = open_file(root, &order.from)?;
    let place = root.for_file(&order.to, Missing::Make)?;
    let before = what_is_there(&place)?;
    if before.is_some() && !order.replace {
        return Err(there_already().into());
    }
    let beside = Beside::new(&place, stat.st_mode & 0o777)?;
    let (mut piece, zeros) = (vec![0; MAX_PIECE_BYTES], vec![0; MAX_PIECE_BYTES]);
    let mut tally = Tally::new();
    let mut hole_end = 0;
    loop {
        let place = tally.bytes();
        if place >= hole_end {
            hole_end = end_of_hole(&source, place)?;
        }
        // What a hole holds is known: it counts for the hash, and is not read.
        let hole = usize::try_from(hole_end.saturating_sub(place)).unwrap_or(usize::MAX);
        let part = match hole.min(zeros.len()) {
            0 => {
                let count = read_at(&source, &mut piece, place)?;
                piece.get(..count).unwrap_or_default()
            }
            hole => zeros.get(..hole).unwrap_or_default(),
        };
        if part.is_empty() {
            break;
        }
        tally.add(part);
        if hole > 0 || part.iter().all(|byte| *byte == 0) {
            // What is a hole in the source may be a huge one.
            let end = tally.bytes();
            rustix::fs::seek(&beside.file, SeekFrom::Start(end))
                .and_then(|_| rustix::fs::ftruncate(&beside.file, end))
                .map_err(|e| failed(e, "it cannot be written"))?;
        } else {
            write_all(&beside.file, part)?;
        }
        if tally.owes_a_sign() {
            talk.still_at_it()?;
        }
    }
    beside.take_place(match order.replace {
        true => RenameFlags::empty(),
        false => RenameFlags::NOREPLACE,
    })?;
    place.keep();
    Ok(written(tally, before.is_none()))
}

/// Where the hole ends that begins at a place of a file: that place itself, where there is none.
fn end_of_hole(file: &OwnedFd, place: u64) -> Result<u64, Failure> {
    match rustix::fs::seek(file, SeekFrom::Data(place)) {
        Ok(data) => Ok(data),
        // There is a hole up to the end, or nothing.
        Err(Errno::NXIO) => {
            let stat = rustix::fs::fstat(file).map_err(|e| failed(e, "it cannot be looked at"))?;
            Ok(u64::try_from(stat.st_size).unwrap_or(0).max(place))
        }
        // Not every file system tells of holes.
        Err(_) => Ok(place),
    }
}

fn written(tally: Tally, created: bool) -> Answer {
    let bytes = tally.bytes();
    Answer::Written(Written { bytes, sha256: tally.sha256(), created })
}

/// Looks whether all is as the order says.
fn check(
    root: &Root,
    order: &Write,
    before: Option<&Stat>,
    talk: &mut Talk,
) -> Result<(), Trouble> {
    match (&order.only, before) {
        (Only::Always | Only::IfMissing, None) | (Only::Always | Only::IfExists, Some(_)) => Ok(()),
        (Only::IfMissing, Some(_)) => Err(there_already().into()),
        (Only::IfExists | Only::IfMatch(_), None) => {
            Err(refused(Why::NotFound, "there is no such file").into())
        }
        (Only::IfMatch(wanted), Some(before)) => {
            let (file, stat) = open_file(root, &order.path)?;
            let found = hash(&file, talk)?;
            if is_same(Some(before), Some(&stat)) && found.eq_ignore_ascii_case(wanted) {
                return Ok(());
            }
            let what = format!("its bytes are others: their SHA-256 is {found}");
            Err(refused(Why::Changed, what).into())
        }
    }
}

/// The regular file that has this name, if anything has.
pub(super) fn what_is_there(place: &Named<'_>) -> Result<Option<Stat>, Failure> {
    match look_at(place.directory(), &place.name) {
        Ok(stat) => regular(&stat).map(|()| Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(failed(errno, "it cannot be looked at")),
    }
}

/// Whether nothing happened to a file between two looks.
fn is_same(before: Option<&Stat>, now: Option<&Stat>) -> bool {
    let tells =
        |stat: &Stat| (stat.st_dev, stat.st_ino, stat.st_size, stat.st_ctime, stat.st_ctime_nsec);
    before.map(tells) == now.map(tells)
}

pub(super) fn there_already() -> Failure {
    refused(Why::Exists, "something is there already")
}

/// Refuses to change a file that has other names, which may be anywhere.
pub(super) fn one_name_only(stat: &Stat) -> Result<(), Failure> {
    match stat.st_nlink {
        0 | 1 => Ok(()),
        names => {
            let what = format!("it has {names} names, and would change under all of them");
            Err(refused(Why::Denied, what))
        }
    }
}

/// Permissions that a request may name.
pub(super) fn permissions(mode: u32) -> Result<Mode, Failure> {
    match mode {
        0..=0o777 => Ok(Mode::from_raw_mode(mode)),
        _ => Err(refused(Why::BadRequest, format!("permissions are at most 0777, not {mode:#o}"))),
    }
}

pub(super) fn set_mode(file: &OwnedFd, mode: Mode) -> Result<(), Failure> {
    rustix::fs::fchmod(file, mode).map_err(|e| failed(e, "its permissions cannot be set"))
}

pub(super) fn write_all(file: &OwnedFd, mut bytes: &[u8]) -> Result<(), Failure> {
    while !bytes.is_empty() {
        match rustix::io::write(file, bytes) {
            Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(failed(errno, "it cannot be written")),
        }
    }
    Ok(())
}

/// A file for a place that it is to take. Until then it has no name where the file system makes such files, so that
/// nothing of it is left whoever ends; otherwise one beside its place, which is removed unless it took that.
struct Beside<'a> {
    directory: BorrowedFd<'a>,
    name: Option<Vec<u8>>,
    to: &'a [u8],
    file: OwnedFd,
}

impl<'a> Beside<'a> {
    fn new(place: &'a Named<'_>, mode: u32) -> Result<Self, Failure> {
        let mode = permissions(mode)?;
        let (directory, to) = (place.directory(), place.name.as_slice());
        let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
        // Whatever is in the way of one without a name is told by what is in the way of the other.
        let beside = match rustix::fs::openat(directory, ".", flags, Mode::RUSR | Mode::WUSR) {
            Ok(file) => Self { directory, name: None, to, file },
            Err(_) => {
                let (file, name) = named(directory)?;
                Self { directory, name: Some(name), to, file }
            }
        };
        set_mode(&beside.file, mode)?;
        Ok(beside)
    }

    fn take_place(mut self, flags: RenameFlags) -> Result<(), Trouble> {
        rustix::fs::fsync(self.file.as_fd()).map_err(|e| failed(e, "the disk does not take it"))?;
        if self.name.is_none() {
            if flags.contains(RenameFlags::NOREPLACE) && self.link(self.to).is_ok() {
                return Ok(());
            }
            self.give_name()?;
        }
        let Some(name) = &self.name else { return Ok(()) };
        let (from, to) = (name.as_slice(), self.to);
        rustix::fs::renameat_with(self.directory, from, self.directory, to, flags)
            .map_err(not_renamed)?;
        self.name = None;
        Ok(())
    }

    /// Gives it a name, as only one that has some can take the place of another.
    fn give_name(&mut self) -> Result<(), Trouble> {
        for name in names() {
            match self.link(&name) {
                Ok(()) => {
                    self.name = Some(name);
                    return Ok(());
                }
                Err(Errno::EXIST) => {}
                Err(_) => return self.exchange_for_named(),
            }
        }
        Err(no_name().into())
    }

    fn link(&self, name: &[u8]) -> Result<(), Errno> {
        let own = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        rustix::fs::linkat(CWD, own, self.directory, name, AtFlags::SYMLINK_FOLLOW)
    }

    /// Goes on with a file that has a name, where the file system gives none to one that had none.
    fn exchange_for_named(&mut self) -> Result<(), Trouble> {
        let (file, name) = named(self.directory)?;
        let nameless = std::mem::replace(&mut self.file, file);
        self.name = Some(name);
        let mut piece = vec![0; MAX_PIECE_BYTES];
        let mut place = 0;
        loop {
            let count = read_at(&nameless, &mut piece, place)?;
            let Some(part) = piece.get(..count).filter(|part| !part.is_empty()) else { break };
            write_all(&self.file, part)?;
            place += part.len() as u64;
        }
        let stat = rustix::fs::fstat(&nameless).map_err(|e| failed(e, "it cannot be looked at"))?;
        set_mode(&self.file, Mode::from_raw_mode(stat.st_mode & 0o777))?;
        rustix::fs::fsync(&self.file).map_err(|e| failed(e, "the disk does not take it"))?;
        Ok(())
    }
}

/// A new file with a name of its own.
fn named(directory: BorrowedFd<'_>) -> Result<(OwnedFd, Vec<u8>), Failure> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    for name in names() {
        match rustix::fs::openat(directory, name.as_slice(), flags, Mode::RUSR | Mode::WUSR) {
            Ok(file) => return Ok((file, name)),
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(failed(errno, "no file can be made beside it")),
        }
    }
    Err(no_name())
}

fn names() -> impl Iterator<Item = Vec<u8>> {
    let own = rustix::process::getpid().as_raw_nonzero();
    (0..TRIES).map(move |number| format!(".cofferdam-{own}-{number}").into_bytes())
}

fn no_name() -> Failure {
    refused(Why::Exists, "no name is free for a temporary file beside it")
}

fn not_renamed(errno: Errno) -> Failure {
    match errno {
        Errno::BUSY => failed(errno, "it is protected"),
        Errno::EXIST => there_already(),
        Errno::ISDIR => no_file(FileType::Directory),
        _ => failed(errno, "it cannot take its place"),
    }
}

impl Drop for Beside<'_> {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            // What is gone already is gone.
            let _ = rustix::fs::unlinkat(self.directory, name.as_slice(), AtFlags::empty());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_wire::message::Files;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn what_is_not_whole_has_no_name_and_takes_its_place_all_the_same() {
        let place = std::env::temp_dir().join(format!("cofferdam-nameless-{}", std::process::id()));
        std::fs::create_dir_all(&place).unwrap();
        let root = Root::open(&Files { root: place.as_os_str().into(), names: Vec::new() });
        let root = root.unwrap();
        let named = root.for_file(&"f".into(), Missing::Make).unwrap();
        let names = || {
            let all = std::fs::read_dir(&place).unwrap();
            all.map(|e| e.unwrap().file_name().into_string().unwrap()).collect::<Vec<_>>()
        };
        let written = |content: &[u8]| {
            let beside = Beside::new(&named, 0o640).unwrap();
            write_all(&beside.file, content).unwrap();
            beside
        };
        let first = written(b"one");
        assert_eq!((&first.name, names()), (&None, Vec::new()));
        first.take_place(RenameFlags::NOREPLACE).unwrap();
        let refused = written(b"two").take_place(RenameFlags::NOREPLACE).unwrap_err();
        assert!(matches!(refused, Trouble::Failed(failure) if failure.why == Why::Exists));
        written(b"three").take_place(RenameFlags::empty()).unwrap();
        assert_eq!(std::fs::read(place.join("f")).unwrap(), b"three");
        // As on a file system that gives no name to what had none.
        let mut odd = written(b"four");
        odd.exchange_for_named().unwrap();
        odd.take_place(RenameFlags::empty()).unwrap();
        assert_eq!(std::fs::read(place.join("f")).unwrap(), b"four");
        let mode = std::fs::metadata(place.join("f")).unwrap().permissions().mode();
        assert_eq!((mode & 0o777, names()), (0o640, vec!["f".to_owned()]));
        std::fs::remove_dir_all(place).unwrap();
    }

    #[test]
    fn a_hole_of_a_file_is_known_without_reading_it() {
        let name = format!("cofferdam-hole-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let file: OwnedFd = std::fs::File::create_new(&path).unwrap().into();
        let (data, end) = (64 << 20, 128 << 20);
        rustix::io::pwrite(&file, b"data", data).unwrap();
        rustix::fs::ftruncate(&file, end).unwrap();
        let found = [0, data, data + 4, end].map(|place| end_of_hole(&file, place).unwrap());
        std::fs::remove_file(&path).unwrap();
        // A file system tells of whole blocks, and says of the rest of one that it holds something.
        assert_eq!((found[0], found[1], found[3]), (data, data, end));
        assert!([data + 4, end].contains(&found[2]), "{found:?}");
    }
}

//! Stages: made, met again, and removed.

use super::super::failure::{failed, refused};
use super::super::remove::remove_tree_and_last;
use super::super::walk::Root;
use super::super::write::write_all;
use super::act::{Act, Ground};
use super::held::Held;
use super::named;
use cofferdam_wire::files::{Answer, Carry, CarryEnd, Failure, Why};
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Dir, FlockOperation, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

/// What the name of every stage begins with.
const STAGE: &str = ".cofferdam-carry-";
/// What the name of a stage begins with that is being removed.
const GONE: &str = ".cofferdam-gone-";
/// What is being done, in a stage.
pub(super) const JOURNAL: &str = "journal";
/// The same, when all of it is done.
pub(super) const DONE: &str = "done";
/// That a directory is a stage: its own number, so that a copy of one is none, and neither is what a command
/// made that only has such a name.
const MARK: &str = "stage";
/// The most bytes of a mark.
const MAX_MARK_BYTES: u64 = 32;
/// The most bytes of a journal.
pub(super) const MAX_JOURNAL_BYTES: usize = 64 << 20;
/// How many stages that others left are put right at a time.
const MAX_LEFTOVERS: usize = 16;
/// How often a stage is made anew that somebody takes for a leftover.
const TRIES: usize = 3;

/// Makes a stage, and holds it.
pub(super) fn make(root: &Root, name: &str) -> Result<(Vec<u8>, OwnedFd), Failure> {
    let name = format!("{STAGE}{name}").into_bytes();
    for _ in 0..TRIES {
        rustix::fs::mkdirat(root.top(), name.as_slice(), Mode::RWXU).map_err(|e| match e {
            Errno::EXIST => refused(Why::Exists, "a carry of this name is there already"),
            Errno::ROFS => failed(e, "the workspace is read-only"),
            _ => failed(e, "the workspace takes no new name"),
        })?;
        // Until it is locked, another worker may take it for a leftover.
        if let Ok(directory) = open(root, &name)
            && lock(&directory).is_ok()
            && is_there(root, &name, &directory)
        {
            if let Err(failure) = mark(&directory) {
                // The error that comes first is the one to tell.
                let _ = remove(root, &name);
                return Err(failure);
            }
            return Ok((name, directory));
        }
    }
    Err(refused(Why::Exhausted, "no place could be held for what is new"))
}

/// Removes a stage.
pub(super) fn clear(root: &Root, name: &[u8]) -> Result<(), Failure> {
    let Some(own) = name.strip_prefix(STAGE.as_bytes()) else {
        return remove(root, name);
    };
    // ORDER: one that is half removed would tell something else of its carry than a whole one.
    let gone = [GONE.as_bytes(), own].concat();
    let (top, flags) = (root.top(), RenameFlags::NOREPLACE);
    match rustix::fs::renameat_with(top, name, top, gone.as_slice(), flags) {
        Ok(()) => remove(root, &gone),
        Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(failed(errno, "what a carry left cannot be removed")),
    }
}

fn remove(root: &Root, gone: &[u8]) -> Result<(), Failure> {
    #[cfg(test)]
    super::fault::removal()?;
    // ORDER: the mark last, so that what is half removed is known for what it is.
    remove_tree_and_last(root.top(), gone, MARK.as_bytes())
}

/// Says what has become of a carry, and puts it right if its worker was killed.
///
/// The name is the host's own, so what has it needs no mark.
pub(in super::super) fn recover(root: &Root, order: &Carry) -> Result<Answer, Failure> {
    named(order)?;
    let end = put_one_right(root, format!("{STAGE}{}", order.name).as_bytes())?;
    Ok(Answer::Recovered(match end {
        // Whoever is removing it holds it, and was killed before the end if nobody does.
        CarryEnd::NoTrace => put_one_right(root, format!("{GONE}{}", order.name).as_bytes())?,
        CarryEnd::Undone | CarryEnd::Done | CarryEnd::Busy => end,
    }))
}

/// Puts right what workers left that were killed, as far as that goes.
pub(super) fn put_right(root: &Root) {
    for name in leftovers(root).unwrap_or_default() {
        // HOSTILE: commands can make what looks like one. Such a one stops nobody.
        let _ = put_one_right(root, &name);
    }
}

fn leftovers(root: &Root) -> rustix::io::Result<Vec<Vec<u8>>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = rustix::fs::openat(root.top(), c".", flags, Mode::empty())?;
    let mut names = Vec::new();
    let mut entries = Dir::read_from(&directory)?;
    while names.len() < MAX_LEFTOVERS
        && let Some(entry) = entries.read()
    {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        // HOSTILE: a directory of a command may have such a name, and is nobody's leftover.
        if [STAGE, GONE].iter().any(|prefix| name.starts_with(prefix.as_bytes()))
            && open(root, name).is_ok_and(|directory| is_marked(&directory))
        {
            names.push(name.to_vec());
        }
    }
    Ok(names)
}

fn put_one_right(root: &Root, name: &[u8]) -> Result<CarryEnd, Failure> {
    let stage = match open(root, name) {
        Ok(stage) => stage,
        Err(Errno::NOENT) => return Ok(CarryEnd::NoTrace),
        Err(errno) => return Err(failed(errno, "what a carry left cannot be opened")),
    };
    if lock(&stage).is_err() {
        return Ok(CarryEnd::Busy);
    }
    if !is_there(root, name, &stage) {
        return Ok(CarryEnd::NoTrace);
    }
    if name.starts_with(GONE.as_bytes()) {
        clear(root, name)?;
        return Ok(CarryEnd::NoTrace);
    }
    let end = match journal(&stage)? {
        Some(acts) => {
            take_back(root, &stage, &acts)?;
            // ORDER: a journal tells of nothing any more before what it tells of goes.
            rustix::fs::unlinkat(&stage, JOURNAL, AtFlags::empty())
                .map_err(|e| failed(e, "what a carry left cannot be removed"))?;
            CarryEnd::Undone
        }
        None => match rustix::fs::statat(&stage, DONE, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => CarryEnd::Done,
            Err(_) => CarryEnd::Undone,
        },
    };
    clear(root, name)?;
    Ok(end)
}

fn take_back(root: &Root, stage: &OwnedFd, acts: &[Act]) -> Result<(), Failure> {
    let mut held = Held::new(root);
    let mut left = Ok(());
    for act in acts.iter().rev() {
        for path in act.paths() {
            // ORDER: now and not before, for what was taken back just now may be on the way.
            let _ = held.hold(path.as_bytes());
        }
        left = Ground { root, held: &held, stage }.take_back(act).and(left);
    }
    left
}

/// What a killed worker was about to do, if it had begun.
fn journal(stage: &OwnedFd) -> Result<Option<Vec<Act>>, Failure> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match rustix::fs::openat(stage, JOURNAL, flags, Mode::empty()) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(failed(errno, "the journal of a carry cannot be read")),
    };
    let mut text = Vec::new();
    let most = MAX_JOURNAL_BYTES as u64 + 1;
    std::io::Read::read_to_end(
        &mut std::io::Read::take(std::fs::File::from(file), most),
        &mut text,
    )
    .map_err(|_| refused(Why::Io, "the journal of a carry cannot be read"))?;
    let acts = serde_json::from_slice(&text).ok().filter(|_| text.len() <= MAX_JOURNAL_BYTES);
    let wrong = || refused(Why::Io, "the journal of a carry cannot be understood");
    acts.ok_or_else(wrong).map(Some)
}

/// Says that a directory is a stage.
fn mark(stage: &OwnedFd) -> Result<(), Failure> {
    let wrong = |e| failed(e, "what is new cannot be marked");
    let own = rustix::fs::fstat(stage).map_err(wrong)?.st_ino.to_string();
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let owner = Mode::RUSR | Mode::WUSR;
    let file = rustix::fs::openat(stage, MARK, flags, owner).map_err(wrong)?;
    write_all(&file, own.as_bytes())
}

fn is_marked(directory: &OwnedFd) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(file) = rustix::fs::openat(directory, MARK, flags, Mode::empty()) else { return false };
    let Ok(own) = rustix::fs::fstat(directory) else { return false };
    let mut text = String::new();
    let mut bytes = std::io::Read::take(std::fs::File::from(file), MAX_MARK_BYTES);
    std::io::Read::read_to_string(&mut bytes, &mut text).is_ok() && text == own.st_ino.to_string()
}

fn open(root: &Root, name: &[u8]) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(root.top(), name, flags, Mode::empty())
}

/// It ends with the worker, however that ends.
fn lock(stage: &OwnedFd) -> rustix::io::Result<()> {
    rustix::fs::flock(stage, FlockOperation::NonBlockingLockExclusive)
}

/// Whether what was opened still has its name.
fn is_there(root: &Root, name: &[u8], stage: &OwnedFd) -> bool {
    let named = rustix::fs::statat(root.top(), name, AtFlags::SYMLINK_NOFOLLOW);
    match (named, rustix::fs::fstat(stage)) {
        (Ok(named), Ok(held)) => (named.st_dev, named.st_ino) == (held.st_dev, held.st_ino),
        (Err(_), _) | (_, Err(_)) => false,
    }
}

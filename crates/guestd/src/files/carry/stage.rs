//! The stage of a carry: where all that is new is made, and all that was there is kept meanwhile.

use super::super::failure::{Trouble, failed, refused};
use super::super::read::look_at;
use super::super::walk::{NEW_DIRECTORY, Root};
use super::super::write::{permissions, set_mode, write_all};
use super::act::{Act, Ground, Identity, Slot, Taken};
use super::expect::{Sign, check, check_changeable};
use super::held::{Held, above, name, plain};
use super::leftover::{DONE, JOURNAL, MAX_JOURNAL_BYTES, clear, make};
use super::moment;
use super::stream::Stream;
use cofferdam_wire::ByteString;
use cofferdam_wire::files::{Before, Failure, MAX_CARRIED_BYTES, Step, Why};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, Mode, OFlags};
use std::collections::{HashMap, HashSet};

/// How many files are written to disk one by one. With more, all that is unwritten is written at once.
const SYNCED_ALONE: u64 = 64;

/// A carry that is being made ready or carried out. It is as if it had never been, unless
/// [`carry_out`](Self::carry_out) succeeds.
pub(super) struct Stage<'a> {
    root: &'a Root,
    name: Vec<u8>,
    directory: OwnedFd,
    held: Held<'a>,
    expected: HashMap<Vec<u8>, Before>,
    /// What goes or moves away before something may come there.
    vacated: HashSet<Vec<u8>>,
    /// Directories that come with all that is in them, by their paths.
    made: HashMap<Vec<u8>, Slot>,
    /// The directory in one of these in which something was made last.
    inner: Option<(Vec<u8>, OwnedFd)>,
    /// Permissions that are set when all is in its place.
    modes: Vec<(Vec<u8>, u32)>,
    acts: Vec<Act>,
    slots: Slot,
    files: u64,
    bytes: u64,
    progress: Progress,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// Nothing has changed its name.
    Staging,
    /// Names change, and are written down.
    Changing,
    /// All is done, or all is taken back.
    Settled,
    /// Something could not be put back, and is kept.
    Kept,
}

impl<'a> Stage<'a> {
    pub(super) fn new(root: &'a Root, name: &str) -> Result<Self, Failure> {
        let (name, directory) = make(root, name)?;
        Ok(Self {
            root,
            name,
            directory,
            held: Held::new(root),
            expected: HashMap::new(),
            vacated: HashSet::new(),
            made: HashMap::new(),
            inner: None,
            modes: Vec::new(),
            acts: Vec::new(),
            slots: 0,
            files: 0,
            bytes: 0,
            progress: Progress::Staging,
        })
    }

    /// Makes one step ready.
    pub(super) fn take(&mut self, step: Step, stream: &mut Stream<'_>) -> Result<(), Trouble> {
        moment()?;
        match step {
            Step::Expect { path, is } => {
                let path = plain(&path)?.to_vec();
                self.expected.insert(path, is);
                Ok(())
            }
            Step::File { path, mode, bytes } => self.file(&path, mode, bytes, stream),
            Step::Link { path, target } => Ok(self.link(&path, &target)?),
            Step::Directory { path, mode } => Ok(self.make_directory(&path, mode)?),
            Step::Remove { path } => {
                let what = Taken::Thing(self.thing(plain(&path)?)?);
                Ok(self.take_away(path, what)?)
            }
            Step::RemoveDirectory { path } => Ok(self.take_away(path, Taken::Directory)?),
            Step::Rename { from, to } => {
                let before = self.thing(plain(&from)?)?;
                self.hold_new(plain(&to)?)?;
                self.held.hold(from.as_bytes())?;
                self.vacated.insert(from.as_bytes().to_vec());
                self.acts.push(Act::Rename { from, to, before });
                Ok(())
            }
        }
    }

    fn file(
        &mut self,
        path: &ByteString,
        mode: u32,
        bytes: u64,
        stream: &mut Stream<'_>,
    ) -> Result<(), Trouble> {
        let mode = permissions(mode)?;
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > MAX_CARRIED_BYTES {
            let what = format!("there are more than {MAX_CARRIED_BYTES} bytes in it");
            return Err(refused(Why::TooLarge, what).into());
        }
        let place = self.place(plain(path)?)?;
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let owner = Mode::RUSR | Mode::WUSR;
        let made = rustix::fs::openat(self.directory_of(&place), place.name(), flags, owner);
        let file = made.map_err(|e| failed(e, format!("{path:?} cannot be made ready")))?;
        stream.bytes(bytes, |piece| Ok::<(), Trouble>(write_all(&file, piece)?))?;
        set_mode(&file, mode)?;
        self.files += 1;
        if self.files <= SYNCED_ALONE {
            rustix::fs::fsync(&file).map_err(|e| failed(e, "the disk does not take it"))?;
        }
        let stat = rustix::fs::fstat(&file).map_err(|e| failed(e, "it cannot be looked at"))?;
        self.ready(path, place, Identity::of(&stat));
        Ok(())
    }

    fn link(&mut self, path: &ByteString, target: &ByteString) -> Result<(), Failure> {
        let place = self.place(plain(path)?)?;
        let (directory, name) = (self.directory_of(&place), place.name());
        rustix::fs::symlinkat(target.as_bytes(), directory, name.as_slice())
            .map_err(|e| failed(e, format!("the link {path:?} cannot be made ready")))?;
        let stat = look_at(directory, &name).map_err(|e| failed(e, "it cannot be looked at"))?;
        let new = Identity::of(&stat);
        self.ready(path, place, new);
        Ok(())
    }

    fn make_directory(&mut self, path: &ByteString, mode: Option<u32>) -> Result<(), Failure> {
        let plain = plain(path)?;
        let place = self.place(plain)?;
        let (directory, name) = (self.directory_of(&place), place.name());
        rustix::fs::mkdirat(directory, name.as_slice(), NEW_DIRECTORY)
            .map_err(|e| failed(e, format!("the directory {path:?} cannot be made ready")))?;
        let stat = look_at(directory, &name).map_err(|e| failed(e, "it cannot be looked at"))?;
        let new = Identity::of(&stat);
        if let Some(mode) = mode {
            if permissions(mode)?.as_raw_mode() & 0o700 != 0o700 {
                let what = "the owner of a directory has to be able to use it";
                return Err(refused(Why::BadRequest, what));
            }
            self.modes.push((plain.to_vec(), mode));
        }
        if let Place::Slot { slot, over: None } = place {
            self.made.insert(plain.to_vec(), slot);
        } else if matches!(place, Place::Slot { .. }) {
            return Err(refused(Why::Exists, format!("{path:?} is there already")));
        }
        self.ready(path, place, new);
        Ok(())
    }

    fn take_away(&mut self, path: ByteString, what: Taken) -> Result<(), Failure> {
        self.held.hold(plain(&path)?)?;
        self.vacated.insert(path.as_bytes().to_vec());
        let slot = self.next_slot();
        self.acts.push(Act::Take { slot, path, what });
        Ok(())
    }

    /// What is expected to be there, and is to go.
    fn thing(&self, path: &[u8]) -> Result<Before, Failure> {
        match self.expected.get(path) {
            Some(before @ (Before::File { .. } | Before::Link { .. })) => Ok(before.clone()),
            Some(Before::Nothing) | None => Err(unexpected(path)),
        }
    }

    /// Refuses a place where something may be.
    fn free(&self, path: &[u8]) -> Result<(), Failure> {
        let is_free = matches!(self.expected.get(path), Some(Before::Nothing));
        if is_free || self.vacated.contains(path) { Ok(()) } else { Err(unexpected(path)) }
    }

    /// Holds the directory that something is moved to, which may be one of this carry.
    fn hold_new(&mut self, path: &[u8]) -> Result<(), Failure> {
        match self.inside(path) {
            // It stays what it is when it takes its place.
            Some((slot, below)) => {
                let directory = self.open_inside(slot, above(&below))?;
                self.held.keep(path, directory)
            }
            None => {
                self.free(path)?;
                self.held.hold(path).map(drop)
            }
        }
    }

    /// Where something new is made.
    fn place(&mut self, path: &[u8]) -> Result<Place, Failure> {
        if let Some((slot, below)) = self.inside(path) {
            let parent = above(path).to_vec();
            if self.inner.as_ref().is_none_or(|(held, _)| *held != parent) {
                let opened = self.open_inside(slot, above(&below))?;
                self.inner = Some((parent, opened));
            }
            return Ok(Place::Inside { name: name(&below).to_vec() });
        }
        let over = match self.expected.get(path) {
            Some(before @ (Before::File { .. } | Before::Link { .. }))
                if !self.vacated.contains(path) =>
            {
                Some(before.clone())
            }
            _ => {
                self.free(path)?;
                None
            }
        };
        self.held.hold(path)?;
        Ok(Place::Slot { slot: self.next_slot(), over })
    }

    /// The directory of this carry that a path lies in, and the way from there.
    fn inside(&self, path: &[u8]) -> Option<(Slot, Vec<u8>)> {
        let mut top = above(path);
        while !top.is_empty() {
            if let Some(slot) = self.made.get(top) {
                let below = path.get(top.len() + 1..).unwrap_or_default();
                return Some((*slot, below.to_vec()));
            }
            top = above(top);
        }
        None
    }

    fn open_inside(&self, slot: Slot, below: &[u8]) -> Result<OwnedFd, Failure> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = |at: BorrowedFd<'_>, name: &[u8]| {
            rustix::fs::openat(at, name, flags, Mode::empty())
                .map_err(|e| failed(e, "a directory of it cannot be opened"))
        };
        let mut present = open(self.directory.as_fd(), slot.to_string().as_bytes())?;
        for name in below.split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
            present = open(present.as_fd(), name)?;
        }
        Ok(present)
    }

    fn directory_of(&self, place: &Place) -> BorrowedFd<'_> {
        match (place, &self.inner) {
            (Place::Inside { .. }, Some((_, inner))) => inner.as_fd(),
            (Place::Slot { .. } | Place::Inside { .. }, _) => self.directory.as_fd(),
        }
    }

    fn next_slot(&mut self) -> Slot {
        self.slots += 1;
        self.slots
    }

    fn ready(&mut self, path: &ByteString, place: Place, new: Identity) {
        let path = path.clone();
        match place {
            Place::Slot { slot, over: Some(before) } => {
                self.acts.push(Act::Exchange { slot, path, new, before });
            }
            Place::Slot { slot, over: None } => self.acts.push(Act::Put { slot, path, new }),
            Place::Inside { .. } => {}
        }
    }

    /// Looks whether all is as expected, then changes the names. Takes all back if anything fails.
    pub(super) fn carry_out(&mut self, sign: Sign<'_>) -> Result<(), Trouble> {
        self.finish_new()?;
        self.look_first(sign)?;
        self.write_down()?;
        self.progress = Progress::Changing;
        let ground = Ground { root: self.root, held: &self.held, stage: &self.directory };
        let changed = self.acts.iter().try_for_each(|act| {
            moment()?;
            ground.perform(act, sign)
        });
        let changed = changed.and_then(|()| moment()).and_then(|()| Ok(self.finish()?));
        match changed {
            Ok(()) => {
                self.progress = Progress::Settled;
                Ok(())
            }
            Err(trouble) => Err(self.back(trouble)),
        }
    }

    fn finish_new(&mut self) -> Result<(), Failure> {
        for (path, mode) in std::mem::take(&mut self.modes).into_iter().rev() {
            let opened = match (self.made.get(&path), self.inside(&path)) {
                (Some(slot), _) => self.open_inside(*slot, &[])?,
                (None, Some((slot, below))) => self.open_inside(slot, &below)?,
                (None, None) => return Err(unexpected(&path)),
            };
            let at = format!("/proc/self/fd/{}", rustix::fd::AsRawFd::as_raw_fd(&opened));
            rustix::fs::chmodat(rustix::fs::CWD, at, permissions(mode)?, AtFlags::empty())
                .map_err(|e| failed(e, "its permissions cannot be set"))?;
        }
        if self.files > SYNCED_ALONE {
            rustix::fs::syncfs(&self.directory)
                .map_err(|e| failed(e, "the disk does not take it"))?;
        }
        Ok(())
    }

    fn look_first(&mut self, sign: Sign<'_>) -> Result<(), Trouble> {
        for path in self.acts.iter().flat_map(Act::paths) {
            check_changeable(self.held.get(path.as_bytes())?, path.as_bytes())?;
        }
        for (path, before) in &self.expected {
            moment()?;
            match self.held.hold(path) {
                Ok(directory) => check(self.root, (directory, name(path)), path, before, sign)?,
                // Nothing is in what is not there, or is no directory.
                Err(Failure { why: Why::NotFound | Why::WrongType, .. })
                    if *before == Before::Nothing => {}
                Err(Failure { why: Why::NotFound | Why::WrongType, .. }) => {
                    return Err(super::expect::changed(path).into());
                }
                Err(failure) => return Err(failure.into()),
            }
        }
        Ok(())
    }

    /// Writes down what is going to be done, so that others can take it back.
    fn write_down(&self) -> Result<(), Trouble> {
        let text = serde_json::to_vec(&self.acts).unwrap_or_default();
        if text.is_empty() || text.len() > MAX_JOURNAL_BYTES {
            return Err(refused(Why::TooLarge, "it has too many changes with long names").into());
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let new = format!("{JOURNAL}.new");
        let owner = Mode::RUSR | Mode::WUSR;
        let file = rustix::fs::openat(&self.directory, new.as_str(), flags, owner)
            .map_err(|e| failed(e, "what is to be done cannot be written down"))?;
        write_all(&file, &text)?;
        // ORDER: a journal is whole, and on disk, before anything is done that it tells of.
        rustix::fs::fsync(&file)
            .and_then(|()| {
                rustix::fs::renameat(&self.directory, new.as_str(), &self.directory, JOURNAL)
            })
            .and_then(|()| rustix::fs::fsync(&self.directory))
            .map_err(|e| failed(e, "what is to be done cannot be written down"))?;
        Ok(())
    }

    /// From here on it is done, whoever dies.
    fn finish(&self) -> Result<(), Failure> {
        rustix::fs::renameat(&self.directory, JOURNAL, &self.directory, DONE)
            .map_err(|e| failed(e, "that it is done cannot be written down"))?;
        // Should the disk refuse this, a loss of power may undo what is done. Whole it is either way.
        let _ = rustix::fs::fsync(&self.directory);
        Ok(())
    }

    /// Takes back what was done, and answers why.
    fn back(&mut self, trouble: Trouble) -> Trouble {
        if is_dead() {
            return trouble;
        }
        let ground = Ground { root: self.root, held: &self.held, stage: &self.directory };
        let left = self.acts.iter().rev().filter_map(|act| ground.take_back(act).err()).last();
        let Some(left) = left else {
            // ORDER: a journal tells of nothing any more before what it tells of goes.
            let _ = rustix::fs::unlinkat(&self.directory, JOURNAL, AtFlags::empty());
            self.progress = Progress::Settled;
            return trouble;
        };
        self.progress = Progress::Kept;
        let kept = String::from_utf8_lossy(&self.name);
        let what = format!("{}; what was there is kept in {kept}", left.detail);
        Trouble::Failed(Failure { detail: what, ..left })
    }
}

/// Whether a test has let this worker die.
#[cfg(test)]
fn is_dead() -> bool {
    super::fault::is_dead()
}

/// Whether a test has let this worker die.
#[cfg(not(test))]
fn is_dead() -> bool {
    false
}

/// Where something new is made.
enum Place {
    /// In the stage itself. It is to take the place of this, if of anything.
    Slot { slot: Slot, over: Option<Before> },
    /// In a directory that is made.
    Inside { name: Vec<u8> },
}

impl Place {
    fn name(&self) -> Vec<u8> {
        match self {
            Self::Slot { slot, .. } => slot.to_string().into_bytes(),
            Self::Inside { name } => name.clone(),
        }
    }
}

fn unexpected(path: &[u8]) -> Failure {
    let path = ByteString::from(path.to_vec());
    refused(Why::BadRequest, format!("it is not said what is expected at {path:?}"))
}

impl Drop for Stage<'_> {
    fn drop(&mut self) {
        let keep = match self.progress {
            Progress::Staging | Progress::Settled => is_dead(),
            Progress::Changing | Progress::Kept => true,
        };
        if !keep {
            // What cannot be removed is met again by the next carry.
            let _ = clear(self.root, &self.name);
        }
    }
}

//! The stage of a carry: where all that is new is made, and all that was there is kept meanwhile.

use super::super::failure::{Trouble, failed, refused};
use super::super::read::look_at;
use super::super::walk::{NEW_DIRECTORY, Root};
use super::super::write::{permissions, set_mode, write_all};
use super::act::{Act, Identity, Slot, Taken};
use super::carry_out::is_dead;
use super::held::{Held, above, name, plain};
use super::leftover::{clear, make};
use super::moment;
use super::stream::Stream;
use cofferdam_wire::ByteString;
use cofferdam_wire::files::{Before, Failure, MAX_CARRIED_BYTES, Step, Why};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use std::collections::{HashMap, HashSet};

/// How many files are written to disk one by one. With more, all that is unwritten is written at once.
pub(super) const SYNCED_ALONE: u64 = 64;

/// A carry that is being made ready or carried out. It is as if it had never been, unless
/// [`carry_out`](Self::carry_out) succeeds.
pub(super) struct Stage<'a> {
    pub(super) root: &'a Root,
    pub(super) name: Vec<u8>,
    pub(super) directory: OwnedFd,
    pub(super) held: Held<'a>,
    pub(super) expected: HashMap<Vec<u8>, Before>,
    /// What goes or moves away before something may come there.
    vacated: HashSet<Vec<u8>>,
    /// Directories that come with all that is in them, by their paths.
    pub(super) made: HashMap<Vec<u8>, Slot>,
    /// The directory in one of these in which something was made last.
    inner: Option<(Vec<u8>, OwnedFd)>,
    /// Permissions that are set when all is in its place.
    pub(super) modes: Vec<(Vec<u8>, u32)>,
    pub(super) acts: Vec<Act>,
    slots: Slot,
    pub(super) files: u64,
    bytes: u64,
    pub(super) progress: Progress,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// Nothing has changed its name.
    Staging,
    /// Names change, and are written down.
    Changing,
    /// All is done, or all is taken back.
    Settled,
    /// Something could not be put back, and is kept; or what is left was to be removed.
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

    /// Removes what was there before, when all is done.
    pub(super) fn clear(mut self) -> Result<(), Failure> {
        self.progress = Progress::Kept;
        clear(self.root, &self.name).map_err(|left| {
            let detail = "all of it is done, but what was there before cannot be removed: it is left in the \
                          workspace, as .cofferdam-gone-… or .cofferdam-carry-…";
            Failure { detail: detail.to_owned(), ..left }
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
    pub(super) fn inside(&self, path: &[u8]) -> Option<(Slot, Vec<u8>)> {
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

    pub(super) fn open_inside(&self, slot: Slot, below: &[u8]) -> Result<OwnedFd, Failure> {
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

pub(super) fn unexpected(path: &[u8]) -> Failure {
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
            // Whoever noted this carry asks again what has become of it.
            let _ = clear(self.root, &self.name);
        }
    }
}

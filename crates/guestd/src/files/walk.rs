//! The way from the root of a workspace to a place in it.
//!
//! Each directory on the way is opened by its one name in the directory above, and nothing that is a
//! link is ever followed by the kernel: a link is read, and what it says is walked here, in words. `..`
//! goes back to a directory that was come through and is still held. So the way cannot leave the root,
//! whatever is renamed meanwhile; and what links in `/proc` really lead to is out of reach.

use super::failure::{failed, in_words, refused};
use cofferdam_wire::ByteString;
use cofferdam_wire::files::{Failure, MAX_DEPTH, MAX_LINKS, Part, PathError, Why, parts};
use cofferdam_wire::message::Files;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

/// `PROC_SUPER_MAGIC`.
const PROC_MAGIC: u64 = 0x9fa0;

/// The root of a workspace.
pub(super) struct Root {
    directory: OwnedFd,
    device: u64,
    names: Vec<Vec<u8>>,
}

/// Whether directories that are missing on the way are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    /// They are an error.
    Refuse,
    /// They are made.
    Make,
}

/// What a slash behind the last name asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slash {
    /// There is none.
    None,
    /// The name is that of a directory, of one that is to be made, or of a link to one.
    Follow,
    /// The name is that of a directory, and no link is followed: what is wanted is the name itself.
    Itself,
}

impl Slash {
    /// A dot behind a slash says the same.
    fn of(path: &[u8]) -> Self {
        match path.ends_with(b"/") || path.ends_with(b"/.") {
            true => Self::Follow,
            false => Self::None,
        }
    }
}

/// What is done with links on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Links {
    /// Their words are walked.
    Follow,
    /// They are an error.
    Refuse,
}

impl Root {
    pub(super) fn open(request: &Files) -> Result<Self, Failure> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(CWD, request.root.as_bytes(), flags, Mode::empty());
        let directory = opened.map_err(|e| failed(e, "the workspace cannot be opened"))?;
        let stat = rustix::fs::fstat(&directory)
            .map_err(|e| failed(e, "the workspace cannot be looked at"))?;
        let names = [&request.root].into_iter().chain(&request.names);
        let names = names.map(|name| name.as_bytes().to_vec()).collect();
        Ok(Self { directory, device: stat.st_dev, names })
    }

    /// Begins a way.
    pub(super) fn walk(&self, path: &ByteString, missing: Missing) -> Result<Walk<'_>, Failure> {
        self.begin(path, missing, Links::Follow)
    }

    fn begin(
        &self,
        path: &ByteString,
        missing: Missing,
        policy: Links,
    ) -> Result<Walk<'_>, Failure> {
        let (through, left, slash) = (Vec::new(), Vec::new(), Slash::of(path.as_bytes()));
        let made = Made::default();
        let mut walk = Walk { root: self, through, left, links: 0, policy, missing, slash, made };
        walk.lay_out(path.as_bytes())?;
        Ok(walk)
    }

    /// The directory of this path, which leads through no link. The root for an empty path.
    pub(super) fn straight(&self, path: &ByteString) -> Result<OwnedFd, Failure> {
        let walk = self.begin(path, Missing::Refuse, Links::Refuse)?;
        let mut place = walk.into_directory()?;
        match place.through.pop() {
            Some(directory) => Ok(directory),
            None => place
                .directory()
                .try_clone_to_owned()
                .map_err(|_| refused(Why::Exhausted, "the workspace cannot be opened once more")),
        }
    }

    /// The names of a path from the root on, where `..` takes back the name before it, whatever that is.
    pub(super) fn names_of(&self, path: &ByteString) -> Result<Vec<Vec<u8>>, Failure> {
        let mut names: Vec<Vec<u8>> = Vec::new();
        for part in self.parts(path.as_bytes())? {
            match part {
                Part::Name(name) => names.push(name.to_vec()),
                Part::Up => {
                    let outside = || refused(Why::Escape, "the path leaves the workspace");
                    names.pop().ok_or_else(outside)?;
                }
            }
        }
        Ok(names)
    }

    fn parts<'p>(&self, path: &'p [u8]) -> Result<Vec<Part<'p>>, Failure> {
        let names: Vec<&[u8]> = self.names.iter().map(Vec::as_slice).collect();
        parts(path, &names).map_err(|error| match error {
            PathError::TooLong => refused(Why::BadRequest, "the path is too long"),
            PathError::HasNul => refused(Why::BadRequest, "the path holds a NUL byte"),
            PathError::Outside => refused(Why::Escape, "the path leads out of the workspace"),
        })
    }

    /// The root itself.
    pub(super) fn top(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    /// The place of a path, whose last name is not looked at.
    pub(super) fn place(&self, path: &ByteString, missing: Missing) -> Result<Place<'_>, Failure> {
        self.walk(path, missing)?.place()
    }

    /// A place that has a name in its directory, as every place but the root has.
    pub(super) fn named(&self, path: &ByteString, missing: Missing) -> Result<Named<'_>, Failure> {
        self.walk(path, missing)?.named()
    }

    /// A place whose name itself is meant, and not where it leads: what is moved or removed.
    pub(super) fn itself(&self, path: &ByteString) -> Result<Named<'_>, Failure> {
        let mut walk = self.walk(path, Missing::Refuse)?;
        if walk.slash == Slash::Follow {
            walk.slash = Slash::Itself;
        }
        walk.named()
    }

    /// A place for a file, which has no slash behind its name.
    pub(super) fn for_file(
        &self,
        path: &ByteString,
        missing: Missing,
    ) -> Result<Named<'_>, Failure> {
        match Slash::of(path.as_bytes()) {
            Slash::None => self.named(path, missing),
            Slash::Follow | Slash::Itself => {
                Err(refused(Why::WrongType, "a slash behind a name makes it that of a directory"))
            }
        }
    }

    /// A place for something of this kind, whose directories are made.
    pub(super) fn for_kind(&self, kind: FileType, path: &ByteString) -> Result<Named<'_>, Failure> {
        if kind == FileType::Directory {
            return self.named(path, Missing::Make);
        }
        self.for_file(path, Missing::Make)
    }

    /// Refuses what another process file system shows, should the host have one in the workspace.
    pub(super) fn admit(&self, opened: &OwnedFd, stat: &Stat) -> Result<(), Failure> {
        if stat.st_dev == self.device {
            return Ok(());
        }
        let system =
            rustix::fs::fstatfs(opened).map_err(|e| failed(e, "its file system cannot be told"))?;
        match u64::try_from(system.f_type) {
            Ok(PROC_MAGIC) => Err(refused(Why::Escape, "it belongs to a process file system")),
            Ok(_) | Err(_) => Ok(()),
        }
    }
}

/// A way that is being walked.
pub(super) struct Walk<'a> {
    root: &'a Root,
    /// The directories below the root that were come through.
    through: Vec<OwnedFd>,
    /// What is left of the way, the next step last.
    left: Vec<Step>,
    links: usize,
    policy: Links,
    missing: Missing,
    slash: Slash,
    made: Made,
}

enum Step {
    Name(Vec<u8>),
    Up,
}

/// Directories that were made on the way, each by its name in the one above it. They go again with this, unless
/// they are kept: what is refused leaves nothing.
#[derive(Default)]
struct Made(Vec<(OwnedFd, Vec<u8>)>);

impl Made {
    fn add(&mut self, above: BorrowedFd<'_>, name: &[u8]) {
        // One that cannot be held stays.
        self.0.extend(above.try_clone_to_owned().ok().map(|above| (above, name.to_vec())));
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        for (above, name) in self.0.drain(..).rev() {
            // One that somebody put something into stays.
            let _ = rustix::fs::unlinkat(&above, name.as_slice(), AtFlags::REMOVEDIR);
        }
    }
}

/// Where a way leads.
pub(super) struct Place<'a> {
    root: &'a Root,
    through: Vec<OwnedFd>,
    /// A name in the directory; `None` for the directory itself.
    pub(super) name: Option<Vec<u8>>,
    made: Made,
}

/// A name in a directory.
pub(super) struct Named<'a> {
    root: &'a Root,
    through: Vec<OwnedFd>,
    pub(super) name: Vec<u8>,
    made: Made,
}

impl Place<'_> {
    /// Leaves the directories that were made for it.
    pub(super) fn keep(mut self) {
        self.made.0.clear();
    }

    pub(super) fn directory(&self) -> BorrowedFd<'_> {
        self.through.last().unwrap_or(&self.root.directory).as_fd()
    }
}

impl Named<'_> {
    /// Leaves the directories that were made for it.
    pub(super) fn keep(mut self) {
        self.made.0.clear();
    }

    pub(super) fn directory(&self) -> BorrowedFd<'_> {
        self.through.last().unwrap_or(&self.root.directory).as_fd()
    }
}

impl Named<'_> {
    /// Whether the way to it leads through this directory.
    pub(super) fn leads_through(&self, directory: &Stat) -> bool {
        let is_it =
            |other: Stat| (other.st_dev, other.st_ino) == (directory.st_dev, directory.st_ino);
        self.through.iter().any(|fd| rustix::fs::fstat(fd).is_ok_and(is_it))
    }
}

impl<'a> Walk<'a> {
    /// Walks to the last name, and through nothing of it.
    fn place(mut self) -> Result<Place<'a>, Failure> {
        let name = self.go_to_last_name()?;
        Ok(Place { root: self.root, through: self.through, name, made: self.made })
    }

    fn named(mut self) -> Result<Named<'a>, Failure> {
        let name = self
            .go_to_last_name()?
            .ok_or_else(|| refused(Why::BadRequest, "the path names no entry of a directory"))?;
        Ok(Named { root: self.root, through: self.through, name, made: self.made })
    }

    /// Walks into the directory that the whole path names.
    pub(super) fn into_directory(mut self) -> Result<Place<'a>, Failure> {
        while let Some(name) = self.go_to_last_name()? {
            self.enter(&name)?;
        }
        Ok(Place { root: self.root, through: self.through, name: None, made: self.made })
    }

    /// Opens what the whole path names, links at its end followed. `None` where that is a directory
    /// that has no name here.
    pub(super) fn open(mut self, flags: OFlags) -> Result<Option<OwnedFd>, Failure> {
        let mut flags =
            flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        flags.set(OFlags::DIRECTORY, self.slash != Slash::None);
        while let Some(name) = self.go_to_last_name()? {
            match rustix::fs::openat(self.here(), name.as_slice(), flags, Mode::empty()) {
                Ok(opened) => return Ok(Some(opened)),
                Err(Errno::LOOP) => self.follow(&name)?,
                Err(errno) => return Err(failed(errno, "it cannot be opened")),
            }
        }
        Ok(None)
    }

    /// Walks until one name is left, and takes it. `None` where the way ends in the directory that
    /// was reached.
    fn go_to_last_name(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        while let Some(step) = self.left.pop() {
            match step {
                Step::Up => {
                    let outside = || refused(Why::Escape, "the path leaves the workspace");
                    self.through.pop().ok_or_else(outside)?;
                }
                Step::Name(name) if self.left.is_empty() => {
                    if self.ends_with(&name)? {
                        return Ok(Some(name));
                    }
                }
                Step::Name(name) => self.enter(&name)?,
            }
        }
        Ok(None)
    }

    /// Whether the way ends with this name. It goes on where a link has a slash behind it.
    fn ends_with(&mut self, name: &[u8]) -> Result<bool, Failure> {
        if self.slash == Slash::None {
            return Ok(true);
        }
        let kind = match rustix::fs::statat(self.here(), name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => FileType::from_raw_mode(stat.st_mode),
            Err(Errno::NOENT) => return Ok(true),
            Err(errno) => return Err(failed(errno, self.on_the_way(errno))),
        };
        match (kind, self.slash) {
            (FileType::Directory, _) => Ok(true),
            (FileType::Symlink, Slash::Follow) => self.follow(name).map(|()| false),
            (FileType::Symlink, _) => {
                let what = "it is a link, and a slash stands behind its name: leave the slash out for \
                            the link, or name the directory that it leads to";
                Err(refused(Why::WrongType, what))
            }
            (kind, _) => {
                let what = format!("it is {}, and a slash stands behind its name", in_words(kind));
                Err(refused(Why::WrongType, what))
            }
        }
    }

    /// Goes into a directory, or the way that a link says.
    fn enter(&mut self, name: &[u8]) -> Result<(), Failure> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let here = self.through.last().unwrap_or(&self.root.directory).as_fd();
        let open = || rustix::fs::openat(here, name, flags, Mode::empty());
        let opened = match open() {
            Err(Errno::NOENT) if self.missing == Missing::Make => {
                // Somebody else may make it first; then it is looked at like any other.
                match rustix::fs::mkdirat(here, name, NEW_DIRECTORY) {
                    Ok(()) => self.made.add(here, name),
                    Err(Errno::EXIST) => {}
                    Err(e) => return Err(failed(e, "a directory above it cannot be made")),
                }
                open()
            }
            opened => opened,
        };
        match opened {
            Ok(_) if self.through.len() >= MAX_DEPTH => {
                let what = format!("it lies more than {MAX_DEPTH} directories deep");
                Err(refused(Why::BadRequest, what))
            }
            Ok(directory) => {
                self.through.push(directory);
                Ok(())
            }
            Err(Errno::NOTDIR | Errno::LOOP) => self.follow(name),
            Err(errno) => Err(failed(errno, self.on_the_way(errno))),
        }
    }

    /// Goes the way that a link says, from where it stands.
    fn follow(&mut self, name: &[u8]) -> Result<(), Failure> {
        if self.policy == Links::Refuse {
            return Err(refused(Why::WrongType, "a part of the path is a link or no directory"));
        }
        self.count_turn()?;
        match rustix::fs::readlinkat(self.here(), name, Vec::new()) {
            Ok(target) => self.lay_out(target.as_bytes()),
            // It was one a moment ago, or is no directory.
            Err(Errno::INVAL) => Err(refused(Why::WrongType, "a part of the path is no directory")),
            Err(errno) => Err(failed(errno, self.on_the_way(errno))),
        }
    }

    /// Bounds what somebody inside can make us do by changing things under us.
    fn count_turn(&mut self) -> Result<(), Failure> {
        self.links += 1;
        if self.links > MAX_LINKS {
            let what = format!("it leads through more than {MAX_LINKS} links");
            return Err(refused(Why::WrongType, what));
        }
        Ok(())
    }

    fn lay_out(&mut self, path: &[u8]) -> Result<(), Failure> {
        let parts = self.root.parts(path)?;
        if path.first() == Some(&b'/') {
            self.through.clear();
        }
        self.left.extend(parts.into_iter().rev().map(|part| match part {
            Part::Name(name) => Step::Name(name.to_vec()),
            Part::Up => Step::Up,
        }));
        Ok(())
    }

    /// Why the way ends here.
    fn on_the_way(&self, errno: Errno) -> &'static str {
        match errno {
            Errno::NOENT if self.left.is_empty() => "it is not there",
            Errno::NOENT => "a directory above it is missing",
            _ if self.left.is_empty() => "it cannot be entered",
            _ => "a directory above it cannot be entered",
        }
    }

    fn here(&self) -> BorrowedFd<'_> {
        self.through.last().unwrap_or(&self.root.directory).as_fd()
    }
}

/// The permissions of a directory that is made, before the mask of a fresh login.
pub(super) const NEW_DIRECTORY: Mode = Mode::from_raw_mode(0o777);

//! Something to mount over where a protected name is absent.
//!
//! Each workspace has a ledger in the state directory. Whoever has a sandbox there holds a shared
//! lock on it; the last to leave removes what the ledger lists, and where all died, a sweep does.
//! What is to be made is listed before it is made, and with its identity afterwards, so that only
//! what is still exactly ours is removed.
//!
//! Nobody sees litter: for a name of the work tree, be it of a file or of a directory, there is a
//! socket node, which git passes over (an empty file would be committed by `git add -A`), and which
//! nobody can read, write or put anything into. Where something is mounted there is an empty directory,
//! which git passes over too. In a git directory, where git on the host has to be
//! able to work on, there are empty directories and files. Git warns about a `.gitmodules` of that kind when it fetches
//! (`unable to access … No such device or address`) and goes on; the other kinds are worse: an
//! empty file is committed, and a directory gives the same warning.
//!
//! HOSTILE: a sandbox on an outer directory can hold a placeholder open that was made for an inner
//! one, longer than that one lives. So an inode is never used a second time: not by the next
//! sandbox, nor for another workspace. The names of one start are links to one socket, which cannot
//! be opened.
//!
//! LIMIT: sandboxes of different users, or of workspaces one inside the other, do not count each
//! other. The pin that one loses is set again ([`crate::pin_watch`]). Whoever removes a repository on the
//! host name by name while a sandbox lives finds new placeholders in it; as a whole it can be moved away.

mod ledger;
mod owner;
mod standing;
mod sys;

use crate::control_files::{AbsentName, Nature, Unprotected};
use crate::state::{Owners, Record, StateDirectory, io, retry};
use cofferdam_core::Result;
use ledger::{Entry, Kind, Ledger, Outcome};
use owner::Owner;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, ResolveFlags};
use rustix::io::Errno;
use std::ffi::OsString;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

pub(crate) use ledger::Identity;
pub(crate) use standing::Standing;

/// A share in the placeholders of a workspace. Dropping it gives it up, and removes the
/// placeholders if nobody else has a share.
///
/// A forked child inherits the ledger's lock with its descriptor: it has to close it, and may not
/// drop this value.
#[derive(Debug)]
pub struct Placeholders {
    workspace: Workspace,
    record: Option<Record>,
}

/// Absent names at which nothing was made.
#[derive(Debug, Default)]
pub struct Unmade {
    /// What could yet be made from inside.
    pub exposed: Vec<Unprotected>,
    /// What cannot be made from inside either, relative to the workspace: its directory is read-only or
    /// somebody else's, or is not there.
    pub by_nobody: Vec<String>,
}

/// A workspace, and as whom its files are made.
#[derive(Debug)]
struct Workspace {
    path: PathBuf,
    directory: OwnedFd,
    owner: Owner,
}

impl Placeholders {
    /// Takes a share in a workspace's placeholders. From now on, those of others stay.
    ///
    /// To be called before the control files are looked for: what is found then cannot vanish by
    /// somebody else's end.
    pub fn hold(state: &StateDirectory, workspace: &Path) -> Result<Self> {
        let workspace = Workspace::open(workspace)?;
        let (device, inode) = workspace.numbers()?;
        let record = state.join_workspace(device, inode)?;
        Ok(Self { workspace, record: Some(record) })
    }

    /// The open workspace.
    pub fn directory(&self) -> BorrowedFd<'_> {
        self.workspace.directory.as_fd()
    }

    /// Makes what is absent, parents first as given. A name that appeared in the meantime is left as it is.
    pub fn make(&self, absent: &[AbsentName]) -> Result<Unmade> {
        let mut unmade = Unmade::default();
        let Some(record) = self.record.as_ref().filter(|_| !absent.is_empty()) else {
            return Ok(unmade);
        };
        // ORDER: listed before made.
        record.append(&ledger::intents(&self.workspace.path, absent))?;
        let mut outcomes = Vec::with_capacity(absent.len());
        self.workspace.as_owner(|workspace| {
            let mut maker = Maker { parents: Parents::new(workspace), first: None };
            for name in absent {
                let path = name.path.clone();
                let made = match maker.make(name) {
                    Ok(Made::New(kind, identity)) => Some((kind, identity)),
                    Ok(Made::Present) => None,
                    Ok(Made::ByNobody) => {
                        unmade.by_nobody.push(path.clone());
                        None
                    }
                    Err(e) => {
                        unmade.exposed.push(Unprotected { path: path.clone(), why: why_not(e) });
                        None
                    }
                };
                outcomes.push(Outcome { path, made });
            }
        });
        record.append(&ledger::outcomes(&outcomes))?;
        Ok(unmade)
    }

    /// Gives up the share.
    pub fn remove(mut self) -> Result<()> {
        self.leave()
    }

    fn leave(&mut self) -> Result<()> {
        let Some(record) = self.record.take() else { return Ok(()) };
        match record.owners() {
            Owners::Some => Ok(()),
            // With the state directory. Nobody else knows of them.
            Owners::Gone => {
                let ledger = Ledger::parse(&record.content()?)?;
                remove_listed(&self.workspace, &ledger).map(drop)
            }
            Owners::None => {
                let ledger = Ledger::parse(&record.content()?)?;
                remove_listed(&self.workspace, &ledger)?;
                record.settle()
            }
        }
    }
}

/// Why a name has nothing in its place, with the remedy where the caller has one.
fn why_not(errno: Errno) -> String {
    let remedy = match errno {
        Errno::ACCESS => ", open the directory with `chmod u+wx` or use --profile read-only",
        _ => "",
    };
    format!("nothing can be put in its place: {errno}{remedy}")
}

impl Drop for Placeholders {
    fn drop(&mut self) {
        // Nobody is there to tell; what is left stays listed for the next sweep.
        let _ = self.leave();
    }
}

impl Workspace {
    fn open(path: &Path) -> Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::openat(CWD, path, flags, Mode::empty())
            .map_err(|e| io("open the workspace", path, e))?;
        let owner = Owner::of(&directory).map_err(|e| io("look at the workspace", path, e))?;
        // A relative path would mean something else to the sweep of another process.
        let path =
            if path.is_absolute() { path.to_path_buf() } else { real_path(&directory, path)? };
        Ok(Self { path, directory, owner })
    }

    /// Its device and inode.
    fn numbers(&self) -> Result<(u64, u64)> {
        let stat = rustix::fs::fstat(&self.directory)
            .map_err(|e| io("look at the workspace", &self.path, e))?;
        Ok((stat.st_dev, stat.st_ino))
    }

    /// Does something as the owner of the workspace: what is made belongs to them, and nothing
    /// happens that they could not do themselves, whatever they exchange meanwhile.
    fn as_owner<T>(&self, act: impl FnOnce(BorrowedFd<'_>) -> T) -> T {
        let _acting = self.owner.act();
        act(self.directory.as_fd())
    }
}

fn real_path(directory: &OwnedFd, path: &Path) -> Result<PathBuf> {
    let link = format!("/proc/self/fd/{}", directory.as_raw_fd());
    let real =
        rustix::fs::readlink(link, Vec::new()).map_err(|e| io("find the path of", path, e))?;
    Ok(OsString::from_vec(real.into_bytes()).into())
}

/// Opens parents, and keeps the last: names come sorted.
struct Parents<'a> {
    workspace: BorrowedFd<'a>,
    last: Option<(String, OwnedFd)>,
}

impl<'a> Parents<'a> {
    fn new(workspace: BorrowedFd<'a>) -> Self {
        Self { workspace, last: None }
    }

    /// The directory that a path's last name is in, and that name.
    fn of<'b>(&mut self, path: &'b str) -> Result<(BorrowedFd<'_>, &'b str), Errno> {
        let Some((parent, name)) = path.rsplit_once('/') else {
            return Ok((self.workspace, path));
        };
        if self.last.as_ref().is_none_or(|(known, _)| known != parent) {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let rules = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
            let fd = rustix::fs::openat2(self.workspace, parent, flags, Mode::empty(), rules)?;
            self.last = Some((parent.to_owned(), fd));
        }
        let directory = self.last.as_ref().ok_or(Errno::NOENT)?;
        Ok((directory.1.as_fd(), name))
    }
}

/// What stands at a name that was absent.
enum Made {
    /// A placeholder.
    New(Kind, Identity),
    /// What somebody else made.
    Present,
    /// Nothing, and no one from inside can make it.
    ByNobody,
}

/// Makes placeholders.
struct Maker<'a> {
    parents: Parents<'a>,
    /// What further names become links to, by a path that always leads to it.
    first: Option<Linked>,
}

/// A placeholder that can have further names.
struct Linked {
    kind: Kind,
    identity: Identity,
    /// The path through [`Linked::_node`].
    path: String,
    _node: OwnedFd,
}

impl Maker<'_> {
    /// Makes one.
    fn make(&mut self, name: &AbsentName) -> Result<Made, Errno> {
        let (parent, last) = match self.parents.of(&name.path) {
            Ok(found) => found,
            // Without its parent it cannot be made from inside either: the parent is pinned.
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(Made::ByNobody),
            Err(e) => return Err(e),
        };
        let kind = Kind::of(name.nature);
        let first = self.first.as_ref().filter(|first| first.kind == kind);
        let made = match first.map(|first| (first.link(parent, last), first.identity)) {
            Some((Ok(()), identity)) => return Ok(Made::New(kind, identity)),
            // A name that is there is somebody's; else a file system without links, or too many.
            Some((Err(Errno::EXIST), _)) => Err(Errno::EXIST),
            Some((Err(_), _)) | None => create(parent, last, name.nature),
        };
        let kind = match made {
            Ok(kind) => kind,
            Err(Errno::EXIST) => return Ok(Made::Present),
            Err(Errno::ROFS) => return Ok(Made::ByNobody),
            Err(Errno::ACCESS | Errno::PERM) if is_foreign(parent) => return Ok(Made::ByNobody),
            Err(e) => return Err(e),
        };
        let identity = Identity::of(parent, last)?.ok_or(Errno::NOENT)?;
        if kind.can_be_linked() && self.first.as_ref().is_none_or(|first| first.kind != kind) {
            self.first = Linked::of(parent, last, kind)?;
        }
        Ok(Made::New(kind, identity))
    }
}

impl Linked {
    /// `None` where it was exchanged since it was made.
    fn of(parent: BorrowedFd<'_>, name: &str, kind: Kind) -> Result<Option<Self>, Errno> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let node = rustix::fs::openat(parent, name, flags, Mode::empty())?;
        let identity = Identity::of_open(node.as_fd(), kind)?;
        Ok(identity.map(|identity| Self {
            kind,
            identity,
            path: format!("/proc/self/fd/{}", node.as_raw_fd()),
            _node: node,
        }))
    }

    /// Gives it another name. No other file can have got in its place, since it is held open.
    fn link(&self, parent: BorrowedFd<'_>, name: &str) -> Result<(), Errno> {
        let flags = AtFlags::SYMLINK_FOLLOW;
        rustix::fs::linkat(CWD, self.path.as_str(), parent, name, flags)
    }
}

/// Whoever does not own a directory and cannot write it now cannot change that from inside.
fn is_foreign(directory: BorrowedFd<'_>) -> bool {
    let me = Owner::acting();
    rustix::fs::fstat(directory).is_ok_and(|stat| stat.st_uid != me)
}

fn create(parent: BorrowedFd<'_>, name: &str, nature: Nature) -> Result<Kind, Errno> {
    let kind = Kind::of(nature);
    match kind {
        Kind::Directory if nature == Nature::MountPoint => {
            let made = create_directory(parent, name)?;
            // Others may put something beside what is mounted, and then it stays.
            open_to_all(parent, name)?;
            Ok(made)
        }
        Kind::Directory => create_directory(parent, name),
        Kind::Socket => {
            let mode = Mode::RUSR | Mode::WUSR;
            match rustix::fs::mknodat(parent, name, FileType::Socket, mode, 0) {
                // A file system without sockets: rather something that is seen than no protection.
                Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => match nature {
                    Nature::Directory => create_directory(parent, name),
                    Nature::File
                    | Nature::GitDirectory
                    | Nature::GitFile
                    | Nature::CommonDir
                    | Nature::MountPoint => create_file(parent, name, Kind::Empty),
                },
                other => other.map(|()| kind),
            }
        }
        Kind::Empty | Kind::CommonDir => create_file(parent, name, kind),
    }
}

fn create_directory(parent: BorrowedFd<'_>, name: &str) -> Result<Kind, Errno> {
    rustix::fs::mkdirat(parent, name, Mode::from_raw_mode(0o755)).map(|()| Kind::Directory)
}

/// Whatever the mask of this process is.
fn open_to_all(parent: BorrowedFd<'_>, name: &str) -> Result<(), Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = rustix::fs::openat(parent, name, flags, Mode::empty())?;
    rustix::fs::fchmod(directory, Mode::from_raw_mode(0o755))
}

fn create_file(parent: BorrowedFd<'_>, name: &str, kind: Kind) -> Result<Kind, Errno> {
    if kind.content().is_empty() {
        return open_new(parent, name).map(|_| kind);
    }
    // HOSTILE: not written where it stands. A git that works there meanwhile fails over a file of this
    // name that is empty.
    match nameless(parent, kind) {
        Ok(file) => {
            let path = format!("/proc/self/fd/{}", file.as_raw_fd());
            rustix::fs::linkat(CWD, path.as_str(), parent, name, AtFlags::SYMLINK_FOLLOW)?;
        }
        // A file system that has no files without names.
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT | Errno::INVAL) => {
            let file = open_new(parent, name)?;
            retry(|| rustix::io::write(&file, kind.content()))?;
        }
        Err(e) => return Err(e),
    }
    Ok(kind)
}

fn open_new(parent: BorrowedFd<'_>, name: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(parent, name, flags, Mode::from_raw_mode(0o644))
}

/// A whole file of this kind that has no name yet.
fn nameless(parent: BorrowedFd<'_>, kind: Kind) -> Result<OwnedFd, Errno> {
    let flags = OFlags::WRONLY | OFlags::TMPFILE | OFlags::CLOEXEC;
    let file = rustix::fs::openat(parent, ".", flags, Mode::from_raw_mode(0o644))?;
    retry(|| rustix::io::write(&file, kind.content()))?;
    Ok(file)
}

/// Whether what stands at a protected name is what some run put there, or means as little. So does
/// what was `seen` there and is gone: the last of those others has just left.
pub(crate) fn is_like_one(
    workspace: BorrowedFd<'_>,
    path: &str,
    nature: Nature,
    seen: FileType,
) -> bool {
    let kinds: &[Kind] = match nature {
        Nature::Directory | Nature::GitDirectory => &[Kind::Socket, Kind::Directory],
        Nature::File | Nature::GitFile => &[Kind::Socket, Kind::Empty],
        Nature::CommonDir => &[Kind::CommonDir],
        Nature::MountPoint => &[Kind::Directory],
    };
    let is_like = |kind: &Kind| match kind {
        // Told by its type alone, so that it is looked at once.
        Kind::Socket => Ok(true),
        Kind::Directory => is_empty(workspace, path),
        Kind::Empty | Kind::CommonDir => kind.is_still(workspace, path),
    };
    let mut of_this_type = kinds.iter().filter(|kind| kind.file_type() == seen);
    of_this_type.any(|kind| matches!(is_like(kind), Ok(true) | Err(Errno::NOENT)))
}

fn is_empty(parent: BorrowedFd<'_>, name: &str) -> Result<bool, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = rustix::fs::openat(parent, name, flags, Mode::empty())?;
    let mut buffer = [MaybeUninit::uninit(); 512];
    let mut entries = RawDir::new(directory, &mut buffer);
    while let Some(entry) = entries.next() {
        if !matches!(entry?.file_name().to_bytes(), b"." | b"..") {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Removes what a ledger of a dead owner lists. Says how much was there; `None` where its workspace is not, or
/// something else is in its place: it may have been moved, or come back. `is_recorded` tells by device and
/// inode whether the ledger is about a directory.
pub(crate) fn remove_leftovers(
    content: &[u8],
    is_recorded: impl FnOnce(u64, u64) -> bool,
) -> Result<Option<usize>> {
    let ledger = Ledger::parse(content)?;
    let Some(path) = ledger.workspace.as_ref().filter(|_| !ledger.entries.is_empty()) else {
        return Ok(Some(0));
    };
    match Workspace::open(path) {
        Ok(workspace) => {
            let (device, inode) = workspace.numbers()?;
            match is_recorded(device, inode) {
                true => remove_listed(&workspace, &ledger).map(Some),
                false => Ok(None),
            }
        }
        // Also where a directory above may not be entered.
        Err(_) if !path.exists() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether the directory that a ledger is about stands where it stood.
pub(crate) fn is_found(content: &[u8], is_recorded: impl FnOnce(u64, u64) -> bool) -> bool {
    let workspace = Ledger::parse(content).ok().and_then(|ledger| ledger.workspace);
    let numbers = workspace.and_then(|path| Workspace::open(&path).ok()?.numbers().ok());
    numbers.is_some_and(|(device, inode)| is_recorded(device, inode))
}

/// Removes what is still ours, children first. What is not ours any more stays and is forgotten.
fn remove_listed(workspace: &Workspace, ledger: &Ledger) -> Result<usize> {
    workspace.as_owner(|directory| {
        let mut parents = Parents::new(directory);
        let (mut count, mut failed) = (0, None);
        for (path, entry) in ledger.entries.iter().rev() {
            match remove_one(&mut parents, path, entry) {
                Ok(true) => count += 1,
                // Somebody put something into the directory: it is theirs now.
                Ok(false) | Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOENT | Errno::NOTDIR) => {}
                // The others go all the same.
                Err(e) => {
                    let place = workspace.path.join(path);
                    failed.get_or_insert_with(|| io("remove the placeholder", &place, e));
                }
            }
        }
        failed.map_or(Ok(count), Err)
    })
}

fn remove_one(parents: &mut Parents<'_>, path: &str, entry: &Entry) -> Result<bool, Errno> {
    let (parent, name) = parents.of(path)?;
    let Some(now) = Identity::of(parent, name)? else { return Ok(false) };
    let kinds: &[Kind] = match (entry.identity == Some(now), entry.open, entry.kind) {
        (true, _, _) => &[entry.kind],
        (false, 0, _) => &[],
        // Its maker died in between, so it is known by its kind and content alone. Where there are
        // no sockets, an empty file or directory was made instead.
        (false, _, Kind::Socket) => &[Kind::Socket, Kind::Empty, Kind::Directory],
        (false, _, Kind::Directory | Kind::Empty | Kind::CommonDir) => &[entry.kind],
    };
    // A socket or a directory that is the same one is still what it was.
    let is_known = |kind: &Kind| {
        matches!(kind, Kind::Socket | Kind::Directory)
            && entry.identity == Some(now)
            && now.is_unique()
    };
    let is_still = |kind: &&Kind| is_known(kind) || kind.is_still(parent, name) == Ok(true);
    let Some(kind) = kinds.iter().find(is_still) else {
        return Ok(false);
    };
    rustix::fs::unlinkat(parent, name, kind.removal()).map(|()| true)
}

#[cfg(test)]
#[path = "placeholders_tests.rs"]
mod tests;

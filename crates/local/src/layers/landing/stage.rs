//! What is to land, made ready in a stage.
//!
//! HOSTILE: in a stage that others can write, whoever opened a file by its name keeps a way to it, wherever
//! it goes. So a control file has no name there: it gets its first one in its place.

use super::super::changes::Item;
use super::super::content::{copy, failed, hash, write};
use super::super::layer::Layer;
use super::super::look::{Id, Kind, Seen, look};
use super::journal::{Op, Sum};
use super::place::Stage;
use super::plan::brings_directory;
use super::share::Share;
use super::steps::sum_of;
use crate::kernel_path::through;
use cofferdam_core::{ApplyOrder, ByteString, ChangeKind, Error, ErrorKind, GuestPath, Result};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::rc::Rc;

/// The permissions of a directory while its entries come.
const OPEN_MODE: u32 = 0o700;
/// How many files without a name are held at once. A process has 1024 descriptors, if nobody gave it more.
const MAX_NAMELESS: usize = 256;

/// The steps of a landing, and what is known of what they bring.
#[derive(Default)]
pub(super) struct Ready {
    pub(super) ops: Vec<Op>,
    /// By the number of the step; nothing where nobody else can reach the stage.
    pub(super) made: BTreeMap<usize, Made>,
}

/// What was made ready.
pub(super) struct Made {
    pub(super) seen: Seen,
    /// What it has to hold.
    pub(super) sum: Option<Sum>,
    /// The file, where it has no name.
    pub(super) nameless: Option<Rc<OwnedFd>>,
}

/// A file that was made, by a descriptor.
enum File {
    Named,
    Nameless(Rc<OwnedFd>),
}

/// Makes ready what lands, and says in which steps it does.
pub(super) struct Staging<'l> {
    layer: &'l Layer,
    stage: &'l Stage,
    order: &'l ApplyOrder,
    ready: Ready,
    /// The first copy of each file that has several names.
    linked: BTreeMap<Id, usize>,
    nameless: BTreeMap<Id, Rc<OwnedFd>>,
    held_open: usize,
    items: &'l [Item],
    share: Share<'l>,
}

impl<'l> Staging<'l> {
    pub(super) fn new(
        layer: &'l Layer,
        stage: &'l Stage,
        order: &'l ApplyOrder,
        items: &'l [Item],
    ) -> Self {
        let (linked, nameless) = (BTreeMap::new(), BTreeMap::new());
        let share = Share::of(items, &order.progress);
        Self {
            layer,
            stage,
            order,
            ready: Ready::default(),
            linked,
            nameless,
            held_open: 0,
            items,
            share,
        }
    }

    /// The steps: first what goes, the innermost first; then what comes, the outermost first; then
    /// permissions of directories, for which entries could not come any more.
    pub(super) fn all(mut self) -> Result<Ready> {
        let items = self.items;
        for item in items.iter().rev().filter(|item| item.change.kind == ChangeKind::Removed) {
            if let Some(lower) = &item.lower {
                let held = self.held(item)?;
                let path = bytes(&item.change.path);
                self.ready.ops.push(Op::Take { path, was: lower.id, held });
            }
        }
        for item in items {
            if item.change.kind != ChangeKind::Removed {
                self.put(item)?;
            }
            self.share.pass(item);
        }
        let mut modes = Vec::new();
        for item in items.iter().rev() {
            modes.extend(self.mode(item));
        }
        self.ready.ops.extend(modes);
        Ok(self.ready)
    }

    fn put(&mut self, item: &Item) -> Result<()> {
        let Some(upper) = &item.upper else { return Ok(()) };
        let path = &item.change.path;
        let name = self.ready.ops.len().to_string();
        let was = item.lower.as_ref().map(|lower| lower.id);
        let at = |errno| failed("make ready", path, errno);
        let file = match upper.kind {
            Kind::Directory if !brings_directory(&item.change) => return Ok(()),
            Kind::Directory => {
                let stage = &self.stage.directory;
                rustix::fs::mkdirat(stage, name.as_str(), Mode::RWXU).map_err(at)?;
                File::Named
            }
            Kind::Link => {
                let target = upper.target.as_slice();
                let stage = &self.stage.directory;
                rustix::fs::symlinkat(target, stage, name.as_str()).map_err(at)?;
                File::Named
            }
            Kind::File => self.file(item, upper, &name)?,
            Kind::Fifo | Kind::Socket | Kind::Device | Kind::Mounted => {
                let what = format!("{path:?} is neither a file nor a directory nor a link");
                let error = Error::new(ErrorKind::NotAFile, what);
                return Err(error.hint("Leave it out: it cannot land."));
            }
        };
        let made = self.made(item, upper, (&name, &file))?;
        let (path, new, held) = (bytes(path), made.seen.id, self.held(item)?);
        let op = match file {
            File::Named => Op::Put { path, new, was, held },
            File::Nameless(_) => Op::Name { path, new, was, held },
        };
        if self.stage.is_open_to_others() {
            self.ready.made.insert(self.ready.ops.len(), made);
        }
        self.ready.ops.push(op);
        Ok(())
    }

    /// Gives what was made to the workspace's owner, and looks at it.
    fn made(&self, item: &Item, upper: &Seen, (name, file): (&str, &File)) -> Result<Made> {
        let path = &item.change.path;
        let at = |errno| failed("make ready", path, errno);
        let named;
        let (made, nameless) = match file {
            File::Nameless(file) => (file.as_ref(), Some(Rc::clone(file))),
            File::Named => {
                let found = look(&self.stage.directory, name.as_bytes()).map_err(at)?;
                let Some((_, found)) = found else { return Err(gone(path)) };
                named = found;
                (&named, None)
            }
        };
        self.give_away(made).map_err(at)?;
        let seen = Seen::of(made).map_err(at)?;
        if seen.kind != upper.kind {
            return Err(gone(path));
        }
        let sum = self.sum(item, upper)?;
        // HOSTILE: whoever has the layer's file mapped may have written to it since, and it tells nobody.
        if let Some(sum) = &sum
            && hash(made).map_err(at)? != *sum
        {
            return Err(changed(path));
        }
        Ok(Made { seen, sum, nameless })
    }

    /// What a file has to hold that somebody looked at, or that others must not change.
    fn sum(&self, item: &Item, upper: &Seen) -> Result<Option<Sum>> {
        let path = &item.change.path;
        if upper.kind != Kind::File {
            return Ok(None);
        }
        if let Some(content) = self.order.contents.get(path) {
            let is_open = self.stage.is_open_to_others();
            return Ok(is_open.then(|| Sha256::digest(content).into()));
        }
        if let Some(sum) = self.order.sums.get(path) {
            return Ok(Some(*sum));
        }
        if !item.is_freed || !self.stage.is_open_to_others() {
            return Ok(None);
        }
        self.read(&self.layer.upper, path)
    }

    /// What a control file of the workspace holds, where it goes to a stage that others can write.
    fn held(&self, item: &Item) -> Result<Option<Sum>> {
        let kind = item.lower.as_ref().map(|lower| lower.kind);
        let is_wanted = item.is_freed && self.stage.is_open_to_others();
        if !is_wanted || !matches!(kind, Some(Kind::File | Kind::Link)) {
            return Ok(None);
        }
        self.read(&self.layer.workspace, &item.change.path)
    }

    fn read(&self, side: &OwnedFd, path: &GuestPath) -> Result<Option<Sum>> {
        let at = |errno| failed("read", path, errno);
        match look(side, path.as_bytes()).map_err(at)? {
            Some((seen, file)) => sum_of(&seen, &file).map_err(at),
            None => Err(changed(path)),
        }
    }

    fn file(&mut self, item: &Item, upper: &Seen, name: &str) -> Result<File> {
        let path = &item.change.path;
        let at = |errno| failed("make ready", path, errno);
        let content = self.order.contents.get(path);
        let is_one_of_several = content.is_none() && upper.links > 1;
        let wants_no_name = item.is_freed && self.stage.is_open_to_others();
        if is_one_of_several && wants_no_name {
            if let Some(first) = self.nameless.get(&upper.id) {
                return Ok(File::Nameless(Rc::clone(first)));
            }
        } else if is_one_of_several {
            if let Some(first) = self.linked.get(&upper.id) {
                let (first, stage) = (first.to_string(), &self.stage.directory);
                let flags = AtFlags::empty();
                rustix::fs::linkat(stage, first.as_str(), stage, name, flags).map_err(at)?;
                return Ok(File::Named);
            }
            self.linked.insert(upper.id, self.ready.ops.len());
        }
        let nameless = if wants_no_name { self.nameless(path)? } else { None };
        let Some(made) = nameless else {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
            let mode = Mode::RUSR | Mode::WUSR;
            let stage = &self.stage.directory;
            let made = rustix::fs::openat(stage, name, flags | OFlags::CLOEXEC, mode);
            self.fill(item, upper, &made.map_err(at)?)?;
            return Ok(File::Named);
        };
        self.fill(item, upper, &made)?;
        let made = Rc::new(made);
        if is_one_of_several {
            self.nameless.insert(upper.id, Rc::clone(&made));
        }
        Ok(File::Nameless(made))
    }

    /// Makes a file that has no name; `None` where the file system makes none.
    fn nameless(&mut self, path: &GuestPath) -> Result<Option<OwnedFd>> {
        #[cfg(test)]
        if !super::seam::makes_nameless() {
            return Ok(None);
        }
        if self.held_open >= MAX_NAMELESS {
            let what = format!("more than {MAX_NAMELESS} control files land at once");
            return Err(Error::new(ErrorKind::TooLarge, what).hint("Name fewer of them at a time."));
        }
        let flags = OFlags::WRONLY | OFlags::TMPFILE | OFlags::CLOEXEC;
        let made = rustix::fs::openat(&self.stage.directory, ".", flags, Mode::RUSR | Mode::WUSR);
        match made {
            Ok(made) => {
                self.held_open += 1;
                Ok(Some(made))
            }
            Err(Errno::NOTSUP | Errno::ISDIR | Errno::INVAL) => Ok(None),
            Err(errno) => Err(failed("make ready", path, errno)),
        }
    }

    fn fill(&self, item: &Item, upper: &Seen, made: &OwnedFd) -> Result<()> {
        let path = &item.change.path;
        let at = |errno| failed("make ready", path, errno);
        let mode = match (self.order.contents.get(path), &item.lower) {
            (Some(content), lower) => {
                write(made, content).map_err(at)?;
                lower.as_ref().map_or(upper.mode, |lower| lower.mode)
            }
            (None, _) => {
                self.copy(path, upper, made)?;
                upper.mode
            }
        };
        // ORDER: the owner before the permissions, which a change of owner takes from.
        self.give_away(made).map_err(at)?;
        rustix::fs::fchmod(made, Mode::from_raw_mode(mode)).map_err(at)
    }

    fn copy(&self, path: &GuestPath, upper: &Seen, to: &OwnedFd) -> Result<()> {
        let found = look(&self.layer.upper, path.as_bytes())
            .map_err(|errno| failed("look at", path, errno))?;
        match found {
            Some((seen, file)) if seen == *upper => {
                copy(path, (&file, upper), to, |bytes| self.share.within(bytes))
            }
            Some(_) | None => Err(changed(path)),
        }
    }

    /// Gives what was made to the workspace's owner: this very file, whatever has its name by now.
    fn give_away(&self, made: &OwnedFd) -> Result<(), Errno> {
        let owner = self.layer.base.owner;
        let found = rustix::fs::fstat(made)?;
        if (found.st_uid, found.st_gid) == (owner.uid, owner.gid) {
            return Ok(());
        }
        // An ordinary user's files are theirs by birth; a group that is given on by a directory stays.
        if found.st_uid == owner.uid && !rustix::process::geteuid().is_root() {
            return Ok(());
        }
        let (uid, gid) = (Uid::from_raw(owner.uid), Gid::from_raw(owner.gid));
        rustix::fs::chownat(made, "", Some(uid), Some(gid), AtFlags::EMPTY_PATH)
    }

    fn mode(&self, item: &Item) -> Option<Op> {
        let upper = item.upper.as_ref().filter(|upper| upper.kind == Kind::Directory)?;
        let path = bytes(&item.change.path);
        if !brings_directory(&item.change) {
            let lower = item.lower.as_ref()?;
            return Some(Op::Mode { path, of: lower.id, from: lower.mode, to: upper.mode });
        }
        let new = self.ready.ops.iter().find_map(|op| match op {
            Op::Put { path: put, new, .. } if *put == path => Some(*new),
            Op::Put { .. } | Op::Take { .. } | Op::Name { .. } | Op::Mode { .. } => None,
        })?;
        let is_another = upper.mode != OPEN_MODE;
        is_another.then_some(Op::Mode { path, of: new, from: OPEN_MODE, to: upper.mode })
    }
}

/// Sets the permissions of a directory that a descriptor stands for. That it gives its group on stays:
/// this is the workspace's own way.
pub(super) fn set_mode(directory: impl AsFd, mode: u32) -> Result<(), Errno> {
    let kept = rustix::fs::fstat(&directory)?.st_mode & Mode::SGID.as_raw_mode();
    rustix::fs::chmod(through(directory), Mode::from_raw_mode(mode | kept))
}

fn gone(path: &GuestPath) -> Error {
    let what = format!("what was made ready for {path:?} is not there any more");
    Error::new(ErrorKind::Conflict, what).hint("Land it again.")
}

fn changed(path: &GuestPath) -> Error {
    Error::new(ErrorKind::Conflict, format!("{path:?} changed in the session"))
        .hint("Pause the session, and try again.")
}

fn bytes(path: &GuestPath) -> ByteString {
    ByteString::from(path.as_bytes().to_vec())
}

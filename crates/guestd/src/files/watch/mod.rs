//! What happens to names, told while it happens.
//!
//! The kernel tells of directories; each is opened by one name beneath the one above, as everywhere
//! here, and watched by that descriptor. No file is ever opened. A directory is watched before it is
//! read, so nothing falls between. What the kernel tells is played back, in its order, on a [`Tree`] of
//! names; where that can not be right any more, or too much waits to be told, all is looked at anew and
//! the host hears that something was lost.

mod notices;
mod out;
mod scan;
mod scope;
mod tree;

use super::failure::{Trouble, failed, refused};
use super::talk::{Gone, Talk};
use super::walk::Root;
use cofferdam_wire::ByteString;
use cofferdam_wire::files::{
    Answer, Failure, FileEvent, MAX_PENDING_EVENTS, MAX_WATCHED_DIRECTORIES,
    MAX_WATCHED_PATH_BYTES, MAX_WATCHED_PATHS, Watch, Why,
};
use notices::{Notice, Notices};
use out::Outbox;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::inotify::ReadFlags;
use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;
use scope::{Asked, Scope};
use std::collections::BTreeSet;
use tree::{Number, Tree};

/// Tells what happens until the host hangs up.
pub(super) fn watch(root: &Root, order: &Watch, talk: &mut Talk) -> Result<Answer, Trouble> {
    let mut watcher = Watcher::new(root, order, talk)?;
    watcher.look_at_everything()?;
    watcher.phase = Phase::Runs;
    watcher.refusals_left = usize::MAX;
    watcher.out.add_first(FileEvent::Ready { directories: watcher.tree.len() as u64 });
    loop {
        watcher.turn()?;
    }
}

/// A watch under way.
struct Watcher<'a> {
    root: &'a Root,
    notices: Notices,
    tree: Tree,
    /// Directories that came, by the one that they are in, and were not there by the name that they have
    /// here: the name of a directory above has changed meanwhile, or they are gone, as is told next.
    missed: BTreeSet<(Number, Vec<u8>)>,
    /// The number of the root.
    top: Number,
    scope: Scope,
    out: Outbox<'a>,
    max_directories: usize,
    /// Whether it was told that there are too many directories.
    is_full: bool,
    /// How many directories that cannot be watched are told still; `usize::MAX` for all.
    refusals_left: usize,
    phase: Phase,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nothing was promised yet.
    Begins,
    /// Whatever happens is told.
    Runs,
}

/// A name in a watched directory.
struct Name {
    above: Number,
    name: Vec<u8>,
    path: Vec<u8>,
}

impl<'a> Watcher<'a> {
    fn new(root: &'a Root, order: &Watch, talk: &'a mut Talk) -> Result<Self, Failure> {
        if order.depth == 0 || order.max_directories == 0 || order.max_pending == 0 {
            let what = "a watch has at least one level, directory and event";
            return Err(refused(Why::BadRequest, what));
        }
        let size = |most: u32, limit: u32| usize::try_from(most.min(limit)).unwrap_or(1);
        let scope = Scope::new(asked(root, order)?, order.depth);
        let notices = Notices::new().map_err(|e| failed(e, "the kernel has no watch left"))?;
        Ok(Self {
            root,
            notices,
            tree: Tree::default(),
            missed: BTreeSet::new(),
            top: 0,
            scope,
            out: Outbox::new(talk, size(order.max_pending, MAX_PENDING_EVENTS)),
            max_directories: size(order.max_directories, MAX_WATCHED_DIRECTORIES),
            is_full: false,
            refusals_left: usize::MAX,
            phase: Phase::Begins,
        })
    }

    /// Waits until there is something to do, and does it.
    fn turn(&mut self) -> Result<(), Trouble> {
        if self.out.is_lossy() && self.out.is_empty() {
            self.look_again()?;
        }
        self.wait()?;
        while !self.out.is_lossy()
            && let Some(notice) = self.notices.next()
        {
            self.take(notice)?;
        }
        Ok(())
    }

    /// Waits for notices, for room to tell them, and for the host to go away.
    fn wait(&mut self) -> Result<(), Gone> {
        let talks = if self.out.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
        // What would be lost waits in the kernel, which counts it.
        let hears = if self.out.is_lossy() { PollFlags::empty() } else { PollFlags::IN };
        let mut fds = [
            PollFd::from_borrowed_fd(self.out.socket(), PollFlags::IN | talks),
            PollFd::from_borrowed_fd(self.notices.queue(), hears),
        ];
        match poll(&mut fds, None) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(()),
            Err(_) => return Err(Gone),
        }
        let [host, queue] = fds.map(|fd| fd.revents());
        if host.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
            // A host has nothing to say but that it goes.
            return Err(Gone);
        }
        if host.contains(PollFlags::OUT) {
            self.out.send()?;
        }
        if queue.contains(PollFlags::IN) {
            self.notices.read();
        }
        Ok(())
    }

    /// Begins anew after something was lost. What happens from here on is told behind the word of it.
    fn look_again(&mut self) -> Result<(), Trouble> {
        self.notices.discard();
        let before: Vec<Number> = self.tree.numbers().collect();
        self.tree = Tree::default();
        self.missed.clear();
        self.is_full = false;
        self.scope.forget();
        self.out.recover();
        self.look_at_everything()?;
        self.refusals_left = usize::MAX;
        for number in before {
            if !self.tree.knows(number) {
                self.notices.remove(number);
            }
        }
        self.out.add_first(FileEvent::Overflow);
        Ok(())
    }

    fn take(&mut self, notice: Notice) -> Result<(), Trouble> {
        let what = notice.what;
        if what.contains(ReadFlags::QUEUE_OVERFLOW) {
            self.out.lose();
            return Ok(());
        }
        if what.intersects(ReadFlags::IGNORED | ReadFlags::UNMOUNT) {
            return self.has_ended(notice.number);
        }
        let is_directory = what.contains(ReadFlags::ISDIR);
        let Some(name) = self.name(&notice) else {
            if notice.number == self.top && notice.name.is_none() && self.scope.tells(b"") {
                let (path, directory) = (ByteString::default(), true);
                self.out.tell(FileEvent::Attributes { path, directory })?;
            }
            return Ok(());
        };
        if what.intersects(ReadFlags::MOVED_FROM | ReadFlags::DELETE) {
            self.missed.remove(&(name.above, name.name.clone()));
        }
        if what.contains(ReadFlags::MOVED_FROM) {
            let mate = self.notices.mate(&notice).and_then(|mate| self.name(&mate));
            return match mate {
                Some(to) => self.renamed(name, to, is_directory),
                None => self.disappeared(name, is_directory),
            };
        }
        if what.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO) {
            return self.appeared(name, is_directory);
        }
        if what.contains(ReadFlags::DELETE) {
            return self.disappeared(name, is_directory);
        }
        self.changed(name, what, is_directory)
    }

    /// The name that a notice is about; `None` where it is not about a name, or not watched any more.
    fn name(&self, notice: &Notice) -> Option<Name> {
        let name = notice.name.clone()?;
        let path = join(&self.tree.path(notice.number)?, &name);
        Some(Name { above: notice.number, name, path })
    }

    /// The kernel watches a directory no more, which is gone.
    fn has_ended(&mut self, number: Number) -> Result<(), Trouble> {
        if number == self.top {
            return Err(refused(Why::NotFound, "the workspace is gone").into());
        }
        self.take_out(number);
        Ok(())
    }

    fn appeared(&mut self, name: Name, is_directory: bool) -> Result<(), Trouble> {
        if self.scope.tells(&name.path) {
            self.tell_created(&name.path, is_directory)?;
        }
        if is_directory && self.scope.enters(&name.path) {
            self.visit(name.above, &name.path)?;
        }
        Ok(())
    }

    fn disappeared(&mut self, name: Name, is_directory: bool) -> Result<(), Trouble> {
        if is_directory && let Some(child) = self.tree.child(name.above, &name.name) {
            self.take_out(child);
        }
        if self.scope.tells(&name.path) {
            self.tell_removed(&name.path, is_directory)?;
        }
        self.tell_lost_below(&name.path, is_directory)
    }

    fn changed(&mut self, name: Name, what: ReadFlags, is_directory: bool) -> Result<(), Trouble> {
        if self.is_made_up(&name) {
            return Ok(());
        }
        let tells = self.scope.tells(&name.path);
        let path = || ByteString::from(name.path.clone());
        if tells && what.contains(ReadFlags::CLOSE_WRITE) {
            self.out.tell(FileEvent::Modified { path: path() })?;
        }
        if tells && what.contains(ReadFlags::ATTRIB) {
            self.out.tell(FileEvent::Attributes { path: path(), directory: is_directory })?;
        }
        // One that could not be read may be open now.
        if is_directory
            && self.scope.enters(&name.path)
            && self.tree.child(name.above, &name.name).is_none()
        {
            self.visit(name.above, &name.path)?;
        }
        Ok(())
    }

    /// Whether this is what the kernel calls a file that has no name (`O_TMPFILE`), of which it tells all the same.
    fn is_made_up(&self, name: &Name) -> bool {
        let Some((b'#', digits)) = name.name.split_first() else { return false };
        let above = name.path.get(..name.path.len() - name.name.len()).unwrap_or_default();
        let is_there = || {
            let directory = self.root.straight(&above.to_vec().into())?;
            let flags = AtFlags::SYMLINK_NOFOLLOW;
            rustix::fs::statat(&directory, name.name.as_slice(), flags)
                .map_err(|e| failed(e, "it cannot be looked at"))
        };
        digits.iter().all(u8::is_ascii_digit) && is_there().is_err()
    }

    fn renamed(&mut self, from: Name, to: Name, is_directory: bool) -> Result<(), Trouble> {
        match (self.scope.tells(&from.path), self.scope.tells(&to.path)) {
            (true, true) => {
                self.scope.note(&from.path, false, is_directory);
                self.scope.note(&to.path, true, is_directory);
                let (from, to) = (from.path.clone().into(), to.path.clone().into());
                self.out.tell(FileEvent::Renamed { from, to, directory: is_directory })?;
            }
            (true, false) => self.tell_removed(&from.path, is_directory)?,
            (false, true) => self.tell_created(&to.path, is_directory)?,
            (false, false) => {}
        }
        self.tell_lost_below(&from.path, is_directory)?;
        if !is_directory {
            return Ok(());
        }
        let enters = self.scope.enters(&to.path);
        match self.tree.child(from.above, &from.name) {
            Some(child) if enters => {
                if !self.tree.rename(child, to.above, &to.name) {
                    // Two have changed places, or one that was empty was replaced.
                    self.out.lose();
                } else {
                    if !self.scope.is_whole() {
                        self.visit(to.above, &to.path)?;
                    }
                    self.visit_missed(child)?;
                }
            }
            Some(child) => self.take_out(child),
            None if enters => self.visit(to.above, &to.path)?,
            None => {}
        }
        Ok(())
    }

    /// Watches a directory no more, nor what is below it.
    fn take_out(&mut self, number: Number) {
        for number in self.tree.take(number) {
            self.notices.remove(number);
        }
        self.missed.retain(|(above, _)| self.tree.knows(*above));
        self.is_full = false;
    }

    fn tell_created(&mut self, path: &[u8], directory: bool) -> Result<(), Gone> {
        self.scope.note(path, true, directory);
        self.out.tell(FileEvent::Created { path: path.to_vec().into(), directory })
    }

    fn tell_removed(&mut self, path: &[u8], directory: bool) -> Result<(), Gone> {
        self.scope.note(path, false, directory);
        self.out.tell(FileEvent::Removed { path: path.to_vec().into(), directory })
    }

    /// Tells that places are gone with a directory above them.
    fn tell_lost_below(&mut self, path: &[u8], is_directory: bool) -> Result<(), Trouble> {
        if !is_directory {
            return Ok(());
        }
        for lost in self.scope.lose_below(path) {
            let (path, directory) = (lost.path.into(), lost.is_directory);
            self.out.tell(FileEvent::Removed { path, directory })?;
        }
        Ok(())
    }
}

/// The places of an order, which are there, and are no links.
fn asked(root: &Root, order: &Watch) -> Result<Vec<Asked>, Failure> {
    let bytes: usize = order.paths.iter().map(|path| path.as_bytes().len()).sum();
    if order.paths.len() > MAX_WATCHED_PATHS || bytes > MAX_WATCHED_PATH_BYTES {
        let what = format!(
            "a watch has at most {MAX_WATCHED_PATHS} places, and {MAX_WATCHED_PATH_BYTES} bytes of paths"
        );
        return Err(refused(Why::BadRequest, what));
    }
    match order.paths.as_slice() {
        [] => Ok(vec![Asked::new(Vec::new(), true)]),
        paths => paths.iter().map(|path| one_asked(root, path)).collect(),
    }
}

fn one_asked(root: &Root, path: &ByteString) -> Result<Asked, Failure> {
    let names = root.names_of(path)?;
    let Some((last, above)) = names.split_last() else { return Ok(Asked::new(Vec::new(), true)) };
    let directory = root.straight(&above.join(&b'/').into())?;
    let stat = rustix::fs::statat(&directory, last.as_slice(), AtFlags::SYMLINK_NOFOLLOW)
        .map_err(|e| failed(e, format!("{path:?} cannot be looked at")))?;
    let kind = FileType::from_raw_mode(stat.st_mode);
    if kind == FileType::Symlink {
        let what = format!("{path:?} is a symbolic link, and a watch follows none");
        return Err(refused(Why::WrongType, what));
    }
    Ok(Asked::new(names.join(&b'/'), kind == FileType::Directory))
}

fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    match directory {
        [] => name.to_vec(),
        directory => [directory, b"/", name].concat(),
    }
}

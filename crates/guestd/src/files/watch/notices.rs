//! What the kernel tells, and whom it is asked to tell of.

use super::tree::Number;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::{Errno, Result};
use std::collections::VecDeque;
use std::mem::MaybeUninit;

/// How much is read from the kernel at once: a few hundred notices.
const BUFFER_BYTES: usize = 16 << 10;
/// How long the second half of a renaming is waited for while nothing else comes. The kernel queues
/// both in one breath, which somebody else's turn on the processor can only interrupt.
const MATE_WITHIN: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
/// How many notices are read ahead to find one.
const MAX_AHEAD: usize = 1024;
/// How often the queue is read to throw it away: more than fits in it.
const MAX_DISCARDS: usize = 1000;

/// The kernel's notices.
pub(super) struct Notices {
    queue: OwnedFd,
    buffer: Vec<MaybeUninit<u8>>,
    came: VecDeque<Notice>,
}

/// One of them.
#[derive(Debug)]
pub(super) struct Notice {
    /// The directory that it is about.
    pub(super) number: Number,
    pub(super) what: ReadFlags,
    /// What both halves of a renaming have in common.
    cookie: u32,
    /// The name in the directory; `None` for the directory itself.
    pub(super) name: Option<Vec<u8>>,
}

impl Notices {
    pub(super) fn new() -> Result<Self> {
        let queue = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let buffer = vec![MaybeUninit::uninit(); BUFFER_BYTES];
        Ok(Self { queue, buffer, came: VecDeque::new() })
    }

    pub(super) fn queue(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
    }

    /// Watches an open directory. Neither a name nor a link leads there: the kernel is told of the
    /// directory that we stand in. `home` is where we stand otherwise, for one that is stood in goes
    /// nowhere when it is removed.
    pub(super) fn add(&self, directory: &OwnedFd, home: BorrowedFd<'_>) -> Result<Number> {
        let events = WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVE
            | WatchFlags::CLOSE_WRITE
            | WatchFlags::ATTRIB
            | WatchFlags::EXCL_UNLINK
            | WatchFlags::ONLYDIR;
        rustix::process::fchdir(directory)?;
        let added = inotify::add_watch(&self.queue, ".", events);
        rustix::process::fchdir(home)?;
        added
    }

    /// Watches a directory no more. One that is gone is not watched anyway.
    pub(super) fn remove(&self, number: Number) {
        let _ = inotify::remove_watch(&self.queue, number);
    }

    /// The next notice that was read.
    pub(super) fn next(&mut self) -> Option<Notice> {
        self.came.pop_front()
    }

    /// The other half of a renaming, if it comes at all.
    pub(super) fn mate(&mut self, of: &Notice) -> Option<Notice> {
        if let Some(mate) = self.mate_among_read(of) {
            return Some(mate);
        }
        let waits = self.came.is_empty();
        let has_more =
            self.came.len() < MAX_AHEAD && (self.read() || waits && self.comes() && self.read());
        if has_more { self.mate_among_read(of) } else { None }
    }

    fn mate_among_read(&mut self, of: &Notice) -> Option<Notice> {
        let is_it =
            |other: &Notice| other.cookie == of.cookie && other.what.contains(ReadFlags::MOVED_TO);
        self.came.iter().position(is_it).and_then(|at| self.came.remove(at))
    }

    /// Throws away what has come so far.
    pub(super) fn discard(&mut self) {
        self.came.clear();
        for _ in 0..MAX_DISCARDS {
            if !self.read() {
                return;
            }
            self.came.clear();
        }
    }

    /// Whether something comes soon.
    fn comes(&self) -> bool {
        let mut fds = [PollFd::new(&self.queue, PollFlags::IN)];
        matches!(poll(&mut fds, Some(&MATE_WITHIN)), Ok(1..))
    }

    /// Takes what is there of the kernel's queue. `false` where that is nothing.
    pub(super) fn read(&mut self) -> bool {
        let mut reader = Reader::new(&self.queue, &mut self.buffer);
        let before = self.came.len();
        loop {
            match reader.next() {
                Ok(event) => self.came.push_back(Notice {
                    number: event.wd(),
                    what: event.events(),
                    cookie: event.cookie(),
                    name: event.file_name().map(|name| name.to_bytes().to_vec()),
                }),
                Err(Errno::INTR) => continue,
                Err(_) => break,
            }
            if reader.is_buffer_empty() {
                break;
            }
        }
        self.came.len() > before
    }
}

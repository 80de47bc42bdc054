//! What is to be told, and a host that may be slow to hear it.

use crate::files::talk::{Gone, Talk};
use cofferdam_wire::files::{Answer, FileEvent};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::BorrowedFd;
use std::collections::VecDeque;

/// How many bytes of names go in one message, unless one event has more. In JSON each takes six at most.
const BATCH_BYTES: usize = 8 << 10;
/// How many events go in one message. Each takes less than a hundred bytes in JSON beside its names.
const BATCH_EVENTS: usize = 100;

/// Events on their way to the host.
pub(super) struct Outbox<'a> {
    talk: &'a mut Talk,
    pending: VecDeque<FileEvent>,
    /// How many may wait.
    most: usize,
    is_lossy: bool,
}

impl<'a> Outbox<'a> {
    pub(super) fn new(talk: &'a mut Talk, most: usize) -> Self {
        Self { talk, pending: VecDeque::new(), most, is_lossy: false }
    }

    /// Tells what happened. Where too much waits already, it and all that follows is lost.
    pub(super) fn tell(&mut self, event: FileEvent) -> Result<(), Gone> {
        while !self.is_lossy && self.pending.len() >= self.most {
            match self.has_room() {
                true => self.send()?,
                false => self.is_lossy = true,
            }
        }
        if !self.is_lossy {
            self.pending.push_back(event);
        }
        Ok(())
    }

    /// Tells what comes a bounded number of times, however much waits.
    pub(super) fn add(&mut self, event: FileEvent) {
        self.pending.push_back(event);
    }

    /// Tells this before all that waits.
    pub(super) fn add_first(&mut self, event: FileEvent) {
        self.pending.push_front(event);
    }

    /// Something happened that cannot be told.
    pub(super) fn lose(&mut self) {
        self.is_lossy = true;
    }

    /// Whether something was lost since the last recovery.
    pub(super) fn is_lossy(&self) -> bool {
        self.is_lossy
    }

    /// From now on nothing is lost.
    pub(super) fn recover(&mut self) {
        self.is_lossy = false;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Sends as much as goes in one message.
    pub(super) fn send(&mut self) -> Result<(), Gone> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while let Some(event) = self.pending.front() {
            bytes += size(event);
            if !batch.is_empty() && bytes > BATCH_BYTES || batch.len() >= BATCH_EVENTS {
                break;
            }
            batch.extend(self.pending.pop_front());
        }
        self.talk.answer(&Answer::Events(batch))
    }

    /// Tells the host that the beginning takes long.
    pub(super) fn still_at_it(&mut self) -> Result<(), Gone> {
        self.talk.still_at_it()
    }

    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        self.talk.socket()
    }

    fn has_room(&self) -> bool {
        let mut fds = [PollFd::from_borrowed_fd(self.socket(), PollFlags::OUT)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        matches!(poll(&mut fds, Some(&at_once)), Ok(1..))
    }
}

fn size(event: &FileEvent) -> usize {
    let said = match event {
        FileEvent::Unwatched { failure, .. } => failure.detail.len(),
        FileEvent::Ready { .. }
        | FileEvent::Created { .. }
        | FileEvent::Modified { .. }
        | FileEvent::Attributes { .. }
        | FileEvent::Removed { .. }
        | FileEvent::Renamed { .. }
        | FileEvent::Overflow => 0,
    };
    said + event.paths().map(|path| path.as_bytes().len()).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_wire::files::MAX_MESSAGE_BYTES;
    use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, recv, socketpair};

    fn pair() -> (rustix::fd::OwnedFd, rustix::fd::OwnedFd) {
        socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::empty(), None).unwrap()
    }

    fn event(bytes: usize) -> FileEvent {
        FileEvent::Modified { path: vec![1; bytes].into() }
    }

    #[test]
    fn whatever_names_there_are_every_message_fits() {
        let (ours, theirs) = pair();
        let mut talk = Talk::new(ours);
        let mut out = Outbox::new(&mut talk, 1000);
        let long = || FileEvent::Renamed {
            from: vec![1; 4096].into(),
            to: vec![1; 4096].into(),
            directory: true,
        };
        let mut sizes = vec![long(), event(1), long(), event(4095), event(4096)];
        sizes.extend((0..300).map(|_| event(1)));
        for one in sizes {
            out.tell(one).unwrap();
        }
        let mut room = vec![0; 2 * MAX_MESSAGE_BYTES];
        while !out.is_empty() {
            out.send().unwrap();
            let (_, count) = recv(&theirs, &mut *room, RecvFlags::empty()).unwrap();
            assert!(count <= MAX_MESSAGE_BYTES, "{count}");
        }
    }

    #[test]
    fn a_host_that_does_not_listen_loses_events_and_no_memory() {
        let (ours, theirs) = pair();
        let mut talk = Talk::new(ours);
        let mut out = Outbox::new(&mut talk, 3);
        for _ in 0..100_000 {
            out.tell(event(10)).unwrap();
        }
        assert!(out.is_lossy() && out.pending.len() == 3);
        // The control: one that listens loses nothing.
        out.recover();
        std::thread::spawn(move || {
            let mut room = vec![0; 1 << 16];
            while recv(&theirs, &mut *room, RecvFlags::empty()).is_ok_and(|(_, count)| count > 0) {}
        });
        while !out.is_empty() {
            out.send().unwrap();
        }
        for _ in 0..1000 {
            while !out.is_empty() {
                out.send().unwrap();
            }
            out.tell(event(10)).unwrap();
        }
        assert!(!out.is_lossy());
    }
}

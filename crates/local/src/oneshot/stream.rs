//! Bytes between the caller's streams and the command's pipes, without ever blocking on either.

use cofferdam_core::secret::{Mask, Masker};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{FileType, Gid, Uid};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags};

/// The size of the pipes that commands write to. Three times as fast as the default for a program
/// that writes much.
const PIPE_BYTES: usize = 1 << 20;
/// What an ordinary user may have when the quota of pipe memory is nearly used up.
const SMALL_PIPE_BYTES: usize = 256 << 10;
/// How much is moved at a time.
const PIECE_BYTES: usize = 256 << 10;
/// How much a pipe or terminal that said it is writable takes without blocking.
const ATOMIC_BYTES: usize = 4096;

/// A pipe as large as the host gives, for this user and group.
pub(crate) fn large_pipe(user: (u32, u32)) -> rustix::io::Result<(OwnedFd, OwnedFd)> {
    let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    if rustix::process::geteuid().is_root() {
        // Or a command could not open its own /dev/stderr.
        let (uid, gid) = (Uid::from_raw(user.0), Gid::from_raw(user.1));
        rustix::fs::fchown(&writer, Some(uid), Some(gid))?;
    }
    if rustix::pipe::fcntl_setpipe_size(&writer, PIPE_BYTES).is_err() {
        let _ = rustix::pipe::fcntl_setpipe_size(&writer, SMALL_PIPE_BYTES);
    }
    Ok((reader, writer))
}

/// Where a command's output goes.
#[derive(Debug)]
pub(crate) enum Sink {
    /// Into memory, up to a number of bytes; the rest is counted.
    Memory {
        /// What was kept.
        bytes: Vec<u8>,
        /// The most that is kept.
        limit: u64,
        /// How much was dropped.
        omitted: u64,
    },
    /// To a descriptor of the caller.
    Caller {
        /// The caller's stream.
        fd: OwnedFd,
        /// How it takes bytes.
        way: Way,
        /// Bytes read and not yet written.
        pending: Vec<u8>,
    },
}

/// How a descriptor takes bytes without blocking us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// The kernel moves them.
    Splice,
    /// In small pieces, when it says that it is writable.
    Write,
}

/// A command's output on its way.
#[derive(Debug)]
pub(crate) struct Output {
    source: Option<OwnedFd>,
    sink: Sink,
    /// Covers what nobody may see, where there is such.
    masker: Option<Masker>,
    /// Nothing more comes, and what is pending is the last.
    has_ended: bool,
    /// How many bytes came.
    pub(crate) count: u64,
    /// Whether more came than was allowed.
    pub(crate) is_over: bool,
    /// Whether the caller's end takes nothing more.
    pub(crate) has_no_reader: bool,
    /// Why the caller's file took no more, where its disk is full.
    pub(crate) refused: Option<Errno>,
}

/// What an output needs next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// More from the command.
    Read,
    /// Room at the caller.
    Write,
    /// Nothing more comes.
    Done,
}

impl Sink {
    /// A sink over one of the caller's streams.
    pub(crate) fn caller(fd: BorrowedFd<'_>) -> rustix::io::Result<Self> {
        let fd = rustix::io::fcntl_dupfd_cloexec(fd, 3)?;
        let stat = rustix::fs::fstat(&fd)?;
        let way = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Fifo | FileType::RegularFile => Way::Splice,
            FileType::Directory
            | FileType::Symlink
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => Way::Write,
        };
        Ok(Self::Caller { fd, way, pending: Vec::new() })
    }

    fn holds_bytes(&self) -> bool {
        matches!(self, Self::Caller { pending, .. } if !pending.is_empty())
    }

    /// A sink in memory.
    pub(crate) fn memory(limit: u64) -> Self {
        Self::Memory { bytes: Vec::new(), limit, omitted: 0 }
    }
}

impl Output {
    /// Takes the reading end of a command's pipe, or the master of its terminal.
    pub(crate) fn new(
        source: OwnedFd,
        sink: Sink,
        mask: Option<&Mask>,
    ) -> rustix::io::Result<Self> {
        rustix::io::ioctl_fionbio(&source, true)?;
        let masker = mask.cloned().map(Masker::new);
        let source = Some(source);
        Ok(Self {
            source,
            sink,
            masker,
            has_ended: false,
            count: 0,
            is_over: false,
            has_no_reader: false,
            refused: None,
        })
    }

    /// What was kept and what was dropped.
    pub(crate) fn into_memory(self) -> (Vec<u8>, u64) {
        match self.sink {
            Sink::Memory { bytes, omitted, .. } => (bytes, omitted),
            Sink::Caller { .. } => (Vec::new(), 0),
        }
    }

    /// The descriptor to wait on, for what [`Output::work`] asked for.
    pub(crate) fn wait_on(&self, next: Next) -> Option<BorrowedFd<'_>> {
        match (&self.sink, next) {
            (_, Next::Done) => None,
            (Sink::Caller { fd, .. }, Next::Write) => Some(fd.as_fd()),
            (_, Next::Read | Next::Write) => self.source.as_ref().map(AsFd::as_fd),
        }
    }

    /// Closes our end: a command that still writes meets a broken pipe.
    pub(crate) fn close(&mut self) {
        self.source = None;
    }

    /// Reads on and keeps nothing: a command at a terminal would wait for a reader for ever.
    pub(crate) fn discard(&mut self) {
        self.sink = Sink::memory(0);
        self.has_no_reader = false;
    }

    /// Moves what can be moved now, but no more than up to `limit` bytes in all.
    pub(crate) fn work(&mut self, limit: u64) -> Next {
        if self.masker.is_some() {
            return self.work_masked(limit);
        }
        let Some(source) = &self.source else { return Next::Done };
        loop {
            let room = limit.saturating_sub(self.count);
            if room == 0 && !self.sink.holds_bytes() {
                return look_for_more(source, &mut self.is_over);
            }
            let step = match &mut self.sink {
                Sink::Memory { bytes, limit, omitted } => keep(source, bytes, *limit, omitted),
                Sink::Caller { fd, way: Way::Splice, .. } => splice(source, fd, room),
                Sink::Caller { fd, way: Way::Write, pending } => write(source, fd, pending, room),
            };
            match step {
                Step::Moved(count) => self.count += count,
                Step::Retry(way) => {
                    if let Sink::Caller { way: place, .. } = &mut self.sink {
                        *place = way;
                    }
                }
                Step::CallerGone(why) => return self.give_up(why),
                Step::Next(next) => return next,
            }
        }
    }

    /// The caller takes nothing more. Who closed a pipe wants no more; a full disk is told of.
    fn give_up(&mut self, why: Errno) -> Next {
        self.has_no_reader = true;
        self.refused =
            Some(why).filter(|why| [Errno::NOSPC, Errno::DQUOT, Errno::FBIG].contains(why));
        Next::Done
    }
}

impl Output {
    /// The same through a masker: no byte gets by.
    fn work_masked(&mut self, limit: u64) -> Next {
        loop {
            if let Sink::Caller { fd, pending, .. } = &mut self.sink
                && !pending.is_empty()
            {
                match write_pending(fd, pending) {
                    Step::Moved(_) | Step::Retry(_) => continue,
                    Step::CallerGone(why) => return self.give_up(why),
                    Step::Next(next) => return next,
                }
            }
            let Some(source) = self.source.as_ref().filter(|_| !self.has_ended) else {
                return Next::Done;
            };
            let room = usize::try_from(limit.saturating_sub(self.count)).unwrap_or(usize::MAX);
            let mut piece = [0; MASKED_BYTES];
            let most = room.clamp(1, MASKED_BYTES);
            match rustix::io::read(source, piece.get_mut(..most).unwrap_or_default()) {
                // Beyond what is allowed. What was held back goes with the command.
                Ok(1..) if room == 0 => {
                    self.is_over = true;
                    return Next::Done;
                }
                Ok(count @ 1..) => {
                    self.count += size(count);
                    self.mask(piece.get(..count));
                }
                Err(Errno::AGAIN) => return Next::Read,
                Err(Errno::INTR) => {}
                // EIO is how a terminal says that nobody has it open any more.
                Ok(_) | Err(_) => self.end(),
            }
        }
    }

    /// Nothing more comes: what was held back is no value.
    pub(crate) fn end(&mut self) {
        if !std::mem::replace(&mut self.has_ended, true) {
            self.mask(None);
        }
    }

    /// Covers a piece, or the end.
    fn mask(&mut self, piece: Option<&[u8]>) {
        let Some(masker) = &mut self.masker else { return };
        let mut covered = Vec::new();
        match piece {
            Some(piece) => masker.push(piece, &mut covered),
            None => masker.finish(&mut covered),
        }
        match &mut self.sink {
            Sink::Caller { pending, .. } => pending.append(&mut covered),
            Sink::Memory { bytes, limit, omitted } => {
                let most = usize::try_from(*limit).unwrap_or(usize::MAX);
                let kept = covered.len().min(most.saturating_sub(bytes.len()));
                *omitted += size(covered.len() - kept);
                covered.truncate(kept);
                bytes.append(&mut covered);
            }
        }
    }
}

/// How much is masked at a time.
const MASKED_BYTES: usize = 16 * 1024;

/// All that is allowed has come. One byte more is one too many.
fn look_for_more(source: &OwnedFd, is_over: &mut bool) -> Next {
    match rustix::io::read(source, &mut [0]) {
        Ok(count) => {
            *is_over = count > 0;
            Next::Done
        }
        Err(Errno::AGAIN | Errno::INTR) => Next::Read,
        Err(_) => Next::Done,
    }
}

enum Step {
    Moved(u64),
    Retry(Way),
    CallerGone(Errno),
    Next(Next),
}

fn size(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

fn keep(source: &OwnedFd, bytes: &mut Vec<u8>, limit: u64, omitted: &mut u64) -> Step {
    let before = bytes.len();
    bytes.reserve(PIECE_BYTES);
    match rustix::io::read(source, rustix::buffer::spare_capacity(bytes)) {
        Ok(0) => Step::Next(Next::Done),
        Ok(count) => {
            let most = usize::try_from(limit).unwrap_or(usize::MAX);
            if bytes.len() > most {
                *omitted += size(bytes.len() - most.max(before.min(most)));
                bytes.truncate(most);
            }
            Step::Moved(size(count))
        }
        Err(errno) => from_source(errno),
    }
}

fn from_source(errno: Errno) -> Step {
    match errno {
        Errno::AGAIN => Step::Next(Next::Read),
        Errno::INTR => Step::Moved(0),
        // EIO is how a terminal says that nobody has it open any more.
        _ => Step::Next(Next::Done),
    }
}

fn splice(source: &OwnedFd, sink: &OwnedFd, room: u64) -> Step {
    let most = usize::try_from(room).unwrap_or(PIECE_BYTES).min(4 * PIECE_BYTES);
    let flags = SpliceFlags::NONBLOCK | SpliceFlags::MOVE;
    match rustix::pipe::splice(source, None, sink, None, most, flags) {
        Ok(0) => Step::Next(Next::Done),
        Ok(count) => Step::Moved(size(count)),
        // Either side may be the one that waits: it is the sink exactly if the source has bytes.
        Err(Errno::AGAIN) => match rustix::io::ioctl_fionread(source) {
            Ok(waiting) if waiting > 0 => Step::Next(Next::Write),
            _ => Step::Next(Next::Read),
        },
        Err(Errno::INTR) => Step::Moved(0),
        // A file that is open for appending, or a source that is a terminal.
        Err(Errno::INVAL) => Step::Retry(Way::Write),
        Err(Errno::PIPE) => Step::CallerGone(Errno::PIPE),
        Err(_) => Step::Retry(Way::Write),
    }
}

fn write(source: &OwnedFd, sink: &OwnedFd, pending: &mut Vec<u8>, room: u64) -> Step {
    if !pending.is_empty() {
        return write_pending(sink, pending);
    }
    let most = usize::try_from(room).unwrap_or(usize::MAX).min(16 * 1024);
    let mut bytes = vec![0; most];
    match rustix::io::read(source, &mut bytes) {
        Ok(0) => Step::Next(Next::Done),
        Ok(count) => {
            bytes.truncate(count);
            *pending = bytes;
            Step::Moved(size(count))
        }
        Err(errno) => from_source(errno),
    }
}

fn write_pending(sink: &OwnedFd, pending: &mut Vec<u8>) -> Step {
    if !is_writable(sink) {
        return Step::Next(Next::Write);
    }
    let piece = pending.get(..ATOMIC_BYTES.min(pending.len())).unwrap_or_default();
    match rustix::io::write(sink, piece) {
        Ok(count) => {
            pending.drain(..count);
            Step::Moved(0)
        }
        Err(Errno::AGAIN) => Step::Next(Next::Write),
        Err(Errno::INTR) => Step::Moved(0),
        Err(errno) => Step::CallerGone(errno),
    }
}

fn is_writable(fd: &OwnedFd) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut wait = [PollFd::new(fd, PollFlags::OUT)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut wait, Some(&now)).is_ok_and(|ready| ready > 0)
}

/// The caller's standard input on its way to the command.
#[derive(Debug)]
pub(crate) struct Input {
    source: OwnedFd,
    sink: OwnedFd,
    pending: Vec<u8>,
}

impl Input {
    /// Takes one of the caller's streams, and the writing end of a command's pipe or the master of
    /// its terminal.
    pub(crate) fn new(source: BorrowedFd<'_>, sink: OwnedFd) -> rustix::io::Result<Self> {
        rustix::io::ioctl_fionbio(&sink, true)?;
        let source = rustix::io::fcntl_dupfd_cloexec(source, 3)?;
        Ok(Self { source, sink, pending: Vec::new() })
    }

    /// The descriptor to wait on.
    pub(crate) fn wait_on(&self) -> (BorrowedFd<'_>, Next) {
        if self.pending.is_empty() {
            (self.source.as_fd(), Next::Read)
        } else {
            (self.sink.as_fd(), Next::Write)
        }
    }

    /// Types the key that ends a terminal's input.
    pub(crate) fn end_of_terminal(self) {
        let _ = rustix::io::write(&self.sink, b"\x04");
    }

    /// Moves one piece; the descriptor of [`Input::wait_on`] must be ready.
    pub(crate) fn work(&mut self) -> Next {
        if self.pending.is_empty() {
            let mut bytes = vec![0; 64 * 1024];
            match rustix::io::read(&self.source, &mut bytes) {
                Ok(0) => return Next::Done,
                Ok(count) => {
                    bytes.truncate(count);
                    self.pending = bytes;
                }
                Err(Errno::AGAIN | Errno::INTR) => return Next::Read,
                Err(_) => return Next::Done,
            }
        }
        match rustix::io::write(&self.sink, &self.pending) {
            Ok(count) => {
                self.pending.drain(..count);
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => return Next::Done,
        }
        if self.pending.is_empty() { Next::Read } else { Next::Write }
    }
}

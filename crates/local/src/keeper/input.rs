//! What goes to a command's standard input: a piece whole, or nothing of it.

use super::exec::{Input, Live};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::time::{Duration, Instant};

/// How long a command may leave bytes for its standard input untouched before its client is told.
const READS_WITHIN: Duration = Duration::from_secs(30);

/// A piece of input that a client waits to be rid of.
#[derive(Debug)]
pub(super) struct Piece {
    bytes: Vec<u8>,
    taken: usize,
    until: Instant,
}

/// What came of a piece at this moment.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Given {
    /// All of it is the command's.
    Whole,
    /// It is to be tried again when the command reads, or the time of its request is over.
    Waits,
    /// The command took so much of so much, and will not take more by this request.
    Failed { taken: usize, of: usize, errno: Errno },
}

/// What a command took over of its input and has not read yet.
///
/// Of a piece that is larger than what a pipe takes whole, a command may take a part in the time of the
/// request. Its client can give a piece again of which nothing was taken, and no other: the rest waits here.
#[derive(Debug, Default)]
pub(super) struct Owed {
    bytes: Vec<u8>,
    paid: usize,
    /// Whether its input ends behind that.
    pub(super) ends: bool,
}

impl Piece {
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, taken: 0, until: Instant::now() + READS_WITHIN }
    }

    pub(super) fn until(&self) -> Instant {
        self.until
    }

    /// Gives what is taken now. What is owed goes first.
    pub(super) fn give(&mut self, to: To<'_>, owed: &mut Owed, now: Instant) -> Given {
        let rest = match owed.pay(to) {
            Err(Errno::AGAIN) => Err(Errno::AGAIN),
            Ok(()) | Err(_) => write_all(to, &self.bytes, &mut self.taken),
        };
        match rest {
            Ok(()) => Given::Whole,
            Err(Errno::AGAIN) if self.until > now => Given::Waits,
            Err(Errno::AGAIN) if self.taken > 0 => {
                let rest = self.bytes.get(self.taken..).unwrap_or_default();
                owed.add(rest);
                Given::Whole
            }
            Err(errno) => Given::Failed { taken: self.taken, of: self.bytes.len(), errno },
        }
    }
}

impl Owed {
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Writes what is taken now. Where nobody will read it any more nothing is owed.
    pub(super) fn pay(&mut self, to: To<'_>) -> Result<(), Errno> {
        let written = write_all(to, &self.bytes, &mut self.paid);
        if written != Err(Errno::AGAIN) {
            (self.bytes, self.paid) = (Vec::new(), 0);
        }
        written
    }
}

/// Where input goes.
#[derive(Debug, Clone, Copy)]
pub(super) enum To<'a> {
    Open(&'a OwnedFd),
    /// A terminal whose master has not come yet.
    Coming,
    Nowhere,
}

fn write_all(to: To<'_>, bytes: &[u8], written: &mut usize) -> Result<(), Errno> {
    while let Some(rest) = bytes.get(*written..).filter(|rest| !rest.is_empty()) {
        let count = match to {
            To::Open(input) => rustix::io::write(input, rest),
            To::Coming => Err(Errno::AGAIN),
            To::Nowhere => Err(Errno::PIPE),
        };
        match count {
            Ok(count) => *written += count,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

impl Live {
    /// Where its input goes; `None` where it takes none, or none any more.
    pub(super) fn input(&self) -> Option<&OwnedFd> {
        match &self.stdin {
            Input::None => None,
            Input::Pipe(pipe) => Some(pipe),
            Input::Terminal => self.master(),
        }
    }

    /// Gives it a piece, as far as it takes that now.
    pub(super) fn give(&mut self, piece: &mut Piece) -> Given {
        self.with_owed(|to, owed| piece.give(to, owed, Instant::now()))
    }

    /// Gives it what it is owed, as far as it takes that now.
    pub(super) fn pay(&mut self) {
        if !self.owed.is_empty() {
            // What is not taken now is tried again when it reads.
            let _ = self.with_owed(|to, owed| owed.pay(to));
        }
    }

    fn with_owed<T>(&mut self, work: impl FnOnce(To<'_>, &mut Owed) -> T) -> T {
        let mut owed = std::mem::take(&mut self.owed);
        let to = match (self.input(), &self.stdin) {
            (Some(input), _) => To::Open(input),
            (None, Input::Terminal) => To::Coming,
            (None, Input::None | Input::Pipe(_)) => To::Nowhere,
        };
        let done = work(to, &mut owed);
        self.owed = owed;
        if self.owed.ends && self.owed.is_empty() {
            self.stdin = Input::None;
        }
        done
    }

    /// Whether it reads, and its input was not closed.
    pub(super) fn reads(&self) -> bool {
        !matches!(self.stdin, Input::None) && !self.owed.ends
    }

    /// Ends its input, behind what it is owed. A terminal's end is a key, and it can be typed more than once.
    pub(super) fn close_input(&mut self) {
        match (&self.stdin, self.owed.is_empty()) {
            (Input::Terminal, true) if let Some(master) = self.input() => {
                let _ = rustix::io::write(master, END_KEY);
            }
            (Input::Terminal, false) => self.owed.add(END_KEY),
            (Input::None | Input::Pipe(_), false) => self.owed.ends = true,
            (Input::None | Input::Pipe(_) | Input::Terminal, true) => self.stdin = Input::None,
        }
    }
}

/// What a terminal ends its input by.
const END_KEY: &[u8] = b"\x04";

#[cfg(test)]
mod tests {
    use super::*;

    /// A pipe of one page, and what its reader takes.
    fn pipe() -> (OwnedFd, OwnedFd) {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        rustix::pipe::fcntl_setpipe_size(&writer, 4096).unwrap();
        for end in [&reader, &writer] {
            rustix::io::ioctl_fionbio(end, true).unwrap();
        }
        (reader, writer)
    }

    fn read(reader: &OwnedFd, into: &mut Vec<u8>) {
        let mut piece = [0; 65536];
        while let Ok(count @ 1..) = rustix::io::read(reader, &mut piece) {
            into.extend_from_slice(&piece[..count]);
        }
    }

    #[test]
    fn a_piece_is_taken_whole_or_not_at_all_however_slowly_it_is_read() {
        let (reader, writer) = pipe();
        let (to, mut owed, now) = (To::Open(&writer), Owed::default(), Instant::now());
        let all: Vec<u8> = (0..20_000_u32).map(|at| (at % 251) as u8).collect();
        let late = now + READS_WITHIN * 2;
        let [first, second] = [&all[..12_000], &all[12_000..]];
        let mut piece = Piece::new(first.to_vec());
        assert_eq!(piece.give(to, &mut owed, now), Given::Waits);
        // A part of it was taken in its time, so all of it counts as taken.
        assert_eq!(piece.give(to, &mut owed, late), Given::Whole);
        // Nothing is taken of the next one as long as something is owed: it can be given again.
        let mut next = Piece::new(second.to_vec());
        assert_eq!(next.give(to, &mut owed, now), Given::Waits);
        let failed = Given::Failed { taken: 0, of: second.len(), errno: Errno::AGAIN };
        assert_eq!(next.give(to, &mut owed, late), failed);
        let (mut came, mut again) = (Vec::new(), Piece::new(second.to_vec()));
        while again.give(to, &mut owed, now) != Given::Whole {
            read(&reader, &mut came);
        }
        read(&reader, &mut came);
        assert!(came == all, "{} bytes came", came.len());
        assert!(owed.is_empty());
    }

    #[test]
    fn nothing_is_owed_to_a_command_that_reads_no_more() {
        let (reader, writer) = pipe();
        let (to, mut owed, now) = (To::Open(&writer), Owed::default(), Instant::now());
        let mut piece = Piece::new(vec![0; 9000]);
        assert_eq!(piece.give(to, &mut owed, now + READS_WITHIN * 2), Given::Whole);
        assert_eq!(owed.pay(To::Coming), Err(Errno::AGAIN));
        assert!(!owed.is_empty());
        drop(reader);
        assert_eq!(owed.pay(to), Err(Errno::PIPE));
        assert!(owed.is_empty());
        let failed = Given::Failed { taken: 0, of: 1, errno: Errno::PIPE };
        assert_eq!(Piece::new(vec![0]).give(To::Nowhere, &mut owed, now), failed);
    }
}

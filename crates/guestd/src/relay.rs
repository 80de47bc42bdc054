//! One stream of a command, carried over the line under credit.

use crate::line::Line;
use cofferdam_wire::frame::{HEADER_BYTES, Header, INITIAL_CREDIT_BYTES, Kind};
use cofferdam_wire::message::News;
use rustix::event::epoll::EventFlags;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::collections::VecDeque;

/// The size of the pipes that carry output over the line.
const PIPE_BYTES: usize = 1 << 20;
/// The most bytes of one frame of output.
const PIECE_BYTES: usize = 256 * 1024;
/// The first piece of what a command wrote that is told of together with its end.
const SMALL_BYTES: usize = 4096;
/// The largest proof.
const MAX_PROOF_BYTES: usize = 512 * 1024;

/// A pipe of ours and the channel that it belongs to.
pub(crate) struct Relay {
    pipe: OwnedFd,
    of: u32,
    armed: bool,
    /// Nobody asked for its bytes yet.
    asleep: bool,
    kind: RelayKind,
}

enum RelayKind {
    /// From the command to the host.
    Output { credit: u64, news: News },
    /// From the host to the command.
    Input { pending: VecDeque<u8>, ends: bool },
    /// One message, as bytes until the pipe ends.
    Proof { bytes: Vec<u8> },
}

/// What a relay needs next.
pub(crate) enum Outcome {
    /// To be told when its pipe is ready.
    Waits,
    /// Credit, or room in the line.
    Blocked,
    /// Nothing: it is done.
    Done,
}

impl Relay {
    fn new(pipe: OwnedFd, of: u32, kind: RelayKind) -> Result<Self, Errno> {
        rustix::io::ioctl_fionbio(&pipe, true)?;
        Ok(Self { pipe, of, armed: false, asleep: false, kind })
    }

    /// Takes a pipe that does not block. What is told together with the end sleeps until it is woken.
    pub(crate) fn output(pipe: OwnedFd, of: u32, news: News) -> Self {
        let kind = RelayKind::Output { credit: INITIAL_CREDIT_BYTES, news };
        Self { pipe, of, armed: false, asleep: news == News::Together, kind }
    }

    pub(crate) fn input(pipe: OwnedFd, of: u32) -> Result<Self, Errno> {
        Self::new(pipe, of, RelayKind::Input { pending: VecDeque::new(), ends: false })
    }

    pub(crate) fn proof(pipe: OwnedFd, of: u32) -> Result<Self, Errno> {
        Self::new(pipe, of, RelayKind::Proof { bytes: Vec::new() })
    }

    pub(crate) fn is_output(&self) -> bool {
        matches!(self.kind, RelayKind::Output { .. })
    }

    /// Lets the command write more before it has to wait.
    pub(crate) fn enlarge(&self) {
        // The user's quota of pipe memory may be used up: a small pipe works too.
        let _ = rustix::pipe::fcntl_setpipe_size(&self.pipe, PIPE_BYTES);
    }

    /// The channel of the command.
    pub(crate) fn of(&self) -> u32 {
        self.of
    }

    pub(crate) fn pipe(&self) -> &OwnedFd {
        &self.pipe
    }

    pub(crate) fn is_asleep(&self) -> bool {
        self.asleep
    }

    pub(crate) fn wake(&mut self) {
        self.asleep = false;
    }

    pub(crate) fn is_armed(&self) -> bool {
        self.armed
    }

    pub(crate) fn set_armed(&mut self, armed: bool) {
        self.armed = armed;
    }

    pub(crate) fn interest(&self) -> EventFlags {
        match self.kind {
            RelayKind::Output { .. } | RelayKind::Proof { .. } => EventFlags::IN,
            RelayKind::Input { .. } => EventFlags::OUT,
        }
    }

    /// Takes what the host says on this channel.
    pub(crate) fn hear(&mut self, frame: Kind, body: &[u8]) {
        match (&mut self.kind, frame) {
            (RelayKind::Output { credit, .. }, Kind::Credit) => {
                if let Some(bytes) = body.first_chunk::<4>() {
                    *credit = credit.saturating_add(u32::from_le_bytes(*bytes).into());
                }
            }
            (RelayKind::Input { pending, .. }, Kind::Data) => pending.extend(body),
            (RelayKind::Input { ends, .. }, Kind::End) => *ends = true,
            _ => {}
        }
    }

    /// Moves what can be moved now.
    pub(crate) fn work(&mut self, channel: u32, line: &mut Line) -> Outcome {
        match &mut self.kind {
            RelayKind::Output { credit, news } => {
                send_output(&self.pipe, (credit, *news), channel, line)
            }
            RelayKind::Input { pending, ends } => {
                take_input(&self.pipe, pending, *ends, channel, line)
            }
            RelayKind::Proof { bytes } => collect(&self.pipe, bytes, channel, line),
        }
    }
}

fn send_output(
    pipe: &OwnedFd,
    (credit, news): (&mut u64, News),
    channel: u32,
    line: &mut Line,
) -> Outcome {
    let send = |line: &mut Line, frame| match news {
        News::AtOnce => line.send(frame, Vec::new()),
        News::Together => line.send_later(frame),
    };
    let mut sent = 0;
    while line.has_room() {
        let most = usize::try_from(*credit).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
        if most == 0 {
            return Outcome::Blocked;
        }
        // Most commands that are run have written little. A large place costs the allocator more
        // than another call.
        let most = match news {
            News::Together if sent < SMALL_BYTES => most.min(SMALL_BYTES),
            News::AtOnce | News::Together => most,
        };
        let mut frame = Vec::with_capacity(HEADER_BYTES + most);
        frame.resize(HEADER_BYTES, 0);
        let read = rustix::io::read(pipe, rustix::buffer::spare_capacity(&mut frame));
        let (len, kind) = match read {
            Ok(0) => (0, Kind::End),
            Ok(len) => (len, Kind::Data),
            Err(Errno::AGAIN) => return Outcome::Waits,
            Err(Errno::INTR) => continue,
            Err(_) => (0, Kind::End),
        };
        let Ok(header) = (Header { len, channel, kind }).encode() else { return Outcome::Done };
        if let Some(place) = frame.get_mut(..HEADER_BYTES) {
            place.copy_from_slice(&header);
        }
        *credit = credit.saturating_sub(u64::try_from(len).unwrap_or(u64::MAX));
        send(line, frame);
        sent += len;
        if len == 0 {
            return Outcome::Done;
        }
        // A short read means that the pipe is empty; another one would only say so, or that it has
        // ended, which is asked when a command has.
        if len < most && news == News::AtOnce {
            return Outcome::Waits;
        }
    }
    Outcome::Blocked
}

fn take_input(
    pipe: &OwnedFd,
    pending: &mut VecDeque<u8>,
    ends: bool,
    channel: u32,
    line: &mut Line,
) -> Outcome {
    while !pending.is_empty() {
        match rustix::io::write(pipe, pending.as_slices().0) {
            Ok(count) => {
                pending.drain(..count);
                let credit = u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes();
                line.frame(channel, Kind::Credit, &credit, Vec::new());
            }
            Err(Errno::AGAIN) => return Outcome::Waits,
            Err(Errno::INTR) => {}
            // The command reads no more. What is left has no reader.
            Err(_) => return Outcome::Done,
        }
    }
    if ends { Outcome::Done } else { Outcome::Blocked }
}

fn collect(pipe: &OwnedFd, bytes: &mut Vec<u8>, channel: u32, line: &mut Line) -> Outcome {
    let mut piece = [0; 16 * 1024];
    loop {
        match rustix::io::read(pipe, &mut piece) {
            Ok(count) if count > 0 && bytes.len() < MAX_PROOF_BYTES => {
                bytes.extend_from_slice(piece.get(..count).unwrap_or_default());
            }
            Err(Errno::AGAIN) => return Outcome::Waits,
            Err(Errno::INTR) => {}
            Ok(_) | Err(_) => {
                if !bytes.is_empty() {
                    line.frame(channel, Kind::Message, bytes, Vec::new());
                }
                line.frame(channel, Kind::End, b"", Vec::new());
                return Outcome::Done;
            }
        }
    }
}

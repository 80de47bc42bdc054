//! One end of the line over a local socket: frames, and descriptors beside them.
//!
//! Both ends use it: process 1, and a host that has no runtime of its own.

use cofferdam_wire::frame::{self, Decoder, Header, Kind};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use serde_json::{from_slice, to_vec};
use std::collections::VecDeque;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;

/// How much may wait to be sent before nothing more is read from the commands' pipes.
const HIGH_WATER_BYTES: usize = 1 << 20;
/// How much may wait that nobody waits for: what a default pipe holds.
const PATIENT_BYTES: usize = 64 << 10;
/// How many frames go in one call.
const BATCH_FRAMES: usize = 32;
/// The most descriptors that come with one piece of the stream.
const MAX_DESCRIPTORS: usize = 16;
/// How much is taken from the socket at a time. From this size on the allocator takes fresh pages
/// from the system, which cost nothing until something arrives in them.
const READ_BYTES: usize = 128 * 1024;

/// Something that waits to be sent.
struct Waiting {
    bytes: Vec<u8>,
    sent: usize,
    descriptors: Vec<OwnedFd>,
}

/// One end of the line. Never blocks, but for [`Line::drain`].
pub struct Line {
    socket: OwnedFd,
    decoder: Decoder,
    descriptors: VecDeque<OwnedFd>,
    waiting: VecDeque<Waiting>,
    waiting_bytes: usize,
    /// Whether what waits may go on waiting for more.
    is_patient: bool,
    /// Where pieces of the stream arrive.
    piece: Vec<u8>,
}

/// The line is of no use any more: the other side is gone, or sent what is no frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineLost;

impl Line {
    /// Takes a connected stream socket.
    pub fn new(socket: OwnedFd) -> Self {
        Self {
            socket,
            decoder: Decoder::default(),
            descriptors: VecDeque::new(),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            is_patient: true,
            piece: vec![0; READ_BYTES],
        }
    }

    /// The socket alone. What was read and not taken is lost.
    pub fn into_socket(self) -> OwnedFd {
        self.socket
    }

    /// The socket, to wait on.
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Whether there is room for more output of the commands.
    pub fn has_room(&self) -> bool {
        self.waiting_bytes < HIGH_WATER_BYTES
    }

    /// Whether nothing waits for room in the socket.
    pub fn is_idle(&self) -> bool {
        self.is_patient || self.waiting.is_empty()
    }

    /// Takes what has arrived.
    pub fn fill(&mut self) -> Result<(), LineLost> {
        loop {
            let mut space =
                [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
            let mut ancillary = RecvAncillaryBuffer::new(&mut space);
            let received = rustix::net::recvmsg(
                &self.socket,
                &mut [IoSliceMut::new(&mut self.piece)],
                &mut ancillary,
                RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC,
            );
            for message in ancillary.drain() {
                if let RecvAncillaryMessage::ScmRights(fds) = message {
                    self.descriptors.extend(fds);
                }
            }
            match received {
                Ok(message) if message.bytes == 0 => return Err(LineLost),
                Ok(message) => {
                    self.decoder.push(self.piece.get(..message.bytes).unwrap_or_default());
                    if message.bytes < READ_BYTES {
                        return Ok(());
                    }
                }
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(_) => return Err(LineLost),
            }
        }
    }

    /// The next whole frame that has arrived.
    pub fn next_frame(&mut self) -> Result<Option<(Header, Vec<u8>)>, LineLost> {
        match self.decoder.next_frame() {
            Ok(frame) => Ok(frame.map(|(header, body)| (header, body.to_vec()))),
            Err(_) => Err(LineLost),
        }
    }

    /// The next descriptor that came with the frames.
    pub fn take_descriptor(&mut self) -> Option<OwnedFd> {
        self.descriptors.pop_front()
    }

    /// Sends a message, and descriptors with it (at most 16).
    pub fn message<M: serde::Serialize>(
        &mut self,
        channel: u32,
        message: &M,
        descriptors: Vec<OwnedFd>,
    ) {
        let Ok(body) = to_vec(message) else { return };
        self.frame(channel, Kind::Message, &body, descriptors);
    }

    /// Sends a frame.
    pub fn frame(&mut self, channel: u32, kind: Kind, body: &[u8], descriptors: Vec<OwnedFd>) {
        let mut bytes = Vec::with_capacity(frame::HEADER_BYTES + body.len());
        if frame::encode(channel, kind, body, &mut bytes).is_ok() {
            self.send(bytes, descriptors);
        }
    }

    /// Sends bytes that are a whole frame already.
    pub fn send(&mut self, bytes: Vec<u8>, descriptors: Vec<OwnedFd>) {
        self.is_patient = false;
        self.put(bytes, descriptors);
    }

    /// Sends bytes that are a whole frame already with what is sent next, or when much waits.
    pub fn send_later(&mut self, bytes: Vec<u8>) {
        self.put(bytes, Vec::new());
        self.is_patient &= self.waiting_bytes < PATIENT_BYTES;
    }

    fn put(&mut self, bytes: Vec<u8>, descriptors: Vec<OwnedFd>) {
        self.waiting_bytes += bytes.len();
        self.waiting.push_back(Waiting { bytes, sent: 0, descriptors });
    }

    /// Sends as much as the socket takes now.
    pub fn flush(&mut self) -> Result<(), LineLost> {
        while !self.is_idle() {
            match push(&self.socket, &mut self.waiting, SendFlags::DONTWAIT) {
                Ok(()) => self.forget_sent(),
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(_) => return Err(LineLost),
            }
        }
        self.is_patient = true;
        Ok(())
    }

    /// Sends everything that waits, however long it takes. A line on which something cannot be sent ends, or
    /// the other side would wait for it for ever: the kernel may refuse descriptors, of which too many are
    /// on their way.
    pub fn drain(&mut self) {
        if self.settle().is_err() {
            let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Both);
        }
    }

    /// The same where somebody is to be told why something cannot be sent.
    pub fn settle(&mut self) -> Result<(), Errno> {
        while !self.waiting.is_empty() {
            match push(&self.socket, &mut self.waiting, SendFlags::empty()) {
                Ok(()) => self.forget_sent(),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }

    /// Sends descriptors to the other side, and waits until they went. Where the kernel takes none, nothing of
    /// it waits any more, and the line is of use to say so.
    pub(crate) fn hand(&mut self, descriptors: Vec<OwnedFd>) -> Result<(), Errno> {
        self.drain();
        self.frame(0, Kind::Data, b"", descriptors);
        let sent = self.settle();
        if sent.is_err() {
            self.waiting.clear();
            self.waiting_bytes = 0;
        }
        sent
    }

    fn forget_sent(&mut self) {
        while let Some(sent) = self.waiting.pop_front_if(|first| first.sent == first.bytes.len()) {
            self.waiting_bytes -= sent.bytes.len();
        }
    }

    /// Sends one message about the line itself, and all that waits.
    pub fn last_word<M: serde::Serialize>(mut self, message: &M) {
        self.message(0, message, Vec::new());
        self.drain();
    }
}

/// Sends what one call takes, and notes how much of each frame went.
fn push(socket: &OwnedFd, waiting: &mut VecDeque<Waiting>, flags: SendFlags) -> Result<(), Errno> {
    // ORDER: descriptors go with the first byte of a call, so their frame begins one.
    let together =
        1 + waiting.iter().skip(1).take_while(|frame| frame.descriptors.is_empty()).count();
    let pieces: Vec<IoSlice<'_>> = waiting
        .iter()
        .take(together.min(BATCH_FRAMES))
        .map(|frame| IoSlice::new(frame.bytes.get(frame.sent..).unwrap_or_default()))
        .collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let borrowed: Vec<BorrowedFd<'_>> =
        waiting.front().iter().flat_map(|first| &first.descriptors).map(AsFd::as_fd).collect();
    if !borrowed.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(&borrowed));
    }
    let flags = flags | SendFlags::NOSIGNAL;
    let mut sent = rustix::net::sendmsg(socket, &pieces, &mut ancillary, flags)?;
    if let Some(first) = waiting.front_mut() {
        first.descriptors.clear();
    }
    for frame in waiting {
        let gone = sent.min(frame.bytes.len() - frame.sent);
        frame.sent += gone;
        sent -= gone;
    }
    Ok(())
}

/// Reads a message of the host. `None` if it is none that we know.
pub fn understand<M: serde::de::DeserializeOwned>(body: &[u8]) -> Option<M> {
    from_slice(body).ok()
}

//! A line over a local socket, with descriptors beside the bytes.

use super::living::Greeted;
use super::terminal::Masters;
use crate::sys;
use cofferdam_core::line::{Carrier, Incoming, Outgoing};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::runtime::Handle;

/// The most descriptors that come or go with one piece of the stream. The kernel closes what a
/// hostile guest sends beyond.
const MAX_DESCRIPTORS: usize = 16;

/// The carrier of a line whose greeting was read already: it is read once more, from memory.
pub(super) fn over(greeted: Greeted) -> io::Result<Carrier> {
    rustix::io::ioctl_fionbio(&greeted.line, true)?;
    // Room in the socket comes with every message that the guest reads. Being woken by that would
    // cost a short command a change of thread.
    let socket = Arc::new(sys::watched_for(greeted.line, Interest::READABLE)?);
    Ok(Carrier {
        incoming: Box::new(Receiver { socket: Arc::clone(&socket), greeting: greeted.greeting }),
        outgoing: Box::new(Sender { socket, full: None }),
        descriptors: Some(Arc::new(Masters)),
    })
}

struct Receiver {
    socket: Arc<AsyncFd<OwnedFd>>,
    greeting: Vec<u8>,
}

impl Incoming for Receiver {
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
        descriptors: &mut Vec<OwnedFd>,
    ) -> Poll<io::Result<usize>> {
        if !self.greeting.is_empty() {
            let count = self.greeting.len().min(buffer.len());
            for (place, byte) in buffer.iter_mut().zip(self.greeting.drain(..count)) {
                *place = byte;
            }
            return Poll::Ready(Ok(count));
        }
        loop {
            let mut ready = ready!(self.socket.poll_read_ready(cx))?;
            let before = descriptors.len();
            match receive(ready.get_inner(), buffer, descriptors) {
                Ok(count) => {
                    // What came with descriptors may be cut short with more behind it. Otherwise a
                    // short read means that the socket is empty, and another one would only say so.
                    if count > 0 && count < buffer.len() && descriptors.len() == before {
                        ready.clear_ready();
                    }
                    return Poll::Ready(Ok(count));
                }
                Err(Errno::AGAIN) => ready.clear_ready(),
                Err(Errno::INTR) => {}
                // A guest that died with our bytes unread: to the reader that is the end.
                Err(Errno::CONNRESET) => return Poll::Ready(Ok(0)),
                Err(errno) => return Poll::Ready(Err(errno.into())),
            }
        }
    }
}

/// Takes some bytes, and the descriptors that came with them.
pub(crate) fn receive(
    socket: impl AsFd,
    buffer: &mut [u8],
    descriptors: &mut Vec<OwnedFd>,
) -> Result<usize, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let received = recvmsg(socket, &mut [IoSliceMut::new(buffer)], &mut ancillary, flags);
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(fds) = message {
            descriptors.extend(fds);
        }
    }
    received.map(|message| message.bytes)
}

struct Sender {
    socket: Arc<AsyncFd<OwnedFd>>,
    /// The same socket while it has no room.
    full: Option<AsyncFd<OwnedFd>>,
}

impl Outgoing for Sender {
    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
        descriptors: &mut Vec<OwnedFd>,
    ) -> Poll<io::Result<usize>> {
        loop {
            let mut room = match &self.full {
                Some(full) => Some(ready!(full.poll_write_ready(cx))?),
                None => None,
            };
            match send(self.socket.get_ref(), slices, descriptors) {
                Ok(count) => {
                    descriptors.clear();
                    self.full = None;
                    return Poll::Ready(Ok(count));
                }
                Err(Errno::AGAIN) => match &mut room {
                    Some(room) => room.clear_ready(),
                    // The task that writes what waits asks again, on the runtime.
                    None if Handle::try_current().is_err() => return Poll::Pending,
                    None => {
                        let same = self.socket.get_ref().try_clone()?;
                        self.full = Some(sys::watched_for(same, Interest::WRITABLE)?);
                    }
                },
                Err(Errno::INTR) => {}
                Err(errno) => return Poll::Ready(Err(errno.into())),
            }
        }
    }

    fn poll_flush(&mut self, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

fn send(socket: &OwnedFd, slices: &[IoSlice<'_>], descriptors: &[OwnedFd]) -> Result<usize, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let borrowed: Vec<BorrowedFd<'_>> = descriptors.iter().map(AsFd::as_fd).collect();
    if !borrowed.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(&borrowed)) {
        return Err(Errno::INVAL);
    }
    sendmsg(socket, slices, &mut ancillary, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)
}

//! What a line runs over.

use crate::Duplex;
use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf, ReadHalf, WriteHalf};

/// Both directions of a line's stream.
pub struct Carrier {
    /// What the guest sends.
    pub incoming: Box<dyn Incoming>,
    /// What the host sends.
    pub outgoing: Box<dyn Outgoing>,
    /// What is done with descriptors, where the stream carries them. Without it a terminal is
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported).
    pub descriptors: Option<Arc<dyn Descriptors>>,
}

/// The direction from the guest.
pub trait Incoming: Send {
    /// Reads some bytes, and appends the descriptors that came with them. 0 is the end.
    ///
    /// A descriptor must never come later than the first byte that it was sent with.
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
        descriptors: &mut Vec<OwnedFd>,
    ) -> Poll<io::Result<usize>>;
}

/// The direction to the guest.
pub trait Outgoing: Send {
    /// Writes some of the bytes. `descriptors` go with the first of them, and are removed from the
    /// list once they went.
    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
        descriptors: &mut Vec<OwnedFd>,
    ) -> Poll<io::Result<usize>>;

    /// Passes on what is held back.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
}

/// What is done with descriptors that come from inside.
pub trait Descriptors: Send + Sync {
    /// Makes a terminal's master readable and writable on the current runtime.
    ///
    /// HOSTILE: the guest may send any descriptor. The implementation refuses what is no terminal.
    fn terminal(&self, master: OwnedFd) -> io::Result<Box<dyn Duplex>>;
}

impl Carrier {
    /// A carrier over any stream of bytes, without descriptors.
    pub fn plain<S: AsyncRead + AsyncWrite + Send + 'static>(stream: S) -> Self {
        let (read, write) = tokio::io::split(stream);
        Self {
            incoming: Box::new(PlainRead(read)),
            outgoing: Box::new(PlainWrite(write)),
            descriptors: None,
        }
    }
}

struct PlainRead<S>(ReadHalf<S>);

impl<S: AsyncRead + Send> Incoming for PlainRead<S> {
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
        _descriptors: &mut Vec<OwnedFd>,
    ) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(buffer);
        ready!(Pin::new(&mut self.0).poll_read(cx, &mut buffer))?;
        Poll::Ready(Ok(buffer.filled().len()))
    }
}

struct PlainWrite<S>(WriteHalf<S>);

impl<S: AsyncWrite + Send> Outgoing for PlainWrite<S> {
    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
        descriptors: &mut Vec<OwnedFd>,
    ) -> Poll<io::Result<usize>> {
        if !descriptors.is_empty() {
            return Poll::Ready(Err(io::ErrorKind::Unsupported.into()));
        }
        Pin::new(&mut self.0).poll_write_vectored(cx, slices)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }
}

//! The socket of a connection to a file worker.

use super::sys::watched_for;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};

/// A socket that wakes its reader when something came.
///
/// Room in the socket comes with every request that the worker reads. To be woken by that costs whoever reads
/// a small file a change of thread, so that room is waited for only where there is none.
pub(super) struct LinkStream {
    socket: AsyncFd<UnixStream>,
    /// The same socket while it has no room.
    full: Option<AsyncFd<UnixStream>>,
}

impl LinkStream {
    pub(super) fn new(socket: UnixStream) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let socket = watched_for(socket, Interest::READABLE)?;
        Ok(Self { socket, full: None })
    }

    /// Whether nothing has come, and the other side has not hung up.
    pub(super) fn waits(&self) -> bool {
        let read = self.socket.get_ref().read(&mut [0; 1]);
        read.is_err_and(|cause| cause.kind() == io::ErrorKind::WouldBlock)
    }
}

impl AsyncRead for LinkStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let mut ready = ready!(self.socket.poll_read_ready(cx))?;
            let place = buffer.initialize_unfilled();
            let room = place.len();
            match ready.get_inner().read(place) {
                Ok(count) => {
                    // A short read means that the socket is empty, and another one would only say so.
                    if count > 0 && count < room {
                        ready.clear_ready();
                    }
                    buffer.advance(count);
                    return Poll::Ready(Ok(()));
                }
                Err(cause) if cause.kind() == io::ErrorKind::WouldBlock => ready.clear_ready(),
                Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
                Err(cause) => return Poll::Ready(Err(cause)),
            }
        }
    }
}

impl AsyncWrite for LinkStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            let mut room = match &self.full {
                Some(full) => Some(ready!(full.poll_write_ready(cx))?),
                None => None,
            };
            match self.socket.get_ref().write(bytes) {
                Ok(count) => {
                    self.full = None;
                    return Poll::Ready(Ok(count));
                }
                Err(cause) if cause.kind() == io::ErrorKind::WouldBlock => match &mut room {
                    Some(room) => room.clear_ready(),
                    None => {
                        let same = self.socket.get_ref().try_clone()?;
                        self.full = Some(watched_for(same, Interest::WRITABLE)?);
                    }
                },
                Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
                Err(cause) => return Poll::Ready(Err(cause)),
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.socket.get_ref().shutdown(std::net::Shutdown::Write))
    }
}

//! The master of a command's terminal, as a stream.

use crate::sys;
use cofferdam_core::Duplex;
use cofferdam_core::line::Descriptors;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Takes masters of terminals from inside.
pub(super) struct Masters;

impl Descriptors for Masters {
    fn terminal(&self, master: OwnedFd) -> io::Result<Box<dyn Duplex>> {
        // HOSTILE: any descriptor may come. Only a master has the name of its terminal to tell.
        rustix::pty::ptsname(&master, Vec::new())?;
        rustix::io::ioctl_fionbio(&master, true)?;
        Ok(Box::new(Master(sys::watched(master)?)))
    }
}

struct Master(AsyncFd<OwnedFd>);

impl AsyncRead for Master {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let mut ready = ready!(self.0.poll_read_ready(cx))?;
            match rustix::io::read(ready.get_inner(), buffer.initialize_unfilled()) {
                Ok(count) => {
                    buffer.advance(count);
                    return Poll::Ready(Ok(()));
                }
                Err(Errno::AGAIN) => ready.clear_ready(),
                Err(Errno::INTR) => {}
                Err(errno) => return Poll::Ready(Err(errno.into())),
            }
        }
    }
}

impl AsyncWrite for Master {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            let mut ready = ready!(self.0.poll_write_ready(cx))?;
            match rustix::io::write(ready.get_inner(), bytes) {
                Ok(count) => return Poll::Ready(Ok(count)),
                Err(Errno::AGAIN) => ready.clear_ready(),
                Err(Errno::INTR) => {}
                Err(errno) => return Poll::Ready(Err(errno.into())),
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

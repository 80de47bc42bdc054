//! Our own standard streams where a runtime wants streams that do not block.
//!
//! A verb that uses this has nothing else to do meanwhile, so its one thread may wait.

use cofferdam_core::{Error, ErrorKind, Result};
use std::io::{self, Read, Write};
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Where output goes that the caller chose. Its errors name that.
pub(crate) struct Outgoing<T> {
    pub(crate) inner: T,
    to: String,
}

impl<T> Outgoing<T> {
    pub(crate) fn to_stdout(inner: T) -> Self {
        Self { inner, to: "standard output".to_owned() }
    }

    pub(crate) fn to_file(inner: T, path: &Path) -> Self {
        Self { inner, to: format!("{path:?}") }
    }

    fn named(&self, cause: io::Error) -> io::Error {
        io::Error::new(cause.kind(), NotTaken { to: self.to.clone(), cause })
    }
}

impl<T: Write> Write for Outgoing<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.inner.write(bytes).map_err(|cause| self.named(cause))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush().map_err(|cause| self.named(cause))
    }
}

/// What the caller's own place for output did not take.
#[derive(Debug)]
pub(crate) struct NotTaken {
    to: String,
    cause: io::Error,
}

impl std::fmt::Display for NotTaken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "write to {}", self.to)
    }
}

impl std::error::Error for NotTaken {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}

/// A stream that waits where it is asked.
pub(crate) struct Blocking<T>(pub(crate) T);

impl<T: Write> Blocking<T> {
    /// Passes on what is held back.
    pub(crate) fn finish(&mut self) -> Result<()> {
        match self.0.flush() {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            Err(error) => Err(Error::new(ErrorKind::Io, "pass on what was read").source(error)),
        }
    }
}

impl<T: Read + Unpin> AsyncRead for Blocking<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            match self.0.read(buffer.initialize_unfilled()) {
                Ok(count) => {
                    buffer.advance(count);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl<T: Write + Unpin> AsyncWrite for Blocking<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(self.0.write_all(bytes).map(|()| bytes.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.0.flush())
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

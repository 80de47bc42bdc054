//! Connections to programs inside that take nothing.
//!
//! HOSTILE: where nothing is taken, nobody looks at the caller's side either, so that a caller who has gone is not
//! noticed, and the connection would count for ever.

use super::tunnel::UNTAKEN;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// A connection that breaks off where its other side has taken nothing for [`UNTAKEN`] of what waits for it.
pub(super) struct Pressed<S> {
    stream: S,
    until: Option<Pin<Box<Sleep>>>,
}

impl<S> Pressed<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream, until: None }
    }

    /// What a write came to, or the end of the patience with it.
    fn patient<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.until = None;
            return written;
        }
        let until = self.until.get_or_insert_with(|| Box::pin(tokio::time::sleep(UNTAKEN)));
        ready!(until.as_mut().poll(context));
        let what = "the program inside takes nothing of what is sent";
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, what)))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Pressed<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        room: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, room)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Pressed<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.patient(context, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.patient(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ended = Pin::new(&mut self.stream).poll_shutdown(context);
        self.patient(context, ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::time::{Instant, sleep};

    #[tokio::test(start_paused = true)]
    async fn a_program_that_takes_nothing_is_waited_for_no_longer() {
        let (outside, mut inside) = tokio::io::duplex(10);
        let mut stream = Pressed::new(outside);
        let begin = Instant::now();
        // As long as something is taken now and then, it goes on.
        let (written, ()) = tokio::join!(stream.write_all(&[1; 30]), async {
            for _ in 0..3 {
                sleep(UNTAKEN * 2 / 3).await;
                inside.read_exact(&mut [0; 10]).await.unwrap();
            }
        });
        written.unwrap();
        assert!(begin.elapsed() > UNTAKEN);
        let stalled = stream.write_all(&[1; 30]).await.unwrap_err();
        assert_eq!(stalled.kind(), io::ErrorKind::TimedOut);
    }
}

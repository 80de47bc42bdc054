//! Connections whose other side takes nothing.

use crate::http::MAX_STALL;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// How long a program inside, or who is connected to it, may not take what is sent.
pub(crate) const UNTAKEN: Duration = Duration::from_secs(300);

/// What is to be known of a connection beside it.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    is_upgraded: AtomicBool,
    is_unwritten: AtomicBool,
    is_known: AtomicBool,
}

impl Flow {
    /// Says whether it does not speak HTTP any more.
    pub(crate) fn tell_upgraded(&self, is_upgraded: bool) {
        self.is_upgraded.store(is_upgraded, Ordering::Relaxed);
    }

    /// Says that somebody asks over it now who may ask more than anybody may, and what it is counts for him.
    pub(crate) fn tell_known(&self) {
        self.is_known.store(true, Ordering::Relaxed);
    }

    /// Says that something is asked over it of which nobody knows yet whose it is, whoever asked before.
    pub(crate) fn tell_asked(&self) {
        self.is_known.store(false, Ordering::Relaxed);
    }

    /// Whether somebody does.
    pub(crate) fn is_known(&self) -> bool {
        self.is_known.load(Ordering::Relaxed)
    }

    /// Says whether something waits to be written that its other side does not take.
    pub(crate) fn tell_unwritten(&self, is_unwritten: bool) {
        self.is_unwritten.store(is_unwritten, Ordering::Relaxed);
    }

    /// Whether something waits to be written that its other side does not take.
    pub(crate) fn is_unwritten(&self) -> bool {
        self.is_unwritten.load(Ordering::Relaxed)
    }
}

/// A connection that breaks off when its other side has not taken anything for a while of what is written: what waits
/// for it is in memory. One that speaks something else than HTTP by now has rules of its own.
pub(crate) struct Stalling<S> {
    stream: S,
    until: Option<Pin<Box<Sleep>>>,
    patience: Duration,
    /// What is said of one that breaks off.
    broken: &'static str,
    flow: Arc<Flow>,
}

impl<S> Stalling<S> {
    /// A connection of a caller, who has [`MAX_STALL`] for an answer. It tells there how it goes on.
    pub(crate) fn new(stream: S, flow: Arc<Flow>) -> Self {
        let broken = "nobody reads the answer";
        Self { stream, until: None, patience: MAX_STALL, broken, flow }
    }

    /// A connection to a program inside, which has [`UNTAKEN`].
    ///
    /// HOSTILE: where nothing is taken, nobody looks at the caller's side either, so that a caller who has gone
    /// is not noticed, and the connection would count for ever.
    pub(crate) fn inward(stream: S) -> Self {
        let broken = "the program inside takes nothing of what is sent";
        Self { stream, until: None, patience: UNTAKEN, broken, flow: Arc::default() }
    }

    /// What a write came to, or the end of the patience with it.
    fn patient<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        self.flow.tell_unwritten(written.is_pending());
        if written.is_ready() || self.flow.is_upgraded.load(Ordering::Relaxed) {
            self.until = None;
            return written;
        }
        let patience = self.patience;
        let until = self.until.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        ready!(until.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, self.broken)))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Stalling<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        room: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, room)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Stalling<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.patient(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.patient(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
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
    use tokio::time::{Instant, sleep, timeout};

    #[tokio::test(start_paused = true)]
    async fn a_connection_of_which_nobody_reads_breaks_off() {
        let (outside, mut reader) = tokio::io::duplex(10);
        let flow = Arc::new(Flow::default());
        let mut stream = Stalling::new(outside, flow.clone());
        let begin = Instant::now();
        // As long as something is taken now and then, it goes on.
        let (written, ()) = tokio::join!(stream.write_all(&[1; 30]), async {
            for _ in 0..3 {
                sleep(MAX_STALL * 2 / 3).await;
                reader.read_exact(&mut [0; 10]).await.unwrap();
            }
        });
        written.unwrap();
        assert!(!flow.is_unwritten());
        assert!(begin.elapsed() > MAX_STALL);
        let stalled = stream.write_all(&[1; 30]).await.unwrap_err();
        assert_eq!(stalled.kind(), io::ErrorKind::TimedOut);
        assert!(flow.is_unwritten());
        flow.tell_upgraded(true);
        let waits = timeout(3 * MAX_STALL, stream.write_all(&[1; 30])).await;
        assert!(waits.is_err(), "it speaks something else");
    }

    #[tokio::test(start_paused = true)]
    async fn a_program_that_takes_nothing_is_waited_for_no_longer() {
        let (outside, mut inside) = tokio::io::duplex(10);
        let mut stream = Stalling::inward(outside);
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

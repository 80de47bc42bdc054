//! Bodies that are neither read nor written as a whole: what a request holds of them is bounded.

use super::error::Problem;
use super::guard::{Counted, Reason};
use super::keyed;
use axum::body::{Body, BodyDataStream, Bytes};
use axum::http::StatusCode;
use cofferdam_core::{Error, ErrorKind, Result, hexadecimal};
use futures_util::Stream;
use sha2::{Digest, Sha256};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, DuplexStream, ReadBuf};
use tokio::task::JoinHandle;
use tokio::time::{Instant, Sleep};

/// How long the other side may neither send nor take anything in the middle of a body.
pub(crate) const MAX_STALL: Duration = Duration::from_secs(60);
/// How much of an answer waits for whoever reads it.
pub(crate) const WAITING_BYTES: usize = 512 << 10;
/// How much is passed on at once.
const PIECE_BYTES: usize = 128 << 10;
/// How much of an answer is waited for where it may be refused: some files, so that a limit that was meant for
/// less is known.
const BEGINNING_BYTES: usize = 64 << 10;

/// A body that comes in, as bytes to be read. Whatever is wrong with it is an error of the reader before
/// its end, so that nobody takes it for whole.
pub(crate) struct Upload {
    data: BodyDataStream,
    piece: Bytes,
    hash: Sha256,
    expected: Option<String>,
    left: u64,
    most: u64,
    until: Pin<Box<Sleep>>,
    refused: Option<Problem>,
    is_over: bool,
}

impl Upload {
    /// A body of at most so many bytes, which have this SHA-256 if one is given.
    pub(crate) fn new(body: Body, most: u64, expected: Option<String>) -> Self {
        Self {
            data: body.into_data_stream(),
            piece: Bytes::new(),
            hash: Sha256::new(),
            expected,
            left: most,
            most,
            until: Box::pin(tokio::time::sleep(MAX_STALL)),
            refused: None,
            is_over: false,
        }
    }

    /// What was wrong with it, or else what its reader met.
    pub(crate) fn problem(&mut self, error: Error) -> Problem {
        self.refused.take().unwrap_or_else(|| error.into())
    }

    fn refuse(&mut self, status: StatusCode, error: Error) -> io::Error {
        let told = io::Error::other(error.message.clone());
        self.refused = Some(Problem::with_status(status, error));
        told
    }

    fn keep(&mut self, piece: Bytes) -> io::Result<()> {
        let Some(left) = self.left.checked_sub(piece.len() as u64) else {
            let what = format!("the body has more than {} bytes", self.most);
            let error = Error::new(ErrorKind::TooLarge, what);
            return Err(self.refuse(StatusCode::PAYLOAD_TOO_LARGE, error));
        };
        self.left = left;
        self.hash.update(&piece);
        self.piece = piece;
        self.until.as_mut().reset(Instant::now() + MAX_STALL);
        Ok(())
    }

    /// Compares what came with what was to come.
    fn end(&mut self) -> io::Result<()> {
        self.is_over = true;
        let came = hexadecimal(std::mem::take(&mut self.hash).finalize());
        let Some(expected) = self.expected.take().filter(|expected| *expected != came) else {
            return Ok(());
        };
        let what = format!("the body has the SHA-256 {came}, and {expected} was said");
        let error = Error::new(ErrorKind::Usage, what).hint("Send it again; nothing was changed.");
        Err(self.refuse(StatusCode::BAD_REQUEST, error))
    }
}

impl AsyncRead for Upload {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        room: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.piece.is_empty() && !self.is_over {
            match Pin::new(&mut self.data).poll_next(context) {
                Poll::Ready(Some(Ok(piece))) => self.keep(piece)?,
                Poll::Ready(Some(Err(error))) => {
                    if let Some(revoked) = keyed::revoked(&error) {
                        return Poll::Ready(Err(self.refuse(StatusCode::UNAUTHORIZED, revoked)));
                    }
                    let error = Error::new(ErrorKind::Canceled, "the body broke off").source(error);
                    return Poll::Ready(Err(self.refuse(StatusCode::BAD_REQUEST, error)));
                }
                Poll::Ready(None) => self.end()?,
                Poll::Pending => {
                    ready!(self.until.as_mut().poll(context));
                    let what = format!("no more of the body came for {} s", MAX_STALL.as_secs());
                    let error = Error::new(ErrorKind::TimedOut, what);
                    return Poll::Ready(Err(self.refuse(StatusCode::REQUEST_TIMEOUT, error)));
                }
            }
        }
        let count = self.piece.len().min(room.remaining());
        room.put_slice(&self.piece.split_to(count));
        Poll::Ready(Ok(()))
    }
}

/// Where an answer is written. Whoever reads it too slowly ends it.
pub(crate) struct Outgoing {
    pipe: DuplexStream,
    until: Option<Pin<Box<Sleep>>>,
}

impl AsyncWrite for Outgoing {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(done) = Pin::new(&mut self.pipe).poll_write(context, bytes) {
            self.until = None;
            return Poll::Ready(done);
        }
        let until = self.until.get_or_insert_with(|| Box::pin(tokio::time::sleep(MAX_STALL)));
        ready!(until.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "nobody reads the answer")))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.pipe).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.pipe).poll_shutdown(context)
    }
}

/// Work that ends with whoever waits for it.
struct Work(JoinHandle<Result<()>>);

impl Drop for Work {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// An answer that is written while it is read, and counts as a stream as long as it is there. If the work fails the answer breaks off, and is never
/// taken for whole.
pub(crate) fn answered<W, F>(counted: Counted, first: Vec<u8>, work: W) -> Body
where
    W: FnOnce(Outgoing) -> F,
    F: Future<Output = Result<()>> + Send + 'static,
{
    let (pipe, reader) = tokio::io::duplex(WAITING_BYTES);
    // ORDER: beside the answer, for nobody polls that while its reader is slow.
    let work = Work(tokio::spawn(work(Outgoing { pipe, until: None })));
    let first = Some(Bytes::from(first)).filter(|first| !first.is_empty());
    read_out(first, (reader, work), counted)
}

/// The same, but what it begins with is waited for: where the work is refused within that, the refusal is the
/// answer, in place of bytes that break off.
pub(crate) async fn begun<W, F>(
    counted: Counted,
    is_refusal: fn(&Error) -> bool,
    work: W,
) -> Result<Body>
where
    W: FnOnce(Outgoing) -> F,
    F: Future<Output = Result<()>> + Send + 'static,
{
    let (pipe, mut reader) = tokio::io::duplex(WAITING_BYTES);
    let mut work = Work(tokio::spawn(work(Outgoing { pipe, until: None })));
    let mut first = Vec::with_capacity(BEGINNING_BYTES);
    while first.len() < BEGINNING_BYTES {
        if reader.read_buf(&mut first).await.unwrap_or(0) > 0 {
            continue;
        }
        let ended = (&mut work.0).await.map_err(io::Error::other);
        let broken = match ended {
            Ok(Err(error)) if is_refusal(&error) => return Err(error),
            Ok(Err(error)) => Some(io::Error::other(error)),
            Ok(Ok(())) => None,
            Err(error) => Some(error),
        };
        let pieces = std::iter::once(Ok(Bytes::from(first))).chain(broken.map(Err));
        return Ok(Body::from_stream(futures_util::stream::iter(pieces)));
    }
    Ok(read_out(Some(Bytes::from(first)), (reader, work), counted))
}

/// What was begun with, and then what is written.
fn read_out(first: Option<Bytes>, (reader, work): (DuplexStream, Work), counted: Counted) -> Body {
    let revoked = counted.loses_its_key();
    let answering = Answering { first, reader, work, revoked, _counted: counted };
    Body::from_stream(futures_util::stream::unfold(Some(answering), next))
}

/// An answer that is read.
struct Answering {
    first: Option<Bytes>,
    reader: DuplexStream,
    work: Work,
    revoked: Reason<()>,
    _counted: Counted,
}

async fn next(answering: Option<Answering>) -> Option<(io::Result<Bytes>, Option<Answering>)> {
    let mut answering = answering?;
    if let Some(first) = answering.first.take() {
        return Some((Ok(first), Some(answering)));
    }
    let mut piece = Vec::with_capacity(PIECE_BYTES);
    let read = tokio::select! {
        // Also where there is always more.
        biased;
        () = &mut answering.revoked => {
            let error = Error::new(ErrorKind::Denied, "the key was revoked by which this was asked for");
            return Some((Err(io::Error::other(error)), None));
        }
        read = answering.reader.read_buf(&mut piece) => read,
    };
    match read {
        Ok(0) => match (&mut answering.work.0).await {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some((Err(io::Error::other(error)), None)),
            Err(error) => Some((Err(io::Error::other(error)), None)),
        },
        Ok(_) => Some((Ok(piece.into()), Some(answering))),
        Err(error) => Some((Err(error), None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::StreamExt;
    use tokio::io::AsyncWriteExt;

    fn counted() -> Counted {
        crate::http::Counts::default().take("", 1).unwrap()
    }

    fn body(pieces: Vec<Result<&'static str, &'static str>>) -> Body {
        let pieces = pieces.into_iter().map(|piece| piece.map_err(io::Error::other));
        Body::from_stream(futures_util::stream::iter(pieces))
    }

    async fn read(upload: &mut Upload) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        upload.read_to_end(&mut bytes).await.map(|_| bytes)
    }

    #[tokio::test]
    async fn a_body_is_read_to_its_end_and_compared() {
        let hash = hexadecimal(Sha256::digest("abcd"));
        let mut good = Upload::new(body(vec![Ok("ab"), Ok(""), Ok("cd")]), 4, Some(hash.clone()));
        assert_eq!(read(&mut good).await.unwrap(), b"abcd");
        let check = async |pieces, most, status: StatusCode| {
            let mut bad = Upload::new(body(pieces), most, Some(hash.clone()));
            read(&mut bad).await.unwrap_err();
            let problem = bad.problem(Error::new(ErrorKind::Io, "other"));
            assert_eq!(problem.report().status, status.as_u16());
        };
        check(vec![Ok("abc")], 4, StatusCode::BAD_REQUEST).await;
        check(vec![Ok("ab"), Ok("cde")], 4, StatusCode::PAYLOAD_TOO_LARGE).await;
        check(vec![Ok("ab"), Err("gone")], 4, StatusCode::BAD_REQUEST).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_stalls_is_refused() {
        let stalled = futures_util::stream::pending::<io::Result<Bytes>>();
        let mut upload = Upload::new(Body::from_stream(stalled), 4, None);
        read(&mut upload).await.unwrap_err();
        let problem = upload.problem(Error::new(ErrorKind::Io, "other"));
        assert_eq!(problem.report().kind, "timed_out");
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_nobody_reads_ends_its_work() {
        let (told, hears) = tokio::sync::oneshot::channel();
        let body = answered(counted(), Vec::new(), async move |mut out| {
            let written = out.write_all(&vec![0; 4 * WAITING_BYTES]).await;
            told.send(written.unwrap_err().kind()).ok();
            Ok(())
        });
        assert_eq!(hears.await.unwrap(), io::ErrorKind::TimedOut);
        drop(body);
    }

    #[tokio::test]
    async fn an_answer_that_is_refused_at_its_beginning_is_the_refusal() {
        let is_refusal = |error: &Error| error.kind == ErrorKind::TooLarge;
        let answer = async |bytes: usize, kind: ErrorKind| {
            let body = begun(counted(), is_refusal, async move |mut out: Outgoing| {
                out.write_all(&vec![b'x'; bytes]).await.ok();
                Err(Error::new(kind, "it was too much"))
            });
            let pieces: Vec<_> = body.await?.into_data_stream().collect().await;
            assert!(pieces.last().unwrap().is_err(), "{bytes}");
            Ok::<_, Error>(pieces.iter().flatten().map(Bytes::len).sum::<usize>())
        };
        for bytes in [0, BEGINNING_BYTES - 1] {
            let refused = answer(bytes, ErrorKind::TooLarge).await.unwrap_err();
            assert_eq!(refused.message, "it was too much");
            assert_eq!(answer(bytes, ErrorKind::Conflict).await.unwrap(), bytes);
        }
        let bytes = 3 * BEGINNING_BYTES;
        assert_eq!(answer(bytes, ErrorKind::TooLarge).await.unwrap(), bytes);
        let whole = begun(counted(), is_refusal, async move |mut out: Outgoing| {
            out.write_all(b"all").await.ok();
            Ok(())
        });
        let pieces: Vec<_> = whole.await.unwrap().into_data_stream().collect().await;
        assert!(pieces.iter().all(Result::is_ok) && pieces.len() == 1);
    }

    #[tokio::test]
    async fn an_answer_whose_work_fails_breaks_off() {
        let body = answered(counted(), b"first ".to_vec(), async |mut out| {
            out.write_all(b"second").await.ok();
            Err(Error::new(ErrorKind::Conflict, "it changed"))
        });
        let pieces: Vec<_> = body.into_data_stream().collect().await;
        let bytes: Vec<u8> = pieces.iter().flatten().flat_map(|piece| piece.to_vec()).collect();
        assert_eq!(bytes, b"first second");
        assert!(pieces.last().unwrap().is_err());
    }
}

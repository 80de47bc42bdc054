//! Bodies that are neither read nor written as a whole.

use crate::Client;
use crate::answer::{self, Failure};
use crate::ask::Ask;
use bytes::Bytes;
use cofferdam_core::{Error, ErrorKind, Result, hexadecimal};
use http_body::Frame;
use reqwest::{Body, Response};
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use std::io;
use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

/// How much is passed on at once.
const PIECE_BYTES: usize = 128 << 10;
/// How many pieces wait to be sent.
const WAITING_PIECES: usize = 4;

/// What was sent, and what was answered.
#[derive(Debug)]
pub(crate) struct Upload {
    pub(crate) answer: Response,
    /// The SHA-256 of what was sent, in hexadecimal.
    pub(crate) sha256: String,
    pub(crate) bytes: u64,
}

/// What came.
#[derive(Debug)]
pub(crate) struct Saved {
    pub(crate) sha256: String,
    pub(crate) bytes: u64,
}

type Piece = Result<Bytes, io::Error>;

/// A body whose pieces come from elsewhere. Without an end it breaks off.
struct Pieces {
    /// Only one ever looks; the body of a request is shared by its type alone.
    pieces: Mutex<mpsc::Receiver<Piece>>,
    is_over: bool,
}

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let polled = match self.pieces.get_mut() {
            Ok(pieces) => pieces.poll_recv(context),
            Err(broken) => broken.into_inner().poll_recv(context),
        };
        match polled {
            Poll::Pending => Poll::Pending,
            // An empty piece is the end.
            Poll::Ready(Some(Ok(piece))) if piece.is_empty() => {
                self.is_over = true;
                Poll::Ready(None)
            }
            Poll::Ready(Some(piece)) => Poll::Ready(Some(piece.map(Frame::data))),
            Poll::Ready(None) if self.is_over => Poll::Ready(None),
            Poll::Ready(None) => Poll::Ready(Some(Err(io::Error::other("it was given up")))),
        }
    }
}

/// Sends what comes from a source as the body of a request. A source that fails breaks the body off, so
/// that nobody takes it for whole.
pub(crate) async fn send(
    ask: Ask,
    kind: &'static str,
    source: &mut (dyn AsyncRead + Send + Unpin),
) -> Result<Upload> {
    try_send(ask, kind, source).await?.map_err(Error::from)
}

/// The same, where what the server says is looked at.
pub(crate) async fn try_send(
    ask: Ask,
    kind: &'static str,
    source: &mut (dyn AsyncRead + Send + Unpin),
) -> Result<Result<Upload, Failure>> {
    let (sender, receiver) = mpsc::channel(WAITING_PIECES);
    let body = Body::wrap(Pieces { pieces: Mutex::new(receiver), is_over: false });
    let sending = ask.body(kind, body).send();
    let mut sending = std::pin::pin!(sending);
    let mut pumping = std::pin::pin!(pump(source, sender));
    // A server that says no does not read to the end.
    let (pumped, answer) = tokio::select! {
        biased;
        pumped = &mut pumping => (Some(pumped), sending.await),
        answer = &mut sending => (None, answer),
    };
    match (pumped, answer) {
        (Some(Err(cause)), _) => {
            Err(Error::new(ErrorKind::Io, "read what is to be sent").source(cause))
        }
        (_, Err(failure)) => Ok(Err(failure)),
        (Some(Ok((sha256, bytes))), Ok(answer)) => Ok(Ok(Upload { answer, sha256, bytes })),
        (None, Ok(_)) => {
            Err(Error::new(ErrorKind::Protocol, "the server answered before it had all of it"))
        }
    }
}

async fn pump(
    source: &mut (dyn AsyncRead + Send + Unpin),
    sender: mpsc::Sender<Piece>,
) -> io::Result<(String, u64)> {
    let (mut hash, mut bytes) = (Sha256::new(), 0);
    loop {
        let mut piece = Vec::with_capacity(PIECE_BYTES);
        match source.read_buf(&mut piece).await {
            Ok(0) => break,
            Ok(count) => {
                hash.update(&piece);
                bytes += count as u64;
                if sender.send(Ok(piece.into())).await.is_err() {
                    // Nobody reads on: the answer says why.
                    return std::future::pending().await;
                }
            }
            Err(cause) => {
                let told = io::Error::new(cause.kind(), cause.to_string());
                sender.send(Err(told)).await.ok();
                return Err(cause);
            }
        }
    }
    sender.send(Ok(Bytes::new())).await.ok();
    Ok((hexadecimal(hash.finalize()), bytes))
}

/// Writes an answer to a sink, a piece at a time. One that breaks off is an error.
pub(crate) async fn save(
    client: &Client,
    mut response: Response,
    sink: &mut (dyn AsyncWrite + Send + Unpin),
) -> Result<Saved> {
    let (mut hash, mut bytes) = (Sha256::new(), 0);
    let unwritten = |cause| Error::new(ErrorKind::Io, "write what came").source(cause);
    loop {
        let piece = response.chunk().await;
        let Some(piece) = piece.map_err(|cause| broken_off(client, cause))? else { break };
        hash.update(&piece);
        bytes += piece.len() as u64;
        sink.write_all(&piece).await.map_err(unwritten)?;
    }
    sink.flush().await.map_err(unwritten)?;
    Ok(Saved { sha256: hexadecimal(hash.finalize()), bytes })
}

fn broken_off(client: &Client, cause: reqwest::Error) -> Error {
    let what = format!("the answer of {} broke off", client.address());
    Error::new(ErrorKind::Unavailable, what)
        .hint("Try again; what came is not all of it.")
        .source(cause.without_url())
}

/// The object of an answer.
pub(crate) async fn object<T: DeserializeOwned>(client: &Client, answer: Response) -> Result<T> {
    Ok(answer::object(client, answer).await?)
}

//! Between bodies and code that reads and writes without `async`.

use super::error::{Answer, Problem};
use super::stream::{Outgoing, Upload};
use axum::body::Bytes;
use cofferdam_core::{Error, ErrorKind, Result};
use std::io::{self, Read, Write};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;

/// How much is passed on at once.
const PIECE_BYTES: usize = 64 << 10;
/// How many pieces wait.
const WAITING_PIECES: usize = 4;

/// Lets `work` read a body to its end, on a thread of its own. Whatever is wrong with the body is what is
/// told, and what `work` made of the rest is dropped.
pub(crate) async fn read<T, W>(mut upload: Upload, work: W) -> Answer<T>
where
    T: Send + 'static,
    W: FnOnce(Incoming) -> Result<T> + Send + 'static,
{
    let (sender, pieces) = mpsc::channel(WAITING_PIECES);
    let source = Incoming { pieces, piece: Bytes::new() };
    let working = tokio::task::spawn_blocking(move || work(source));
    let fed = feed(&mut upload, sender).await;
    let done = working
        .await
        .map_err(|error| Problem::from(Error::new(ErrorKind::Io, "read the body").source(error)))?;
    match fed {
        Ok(()) => Ok(done?),
        Err(error) => Err(error),
    }
}

/// Passes the body on until its end, or until nobody wants more.
async fn feed(
    upload: &mut Upload,
    sender: mpsc::Sender<io::Result<Bytes>>,
) -> std::result::Result<(), Problem> {
    let mut wanted = true;
    loop {
        let mut piece = Vec::with_capacity(PIECE_BYTES);
        match upload.read_buf(&mut piece).await {
            Ok(0) => return Ok(()),
            // ORDER: the body is compared with its hash at its end, wherever the work stopped.
            Ok(_) if wanted => wanted = sender.send(Ok(piece.into())).await.is_ok(),
            Ok(_) => {}
            Err(error) => {
                let told = io::Error::other("the body is not whole");
                sender.send(Err(told)).await.ok();
                let error = Error::new(ErrorKind::Io, "read the body").source(error);
                return Err(upload.problem(error));
            }
        }
    }
}

/// A body, as it is read without `async`.
pub(crate) struct Incoming {
    pieces: mpsc::Receiver<io::Result<Bytes>>,
    piece: Bytes,
}

impl Read for Incoming {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() {
            match self.pieces.blocking_recv() {
                Some(piece) => self.piece = piece?,
                None => return Ok(0),
            }
        }
        let count = self.piece.len().min(room.len());
        let taken = self.piece.split_to(count);
        room.get_mut(..count).unwrap_or_default().copy_from_slice(&taken);
        Ok(count)
    }
}

/// An answer, as it is written without `async`. It ends when it is dropped.
pub(crate) struct Pieces {
    sender: mpsc::Sender<Bytes>,
    piece: Vec<u8>,
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.piece.extend_from_slice(bytes);
        if self.piece.len() >= PIECE_BYTES {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let piece = std::mem::take(&mut self.piece);
        if piece.is_empty() {
            return Ok(());
        }
        let gone = |_| io::Error::from(io::ErrorKind::BrokenPipe);
        self.sender.blocking_send(piece.into()).map_err(gone)
    }
}

/// Passes on to an answer what `work` writes.
pub(crate) async fn write<F>(mut out: Outgoing, work: impl FnOnce(Pieces) -> F) -> Result<()>
where
    F: Future<Output = Result<()>>,
{
    let (sender, mut pieces) = mpsc::channel::<Bytes>(WAITING_PIECES);
    let passing = async move {
        while let Some(piece) = pieces.recv().await {
            out.write_all(&piece)
                .await
                .map_err(|error| Error::new(ErrorKind::Io, "pass the answer on").source(error))?;
        }
        Ok(())
    };
    let (passed, worked) = tokio::join!(passing, work(Pieces { sender, piece: Vec::new() }));
    passed.and(worked)
}

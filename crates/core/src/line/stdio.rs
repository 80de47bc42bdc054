//! The standard streams of one command: what goes in and what comes out.

use crate::line::channel::{Channel, Received};
use crate::line::process::tell;
use crate::{Duplex, Error, Killer, ProcessEvent, ProcessInput, Result, Standard};
use cofferdam_wire::message::ToProcess;
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::mpsc;

/// Where a command's input goes.
pub(super) enum Sink {
    Nothing,
    Line(Channel),
    Terminal(WriteHalf<Box<dyn Duplex>>),
}

/// Where a command's output comes from.
pub(super) enum Source {
    Line(Channel),
    Terminal(ReadHalf<Box<dyn Duplex>>),
}

/// How much is read from a terminal at once; a terminal holds 4 KiB.
const TERMINAL_BYTES: usize = 16 << 10;

/// How much input is held for a command that does not read. Signals pass it; beyond it the caller
/// has to wait, and only a [`Killer`] passes.
const BACKLOG_BYTES: usize = 1 << 20;

/// What a terminal takes as the end of input.
const END_OF_TRANSMISSION: u8 = 4;

/// Passes output on until it ends. Goes on without a listener, so that the command is not stopped.
pub(super) async fn pump(
    source: Option<Source>,
    stream: Standard,
    events: mpsc::Sender<ProcessEvent>,
) {
    let Some(mut source) = source else { return };
    let mut offset = 0;
    while let Some(bytes) = source.next().await {
        let len = bytes.len() as u64;
        events.send(ProcessEvent::Output { stream, offset, bytes }).await.ok();
        offset += len;
    }
}

impl Source {
    async fn next(&mut self) -> Option<Vec<u8>> {
        match self {
            Self::Line(channel) => match channel.receive().await {
                Ok(Received::Data(bytes)) => Some(bytes),
                Ok(Received::Message(..) | Received::End) | Err(_) => None,
            },
            Self::Terminal(read) => {
                let mut bytes = vec![0; TERMINAL_BYTES];
                // A terminal that nobody holds open inside any more answers with an error: its end.
                let len = read.read(&mut bytes).await.unwrap_or(0);
                bytes.truncate(len);
                Some(bytes).filter(|bytes| !bytes.is_empty())
            }
        }
    }
}

impl Sink {
    /// Writes some of the bytes, and says how many. Nothing was written by a call that is given up.
    async fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        match self {
            Self::Nothing => Ok(bytes.len()),
            Self::Line(channel) => channel.send_some(bytes).await,
            Self::Terminal(write) => write.write(bytes).await.map_err(|error| {
                Error::new(crate::ErrorKind::Unavailable, "the terminal is gone").source(error)
            }),
        }
    }

    async fn end(&mut self) {
        match self {
            Self::Nothing => {}
            Self::Line(channel) => {
                channel.send_end().await.ok();
                *self = Self::Nothing;
            }
            Self::Terminal(write) => {
                write.write_all(&[END_OF_TRANSMISSION]).await.ok();
            }
        }
    }
}

/// Input that waits for its command.
#[derive(Default)]
struct Backlog {
    pieces: VecDeque<Vec<u8>>,
    /// How much of the first piece went.
    written: usize,
    bytes: usize,
    /// No more comes.
    closed: bool,
}

impl Backlog {
    fn put(&mut self, piece: Vec<u8>) {
        if !piece.is_empty() && !self.closed {
            self.bytes += piece.len();
            self.pieces.push_back(piece);
        }
    }

    fn front(&self) -> &[u8] {
        self.pieces.front().and_then(|piece| piece.get(self.written..)).unwrap_or_default()
    }

    fn advance(&mut self, written: usize) {
        self.written += written;
        self.bytes -= written;
        if self.pieces.pop_front_if(|piece| piece.len() <= self.written).is_some() {
            self.written = 0;
        }
    }
}

/// Does to a command what its caller asks for. Never ends by itself.
pub(super) async fn feed(
    control: Arc<Channel>,
    mut sink: Sink,
    mut inputs: mpsc::Receiver<ProcessInput>,
    killer: Killer,
) {
    let mut backlog = Backlog::default();
    let mut listening = true;
    loop {
        tokio::select! {
            biased;
            () = killer.killed() => tell(&control, ToProcess::Kill).await,
            written = sink.write(backlog.front()), if !backlog.front().is_empty() => {
                match written {
                    Ok(written) => backlog.advance(written),
                    Err(_) => {
                        sink = Sink::Nothing;
                    }
                }
                if backlog.closed && backlog.front().is_empty() {
                    sink.end().await;
                }
            }
            input = inputs.recv(), if listening && backlog.bytes < BACKLOG_BYTES => match input {
                Some(ProcessInput::Bytes(piece)) => backlog.put(piece),
                Some(ProcessInput::Signal(signal)) => tell(&control, ToProcess::Signal(signal)).await,
                Some(ProcessInput::Resize(size)) => tell(&control, ToProcess::Resize(size)).await,
                Some(ProcessInput::Kill) => tell(&control, ToProcess::Kill).await,
                closed @ (Some(ProcessInput::Close) | None) => {
                    listening = closed.is_some();
                    if !backlog.closed {
                        backlog.closed = true;
                        if backlog.front().is_empty() {
                            sink.end().await;
                        }
                    }
                }
            },
        }
    }
}

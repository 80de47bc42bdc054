//! A connection to a file worker, and the files behind it.

use super::failure::{error, refusal};
use super::stream::LinkStream;
use super::watch::LinkWatch;
use super::{Body, FileService, FileWatch, Reply};
use crate::{Error, ErrorKind, Result};
use async_trait::async_trait;
use cofferdam_wire::files::{
    Answer, Entry, Greeting, MAX_CONNECTIONS, MAX_ENTRIES, MAX_MESSAGE_BYTES, MAX_PATH_BYTES,
    MAX_PIECE_BYTES, Request, Watch, Why,
};
use cofferdam_wire::frame::{self, HEADER_BYTES, Header, Kind};
use serde::de::DeserializeOwned;
use std::future::poll_fn;
use std::io;
use std::os::unix::net::UnixStream as Socket;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;
use tokio::io::{AsyncBufRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep, timeout};

/// How long a worker may say nothing. It gives a sign of life while it works on much; the disk may
/// take this long for what it was given.
pub(super) const SILENT_FOR: Duration = Duration::from_secs(120);
/// How many connections are kept for the next request.
const KEPT_LINKS: usize = 2;
/// How many requests are under way at a time; further ones wait for their turn. With the watches, and two
/// for workers that are just ending, they are the connections that a sandbox takes.
const MAX_CALLS: usize = 8;
/// How many watches stand at a time. They may stand for days, so nobody waits for one to end.
pub(super) const MAX_WATCHES: usize = MAX_CONNECTIONS - MAX_CALLS - 2;
/// How long others may hold all the connections: another program, or workers that are just ending.
const FULL_FOR: Duration = Duration::from_secs(10);
/// The wait before a connection is asked for again.
const PAUSE: Duration = Duration::from_millis(10);
/// What is said where a sandbox takes no more connections.
const TOO_MANY: &str = "reach the sandbox's files: all connections to them are in use";
/// How much is read from the socket at once. A piece of a file is read past this.
const BUFFER_BYTES: usize = 16 << 10;

/// Opens connections to file workers of one sandbox.
#[async_trait]
pub trait FileDoor: Send + Sync {
    /// Opens one.
    async fn connect(&self) -> Result<FileLink>;

    /// Makes of a connection one that stays over a pause, and is a use of the sandbox as long as it is
    /// open.
    async fn hold(&self, link: FileLink) -> Result<FileLink> {
        Ok(link)
    }
}

/// Files that are reached by connections: a bounded number, whoever asks.
pub struct LinkedFiles<D> {
    door: D,
    kept: Mutex<Vec<FileLink>>,
    calls: Semaphore,
    watches: Arc<Semaphore>,
}

/// One connection to a file worker.
pub struct FileLink {
    pub(super) stream: BufReader<LinkStream>,
    /// What ends when the sandbox is put to sleep or ended by somebody else.
    lease: Option<UnixStream>,
    /// The newest generation that the worker speaks.
    generation: u32,
    pub(super) number: u32,
}

impl<D: FileDoor> LinkedFiles<D> {
    /// Files behind this door. Nothing is opened yet.
    pub fn new(door: D) -> Self {
        Self {
            door,
            kept: Mutex::default(),
            calls: Semaphore::new(MAX_CALLS),
            watches: Arc::new(Semaphore::new(MAX_WATCHES)),
        }
    }

    /// Waits until fewer requests are under way than may be. INVARIANT: who has a turn has one connection
    /// at most, and takes one that is kept before another is opened.
    async fn turn(&self) -> Result<SemaphorePermit<'_>> {
        let turn = timeout(SILENT_FOR, self.calls.acquire()).await;
        turn.ok().and_then(std::result::Result::ok).ok_or_else(|| {
            let what = format!("{MAX_CALLS} requests for its files have been under way too long");
            Error::new(ErrorKind::TimedOut, what)
                .hint("Look whether the sandbox is paused, and try again.")
        })
    }

    async fn link(&self) -> Result<FileLink> {
        let kept = || self.kept.lock().unwrap_or_else(PoisonError::into_inner).pop();
        while let Some(link) = kept() {
            if link.is_open() {
                return Ok(link);
            }
        }
        let give_up = Instant::now() + FULL_FOR;
        loop {
            match self.door.connect().await {
                Err(e) if is_too_many(&e) && Instant::now() < give_up => sleep(PAUSE).await,
                answer => return answer,
            }
        }
    }

    fn keep(&self, link: FileLink) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < KEPT_LINKS {
            kept.push(link);
        }
    }
}

#[async_trait]
impl<D: FileDoor> FileService for LinkedFiles<D> {
    async fn call(&self, request: &Request, body: Body<'_>) -> Result<Reply> {
        if let Request::Watch(_) = request {
            return Err(Error::new(ErrorKind::Usage, "a watch has no answer to wait for"));
        }
        let _turn = self.turn().await?;
        let mut link = self.link().await?;
        // A connection that fails, or a call that is given up, is never used again.
        let (answer, entries) = link.exchange(request, body).await?;
        self.keep(link);
        if let Answer::Failed(failure) = &answer {
            return Err(refusal(request, failure));
        }
        Ok(Reply { answer, entries })
    }

    async fn watch(&self, order: &Watch) -> Result<FileWatch> {
        // ORDER: whoever keeps an older sandbox does not know what a watch is, and is not asked.
        let place = Arc::clone(&self.watches).try_acquire_owned().map_err(|_| {
            let what = format!("{MAX_WATCHES} watches of the sandbox's files stand already");
            Error::new(ErrorKind::Unavailable, what).hint("End one first, or watch more with one.")
        })?;
        let link = {
            let _turn = self.turn().await?;
            self.link().await?
        };
        link.can(&Request::Watch(order.clone()))?;
        let link = self.door.hold(link).await?;
        Ok(FileWatch::new(Box::new(LinkWatch::begin(link, order, place).await?)))
    }

    async fn open(&self) -> Result<()> {
        let _turn = self.turn().await?;
        let link = self.link().await?;
        self.keep(link);
        Ok(())
    }
}

impl FileLink {
    /// Takes our end of a connection and hears the worker's greeting. The connection is of no use
    /// once `lease` is closed by the other side.
    pub async fn new(socket: Socket, lease: Option<UnixStream>) -> Result<Self> {
        let stream = LinkStream::new(socket).map_err(|e| {
            Error::new(ErrorKind::Io, "watch the connection to the file worker").source(e)
        })?;
        let stream = BufReader::with_capacity(BUFFER_BYTES, stream);
        let mut link = Self { stream, lease, generation: 0, number: 0 };
        let header = link.header().await?;
        if header.kind != Kind::Message {
            return Err(broken("it began with something else than a greeting"));
        }
        match link.message(header).await? {
            Greeting::Ready { generation: generation @ 1.. } => Ok(Self { generation, ..link }),
            Greeting::Ready { .. } => Err(broken("it speaks a generation that never was")),
            // No call failed: it is full.
            Greeting::Refused(failure) if failure.why == Why::Exhausted && failure.errno == 0 => {
                Err(Error::new(ErrorKind::Unavailable, TOO_MANY).hint("Make room, then try again."))
            }
            Greeting::Refused(failure) => Err(error("reach the sandbox's files", &failure)),
        }
    }

    /// Whether the other side has not hung up.
    fn is_open(&self) -> bool {
        let waits = |stream: &UnixStream| matches!(stream.try_read(&mut [0; 1]), Err(e) if e.kind() == io::ErrorKind::WouldBlock);
        self.stream.buffer().is_empty()
            && self.stream.get_ref().waits()
            && self.lease.as_ref().is_none_or(waits)
    }

    async fn exchange(
        &mut self,
        request: &Request,
        mut body: Body<'_>,
    ) -> Result<(Answer, Vec<Entry>)> {
        let out = self.frame_of(request)?;
        if let Body::Source(source) = &mut body {
            if let Some(answer) = self.upload(out, *source).await? {
                return Ok((answer, Vec::new()));
            }
        } else {
            self.send(&out).await?;
        }
        let mut taken = Taken::of(request);
        loop {
            if let Some(answer) = self.hear(&mut body, &mut taken).await? {
                return Ok((checked(answer)?, taken.entries));
            }
        }
    }

    /// Refuses what the worker does not know.
    fn can(&self, request: &Request) -> Result<()> {
        if request.since() > self.generation {
            let what = "the sandbox was made by an older Cofferdam, whose files cannot do this";
            return Err(Error::new(ErrorKind::Unsupported, what).hint("Make a new sandbox."));
        }
        Ok(())
    }

    /// The frame of a request, under a new number.
    fn frame_of(&mut self, request: &Request) -> Result<Vec<u8>> {
        self.can(request)?;
        self.number = self.number.wrapping_add(1).max(1);
        let text = serde_json::to_vec(request).unwrap_or_default();
        if text.len() > MAX_MESSAGE_BYTES {
            return Err(
                Error::new(ErrorKind::Usage, "the path is too long").hint("Name a shorter path.")
            );
        }
        let mut out = Vec::with_capacity(HEADER_BYTES + text.len());
        put(self.number, Kind::Message, &text, &mut out)?;
        Ok(out)
    }

    /// Sends a request that has no body.
    pub(super) async fn ask(&mut self, request: &Request) -> Result<()> {
        let out = self.frame_of(request)?;
        self.send(&out).await
    }

    /// Sends the request and all bytes of the source. An answer that comes before their end is the
    /// answer; the rest is not read then.
    async fn upload(
        &mut self,
        mut out: Vec<u8>,
        source: &mut (dyn tokio::io::AsyncRead + Send + Unpin),
    ) -> Result<Option<Answer>> {
        let mut piece = vec![0; MAX_PIECE_BYTES];
        let mut early = None;
        loop {
            let count = if early.is_some() { 0 } else { fill(source, &mut piece).await? };
            let is_last = count < piece.len();
            if count > 0 {
                put(self.number, Kind::Data, piece.get(..count).unwrap_or_default(), &mut out)?;
            }
            if is_last {
                put(self.number, Kind::End, b"", &mut out)?;
            }
            self.send(&out).await?;
            out.clear();
            if is_last {
                return early.map(checked).transpose();
            }
            while early.is_none() && self.has_news().await {
                early = self.hear(&mut Body::Nothing, &mut Taken::nothing()).await?;
            }
        }
    }

    /// Whether something has come already. It is looked at once, for a timer that is over at once still takes
    /// a millisecond, and this is asked between any two pieces.
    async fn has_news(&mut self) -> bool {
        // An error is found when it is read.
        poll_fn(|cx| Poll::Ready(Pin::new(&mut self.stream).poll_fill_buf(cx).is_ready())).await
    }

    /// Takes one frame. Answers the last word on the request, if it is that.
    async fn hear(&mut self, body: &mut Body<'_>, taken: &mut Taken) -> Result<Option<Answer>> {
        let header = self.header().await?;
        match header.kind {
            // A sign of life.
            Kind::Data if header.len == 0 => Ok(None),
            Kind::Data => {
                taken.bytes(header.len)?;
                let Body::Sink(sink) = body else {
                    return Err(broken("bytes came that were not asked for"));
                };
                let piece = self.body(header.len).await?;
                sink.write_all(&piece)
                    .await
                    .map_err(|e| Error::new(ErrorKind::Io, "pass on what was read").source(e))?;
                Ok(None)
            }
            Kind::Message => {
                let answer = self.message(header).await?;
                if let Answer::Entries(entries) = answer {
                    return taken.entries(entries).map(|()| None);
                }
                Ok(Some(answer))
            }
            Kind::Credit | Kind::End => Err(broken("it sent what no worker sends")),
        }
    }

    async fn header(&mut self) -> Result<Header> {
        let mut head = [0; HEADER_BYTES];
        in_time(self.stream.read_exact(&mut head)).await?;
        let header = Header::decode(head).map_err(|e| broken("a frame is wrong").source(e))?;
        // HOSTILE: both come from inside. Refuse before allocating.
        let most = match header.kind {
            Kind::Message => MAX_MESSAGE_BYTES,
            Kind::Data | Kind::Credit | Kind::End => MAX_PIECE_BYTES,
        };
        if header.len > most || header.channel != self.number {
            return Err(broken("a frame is too long, or of another request"));
        }
        Ok(header)
    }

    async fn body(&mut self, len: usize) -> Result<Vec<u8>> {
        let mut body = vec![0; len];
        in_time(self.stream.read_exact(&mut body)).await?;
        Ok(body)
    }

    async fn message<M: DeserializeOwned>(&mut self, header: Header) -> Result<M> {
        let body = self.body(header.len).await?;
        serde_json::from_slice(&body).map_err(|e| broken("a message is wrong").source(e))
    }

    async fn send(&mut self, bytes: &[u8]) -> Result<()> {
        in_time(self.stream.write_all(bytes)).await
    }
}

/// What a worker has sent of what it may send.
struct Taken {
    bytes_left: u64,
    entries_left: usize,
    entries: Vec<Entry>,
}

impl Taken {
    fn of(request: &Request) -> Self {
        let (bytes_left, entries_left) = match request {
            Request::Read(read) => {
                let most = read.length.unwrap_or(u64::MAX);
                (most.min(read.max_bytes.unwrap_or(u64::MAX)), 0)
            }
            Request::ReadMany(order) => (order.total_bytes, 0),
            Request::List(list) => (0, list.limit.min(MAX_ENTRIES)),
            Request::Write(_)
            | Request::Append(_)
            | Request::Stat { .. }
            | Request::MakeDirectory { .. }
            | Request::Move(_)
            | Request::Copy(_)
            | Request::Remove(_)
            | Request::SetMode { .. }
            | Request::Carry(_)
            | Request::Recover(_)
            | Request::CopyTree(_)
            | Request::Watch(_) => (0, 0),
        };
        let entries_left = usize::try_from(entries_left).unwrap_or(0);
        Self { bytes_left, entries_left, entries: Vec::new() }
    }

    fn nothing() -> Self {
        Self { bytes_left: 0, entries_left: 0, entries: Vec::new() }
    }

    fn bytes(&mut self, count: usize) -> Result<()> {
        let left = self.bytes_left.checked_sub(count as u64);
        self.bytes_left = left.ok_or_else(|| broken("more bytes came than were asked for"))?;
        Ok(())
    }

    fn entries(&mut self, entries: Vec<Entry>) -> Result<()> {
        let left = self.entries_left.checked_sub(entries.len());
        self.entries_left = left.ok_or_else(|| broken("more entries came than were asked for"))?;
        if entries.iter().any(|entry| entry.path.as_bytes().len() > MAX_PATH_BYTES) {
            return Err(broken("an entry has a path that no kernel takes"));
        }
        self.entries.extend(entries);
        Ok(())
    }
}

/// HOSTILE: what is shown as a hash is one, at least by its looks.
fn checked(answer: Answer) -> Result<Answer> {
    let hash = match &answer {
        Answer::Written(written) => Some(&written.sha256),
        Answer::Read(read) => read.sha256.as_ref(),
        Answer::Entry(_)
        | Answer::Entries(_)
        | Answer::Listed { .. }
        | Answer::Made { .. }
        | Answer::Done
        | Answer::Failed(_)
        | Answer::Carried { .. }
        | Answer::Recovered(_)
        | Answer::ReadMany(_)
        | Answer::Copied(_)
        | Answer::Events(_) => None,
    };
    let is_hash = |text: &String| text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit());
    match hash.is_none_or(is_hash) {
        true => Ok(answer),
        false => Err(broken("it said a hash that is none")),
    }
}

/// Reads until the place is full or the source ends.
async fn fill(
    source: &mut (dyn tokio::io::AsyncRead + Send + Unpin),
    place: &mut [u8],
) -> Result<usize> {
    let mut count = 0;
    while let Some(room) = place.get_mut(count..).filter(|room| !room.is_empty()) {
        match source.read(room).await {
            Ok(0) => break,
            Ok(more) => count += more,
            Err(e) => return Err(Error::new(ErrorKind::Io, "read what is to be written").source(e)),
        }
    }
    Ok(count)
}

fn put(channel: u32, kind: Kind, body: &[u8], out: &mut Vec<u8>) -> Result<()> {
    frame::encode(channel, kind, body, out)
        .map_err(|e| Error::new(ErrorKind::Usage, "the request is too long").source(e))
        .map_err(|error| error.hint("Ask for less at once."))
}

async fn in_time<T>(work: impl Future<Output = io::Result<T>>) -> Result<()> {
    match timeout(SILENT_FOR, work).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(e)) => Err(Error::new(ErrorKind::Unavailable, "the file worker is gone")
            .source(e)
            .hint("Look whether the sandbox still runs, then try again.")),
        Err(_) => Err(Error::new(ErrorKind::TimedOut, "the file worker does not answer")
            .hint("Look whether the sandbox is paused or out of memory.")),
    }
}

fn is_too_many(error: &Error) -> bool {
    error.kind == ErrorKind::Unavailable && error.message == TOO_MANY
}

pub(super) fn broken(what: &str) -> Error {
    Error::new(ErrorKind::Protocol, format!("the file worker broke the protocol: {what}"))
}

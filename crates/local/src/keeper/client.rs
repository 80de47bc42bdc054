//! One request to a keeper. Every wait has an end.

use super::idle::Idle;
use super::order::error;
use super::place::Place;
use super::talk::{Asked, Reply, Request, VERSION, encode};
use cofferdam_core::{Error, ErrorKind, ExecStatus, Result, SandboxId, SandboxRecord};
use cofferdam_wire::frame::{HEADER_BYTES, Header, Kind};
use cofferdam_wire::message::MAX_HANDED;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::time::{sleep, timeout};

/// How long a keeper may take for what it does at once.
pub(super) const AT_ONCE: Duration = Duration::from_secs(10);
/// How long it may take to start a command: the sandbox may have to wait for the processor.
pub(super) const STARTS_WITHIN: Duration = Duration::from_secs(60);
/// How long a sandbox may take to end: it may hold gigabytes.
pub(super) const ENDS_WITHIN: Duration = Duration::from_secs(90);
/// The pause before a keeper is called again that has too many callers.
const BUSY_PAUSE: Duration = Duration::from_millis(2);

/// A question to a keeper, on a connection of its own.
pub(super) struct Call<'a> {
    pub(super) socket: UnixStream,
    pub(super) id: &'a SandboxId,
    pub(super) within: Duration,
    external_id: &'a str,
    idle: &'a Idle,
}

impl<'a> Call<'a> {
    /// Calls the keeper of this sandbox and asks. The replies are due within `within` each.
    pub(super) async fn new(
        place: impl FnOnce() -> Result<Place>,
        (sandbox, idle): (&'a SandboxRecord, &'a Idle),
        (request, given): (Request, &[OwnedFd]),
        within: Duration,
    ) -> Result<Self, Trouble> {
        let (id, external_id) = (&sandbox.id, sandbox.external_id.as_str());
        let socket = match idle.take(external_id) {
            Some(socket) => socket,
            None => {
                let place = place()?;
                match timeout(AT_ONCE, connect(&place.socket())).await {
                    Ok(Ok(socket)) => socket,
                    Ok(Err(error)) => return Err(gone(id, error)),
                    Err(_) => return Err(late(id).into()),
                }
            }
        };
        let mut call = Self { socket, id, within, external_id, idle };
        let asked = Asked { version: VERSION, of: sandbox.external_id.clone(), request };
        let mut frame = Vec::new();
        encode(&asked, &mut frame).ok_or_else(|| {
            Error::new(ErrorKind::Usage, "the request is too long")
                .hint("Pass what is long by a file or by standard input.")
        })?;
        match timeout(AT_ONCE, write_with(&mut call.socket, &frame, given)).await {
            // A keeper that takes no more clients says so and hangs up before it hears anything.
            Ok(Ok(()) | Err(_)) => Ok(call),
            Err(_) => Err(late(id).into()),
        }
    }

    /// All was answered: the connection can be used again.
    pub(super) fn over(self) {
        self.idle.put(self.external_id, self.socket);
    }

    /// The next reply; a failure is an error.
    pub(super) async fn reply(&mut self) -> Result<Reply, Trouble> {
        let reply = async { Ok((read(&mut self.socket).await?, None)) };
        Ok(answered(self.id, self.within, reply).await?.0)
    }

    /// The reply, where there is nothing to say.
    pub(super) async fn done(mut self) -> Result<(), Trouble> {
        let reply = self.reply().await?;
        let Reply::Done = reply else { return Err(odd(self.id, &reply).into()) };
        self.over();
        Ok(())
    }

    /// Asks for more, after a reply that was the whole answer.
    pub(super) async fn ask_again(&mut self, request: Request) -> Result<(), Trouble> {
        let of = self.external_id.to_owned();
        let mut frame = Vec::new();
        encode(&Asked { version: VERSION, of, request }, &mut frame)
            .ok_or_else(|| Error::new(ErrorKind::Usage, "the request is too long"))?;
        match timeout(AT_ONCE, self.socket.write_all(&frame)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(gone(self.id, error)),
            Err(_) => Err(late(self.id).into()),
        }
    }

    /// The reply, where it is how a command stands.
    pub(super) async fn exec(mut self) -> Result<ExecStatus, Trouble> {
        let reply = self.reply().await?;
        let Reply::Exec(status) = reply else { return Err(odd(self.id, &reply).into()) };
        self.over();
        Ok(*status)
    }

    /// Waits until the keeper has gone.
    pub(super) async fn hung_up(mut self) -> Result<(), Trouble> {
        let mut rest = [0; 64];
        let gone = async { while !matches!(self.socket.read(&mut rest).await, Ok(0) | Err(_)) {} };
        timeout(self.within, gone).await.map_err(|_| late(self.id).into())
    }
}

/// A reply in time, and what came with it; a failure is an error.
pub(super) async fn answered(
    id: &SandboxId,
    within: Duration,
    reply: impl Future<Output = io::Result<(Reply, Option<OwnedFd>)>>,
) -> Result<(Reply, Option<OwnedFd>), Trouble> {
    match timeout(within, reply).await {
        Ok(Ok((Reply::Failed(body), _))) => Err(error(body).into()),
        Ok(Ok(reply)) => Ok(reply),
        Ok(Err(error)) if error.kind() == io::ErrorKind::InvalidData => {
            let what = format!("understand the keeper of {id}");
            Err(Error::new(ErrorKind::Protocol, what).source(error).into())
        }
        Ok(Err(error)) => Err(gone(id, error)),
        Err(_) => Err(late(id).into()),
    }
}

/// What a reply means that was not asked for.
pub(super) fn odd(id: &SandboxId, reply: &Reply) -> Error {
    Error::new(ErrorKind::Protocol, format!("the keeper of {id} said {reply:?}"))
}

/// Why there is no reply.
#[derive(Debug)]
pub(super) enum Trouble {
    /// There is no keeper, or none any more.
    NoKeeper(Error),
    /// Anything else.
    Failed(Error),
}

impl From<Trouble> for Error {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::NoKeeper(error) | Trouble::Failed(error) => error,
        }
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

fn gone(id: &SandboxId, why: io::Error) -> Trouble {
    let what = format!("nobody keeps sandbox {id} any more");
    Trouble::NoKeeper(Error::new(ErrorKind::Unavailable, what).source(why))
}

fn late(id: &SandboxId) -> Error {
    Error::new(ErrorKind::TimedOut, format!("the keeper of sandbox {id} does not answer"))
        .hint("Look whether it was stopped; killing it ends the sandbox.")
}

async fn connect(path: &str) -> io::Result<UnixStream> {
    loop {
        match UnixStream::connect(path).await {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => sleep(BUSY_PAUSE).await,
            other => return other,
        }
    }
}

/// Writes all of it, the descriptors with its first bytes.
async fn write_with(socket: &mut UnixStream, frame: &[u8], given: &[OwnedFd]) -> io::Result<()> {
    let mut sent = 0;
    while sent == 0 && !given.is_empty() {
        socket.writable().await?;
        match socket.try_io(Interest::WRITABLE, || send_with(socket, frame, given)) {
            Ok(count) => sent = count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    socket.write_all(frame.get(sent..).unwrap_or_default()).await
}

fn send_with(socket: &UnixStream, frame: &[u8], given: &[OwnedFd]) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_HANDED))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let given: Vec<BorrowedFd<'_>> = given.iter().map(AsFd::as_fd).collect();
    if !ancillary.push(SendAncillaryMessage::ScmRights(&given)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    let sent = rustix::net::sendmsg(socket, &[IoSlice::new(frame)], &mut ancillary, flags);
    sent.map_err(io::Error::from)
}

async fn read(socket: &mut UnixStream) -> io::Result<Reply> {
    let mut head = [0; HEADER_BYTES];
    socket.read_exact(&mut head).await?;
    let header = Header::decode(head).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?;
    if header.kind != Kind::Message {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut body = vec![0; header.len];
    socket.read_exact(&mut body).await?;
    serde_json::from_slice(&body).map_err(Into::into)
}

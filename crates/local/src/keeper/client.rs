//! One request to a keeper. Every wait has an end, which comes at once for a keeper that is stopped.

use super::backend::KeptBackend;
use super::idle::Idle;
use super::order::error;
use super::place::Place;
use super::silence::{SILENT_FOR, Silence, Silent, Whom};
use super::talk::{Asked, Reply, Request, VERSION, encode_asked};
use cofferdam_core::{
    DestroyReason, DurableBackend, Error, ErrorKind, ExecStatus, Result, SandboxId, SandboxRecord,
};
use cofferdam_wire::frame::{HEADER_BYTES, Header, Kind};
use cofferdam_wire::message::MAX_HANDED;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::pin;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::net::unix::{ReadHalf, WriteHalf};
use tokio::time::{sleep, timeout};

/// How long a keeper may take for what it does at once.
pub(super) const AT_ONCE: Duration = Duration::from_secs(10);
/// How long it may take to start a command: the sandbox may have to wait for the processor.
pub(super) const STARTS_WITHIN: Duration = Duration::from_secs(60);
/// How long a sandbox may take to end: it may hold gigabytes.
const ENDS_WITHIN: Duration = Duration::from_secs(90);
/// The pause before a keeper is called again that has too many callers.
const BUSY_PAUSE: Duration = Duration::from_millis(2);

/// A question to a keeper, on a connection of its own.
pub(super) struct Call<'a> {
    pub(super) socket: UnixStream,
    pub(super) whom: Whom<'a>,
    pub(super) within: Duration,
    idle: &'a Idle,
}

/// What one backend knows of keepers.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) idle: Idle,
    pub(super) silent: Silent,
}

impl<'a> Call<'a> {
    /// Calls the keeper of this sandbox and asks. The replies are due within `within` each.
    pub(super) async fn new(
        place: impl FnOnce() -> Result<Place>,
        (sandbox, known): (&'a SandboxRecord, &'a Known),
        (request, given): (Request, &[OwnedFd]),
        within: Duration,
    ) -> Result<Self, Trouble> {
        let whom = known.silent.of(&sandbox.id, &sandbox.external_id);
        whom.refuse_stopped()?;
        let socket = match known.idle.take(whom.external_id) {
            Some(socket) => socket,
            None => {
                // The path leads through a descriptor of the place.
                let place = place()?;
                let socket = place.socket();
                let connected = whom.wait((None, AT_ONCE), connect(&socket)).await?;
                connected.map_err(|error| unreached(whom.id, error))?
            }
        };
        let mut call = Self { socket, whom, within, idle: &known.idle };
        let asked = Asked { version: VERSION, of: sandbox.external_id.clone(), request };
        let mut frame = Vec::new();
        encode_asked(&asked, &mut frame).ok_or_else(|| {
            Error::new(ErrorKind::Usage, "the request is too long")
                .hint("Pass what is long by a file or by standard input.")
        })?;
        // A keeper that takes no more clients says so and hangs up before it hears anything.
        let _ = call.write(&frame, given).await?;
        Ok(call)
    }

    /// Writes a question, with descriptors.
    async fn write(&mut self, frame: &[u8], given: &[OwnedFd]) -> Result<io::Result<()>, Silence> {
        let (from, mut to) = self.socket.split();
        let written = write_with(from.as_ref(), &mut to, (frame, given));
        self.whom.wait((Some(from.as_ref()), AT_ONCE), written).await
    }

    /// All was answered: the connection can be used again.
    pub(super) fn over(self) {
        self.idle.put(self.whom.external_id, self.socket);
    }

    /// The next reply; a failure is an error.
    pub(super) async fn reply(&mut self) -> Result<Reply, Trouble> {
        let (mut from, to) = self.socket.split();
        let reply = async { Ok((read(&mut from).await?, None)) };
        Ok(answered(self.whom, (to.as_ref(), self.within), reply).await?.0)
    }

    /// The reply, where there is nothing to say.
    pub(super) async fn done(mut self) -> Result<(), Trouble> {
        let reply = self.reply().await?;
        let Reply::Done = reply else { return Err(odd(self.whom.id, &reply).into()) };
        self.over();
        Ok(())
    }

    /// Asks for more, after a reply that was the whole answer.
    pub(super) async fn ask_again(&mut self, request: Request) -> Result<(), Trouble> {
        let of = self.whom.external_id.to_owned();
        let mut frame = Vec::new();
        encode_asked(&Asked { version: VERSION, of, request }, &mut frame)
            .ok_or_else(|| Error::new(ErrorKind::Usage, "the request is too long"))
            .map_err(|error| error.hint("Ask for less at once."))?;
        self.write(&frame, &[]).await?.map_err(|error| gone(self.whom.id, error))
    }

    /// The reply, where it is how a command stands.
    pub(super) async fn exec(mut self) -> Result<ExecStatus, Trouble> {
        let reply = self.reply().await?;
        let Reply::Exec(status) = reply else { return Err(odd(self.whom.id, &reply).into()) };
        self.over();
        Ok(*status)
    }

    /// Waits until the keeper has gone.
    pub(super) async fn hung_up(mut self) -> Result<(), Trouble> {
        let mut rest = [0; 64];
        let (mut from, to) = self.socket.split();
        let gone = async { while !matches!(from.read(&mut rest).await, Ok(0) | Err(_)) {} };
        self.whom.wait((Some(to.as_ref()), self.within), gone).await.map_err(Trouble::from)
    }
}

/// A reply in time, and what came with it; a failure is an error.
pub(super) async fn answered(
    whom: Whom<'_>,
    (socket, within): (&UnixStream, Duration),
    reply: impl Future<Output = io::Result<(Reply, Option<OwnedFd>)>>,
) -> Result<(Reply, Option<OwnedFd>), Trouble> {
    let reply = whom.wait((Some(socket), within), reply).await?;
    whom.answered();
    match reply {
        Ok((Reply::Failed(body), _)) => Err(error(body).into()),
        Ok(reply) => Ok(reply),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            let what = format!("understand the keeper of {}", whom.id);
            Err(Error::new(ErrorKind::Protocol, what).source(error).into())
        }
        Err(error) => Err(gone(whom.id, error)),
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
    /// There is one that does not answer.
    Silent(Silence),
    /// Anything else.
    Failed(Error),
}

impl From<Trouble> for Error {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::NoKeeper(error) | Trouble::Failed(error) => error,
            Trouble::Silent(silence) => silence.into(),
        }
    }
}

impl From<Silence> for Trouble {
    fn from(silence: Silence) -> Self {
        Self::Silent(silence)
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

fn gone(id: &SandboxId, why: io::Error) -> Trouble {
    let what = format!("nobody keeps sandbox {id} any more");
    let error = Error::new(ErrorKind::Unavailable, what);
    Trouble::NoKeeper(
        error.hint("Ask again: another sandbox is made where one is needed.").source(why),
    )
}

/// What a connection that was not made means. Only what is said of the socket's own name is of a keeper that is gone: what
/// the caller lacks, descriptors or memory, says nothing of it, and a sandbox that is taken for lost is ended.
fn unreached(id: &SandboxId, why: io::Error) -> Trouble {
    match Errno::from_io_error(&why) {
        Some(Errno::CONNREFUSED | Errno::NOENT | Errno::NOTDIR) => gone(id, why),
        _ => {
            let what = format!("the keeper of sandbox {id} cannot be asked now");
            let error = Error::new(ErrorKind::Unavailable, what).source(why);
            Trouble::Failed(error.hint("Ask again; the sandbox is as it was."))
        }
    }
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
async fn write_with(
    socket: &UnixStream,
    to: &mut WriteHalf<'_>,
    (frame, given): (&[u8], &[OwnedFd]),
) -> io::Result<()> {
    let mut sent = 0;
    while sent == 0 && !given.is_empty() {
        socket.writable().await?;
        match socket.try_io(Interest::WRITABLE, || send_with(socket, frame, given)) {
            Ok(count) => sent = count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    to.write_all(frame.get(sent..).unwrap_or_default()).await
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

async fn read(socket: &mut ReadHalf<'_>) -> io::Result<Reply> {
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

impl KeptBackend {
    /// Asks a keeper for the end, and waits until it has gone.
    ///
    /// ORDER: first for what it answers at once. An end may take long, and one that hangs is not given as
    /// long.
    pub(super) async fn ask_to_end(
        &self,
        sandbox: &SandboxRecord,
        reason: DestroyReason,
    ) -> Result<(), Trouble> {
        let mut call = self.call(sandbox, Request::Status, AT_ONCE).await?;
        call.reply().await?;
        call.within = ENDS_WITHIN;
        call.ask_again(Request::Destroy(reason)).await?;
        call.reply().await?;
        call.hung_up().await
    }

    /// How a command stands that was asked for, as long as somebody is there to start it.
    pub(super) async fn started(
        &self,
        sandbox: &SandboxRecord,
        call: Call<'_>,
    ) -> Result<ExecStatus> {
        let mut started = pin!(call.exec());
        if let Ok(done) = timeout(SILENT_FOR, &mut started).await {
            return Ok(done?);
        }
        // It may have to wait for the processor; a keeper that hangs does not answer this either.
        self.status(sandbox).await?;
        Ok(started.await?)
    }
}

#[cfg(test)]
mod tests {
    use super::super::program::CarriedProgram;
    use super::super::talk::encode;
    use super::*;
    use cofferdam_core::{Basis, Degree, Enforced, SandboxStatus};

    fn record() -> SandboxRecord {
        let [files, network, processes, limits, environment] = [Degree::None; 5];
        let (reasons, basis) = (Vec::new(), Basis::Planned);
        SandboxRecord {
            id: SandboxId::new("a").unwrap(),
            backend: "local".to_owned(),
            external_id: "x".to_owned(),
            workspace: "/workspace".to_owned(),
            enforced: Enforced { files, network, processes, limits, environment, reasons, basis },
            layer: None,
        }
    }

    /// Answers each question alike, until nobody asks any more. Says how many there were.
    async fn keep(mut socket: UnixStream, reply: Reply) -> usize {
        let mut answer = Vec::new();
        encode(&reply, &mut answer).unwrap();
        for asked in 0.. {
            let mut head = [0; HEADER_BYTES];
            if socket.read_exact(&mut head).await.is_err() {
                return asked;
            }
            let mut body = vec![0; Header::decode(head).unwrap().len];
            socket.read_exact(&mut body).await.unwrap();
            socket.write_all(&answer).await.unwrap();
        }
        0
    }

    #[tokio::test]
    async fn a_keeper_that_ends_amid_an_answer_is_told_with_what_helps() {
        let program = CarriedProgram { bytes: b"", mark: "" };
        let backend = KeptBackend::new(program, std::env::temp_dir().join("cofferdam-no-home"));
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let keeper = tokio::spawn(async move {
            let mut asked = [0; HEADER_BYTES];
            theirs.read_exact(&mut asked).await.unwrap();
        });
        let record = record();
        backend.known.idle.put(&record.external_id, ours);
        let mut call = backend.call(&record, Request::Status, AT_ONCE).await.ok().unwrap();
        keeper.await.unwrap();
        let Err(Trouble::NoKeeper(error)) = call.reply().await else { panic!("an answer") };
        assert_eq!(error.kind, ErrorKind::Unavailable);
        assert!(error.hint.unwrap().starts_with("Ask again"));
    }

    #[test]
    fn only_a_socket_that_nobody_listens_at_tells_of_a_keeper_that_is_gone() {
        let met = |errno: Errno| unreached(&record().id, errno.into());
        for errno in [Errno::CONNREFUSED, Errno::NOENT, Errno::NOTDIR] {
            assert!(matches!(met(errno), Trouble::NoKeeper(_)), "{errno}");
        }
        for errno in [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::ACCESS, Errno::INTR] {
            let Trouble::Failed(error) = met(errno) else { panic!("{errno}: it is not gone") };
            assert_eq!(error.kind, ErrorKind::Unavailable, "{errno}");
        }
    }

    #[tokio::test]
    async fn questions_go_over_one_connection() {
        let program = CarriedProgram { bytes: b"", mark: "" };
        let backend = KeptBackend::new(program, std::env::temp_dir().join("cofferdam-no-home"));
        let (ours, theirs) = UnixStream::pair().unwrap();
        let keeper = tokio::spawn(keep(theirs, Reply::Status { paused: false }));
        let record = record();
        backend.known.idle.put(&record.external_id, ours);
        for _ in 0..3 {
            // Without the connection there is nobody to ask.
            assert_eq!(backend.status(&record).await.unwrap(), SandboxStatus::Running);
        }
        drop(backend);
        assert_eq!(keeper.await.unwrap(), 3);
    }
}

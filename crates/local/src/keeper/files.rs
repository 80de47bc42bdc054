//! Connections to the files of a kept sandbox, and to its ports.
//!
//! The keeper makes a pair of sockets, hands one end down its line to process 1, and the other to its
//! client. From then on it carries nothing: it only knows, by the client's own connection, that the
//! sandbox is in use.

use super::backend::KeptBackend;
use super::client::{AT_ONCE, Call, Trouble, answered, odd};
use super::keep::Keeper;
use super::serve::Conn;
use super::talk::{Reply, Request};
use crate::backend::receive;
use crate::conversation::pair;
use async_trait::async_trait;
use cofferdam_core::files::{FileDoor, FileLink, LinkedFiles};
use cofferdam_core::line::file_request;
use cofferdam_core::{Error, ErrorKind, Result, SandboxId, SandboxRecord};
use cofferdam_wire::frame::{HEADER_BYTES, Header, Kind};
use cofferdam_wire::message::{HostOpens, Port};
use rustix::fd::OwnedFd;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::{fmt, io};
use tokio::io::{AsyncReadExt, Interest};
use tokio::net::UnixStream;
use tokio::net::unix::ReadHalf;

impl Keeper<'_> {
    /// Gives a client a connection to a file worker, which the client keeps in use by its own.
    pub(super) fn open_files(&mut self, number: u64) -> Result<()> {
        let request = file_request(self.assembly.planned.cwd.as_ref());
        self.open(number, &request)
    }

    /// Gives a client a connection to a port inside, which the client keeps in use by its own.
    pub(super) fn open_port(&mut self, number: u64, port: u16) -> Result<()> {
        self.open(number, &HostOpens::Port(Port { port }))
    }

    fn open(&mut self, number: u64, request: &HostOpens) -> Result<()> {
        self.refuse_while_paused()?;
        let (ours, theirs) = pair()?;
        let channel = self.execs.take_channel();
        self.touch();
        self.line.message(channel, request, vec![theirs]);
        let handed =
            self.conns.get_mut(&number).map(|conn| conn.wire.hand_over(&Reply::Done, &ours));
        match handed {
            Some(Ok(())) => Ok(()),
            Some(Err(_)) | None => {
                Err(Error::new(ErrorKind::Unavailable, "hand over the connection"))
            }
        }
    }

    /// Lets go of those who have connections to files, but for watches. A request that is under way goes on when the
    /// sandbox does; the next one needs a connection of its own.
    pub(super) fn hang_up_files(&mut self) {
        self.conns.retain(|_, conn| !Conn::has_files(conn));
    }

    /// Lets go of all for whom a process in the sandbox works.
    pub(super) fn hang_up_workers(&mut self) {
        self.conns.retain(|_, conn| !Conn::has_worker(conn));
    }
}

/// The files of the sandboxes that somebody has in use here: the bounds on connections are a sandbox's, whoever
/// of this process reaches its files. Clones are the same.
#[derive(Clone, Default)]
pub(super) struct FilesInUse(Arc<Mutex<HashMap<Whose, Weak<KeptFiles>>>>);

/// A sandbox by its id, and the very one of those that had it.
type Whose = (SandboxId, String);
type KeptFiles = LinkedFiles<KeptDoor>;

impl fmt::Debug for FilesInUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FilesInUse").finish_non_exhaustive()
    }
}

impl FilesInUse {
    /// Those of this sandbox, the same for all who have them at a time.
    pub(super) fn of(&self, backend: &KeptBackend, sandbox: &SandboxRecord) -> Arc<KeptFiles> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let whose = (sandbox.id.clone(), sandbox.external_id.clone());
        if let Some(files) = all.get(&whose).and_then(Weak::upgrade) {
            return files;
        }
        // Or those that nobody has any more would be all that there ever were.
        all.retain(|_, files| files.strong_count() > 0);
        let files = Arc::new(LinkedFiles::new(KeptDoor::new(backend, sandbox)));
        all.insert(whose, Arc::downgrade(&files));
        files
    }
}

/// The way to the files of one kept sandbox.
pub(super) struct KeptDoor {
    backend: KeptBackend,
    sandbox: SandboxRecord,
}

impl KeptDoor {
    pub(super) fn new(backend: &KeptBackend, sandbox: &SandboxRecord) -> Self {
        Self { backend: backend.clone(), sandbox: sandbox.clone() }
    }
}

#[async_trait]
impl FileDoor for KeptDoor {
    async fn connect(&self) -> Result<FileLink> {
        let call = self.backend.call(&self.sandbox, Request::Files, AT_ONCE).await?;
        let (socket, lease) = call.connection().await?;
        FileLink::new(socket.into(), Some(lease)).await
    }

    async fn hold(&self, link: FileLink) -> Result<FileLink> {
        drop(link);
        let call = self.backend.call(&self.sandbox, Request::WatchFiles, AT_ONCE).await?;
        let (socket, lease) = call.connection().await?;
        FileLink::new(socket.into(), Some(lease)).await
    }
}

impl Call<'_> {
    /// The reply, where it is a connection. The call itself goes on until it is dropped.
    pub(super) async fn connection(mut self) -> Result<(OwnedFd, UnixStream), Trouble> {
        let (mut from, to) = self.socket.split();
        let reply = read_with_descriptor(to.as_ref(), &mut from);
        match answered(self.whom, (to.as_ref(), self.within), reply).await? {
            (Reply::Done, Some(socket)) => Ok((socket, self.socket)),
            (reply, _) => Err(odd(self.whom.id, &reply).into()),
        }
    }
}

async fn read_with_descriptor(
    socket: &UnixStream,
    from: &mut ReadHalf<'_>,
) -> io::Result<(Reply, Option<OwnedFd>)> {
    let mut head = [0; HEADER_BYTES];
    let mut count = 0;
    let mut came = Vec::new();
    while let Some(room) = head.get_mut(count..).filter(|room| !room.is_empty()) {
        socket.readable().await?;
        let take = || receive(socket, room, &mut came).map_err(io::Error::from);
        match socket.try_io(Interest::READABLE, take) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(more) => count += more,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    let header = Header::decode(head).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?;
    if header.kind != Kind::Message {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut body = vec![0; header.len];
    from.read_exact(&mut body).await?;
    Ok((serde_json::from_slice(&body)?, came.pop()))
}

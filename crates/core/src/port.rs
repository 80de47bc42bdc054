//! Connections to ports inside a sandbox.

use crate::{Duplex, Error, ErrorKind, Result};
use cofferdam_wire::frame::{HEADER_BYTES, Header, Kind};
use cofferdam_wire::port::{MAX_PORT_ANSWER_BYTES, MAX_PORT_CONNECTIONS, PortAnswer};
use std::io;
use std::os::unix::net::UnixStream as Socket;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;
use tokio::time::timeout;

/// How long the sandbox may take to connect. Longer than a full queue inside is waited for.
const ANSWERED_WITHIN: Duration = Duration::from_secs(30);

/// A connection to a port inside that was asked for, and not answered yet.
#[derive(Debug)]
pub struct PortLink {
    stream: UnixStream,
    lease: Option<UnixStream>,
    port: u16,
}

impl PortLink {
    /// Our end of a connection that was asked for. The sandbox counts as used until `lease` is
    /// dropped.
    pub fn new(socket: Socket, lease: Option<UnixStream>, port: u16) -> Result<Self> {
        let watched = socket.set_nonblocking(true).and_then(|()| UnixStream::from_std(socket));
        let stream = watched.map_err(|e| {
            Error::new(ErrorKind::Io, format!("watch the connection to port {port}")).source(e)
        })?;
        Ok(Self { stream, lease, port })
    }

    /// The connection, once a program inside has taken it. It is unavailable where nobody listens.
    pub async fn connected(mut self) -> Result<PortStream> {
        let port = self.port;
        let what = format!("connect to port {port} of the sandbox");
        let answer = match timeout(ANSWERED_WITHIN, hear(&mut self.stream)).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => {
                return Err(Error::new(ErrorKind::Unavailable, what).source(error));
            }
            Err(_) => return Err(Error::new(ErrorKind::TimedOut, what)),
        };
        let unavailable = |why: String| Error::new(ErrorKind::Unavailable, why);
        match answer {
            PortAnswer::Connected => {
                Ok(PortStream { bytes: Box::new(self.stream), _lease: self.lease })
            }
            PortAnswer::NobodyListens => {
                Err(unavailable(format!("nobody listens on port {port} of the sandbox"))
                    .hint("Start the server inside first, on 127.0.0.1, ::1 or all addresses."))
            }
            PortAnswer::TooMany => {
                let most = MAX_PORT_CONNECTIONS;
                Err(unavailable(format!("{most} connections to ports of the sandbox are open"))
                    .hint("Close one, or try again later."))
            }
            PortAnswer::Failed { call, errno } => {
                let error = io::Error::from_raw_os_error(errno);
                Err(unavailable(format!("{call} in the sandbox")).source(error))
            }
        }
    }
}

async fn hear(stream: &mut UnixStream) -> io::Result<PortAnswer> {
    let invalid = |why| io::Error::new(io::ErrorKind::InvalidData, why);
    let mut head = [0; HEADER_BYTES];
    stream.read_exact(&mut head).await?;
    let header = Header::decode(head).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?;
    if header.kind != Kind::Message || header.len > MAX_PORT_ANSWER_BYTES {
        return Err(invalid("the connection began with something else than an answer"));
    }
    let mut body = vec![0; header.len];
    stream.read_exact(&mut body).await?;
    serde_json::from_slice(&body).map_err(io::Error::from)
}

/// A connection to a program inside. Dropping it closes it.
pub struct PortStream {
    bytes: Box<dyn Duplex>,
    /// What keeps the sandbox from falling asleep.
    _lease: Option<UnixStream>,
}

impl PortStream {
    /// A connection over something else. For those who implement a backend.
    pub fn over(bytes: impl Duplex + 'static) -> Self {
        Self { bytes: Box::new(bytes), _lease: None }
    }
}

impl std::fmt::Debug for PortStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PortStream").finish_non_exhaustive()
    }
}

impl AsyncRead for PortStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.bytes).poll_read(context, buffer)
    }
}

impl AsyncWrite for PortStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.bytes).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.bytes).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.bytes).poll_shutdown(context)
    }
}

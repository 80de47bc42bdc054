//! One connection over standard input and output, with a sandbox of its own.

use crate::MAX_MESSAGE_BYTES;
use crate::bounded::Watched;
use crate::server::{MAX_CALLS_AT_ONCE, Reach, Reached, Server, refused, settle};
use cofferdam_core::{Error, ErrorKind, Result};
use cofferdam_tools::Toolbox;
use rmcp::RoleServer;
use rmcp::model::{ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::service::{
    RequestContext, RxJsonRpcMessage, ServerInitializeError, TxJsonRpcMessage, serve_server_with_ct,
};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio_util::sync::CancellationToken;

/// How long calls that were given up may take to end: commands are killed, and that is waited for.
const SETTLING: Duration = Duration::from_secs(30);
/// How often the lease of the connection's sandbox is renewed: far more often than it is over.
const RENEWAL: Duration = Duration::from_secs(6 * 3600);

/// Serves one client until its stream ends or `stop` does. What was asked for by then and is not
/// done within some seconds is canceled. Never closes the toolbox: that is its maker's to do, when
/// this returns.
pub async fn serve(
    toolbox: Arc<Toolbox>,
    (read, write): (
        impl AsyncRead + Send + Unpin + 'static,
        impl AsyncWrite + Send + Unpin + 'static,
    ),
    stop: impl Future<Output = ()>,
) -> Result<()> {
    let at_work = Arc::new(Semaphore::new(MAX_CALLS_AT_ONCE));
    let reach = One { toolbox: Arc::clone(&toolbox), at_work: Arc::clone(&at_work) };
    let server = Server::new(&toolbox, Arc::new(reach)).await?;
    let given_up = CancellationToken::new();
    let served = converse(server, Wire::new(read, write), given_up.clone());
    tokio::pin!(served, stop);
    let result = tokio::select! {
        result = &mut served => result,
        () = renew(&toolbox) => Ok(()),
        () = &mut stop => {
            given_up.cancel();
            served.await
        }
    };
    settle(&at_work, SETTLING).await;
    result
}

/// Keeps the sandbox of the connection as long as the connection lasts. Never ends.
async fn renew(toolbox: &Toolbox) {
    loop {
        tokio::time::sleep(RENEWAL).await;
        // The next one comes long before the lease is over.
        toolbox.sessions().renew_owned().await.ok();
    }
}

async fn converse(
    server: Server,
    wire: Wire<impl AsyncRead + Send + Unpin + 'static, impl AsyncWrite + Send + Unpin + 'static>,
    given_up: CancellationToken,
) -> Result<()> {
    let running = match serve_server_with_ct(server, wire, given_up).await {
        Ok(running) => running,
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {
            return Ok(());
        }
        Err(error) => {
            return Err(Error::new(ErrorKind::Protocol, "begin a connection")
                .source(error)
                .hint("Begin with `initialize`, or with requests that carry their own metadata."));
        }
    };
    match running.waiting().await {
        Ok(_) => Ok(()),
        Err(cause) => Err(Error::new(ErrorKind::Io, "serve a connection").source(cause)),
    }
}

/// The one toolbox of a connection.
struct One {
    toolbox: Arc<Toolbox>,
    at_work: Arc<Semaphore>,
}

impl Reach for One {
    fn reach(&self, _: &RequestContext<RoleServer>) -> Result<Reached> {
        let (toolbox, at_work) = (Arc::clone(&self.toolbox), Arc::clone(&self.at_work));
        Ok(Reached { toolbox, at_work })
    }
}

/// Messages line by line. One that is too long is answered and not read.
struct Wire<R: AsyncRead + Unpin, W: AsyncWrite> {
    lines: AsyncRwTransport<RoleServer, Watched<R>, W>,
    too_long: UnboundedReceiver<Option<RequestId>>,
}

impl<R, W> Wire<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    fn new(read: R, write: W) -> Self {
        let (say, too_long) = unbounded_channel();
        let lines = AsyncRwTransport::new_server(Watched::new(read, say), write)
            .with_max_line_length(MAX_MESSAGE_BYTES);
        Self { lines, too_long }
    }
}

fn too_long(id: Option<RequestId>) -> ServerJsonRpcMessage {
    let what = format!("the message has more than {MAX_MESSAGE_BYTES} bytes");
    let error = Error::new(ErrorKind::TooLarge, what).hint("Send it in parts.");
    let code = rmcp::model::ErrorCode::INVALID_REQUEST;
    JsonRpcMessage::error(ErrorData { code, ..refused(&error) }, id)
}

impl<R, W> Transport<RoleServer> for Wire<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        self.lines.send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let message = tokio::select! {
                biased;
                Some(id) = self.too_long.recv() => {
                    // Beside what is read: this future may be dropped at any point.
                    tokio::spawn(self.lines.send(too_long(id)));
                    continue;
                }
                message = self.lines.receive() => message,
            };
            if message.is_none() {
                while let Ok(id) = self.too_long.try_recv() {
                    self.lines.send(too_long(id)).await.ok();
                }
            }
            return message;
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.lines.close().await
    }
}

//! One connection over standard input and output, with a sandbox of its own.

use crate::server::{AtWork, Reach, Reached, Server};
use crate::wire::{SETTLING, Wire};
use cofferdam_core::{Error, ErrorKind, Result};
use cofferdam_tools::Toolbox;
use rmcp::RoleServer;
use rmcp::service::{RequestContext, ServerInitializeError, serve_server_with_ct};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// How often the lease of the connection's sandbox is renewed: far more often than it is over.
const RENEWAL: Duration = Duration::from_secs(6 * 3600);

/// How long a client may take to read what was answered by the time of a signal. Who starts a server waits some two
/// seconds for its end.
const READ_WITHIN: Duration = Duration::from_secs(1);

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
    let at_work = AtWork::new(CancellationToken::new());
    let reach = One { toolbox: Arc::clone(&toolbox), at_work: at_work.clone() };
    let server = Server::new(&toolbox, Arc::new(reach)).await?;
    let (stopped, shut) = (CancellationToken::new(), CancellationToken::new());
    let write = Shut { inner: write, shut: Box::pin(shut.clone().cancelled_owned()) };
    let wire = Wire::new(read, write, at_work.given_up.clone());
    let served = converse(server, wire, stopped.clone());
    tokio::pin!(served, stop);
    let given_up = at_work.given_up.clone();
    let result = tokio::select! {
        result = &mut served => result,
        () = renew(&toolbox) => Ok(()),
        () = &mut stop => {
            given_up.cancel();
            stopped.cancel();
            read_in_time(&at_work, served, &shut).await
        }
        // Its stream has ended, and what it asked for had its time.
        () = given_up.cancelled() => read_in_time(&at_work, served, &shut).await,
    };
    at_work.settle(SETTLING).await;
    result
}

/// The end of a connection whose requests are given up. A client that reads nothing would be waited for without an end.
async fn read_in_time(
    at_work: &AtWork,
    served: impl Future<Output = Result<()>>,
    shut: &CancellationToken,
) -> Result<()> {
    let patience = async {
        at_work.settle(SETTLING).await;
        tokio::time::sleep(READ_WITHIN).await;
    };
    tokio::select! {
        result = served => result,
        () = patience => {
            // Nothing that is still to be told holds up the end of the process.
            shut.cancel();
            Ok(())
        }
    }
}

/// Where answers go, until nobody may wait for that any more.
struct Shut<W> {
    inner: W,
    shut: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl<W> Shut<W> {
    fn check(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        match self.shut.as_mut().poll(context) {
            Poll::Ready(()) => Err(io::ErrorKind::BrokenPipe.into()),
            Poll::Pending => Ok(()),
        }
    }
}

impl<W: AsyncWrite + Unpin> AsyncWrite for Shut<W> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check(context)?;
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check(context)?;
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check(context)?;
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
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
    stopped: CancellationToken,
) -> Result<()> {
    let running = match serve_server_with_ct(server, wire, stopped).await {
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
    at_work: AtWork,
}

impl Reach for One {
    fn reach(&self, _: &RequestContext<RoleServer>) -> Result<Reached> {
        let (toolbox, at_work) = (Arc::clone(&self.toolbox), self.at_work.clone());
        let given_up = at_work.given_up.clone();
        // The SDK hears itself what is canceled.
        Ok(Reached { toolbox, at_work, given_up, known: None })
    }
}

//! Messages line by line, and the end of a connection.

use crate::MAX_MESSAGE_BYTES;
use crate::bounded::Watched;
use crate::server::refused;
use cofferdam_core::{Error, ErrorKind};
use rmcp::RoleServer;
use rmcp::model::{
    ClientNotification, ErrorCode, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use std::collections::HashSet;
use std::future::Future;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How long requests that are at work when the client's stream ends may go on: it may have said all
/// that it has to say and still listen. Clients that end a server wait for some two seconds, then say
/// so by a signal.
pub(crate) const GRACE: Duration = Duration::from_secs(5);
/// How long requests that were given up may take to end: commands are killed, and that is waited for.
pub(crate) const SETTLING: Duration = Duration::from_secs(30);

/// Messages line by line. One that is too long is answered and not read. The end of the stream is told
/// when every request was answered, or was given up.
pub(crate) struct Wire<R: AsyncRead + Unpin, W: AsyncWrite> {
    lines: AsyncRwTransport<RoleServer, Watched<R>, W>,
    too_long: UnboundedReceiver<Option<RequestId>>,
    /// The requests without an answer.
    open: watch::Sender<HashSet<RequestId>>,
    /// When the stream ended.
    ended: Option<Instant>,
    given_up: CancellationToken,
}

impl<R, W> Wire<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    /// What is at work when the stream has ended is ended by `given_up`.
    pub(crate) fn new(read: R, write: W, given_up: CancellationToken) -> Self {
        let (say, too_long) = unbounded_channel();
        let lines = AsyncRwTransport::new_server(Watched::new(read, say), write)
            .with_max_line_length(MAX_MESSAGE_BYTES);
        let open = watch::Sender::new(HashSet::new());
        Self { lines, too_long, open, ended: None, given_up }
    }

    /// The next message, until the stream ends.
    async fn next(&mut self) -> Option<RxJsonRpcMessage<RoleServer>>
    where
        R: 'static,
    {
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

    /// Remembers which requests are to be answered.
    fn note(&self, message: &RxJsonRpcMessage<RoleServer>) {
        match message {
            JsonRpcMessage::Request(request) => {
                self.open.send_if_modified(|open| open.insert(request.id.clone()));
            }
            JsonRpcMessage::Notification(told) => {
                if let ClientNotification::CancelledNotification(canceled) = &told.notification
                    && let Some(id) = &canceled.params.request_id
                {
                    // Nobody wants its answer any more.
                    self.open.send_if_modified(|open| open.remove(id));
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
    }
}

pub(crate) fn too_long(id: Option<RequestId>) -> ServerJsonRpcMessage {
    let what = format!("the message has more than {MAX_MESSAGE_BYTES} bytes");
    let error = Error::new(ErrorKind::TooLarge, what).hint("Send it in parts.");
    JsonRpcMessage::error(ErrorData { code: ErrorCode::INVALID_REQUEST, ..refused(&error) }, id)
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
        let answered = match &message {
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        let (sent, open) = (self.lines.send(message), self.open.clone());
        async move {
            let result = sent.await;
            if let Some(id) = answered {
                open.send_if_modified(|open| open.remove(&id));
            }
            result
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        if self.ended.is_none() {
            if let Some(message) = self.next().await {
                self.note(&message);
                return Some(message);
            }
            self.ended = Some(Instant::now());
        }
        // This future may be dropped and made again for every answer that is sent meanwhile.
        let ended = self.ended.unwrap_or_else(Instant::now);
        let mut open = self.open.subscribe();
        tokio::select! {
            _ = open.wait_for(HashSet::is_empty) => {}
            () = tokio::time::sleep_until(ended + GRACE) => {}
            () = self.given_up.cancelled() => {}
        }
        self.given_up.cancel();
        let answered = open.wait_for(HashSet::is_empty);
        tokio::time::timeout_at(ended + GRACE + SETTLING, answered).await.ok();
        None
    }

    async fn close(&mut self) -> io::Result<()> {
        self.lines.close().await
    }
}

//! Messages line by line, and the end of a connection.

use crate::MAX_MESSAGE_BYTES;
use crate::bounded::Watched;
use crate::lines::Lines;
use crate::message::fault;
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
use tokio::io::{AsyncRead, AsyncWrite, Empty, empty};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// What some programs lead a text with.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";
/// How long requests that are at work when the client's stream ends may go on: it may have said all
/// that it has to say and still listen. Clients that end a server wait for some two seconds, then say
/// so by a signal.
pub(crate) const GRACE: Duration = Duration::from_secs(5);
/// How long requests that were given up may take to end: commands are killed, and that is waited for.
pub(crate) const SETTLING: Duration = Duration::from_secs(30);

/// Messages line by line. One that is too long is answered and not read, and what is no message is answered by
/// the id in it: the SDK is silent there, and whoever sent it would wait for ever. The end of the stream is told
/// when every request was answered, or was given up.
pub(crate) struct Wire<R: AsyncRead + Unpin, W: AsyncWrite> {
    lines: Lines<Watched<R>>,
    writes: AsyncRwTransport<RoleServer, Empty, W>,
    /// Refusals on their way.
    refusing: JoinSet<io::Result<()>>,
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
        let lines = Lines::new(Watched::new(read, say));
        let (writes, refusing) = (AsyncRwTransport::new_server(empty(), write), JoinSet::new());
        let open = watch::Sender::new(HashSet::new());
        Self { lines, writes, refusing, too_long, open, ended: None, given_up }
    }

    /// The next message, until the stream ends.
    async fn next(&mut self) -> Option<RxJsonRpcMessage<RoleServer>>
    where
        R: 'static,
    {
        loop {
            let line = tokio::select! {
                biased;
                Some(id) = self.too_long.recv() => {
                    self.refuse(too_long(id));
                    continue;
                }
                line = self.lines.next() => line,
            };
            let Ok(Some(line)) = line else { break };
            let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&line);
            match serde_json::from_slice(line) {
                Ok(message) => match self.open_already(&message) {
                    Some(id) => self.refuse(twice(id)),
                    None => return Some(message),
                },
                Err(_) => {
                    let Some((error, id)) = fault(line) else { continue };
                    self.refuse(JsonRpcMessage::error(error, serde_json::from_value(id).ok()));
                }
            }
        }
        while let Ok(id) = self.too_long.try_recv() {
            self.refuse(too_long(id));
        }
        while self.refusing.join_next().await.is_some() {}
        None
    }

    /// Sends a refusal beside what is read: whoever reads may be dropped at any point.
    fn refuse(&mut self, refusal: ServerJsonRpcMessage) {
        while self.refusing.try_join_next().is_some() {}
        self.refusing.spawn(self.writes.send(refusal));
    }

    /// The id of a request by which another one is still to be answered: nobody could tell their answers apart, nor
    /// end one of them.
    fn open_already(&self, message: &RxJsonRpcMessage<RoleServer>) -> Option<RequestId> {
        match message {
            JsonRpcMessage::Request(request) if self.open.borrow().contains(&request.id) => {
                Some(request.id.clone())
            }
            JsonRpcMessage::Request(_)
            | JsonRpcMessage::Notification(_)
            | JsonRpcMessage::Response(_)
            | JsonRpcMessage::Error(_) => None,
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

fn twice(id: RequestId) -> ServerJsonRpcMessage {
    let what = format!("a request with the id {id} is not answered yet");
    let error = Error::new(ErrorKind::Conflict, what).hint("Give each request an id of its own.");
    JsonRpcMessage::error(
        ErrorData { code: ErrorCode::INVALID_REQUEST, ..refused(&error) },
        Some(id),
    )
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
        let (sent, open) = (self.writes.send(message), self.open.clone());
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
        self.writes.close().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, duplex, split};

    #[tokio::test]
    async fn what_is_no_message_is_answered_by_the_id_in_it_and_the_next_one_is_served() {
        let deep = format!("{{\"id\":5,\"x\":{}1{}}}", "[".repeat(200), "]".repeat(200));
        let sent_beyond = br#"{"jsonrpc":"2.0","id":9223372036854775808,"#;
        let sent: [(&[u8], i32, Value); 9] = [
            (br#"{"jsonrpc":"2.0","id":9223372036854775808,"method":"ping"}"#, -32600, Value::Null),
            (br#"{"jsonrpc":"2.0","id":1,"method":"\ud83d"}"#, -32700, json!(1)),
            (b"{\"id\":2,\"method\":\"\xff\"}", -32700, json!(2)),
            (br#"{"jsonrpc":"2.0","id":"c","meth"#, -32700, json!("c")),
            (deep.as_bytes(), -32700, json!(5)),
            (b"no json", -32700, Value::Null),
            (br#"{"id":6,"method":"ping"}"#, -32600, json!(6)),
            (br#"[{"jsonrpc":"2.0","id":7,"method":"ping"}]"#, -32600, Value::Null),
            (b"{}", -32600, Value::Null),
        ];
        let (ours, theirs) = duplex(1 << 20);
        let (read, mut write) = split(theirs);
        let (from, to) = split(ours);
        let mut wire = Wire::new(from, to, CancellationToken::new());
        for (line, _, _) in &sent {
            write.write_all(&[line, &b"\n"[..]].concat()).await.unwrap();
        }
        // The last one has no end of line.
        write
            .write_all(b"\xEF\xBB\xBF{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"ping\"}")
            .await
            .unwrap();
        write.shutdown().await.unwrap();
        let served = wire.receive().await.unwrap();
        assert!(
            matches!(served, JsonRpcMessage::Request(request) if request.id == RequestId::Number(9))
        );
        assert!(wire.next().await.is_none());
        let mut lines = BufReader::new(read).lines();
        for (line, code, id) in sent {
            let answer: Value =
                serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap();
            let told = (&answer["error"]["code"], &answer["id"]);
            assert_eq!(told, (&json!(code), &id), "{}: {answer}", String::from_utf8_lossy(line));
            let is_about_its_id = answer["error"]["message"].as_str().unwrap().contains("2^63");
            assert_eq!(is_about_its_id, line.starts_with(sent_beyond), "{answer}");
        }
    }

    #[tokio::test]
    async fn two_requests_of_one_id_are_not_at_work_at_once() {
        let (ours, theirs) = duplex(1 << 20);
        let (read, mut write) = split(theirs);
        let (from, to) = split(ours);
        let mut wire = Wire::new(from, to, CancellationToken::new());
        let ping = |id: i64| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n");
        let sent = [ping(1), ping(1), ping(2)].concat();
        write.write_all(sent.as_bytes()).await.unwrap();
        for id in [1, 2] {
            let served = wire.receive().await.unwrap();
            let is_it = |served| matches!(served, JsonRpcMessage::Request(request) if request.id == RequestId::Number(id));
            assert!(is_it(served), "{id}");
        }
        let mut lines = BufReader::new(read).lines();
        let told: Value = serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap();
        assert_eq!((&told["error"]["code"], &told["id"]), (&json!(-32600), &json!(1)), "{told}");
        assert_eq!(told["error"]["data"]["kind"], "conflict");
        // The control: once it is answered, its id may be used again.
        let answer =
            JsonRpcMessage::error(ErrorData::internal_error("x", None), Some(RequestId::Number(1)));
        wire.send(answer).await.unwrap();
        write.write_all(ping(1).as_bytes()).await.unwrap();
        assert!(wire.receive().await.is_some());
    }
}

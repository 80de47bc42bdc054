//! How WebSockets end: with a Close on both sides, where there is somebody to take it (RFC 6455, 7.1.2).

use super::guard::Over;
use axum::extract::ws::{CloseFrame, Message, WebSocket};
use futures_util::SinkExt;
use futures_util::stream::SplitSink;
use std::time::Duration;
use tokio::time::{sleep, timeout};
use tokio_tungstenite::tungstenite::Error as WsError;
use tokio_tungstenite::tungstenite::error::ProtocolError;

/// Nothing more comes.
pub(super) const ALL_SAID: u16 = 1000;
/// The server goes away.
const GOES_AWAY: u16 = 1001;
/// What came is no WebSocket's.
const NO_PROTOCOL: u16 = 1002;
/// A text is not UTF-8.
const NO_TEXT: u16 = 1007;
/// The caller may not go on.
const NOT_ALLOWED: u16 = 1008;
/// A message is too long.
const TOO_LONG: u16 = 1009;
/// How long the other side may take to read a Close, and what stands before it.
const FAREWELL: Duration = Duration::from_secs(5);
/// How long a connection stays where the other side may still send, so that it finds out why.
const LINGERS: Duration = Duration::from_secs(2);

/// Why this side closes; `None` where the other one did, or is not there any more.
pub(super) type Closing = Option<(u16, &'static str)>;

/// What is told where a stream ends that would go on.
pub(super) fn over(over: Over) -> (u16, &'static str) {
    match over {
        Over::Server => (GOES_AWAY, "the server ends"),
        Over::Key => (NOT_ALLOWED, "the key was revoked"),
    }
}

/// What is told where a message could not be read.
pub(super) fn unread(error: &axum::Error) -> Closing {
    let inner = std::error::Error::source(error).and_then(|inner| inner.downcast_ref::<WsError>());
    match inner? {
        WsError::Capacity(_) => Some((TOO_LONG, "a message is too long")),
        WsError::Utf8(_) => Some((NO_TEXT, "a text is not UTF-8")),
        // Nobody is there any more.
        WsError::Protocol(ProtocolError::ResetWithoutClosingHandshake) => None,
        WsError::Protocol(_) => Some((NO_PROTOCOL, "that is no frame of a WebSocket")),
        WsError::ConnectionClosed
        | WsError::AlreadyClosed
        | WsError::Io(_)
        | WsError::Tls(_)
        | WsError::WriteBufferFull(_)
        | WsError::AttackAttempt
        | WsError::Url(_)
        | WsError::Http(_)
        | WsError::HttpFormat(_) => None,
    }
}

/// Says why this side closes, or answers the Close of the other one.
pub(super) async fn part(sink: &mut SplitSink<WebSocket, Message>, closing: Closing) {
    let Some((code, reason)) = closing else {
        let answer = async {
            // What was being sent when the other side closed fails first, and nothing is sent behind a Close.
            if sink.close().await.is_err() {
                sink.close().await.ok();
            }
        };
        timeout(FAREWELL, answer).await.ok();
        return;
    };
    let frame = CloseFrame { code, reason: reason.into() };
    timeout(FAREWELL, sink.send(Message::Close(Some(frame)))).await.ok();
    // ORDER: what is unread resets the connection when it is dropped.
    if matches!(code, NO_PROTOCOL | NO_TEXT | TOO_LONG) {
        sleep(LINGERS).await;
    }
}

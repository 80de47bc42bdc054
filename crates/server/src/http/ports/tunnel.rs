//! A connection to a port as a WebSocket of bytes, for programs.

use crate::Server;
use crate::http::closing::{self, ALL_SAID};
use crate::http::door::{Door, Runs};
use crate::http::error::Answer;
use crate::http::extract::Path;
use crate::http::guard::Counted;
use crate::http::objects;
use crate::http::shells::needs_upgrade;
use crate::stalling::{Stalling, UNTAKEN};
use axum::body::Bytes;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use cofferdam_core::PortStream;
use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The longest message, either way.
pub(super) const MAX_TUNNEL_MESSAGE_BYTES: usize = 256 << 10;
/// How much is read at once.
const PIECE_BYTES: usize = 64 << 10;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(connect))
}

/// Connects to a port of a sandbox over a WebSocket: binary messages are the bytes of the connection, cut
/// anywhere, in both directions. An empty one says that its side has said all; a close ends both.
#[utoipa::path(get, path = "/v1/sandboxes/{sandbox}/ports/{port}/connect", tag = "ports",
    params(("sandbox" = String, Path, description = "Its name or id."),
        ("port" = u16, Path, description = "The port inside.")), responses(
    (status = 101, description = "The connection stands."),
    (status = 426, description = "No WebSocket was asked for.", content_type = "application/problem+json", body = objects::ProblemDocument),
))]
async fn connect(
    door: Door<Runs>,
    Path((sandbox, port)): Path<(String, u16)>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Answer<Response> {
    let session = door.session(&sandbox).await?;
    let upgrade = needs_upgrade(upgrade)?;
    let counted = door.caller.stream(&door.server)?;
    // ORDER: before the answer, so that a refusal is one.
    let stream = session.connect(port).await?;
    Ok(upgrade
        .max_message_size(MAX_TUNNEL_MESSAGE_BYTES)
        .max_frame_size(MAX_TUNNEL_MESSAGE_BYTES)
        .on_upgrade(async move |socket| carry(socket, stream, counted).await))
}

pub(super) async fn carry(socket: WebSocket, stream: PortStream, counted: Counted) {
    let (mut out, mut heard) = socket.split();
    let (mut read, mut write) = tokio::io::split(Stalling::inward(stream));
    let to_caller = async {
        let mut buffer = vec![0; PIECE_BYTES];
        loop {
            // An end that broke off has said all.
            let count = read.read(&mut buffer).await.unwrap_or(0);
            let piece = Bytes::copy_from_slice(buffer.get(..count).unwrap_or_default());
            match timeout(UNTAKEN, out.send(Message::Binary(piece))).await {
                Ok(Ok(())) if count > 0 => {}
                Ok(Ok(())) => return All::Said,
                Ok(Err(_)) | Err(_) => return All::Untaken,
            }
        }
    };
    let from_caller = async {
        while let Some(message) = heard.next().await {
            let taken = match message {
                Ok(Message::Binary(bytes)) if bytes.is_empty() => write.shutdown().await,
                Ok(Message::Binary(bytes)) => write.write_all(&bytes).await,
                Ok(Message::Close(_)) => return None,
                Ok(Message::Text(_) | Message::Ping(_) | Message::Pong(_)) => Ok(()),
                Err(error) => return closing::unread(&error),
            };
            if taken.is_err() {
                return Some((ALL_SAID, "the port takes no more"));
            }
        }
        None
    };
    let both = async {
        tokio::pin!(from_caller);
        tokio::select! {
            closing = &mut from_caller => closing,
            all = to_caller => match all {
                // What the caller still says goes in until it hangs up.
                All::Said => from_caller.await,
                All::Untaken => None,
            },
        }
    };
    let closing = tokio::select! {
        over = counted.is_over() => Some(closing::over(over)),
        closing = both => closing,
    };
    closing::part(&mut out, closing).await;
    drop(counted);
}

/// What became of all that a port said.
enum All {
    Said,
    /// The caller does not take it.
    Untaken,
}

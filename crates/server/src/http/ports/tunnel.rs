//! A connection to a port as a WebSocket of bytes, for programs.

use crate::Server;
use crate::http::door::{Door, Runs};
use crate::http::error::Answer;
use crate::http::extract::Path;
use crate::http::guard::Counted;
use crate::http::objects;
use crate::http::shells::needs_upgrade;
use axum::body::Bytes;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use cofferdam_core::PortStream;
use futures_util::{SinkExt, StreamExt};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The longest message, either way.
const MAX_TUNNEL_MESSAGE_BYTES: usize = 256 << 10;
/// How much is read at once.
const PIECE_BYTES: usize = 64 << 10;
/// How long a caller may not take what is sent.
const UNTAKEN: Duration = Duration::from_secs(300);

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

async fn carry(socket: WebSocket, stream: PortStream, counted: Counted) {
    let (mut out, mut heard) = socket.split();
    let (mut read, mut write) = tokio::io::split(stream);
    let to_caller = async {
        let mut buffer = vec![0; PIECE_BYTES];
        loop {
            // An end that broke off has said all.
            let count = read.read(&mut buffer).await.unwrap_or(0);
            let piece = Bytes::copy_from_slice(buffer.get(..count).unwrap_or_default());
            match timeout(UNTAKEN, out.send(Message::Binary(piece))).await {
                Ok(Ok(())) if count > 0 => {}
                Ok(Ok(())) => return true,
                Ok(Err(_)) | Err(_) => return false,
            }
        }
    };
    let from_caller = async {
        while let Some(Ok(message)) = heard.next().await {
            let taken = match message {
                Message::Binary(bytes) if bytes.is_empty() => write.shutdown().await,
                Message::Binary(bytes) => write.write_all(&bytes).await,
                Message::Close(_) => return,
                Message::Text(_) | Message::Ping(_) | Message::Pong(_) => Ok(()),
            };
            if taken.is_err() {
                return;
            }
        }
    };
    tokio::pin!(to_caller, from_caller);
    tokio::select! {
        _ = counted.is_over() => {}
        () = &mut from_caller => {}
        whole = &mut to_caller => {
            // What the caller still says goes in until it hangs up.
            if whole {
                tokio::select! {
                    _ = counted.is_over() => {}
                    () = &mut from_caller => {}
                }
            }
        }
    }
    drop(counted);
}

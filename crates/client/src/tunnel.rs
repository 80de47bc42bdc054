//! A connection to a port of a sandbox, over a WebSocket of bytes.

use crate::Sandbox;
use cofferdam_core::Result;
use futures_util::{SinkExt, StreamExt};
use reqwest::{Method, Upgraded};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::{Bytes, Message};

/// How much is read at once; the server takes four times as much in one message.
const PIECE_BYTES: usize = 64 << 10;

/// A connection to a port of a sandbox. It ends when it is dropped.
#[derive(Debug)]
pub struct Tunnel {
    socket: WebSocketStream<Upgraded>,
}

impl Sandbox {
    /// Connects to a port inside, as a program there would by loopback. One that nobody listens on is an
    /// error here.
    pub async fn connect(&self, port: u16) -> Result<Tunnel> {
        let ask = self.ask(Method::GET, &["ports", &port.to_string(), "connect"]);
        Ok(Tunnel { socket: self.web_socket(ask).await? })
    }
}

impl Tunnel {
    /// Carries bytes both ways until both sides have said all, or one of them has hung up.
    pub async fn carry(self, stream: impl AsyncRead + AsyncWrite) {
        let (mut out, mut heard) = self.socket.split();
        let (mut read, mut write) = tokio::io::split(stream);
        let to_server = async {
            let mut buffer = vec![0; PIECE_BYTES];
            loop {
                // An end that broke off has said all. That is told by an empty message.
                let count = read.read(&mut buffer).await.unwrap_or(0);
                let piece = Bytes::copy_from_slice(buffer.get(..count).unwrap_or_default());
                if out.send(Message::Binary(piece)).await.is_err() {
                    return false;
                }
                if count == 0 {
                    return true;
                }
            }
        };
        let from_server = async {
            while let Some(Ok(message)) = heard.next().await {
                match message {
                    Message::Binary(bytes) if bytes.is_empty() => {
                        return write.shutdown().await.is_ok();
                    }
                    Message::Binary(bytes) => {
                        if write.write_all(&bytes).await.is_err() {
                            return false;
                        }
                    }
                    Message::Close(_) => return false,
                    Message::Text(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
                }
            }
            false
        };
        tokio::pin!(to_server, from_server);
        // What one side still says after the other has said all is carried on.
        tokio::select! {
            is_whole = &mut to_server => {
                if is_whole {
                    from_server.await;
                }
            }
            is_whole = &mut from_server => {
                if is_whole {
                    to_server.await;
                }
            }
        }
    }
}

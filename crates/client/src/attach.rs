//! Commands and shells over a WebSocket: output as it comes, with its place, and input beside it.

use crate::Sandbox;
use crate::answer::Failure;
use crate::ask::Ask;
use cofferdam_core::{Chunk, Error, ErrorKind, Result, Standard};
use cofferdam_session::objects::{SocketAsked, SocketTold};
use futures_util::{SinkExt, StreamExt};
use reqwest::header::{
    CONNECTION, HeaderName, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use reqwest::{Method, StatusCode, Upgraded};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error as Broken, Message};

/// The most bytes of one message.
const MAX_MESSAGE_BYTES: usize = 4 << 20;
/// How many bytes stand before output: the stream, and the place of its first byte.
const HEAD_BYTES: usize = 9;

/// Something that was heard.
#[derive(Debug, Clone, PartialEq)]
pub enum Heard {
    /// Output, with the place where it begins. Whoever comes back asks from its end on.
    Output(Standard, Chunk),
    /// Anything else.
    Told(SocketTold),
}

/// A command or a shell that somebody is attached to. It goes on when this is dropped.
#[derive(Debug)]
pub struct Attached {
    socket: WebSocketStream<Upgraded>,
    address: String,
}

impl Sandbox {
    /// Attaches to a command, from these bytes of standard output and standard error on.
    pub async fn attach(&self, exec: &str, from: [u64; 2]) -> Result<Attached> {
        let [stdout, stderr] = from;
        let ask = self.ask(Method::GET, &["execs", exec, "attach"]);
        self.upgrade(ask.query("from", stdout).query("from_stderr", stderr)).await
    }

    /// Attaches to a shell, from this byte of its output on.
    pub async fn attach_shell(&self, shell: &str, from: u64) -> Result<Attached> {
        self.upgrade(self.ask(Method::GET, &["shells", shell, "attach"]).query("from", from)).await
    }

    async fn upgrade(&self, ask: Ask) -> Result<Attached> {
        let address = self.client.address().to_string();
        Ok(Attached { socket: self.web_socket(ask).await?, address })
    }

    /// The WebSocket that this asks for.
    pub(crate) async fn web_socket(&self, ask: Ask) -> Result<WebSocketStream<Upgraded>> {
        let (address, key) = (self.client.address(), generate_key());
        let ask = ask
            .header(CONNECTION, "upgrade")
            .header(UPGRADE, "websocket")
            .header(SEC_WEBSOCKET_VERSION, "13")
            .header(SEC_WEBSOCKET_KEY, &key);
        let response = ask.send().await?;
        let accept: HeaderName = SEC_WEBSOCKET_ACCEPT;
        let accepted = response.headers().get(accept).map(|value| value.as_bytes().to_vec());
        let expected = derive_accept_key(key.as_bytes());
        if response.status() != StatusCode::SWITCHING_PROTOCOLS
            || accepted.as_deref() != Some(expected.as_bytes())
        {
            let what = format!("{address} does not talk over a WebSocket");
            return Err(Error::new(ErrorKind::Protocol, what)
                .hint("Check the proxy in front of the server, if there is one."));
        }
        let upgraded =
            response.upgrade().await.map_err(|cause| Failure::way(&self.client, cause))?;
        let config = WebSocketConfig::default()
            .max_message_size(Some(MAX_MESSAGE_BYTES))
            .max_frame_size(Some(MAX_MESSAGE_BYTES));
        Ok(WebSocketStream::from_raw_socket(upgraded, Role::Client, Some(config)).await)
    }
}

impl Attached {
    /// What comes next; `None` where the server has hung up. A call that is given up loses nothing.
    pub async fn next(&mut self) -> Result<Option<Heard>> {
        while let Some(message) = self.socket.next().await {
            match message {
                Ok(Message::Binary(bytes)) => return output(&bytes).map(Some),
                Ok(Message::Text(text)) => {
                    let told = serde_json::from_str(&text).map_err(|cause| {
                        Error::new(ErrorKind::Protocol, "the server tells another object")
                            .hint("Use the same version of Cofferdam on both sides.")
                            .source(cause)
                    })?;
                    return Ok(Some(Heard::Told(told)));
                }
                Ok(Message::Close(_)) | Err(Broken::ConnectionClosed) => return Ok(None),
                Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_)) => {}
                Err(cause) => return Err(self.broken(cause)),
            }
        }
        Ok(None)
    }

    /// Says something. What comes of it is heard.
    pub async fn say(&mut self, asked: &SocketAsked) -> Result<()> {
        let text = serde_json::to_string(asked).map_err(|cause| {
            Error::new(ErrorKind::Usage, "it cannot be written as JSON").source(cause)
        })?;
        self.send(Message::text(text)).await
    }

    /// Sends the next bytes of standard input. That they were taken is heard.
    pub async fn input(&mut self, bytes: Vec<u8>) -> Result<()> {
        self.send(Message::binary(bytes)).await
    }

    async fn send(&mut self, message: Message) -> Result<()> {
        self.socket.send(message).await.map_err(|cause| self.broken(cause))
    }

    fn broken(&self, cause: Broken) -> Error {
        let what = format!("the connection to {} broke", self.address);
        Error::new(ErrorKind::Unavailable, what)
            .hint("Attach again from where you were.")
            .source(cause)
    }
}

fn output(message: &[u8]) -> Result<Heard> {
    let broken = || Error::new(ErrorKind::Protocol, "the server tells output of no stream");
    let (head, bytes) = message.split_at_checked(HEAD_BYTES).ok_or_else(broken)?;
    let (stream, offset) = head.split_first().ok_or_else(broken)?;
    let offset = u64::from_be_bytes(offset.try_into().map_err(|_| broken())?);
    let stream = match stream {
        1 => Standard::Output,
        2 => Standard::Error,
        _ => return Err(broken()),
    };
    Ok(Heard::Output(stream, Chunk { offset, bytes: bytes.to_vec() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_says_where_it_belongs() {
        let heard = output(&[2, 0, 0, 0, 0, 0, 0, 1, 2, b'a', b'b']).unwrap();
        let chunk = Chunk { offset: 258, bytes: b"ab".to_vec() };
        assert_eq!(heard, Heard::Output(Standard::Error, chunk));
        for bad in [b"".as_slice(), &[1, 0, 0], &[3, 0, 0, 0, 0, 0, 0, 0, 0]] {
            assert_eq!(output(bad).unwrap_err().kind, ErrorKind::Protocol);
        }
    }
}

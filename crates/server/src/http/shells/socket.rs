//! What is said over a WebSocket of a shell or a command, and how long it may take.
//!
//! Output goes out as binary messages: a byte that says which stream (1 standard output, 2 standard
//! error), eight bytes with the place of the first byte in that stream, most significant first, and the
//! bytes. That place is the sequence number: whoever comes back says how far he has read. It is read from
//! what is kept on disk, so that nobody waits for a slow reader and nothing is held for him here; what is
//! not kept any more is told as `dropped`. Everything else is JSON in text messages.

use crate::http::closing::{self, ALL_SAID, Closing};
use crate::http::error::{Answer, Problem};
use crate::http::guard::{Counted, Minutes};
use axum::body::Bytes;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use cofferdam_core::{Error, ErrorKind, Result};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use std::time::Duration;
use tokio::sync::mpsc;

pub(crate) use cofferdam_session::objects::{SocketAsked as Asked, SocketTold as Told};

/// The longest message of a caller, in bytes: a command of a shell, written in JSON.
pub(crate) const MAX_MESSAGE_BYTES: usize = 2 << 20;
/// How long a caller may not take what is sent.
pub(crate) const MAX_UNREAD: Duration = Duration::from_secs(60);
/// How often a sign of life is asked for, and how often none may come.
const ALIVE: Duration = Duration::from_secs(20);
const MISSED_SIGNS: u32 = 3;
/// How many answers wait to be sent. A caller whose answers wait is not heard.
const WAITING_ANSWERS: usize = 16;

/// What goes out.
#[derive(Debug)]
pub(super) enum Out {
    /// Output of a stream, from this place on.
    Bytes(u8, u64, Vec<u8>),
    /// Something else.
    Told(Told),
}

/// What is told, one thing after the other.
pub(super) trait Tape: Send + 'static {
    /// What comes next; `None` where nothing came for a while. [`Told::Exited`] and [`Told::Died`] are the
    /// last.
    fn next(&mut self) -> impl Future<Output = Result<Option<Out>>> + Send;
}

/// Who does what a caller says.
pub(super) trait Hand: Send + Sync + 'static {
    /// Does it, and says what came of it.
    fn take(&self, asked: Heard) -> impl Future<Output = Result<Option<Told>>> + Send;
}

/// What was heard.
#[derive(Debug)]
pub(super) enum Heard {
    /// Bytes for standard input.
    Input(Vec<u8>),
    /// Anything else.
    Asked(Asked),
}

impl Heard {
    /// What the audit calls it. Bytes for a standard input and sizes of terminals are not in there one by
    /// one: a person types them.
    fn name(&self) -> Option<&'static str> {
        match self {
            Self::Asked(Asked::Run { .. }) => Some("run"),
            Self::Asked(Asked::Interrupt {}) => Some("interrupt"),
            Self::Asked(Asked::Signal { .. }) => Some("signal"),
            Self::Asked(Asked::Close {}) => Some("close"),
            Self::Asked(Asked::Input { .. } | Asked::Resize { .. }) | Self::Input(_) => None,
        }
    }
}

/// What a request would have been answered.
fn status(done: &Result<Option<Told>>) -> u16 {
    match done {
        Ok(_) => 200,
        Err(error) => error.kind.http_status(),
    }
}

/// Answers with a WebSocket on which a tape is told and a hand does what the caller says.
pub(super) fn talk(
    upgrade: WebSocketUpgrade,
    (counted, minutes): (Counted, Minutes),
    talk: (Told, impl Tape, impl Hand),
) -> Response {
    let upgrade = upgrade.max_message_size(MAX_MESSAGE_BYTES).max_frame_size(MAX_MESSAGE_BYTES);
    upgrade.on_upgrade(async move |socket| {
        let (first, tape, hand) = talk;
        let (mut sink, mut stream) = socket.split();
        let (answers, waiting) = mpsc::channel(WAITING_ANSWERS);
        let closing = tokio::select! {
            closing = tell(&mut sink, first, tape, waiting) => closing,
            closing = hear(&mut stream, (&hand, &minutes), &answers) => closing,
            over = counted.is_over() => Some(closing::over(over)),
        };
        closing::part(&mut sink, closing).await;
    })
}

/// Tells the tape and the answers until the end of the tape, or until nobody takes them.
async fn tell(
    sink: &mut SplitSink<WebSocket, Message>,
    first: Told,
    mut tape: impl Tape,
    mut answers: mpsc::Receiver<Message>,
) -> Closing {
    send(sink, message(Out::Told(first))).await?;
    let mut signs = tokio::time::interval(ALIVE);
    loop {
        let out = tokio::select! {
            biased;
            Some(answer) = answers.recv() => {
                send(sink, answer).await?;
                continue;
            }
            out = tape.next() => out,
            _ = signs.tick() => {
                send(sink, Message::Ping(Bytes::new())).await?;
                continue;
            }
        };
        match out {
            Ok(Some(out)) => {
                let is_last = matches!(&out, Out::Told(Told::Exited { .. } | Told::Died { .. }));
                send(sink, message(out)).await?;
                if is_last {
                    return Some((ALL_SAID, "it ended"));
                }
            }
            Ok(None) => {}
            Err(error) => {
                send(sink, problem(error)).await?;
                return Some((ALL_SAID, "it cannot be told any more"));
            }
        }
    }
}

/// Sends a message. `None` where nobody takes it.
async fn send(sink: &mut SplitSink<WebSocket, Message>, message: Message) -> Option<()> {
    tokio::time::timeout(MAX_UNREAD, sink.send(message)).await.ok()?.ok()
}

/// Does what the caller says until he hangs up, says too much at once, or gives no sign of life.
async fn hear(
    stream: &mut SplitStream<WebSocket>,
    (hand, minutes): (&impl Hand, &Minutes),
    answers: &mpsc::Sender<Message>,
) -> Closing {
    loop {
        let message =
            match tokio::time::timeout(ALIVE * MISSED_SIGNS, stream.next()).await.ok()?? {
                Ok(message) => message,
                Err(error) => return closing::unread(&error),
            };
        let heard = match message {
            Message::Binary(bytes) => Ok(Heard::Input(bytes.to_vec())),
            Message::Text(text) => parsed(&text),
            Message::Ping(_) | Message::Pong(_) => continue,
            Message::Close(_) => return None,
        };
        // Who says more than the key may is heard later.
        minutes.turn().await;
        let done = match heard {
            Ok(heard) => {
                let what = heard.name();
                let done = hand.take(heard).await;
                if let Some(what) = what {
                    minutes.note(what, status(&done)).await;
                }
                done
            }
            Err(error) => Err(error),
        };
        let answer = match done {
            Ok(None) => continue,
            Ok(Some(told)) => message_of(&told),
            Err(error) => problem(error),
        };
        answers.send(answer).await.ok()?;
    }
}

fn parsed(text: &str) -> Result<Heard> {
    let asked: Asked = serde_json::from_str(text).map_err(|error| {
        let what = format!("the message is not understood: {error}");
        Error::new(ErrorKind::Usage, what).hint("See Asked in /openapi.json.")
    })?;
    let Asked::Input { text, base64 } = asked else { return Ok(Heard::Asked(asked)) };
    match (text, base64) {
        (Some(text), None) => Ok(Heard::Input(text.into_bytes())),
        (None, Some(base64)) => {
            let bytes = crate::http::place::bytes(&base64).ok_or_else(|| {
                Error::new(ErrorKind::Usage, "base64 of the input is no base64")
                    .hint("Encode the bytes, or give text where they are UTF-8.")
            })?;
            Ok(Heard::Input(bytes.as_bytes().to_vec()))
        }
        (Some(_), Some(_)) | (None, None) => {
            Err(Error::new(ErrorKind::Usage, "an input has either text or base64")
                .hint("Give one of them."))
        }
    }
}

fn message(out: Out) -> Message {
    match out {
        Out::Told(told) => message_of(&told),
        Out::Bytes(stream, offset, bytes) => {
            let mut framed = Vec::with_capacity(9 + bytes.len());
            framed.push(stream);
            framed.extend_from_slice(&offset.to_be_bytes());
            framed.extend_from_slice(&bytes);
            Message::Binary(framed.into())
        }
    }
}

fn message_of(told: &Told) -> Message {
    // Plain texts and numbers always serialise.
    Message::Text(serde_json::to_string(told).unwrap_or_default().into())
}

fn problem(error: Error) -> Message {
    message_of(&Told::Problem { problem: Problem::from(error).report() })
}

/// Refuses a request that asks for no WebSocket.
pub(in crate::http) fn needs_upgrade(
    upgrade: std::result::Result<
        WebSocketUpgrade,
        axum::extract::ws::rejection::WebSocketUpgradeRejection,
    >,
) -> Answer<WebSocketUpgrade> {
    upgrade.map_err(|_| {
        let error = Error::new(ErrorKind::Usage, "this is told over a WebSocket alone")
            .hint("Ask for an upgrade to websocket, version 13.");
        Problem::with_status(axum::http::StatusCode::UPGRADE_REQUIRED, error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_says_its_stream_and_place() {
        let Message::Binary(bytes) = message(Out::Bytes(2, 258, b"ab".to_vec())) else {
            panic!("no bytes")
        };
        assert_eq!(bytes.as_ref(), [2, 0, 0, 0, 0, 0, 0, 1, 2, b'a', b'b']);
    }

    #[test]
    fn a_message_with_anything_unknown_is_refused_by_its_name() {
        assert!(matches!(parsed(r#"{"type":"close"}"#), Ok(Heard::Asked(Asked::Close {}))));
        let input = parsed(r#"{"type":"input","base64":"/w=="}"#);
        assert!(matches!(input, Ok(Heard::Input(bytes)) if bytes == [0xff]));
        let check = |text: &str, named: &str| {
            let error = parsed(text).unwrap_err();
            assert!(error.kind == ErrorKind::Usage && error.message.contains(named), "{error}");
        };
        check(r#"{"type":"close","now":true}"#, "now");
        check(r#"{"type":"resize","rows":1,"columns":2,"depth":3}"#, "depth");
        check(r#"{"type":"dance"}"#, "dance");
        check(r#"{"type":"input"}"#, "base64");
        check(r#"{"type":"input","base64":"a*b"}"#, "base64 of the input");
        check("nothing", "not understood");
    }
}

//! How long a message may be, and an answer for one that is longer.
//!
//! The SDK drops a line that is too long, and whoever sent it waits for ever. What is read passes
//! through here on its way, so that the request in such a line can be refused by its id.

use rmcp::model::RequestId;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::mpsc::UnboundedSender;

/// The most bytes of one message, its end of line included.
pub const MAX_MESSAGE_BYTES: usize = 4 << 20;
/// The longest id of a request that is found in a message that is too long.
const MAX_ID_BYTES: usize = 128;

/// A stream of lines that tells of those that are too long. It changes nothing on the way.
pub(crate) struct Watched<R> {
    stream: R,
    line: Line,
    too_long: UnboundedSender<Option<RequestId>>,
}

impl<R> Watched<R> {
    /// The ids of requests in lines that are too long go there; none, where none is found.
    pub(crate) fn new(stream: R, too_long: UnboundedSender<Option<RequestId>>) -> Self {
        Self { stream, line: Line::default(), too_long }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Watched<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(context, buffer);
        for byte in buffer.filled().get(before..).unwrap_or_default() {
            if let Some(id) = this.line.take(*byte) {
                // Where nobody listens any more nobody is answered.
                this.too_long.send(id).ok();
            }
        }
        read
    }
}

/// A line as far as it was read: how long it is, and the id of the request in it.
#[derive(Debug, Default)]
struct Line {
    bytes: usize,
    /// How many objects and lists are open.
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// A name or value of the outermost object, as far as it was read and is short enough.
    word: Vec<u8>,
    is_id: bool,
    id: Option<RequestId>,
}

impl Line {
    /// Takes the next byte. At the end of a line that is too long: its id, if it has one.
    fn take(&mut self, byte: u8) -> Option<Option<RequestId>> {
        self.bytes = self.bytes.saturating_add(1);
        if byte == b'\n' {
            let line = std::mem::take(self);
            return (line.bytes > MAX_MESSAGE_BYTES).then_some(line.id);
        }
        if self.in_string {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            self.keep(byte);
            return None;
        }
        match byte {
            b'"' => {
                self.in_string = true;
                self.keep(byte);
            }
            b'{' | b'[' => self.depth = self.depth.saturating_add(1),
            b'}' | b']' => {
                if self.depth == 1 {
                    self.end_value();
                }
                self.depth = self.depth.saturating_sub(1);
            }
            b':' if self.depth == 1 => {
                self.is_id = self.word == b"\"id\"";
                self.word.clear();
            }
            b',' if self.depth == 1 => self.end_value(),
            _ if byte.is_ascii_whitespace() => {}
            _ => self.keep(byte),
        }
        None
    }

    fn keep(&mut self, byte: u8) {
        if self.depth == 1 && self.word.len() <= MAX_ID_BYTES {
            self.word.push(byte);
        }
    }

    fn end_value(&mut self) {
        if self.is_id && self.word.len() <= MAX_ID_BYTES {
            self.id = serde_json::from_slice(&self.word).ok();
        }
        self.is_id = false;
        self.word.clear();
    }
}

/// The id of the request in a line, which need not be JSON to its end.
pub(crate) fn id_in(line: &[u8]) -> Option<RequestId> {
    let mut scanned = Line::default();
    line.iter().filter(|byte| **byte != b'\n').for_each(|byte| drop(scanned.take(*byte)));
    scanned.id
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt;
    use tokio::sync::mpsc;

    fn id_of(line: &str) -> Option<Option<RequestId>> {
        let mut scanned = Line::default();
        let mut found = line.bytes().filter_map(|byte| scanned.take(byte));
        let first = found.next();
        assert_eq!(found.next(), None);
        first
    }

    /// A message of just this length, its end of line included.
    fn message(before: &str, after: &str, bytes: usize) -> String {
        let filler = "x".repeat(bytes - before.len() - after.len() - 1);
        format!("{before}{filler}{after}\n")
    }

    #[test]
    fn a_message_of_the_limit_passes_and_one_more_byte_does_not() {
        let (before, after) = (r#"{"jsonrpc":"2.0","id":7,"params":{"text":""#, r#""}}"#);
        assert_eq!(id_of(&message(before, after, MAX_MESSAGE_BYTES)), None);
        let over = id_of(&message(before, after, MAX_MESSAGE_BYTES + 1));
        assert_eq!(over, Some(Some(RequestId::Number(7))));
    }

    #[test]
    fn the_id_is_found_wherever_it_stands_and_no_other_is_taken_for_it() {
        let check = |before: &str, after: &str, expected: Option<RequestId>| {
            let found = id_of(&message(before, after, MAX_MESSAGE_BYTES + 1));
            assert_eq!(found, Some(expected), "{before} {after}");
        };
        let text = |text: &str| Some(RequestId::String(text.into()));
        check(r#"{"params":{"id":1,"text":""#, r#"","list":[{"id":2}]},"id":"a,b"}"#, text("a,b"));
        check(r#"{"params":"\",\"id\":1,"#, r#"", "id" : 9 }"#, Some(RequestId::Number(9)));
        check(r#"{"method":"id","x":""#, r#"","id":"}\"{"}"#, text("}\"{"));
        check(r#"{"params":{"id":1,"text":""#, r#""}}"#, None);
        check(r#"{"id":[1],"x":""#, r#""}"#, None);
        check("no json at all, id:1 ", "", None);
        let long = "y".repeat(MAX_ID_BYTES);
        check(&format!(r#"{{"id":"{long}","x":""#), r#""}"#, None);
    }

    #[tokio::test]
    async fn what_is_read_is_what_was_sent() {
        let (say, mut said) = mpsc::unbounded_channel();
        let long = message(r#"{"id":1,"x":""#, r#""}"#, MAX_MESSAGE_BYTES + 9);
        let sent = format!("short\n{long}{{\"id\":2}}\n{long}no end");
        let mut read = String::new();
        Watched::new(sent.as_bytes(), say).read_to_string(&mut read).await.unwrap();
        assert_eq!(read, sent);
        assert_eq!(said.recv().await, Some(Some(RequestId::Number(1))));
        assert_eq!(said.recv().await, Some(Some(RequestId::Number(1))));
        assert_eq!(said.recv().await, None);
    }
}

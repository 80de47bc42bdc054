//! Server-sent events, read as they come.

use crate::Client;
use crate::answer::{Failure, told};
use cofferdam_core::{Error, ErrorKind, Result};
use cofferdam_session::objects::ProblemReport;
use reqwest::Response;
use serde::de::DeserializeOwned;
use std::collections::VecDeque;

/// The most bytes of an event.
pub const MAX_EVENT_BYTES: usize = 4 << 20;
/// The name of the event that tells an error.
const PROBLEM: &str = "problem";

/// An event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) name: String,
    pub(crate) id: String,
    pub(crate) data: String,
}

impl Event {
    /// What it tells.
    pub(crate) fn object<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_str(&self.data).map_err(|cause| {
            Error::new(ErrorKind::Protocol, "the server tells another object")
                .hint("Use the same version of Cofferdam on both sides.")
                .source(cause)
        })
    }

    /// The error that it tells, if it does.
    pub(crate) fn problem(&self) -> Result<()> {
        match self.name == PROBLEM {
            true => Err(told(self.object::<ProblemReport>()?)),
            false => Ok(()),
        }
    }
}

/// Events of an answer.
#[derive(Debug)]
pub(crate) struct Events {
    client: Client,
    response: Response,
    reader: Reader,
}

impl Events {
    pub(crate) fn new(client: Client, response: Response) -> Self {
        Self { client, response, reader: Reader::default() }
    }

    /// What comes next; `None` where the answer is over. A call that is given up loses nothing.
    pub(crate) async fn next(&mut self) -> Result<Option<Event>, Failure> {
        loop {
            if let Some(event) = self.reader.ready.pop_front() {
                return Ok(Some(event));
            }
            let piece = self.response.chunk().await;
            match piece.map_err(|cause| Failure::way(&self.client, cause))? {
                Some(piece) => self.reader.take(&piece).map_err(Failure::Way)?,
                None => return Ok(None),
            }
        }
    }
}

/// What makes events of bytes.
#[derive(Debug, Default)]
struct Reader {
    line: Vec<u8>,
    event: Event,
    ready: VecDeque<Event>,
}

impl Reader {
    fn take(&mut self, bytes: &[u8]) -> Result<()> {
        for byte in bytes {
            match byte {
                b'\n' => self.end_line(),
                b'\r' => {}
                byte => self.line.push(*byte),
            }
            // HOSTILE: a server may be anybody.
            if self.line.len() + self.event.data.len() > MAX_EVENT_BYTES {
                let what =
                    format!("the server tells an event of more than {MAX_EVENT_BYTES} bytes");
                return Err(Error::new(ErrorKind::TooLarge, what));
            }
        }
        Ok(())
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&line);
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            if event != Event::default() {
                self.ready.push_back(event);
            }
            return;
        }
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => self.event.name = value.to_owned(),
            "id" => self.event.id = value.to_owned(),
            "data" => {
                if !self.event.data.is_empty() {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
            }
            // A sign of life, or what nobody knows.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_however_they_are_cut() {
        let text =
            ": alive\n\nevent: a\nid: 1.2\ndata: {\ndata: }\n\nevent: b\r\ndata:x\r\n\r\nevent: c";
        for cut in 1..text.len() {
            let mut reader = Reader::default();
            for piece in text.as_bytes().chunks(cut) {
                reader.take(piece).unwrap();
            }
            let event = |name: &str, id: &str, data: &str| Event {
                name: name.to_owned(),
                id: id.to_owned(),
                data: data.to_owned(),
            };
            assert_eq!(reader.ready, [event("a", "1.2", "{\n}"), event("b", "", "x")], "{cut}");
        }
    }

    #[test]
    fn an_event_without_end_is_refused() {
        let mut reader = Reader::default();
        let line = vec![b'x'; MAX_EVENT_BYTES];
        assert!(reader.take(&line).is_ok());
        assert_eq!(reader.take(b"x").unwrap_err().kind, ErrorKind::TooLarge);
    }

    #[test]
    fn an_error_that_is_told_is_one() {
        let data = r#"{"type":"about:blank","title":"","status":404,"kind":"not_found","message":"gone","hint":null,"retryable":false}"#;
        let event = Event { name: PROBLEM.to_owned(), data: data.to_owned(), ..Event::default() };
        assert_eq!(event.problem().unwrap_err().kind, ErrorKind::NotFound);
        assert!(Event::default().problem().is_ok());
    }
}

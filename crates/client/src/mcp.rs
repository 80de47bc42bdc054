//! Messages of the Model Context Protocol, as they are.

use crate::Client;
use crate::answer::{Failure, read};
use crate::sse::Events;
use cofferdam_core::Result;
use reqwest::Method;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderName};
use serde::Deserialize;
use serde::de::IgnoredAny;

/// What a server may answer a message with.
const TAKEN: &str = "application/json, text/event-stream";
/// By which word a server knows a client again, in its answer to the first message.
const SESSION: &str = "mcp-session-id";

/// What a server answers a message with: messages, one after the other.
#[derive(Debug)]
pub struct Messages {
    answered: Answered,
    session: Option<String>,
}

#[derive(Debug)]
enum Answered {
    /// One, or none that is left.
    Whole(Option<Vec<u8>>),
    /// As they come.
    Stream(Box<Events>),
}

impl Client {
    /// Sends a message to the server's `/mcp` with these headers beside it. Nothing is sent twice. Whoever drops
    /// this, or what it answers, gives the request up, and the server ends what it began.
    pub async fn message(
        &self,
        message: Vec<u8>,
        heads: &[(&'static str, String)],
    ) -> Result<Messages> {
        let ask = self.ask(Method::POST, &["mcp"]).header(ACCEPT, TAKEN);
        let ask = heads
            .iter()
            .fold(ask, |ask, (name, value)| ask.header(HeaderName::from_static(name), value));
        let response = match ask.body("application/json", message).send().await {
            Ok(response) => response,
            // An error of the protocol has a status that is one, too.
            Err(Failure::Said(said)) if is_message(&said.body) => {
                let answered = Answered::Whole(Some(said.body));
                return Ok(Messages { answered, session: None });
            }
            Err(failure) => return Err(failure.into()),
        };
        let session = response.headers().get(SESSION).and_then(|word| word.to_str().ok());
        let session = session.map(str::to_owned);
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        if kind.is_some_and(|kind| kind.starts_with("text/event-stream")) {
            let answered = Answered::Stream(Box::new(Events::new(self.clone(), response)));
            return Ok(Messages { answered, session });
        }
        let body = read(self, response).await?;
        let answered = Answered::Whole(Some(body).filter(|body| !body.is_empty()));
        Ok(Messages { answered, session })
    }
}

impl Messages {
    /// The word by which the server knows this client again, where it gave one.
    pub fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// The next one; `None` where all was said.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>> {
        match &mut self.answered {
            Answered::Whole(message) => Ok(message.take()),
            Answered::Stream(events) => {
                while let Some(event) = events.next().await? {
                    // Some events are a place to go on from, and no message.
                    if !event.data.is_empty() {
                        return Ok(Some(event.data.into_bytes()));
                    }
                }
                Ok(None)
            }
        }
    }
}

/// Whether a body is a message, and no problem document.
fn is_message(body: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Message {
        #[serde(rename = "jsonrpc")]
        _version: IgnoredAny,
    }
    serde_json::from_slice::<Message>(body).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_protocol_is_no_problem_document() {
        assert!(is_message(br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700}}"#));
        for other in [&br#"{"type":"about:blank","status":401}"#[..], b"", b"<h1>", b"[]"] {
            assert!(!is_message(other), "{other:?}");
        }
    }
}

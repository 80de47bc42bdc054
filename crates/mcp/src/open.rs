//! Requests over HTTP that are at work, so that each can be given up by its id.
//!
//! Ids are a client's own, and most clients begin to count at the same number: two of one key have the same ones.
//! A client is therefore told apart by the word that it was given with its handshake. Of those that send none, as
//! the protocol of 2026 has it, an id stands for a request only where it stands for one alone.

use crate::http::Owner;
use cofferdam_core::{Error, ErrorKind, Result};
use http::HeaderValue;
use http::request::Parts;
use rmcp::model::RequestId;
use serde::Deserialize;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// The header by which a client says which one it is.
pub(crate) const SESSION: &str = "mcp-session-id";
/// How many random bytes tell a client apart.
const SESSION_BYTES: usize = 16;

/// Whose request it is: an owner's, and of which of its clients, where that says so.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Sender {
    owner: Owner,
    session: Option<HeaderValue>,
}

impl Sender {
    /// Whoever sent a request with this head; none where nobody knows.
    pub(crate) fn of(head: &Parts) -> Option<Self> {
        let owner = head.extensions.get::<Owner>()?.clone();
        Some(Self { owner, session: head.headers.get(SESSION).cloned() })
    }

    pub(crate) fn owner(&self) -> &Owner {
        &self.owner
    }
}

type Called = (Sender, RequestId);

/// The requests at work. Clones are the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Open(Arc<Mutex<HashMap<Called, Same>>>);

/// What one sender calls by the same id.
#[derive(Debug)]
struct Same {
    count: usize,
    /// What ends the only one. None once there were several: whose a cancellation is cannot be told then.
    only: Option<CancellationToken>,
}

/// A request at work, until this is dropped.
#[derive(Debug)]
pub(crate) struct Entry {
    open: Open,
    called: Called,
}

impl Open {
    /// One more, which `given_up` ends.
    pub(crate) fn enter(
        &self,
        sender: Sender,
        id: RequestId,
        given_up: CancellationToken,
    ) -> Entry {
        let called = (sender, id);
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(called.clone())
            .and_modify(|same| *same = Same { count: same.count + 1, only: None })
            .or_insert(Same { count: 1, only: Some(given_up) });
        Entry { open: self.clone(), called }
    }

    /// Gives up what this sender calls so. Nothing happens where it has nothing at work by that id, or had several
    /// at once.
    pub(crate) fn give_up(&self, sender: Sender, id: RequestId) {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(only) = all.get(&(sender, id)).and_then(|same| same.only.as_ref()) {
            only.cancel();
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut all = self.open.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(same) = all.get_mut(&self.called) {
            same.count = same.count.saturating_sub(1);
            if same.count == 0 {
                all.remove(&self.called);
            }
        }
    }
}

/// What a message says that is more than its service hears.
pub(crate) enum Aside {
    /// A client begins.
    Begins,
    /// The request of this id is wanted no more.
    Cancels(RequestId),
}

impl Aside {
    /// What a message says; none where it says nothing of that.
    pub(crate) fn of(body: &[u8]) -> Option<Self> {
        // HOSTILE: most messages are calls, which may be long; their params are read only where they are wanted.
        let Method { method } = serde_json::from_slice(body).ok()?;
        match method.as_str() {
            "initialize" => Some(Self::Begins),
            "notifications/cancelled" => {
                let mut message: Value = serde_json::from_slice(body).ok()?;
                let id = message.pointer_mut("/params/requestId")?.take();
                Some(Self::Cancels(serde_json::from_value(id).ok()?))
            }
            _ => None,
        }
    }
}

#[derive(Deserialize)]
struct Method {
    method: String,
}

/// A word for a client that begins. It gives no right, for whoever asks is known by other means.
pub(crate) fn session() -> Result<HeaderValue> {
    let failed = || Error::new(ErrorKind::Io, "ask the kernel for random bytes");
    let mut bytes = [0; SESSION_BYTES];
    let flags = rustix::rand::GetRandomFlags::empty();
    match rustix::rand::getrandom(&mut bytes[..], flags) {
        Ok(SESSION_BYTES) => {}
        Ok(_) => return Err(failed()),
        Err(errno) => return Err(failed().source(std::io::Error::from(errno))),
    }
    let word = format!("{:032x}", u128::from_be_bytes(bytes));
    HeaderValue::try_from(word).map_err(|cause| failed().source(cause))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sender(owner: &str, session: Option<&'static str>) -> Sender {
        Sender { owner: Owner(owner.to_owned()), session: session.map(HeaderValue::from_static) }
    }

    #[test]
    fn an_id_stands_for_the_request_of_its_sender_alone() {
        let (open, id) = (Open::default(), || RequestId::Number(1));
        let senders = [("one", None), ("one", Some("a")), ("one", Some("b")), ("two", Some("a"))];
        let entered = senders.map(|(owner, session)| {
            let given_up = CancellationToken::new();
            (open.enter(sender(owner, session), id(), given_up.clone()), given_up)
        });
        let ended = || entered.each_ref().map(|(_, given_up)| given_up.is_cancelled());
        open.give_up(sender("two", None), id());
        open.give_up(sender("two", Some("b")), id());
        open.give_up(sender("one", Some("a")), RequestId::Number(2));
        open.give_up(sender("one", Some("a")), RequestId::String("1".into()));
        assert_eq!(ended(), [false; 4]);
        open.give_up(sender("one", Some("a")), id());
        assert_eq!(ended(), [false, true, false, false]);
        open.give_up(sender("one", None), id());
        assert_eq!(ended(), [true, true, false, false]);
        drop(entered);
        assert!(open.0.lock().unwrap().is_empty());
    }

    #[test]
    fn an_id_that_two_clients_use_stands_for_neither() {
        let (open, id) = (Open::default(), || RequestId::Number(1));
        let given_up = [(); 2].map(|()| CancellationToken::new());
        let mut entered: Vec<Entry> = given_up
            .iter()
            .map(|given_up| open.enter(sender("one", None), id(), given_up.clone()))
            .collect();
        open.give_up(sender("one", None), id());
        // Nor is what is left the one that was meant.
        entered.pop();
        open.give_up(sender("one", None), id());
        assert!(given_up.iter().all(|given_up| !given_up.is_cancelled()));
        drop(entered);
        assert!(open.0.lock().unwrap().is_empty());
    }
}

//! Bodies of requests, which end with the key of whoever sends them.

use super::auth::Caller;
use super::guard::{Reason, loses_its_key};
use crate::Server;
use axum::body::{Body, Bytes, HttpBody};
use cofferdam_core::{Error, ErrorKind};
use hyper::body::{Frame, SizeHint};
use std::error::Error as StdError;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// The body, which breaks off when the key of its caller is revoked, and never ends well afterwards. That of a
/// caller without a key stays as it is.
pub(super) fn keyed(server: &Server, caller: &Caller, body: Body) -> Body {
    if caller.key.is_none() {
        return body;
    }
    let revoked = loses_its_key(server, caller);
    let (server, caller) = (server.clone(), caller.clone());
    Body::new(Keyed { body, server, caller, revoked, last_look: None, came_at_once: true })
}

/// A body broke off because of its key.
#[derive(Debug)]
struct Revoked;

impl fmt::Display for Revoked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the key was revoked by which this is sent")
    }
}

impl StdError for Revoked {}

/// What whoever sent a body is told, where it broke off because of its key.
pub(super) fn revoked(error: &(dyn StdError + 'static)) -> Option<Error> {
    let mut causes = std::iter::successors(Some(error), |&error| error.source());
    causes.any(<dyn StdError>::is::<Revoked>).then(no_key)
}

/// The refusal of somebody whose key was revoked meanwhile.
pub(super) fn no_key() -> Error {
    Error::new(ErrorKind::Denied, "the key was revoked by which this is sent")
        .hint("Send it again with a key that is good.")
}

struct Keyed {
    body: Body,
    server: Server,
    caller: Caller,
    revoked: Reason<()>,
    /// Whether the key is good where the body is over.
    last_look: Option<Reason<bool>>,
    /// Whether nobody had to wait for any of it yet.
    came_at_once: bool,
}

impl HttpBody for Keyed {
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::BoxError>>> {
        // First, also where there is always more.
        if self.revoked.as_mut().poll(context).is_ready() {
            return Poll::Ready(Some(Err(Revoked.into())));
        }
        if self.last_look.is_none() {
            match Pin::new(&mut self.body).poll_frame(context) {
                Poll::Pending => {
                    self.came_at_once = false;
                    return Poll::Pending;
                }
                Poll::Ready(None) if !self.came_at_once => {}
                come => return come.map_err(axum::BoxError::from),
            }
        }
        // What ends between two looks would be taken for whole.
        let (server, caller) = (self.server.clone(), self.caller.clone());
        let look = self
            .last_look
            .get_or_insert_with(|| Box::pin(async move { caller.is_known_still(&server).await }));
        let is_good = ready!(look.as_mut().poll(context));
        self.last_look = Some(Box::pin(std::future::ready(is_good)));
        Poll::Ready((!is_good).then(|| Err(Revoked.into())))
    }

    fn is_end_stream(&self) -> bool {
        self.came_at_once && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

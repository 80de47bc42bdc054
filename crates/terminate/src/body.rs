//! The body of a request, looked through on its way.

use crate::watch::{Sighting, Watch};
use bytes::Bytes;
use http::HeaderMap;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use tokio::sync::Notify;

/// What was seen on a connection first, and whether its holder was told.
///
/// The answer to a request may be under way long before the end of its body, so that this is one for the
/// whole connection, and not for the time that an answer is waited for.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    sighting: Mutex<Option<Sighting>>,
    came: Notify,
    was_told: Notify,
}

impl Seen {
    /// Takes what was seen. The first one counts: the connection ends with it.
    pub(crate) fn put(&self, sighting: Sighting) {
        self.lock().get_or_insert(sighting);
        self.came.notify_one();
    }

    /// What was seen, if anything was.
    pub(crate) fn get(&self) -> Option<Sighting> {
        self.lock().clone()
    }

    /// Returns when there is something.
    pub(crate) async fn came(&self) {
        while self.lock().is_none() {
            self.came.notified().await;
        }
    }

    /// Lets whoever waits for it go on.
    pub(crate) fn tell(&self) {
        self.was_told.notify_one();
    }

    /// Returns when the holder was told and had its time.
    pub(crate) async fn was_told(&self) {
        self.was_told.notified().await;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Sighting>> {
        self.sighting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The body of a request, which breaks off before what must not go on.
pub(crate) struct Watched {
    body: Incoming,
    watch: Watch,
    seen: Arc<Seen>,
    has_begun: bool,
}

impl Watched {
    pub(crate) fn new(body: Incoming, watch: Watch, seen: Arc<Seen>) -> Self {
        Self { body, watch, seen, has_begun: false }
    }

    fn look(&mut self, frame: Option<&Frame<Bytes>>) -> Option<Sighting> {
        let (data, trailers) = match frame {
            Some(frame) => (frame.data_ref(), frame.trailers_ref()),
            None => (None, None),
        };
        let seen = data.and_then(|piece| self.watch.look(piece));
        let seen = seen.or_else(|| look_at_trailers(&mut self.watch, trailers?));
        // Who sends it asks for nothing after the last byte of a known length, or after trailers.
        let is_last = frame.is_none() || trailers.is_some() || self.body.is_end_stream();
        seen.or_else(|| is_last.then(|| self.watch.finish()).flatten())
    }
}

fn look_at_trailers(watch: &mut Watch, trailers: &HeaderMap) -> Option<Sighting> {
    trailers.iter().find_map(|(name, value)| {
        watch.look(name.as_str().as_bytes()).or_else(|| watch.look(value.as_bytes()))
    })
}

impl Body for Watched {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) else {
            return Poll::Pending;
        };
        self.has_begun = true;
        let frame = match frame.transpose() {
            Ok(frame) => frame,
            Err(error) => return Poll::Ready(Some(Err(io::Error::other(error)))),
        };
        if let Some(sighting) = self.look(frame.as_ref()) {
            self.seen.put(sighting);
            // The request breaks off: what was sent of it is no whole one.
            return Poll::Ready(Some(Err(io::ErrorKind::PermissionDenied.into())));
        }
        Poll::Ready(frame.map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        // Whoever sends it writes another head for a request that has no body.
        !self.has_begun && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

//! Streams of server-sent events.

use super::guard::Counted;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::stream::{self, Stream};
use serde::Serialize;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

/// How often a stream on which nothing happens says that it is there.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// What feeds a stream.
pub(crate) trait Source: Send + 'static {
    /// What comes next, at least one event; `None` at the end. Asked only when the caller has taken
    /// what came before, so that who reads slowly holds nothing but its own stream.
    fn next(&mut self) -> impl Future<Output = Option<Vec<Event>>> + Send;
}

/// A stream that ends with its source, its key or the server.
pub(crate) fn stream_of(
    counted: Counted,
    source: impl Source,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let over = counted.is_over();
    let state = ((counted, over), source, VecDeque::new());
    let events = stream::unfold(state, async |((counted, mut over), mut source, mut ready)| {
        if ready.is_empty() {
            let more = tokio::select! {
                // Also where there is always more.
                biased;
                _ = &mut over => return None,
                more = source.next() => more?,
            };
            ready.extend(more);
        }
        let event = ready.pop_front()?;
        Some((Ok(event), ((counted, over), source, ready)))
    });
    Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE))
}

/// An event with an object.
pub(crate) fn event(name: &str, id: &str, object: &impl Serialize) -> Event {
    // Objects of reports always serialise; should one not, the event says nothing.
    let data = serde_json::to_string(object).unwrap_or_default();
    Event::default().event(name).id(id).data(data)
}

/// The number from which a caller wants to go on: that of the last event it saw, before one it asks for.
pub(crate) fn last_seen(headers: &axum::http::HeaderMap) -> Option<&str> {
    headers.get("last-event-id").and_then(|id| id.to_str().ok()).filter(|id| !id.is_empty())
}

/// What a stream says of an error, and then ends.
pub(crate) fn failed(problem: super::error::Problem) -> Event {
    event("problem", "", &problem.report())
}

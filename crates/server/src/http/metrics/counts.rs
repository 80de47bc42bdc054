//! What is counted of requests.

use super::text;
use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// Up to how many seconds each part of the histogram counts.
pub(super) const SECONDS: [f64; 10] = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0];

/// Counters of all owners; of nobody those who were not let in.
#[derive(Debug, Default)]
pub(super) struct Counts(Mutex<BTreeMap<Option<String>, Owned>>);

/// What is asked for: a method and a route, of which there are so many as the server has.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Of {
    pub(super) method: &'static str,
    pub(super) route: String,
}

/// Counters of one owner.
#[derive(Debug, Default)]
struct Owned {
    requests: BTreeMap<(Of, u16), u64>,
    durations: BTreeMap<Of, Durations>,
    bytes: Arc<AtomicU64>,
}

/// How long requests took until their answer began.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Durations {
    /// How many took no longer than each of [`SECONDS`].
    pub(super) within: [u64; SECONDS.len()],
    pub(super) count: u64,
    pub(super) sum: f64,
}

impl Durations {
    fn add(&mut self, seconds: f64) {
        for (within, most) in self.within.iter_mut().zip(SECONDS) {
            *within += u64::from(seconds <= most);
        }
        self.count += 1;
        self.sum += seconds;
    }

    fn add_all(&mut self, other: &Self) {
        for (within, more) in self.within.iter_mut().zip(other.within) {
            *within += more;
        }
        self.count += other.count;
        self.sum += other.sum;
    }
}

impl Counts {
    /// Counts one answer, and gives what its bytes are counted by.
    pub(super) fn add(
        &self,
        owner: Option<String>,
        of: Of,
        status: u16,
        took: Duration,
    ) -> Arc<AtomicU64> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let owned = all.entry(owner).or_default();
        *owned.requests.entry((of.clone(), status)).or_default() += 1;
        owned.durations.entry(of).or_default().add(took.as_secs_f64());
        Arc::clone(&owned.bytes)
    }

    /// The counters of one owner, or of all, as text.
    pub(super) fn text(&self, owner: Option<&str>) -> String {
        let mut requests: BTreeMap<(Of, u16), u64> = BTreeMap::new();
        let mut durations: BTreeMap<Of, Durations> = BTreeMap::new();
        let mut bytes = 0;
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (of_owner, owned) in all.iter() {
            if owner.is_some() && of_owner.as_deref() != owner {
                continue;
            }
            for (key, count) in &owned.requests {
                *requests.entry(key.clone()).or_default() += count;
            }
            for (key, took) in &owned.durations {
                durations.entry(key.clone()).or_default().add_all(took);
            }
            bytes += owned.bytes.load(Ordering::Relaxed);
        }
        drop(all);
        text::requests(&requests, &durations, bytes)
    }
}

/// A body whose bytes are counted when they go out.
pub(super) struct Counting {
    pub(super) body: Body,
    pub(super) bytes: Arc<AtomicU64>,
}

impl HttpBody for Counting {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if let Some(Ok(frame)) = &frame
            && let Some(data) = frame.data_ref()
        {
            self.bytes.fetch_add(data.len() as u64, Ordering::Relaxed);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_sees_its_own_numbers_and_no_name_of_anybody() {
        let counts = Counts::default();
        let of = |route: &str| Of { method: "GET", route: route.to_owned() };
        let add = |owner: Option<&str>, route, status, ms| {
            counts.add(owner.map(str::to_owned), of(route), status, Duration::from_millis(ms))
        };
        add(Some("alice"), "/v1/a", 200, 2).fetch_add(7, Ordering::Relaxed);
        add(Some("alice"), "/v1/a", 200, 2000);
        add(Some("bob"), "/v1/b", 404, 1).fetch_add(5, Ordering::Relaxed);
        add(None, "/v1/a", 401, 1);
        let (alice, all) = (counts.text(Some("alice")), counts.text(None));
        let request =
            "cofferdam_http_requests_total{method=\"GET\",route=\"/v1/a\",status=\"200\"} 2";
        assert!(alice.contains(request) && all.contains(request), "{alice}");
        assert!(!alice.contains("/v1/b") && !alice.contains("401"), "{alice}");
        assert!(all.contains("/v1/b") && all.contains("status=\"401\"} 1"), "{all}");
        assert!(alice.contains("cofferdam_http_response_bytes_total 7"), "{alice}");
        assert!(all.contains("cofferdam_http_response_bytes_total 12"), "{all}");
        assert!(!all.contains("alice") && !all.contains("bob"), "{all}");
        assert!(alice.contains("le=\"0.005\"} 1") && alice.contains("le=\"+Inf\"} 2"), "{alice}");
    }
}

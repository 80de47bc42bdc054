//! What all requests share.

use crate::Ground;
use crate::http::{Counts, Rates};
use cofferdam_core::Result;
use cofferdam_session::Sessions;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::watch;

/// What an operator decides.
#[derive(Debug, Clone)]
pub struct Options {
    /// What sandboxes of requests are made from.
    pub ground: Ground,
    /// Whether nobody is let in by TCP without a key, whatever the address.
    pub keys_only: bool,
    /// Names of hosts by which the server may be asked, besides numbers and `localhost`.
    pub hosts: Vec<String>,
    /// Origins whose pages may ask.
    pub origins: Vec<String>,
    /// The most connections at once.
    pub max_connections: usize,
    /// Takes a line for the operator.
    pub log: fn(&str),
}

/// What all requests share. Clones are the same server.
#[derive(Debug, Clone)]
pub struct Server(pub(crate) Arc<Inner>);

/// What all clones share.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) sessions: Sessions,
    pub(crate) options: Options,
    /// Whether the server is to end: streams that would never end by themselves end then.
    pub(crate) ending: watch::Sender<bool>,
    pub(crate) rates: Rates,
    pub(crate) requests: Counts,
    pub(crate) streams: Counts,
    begun_ms: u64,
    count: AtomicU64,
}

impl Server {
    /// A server of these sessions.
    pub fn new(sessions: Sessions, options: Options) -> Self {
        let begun = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Self(Arc::new(Inner {
            sessions,
            options,
            ending: watch::Sender::new(false),
            rates: Rates::default(),
            requests: Counts::default(),
            streams: Counts::default(),
            begun_ms: begun.ok().and_then(|t| u64::try_from(t.as_millis()).ok()).unwrap_or(0),
            count: AtomicU64::new(0),
        }))
    }

    /// Whether nobody is let in by TCP without a key: from the first key on, though it may have been
    /// revoked since.
    pub(crate) async fn requires_keys(&self) -> Result<bool> {
        Ok(self.0.options.keys_only || self.0.sessions.has_keys().await?)
    }

    /// A number for the next request, which no other request of this state directory has.
    pub(crate) fn next_request(&self) -> String {
        let count = self.0.count.fetch_add(1, Ordering::Relaxed);
        format!("{:x}-{count:x}", self.0.begun_ms)
    }

    /// Waits until the server is to end.
    pub(crate) async fn is_to_end(&self) {
        let mut ending = self.0.ending.subscribe();
        drop(ending.wait_for(|is_ending| *is_ending).await);
    }
}

//! What all requests share.

use crate::http::{Answers, Counts, Lookout, Ports, Rates, Receipts, Untaken};
use crate::serve::{Stage, reached};
use crate::{Ground, Listen, Traces};
use cofferdam_core::Result;
use cofferdam_session::Sessions;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
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
    /// The name below which ports of sandboxes have addresses, with a port where it needs one: all
    /// names below it lead to this server, by https. Without it they lie below `localhost`, where the
    /// server listens on a loopback address.
    pub port_domain: Option<String>,
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
    pub(crate) traces: Traces,
    /// How far its end is: streams that would never end by themselves end then.
    pub(crate) stage: watch::Sender<Stage>,
    pub(crate) rates: Rates,
    pub(crate) requests: Counts,
    pub(crate) untaken: Untaken,
    #[cfg(feature = "mcp")]
    pub(crate) cancels: Counts,
    pub(crate) streams: Counts,
    pub(crate) lookout: Lookout,
    pub(crate) ports: Ports,
    pub(crate) receipts: Receipts,
    pub(crate) answers: Answers,
    /// The port of the loopback address that it listens on.
    pub(crate) here: OnceLock<u16>,
    #[cfg(feature = "mcp")]
    pub(crate) mcp: crate::http::Mounted,
    begun_ms: u64,
    count: AtomicU64,
}

impl Server {
    /// A server of these sessions.
    pub fn new(sessions: Sessions, options: Options) -> Self {
        Self::traced(sessions, options, Traces::default())
    }

    /// The same, and what it does is told there.
    pub fn traced(sessions: Sessions, options: Options, traces: Traces) -> Self {
        let begun = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Self(Arc::new(Inner {
            sessions,
            options,
            traces,
            stage: watch::Sender::new(Stage::Serving),
            rates: Rates::default(),
            requests: Counts::default(),
            untaken: Untaken::default(),
            #[cfg(feature = "mcp")]
            cancels: Counts::default(),
            streams: Counts::default(),
            lookout: Lookout::default(),
            ports: Ports::default(),
            receipts: Receipts::default(),
            answers: Answers::default(),
            here: OnceLock::new(),
            #[cfg(feature = "mcp")]
            mcp: crate::http::Mounted::default(),
            begun_ms: begun.ok().and_then(|t| u64::try_from(t.as_millis()).ok()).unwrap_or(0),
            count: AtomicU64::new(0),
        }))
    }

    /// Whether nobody is let in by TCP without a key: from the first key on, though it may have been
    /// revoked since.
    pub(crate) async fn requires_keys(&self) -> Result<bool> {
        Ok(self.0.options.keys_only || self.0.sessions.has_keys().await?)
    }

    /// The name below which ports of sandboxes have addresses, if there is one.
    pub(crate) fn domain(&self) -> Option<String> {
        let here = || self.0.here.get().map(|port| format!("localhost:{port}"));
        self.0.options.port_domain.clone().or_else(here)
    }

    /// Tells it where it listens, for a program that takes connections in by itself. Only a loopback
    /// address counts, and only the first.
    pub fn listens_at(&self, at: &Listen) {
        if let Listen::Tcp(address) = at
            && address.ip().is_loopback()
        {
            // Another one that it listens at is as good.
            let _ = self.0.here.set(address.port());
        }
    }

    /// A number for the next request, which no other request of this state directory has.
    pub(crate) fn next_request(&self) -> String {
        let count = self.0.count.fetch_add(1, Ordering::Relaxed);
        format!("{:x}-{count:x}", self.0.begun_ms)
    }

    /// Waits until the server is to end.
    pub(crate) async fn is_to_end(&self) {
        reached(&mut self.0.stage.subscribe(), Stage::Ending).await;
    }

    /// Waits until whatever is still at work is to be given up.
    pub(crate) async fn is_cut(&self) {
        reached(&mut self.0.stage.subscribe(), Stage::Cut).await;
    }

    /// Does something beside requests until the server is to end.
    pub(crate) fn beside(&self, work: impl Future<Output = ()> + Send + 'static) {
        let server = self.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = work => {}
                () = server.is_to_end() => {}
            }
        });
    }
}

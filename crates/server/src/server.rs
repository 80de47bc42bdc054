//! What all requests share.

use crate::Ground;
use cofferdam_session::Sessions;
use std::sync::Arc;
use tokio::sync::watch;

/// What an operator decides.
#[derive(Debug, Clone)]
pub struct Options {
    /// What sandboxes of requests are made from.
    pub ground: Ground,
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
}

impl Server {
    /// A server of these sessions.
    pub fn new(sessions: Sessions, options: Options) -> Self {
        Self(Arc::new(Inner { sessions, options, ending: watch::Sender::new(false) }))
    }

    /// Whether nobody is let in by TCP without a key.
    pub(crate) fn requires_keys(&self) -> bool {
        false
    }
}

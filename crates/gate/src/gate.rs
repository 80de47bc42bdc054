//! What the connections of one gate share.

use crate::attempt::now_ms;
use crate::denied::Denied;
use crate::limits::Limits;
use crate::log::Log;
use crate::names::Names;
use crate::resolve::Resolve;
use crate::secrets::Secrets;
use crate::waiting::Waiting;
use cofferdam_core::{ConnectionReport, NetworkPolicy};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, watch};

/// Tells where a connection that was led here wanted to go.
pub(crate) type Original = Arc<dyn Fn(&TcpStream) -> io::Result<SocketAddr> + Send + Sync>;

/// One gate.
pub(crate) struct Gate {
    pub(crate) limits: Limits,
    log: Log,
    pub(crate) resolve: Resolve,
    pub(crate) original: Original,
    /// Those that wait to be allowed.
    pub(crate) waiting: Waiting,
    denied: Denied,
    /// One permit for each connection.
    pub(crate) connections: Arc<Semaphore>,
    /// Whether connections of IPv6 are led here.
    pub(crate) has_v6: bool,
    /// The secrets that are put in, if there are any.
    pub(crate) secrets: Option<Secrets>,
    policy: watch::Sender<Arc<NetworkPolicy>>,
    names: Mutex<Names>,
    last_id: AtomicU64,
}

/// What a gate is made of.
pub(crate) struct Parts {
    pub(crate) limits: Limits,
    pub(crate) log: Log,
    pub(crate) resolve: Resolve,
    pub(crate) original: Original,
    pub(crate) has_v6: bool,
    pub(crate) policy: NetworkPolicy,
    pub(crate) secrets: Option<Secrets>,
    pub(crate) waiting: Waiting,
    pub(crate) denied: Denied,
}

impl Gate {
    pub(crate) fn new(parts: Parts) -> Self {
        let Parts { limits, log, resolve, original, has_v6, policy, secrets, waiting, denied } =
            parts;
        Self {
            waiting,
            denied,
            connections: Arc::new(Semaphore::new(limits.connections)),
            policy: watch::Sender::new(Arc::new(policy)),
            names: Mutex::new(Names::new(limits.names)),
            last_id: AtomicU64::new(0),
            limits,
            log,
            resolve,
            original,
            has_v6,
            secrets,
        }
    }

    /// The policy that is in force now.
    pub(crate) fn policy(&self) -> Arc<NetworkPolicy> {
        self.policy.borrow().clone()
    }

    /// Tells of the policies that come.
    pub(crate) fn policies(&self) -> watch::Receiver<Arc<NetworkPolicy>> {
        self.policy.subscribe()
    }

    /// Puts another policy in force.
    pub(crate) fn set_policy(&self, policy: NetworkPolicy) {
        self.policy.send_replace(Arc::new(policy));
    }

    /// Writes down what became of a connection, and tells the holder where it was denied.
    pub(crate) fn log(&self, report: &ConnectionReport) {
        // ORDER: who is told finds it in the log.
        self.log.write(report);
        self.denied.look_at(report);
    }

    /// Writes down something about the gate itself.
    pub(crate) fn note(&self, what: &str) {
        self.log.write(&ConnectionReport::of_the_gate(now_ms(), self.policy().version, what));
    }

    pub(crate) fn names(&self) -> MutexGuard<'_, Names> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of the next connection.
    pub(crate) fn next_id(&self) -> u64 {
        self.last_id.fetch_add(1, Ordering::Relaxed).saturating_add(1)
    }
}

//! One connection, from its arrival to its line in the log.

use crate::gate::Gate;
use cofferdam_core::network::MAX_ASK_MS;
use cofferdam_core::policy::{Asked, Decision, Host};
use cofferdam_core::{
    ConnectionDecision, ConnectionHow, ConnectionReport, NetworkPolicy, Opening, WaitingConnection,
};
use cofferdam_terminate::{HOLDS_BACK, Sighting};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Bytes that were carried.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) up: AtomicU64,
    pub(crate) down: AtomicU64,
}

/// A connection that a line of the log will be written of, when this is dropped: however that comes
/// about.
pub(crate) struct Attempt {
    pub(crate) gate: Arc<Gate>,
    pub(crate) counts: Arc<Counts>,
    began: Instant,
    report: ConnectionReport,
    /// What somebody opened for this connection alone.
    opened: Vec<Opening>,
    /// Whether something was seen on it. What ends it afterwards is no news.
    is_alarmed: bool,
}

/// The longest reason that is written down.
const MAX_REASON_BYTES: usize = 512;

impl Attempt {
    pub(crate) fn new(gate: &Arc<Gate>, how: ConnectionHow) -> Self {
        let report = ConnectionReport {
            at_ms: now_ms(),
            id: gate.next_id(),
            how,
            host: None,
            address: None,
            port: 0,
            // What it is unless something better comes of it.
            decision: ConnectionDecision::Failed,
            rule: None,
            reason: Some("it was given up".to_owned()),
            remedy: None,
            bytes_up: 0,
            bytes_down: 0,
            duration_ms: 0,
            policy_version: gate.policy().version,
            request: None,
            execs: None,
        };
        let counts = Arc::new(Counts::default());
        let (began, opened) = (Instant::now(), Vec::new());
        Self { gate: gate.clone(), counts, began, report, opened, is_alarmed: false }
    }

    /// Notes how it turned out to have come.
    pub(crate) fn comes(&mut self, how: ConnectionHow) {
        self.report.how = how;
    }

    /// Notes what was asked for.
    pub(crate) fn asks(&mut self, asked: &Asked) {
        match &asked.host {
            Host::Name(name) => {
                self.report.host = Some(name.to_string());
                // What stood for it inside is no address of anybody's.
                self.report.address = None;
            }
            Host::Address(address) => self.report.address = Some(address.to_string()),
        }
        self.report.port = asked.port;
    }

    /// Notes where it was led to, when nothing better is known.
    pub(crate) fn meant(&mut self, address: SocketAddr) {
        self.report.address = Some(address.ip().to_canonical().to_string());
        self.report.port = address.port();
    }

    /// Notes a name that was asked about.
    pub(crate) fn names(&mut self, name: &str) {
        self.report.host = Some(name.to_owned());
    }

    /// Notes the address that is dialed.
    pub(crate) fn leads_to(&mut self, address: IpAddr) {
        self.report.address = Some(address.to_string());
    }

    /// Notes what was decided, by this edition of the policy.
    pub(crate) fn decided(&mut self, decision: &Decision, version: u64) {
        self.report.policy_version = version;
        self.report.rule.clone_from(&decision.rule);
        self.report.reason.clone_from(&decision.reason);
        self.report.remedy.clone_from(&decision.remedy);
        self.report.decision = match decision.allowed {
            true => ConnectionDecision::Allowed,
            false => ConnectionDecision::Denied,
        };
        let is_by = |opening: &Opening| decision.rule == Some(opening.deciding());
        if decision.allowed && self.opened.iter().any(is_by) {
            self.report.reason = Some("approved for this connection alone".to_owned());
        }
    }

    /// Opens this for this connection and no other.
    pub(crate) fn open(&mut self, opening: Opening) {
        self.opened.push(opening);
    }

    /// A policy as it holds for this connection.
    pub(crate) fn own(&self, policy: &Arc<NetworkPolicy>) -> Arc<NetworkPolicy> {
        self.opened.iter().fold(policy.clone(), |policy, opening| Arc::new(opening.over(&policy)))
    }

    /// Notes that it is refused whatever the policy is.
    pub(crate) fn refused(&mut self, reason: &str) {
        self.report.decision = ConnectionDecision::Denied;
        self.report.rule = None;
        self.report.remedy = None;
        self.report.reason = Some(shortened(reason));
    }

    /// Notes that it was allowed and came to nothing.
    pub(crate) fn failed(&mut self, reason: &str) {
        self.report.decision = ConnectionDecision::Failed;
        self.report.reason = Some(shortened(reason));
    }

    /// How it came.
    pub(crate) fn how(&self) -> ConnectionHow {
        self.report.how
    }

    /// Notes that something was on its way that must not go there, and tells the holder. Returns once the
    /// holder had time to stop whoever caused it.
    pub(crate) async fn alarmed(&mut self, sighting: &Sighting, asked: &Asked) {
        self.gate.raise(sighting, asked);
        self.saw(sighting, asked);
        tokio::time::sleep(HOLDS_BACK).await;
    }

    /// Notes it, where the holder was told.
    pub(crate) fn saw(&mut self, sighting: &Sighting, asked: &Asked) {
        let what = match &sighting.secret {
            Some(name) => format!("secret alarm: the placeholder of secret {name} is not for"),
            None => "secret alarm: a canary is not for".to_owned(),
        };
        self.refused(&format!("{what} {asked}"));
        self.is_alarmed = true;
    }

    /// Notes why one that was allowed ended, where that is not its own doing.
    pub(crate) fn ended(&mut self, reason: &str) {
        if !self.is_alarmed {
            self.report.reason = Some(shortened(reason));
        }
    }

    /// What it would wait for, until then.
    pub(crate) fn waiting(&self, opening: &Opening, patience: Duration) -> WaitingConnection {
        let report = &self.report;
        let at_ms = now_ms();
        let patience_ms = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
        WaitingConnection {
            number: 0,
            at_ms,
            until_ms: at_ms.saturating_add(patience_ms),
            how: report.how,
            host: report.host.clone(),
            address: report.address.clone().filter(|_| report.host.is_none()),
            port: report.port,
            reason: report.reason.clone(),
            remedy: opening.to_string(),
        }
    }

    /// Writes at once that it waits to be allowed, and by what.
    pub(crate) fn waits(&mut self, request: String) {
        self.report.request = Some(request);
        let report = ConnectionReport { decision: ConnectionDecision::Asked, ..self.measured() };
        self.gate.log(&report);
    }

    /// How long one may wait to be allowed and what would allow it, if anything.
    pub(crate) fn patience(&self, decision: &Decision) -> Option<(Duration, Opening)> {
        let ask_ms = self.gate.policy().ask_ms.min(MAX_ASK_MS);
        // What is denied on purpose, or can be opened by no line, waits for nothing.
        let opening = decision.remedy.as_deref().map(Opening::of_remedy)?.ok()?;
        (ask_ms > 0).then(|| (Duration::from_millis(ask_ms), opening))
    }

    fn measured(&self) -> ConnectionReport {
        ConnectionReport {
            bytes_up: self.counts.up.load(Ordering::Relaxed),
            bytes_down: self.counts.down.load(Ordering::Relaxed),
            duration_ms: u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX),
            ..self.report.clone()
        }
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        self.gate.log(&self.measured());
    }
}

fn shortened(reason: &str) -> String {
    let mut end = reason.len().min(MAX_REASON_BYTES);
    while !reason.is_char_boundary(end) {
        end = end.saturating_sub(1);
    }
    reason.get(..end).unwrap_or_default().to_owned()
}

pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

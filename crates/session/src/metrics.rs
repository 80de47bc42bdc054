//! What a session uses, and what would stop an attack from inside it.

use crate::answer::{if_there, within};
use crate::{Session, now_ms};
use cofferdam_core::{
    ConnectionDecision, ConnectionHow, ConnectionReport, Error, ErrorKind, ProbeReport, Result,
    SandboxMetrics,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tokio::sync::Semaphore;

/// How long a battery of attacks may take. It takes some seconds, and makes a sandbox first.
const PROVEN_WITHIN: Duration = Duration::from_secs(180);
/// How many batteries one process runs at a time. Each keeps a processor busy and uses up limits.
pub const MAX_PROOFS: usize = 2;
static PROOFS: Semaphore = Semaphore::const_new(MAX_PROOFS);

/// What a session uses now. Format 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricsReport {
    /// The id of the session.
    pub session: String,
    /// When it was looked, in milliseconds since 1970.
    pub at_ms: u64,
    /// The processes of its sandbox, the first one and those that watch over commands included; 0 where
    /// there is no sandbox now.
    pub processes: u32,
    /// Processor time that the sandbox used so far, in milliseconds.
    pub cpu_ms: Option<f64>,
    /// The memory that it holds, in bytes: as its control group counts, what it has in memory of files
    /// included; without a group the sum over its processes, in which what they share counts for each.
    pub memory_bytes: Option<u64>,
    /// The most that it held at once, in bytes; known of a control group alone.
    pub peak_memory_bytes: Option<u64>,
    /// Its connections through the gate.
    pub connections: ConnectionCounts,
}

/// Connections of a sandbox, as far as they are kept. Questions for names that were refused count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConnectionCounts {
    /// Those that were let through and have ended.
    pub allowed: u64,
    /// Those that were refused.
    pub denied: u64,
    /// Those that were allowed and did not come about.
    pub failed: u64,
    /// Bytes from inside.
    pub bytes_up: u64,
    /// Bytes from outside.
    pub bytes_down: u64,
}

impl ConnectionCounts {
    /// Both together.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self {
            allowed: self.allowed.saturating_add(other.allowed),
            denied: self.denied.saturating_add(other.denied),
            failed: self.failed.saturating_add(other.failed),
            bytes_up: self.bytes_up.saturating_add(other.bytes_up),
            bytes_down: self.bytes_down.saturating_add(other.bytes_down),
        }
    }

    fn add(&mut self, report: &ConnectionReport) {
        let which = match report.decision {
            ConnectionDecision::Allowed => &mut self.allowed,
            ConnectionDecision::Denied => &mut self.denied,
            ConnectionDecision::Failed => &mut self.failed,
            // Another line says how that went.
            ConnectionDecision::Asked => return,
        };
        *which = which.saturating_add(1);
        if report.how != ConnectionHow::Dns {
            self.bytes_up = self.bytes_up.saturating_add(report.bytes_up);
            self.bytes_down = self.bytes_down.saturating_add(report.bytes_down);
        }
    }
}

impl Session {
    /// What it uses now, as the host sees it. Wakes nothing.
    pub async fn metrics(&self) -> Result<MetricsReport> {
        let inner = &self.sessions.0;
        let row = inner.row(self.id()).await?;
        let backend = inner.backend(&row.backend)?;
        let used = match &row.record {
            None => SandboxMetrics::default(),
            Some(record) => {
                let asked = backend.metrics(record);
                if_there("say what a sandbox uses", asked).await?.unwrap_or_default()
            }
        };
        let SandboxMetrics { processes, cpu_ms, memory_bytes, peak_memory_bytes } = used;
        Ok(MetricsReport {
            session: self.id().to_string(),
            at_ms: now_ms(),
            processes,
            cpu_ms,
            memory_bytes,
            peak_memory_bytes,
            connections: self.connection_counts().await?,
        })
    }

    /// Attacks a sandbox from inside that is made as those of this session are, in a workspace of its own,
    /// and says what came of each attack. The session's own sandbox is left alone. Takes some seconds.
    pub async fn prove(&self) -> Result<ProbeReport> {
        let inner = &self.sessions.0;
        let row = inner.row(self.id()).await?;
        let (backend, spec) = (inner.backend(&row.backend)?, row.spec.spec()?);
        let _one = PROOFS.try_acquire().map_err(|_| {
            let what = format!("{MAX_PROOFS} proofs are made at the moment, and no more at once");
            Error::new(ErrorKind::Unavailable, what).hint("Try again in a few seconds.")
        })?;
        within(PROVEN_WITHIN, "attack a sandbox from inside", backend.prove(&spec)).await
    }

    /// Its connections through the gate, as far as they are kept. Wakes nothing.
    pub async fn connection_counts(&self) -> Result<ConnectionCounts> {
        let (mut counts, mut from) = (ConnectionCounts::default(), 0);
        loop {
            let found = self.connections(from).await?;
            found.connections.iter().for_each(|report| counts.add(report));
            if found.connections.is_empty() || found.next <= from {
                return Ok(counts);
            }
            from = found.next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_core::ConnectionHow;

    fn report(how: ConnectionHow, decision: ConnectionDecision) -> ConnectionReport {
        ConnectionReport {
            at_ms: 1,
            id: 1,
            how,
            host: None,
            address: None,
            port: 443,
            decision,
            rule: None,
            reason: None,
            remedy: None,
            bytes_up: 3,
            bytes_down: 5,
            duration_ms: 1,
            policy_version: 1,
            request: None,
            execs: None,
        }
    }

    #[test]
    fn connections_are_counted_by_what_became_of_them() {
        use ConnectionDecision::{Allowed, Asked, Denied, Failed};
        let mut counts = ConnectionCounts::default();
        for decision in [Allowed, Allowed, Denied, Failed, Asked] {
            counts.add(&report(ConnectionHow::Connect, decision));
        }
        counts.add(&report(ConnectionHow::Dns, Denied));
        let expected =
            ConnectionCounts { allowed: 2, denied: 2, failed: 1, bytes_up: 12, bytes_down: 20 };
        assert_eq!(counts, expected);
    }
}

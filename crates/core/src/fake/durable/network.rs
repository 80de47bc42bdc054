//! The way out of sandboxes that are kept: decided by the rules, and dialed by nobody.

use super::world::{State, gone, now_ms};
use crate::policy::{Asked, decide};
use crate::{
    ConnectionDecision, ConnectionHow, ConnectionReport, Connections, Error, ErrorKind,
    NetworkPolicy, Result, SandboxId, no_way_out,
};

/// One way in which the way out of a [`FakeDurable`](super::FakeDurable) is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NetworkFault {
    /// What is shown are the rules that it was made with, whatever holds.
    ShowsTheFirst,
    /// Rules are changed in what is shown, and in nothing else.
    ChangesNothing,
    /// Rules of any edition are taken.
    TakesAnyVersion,
    /// A sandbox without a way out gets one.
    OpensAnyway,
    /// Nothing is written down.
    ForgetsConnections,
}

impl NetworkFault {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::ShowsTheFirst,
        Self::ChangesNothing,
        Self::TakesAnyVersion,
        Self::OpensAnyway,
        Self::ForgetsConnections,
    ];
}

/// The way out of one sandbox.
#[derive(Debug, Default)]
pub(super) struct WayOut {
    first: Option<NetworkPolicy>,
    /// What is shown.
    shown: Option<NetworkPolicy>,
    /// What decides.
    holds: Option<NetworkPolicy>,
    reports: Vec<ConnectionReport>,
}

impl WayOut {
    /// That of a sandbox that was made with these rules, if with any.
    pub(super) fn new(policy: Option<NetworkPolicy>) -> Self {
        Self { first: policy.clone(), shown: policy.clone(), holds: policy, reports: Vec::new() }
    }
}

impl State {
    fn is_wrong(&self, fault: NetworkFault) -> bool {
        self.faults.contains(&fault)
    }

    pub(super) fn network(&mut self, id: &SandboxId) -> Result<Option<NetworkPolicy>> {
        let shows_the_first = self.is_wrong(NetworkFault::ShowsTheFirst);
        let way_out = &self.living(id)?.way_out;
        Ok(if shows_the_first { way_out.first.clone() } else { way_out.shown.clone() })
    }

    pub(super) fn set_network(&mut self, id: &SandboxId, policy: NetworkPolicy) -> Result<()> {
        policy.check()?;
        let opens_anyway = self.is_wrong(NetworkFault::OpensAnyway);
        let takes_any = self.is_wrong(NetworkFault::TakesAnyVersion);
        let changes_nothing = self.is_wrong(NetworkFault::ChangesNothing);
        let way_out = &mut self.living(id)?.way_out;
        let next = match &way_out.shown {
            Some(now) => now.version.saturating_add(1),
            None if opens_anyway => policy.version,
            None => return Err(no_way_out(id)),
        };
        if policy.version != next && !takes_any {
            let what =
                format!("the next network policy is of version {next}, not {}", policy.version);
            return Err(Error::new(ErrorKind::Conflict, what).hint("Look at it again first."));
        }
        if !changes_nothing {
            way_out.holds = Some(policy.clone());
        }
        way_out.shown = Some(policy);
        Ok(())
    }

    pub(super) fn connections(&self, id: &SandboxId, from: u64) -> Result<Connections> {
        let reports = &self.sandboxes.get(id).ok_or_else(|| gone(id))?.way_out.reports;
        let first = usize::try_from(from).unwrap_or(usize::MAX);
        let reports: Vec<ConnectionReport> = reports.iter().skip(first).cloned().collect();
        let next = from.saturating_add(reports.len() as u64);
        Ok(Connections { reports, next })
    }

    /// A command asks for a connection. Whether it gets one.
    pub(super) fn connect(&mut self, id: &SandboxId, destination: &str) -> bool {
        let forgets = self.is_wrong(NetworkFault::ForgetsConnections);
        let Ok(sandbox) = self.living(id) else { return false };
        let Ok(asked) = destination.parse::<Asked>() else { return false };
        let way_out = &mut sandbox.way_out;
        let Some(policy) = &way_out.holds else { return false };
        let decision = decide(policy, &asked);
        if !forgets {
            let id = way_out.reports.len() as u64 + 1;
            way_out.reports.push(ConnectionReport {
                at_ms: now_ms(),
                id,
                how: ConnectionHow::Transparent,
                host: Some(asked.host.to_string()),
                address: None,
                port: asked.port,
                decision: match decision.allowed {
                    true => ConnectionDecision::Allowed,
                    false => ConnectionDecision::Denied,
                },
                rule: decision.rule,
                reason: decision.reason,
                remedy: decision.remedy,
                bytes_up: 0,
                bytes_down: 0,
                duration_ms: 0,
                policy_version: policy.version,
                request: None,
                execs: None,
            });
        }
        decision.allowed
    }
}

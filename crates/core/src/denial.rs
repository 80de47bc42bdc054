//! What was denied, as the host saw it.

use crate::{ConnectionDecision, ConnectionHow, ConnectionReport};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How many destinations are named. More are counted with none of them.
pub const MAX_DENIALS: usize = 100;

/// A destination that was denied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Denial {
    /// The name that was asked for; null where an address was.
    pub host: Option<String>,
    /// The address that was asked for, or that the name led to.
    pub address: Option<String>,
    /// The port. 0 where only the name was asked for.
    pub port: u16,
    /// How it was asked for first.
    pub how: ConnectionHow,
    /// The rule that decided; null where none did.
    pub rule: Option<String>,
    /// Why.
    pub reason: Option<String>,
    /// What would allow it, as it is written on the command line.
    pub remedy: Option<String>,
    /// How often.
    pub count: u64,
    /// What it waited by to be allowed, in vain; null where it did not wait.
    #[serde(default)]
    pub request: Option<String>,
}

/// What was denied of these connections: each destination once, in the order in which it came first.
/// The question for a name that was denied is left out where a connection to it was, too.
pub fn denials<'a>(reports: impl IntoIterator<Item = &'a ConnectionReport>) -> Vec<Denial> {
    let mut found: Vec<Denial> = Vec::new();
    for report in reports {
        // What is about no place is about the gate itself, which then answers nobody.
        let is_nowhere = report.host.is_none() && report.address.is_none();
        match report.decision {
            ConnectionDecision::Denied => {}
            ConnectionDecision::Failed if is_nowhere => {}
            ConnectionDecision::Failed
            | ConnectionDecision::Allowed
            | ConnectionDecision::Asked => continue,
        }
        let is_same = |known: &&mut Denial| {
            known.port == report.port
                && known.host == report.host
                && (report.host.is_some() || known.address == report.address)
        };
        if let Some(known) = found.iter_mut().find(is_same) {
            known.count += 1;
        } else if found.len() < MAX_DENIALS {
            found.push(Denial::of(report));
        }
    }
    let connected: Vec<Option<String>> =
        found.iter().filter(|denial| denial.port != 0).map(|denial| denial.host.clone()).collect();
    found.retain(|denial| denial.port != 0 || !connected.contains(&denial.host));
    found
}

impl Denial {
    fn of(report: &ConnectionReport) -> Self {
        Self {
            host: report.host.clone(),
            address: report.address.clone(),
            port: report.port,
            how: report.how,
            rule: report.rule.clone(),
            reason: report.reason.clone(),
            remedy: report.remedy.clone(),
            count: 1,
            request: report.request.clone(),
        }
    }
}

impl fmt::Display for Denial {
    /// One line for people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.as_ref().or(self.address.as_ref()) {
            Some(address) if address.contains(':') => write!(f, "denied: [{address}]")?,
            Some(place) => write!(f, "denied: {place}")?,
            None => f.write_str("the way out")?,
        }
        if self.port != 0 {
            write!(f, ":{}", self.port)?;
        }
        if self.count > 1 {
            write!(f, " ({} times)", self.count)?;
        }
        if let Some(reason) = &self.reason {
            write!(f, ": {reason}")?;
        }
        match &self.remedy {
            Some(remedy) => write!(f, "; {remedy} would allow it"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(host: &str, port: u16, decision: ConnectionDecision) -> ConnectionReport {
        ConnectionReport {
            at_ms: 1,
            id: 1,
            how: if port == 0 { ConnectionHow::Dns } else { ConnectionHow::Transparent },
            host: Some(host.to_owned()),
            address: None,
            port,
            decision,
            rule: None,
            reason: Some("no rule allows it".to_owned()),
            remedy: Some(format!("--egress {host}:{port}")),
            bytes_up: 0,
            bytes_down: 0,
            duration_ms: 0,
            policy_version: 1,
            request: None,
            execs: None,
        }
    }

    #[test]
    fn each_destination_is_told_once() {
        use ConnectionDecision::{Allowed, Denied};
        let all = [
            report("a.test", 0, Denied),
            report("b.test", 443, Allowed),
            report("a.test", 443, Denied),
            report("a.test", 443, Denied),
            report("c.test", 0, Denied),
        ];
        let found = denials(&all);
        let lines: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(
            lines,
            [
                "denied: a.test:443 (2 times): no rule allows it; --egress a.test:443 would allow it",
                "denied: c.test: no rule allows it; --egress c.test:0 would allow it",
            ]
        );
    }

    #[test]
    fn a_gate_that_ended_is_told() {
        let mut ended = report("x", 0, ConnectionDecision::Failed);
        (ended.host, ended.remedy) = (None, None);
        ended.reason = Some("the gate ended".to_owned());
        let failed = report("a.test", 443, ConnectionDecision::Failed);
        let found = denials(&[failed, ended]);
        let lines: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(lines, ["the way out: the gate ended"]);
    }

    #[test]
    fn only_so_many_destinations_are_named() {
        let one = |number: u16| report("a.test", number, ConnectionDecision::Denied);
        let all: Vec<ConnectionReport> = (1..=200).map(one).collect();
        assert_eq!(denials(&all).len(), MAX_DENIALS);
    }
}

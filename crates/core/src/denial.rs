//! What was denied, as the host saw it.

use crate::hidden::is_hidden;
use crate::{ConnectionDecision, ConnectionHow, ConnectionReport, Error, ErrorKind, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How many denials are told one by one. Where there are more, a last one says so.
pub const MAX_DENIALS: usize = 100;

/// What that one says instead of naming a place.
const MORE: &str = "more destinations were denied than are told one by one; the audit has them";

/// The longest word of one that a gate tells its holder, in bytes.
pub const MAX_DENIAL_WORD_BYTES: usize = 1024;

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

/// What was denied of these connections: each destination once for each reason, in the order in which it
/// came first. The question for a name that was denied is left out where a connection to it was, too.
pub fn denials<'a>(reports: impl IntoIterator<Item = &'a ConnectionReport>) -> Vec<Denial> {
    let mut found = Denials::default();
    reports.into_iter().for_each(|report| found.look_at(report));
    found.told()
}

/// The same, of connections that come one by one.
#[derive(Debug, Default)]
pub struct Denials {
    found: Vec<Denial>,
    has_more: bool,
}

impl Denials {
    /// Takes what this one tells, if it was denied.
    pub fn look_at(&mut self, report: &ConnectionReport) {
        // What is about no place is about the gate itself, which then answers nobody.
        let is_nowhere = report.host.is_none() && report.address.is_none();
        match report.decision {
            ConnectionDecision::Denied => {}
            ConnectionDecision::Failed if is_nowhere => {}
            ConnectionDecision::Failed
            | ConnectionDecision::Allowed
            | ConnectionDecision::Asked => return,
        }
        let is_same = |known: &&mut Denial| {
            known.port == report.port
                && known.host == report.host
                && known.reason == report.reason
                && (report.host.is_some() || known.address == report.address)
        };
        if let Some(known) = self.found.iter_mut().find(is_same) {
            known.count += 1;
        } else if self.found.len() < MAX_DENIALS {
            self.found.push(Denial::of(report));
        } else {
            self.has_more = true;
        }
    }

    /// What was found.
    pub fn told(self) -> Vec<Denial> {
        let Self { mut found, has_more } = self;
        let connected: Vec<Option<String>> = found
            .iter()
            .filter(|denial| denial.port != 0)
            .map(|denial| denial.host.clone())
            .collect();
        found.retain(|denial| denial.port != 0 || !connected.contains(&denial.host));
        found.extend(has_more.then(Denial::more));
        found
    }
}

impl Denial {
    /// What such a report tells, once.
    pub fn of(report: &ConnectionReport) -> Self {
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

    /// That there are more than are told one by one.
    pub fn more() -> Self {
        Self::of(&ConnectionReport::of_the_gate(0, 0, MORE))
    }

    /// Whether a holder can believe what a gate tells, and show it: every word is short and can be seen.
    // HOSTILE: a gate reads what hostile programs write, and one that was taken over tells what it likes.
    pub fn check(&self) -> Result<()> {
        let Self { host, address, port: _, how: _, rule, reason, remedy, count: _, request } = self;
        let words = [host, address, rule, reason, remedy, request];
        let is_shown =
            |word: &String| word.len() <= MAX_DENIAL_WORD_BYTES && !word.contains(is_hidden);
        if words.into_iter().flatten().all(is_shown) {
            return Ok(());
        }
        let what = "the gate told of a denial in words that cannot be shown";
        Err(Error::new(ErrorKind::Protocol, what))
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
            // A name that is denied has no address, so nobody learns which port was meant.
            Some(remedy) if self.port == 0 => {
                write!(f, "; {remedy} would allow it, {remedy}:PORT one port of it")
            }
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
            remedy: Some(match port {
                0 => format!("--egress {host}"),
                port => format!("--egress {host}:{port}"),
            }),
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
                "denied: c.test: no rule allows it; --egress c.test would allow it, \
                 --egress c.test:PORT one port of it",
            ]
        );
    }

    #[test]
    fn a_destination_is_told_once_for_each_reason() {
        let first = report("a.test", 443, ConnectionDecision::Denied);
        let other = ConnectionReport {
            reason: Some("the name in TLS is b.test, not a.test".to_owned()),
            remedy: None,
            ..first.clone()
        };
        let found = denials(&[first.clone(), other.clone(), first, other]);
        let told: Vec<_> = found.iter().map(|one| (one.remedy.is_some(), one.count)).collect();
        assert_eq!(told, [(true, 2), (false, 2)], "{found:?}");
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
        let told = denials(&all);
        assert_eq!((told.len(), told.last()), (MAX_DENIALS + 1, Some(&Denial::more())));
        assert_eq!(denials(&all[..MAX_DENIALS]).len(), MAX_DENIALS, "control: no more than that");
        let reasons = (1..=200).map(|number| ConnectionReport {
            reason: Some(format!("reason {number}")),
            ..one(443)
        });
        let all: Vec<ConnectionReport> = reasons.collect();
        assert_eq!(denials(&all).len(), MAX_DENIALS + 1, "a destination with many reasons");
    }
}

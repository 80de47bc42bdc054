//! What waits for somebody to allow it: what is asked for, what would be opened, and what came of it.

use crate::network::{ConnectionHow, NetworkPolicy};
use crate::{EgressRule, Error, ErrorKind, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What somebody can open for a destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opening {
    /// What a rule covers.
    Rule(EgressRule),
    /// A port of the host's own loopback.
    HostPort(u16),
}

/// How a rule is written on the command line.
const RULE: &str = "--egress ";
/// How a port of the host is.
const HOST_PORT: &str = "--allow-host-port ";

impl Opening {
    /// What a remedy opens, which is written as on the command line: `--egress example.com:443`.
    pub fn of_remedy(remedy: &str) -> Result<Self> {
        let unknown = || Error::new(ErrorKind::Protocol, format!("{remedy:?} opens nothing known"));
        if let Some(rule) = remedy.strip_prefix(RULE) {
            return rule.parse().map(Self::Rule);
        }
        let port = remedy.strip_prefix(HOST_PORT).and_then(|port| port.parse().ok());
        port.filter(|port| *port != 0).map(Self::HostPort).ok_or_else(unknown)
    }

    /// The same policy, of the same version, with this open besides. What it denies stays denied.
    pub fn over(&self, policy: &NetworkPolicy) -> NetworkPolicy {
        let mut open = policy.clone();
        match self {
            Self::Rule(rule) if !open.allow.contains(rule) => open.allow.push(rule.clone()),
            Self::HostPort(port) if !open.host_ports.contains(port) => open.host_ports.push(*port),
            Self::Rule(_) | Self::HostPort(_) => {}
        }
        open
    }

    /// What a decision names that allows by it.
    pub fn deciding(&self) -> String {
        match self {
            Self::Rule(rule) => rule.to_string(),
            Self::HostPort(port) => format!("{HOST_PORT}{port}"),
        }
    }
}

impl fmt::Display for Opening {
    /// As it is written on the command line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule(rule) => write!(f, "{RULE}{rule}"),
            Self::HostPort(port) => write!(f, "{HOST_PORT}{port}"),
        }
    }
}

/// A connection that waits to be allowed, as its gate tells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitingConnection {
    /// Its number among all that ever waited in this sandbox: never given twice, and another one for each
    /// time that a connection has to wait.
    pub number: u64,
    /// When it began to wait, in milliseconds since 1970.
    pub at_ms: u64,
    /// Until when it does.
    pub until_ms: u64,
    /// How it came.
    pub how: ConnectionHow,
    /// The name that was asked for; `None` where an address was.
    pub host: Option<String>,
    /// The address that was asked for, where no name was.
    pub address: Option<String>,
    /// The port.
    pub port: u16,
    /// Why it is not allowed.
    pub reason: Option<String>,
    /// What would allow it, as it is written on the command line.
    pub remedy: String,
}

impl WaitingConnection {
    /// Whether both wait for the same.
    pub fn is_like(&self, other: &Self) -> bool {
        let key =
            |one: &Self| (one.host.clone(), one.address.clone(), one.port, one.remedy.clone());
        key(self) == key(other)
    }
}

/// What somebody says to what waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It may go on, and those with it that wait for the same; nothing that comes later.
    Approve,
    /// It and those that wait for the same are refused.
    Deny,
}

/// What came of something that waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Settlement {
    /// Somebody let it through, and nothing else.
    Approved,
    /// A change of the rules allows it.
    Allowed,
    /// Somebody said no.
    Denied,
    /// Nobody answered in time.
    TimedOut,
    /// It gave up, or its gate ended.
    Gone,
}

/// What waits in a sandbox, or did so lately.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Permission {
    /// What it is.
    pub waiting: WaitingConnection,
    /// What came of it; `None` while it waits.
    pub settled: Option<Settlement>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Asked, decide};

    fn asked(text: &str, port: u16) -> Asked {
        Asked { host: text.parse().unwrap(), port }
    }

    #[test]
    fn a_remedy_is_read_as_it_was_written_and_opens_what_it_was_for() {
        for (host, port) in [("a.test", 443), ("10.1.2.3", 5432), ("host.cofferdam.internal", 80)] {
            let nothing = NetworkPolicy::default();
            let decision = decide(&nothing, &asked(host, port));
            let remedy = decision.remedy.unwrap();
            let opening = Opening::of_remedy(&remedy).unwrap();
            assert_eq!(opening.to_string(), remedy);
            let open = decide(&opening.over(&nothing), &asked(host, port));
            assert!(open.allowed, "{host}");
            assert_eq!(open.rule, Some(opening.deciding()));
            let beside = decide(&opening.over(&nothing), &asked(host, port - 1));
            assert!(!beside.allowed, "control: {host} on another port");
        }
    }

    #[test]
    fn what_is_denied_stays_denied() {
        let opening = Opening::of_remedy("--egress a.test:443").unwrap();
        let deny = vec!["a.test".parse().unwrap()];
        let policy = NetworkPolicy { version: 7, deny, ..NetworkPolicy::default() };
        let open = opening.over(&policy);
        assert_eq!(open.version, 7);
        assert!(!decide(&open, &asked("a.test", 443)).allowed);
    }

    #[test]
    fn what_is_no_remedy_opens_nothing() {
        for text in ["", "a.test:443", "--egress *.com", "--allow-host-port 0", "--read /"] {
            assert!(Opening::of_remedy(text).is_err(), "{text}");
        }
    }
}

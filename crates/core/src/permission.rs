//! What waits for somebody to allow it: what is asked for, what would be opened, and what came of it.

use crate::network::{ConnectionHow, HOST_NAME, MAX_ASK_MS, NetworkPolicy};
use crate::policy::{Asked, Host, HostPattern, address_class};
use crate::{EgressRule, Error, ErrorKind, Result, is_hidden};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::IpAddr;

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

    /// The address that it opens, where that is not on the public network.
    pub fn opens_private(&self) -> Option<IpAddr> {
        let Self::Rule(EgressRule { host: HostPattern::Addresses(range), .. }) = self else {
            return None;
        };
        range.as_one().filter(|address| address_class(*address).words().is_some())
    }

    /// What somebody has to know who is to open it for this name, or for an address: that it is a place on
    /// a private network, which one, and by which rule. `None` where it is not.
    pub fn notice(&self, host: Option<&str>) -> Option<String> {
        let address = self.opens_private()?;
        let what = address_class(address).words()?;
        Some(match host {
            Some(name) => format!("{name} leads to {address}, {what}: {self} would open that"),
            None => format!("{self} would open {address}, {what}"),
        })
    }

    /// Whether it opens this and nothing else, as far as that can be told: where a name leads to is not
    /// known here, and it may be the address behind one.
    fn is_for(&self, asked: &Asked) -> bool {
        let rule = match (self, &asked.host) {
            (Self::HostPort(port), Host::Name(name)) => {
                return name.as_str() == HOST_NAME && *port == asked.port;
            }
            (Self::HostPort(_), Host::Address(_)) => return false,
            (Self::Rule(rule), _) => rule,
        };
        let host = match (&rule.host, &asked.host) {
            (HostPattern::Exactly(name), Host::Name(asked)) => name == asked,
            (HostPattern::Addresses(_), Host::Name(_)) => self.opens_private().is_some(),
            (HostPattern::Addresses(range), Host::Address(asked)) => range.as_one() == Some(*asked),
            (HostPattern::Exactly(_), Host::Address(_))
            | (HostPattern::Anywhere | HostPattern::Below(_), _) => false,
        };
        host && rule
            .ports
            .is_some_and(|ports| (ports.first, ports.last) == (asked.port, asked.port))
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

/// The longest reason of one, in bytes.
pub const MAX_WAITING_REASON_BYTES: usize = 1024;
/// How far a number may be from the last one: what is dropped on the way has one, too.
const MAX_STEP: u64 = 1 << 20;

impl WaitingConnection {
    /// What it asked for. Fails where that is neither one name nor one address, and a port.
    pub fn asked(&self) -> Result<Asked> {
        let bad = |what: &str| Error::new(ErrorKind::Protocol, format!("{what} of what waits"));
        let host: Host = match (&self.host, &self.address) {
            (Some(name), None) => Host::Name(name.parse().map_err(|_| bad("read the host"))?),
            (None, Some(address)) => {
                address.parse::<IpAddr>().map_err(|_| bad("read the address"))?.into()
            }
            (Some(_), Some(_)) | (None, None) => return Err(bad("tell host and address")),
        };
        let asked = Asked { host, port: self.port };
        let written = match &asked.host {
            Host::Name(name) => name.to_string(),
            Host::Address(address) => address.to_string(),
        };
        let told = self.host.as_ref().or(self.address.as_ref());
        if told != Some(&written) || asked.port == 0 {
            return Err(bad("read the destination"));
        }
        Ok(asked)
    }

    /// Whether a holder can believe it, and show it: it is well formed, newer than the number `last`, and
    /// its remedy opens what it asks for and nothing else.
    // HOSTILE: a gate reads what hostile programs write. One that was taken over does not choose what a
    // person opens.
    pub fn check(&self, last: u64) -> Result<()> {
        let bad = |what: &str| {
            Err(Error::new(ErrorKind::Protocol, format!("the gate told {what} of what waits")))
        };
        let asked = self.asked()?;
        match Opening::of_remedy(&self.remedy) {
            Ok(opening) if opening.to_string() == self.remedy && opening.is_for(&asked) => {}
            Ok(_) | Err(_) => return bad("a rule for something else"),
        }
        let reason = self.reason.as_deref().unwrap_or_default();
        if reason.len() > MAX_WAITING_REASON_BYTES || reason.contains(is_hidden) {
            return bad("no reason that can be shown");
        }
        if self.number.checked_sub(last).is_none_or(|step| !(1..=MAX_STEP).contains(&step)) {
            return bad("no new number");
        }
        match self.until_ms.checked_sub(self.at_ms) {
            Some(0..=MAX_ASK_MS) => Ok(()),
            Some(_) | None => bad("no time"),
        }
    }

    /// See [`Opening::notice`].
    pub fn notice(&self) -> Option<String> {
        Opening::of_remedy(&self.remedy).ok()?.notice(self.host.as_deref())
    }

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
    use crate::policy::decide;

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

    fn waiting(host: &str, port: u16, remedy: &str) -> WaitingConnection {
        let is_address = host.parse::<IpAddr>().is_ok();
        WaitingConnection {
            number: 5,
            at_ms: 10,
            until_ms: 20,
            how: ConnectionHow::Connect,
            host: (!is_address).then(|| host.to_owned()),
            address: is_address.then(|| host.to_owned()),
            port,
            reason: Some("no rule allows it".to_owned()),
            remedy: remedy.to_owned(),
        }
    }

    #[test]
    fn a_gate_is_believed_where_its_remedy_is_for_what_waits() {
        let check = |host: &str, port, remedy: &str, is_believed: bool| {
            let found = waiting(host, port, remedy).check(4);
            assert_eq!(found.is_ok(), is_believed, "{host}:{port} {remedy}: {found:?}");
        };
        check("a.test", 443, "--egress a.test:443", true);
        check("10.1.2.3", 80, "--egress 10.1.2.3:80", true);
        check("fd00::1", 80, "--egress [fd00::1]:80", true);
        check("9.9.9.9", 80, "--egress 9.9.9.9:80", true);
        check("a.test", 443, "--egress 10.1.2.3:443", true);
        check("host.cofferdam.internal", 80, "--allow-host-port 80", true);
        for (host, remedy) in [
            ("a.test", "--egress b.test:443"),
            ("a.test", "--egress a.test"),
            ("a.test", "--egress a.test:1-443"),
            ("a.test", "--egress a.test:80"),
            ("a.test", "--egress *.a.test:443"),
            ("a.test", "--egress *:443"),
            ("a.test", "--egress 9.9.9.9:443"),
            ("a.test", "--egress 10.0.0.0/8:443"),
            ("a.test", "--egress A.test:443"),
            ("a.test", "--egress  a.test:443"),
            ("a.test", "--allow-host-port 443"),
            ("host.cofferdam.internal", "--allow-host-port 80"),
            ("10.1.2.3", "--egress 10.1.2.4:443"),
            ("10.1.2.3", "--egress 10.1.2.0/24:443"),
            ("10.1.2.3", "--allow-host-port 443"),
            ("A.test", "--egress a.test:443"),
            ("a\u{202e}.test", "--egress a.test:443"),
            ("a.test", ""),
        ] {
            check(host, 443, remedy, false);
        }
    }

    #[test]
    fn a_gate_is_not_believed_where_it_tells_anything_else_that_cannot_be() {
        let good = || waiting("a.test", 443, "--egress a.test:443");
        let check = |one: WaitingConnection, last: u64, is_believed: bool| {
            assert_eq!(one.check(last).is_ok(), is_believed, "{one:?} after {last}");
        };
        check(good(), 4, true);
        check(good(), 5, false);
        check(good(), 9, false);
        check(WaitingConnection { number: u64::MAX, ..good() }, 4, false);
        let reason = |text: &str| WaitingConnection { reason: Some(text.to_owned()), ..good() };
        check(reason(&"a".repeat(MAX_WAITING_REASON_BYTES)), 4, true);
        check(reason(&"a".repeat(MAX_WAITING_REASON_BYTES + 1)), 4, false);
        check(reason("safe \u{202e}evil"), 4, false);
        check(reason("a\nb"), 4, false);
        check(WaitingConnection { until_ms: 9, ..good() }, 4, false);
        check(WaitingConnection { until_ms: u64::MAX, ..good() }, 4, false);
        check(WaitingConnection { port: 0, ..good() }, 4, false);
        check(WaitingConnection { host: None, ..good() }, 4, false);
        check(WaitingConnection { address: Some("10.0.0.1".to_owned()), ..good() }, 4, false);
    }

    #[test]
    fn what_opens_a_private_network_says_so_and_what_it_opens() {
        let check = |host: Option<&str>, remedy: &str, parts: &[&str]| {
            let notice = Opening::of_remedy(remedy).unwrap().notice(host).unwrap_or_default();
            assert!(parts.iter().all(|part| notice.contains(part)), "{notice}");
            assert_eq!(notice.is_empty(), parts.is_empty(), "{remedy}: {notice}");
        };
        let remedy = "--egress 10.1.2.3:443";
        check(Some("a.test"), remedy, &["a.test leads to 10.1.2.3", "private network", remedy]);
        check(None, remedy, &["private network", remedy]);
        check(None, "--egress 169.254.169.254:80", &["link-local"]);
        check(Some("a.test"), "--egress a.test:443", &[]);
        check(None, "--egress 9.9.9.9:443", &[]);
        check(Some(HOST_NAME), "--allow-host-port 80", &[]);
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

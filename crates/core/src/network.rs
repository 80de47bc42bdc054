//! What a gate is told, and what it says of each connection.
//!
//! A gate is a process on the host that decides for one sandbox. It accepts on sockets that were made
//! inside the sandbox's network and handed to it. The one who keeps the sandbox holds the other end of
//! its control socket and writes one [`ToGate`] a line; the gate answers with one [`FromGate`] a line for
//! what waits, what was denied and what must not happen, and writes one [`ConnectionReport`] a line to its
//! log.

use crate::secret::{GateGrant, SecretName};
use crate::{Denial, EgressRule, Error, ErrorKind, Result, Settlement, WaitingConnection};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Where TCP of any destination is led to, inside.
pub const TRANSPARENT_PORT: u16 = 61001;

/// Where the proxy listens on the loopback addresses inside: CONNECT, plain HTTP and SOCKS5, told
/// apart by the first byte.
pub const PROXY_PORT: u16 = 61002;

/// Where questions for names are led to, inside, over UDP and TCP.
pub const DNS_PORT: u16 = 61053;

/// The resolver that `resolv.conf` names inside. Nothing is there: port 53 of every address is led to
/// [`DNS_PORT`].
pub const RESOLVER_ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);

/// The addresses that stand for names inside: this one and the length of the prefix. They are set
/// aside for measuring devices, so nothing that is wanted has one.
pub const SYNTHETIC_V4: (Ipv4Addr, u8) = (Ipv4Addr::new(198, 18, 0, 0), 15);

/// The same of IPv6, from the space for private networks.
pub const SYNTHETIC_V6: (Ipv6Addr, u8) = (Ipv6Addr::new(0xfd63, 0x6f66, 0x6665, 0, 0, 0, 0, 0), 48);

/// The name by which the host's own loopback is reached inside, on the ports of
/// [`NetworkPolicy::host_ports`] and no other.
pub const HOST_NAME: &str = "host.cofferdam.internal";

/// The descriptor by which a gate that is a process finds its control socket.
pub const CONTROL_DESCRIPTOR: i32 = 3;

/// The most rules a policy may have, those that deny included.
pub const MAX_RULES: usize = 4096;

/// The most ports of the host's loopback a policy may open.
pub const MAX_HOST_PORTS: usize = 64;

/// The longest that a connection may wait for a policy under which it is allowed.
pub const MAX_ASK_MS: u64 = 3_600_000;

/// The longest line on the control socket, the newline included.
pub const MAX_CONTROL_LINE_BYTES: usize = 2 * 1024 * 1024;

/// What may be reached. Nothing, unless it is allowed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkPolicy {
    /// Which edition this is. A later one has a higher number.
    pub version: u64,
    /// What is allowed.
    pub allow: Vec<EgressRule>,
    /// What is not, even though it is allowed.
    pub deny: Vec<EgressRule>,
    /// Ports of the host's own loopback that are reached as [`HOST_NAME`].
    pub host_ports: Vec<u16>,
    /// How long a connection that is not allowed waits to become so. 0: not at all.
    pub ask_ms: u64,
}

impl NetworkPolicy {
    /// Whether it is within the limits. Names the one that it is not.
    pub fn check(&self) -> Result<()> {
        let rules = self.allow.len().saturating_add(self.deny.len());
        let over = |what: String, most: u64| {
            Err(Error::new(ErrorKind::Usage, what).hint(format!("Use at most {most}.")))
        };
        if rules > MAX_RULES {
            return over(format!("{rules} egress rules are too many"), MAX_RULES as u64);
        }
        if self.host_ports.len() > MAX_HOST_PORTS {
            let what = format!("{} ports of the host are too many", self.host_ports.len());
            return over(what, MAX_HOST_PORTS as u64);
        }
        if self.host_ports.contains(&0) {
            return Err(Error::new(ErrorKind::Usage, "0 is no port of the host")
                .hint("Use a port from 1 to 65535."));
        }
        if self.ask_ms > MAX_ASK_MS {
            return over(format!("a wait of {} ms is too long", self.ask_ms), MAX_ASK_MS);
        }
        self.allow.iter().try_for_each(EgressRule::check_allowing)
    }
}

/// Whether an address stands for a name inside, so that nobody reaches it there by asking for it. Outside it
/// may be somebody's, and a name may lead to it.
pub fn stands_for_names(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            let (start, prefix) = SYNTHETIC_V4;
            let apart = address.to_bits() ^ start.to_bits();
            apart.leading_zeros() >= u32::from(prefix)
        }
        IpAddr::V6(address) => {
            let (start, prefix) = SYNTHETIC_V6;
            let apart = address.to_bits() ^ start.to_bits();
            apart.leading_zeros() >= u32::from(prefix)
        }
    }
}

/// What a descriptor that comes with the order is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateSocket {
    /// Listens for TCP that was led here, IPv4.
    TransparentV4,
    /// Listens for TCP that was led here, IPv6.
    TransparentV6,
    /// Listens on [`PROXY_PORT`].
    Proxy,
    /// Is bound to [`DNS_PORT`], UDP.
    DnsUdp,
    /// Listens on [`DNS_PORT`], TCP.
    DnsTcp,
    /// The log, opened to append to it.
    Log,
    /// A file in memory with what is needed to put secrets in: a [`Vault`](crate::secret::Vault).
    Vault,
}

/// The first thing a gate is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GateOrder {
    /// The id of the sandbox.
    pub sandbox: String,
    /// What may be reached.
    pub policy: NetworkPolicy,
    /// Who is asked for names; where there is none, those of the host's own `resolv.conf`, after its
    /// `hosts`.
    pub resolvers: Vec<SocketAddr>,
    /// How many bytes of the log are kept.
    pub log_bytes: u64,
    /// The secrets that it puts in. Their values come in the file that is [`GateSocket::Vault`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<GateGrant>,
    /// The last number that was given to what waited in this sandbox.
    #[serde(default)]
    pub last_waiting: u64,
    /// What the descriptors are that come with this line, in their order. Always of the order of
    /// [`GateSocket`], each at most once; those that there are not are left out.
    pub descriptors: Vec<GateSocket>,
}

/// One line to a gate over its control socket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToGate {
    /// The first line, with the descriptors beside it.
    Order(GateOrder),
    /// Another policy, from the next connection on. Those that wait are decided again.
    Policy(NetworkPolicy),
    /// What waits by this number may go on. One that waits no more is no error.
    Approve {
        /// See [`WaitingConnection::number`](crate::WaitingConnection::number).
        id: u64,
    },
    /// What waits by this number is refused.
    Deny {
        /// The same number.
        id: u64,
    },
}

/// One line from a gate over its control socket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromGate {
    /// A connection begins to wait.
    Waits(WaitingConnection),
    /// One of this number does so no more.
    Settled(u64, Settlement),
    /// Something went where it must not go, and got no further.
    Alarm(SecretAlarm),
    /// A destination was denied, for the first time by these rules.
    Denied(Box<Denial>),
}

/// A placeholder of a secret was on its way to a host that the secret is not for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SecretAlarm {
    /// The secret. Its value was not there: nobody inside has it.
    #[schemars(with = "String")]
    pub secret: SecretName,
    /// The host, by the name or address that was asked for.
    pub host: String,
    /// The port that was asked for.
    pub port: u16,
}

impl SecretAlarm {
    /// The error where only somebody who knows of it lets go on what it froze: `sandbox a`.
    pub fn freezes(&self, what: &str) -> Error {
        Error::new(ErrorKind::Conflict, format!("{what} is frozen: {self}"))
            .hint("Look what it did; `cofferdam resume` lets it go on, and `cofferdam rm` ends it.")
    }
}

impl fmt::Display for SecretAlarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { secret, host, port } = self;
        write!(f, "the placeholder of secret {secret} was on its way to {host}:{port}")
    }
}

/// How a connection came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConnectionHow {
    /// By itself, knowing of no proxy.
    Transparent,
    /// By CONNECT.
    Connect,
    /// As a plain request of HTTP to the proxy.
    Http,
    /// By SOCKS5.
    Socks5,
    /// A question for a name: no connection.
    Dns,
}

/// What became of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConnectionDecision {
    /// It was let through.
    Allowed,
    /// It was refused.
    Denied,
    /// It was allowed, and did not come about.
    Failed,
    /// It waits to be allowed. Another line with the same id says how that went.
    Asked,
}

/// One connection. A line of a gate's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConnectionReport {
    /// When it came, in milliseconds since 1970.
    pub at_ms: u64,
    /// Its number among those of this gate.
    pub id: u64,
    /// How it came.
    pub how: ConnectionHow,
    /// The name that was asked for, as it was asked; null where an address was.
    pub host: Option<String>,
    /// The address that was asked for, or that the name led to; null where it came to none.
    pub address: Option<String>,
    /// The port that was asked for. 0 for a question for a name.
    pub port: u16,
    /// What became of it.
    pub decision: ConnectionDecision,
    /// The rule that decided, as it is written; null where no rule did.
    pub rule: Option<String>,
    /// Why it was refused or failed.
    pub reason: Option<String>,
    /// What would allow it, as it is written on the command line: `--egress example.com:443`.
    pub remedy: Option<String>,
    /// Bytes from inside.
    pub bytes_up: u64,
    /// Bytes from outside.
    pub bytes_down: u64,
    /// How long it lasted.
    pub duration_ms: u64,
    /// The edition of the policy that decided.
    pub policy_version: u64,
    /// What it waits by, or waited by last: `approve` takes it. Null for one that did not wait.
    #[serde(default)]
    pub request: Option<String>,
    /// The ids of the commands that ran when it came, or had left processes that did, as the host saw it:
    /// one of them asked for it, and which is not known where there are several. Empty where its command
    /// had ended before the gate took it on. Null for what a gate says of itself, and where there is one
    /// command alone.
    #[serde(default)]
    pub execs: Option<Vec<String>>,
}

impl ConnectionReport {
    /// A line about the gate itself, which is no connection and has the number 0.
    pub fn of_the_gate(at_ms: u64, policy_version: u64, what: &str) -> Self {
        Self {
            at_ms,
            id: 0,
            how: ConnectionHow::Transparent,
            host: None,
            address: None,
            port: 0,
            decision: ConnectionDecision::Failed,
            rule: None,
            reason: Some(what.to_owned()),
            remedy: None,
            bytes_up: 0,
            bytes_down: 0,
            duration_ms: 0,
            policy_version,
            request: None,
            execs: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> NetworkPolicy {
        NetworkPolicy {
            version: 3,
            allow: vec!["example.com:443".parse().unwrap()],
            deny: vec!["*.ads.example.com:443".parse().unwrap()],
            host_ports: vec![5432],
            ask_ms: 0,
        }
    }

    #[test]
    fn a_line_to_a_gate_is_read_as_it_was_written() {
        let order = ToGate::Order(GateOrder {
            sandbox: "a".to_owned(),
            policy: policy(),
            resolvers: vec!["127.0.0.1:53".parse().unwrap()],
            log_bytes: 1 << 20,
            secrets: vec![GateGrant {
                grant: "T@a.example".parse().unwrap(),
                placeholder: "p".to_owned(),
            }],
            descriptors: vec![GateSocket::TransparentV4, GateSocket::Log, GateSocket::Vault],
            last_waiting: 0,
        });
        let line = serde_json::to_string(&order).unwrap();
        assert!(!line.contains('\n'));
        assert!(line.contains(r#""allow":["example.com:443"]"#), "{line}");
        assert_eq!(serde_json::from_str::<ToGate>(&line).unwrap(), order);
    }

    #[test]
    fn a_policy_with_a_malformed_rule_or_an_unknown_field_is_no_policy() {
        let line = serde_json::to_string(&policy()).unwrap();
        assert!(serde_json::from_str::<NetworkPolicy>(&line).is_ok());
        let malformed = line.replace("example.com:443", "*.com:443");
        assert!(serde_json::from_str::<NetworkPolicy>(&malformed).is_err());
        let unknown = line.replace("host_ports", "hosts_ports");
        assert!(serde_json::from_str::<NetworkPolicy>(&unknown).is_err());
    }

    #[test]
    fn a_rule_for_a_name_of_cofferdams_own_says_what_opens_it() {
        let allowing =
            |rule: &str| NetworkPolicy { allow: vec![rule.parse().unwrap()], ..policy() }.check();
        for (rule, remedy) in [
            ("host.cofferdam.internal:5432", "--allow-host-port 5432, "),
            ("Host.Cofferdam.Internal", "--allow-host-port N, "),
            ("host.cofferdam.internal:1-9", "--allow-host-port N, "),
            ("*.cofferdam.internal:443", "--allow-host-port 443, "),
        ] {
            let error = allowing(rule).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Usage);
            assert!(error.hint.unwrap().contains(remedy), "{rule}");
        }
        allowing("a.cofferdam.internal.example.com:443").unwrap();
        allowing("*:443").unwrap();
        // What such a rule denies is denied.
        let deny = vec!["host.cofferdam.internal:5432".parse().unwrap()];
        NetworkPolicy { deny, ..policy() }.check().unwrap();
    }

    #[test]
    fn addresses_that_stand_for_names_are_known() {
        let stands = |text: &str| stands_for_names(text.parse().unwrap());
        for inside in ["198.18.0.0", "198.19.255.255", "::ffff:198.18.0.1", "fd63:6f66:6665::5"] {
            assert!(stands(inside), "{inside}");
        }
        for outside in ["198.17.255.255", "198.20.0.0", "fd63:6f66:6666::5", "1.1.1.1"] {
            assert!(!stands(outside), "{outside}");
        }
    }

    #[test]
    fn a_policy_beyond_a_limit_names_it() {
        let refused = |policy: NetworkPolicy| policy.check().unwrap_err().hint.unwrap();
        policy().check().unwrap();
        let rule: EgressRule = "a.b:1".parse().unwrap();
        let rules = NetworkPolicy { allow: vec![rule; MAX_RULES], ..policy() };
        assert_eq!(refused(rules), "Use at most 4096.");
        let ports = NetworkPolicy { host_ports: vec![1; MAX_HOST_PORTS + 1], ..policy() };
        assert_eq!(refused(ports), "Use at most 64.");
        let zero = NetworkPolicy { host_ports: vec![0], ..policy() };
        assert_eq!(refused(zero), "Use a port from 1 to 65535.");
        let long = NetworkPolicy { ask_ms: MAX_ASK_MS + 1, ..policy() };
        assert_eq!(refused(long), "Use at most 3600000.");
    }
}

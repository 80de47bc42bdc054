//! Rules of the way out: how they are written, what they cover, what two lists have in common.

use super::address::{AddressClass, AddressRange, address_class};
use super::decide::is_own_name;
use super::host::{Host, HostName, read_port, split_port};
use super::registry::is_registry;
use crate::network::HOST_NAME;
use crate::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

/// Some destinations: a host, or a family of hosts, and its ports. Serialised as it is written.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct EgressRule {
    /// Which hosts.
    pub host: HostPattern,
    /// Which ports; `None` is all.
    pub ports: Option<PortRange>,
}

/// Which hosts a rule is for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum HostPattern {
    /// Every public address, and every name that leads to one.
    Anywhere,
    /// This name.
    Exactly(HostName),
    /// This name and every name below it (`*.example.com`).
    Below(HostName),
    /// These addresses.
    Addresses(AddressRange),
}

/// Ports that follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PortRange {
    /// The first, never 0.
    pub first: u16,
    /// The last, not before the first.
    pub last: u16,
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self { first, last } if first == last => write!(f, "{first}"),
            Self { first, last } => write!(f, "{first}-{last}"),
        }
    }
}

impl PortRange {
    /// This port alone.
    pub fn one(port: u16) -> Self {
        Self { first: port, last: port }
    }

    fn read(text: &str) -> Result<Self, &'static str> {
        let Some((first, last)) = text.split_once('-') else {
            return read_port(text).map(Self::one);
        };
        let (first, last) = (read_port(first)?, read_port(last)?);
        if first > last {
            return Err("the ports are the wrong way round");
        }
        Ok(Self { first, last })
    }

    fn contains(self, port: u16) -> bool {
        (self.first..=self.last).contains(&port)
    }
}

impl EgressRule {
    /// The rule `*`: every public address, every port.
    pub fn anywhere() -> Self {
        Self { host: HostPattern::Anywhere, ports: None }
    }

    /// Whether it is for this port.
    pub fn covers_port(&self, port: u16) -> bool {
        port != 0 && self.ports.is_none_or(|ports| ports.contains(port))
    }

    /// Whether it is for this name. To where the name leads is another question.
    pub fn covers_name(&self, name: &HostName) -> bool {
        match &self.host {
            HostPattern::Anywhere => true,
            HostPattern::Exactly(one) => name == one,
            HostPattern::Below(top) => name.is_at_or_below(top),
            HostPattern::Addresses(_) => false,
        }
    }

    /// Whether it opens this address to who asks for the address. What is not public is opened by
    /// ranges alone that hold nothing public.
    pub fn opens_address(&self, address: IpAddr) -> bool {
        // HOSTILE: a connection to the address of nobody goes to this machine itself.
        if address.to_canonical().is_unspecified() {
            return false;
        }
        match &self.host {
            HostPattern::Anywhere => address_class(address) == AddressClass::Public,
            HostPattern::Addresses(range) => {
                let may_open = range.is_special() || address_class(address) == AddressClass::Public;
                range.contains(address) && may_open
            }
            HostPattern::Exactly(_) | HostPattern::Below(_) => false,
        }
    }

    /// Fails where it can never open anything: no rule is asked about a name of Cofferdam's own, and the
    /// address of nobody leads nowhere. As one that denies it is as good as others.
    pub fn check_allowing(&self) -> Result<()> {
        let name = match &self.host {
            HostPattern::Exactly(name) | HostPattern::Below(name) if is_own_name(name) => name,
            HostPattern::Addresses(range)
                if range.as_one().is_some_and(|one| one.is_unspecified()) =>
            {
                let what =
                    format!("the egress rule {self} opens nothing: it is the address of nobody");
                return Err(Error::new(ErrorKind::Usage, what).hint(
                    "Write the address that is meant; --allow-host-port N opens a port of this host's loopback.",
                ));
            }
            HostPattern::Anywhere
            | HostPattern::Exactly(_)
            | HostPattern::Below(_)
            | HostPattern::Addresses(_) => return Ok(()),
        };
        let port = self.ports.filter(|ports| ports.first == ports.last);
        let port = port.map_or_else(|| "N".to_owned(), |ports| ports.to_string());
        let what = format!("the egress rule {self} opens nothing: {name} is Cofferdam's own");
        Err(Error::new(ErrorKind::Usage, what).hint(format!(
            "Use --allow-host-port {port}, or allow_host_port in a configuration: it opens a port of \
             this host's loopback as {HOST_NAME}."
        )))
    }

    /// What both of two rules cover, where there is something.
    pub fn intersect(&self, other: &Self) -> Option<Self> {
        let ports = match (self.ports, other.ports) {
            (None, ports) | (ports, None) => ports,
            (Some(a), Some(b)) => {
                let (first, last) = (a.first.max(b.first), a.last.min(b.last));
                if first > last {
                    return None;
                }
                Some(PortRange { first, last })
            }
        };
        Some(Self { host: common_hosts(&self.host, &other.host)?, ports })
    }
}

/// What two lists of rules that allow both allow.
pub fn intersect_rules(one: &[EgressRule], other: &[EgressRule]) -> Vec<EgressRule> {
    let mut common: Vec<EgressRule> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for rule in one {
        let both = other.iter().filter_map(|other| rule.intersect(other));
        common.extend(both.filter(|rule| seen.insert(rule.clone())));
    }
    common
}

fn common_hosts(one: &HostPattern, other: &HostPattern) -> Option<HostPattern> {
    use HostPattern::{Addresses, Anywhere, Below, Exactly};
    match (one, other) {
        // What is not public is not anywhere.
        (Anywhere, Addresses(range)) | (Addresses(range), Anywhere) => {
            (!range.is_special()).then_some(Addresses(*range))
        }
        (Anywhere, host) | (host, Anywhere) => Some(host.clone()),
        (Exactly(a), Exactly(b)) => (a == b).then(|| one.clone()),
        (Exactly(name), Below(top)) | (Below(top), Exactly(name)) => {
            name.is_at_or_below(top).then(|| Exactly(name.clone()))
        }
        (Below(a), Below(b)) if a.is_at_or_below(b) => Some(one.clone()),
        (Below(a), Below(b)) => b.is_at_or_below(a).then(|| other.clone()),
        (Addresses(a), Addresses(b)) => {
            let (wide, narrow) = if a.covers(b) { (a, b) } else { (b, a) };
            // The wide one opens what is public, the narrow one what is not: nothing in common.
            let is_same_space = wide.is_special() || !narrow.is_special();
            (wide.covers(narrow) && is_same_space).then_some(Addresses(*narrow))
        }
        (Addresses(_), Exactly(_) | Below(_)) | (Exactly(_) | Below(_), Addresses(_)) => None,
    }
}

impl fmt::Display for EgressRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            HostPattern::Anywhere => f.write_str("*")?,
            HostPattern::Exactly(host) => host.fmt(f)?,
            HostPattern::Below(host) => write!(f, "*.{host}")?,
            HostPattern::Addresses(range) => range.fmt(f)?,
        }
        match self.ports {
            Some(range) => write!(f, ":{range}"),
            None => Ok(()),
        }
    }
}

impl TryFrom<String> for EgressRule {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<EgressRule> for String {
    fn from(rule: EgressRule) -> Self {
        rule.to_string()
    }
}

impl FromStr for EgressRule {
    type Err = Error;

    /// Reads `HOST[:PORT]`, where the host is a name, `*.NAME`, an address, addresses with a prefix
    /// (`10.0.0.0/8`, `[fd00::/8]`) or `*`, and the port may be a range (`8000-8010`). Strict: letters,
    /// digits, hyphens and dots only, one trailing dot removed, no user, no path, no percent, no
    /// wildcard within a label, none for a whole top-level domain or another registry (`*.co.uk`).
    fn from_str(text: &str) -> Result<Self> {
        let read = || {
            let (host, ports) = split_port(text)?;
            let ports = ports.map(PortRange::read).transpose()?;
            Ok(Self { host: read_pattern(host)?, ports })
        };
        read().map_err(|why: &str| {
            Error::new(ErrorKind::Usage, format!("{text:?} is not an egress rule: {why}"))
                .hint("Write HOST[:PORT], *.HOST[:PORT], ADDRESS/PREFIX[:PORT], or * for any public address.")
        })
    }
}

fn read_pattern(text: &str) -> Result<HostPattern, &'static str> {
    if text == "*" {
        return Ok(HostPattern::Anywhere);
    }
    if let Some(name) = text.strip_prefix("*.") {
        let name = HostName::read(name)?;
        if !name.as_str().contains('.') {
            return Err("a wildcard for a whole top-level domain is not allowed");
        }
        return match is_registry(&name) {
            true => Err("a wildcard for all that a registry hands out is not allowed"),
            false => Ok(HostPattern::Below(name)),
        };
    }
    if let Some((address, prefix)) = text.split_once('/') {
        return read_range(address, prefix).map(HostPattern::Addresses);
    }
    match Host::read(text)? {
        Host::Name(name) => Ok(HostPattern::Exactly(name)),
        Host::Address(address) if text.starts_with('[') && address.is_ipv4() => {
            Err("an IPv4 address is written as one")
        }
        Host::Address(address) => Ok(HostPattern::Addresses(AddressRange::one(address))),
    }
}

/// Reads `ADDRESS` and `PREFIX`, or `[ADDRESS` and `PREFIX]`.
fn read_range(address: &str, prefix: &str) -> Result<AddressRange, &'static str> {
    let no_address = "what stands before the slash is not an address";
    let (address, prefix) = match (address.strip_prefix('['), prefix.strip_suffix(']')) {
        (Some(address), Some(prefix)) => {
            (IpAddr::V6(address.parse::<Ipv6Addr>().map_err(|_| no_address)?), prefix)
        }
        (None, None) => {
            let address = address.parse::<std::net::Ipv4Addr>();
            (IpAddr::V4(address.map_err(|_| no_address)?), prefix)
        }
        (Some(_), None) | (None, Some(_)) => return Err("the prefix belongs into the brackets"),
    };
    let is_plain = prefix.bytes().all(|b| b.is_ascii_digit())
        && (prefix == "0" || !prefix.starts_with('0'))
        && (1..=3).contains(&prefix.len());
    let prefix = prefix.parse().ok().filter(|_| is_plain);
    AddressRange::new(address, prefix.ok_or("the prefix is not a number")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, shown: &str) {
        assert_eq!(text.parse::<EgressRule>().unwrap().to_string(), shown, "{text:?}");
    }

    #[test]
    fn rules_are_read_and_shown() {
        check("*", "*");
        check("*:443", "*:443");
        check("Example.COM:443", "example.com:443");
        check("example.com", "example.com");
        check("example.com.:443", "example.com:443");
        check("*.example.com:443", "*.example.com:443");
        check("example.com:8000-8010", "example.com:8000-8010");
        check("example.com:80-80", "example.com:80");
        check("10.1.2.3:5432", "10.1.2.3:5432");
        check("10.0.0.0/8", "10.0.0.0/8");
        check("10.0.0.0/8:5432", "10.0.0.0/8:5432");
        check("0.0.0.0/0:443", "0.0.0.0/0:443");
        check("[::1]:80", "[::1]:80");
        check("[FD00::/8]", "[fd00::/8]");
        check("[fd00::/8]:443", "[fd00::/8]:443");
        check("localhost:3000", "localhost:3000");
        check("*.example.co.uk", "*.example.co.uk");
        check("*.githubusercontent.com:443", "*.githubusercontent.com:443");
        check("co.uk:443", "co.uk:443");
    }

    const MALFORMED: [&str; 65] = [
        "",
        ":",
        "a:",
        ":1",
        "a:0",
        "a:65536",
        "a:+1",
        "a:1 ",
        " a:1",
        "a:01",
        "a:1-",
        "a:-1",
        "a:2-1",
        "a:1-2-3",
        "a:0-5",
        "a:1-65536",
        "*.com:443",
        "*.com",
        "*.co.uk",
        "*.Com.AU.:443",
        "*.a.kawasaki.jp",
        "*.",
        "*.*",
        "a*.b:1",
        "*a.b",
        "a.*.b",
        "*.*.b:1",
        "a..b:1",
        "-a.b:1",
        "a_b.c:1",
        "u@a.b:1",
        "http://a:1",
        "a/b:1",
        "a/8",
        "a%2e:1",
        "a\0.b:1",
        "é.com:1",
        "1.2.3:1",
        "0x7f.1:1",
        "127.1",
        "2130706433",
        "[::1:80",
        "::1:80",
        "::1",
        "[::g]:1",
        "**:1",
        "**",
        "10.0.0.0/33",
        "10.0.0.0/",
        "10.0.0.0/08",
        "10.0.0.0/+8",
        "10.0.0.1/8",
        "10.0.0/8",
        "/8",
        "[fd00::]/8",
        "fd00::/8",
        "[fd00::/129]",
        "[fd00::1/8]",
        "[10.0.0.0/8]",
        "[::ffff:10.0.0.1]",
        "[::ffff:10.0.0.0/104]",
        "*.10.0.0.1",
        "*/8",
        "a,b",
        "a b",
    ];

    #[test]
    fn malformed_rules_are_refused() {
        for bad in MALFORMED {
            assert!(bad.parse::<EgressRule>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn two_lists_have_in_common_what_both_allow() {
        let check = |one: &str, other: &str, both: &str| {
            let rules = |text: &str| -> Vec<EgressRule> {
                text.split_whitespace().map(|rule| rule.parse().unwrap()).collect()
            };
            assert_eq!(
                intersect_rules(&rules(one), &rules(other)),
                rules(both),
                "{one} and {other}"
            );
            assert_eq!(
                intersect_rules(&rules(other), &rules(one)),
                rules(both),
                "{other} and {one}"
            );
        };
        check("*", "example.com:443", "example.com:443");
        check("*:443", "example.com", "example.com:443");
        check("*", "", "");
        check("*.example.com:1-90", "a.example.com:80-99", "a.example.com:80-90");
        check("*.example.com", "*.b.example.com", "*.b.example.com");
        check("*.example.com", "*.example.org", "");
        check("*.example.com", "notexample.com", "");
        check("a.b:1", "a.b:2", "");
        check("10.0.0.0/8", "10.1.0.0/16:22", "10.1.0.0/16:22");
        check("*", "10.0.0.0/8", "");
        check("0.0.0.0/0", "10.0.0.0/8", "");
        check("0.0.0.0/0", "8.8.8.0/24", "8.8.8.0/24");
        check("10.0.0.0/8", "a.b", "");
    }
}

//! Profiles, and the rules of the way out.

use crate::{Error, ErrorKind, Result};
use std::fmt;
use std::str::FromStr;

/// What a sandbox may do, by one of five names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Profile {
    /// Reads the workspace. No way out.
    ReadOnly,
    /// Writes the workspace. A way out to the listed hosts only.
    RepoWrite,
    /// Writes the workspace. No way out; a rule that asks for one is an error.
    #[default]
    NoNetwork,
    /// Writes the workspace. A way out to all public addresses, still confined to its processes.
    FullDev,
    /// Hermetic: writes the workspace, has no toolchain but the system's, no variable of the host,
    /// and must have limits. A way out to the listed hosts only.
    CiOnly,
}

impl Profile {
    /// All profiles, in the order of the documents.
    pub const ALL: [Self; 5] =
        [Self::ReadOnly, Self::RepoWrite, Self::NoNetwork, Self::FullDev, Self::CiOnly];

    /// Its stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::RepoWrite => "repo-write",
            Self::NoNetwork => "no-network",
            Self::FullDev => "full-dev",
            Self::CiOnly => "ci-only",
        }
    }

    /// Whether the workspace can be written.
    pub fn writes_workspace(self) -> bool {
        match self {
            Self::ReadOnly => false,
            Self::RepoWrite | Self::NoNetwork | Self::FullDev | Self::CiOnly => true,
        }
    }

    /// Whether toolchains of the caller's `PATH` outside the system directories are shown.
    pub fn shows_toolchains(self) -> bool {
        self != Self::CiOnly
    }

    /// Whether variables of the caller such as `TERM` and `LANG` are passed on.
    pub fn passes_variables(self) -> bool {
        self != Self::CiOnly
    }

    /// Whether the limits axis counts toward the verdict though nobody asked for a limit.
    pub fn requires_limits(self) -> bool {
        self == Self::CiOnly
    }

    /// The rules in force: those listed, and what the profile opens by itself.
    ///
    /// Fails where the profile has no way out and a rule asks for one.
    pub fn egress(self, listed: &[EgressRule]) -> Result<Vec<EgressRule>> {
        match self {
            Self::ReadOnly | Self::NoNetwork => match listed.first() {
                None => Ok(Vec::new()),
                Some(rule) => Err(Error::new(
                    ErrorKind::Usage,
                    format!("profile {self} has no way out, so the rule {rule} cannot hold"),
                )
                .hint("Leave --egress out, or use --profile repo-write.")),
            },
            Self::RepoWrite | Self::CiOnly => Ok(listed.to_vec()),
            Self::FullDev if listed.is_empty() => Ok(vec![EgressRule::anywhere()]),
            Self::FullDev => Ok(listed.to_vec()),
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Profile {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|profile| profile.name() == text).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            Error::new(ErrorKind::Usage, format!("there is no profile {text:?}"))
                .hint(format!("Use one of {names}."))
        })
    }
}

/// One allowed destination: a host, or a family of hosts, and a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EgressRule {
    /// Which hosts.
    pub host: HostPattern,
    /// Which port; `None` is all.
    pub port: Option<u16>,
}

/// Which hosts a rule is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostPattern {
    /// Every public address.
    Anywhere,
    /// This name, in lower case, or this address as written.
    Exactly(String),
    /// This name and every name below it (`*.example.com`).
    Below(String),
}

impl EgressRule {
    /// The rule `*`: every public address, every port.
    pub fn anywhere() -> Self {
        Self { host: HostPattern::Anywhere, port: None }
    }
}

impl fmt::Display for EgressRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            HostPattern::Anywhere => f.write_str("*")?,
            HostPattern::Exactly(host) if host.contains(':') => write!(f, "[{host}]")?,
            HostPattern::Exactly(host) => f.write_str(host)?,
            HostPattern::Below(host) => write!(f, "*.{host}")?,
        }
        match self.port {
            Some(port) => write!(f, ":{port}"),
            None => Ok(()),
        }
    }
}

impl FromStr for EgressRule {
    type Err = Error;

    /// Reads `HOST:PORT`, `*.HOST:PORT` or `*`. Strict: letters, digits, hyphens and dots only, one
    /// trailing dot removed, no user, no path, no percent, no wildcard within a label, none for a
    /// whole top-level domain.
    fn from_str(text: &str) -> Result<Self> {
        let bad = |why: &str| {
            Error::new(ErrorKind::Usage, format!("{text:?} is not an egress rule: {why}"))
                .hint("Write HOST:PORT, *.HOST:PORT, or * for any public address.")
        };
        if text == "*" {
            return Ok(Self::anywhere());
        }
        let (host, port) = text.rsplit_once(':').ok_or_else(|| bad("the port is missing"))?;
        if port.is_empty() || port.len() > 5 || !port.bytes().all(|b| b.is_ascii_digit()) {
            return Err(bad("the port is not a number"));
        }
        let port = port.parse::<u16>().ok().filter(|p| *p > 0);
        let port = Some(port.ok_or_else(|| bad("the port is not within 1 to 65535"))?);
        let host = parse_host(host).map_err(bad)?;
        Ok(Self { host, port })
    }
}

/// The longest host name.
const MAX_HOST_BYTES: usize = 253;

fn parse_host(text: &str) -> Result<HostPattern, &'static str> {
    if text == "*" {
        return Ok(HostPattern::Anywhere);
    }
    if let Some(inner) = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')) {
        let address: std::net::Ipv6Addr =
            inner.parse().map_err(|_| "what stands in brackets is not an IPv6 address")?;
        return Ok(HostPattern::Exactly(address.to_string()));
    }
    if let Ok(address) = text.parse::<std::net::Ipv4Addr>() {
        return Ok(HostPattern::Exactly(address.to_string()));
    }
    let (name, wild) = match text.strip_prefix("*.") {
        Some(name) => (name, true),
        None => (text, false),
    };
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    if name.len() > MAX_HOST_BYTES {
        return Err("the host is longer than 253 characters");
    }
    if !name.split('.').all(is_label) {
        return Err(
            "the host has an empty label, or a character other than letters, digits and hyphens",
        );
    }
    // A name that ends in a number would be read as an address by some resolvers.
    if name.rsplit('.').next().is_some_and(|last| last.bytes().all(|b| b.is_ascii_digit())) {
        return Err("the host ends in a number and is not an address");
    }
    match (wild, name.contains('.')) {
        (true, false) => Err("a wildcard for a whole top-level domain is not allowed"),
        (true, true) => Ok(HostPattern::Below(name)),
        (false, _) => Ok(HostPattern::Exactly(name)),
    }
}

fn is_label(label: &str) -> bool {
    !label.is_empty()
        && label.len() <= 63
        && !label.starts_with('-')
        && !label.ends_with('-')
        && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
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
        check("Example.COM:443", "example.com:443");
        check("example.com.:443", "example.com:443");
        check("*.example.com:443", "*.example.com:443");
        check("10.1.2.3:5432", "10.1.2.3:5432");
        check("[::1]:80", "[::1]:80");
        check("localhost:3000", "localhost:3000");
    }

    #[test]
    fn malformed_rules_are_refused() {
        for bad in [
            "",
            ":",
            "a",
            "a:",
            ":1",
            "a:0",
            "a:65536",
            "a:+1",
            "a:1 ",
            "*.com:443",
            "a*.b:1",
            "*.*.b:1",
            "a..b:1",
            "-a.b:1",
            "a_b.c:1",
            "u@a.b:1",
            "http://a:1",
            "a/b:1",
            "a%2e:1",
            "a\0.b:1",
            "é.com:1",
            "1.2.3:1",
            "0x7f.1:1",
            "[::1:80",
            "::1:80",
            "[::g]:1",
            "**:1",
        ] {
            assert!(bad.parse::<EgressRule>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_profile_without_a_way_out_refuses_rules() {
        let rules = ["a.b:1".parse().unwrap()];
        assert!(Profile::NoNetwork.egress(&rules).is_err());
        assert!(Profile::ReadOnly.egress(&rules).is_err());
        assert_eq!(Profile::NoNetwork.egress(&[]).unwrap(), []);
        assert_eq!(Profile::RepoWrite.egress(&rules).unwrap(), rules);
        assert_eq!(Profile::RepoWrite.egress(&[]).unwrap(), []);
        assert_eq!(Profile::FullDev.egress(&[]).unwrap(), [EgressRule::anywhere()]);
    }
}

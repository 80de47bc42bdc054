//! Hosts as they are asked for: one grammar, for rules and for what comes from inside.

use crate::{Error, ErrorKind, Result};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// The longest host name.
pub const MAX_HOST_BYTES: usize = 253;

/// The longest part of a host name between two dots.
pub const MAX_LABEL_BYTES: usize = 63;

/// A host name: letters, digits, hyphens and dots, in lower case, without a dot at its end. Never
/// something that some resolver would read as an address.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostName(String);

impl HostName {
    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is this name or one below it.
    pub fn is_at_or_below(&self, name: &Self) -> bool {
        let Some(rest) = self.0.strip_suffix(name.as_str()) else { return false };
        rest.is_empty() || rest.ends_with('.')
    }

    /// Reads a name, or says what is wrong with it.
    pub(super) fn read(text: &str) -> Result<Self, &'static str> {
        let name = text.strip_suffix('.').unwrap_or(text);
        if name.len() > MAX_HOST_BYTES {
            return Err("the host is longer than 253 characters");
        }
        if !name.split('.').all(is_label) {
            return Err(
                "the host has an empty label, or a character other than letters, digits and hyphens",
            );
        }
        let name = name.to_ascii_lowercase();
        // Some resolvers read a name that ends in a number as an address, in octal and hexadecimal too.
        if name.rsplit('.').next().is_some_and(is_number) {
            return Err("the host ends in a number and is not an address");
        }
        Ok(Self(name))
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for HostName {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::read(text).map_err(|why| no_host(text, why))
    }
}

/// A name or an address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Host {
    /// A name.
    Name(HostName),
    /// An address. One of IPv4 that is written as one of IPv6 is one of IPv4.
    Address(IpAddr),
}

impl Host {
    /// Reads a name, an address of IPv4, or one of IPv6 in brackets.
    pub(super) fn read(text: &str) -> Result<Self, &'static str> {
        if let Some(inner) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
            let address: Ipv6Addr =
                inner.parse().map_err(|_| "what stands in brackets is not an IPv6 address")?;
            return Ok(Self::Address(IpAddr::V6(address).to_canonical()));
        }
        match text.parse::<Ipv4Addr>() {
            Ok(address) => Ok(Self::Address(address.into())),
            Err(_) => HostName::read(text).map(Self::Name),
        }
    }
}

impl From<IpAddr> for Host {
    fn from(address: IpAddr) -> Self {
        Self::Address(address.to_canonical())
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => name.fmt(f),
            Self::Address(IpAddr::V4(address)) => address.fmt(f),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

impl FromStr for Host {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::read(text).map_err(|why| no_host(text, why))
    }
}

/// What a connection is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Asked {
    /// The host.
    pub host: Host,
    /// The port, never 0.
    pub port: u16,
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl FromStr for Asked {
    type Err = Error;

    /// Reads `HOST:PORT`.
    fn from_str(text: &str) -> Result<Self> {
        let read = || {
            let (host, port) = split_port(text)?;
            let port = read_port(port.ok_or("the port is missing")?)?;
            Ok(Self { host: Host::read(host)?, port })
        };
        read().map_err(|why| no_host(text, why))
    }
}

fn no_host(text: &str, why: &str) -> Error {
    Error::new(ErrorKind::Usage, format!("{text:?} is no host: {why}"))
        .hint("Write a name of letters, digits, hyphens and dots, or an address, IPv6 in brackets.")
}

/// Cuts what follows the colon off a host.
pub(super) fn split_port(text: &str) -> Result<(&str, Option<&str>), &'static str> {
    let beyond = match text.strip_prefix('[') {
        Some(inner) => match inner.find(']') {
            Some(end) => end.saturating_add(2),
            None => return Err("the bracket is not closed"),
        },
        None => text.find(':').unwrap_or(text.len()),
    };
    let (host, rest) = text.split_at_checked(beyond).ok_or("it is cut off")?;
    match rest.strip_prefix(':') {
        None if rest.is_empty() => Ok((host, None)),
        None => Err("something other than a port follows the bracket"),
        Some(port) if port.contains(':') => Err("an IPv6 address belongs in brackets"),
        Some(port) => Ok((host, Some(port))),
    }
}

/// Reads one port.
pub(super) fn read_port(text: &str) -> Result<u16, &'static str> {
    if text.is_empty() || text.len() > 5 || !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err("the port is not a number");
    }
    if text.starts_with('0') {
        return Err("the port begins with 0");
    }
    text.parse().map_err(|_| "the port is not within 1 to 65535")
}

fn is_label(label: &str) -> bool {
    !label.is_empty()
        && label.len() <= MAX_LABEL_BYTES
        && !label.starts_with('-')
        && !label.ends_with('-')
        && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

/// Whether a label in lower case is a number to some reader of addresses.
fn is_number(label: &str) -> bool {
    match label.strip_prefix("0x") {
        Some(digits) => digits.bytes().all(|b| b.is_ascii_hexdigit()),
        None => label.bytes().all(|b| b.is_ascii_digit()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_understood_alike_however_it_is_spelled() {
        let shown = |text: &str| text.parse::<Asked>().unwrap().to_string();
        assert_eq!(shown("EXAMPLE.com:443"), "example.com:443");
        assert_eq!(shown("example.com.:443"), "example.com:443");
        assert_eq!(shown("1.2.3.4:1"), "1.2.3.4:1");
        assert_eq!(shown("[2001:DB8:0::1]:65535"), "[2001:db8::1]:65535");
        assert_eq!(shown("[::ffff:10.0.0.1]:80"), "10.0.0.1:80");
        assert_eq!(shown("xn--bcher-kva.example:80"), "xn--bcher-kva.example:80");
    }

    #[test]
    fn what_two_readers_could_read_differently_is_no_host() {
        let long = format!("{}.example:1", "a".repeat(64));
        let longer = format!("{}example:1", "a.".repeat(125));
        for bad in [
            "example.com",
            "example.com:",
            ":443",
            "",
            ":",
            "example.com:0",
            "example.com:65536",
            "example.com:4294967739",
            "example.com:0443",
            "example.com:+1",
            "example.com: 1",
            "example.com:1 ",
            "example..com:1",
            ".example.com:1",
            "example.com..:1",
            "-a.com:1",
            "a-.com:1",
            "a_b.com:1",
            "user@example.com:1",
            "example.com%00:1",
            "example.com%2e:1",
            "evil\0.example.com:1",
            "exa mple.com:1",
            "example.com\r\n:1",
            "bücher.example:1",
            "example.com/:1",
            "http://example.com:1",
            "127.1:1",
            "2130706433:1",
            "0177.0.0.1:1",
            "0x7f.0.0.1:1",
            "0x7f000001:1",
            "a.0x7f:1",
            "a.0x:1",
            "1.2.3.4.:1",
            "1.2.3:1",
            "1.2.3.4.5:1",
            "256.1.1.1:1",
            "01.2.3.4:1",
            "::1:1",
            "[::1:1",
            "[::1]1",
            "[::1]]:1",
            "[fe80::1%eth0]:1",
            "[fe80::1%251]:1",
            "[1.2.3.4]:1",
            "[]:1",
            "*.example.com:1",
            "*:1",
            "1.2.3.4:1:2",
            &long,
            &longer,
        ] {
            assert!(bad.parse::<Asked>().is_err(), "{bad:?}");
        }
    }
}

//! A secret that never enters: which host may be given it, and where in a request.

use super::name::SecretName;
use crate::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The longest name of a host.
const MAX_HOST_BYTES: usize = 253;
/// The longest name of a header or of a part of a query.
const MAX_PART_BYTES: usize = 64;

/// Names a secret, the one host that is given it, and where in a request it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SecretGrant {
    /// Which secret.
    pub name: SecretName,
    /// The host, in lower case. An exact name: no wildcard and no address.
    pub host: String,
    /// Where in a request.
    pub place: GrantPlace,
}

/// Where in a request a secret stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GrantPlace {
    /// In this header, by its name in lower case.
    Header {
        /// Which.
        name: String,
        /// How; anything that holds the placeholder where nobody says.
        scheme: Option<BasicOrBearer>,
    },
    /// In this part of the query.
    Query(String),
}

/// How a header says who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BasicOrBearer {
    /// Name and password, encoded. The placeholder may be either.
    Basic,
    /// A token.
    Bearer,
}

impl SecretGrant {
    /// Whether a connection to this host is one that the secret is for.
    pub fn is_for(&self, host: &str) -> bool {
        self.host.eq_ignore_ascii_case(host.strip_suffix('.').unwrap_or(host))
    }
}

impl FromStr for SecretGrant {
    type Err = Error;

    /// Reads `NAME@HOST[:header=NAME,scheme=Bearer|basic]` or `NAME@HOST:query=NAME`.
    fn from_str(text: &str) -> Result<Self> {
        let bad = |why: &str| {
            let what = format!("{:?} is no grant of a secret: {why}", cut(text));
            Error::new(ErrorKind::Usage, what).hint(
                "Write NAME@HOST, NAME@HOST:header=X-Api-Key, NAME@HOST:scheme=basic or NAME@HOST:query=key.",
            )
        };
        let (name, rest) = text.split_once('@').ok_or_else(|| bad("the host is missing"))?;
        let name = SecretName::new(name)?;
        let (host, options) = match rest.split_once(':') {
            Some((host, options)) => (host, Some(options)),
            None => (rest, None),
        };
        Ok(Self { name, host: exact(host).map_err(&bad)?, place: place(options).map_err(&bad)? })
    }
}

fn cut(text: &str) -> &str {
    text.get(..text.floor_char_boundary(120)).unwrap_or_default()
}

/// One host by its name, by the rules of every other list of hosts.
fn exact(host: &str) -> Result<String, &'static str> {
    if host.is_empty() {
        return Err("the host is missing");
    }
    if host.contains('*') {
        return Err("a secret is for one host, not for a family of them");
    }
    if host.parse::<std::net::IpAddr>().is_ok() || host.starts_with('[') {
        return Err("a secret is for a host by its name, not by its address");
    }
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    let is_label = |label: &str| {
        let good = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
        (1..=63).contains(&label.len()) && label.bytes().all(good)
    };
    // A name that ends in a number would be read as an address by some resolvers.
    let is_number = host.rsplit('.').next().is_some_and(|l| l.bytes().all(|b| b.is_ascii_digit()));
    match host.len() <= MAX_HOST_BYTES && !is_number && host.split('.').all(is_label) {
        true => Ok(host),
        false => Err("that is no name of a host"),
    }
}

fn place(options: Option<&str>) -> Result<GrantPlace, &'static str> {
    let (mut header, mut scheme, mut query) = (None, None, None);
    for option in options.into_iter().flat_map(|options| options.split(',')) {
        let (key, value) = option.split_once('=').ok_or("an option has no value")?;
        let place = match key {
            "header" => &mut header,
            "scheme" => &mut scheme,
            "query" => &mut query,
            _ => return Err("there are the options header, scheme and query"),
        };
        if place.replace(value).is_some() {
            return Err("an option stands there twice");
        }
    }
    let is_token = |text: &str| {
        let good = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
        !text.is_empty() && text.len() <= MAX_PART_BYTES && text.bytes().all(good)
    };
    match (header, scheme, query) {
        (None, None, Some(query)) if is_token(query) => Ok(GrantPlace::Query(query.to_owned())),
        (None, None, Some(_)) => Err("that is no name for a part of a query"),
        (_, _, Some(_)) => Err("a secret stands in a header or in the query, not in both"),
        (header, scheme, None) => {
            let name = header.unwrap_or("authorization").to_ascii_lowercase();
            if !is_token(&name) {
                return Err("that is no name of a header");
            }
            if FRAMING.contains(&name.as_str()) {
                return Err(
                    "that header says where a request ends or goes, and cannot be a secret",
                );
            }
            let scheme = scheme.map(scheme_of).transpose()?;
            Ok(GrantPlace::Header { name, scheme })
        }
    }
}

/// Headers that a request is read by.
const FRAMING: [&str; 9] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "upgrade",
    "te",
    "trailer",
    "expect",
    "proxy-authorization",
];

fn scheme_of(text: &str) -> Result<BasicOrBearer, &'static str> {
    if text.eq_ignore_ascii_case("bearer") {
        Ok(BasicOrBearer::Bearer)
    } else if text.eq_ignore_ascii_case("basic") {
        Ok(BasicOrBearer::Basic)
    } else {
        Err("the scheme is Bearer or basic")
    }
}

impl fmt::Display for SecretGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.name, self.host)?;
        match &self.place {
            GrantPlace::Query(part) => write!(f, ":query={part}"),
            GrantPlace::Header { name, scheme } => {
                write!(f, ":header={name}")?;
                match scheme {
                    None => Ok(()),
                    Some(BasicOrBearer::Basic) => f.write_str(",scheme=basic"),
                    Some(BasicOrBearer::Bearer) => f.write_str(",scheme=Bearer"),
                }
            }
        }
    }
}

impl fmt::Display for GrantPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header { name, scheme: None } => write!(f, "the header {name}"),
            Self::Header { name, scheme: Some(BasicOrBearer::Basic) } => {
                write!(f, "the header {name} of scheme basic")
            }
            Self::Header { name, scheme: Some(BasicOrBearer::Bearer) } => {
                write!(f, "the header {name} of scheme Bearer")
            }
            Self::Query(part) => write!(f, "the part {part} of the query"),
        }
    }
}

impl TryFrom<String> for SecretGrant {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<SecretGrant> for String {
    fn from(grant: SecretGrant) -> Self {
        grant.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let grant: SecretGrant = text.parse().unwrap();
        assert_eq!(grant.to_string(), expected);
        assert_eq!(expected.parse::<SecretGrant>().unwrap(), grant);
    }

    #[test]
    fn a_grant_is_read_and_written() {
        check("T@API.example.com", "T@api.example.com:header=authorization");
        check("T@a.example:scheme=bearer", "T@a.example:header=authorization,scheme=Bearer");
        check("T@a.example:header=X-Api-Key", "T@a.example:header=x-api-key");
        check(
            "T@a.example:scheme=basic,header=Authorization",
            "T@a.example:header=authorization,scheme=basic",
        );
        check("T@a.example:query=key", "T@a.example:query=key");
    }

    #[test]
    fn what_is_no_grant_opens_nothing() {
        for (bad, why) in [
            ("T", "the host is missing"),
            ("T@", "the host is missing"),
            ("@a.example", "name"),
            ("T@*.example.com", "one host"),
            ("T@*", "one host"),
            ("T@10.0.0.1", "address"),
            ("T@[::1]", "address"),
            ("T@a.example:443", "no value"),
            ("T@a.example:", "no value"),
            ("T@a example", "no name"),
            ("T@u@a.example", "no name"),
            ("T@a.example/x", "no name"),
            ("T@a.example:scheme=digest", "Bearer or basic"),
            ("T@a.example:header=", "header"),
            ("T@a.example:header=Host", "where a request ends"),
            ("T@a.example:header=a b", "header"),
            ("T@a.example:header=a,header=b", "twice"),
            ("T@a.example:header=a,query=b", "not in both"),
            ("T@a.example:query=a&b", "query"),
            ("T@a.example:cookie=a", "options"),
        ] {
            let error = bad.parse::<SecretGrant>().unwrap_err();
            assert_eq!(error.kind, ErrorKind::Usage);
            assert!(error.to_string().contains(why), "{bad}: {error}");
        }
    }

    #[test]
    fn a_grant_is_for_its_host_alone() {
        let grant: SecretGrant = "T@api.example.com".parse().unwrap();
        assert!(grant.is_for("api.example.com") && grant.is_for("API.example.com."));
        for other in ["example.com", "x.api.example.com", "api.example.com.evil.test", ""] {
            assert!(!grant.is_for(other), "{other}");
        }
    }
}

//! Where a name leads to: the host's own list first, then its resolvers, or those that were given.

use crate::host_file::{HOSTS, RESOLVERS};
use crate::limits::Limits;
use crate::resolver::{Kind, Said, ask};
use cofferdam_core::policy::HostName;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

/// How often all resolvers are asked before it is given up.
const ROUNDS: usize = 2;

/// How much longer than for addresses of IPv4, once they are known, those of IPv6 are waited for.
const GRACE: Duration = Duration::from_millis(50);

/// How many resolvers of the host's are asked.
const MAX_RESOLVERS: usize = 3;

/// Resolves names.
#[derive(Debug)]
pub(crate) struct Resolve {
    given: Vec<SocketAddr>,
}

impl Resolve {
    /// By these resolvers; where there is none, as the host does.
    pub(crate) fn new(given: Vec<SocketAddr>) -> Self {
        Self { given }
    }

    /// All addresses of a name, or why there is none.
    pub(crate) async fn addresses(
        &self,
        name: &HostName,
        limits: &Limits,
    ) -> Result<Vec<IpAddr>, String> {
        if !self.given.is_empty() {
            return asked(&self.given, name, limits).await;
        }
        let listed = listed(&HOSTS.text(), name);
        if !listed.is_empty() {
            return Ok(listed);
        }
        let found = asked(&resolvers(&RESOLVERS.text()), name, limits).await;
        if found.is_err() {
            RESOLVERS.failed();
        }
        found
    }
}

/// Asks for both kinds at once. IPv4 comes first: it is what works everywhere.
async fn asked(
    servers: &[SocketAddr],
    name: &HostName,
    limits: &Limits,
) -> Result<Vec<IpAddr>, String> {
    let mut v4 = std::pin::pin!(one_kind(servers, name, Kind::V4, limits));
    let mut v6 = std::pin::pin!(one_kind(servers, name, Kind::V6, limits));
    let (v4, v6) = tokio::select! {
        first = &mut v4 => {
            let is_enough = first.as_ref().is_ok_and(|addresses| !addresses.is_empty());
            let second = match is_enough {
                true => tokio::time::timeout(GRACE, v6).await.unwrap_or_else(|_| Ok(Vec::new())),
                false => v6.await,
            };
            (first, second)
        }
        second = &mut v6 => (v4.await, second),
    };
    let mut all = Vec::new();
    let mut why = None;
    for found in [v4, v6] {
        match found {
            Ok(addresses) => all.extend(addresses),
            Err(reason) => why = why.or(Some(reason)),
        }
    }
    match (all.is_empty(), why) {
        (true, Some(reason)) => Err(reason),
        (true, None) => Err(format!("{name} has no address")),
        (false, _) => Ok(all),
    }
}

async fn one_kind(
    servers: &[SocketAddr],
    name: &HostName,
    kind: Kind,
    limits: &Limits,
) -> Result<Vec<IpAddr>, String> {
    let mut current = name.clone();
    for _ in 0..=limits.aliases {
        match said(servers, &current, kind).await? {
            Said::Addresses(addresses) => return Ok(addresses),
            Said::NoSuchName => return Err(format!("there is no name {name}")),
            Said::Alias(alias) => current = alias,
        }
    }
    Err(format!("{name} has too many aliases"))
}

async fn said(servers: &[SocketAddr], name: &HostName, kind: Kind) -> Result<Said, String> {
    let mut last = "there is no resolver".to_owned();
    for _ in 0..ROUNDS {
        for server in servers {
            match ask(*server, name, kind).await {
                Ok(said) => return Ok(said),
                Err(error) => last = error.to_string(),
            }
        }
    }
    Err(format!("no resolver said where {name} is: {last}"))
}

/// The words of the lines of a file, without what is said beside them.
fn lines(text: &str) -> impl Iterator<Item = std::str::SplitWhitespace<'_>> {
    text.lines().map(|line| line.split(['#', ';']).next().unwrap_or_default().split_whitespace())
}

/// The addresses that a list of hosts gives a name.
fn listed(hosts: &str, name: &HostName) -> Vec<IpAddr> {
    lines(hosts)
        .filter_map(|mut words| {
            let address: IpAddr = words.next()?.parse().ok()?;
            words.any(|word| word.eq_ignore_ascii_case(name.as_str())).then_some(address)
        })
        .collect()
}

/// The resolvers that a `resolv.conf` names; without any, the one of this machine.
fn resolvers(text: &str) -> Vec<SocketAddr> {
    let named = lines(text).filter_map(|mut words| match (words.next(), words.next()) {
        (Some("nameserver"), Some(address)) => address.parse::<IpAddr>().ok(),
        _ => None,
    });
    let mut named: Vec<SocketAddr> =
        named.take(MAX_RESOLVERS).map(|address| SocketAddr::new(address, 53)).collect();
    if named.is_empty() {
        named.push(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 53));
    }
    named
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_hosts_is_read_as_the_system_does() {
        let hosts = "127.0.0.1 localhost\n# 1.1.1.1 a.test\n10.0.0.1\tA.test b.test # c.test\n\
            nonsense a.test\nfd00::1 a.test\n";
        let found = |name: &str| listed(hosts, &name.parse().unwrap());
        assert_eq!(found("a.test"), [IpAddr::from([10, 0, 0, 1]), "fd00::1".parse().unwrap()]);
        assert_eq!(found("localhost"), [IpAddr::from([127, 0, 0, 1])]);
        assert_eq!(found("c.test"), [] as [IpAddr; 0]);
    }

    #[test]
    fn the_hosts_resolvers_are_those_that_it_names() {
        let named =
            resolvers("search x\nnameserver 10.0.0.53\n;nameserver 1.1.1.1\nnameserver ::1\n");
        let shown: Vec<String> = named.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["10.0.0.53:53", "[::1]:53"]);
        assert_eq!(resolvers("")[0].to_string(), "127.0.0.1:53");
    }
}

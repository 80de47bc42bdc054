//! Whether a destination may be reached: a function of the policy and of what was asked, alone.

use super::address::{AddressClass, address_class, embedded};
use super::host::{Asked, Host, HostName};
use super::rule::{EgressRule, HostPattern};
use crate::network::{HOST_NAME, NetworkPolicy};
use std::net::IpAddr;

/// Whether something may be reached, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Whether it may.
    pub allowed: bool,
    /// The rule that decided, as it is written; `None` where no rule did.
    pub rule: Option<String>,
    /// Why not.
    pub reason: Option<String>,
    /// What would allow it, as it is written on the command line. `None` where it is denied on purpose.
    pub remedy: Option<String>,
}

impl Decision {
    fn allowed(rule: impl Into<String>) -> Self {
        Self { allowed: true, rule: Some(rule.into()), reason: None, remedy: None }
    }

    fn denied(reason: String, remedy: Option<String>) -> Self {
        Self { allowed: false, rule: None, reason: Some(reason), remedy }
    }

    fn denied_by(rule: &EgressRule, what: &str) -> Self {
        let reason = format!("the rule {rule} denies {what}");
        Self { rule: Some(rule.to_string()), ..Self::denied(reason, None) }
    }
}

/// Whether this may be reached, as far as its name and port tell. Where the name leads to is for
/// [`decide_resolved`].
pub fn decide(policy: &NetworkPolicy, asked: &Asked) -> Decision {
    if let Some(rule) = policy.deny.iter().find(|rule| denies(rule, asked)) {
        return Decision::denied_by(rule, &asked.to_string());
    }
    match &asked.host {
        Host::Name(name) if is_own_name(name) => own_name(policy, name, asked.port),
        Host::Name(name) => {
            let covers =
                |rule: &&EgressRule| rule.covers_name(name) && rule.covers_port(asked.port);
            match policy.allow.iter().find(covers) {
                Some(rule) => Decision::allowed(rule.to_string()),
                None => not_listed(asked),
            }
        }
        Host::Address(address) => match listing(policy, *address, asked.port) {
            Some(rule) => Decision::allowed(rule.to_string()),
            None if address_class(*address) == AddressClass::Public => not_listed(asked),
            None => not_public(asked, *address),
        },
    }
}

/// Whether a name that may be reached may be reached at this address, which it led to.
pub fn decide_resolved(policy: &NetworkPolicy, asked: &Asked, address: IpAddr) -> Decision {
    let decision = decide(policy, asked);
    if !decision.allowed {
        return decision;
    }
    let at = Asked { host: address.into(), port: asked.port };
    if let Some(rule) = policy.deny.iter().find(|rule| denies(rule, &at)) {
        return Decision::denied_by(rule, &format!("{asked}, which leads to {address}"));
    }
    let class = address_class(address);
    let is_open = match &asked.host {
        Host::Name(name) if is_own_name(name) => class == AddressClass::Loopback,
        Host::Name(_) => {
            class == AddressClass::Public || listing(policy, address, asked.port).is_some()
        }
        Host::Address(one) => *one == address.to_canonical(),
    };
    match is_open {
        true => decision,
        false => not_public(asked, address),
    }
}

/// Whether questions for this name are answered: whether it may be reached on any port.
pub fn decide_name(policy: &NetworkPolicy, name: &HostName) -> Decision {
    let on_all = |rule: &&EgressRule| rule.ports.is_none() && denies_name(rule, name);
    if let Some(rule) = policy.deny.iter().find(on_all) {
        return Decision::denied_by(rule, name.as_str());
    }
    if is_own_name(name) {
        return own_name(policy, name, policy.host_ports.first().copied().unwrap_or_default());
    }
    match policy.allow.iter().find(|rule| rule.covers_name(name)) {
        Some(rule) => Decision::allowed(rule.to_string()),
        None => {
            Decision::denied(format!("no rule allows {name}"), Some(format!("--egress {name}")))
        }
    }
}

/// Whether a rule lists this public address by itself. One for many means those of others, and not one that
/// happens to be this machine's own.
pub fn is_listed(policy: &NetworkPolicy, address: IpAddr, port: u16) -> bool {
    policy.allow.iter().any(|rule| {
        matches!(rule.host, HostPattern::Addresses(range) if range.is_one())
            && rule.opens_address(address)
            && rule.covers_port(port)
    })
}

fn listing(policy: &NetworkPolicy, address: IpAddr, port: u16) -> Option<&EgressRule> {
    policy.allow.iter().find(|rule| rule.opens_address(address) && rule.covers_port(port))
}

fn denies(rule: &EgressRule, asked: &Asked) -> bool {
    let host = match &asked.host {
        Host::Name(name) => denies_name(rule, name),
        Host::Address(address) => denies_address(rule, *address),
    };
    host && rule.covers_port(asked.port)
}

fn denies_name(rule: &EgressRule, name: &HostName) -> bool {
    rule.covers_name(name)
}

/// A rule that denies means every form of an address, and with `*` every address.
fn denies_address(rule: &EgressRule, address: IpAddr) -> bool {
    let inner = match address {
        IpAddr::V4(_) => None,
        IpAddr::V6(address) => embedded(address),
    };
    match &rule.host {
        HostPattern::Anywhere => true,
        HostPattern::Addresses(range) => {
            range.contains(address) || inner.is_some_and(|inner| range.contains(inner.into()))
        }
        HostPattern::Exactly(_) | HostPattern::Below(_) => false,
    }
}

/// The end of names that Cofferdam gives away.
const OWN_DOMAIN: &str = "cofferdam.internal";

/// Whether a name is one of Cofferdam's own, which nobody outside is asked for.
pub(super) fn is_own_name(name: &HostName) -> bool {
    let rest = name.as_str().strip_suffix(OWN_DOMAIN);
    rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

fn own_name(policy: &NetworkPolicy, name: &HostName, port: u16) -> Decision {
    if name.as_str() != HOST_NAME {
        return Decision::denied(format!("{name} stands for nothing"), None);
    }
    match policy.host_ports.contains(&port) {
        true => Decision::allowed(format!("--allow-host-port {port}")),
        false if port == 0 => {
            Decision::denied("no port of the host's loopback is opened".to_owned(), None)
        }
        false => Decision::denied(
            format!("port {port} of the host's loopback is not opened"),
            Some(format!("--allow-host-port {port}")),
        ),
    }
}

fn not_listed(asked: &Asked) -> Decision {
    let port = asked.port;
    let aside = match &asked.host {
        // To whoever asks the proxy this is the host's own, which has a name and an option for it.
        Host::Name(name) if is_localhost(name) => format!(
            ": the host's loopback is {HOST_NAME}:{port}, with --allow-host-port {port}, and \
             a rule for {asked} needs one for its address too"
        ),
        Host::Name(_) | Host::Address(_) => String::new(),
    };
    Decision::denied(format!("no rule allows {asked}{aside}"), Some(format!("--egress {asked}")))
}

/// Whether a name is one that means whoever asks (RFC 6761, 6.3).
fn is_localhost(name: &HostName) -> bool {
    let rest = name.as_str().strip_suffix("localhost");
    rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

fn not_public(asked: &Asked, address: IpAddr) -> Decision {
    let class = address_class(address);
    let at = Asked { host: address.into(), port: asked.port };
    if address.to_canonical().is_unspecified() {
        let leads = if at == *asked { "is" } else { "leads to" };
        return Decision::denied(format!("{asked} {leads} the address of nobody"), None);
    }
    let reason = match at == *asked {
        true => format!("{asked} is {class}, and no rule lists that address"),
        false => format!("{asked} leads to {address}, which is {class}, and no rule lists that"),
    };
    Decision::denied(reason, Some(format!("--egress {at}")))
}

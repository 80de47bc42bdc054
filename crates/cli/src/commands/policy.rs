//! `cofferdam policy`.

use super::policy_learn::{self, LearnArgs};
use crate::args::RuleOptions;
use crate::{exit, render};
use clap::{Args, Subcommand};
use cofferdam_core::network::{HOST_NAME, stands_for_names};
use cofferdam_core::policy::{Asked, Decision, Host, decide};
use cofferdam_core::{EgressRule, HostPattern, NetworkPolicy, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Finds, tells and tries rules of the way out.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct PolicyArgs {
    #[command(subcommand)]
    pub(crate) verb: PolicyVerb,
}

const EXAMPLES: &str = "\
Exit code:
  0 done; 1 Cofferdam could not do it, test found it denied, or what learn found does not suffice;
  2 usage; 3 what learn found suffices, and the command that it ran failed

Examples:
  cofferdam policy learn -- npm ci
  cofferdam policy explain --egress '*.example.com:443' --deny-egress ads.example.com
  cofferdam policy test --egress '*.example.com:443' api.example.com:443";

const TEST_EXIT_CODES: &str = "\
Exit code:
  0 it is allowed; 1 it is denied, or Cofferdam could not do it; 2 usage";

/// What is done with rules.
#[derive(Debug, Subcommand)]
pub(crate) enum PolicyVerb {
    Learn(Box<LearnArgs>),
    Explain(ExplainArgs),
    Test(TestArgs),
}

/// Says in sentences what rules open and what they leave closed.
///
/// Example: cofferdam policy explain --egress '*.example.com:443'
#[derive(Debug, Args)]
#[command(after_long_help = super::ORDINARY_EXIT_CODES)]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    pub(crate) rules: RuleOptions,
}

/// Says whether rules allow a destination, and by which of them.
///
/// Nothing is resolved: where a name leads to is decided on when it is connected to, and there it is
/// refused all the same if that is no public address and no rule lists it as an address. Exits with 0 where it
/// is allowed, and with 1 where it is denied.
///
/// Example: cofferdam policy test --egress '*.example.com:443' api.example.com:443
#[derive(Debug, Args)]
#[command(after_long_help = TEST_EXIT_CODES)]
pub(crate) struct TestArgs {
    #[command(flatten)]
    pub(crate) rules: RuleOptions,

    /// What would be connected to: a name or an address, one of IPv6 in brackets, and a port.
    #[arg(value_name = "HOST:PORT")]
    pub(crate) destination: String,

    /// Prints one JSON object on standard output.
    ///
    /// Example: --json
    #[arg(long)]
    pub(crate) json: bool,
}

/// What `policy test --json` prints. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Tested {
    /// The destination.
    pub(crate) destination: String,
    /// Whether it is allowed.
    pub(crate) allowed: bool,
    /// The rule that decided; null where none did.
    pub(crate) rule: Option<String>,
    /// Why it is denied.
    pub(crate) reason: Option<String>,
    /// What would allow it.
    pub(crate) remedy: Option<String>,
    /// Under what condition a name is allowed, which is decided on when it is connected to. Null where it is
    /// denied, or the answer is final.
    pub(crate) condition: Option<String>,
}

/// What is left to decide of a name that is allowed.
const CONDITION: &str = "where it leads to an address that is private, loopback, link-local, multicast, \
                         reserved or a metadata service, it is refused all the same unless a rule lists \
                         that address: that is decided when it is connected to";

/// What is to be known of an address that a rule lists and that is the sandbox's own inside.
const OWN_LOOPBACK: &str = "inside it is the sandbox's own loopback; it is this machine's only for a name that leads \
                            there and for whoever asks the proxy for it";

/// Does what the verb says.
pub(super) fn perform(args: &PolicyArgs) -> Result<u8> {
    match &args.verb {
        PolicyVerb::Learn(args) => policy_learn::perform(args),
        PolicyVerb::Explain(args) => explain(args),
        PolicyVerb::Test(args) => test(args),
    }
}

/// What these rules are as a policy.
fn policy(rules: &RuleOptions) -> Result<NetworkPolicy> {
    let policy = NetworkPolicy {
        version: 1,
        allow: rules.egress.clone(),
        deny: rules.deny_egress.clone(),
        host_ports: rules.allow_host_port.clone(),
        ask_ms: 0,
    };
    policy.check().map(|()| policy)
}

fn test(args: &TestArgs) -> Result<u8> {
    let asked: Asked = args.destination.parse()?;
    let tested = tested(&policy(&args.rules)?, &asked);
    match args.json {
        true => render::print_json(&tested)?,
        false => render::print_lines(&sentence(&tested))?,
    }
    Ok(if tested.allowed { exit::DONE } else { exit::FAILED })
}

fn tested(policy: &NetworkPolicy, asked: &Asked) -> Tested {
    let destination = asked.to_string();
    if let Host::Address(address) = asked.host
        && stands_for_names(address)
    {
        let reason =
            format!("inside, {address} can but stand for a name, by which it is decided on");
        let (rule, remedy, condition) = (None, None, None);
        let reason = Some(reason);
        return Tested { destination, allowed: false, rule, reason, remedy, condition };
    }
    let Decision { allowed, rule, mut reason, mut remedy } = decide(policy, asked);
    let is_own = matches!(asked.host, Host::Address(address) if address.is_loopback());
    if is_own && remedy.is_some() {
        // A rule for the address would open it to names that lead there, and not to the address.
        reason = reason.map(|reason| format!("{reason}, and inside it is the sandbox's own"));
        remedy = Some(format!("--allow-host-port {}", asked.port));
    }
    let is_open = match &asked.host {
        Host::Name(name) => allowed && name.as_str() != HOST_NAME,
        Host::Address(_) => false,
    };
    let condition = [
        is_open.then(|| CONDITION.to_owned()),
        (is_own && allowed).then(|| OWN_LOOPBACK.to_owned()),
        denied_where_it_leads(policy, asked, allowed),
    ];
    let condition: Vec<String> = condition.into_iter().flatten().collect();
    let condition = (!condition.is_empty()).then(|| condition.join("; "));
    Tested { destination, allowed, rule, reason, remedy, condition }
}

/// What is said of a name that is allowed where rules deny addresses, to one of which it may lead.
fn denied_where_it_leads(policy: &NetworkPolicy, asked: &Asked, allowed: bool) -> Option<String> {
    let is_for_addresses = |rule: &&EgressRule| {
        matches!(rule.host, HostPattern::Addresses(_)) && rule.covers_port(asked.port)
    };
    let rules = policy.deny.iter().filter(is_for_addresses);
    let rules: Vec<String> = rules.map(|rule| format!("--deny-egress {rule}")).collect();
    let may_lead_there = allowed && matches!(asked.host, Host::Name(_));
    (may_lead_there && !rules.is_empty()).then(|| {
        let rules = rules.join(", ");
        format!(
            "where it leads to an address of {rules}, it is refused whatever lists that address"
        )
    })
}

fn sentence(tested: &Tested) -> String {
    let Tested { destination, rule, reason, remedy, condition, .. } = tested;
    match tested.allowed {
        true => {
            let by = rule.as_ref().map(|rule| format!(" by {rule}")).unwrap_or_default();
            let more = condition.as_ref().map(|condition| format!("; {condition}"));
            format!("{destination} is allowed{by}{}", more.unwrap_or_default())
        }
        false => {
            let why = reason.clone().unwrap_or_else(|| "no rule allows it".to_owned());
            let by = rule.as_ref().map(|rule| format!(" by {rule}")).unwrap_or_default();
            let more =
                remedy.as_ref().map(|remedy| match remedy.strip_prefix("--allow-host-port ") {
                    Some(port) => {
                        format!("; {remedy} would lead to this machine's, as {HOST_NAME}:{port}")
                    }
                    None => format!("; {remedy} would allow it"),
                });
            format!("{destination} is denied{by}: {why}{}", more.unwrap_or_default())
        }
    }
}

fn explain(args: &ExplainArgs) -> Result<u8> {
    let policy = policy(&args.rules)?;
    let mut lines: Vec<String> = policy.allow.iter().map(|rule| told(rule, "reached")).collect();
    lines.extend(policy.host_ports.iter().map(|port| {
        format!("host.cofferdam.internal:{port} is this host's own port {port}, and no other")
    }));
    lines.extend(policy.deny.iter().map(|rule| told(rule, "not reached, whatever allows it")));
    if lines.is_empty() {
        lines.push("nothing is reached".to_owned());
    } else {
        lines.push("nothing else is reached: names that no rule allows do not resolve".to_owned());
        lines.push(
            "private, loopback, link-local, multicast and metadata addresses are reached only where \
             they are listed by address, also behind names that are allowed"
                .to_owned(),
        );
    }
    render::print_each(&lines).map(|()| exit::DONE)
}

fn told(rule: &EgressRule, what: &str) -> String {
    let ports = match &rule.ports {
        None => "every port".to_owned(),
        Some(range) => format!("port {range}"),
    };
    let host = match &rule.host {
        HostPattern::Anywhere => "every public address".to_owned(),
        HostPattern::Exactly(name) => format!("{name}"),
        HostPattern::Below(name) => format!("{name} and every name below it"),
        HostPattern::Addresses(range) if stands_for_names(range.first()) => {
            format!(
                "the address {range} where a name leads to it (inside it stands for a name itself)"
            )
        }
        HostPattern::Addresses(range) => format!("the address {range}"),
    };
    format!("{rule}: {host} on {ports} is {what}")
}

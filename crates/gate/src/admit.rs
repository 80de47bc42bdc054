//! From what was asked to a connection, or to why there is none.

use crate::attempt::Attempt;
use crate::dial;
use crate::names::StandsFor;
use crate::waiting::Wait;
use cofferdam_core::network::HOST_NAME;
use cofferdam_core::policy::{Asked, Decision, Host, decide, decide_resolved};
use cofferdam_core::{NetworkPolicy, Settlement, Verdict};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio::sync::watch;

/// Why there is no connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// By the policy.
    Denied(Decision),
    /// It was allowed, and this went wrong.
    Failed {
        /// What went wrong.
        reason: String,
        /// Whether it was that nobody answered in time.
        is_late: bool,
    },
}

/// Decides on what was asked, resolves it once, decides on every address, and dials the very one that
/// was decided on. Waits to be allowed where the policy says so.
pub(crate) async fn admit(attempt: &mut Attempt, asked: &Asked) -> Result<TcpStream, Refusal> {
    attempt.asks(asked);
    // ORDER: before anybody is asked for the name.
    if let Some(sighting) = attempt.gate.look_at_name(asked) {
        attempt.alarmed(&sighting, asked).await;
        let reason = Some(format!("{asked} has a secret's placeholder in it"));
        let decision = Decision { allowed: false, rule: None, reason, remedy: None };
        return Err(Refusal::Denied(decision));
    }
    settle(attempt, |policy| decide(policy, asked)).await?;
    let addresses = match resolve(attempt, asked).await {
        Ok(addresses) => addresses,
        Err(refusal) => return Err(failed(attempt, refusal)),
    };
    let policy = settle(attempt, |policy| among(policy, asked, &addresses)).await?;
    let open = |address: &IpAddr| decide_resolved(&policy, asked, *address).allowed;
    let open: Vec<IpAddr> = addresses.into_iter().filter(open).collect();
    let mut last = Refusal::Failed { reason: format!("{asked} has no address"), is_late: false };
    for address in open {
        attempt.leads_to(address);
        let target = SocketAddr::new(address, asked.port);
        match dial::dial(&policy, target, attempt.gate.limits.dial_time).await {
            Ok(stream) => return Ok(stream),
            Err(refusal) => last = refusal,
        }
    }
    match &last {
        Refusal::Denied(decision) => attempt.decided(decision, policy.version),
        Refusal::Failed { reason, .. } => attempt.failed(reason),
    }
    Err(last)
}

/// What an address inside stands for: the name that was asked for to get it.
pub(crate) fn meaning(attempt: &Attempt, asked: Asked) -> Result<Asked, String> {
    let Host::Address(address) = asked.host else { return Ok(asked) };
    match attempt.gate.names().at(address) {
        StandsFor::Itself => Ok(asked),
        StandsFor::Name(name) => Ok(Asked { host: Host::Name(name), port: asked.port }),
        StandsFor::Nothing => Err(format!("{address} stands for no name")),
    }
}

/// Decides; where that is a denial that may be lifted, waits for a policy that does, or for somebody to
/// say so. Returns the policy that allowed, as it holds for this connection.
async fn settle(
    attempt: &mut Attempt,
    decide: impl Fn(&NetworkPolicy) -> Decision,
) -> Result<Arc<NetworkPolicy>, Refusal> {
    let gate = attempt.gate.clone();
    let mut policies = gate.policies();
    let policy = attempt.own(&policies.borrow_and_update());
    let decision = decide(&policy);
    attempt.decided(&decision, policy.version);
    if decision.allowed {
        return Ok(policy);
    }
    let Some((patience, opening)) = attempt.patience(&decision) else {
        return Err(Refusal::Denied(decision));
    };
    let waiting = attempt.waiting(&opening, patience);
    let Some(mut wait) = Wait::begin(&gate, waiting) else {
        return Err(Refusal::Denied(decision));
    };
    attempt.waits(wait.request());
    let turned = tokio::time::timeout(patience, turn(attempt, &mut policies, &mut wait, &decide));
    let turned = turned.await.unwrap_or(Turn::Late);
    if turned == Turn::Said(Verdict::Deny) {
        wait.settle(Settlement::Denied);
        let reason = Some("somebody was asked, and said no".to_owned());
        let decision = Decision { reason, ..decision };
        attempt.decided(&decision, policy.version);
        return Err(Refusal::Denied(decision));
    }
    if turned == Turn::Said(Verdict::Approve) {
        attempt.open(opening);
    }
    // The rules that hold now decide, whatever ended the wait.
    let policy = attempt.own(&policies.borrow_and_update());
    let decision = decide(&policy);
    attempt.decided(&decision, policy.version);
    wait.settle(turned.settlement(decision.allowed));
    match decision.allowed {
        true => Ok(policy),
        false => Err(Refusal::Denied(decision)),
    }
}

/// What ends a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// A policy allows it.
    Allowed,
    /// Somebody answered.
    Said(Verdict),
    /// No policy comes any more.
    Ended,
    /// The time for it was over.
    Late,
}

impl Turn {
    fn settlement(self, is_allowed: bool) -> Settlement {
        match self {
            Self::Said(Verdict::Approve) if is_allowed => Settlement::Approved,
            Self::Allowed | Self::Ended | Self::Late if is_allowed => Settlement::Allowed,
            Self::Said(_) | Self::Allowed => Settlement::Denied,
            Self::Late => Settlement::TimedOut,
            Self::Ended => Settlement::Gone,
        }
    }
}

/// Waits for the first of them.
async fn turn(
    attempt: &Attempt,
    policies: &mut watch::Receiver<Arc<NetworkPolicy>>,
    wait: &mut Wait<'_>,
    decide: impl Fn(&NetworkPolicy) -> Decision,
) -> Turn {
    loop {
        tokio::select! {
            verdict = wait.answered() => return Turn::Said(verdict),
            changed = policies.changed() => {
                if changed.is_err() {
                    return Turn::Ended;
                }
                if decide(&attempt.own(&policies.borrow_and_update())).allowed {
                    return Turn::Allowed;
                }
            }
        }
    }
}

/// Allowed where one of the addresses is; else why the first of them is not.
fn among(policy: &NetworkPolicy, asked: &Asked, addresses: &[IpAddr]) -> Decision {
    let mut decisions = addresses.iter().map(|address| decide_resolved(policy, asked, *address));
    let first = decisions.next();
    if first.as_ref().is_some_and(|decision| decision.allowed) {
        return first.unwrap_or_else(|| decide(policy, asked));
    }
    decisions.find(|decision| decision.allowed).or(first).unwrap_or_else(|| decide(policy, asked))
}

async fn resolve(attempt: &Attempt, asked: &Asked) -> Result<Vec<IpAddr>, Refusal> {
    let limits = attempt.gate.limits;
    match &asked.host {
        Host::Address(address) => Ok(vec![*address]),
        Host::Name(name) if name.as_str() == HOST_NAME => {
            Ok(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()])
        }
        Host::Name(name) => {
            let wanted = attempt.gate.resolve.addresses(name, &limits);
            match tokio::time::timeout(limits.resolve_time, wanted).await {
                Ok(Ok(mut addresses)) => {
                    addresses.truncate(limits.addresses);
                    Ok(addresses)
                }
                Ok(Err(reason)) => Err(Refusal::Failed { reason, is_late: false }),
                Err(_) => Err(Refusal::Failed {
                    reason: format!("no resolver said in time where {name} is"),
                    is_late: true,
                }),
            }
        }
    }
}

fn failed(attempt: &mut Attempt, refusal: Refusal) -> Refusal {
    if let Refusal::Failed { reason, .. } = &refusal {
        attempt.failed(reason);
    }
    refusal
}

//! What a session may reach, and what became of its connections.

use crate::answer::if_there;
use crate::store::NewEvent;
use crate::{Session, SessionId};
use cofferdam_core::network::HOST_NAME;
use cofferdam_core::policy::{Asked, Decision, Host, decide};
use cofferdam_core::{
    ConnectionReport, Connections, DurableBackend, EgressRule, Error, ErrorKind, NetworkPolicy,
    Opening, Profile, Result, SandboxRecord, Spec, StoredSpec, no_way_out,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::net::IpAddr;
use std::time::Duration;

/// What a session may reach. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NetworkReport {
    /// The id of the session.
    pub session: String,
    /// Whether it has a way out at all. Where it has none it gets none.
    pub way_out: bool,
    /// Which edition of the rules this is; it grows with each change of a sandbox.
    pub version: u64,
    /// What is allowed, as it is written.
    pub allow: Vec<String>,
    /// What is not, even though it is allowed.
    pub deny: Vec<String>,
    /// Ports of the host's own loopback that are reached as `host.cofferdam.internal`.
    pub host_ports: Vec<u16>,
    /// How long a connection that is not allowed waits to become so, in milliseconds; 0: not at all.
    pub ask_ms: u64,
}

impl NetworkReport {
    /// What these rules open to a session of this id; without rules it has no way out.
    pub fn of(session: String, policy: Option<NetworkPolicy>) -> Self {
        let way_out = policy.is_some();
        let policy = policy.unwrap_or_default();
        Self {
            session,
            way_out,
            version: policy.version,
            allow: words(&policy.allow),
            deny: words(&policy.deny),
            host_ports: policy.host_ports,
            ask_ms: policy.ask_ms,
        }
    }
}

/// The connections of a session. Format 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConnectionList {
    /// The id of the session.
    pub session: String,
    /// In the order in which they were decided, questions for names among them.
    pub connections: Vec<ConnectionReport>,
    /// From where on the next look goes on.
    pub next: u64,
}

/// A change of what a session may reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NetworkChange {
    /// These rules are all there are.
    Set {
        /// What is allowed.
        allow: Vec<EgressRule>,
        /// What is not, even though it is allowed.
        deny: Vec<EgressRule>,
        /// Ports of the host's loopback; `None`: as they are.
        host_ports: Option<Vec<u16>>,
        /// How long a connection waits to be allowed; `None`: as it is.
        ask: Option<Duration>,
    },
    /// These are allowed too, and denied no more.
    Allow(Vec<EgressRule>),
    /// These are denied, and allowed no more.
    Deny(Vec<EgressRule>),
    /// Somebody allows what waits. Unlike [`NetworkChange::Allow`] it takes no rule away that denies: whoever
    /// made one since the wait began meant this, too.
    Answer {
        /// What is opened.
        opening: Opening,
        /// What waits.
        asked: Asked,
    },
}

impl NetworkChange {
    /// The policy after it. Decides nothing about who may ask for it.
    fn of(&self, now: &NetworkPolicy) -> NetworkPolicy {
        let mut next = NetworkPolicy { version: now.version.saturating_add(1), ..now.clone() };
        match self {
            Self::Set { allow, deny, host_ports, ask } => {
                next.allow.clone_from(allow);
                next.deny.clone_from(deny);
                match host_ports {
                    Some(ports) => next.host_ports.clone_from(ports),
                    // A port that a rule has closed stays closed without that rule.
                    None => next.host_ports.retain(|port| opens_host_port(now, *port)),
                }
                if let Some(ask) = ask {
                    next.ask_ms = u64::try_from(ask.as_millis()).unwrap_or(u64::MAX);
                }
            }
            Self::Allow(rules) => shift(rules, &mut next.deny, &mut next.allow),
            Self::Deny(rules) => shift(rules, &mut next.allow, &mut next.deny),
            Self::Answer { opening, .. } => next = opening.over(&next),
        }
        next
    }

    /// Fails where the rules that it leads to deny on purpose what it is to open.
    fn check(&self, next: &NetworkPolicy, session: &SessionId) -> Result<()> {
        let Self::Answer { opening, asked } = self else { return Ok(()) };
        let decision = match opening.opens_private() {
            Some(address) => denied_at(next, asked, address),
            None => decide(next, asked),
        };
        if decision.allowed {
            return Ok(());
        }
        let why = decision.reason.unwrap_or_else(|| format!("{asked} is denied"));
        let hint = format!(
            "Write the rules anew without it by `cofferdam network set {session}` and answer again, \
             or answer with --deny."
        );
        let what = format!("{why}, and an answer does not lift that");
        Err(Error::new(ErrorKind::Conflict, what).hint(hint))
    }
}

/// Whether this port of the host's loopback can be reached.
fn opens_host_port(policy: &NetworkPolicy, port: u16) -> bool {
    let asked = format!("{HOST_NAME}:{port}").parse::<Asked>();
    asked.is_ok_and(|asked| decide(policy, &asked).allowed)
}

/// What is decided of an address that is opened because a name leads to it, or for itself.
fn denied_at(policy: &NetworkPolicy, asked: &Asked, address: IpAddr) -> Decision {
    match &asked.host {
        // ORDER: the name waited for itself before, and may be allowed for that connection alone.
        Host::Name(_) => {
            let name = decide(policy, asked);
            let at = Asked { host: address.into(), port: asked.port };
            if name.allowed || name.rule.is_none() { decide(policy, &at) } else { name }
        }
        Host::Address(_) => decide(policy, asked),
    }
}

/// Moves rules from one list to the other.
fn shift(rules: &[EgressRule], from: &mut Vec<EgressRule>, to: &mut Vec<EgressRule>) {
    from.retain(|known| !rules.contains(known));
    for rule in rules {
        if !to.contains(rule) {
            to.push(rule.clone());
        }
    }
}

impl Session {
    /// What it may reach now; where no sandbox stands, what the next one may.
    pub async fn network(&self) -> Result<NetworkReport> {
        Ok(NetworkReport::of(self.id().to_string(), self.in_force().await?.1))
    }

    /// The rules that hold now. Where there is no way out it is a conflict.
    pub(crate) async fn policy(&self) -> Result<NetworkPolicy> {
        let (incarnation, policy) = self.in_force().await?;
        let sandbox = self.id().sandbox(incarnation)?;
        policy.ok_or_else(|| no_way_out(&sandbox))
    }

    /// Whether somebody changed its rules since it was made.
    pub async fn has_set_rules(&self) -> Result<bool> {
        Ok(self.sessions.0.row(self.id()).await?.spec.has_set_rules())
    }

    async fn in_force(&self) -> Result<(u32, Option<NetworkPolicy>)> {
        let inner = &self.sessions.0;
        let row = inner.row(self.id()).await?;
        let (backend, spec) = (inner.backend(&row.backend)?, row.spec.spec()?);
        let policy = in_force(backend.as_ref(), row.record.as_ref(), &spec).await?;
        Ok((row.incarnation, policy))
    }

    /// Changes what it may reach, from the next connection on. A sandbox that comes after the present one
    /// has the same rules. Where it was made without a way out it is a conflict.
    pub async fn set_network(&self, change: &NetworkChange) -> Result<NetworkReport> {
        let inner = &self.sessions.0;
        let mut desk = inner.desk(self.id()).await?;
        let mut spec = desk.row.spec.spec()?;
        let now = in_force(desk.backend().as_ref(), desk.row.record.as_ref(), &spec).await?;
        let sandbox = self.id().sandbox(desk.row.incarnation)?;
        let now = now.ok_or_else(|| no_way_out(&sandbox))?;
        let next = change.of(&now);
        next.check()?;
        change.check(&next, self.id())?;
        take_over(&mut spec, &next)?;
        // ORDER: written down first. Should this process end in between, the sandbox is told by the next
        // one; the other way about, a sandbox that is recovered would have the old rules again.
        desk.row.spec = StoredSpec::new(&spec);
        desk.row.facts.network_owed = true;
        let said = json!({
            "allow": words(&next.allow), "deny": words(&next.deny),
            "host_ports": next.host_ports, "ask_ms": next.ask_ms,
        });
        desk.amend(Some(NewEvent::now("network_changed", said))).await?;
        desk.pay_network().await?;
        Ok(NetworkReport::of(self.id().to_string(), Some(next)))
    }

    /// What became of its connections, from the place `from` on: 0 for all that is kept, or what an
    /// earlier look ended with. Of the present sandbox, or of the last one where it has ended.
    pub async fn connections(&self, from: u64) -> Result<ConnectionList> {
        let inner = &self.sessions.0;
        let row = inner.row(self.id()).await?;
        let backend = inner.backend(&row.backend)?;
        let sandbox = self.id().sandbox(row.incarnation)?;
        let read = backend.connections(&sandbox, from);
        let found = if_there("read what became of connections", read).await?;
        let Connections { reports: connections, next } =
            found.unwrap_or_else(|| Connections { next: from, ..Default::default() });
        Ok(ConnectionList { session: self.id().to_string(), connections, next })
    }
}

/// What is in force in a sandbox; where there is none, what the next one is made with.
async fn in_force(
    backend: &dyn DurableBackend,
    sandbox: Option<&SandboxRecord>,
    spec: &Spec,
) -> Result<Option<NetworkPolicy>> {
    if let Some(sandbox) = sandbox {
        let live = backend.network(sandbox);
        if let Some(policy) = if_there("say what a sandbox may reach", live).await? {
            return Ok(policy);
        }
    }
    spec.network_policy()
}

/// Makes the rules those of the sandboxes to come.
fn take_over(spec: &mut Spec, policy: &NetworkPolicy) -> Result<()> {
    if spec.profile == Profile::FullDev && policy.allow.is_empty() {
        let what = "profile full-dev without any rule reaches every public address";
        return Err(Error::new(ErrorKind::Conflict, what).hint("Deny * to close all of it."));
    }
    spec.egress.clone_from(&policy.allow);
    spec.deny.clone_from(&policy.deny);
    spec.host_ports.clone_from(&policy.host_ports);
    spec.ask = Duration::from_millis(policy.ask_ms);
    // What has a way out keeps it when its last rule goes: the next sandbox can be told others.
    spec.keeps_way_out = true;
    Ok(())
}

fn words(rules: &[EgressRule]) -> Vec<String> {
    rules.iter().map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_lifts_no_rule_that_denies() {
        let deny = |all: &[&str]| NetworkPolicy { deny: rules(all), ..NetworkPolicy::default() };
        let session = SessionId::fresh().unwrap();
        let check = |now: NetworkPolicy, asked: &str, remedy: &str, is_open: bool| {
            let opening = Opening::of_remedy(remedy).unwrap();
            let change = NetworkChange::Answer { opening, asked: asked.parse().unwrap() };
            let next = change.of(&now);
            let found = change.check(&next, &session);
            assert_eq!(found.is_ok(), is_open, "{asked} {remedy} {now:?}: {found:?}");
            assert_eq!(next.deny, now.deny, "{asked}");
            if let Err(error) = found {
                assert_eq!(error.kind, ErrorKind::Conflict);
                assert!(error.message.contains("denies"), "{error:?}");
                let hint = error.hint.unwrap_or_default();
                assert!(hint.contains(&format!("cofferdam network set {session}")), "{hint}");
            }
        };
        let (name, remedy) = ("a.test:443", "--egress a.test:443");
        check(deny(&[]), name, remedy, true);
        check(deny(&["b.test:443", "a.test:80"]), name, remedy, true);
        for rule in ["a.test:443", "a.test", "*.a.test:443", "*"] {
            check(deny(&[rule]), name, remedy, false);
        }
        let at = "--egress 10.1.2.3:443";
        check(deny(&["10.9.0.0/16"]), name, at, true);
        for rule in ["10.1.2.3:443", "10.0.0.0/8", "a.test"] {
            check(deny(&[rule]), name, at, false);
        }
        check(deny(&["10.0.0.0/8"]), "10.1.2.3:443", at, false);
        let own = "host.cofferdam.internal:80";
        check(deny(&[]), own, "--allow-host-port 80", true);
        check(deny(&["host.cofferdam.internal"]), own, "--allow-host-port 80", false);
    }

    fn rules(all: &[&str]) -> Vec<EgressRule> {
        all.iter().map(|rule| rule.parse().unwrap()).collect()
    }

    #[test]
    fn a_port_that_was_closed_stays_closed_when_rules_are_set() {
        let now = NetworkPolicy { host_ports: vec![80, 5432], ..NetworkPolicy::default() };
        let closed = NetworkChange::Deny(rules(&["host.cofferdam.internal:80"])).of(&now);
        let set = |host_ports| NetworkChange::Set {
            allow: rules(&["a.example:443"]),
            deny: Vec::new(),
            host_ports,
            ask: None,
        };
        assert_eq!(set(None).of(&closed).host_ports, [5432]);
        assert_eq!(set(Some(vec![80])).of(&closed).host_ports, [80], "it is said");
        assert_eq!(set(None).of(&now).host_ports, [80, 5432], "the control");
    }

    #[test]
    fn a_rule_is_on_one_list_and_once() {
        let now = NetworkPolicy {
            version: 4,
            allow: rules(&["a.example:443", "b.example:443"]),
            deny: rules(&["c.example:443"]),
            host_ports: vec![5432],
            ask_ms: 7,
        };
        let next = NetworkChange::Deny(rules(&["a.example:443"])).of(&now);
        assert_eq!(next.version, 5);
        assert_eq!(next.allow, rules(&["b.example:443"]));
        assert_eq!(next.deny, rules(&["c.example:443", "a.example:443"]));
        assert_eq!((next.host_ports.as_slice(), next.ask_ms), ([5432].as_slice(), 7));
        let next = NetworkChange::Allow(rules(&["c.example:443", "b.example:443"])).of(&now);
        assert_eq!(next.allow, rules(&["a.example:443", "b.example:443", "c.example:443"]));
        assert_eq!(next.deny, []);
        let set = NetworkChange::Set {
            allow: rules(&["d.example:1"]),
            deny: Vec::new(),
            host_ports: None,
            ask: Some(Duration::from_secs(1)),
        };
        let next = set.of(&now);
        assert_eq!(next.allow, rules(&["d.example:1"]));
        assert_eq!((next.host_ports.as_slice(), next.ask_ms), ([5432].as_slice(), 1000));
    }
}

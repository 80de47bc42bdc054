//! The tool that shows what a sandbox may reach, and what became of its connections. It changes nothing.

use crate::Outcome;
use crate::param::Param;
use crate::tool::{Conduct, Hints, Row, output_of};
use crate::toolbox::Call;
use cofferdam_core::{
    ConnectionDecision, ConnectionReport, Denial, MAX_DENIALS, Result, denials, made_visible,
};
use cofferdam_session::{NetworkReport, Session};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::VecDeque;
use std::fmt::Write as _;

/// How many connections are shown at most.
const MAX_SHOWN: u64 = 200;
/// How many are shown where nobody says.
const SHOWN: u64 = 20;
/// How many of the latest connections denials are looked for in.
const LOOKED_AT: usize = 2000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    connections: usize,
}

/// What a sandbox may reach, and what became of its connections.
#[derive(Clone, Serialize, JsonSchema)]
struct Network {
    /// Whether it has a way out at all. Where it has none it gets none.
    way_out: bool,
    /// Which edition of the rules this is; it grows with each change.
    version: u64,
    /// What is allowed, as the user wrote it. `*` is every public address.
    allow: Vec<String>,
    /// What is not, even though it is allowed.
    deny: Vec<String>,
    /// How many more rules there are of either sort.
    rules_omitted: usize,
    /// Ports of the user's own machine that are reached as `host.cofferdam.internal`.
    host_ports: Vec<u16>,
    /// How long a connection that is not allowed waits for the user, in milliseconds; 0: not at all.
    ask_ms: u64,
    /// What was denied of late: each destination once, the latest last.
    denied: Vec<Denied>,
    /// How many more of these there are.
    denied_omitted: usize,
    /// The latest connections, the last one last.
    connections: Vec<Connection>,
    /// How many earlier ones were looked at and are not shown.
    connections_omitted: usize,
}

/// A destination that was denied.
#[derive(Clone, Serialize, JsonSchema)]
struct Denied {
    /// The name that was asked for, or the address.
    host: String,
    /// The port; null where only the name was asked for.
    port: Option<u16>,
    /// The rule that decided; null where none did.
    rule: Option<String>,
    /// Why.
    reason: Option<String>,
    /// The call that asks the user for it; null where no answer would allow it.
    remedy: Option<String>,
    /// How often.
    count: u64,
}

/// A connection.
#[derive(Clone, Serialize, JsonSchema)]
struct Connection {
    /// When it came, in milliseconds since 1970.
    at_ms: u64,
    /// The name that was asked for, or the address.
    host: String,
    /// The port; 0 for a question for a name.
    port: u16,
    /// What became of it.
    decision: ConnectionDecision,
    /// The rule that decided; null where none did.
    rule: Option<String>,
    /// Why it was refused or failed.
    reason: Option<String>,
    /// Bytes from inside.
    bytes_up: u64,
    /// Bytes from outside.
    bytes_down: u64,
}

pub(super) const SHOW: Row = Row {
    name: "network_show",
    title: "See what the sandbox may reach",
    about: "Shows the rules of the sandbox's network that are in force, what was denied of late with the call \
            that asks for it, and the latest connections. It changes nothing, and no tool does: the user \
            alone sets rules. Ask for a destination with permission_request.",
    params: &[Param::whole(
        "connections",
        (0, MAX_SHOWN),
        SHOWN,
        "How many of the latest connections are shown at most.",
    )],
    output: output_of::<Network>,
    conduct: Conduct::Of(Hints::LOOKS),
};

pub(super) async fn show(call: Call<'_>) -> Result<Outcome> {
    let Arguments { connections } = call.arguments()?;
    let session = call.sandboxes.there(call.name()).await?;
    let rules = session.network().await?;
    let latest = latest(&session).await?;
    // The latest of each destination, and of those that are too many the latest.
    let mut all = denials(latest.iter().rev());
    all.reverse();
    let shown = connections.min(latest.len());
    let network = Network {
        denied: all.iter().map(Denied::new).collect(),
        denied_omitted: 0,
        connections: latest.iter().skip(latest.len() - shown).map(Connection::new).collect(),
        connections_omitted: latest.len() - shown,
        ..Network::new(rules)
    };
    let most = MAX_DENIALS.max(shown).max(network.allow.len()).max(network.deny.len());
    Ok(Outcome::fitting(most, |budget| {
        let network = network.latest(budget);
        Outcome::done(network.text(), json!(network))
    }))
}

/// The latest connections, the last one last.
async fn latest(session: &Session) -> Result<VecDeque<ConnectionReport>> {
    let (mut from, mut latest) = (0, VecDeque::new());
    loop {
        let page = session.connections(from).await?;
        // A line of the gate itself is no connection.
        latest.extend(page.connections.into_iter().filter(|one| one.id != 0));
        let too_many = latest.len().saturating_sub(LOOKED_AT);
        latest.drain(..too_many);
        if page.next <= from {
            return Ok(latest);
        }
        from = page.next;
    }
}

impl Network {
    fn new(rules: NetworkReport) -> Self {
        let NetworkReport { session: _, way_out, version, allow, deny, host_ports, ask_ms } = rules;
        Self {
            way_out,
            version,
            allow,
            deny,
            rules_omitted: 0,
            host_ports,
            ask_ms,
            denied: Vec::new(),
            denied_omitted: 0,
            connections: Vec::new(),
            connections_omitted: 0,
        }
    }

    /// The same with at most so many rules of each sort, and the latest denials and connections.
    fn latest(&self, most: usize) -> Self {
        let mut few = self.clone();
        for rules in [&mut few.allow, &mut few.deny] {
            few.rules_omitted += rules.len().saturating_sub(most);
            rules.truncate(most);
        }
        let denied = few.denied.len().saturating_sub(most);
        few.denied.drain(..denied);
        few.denied_omitted += denied;
        let connections = few.connections.len().saturating_sub(most);
        few.connections.drain(..connections);
        few.connections_omitted += connections;
        few
    }

    fn text(&self) -> String {
        if !self.way_out {
            return "There is no network, and a sandbox that was made without one gets none."
                .to_owned();
        }
        let mut text = format!("rules, edition {}", self.version);
        for (word, rules) in [("allow", &self.allow), ("deny", &self.deny)] {
            for rule in rules {
                write!(text, "\n{word} {rule}").ok();
            }
        }
        left(&mut text, self.rules_omitted, "more rules");
        for port in &self.host_ports {
            write!(text, "\nallow port {port} of the user's machine").ok();
        }
        text.push_str("\ndeny everything else");
        if self.ask_ms > 0 {
            write!(text, ", after {} ms in which the user may allow it", self.ask_ms).ok();
        }
        for denied in &self.denied {
            denied.tell(&mut text);
        }
        left(&mut text, self.denied_omitted, "earlier denials");
        for one in &self.connections {
            write!(text, "\n{} {}:{}", one.word(), one.host, one.port).ok();
        }
        left(&mut text, self.connections_omitted, "earlier connections");
        text
    }
}

fn left(text: &mut String, omitted: usize, what: &str) {
    if omitted > 0 {
        write!(text, "\n[{omitted} {what} are not shown]").ok();
    }
}

impl Denied {
    fn new(denial: &Denial) -> Self {
        let host = host(denial.host.as_deref(), denial.address.as_deref());
        let reason = denial.reason.as_deref().map(visible);
        let port = (denial.port != 0).then_some(denial.port);
        let remedy = denial.remedy.is_some().then(|| match port {
            Some(port) => format!("permission_request with host {host:?} and port {port}"),
            None => format!("permission_request with host {host:?} and the port that is needed"),
        });
        Self { host, port, rule: denial.rule.clone(), reason, remedy, count: denial.count }
    }

    fn tell(&self, text: &mut String) {
        let port = self.port.map(|port| format!(":{port}")).unwrap_or_default();
        write!(text, "\ndenied {}{port}, {} times", self.host, self.count).ok();
        if let Some(reason) = &self.reason {
            write!(text, ": {reason}").ok();
        }
        if let Some(remedy) = &self.remedy {
            write!(text, "; to ask the user for it: {remedy}").ok();
        }
    }
}

impl Connection {
    fn new(report: &ConnectionReport) -> Self {
        Self {
            at_ms: report.at_ms,
            host: host(report.host.as_deref(), report.address.as_deref()),
            port: report.port,
            decision: report.decision,
            rule: report.rule.clone(),
            reason: report.reason.as_deref().map(visible),
            bytes_up: report.bytes_up,
            bytes_down: report.bytes_down,
        }
    }

    fn word(&self) -> String {
        json!(self.decision).as_str().unwrap_or_default().to_owned()
    }
}

/// HOSTILE: a name is what somebody inside asked for, byte by byte.
fn host(name: Option<&str>, address: Option<&str>) -> String {
    visible(name.or(address).unwrap_or_default())
}

fn visible(text: &str) -> String {
    made_visible(text).into_owned()
}

//! The text format of Prometheus.

use super::counts::{Durations, Of, SECONDS};
use cofferdam_session::{ConnectionCounts, SessionReport};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Begins a metric.
fn metric(text: &mut String, name: &str, kind: &str, help: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

/// What was asked.
pub(super) fn requests(
    requests: &BTreeMap<(Of, u16), u64>,
    durations: &BTreeMap<Of, Durations>,
    bytes: u64,
) -> String {
    let mut text = String::new();
    let name = "cofferdam_build_info";
    metric(&mut text, name, "gauge", "The version of the server.");
    let _ = writeln!(text, "{name}{{version=\"{}\"}} 1", env!("CARGO_PKG_VERSION"));
    let name = "cofferdam_http_requests_total";
    metric(&mut text, name, "counter", "Requests that were answered.");
    for ((of, status), count) in requests {
        let _ = writeln!(text, "{name}{{{},status=\"{status}\"}} {count}", labels(of));
    }
    let name = "cofferdam_http_request_duration_seconds";
    metric(&mut text, name, "histogram", "Time until the answer to a request began.");
    for (of, took) in durations {
        let labels = labels(of);
        for (most, within) in SECONDS.iter().zip(took.within) {
            let _ = writeln!(text, "{name}_bucket{{{labels},le=\"{most}\"}} {within}");
        }
        let Durations { count, sum, .. } = took;
        let _ = writeln!(text, "{name}_bucket{{{labels},le=\"+Inf\"}} {count}");
        let _ = writeln!(text, "{name}_sum{{{labels}}} {sum}\n{name}_count{{{labels}}} {count}");
    }
    let name = "cofferdam_http_response_bytes_total";
    metric(&mut text, name, "counter", "Bytes of bodies that went out.");
    let _ = writeln!(text, "{name} {bytes}");
    text
}

/// How many sandboxes there are of each phase.
pub(super) fn sandboxes(text: &mut String, all: &[SessionReport]) {
    let mut phases: BTreeMap<String, u64> = BTreeMap::new();
    for session in all {
        let phase = serde_json::to_value(session.phase).unwrap_or_default();
        *phases.entry(phase.as_str().unwrap_or("unknown").to_owned()).or_default() += 1;
    }
    let name = "cofferdam_sandboxes";
    metric(text, name, "gauge", "Sandboxes by phase.");
    for (phase, count) in phases {
        let _ = writeln!(text, "{name}{{phase=\"{phase}\"}} {count}");
    }
}

/// How many commands run.
pub(super) fn execs(text: &mut String, running: u64) {
    let name = "cofferdam_execs_running";
    metric(text, name, "gauge", "Commands that run in sandboxes that run.");
    let _ = writeln!(text, "{name} {running}");
}

/// What became of connections. A gauge: what a sandbox counted goes with it.
pub(super) fn connections(text: &mut String, counts: ConnectionCounts) {
    let name = "cofferdam_connections";
    metric(text, name, "gauge", "Connections of the sandboxes that are there, by decision.");
    let ConnectionCounts { allowed, denied, failed, bytes_up, bytes_down } = counts;
    for (decision, count) in [("allowed", allowed), ("denied", denied), ("failed", failed)] {
        let _ = writeln!(text, "{name}{{decision=\"{decision}\"}} {count}");
    }
    let name = "cofferdam_connection_bytes";
    metric(text, name, "gauge", "Bytes of those connections, up from inside and down to it.");
    for (direction, bytes) in [("up", bytes_up), ("down", bytes_down)] {
        let _ = writeln!(text, "{name}{{direction=\"{direction}\"}} {bytes}");
    }
}

/// Routes are those of this program, and need no escapes but these.
fn labels(of: &Of) -> String {
    let route = of.route.replace('\\', "\\\\").replace('"', "\\\"");
    format!("method=\"{}\",route=\"{route}\"", of.method)
}

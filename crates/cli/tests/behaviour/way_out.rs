//! The way out: what is allowed is reached without any setting, and nothing else is.
//!
//! What the gate decides is shown elsewhere; here it stands where the program puts it. Nobody outside of
//! this machine is needed: what is allowed is a port of the host's own loopback.

use crate::place::{Place, everyone, until};
use crate::sessions_durable::keepers;
use serde_json::Value;
use std::io::Write;
use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

/// How long the end of a process may take to be seen.
const SOON: Duration = Duration::from_secs(20);

/// Says "reached" to whoever connects, for as long as the test runs.
pub(crate) fn server() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let _ = client.unwrap().write_all(b"reached\n");
        }
    });
    port
}

/// What somebody inside hears from a place: a line, or nothing.
pub(crate) fn ask(name: &str, port: u16) -> String {
    format!(
        "bash -c 'exec 5<>/dev/tcp/{name}/{port} && timeout 5 head -n1 <&5' 2>/dev/null || echo no"
    )
}

pub(crate) const HOST: &str = "host.cofferdam.internal";

#[test]
fn what_is_allowed_is_reached_without_a_setting_and_nothing_else_is() {
    everyone(|place| {
        let (open, closed) = (server(), server());
        let script = [
            ask(HOST, open),
            ask(HOST, closed),
            ask("127.0.0.1", open),
            ask("other.test", 443),
            ask("192.0.2.1", 443),
            "env | grep -ci _proxy".to_owned(),
        ]
        .join("; ");
        let port = open.to_string();
        let words = ["--profile", "repo-write", "--allow-host-port", &port, "--shell", &script];
        let said = place.run(&words);
        assert_eq!(said.text(), "reached\nno\nno\nno\nno\n0\n", "{said:?}");
        // The control: the other server is there, and can be allowed.
        let port = closed.to_string();
        let script = ask(HOST, closed);
        let words = ["--profile", "ci-only", "--allow-host-port", &port, "--shell", &script];
        let degraded = [&["--on-unavailable", "degrade"], &words[..]].concat();
        assert_eq!(place.run(&degraded).text(), "reached\n");
    });
}

#[test]
fn a_denial_is_told_with_what_would_allow_it() {
    everyone(|place| {
        let words = ["--profile", "repo-write", "--egress", "allowed.test:443", "--shell"];
        let script = [ask("denied.test", 443), ask("192.0.2.1", 8443)].join("; ");
        let said = place.run(&[&words[..], &[&script]].concat());
        assert_eq!(said.text(), "no\nno\n", "{said:?}");
        assert!(said.stderr.contains("denied: denied.test"), "{}", said.stderr);
        assert!(said.stderr.contains("denied: 192.0.2.1:8443"), "{}", said.stderr);
        assert!(said.stderr.contains("--egress"), "the remedy is told: {}", said.stderr);
        let report = place.report(&[&words[..], &[&script]].concat());
        let denials = report["denials"].as_array().unwrap();
        let hosts: Vec<&Value> = denials.iter().map(|denial| &denial["host"]).collect();
        assert!(hosts.contains(&&Value::from("denied.test")), "{report}");
        let quiet = place.report(&[&words[..], &["true"]].concat());
        assert_eq!(quiet["denials"], serde_json::json!([]), "control: nothing was asked for");
    });
}

#[test]
fn a_session_has_its_own_gate_and_none_is_left() {
    everyone(|place| {
        let open = server();
        let port = open.to_string();
        let create = ["create", "--name", "out", "--profile", "repo-write"];
        place.says(&[&create[..], &["--allow-host-port", &port]].concat(), 0);
        assert!(gates(place).is_empty(), "none is needed yet");
        let script = ask(HOST, open);
        let said = place.says(&["exec", "out", "--shell", &script], 0);
        assert_eq!(said.text(), "reached\n");
        let script = ask("denied.test", 443);
        let said = place.say(&["exec", "--json", "out", "--shell", &script]);
        let denials = said.object()["denials"].clone();
        assert_eq!(denials[0]["host"], "denied.test", "{denials}");
        let gates_of_it = gates(place);
        assert_eq!(gates_of_it.len(), 1);
        place.says(&["rm", "out"], 0);
        let gone = || gates(place).is_empty().then_some(());
        until(SOON, gone).expect("the gate ends with its session");
    });
}

#[test]
fn a_gate_is_nobody_on_the_host() {
    everyone(|place| {
        let open = server();
        let port = open.to_string();
        let create = ["create", "--name", "out", "--profile", "repo-write"];
        place.says(&[&create[..], &["--allow-host-port", &port]].concat(), 0);
        let said = place.says(&["exec", "out", "--shell", &ask(HOST, open)], 0);
        assert_eq!(said.text(), "reached\n");
        let [gate] = gates(place).try_into().unwrap();
        let [keeper] = keepers(place).try_into().unwrap();
        let status = |pid: &str, name: &str| {
            let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
            let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        for set in ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"] {
            assert_eq!(status(&gate, set), "0000000000000000", "{set}");
        }
        assert_eq!(status(&gate, "NoNewPrivs:"), "1");
        assert_eq!(status(&gate, "Seccomp:"), "2");
        assert_eq!(status(&keeper, "Seccomp:"), "0", "control: its keeper has no filter");
        let limits = std::fs::read_to_string(format!("/proc/{gate}/limits")).unwrap();
        let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
        assert_eq!(core.split_whitespace().nth(4), Some("0"), "{core}");
        if status(&keeper, "Uid:") == "0 0 0 0" {
            assert_ne!(status(&gate, "Uid:").split(' ').next(), Some("0"));
            assert_eq!(status(&gate, "Groups:"), "");
            assert_eq!(status(&gate, "CapBnd:"), "0000000000000000");
        } else {
            assert_eq!(status(&gate, "Uid:"), status(&keeper, "Uid:"));
        }
        let audit = place.says(&["audit", "out", "--json"], 0).object();
        let about_itself = |line: &&Value| line["id"] == 0;
        let all = audit["connections"].as_array().unwrap();
        assert_eq!(all.iter().find(about_itself), None, "nothing is missing here");
        place.says(&["rm", "out"], 0);
        let gone = || gates(place).is_empty().then_some(());
        until(SOON, gone).expect("the keeper ends the gate, whoever it is");
    });
}

/// The gates of this place's sessions: children of their keepers. What they have open nobody sees.
fn gates(place: &Place) -> Vec<String> {
    let keepers = keepers(place);
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let is_gate = |pid: &String| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")).map(str::trim);
        words.ends_with(b"\0gate\0")
            && parent.is_some_and(|parent| keepers.iter().any(|keeper| keeper == parent))
    };
    processes
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(is_gate)
        .collect()
}
